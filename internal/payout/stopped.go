package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/ledger"
)

// What a seller reads while payouts are frozen or paused. Why an admin decided so is not for them.
const (
	whyFrozen = "Our team has frozen the payouts of this account. Contact support to learn more."
	whyPaused = "Payouts are paused for all sellers at the moment."
	whyLost   = "Payouts of this account wait while our team reviews an earlier one."
)

const (
	// CodeStopped marks a payout that waits because payouts are frozen or paused.
	CodeStopped = "payouts_stopped"
	// stoppedPollWait is how often it is checked whether payouts still are. Resuming does not wait for that.
	stoppedPollWait = 10 * time.Minute
)

// stop is a reason why no payout of a seller is requested or sent until an admin resumes payouts: its code and the sentence.
type stop struct{ code, why string }

// stopsReader is where it is read whether payouts are stopped.
type stopsReader interface {
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	PayoutsPaused(ctx context.Context) (bool, error)
}

// stopsOf lists what stops a seller's payouts. It fails with errPauseUnclear if the record of the pause was changed; what it
// lists holds all the same.
func (s *Service) stopsOf(ctx context.Context, from stopsReader, seller string) (balance ledger.Balance, stops []stop, err error) {
	if balance, err = from.Balance(ctx, seller); err != nil {
		return balance, nil, err
	}
	if balance.Frozen {
		stops = append(stops, stop{BlockedFrozen, whyFrozen})
	}
	if s.hasLost(seller) {
		stops = append(stops, stop{BlockedFrozen, whyLost})
	}
	paused, err := from.PayoutsPaused(ctx)
	if isTampered(err) {
		err = fmt.Errorf("%w: %s", errPauseUnclear, err.Error())
	}
	if err == nil && paused {
		stops = append(stops, stop{BlockedPaused, whyPaused})
	}
	return balance, stops, err
}

// errPauseUnclear means that it can't be told whether payouts are paused. It is no [ledger.ErrTampered], which would be taken
// for the records of the seller or the payout.
var errPauseUnclear = errors.New("the record of whether payouts are paused was tampered with")

// whyStopped is [Service.WhyStopped], as a transaction sees it.
func (s *Service) whyStopped(ctx context.Context, from stopsReader, seller string) (string, error) {
	_, stops, err := s.stopsOf(ctx, from, seller)
	if len(stops) > 0 {
		return stops[0].why, nil
	}
	return "", err
}

// leaveStopped leaves a payout waiting while payouts are frozen or paused, and reports whether it did. It reads only a payout
// that was marked as stopped before: of others, startSubmitting finds out.
func (s *Service) leaveStopped(ctx context.Context, seen Payout) (bool, error) {
	if seen.ReasonCode != CodeStopped {
		return false, nil
	}
	return s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID), ReadsPause: true}, ledger.ActorSystem, func(tx ChangeTx, p *Payout) error {
		why, err := s.whyStopped(ctx, tx, p.Seller)
		if err != nil {
			return err
		}
		if why == "" || p.State != Waiting {
			return errLeave
		}
		s.markStopped(p, why)
		return nil
	})
}

// markStopped leaves a payout waiting, and tells its seller why. A payout that is marked with codePossibleDuplicate stays so,
// because submit must still check whether its money was paid already.
func (s *Service) markStopped(p *Payout, why string) {
	if p.ReasonCode != codePossibleDuplicate {
		p.ReasonCode, p.Reason = CodeStopped, why+" This payout is sent when they are resumed. Until then you can cancel it."
	}
	p.DueAt = s.o.Now().Add(s.o.Jitter(stoppedPollWait))
}

// IsStopped reports whether the payout waits because payouts are frozen or paused. Its reason says so.
func (p Payout) IsStopped() bool { return p.State == Waiting && p.ReasonCode == CodeStopped }

// clearStopped removes the mark of a payout that no longer waits for payouts to be resumed.
func (p *Payout) clearStopped() {
	if p.ReasonCode == CodeStopped {
		p.ReasonCode, p.Reason = "", ""
	}
}
