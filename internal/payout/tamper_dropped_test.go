package payout_test

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// hideEntries are ways to hide entries that match a condition.
var hideEntries = map[string]string{
	"dropped":                             `DELETE FROM entries WHERE `,
	"relabelled":                          `UPDATE entries SET subject = 'pyt_other' WHERE `,
	"dropped, with others in their place": `UPDATE entries SET number = number + 1000, subject = 'pyt_other' WHERE `,
}

// TestTamperedJournal_CancelledAgain puts a cancelled payout back to what it was, and hides the entry that tells of its end.
// Its amount would come out of what another payout has reserved.
func TestTamperedJournal_CancelledAgain(t *testing.T) {
	for name, hide := range hideEntries {
		t.Run(name, func(t *testing.T) { cancelAgain(t, hide) })
	}
}

func cancelAgain(t *testing.T, hide string) {
	t.Helper()
	s := newStory(t)
	s.keep("payouts")
	cancel := func() error {
		_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
		return err
	}
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 50_000}); err != nil {
		t.Fatal(err)
	}
	available := s.available()
	s.place.ByHand(t, `DELETE FROM payouts WHERE id = '`+string(s.id)+`'`)
	s.place.ByHand(t, `INSERT INTO payouts SELECT * FROM kept_payouts`)
	s.place.ByHand(t, hide+`type = 'payout.cancelled'`)
	s.wantRow(true) // it is what is left of its entries
	s.wantJournal(false)
	if err := cancel(); !errors.Is(err, ledger.ErrTampered) || errors.Is(err, payout.ErrPayoutTampered) {
		t.Errorf("cancelled again: %v", err)
	}
	s.wantAvailable(available)
}

// TestCopiedEntry_ChangesNothing puts a copy of a payout's entry into another journal: nobody reads it there.
func TestCopiedEntry_ChangesNothing(t *testing.T) {
	s := newStory(t)
	s.place.ByHand(t, `INSERT INTO entries SELECT 'usr_zz', number, at, type, subject, actor, data, pending, available, in_transit, sales, gateway, fees,
		after, hash, mac FROM entries WHERE subject = '`+string(s.id)+`'`)
	s.later(windowOver)
	if p := s.wantState(payout.Submitted); p.IsTampered() {
		t.Errorf("it says %q", p.Discrepancy)
	}
}

// TestRepair_LeavesMissingEntries drops the newest entries of a seller. The row of totals proves that there were some, so
// neither it nor a payout is taken for wrong.
func TestRepair_LeavesMissingEntries(t *testing.T) {
	for name, hide := range hideEntries {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			before := s.wantState(payout.Submitted)
			available := s.available()
			s.place.ByHand(t, hide+`subject = '`+string(s.id)+`'`)
			repairs, err := s.db.Repair(t.Context(), s.keys, "tests", s.now, true)
			if err != nil || len(repairs) < 2 {
				t.Errorf("repairs are %+v, %v; want the balance and the payout", repairs, err)
			}
			for _, r := range repairs {
				if r.Impossible == "" {
					t.Errorf("repaired was %+v", r)
				}
			}
			s.wantAvailable(available)
			if p := s.payout(); p.State != before.State || p.OrderBody != before.OrderBody {
				t.Errorf("the payout is %+v", p)
			}
		})
	}
}

// TestReconcileStartup_TamperedSeller loses a payout whose seller's balance was changed. The payouts of others go on.
func TestReconcileStartup_TamperedSeller(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.place.ByHand(t, `DELETE FROM payouts; UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`)
	s.payouts = s.newPayouts(t)
	if err := s.payouts.ReconcileStartup(t.Context()); err != nil || !s.payouts.StartupReconciled() {
		t.Errorf("startup reconciled: %v", err)
	}
	if unmatched, err := s.db.OpenUnmatchedTransfers(t.Context(), 10); err != nil || len(unmatched) != 1 {
		t.Errorf("unmatched are %+v, %v", unmatched, err)
	}
}

// TestSubmit_JournalCutOff_NotSent drops a seller's newest entries, and puts the totals back to the last one that is left: a journal that
// can be followed to its end. The first payout was paid, and its money must not be paid again.
func TestSubmit_JournalCutOff_NotSent(t *testing.T) {
	for name, cut := range map[string]func(*story){
		"in the same process": func(s *story) { s.place.ByHand(s, `DELETE FROM payouts WHERE seller_id = 'usr_b'`) }, // nothing is left of it
		"after a restart": func(s *story) {
			s.close()
			s.open(s)
		},
		"after a restart, with its event alone": func(s *story) {
			s.place.ByHand(s, `DELETE FROM payouts WHERE seller_id = 'usr_b'`)
			s.close()
			s.open(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.keep("journals")
			paid := s.request("usr_b", 100_000)
			s.later(windowOver)
			s.gateway.transfers[string(paid.ID)].progress = gateway.Paid
			if err := s.payouts.Notify(t.Context(), paper, "evt_1", paid.ID); err != nil {
				t.Fatal(err)
			}
			s.later(0)
			if p := s.stored(t, paid.ID); p.State != payout.Completed {
				t.Fatalf("the first payout is %s", p.State)
			}
			s.numberEvents()
			s.putBackEnd("usr_b")
			cut(s)
			s.wantNotSent(s.request("usr_b", 2_000_000))
		})
	}
}

// TestSubmit_CorrectionCutOff_NotSent drops the entry that took money from a seller, with the totals put back. The feed still has its
// event, or the process has written the entry, before the seller asked for a payout or while one waited.
func TestSubmit_CorrectionCutOff_NotSent(t *testing.T) {
	adjust := func(s *story, name string, amount money.Amount) {
		taken := ledger.Posting{
			Owner: "usr_b", At: s.now, Type: ledger.BalanceAdjusted, Subject: "adjustment:" + name, Actor: "user:usr_admin", Data: "{}", Moved: ledger.AdjustBalance(amount),
		}
		if err := s.db.Payouts().InTx(s.Context(), func(tx payout.Tx) error {
			_, err := tx.Append(s.Context(), taken)
			return err
		}); err != nil {
			s.Fatal(err)
		}
	}
	take := func(s *story) {
		adjust(s, "one", -2_000_000)
		s.numberEvents()
	}
	const noEvents = `DELETE FROM events; DELETE FROM queued_events`
	for name, cut := range map[string]func(*story) payout.Payout{
		"after a restart, with its event": func(s *story) payout.Payout {
			take(s)
			s.putBackEnd("usr_b")
			s.close()
			s.open(s)
			return s.request("usr_b", 2_000_000)
		},
		"in the same process": func(s *story) payout.Payout {
			take(s)
			s.putBackEnd("usr_b")
			s.place.ByHand(s, noEvents)
			return s.request("usr_b", 2_000_000)
		},
		"in the same process, which has written more since": func(s *story) payout.Payout {
			take(s)
			s.putBackEnd("usr_b")
			s.place.ByHand(s, noEvents)
			for _, name := range []string{"two", "three", "four"} {
				adjust(s, name, 1)
			}
			return s.request("usr_b", 2_000_000)
		},
		"while a payout waits": func(s *story) payout.Payout {
			waits := s.request("usr_b", 2_000_000)
			s.place.ByHand(s, `DROP TABLE kept_journals`)
			s.keep("journals")
			take(s)
			s.putBackEnd("usr_b")
			s.place.ByHand(s, noEvents)
			return waits
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.keep("journals")
			s.wantNotSent(cut(s))
		})
	}
}

// numberEvents puts what happened in the feed.
func (s *story) numberEvents() {
	s.Helper()
	if _, err := s.db.NumberEvents(s.Context(), 100, s.now, func(prefix string) string { return id.New(prefix, s.now) }, nil); err != nil {
		s.Fatal(err)
	}
}

// TestSubmit_CheckpointWithoutTheJournal_Sent has a checkpoint made while the seller's journal could not be followed: it holds nothing of it.
// What an older checkpoint holds still counts.
func TestSubmit_CheckpointWithoutTheJournal_Sent(t *testing.T) {
	const without = `INSERT INTO checkpoint_journals (seller_id, checkpoint, number, totals, hash) VALUES ('usr_b', 2, 0, '', '')`
	s := newStory(t)
	s.place.ByHand(t, without)
	p := s.request("usr_b", 100_000)
	s.later(windowOver)
	if is := s.stored(t, p.ID); is.State != payout.Submitted || is.IsTampered() {
		t.Errorf("it is %s, and says %q", is.State, is.Discrepancy)
	}
	s.place.ByHand(t, `INSERT INTO checkpoint_journals (seller_id, checkpoint, number, totals, hash) SELECT owner, 1, number, '', 'of another entry' FROM journals WHERE owner = 'usr_b'`)
	s.wantNotSent(s.request("usr_b", 100_000))
}

// TestSubmit_FreezeCutOff_NotSent takes an admin's freeze out of a seller's journal, with the totals put back. The process has written it.
func TestSubmit_FreezeCutOff_NotSent(t *testing.T) {
	s := newStory(t)
	s.keep("journals")
	if err := s.payouts.Freeze(t.Context(), ada, "usr_b"); err != nil {
		t.Fatal(err)
	}
	s.putBackEnd("usr_b")
	s.wantNotSent(s.request("usr_b", 2_000_000))
}

// putBackEnd puts a seller's totals back to those that were kept, and drops the entries behind them.
func (s *story) putBackEnd(seller string) {
	s.Helper()
	s.place.ByHand(s, `DELETE FROM journals WHERE owner = '`+seller+`'`)
	s.place.ByHand(s, `INSERT INTO journals SELECT * FROM kept_journals WHERE owner = '`+seller+`'`)
	s.place.ByHand(s, `DELETE FROM entries WHERE owner = '`+seller+`' AND number > (SELECT number FROM journals WHERE owner = '`+seller+`')`)
}

// wantNotSent takes the step that would send a payout, of a seller whose journal was cut off.
func (s *story) wantNotSent(p payout.Payout) {
	s.Helper()
	sent := s.gateway.sent
	s.payouts = s.newPayouts(s.T)
	s.now = s.now.Add(windowOver)
	for range 3 { // what a step records of this is an entry as well
		if err := s.payouts.Step(s.Context(), p.ID); !errors.Is(err, ledger.ErrTampered) || s.gateway.sent != sent {
			s.Errorf("the step ended with %v, and %d were sent", err, s.gateway.sent-sent)
		}
		s.now = s.now.Add(time.Hour)
	}
	if is := s.stored(s.T, p.ID); is.State != payout.Waiting || !is.IsTampered() {
		s.Errorf("the payout is %s, and says %q", is.State, is.Discrepancy)
	}
}

// TestPause_CutOff_NothingSent takes the pause of all payouts out of the platform's journal, with the totals put back. The process has written
// it, or a checkpoint has it.
func TestPause_CutOff_NothingSent(t *testing.T) {
	nothing := func(*story) {}
	t.Run("in the same process", func(t *testing.T) { pauseCutOff(t, nothing, nothing) })
	t.Run("in the same process, which has written more since", func(t *testing.T) {
		pauseCutOff(t, nothing, func(s *story) {
			for range 3 {
				if err := s.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
					_, err := tx.Append(t.Context(), ledger.Posting{
						Owner: decision.Platform, At: s.now, Type: ledger.AdminDecided, Subject: "key_1", Actor: "user:usr_admin", Data: `{"action":"create_service_key"}`,
					})
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("which the process has only read", func(t *testing.T) {
		pauseCutOff(t, func(s *story) {
			s.close()
			s.open(t)
			s.payouts = s.newPayouts(t)
			if paused, err := s.payouts.Paused(t.Context()); err != nil || !paused {
				t.Errorf("payouts are paused: %t, %v", paused, err)
			}
		}, nothing)
	})
	t.Run("after a restart", func(t *testing.T) {
		pauseCutOff(t, func(s *story) {
			s.place.ByHand(t, `INSERT INTO checkpoint_journals (seller_id, checkpoint, number, totals, hash) SELECT owner, 1, number, '', hash FROM journals WHERE owner = 'platform'`)
			s.close()
			s.open(t)
			s.payouts = s.newPayouts(t)
		}, nothing)
	})
}

func pauseCutOff(t *testing.T, before, after func(*story)) {
	t.Helper()
	s := newStory(t)
	if err := errors.Join(s.payouts.Pause(t.Context(), ada), s.payouts.Resume(t.Context(), ada)); err != nil {
		t.Fatal(err)
	}
	s.keep("journals")
	if err := s.payouts.Pause(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	before(s)
	s.putBackEnd("platform")
	after(s)
	s.now = s.now.Add(windowOver)
	if err := s.payouts.Step(t.Context(), s.id); err == nil || s.gateway.sent != 0 {
		t.Errorf("the step ended with %v, and %d were sent", err, s.gateway.sent)
	}
	s.wantState(payout.Waiting)
	if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 100_000}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("a request while nobody can tell whether payouts are paused: %v", err)
	}
}
