package payout_test

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
)

func TestQuote_MatchesRequest(t *testing.T) {
	s := newStory(t)
	q := s.payouts.Quote(60_000)
	p := s.request("usr_b", 60_000)
	want := payout.Quote{Amount: p.Amount, Fee: p.Fee, Net: p.Net(), Mode: p.Mode, ArriveAt: p.ArriveAt, CancelUntil: p.DueAt}
	if q != want || q.Fee == 0 || !q.CancelUntil.Equal(s.now.Add(time.Minute)) {
		t.Errorf("quoted %+v, made %+v", q, want)
	}
}

func TestCancellable(t *testing.T) {
	s := newStory(t)
	if !s.payouts.Cancellable(s.payout()) {
		t.Error("one that waits can't be cancelled")
	}
	s.gateway.mood = queueing
	s.later(windowOver)
	if p := s.wantState(payout.Submitted); !s.payouts.Cancellable(p) {
		t.Error("one that the gateway queues can't be cancelled")
	}
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); s.payouts.Cancellable(p) {
		t.Error("one that the bank works on can be cancelled")
	}
}

func TestAttention(t *testing.T) {
	s := newStory(t)
	attention := func() payout.Attention {
		a, err := s.payouts.Attention(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := attention(); len(a.Unclear)+len(a.Discrepancies)+len(a.UnmatchedTransfers) > 0 {
		t.Errorf("of a quiet market: %+v", a)
	}
	s.gateway.mood = lostAnswers
	s.later(windowOver)
	s.gateway.mood = fair
	s.gateway.transfers[string(s.id)].amount++
	s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{id: "pout_9", amount: 500, progress: gateway.Paid, made: s.now}
	s.later(time.Minute)
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	a := attention()
	if len(a.Unclear) != 1 || a.Unclear[0].ID != s.id || len(a.Discrepancies) != 1 || a.Discrepancies[0].ID != s.id ||
		len(a.UnmatchedTransfers) != 1 || a.UnmatchedTransfers[0].Transfer.GatewayID != "pout_9" {
		t.Errorf("unclear, with discrepancy and unmatched are %+v", a)
	}
}
