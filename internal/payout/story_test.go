package payout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/storetest"
)

// story is a market in which one seller has asked for one payout of 1000.
type story struct {
	*testing.T
	*market
	id payout.ID
}

func newStory(t *testing.T) *story {
	t.Helper()
	return newStoryAtPlace(t, storetest.NewPlace(t))
}

func newStoryAtPlace(t *testing.T, place storetest.Place) *story {
	t.Helper()
	m := newMarketAt(t, t, place)
	t.Cleanup(m.close)
	p, _, err := m.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 100_000, Notes: "rent"})
	if err != nil {
		t.Fatal(err)
	}
	return &story{T: t, market: m, id: p.ID}
}

// later lets time pass and takes what is due then.
func (s *story) later(d time.Duration) {
	s.Helper()
	s.now = s.now.Add(d)
	ids, err := s.payouts.LeaseDue(s.Context(), 10)
	if err != nil {
		s.Fatal(err)
	}
	for _, id := range ids {
		s.tryStep(id)
	}
}

// wantLogged checks that a message of the level was logged so many times, each of which has all parts.
func (s *story) wantLogged(times int, level slog.Level, message string, parts ...string) {
	s.Helper()
	got := 0
	for line := range strings.Lines(s.log.String()) {
		if !strings.Contains(line, "msg="+strconv.Quote(message)) {
			continue
		}
		got++
		for _, part := range append(parts, "level="+level.String()) {
			if !strings.Contains(line, part) {
				s.Errorf("%q is not in: %s", part, line)
			}
		}
	}
	if got != times {
		s.Errorf("%q was logged %d times, want %d, in:\n%s", message, got, times, s.log.String())
	}
}

func (s *story) notification(event string) {
	s.Helper()
	if err := s.payouts.Notify(s.Context(), paper, event, s.id); err != nil {
		s.Fatal(err)
	}
}

func (s *story) payout() payout.Payout {
	s.Helper()
	p, err := s.db.Payout(s.Context(), s.id)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s *story) wantState(want payout.State) payout.Payout {
	s.Helper()
	p := s.payout()
	if p.State != want {
		s.Fatalf("the payout is %s, want %s", p.State, want)
	}
	return p
}

// wantAvailable checks the seller's balance, whose opening was 20,000.
func (s *story) wantAvailable(want int64) {
	s.Helper()
	b, err := s.db.Balance(s.Context(), "usr_a")
	if err != nil || int64(b.Available) != want {
		s.Errorf("available %d, error %v; want %d", b.Available, err, want)
	}
}

// wantViolated runs the audit and wants just the named invariants broken.
func (s *story) wantViolated(want ...string) {
	s.Helper()
	report, err := s.db.Audit(s.Context(), s.keys)
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			got = append(got, f.Name)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		s.Errorf("the audit finds %v broken, want %v", got, want)
	}
}

const (
	window       = time.Minute
	windowOver   = 2 * time.Minute
	opening      = 2_000_000
	afterReserve = opening - 100_000
)

func TestCancel_QueuedAtGateway_CancelledOnce(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	s.later(windowOver)
	s.wantState(payout.Submitted)

	s.gateway.mood = silent
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err == nil {
		t.Fatal("cancelled without the gateway's word")
	}
	s.wantState(payout.Submitted)
	s.wantAvailable(afterReserve)

	s.gateway.mood = fair
	var cancelled atomic.Int64
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
			switch {
			case err == nil:
				cancelled.Add(1)
			case !errors.Is(err, payout.ErrNotCancellable):
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if cancelled.Load() != 1 {
		t.Errorf("%d callers were told that they cancelled it, want 1", cancelled.Load())
	}
	s.wantState(payout.Cancelled)
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestRefusal_FinalOnlyIfThereIsNoTransfer has a gateway that takes the order and says no.
func TestRefusal_FinalOnlyIfThereIsNoTransfer(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = refusing
	s.gateway.transfers[string(s.id)] = &transfer{id: "pout_9", amount: s.payout().Net(), progress: gateway.InProgress}
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.wantAvailable(afterReserve)
	s.wantViolated()
}

func TestRefusal_NotFinalWithoutLookup(t *testing.T) {
	s := newStory(t)
	s.gateway.mood, s.gateway.deaf = refusing, true
	s.now = s.now.Add(windowOver)
	if err := s.payouts.Step(t.Context(), s.id); err == nil {
		t.Error("the step succeeded")
	}
	s.wantState(payout.Unknown)
	s.wantAvailable(afterReserve)
}

func TestRefusal_OfAResendIsNotFinal(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostAnswers
	s.later(windowOver)
	s.wantState(payout.Unknown)

	s.gateway.mood, s.gateway.forgetful = refusing, true
	for range 5 {
		s.later(time.Hour)
	}
	if s.gateway.sent < 3 {
		t.Errorf("the order was sent %d times, want it sent again while the gateway does not know it", s.gateway.sent)
	}
	s.wantState(payout.Unknown)
	s.wantAvailable(afterReserve)

	s.gateway.mood, s.gateway.forgetful = fair, false
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(10 * time.Hour)
	s.wantState(payout.Completed)
	s.wantViolated()
}

func TestResend_KeyExpired_GoesToReview(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.later(time.Minute)
	s.wantState(payout.Unknown)
	sent := s.gateway.sent
	s.later(7 * 24 * time.Hour)
	s.later(7 * 24 * time.Hour)
	p := s.wantState(payout.ManualReview)
	if s.gateway.sent != sent {
		t.Error("an order was sent after its key had run out: it could be paid twice")
	}
	if p.DueAt.IsZero() || p.Reason == "" {
		t.Errorf("nobody polls the payout in review again (due %s), or the seller is not told (%q)", p.DueAt, p.Reason)
	}
	s.wantAvailable(afterReserve)
	s.wantViolated()
}

// While one worker is stuck before its claim, another one sends the order.
func TestStep_LeaseExpired_SendsNothing(t *testing.T) {
	s := newStory(t)
	s.now = s.now.Add(windowOver)
	s.gateway.whenAsked = func() {
		s.gateway.whenAsked = nil
		s.tryStep(s.id) // the other worker claims it and has sent it
		s.gateway.mood = silent
	}
	s.gateway.mood = diesAfter
	s.tryStep(s.id)
	s.wantState(payout.Submitting)
	if s.gateway.sent != 1 {
		t.Errorf("the order was sent %d times, want once", s.gateway.sent)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
		t.Errorf("cancel of an order under way: %v", err)
	}
}

func TestApplyReport_DiscrepancyIsRecordedAndMovesNoMoney(t *testing.T) {
	t.Run("paid after it was refused", func(t *testing.T) {
		s := newStory(t)
		s.gateway.mood = refusing
		s.later(windowOver)
		s.wantState(payout.Failed)
		s.gateway.mood = fair
		s.gateway.transfers[string(s.id)] = &transfer{id: "pout_9", amount: s.payout().Net(), progress: gateway.Paid, paid: 1}
		s.notification("event-1")
		s.later(time.Second)
		if p := s.wantState(payout.Failed); p.Discrepancy == "" {
			t.Error("the gateway paid a payout that failed, and nothing was written down")
		}
		s.wantAvailable(opening)
		s.wantViolated("gateway-agrees")
	})
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = lostAnswers
			s.later(windowOver)
			lie.alter(s.gateway.transfers[string(s.id)])
			s.gateway.mood = fair
			s.later(time.Minute)
			if p := s.wantState(payout.Unknown); !strings.Contains(p.Discrepancy, lie.says) || p.DueAt.IsZero() {
				t.Errorf("discrepancy %q, next look %s; want both", p.Discrepancy, p.DueAt)
			}
			for range 8 {
				s.later(20 * time.Minute)
			}
			if wait := s.payout().DueAt.Sub(s.now); wait < 2*time.Minute {
				t.Errorf("after nine looks it is looked at again in %s, want minutes", wait)
			}
			s.wantAvailable(afterReserve)
			s.wantViolated("gateway-agrees")
		})
	}
}

// lies are what a transfer may be said to be that is not the one that was ordered, and what is written down then.
var lies = map[string]struct {
	alter func(*transfer)
	says  string
}{
	"another amount":   {func(tr *transfer) { tr.amount++ }, "ordered were 990.00"},
	"the gross amount": {func(tr *transfer) { tr.amount = 100_000 }, "ordered were 990.00"},
	"another account":  {func(tr *transfer) { tr.order.Beneficiary = "fa_usr_b" }, "a transfer to fa_usr_b, and the payout's bank account is fa_usr_a"},
	"another currency": {func(tr *transfer) { tr.order.Currency = "USD" }, "in USD, ordered was one in INR"},
}

// TestReport_OfAnotherTransferIsNotApplied has the gateway tell of another transfer than was ordered at each point of
// a payout's life, whether as a success or a failure.
func TestReport_OfAnotherTransferIsNotApplied(t *testing.T) {
	for name, lie := range lies {
		for moment, tt := range map[string]struct {
			tell func(*story)
			want payout.State
		}{
			"in the answer to the order": {func(s *story) {
				s.gateway.whenTaken = lie.alter
				s.now = s.now.Add(windowOver)
				if err := s.payouts.Step(t.Context(), s.id); err != nil {
					t.Errorf("before it is asked once more, the step ends with %v", err)
				}
				s.wantState(payout.Unknown) // it is asked once more
				s.later(time.Second)
			}, payout.Unknown},
			"when it is paid": {func(s *story) {
				s.later(windowOver)
				s.gateway.transfers[string(s.id)].advance(1)
				lie.alter(s.gateway.transfers[string(s.id)])
				s.later(time.Hour)
			}, payout.Submitted},
			"when it has failed": {func(s *story) {
				s.later(windowOver)
				s.gateway.transfers[string(s.id)].advance(2)
				lie.alter(s.gateway.transfers[string(s.id)])
				s.later(time.Hour)
			}, payout.Submitted},
			"when it comes back": {func(s *story) {
				s.later(windowOver)
				s.gateway.transfers[string(s.id)].advance(1)
				s.later(time.Hour)
				s.gateway.transfers[string(s.id)].advance(3)
				lie.alter(s.gateway.transfers[string(s.id)])
				s.pollReversals(1) // a list that lies is a hint all the same
				s.later(time.Second)
			}, payout.Completed},
			"when an admin asks": {func(s *story) {
				s.later(windowOver)
				s.gateway.transfers[string(s.id)].advance(1)
				lie.alter(s.gateway.transfers[string(s.id)])
				if _, err := s.payouts.AskGateway(s.Context(), ada, s.id); err != nil {
					s.Error(err)
				}
			}, payout.Submitted},
		} {
			t.Run(name+" "+moment, func(t *testing.T) {
				s := newStory(t)
				tt.tell(s)
				if p := s.wantState(tt.want); !strings.Contains(p.Discrepancy, lie.says) {
					t.Errorf("discrepancy %q", p.Discrepancy)
				}
				s.wantAvailable(afterReserve)
				s.wantViolated("gateway-agrees")
			})
		}
	}
}

// TestReport_UnderAnotherName has the gateway answer with a transfer of another id, or with one of another payout.
func TestReport_UnderAnotherName(t *testing.T) {
	for name, rename := range map[string]func(*story, *transfer){
		"another id": func(_ *story, tr *transfer) { tr.id = "pout_other" },
		"another reference": func(s *story, tr *transfer) {
			delete(s.gateway.transfers, string(s.id))
			s.gateway.transfers["pyt_other"] = tr
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubmittedStory(t)
			tr := s.gateway.transfers[string(s.id)]
			tr.advance(1)
			rename(s, tr)
			s.gateway.mistakes = true
			s.later(time.Hour)
			if p := s.wantState(payout.Submitted); !strings.Contains(p.Discrepancy, "answered with "+tr.id) || p.GatewayID == "pout_other" {
				t.Errorf("its transfer is %s, and its discrepancy %q", p.GatewayID, p.Discrepancy)
			}
			s.wantAvailable(afterReserve)
			s.wantViolated("gateway-agrees")
		})
	}
}

// The gateway names neither account nor currency, or the ledger lacks the bank account's beneficiary.
func TestApplyReport_MissingFields_NoDiscrepancy(t *testing.T) {
	for name, tt := range map[string]struct {
		leaveOut func(*story, *transfer)
		violated []string
	}{
		"the gateway says neither": {func(_ *story, tr *transfer) { tr.order.Beneficiary, tr.order.Currency = "", "" }, nil},
		"the ledger does not know the account's name": {func(s *story, _ *transfer) {
			s.place.ByHand(s, `UPDATE bank_accounts SET beneficiary = ''`)
		}, []string{"bank-accounts-match-journal"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubmittedStory(t)
			tr := s.gateway.transfers[string(s.id)]
			tt.leaveOut(s, tr)
			tr.advance(1)
			s.later(time.Hour)
			if p := s.wantState(payout.Completed); p.Discrepancy != "" {
				t.Errorf("the discrepancy is %q", p.Discrepancy)
			}
			s.wantAvailable(afterReserve)
			s.wantViolated(tt.violated...)
		})
	}
}

// TestApplyReport_AnswerFromBeforeTheEndIsNoDiscrepancy has an answer overtaken by a later one: the gateway said that it
// had paid, and that the money came back is known first.
func TestApplyReport_AnswerFromBeforeTheEndIsNoDiscrepancy(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	tr := s.gateway.transfers[string(s.id)]
	tr.advance(1)
	s.gateway.whenFetched = func() {
		tr.advance(3)
		s.tryStep(s.id)
		s.wantState(payout.Failed)
	}
	s.tryStep(s.id)
	s.wantAvailable(opening)
	s.wantViolated()
	for range 30 { // it is asked for some days more, and reports the same
		s.later(7 * time.Hour)
	}
	if p := s.wantState(payout.Failed); p.Discrepancy != "" || !p.DueAt.IsZero() {
		t.Errorf("discrepancy %q, next look %s; want none", p.Discrepancy, p.DueAt)
	}
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestApplyReport_PaidFromBeforeTheReturnIsNoDiscrepancy has the gateway's word that it had paid arrive after the money came back.
func TestApplyReport_PaidFromBeforeTheReturnIsNoDiscrepancy(t *testing.T) {
	s := newSubmittedStory(t)
	tr := s.gateway.transfers[string(s.id)]
	tr.advance(1)
	s.later(time.Hour)
	s.wantState(payout.Completed)
	s.gateway.whenFetched = func() {
		tr.advance(3)
		s.tryStep(s.id)
		s.wantState(payout.Returned)
	}
	if err := s.payouts.Step(t.Context(), s.id); err != nil {
		t.Error(err)
	}
	tr.progress = gateway.Paid // and it says so once more
	if _, err := s.payouts.AskGateway(t.Context(), ada, s.id); err != nil {
		t.Error(err)
	}
	if p := s.wantState(payout.Returned); p.Discrepancy != "" {
		t.Errorf("the discrepancy is %q", p.Discrepancy)
	}
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestApplyReport_PaidBeforeItFailed has a transfer paid and reversed between two looks, so that the payout fails, and the gateway's word that it
// had paid arrive after that, more than once. The same word long after is a discrepancy.
func TestApplyReport_PaidBeforeItFailed(t *testing.T) {
	s := newSubmittedStory(t)
	tr := s.gateway.transfers[string(s.id)]
	tr.progress = gateway.Reversed
	s.tryStep(s.id)
	s.wantState(payout.Failed)
	ended := s.now
	tr.progress = gateway.Paid
	for n := 1; s.now.Before(ended.Add(2 * time.Minute)); n++ {
		s.notification(fmt.Sprintf("evt_%d", n))
		s.later(time.Second)
		if p := s.wantState(payout.Failed); p.Discrepancy != "" || p.Progress != gateway.Reversed || p.DueAt.IsZero() {
			t.Fatalf("%s after its end: the discrepancy is %q, the progress %s, and the next look at %s", s.now.Sub(ended), p.Discrepancy, p.Progress, p.DueAt)
		}
		s.later(20 * time.Second)
	}
	if made := s.decisions("usr_a"); len(made) != 0 {
		t.Errorf("the seller was frozen: %+v", made)
	}
	s.wantAvailable(opening)
	s.wantViolated()
	s.later(40 * time.Hour)
	if p := s.wantState(payout.Failed); p.Discrepancy == "" {
		t.Error("it is said to be paid a day after its money came back, which is no discrepancy")
	}
	s.wantOnHold("usr_a")
}

// TestApplyReport_UnrecognisedStatus takes a status that the adapter does not know for no more than that the gateway has the transfer.
func TestApplyReport_UnrecognisedStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		tell func(*story)
		want payout.State
	}{
		"in the answer to the order": {func(s *story) {
			s.gateway.whenTaken = func(tr *transfer) { tr.progress = gateway.Unrecognised }
			s.later(windowOver)
		}, payout.Submitted},
		"when it is looked up": {func(s *story) {
			s.gateway.mood = lostAnswers
			s.later(windowOver)
			s.wantState(payout.Unknown)
			s.gateway.transfers[string(s.id)].progress = gateway.Unrecognised
			s.later(time.Minute)
		}, payout.Submitted},
		"after it was paid": {func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Hour)
			s.gateway.transfers[string(s.id)].progress = gateway.Unrecognised
			s.later(time.Hour)
		}, payout.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tt.tell(s)
			if p := s.wantState(tt.want); p.Discrepancy != "" || p.DueAt.IsZero() {
				t.Errorf("discrepancy %q, next look %s", p.Discrepancy, p.DueAt)
			}
			s.wantLogged(1, slog.LevelWarn, "gateway reported unknown status", "payout_id="+string(s.id), "status=unrecognised")
			s.wantAvailable(afterReserve)
			s.wantViolated()
		})
	}
}

// TestPoll_NotifiedMeanwhile_DueAtOnce has the gateway tell of a change while its answer is on the way, which may lack it.
func TestPoll_NotifiedMeanwhile_DueAtOnce(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.whenFetched = func() { s.notification("evt_1") }
	s.tryStep(s.id)
	if p := s.wantState(payout.Submitted); !p.DueAt.Equal(s.now) {
		t.Errorf("it is polled next at %s, want at once, %s", p.DueAt, s.now)
	}
}

func TestFinalCheck_ReturnAfterCompletion_RestoresBalance(t *testing.T) {
	for _, word := range []gateway.Progress{gateway.Reversed, gateway.Failed} {
		t.Run(string(word), func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			tr := s.gateway.transfers[string(s.id)]
			tr.advance(1)
			s.later(time.Hour)
			s.wantState(payout.Completed)
			s.wantAvailable(afterReserve)
			tr.progress, tr.paid = word, 0
			s.later(7 * time.Hour) // nobody told us: the look-again finds it
			p := s.wantState(payout.Returned)
			if p.Status() != payout.StatusFailed || p.DueAt.IsZero() || p.CompletedAt.IsZero() || p.ReasonCode != bankRejected || p.Reason == "" {
				t.Errorf("status %s, due %s, completed %s, reason %q: %q", p.Status(), p.DueAt, p.CompletedAt, p.ReasonCode, p.Reason)
			}
			s.wantAvailable(opening)
			s.wantViolated()
		})
	}
}

func TestFinalCheck_Completed_EndsAfterReturnPeriod(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].advance(1)
	for range 40 {
		s.later(7 * time.Hour)
	}
	if p := s.wantState(payout.Completed); !p.DueAt.IsZero() {
		t.Errorf("still looked at, at %s", p.DueAt)
	}
	s.wantViolated()
}

func TestSubmit_NotTaken_WaitsAndCancellable(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	p := s.wantState(payout.Waiting)
	s.wantLogged(1, slog.LevelWarn, "gateway rejected request before processing", "payout_id="+string(s.id), "reason=throttled", "detail=")
	if p.OrderBody != "" || p.SentAt.IsZero() || !p.DueAt.After(s.now) {
		t.Errorf("body %q, sent %s, due %s at %s", p.OrderBody, p.SentAt, p.DueAt, s.now)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Fatal(err)
	}
	s.wantAvailable(opening)
	s.later(24 * time.Hour)
	if s.gateway.sent != 1 {
		t.Errorf("the order was sent %d times, want once", s.gateway.sent)
	}
}

// The gateway answers that it is busy and takes the order all the same.
func TestSubmit_NotTakenButPaid_KeepsReservation(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(*story)
		want payout.State
	}{
		"it is cancelled": {func(s *story) {
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
				t.Errorf("cancelled: %v", err)
			}
		}, payout.Completed},
		"it is cancelled, and nobody answers": {func(s *story) {
			s.gateway.mood = silent
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
				t.Errorf("cancelled: %v", err)
			}
		}, payout.Waiting},
		"a webhook comes":                {func(s *story) { s.notification("paid"); s.later(0) }, payout.Completed},
		"the bank account is shunned":    {func(s *story) { s.gateway.mood = shunning; s.later(time.Hour) }, payout.Completed},
		"it is sent again after a while": {func(s *story) { s.later(time.Hour) }, payout.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = closed
			s.later(windowOver)
			s.wantState(payout.Waiting)
			s.gateway.mood = fair
			s.put(s.made(gateway.Paid))
			s.gateway.transfers[string(s.id)].body = "as it was"
			tt.then(s)
			s.wantState(tt.want)
			s.wantAvailable(afterReserve)
			s.wantViolated()
		})
	}
}

// While the cancellation asks the gateway, a worker sends the payout again and is turned away.
func TestCancel_ResentMeanwhile_Unclear(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	s.gateway.whenFound = func() {
		s.gateway.whenFound = nil
		s.later(time.Hour)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
		t.Errorf("it was sent again meanwhile, and cancelled: %v", err)
	}
	s.wantState(payout.Waiting)
}

// late reads a payout as it was a moment ago.
type late struct {
	payout.Store
	seen payout.Payout
}

func (l late) Payout(context.Context, payout.ID) (payout.Payout, error) { return l.seen, nil }

// The cancellation reads the payout as submitting; by then it waits again, because the gateway turned it away.
func TestCancel_ReadAsSubmitting_Unclear(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	seen := s.wantState(payout.Waiting)
	seen.State = payout.Submitting
	if _, _, err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
		t.Errorf("it was turned away meanwhile, and cancelled: %v", err)
	}
	s.wantState(payout.Waiting)
	s.wantAvailable(afterReserve)
}

// overrun has the payout sent and turned away, though it was taken, while a slow worker is about to send it, who then
// meets the gateway in that mood.
func (s *story) overrun(then mood) {
	s.Helper()
	s.gateway.whenAsked = func() {
		s.gateway.whenAsked = nil
		s.gateway.mood = closed
		s.later(time.Hour)
		s.put(s.made(gateway.Paid))
		s.gateway.transfers[string(s.id)].body = "as it was"
		s.gateway.mood = then
	}
	s.later(windowOver)
}

// While a slow worker is about to send the payout, another one sends it and is turned away, though the gateway took it.
// Then the slow worker can't reach the gateway.
func TestStep_LeaseExpired_KeepsSentAt(t *testing.T) {
	s := newStory(t)
	s.overrun(unreachable)
	if p := s.wantState(payout.Waiting); p.SentAt.IsZero() || s.gateway.sent != 1 {
		t.Errorf("it was sent %d times, the last time at %s", s.gateway.sent, p.SentAt)
	}
	s.gateway.mood = fair
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
		t.Errorf("cancelled: %v", err)
	}
	s.wantState(payout.Completed)
	s.wantAvailable(afterReserve)
}

// While a slow worker learns that the bank account can't be paid, another one sends the payout and is turned away,
// though the gateway took it.
func TestStep_LeaseExpired_AccountRefusalIgnored(t *testing.T) {
	s := newStory(t)
	s.overrun(shunning)
	s.wantState(payout.Waiting)
	s.wantAvailable(afterReserve)
	s.later(time.Hour)
	s.wantState(payout.Completed)
	s.wantAvailable(afterReserve)
}

func TestSubmit_AccountShunned_SaysWhy(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = shunning
	s.later(windowOver)
	if p := s.wantState(payout.Failed); p.ReasonCode != "bank_account_refused" || p.Reason != "No such account." {
		t.Errorf("its reason is %q: %q", p.ReasonCode, p.Reason)
	}
	s.wantAvailable(opening)
	s.wantViolated()
}

// The gateway can't be reached, so the payout was never sent, and its cancellation need not ask the gateway.
func TestCancel_NeverSent_NeedsNoGateway(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = unreachable
	s.later(windowOver)
	if p := s.wantState(payout.Waiting); !p.SentAt.IsZero() || p.Tries != 1 || !p.DueAt.After(s.now) {
		t.Errorf("sent %s, tries %d, due %s", p.SentAt, p.Tries, p.DueAt)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Error(err)
	}
	s.wantAvailable(opening)
}

// After the payout failed, the gateway changes it to paid and sends no notification.
func TestFinalCheck_FailedThenPaid_RecordsDiscrepancy(t *testing.T) {
	for name, end := range map[string]func(*story){
		"it failed":      func(s *story) { s.later(windowOver); s.gateway.transfers[string(s.id)].advance(2); s.later(time.Hour) },
		"it was refused": func(s *story) { s.gateway.mood = refusing; s.later(windowOver); s.gateway.mood = fair },
		"the gateway cancelled it": func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].progress = gateway.Cancelled
			s.later(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			end(s)
			if p := s.payout(); p.Status() == payout.StatusProcessing || p.DueAt.IsZero() {
				t.Fatalf("it is %s, and looked at again %s", p.State, p.DueAt)
			}
			if tr := s.gateway.transfers[string(s.id)]; tr != nil {
				tr.progress = gateway.Paid
			} else {
				s.put(s.made(gateway.Paid))
			}
			s.later(30 * time.Hour)
			if p := s.payout(); p.Discrepancy == "" || !p.DueAt.IsZero() {
				t.Errorf("discrepancy %q, next look %s; want a person to look", p.Discrepancy, p.DueAt)
			}
			s.wantAvailable(opening)
			s.wantViolated("gateway-agrees")
		})
	}
}

// The gateway said that the transfer had failed, and works on it again.
func TestFinalCheck_FailedThenUnderWay_RecordsDiscrepancy(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	tr := s.gateway.transfers[string(s.id)]
	tr.progress = gateway.Failed
	s.later(time.Minute)
	s.wantState(payout.Failed)
	tr.progress = gateway.InProgress
	s.later(time.Minute)
	if p := s.wantState(payout.Failed); p.Discrepancy != "" {
		t.Errorf("told at once, of what may be a late report: %s", p.Discrepancy)
	}
	s.later(time.Hour)
	if p := s.wantState(payout.Failed); !strings.Contains(p.Discrepancy, "again") || p.DueAt.IsZero() {
		t.Errorf("discrepancy %q, next look %s", p.Discrepancy, p.DueAt)
	}
	tr.progress = gateway.Paid
	s.later(30 * time.Hour)
	if p := s.wantState(payout.Failed); strings.Contains(p.Discrepancy, "again") || p.Discrepancy == "" {
		t.Errorf("it was paid, and the discrepancy is %q", p.Discrepancy)
	}
	s.wantAvailable(opening)
}

// The gateway gave another id for the transfer than it knows it by.
func TestPoll_OtherID_FoundByReference(t *testing.T) {
	s := newSubmittedStory(t)
	tr := s.gateway.transfers[string(s.id)]
	tr.id, tr.progress = "pout_known", gateway.Paid
	for range 12 {
		s.later(20 * time.Minute)
	}
	if p := s.wantState(payout.Completed); p.GatewayID != "pout_known" || !strings.Contains(p.Discrepancy, "knows it as pout_known") {
		t.Errorf("it is known as %s, with the discrepancy %q", p.GatewayID, p.Discrepancy)
	}
}

// The gateway gives another worker another id, and that worker's process dies once it has stored the id. The first worker, whose answer is older, leaves it alone.
func TestPoll_OtherID_StoredByAnotherWorker_Stays(t *testing.T) {
	s := newSubmittedStory(t)
	s.gateway.forgetful = true
	for range 11 {
		s.later(20 * time.Minute)
	}
	tr := s.gateway.transfers[string(s.id)]
	s.gateway.forgetful, tr.id, tr.progress = false, "pout_older", gateway.Paid
	changes := 1
	other := s.newPayoutsOn(t, dying{s.db.Payouts(), &changes})
	s.gateway.whenFound = func() {
		s.gateway.whenFound = nil
		tr.id = "pout_newer"
		if err := other.Step(t.Context(), s.id); !errors.Is(err, errDied) {
			t.Errorf("the other worker's step ended with %v", err)
		}
	}
	s.later(20 * time.Minute)
	p := s.wantState(payout.Submitted)
	if p.GatewayID != "pout_newer" {
		t.Errorf("it is known as %s", p.GatewayID)
	}
	s.later(p.DueAt.Sub(s.now))
	s.wantState(payout.Completed)
}

// The transfer under the payout's reference is of another amount than was ordered, or is not paid: the first may have been.
func TestPoll_OtherTransfer_RecordsDiscrepancy(t *testing.T) {
	for name, change := range map[string]func(*transfer){
		"another amount": func(tr *transfer) { tr.progress, tr.amount = gateway.Paid, tr.amount+1 },
		"under way":      func(tr *transfer) { tr.progress = gateway.InProgress },
		"failed":         func(tr *transfer) { tr.progress = gateway.Failed },
		"cancelled":      func(tr *transfer) { tr.progress = gateway.Cancelled },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubmittedStory(t)
			tr := s.gateway.transfers[string(s.id)]
			first := tr.id
			tr.id = "pout_known"
			change(tr)
			for range 12 {
				s.later(20 * time.Minute)
			}
			if p := s.wantState(payout.Submitted); p.GatewayID != first || p.Discrepancy == "" {
				t.Errorf("it is known as %s, with the discrepancy %q", p.GatewayID, p.Discrepancy)
			}
			s.wantAvailable(afterReserve)
		})
	}
}

// The gateway does not know a transfer any more that it had accepted.
func TestPoll_TransferForgotten_RecordsDiscrepancy(t *testing.T) {
	s := newSubmittedStory(t)
	s.gateway.forgetful = true
	s.later(time.Minute)
	if p := s.wantState(payout.Submitted); p.Discrepancy != "" {
		t.Errorf("told after one look: %s", p.Discrepancy)
	}
	for range 12 {
		s.later(20 * time.Minute)
	}
	if p := s.wantState(payout.Submitted); !strings.Contains(p.Discrepancy, p.GatewayID) || p.DueAt.IsZero() {
		t.Errorf("discrepancy %q, next look %s", p.Discrepancy, p.DueAt)
	}
	s.wantAvailable(afterReserve)
	s.wantViolated("gateway-agrees")
}

// The gateway does not know a transfer any more that it had paid. It is asked until the bank can't return the money any more.
func TestPoll_PaidTransferForgotten_EndsAfterReturnPeriod(t *testing.T) {
	s := newSubmittedStory(t)
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Hour)
	s.wantState(payout.Completed)
	s.gateway.forgetful = true
	for range 40 {
		s.later(5 * time.Hour)
	}
	if p := s.wantState(payout.Completed); p.Discrepancy == "" || !p.DueAt.IsZero() {
		t.Errorf("discrepancy %q, next look %s; want it written down, and no other look", p.Discrepancy, p.DueAt)
	}
	s.wantAvailable(afterReserve)
	s.wantViolated("gateway-agrees")
}

// The gateway forgets a transfer that it had paid only before the last check of it. Nobody looks again, so it is written down at once.
func TestPoll_PaidTransferForgottenLast_RecordsDiscrepancy(t *testing.T) {
	checked := func(forgottenAt time.Time, discrepancies int) (payout.Payout, time.Time) {
		s := newSubmittedStory(t)
		s.gateway.transfers[string(s.id)].advance(1)
		s.later(time.Hour)
		for last := s.wantState(payout.Completed).DueAt; ; {
			s.gateway.forgetful = !forgottenAt.IsZero() && !s.now.Before(forgottenAt)
			s.later(5 * time.Hour)
			p := s.wantState(payout.Completed)
			if p.DueAt.IsZero() {
				s.wantLogged(discrepancies, slog.LevelError, "payout discrepancy found", "payout_id="+string(s.id), s.payout().GatewayID)
				return p, last
			}
			last = s.now
		}
	}
	known, last := checked(time.Time{}, 0)
	forgotten, _ := checked(last, 1)
	if known.Discrepancy != "" || !strings.Contains(forgotten.Discrepancy, forgotten.GatewayID) {
		t.Errorf("discrepancy %q; and %q where it was forgotten before the last check", known.Discrepancy, forgotten.Discrepancy)
	}
}

// The gateway lists two transfers under our reference.
func TestPoll_TwoTransfers_RecordsDiscrepancy(t *testing.T) {
	s := newUnclearStory(t)
	s.gateway.twofold = true
	sent := s.gateway.sent
	s.later(time.Hour)
	if p := s.wantState(payout.Unknown); p.Discrepancy == "" || p.DueAt.IsZero() || s.gateway.sent != sent {
		t.Errorf("discrepancy %q, next look %s, sent %d times more", p.Discrepancy, p.DueAt, s.gateway.sent-sent)
	}
	s.wantAvailable(afterReserve)
}

// TestFinalCheck_TwoTransfers_RecordsDiscrepancy refunds a payout in review. The gateway has two transfers under its reference after all.
func TestFinalCheck_TwoTransfers_RecordsDiscrepancy(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.gateway.twofold = true
	s.later(time.Hour)
	if p := s.wantState(payout.Failed); !strings.Contains(p.Discrepancy, gateway.ErrManyTransfers.Error()) {
		t.Errorf("discrepancy %q", p.Discrepancy)
	}
	for range 12 {
		s.later(24 * time.Hour)
	}
	if p := s.payout(); !p.DueAt.IsZero() {
		t.Errorf("it is still asked about, next in %s", p.DueAt.Sub(s.now))
	}
}

// TestSubmit_TwoTransfers_IsNotSent has a payout wait that the gateway turned away, and then have two transfers at the gateway.
func TestSubmit_TwoTransfers_IsNotSent(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	s.gateway.mood, s.gateway.twofold = fair, true
	sent := s.gateway.sent
	s.later(time.Hour)
	if p := s.wantState(payout.Waiting); !strings.Contains(p.Discrepancy, gateway.ErrManyTransfers.Error()) || s.gateway.sent != sent {
		t.Errorf("discrepancy %q, sent %d times more", p.Discrepancy, s.gateway.sent-sent)
	}
	s.wantAvailable(afterReserve)
}

func TestSubmit_RepeatedlyNotTaken_WaitsLonger(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	for range 8 {
		s.later(10 * time.Minute)
	}
	if wait := s.wantState(payout.Waiting).DueAt.Sub(s.now); wait < 2*time.Minute {
		t.Errorf("after nine times it waits %s, want minutes", wait)
	}
}

// A gateway that turns an order away and finds no transfer by our reference is not sent it again before the time that it asked for.
func TestSubmit_NotTakenWithoutLookup_WaitsAsAsked(t *testing.T) {
	s := newStory(t)
	s.gateway.lacking = func(c *gateway.Capabilities) { c.Lookup = false }
	s.gateway.mood, s.gateway.retryAfter = closed, 10*time.Minute
	s.later(windowOver)
	if wait := s.wantState(payout.Unknown).DueAt.Sub(s.now); wait < s.gateway.retryAfter {
		t.Errorf("it is sent again in %s, and the gateway asked for %s", wait, s.gateway.retryAfter)
	}
}

// A payout that was turned away once has a try behind it. When the answer to its next sending is lost, it is looked up before it is sent again.
func TestSubmit_AnswerLostAfterNotTaken_LooksUpFirst(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	s.gateway.mood = lostRequests
	s.later(5 * time.Second)
	s.wantState(payout.Unknown)
	sent := s.gateway.sent
	s.later(5 * time.Second)
	if p := s.wantState(payout.Unknown); s.gateway.sent != sent || p.Tries != 1 {
		t.Errorf("after %d tries it was sent %d times more, want it looked up once", p.Tries, s.gateway.sent-sent)
	}
}

// The gateway turns an order away, and answers the next sending with another amount. The payout is looked up before it is sent again.
func TestSubmit_OtherAmountAfterNotTaken_LooksUpFirst(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	s.gateway.mood, s.gateway.whenTaken = fair, func(made *transfer) { made.amount++ }
	s.later(5 * time.Second)
	if p := s.wantState(payout.Unknown); p.Tries != 0 || p.DueAt.After(s.now) {
		t.Errorf("after %d tries, it is due at %s; want it due at once, at %s", p.Tries, p.DueAt, s.now)
	}
	s.gateway.forgetful = true
	sent := s.gateway.sent
	s.later(0)
	if s.wantState(payout.Unknown); s.gateway.sent != sent {
		t.Error("it was sent again before it was looked up")
	}
}

// A gateway that turns away an order that is sent again is left alone for as long as it asked.
func TestResend_NotTaken_WaitsAsAsked(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.later(5 * time.Second) // it is only looked up
	s.gateway.mood, s.gateway.retryAfter = closed, time.Hour
	sent := s.gateway.sent
	s.later(time.Minute)
	if wait := s.wantState(payout.Unknown).DueAt.Sub(s.now); s.gateway.sent != sent+1 || wait < s.gateway.retryAfter {
		t.Errorf("sent %d times more, the next in %s; want once, and the gateway asked for %s", s.gateway.sent-sent, wait, s.gateway.retryAfter)
	}
}

func TestRequest_KeyCoversWholeRequest(t *testing.T) {
	s := newStory(t)
	first := payout.Request{Seller: "usr_a", Amount: 60_000, Notes: "one", Key: "k"}
	if _, found, err := s.payouts.Requested(t.Context(), "usr_a", "k"); found || err != nil {
		t.Errorf("before the request there is one: %t, %v", found, err)
	}
	wantAnswered := func(user, key string, want bool) {
		t.Helper()
		if got, err := s.payouts.Answered(t.Context(), user, key); got != want || err != nil {
			t.Errorf("key %q of %s has an answer: %t, %v; want %t", key, user, got, err, want)
		}
	}
	wantAnswered("usr_a", "k", false)
	made, _, err := s.payouts.Request(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	wantAnswered("usr_a", "k", true)
	wantAnswered("usr_a", "", false)
	wantAnswered("usr_b", "k", false)
	made.Beneficiary = "fa_usr_a" // who asks needs no such thing
	if p, found, err := s.payouts.Requested(t.Context(), "usr_a", "k"); p != made || !found || err != nil {
		t.Errorf("the key stands for %+v, %t, %v; want %+v", p, found, err, made)
	}
	if _, found, err := s.payouts.Requested(t.Context(), "usr_b", "k"); found || err != nil {
		t.Errorf("another seller finds it: %t, %v", found, err)
	}
	for name, other := range map[string]payout.Request{
		"notes":  {Seller: "usr_a", Amount: 60_000, Notes: "two", Key: "k"},
		"amount": {Seller: "usr_a", Amount: 60_001, Notes: "one", Key: "k"},
	} {
		if _, _, err := s.payouts.Request(t.Context(), other); !errors.Is(err, payout.ErrKeyReused) {
			t.Errorf("other %s under the same key: %v", name, err)
		}
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "k"); !errors.Is(err, payout.ErrKeyReused) {
		t.Errorf("a cancellation under a request's key: %v", err)
	}
	if _, replayed, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 60_000, Key: "k"}); replayed || err != nil {
		t.Errorf("another seller's key: replayed %t, %v", replayed, err)
	}
	refused := payout.Request{Seller: "usr_a", Amount: 99_999_999, Key: "refused"}
	if _, _, err := s.payouts.Request(t.Context(), refused); !errors.Is(err, ledger.ErrInsufficient) {
		t.Fatal(err)
	}
	if _, found, err := s.payouts.Requested(t.Context(), "usr_a", "refused"); found || err != nil {
		t.Errorf("a refusal is a payout: %t, %v", found, err)
	}
	wantAnswered("usr_a", "refused", true)
}

// The bank takes four days and no notification arrives. Polls must find what happened soon, and be few, because the gateway
// limits their rate.
func TestPoll_SlowPayout_IntervalsGrow(t *testing.T) {
	for name, mood := range map[string]mood{"answered": fair, "unanswered": silent} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			sent := s.now
			s.gateway.mood = mood
			looks := 0
			for s.now.Sub(sent) < 96*time.Hour {
				wait := s.wantState(payout.Submitted).DueAt.Sub(s.now)
				longest := min(max(s.now.Sub(sent)/8, 15*time.Minute), 2*time.Hour)
				if wait > longest*6/5 { // waits are spread by a fifth
					t.Fatalf("%s after it was sent the next look is in %s", s.now.Sub(sent), wait)
				}
				s.later(wait)
				looks++
			}
			if looks > 80 {
				t.Errorf("the gateway was asked %d times", looks)
			}
		})
	}
}

// The clock is finer than the times that are stored.
func TestResend_FineClock_BacksOff(t *testing.T) {
	s := newStory(t)
	s.now = s.now.Add(789 * time.Nanosecond)
	s.gateway.mood, s.gateway.forgetful = lostAnswers, true
	s.later(windowOver)
	for range 3 {
		s.later(2 * time.Minute)
	}
	p := s.wantState(payout.Unknown)
	if s.gateway.sent != 3 {
		t.Fatalf("the order was sent %d times, want it sent again twice", s.gateway.sent)
	}
	if wait := p.DueAt.Sub(s.now); wait < 90*time.Second {
		t.Errorf("after %d tries the next is %s away, want about two minutes or more", p.Tries, wait)
	}
}

func TestCancel_AnswerDiffers_Unclear(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = queueing
			s.later(windowOver)
			s.wantState(payout.Submitted)

			s.gateway.mood = fair
			lie.alter(s.gateway.transfers[string(s.id)])
			_, replayed, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "key-1")
			if replayed || !errors.Is(err, payout.ErrCancelUnclear) {
				t.Errorf("the answer was %v, replayed %t", err, replayed)
			}
			if p := s.wantState(payout.Submitted); !strings.Contains(p.Discrepancy, lie.says) {
				t.Errorf("what the gateway said is not written down, but %q", p.Discrepancy)
			}
			s.wantAvailable(afterReserve)
		})
	}
}

// A payout that was refused and that the gateway does not know is looked up again, and that is no failure.
func TestStep_FinalCheckFindsNothing(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = refusing
	s.later(windowOver)
	p := s.wantState(payout.Failed)
	s.gateway.mood = fair
	s.now = p.DueAt
	ids, err := s.payouts.LeaseDue(t.Context(), 10)
	if err != nil || len(ids) != 1 {
		t.Fatalf("due are %v, %v", ids, err)
	}
	if err := s.payouts.Step(t.Context(), ids[0]); err != nil {
		t.Error(err)
	}
	if after := s.wantState(payout.Failed); after.Tries != p.Tries+1 {
		t.Errorf("after the look it is %+v", after)
	}
}

// TestRequest_Source keeps apart what a seller asked for from what a server of the marketplace did.
func TestRequest_Source(t *testing.T) {
	s := newStory(t)
	for actor, want := range map[string]payout.Source{"": "", "key:shop": payout.FromMarketplace} {
		p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 60_000, KeyActor: actor})
		if err != nil || p.Source != want || s.stored(t, p.ID).Source != want {
			t.Errorf("%q asked for %+v, %v; want the source %q", actor, p, err, want)
		}
	}
}
