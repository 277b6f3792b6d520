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
	// CodeStopped marks a payout that waits because payouts are frozen or paused.
	CodeStopped = "payouts_stopped"
	// stoppedPollWait is how often it is checked whether payouts still are. Resuming does not wait for that.
	stoppedPollWait = 10 * time.Minute
)

// Freeze stops a seller's payouts until [Service.Unfreeze], by an admin's decision: none can be requested, and none that waits
// is sent. It fails with [ErrSellerNotFound], [ErrFrozen] or a fault that names the note.
func (s *Service) Freeze(ctx context.Context, by decision.By, seller string) error {
	return s.decideStop(ctx, by, decision.FreezePayouts, seller)
}

// Unfreeze ends a freeze; what waited is sent. It fails with [ErrSellerNotFound], [ErrNotFrozen] or a fault that names the note.
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
func recordStop(ctx context.Context, store Store, mails Mails, d decision.Decision) error {
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
		if balance.Frozen == isStop(d.Action) {
			return already[d.Action]
		}
		if err := tx.RecordDecision(ctx, d); err != nil || d.Owner == decision.Platform {
			return err
		}
		_, err = mails.Queue(ctx, tx, mail.Mail{User: d.Owner, Data: mail.PayoutsFrozen{At: d.At, Resumed: !isStop(d.Action)}})
		return err
	})
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

// whyStopped is [Service.WhyStopped], as a transaction sees it.
func whyStopped(ctx context.Context, from stopsReader, seller string) (string, error) {
	_, stops, err := stopsOf(ctx, from, seller)
	if len(stops) > 0 {
		return stops[0].why, nil
	}
	return "", err
}

// stop is a reason why no payout of a seller is requested or sent until an admin resumes payouts: its code and the sentence.
type stop struct{ code, why string }

// stopsReader is where it is read whether payouts are stopped.
type stopsReader interface {
	Balance(ctx context.Context, owner string) (ledger.Balance, error)
	PayoutsPaused(ctx context.Context) (bool, error)
}

// stopsOf lists what stops a seller's payouts. It fails with errPauseUnclear if the record of the pause was changed; what it
// lists holds all the same.
func stopsOf(ctx context.Context, from stopsReader, seller string) (balance ledger.Balance, stops []stop, err error) {
	if balance, err = from.Balance(ctx, seller); err != nil {
		return balance, nil, err
	}
	if balance.Frozen {
		stops = append(stops, stop{BlockedFrozen, whyFrozen})
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

// leaveStopped leaves a payout waiting while payouts are frozen or paused, and reports whether it did. It reads only a payout
// that was marked as stopped before: of others, startSubmitting finds out.
func (s *Service) leaveStopped(ctx context.Context, seen Payout) (bool, error) {
	if seen.ReasonCode != CodeStopped {
		return false, nil
	}
	return s.changeIn(ctx, ledger.Scope{Payout: string(seen.ID), Pause: true}, ledger.ActorSystem, func(tx ChangeTx, p *Payout) error {
		why, err := whyStopped(ctx, tx, p.Seller)
		if err != nil {
			return err
		}
		if why == "" || p.State != Waiting {
			return errRaced
		}
		s.markStopped(p, why)
		return nil
	})
}

// markStopped leaves a payout waiting, and tells its seller why. A payout that is marked with codePaidBefore stays so,
// because submit must still check whether its money was paid already.
func (s *Service) markStopped(p *Payout, why string) {
	if p.ReasonCode != codePaidBefore {
		p.ReasonCode, p.Reason = CodeStopped, why+" This payout is sent when they are resumed. Until then you can cancel it."
	}
	p.DueAt = s.o.Now().Add(s.jitter(stoppedPollWait))
}

// IsStopped reports whether the payout waits because payouts are frozen or paused. Its reason says so.
func (p Payout) IsStopped() bool { return p.State == Waiting && p.ReasonCode == CodeStopped }

// clearStopped removes the mark of a payout that no longer waits for payouts to be resumed.
func (p *Payout) clearStopped() {
	if p.ReasonCode == CodeStopped {
		p.ReasonCode, p.Reason = "", ""
	}
}
