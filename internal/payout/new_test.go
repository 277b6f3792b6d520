package payout_test

import (
	"reflect"
	"testing"
	"time"

	"bursar/internal/payout"
)

func TestNew_RefusesIncompleteOptions(t *testing.T) {
	s := newStory(t)
	complete := s.options(t, s.db.Payouts())
	if _, err := payout.New(complete); err != nil {
		t.Fatalf("complete options: %v", err)
	}
	atOnce := complete
	atOnce.CancelWindow, atOnce.ProveAbove = 0, 0
	if _, err := payout.New(atOnce); err != nil {
		t.Errorf("options without waits: %v", err)
	}
	for _, field := range []string{"Store", "Gateways", "Beneficiaries", "Mails", "Now", "Zone", "Logger", "StateChanged", "Minimum", "Lease", "GracePeriod", "ReversalsEvery"} {
		o := complete
		reflect.ValueOf(&o).Elem().FieldByName(field).SetZero()
		if _, err := payout.New(o); err == nil {
			t.Errorf("a service without %s was made", field)
		}
	}
	for name, change := range map[string]func(*payout.Options){
		"a negative minimum":           func(o *payout.Options) { o.Minimum = -1 },
		"a negative cancel window":     func(o *payout.Options) { o.CancelWindow = -1 },
		"a negative lease":             func(o *payout.Options) { o.Lease = -1 },
		"a negative grace period":      func(o *payout.Options) { o.GracePeriod = -1 },
		"a negative wait for returns":  func(o *payout.Options) { o.ReversalsEvery = -1 },
		"a negative limit for proofs":  func(o *payout.Options) { o.ProveAbove = -1 },
		"a limit, and nobody to prove": func(o *payout.Options) { o.ProveAbove, o.Proofs = 1, nil },
		"no minimum and no fee":        func(o *payout.Options) { o.Minimum, o.Fee = 0, payout.Fee{} },
		"a minimum below the fee":      func(o *payout.Options) { o.Minimum = 1 },
	} {
		o := complete
		change(&o)
		if _, err := payout.New(o); err == nil {
			t.Errorf("a service with %s was made", name)
		}
	}
}

func TestNew_MinimumBelowTheGateways(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Fee = payout.Fee{}
	s.gateway.least = o.Minimum
	if _, err := payout.New(o); err != nil {
		t.Errorf("a minimum that the gateway transfers: %v", err)
	}
	s.gateway.least++
	if _, err := payout.New(o); err == nil {
		t.Error("a service was made whose smallest payout its gateway does not transfer")
	}
}

// TestNew_Jitter spreads waits by a fifth, unless the options say otherwise.
func TestNew_Jitter(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Jitter = nil
	var err error
	if s.payouts, err = payout.New(o); err != nil {
		t.Fatal(err)
	}
	s.reconcileStartup()
	s.gateway.mood = closed
	s.later(windowOver)
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		got := s.wantState(payout.Waiting).DueAt.Sub(s.now)
		if got < wait*4/5 || got > wait*6/5 {
			t.Errorf("it waits %s, want a fifth more or less than %s", got, wait)
		}
		s.later(got)
	}
}
