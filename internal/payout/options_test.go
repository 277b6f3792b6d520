package payout_test

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/payout"
)

// wantOptions checks what an admin may decide about the payout now.
func (s *story) wantOptions(want ...decision.Action) []payout.Option {
	s.Helper()
	options, err := s.payouts.Options(s.Context(), s.payout())
	if err != nil {
		s.Fatal(err)
	}
	var got []decision.Action
	for _, o := range options {
		got = append(got, o.Action)
	}
	if !slices.Equal(got, want) {
		s.Errorf("a payout that is %s may be decided by %v, want %v", s.payout().State, got, want)
	}
	return options
}

func TestOptions_ByState(t *testing.T) {
	s := newStory(t)
	s.wantState(payout.Waiting)
	s.wantOptions(decision.AskGateway, decision.CancelPayout)
	s.now = s.payout().DueAt // it may have been sent before a restore
	s.wantOptions(decision.AskGateway, decision.MatchTransfer, decision.CancelPayout)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.wantState(payout.Unknown)
	s.wantOptions(decision.AskGateway, decision.ReviewPayout, decision.MatchTransfer)
}

func TestOptions_RefundFromWhenOrderIsOld(t *testing.T) {
	s := newReviewStory(t)
	options := s.wantOptions(decision.AskGateway, decision.MatchTransfer, decision.RefundPayout)
	from := options[2].From
	if !from.After(s.now) {
		t.Fatalf("a refund is offered from %s on, at %s", from, s.now)
	}
	s.now = from.Add(-time.Microsecond)
	if again := s.wantOptions(decision.AskGateway, decision.MatchTransfer, decision.RefundPayout)[2].From; !again.Equal(from) {
		t.Errorf("a moment before, it is offered from %s on, want %s", again, from)
	}
	s.now = from
	if now := s.wantOptions(decision.AskGateway, decision.MatchTransfer, decision.RefundPayout)[2].From; !now.IsZero() {
		t.Errorf("when the time has come, it is offered from %s on", now)
	}
}

func TestOptions_Submitted(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.wantOptions(decision.AskGateway)
}

// What the gateway says otherwise can be resolved for as long as it stands, and is offered before what changes the payout.
func TestOptions_Discrepancy(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].amount++
	s.later(time.Hour)
	said := s.wantState(payout.Submitted).Discrepancy
	s.wantOptions(decision.AskGateway, decision.ResolveDiscrepancy)
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, said); err != nil {
		t.Fatal(err)
	}
	s.wantOptions(decision.AskGateway)
}
