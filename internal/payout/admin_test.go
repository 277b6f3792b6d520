package payout_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// ada decides.
var ada = decision.By{Admin: "usr_ada", Note: "their support says that it was never made, case 4711"}

// newUnclearStory is a story whose order was lost on its way, so that nobody knows.
func newUnclearStory(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.wantState(payout.Unknown)
	s.wantLogged(1, slog.LevelWarn, "submission outcome unknown", "payout_id="+string(s.id), "reason=", "detail=")
	s.gateway.mood = fair
	return s
}

// newReviewStory is one that an admin sent to review a second ago.
func newReviewStory(t *testing.T) *story {
	t.Helper()
	s := newUnclearStory(t)
	s.sendToReview(t, s.id)
	s.now = s.now.Add(time.Second)
	return s
}

// wantDecisions checks what is on record about a subject, oldest first.
func (s *story) wantDecisions(subject string, want ...decision.Action) []decision.Decision {
	s.Helper()
	list := s.decisions(subject)
	slices.Reverse(list)
	var got []decision.Action
	for _, d := range list {
		got = append(got, d.Action)
		if d.Admin != ada.Admin || d.At.IsZero() || d.Subject != subject || !strings.HasPrefix(d.Note, ada.Note) {
			s.Errorf("on record is %+v", d)
		}
		if logged := strings.Count(s.log.String(), " decision="+d.ID+" action="+string(d.Action)); logged != 1 {
			s.Errorf("%s was logged %d times", d.Action, logged)
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("on record about %s are %v, want %v", subject, got, want)
	}
	return list
}

// wantEnd checks the last entry of the payout's history.
func (s *story) wantEnd(to payout.State) {
	s.Helper()
	events, err := s.payouts.Events(s.Context(), payout.Caller{Admin: true}, s.id)
	if err != nil || len(events) == 0 {
		s.Fatal(events, err)
	}
	if last := events[len(events)-1]; last.To != to || last.Reason == "" || strings.Contains(last.Reason, "case 4711") {
		s.Errorf("the history ends with %+v; want %s, with a reason for the seller", last, to)
	}
}

func (s *story) put(t *transfer) { s.gateway.transfers[string(s.id)] = t }

// made is the transfer that the payout should have.
func (s *story) made(progress gateway.Progress) *transfer {
	return &transfer{id: "pout_9", amount: s.payout().Net(), progress: progress, made: s.now}
}

// putOdd puts a paid transfer that was not ordered so.
func (s *story) putOdd(lie string) {
	s.put(s.made(gateway.Paid))
	lies[lie].alter(s.gateway.transfers[string(s.id)])
}

func TestResolveDiscrepancy_None_Refused(t *testing.T) {
	s := newReviewStory(t)
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, ""); !errors.Is(err, payout.ErrDiscrepancyChanged) {
		t.Errorf("cleared what was never said: %v", err)
	}
	s.wantDecisions(string(s.id), decision.ReviewPayout)
}

func TestDecisionsSayWhy(t *testing.T) {
	s := newReviewStory(t)
	s.wantDecisions(string(s.id), decision.ReviewPayout)
	for name, decide := range map[string]func(decision.By) error{
		"review": func(by decision.By) error { _, err := s.payouts.SendToReview(t.Context(), by, s.id); return err },
		"identify": func(by decision.By) error {
			_, err := s.payouts.MatchTransfer(t.Context(), by, s.id, "pout_1")
			return err
		},
		"give back": func(by decision.By) error { _, err := s.payouts.RefundToBalance(t.Context(), by, s.id); return err },
		"clear":     func(by decision.By) error { return s.payouts.ResolveDiscrepancy(t.Context(), by, s.id, "") },
		"settle":    func(by decision.By) error { return s.payouts.ResolveUnmatchedTransfer(t.Context(), by, "pout_1") },
	} {
		for _, note := range []string{"", " \n", strings.Repeat("x", 1001)} {
			err := decide(decision.By{Admin: ada.Admin, Note: note})
			if f := fault.From(err); f == nil || f.Details["note"] == "" {
				t.Errorf("%s with the note %.10q: %v, want a fault about the note", name, note, err)
			}
		}
	}
	if _, err := s.payouts.AskGateway(t.Context(), decision.By{Admin: ada.Admin, Note: strings.Repeat("x", 1001)}, s.id); fault.From(err) == nil {
		t.Errorf("ask with a note too long: %v", err)
	}
	for name, decide := range map[string]func() error{
		"review":         func() error { _, err := s.payouts.SendToReview(t.Context(), ada, "pyt_none"); return err },
		"ask":            func() error { _, err := s.payouts.AskGateway(t.Context(), ada, "pyt_none"); return err },
		"identify":       func() error { _, err := s.payouts.MatchTransfer(t.Context(), ada, "pyt_none", "pout_1"); return err },
		"give back":      func() error { _, err := s.payouts.RefundToBalance(t.Context(), ada, "pyt_none"); return err },
		"give back from": func() error { _, err := s.payouts.RefundableFrom(t.Context(), "pyt_none"); return err },
		"clear":          func() error { return s.payouts.ResolveDiscrepancy(t.Context(), ada, "pyt_none", "x") },
	} {
		if err := decide(); !errors.Is(err, payout.ErrNotFound) {
			t.Errorf("%s of no payout: %v", name, err)
		}
	}
	s.wantDecisions(string(s.id), decision.ReviewPayout)
}

func TestStep_InReviewIsNotSentAgain(t *testing.T) {
	s := newReviewStory(t)
	p := s.wantState(payout.ManualReview)
	if p.Reason == "" || p.DueAt.IsZero() {
		t.Errorf("the seller is told %q, and the next look is %s", p.Reason, p.DueAt)
	}
	sent := s.gateway.sent
	for range 20 {
		s.later(8 * time.Hour)
	}
	if s.wantState(payout.ManualReview); s.gateway.sent != sent {
		t.Error("a payout in review was sent again")
	}
	s.wantEnd(payout.ManualReview)
	s.wantAvailable(afterReserve)
	s.wantViolated()
	if _, err := s.payouts.SendToReview(t.Context(), ada, s.id); !errors.Is(err, payout.ErrMovedOn) {
		t.Errorf("sent to review twice: %v", err)
	}
	s.wantDecisions(string(s.id), decision.ReviewPayout)
	s.put(s.made(gateway.Paid)) // its report is still applied
	s.later(8 * time.Hour)
	s.wantState(payout.Completed)
}

// TestSendToReview_DuringResend has an admin send a payout to review while its order is being sent again.
func TestSendToReview_DuringResend(t *testing.T) {
	for name, tt := range map[string]struct {
		mood mood
		want payout.State
	}{
		"arrives":                     {fair, payout.Submitted},
		"is lost":                     {lostRequests, payout.ManualReview},
		"arrives, its answer is lost": {lostAnswers, payout.ManualReview},
		"is refused":                  {refusing, payout.ManualReview},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUnclearStory(t)
			s.later(3 * time.Second) // the look that comes before a resend
			s.gateway.mood = tt.mood
			s.gateway.whenSent = func() { s.sendToReview(t, s.id) }
			s.later(20 * time.Second)
			s.gateway.mood, s.gateway.whenSent = fair, nil
			if p := s.wantState(tt.want); p.DueAt.IsZero() {
				t.Error("nobody looks at it again")
			}
			sent := s.gateway.sent
			s.later(8 * time.Hour)
			if s.gateway.sent != sent {
				t.Error("it was sent again")
			}
			s.wantAvailable(afterReserve)
			s.wantViolated()
		})
	}
}

func TestRefundToBalance(t *testing.T) {
	s := newReviewStory(t)
	from, err := s.payouts.RefundableFrom(t.Context(), s.id)
	if want := s.now.Add(lease + gracePeriod - time.Second); err != nil || !from.Equal(want) {
		t.Fatalf("may be given back from %s, %v; want %s", from, err, want)
	}
	s.now = from.Add(-time.Second)
	_, err = s.payouts.RefundToBalance(t.Context(), ada, s.id)
	if f := fault.From(err); !errors.Is(err, payout.ErrTooEarly) || f.RetryAfter != time.Second || !strings.Contains(f.Message, "09:13:00") {
		t.Errorf("a second too early: %v", err)
	}
	s.wantState(payout.ManualReview)
	s.now = from
	p, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
	if err != nil || p.State != payout.Failed {
		t.Fatalf("given back: %+v, %v", p, err)
	}
	if p := s.wantState(payout.Failed); p.ReasonCode != "refunded" || p.EndedAt.IsZero() || p.DueAt.IsZero() || p.OrderBody != "" {
		t.Errorf("given back was %+v", p)
	}
	s.wantEnd(payout.Failed)
	s.wantAvailable(opening)
	s.wantViolated()
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrMovedOn) {
		t.Errorf("given back twice: %v", err)
	}
	s.wantDecisions(string(s.id), decision.ReviewPayout, decision.RefundPayout)

	sent, looks := s.gateway.sent, 0
	for !s.payout().DueAt.IsZero() {
		looks++
		s.later(s.payout().DueAt.Sub(s.now))
	}
	if days := s.now.Sub(from); looks < 10 || days < 60*time.Hour || days > 100*time.Hour || s.gateway.sent != sent {
		t.Errorf("it was looked at %d times in %s, and sent %d times", looks, days, s.gateway.sent-sent)
	}
	s.wantState(payout.Failed)
	s.wantViolated()
}

// A resend may be under way when the payout goes to review, so the wait begins with the review, and not with the first sending.
func TestRefundableFrom_CountsFromTheReview(t *testing.T) {
	s := newUnclearStory(t)
	s.now = s.now.Add(3 * time.Hour)
	s.sendToReview(t, s.id)
	if from, err := s.payouts.RefundableFrom(t.Context(), s.id); err != nil || !from.Equal(s.now.Add(lease+gracePeriod)) {
		t.Errorf("it may be refunded from %s, %v; want %s", from, err, s.now.Add(lease+gracePeriod))
	}
}

func TestRefundToBalance_NotWhileTheGatewayMayHaveIt(t *testing.T) {
	waited := func(t *testing.T) *story {
		t.Helper()
		s := newReviewStory(t)
		s.now = s.now.Add(lease + gracePeriod)
		return s
	}
	stays := func(s *story, want payout.State) {
		s.Helper()
		s.wantState(want)
		s.wantAvailable(afterReserve)
		s.wantDecisions(string(s.id), decision.ReviewPayout)
	}
	t.Run("it does not answer", func(t *testing.T) {
		s := waited(t)
		s.gateway.mood = silent
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrGatewayUnclear) {
			t.Error(err)
		}
		stays(s, payout.ManualReview)
	})
	for progress, want := range map[gateway.Progress]payout.State{
		gateway.InProgress: payout.Submitted, gateway.Paid: payout.Completed, gateway.Unrecognised: payout.Submitted,
	} {
		t.Run("it is "+string(progress), func(t *testing.T) {
			s := waited(t)
			s.put(s.made(progress))
			p, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
			if !errors.Is(err, payout.ErrKnownToGateway) || !strings.Contains(err.Error(), string(want)) || p.State != want {
				t.Errorf("%s, %v", p.State, err)
			}
			stays(s, want)
			s.wantViolated()
		})
	}
	t.Run("it has another amount", func(t *testing.T) {
		s := waited(t)
		s.put(s.made(gateway.Paid))
		s.gateway.transfers[string(s.id)].amount++
		p, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
		if !errors.Is(err, payout.ErrKnownToGateway) || p.Discrepancy == "" {
			t.Errorf("%+v, %v", p, err)
		}
		stays(s, payout.ManualReview)
	})
	t.Run("its statement shows it as paid", func(t *testing.T) {
		s := waited(t)
		keep := func(id string, debit, credit money.Amount) {
			line := reconcile.Line{Line: gateway.Line{ID: id, At: s.now, Debit: debit, Credit: credit, Currency: "INR", Kind: gateway.LinePayout}, Payout: s.id}
			if err := s.db.Reconciling(s.payout().Gateway).KeepLines(t.Context(), []reconcile.Line{line}, s.now); err != nil {
				t.Fatal(err)
			}
		}
		keep("txn_1", s.payout().Net(), 0)
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrPaidByStatement) {
			t.Error(err)
		}
		stays(s, payout.ManualReview)
		keep("txn_2", 0, 1) // from whom it was paid to, say
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrPaidByStatement) {
			t.Errorf("after one paisa came back: %v", err)
		}
		keep("txn_3", 0, s.payout().Net()-1)
		if p, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil || p.State != payout.Failed {
			t.Errorf("once it came back: %s, %v", p.State, err)
		}
	})
	t.Run("its answer comes meanwhile", func(t *testing.T) {
		s := waited(t)
		s.gateway.whenFound = func() {
			s.gateway.whenFound = nil
			s.put(s.made(gateway.InProgress))
			s.tryStep(s.id)
		}
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrMovedOn) {
			t.Error(err)
		}
		stays(s, payout.Submitted)
	})
	t.Run("nobody knows yet", func(t *testing.T) {
		s := newUnclearStory(t)
		s.now = s.now.Add(time.Hour)
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrMovedOn) {
			t.Error(err)
		}
		s.wantState(payout.Unknown)
	})
}

func TestRefundToBalance_OnceByConcurrentAdmins(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	var given atomic.Int64
	var admins sync.WaitGroup
	for range 6 {
		instance := s.newPayouts(t)
		admins.Go(func() {
			_, err := instance.RefundToBalance(t.Context(), ada, s.id)
			switch {
			case err == nil:
				given.Add(1)
			case !errors.Is(err, payout.ErrMovedOn):
				t.Error(err)
			}
		})
	}
	admins.Wait()
	if given.Load() != 1 {
		t.Errorf("%d gave it back", given.Load())
	}
	s.wantAvailable(opening)
	s.wantDecisions(string(s.id), decision.ReviewPayout, decision.RefundPayout)
	s.wantViolated()
}

// TestRefundToBalance_MayTurnUpAsPaid: the gateway made the transfer against its word. Nobody told us; the
// looks after the giving back find it.
func TestRefundToBalance_MayTurnUpAsPaid(t *testing.T) {
	for _, progress := range []gateway.Progress{gateway.InProgress, gateway.Paid} {
		s := newReviewStory(t)
		s.now = s.now.Add(lease + gracePeriod)
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
			t.Fatal(err)
		}
		s.later(time.Hour)
		s.put(s.made(progress))
		s.gateway.deaf = true
		s.later(8 * time.Hour)
		s.gateway.deaf = false
		s.later(8 * time.Hour)
		p := s.wantState(payout.Failed)
		if !strings.Contains(p.Discrepancy, string(progress)) || p.DueAt.IsZero() != (progress == gateway.Paid) {
			t.Errorf("%s: discrepancy %q, next poll %s; want a person to look, and to hear if it is paid", progress, p.Discrepancy, p.DueAt)
		}
		s.wantAvailable(opening)
		s.wantViolated("gateway-agrees")
	}
}

// TestResolveDiscrepancy_FinalChecksGoOn has a refunded payout found in progress. Once an admin has resolved that, the gateway pays
// it, and no webhook says so.
func TestResolveDiscrepancy_FinalChecksGoOn(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.put(s.made(gateway.InProgress))
	s.later(time.Hour)
	p := s.wantState(payout.Failed)
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, p.Discrepancy); err != nil {
		t.Fatal(err)
	}
	if p = s.payout(); p.Discrepancy != "" || p.DueAt.Sub(s.now) < 4*time.Hour {
		t.Errorf("discrepancy %q, next poll %s; want none, and hours later", p.Discrepancy, p.DueAt)
	}
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.later(30 * time.Hour)
	if p := s.wantState(payout.Failed); !strings.Contains(p.Discrepancy, string(gateway.Paid)) {
		t.Errorf("discrepancy %q", p.Discrepancy)
	}
	s.wantViolated("gateway-agrees")
}

// TestResolveDiscrepancy_LastCheckIsRepeated has the last check of a completed payout answered with another amount. Once an admin has
// resolved that, the gateway is asked again, and tells that the bank has returned the money. What it forgot is not asked for again.
func TestResolveDiscrepancy_LastCheckIsRepeated(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.later(time.Hour)
	s.wantState(payout.Completed)
	made := s.gateway.transfers[string(s.id)]
	made.amount++
	s.later(10 * 24 * time.Hour)
	p := s.wantState(payout.Completed)
	if p.Discrepancy == "" || !p.DueAt.IsZero() {
		t.Fatalf("discrepancy %q, next poll %s; want one, and none", p.Discrepancy, p.DueAt)
	}
	made.amount--
	made.progress = gateway.Reversed
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, p.Discrepancy); err != nil {
		t.Fatal(err)
	}
	s.later(time.Second)
	s.wantState(payout.Returned)
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestResolveDiscrepancy_ForgottenIsNotAskedForAgain has an admin resolve that the gateway knows a transfer no more.
func TestResolveDiscrepancy_ForgottenIsNotAskedForAgain(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.later(time.Hour)
	s.wantState(payout.Completed)
	delete(s.gateway.transfers, string(s.id))
	s.later(10 * 24 * time.Hour)
	p := s.wantState(payout.Completed)
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, p.Discrepancy); err != nil {
		t.Fatal(err)
	}
	if p = s.payout(); p.Discrepancy != "" || !p.DueAt.IsZero() {
		t.Errorf("discrepancy %q, next poll %s; want neither", p.Discrepancy, p.DueAt)
	}
}

func TestResolveDiscrepancy_OnlyAsItWasSeen(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = refusing
	s.later(windowOver)
	s.gateway.mood = fair
	s.put(s.made(gateway.InProgress))
	s.notification("event-1")
	s.later(time.Second)
	first := s.wantState(payout.Failed).Discrepancy
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.notification("event-2")
	s.later(time.Second)
	second := s.wantState(payout.Failed).Discrepancy
	for _, seen := range []string{first, "", second + "."} {
		if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, seen); !errors.Is(err, payout.ErrDiscrepancyChanged) {
			t.Errorf("having seen %q: %v", seen, err)
		}
	}
	s.wantViolated("gateway-agrees")
	s.wantDecisions(string(s.id))
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, second); err != nil {
		t.Fatal(err)
	}
	s.wantViolated()
	s.wantAvailable(opening)
	if d := s.wantDecisions(string(s.id), decision.ResolveDiscrepancy); !strings.HasSuffix(d[0].Note, second) {
		t.Errorf("the note %q does not tell what was cleared", d[0].Note)
	}
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, second); !errors.Is(err, payout.ErrDiscrepancyChanged) {
		t.Errorf("cleared twice: %v", err)
	}
}

func TestMatchTransfer(t *testing.T) {
	for name, tt := range map[string]struct {
		gatewayID string
		prepare   func(*story)
		wantErr   error
		want      payout.State
	}{
		"paid":                   {"pout_9", func(s *story) { s.put(s.made(gateway.Paid)) }, nil, payout.Completed},
		"under way":              {"pout_9", func(s *story) { s.put(s.made(gateway.InProgress)) }, nil, payout.Submitted},
		"failed":                 {"pout_9", func(s *story) { s.put(s.made(gateway.Failed)) }, nil, payout.Failed},
		"unknown there":          {"pout_8", func(*story) {}, payout.ErrNoTransfer, payout.ManualReview},
		"no answer":              {"pout_9", func(s *story) { s.gateway.mood = silent }, payout.ErrGatewayUnclear, payout.ManualReview},
		"another payout's":       {"pout_7", func(s *story) { s.gateway.transfers["pyt_x"] = &transfer{id: "pout_7", amount: s.payout().Net()} }, payout.ErrOtherTransfer, payout.ManualReview},
		"of another amount":      {"pout_9", func(s *story) { s.putOdd("another amount") }, payout.ErrOtherTransfer, payout.ManualReview},
		"to another account":     {"pout_9", func(s *story) { s.putOdd("another account") }, payout.ErrOtherTransfer, payout.ManualReview},
		"in another currency":    {"pout_9", func(s *story) { s.putOdd("another currency") }, payout.ErrOtherTransfer, payout.ManualReview},
		"no id of the gateway's": {"../contacts", func(*story) {}, fault.Field("gatewayId", ""), payout.ManualReview},
		"no id":                  {"", func(*story) {}, fault.Field("gatewayId", ""), payout.ManualReview},
		"an id of other signs":   {"azAZ09-_", func(*story) {}, payout.ErrNoTransfer, payout.ManualReview},
	} {
		t.Run(name, func(t *testing.T) {
			s := newReviewStory(t)
			s.gateway.misplaced = true
			tt.prepare(s)
			_, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, tt.gatewayID)
			if !errors.Is(err, tt.wantErr) {
				t.Errorf("error %v, want %v", err, tt.wantErr)
			}
			p := s.wantState(tt.want)
			if tt.wantErr != nil {
				s.wantDecisions(string(s.id), decision.ReviewPayout)
				s.wantAvailable(afterReserve)
				s.wantViolated()
				return
			}
			if p.GatewayID != tt.gatewayID {
				t.Errorf("its transfer is %s", p.GatewayID)
			}
			wantReason := "" // it is no longer in review
			if tt.want == payout.Failed {
				wantReason = bankRejected
			}
			if p.ReasonCode != wantReason || (p.Reason == "") != (wantReason == "") {
				t.Errorf("its reason is %q: %q, want %q", p.ReasonCode, p.Reason, wantReason)
			}
			s.wantDecisions(string(s.id), decision.ReviewPayout, decision.MatchTransfer)
			s.wantViolated()
			if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, tt.gatewayID); !errors.Is(err, payout.ErrMovedOn) {
				t.Errorf("identified twice: %v", err)
			}
		})
	}
}

// An id with any other sign could make another address of the gateway's of it.
func TestMatchTransfer_OtherSigns_Refused(t *testing.T) {
	s := newReviewStory(t)
	for _, sign := range "/:@[`{ .%" {
		s.gateway.whenFetched = func() { t.Errorf("the gateway was asked for an id with %q", sign) }
		if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout"+string(sign)); !errors.Is(err, fault.Field("gatewayId", "")) {
			t.Errorf("an id with %q: %v", sign, err)
		}
	}
}

// An id may be as long as any that a gateway gives, and no longer.
func TestMatchTransfer_LengthOfID(t *testing.T) {
	s := newReviewStory(t)
	for n, want := range map[int]error{64: payout.ErrNoTransfer, 65: fault.Field("gatewayId", "")} {
		if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, strings.Repeat("x", n)); !errors.Is(err, want) {
			t.Errorf("an id of %d signs: %v, want %v", n, err, want)
		}
	}
}

// TestMatchTransfer_AsksTheGatewayAgain has another admin give the payout back while the gateway tells of its transfer.
func TestMatchTransfer_AsksTheGatewayAgain(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	s.gateway.misplaced = true
	s.put(s.made(gateway.Paid))
	s.gateway.whenFetched = func() {
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout_9"); !errors.Is(err, payout.ErrMovedOn) {
		t.Errorf("it was given back meanwhile, and identified: %v", err)
	}
	s.wantState(payout.Failed)
	s.wantDecisions(string(s.id), decision.ReviewPayout, decision.RefundPayout)
	s.wantAvailable(opening)
}

// TestMatchTransfer_AppliesOnlyTheTransferAskedFor has the gateway tell of another transfer than it was asked for.
func TestMatchTransfer_AppliesOnlyTheTransferAskedFor(t *testing.T) {
	s := newReviewStory(t)
	s.put(s.made(gateway.Paid))
	s.gateway.mistakes = true
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout_8"); !errors.Is(err, payout.ErrGatewayUnclear) {
		t.Errorf("asked for pout_8, told of pout_9: %v", err)
	}
	s.wantState(payout.ManualReview)
	s.wantDecisions(string(s.id), decision.ReviewPayout)
}

func TestMatchTransfer_OnlyUnclearPayouts(t *testing.T) {
	s := newSubmittedStory(t)
	asked := false
	s.gateway.whenFetched = func() { asked = true }
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, s.payout().GatewayID); !errors.Is(err, payout.ErrMovedOn) || asked {
		t.Errorf("%v, the gateway was asked: %t; want it refused at once", err, asked)
	}
}

// The gateway finds nothing under our reference.
func TestAskGateway_UsesGatewayID(t *testing.T) {
	s := newSubmittedStory(t)
	s.gateway.misplaced = true
	s.gateway.transfers[string(s.id)].advance(1)
	for _, want := range []payout.State{payout.Completed, payout.Returned} {
		if _, err := s.payouts.AskGateway(t.Context(), ada, s.id); err != nil {
			t.Error(err)
		}
		s.wantState(want)
		s.gateway.transfers[string(s.id)].advance(3)
	}
}

// The admin's request reads the payout as submitting; by then it waits again, because the gateway turned it away, and has it all the same.
func TestAskGateway_ReadAsSubmitting_AskedAgain(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = closed
	s.later(windowOver)
	seen := s.wantState(payout.Waiting)
	seen.State = payout.Submitting
	s.put(s.made(gateway.Paid))
	if _, err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).AskGateway(t.Context(), ada, s.id); err != nil {
		t.Error(err)
	}
	if p := s.wantState(payout.Waiting); p.Discrepancy != "" || !p.DueAt.Equal(s.now) {
		t.Errorf("discrepancy %q, due at %s; want none, and at once, %s", p.Discrepancy, p.DueAt, s.now)
	}
	s.later(0)
	s.wantState(payout.Completed)
	s.wantAvailable(afterReserve)
	s.wantViolated()
}

// TestRefundedPayout_IsPolledLessAndLess has the gateway answer nothing after the amount was given back.
func TestRefundedPayout_IsPolledLessAndLess(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.gateway.deaf = true
	var waits []time.Duration
	for range 12 {
		s.later(s.payout().DueAt.Sub(s.now))
		waits = append(waits, s.payout().DueAt.Sub(s.now))
	}
	if waits[0] > 10*time.Second || waits[11] < 50*time.Minute || waits[11] > 5*time.Hour {
		t.Errorf("looked for after %v; want seconds at first, and hours in the end", waits)
	}
	s.gateway.deaf = false
	s.later(waits[11])
	if wait := s.payout().DueAt.Sub(s.now); wait < 4*time.Hour {
		t.Errorf("the gateway answered that there is none, and is asked again in %s", wait)
	}
}

// TestNotification_DuringFinalCheck has a webhook arrive while the gateway answers that it knows none.
func TestNotification_DuringFinalCheck(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.gateway.whenFound = func() {
		s.gateway.whenFound = nil
		s.put(s.made(gateway.Paid))
		s.notification("while it was looked for")
	}
	s.later(time.Hour)
	s.later(time.Second)
	if p := s.wantState(payout.Failed); p.Discrepancy == "" {
		t.Errorf("the hint was not followed; it is looked at again in %s", p.DueAt.Sub(s.now))
	}
}

// TestAskGateway asks in each state, and wants what the gateway has to be taken in, and nothing sent.
func TestAskGateway(t *testing.T) {
	silently := decision.By{Admin: ada.Admin}
	for name, tt := range map[string]struct {
		begin   func(*testing.T) *story
		prepare func(*story)
		wantErr error
		want    payout.State
	}{
		"waits":                 {newStory, func(*story) {}, payout.ErrNoTransfer, payout.Waiting},
		"waits, but was sent":   {newStory, func(s *story) { s.put(s.made(gateway.Paid)) }, nil, payout.Completed},
		"unknown, never made":   {newUnclearStory, func(*story) {}, payout.ErrNoTransfer, payout.Unknown},
		"unknown, no answer":    {newUnclearStory, func(s *story) { s.gateway.mood = silent }, payout.ErrGatewayUnclear, payout.Unknown},
		"unknown, paid":         {newUnclearStory, func(s *story) { s.put(s.made(gateway.Paid)) }, nil, payout.Completed},
		"in review, never made": {newReviewStory, func(*story) {}, payout.ErrNoTransfer, payout.ManualReview},
		"in review, failed":     {newReviewStory, func(s *story) { s.put(s.made(gateway.Failed)) }, nil, payout.Failed},
		"submitted, not paid":   {newSubmittedStory, func(*story) {}, nil, payout.Submitted},
		"submitted, paid":       {newSubmittedStory, func(s *story) { s.gateway.transfers[string(s.id)].advance(1) }, nil, payout.Completed},
		"submitted, forgotten":  {newSubmittedStory, func(s *story) { s.gateway.forgetful = true }, payout.ErrNoTransfer, payout.Submitted},
		"completed, returned": {newSubmittedStory, func(s *story) {
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Hour)
			s.wantState(payout.Completed)
			s.gateway.transfers[string(s.id)].advance(3)
		}, nil, payout.Returned},
		"its sender died": {newStory, func(s *story) {
			s.gateway.mood = diesAfter
			s.later(windowOver)
			s.wantState(payout.Submitting)
			s.gateway.mood = fair
		}, nil, payout.Submitted},
		"its sender died before": {newStory, func(s *story) {
			s.gateway.mood = diesBefore
			s.later(windowOver)
			s.gateway.mood = fair
		}, payout.ErrNoTransfer, payout.Submitting},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.begin(t)
			tt.prepare(s)
			sent, before := s.gateway.sent, s.payout()
			p, err := s.payouts.AskGateway(t.Context(), silently, s.id)
			if !errors.Is(err, tt.wantErr) || p != s.payout() {
				t.Errorf("answer %+v, %v; want %v, and the payout as it is", p, err, tt.wantErr)
			}
			if p := s.wantState(tt.want); tt.wantErr != nil && p != before {
				t.Errorf("nothing was learnt, and it changed to %+v", p)
			}
			if s.gateway.sent != sent {
				t.Error("something was sent")
			}
			s.wantViolated()
			list, err := s.db.Decisions(t.Context(), string(s.id), 1)
			if err != nil || len(list) != 1 || list[0].Action != decision.AskGateway || list[0].Note != "" {
				t.Errorf("on record is %+v, %v", list, err)
			}
		})
	}
	t.Run("failed, but paid", func(t *testing.T) {
		s := newStory(t)
		s.gateway.mood = refusing
		s.later(windowOver)
		s.gateway.mood = fair
		s.put(s.made(gateway.Paid))
		p, err := s.payouts.AskGateway(t.Context(), silently, s.id)
		if err != nil || p.State != payout.Failed || p.Discrepancy == "" {
			t.Errorf("%+v, %v; want the discrepancy", p, err)
		}
		s.wantAvailable(opening)
		s.wantViolated("gateway-agrees")
	})
}

func newSubmittedStory(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	return s
}

func TestResolveUnmatchedTransfer_Once(t *testing.T) {
	s := newStory(t)
	s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{id: "pout_9", amount: 500, progress: gateway.Paid, made: s.now}
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	s.wantViolated("unmatched-transfers-are-resolved")
	for _, unknown := range []string{"paper:pout_8", "other:pout_9", "pout_9", "", "\x00"} {
		if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, unknown); !errors.Is(err, payout.ErrUnmatchedTransferResolved) {
			t.Errorf("settle %q: %v", unknown, err)
		}
		if _, err := s.payouts.UnmatchedTransfer(t.Context(), unknown); !errors.Is(err, payout.ErrUnmatchedTransferResolved) {
			t.Errorf("find %q: %v", unknown, err)
		}
	}
	if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, "paper:pout_9"); err != nil {
		t.Fatal(err)
	}
	if err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, "paper:pout_9"); !errors.Is(err, payout.ErrUnmatchedTransferResolved) {
		t.Errorf("settled twice: %v", err)
	}
	s.wantViolated()
	s.wantDecisions("paper:pout_9", decision.ResolveUnmatchedTransfer)
	s.wantLogged(1, slog.LevelError, "unmatched transfer found", "pout_9")
	s.wantLogged(1, slog.LevelWarn, "admin decided", "subject=paper:pout_9")
	s.payouts = s.newPayouts(t)
	s.reconcileStartup() // what is settled stays so
	s.wantViolated()
}

// When an admin cancels another user's payout, that is a decision, wherever the payout is at the time; when a seller
// cancels their own, it is none.
func TestCancel_ByAdmin_RecordsDecision(t *testing.T) {
	admin := payout.Caller{User: ada.Admin, Admin: true, Note: ada.Note}
	waits := func(*story) {}
	queued := func(s *story) {
		s.gateway.mood = queueing
		s.later(windowOver)
		s.gateway.mood = fair
	}
	for name, tt := range map[string]struct {
		caller payout.Caller
		until  func(*story)
		want   []decision.Action
	}{
		"an admin, while it waits":      {admin, waits, []decision.Action{decision.CancelPayout}},
		"an admin, at the gateway":      {admin, queued, []decision.Action{decision.CancelPayout}},
		"the seller, while it waits":    {payout.Caller{User: "usr_a"}, waits, nil},
		"the seller, at the gateway":    {payout.Caller{User: "usr_a"}, queued, nil},
		"an admin's own, as a seller's": {payout.Caller{User: "usr_a", Admin: true}, waits, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tt.until(s)
			for range 2 { // the second gets the first answer
				if _, _, err := s.payouts.Cancel(t.Context(), tt.caller, s.id, "key"); err != nil {
					t.Fatal(err)
				}
			}
			s.wantState(payout.Cancelled)
			s.wantAvailable(opening)
			s.wantDecisions(string(s.id), tt.want...)
			s.wantViolated()
		})
	}
}
