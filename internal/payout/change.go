package payout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/ledger"
)

// errLeave makes change save nothing and return no error: another caller was first, or there is nothing to change.
var errLeave = errors.New("payout: left as it is")

// change loads a payout, calls alter with it, and saves it, all in one transaction. It reports whether it did. alter may
// run more than once. If it returns errLeave, nothing is saved, and change returns false and no error.
func (s *Service) change(ctx context.Context, id ID, alter func(*Payout) error) (bool, error) {
	return s.changeIn(ctx, ledger.Scope{Payout: string(id)}, ledger.ActorSystem, func(_ ChangeTx, p *Payout) error { return alter(p) })
}

// changeFrom is change, but does nothing unless the payout is still in the state from.
func (s *Service) changeFrom(ctx context.Context, id ID, from State, alter func(*Payout)) error {
	_, err := s.change(ctx, id, func(p *Payout) error {
		if p.State != from {
			return errLeave
		}
		alter(p)
		return nil
	})
	return err
}

// changeIn is change for an alter that reads the store, or for an actor other than the system.
func (s *Service) changeIn(ctx context.Context, scope ledger.Scope, actor string, alter func(ChangeTx, *Payout) error) (bool, error) {
	var from, to State
	err := s.o.Store.InGroup(ctx, scope, func(tx ChangeTx) error {
		p, err := tx.PayoutForUpdate(ctx, ID(scope.Payout))
		if err != nil {
			return err
		}
		was := p
		from = p.State
		if err := alter(tx, &p); err != nil {
			return err
		}
		to = p.State
		return s.save(ctx, tx, was, p, actor, s.o.Now())
	})
	if err == nil && from != to {
		s.o.StateChanged(from, to)
	}
	if errors.Is(err, errLeave) {
		return false, nil
	}
	return err == nil, err
}

// save updates the row from was to p, and appends one entry with the changed fields and the money that moves.
// Nothing but save and a repair changes a recorded field of a stored payout. It fails with errLeave when the stored state
// is another.
func (s *Service) save(ctx context.Context, tx ChangeTx, was, p Payout, actor string, now time.Time) error {
	from := was.State
	if from != p.State && !from.canBecome(p.State) {
		return fmt.Errorf("payout %s may not go from %s to %s", p.ID, from, p.State)
	}
	// A change of the state also needs the seller's journal to be complete. A tampered payout may still record a discrepancy
	// or a new poll time, but never a new state or money. If the seller's journal has no entry about the payout, an attacker gave
	// the row to this seller: the row is saved and no entry is appended.
	movement, inJournal := movementInto(from, p), false
	if _, differs := ledger.Differs(was, p); differs {
		var entries []ledger.Entry
		var err error
		if from == p.State {
			entries, err = check(ctx, tx, was)
		} else {
			entries, err = checkToMove(ctx, tx, was)
		}
		if err != nil && (!isTampered(err) || !movement.IsZero() || from != p.State) {
			return err
		}
		inJournal = len(entries) > 0
	}
	updated, err := tx.UpdatePayout(ctx, from, p)
	if err != nil {
		return err
	}
	if !updated {
		return errLeave
	}
	if !inJournal {
		return nil
	}
	data, err := ledger.Patch(was, p)
	if err != nil {
		return err
	}
	_, err = tx.Append(ctx, ledger.Posting{
		Owner: p.Seller, At: now, Type: entryType(was, p), Subject: string(p.ID), Actor: actor, Data: data, Moved: movement,
	})
	if err != nil {
		return fmt.Errorf("payout %s from %s to %s: %w", p.ID, from, p.State, err)
	}
	return nil
}

// entryType says what happened when a payout that was so became p.
func entryType(was, p Payout) ledger.Type {
	switch {
	case was.State != p.State:
		return entryTypeByState[p.State]
	case was.Discrepancy == "" && p.Discrepancy != "":
		return ledger.DiscrepancyFound
	case was.Discrepancy != "" && p.Discrepancy == "":
		return ledger.DiscrepancyResolved
	default:
		return ledger.PayoutUpdated
	}
}

// entryTypeByState names the entry of a payout that comes to a state.
var entryTypeByState = map[State]ledger.Type{
	Waiting: ledger.PayoutRequeued, Submitting: ledger.PayoutSubmitting, Unknown: ledger.PayoutUnknown, ManualReview: ledger.PayoutReview,
	Submitted: ledger.PayoutSubmitted, Completed: ledger.PayoutCompleted, Failed: ledger.PayoutFailed, Returned: ledger.PayoutReturned,
	Cancelled: ledger.PayoutCancelled,
}

// movementInto is the money that moves when p came from another state.
func movementInto(from State, p Payout) ledger.Moved {
	if from == p.State {
		return ledger.Moved{}
	}
	switch p.State {
	case Completed:
		return ledger.SettlePayout(p.Net(), p.Fee)
	case Failed, Cancelled:
		return ledger.ReleasePayout(p.Amount)
	case Returned:
		return ledger.ReturnPayout(p.Net(), p.Fee)
	default:
		return ledger.Moved{}
	}
}

// actor names who changes a payout in the journal: an admin who sells is the seller of their own.
func (c Caller) actor(p Payout) string {
	if c.decidesAbout(p) {
		return ledger.ActorAdmin + c.User
	}
	return cmp.Or(c.IssuerActor, ledger.ActorUser+c.User)
}
