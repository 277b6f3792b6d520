package payout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

func TestQuote_MatchesRequest(t *testing.T) {
	s := newStory(t)
	q := s.payouts.Quote(60_000)
	p := s.request("usr_b", 60_000)
	want := payout.Quote{Amount: p.Amount, Fee: p.Fee, Net: p.Net(), Rail: p.Rail, ArriveAt: p.ArriveAt, CancelUntil: p.DueAt}
	if q != want || q.Fee == 0 || !q.CancelUntil.Equal(s.now.Add(time.Minute)) {
		t.Errorf("quoted %+v, made %+v", q, want)
	}
}

// TestQuote_RailOfTheNetAmount asks for more than a rail carries, of which it carries what is left after the fee.
func TestQuote_RailOfTheNetAmount(t *testing.T) {
	s := newStory(t)
	net := s.payouts.Quote(60_000).Net
	s.gateway.lacking = func(c *gateway.Capabilities) {
		c.Rails = []gateway.Rail{{Name: "fast", Max: net, Takes: time.Minute}, {Name: "slow"}}
	}
	if q := s.payouts.Quote(60_000); q.Rail != "fast" || q.Net != net || net == 60_000 {
		t.Errorf("quoted %+v, want the rail that carries %d", q, net)
	}
	if q := s.payouts.Quote(60_100); q.Rail != "slow" {
		t.Errorf("quoted %+v, want the rail that carries more", q)
	}
}

// A payout is late from its estimated arrival on, while it is under way.
func TestIsLate(t *testing.T) {
	at := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	for _, state := range payout.States() {
		for after, late := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second: true} {
			p := payout.Payout{State: state, ArriveAt: at}
			if got, want := p.IsLate(at.Add(after)), late && p.Status() == payout.StatusProcessing; got != want {
				t.Errorf("one that is %s is late %s after its time: %t", state, after, got)
			}
		}
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

func TestSummary_MonthsOfZone(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Zone = time.FixedZone("IST", 19800)
	for at, want := range map[time.Time]struct{ thisMonth, lastMonth money.Amount }{
		time.Date(2026, 11, 30, 18, 29, 59, 0, time.UTC): {opening, 0},
		time.Date(2026, 11, 30, 18, 30, 0, 0, time.UTC):  {0, opening},
		time.Date(2026, 12, 31, 18, 29, 59, 0, time.UTC): {0, opening},
		time.Date(2026, 12, 31, 18, 30, 0, 0, time.UTC):  {0, 0},
	} {
		o.Now = func() time.Time { return at }
		payouts, err := payout.New(o)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := payouts.Summary(t.Context(), "usr_a")
		if err != nil || sum.ThisMonth != want.thisMonth || sum.LastMonth != want.lastMonth {
			t.Errorf("at %s, %d was earned this month and %d last month, %v; want %+v", at, sum.ThisMonth, sum.LastMonth, err, want)
		}
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
	if u, err := s.payouts.UnmatchedTransfer(t.Context(), "paper:pout_9"); err != nil || u.Transfer.GatewayID != "pout_9" {
		t.Errorf("the unmatched transfer is %+v, %v", u, err)
	}
	if _, err := s.payouts.UnmatchedTransfer(t.Context(), "paper:pout_8"); !errors.Is(err, payout.ErrUnmatchedTransferResolved) {
		t.Errorf("one that is not there: %v", err)
	}
}
