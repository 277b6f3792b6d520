package payout_test

// What the gateway tells of a payout that has ended unpaid: its seller has the amount again, so money that leaves for it now is paid twice.

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// failBesideAnother has the payout refused, and the gateway have a transfer of another amount that failed too. It returns the next payout, which waits.
func (s *story) failBesideAnother() payout.Payout {
	s.Helper()
	next := s.failThenRequest()
	s.put(s.made(gateway.Failed))
	s.gateway.transfers[string(s.id)].amount++
	return next
}

// A transfer of another amount has failed, which stops nobody. Then it is paid: the words are the same, and the seller's payouts are frozen.
func TestAfterEnd_OtherTransferFailedThenPaid_Frozen(t *testing.T) {
	s := newStory(t)
	next := s.failBesideAnother()
	s.notification("event-1")
	s.later(time.Second)
	if p := s.wantState(payout.Failed); p.Discrepancy == "" {
		t.Fatal("nothing was written down")
	}
	if len(s.decisions("usr_a")) != 0 {
		t.Fatal("frozen by a failed transfer")
	}
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.notification("event-2")
	s.later(time.Second)
	s.later(windowOver)
	if state := s.stateOf(next.ID); state != payout.Waiting {
		t.Errorf("the transfer is paid, and the next payout is %s", state)
	}
	s.wantOnHold("usr_a")
}

// The same, after an admin has resolved what was harmless.
func TestAfterEnd_OtherTransferResolvedThenPaid_Frozen(t *testing.T) {
	s := newStory(t)
	s.failBesideAnother()
	s.notification("event-1")
	s.later(time.Second)
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, s.payout().Discrepancy); err != nil {
		t.Fatal(err)
	}
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.notification("event-2")
	s.later(time.Second)
	s.wantOnHold("usr_a")
}

// An admin refunded a payout because the gateway had no transfer. It has one after all, in a status that nobody knows.
func TestAfterEnd_RefundedThenUnrecognised_Frozen(t *testing.T) {
	s := newReviewStory(t)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.wantState(payout.Failed)
	s.put(s.made(gateway.Unrecognised))
	for range 48 {
		s.later(6 * time.Hour)
	}
	p := s.payout()
	if p.Discrepancy == "" {
		t.Error("the gateway has a transfer of a payout that was refunded because it had none, and nothing is written down")
	}
	s.wantOnHold("usr_a")
}

// Two transfers of a payout in review freeze its seller's payouts, and an admin resumes them. The payout fails, and the gateway has two again.
func TestAfterEnd_TwoTransfersAgain_Frozen(t *testing.T) {
	s := newReviewStory(t)
	s.put(s.made(gateway.InProgress))
	s.gateway.twofold = true
	s.notification("event-1")
	s.later(time.Hour)
	s.wantOnHold("usr_a")
	if err := s.payouts.Unfreeze(t.Context(), ada, "usr_a"); err != nil {
		t.Fatal(err)
	}
	s.gateway.twofold = false
	s.gateway.transfers[string(s.id)].progress = gateway.Failed
	s.notification("event-2")
	s.later(7 * time.Hour)
	s.wantState(payout.Failed)
	s.wantAvailable(opening)
	s.gateway.twofold = true
	s.notification("event-3")
	s.later(time.Hour)
	s.wantOnHold("usr_a")
}

// A gateway lists its transfers and finds none by our reference. A start takes the list's word of a payout that an admin has refunded.
func TestAfterEnd_ListedWithoutLookup_Frozen(t *testing.T) {
	s := newStoryAt(t, func(c *gateway.Capabilities) { c.Lookup = false })
	s.gateway.mood = lostRequests
	s.later(windowOver)
	for range 3 {
		s.later(7 * 24 * time.Hour)
	}
	s.wantState(payout.ManualReview)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.gateway.mood = fair
	s.put(s.made(gateway.Paid))
	s.payouts = s.newPayouts(t)
	s.reconcileStartup()
	s.later(time.Second)
	s.wantOnHold("usr_a")
}

// The gateway has paid a payout after all, and an admin took the amount from the balance. Then the bank returns the money: it is listed for an admin, once,
// since it is the seller's again. Nobody's payouts are frozen for that.
func TestAfterEnd_PaidAfterAllThenReversed_Told(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = refusing
	s.later(windowOver)
	s.gateway.mood = fair
	s.wantState(payout.Failed)
	s.put(s.made(gateway.Paid))
	s.notification("event-1")
	s.later(time.Second)
	if s.payout().Discrepancy == "" {
		t.Fatal("no discrepancy")
	}
	if _, _, err := s.sales.Adjust(t.Context(), sale.NewAdjustment{ID: "a1", Seller: "usr_a", Amount: -100_000, Reason: "Payout was paid after all", By: ada}); err != nil {
		t.Fatal(err)
	}
	s.resolveAndUnfreeze()
	s.gateway.transfers[string(s.id)].progress = gateway.Reversed
	s.notification("event-2")
	s.later(time.Second)
	p := s.payout()
	if !strings.Contains(p.Discrepancy, "was paid after the payout was failed, and is reversed now") {
		t.Fatalf("the money of a payout came back that an admin had taken from the balance, and the discrepancy is %q", p.Discrepancy)
	}
	s.wantAvailable(opening - 100_000)
	if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 100_000}); err != nil {
		t.Errorf("payouts are stopped: %v", err)
	}
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, p.Discrepancy); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		s.later(24 * time.Hour)
	}
	if p := s.payout(); p.Discrepancy != "" {
		t.Errorf("it is listed again: %q", p.Discrepancy)
	}
}

// A discrepancy that froze nobody does not end the final checks.
func TestAfterEnd_OtherTransferFailed_StillChecked(t *testing.T) {
	s := newStory(t)
	s.failBesideAnother()
	for range 3 {
		s.later(time.Hour)
	}
	if p := s.wantState(payout.Failed); p.Discrepancy == "" {
		t.Fatal("nothing was written down")
	}
	s.gateway.transfers[string(s.id)].amount--
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	for range 40 {
		s.later(6 * time.Hour)
	}
	s.wantOnHold("usr_a")
}

// A notification that comes just before an admin resolves a discrepancy is followed, also when the final checks are over.
func TestAfterEnd_NotificationBesideResolve_Followed(t *testing.T) {
	s := newStory(t)
	s.failBesideAnother()
	s.notification("event-1")
	s.later(time.Second)
	s.now = s.now.AddDate(0, 0, 60)
	s.gateway.transfers[string(s.id)].amount--
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.notification("event-2")
	if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, s.payout().Discrepancy); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		s.later(time.Hour)
	}
	s.wantOnHold("usr_a")
}

// A payout was cancelled before it was sent, and the gateway has a transfer of it in a status that nobody knows.
func TestAfterEnd_CancelledThenUnrecognised_Told(t *testing.T) {
	s := newStory(t)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Fatal(err)
	}
	s.put(s.made(gateway.Unrecognised))
	s.notification("event-1")
	s.later(time.Second)
	p := s.payout()
	if p.Discrepancy == "" {
		t.Errorf("the gateway has a transfer of a payout that was cancelled unsent: %+v", p.Progress)
	}
}

// A payout was cancelled at the gateway, which then lists its transfer as returned: neither side has the money of the other.
func TestAfterEnd_CancelledThenReversed_Fits(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	s.later(windowOver)
	s.wantState(payout.Submitted)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Fatal(err)
	}
	s.wantState(payout.Cancelled)
	s.gateway.transfers[string(s.id)].progress = gateway.Reversed
	for range 3 {
		s.now = s.now.Add(6 * time.Minute)
		if _, err := s.payouts.PollReversals(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.later(time.Second)
		if d := s.payout().Discrepancy; d != "" {
			t.Fatalf("it is a discrepancy: %s", d)
		}
	}
}

// The row was changed by hand, so that one note about tampering stands for both reports.
func TestAfterEnd_TamperedOtherTransferFailedThenPaid_Frozen(t *testing.T) {
	s := newStory(t)
	s.failThenRequest()
	s.place.ByHand(t, `UPDATE payouts SET notes = 'gift' WHERE id = '`+string(s.id)+`'`)
	s.put(s.made(gateway.Failed))
	s.gateway.transfers[string(s.id)].amount++
	s.notification("event-1")
	s.later(time.Second)
	made := s.made(gateway.Paid)
	made.id = s.gateway.transfers[string(s.id)].id
	s.put(made)
	s.notification("event-2")
	s.later(time.Second)
	s.wantOnHold("usr_a")
}

// A gateway that had a transfer knows it no more. An admin, who has the gateway's word, sends the payout to review, and refunds it.
func TestForgotten_ReviewedAndRefunded(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	if _, err := s.payouts.SendToReview(t.Context(), ada, s.id); !errors.Is(err, payout.ErrMovedOn) {
		t.Fatalf("a payout that the gateway knows is sent to review: %v", err)
	}
	s.gateway.forgetful = true
	for range 200 {
		s.later(2 * time.Hour)
	}
	p := s.wantState(payout.Submitted)
	if options, err := s.payouts.Options(t.Context(), p); err != nil || !slices.ContainsFunc(options, func(o payout.Option) bool { return o.Action == decision.ReviewPayout }) {
		t.Fatalf("offered are %+v, %v", options, err)
	}
	if _, err := s.payouts.SendToReview(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.wantState(payout.ManualReview)
	s.now = s.now.Add(lease + gracePeriod)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	s.wantState(payout.Failed)
	s.wantAvailable(opening)

	s.gateway.forgetful = false
	s.gateway.transfers[string(s.id)].progress = gateway.Paid
	s.later(25 * time.Hour)
	s.wantOnHold("usr_a")
}
