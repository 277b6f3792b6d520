package payout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// TestCancel_RepeatAfterCrash has the caller lost between the gateway's cancellation and our record of it. The next look
// finds it, and the repeat is answered as the first call would have been.
func TestCancel_RepeatAfterCrash(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.gateway.transfers[string(s.id)].progress = gateway.Cancelled
	s.later(time.Minute)
	s.wantState(payout.Cancelled)
	seller := payout.Caller{User: "usr_a"}
	if p, replayed, err := s.payouts.Cancel(t.Context(), seller, s.id, "k"); err != nil || replayed || p.State != payout.Cancelled {
		t.Errorf("cancelled %+v, replayed %t, %v", p, replayed, err)
	}
	if p, replayed, err := s.payouts.Cancel(t.Context(), seller, s.id, "k"); err != nil || !replayed || p.State != payout.Cancelled {
		t.Errorf("cancelled again %+v, replayed %t, %v", p, replayed, err)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), seller, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
		t.Errorf("cancelled without a key: %v", err)
	}
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestCancel_AsksTheGatewaySoOften has a seller cancel a payout in a loop that the gateway does not let go of: the calls take turns from
// everyone's payouts.
func TestCancel_AsksTheGatewaySoOften(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.gateway.deaf = true
	seller := payout.Caller{User: "usr_a"}
	asked := 0
	var err error
	for ; asked < 1000; asked++ {
		if _, _, err = s.payouts.Cancel(t.Context(), seller, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
			break
		}
	}
	if f := fault.From(err); !errors.Is(err, payout.ErrCancelledOften) || f.RetryAfter == 0 || asked < 50 || asked > 100 {
		t.Errorf("after %d times: %v", asked, err)
	}
	s.now = s.now.Add(11 * time.Second)
	if _, _, err = s.payouts.Cancel(t.Context(), seller, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
		t.Errorf("eleven seconds later: %v", err)
	}
	s.gateway.deaf = false
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_ada", Admin: true}, s.id, ""); errors.Is(err, payout.ErrCancelledOften) {
		t.Errorf("another caller: %v", err)
	}
}

// TestCancel_SentByAnotherInstanceAndCutOff_NotRefunded puts the whole database back to before the payout was sent, and has it cancelled at an
// instance that was up all the time: it has no reason to think that the payout was sent before it started.
func TestCancel_SentByAnotherInstanceAndCutOff_NotRefunded(t *testing.T) {
	s := newStory(t)
	other := s.sentAndCutOff(t)
	if _, _, err := other.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
		t.Errorf("cancelled with %v", err)
	}
	s.wantState(payout.Submitted)
	s.wantAvailable(afterReserve)
	s.wantViolated()
}

// TestCancel_SentByAnotherClock_NotRefunded has another instance, whose clock is ahead, send the payout just before its cancel window is over here.
func TestCancel_SentByAnotherClock_NotRefunded(t *testing.T) {
	s := newStory(t)
	requested := s.wantState(payout.Waiting).RequestedAt
	s.now = requested.Add(window - time.Second)
	s.put(s.made(gateway.Paid))
	if _, _, err := s.upSince(requested).Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
		t.Errorf("cancelled with %v", err)
	}
	s.wantAvailable(afterReserve)
}

// TestStep_DueTooEarly_NotSent has the time changed by hand at which the payout is sent: it can be cancelled until its window is over, without a question to
// the gateway.
func TestStep_DueTooEarly_NotSent(t *testing.T) {
	s := newStory(t)
	requested := s.wantState(payout.Waiting).RequestedAt
	s.place.ByHand(t, `UPDATE payouts SET due_at = 1`)
	s.later(window - time.Second)
	if p := s.wantState(payout.Waiting); s.gateway.sent != 0 || p.DueAt.Before(requested.Add(window)) {
		t.Errorf("sent %d times, and due at %s again, want %s", s.gateway.sent, p.DueAt, requested.Add(window))
	}
	s.later(time.Minute)
	s.wantState(payout.Submitted)
}

// TestStep_SentByAnotherInstanceAndCutOff_NotFailed puts the whole database back to before the payout was sent, and has its bank account turn out to be no good.
func TestStep_SentByAnotherInstanceAndCutOff_NotFailed(t *testing.T) {
	for name, answers := range map[string]bool{"gateway answers": true, "gateway is silent": false} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			other := s.sentAndCutOff(t)
			s.gateway.mood, s.gateway.deaf = shunning, !answers
			if err := other.Step(t.Context(), s.id); (err == nil) != answers {
				t.Errorf("the step ended with %v", err)
			}
			s.wantState(map[bool]payout.State{true: payout.Submitted, false: payout.Waiting}[answers])
			s.wantAvailable(afterReserve)
		})
	}
}

// TestCancel_Overdue_GatewaySilent_Cancelled has a payout that the journal knows as never sent, and a gateway that does not answer.
func TestCancel_Overdue_GatewaySilent_Cancelled(t *testing.T) {
	s := newStory(t)
	requested := s.wantState(payout.Waiting).RequestedAt
	s.now = s.now.Add(windowOver)
	s.gateway.deaf = true
	if _, _, err := s.upSince(requested).Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Errorf("cancelled with %v", err)
	}
	s.wantLogged(1, slog.LevelWarn, "cancel lookup failed", string(s.id))
	s.wantState(payout.Cancelled)
	s.wantAvailable(opening)
}

// TestCancel_ManyOverdue_NotTooOften has a seller cancel more overdue payouts at once than calls that may go to the gateway again and again.
func TestCancel_ManyOverdue_NotTooOften(t *testing.T) {
	s := newStory(t)
	const many = 70
	s.record(t, sale.NewSale{ID: "large", Seller: "usr_b", Amount: many * 50_000, OccurredAt: s.now, AvailableAt: s.now})
	s.release(t)
	var ids []payout.ID
	for range many {
		ids = append(ids, s.request("usr_b", 50_000).ID)
	}
	s.now = s.now.Add(windowOver)
	for i, id := range ids {
		if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_b"}, id, ""); err != nil {
			t.Fatalf("payout %d of %d: %v", i+1, many, err)
		}
	}
}

// sentAndCutOff has the payout sent, and puts the whole database back to before that. It returns an instance that was up all the time.
func (s *story) sentAndCutOff(t *testing.T) *payout.Service {
	t.Helper()
	saved := s.save()
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.putBack(t, saved)
	return s.upSince(s.wantState(payout.Waiting).RequestedAt)
}

// upSince is another instance on the same database, which started then.
func (s *story) upSince(start time.Time) *payout.Service {
	s.Helper()
	now := s.now
	s.now = start
	instance := s.newPayoutsOn(s.T, s.db.Payouts())
	s.now = now
	return instance
}

// dying is a store whose process dies once it has made so many changes.
type dying struct {
	payout.Store
	changes *int
}

func (d dying) InGroup(ctx context.Context, scope ledger.Scope, fn func(payout.ChangeTx) error) error {
	if *d.changes--; *d.changes < 0 {
		return errDied
	}
	return d.Store.InGroup(ctx, scope, fn)
}

var errDied = errors.New("the process died")

// TestCancel_AtTheGateway_RepeatAfterCrash has the process die at each of the changes of a cancellation, and in half of the cases a poll
// hear of it first. A repeat cancels the payout, or says that it is cancelled, and an admin's decision is on record once.
func TestCancel_AtTheGateway_RepeatAfterCrash(t *testing.T) {
	for _, c := range []payout.Caller{{User: "usr_a"}, {User: "usr_admin", Admin: true, Note: "They asked for it."}} {
		for i := range 8 {
			changes, polled := i/2, i%2 == 1
			t.Run(fmt.Sprint(c.User, " after ", changes, " polled ", polled), func(t *testing.T) {
				s := newStory(t)
				s.gateway.mood = queueing
				s.later(windowOver)
				first, _, err := s.newPayoutsOn(t, dying{s.db.Payouts(), &changes}).Cancel(t.Context(), c, s.id, "k")
				if err == nil != (first.State == payout.Cancelled) {
					t.Errorf("cancelled %s, %v", first.State, err)
				}
				if polled {
					s.later(time.Hour)
				}
				again, replayed, repeat := s.payouts.Cancel(t.Context(), c, s.id, "k")
				if repeat != nil || again.State != payout.Cancelled || err == nil && !replayed {
					t.Errorf("cancelled again %s, replayed %t, %v", again.State, replayed, repeat)
				}
				if diff := cmp.Diff(first, again, cmpopts.IgnoreFields(payout.Payout{}, "DueAt", "Tries")); err == nil && diff != "" {
					t.Error(diff)
				}
				s.wantAvailable(opening)
				if c.Admin {
					if _, _, err := s.payouts.Cancel(t.Context(), c, s.id, "another key"); !errors.Is(err, payout.ErrNotCancellable) {
						t.Errorf("cancelled under another key: %v", err)
					}
				}
				if decisions, err := s.db.Decisions(t.Context(), string(s.id), 10); err != nil || len(decisions) > 1 || len(decisions) == 1 != c.Admin {
					t.Errorf("%d decisions, %v", len(decisions), err)
				}
			})
		}
	}
}

// TestCancel_RepeatOfAnotherKey is refused where a caller was answered.
func TestCancel_RepeatOfAnotherKey(t *testing.T) {
	for name, m := range map[string]mood{"waiting": fair, "at the gateway": queueing} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			if m == queueing {
				s.gateway.mood = m
				s.later(windowOver)
			}
			seller := payout.Caller{User: "usr_a"}
			if _, _, err := s.payouts.Cancel(t.Context(), seller, s.id, "k"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.payouts.Cancel(t.Context(), seller, s.id, "another"); !errors.Is(err, payout.ErrNotCancellable) {
				t.Errorf("cancelled once more: %v", err)
			}
			s.wantAvailable(opening)
		})
	}
}

// TestCancel_GatewayNotConfigured calls off what waits for a gateway that was taken away. A database that was restored may not know that it
// was sent, so only an admin can, who has looked in the gateway's own records. What it may have stays.
func TestCancel_GatewayNotConfigured(t *testing.T) {
	for name, tt := range map[string]struct {
		mood     mood
		restored bool
		caller   payout.Caller
		want     error
	}{
		"never sent":                           {fair, false, payout.Caller{User: "usr_a"}, payout.ErrCancelUnclear},
		"never sent, by an admin":              {fair, false, payout.Caller{User: "usr_ada", Admin: true, Note: "It is not in its records."}, nil},
		"never sent, by an admin who sells":    {fair, false, payout.Caller{User: "usr_a", Admin: true}, payout.ErrCancelUnclear},
		"never sent, as restored, by an admin": {fair, true, payout.Caller{User: "usr_ada", Admin: true, Note: "It is not in its records."}, payout.ErrCancelUnclear},
		"turned away, by an admin":             {closed, false, payout.Caller{User: "usr_ada", Admin: true, Note: "It is not in its records."}, payout.ErrCancelUnclear},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = tt.mood
			if tt.mood == closed {
				s.later(windowOver)
			}
			s.now = s.now.Add(time.Second)
			s.restoredByHand = tt.restored
			s.route("another", s.another())
			s.later(time.Hour)
			s.wantState(payout.Waiting)
			want := int64(opening)
			if tt.want != nil {
				want = afterReserve
			}
			if _, _, err := s.payouts.Cancel(t.Context(), tt.caller, s.id, ""); !errors.Is(err, tt.want) {
				t.Errorf("cancelled with %v, want %v", err, tt.want)
			}
			s.wantAvailable(want)
		})
	}
}

// The gateway turned the order away, took it all the same, and did not pay it. Neither side paid, and the checks go on: it may turn up as paid.
func TestCancel_FailedAtTheGateway_NoDiscrepancy(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	s.gateway.mood = fair
	p, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
	if err != nil {
		t.Fatal(err)
	}
	order := gateway.Order{Reference: string(s.id), Seller: "usr_a", Account: "bka_usr_a", Gross: p.Amount, Amount: p.Net()}
	turnedUp := &transfer{id: "pout_late", order: order, amount: p.Net(), progress: gateway.Failed, made: s.now}
	s.gateway.transfers[string(s.id)] = turnedUp
	s.later(24 * time.Hour)
	if p := s.wantState(payout.Cancelled); p.Discrepancy != "" || p.DueAt.IsZero() {
		t.Errorf("neither side paid, and the discrepancy is %q; the next check is at %s", p.Discrepancy, p.DueAt)
	}
	turnedUp.progress = gateway.Paid
	s.now = s.now.Add(24 * time.Hour)
	s.later(24 * time.Hour)
	if p := s.wantState(payout.Cancelled); p.Discrepancy == "" {
		t.Error("the gateway paid a cancelled payout, and that is no discrepancy")
	}
}

func TestCancel_OfAnotherSeller_NotFound(t *testing.T) {
	s := newStory(t)
	for _, c := range []payout.Caller{{User: "usr_b"}, {}} {
		if _, _, err := s.payouts.Cancel(t.Context(), c, s.id, ""); !errors.Is(err, payout.ErrNotFound) {
			t.Errorf("cancelled by %q: %v", c.User, err)
		}
		if _, err := s.payouts.Payout(t.Context(), c, s.id); !errors.Is(err, payout.ErrNotFound) {
			t.Errorf("read by %q: %v", c.User, err)
		}
		if events, err := s.payouts.Events(t.Context(), c, s.id); !errors.Is(err, payout.ErrNotFound) || len(events) > 0 {
			t.Errorf("its events, read by %q: %v, %v", c.User, events, err)
		}
	}
	s.wantState(payout.Waiting)
	s.wantAvailable(afterReserve)
}

// TestCancel_OnRecord names who cancelled, in the journal. An admin who sells decides nothing about their own payouts.
func TestCancel_OnRecord(t *testing.T) {
	for _, tt := range []struct {
		by      payout.Caller
		want    string
		decides []decision.Action
	}{
		{payout.Caller{User: "usr_a"}, "user:usr_a", nil},
		{payout.Caller{User: "usr_a", Admin: true}, "user:usr_a", nil},
		{payout.Caller{User: "usr_a", IssuerActor: "issuer:https://id.example"}, "issuer:https://id.example", nil},
		{payout.Caller{User: ada.Admin, Admin: true, Note: ada.Note}, "admin:usr_ada", []decision.Action{decision.CancelPayout}},
	} {
		s := newStory(t)
		if _, _, err := s.payouts.Cancel(t.Context(), tt.by, s.id, ""); err != nil {
			t.Fatal(err)
		}
		entries := s.entriesAbout(s.id)
		i := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Type == ledger.PayoutCancelled })
		if i < 0 || entries[i].Actor != tt.want {
			t.Errorf("its entries are %+v, want it cancelled by %q", entries, tt.want)
		}
		s.wantDecisions(string(s.id), tt.decides...)
	}
}

// TestCancel_TooLate_SaysWhy tells a payout that the bank works on from one that has ended.
func TestCancel_TooLate_SaysWhy(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	refuses := func(state payout.State, want string) {
		t.Helper()
		s.wantState(state)
		_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
		if !errors.Is(err, payout.ErrNotCancellable) || !strings.Contains(err.Error(), want) {
			t.Errorf("cancel a payout that is %s: %v, want %q", state, err, want)
		}
	}
	refuses(payout.Submitted, "cancelled: the bank is already working on it.")
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Hour)
	refuses(payout.Completed, "it is completed")
}

// TestCancel_OutcomeUnknown_SaysSo tells of no bank that works on a payout which the bank may not have.
func TestCancel_OutcomeUnknown_SaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		open  func(*testing.T) *story
		state payout.State
		want  string
	}{
		"unknown":   {newUnclearStory, payout.Unknown, "it was sent, and whether the bank has it is not known yet. It is being looked up."},
		"in review": {newReviewStory, payout.ManualReview, "it was sent, and its outcome is not known. Our team is reviewing it."},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.open(t)
			_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
			if !errors.Is(err, payout.ErrNotCancellable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("cancel: %v, want %q", err, tt.want)
			}
			s.wantState(tt.state)
		})
	}
}

// The gateway said that it can let go of the payout, and by now the bank works on it.
func TestCancel_GatewayNoLongerCan_Refused(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].progress = gateway.InProgress
	for range 2 {
		if p, replayed, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "k"); !errors.Is(err, payout.ErrNotCancellable) {
			t.Errorf("cancelled %+v, replayed %t, %v", p, replayed, err)
		}
	}
	s.wantState(payout.Submitted)
	s.wantAvailable(afterReserve)
}

// The gateway is not asked to let go of a payout that was changed by hand.
func TestCancel_TamperedAtTheGateway_Refused(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	s.later(windowOver)
	s.place.ByHand(t, `UPDATE payouts SET notes = 'gift'`)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrPayoutTampered) {
		t.Errorf("cancelled: %v", err)
	}
	if tr := s.gateway.transfers[string(s.id)]; tr.progress != gateway.Queued {
		t.Errorf("the gateway's transfer is %s", tr.progress)
	}
	s.wantState(payout.Submitted)
	s.wantAvailable(afterReserve)
}

// TestCancel_SentPayoutPutBackToWaiting_Refused has a payout's row say that it was never sent, and that its next step is far off, so that nobody
// but the seller comes across it.
func TestCancel_SentPayoutPutBackToWaiting_Refused(t *testing.T) {
	for name, change := range map[string]string{
		"never sent":         `sent_at = NULL`,
		"sent":               `tries = 0`,
		"requested just now": `requested_at = sent_at, sent_at = NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			s.wantState(payout.Submitted)
			s.place.ByHand(t, `UPDATE payouts SET state = 'waiting', gateway_id = '', due_at = due_at + 1000000000000`)
			s.place.ByHand(t, `UPDATE payouts SET `+change)
			for range 2 {
				_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "k")
				if refusal := fault.From(err); refusal == nil || refusal.Code != payout.ErrPayoutTampered.Code {
					t.Errorf("cancelled: %v", err)
				}
			}
			found := 0
			for _, e := range s.entriesAbout(s.id) {
				if e.Type == ledger.DiscrepancyFound {
					found++
				}
			}
			if p := s.stored(t, s.id); !p.IsTampered() || found != 1 {
				t.Errorf("it says %q, and a discrepancy was found %d times", p.Discrepancy, found)
			}
			s.wantAvailable(afterReserve)
		})
	}
}

// TestMatchTransfer_WaitingAfterRestore matches a payout that a backup calls waiting with the transfer that it became, at a
// gateway that finds nothing by reference.
func TestMatchTransfer_WaitingAfterRestore(t *testing.T) {
	s := newStoryAt(t, blind)
	saved := s.save()
	s.later(windowOver)
	sent := s.wantState(payout.Submitted)
	s.gateway.transfers[string(s.id)].advance(1)
	s.restoredByHand = true
	s.putBack(t, saved)
	s.wantState(payout.Waiting)
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout_other"); !errors.Is(err, payout.ErrNoTransfer) {
		t.Errorf("matched with another: %v", err)
	}
	s.wantState(payout.Waiting)
	if p, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, sent.GatewayID); err != nil || p.State != payout.Completed {
		t.Errorf("matched: %+v, %v", p, err)
	}
	if decisions, err := s.db.Decisions(t.Context(), string(s.id), 10); err != nil || len(decisions) != 1 {
		t.Errorf("on record is %+v, %v", decisions, err)
	}
	if s.gateway.sent != 1 {
		t.Errorf("it was sent %d times", s.gateway.sent)
	}
	s.wantAvailable(afterReserve)
	s.wantViolated()
}

// TestMatchTransfer_WaitingCancelledMeanwhile has the seller cancel the payout while the gateway tells of the transfer.
func TestMatchTransfer_WaitingCancelledMeanwhile(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.later(windowOver)
	sent := s.wantState(payout.Submitted)
	s.putBack(t, saved)
	s.now = s.now.Add(lease + gracePeriod)
	s.gateway.misplaced = true
	s.gateway.whenFetched = func() {
		if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, sent.GatewayID); !errors.Is(err, payout.ErrMovedOn) {
		t.Errorf("it was cancelled meanwhile, and matched: %v", err)
	}
	s.wantState(payout.Cancelled)
	s.wantDecisions(string(s.id))
}

// TestTamperedKey_ShowsNothing points a seller's idempotency key at another seller's payout.
func TestTamperedKey_ShowsNothing(t *testing.T) {
	s := newStory(t)
	others := s.request("usr_b", 60_000)
	seller := payout.Caller{User: "usr_a"}
	for name, again := range map[string]func() (payout.Payout, bool, error){
		"a request": func() (payout.Payout, bool, error) {
			return s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 70_000, Key: "a request"})
		},
		"a cancellation": func() (payout.Payout, bool, error) {
			return s.payouts.Cancel(t.Context(), seller, s.id, "a cancellation")
		},
	} {
		if _, _, err := again(); err != nil {
			t.Fatal(err)
		}
		s.place.ByHand(t, `UPDATE idempotency_keys SET payout_id = '`+string(others.ID)+`' WHERE key = '`+name+`'`)
		if p, replayed, err := again(); !errors.Is(err, ledger.ErrTampered) || replayed || p != (payout.Payout{}) {
			t.Errorf("%s is answered with %+v, replayed %t, %v", name, p, replayed, err)
		}
		if p, found, err := s.payouts.Requested(t.Context(), "usr_a", name); found || err != nil {
			t.Errorf("under the key of %s there is %+v, %v", name, p, err)
		}
		s.place.ByHand(t, `UPDATE idempotency_keys SET payout_id = 'pyt_nowhere' WHERE key = '`+name+`'`)
		if _, _, err := again(); !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("%s is answered with %v, and its key stands for a payout that is nowhere", name, err)
		}
		for _, refusal := range []string{"no", "{}", `{"code":"insufficient_balance"}`, `{"message":"No."}`} {
			s.place.ByHand(t, `UPDATE idempotency_keys SET refusal = '`+refusal+`' WHERE key = '`+name+`'`)
			if _, _, err := again(); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("%s is answered with %v, and its refusal is %s", name, err, refusal)
			}
		}
	}
	s.place.ByHand(t, `INSERT INTO idempotency_keys (user_id, key, fingerprint, payout_id, created_at)
		VALUES ('usr_a', 'forged', '`+payout.FingerprintCancel+string(others.ID)+`', '`+string(others.ID)+`', 1)`)
	if p, _, err := s.payouts.Cancel(t.Context(), seller, others.ID, "forged"); !errors.Is(err, ledger.ErrTampered) || p != (payout.Payout{}) {
		t.Errorf("the cancellation of another seller's payout is answered with %+v, %v", p, err)
	}
}

// TestReconcileStartup_TamperedAccount loses a payout whose bank account was changed. The start goes on.
func TestReconcileStartup_TamperedAccount(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.gateway.tampered = true
	s.place.ByHand(t, `DELETE FROM payouts`)
	s.payouts = s.newPayouts(t)
	if err := s.payouts.ReconcileStartup(t.Context()); err != nil || !s.payouts.StartupReconciled() {
		t.Errorf("caught up: %v", err)
	}
	if unmatched, err := s.db.OpenUnmatchedTransfers(t.Context(), 10); err != nil || len(unmatched) != 1 {
		t.Errorf("unmatched are %+v, %v", unmatched, err)
	}
}
