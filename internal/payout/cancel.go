package payout

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// Cancel cancels a payout that waits, or that the gateway agrees to cancel, and releases its reservation. An admin's
// cancellation is recorded as a decision. It reports whether the answer is an earlier one under the same key. It fails with
// [ErrNotFound], [ErrNotCancellable], [ErrCancelledOften] or [ErrPayoutTampered], or with [ledger.ErrTampered] where the payout is as the service wrote it
// and other records of its seller are not.
func (s *Service) Cancel(ctx context.Context, c Caller, id ID, key string) (Payout, bool, error) {
	p, replayed, err := s.cancel(ctx, c, id, key)
	if errors.Is(err, ErrPayoutTampered) { // its next step may be far off
		err = errors.Join(err, s.recordDiscrepancy(ctx, id, errors.New(TamperedNote)))
	}
	return p, replayed, err
}

func (s *Service) cancel(ctx context.Context, c Caller, id ID, key string) (Payout, bool, error) {
	asked, err := s.Payout(ctx, c, id)
	made := decision.New(decision.By{Admin: c.User, Note: c.Note}, decision.CancelPayout, asked.Seller, string(id), s.o.Now())
	wasFound := false
	if err == nil { // it waits only if the gateway does not have it
		if err := s.countGatewayCall(ctx, c, asked); err != nil {
			return Payout{}, false, err
		}
		wasFound, err = s.findToCancel(ctx, asked)
		if errors.Is(err, gateway.ErrNotConfigured) && c.decidesAbout(asked) && asked.SentAt.IsZero() && !s.o.Restored {
			err = nil // the gateway is gone, and an admin who is not the seller has looked in its own records
		}
		if isTampered(err) { // the gateway has it, and the row or the seller's journal does not say so
			return Payout{}, false, err
		}
		if err != nil {
			return Payout{}, false, ErrCancelUnclear.Because(err)
		}
		if wait := s.restartGrace(asked); wait > 0 && !wasFound {
			return Payout{}, false, ErrCancelUnclear.WithMessage("This payout may have been sent just before the service was started again. "+
				"If it was not, it can be cancelled from %s.", s.o.Now().Add(wait).In(s.o.Zone).Format("15:04:05")).After(wait)
		}
	} else if !errors.Is(err, ErrNotFound) { // that is answered below, where the key is checked first
		return Payout{}, false, err
	}
	call := repeatable{
		user: c.User, key: key, fingerprint: FingerprintCancel + string(id), payout: id, made: func(p Payout) bool { return p.ID == id && c.sees(p) },
	}
	var atGateway Payout // as it was checked
	cancelled := false   // before this call
	p, replayed, err := s.idempotent(ctx, ledger.Scope{Payout: string(id)}, s.o.Now(), call, func(tx ChangeTx) (Payout, error) {
		p, err := s.toCancel(ctx, tx, c, id, key)
		if cancelled = p.State == Cancelled; err != nil {
			return p, err
		}
		if cancelled {
			return p, s.recordCancel(ctx, tx, c, p, made)
		}
		if p.State == Submitted {
			atGateway = p
			return Payout{}, errAskGateway
		}
		if wasFound { // and the gateway's report was not applied, because the row changed meanwhile
			return Payout{}, ErrCancelUnclear
		}
		if _, differs := ledger.Differs(asked, p); differs { // the look-up above was for an older row
			return Payout{}, ErrCancelUnclear
		}
		return s.cancelIn(ctx, tx, c, p, made)
	})
	if errors.Is(err, errAskGateway) {
		p, replayed, err = s.cancelAtGateway(ctx, c, atGateway, call, made)
	} else if err == nil && !replayed && !cancelled {
		s.o.StateChanged(Waiting, Cancelled)
	}
	if err == nil && !replayed && c.decidesAbout(p) {
		s.logDecision(ctx, made)
	}
	return p, replayed, err
}

// ErrCancelledOften asks a caller to wait: their cancellations take turns at the gateway from everyone's payouts.
var ErrCancelledOften = fault.New(fault.TooMany, "too_many_attempts", "You tried to cancel payouts too often just now. Nothing was changed. Try again in a moment.")

// A caller may ask the gateway for so many cancellations at once, and then for one more each ten seconds. Together these are longer than
// clocks of instances differ.
const (
	cancelsAtOnce = 60
	cancelCost    = 10 * time.Second
)

// countGatewayCall counts a seller's cancellation if it asks the gateway, and may do so again and again. One of an overdue payout asks once, in
// place of the payout's order. It fails with [ErrCancelledOften].
func (s *Service) countGatewayCall(ctx context.Context, c Caller, p Payout) error {
	if asks := s.mustLookUp(p) || p.State == Submitted && s.Cancellable(p); !asks || c.Admin {
		return nil
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		_, counted, err := tx.TakeThrottle(ctx, "cancel|"+c.User, s.o.Now(), cancelCost, cancelsAtOnce*cancelCost)
		if err == nil && !counted {
			err = ErrCancelledOften.After(cancelCost)
		}
		return err
	})
}

// errAskGateway means that the gateway has the payout, and may still let go of it.
var errAskGateway = errors.New("payout: the gateway must be asked")

// Cancellable reports whether a cancellation may still succeed: the payout is ours alone, or the gateway
// can cancel and said that it can let go of it. A list does not tell the second.
func (s *Service) Cancellable(p Payout) bool {
	if p.State != Submitted || p.Progress != gateway.Queued {
		return p.State == Waiting
	}
	g, err := s.gatewayOf(p)
	return err == nil && g.Capabilities().Cancel
}

// toCancel finds a payout that may yet be cancelled, or whose cancellation was not answered.
func (s *Service) toCancel(ctx context.Context, tx ChangeTx, c Caller, id ID, key string) (Payout, error) {
	p, err := tx.PayoutForUpdate(ctx, id)
	if err != nil {
		return Payout{}, err
	}
	if !c.sees(p) {
		return Payout{}, ErrNotFound
	}
	if s.Cancellable(p) {
		_, err := check(ctx, tx, p) // the gateway is not even asked of one that was tampered with
		return p, err
	}
	if unanswered, err := isUnanswered(ctx, tx, p, key); err != nil || unanswered {
		return p, err
	}
	if p.Status() == StatusProcessing {
		return Payout{}, ErrNotCancellable.WithMessage("This payout can no longer be cancelled: %s.", whyNotCancellable(p.State))
	}
	return Payout{}, ErrNotCancellable.WithMessage("This payout can no longer be cancelled: it is %s.", p.Status())
}

// whyNotCancellable says what happens to a payout that is under way.
func whyNotCancellable(s State) string {
	switch s {
	case Unknown:
		return "it was sent, and whether the bank has it is not known yet. It is being looked up"
	case ManualReview:
		return "it was sent, and its outcome is not known. Our team is reviewing it"
	case Submitting:
		return "it is being sent to the bank"
	default:
		return "the bank is already working on it"
	}
}

// isUnanswered reports whether the gateway cancelled a payout and no caller has the answer: the call that asked the gateway
// ended before it was recorded, and a later poll found it. A repeat with a key gets the answer of that call. An admin who had it is
// on record.
func isUnanswered(ctx context.Context, tx ChangeTx, p Payout, key string) (bool, error) {
	if p.State != Cancelled || key == "" {
		return false, nil
	}
	entries, err := check(ctx, tx, p)
	if isTampered(err) {
		return false, nil
	}
	byGateway := func(e ledger.Entry) bool { return e.Type == ledger.PayoutCancelled && e.Actor == ledger.ActorGateway }
	return slices.ContainsFunc(entries, byGateway) && !slices.ContainsFunc(entries, isDecision(decision.CancelPayout)), err
}

// isDecision is a condition that an entry is an admin's decision of that kind.
func isDecision(action decision.Action) func(ledger.Entry) bool {
	return func(e ledger.Entry) bool {
		var made struct {
			Action decision.Action `json:"action"`
		}
		return e.Type == ledger.AdminDecided && json.Unmarshal([]byte(e.Data), &made) == nil && made.Action == action
	}
}

func (s *Service) cancelIn(ctx context.Context, tx ChangeTx, c Caller, p Payout, made decision.Decision) (Payout, error) {
	was, now := p, s.o.Now()
	s.finish(&p, Cancelled)
	err := s.save(ctx, tx, was, p, c.actor(p), now)
	if err == nil {
		err = s.recordCancel(ctx, tx, c, p, made)
	}
	return p, err
}

// decidesAbout reports whether what the caller does to a payout is an admin's decision: it is another user's.
func (c Caller) decidesAbout(p Payout) bool { return c.Admin && c.User != p.Seller }

// recordCancel records the decision of an admin who cancels another user's payout.
func (s *Service) recordCancel(ctx context.Context, tx ChangeTx, c Caller, p Payout, made decision.Decision) error {
	if !c.decidesAbout(p) {
		return nil
	}
	made.Owner = p.Seller // the row that was read before may have been changed outside the service
	return ledger.RecordDecision(ctx, tx, made)
}

// cancelAtGateway asks the gateway to cancel a payout, as it was checked, and records what the gateway reports. Of several calls at
// once, the one that cancelled the payout succeeds. Its idempotency key is stored in the same transaction, so that a repeat gets the
// same answer. It locks the payout before the key, see ARCHITECTURE.md.
func (s *Service) cancelAtGateway(ctx context.Context, c Caller, p Payout, call repeatable, made decision.Decision) (Payout, bool, error) {
	g, err := s.gatewayOf(p)
	if err != nil {
		return Payout{}, false, ErrCancelUnclear.Because(err)
	}
	report, err := g.Cancel(ctx, p.GatewayID)
	if err != nil {
		return Payout{}, false, ErrCancelUnclear.Because(err)
	}
	scope := ledger.Scope{Owner: call.user, Key: call.key, Payout: string(p.ID)}
	var cancelled Payout
	answered := false // by this call
	moved, err := s.applyReportIf(ctx, scope, p, report, c.actor(p), func(was Payout) (alsoRecord, error) {
		answered = false
		if was.State != Submitted || report.Progress != gateway.Cancelled {
			return nil, nil
		}
		return func(tx ChangeTx, is Payout) (err error) {
			cancelled, answered = is, true
			if call.key != "" {
				answered, err = tx.SaveIdempotency(ctx, call.user, call.key, Idempotency{Fingerprint: call.fingerprint, Payout: call.payout}, s.o.Now())
			}
			if err == nil {
				err = s.recordCancel(ctx, tx, c, is, made)
			}
			return err
		}, nil
	})
	if _, isDiscrepancy := errors.AsType[discrepancyError](err); isDiscrepancy {
		return Payout{}, false, ErrCancelUnclear.Because(err)
	}
	if err != nil {
		return Payout{}, false, err
	}
	if moved && answered {
		return cancelled, false, nil
	}
	return s.idempotent(ctx, scope, s.o.Now(), call, func(tx ChangeTx) (Payout, error) {
		p, err := tx.PayoutForUpdate(ctx, p.ID)
		if err != nil {
			return p, err
		}
		unanswered, err := isUnanswered(ctx, tx, p, call.key)
		if err == nil && !unanswered {
			err = ErrNotCancellable
		}
		if err != nil {
			return Payout{}, err
		}
		return p, s.recordCancel(ctx, tx, c, p, made)
	})
}
