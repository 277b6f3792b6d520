package payout_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/payout"
)

// newStoryAt is a story at a gateway that lacks something.
func newStoryAt(t *testing.T, lacking func(*gateway.Capabilities)) *story {
	t.Helper()
	s := newStory(t)
	s.gateway.lacking = lacking
	return s
}

func shortKeys(c *gateway.Capabilities) { c.KeyLifetime = 24 * time.Hour }

// TestResend_ShortKeyLifetime has a gateway that would pay the same order a second time after a day.
func TestResend_ShortKeyLifetime(t *testing.T) {
	for name, tt := range map[string]struct {
		lifetime, after time.Duration
		wantSent        bool
		want            payout.State
	}{
		"well within a day":   {24 * time.Hour, 15 * time.Hour, true, payout.Unknown},
		"close to a day":      {24 * time.Hour, 20 * time.Hour, false, payout.ManualReview},
		"after a day":         {24 * time.Hour, 30 * time.Hour, false, payout.ManualReview},
		"well within a week":  {7 * 24 * time.Hour, 5 * 24 * time.Hour, true, payout.Unknown},
		"close to a week":     {7 * 24 * time.Hour, 6*24*time.Hour + time.Hour, false, payout.ManualReview},
		"no keys at all":      {0, time.Minute, false, payout.ManualReview},
		"no keys, and longer": {0, time.Hour, false, payout.ManualReview},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoryAt(t, func(c *gateway.Capabilities) { c.KeyLifetime = tt.lifetime })
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.wantState(payout.Unknown)
			sent := s.gateway.sent
			s.later(5 * time.Second) // it is only looked up
			s.later(tt.after)
			if again := s.gateway.sent > sent; again != tt.wantSent {
				t.Errorf("sent again: %t, want %t", again, tt.wantSent)
			}
			s.wantState(tt.want)
			s.wantAvailable(afterReserve)
		})
	}
}

// TestResend_LeaseOutlivesKey has a worker that dies while it sends, and an outage that outlasts the key.
func TestResend_LeaseOutlivesKey(t *testing.T) {
	s := newStoryAt(t, shortKeys)
	s.gateway.mood = diesBefore
	s.later(windowOver)
	s.wantState(payout.Submitting)
	sent := s.gateway.sent
	s.gateway.mood = fair
	s.later(25 * time.Hour)
	s.wantState(payout.ManualReview)
	if s.gateway.sent != sent {
		t.Error("an order was sent after its key had run out")
	}
}

// unlisted is a gateway that lists nothing.
func unlisted(c *gateway.Capabilities) { c.List, c.Metadata = false, false }

// TestReconcileStartup_WithoutList starts beside a gateway whose lists never answer, because it has none.
func TestReconcileStartup_WithoutList(t *testing.T) {
	s := newStoryAt(t, unlisted)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.gateway.torn = 1 // whoever lists fails
	s.gateway.worn = 1
	s.gateway.transfers[string(s.id)].advance(1)
	s.now = s.now.Add(time.Second)
	s.payouts = s.newPayouts(t)
	if err := s.payouts.ReconcileStartup(t.Context()); err != nil || !s.payouts.StartupReconciled() {
		t.Fatalf("startup reconciled %t: %v", s.payouts.StartupReconciled(), err)
	}
	s.later(0) // it was made due by the start
	s.wantState(payout.Completed)
	if n, err := s.payouts.PollReversals(t.Context()); n != 0 || err != nil {
		t.Errorf("looked for returns: %d, %v", n, err)
	}
	s.wantLogged(1, slog.LevelInfo, "gateway has no listing", "gateway=paper", "payouts=")
}

// TestReconcileStartup_WithoutListLooksUpWhatWaits: a restored database may call waiting what was sent.
func TestReconcileStartup_WithoutListLooksUpWhatWaits(t *testing.T) {
	s := newStoryAt(t, unlisted)
	saved := s.save()
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.putBack(t, saved)
	s.reconcileStartup()
	s.wantState(payout.Waiting)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	if s.gateway.sent != 1 {
		t.Errorf("it was sent %d times", s.gateway.sent)
	}
}

// TestReturns_WithoutList polls each completed payout while the bank may return it.
func TestReturns_WithoutList(t *testing.T) {
	s := newStoryAt(t, unlisted)
	s.later(windowOver)
	made := s.gateway.transfers[string(s.id)]
	made.advance(1)
	for range 6 {
		s.later(2 * time.Hour)
	}
	s.wantState(payout.Completed)
	made.progress = gateway.Reversed
	for range 4 {
		s.later(2 * time.Hour)
	}
	s.wantState(payout.Returned)
	s.wantAvailable(opening)
}

func TestReconcileStartup_RestoreDeclared(t *testing.T) {
	s := newStoryAt(t, unlisted)
	s.restoredByHand = true
	s.payouts = s.newPayouts(t)
	if err := s.payouts.ReconcileStartup(t.Context()); !errors.Is(err, payout.ErrRestored) || s.payouts.StartupReconciled() {
		t.Errorf("startup reconciled %t: %v", s.payouts.StartupReconciled(), err)
	}
	s.later(windowOver)
	s.wantState(payout.Waiting)
	s.gateway.lacking = nil // one that lists tells what was lost
	if err := s.payouts.ReconcileStartup(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCancel_RestoreDeclared keeps the money of a payout that may have been sent after the backup, where nobody can ask.
func TestCancel_RestoreDeclared(t *testing.T) {
	s := newStoryAt(t, blind)
	s.now = s.now.Add(time.Second)
	s.restoredByHand = true
	s.payouts = s.newPayouts(t)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrCancelUnclear) {
		t.Errorf("cancelled: %v", err)
	}
	s.wantState(payout.Waiting)
	s.wantAvailable(afterReserve)
}

func blind(c *gateway.Capabilities) { c.Lookup, c.List, c.Metadata = false, false, false }

// TestSubmit_AccountNotMadeKnown fails the step, and tries again before its lease ends.
func TestSubmit_AccountNotMadeKnown(t *testing.T) {
	s := newStory(t)
	s.gateway.whenAsked = func() { s.gateway.mood = silent }
	s.now = s.now.Add(windowOver)
	if _, err := s.payouts.LeaseDue(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if err := s.payouts.Step(t.Context(), s.id); err == nil || !strings.Contains(err.Error(), "silence") {
		t.Errorf("the step ended with %v", err)
	}
	if p := s.wantState(payout.Waiting); p.Tries != 1 || !p.DueAt.After(s.now) || p.DueAt.After(s.now.Add(5*time.Second)) || s.gateway.sent != 0 {
		t.Errorf("after %d tries it is due at %v, and %d orders were sent; it is %v", p.Tries, p.DueAt, s.gateway.sent, s.now)
	}
	s.gateway.whenAsked, s.gateway.mood = nil, fair
	s.later(5 * time.Second)
	s.wantState(payout.Submitted)
}

// TestSubmit_WithoutLookup wants nothing concluded of what nobody can ask about.
func TestSubmit_WithoutLookup(t *testing.T) {
	for name, mood := range map[string]mood{"lost": lostRequests, "refused": refusing, "turned away": closed} {
		t.Run(name, func(t *testing.T) {
			s := newStoryAt(t, blind)
			s.gateway.mood = mood
			s.later(windowOver)
			s.wantState(payout.Unknown)
			s.later(time.Minute)
			s.later(time.Minute)
			if s.gateway.sent < 2 {
				t.Error("it was not sent again under its key")
			}
			s.wantState(payout.Unknown)
			s.wantAvailable(afterReserve)
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
				t.Errorf("cancelled: %v", err)
			}
			s.later(7 * 24 * time.Hour)
			s.wantState(payout.ManualReview)
			if _, err := s.payouts.AskGateway(t.Context(), ada, s.id); !errors.Is(err, payout.ErrNoLookup) {
				t.Errorf("asked: %v", err)
			}
			s.later(time.Hour)
			if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil { // an admin has looked it up there
				t.Error(err)
			}
			s.wantAvailable(opening)
			s.later(10 * 24 * time.Hour)
			s.wantState(payout.Failed)
		})
	}
}

// TestStep_LookUpFails fails the step in each state in which the gateway is asked, and asks again later. A gateway without
// look-ups gives no answer, and that is no failure.
func TestStep_LookUpFails(t *testing.T) {
	send := func(m mood) func(*story) {
		return func(s *story) {
			s.gateway.mood = m
			s.later(windowOver)
		}
	}
	paid := func(s *story) {
		s.later(windowOver)
		s.gateway.transfers[string(s.id)].advance(1)
		s.later(time.Hour)
	}
	for state, begin := range map[payout.State]func(*story){
		payout.Submitting: send(diesAfter), payout.Unknown: send(lostAnswers), payout.Submitted: send(fair), payout.Completed: paid, payout.Failed: send(refusing),
		payout.ManualReview: func(s *story) {
			send(lostAnswers)(s)
			s.sendToReview(t, s.id)
		},
	} {
		t.Run(string(state), func(t *testing.T) {
			s := newStory(t)
			begin(s)
			before := s.wantState(state)
			s.gateway.mood, s.gateway.deaf = silent, true
			s.now = before.DueAt
			if err := s.payouts.Step(t.Context(), s.id); err == nil {
				t.Error("the step succeeded")
			}
			if p := s.payout(); p.Status() != before.Status() || !p.DueAt.After(s.now) {
				t.Errorf("it is %s and due at %v, after a step at %v", p.State, p.DueAt, s.now)
			}
			s.wantViolated()
		})
	}
	t.Run("no look-up", func(t *testing.T) {
		s := newStoryAt(t, blind)
		send(lostRequests)(s)
		s.sendToReview(t, s.id)
		s.now = s.payout().DueAt
		if err := s.payouts.Step(t.Context(), s.id); err != nil {
			t.Errorf("the step ended with %v", err)
		}
		if p := s.wantState(payout.ManualReview); !p.DueAt.After(s.now) {
			t.Errorf("it is due at %v, after a step at %v", p.DueAt, s.now)
		}
	})
}

// TestStep_SaysWhatWentWrong returns what the worker logs and counts.
func TestStep_SaysWhatWentWrong(t *testing.T) {
	begin := func(m mood, advance int) func(*story) {
		return func(s *story) {
			s.gateway.mood = m
			s.later(windowOver)
			s.gateway.mood = fair
			if tr := s.gateway.transfers[string(s.id)]; tr != nil {
				tr.advance(advance)
				s.later(time.Hour)
			}
		}
	}
	for name, tt := range map[string]struct {
		begin func(*story)
		state payout.State
		spoil func(*story)
		want  string
	}{
		"a tampered row": {func(*story) {}, payout.Waiting, func(s *story) { s.place.ByHand(t, `UPDATE payouts SET notes = 'gift'`) }, "payout_tampered"},
		"a tampered balance": {func(*story) {}, payout.Waiting, func(s *story) {
			s.place.ByHand(t, `UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`)
		}, "records_tampered"},
		"a tampered account":             {func(*story) {}, payout.Waiting, func(s *story) { s.useBank(t); s.place.ByHand(t, `UPDATE bank_accounts SET holder = 'Mallory'`) }, "records_tampered"},
		"the account is not made known":  {func(*story) {}, payout.Waiting, func(s *story) { s.gateway.mood = silent }, "make the bank account known"},
		"turned away, then no answer":    {func(s *story) { s.gateway.mood = closed; s.later(windowOver) }, payout.Waiting, func(s *story) { s.gateway.deaf = true }, "was sent before"},
		"two transfers":                  {begin(lostRequests, 0), payout.Unknown, func(s *story) { s.gateway.twofold = true }, "is still unknown"},
		"another amount while unclear":   {begin(lostRequests, 0), payout.Unknown, func(s *story) { s.putOdd("another amount") }, "ordered were"},
		"another amount while submitted": {begin(fair, 0), payout.Submitted, func(s *story) { s.gateway.transfers[string(s.id)].amount++ }, "ordered were"},
		"another amount after it failed": {begin(refusing, 0), payout.Failed, func(s *story) { s.putOdd("another amount") }, "ordered were"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tt.begin(s)
			p := s.wantState(tt.state)
			tt.spoil(s)
			s.now = p.DueAt
			if err := s.payouts.Step(t.Context(), s.id); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the step ends with %v, want %q", err, tt.want)
			}
			s.wantState(tt.state)
		})
	}
}

// TestFinalCheck_WithoutLookup_Ends looks once at a payout that an admin refunded, because the gateway will never tell.
func TestFinalCheck_WithoutLookup_Ends(t *testing.T) {
	s := newStoryAt(t, blind)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.sendToReview(t, s.id)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.later(s.wantState(payout.Failed).DueAt.Sub(s.now))
	if p := s.wantState(payout.Failed); !p.DueAt.IsZero() {
		t.Errorf("its next step is at %s", p.DueAt)
	}
}

// TestSubmit_WithoutLookupResentSoon waits at most 18 seconds after the first attempt, which sends nothing.
func TestSubmit_WithoutLookupResentSoon(t *testing.T) {
	s := newStoryAt(t, blind)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.gateway.mood = fair
	s.later(5 * time.Second)
	s.wantState(payout.Unknown)
	s.later(18 * time.Second)
	s.wantState(payout.Submitted)
}

func TestSubmit_WithoutLookupTakenAnyway(t *testing.T) {
	s := newStoryAt(t, blind)
	s.gateway.mood = lostAnswers
	s.later(windowOver)
	s.wantState(payout.Unknown)
	s.gateway.mood = fair
	s.later(time.Minute)
	s.later(time.Minute)
	s.wantState(payout.Submitted)
	s.gateway.transfers[string(s.id)].advance(2)
	s.later(time.Hour)
	s.wantState(payout.Failed)
	s.later(time.Hour) // it is looked at again by its id
	s.wantState(payout.Failed)
	s.wantAvailable(opening)
}

func TestSubmit_WithoutLookupUnreachable(t *testing.T) {
	s := newStoryAt(t, blind)
	s.gateway.mood = unreachable
	s.later(windowOver)
	s.wantState(payout.Waiting) // not a byte was sent
	s.wantLogged(1, slog.LevelWarn, "gateway not reached", "payout_id="+string(s.id), "reason=", "detail=")
	s.gateway.mood = fair
	s.later(time.Hour)
	s.wantState(payout.Submitted)
}

func TestCancel_WithoutCapability(t *testing.T) {
	s := newStoryAt(t, func(c *gateway.Capabilities) { c.Cancel = false })
	s.gateway.mood = queueing
	s.later(windowOver)
	p := s.wantState(payout.Submitted)
	if s.payouts.Cancellable(p) {
		t.Error("it is said to be cancellable")
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
		t.Errorf("cancelled: %v", err)
	}
	s.wantState(payout.Submitted)
}

// TestReconcileStartup_WithoutMetadata can't tell whose the transfer was, and puts it before a person.
func TestReconcileStartup_WithoutMetadata(t *testing.T) {
	s := newStoryAt(t, func(c *gateway.Capabilities) { c.Metadata = false })
	saved := s.save()
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.gateway.transfers[string(lost.ID)].order = gateway.Order{}
	s.putBack(t, saved)
	s.reconcileStartup()
	a, err := s.payouts.Attention(t.Context())
	if err != nil || len(a.UnmatchedTransfers) != 1 || a.UnmatchedTransfers[0].Transfer.Reference != string(lost.ID) {
		t.Errorf("attention %+v, %v", a, err)
	}
}

// another is a gateway beside the story's own.
func (s *story) another() *paperGateway {
	return &paperGateway{name: "another", transfers: map[string]*transfer{}, underway: map[string]lateOrder{}, now: s.gateway.now}
}

func (s *story) route(preferred gateway.Name, all ...gateway.Gateway) {
	s.Helper()
	var err error
	if s.router, err = gateway.NewRouter(inr(s), preferred, all...); err != nil {
		s.Fatal(err)
	}
	s.payouts = s.newPayouts(s)
	if err := s.payouts.ReconcileStartup(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// TestGateway_StaysWhenTheDefaultChanges follows one payout in each state to the end at its own gateway.
func TestGateway_StaysWhenTheDefaultChanges(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.wantState(payout.Unknown)
	waiting := s.request("usr_b", 60_000)
	s.gateway.mood = fair
	other := s.another()
	s.route("another", s.gateway, other)
	s.later(windowOver)
	s.later(time.Minute)
	s.wantState(payout.Submitted)
	newer := s.request("usr_b", 70_000)
	s.later(windowOver)
	for id, want := range map[payout.ID]gateway.Name{s.id: paper, waiting.ID: paper, newer.ID: "another"} {
		p, err := s.db.Payout(t.Context(), id)
		_, isHere := s.gateway.transfers[string(id)]
		_, isThere := other.transfers[string(id)]
		if err != nil || p.Gateway != want || isHere != (want == paper) || isThere != (want == "another") {
			t.Errorf("payout %s is at %q; the first gateway has it %t, the other %t, %v", id, p.Gateway, isHere, isThere, err)
		}
	}
}

// TestGateway_NotConfigured waits for a gateway that was taken away, and sends nothing elsewhere.
func TestGateway_NotConfigured(t *testing.T) {
	s := newStory(t)
	other := s.another()
	s.route("another", other)
	for range 3 {
		s.later(windowOver)
		s.later(time.Hour)
	}
	p := s.wantState(payout.Waiting)
	if other.sent+s.gateway.sent != 0 || p.Reason == "" || p.DueAt.Before(s.now.Add(8*time.Minute)) {
		t.Errorf("%d orders were sent; the seller sees %q; its next step is at %s, and now is %s", other.sent+s.gateway.sent, p.Reason, p.DueAt, s.now)
	}
	a, err := s.payouts.Attention(t.Context())
	if err != nil || len(a.WithoutGateway) != 1 || a.WithoutGateway[0].ID != s.id {
		t.Errorf("attention %+v, %v", a, err)
	}
	if _, err := s.payouts.AskGateway(t.Context(), ada, s.id); !errors.Is(err, payout.ErrNoGateway) {
		t.Errorf("asked: %v", err)
	}
	s.wantViolated()

	s.route("another", s.gateway, other)
	s.later(time.Hour)
	p = s.wantState(payout.Submitted)
	if s.gateway.sent != 1 || p.ReasonCode != "" {
		t.Errorf("%d orders were sent to its gateway; its reason is %q", s.gateway.sent, p.ReasonCode)
	}
	s.route("another", other)
	s.later(time.Hour)
	if a, err := s.payouts.Attention(t.Context()); err != nil || len(a.WithoutGateway) != 1 {
		t.Errorf("attention %+v, %v", a, err)
	}
	s.route("another", s.gateway, other)
	s.later(time.Hour)
	if p = s.wantState(payout.Submitted); p.ReasonCode != "" {
		t.Errorf("its gateway was asked again, and its reason is %q", p.ReasonCode)
	}
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Hour)
	p = s.wantState(payout.Completed)
	if p.ReasonCode != "" {
		t.Errorf("its reason is %q", p.ReasonCode)
	}
	s.wantRow(true)
	s.wantJournal(true)
}

// TestTamperedGateway_IsFound moves a payout that its gateway has to another gateway by hand, which does not know it.
func TestTamperedGateway_IsFound(t *testing.T) {
	s := newSubmittedStory(t)
	s.route("another", s.gateway, s.another())
	s.place.ByHand(t, `UPDATE payouts SET gateway = 'another'`)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); !p.IsTampered() {
		t.Errorf("the discrepancy is %q", p.Discrepancy)
	}
	s.wantAvailable(afterReserve)
	s.repair()
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Hour)
	if p := s.wantState(payout.Completed); p.Gateway != s.gateway.Name() {
		t.Errorf("it is at %s", p.Gateway)
	}
}

// TestGateway_LastIsUnasked logs at the start that the gateway that paid last is not configured.
func TestGateway_LastIsUnasked(t *testing.T) {
	s := newSubmittedStory(t)
	other := s.another()
	const said = "last gateway not configured"
	s.route("another", s.gateway, other)
	s.wantLogged(0, slog.LevelError, said)
	s.route("another", other)
	s.wantLogged(1, slog.LevelError, said, "gateway=paper", "payout_id="+string(s.id))
}

// TestGateway_AskedAtALaterStart has a restored database lose a payout whose gateway is not configured. That gateway is asked when it
// is, however much another has paid meanwhile.
func TestGateway_AskedAtALaterStart(t *testing.T) {
	s := newSubmittedStory(t)
	saved := s.save()
	s.later(time.Hour)
	lost := s.request("usr_b", 60_000)
	s.later(windowOver)
	other := s.another()
	s.router, s.now = nil, s.now.Add(time.Hour)
	s.putBack(t, saved)
	s.route("another", other)
	again := s.request("usr_b", 60_000)
	s.later(windowOver)
	if got := s.stateOf(again.ID); got != payout.Submitted || other.sent != 1 {
		t.Fatalf("the next payout is %s; the other gateway got %d orders", got, other.sent)
	}
	s.later(time.Hour)
	s.route("another", s.gateway, other)
	if p, err := s.db.Payout(t.Context(), lost.ID); err != nil || p.Gateway != s.gateway.Name() || p.State != payout.Submitted {
		t.Errorf("the lost payout is %s at %q, %v", p.State, p.Gateway, err)
	}
	s.wantJournal(true)
}

// TestGateway_TakenAway_EndsChecks gives up the checks of a payout that was paid, where its gateway is gone for longer than banks return
// money.
func TestGateway_TakenAway_EndsChecks(t *testing.T) {
	s := newSubmittedStory(t)
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Hour)
	s.wantState(payout.Completed)
	s.route("another", s.another())
	s.later(time.Hour)
	if p := s.wantState(payout.Completed); p.DueAt.Before(s.now.Add(2 * time.Hour)) {
		t.Errorf("its next check is at %s, and now is %s; want it rare", p.DueAt, s.now)
	}
	for days, ends := range []bool{6: false, 20: true} {
		s.later(24 * time.Hour)
		if p := s.wantState(payout.Completed); days == 6 && p.DueAt.IsZero() || ends && !p.DueAt.IsZero() {
			t.Errorf("after %d days its next check is at %s, and now is %s; want none: %t", days, p.DueAt, s.now, ends)
		}
	}
}

// TestGateway_NotConfigured_NoDecision refuses what an admin can decide only by the word of a gateway that was taken away.
func TestGateway_NotConfigured_NoDecision(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	s.route("another", s.another())
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout_9"); !errors.Is(err, payout.ErrNoGateway) {
		t.Errorf("matched: %v", err)
	}
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrNoGateway) {
		t.Errorf("refunded: %v", err)
	}
	s.wantState(payout.ManualReview)
	s.wantDecisions(string(s.id), decision.ReviewPayout)
	s.wantAvailable(afterReserve)
}

// TestGateway_ConfiguredAgain_AnswerLost sends what waited for its gateway. That it waited for it is no longer said, whatever comes.
func TestGateway_ConfiguredAgain_AnswerLost(t *testing.T) {
	for m, want := range map[mood]payout.State{lostAnswers: payout.Unknown, diesAfter: payout.Submitting} {
		s := newStory(t)
		other := s.another()
		s.route("another", other)
		s.later(windowOver)
		if p := s.wantState(payout.Waiting); p.ReasonCode == "" {
			t.Fatal("it is not said that its gateway is not configured")
		}
		s.gateway.mood = m
		s.route("another", s.gateway, other)
		s.later(time.Hour)
		if p := s.wantState(want); p.ReasonCode != "" || p.Reason != "" {
			t.Errorf("%s: its reason is %q: %q", m, p.ReasonCode, p.Reason)
		}
	}
}

// TestGateway_ConfiguredAgain_Reclaimed looks up what a worker was sending when the gateway was taken away, and gets no answer.
func TestGateway_ConfiguredAgain_Reclaimed(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = diesBefore
	s.later(windowOver)
	s.wantState(payout.Submitting)
	other := s.another()
	s.route("another", other)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitting); p.ReasonCode == "" {
		t.Fatal("it is not said that its gateway is not configured")
	}
	s.gateway.mood, s.gateway.deaf = fair, true
	s.router = nil
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	s.later(time.Hour)
	if p := s.wantState(payout.Unknown); p.ReasonCode != "" || p.Reason != "" {
		t.Errorf("its reason is %q: %q", p.ReasonCode, p.Reason)
	}
}

// TestGateway_TransferAtAnother is written down: two gateways may have paid.
func TestGateway_TransferAtAnother(t *testing.T) {
	s := newStory(t)
	other := s.another()
	other.transfers[string(s.id)] = &transfer{id: "x_1", amount: 100, progress: gateway.Paid, made: s.now}
	s.route("another", s.gateway, other)
	a, err := s.payouts.Attention(t.Context())
	if err != nil || len(a.UnmatchedTransfers) != 1 || a.UnmatchedTransfers[0].Transfer.GatewayID != "x_1" {
		t.Errorf("attention %+v, %v", a, err)
	}
	s.wantState(payout.Waiting)
}

// TestGateway_ChangedByHand must not send a payout through another gateway: the first may have taken it.
func TestGateway_ChangedByHand(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostAnswers
	s.later(windowOver)
	s.wantState(payout.Unknown)
	other := s.another()
	s.route(paper, s.gateway, other)
	s.place.ByHand(t, `UPDATE payouts SET gateway = 'another'`)
	s.later(time.Hour)
	s.later(time.Hour)
	if other.sent != 0 {
		t.Error("it was sent through another gateway")
	}
	p := s.wantState(payout.Unknown)
	if !p.IsTampered() {
		t.Errorf("nobody is told: %q", p.Discrepancy)
	}
}

// TestGateway_NotConfiguredIsLogged names the payout and the gateway.
func TestGateway_NotConfiguredIsLogged(t *testing.T) {
	s := newStory(t)
	s.route("another", s.another())
	s.later(windowOver)
	s.wantLogged(1, slog.LevelError, "payout waits: gateway not configured", "payout_id="+string(s.id), "gateway=paper", "state=waiting")
}
