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
	ErrPaused         = fault.New(fault.Conflict, "already_paused", "Payouts are paused already.")
	ErrNotPaused      = fault.New(fault.Conflict, "not_paused", "Payouts are not paused.")
)

// What a seller reads while payouts are frozen or paused. Why an admin decided so is not for them.
const (
	whyFrozen = "Our team has paused the payouts of this account. Contact support to learn more."
	whyPaused = "Payouts are paused for all sellers at the moment."
)

const (
	// codeOnHold marks a payout that waits because payouts are frozen or paused.
	codeOnHold = "payouts_on_hold"
	// holdPollWait is how often it is looked whether payouts still are. Resuming does not wait for that.
	holdPollWait = 10 * time.Minute
)

// Freeze stops a seller's payouts until [Service.Unfreeze], by an admin's decision: none can be requested, and none that waits
// is sent. It fails with [ErrSellerNotFound], [ErrFrozen] or a fault that names the note.
func (s *Service) Freeze(ctx context.Context, by decision.By, seller string) error {
	return s.decideHold(ctx, by, decision.FreezePayouts, seller)
}

// Unfreeze ends a freeze; what waited is sent. It fails with [ErrSellerNotFound], [ErrNotFrozen] or a fault that names the note.
func (s *Service) Unfreeze(ctx context.Context, by decision.By, seller string) error {
	return s.decideHold(ctx, by, decision.UnfreezePayouts, seller)
}

// Pause stops the payouts of all sellers until [Service.Resume], as [Service.Freeze] does for one. It fails with [ErrPaused]
// or a fault that names the note.
func (s *Service) Pause(ctx context.Context, by decision.By) error {
	return s.decideHold(ctx, by, decision.PausePayouts, decision.Platform)
}

// Resume ends a pause; what waited is sent. It fails with [ErrNotPaused] or a fault that names the note.
func (s *Service) Resume(ctx context.Context, by decision.By) error {
	return s.decideHold(ctx, by, decision.ResumePayouts, decision.Platform)
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

// errPauseUnclear means that it can't be told whether payouts are paused. It is no [ledger.ErrTampered], which would be taken
// for the records of the seller or the payout.
var errPauseUnclear = errors.New("the record of whether payouts are paused was tampered with")

// WhyStopped says, for the seller, why no payout of theirs may be requested or sent now; "" if they may. A hold after a change
// of the account is another matter.
func (s *Service) WhyStopped(ctx context.Context, seller string) (string, error) {
	why, err := whyStopped(ctx, s.o.Store, seller)
	if errors.Is(err, errPauseUnclear) { // nothing is sent either
		return whyPaused, nil
	}
	return why, err
}

// decideHold carries out a decision to freeze, to pause or to end either, and logs it.
func (s *Service) decideHold(ctx context.Context, by decision.By, action decision.Action, owner string) error {
	made := decision.New(by, action, owner, owner, s.o.Now())
	if err := recordHold(ctx, s.o.Store, s.o.Mails, made); err != nil {
		return err
	}
	s.logDecision(ctx, made)
	if err := sendWaiting(ctx, s.o.Store, made); err != nil { // they are sent at their next look
		s.o.Logger.WarnContext(ctx, "payouts on hold not rescheduled", slog.String("owner", owner), slog.Any("error", err))
	}
	return nil
}

// PauseOrResume is [Service.Pause] or [Service.Resume] for a command, which has no gateways: a running service finds the
// decision in the datastore.
func PauseOrResume(ctx context.Context, store Store, by decision.By, action decision.Action, now time.Time) error {
	made := decision.New(by, action, decision.Platform, decision.Platform, now)
	if err := recordHold(ctx, store, nil, made); err != nil { // nobody is mailed about everyone's
		return err
	}
	return sendWaiting(ctx, store, made)
}

// recordHold freezes or unfreezes the payouts of a journal's owner; the platform's are everyone's. The entry of the decision
// is the fact itself. A seller whose payouts it is about gets a mail. It fails if nothing would change.
func recordHold(ctx context.Context, store Store, mails Mails, d decision.Decision) error {
	if err := (decision.By{Note: d.Note}).RequireNote(); err != nil {
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
		if balance.Frozen == stops(d.Action) {
			return already[d.Action]
		}
		if err := tx.RecordDecision(ctx, d); err != nil || d.Owner == decision.Platform {
			return err
		}
		_, err = mails.Queue(ctx, tx, mail.Mail{User: d.Owner, Data: mail.PayoutsFrozen{At: d.At, Resumed: !stops(d.Action)}})
		return err
	})
}

func stops(a decision.Action) bool {
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
	if stops(d.Action) {
		return nil
	}
	seller := d.Owner
	if seller == decision.Platform {
		seller = ""
	}
	return store.InTx(context.WithoutCancel(ctx), func(tx Tx) error {
		_, err := tx.RescheduleOnHold(ctx, seller, d.At)
		return err
	})
}

// stopsReader is where it is read whether payouts are stopped.
type stopsReader interface {
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	PayoutsPaused(ctx context.Context) (bool, error)
}

// whyStopped is [Service.WhyStopped], as a transaction sees it.
func whyStopped(ctx context.Context, from stopsReader, seller string) (string, error) {
	balance, err := from.Balance(ctx, seller)
	if err != nil {
		return "", err
	}
	if balance.Frozen {
		return whyFrozen, nil
	}
	paused, err := from.PayoutsPaused(ctx)
	if isTampered(err) {
		return "", fmt.Errorf("%w: %s", errPauseUnclear, err.Error())
	}
	if err != nil || !paused {
		return "", err
	}
	return whyPaused, nil
}

// mayRequest fails with [ErrOnHold] if the seller can't request a payout at now.
func (s *Service) mayRequest(ctx context.Context, tx RequestTx, seller string, now time.Time) error {
	_, list, err := s.stops(ctx, tx, seller, now)
	if err == nil && len(list) > 0 {
		err = list[0].Refusal
	}
	return err
}

// stopOnHold leaves a payout waiting while payouts are frozen or paused, and reports whether it did. It looks only at a
// payout that was found on hold before: of others, the claim finds out.
func (s *Service) stopOnHold(ctx context.Context, seen Payout) (bool, error) {
	if seen.ReasonCode != codeOnHold {
		return false, nil
	}
	return s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID), Pause: true}, actorSystem, func(tx ChangeTx, p *Payout) error {
		why, err := whyStopped(ctx, tx, p.Seller)
		if err != nil {
			return err
		}
		if why == "" || p.State != Waiting {
			return errRaced
		}
		s.putOnHold(p, why)
		return nil
	})
}

// putOnHold leaves a payout waiting, and tells its seller why. That its money may have been paid already, which it is to be
// failed for, is not forgotten.
func (s *Service) putOnHold(p *Payout, why string) {
	if p.ReasonCode != codeNegativeBalance {
		p.ReasonCode, p.Reason = codeOnHold, why+" This payout is sent when they are resumed. Until then you can cancel it."
	}
	p.DueAt = s.o.Now().Add(s.jitter(holdPollWait))
}

// OnHold reports whether the payout waits because payouts are frozen or paused. Its reason says so.
func (p Payout) OnHold() bool { return p.State == Waiting && p.ReasonCode == codeOnHold }

// offHold takes note that a payout no longer waits for payouts to be resumed.
func (p *Payout) offHold() {
	if p.ReasonCode == codeOnHold {
		p.ReasonCode, p.Reason = "", ""
	}
}
