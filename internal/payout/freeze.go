package payout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// What a decision to freeze or to pause may be refused for.
var (
	ErrSellerNotFound = fault.New(fault.NotFound, "seller_not_found", "No user has this id.")
	ErrFrozen         = fault.New(fault.Conflict, "already_frozen", "This seller's payouts are frozen already.")
	ErrNotFrozen      = fault.New(fault.Conflict, "not_frozen", "This seller's payouts are not frozen.")
	// ErrDiscrepancyOpen means that money may have left that the seller has in the balance again.
	ErrDiscrepancyOpen = fault.New(fault.Conflict, "discrepancy_open", "A payout of this seller that was not paid has an open discrepancy. Resolve that first.")
	ErrPaused          = fault.New(fault.Conflict, "already_paused", "Payouts are paused already.")
	ErrNotPaused       = fault.New(fault.Conflict, "not_paused", "Payouts are not paused.")
)

// Freeze stops a seller's payouts until [Service.Unfreeze], by an admin's decision: none can be requested, and none that waits
// is sent. It fails with [ErrSellerNotFound], [ErrFrozen] or a fault that names the note.
func (s *Service) Freeze(ctx context.Context, by decision.By, seller string) error {
	return s.decideStop(ctx, by, decision.FreezePayouts, seller)
}

// Unfreeze ends a freeze; what waited is sent. It fails with [ErrSellerNotFound], [ErrNotFrozen], [ErrDiscrepancyOpen], [decision.ErrOwn] or a fault that
// names the note.
func (s *Service) Unfreeze(ctx context.Context, by decision.By, seller string) error {
	return s.decideStop(ctx, by, decision.UnfreezePayouts, seller)
}

// Pause stops the payouts of all sellers until [Service.Resume], as [Service.Freeze] does for one. It fails with [ErrPaused]
// or a fault that names the note.
func (s *Service) Pause(ctx context.Context, by decision.By) error {
	return s.decideStop(ctx, by, decision.PausePayouts, decision.Platform)
}

// Resume ends a pause; what waited is sent. It fails with [ErrNotPaused] or a fault that names the note.
func (s *Service) Resume(ctx context.Context, by decision.By) error {
	return s.decideStop(ctx, by, decision.ResumePayouts, decision.Platform)
}

// Paused reports whether payouts are paused for everyone. While that can't be told, because the record of it was tampered
// with, nothing is sent either.
func (s *Service) Paused(ctx context.Context) (bool, error) {
	paused, err := s.o.Store.PayoutsPaused(ctx)
	if isTampered(err) {
		return true, nil
	}
	return paused, err
}

// PauseState is whether the payouts of all sellers are paused.
type PauseState struct {
	Paused bool
	// Since, By and Reason are of the decision to pause. They are zero without a pause, and while its record was tampered with.
	// By is as the journal has it: "admin:" and a user's id, or "operator:" and a name.
	Since      time.Time
	By, Reason string
}

// PauseState says whether payouts are paused for everyone, since when, by whom and why.
func (s *Service) PauseState(ctx context.Context) (PauseState, error) {
	paused, err := s.Paused(ctx)
	if !paused || err != nil {
		return PauseState{}, err
	}
	state := PauseState{Paused: true}
	entries, err := s.o.Store.EntriesAbout(ctx, decision.Platform, decision.Platform)
	if isTampered(err) {
		return state, nil
	}
	if err != nil {
		return PauseState{}, err
	}
	for _, e := range entries { // the oldest first
		if e.Type != ledger.PayoutsFrozen {
			continue
		}
		var data struct {
			Note string `json:"note"`
		}
		if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
			return PauseState{}, fmt.Errorf("read entry %d of %s: %w", e.Number, e.Owner, err)
		}
		state.Since, state.By, state.Reason = e.At, e.Actor, data.Note
	}
	return state, nil
}

// WhyStopped says, for the seller, why no payout of theirs may be requested or sent now; "" if they may. A hold after a change
// of the account is another matter.
func (s *Service) WhyStopped(ctx context.Context, seller string) (string, error) {
	why, err := s.whyStopped(ctx, s.o.Store, seller)
	if errors.Is(err, errPauseUnclear) { // nothing is sent either
		return whyPaused, nil
	}
	return why, err
}

// decideStop carries out a decision to freeze or to pause, or to end either, and logs it.
func (s *Service) decideStop(ctx context.Context, by decision.By, action decision.Action, owner string) error {
	made := decision.New(by, action, owner, owner, s.o.Now())
	if err := recordStop(ctx, s.o.Store, s.o.Mails, made); err != nil {
		return err
	}
	s.logDecision(ctx, made)
	if err := sendWaiting(ctx, s.o.Store, made); err != nil { // they are sent by their next step
		s.o.Logger.WarnContext(ctx, "stopped payouts not rescheduled", slog.String("owner", owner), slog.Any("error", err))
	}
	return nil
}

// freezeForTransfer freezes a seller's payouts because a payout whose amount they have again has a transfer all the same, or two: without that, the next
// payout would send the money once more. An admin unfreezes them. Payouts that are frozen stay so. Until the freeze is written, this
// process sends none of the seller's payouts: an attacker who can write to the database could block that write.
func (s *Service) freezeForTransfer(ctx context.Context, p Payout) error {
	by := decision.By{Note: fmt.Sprintf("Payout %s is paid, or may be, beyond what the balance says: see its discrepancy.", p.ID)}
	err := s.stopWhile(p, func() error {
		return recordStop(ctx, s.o.Store, s.o.Mails, decision.New(by, decision.FreezePayouts, p.Seller, p.Seller, s.o.Now()))
	})
	if err == nil {
		s.o.Logger.WarnContext(ctx, "seller's payouts frozen", slog.String("seller", p.Seller), slog.String("payout_id", string(p.ID)))
	}
	if errors.Is(err, ErrFrozen) || errors.Is(err, ErrSellerNotFound) {
		return nil
	}
	return err
}

// stoppedUnwritten is how long a seller's payouts are stopped in memory because what stops them can't be written. The step that failed is tried
// again several times meanwhile.
const stoppedUnwritten = time.Hour

// stopWhile stops a seller's payouts in memory while write records what the gateway reports about one of them. If the write fails because
// the database can't be reached or was tampered with, they stay stopped for an hour.
func (s *Service) stopWhile(p Payout, write func() error) error {
	until := s.o.Now().Add(stoppedUnwritten)
	s.lost.stop(p, until)
	err := write()
	if isWritten(err) {
		until = time.Time{}
	}
	s.lost.stop(p, until) // also if it was not: what write called may have ended this stop with one of its own
	return err
}

// isWritten reports whether a write was carried out, or a rule refused it.
func isWritten(err error) bool {
	_, isDiscrepancy := errors.AsType[discrepancyError](err)
	f, isRefused := errors.AsType[*fault.Error](err)
	return err == nil || isDiscrepancy || isRefused && f.Kind != fault.Unavailable && !isTampered(err)
}

// PauseOrResume is [Service.Pause] or [Service.Resume] for a command, which has no gateways: a running service finds the
// decision in the datastore.
func PauseOrResume(ctx context.Context, store Store, by decision.By, action decision.Action, now time.Time) error {
	made := decision.New(by, action, decision.Platform, decision.Platform, now)
	if err := recordStop(ctx, store, nil, made); err != nil { // nobody is mailed about everyone's
		return err
	}
	return sendWaiting(ctx, store, made)
}

// recordStop freezes or unfreezes the payouts of a journal's owner; the platform's are everyone's. The entry of the decision
// is the fact itself. A seller whose payouts it is about gets a mail. It fails if nothing would change.
func recordStop(ctx context.Context, store Store, mails mail.Queuer, d decision.Decision) error {
	if err := (decision.By{Note: d.Note}).RequireNote(); err != nil {
		return err
	}
	if err := d.CheckNotOwn(); err != nil {
		return err
	}
	if d.Owner != decision.Platform {
		exists, err := store.UserExists(ctx, d.Owner)
		if err != nil {
			return err
		}
		if !exists {
			return ErrSellerNotFound
		}
	}
	return store.InTx(ctx, func(tx Tx) error {
		if d.Owner == decision.Platform {
			if err := tx.LockPause(ctx); err != nil {
				return err
			}
		}
		balance, err := tx.Balance(ctx, d.Owner)
		if err != nil {
			return err
		}
		if balance.Frozen == isStop(d.Action) {
			return already[d.Action]
		}
		if d.Action == decision.UnfreezePayouts {
			if err := checkResolved(ctx, tx, d.Owner); err != nil {
				return err
			}
		}
		if err := ledger.RecordDecision(ctx, tx, d); err != nil || d.Owner == decision.Platform {
			return err
		}
		_, err = mails.Queue(ctx, tx, mail.Mail{User: d.Owner, Data: mail.PayoutsFrozen{At: d.At, Resumed: !isStop(d.Action)}})
		return err
	})
}

// checkResolved fails with [ErrDiscrepancyOpen] if the seller has the amount of a payout again that has a discrepancy: the next payout may send
// its money once more, whatever the freeze was for.
func checkResolved(ctx context.Context, tx Tx, seller string) error {
	id, err := tx.UnpaidWithDiscrepancy(ctx, seller)
	if err == nil && id != "" {
		err = ErrDiscrepancyOpen.WithMessage("The seller has the amount of payout %s again, and it has an open discrepancy: its money may have left. "+
			"Resolve the discrepancy first, then resume payouts.", id)
	}
	return err
}

func isStop(a decision.Action) bool {
	return a == decision.FreezePayouts || a == decision.PausePayouts
}

// already is what a decision fails with that would change nothing.
//
//exhaustive:ignore
var already = map[decision.Action]error{
	decision.FreezePayouts: ErrFrozen, decision.UnfreezePayouts: ErrNotFrozen, decision.PausePayouts: ErrPaused, decision.ResumePayouts: ErrNotPaused,
}

// sendWaiting makes the next step due now of the payouts that waited for a decision to resume them.
func sendWaiting(ctx context.Context, store Store, d decision.Decision) error {
	if isStop(d.Action) {
		return nil
	}
	seller := d.Owner
	if seller == decision.Platform {
		seller = ""
	}
	return store.InTx(context.WithoutCancel(ctx), func(tx Tx) error {
		_, err := tx.RescheduleStopped(ctx, seller, d.At)
		return err
	})
}
