package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// lease is how long a step may take before another worker may take it up. It is longer than
// the loop lets a step last.
const lease = 40 * time.Second

// How long a verification is pursued by itself before a person has to look.
const (
	// maxTries is how often a verifier may fail; with the waits between, that is most of a day.
	maxTries  = 12
	retryBase = 10 * time.Second
	maxRetry  = 3 * time.Hour
	// timeout is how long a verifier may take. Banks need three working days at worst.
	timeout  = 7 * 24 * time.Hour
	pollBase = 2 * time.Second
	maxPoll  = time.Hour
)

// Sentences for the seller.
const (
	reasonManual     = "Our team checks new bank accounts by hand; there is nothing for you to do."
	reasonRetrying   = "The verification could not be finished yet. It is tried again by itself; there is nothing for you to do."
	reasonUnfinished = "The verification could not be finished. Our team is looking into it; there is nothing for you to do."
	reasonCompare    = "The name that the bank has is not quite the account holder's. Our team is comparing them; there is nothing for you to do."
	reasonOtherName  = "The bank has this account under another name. Register it again with the holder's name as the bank has it, or register another account."
	reasonInvalid    = "The bank knows no such account. Check the number and the IFSC, and register it again."
)

// ErrDecided means that an account is verified, or was replaced, and so can't be decided on.
var ErrDecided = fault.New(fault.Refused, "bank_account_decided",
	"This bank account is already verified, or was replaced by another. Look at it again.")

// ErrAccountTampered keeps admins from accepting an account that the service did not write.
var ErrAccountTampered = fault.New(fault.Conflict, "bank_account_tampered",
	"This bank account was changed outside the service, so it can't be decided on. Have the seller register it again.")

// LeaseDue leases up to limit accounts whose verification is due. A worker that dies leaves its lease
// to run out, and the step is taken again.
func (s *Service) LeaseDue(ctx context.Context, limit int) ([]ID, error) {
	var ids []ID
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		now := s.o.Now()
		ids, err = tx.LeaseDueVerifications(ctx, now, now.Add(lease), limit)
		return err
	})
	return ids, err
}

// Notify makes the next step of a verification due now. It is for events from outside, which are not
// believed; one about no verification under way is ignored.
func (s *Service) Notify(ctx context.Context, verificationID string) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		_, err := tx.RescheduleVerification(ctx, verificationID, s.o.Now())
		return err
	})
}

// Step does what is next in an account's verification. It asks outside of any transaction, and
// records what it learnt only if nobody decided meanwhile.
func (s *Service) Step(ctx context.Context, id ID) error {
	seen, _, err := s.trusted(ctx, id)
	if err != nil || seen.Status != StatusUnverified {
		return err
	}
	v, err := s.ask(ctx, &seen)
	switch refusal := fault.From(err); {
	case err == nil:
	case refusal != nil && refusal.Kind == fault.Refused:
		v = gateway.Verification{Outcome: gateway.OutcomeInvalid, NameScore: noScore, Reason: refusal.Message}
		err = nil
	case ctx.Err() != nil: // we are stopping, and nothing was learnt
		return err
	default:
		v = gateway.Verification{ID: seen.VerificationID, Outcome: gateway.OutcomeFault, NameScore: noScore}
		err = fmt.Errorf("verify bank account %s: %w", id, err)
	}
	after := s.after(seen, v)
	_, saveErr := s.save(context.WithoutCancel(ctx), seen, &after, nil)
	return errors.Join(err, saveErr)
}

// verifier is the gateway that verifies an account: the one that has it, or the current one if none has it or that is not configured.
func (s *Service) verifier(a Account) gateway.Gateway {
	if g, err := s.o.Gateways.Named(a.Gateway); err == nil {
		return g
	}
	return s.o.Gateways.Current()
}

// ask starts the verification, or asks how it stands. It registers the account at the gateway if need be. Where the gateway verifies
// none, a person has to. A verification that began at a gateway that is not configured any more begins again.
func (s *Service) ask(ctx context.Context, a *Account) (gateway.Verification, error) {
	g := s.verifier(*a)
	byHand := s.o.ByHand || !g.Capabilities().Verification
	if a.Gateway == g.Name() && a.VerificationID != "" && !byHand {
		v, err := g.Verification(ctx, a.request(), a.VerificationID)
		if v.Outcome == gateway.OutcomeFault {
			v.ID = "" // this one is over; the next try begins another
		}
		return v, err
	}
	name, err := s.beneficiaryOf(ctx, *a, g)
	if err != nil {
		return gateway.Verification{}, err
	}
	*a = a.namedAt(g.Name(), name)
	if byHand {
		return gateway.Verification{Outcome: gateway.OutcomeReview, NameScore: noScore, Reason: reasonManual}, nil
	}
	v, err := g.StartVerification(ctx, a.request())
	switch {
	case err != nil:
		return gateway.Verification{}, err
	case v.Outcome == gateway.OutcomeFault:
		v.ID = ""
	case v.Outcome == gateway.OutcomePending && v.ID == "":
		return gateway.Verification{}, errors.New("the verifier gave no id to ask again by")
	}
	return v, nil
}

func (a Account) request() gateway.VerificationRequest {
	return gateway.VerificationRequest{Account: string(a.ID), Beneficiary: a.Beneficiary}
}

// after is the account as a report leaves it.
func (s *Service) after(a Account, v gateway.Verification) Account {
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	a.VerificationID = v.ID
	switch age := now.Sub(a.CreatedAt); {
	case v.Outcome == gateway.OutcomePending && age < timeout:
		a.Reason = ""
		a.DueAt = now.Add(s.o.Jitter(min(max(age/4, pollBase), maxPoll)))
		return a
	case v.Outcome == gateway.OutcomeFault && a.Tries+1 < maxTries:
		a.Tries++
		a.Reason = reasonRetrying
		a.DueAt = now.Add(s.o.Jitter(backoff(a.Tries)))
		return a
	}
	a.RegisteredName, a.NameScore = v.RegisteredName, v.NameScore
	if v.NameScore < 0 && v.RegisteredName != "" {
		a.NameScore = likeness(a.Holder, v.RegisteredName)
	}
	a.DueAt = time.Time{}
	a.Status, a.Reason = judge(v, a.NameScore)
	if a.Status == StatusVerified {
		a.VerifiedAt = now
	}
	return a
}

// backoff quadruples with each try after the first.
func backoff(tries int) time.Duration {
	return min(retryBase<<min(2*max(tries-1, 0), 20), maxRetry)
}

// judge decides on a report after which nothing more is to be asked.
func judge(v gateway.Verification, score int) (Status, string) {
	switch v.Outcome {
	case gateway.OutcomeValid:
		return judgeName(score)
	case gateway.OutcomeInvalid:
		return StatusRejected, cmp.Or(v.Reason, reasonInvalid)
	case gateway.OutcomeReview:
		return StatusReview, cmp.Or(v.Reason, reasonUnfinished)
	default: // pending for too long, or failed too often
		return StatusReview, reasonUnfinished
	}
}

// judgeName decides on the likeness of the two names. Where there is none to compare, the account's
// existence has to do. The registered name is never told: the one who asks may not be its owner.
func judgeName(score int) (Status, string) {
	switch {
	case score >= nameVerified || score == noScore:
		return StatusVerified, ""
	case score >= nameReviewed:
		return StatusReview, reasonCompare
	default:
		return StatusRejected, reasonOtherName
	}
}

// save records a change and the decision that it comes of, if any, unless another change came first, and
// reports whether it did.
func (s *Service) save(ctx context.Context, seen Account, a *Account, by *decision.Decision) (bool, error) {
	actor := ledger.ActorGateway
	if by != nil {
		actor = ledger.DecidedBy(*by)
	}
	saved := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		saved, err = tx.SaveVerification(ctx, seen, *a)
		if err != nil || !saved {
			return err
		}
		if err := record(ctx, tx, seen, *a, actor, s.o.Now()); err != nil || by == nil {
			return err
		}
		return ledger.RecordDecision(ctx, tx, *by)
	})
	if err == nil && saved && a.Status != seen.Status {
		s.o.Logger.InfoContext(ctx, "bank account verification ended",
			slog.String("bank_account", string(a.ID)), slog.String("status", string(a.Status)))
	}
	return saved, err
}

// ErrRejected means that an account was rejected, which who accepts it has not seen.
var ErrRejected = fault.New(fault.Refused, "bank_account_rejected", "This bank account was rejected. Look at it again before you accept it.")

// Verdict is a person's decision on an account.
type Verdict struct {
	Verified bool
	// Reason is what the seller reads of a rejection, in up to 500 characters.
	Reason string
	// Seen is the status that the account had when the person looked; "" if that is not known. A rejected account
	// is accepted only if that status was seen.
	Seen Status
}

// Resolve is a person's decision on an account that is not verified; a note is for the record alone. It fails with [ErrNone],
// with [ErrDecided] when the account is verified or was replaced, with [ErrRejected], with [ErrAccountTampered], or with [decision.ErrOwn].
func (s *Service) Resolve(ctx context.Context, by decision.By, id ID, v Verdict) (Account, error) {
	if err := by.CheckNote(); err != nil {
		return Account{}, err
	}
	v.Reason = strings.TrimSpace(v.Reason)
	if n := utf8.RuneCountInString(v.Reason); !v.Verified && (n == 0 || n > 500) {
		return Account{}, fault.Field("reason", "must say to the seller what is wrong, in up to 500 characters")
	}
	for range 2 { // a verification that ends meanwhile is overruled
		seen, _, err := s.trusted(ctx, id)
		if errors.Is(err, ledger.ErrTampered) {
			return Account{}, ErrAccountTampered.Because(err)
		}
		if err != nil {
			return Account{}, err
		}
		if seen.Status == StatusVerified {
			break
		}
		if v.Verified && seen.Current && seen.Status == StatusRejected && v.Seen != StatusRejected {
			return Account{}, ErrRejected
		}
		a := s.resolved(seen, v)
		action := decision.AcceptBankAccount
		if !v.Verified {
			action = decision.RejectBankAccount
		}
		made := decision.New(by, action, seen.Seller, string(id), s.o.Now())
		if err := made.CheckNotOwn(); err != nil {
			return Account{}, err
		}
		saved, err := s.save(ctx, seen, &a, &made)
		if err != nil {
			return Account{}, err
		}
		if saved {
			return a, nil
		}
	}
	return Account{}, ErrDecided
}

// resolved is the account as a person's decision leaves it.
func (s *Service) resolved(a Account, v Verdict) Account {
	a.DueAt = time.Time{}
	if !v.Verified {
		a.Status, a.Reason = StatusRejected, v.Reason
		return a
	}
	a.Status, a.Reason = StatusVerified, ""
	a.VerifiedAt = s.o.Now().UTC().Truncate(time.Microsecond)
	return a
}
