package payout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/storetest"
)

// backup is a copy of the database.
type backup struct{ place storetest.Place }

// save makes a copy of the database.
func (m *market) save() *backup { return &backup{m.place.Copy(m.tb)} }

// putBack ends the services, puts a copy in the database's place, and starts again.
func (m *market) putBack(t failer, b *backup) {
	t.Helper()
	m.close()
	m.place = b.place.Copy(m.tb)
	m.now = m.now.Add(time.Minute) // it takes a while
	m.open(t)
}

func (s *story) request(seller string, amount money.Amount) payout.Payout {
	s.Helper()
	p, _, err := s.payouts.Request(s.Context(), payout.Request{Seller: seller, Amount: amount})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s *story) reconcileStartup() {
	s.Helper()
	if err := s.payouts.ReconcileStartup(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func (s *story) stateOf(id payout.ID) payout.State {
	s.Helper()
	p, err := s.db.Payout(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return p.State
}

// TestReconcileStartup_TwoTransfersOnAPage has the gateway list two transfers of a payout that the database has lost. One is imported,
// and the other put before a person.
func TestReconcileStartup_TwoTransfersOnAPage(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.gateway.twofold = true
	s.putBack(t, saved)
	s.reconcileStartup()
	p, err := s.db.Payout(t.Context(), lost.ID)
	a, err2 := s.payouts.Attention(t.Context())
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	var others []string
	for _, u := range a.UnmatchedTransfers {
		if u.Transfer.Reference == string(lost.ID) {
			others = append(others, u.Transfer.GatewayID)
		}
	}
	if len(others) != 1 || others[0] == p.GatewayID {
		t.Errorf("the payout has transfer %q, and these of its transfers are unmatched: %v", p.GatewayID, others)
	}
}

// TestReconcileStartup_JournalPutBack puts the journals back to before a payout was asked for, and leaves the payout's row, which says that
// it is completed. The payout is imported, so that the seller can't withdraw its money again.
func TestReconcileStartup_JournalPutBack(t *testing.T) {
	s := newStory(t)
	kept := []string{"journals", "entries"}
	for _, table := range kept {
		s.place.ByHand(t, `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table)
	}
	before, err := s.db.Balance(t.Context(), "usr_b")
	if err != nil {
		t.Fatal(err)
	}
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.gateway.transfers[string(lost.ID)].advance(1)
	s.later(time.Hour)
	if state := s.stateOf(lost.ID); state != payout.Completed {
		t.Fatalf("the payout is %s", state)
	}
	for _, table := range kept {
		s.place.ByHand(t, `DELETE FROM `+table)
		s.place.ByHand(t, `INSERT INTO `+table+` SELECT * FROM kept_`+table)
		s.place.ByHand(t, `DROP TABLE kept_`+table)
	}
	s.close()
	s.open(t)
	s.reconcileStartup()
	if after, err := s.db.Balance(t.Context(), "usr_b"); err != nil || after.Available != before.Available-60_000 {
		t.Errorf("the seller has %d, and had %d before; %v", after.Available, before.Available, err)
	}
	if state := s.stateOf(lost.ID); state != payout.Completed {
		t.Errorf("the payout is %s", state)
	}
}

func TestReconcileStartup_GatewaySilent_NothingSent(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.putBack(t, saved)
	s.gateway.mood = silent
	if err := s.payouts.ReconcileStartup(t.Context()); err == nil || s.payouts.StartupReconciled() {
		t.Fatalf("startup reconciled (%t) with a gateway that is silent: %v", s.payouts.StartupReconciled(), err)
	}
	s.gateway.mood = fair
	s.later(time.Hour)
	if s.gateway.sent != 0 {
		t.Fatal("something was sent before the gateway was asked what it knows")
	}
	s.reconcileStartup()
	s.later(time.Second)
	s.wantState(payout.Submitted)
	s.wantViolated()
}

// A new database has lost no payout, so its gateway need not answer.
func TestReconcileStartup_NoUsers_AsksNothing(t *testing.T) {
	s := newStory(t)
	s.close()
	s.place = storetest.NewPlace(t)
	s.open(t)
	s.gateway.mood = silent
	if err := s.payouts.ReconcileStartup(t.Context()); err != nil || !s.payouts.StartupReconciled() {
		t.Errorf("startup reconciled %t: %v", s.payouts.StartupReconciled(), err)
	}
}

func TestReconcileStartup_WaitingButSent_NotResent(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile     func(*story, *transfer)
		want          payout.State
		wantAvailable int64
	}{
		"under way":         {func(*story, *transfer) {}, payout.Submitted, afterReserve},
		"paid":              {func(_ *story, tr *transfer) { tr.advance(1) }, payout.Completed, afterReserve},
		"failed":            {func(_ *story, tr *transfer) { tr.advance(2) }, payout.Failed, opening},
		"paid and returned": {func(_ *story, tr *transfer) { tr.advance(1); tr.advance(3) }, payout.Failed, opening},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			saved := s.save()
			s.later(windowOver)
			tt.meanwhile(s, s.gateway.transfers[string(s.id)])
			s.putBack(t, saved)
			s.wantState(payout.Waiting)
			s.reconcileStartup()
			if p := s.wantState(tt.want); p.GatewayID == "" || p.ProcessedAt.IsZero() || !p.SentAt.IsZero() {
				t.Errorf("gateway's id %q, processed %s, sent %s; it was processed, and not sent by this journal", p.GatewayID, p.ProcessedAt, p.SentAt)
			} else if tt.want == payout.Failed && p.DueAt.IsZero() {
				t.Error("the gateway is never asked again whether it paid after all")
			}
			s.wantLogged(1, slog.LevelWarn, "waiting payout found at gateway", "payout_id="+string(s.id))
			s.wantLogged(2, slog.LevelInfo, "startup reconciliation listed transfers", "gateway=paper", "since=", "transfers=")
			s.later(time.Hour)
			if s.gateway.sent != 1 {
				t.Errorf("it was sent %d times, want once", s.gateway.sent)
			}
			s.wantAvailable(tt.wantAvailable)
			s.wantViolated()
			events, err := s.payouts.Events(t.Context(), payout.Caller{Admin: true}, s.id)
			if err != nil || len(events) == 0 || events[0].To != payout.Submitted || events[0].Reason == "" {
				t.Errorf("events %+v, error %v; want the first to say that it was found", events, err)
			}
		})
	}
}

// The gateway's list does not show the transfer yet.
func TestRestored_WaitingPayout_LookedUpFirst(t *testing.T) {
	caller := payout.Caller{User: "usr_a"}
	restored := func(t *testing.T, m mood) *story {
		t.Helper()
		s := newStory(t)
		saved := s.save()
		s.gateway.mood = m
		s.later(windowOver)
		s.gateway.mood = fair
		s.putBack(t, saved)
		s.gateway.unlisting = true
		s.reconcileStartup()
		s.wantState(payout.Waiting)
		return s
	}
	t.Run("sent", func(t *testing.T) {
		s := restored(t, fair)
		s.gateway.deaf = true
		s.later(time.Second)
		s.wantState(payout.Waiting)
		s.gateway.deaf = false
		s.later(time.Minute)
		s.wantState(payout.Submitted)
		if s.gateway.sent != 1 {
			t.Errorf("it was sent %d times, want once", s.gateway.sent)
		}
	})
	t.Run("never sent", func(t *testing.T) {
		s := restored(t, lostRequests)
		s.later(time.Second)
		s.wantState(payout.Submitted)
		if s.gateway.sent != 2 {
			t.Errorf("it was sent %d times, want twice: the first was lost", s.gateway.sent)
		}
	})
	t.Run("cancel what was sent", func(t *testing.T) {
		s := restored(t, fair)
		s.gateway.deaf = true
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
			t.Errorf("cancelled without the gateway's word: %v", err)
		}
		s.wantState(payout.Waiting)
		s.gateway.deaf = false
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
			t.Errorf("cancelled what was sent: %v", err)
		}
		s.wantState(payout.Submitted)
		s.wantAvailable(afterReserve)
	})
	t.Run("cancel what is queued", func(t *testing.T) {
		s := restored(t, queueing)
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); err != nil {
			t.Fatal(err)
		}
		s.wantState(payout.Cancelled)
		s.wantAvailable(opening)
	})
	t.Run("cancel what was never sent", func(t *testing.T) {
		s := restored(t, lostRequests)
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) || fault.From(err).RetryAfter != lease+gracePeriod {
			t.Errorf("cancelled while what was sent before the start may be under way: %v", err)
		}
		s.wantState(payout.Waiting)
		s.now = s.now.Add(lease + gracePeriod)
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); err != nil {
			t.Fatal(err)
		}
		s.wantAvailable(opening)
		s.later(time.Hour)
		if s.gateway.sent != 1 {
			t.Errorf("it was sent %d times, and only in a time that is no more", s.gateway.sent)
		}
	})
	t.Run("cancel what arrives late", func(t *testing.T) {
		s := restored(t, lostRequests)
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
			t.Errorf("cancelled while what was sent before the start may be under way: %v", err)
		}
		s.put(s.made(gateway.InProgress))
		s.now = s.now.Add(lease + gracePeriod)
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
			t.Errorf("cancelled what was sent: %v", err)
		}
		s.wantAvailable(afterReserve)
	})
	t.Run("cancel what nobody could send yet", func(t *testing.T) {
		s := newStory(t)
		s.putBack(t, s.save())
		s.reconcileStartup()
		if _, _, err := s.payouts.Cancel(t.Context(), caller, s.id, ""); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused for its account", func(t *testing.T) {
		s := restored(t, lostRequests)
		s.gateway.mood = shunning
		s.later(time.Minute)
		s.wantState(payout.Waiting)
		s.wantAvailable(afterReserve)
		s.later(lease + gracePeriod)
		s.wantState(payout.Failed)
		s.wantAvailable(opening)
	})
}

func TestImport_LostPayout(t *testing.T) {
	for name, tt := range map[string]struct {
		luck          int
		want          payout.State
		wantAvailable int64
	}{
		"under way": {0, payout.Submitted, opening - 400_000},
		"paid":      {1, payout.Completed, opening - 400_000},
		"failed":    {2, payout.Failed, opening},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			saved := s.save()
			s.now = s.now.Add(time.Second + 3*time.Millisecond)
			lost := s.request("usr_b", 400_000)
			s.later(windowOver)
			s.gateway.transfers[string(lost.ID)].advance(tt.luck)
			s.putBack(t, saved)
			s.gateway.torn = 1
			for range 2 { // the second time it breaks off behind what was taken in
				s.gateway.transfers["a salary"] = &transfer{id: "pout_999999", amount: 100, progress: gateway.Paid, made: s.now}
				if err := s.payouts.ReconcileStartup(t.Context()); err == nil {
					t.Fatal("a torn list was taken for a whole one")
				}
				s.later(time.Hour)
			}
			s.gateway.torn = 0
			s.reconcileStartup()

			p, err := s.db.Payout(t.Context(), lost.ID)
			if err != nil {
				t.Fatal(err)
			}
			if p.State != tt.want || p.Amount != lost.Amount || p.Fee != lost.Fee || p.Rail != lost.Rail || p.Seller != "usr_b" ||
				p.BankAccountID != lost.BankAccountID || !p.RequestedAt.Equal(lost.RequestedAt) || p.ArriveAt.IsZero() || !p.SentAt.IsZero() || p.Source != payout.FromImport {
				t.Errorf("imported was\n%+v of\n%+v, want it %s", p, lost, tt.want)
			}
			if entries := s.entriesAbout(lost.ID); len(entries) == 0 || entries[0].Type != ledger.PayoutImported {
				t.Errorf("the journal does not begin with its import: %+v", entries)
			}
			b, err := s.db.Balance(t.Context(), "usr_b")
			if err != nil || int64(b.Available) != tt.wantAvailable {
				t.Errorf("available %d, error %v; want %d", b.Available, err, tt.wantAvailable)
			}
			s.later(time.Minute)
			if s.gateway.sent != 2 {
				t.Errorf("%d orders were sent, want 2: each once, and before", s.gateway.sent)
			}
			s.wantLogged(1, slog.LevelWarn, "payout imported from gateway", "payout_id="+string(lost.ID))
			s.wantViolated()
		})
	}
}

func TestReconcileStartup_SlowGatewayClock_FindsTransfer(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	saved := s.save()
	lost := s.request("usr_b", 400_000)
	s.later(windowOver)
	s.gateway.transfers[string(lost.ID)].made = s.now.Add(-9 * time.Minute)
	s.putBack(t, saved)
	s.reconcileStartup()
	if got := s.stateOf(lost.ID); got != payout.Submitted {
		t.Errorf("the lost payout is %q", got)
	}
}

// TestReconcileStartup_Again lists once more what the gateway has.
func TestReconcileStartup_Again(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.reconcileStartup()
	s.gateway.transfers["pyt_000000000000000000000000"] = &transfer{id: "pout_late", amount: 500, progress: gateway.Paid, made: s.now}
	s.reconcileStartup()
	s.wantViolated("unmatched-transfers-are-resolved")
}

// TestReconcileStartup_ListsFromLastSending leaves out what was made before the last sending, by any clock.
func TestReconcileStartup_ListsFromLastSending(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	old := &transfer{id: "pout_old", amount: 500, progress: gateway.Paid, made: s.payout().SentAt.Add(-10*time.Minute - time.Second)}
	s.gateway.transfers["pyt_000000000000000000000000"] = old
	s.reconcileStartup()
	s.wantViolated()
	old.made = old.made.Add(time.Second)
	s.reconcileStartup()
	s.wantViolated("unmatched-transfers-are-resolved")
}

// TestReconcileStartup_ForgedSending has an attacker write a later sending by hand, to hide what was paid before it.
func TestReconcileStartup_ForgedSending(t *testing.T) {
	for name, forged := range map[string]string{
		"a row changed":  `UPDATE payouts SET sent_at = 4000000000000000`,
		"a row inserted": `INSERT INTO payouts SELECT * FROM forged_payouts`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			lost := &transfer{id: "pout_lost", amount: 500, progress: gateway.Paid, made: s.payout().SentAt.Add(time.Second)}
			s.gateway.transfers["pyt_000000000000000000000000"] = lost
			s.place.ByHand(t, `CREATE TABLE forged_payouts AS SELECT * FROM payouts; UPDATE forged_payouts SET id = 'pyt_zzzzzzzzzzzzzzzzzzzzzzzz', sent_at = 4000000000000000`)
			s.place.ByHand(t, forged)
			s.reconcileStartup()
			if unmatched, err := s.db.OpenUnmatchedTransfers(t.Context(), 10); err != nil || len(unmatched) != 1 {
				t.Errorf("unmatched are %+v, %v; want the lost transfer", unmatched, err)
			}
		})
	}
}

// One instance's clock was a month ahead for one payout, and was corrected. A backup of later is restored. What the gateway has paid since the backup is found:
// the time of that payout does not hide it, before the month is over and after.
func TestReconcileStartup_ClockWasAhead_FindsTransfer(t *testing.T) {
	for name, wait := range map[string]time.Duration{"before that time comes": 0, "after it": 31 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			right := s.now
			s.now = right.AddDate(0, 1, 0)
			ahead := s.request("usr_b", 50_000)
			s.later(windowOver)
			s.gateway.transfers[string(ahead.ID)].made = right
			s.now = right.Add(time.Hour)
			s.request("usr_b", 50_000)
			s.later(windowOver)
			saved := s.save()
			lost := s.request("usr_b", 60_000)
			s.later(windowOver)
			if got := s.stateOf(lost.ID); got != payout.Submitted {
				t.Fatalf("the payout is %q before the restore", got)
			}
			s.putBack(t, saved)
			s.now = s.now.Add(wait)
			s.reconcileStartup()
			if p, err := s.db.Payout(t.Context(), lost.ID); err != nil || p.State != payout.Submitted {
				t.Errorf("the payout that was sent after the backup is %q, %v", p.State, err)
			}
		})
	}
}

// A long list is never read to its end if each failure starts it again.
func TestReconcileStartup_ContinuesAfterFailure(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	for range 7 {
		s.request("usr_b", 60_000)
	}
	s.later(windowOver)
	s.putBack(t, saved)
	for page := 1; !s.payouts.StartupReconciled(); page++ {
		if page > 5 {
			t.Fatal("the list of four pages and an empty one was not read in five looks")
		}
		s.gateway.torn, s.gateway.worn = page, page-1
		_ = s.payouts.ReconcileStartup(t.Context())
	}
	b, err := s.db.Balance(t.Context(), "usr_b")
	if err != nil || b.Counts.Processing != 7 {
		t.Errorf("balance %+v, error %v; want seven payouts under way", b, err)
	}
	s.wantViolated()
}

// Between two pages, as many transfers are made as a page has.
func TestReconcileStartup_ListShifts_ReadsAll(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	for range 5 {
		s.request("usr_b", 60_000)
	}
	s.later(windowOver)
	s.putBack(t, saved)
	s.gateway.whenListed = func() {
		s.gateway.whenListed = nil
		for n := range 2 {
			s.gateway.transfers[fmt.Sprintf("by hand %d", n)] = &transfer{id: fmt.Sprintf("pout_9%05d", n), progress: gateway.Paid, made: s.now}
		}
	}
	s.reconcileStartup()
	b, err := s.db.Balance(t.Context(), "usr_b")
	if err != nil || b.Counts.Processing != 5 {
		t.Errorf("balance %+v, error %v; want five payouts under way", b, err)
	}
}

// TestReconcileStartup_RestartsAfterCancel: what was imported first must not pass for a sending that
// the ledger knew of, or the next look would begin behind what is still missing.
func TestReconcileStartup_RestartsAfterCancel(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	saved := s.save()
	var lost []payout.Payout
	for range 5 {
		s.now = s.now.Add(3 * time.Hour)
		lost = append(lost, s.request("usr_b", 60_000))
		s.later(windowOver)
	}
	s.putBack(t, saved)
	s.gateway.torn = 1
	if err := s.payouts.ReconcileStartup(t.Context()); err == nil {
		t.Fatal("a torn list was taken for a whole one")
	}
	if _, err := s.db.Payout(t.Context(), lost[4].ID); err != nil {
		t.Fatalf("the newest was on the page that could be read: %v", err)
	}
	s.gateway.torn = 0
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	for i, p := range lost {
		if _, err := s.db.Payout(t.Context(), p.ID); err != nil {
			t.Errorf("lost payout %d: %v", i, err)
		}
	}
	s.wantViolated()
}

// unrecovered can't tell whether the bank account of a lost payout is its seller's.
type unrecovered struct {
	payout.Beneficiaries
	err error
}

func (u unrecovered) Recover(context.Context, string, bank.ID, gateway.Name, string) error {
	return u.err
}

func TestImport_AccountNotChecked_ImportedLater(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.now = s.now.Add(time.Second)
	lost := s.request("usr_b", 400_000)
	s.later(windowOver)
	s.putBack(t, saved)
	o := s.options(t, s.db.Payouts())
	failed := errors.New("the bank's answer is lost")
	o.Beneficiaries = unrecovered{s.gateway, failed}
	payouts, err := payout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := payouts.ReconcileStartup(t.Context()); !errors.Is(err, failed) || payouts.StartupReconciled() {
		t.Errorf("startup reconciled: %v, want %v", err, failed)
	}
	if _, err := s.db.Payout(t.Context(), lost.ID); !errors.Is(err, payout.ErrNotFound) {
		t.Errorf("the payout was imported: %v", err)
	}
	s.reconcileStartup()
	if p := s.stored(t, lost.ID); p.State != payout.Submitted {
		t.Errorf("it is %s then", p.State)
	}
	s.wantViolated()
}

func TestImport_OnceByConcurrentInstances(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	for range 6 {
		s.request("usr_b", 60_000)
	}
	s.later(windowOver)
	s.putBack(t, saved)
	var starting sync.WaitGroup
	for range 4 {
		instance := s.newPayouts(t)
		starting.Go(func() {
			if err := instance.ReconcileStartup(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	b, err := s.db.Balance(t.Context(), "usr_b")
	if err != nil || b.Available != opening-6*60_000 || b.Counts.Processing != 6 {
		t.Errorf("balance %+v, error %v", b, err)
	}
	s.wantViolated()
}

// After the backup, the first payout was cancelled and its money was paid out by a second one. In the restored database
// the first one still waits.
func TestRestored_SpentMoney_NotPaidAgain(t *testing.T) {
	restored := func(t *testing.T) *story {
		t.Helper()
		s := newStory(t)
		saved := s.save()
		if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
			t.Fatal(err)
		}
		s.request("usr_a", opening)
		s.later(windowOver)
		s.putBack(t, saved)
		return s
	}
	t.Run("what waits is not sent", func(t *testing.T) {
		s := restored(t)
		s.reconcileStartup()
		s.wantAvailable(-100_000)
		s.later(lease + gracePeriod) // before, it may have been sent and not have arrived
		if p := s.wantState(payout.Failed); p.ReasonCode != "possible_duplicate" || p.Reason == "" {
			t.Errorf("reason %q: %q", p.ReasonCode, p.Reason)
		}
		s.wantAvailable(0)
		if s.gateway.sent != 1 {
			t.Errorf("%d orders were sent, want the lost one alone", s.gateway.sent)
		}
		s.wantViolated()
	})
	t.Run("nor while its gateway is not configured, nor afterwards", func(t *testing.T) {
		s := restored(t)
		s.reconcileStartup()
		other := s.another()
		s.route("another", other)
		s.later(time.Minute)
		if p := s.wantState(payout.Waiting); p.ReasonCode != "possible_duplicate" {
			t.Errorf("without its gateway the reason is %q", p.ReasonCode)
		}
		s.route("another", s.gateway, other)
		s.later(time.Hour)
		if p := s.wantState(payout.Failed); p.ReasonCode != "possible_duplicate" || s.gateway.sent != 1 {
			t.Errorf("reason %q; %d orders were sent, want the lost one alone", p.ReasonCode, s.gateway.sent)
		}
	})
	t.Run("nor what another instance marks while payouts are frozen", func(t *testing.T) {
		s := newStory(t)
		if err := s.payouts.Freeze(t.Context(), ada, "usr_a"); err != nil {
			t.Fatal(err)
		}
		s.later(windowOver)
		saved := s.save()
		_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
		if err := errors.Join(err, s.payouts.Unfreeze(t.Context(), ada, "usr_a")); err != nil {
			t.Fatal(err)
		}
		s.request("usr_a", opening)
		s.later(windowOver)
		s.putBack(t, saved)
		if p := s.wantState(payout.Waiting); !p.IsStopped() {
			t.Fatalf("its reason is %q", p.ReasonCode)
		}
		var other sync.Once
		first := s.newPayoutsOn(t, undoing{s.db.Payouts(), func() { other.Do(s.reconcileStartup) }})
		if err := first.Step(t.Context(), s.id); err != nil {
			t.Fatal(err)
		}
		if p := s.wantState(payout.Waiting); p.ReasonCode != "possible_duplicate" {
			t.Errorf("its reason is %q", p.ReasonCode)
		}
		if err := s.payouts.Unfreeze(t.Context(), ada, "usr_a"); err != nil {
			t.Fatal(err)
		}
		s.later(time.Hour)
		if s.wantState(payout.Failed); s.gateway.sent != 1 {
			t.Errorf("%d orders were sent, want the lost one alone", s.gateway.sent)
		}
	})
	t.Run("nor what was asked for before the gateway answered", func(t *testing.T) {
		s := restored(t)
		hasty := s.request("usr_a", opening-100_000)
		s.reconcileStartup()
		s.later(windowOver)
		if got := s.stateOf(hasty.ID); got != payout.Failed {
			t.Errorf("the hasty payout is %s, want it failed", got)
		}
		s.later(lease + gracePeriod)
		s.wantAvailable(0)
		if s.gateway.sent != 1 {
			t.Errorf("%d orders were sent, want the lost one alone", s.gateway.sent)
		}
		if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 50_000}); !errors.Is(err, ledger.ErrInsufficient) {
			t.Errorf("request of money that is gone: %v", err)
		}
		s.wantViolated()
	})
	t.Run("unless sales make up for it in time", func(t *testing.T) {
		s := restored(t)
		s.reconcileStartup()
		s.record(t, sale.NewSale{ID: "in time", Seller: "usr_a", Amount: 100_000, OccurredAt: s.now, AvailableAt: s.now})
		s.release(t)
		s.later(time.Minute)
		s.wantState(payout.Submitted)
		s.wantAvailable(0)
		s.wantViolated()
	})
}

// TestRestored_WaitingIsSentDownToZero has the lost payout leave as much as the one that waits, or a paisa less.
func TestRestored_WaitingIsSentDownToZero(t *testing.T) {
	for lost, want := range map[money.Amount]struct {
		marked string
		state  payout.State
	}{
		opening - 100_000: {"", payout.Submitted},
		opening - 99_999:  {"possible_duplicate", payout.Failed},
	} {
		s := newStory(t)
		saved := s.save()
		if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
			t.Fatal(err)
		}
		s.request("usr_a", lost)
		s.later(windowOver)
		s.putBack(t, saved)
		s.reconcileStartup()
		s.wantAvailable(int64(opening - 100_000 - lost))
		if p := s.wantState(payout.Waiting); p.ReasonCode != want.marked {
			t.Errorf("with %d available, what waits is marked %q, want %q", opening-100_000-lost, p.ReasonCode, want.marked)
		}
		s.later(lease + gracePeriod)
		s.wantState(want.state)
	}
}

// TestImport_PossiblySentGoesToReviewWithoutFunds: in the backup the first payout is being sent; it was
// refused after that, and its money paid out by another one.
func TestImport_PossiblySentGoesToReviewWithoutFunds(t *testing.T) {
	s := newStory(t)
	var saved *backup
	s.gateway.mood, s.gateway.whenSent = refusing, func() { saved = s.save() }
	s.later(windowOver)
	s.wantState(payout.Failed)
	s.gateway.mood, s.gateway.whenSent = fair, nil
	s.request("usr_a", opening)
	s.later(windowOver)
	sent := s.gateway.sent
	s.putBack(t, saved)
	s.wantState(payout.Submitting)
	s.reconcileStartup()
	for s.payout().State != payout.ManualReview {
		s.later(s.payout().DueAt.Sub(s.now))
	}
	if wait := s.payout().DueAt.Sub(s.now); wait < 4*time.Hour {
		t.Errorf("it is polled again in %s, want hours", wait)
	}
	for range 3 {
		s.later(7 * time.Hour)
	}
	if p := s.wantState(payout.ManualReview); p.DueAt.IsZero() || p.Reason == "" {
		t.Errorf("nobody polls the payout in review again (due %s), or the seller is not told (%q)", p.DueAt, p.Reason)
	}
	if s.gateway.sent != sent {
		t.Errorf("%d orders were sent, want the %d from before", s.gateway.sent, sent)
	}
	s.wantAvailable(-100_000)
	s.wantViolated()
}

// TestStartup_Unmatched_StopsTheSellerItNames lists transfers that can't be taken in. Most name a seller, who gets no other payout until an admin
// has resolved them. The others' payouts go on.
func TestStartup_Unmatched_StopsTheSellerItNames(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.join(t, "usr_new")
	lost := s.request("usr_new", 70_000)
	for i, order := range []gateway.Order{
		{},
		{Seller: "usr_a", Account: "bka_usr_a", Gross: 1},
		{Seller: "usr_a", Account: "bka_usr_b", Gross: 60_000},
		{Seller: "usr_a", Account: "bka_usr_a", Gross: 60_000, Beneficiary: "fa_usr_b", Currency: "INR"},
		{Seller: "usr_a", Account: "bka_usr_a", Gross: 60_000, Beneficiary: "fa_usr_a", Currency: "USD"},
	} {
		id := fmt.Sprintf("pyt_%024d", i)
		s.gateway.transfers[id] = &transfer{id: "pout_x" + id, order: order, amount: 500, progress: gateway.Paid, made: s.now}
	}
	s.gateway.transfers["no reference of ours"] = &transfer{id: "pout_y", amount: 500, progress: gateway.Paid, made: s.now}
	s.later(windowOver)
	delete(s.gateway.transfers, string(s.id))
	sent := s.gateway.sent
	s.putBack(t, saved)
	for range 2 {
		s.reconcileStartup()
		if seen, err := s.db.Watch(t.Context(), s.now); seen.UnmatchedTransfers != 6 || err != nil {
			t.Errorf("%d unmatched transfers, error %v; want 6", seen.UnmatchedTransfers, err)
		}
	}
	if _, err := s.db.Payout(t.Context(), lost.ID); !errors.Is(err, payout.ErrNotFound) {
		t.Errorf("a payout of nobody's is in the ledger: %v", err)
	}
	s.wantViolated("unmatched-transfers-are-resolved")
	s.later(time.Second)
	if p := s.wantState(payout.Waiting); !p.IsStopped() {
		t.Errorf("it waits because %q", p.Reason)
	}
	other := s.request("usr_b", 60_000)
	s.later(windowOver)
	if state := s.stateOf(other.ID); state != payout.Submitted {
		t.Errorf("another seller's payout is %s", state)
	}
	s.wantOnHold("usr_a")

	s.place.ByHand(t, `UPDATE unmatched_transfers SET resolved = 1`)
	s.later(time.Hour)
	s.wantState(payout.Waiting)
	s.place.ByHand(t, `UPDATE unmatched_transfers SET resolved = 0`)
	list, err := s.payouts.UnmatchedTransfers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list {
		if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, u.ID()); err != nil {
			t.Fatal(err)
		}
	}
	s.reconcileStartup() // it lists them once more, and they are resolved
	s.later(time.Hour)
	s.wantState(payout.Submitted)
	if s.gateway.sent != sent+2 {
		t.Errorf("%d orders were sent, want two more than %d", s.gateway.sent, sent)
	}
}

// An unmatched transfer stops its seller on each instance within a minute, and stops them still once its gateway was taken away.
func TestStartup_Unmatched_StopsElsewhere(t *testing.T) {
	t.Run("another instance", func(t *testing.T) {
		s := newStory(t)
		s.later(windowOver)
		s.gateway.twofold = true // which lists another transfer of the payout
		if err := s.newPayoutsOn(t, s.db.Payouts()).ReconcileStartup(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.gateway.twofold = false
		s.later(time.Minute)
		s.wantOnHold("usr_a")
	})
	t.Run("another gateway", func(t *testing.T) {
		s := newStory(t)
		saved := s.save()
		s.gateway.transfers["pyt_000000000000000000000007"] = &transfer{id: "pout_7", order: gateway.Order{Seller: "usr_a", Account: "bka_usr_b", Gross: 60_000}, amount: 60_000, progress: gateway.Paid, made: s.now}
		s.putBack(t, saved)
		s.reconcileStartup()
		s.route("another", s.another())
		s.wantOnHold("usr_a")
		open, err := s.payouts.UnmatchedTransfers(t.Context())
		if err != nil || len(open) != 1 {
			t.Fatalf("unmatched are %+v, %v", open, err)
		}
		if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, open[0].ID()); err != nil {
			t.Fatal(err)
		}
		s.later(time.Minute)
		s.request("usr_a", 60_000)
	})
}

// TestStartup_Unmatched_StopsAfterAnotherStart starts the service again once other sellers were paid. What the first start could not take in was made
// before those payouts, and stops its seller still.
func TestStartup_Unmatched_StopsAfterAnotherStart(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.gateway.transfers["pyt_000000000000000000000007"] = &transfer{id: "pout_7", order: gateway.Order{Seller: "usr_a", Account: "bka_usr_b", Gross: 60_000}, amount: 60_000, progress: gateway.Paid, made: s.now}
	s.putBack(t, saved)
	if err := errors.Join(s.payouts.Freeze(t.Context(), ada, "usr_a"), s.payouts.Unfreeze(t.Context(), ada, "usr_a")); err != nil {
		t.Fatal(err)
	}
	s.reconcileStartup()
	s.wantOnHold("usr_a")
	if e, err := s.payouts.Explain(t.Context(), "usr_a"); err != nil || e.Blockers[0].Code != payout.BlockedFrozen || !e.Blockers[0].Since.IsZero() {
		t.Errorf("payouts are blocked by %+v, %v; the freeze that is over is not what began it", e.Blockers, err)
	}
	s.later(time.Hour)
	other := s.request("usr_b", 60_000)
	s.later(windowOver)
	if state := s.stateOf(other.ID); state != payout.Submitted {
		t.Fatalf("another seller's payout is %s", state)
	}

	s.close()
	s.open(t)
	s.reconcileStartup()
	s.later(time.Hour)
	s.wantOnHold("usr_a")
	if state := s.stateOf(s.id); state != payout.Waiting {
		t.Errorf("the payout of a seller whose money has left is %s", state)
	}
	open, err := s.payouts.UnmatchedTransfers(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("unmatched are %+v, %v", open, err)
	}
	if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, open[0].ID()); err != nil {
		t.Fatal(err)
	}
	s.close()
	s.open(t)
	s.reconcileStartup()
	s.later(time.Hour)
	if state := s.stateOf(s.id); state != payout.Submitted {
		t.Errorf("an admin has resolved the transfer, and the payout of its seller is %s", state)
	}
}

// TestImport_ForgedEntry puts a seller back to before a payout that was paid, with a row of it that says so and an entry about it that the service
// did not write. The seller's journal does not have the payout, so the money could be requested once more.
func TestImport_ForgedEntry(t *testing.T) {
	for name, owner := range map[string]string{"in nobody's journal": "usr_nobody", "in the seller's journal": "usr_b", "in another seller's journal": "usr_a"} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			saved := s.save()
			lost := s.request("usr_b", 1_500_000)
			s.later(windowOver)
			made := s.gateway.transfers[string(lost.ID)]
			made.progress, made.paid = gateway.Paid, 1
			s.putBack(t, saved)
			s.place.ByHand(t, `CREATE TABLE forged AS SELECT * FROM payouts WHERE id = '`+string(s.id)+`'`)
			s.place.ByHand(t, `UPDATE forged SET id = '`+string(lost.ID)+`', seller_id = 'usr_b', bank_account_id = 'bka_usr_b', amount = 1500000,
				fee = 500, state = 'completed', status = 'completed', gateway_id = '`+made.id+`', sent_at = requested_at, completed_at = requested_at, due_at = NULL, progress = 'paid'`)
			s.place.ByHand(t, `INSERT INTO payouts SELECT * FROM forged`)
			s.place.ByHand(t, `INSERT INTO entries (owner, number, at, type, subject, actor, data, available, in_transit, after, hash, mac)
				VALUES ('`+owner+`', 999, 1, 'payout.requested', '`+string(lost.ID)+`', 'system', '{}', 0, 0, '', 'x', 'x')`)
			s.reconcileStartup()
			if open, err := s.payouts.UnmatchedTransfers(t.Context()); err != nil || len(open) != 1 || open[0].Transfer.Order.Seller != "usr_b" {
				t.Errorf("unmatched are %+v, %v", open, err)
			}
			s.wantOnHold("usr_b")
			s.later(windowOver)
			if owner != "usr_a" { // whose journal was changed too
				s.wantState(payout.Submitted)
			}

			s.place.ByHand(t, `DELETE FROM entries WHERE number = 999`) // as a repair does
			s.later(time.Minute)
			if state := s.stateOf(lost.ID); state != payout.Completed {
				t.Errorf("it is repaired, and the payout is %s", state)
			}
			if b, err := s.db.Balance(t.Context(), "usr_b"); err != nil || b.Available != opening-1_500_000 {
				t.Errorf("the balance is %+v, %v", b, err)
			}
		})
	}
}

// TestStartup_KnownPayoutRepaired changes an entry about a payout that was sent. Whether the ledger has its transfer can't be told at a start, so the
// seller's payouts stop until the entry is repaired.
func TestStartup_KnownPayoutRepaired(t *testing.T) {
	t.Run("while it runs", func(t *testing.T) { repairsKnown(t, false) })
	t.Run("before another start", func(t *testing.T) { repairsKnown(t, true) })
}

func repairsKnown(t *testing.T, restarted bool) {
	t.Helper()
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.close()
	s.open(t)
	s.place.ByHand(t, `UPDATE entries SET actor = 'x' || actor WHERE subject = '`+string(s.id)+`'`)
	s.reconcileStartup()
	if open, err := s.payouts.UnmatchedTransfers(t.Context()); err != nil || len(open) != 1 {
		t.Errorf("unmatched are %+v, %v", open, err)
	}
	s.wantOnHold("usr_a")
	s.place.ByHand(t, `UPDATE entries SET actor = substr(actor, 2) WHERE subject = '`+string(s.id)+`'`)
	if restarted {
		s.close()
		s.open(t)
		s.reconcileStartup()
	}
	for range 3 {
		s.later(time.Minute)
	}
	if open, err := s.payouts.UnmatchedTransfers(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("it is repaired, and unmatched are %+v, %v", open, err)
	}
	s.request("usr_a", 60_000)
}

// TestImport_SumBeyondAllTotals has the gateway tell of a lost payout an amount that no total can hold. That transfer is unmatched and stops its seller;
// the start goes on.
func TestImport_SumBeyondAllTotals(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.putBack(t, saved)
	s.gateway.transfers[string(lost.ID)].order.Gross = math.MaxInt64 - 5
	s.reconcileStartup()
	open, err := s.payouts.UnmatchedTransfers(t.Context())
	if err != nil || len(open) != 1 || !strings.Contains(open[0].Why, "larger than can be counted") {
		t.Errorf("unmatched are %+v, %v", open, err)
	}
	s.wantOnHold("usr_b")
	s.later(windowOver)
	s.wantState(payout.Submitted)
}

// TestImport_RepairedBetweenStarts loses a payout whose seller's records were changed. Another seller is paid before they are repaired, so that the last
// sending is later than the transfer, and the next start takes it in all the same.
func TestImport_RepairedBetweenStarts(t *testing.T) {
	t.Run("the totals", func(t *testing.T) {
		takesInRepaired(t,
			func(s *story) {
				s.place.ByHand(t, `UPDATE journals SET available = available + 5 WHERE owner = 'usr_b'`)
			},
			func(s *story) {
				s.place.ByHand(t, `UPDATE journals SET available = available - 5 WHERE owner = 'usr_b'`)
			})
	})
	t.Run("the bank account", func(t *testing.T) {
		takesInRepaired(t, func(s *story) { s.gateway.tampered = true }, func(s *story) { s.gateway.tampered = false })
	})
}

func takesInRepaired(t *testing.T, change, repair func(*story)) {
	t.Helper()
	s := newStory(t)
	saved := s.save()
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.putBack(t, saved)
	change(s)
	s.reconcileStartup()
	s.later(time.Hour)
	other := s.request("usr_a", 60_000)
	s.later(windowOver)
	if state := s.stateOf(other.ID); state != payout.Submitted {
		t.Fatalf("another seller's payout is %s", state)
	}
	repair(s)
	s.close()
	s.open(t)
	s.reconcileStartup()
	if p, err := s.db.Payout(t.Context(), lost.ID); err != nil || p.Amount != 60_000 {
		t.Errorf("the lost payout is %+v, %v", p, err)
	}
}

// TestImport_Resolved_LeftAlone has an admin settle a lost payout by hand, because the records of its seller were changed. They are repaired, and the
// next start could take it in: it would be paid for twice.
func TestImport_Resolved_LeftAlone(t *testing.T) {
	for name, change := range map[string]string{
		"repaired": `UPDATE journals SET available = available WHERE owner = 'usr_b'`, "the platform's journal is damaged": `UPDATE entries SET actor = 'admin:usr_z' WHERE owner = 'platform'`,
	} {
		t.Run(name, func(t *testing.T) { leavesResolvedAlone(t, change) })
	}
}

func leavesResolvedAlone(t *testing.T, change string) {
	t.Helper()
	s := newStory(t)
	saved := s.save()
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.putBack(t, saved)
	before, err := s.db.Balance(t.Context(), "usr_b")
	if err != nil {
		t.Fatal(err)
	}
	s.place.ByHand(t, `UPDATE journals SET available = available + 5 WHERE owner = 'usr_b'`)
	s.reconcileStartup()
	open, err := s.payouts.UnmatchedTransfers(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("unmatched are %+v, %v", open, err)
	}
	if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, open[0].ID()); err != nil {
		t.Fatal(err)
	}
	s.place.ByHand(t, `UPDATE journals SET available = available - 5 WHERE owner = 'usr_b'`)
	s.place.ByHand(t, change)
	s.close()
	s.open(t)
	s.reconcileStartup()
	if after, err := s.db.Balance(t.Context(), "usr_b"); err != nil || after != before {
		t.Errorf("an admin has resolved a lost payout, and a start makes of the balance %+v the balance %+v, %v", before, after, err)
	}
	if _, err := s.db.Payout(t.Context(), lost.ID); !errors.Is(err, payout.ErrNotFound) {
		t.Errorf("the payout of a resolved transfer: %v, want %v", err, payout.ErrNotFound)
	}
}

// A gateway lists another transfer under the reference of a payout that has its own. The money of both has left, so the seller gets no other
// payout until an admin has looked, who is not the seller.
func TestStartup_AnotherTransferOfAPayout_StopsItsSeller(t *testing.T) {
	for name, prepare := range map[string]func(s *story){
		"the same gateway": func(s *story) {
			s.later(windowOver)
			s.gateway.twofold = true
		},
		"another gateway, which tells no seller": func(s *story) {
			other := s.another()
			s.route("another", s.gateway, other)
			other.transfers[string(s.id)] = &transfer{id: "x_1", amount: 100, progress: gateway.Paid, made: s.now}
		},
		"two of a payout that was lost": func(s *story) {
			saved := s.save()
			lost := s.request("usr_a", 60_000)
			s.later(windowOver)
			if state := s.stateOf(lost.ID); state != payout.Submitted {
				s.Fatalf("the payout is %s", state)
			}
			s.gateway.twofold = true
			s.putBack(s.T, saved)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			prepare(s)
			s.payouts = s.newPayoutsOn(t, s.db.Payouts())
			s.reconcileStartup()
			s.gateway.twofold = false // the next one has its own
			for range 3 {
				s.wantOnHold("usr_a")
				s.later(2 * time.Minute) // what was not taken in is tried again
			}
			list, err := s.payouts.UnmatchedTransfers(t.Context())
			if err != nil || len(list) == 0 {
				t.Fatalf("%d unmatched transfers: %v", len(list), err)
			}
			for _, u := range list {
				own := decision.By{Admin: "usr_a", Note: "It is fine."}
				if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), own, u.ID()); !errors.Is(err, decision.ErrOwn) {
					t.Errorf("the seller, who is an admin, resolved it: %v", err)
				}
				if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, u.ID()); err != nil {
					t.Error(err)
				}
			}
			s.later(2 * time.Minute)
			s.request("usr_a", 60_000)
		})
	}
}

// TestStartup_SellerChangedForTheStart_NotPaidAgain changes what a lost payout needs while it is to be imported, and puts it back. It is
// imported then, before its money is withdrawn once more.
func TestStartup_SellerChangedForTheStart_NotPaidAgain(t *testing.T) {
	for name, change := range map[string][2]string{
		"balance":       {`UPDATE journals SET available = available + 1 WHERE owner = 'usr_b'`, `UPDATE journals SET available = available - 1 WHERE owner = 'usr_b'`},
		"another owner": {`UPDATE journals SET owner = 'usr_z' WHERE owner = 'usr_b'`, `UPDATE journals SET owner = 'usr_b' WHERE owner = 'usr_z'`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			before, err := s.db.Balance(t.Context(), "usr_b")
			if err != nil {
				t.Fatal(err)
			}
			saved := s.save()
			lost := s.request("usr_b", 60_000)
			s.later(windowOver)
			s.putBack(t, saved)
			s.place.ByHand(t, change[0])
			s.reconcileStartup()
			s.place.ByHand(t, change[1])
			s.wantOnHold("usr_b")
			s.later(time.Minute)
			if state := s.stateOf(lost.ID); state != payout.Submitted {
				t.Errorf("the lost payout is %s", state)
			}
			if after, err := s.db.Balance(t.Context(), "usr_b"); err != nil || after.Available != before.Available-60_000 {
				t.Errorf("%d are available, %v; want %d", after.Available, err, before.Available-60_000)
			}
			if open, err := s.db.OpenUnmatchedTransfers(t.Context(), 10); err != nil || len(open) != 0 {
				t.Errorf("listed as unmatched are %+v, %v", open, err)
			}
			s.request("usr_b", 60_000) // of what is left
		})
	}
}

// A transfer that moved nothing is no payout that was lost.
func TestStartup_TransferOfNothingIsUnmatched(t *testing.T) {
	s := newStory(t)
	s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{
		id: "pout_9", progress: gateway.Paid, made: s.now, order: gateway.Order{Seller: "usr_b", Account: "bka_usr_b", Gross: 100_000},
	}
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	s.wantViolated("unmatched-transfers-are-resolved")
}

func TestStartup_TransferOfAnotherPayoutIsUnmatched(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].id = "pout_other"
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	s.wantViolated("unmatched-transfers-are-resolved")
}

func TestReconcileStartup_TransferDiffers_MovesNoMoney(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			saved := s.save()
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			lie.alter(s.gateway.transfers[string(s.id)])
			s.putBack(t, saved)
			s.reconcileStartup()
			if p := s.wantState(payout.Submitted); !strings.Contains(p.Discrepancy, lie.says) {
				t.Errorf("discrepancy %q", p.Discrepancy)
			}
			s.wantLogged(1, slog.LevelWarn, "report of payout found at gateway not applied", "payout_id="+string(s.id), "error=")
			s.wantAvailable(afterReserve)
			s.later(time.Hour)
			s.wantState(payout.Submitted)
			if s.gateway.sent != 1 {
				t.Errorf("it was sent %d times, want once", s.gateway.sent)
			}
			s.wantViolated("gateway-agrees")
		})
	}
}

// TestImport_PolledSoon imports a payout of which nobody knows when it was sent. It is polled as one that was sent lately.
func TestImport_PolledSoon(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.now = s.now.Add(time.Minute)
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.putBack(t, saved)
	s.reconcileStartup()
	for range 15 {
		s.later(s.stored(t, lost.ID).DueAt.Sub(s.now))
	}
	if wait := s.stored(t, lost.ID).DueAt.Sub(s.now); wait < 12*time.Minute || wait > 18*time.Minute { // a quarter of an hour, a fifth more or less
		t.Errorf("it is polled again in %s", wait)
	}
}

// TestImport_LaterReportToAnotherAccount imports a payout whose later report names another account.
func TestImport_LaterReportToAnotherAccount(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.now = s.now.Add(time.Minute)
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.putBack(t, saved)
	s.reconcileStartup()
	tr := s.gateway.transfers[string(lost.ID)]
	tr.advance(1)
	tr.order.Beneficiary = "fa_usr_a"
	s.later(time.Hour)
	p, err := s.db.Payout(t.Context(), lost.ID)
	if err != nil || p.State != payout.Submitted || !strings.Contains(p.Discrepancy, "a transfer to fa_usr_a") {
		t.Errorf("it is %s with the discrepancy %q, %v", p.State, p.Discrepancy, err)
	}
	s.wantViolated("gateway-agrees")
}

// TestReconcileStartup_ReschedulesChanged has payouts that had ended before the backup, and of which the gateway says
// something else since.
func TestReconcileStartup_ReschedulesChanged(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = refusing
	s.later(windowOver)
	s.wantState(payout.Failed)
	s.gateway.mood = fair
	s.gateway.transfers[string(s.id)] = &transfer{id: "pout_9", amount: s.payout().Net(), progress: gateway.Paid, paid: 1, made: s.now}
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	s.later(time.Second)
	s.wantViolated("gateway-agrees")
	s.wantAvailable(opening)
}

// overtaken has another service import the lost payouts while this one looks at their first bank account.
type overtaken struct {
	payout.Beneficiaries
	other func() error
}

func (o *overtaken) Recover(ctx context.Context, seller string, id bank.ID, at gateway.Name, beneficiary string) error {
	other := o.other
	if o.other = nil; other != nil {
		if err := other(); err != nil {
			return err
		}
	}
	return o.Beneficiaries.Recover(ctx, seller, id, at, beneficiary)
}

// TestImport_TwoInstances has two instances import the same payout at once. Its amount is reserved once.
func TestImport_TwoInstances(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.now = s.now.Add(time.Minute)
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.putBack(t, saved)
	second := s.newPayouts(t)
	o := s.options(t, s.db.Payouts())
	o.Beneficiaries = &overtaken{o.Beneficiaries, func() error { return second.ReconcileStartup(t.Context()) }}
	first, err := payout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.ReconcileStartup(t.Context()); err != nil {
		t.Error(err)
	}
	if state := s.stateOf(lost.ID); state != payout.Submitted {
		t.Errorf("the imported payout is %s", state)
	}
	if imported := s.entriesAbout(lost.ID); len(imported) != 2 {
		t.Errorf("its entries are %+v, want that it was imported and submitted", imported)
	}
	if unmatched, err := s.db.OpenUnmatchedTransfers(t.Context(), 10); err != nil || len(unmatched) > 0 {
		t.Errorf("unmatched are %+v, %v", unmatched, err)
	}
	s.wantViolated()
}

// Another instance, whose clock is two seconds ahead, has just sent more payouts than a start looks at. The start lists what the gateway made since then, and not
// all that it ever made.
func TestReconcileStartup_AnotherClockAhead_ListsFromLastSending(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.now = s.now.AddDate(1, 0, 0)
	for range 20 {
		s.request("usr_b", 50_000)
	}
	s.now = s.now.Add(windowOver)
	right := s.now
	s.now = right.Add(2 * time.Second)
	for range 4 {
		s.later(0)
	}
	s.now = right
	s.log.Reset()
	s.reconcileStartup()
	since := regexp.MustCompile(`since=(\S+)`).FindStringSubmatch(s.log.String())
	if since == nil {
		t.Fatal(s.log.String())
	}
	if at, err := time.Parse(time.RFC3339, since[1]); err != nil || right.Sub(at) > time.Hour {
		t.Errorf("listed since %s, %v; the last sending was at %s", at, err, right)
	}
}

// diesSending has an instance send the story's payout at a time by its clock, and die before it records the answer.
func (s *story) diesSending(t *testing.T, at time.Time) {
	t.Helper()
	s.now = at
	changes := 1
	dies := s.newPayoutsOn(t, dying{s.db.Payouts(), &changes})
	if err := dies.ReconcileStartup(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, err := dies.LeaseDue(t.Context(), 10)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	_ = dies.Step(t.Context(), ids[0])
	s.wantState(payout.Submitting)
}

// An instance whose clock is five days ahead sends a payout and dies. The clock is corrected, and the instances are restarted. The payout is looked up.
func TestReconcileStartup_SubmittingByClockAhead_IsLookedUp(t *testing.T) {
	s := newStory(t)
	right := s.now.Add(windowOver)
	s.diesSending(t, right.AddDate(0, 0, 5))
	s.now = right
	s.putBack(t, s.save())
	s.reconcileStartup()
	s.later(time.Hour)
	s.later(time.Hour)
	s.wantState(payout.Submitted)
}

// A payout was requested and sent by an instance whose clock was days ahead. The database is put back to before it was sent, and the clock is corrected. A seller's
// cancellation asks the gateway, which has the transfer.
func TestCancel_RequestedByClockAhead_AsksGateway(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	right := s.now
	s.now = right.AddDate(0, 0, 5)
	p := s.request("usr_b", 50_000)
	saved := s.save()
	s.later(windowOver)
	if got := s.stateOf(p.ID); got != payout.Submitted {
		t.Fatalf("it is %s", got)
	}
	s.now = right.Add(time.Hour)
	s.putBack(t, saved)
	if got, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_b"}, p.ID, ""); got.State == payout.Cancelled {
		t.Errorf("the gateway has the transfer, and the payout is cancelled: %v", err)
	}
}

// An instance whose clock is five days ahead sends a payout and dies. The gateway has no lookup and forgets a key after a day. Thirty hours later the clock is
// corrected, and the instances are restarted. Sent again, the order would be paid twice.
func TestResend_SentByClockAhead_KeyIsOver(t *testing.T) {
	s := newStoryAt(t, func(c *gateway.Capabilities) { blind(c); c.KeyLifetime = 24 * time.Hour })
	right := s.now.Add(windowOver)
	s.diesSending(t, right.AddDate(0, 0, 5))
	s.now = right.Add(30 * time.Hour)
	s.putBack(t, s.save())
	s.reconcileStartup()
	s.later(time.Hour)
	s.later(time.Hour)
	s.wantState(payout.ManualReview)
	if s.gateway.sent != 1 {
		t.Errorf("the order was sent %d times", s.gateway.sent)
	}
}
