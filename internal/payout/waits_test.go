package payout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// TestStep_LeaseBeginsWithTheSending has the gateway take its time before the order is sent: until the lease is over, the order may still arrive.
func TestStep_LeaseBeginsWithTheSending(t *testing.T) {
	s := newStory(t)
	delayed := func() { s.now = s.now.Add(lease - time.Second) }
	s.gateway.mood, s.gateway.whenAsked = diesBefore, delayed
	s.later(windowOver)
	if p := s.wantState(payout.Submitting); !p.DueAt.Equal(s.now.Add(lease)) {
		t.Errorf("sent at %s, it is sent again from %s, want %s later", s.now, p.DueAt, lease)
	}
	s.gateway.whenAsked, s.gateway.whenFound = nil, delayed
	s.later(lease)
	if p := s.wantState(payout.Unknown); s.gateway.sent != 2 || !p.DueAt.Equal(s.now.Add(lease)) {
		t.Errorf("sent %d times, at last at %s, it is sent again from %s, want %s later", s.gateway.sent, s.now, p.DueAt, lease)
	}
}

// TestResend_LeaseExpired_SentByOneWorker has a worker take longer than its lease to look an order up. The one that took over has sent it again by then.
func TestResend_LeaseExpired_SentByOneWorker(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.later(2 * time.Second)
	before := s.wantState(payout.Unknown)
	s.gateway.whenFound = func() {
		s.gateway.whenFound = nil
		s.later(lease)
	}
	s.later(15 * time.Second)
	if p := s.wantState(payout.Unknown); s.gateway.sent != 2 || p.Tries != before.Tries+1 {
		t.Errorf("sent %d times, after %d tries, want 2 and %d", s.gateway.sent, p.Tries, before.Tries+1)
	}
}

// TestSubmit_SuspendedAfterClaim has the machine stand still between the claim of an order and its sending, until the gateway has forgotten
// the key. Another instance has paid meanwhile.
func TestSubmit_SuspendedAfterClaim(t *testing.T) {
	for name, tt := range map[string]struct {
		before mood
		claims func(payout.Payout) bool
	}{
		"the first sending": {fair, func(p payout.Payout) bool { return p.State == payout.Submitting }},
		"a resend":          {lostRequests, func(p payout.Payout) bool { return p.State == payout.Unknown && p.Tries > 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoryAt(t, shortKeys)
			sent := -1
			suspended := s.newPayoutsOn(t, sleeping{s.db.Payouts(), func() {
				p, err := s.db.Payout(t.Context(), s.id)
				if err != nil {
					t.Fatal(err)
				}
				if sent >= 0 || !tt.claims(p) {
					return
				}
				sent = 0
				s.gateway.mood = fair
				for range 25 {
					s.later(time.Hour)
				}
				sent = s.gateway.sent
			}})
			s.gateway.mood = tt.before
			wait := windowOver
			for range 4 {
				s.now = s.now.Add(wait)
				ids, err := s.payouts.LeaseDue(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					err = suspended.Step(t.Context(), id)
				}
				if sent >= 0 {
					if err == nil || s.gateway.sent != sent {
						t.Errorf("sent %d times after %d, error %v", s.gateway.sent, sent, err)
					}
					return
				}
				wait = 15 * time.Second
			}
			t.Fatal("no order was claimed")
		})
	}
}

// sleeping is a store whose process may stand still after a change.
type sleeping struct {
	payout.Store
	sleep func()
}

func (s sleeping) InGroup(ctx context.Context, scope ledger.Scope, fn func(payout.ChangeTx) error) error {
	err := s.Store.InGroup(ctx, scope, fn)
	if err == nil {
		s.sleep()
	}
	return err
}

// TestStep_TriesBelowZero has the number of tries changed by hand: the step after is as the first.
func TestStep_TriesBelowZero(t *testing.T) {
	s := newStory(t)
	s.gateway.mood, s.gateway.deaf = lostRequests, true
	s.later(windowOver)
	s.wantState(payout.Unknown)
	s.place.ByHand(t, `UPDATE payouts SET tries = -3`)
	s.later(10 * time.Minute)
	if p := s.wantState(payout.Unknown); p.Tries == -3 || !p.DueAt.After(s.now) {
		t.Errorf("at %s, after %d tries, it is due at %s", s.now, p.Tries, p.DueAt)
	}
}

// TestStep_Waits has no jitter, so that each wait before the next step is exact.
func TestStep_Waits(t *testing.T) {
	nothing := func(*story) {}
	deaf := func(s *story) { s.gateway.deaf = true }
	paid := func(s *story) {
		s.gateway.transfers[string(s.id)].advance(1)
		s.later(2 * time.Second)
		s.wantState(payout.Completed)
	}
	refund := func(s *story) {
		s.gateway.mood = fair
		s.sendToReview(t, s.id)
		s.now = s.now.Add(lease + gracePeriod)
		if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		mood    mood
		lacking func(*gateway.Capabilities)
		before  func(*story) // after the order was sent
		state   payout.State
		want    string
	}{
		"turned away":           {closed, nil, nothing, payout.Waiting, "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s"},
		"account not known yet": {silent, nil, nothing, payout.Waiting, "1s 2s 4s"},
		"not reached":           {unreachable, nil, nothing, payout.Waiting, "1s 2s 4s"},
		"unknown, no answer":    {lostRequests, nil, deaf, payout.Unknown, "2s 15s 1m0s 2m0s 5m0s 15m0s 1h0m0s 6h0m0s 6h0m0s"},
		"unknown, never taken":  {lostRequests, nil, nothing, payout.Unknown, "2s 15s 1m0s 2m0s 5m0s 15m0s 1h0m0s 6h0m0s 6h0m0s"},
		"unknown, no lookup":    {lostRequests, blind, nothing, payout.Unknown, "2s 15s 1m0s 2m0s 5m0s 15m0s 1h0m0s 6h0m0s 6h0m0s"},
		"in review":             {lostRequests, nil, func(s *story) { s.sendToReview(t, s.id); s.later(time.Minute) }, payout.ManualReview, "6h0m0s 6h0m0s"},
		"submitted":             {fair, nil, nothing, payout.Submitted, "2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 8m32s 15m0s 15m0s"},
		"submitted after a while": {lostAnswers, nil, func(s *story) {
			deaf(s)
			for _, wait := range []time.Duration{2 * time.Second, 15 * time.Second, time.Minute} {
				s.later(wait)
			}
			s.gateway.deaf = false
			s.later(2 * time.Minute)
		}, payout.Submitted, "2s 4s 8s"},
		"submitted, no answer": {fair, nil, deaf, payout.Submitted, "2s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 8m32s 15m0s 15m0s"},
		"completed":            {fair, nil, paid, payout.Completed, "20s 5m0s 1h0m0s 24h0m0s 24h0m0s"},
		"completed, no list":   {fair, unlisted, paid, payout.Completed, "20s 5m0s 1h0m0s 6h0m0s 6h0m0s"},
		"completed, no answer": {fair, nil, func(s *story) { paid(s); deaf(s) }, payout.Completed, "20s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 8m32s 17m4s 34m8s 1h8m16s 2h16m32s 4h0m0s 4h0m0s"},
		"tampered with":        {lostRequests, nil, func(s *story) { s.place.ByHand(t, `UPDATE payouts SET notes = 'gift'`) }, payout.Unknown, "2s 15s 10m0s 10m0s"},
		"frozen":               {fair, nil, nothing, payout.Waiting, "10m0s 10m0s 10m0s"},
		"refused":              {refusing, nil, nothing, payout.Failed, "20s 5m0s 1h0m0s 24h0m0s 24h0m0s"},
		"refused, no answer":   {refusing, nil, deaf, payout.Failed, "20s 2s 4s 8s 16s"},
		"refunded":             {lostRequests, nil, refund, payout.Failed, "20s 5m0s 1h0m0s 6h0m0s 6h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoryAt(t, tt.lacking)
			o := s.options(t, s.db.Payouts())
			o.Jitter = func(d time.Duration) time.Duration { return d }
			var err error
			if s.payouts, err = payout.New(o); err != nil {
				t.Fatal(err)
			}
			s.reconcileStartup()
			s.gateway.mood = tt.mood
			if name == "frozen" {
				if err := s.payouts.Freeze(t.Context(), ada, "usr_a"); err != nil {
					t.Fatal(err)
				}
			}
			s.later(windowOver)
			tt.before(s)
			var waits []string
			for range strings.FieldsSeq(tt.want) {
				wait := s.wantState(tt.state).DueAt.Sub(s.now)
				waits = append(waits, wait.String())
				s.later(wait)
			}
			if got := strings.Join(waits, " "); got != tt.want {
				t.Errorf("it waits\n%s, want\n%s", got, tt.want)
			}
		})
	}
}
