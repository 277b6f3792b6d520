package payout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

func TestCheckEntries(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	p := s.wantState(payout.Submitted)
	entries, err := s.db.EntriesAbout(t.Context(), p.Seller, string(s.id))
	if err != nil {
		t.Fatal(err)
	}
	if err := payout.CheckEntries(p, entries); err != nil {
		t.Fatal(err)
	}
	other, ended, waiting := p, p, p
	waiting.State = payout.Waiting
	requeued := ledger.Entry{Posting: ledger.Posting{Type: ledger.PayoutRequeued, Data: `{"state":"waiting"}`}}
	other.Amount++
	ended.State = payout.Completed
	changed := func(change func([]ledger.Entry) []ledger.Entry) []ledger.Entry { return change(slices.Clone(entries)) }
	nothing := ledger.Entry{Posting: ledger.Posting{Data: `{"state":"completed","utr":"1"}`}}
	decided, repaired, completed := nothing, nothing, nothing
	decided.Type, repaired.Type, completed.Type = ledger.AdminDecided, ledger.Repaired, ledger.PayoutCompleted
	if events, err := payout.StateChangesOf(s.id, append(slices.Clone(entries), decided, repaired)); err != nil || events[len(events)-1].To != p.State {
		t.Errorf("a decision and a repair are changes of state: %v, %v", events, err)
	}
	unreadable := append(slices.Clone(entries), ledger.Entry{Posting: ledger.Posting{Type: ledger.PayoutUpdated, Data: "{"}})
	if events, err := payout.StateChangesOf(s.id, unreadable); err == nil {
		t.Errorf("with an entry that can't be read, the changes of state are %v", events)
	}
	for _, tt := range []struct {
		name       string
		p          payout.Payout
		entries    []ledger.Entry
		isTampered bool
	}{
		{"an admin's decision changes nothing by itself", p, append(slices.Clone(entries), decided), false},
		{"a repair changes nothing by itself", p, append(slices.Clone(entries), repaired), false},
		{"a decision does not complete it", ended, append(slices.Clone(entries), decided), true},
		{"completed, and the row is not", p, append(slices.Clone(entries), completed), true},
		{"waiting once more, though it can't be", waiting, append(slices.Clone(entries), requeued), true},
		{"no entries", p, nil, true},
		{"another amount", other, entries, true},
		{"another payout", payout.Payout{ID: s.id}, entries, true},
		{"another row", ended, entries, true},
		{"requested is missing", p, entries[1:], true},
		{"an unreadable entry", p, unreadable, true},
		{"money that no change stands for", p, changed(func(e []ledger.Entry) []ledger.Entry {
			e[len(e)-1].Moved = ledger.ReservePayout(1)
			return e
		}), true},
		{"requested by another name", p, changed(func(e []ledger.Entry) []ledger.Entry {
			e[0].Type = ledger.PayoutUpdated
			return e
		}), true},
		{"requested again", p, append(slices.Clone(entries), ledger.Entry{Posting: ledger.Posting{Type: ledger.PayoutRequested, Data: "{}"}}), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := payout.CheckEntries(tt.p, tt.entries); errors.Is(err, ledger.ErrTampered) != tt.isTampered || (err != nil) != tt.isTampered {
				t.Errorf("%v; want it to be tampered with: %t", err, tt.isTampered)
			}
		})
	}
}

func TestRefunded(t *testing.T) {
	s := newReviewStory(t)
	reviewed := s.payout()
	s.now = s.now.Add(time.Hour)
	refunded, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
	if err != nil {
		t.Fatal(err)
	}
	refused := newStory(t)
	refused.gateway.mood = refusing
	refused.later(windowOver)
	failed := refused.wantState(payout.Failed)
	for name, tt := range map[string]struct {
		p    payout.Payout
		want bool
	}{"refunded": {refunded, true}, "in review": {reviewed, false}, "failed": {failed, false}} {
		if got := tt.p.Refunded(); got != tt.want {
			t.Errorf("%s: refunded is %t", name, got)
		}
	}
}

// The metrics count each change of state once, however it came about.
func TestStateChanged_EachChangeOnce(t *testing.T) {
	type move struct{ from, to payout.State }
	for name, tt := range map[string]struct {
		story func(s *story)
		want  []move
	}{
		"completed, with further notifications": {func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Hour)
			s.wantState(payout.Completed)
			s.notification("evt_1")
			s.later(time.Second)
			s.notification("evt_2")
			s.later(24 * time.Hour)
		}, []move{{payout.Waiting, payout.Submitting}, {payout.Submitting, payout.Submitted}, {payout.Submitted, payout.Completed}}},
		"returned": {func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Hour)
			s.gateway.transfers[string(s.id)].advance(3)
			s.later(2 * time.Hour)
			s.wantState(payout.Returned)
		}, []move{{payout.Waiting, payout.Submitting}, {payout.Submitting, payout.Submitted}, {payout.Submitted, payout.Completed}, {payout.Completed, payout.Returned}}},
		"cancelled": {func(s *story) {
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				t.Fatal(err)
			}
		}, []move{{payout.Waiting, payout.Cancelled}}},
		"cancelled twice": {func(s *story) {
			for range 2 {
				if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "k1"); err != nil {
					t.Fatal(err)
				}
			}
		}, []move{{payout.Waiting, payout.Cancelled}}},
		"requested twice": {func(s *story) {
			for range 2 {
				if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1"}); err != nil {
					t.Fatal(err)
				}
			}
		}, []move{{"", payout.Waiting}}},
		"imported": {func(s *story) {
			s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{
				id: "pout_9", amount: 90_000, progress: gateway.InProgress, made: s.now,
				order: gateway.Order{Seller: "usr_b", Account: "bka_usr_b", Gross: 100_000},
			}
			s.reconcileStartup()
		}, []move{{"", payout.Waiting}, {payout.Waiting, payout.Submitted}}},
		"imported, without a fee": {func(s *story) {
			s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{
				id: "pout_9", amount: 100_000, progress: gateway.InProgress, made: s.now,
				order: gateway.Order{Seller: "usr_b", Account: "bka_usr_b", Gross: 100_000},
			}
			s.reconcileStartup()
		}, []move{{"", payout.Waiting}, {payout.Waiting, payout.Submitted}}},
		"refused by the service": {func(s *story) {
			if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 700_000_000}); !errors.Is(err, ledger.ErrInsufficient) {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			o := s.options(t, s.db.Payouts())
			var moved []move
			o.StateChanged = func(from, to payout.State) { moved = append(moved, move{from, to}) }
			var err error
			if s.payouts, err = payout.New(o); err != nil {
				t.Fatal(err)
			}
			s.reconcileStartup()
			tt.story(s)
			if !slices.Equal(moved, tt.want) {
				t.Errorf("counted %v, want %v", moved, tt.want)
			}
		})
	}
}

// An order that can't be written is not sent, and the payout waits until it can.
func TestSubmit_OrderCannotBePrepared_Waits(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = unwritable
	s.now = s.now.Add(windowOver)
	if err := s.payouts.Step(t.Context(), s.id); err == nil {
		t.Error("no error is returned")
	}
	if p := s.wantState(payout.Waiting); s.gateway.sent != 0 || !p.DueAt.After(s.now) {
		t.Errorf("%d orders were sent; it is due at %s, and now is %s", s.gateway.sent, p.DueAt, s.now)
	}
	s.gateway.mood = fair
	s.later(time.Hour)
	s.wantState(payout.Submitted)
}
