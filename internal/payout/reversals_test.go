package payout_test

import (
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
)

// newPaidStory is a story whose payout was completed, and looked at until the bank's reference was there.
func newPaidStory(t *testing.T) (*story, *transfer) {
	t.Helper()
	s := newStory(t)
	s.later(windowOver)
	made := s.gateway.transfers[string(s.id)]
	made.progress, made.paid = gateway.Paid, 1
	for range 4 { // past the looks that come soon
		s.later(2 * time.Hour)
	}
	s.wantState(payout.Completed)
	return s, made
}

func (s *story) pollReversals(want int) {
	s.Helper()
	if got, err := s.payouts.PollReversals(s.Context()); err != nil || got != want {
		s.Errorf("%d payouts were made due, %v; want %d", got, err, want)
	}
}

func TestPollReversals_FindsReturn(t *testing.T) {
	s, made := newPaidStory(t)
	s.pollReversals(0)
	made.progress = gateway.Reversed
	s.later(10 * time.Minute)
	s.wantState(payout.Completed) // no webhook came, and the payout's own look is a day away
	s.pollReversals(1)
	s.later(time.Second)
	s.wantState(payout.Returned)
	s.wantAvailable(opening)
	s.now = s.now.Add(10 * time.Minute)
	s.pollReversals(0)
	s.wantViolated()
}

func TestPollReversals_ListIsNotApplied(t *testing.T) {
	for name, lie := range map[string]func(*story, *transfer){
		"the transfer says that it was paid": func(s *story, made *transfer) { // between the list and the look
			made.progress = gateway.Reversed
			s.pollReversals(1)
			made.progress = gateway.Paid
		},
		"the list is of all transfers": func(s *story, _ *transfer) {
			s.gateway.listsAll = true
			s.pollReversals(0)
		},
		"a transfer that is another payout's": func(s *story, made *transfer) {
			s.gateway.transfers["pyt_01JDK2V4T1M8ZQ9F0C7B5N3XWA"] = &transfer{id: "pout_9", amount: made.amount, progress: gateway.Reversed}
			s.pollReversals(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, made := newPaidStory(t)
			lie(s, made)
			s.later(time.Second)
			s.wantState(payout.Completed)
			s.wantAvailable(afterReserve)
			s.wantViolated()
		})
	}
}

func TestPollReversals_DiscrepancyIsNotRescheduled(t *testing.T) {
	s, made := newPaidStory(t)
	made.progress, made.amount = gateway.Reversed, made.amount+1
	s.pollReversals(1)
	s.later(time.Second)
	if p := s.wantState(payout.Completed); p.Discrepancy == "" {
		t.Error("another amount came back, and nothing was written down")
	}
	s.now = s.now.Add(10 * time.Minute)
	s.pollReversals(0)
}

func TestPollReversals_OncePerInterval(t *testing.T) {
	s, made := newPaidStory(t)
	s.pollReversals(0)
	made.progress = gateway.Reversed
	s.later(4 * time.Minute)
	s.pollReversals(0) // it is nobody's turn
	s.later(61 * time.Second)
	s.gateway.mood = silent
	if n, err := s.payouts.PollReversals(t.Context()); err == nil || n != 0 {
		t.Errorf("%d payouts were made due, %v; want an error", n, err)
	}
	s.gateway.mood = fair
	s.now = s.now.Add(5 * time.Minute)
	s.pollReversals(1)
}

func TestPollReversals_ReadsAllPages(t *testing.T) {
	s, _ := newPaidStory(t)
	var ids []payout.ID
	for range 5 {
		ids = append(ids, s.request("usr_a", 60_000).ID)
	}
	s.later(windowOver)
	for _, id := range ids {
		made := s.gateway.transfers[string(id)]
		made.progress, made.paid = gateway.Paid, 1
	}
	for range 4 {
		s.later(2 * time.Hour)
	}
	for _, id := range ids {
		s.gateway.transfers[string(id)].progress = gateway.Reversed
	}
	s.pollReversals(5)
	s.later(time.Second)
	for _, id := range ids {
		if state := s.stateOf(id); state != payout.Returned {
			t.Errorf("payout %s is %s", id, state)
		}
	}
}

// A completed payout is polled about seven times, and the last poll finds a return that no list and no notification
// reported.
func TestFinalCheck_Completed_FindsLateReturn(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	made := s.gateway.transfers[string(s.id)]
	made.progress, made.paid = gateway.Paid, 1
	s.later(time.Minute)
	s.wantState(payout.Completed)
	want := time.Date(2026, 11, 6, 0, 0, 0, 0, time.UTC) // the third working day is over
	looks, last := 0, s.payout().DueAt
	for due := last; s.payout().State == payout.Completed; due = s.payout().DueAt {
		last = due
		if looks++; looks > 20 {
			t.Fatal("it is looked at without end")
		}
		if due.Equal(want) {
			made.progress = gateway.Reversed
		}
		s.later(due.Sub(s.now))
	}
	if looks < 6 || looks > 8 {
		t.Errorf("it was looked at %d times, want about seven", looks)
	}
	s.wantState(payout.Returned)
	if !last.Equal(want) {
		t.Errorf("the last look was at %s, want %s", last, want)
	}
	for looks = 0; !s.payout().DueAt.IsZero(); looks++ { // the gateway may pay it once more
		if looks > 8 {
			t.Fatal("it is looked at without end after its return")
		}
		s.later(s.payout().DueAt.Sub(s.now))
	}
	if looks < 4 {
		t.Errorf("after its return it was looked at %d times", looks)
	}
}
