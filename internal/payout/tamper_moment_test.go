package payout_test

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
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
	asked := false
	another.whenFound = func() { asked = true }
	if err := payouts.Step(t.Context(), s.id); err != nil || !asked {
		t.Fatalf("the other gateway was asked: %t, %v", asked, err)
	}
	if another.sent != 0 || len(another.transfers) != 0 {
		t.Errorf("the other gateway was sent it %d times", another.sent)
	}
	s.wantState(payout.Unknown)
}

// TestCancel_AtTheGateway_ReadChangedRow_AsksForItsOwn has the row name another seller's transfer once it was checked.
func TestCancel_AtTheGateway_ReadChangedRow_AsksForItsOwn(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = queueing
	other := s.request("usr_b", 100_000)
	s.later(windowOver)
	seen := s.wantState(payout.Submitted)
	seen.GatewayID = s.gateway.transfers[string(other.ID)].id
	if _, _, err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Error(err)
	}
	if progress := s.gateway.transfers[string(other.ID)].progress; progress != gateway.Queued {
		t.Errorf("the transfer of usr_b is %s", progress)
	}
	s.wantState(payout.Cancelled)
}

// TestResend_MarkHidden_NotSent hides, while it is read, that a payout's money was paid already. In the backup it is being sent;
// it was refused after that, and its money paid out by another payout.
func TestResend_MarkHidden_NotSent(t *testing.T) {
	s := newStory(t)
	saved := s.savedWhileSent(refusing)
	s.request("usr_a", opening)
	s.later(windowOver)
	sent := s.gateway.sent
	s.putBack(t, saved)
	s.reconcileStartup()
	s.now = s.now.Add(lease)
	seen := s.wantState(payout.Submitting)
	if seen.ReasonCode != "possible_duplicate" {
		t.Fatalf("it is marked %q", seen.ReasonCode)
	}
	seen.ReasonCode = ""
	asked := false
	s.gateway.whenFound = func() { asked = true }
	if err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).Step(t.Context(), s.id); err != nil || !asked {
		t.Fatalf("the gateway was asked: %t, %v", asked, err)
	}
	if s.gateway.sent != sent {
		t.Errorf("%d orders were sent, want the %d from before", s.gateway.sent, sent)
	}
}

// TestResend_EntriesDeleted_NotSent deletes all entries about the payout while the gateway is asked: nothing says any more which bank
// account was to be paid.
func TestResend_EntriesDeleted_NotSent(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.later(time.Minute)
	s.gateway.mood = fair
	sent := s.gateway.sent
	asked := false
	s.gateway.whenFound = func() {
		if !asked {
			s.place.ByHand(t, `DELETE FROM entries WHERE subject = '`+string(s.id)+`'`)
		}
		asked = true
	}
	if err := s.payouts.Step(t.Context(), s.id); !asked || !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("the gateway was asked: %t, %v", asked, err)
	}
	if s.gateway.sent != sent {
		t.Errorf("%d orders were sent, want the %d from before", s.gateway.sent, sent)
	}
	s.wantState(payout.Unknown)
}

// TestAskGateway_ReadChangedRow_NotAttached has the row name another gateway, which has a transfer under the same reference.
func TestAskGateway_ReadChangedRow_NotAttached(t *testing.T) {
	s := newStory(t)
	another := s.another()
	s.route(paper, s.gateway, another)
	another.transfers[string(s.id)] = &transfer{id: "x_1", amount: s.payout().Net(), progress: gateway.Paid, made: s.now}
	seen := s.payout()
	seen.Gateway = another.Name()
	asked := false
	another.whenFound = func() { asked = true }
	if _, err := s.newPayoutsOn(t, late{s.db.Payouts(), seen}).AskGateway(t.Context(), ada, s.id); err != nil || !asked {
		t.Fatalf("the other gateway was asked: %t, %v", asked, err)
	}
	if p := s.wantState(payout.Waiting); p.GatewayID != "" {
		t.Errorf("it has the transfer %s", p.GatewayID)
	}
}

// TestMatchTransfer_TamperedPayout_IsNoDecision records what was found, and no decision, because none was carried out.
func TestMatchTransfer_TamperedPayout_IsNoDecision(t *testing.T) {
	s := newReviewStory(t)
	s.put(s.made(gateway.Paid))
	s.place.ByHand(t, `UPDATE payouts SET notes = 'by hand'`)
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout_9"); !errors.Is(err, payout.ErrPayoutTampered) {
		t.Errorf("matched with %v", err)
	}
	s.wantState(payout.ManualReview)
	s.wantDecisions(string(s.id), decision.ReviewPayout)
}

// savedWhileSent sends the payout to a gateway of that mood, and returns the database as it was while that lasted.
func (s *story) savedWhileSent(m mood) (saved *backup) {
	s.Helper()
	s.gateway.mood, s.gateway.whenSent = m, func() { saved = s.save() }
	s.later(windowOver)
	s.gateway.mood, s.gateway.whenSent = fair, nil
	return saved
}

// TestStep_SentAtInTheFuture_IsFrozen has the row say that it will be sent next year: no worker is sending it.
func TestStep_SentAtInTheFuture_IsFrozen(t *testing.T) {
	s := newStory(t)
	saved := s.savedWhileSent(fair)
	s.putBack(t, saved)
	s.reconcileStartup()
	s.place.ByHand(t, `UPDATE payouts SET sent_at = sent_at + 31536000000000`)
	s.now = s.now.Add(lease)
	s.tryStep(s.id)
	if p := s.wantState(payout.Submitting); !p.IsTampered() {
		t.Errorf("it is not frozen: %q", p.Discrepancy)
	}
}

// TestMatchTransfer_MovedMeanwhile_IsNoDecision has a worker send the payout to review while the gateway is asked, and the gateway's
// transfer be another one by then.
func TestMatchTransfer_MovedMeanwhile_IsNoDecision(t *testing.T) {
	s := newUnclearStory(t)
	s.put(s.made(gateway.Paid))
	s.gateway.whenFetched = func() {
		s.sendToReview(t, s.id)
		s.place.ByHand(t, `UPDATE payouts SET notes = 'by hand'`)
	}
	if _, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, "pout_9"); !errors.Is(err, payout.ErrMovedOn) {
		t.Errorf("matched with %v", err)
	}
	s.wantState(payout.ManualReview)
	s.wantDecisions(string(s.id), decision.ReviewPayout)
}

// TestStartup_ImportMarksAKnownPayout_ItsTransferIsRecorded lists a lost payout and one that the backup calls waiting on one page.
// The import of the first changes the second, after the page's payouts were read.
func TestStartup_ImportMarksAKnownPayout_ItsTransferIsRecorded(t *testing.T) {
	s := newStory(t)
	saved := s.save()
	s.later(windowOver)
	s.record(t, sale.NewSale{ID: "lost", Seller: "usr_a", Amount: opening, OccurredAt: s.now, AvailableAt: s.now})
	s.release(t)
	s.request("usr_a", opening)
	s.later(windowOver)
	s.putBack(t, saved)
	s.wantState(payout.Waiting)
	s.reconcileStartup()
	s.wantAvailable(-100_000)
	s.wantState(payout.Submitted)
}
