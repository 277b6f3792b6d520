package payout_test

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/payout"
)

// In these tests a row is changed by hand, read by the service, and put back before the service's transaction.

// TestCancel_ReadChangedRow_Unclear restores a backup that calls a payout waiting which was sent since. The changed row says
// that it was requested after the restore, so that the gateway is not asked.
func TestCancel_ReadChangedRow_Unclear(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.putBack(t, saved)
	seen := s.wantState(payout.Waiting)
	seen.RequestedAt = s.now.Add(time.Second)
	_, _, err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
	if !errors.Is(err, payout.ErrCancelUnclear) {
		t.Errorf("cancelled with %v", err)
	}
	s.wantState(payout.Waiting)
	s.wantAvailable(afterReserve)
}

// TestRefundToBalance_ReadChangedRow_MovedOn has the changed row name another gateway, which knows no such transfer.
func TestRefundToBalance_ReadChangedRow_MovedOn(t *testing.T) {
	s := newReviewStory(t)
	another := s.another()
	s.route(paper, s.gateway, another)
	s.now = s.now.Add(lease + gracePeriod)
	seen := s.wantState(payout.ManualReview)
	seen.Gateway = another.Name()
	_, err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).RefundToBalance(t.Context(), ada, s.id)
	if !errors.Is(err, payout.ErrMovedOn) {
		t.Errorf("refunded with %v", err)
	}
	s.wantState(payout.ManualReview)
	s.wantAvailable(afterReserve)
}

// TestResend_ReadChangedRow_NotSent has the changed row name another gateway, which knows no such transfer.
func TestResend_ReadChangedRow_NotSent(t *testing.T) {
	s := newUnclearStory(t)
	another := s.another()
	s.route(paper, s.gateway, another)
	s.now = s.now.Add(time.Minute)
	seen := s.wantState(payout.Unknown)
	seen.Gateway, seen.Tries = another.Name(), max(seen.Tries, 1)
	payouts := s.newPayoutsOn(t, late{s.db.Payouts(), seen})
	s.place.ByHand(t, `UPDATE payouts SET tries = 1`)
	_ = payouts.Step(t.Context(), s.id)
	if another.sent != 0 || len(another.transfers) != 0 {
		t.Errorf("the other gateway was sent it %d times", another.sent)
	}
	s.wantState(payout.Unknown)
}
