package bank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/retry"
)

// Options are what a service is made of.
type Options struct {
	Store    Store
	Keys     Keys
	Gateways *gateway.Router
	// Mails tells sellers that their bank account was replaced.
	Mails     mail.Queuer
	Directory Directory
	// Proofs may be nil: then no proof is asked for.
	Proofs Proofs
	// CoolDown is how long a seller's payouts are on hold after a verified account was replaced.
	CoolDown time.Duration
	// ByHand leaves each verification to a person, whatever the gateway offers.
	ByHand bool
	Now    func() time.Time
	Logger *slog.Logger
	// IDs and Jitter are set by simulations alone, which must come out the same again. Jitter spreads a wait.
	IDs    id.Source
	Jitter func(time.Duration) time.Duration
}

// Service registers and verifies bank accounts. It is safe for concurrent use.
type Service struct {
	o Options
}

// New makes a service.
func New(o Options) (*Service, error) {
	switch {
	case o.Store == nil || o.Keys == nil || o.Gateways == nil || o.Mails == nil || o.Directory == nil:
		return nil, errors.New("bank: a service needs a store, keys to encrypt with, gateways, mails and a directory")
	case o.Now == nil || o.Logger == nil:
		return nil, errors.New("bank: a service needs a clock and a logger")
	}
	if o.Jitter == nil {
		o.Jitter = retry.Jitter
	}
	return &Service{o: o}, nil
}

// Account finds the seller's current account, or [ErrNone].
func (s *Service) Account(ctx context.Context, seller string) (Account, error) {
	return s.o.Store.BankAccount(ctx, seller)
}

// AccountByID finds any account ever registered, or [ErrNone].
func (s *Service) AccountByID(ctx context.Context, id ID) (Account, error) {
	return s.o.Store.BankAccountByID(ctx, id)
}

// InReview lists current accounts that wait for a person, oldest first, up to limit.
func (s *Service) InReview(ctx context.Context, limit int) ([]Account, error) {
	return s.o.Store.AccountsInReview(ctx, limit)
}

// Branch names the bank behind an IFSC, if the directory knows it.
func (s *Service) Branch(ifsc IFSC) (Branch, bool) { return s.o.Directory.Branch(ifsc) }

// ErrNotAccepted keeps a payout from an account that is not verified when the payout is sent.
var ErrNotAccepted = fault.New(fault.Refused, "bank_account_not_accepted",
	"The bank account is not verified any more. Register it again or another one, and request the payout again.")

// Beneficiary is a gateway's name of a seller's account. The account is registered there when it is first paid.
// It fails with [ErrNotAccepted] for an account that is not verified, whatever it was when the payout was asked for, and
// with [ledger.ErrTampered] for one that was tampered with, or that is another seller's, and if an entry of the seller was
// changed or is missing. requested is the number of the entry that asks for the payout. Safe to repeat.
func (s *Service) Beneficiary(ctx context.Context, seller string, id ID, at gateway.Name, requested int64) (string, error) {
	a, err := s.payable(ctx, seller, id, requested)
	if err != nil {
		return "", err
	}
	g, err := s.o.Gateways.Named(at)
	if err != nil {
		return "", err
	}
	return s.beneficiaryOf(ctx, a, g)
}

// CheckPayable fails as [Service.Beneficiary] does where the account may not be paid.
func (s *Service) CheckPayable(ctx context.Context, seller string, id ID, requested int64) error {
	_, err := s.payable(ctx, seller, id, requested)
	return err
}

func (s *Service) payable(ctx context.Context, seller string, id ID, requested int64) (Account, error) {
	a, err := s.payableOnce(ctx, seller, id, requested)
	if errors.Is(err, ledger.ErrNotListed) { // the entry may have been written between the two reads
		a, err = s.payableOnce(ctx, seller, id, requested)
	}
	return a, err
}

func (s *Service) payableOnce(ctx context.Context, seller string, id ID, requested int64) (Account, error) {
	a, entries, err := s.trusted(ctx, id)
	if err == nil && a.Seller != seller { // its row was changed outside the service when the payout was asked for
		err = ledger.ErrTampered.Because(fmt.Errorf("bank account %s is not one of seller %s", id, seller))
	}
	if err == nil && a.Status != StatusVerified {
		err = ErrNotAccepted
	}
	if err != nil {
		return a, err
	}
	added, err := s.o.Store.AccountsAdded(ctx, a.Seller, math.MaxInt64, maxFormer)
	if err != nil {
		return a, err
	}
	// One of the seller's entries that is missing could have told that the account was rejected, that another one took its place, or that the
	// money is from a sale that was recorded twice.
	err = s.o.Store.CheckNewest(ctx, a.Seller, max(entries[len(entries)-1].Number, requested),
		ledger.ListingAbout(string(a.ID), entries), ledger.ListingOf(ledger.BankAccountAdded, added, maxFormer))
	if err == nil {
		err = s.checkWasCurrent(ctx, a, entries, added, requested)
	}
	return a, err
}

// checkWasCurrent fails with [ledger.ErrTampered] unless the seller's journal says that the account was the current one, and verified,
// when the entry requested asked for a payout: an attacker may have put back the row of a former one for that moment.
// added are the seller's accounts that were added last, newest first.
func (s *Service) checkWasCurrent(ctx context.Context, a Account, entries, added []ledger.Entry, requested int64) error {
	end := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Number > requested })
	if end < 0 {
		end = len(entries)
	}
	then, err := Fold(a.ID, entries[:end])
	if err != nil {
		return err
	}
	newest, err := newestCurrent(added, requested)
	if err == nil && newest == "" && len(added) == maxFormer { // many were added since
		if added, err = s.o.Store.AccountsAdded(ctx, a.Seller, requested, maxFormer); err == nil {
			newest, err = newestCurrent(added, requested)
		}
	}
	if err != nil {
		return err
	}
	if !then.Current || then.Status != StatusVerified || newest != a.ID {
		return ledger.ErrTampered.Because(fmt.Errorf("bank account %s was not the current one when entry %d of %s asked for a payout", a.ID, requested, a.Seller))
	}
	return nil
}

// newestCurrent is the newest account that was added as the current one before the entry with a number; "" for none.
func newestCurrent(added []ledger.Entry, before int64) (ID, error) {
	for _, e := range added {
		first, err := Fold(ID(e.Subject), []ledger.Entry{e})
		if err != nil {
			return "", err
		}
		if first.Current && e.Number < before {
			return first.ID, nil
		}
	}
	return "", nil
}

// beneficiaryOf is a gateway's name of a trusted account, which it registers there if need be. One name is stored, with its gateway. At
// another gateway the account is registered again each time, and gets the same name, unless the first one is not configured any more.
func (s *Service) beneficiaryOf(ctx context.Context, a Account, g gateway.Gateway) (string, error) {
	if a.Beneficiary != "" && a.Gateway == g.Name() {
		return a.Beneficiary, nil
	}
	number, err := a.open(s.o.Keys)
	if err != nil {
		return "", err
	}
	beneficiary, err := g.EnsureBeneficiary(ctx, string(a.ID), gateway.Destination{
		Holder: a.Holder, AccountNumber: number.Reveal(), IFSC: string(a.IFSC),
	})
	if err != nil {
		return "", fmt.Errorf("make bank account %s known to the gateway: %w", a.ID, err)
	}
	if beneficiary == "" {
		return "", fmt.Errorf("the gateway gave bank account %s no name", a.ID)
	}
	if _, err := s.o.Gateways.Named(a.Gateway); err == nil {
		return beneficiary, nil
	}
	return s.nameAtGateway(ctx, a, g.Name(), beneficiary)
}

// namedAt is an account that is registered at a gateway under a name. What another gateway has verified of it is no longer asked for.
func (a Account) namedAt(at gateway.Name, beneficiary string) Account {
	if a.Gateway != at {
		a.VerificationID = ""
	}
	a.Beneficiary, a.Gateway = beneficiary, at
	return a
}

// trusted finds an account and its entries, and fails with [ledger.ErrTampered] if it is not what the service wrote.
func (s *Service) trusted(ctx context.Context, id ID) (Account, []ledger.Entry, error) {
	const reads = 3 // one that changes between two reads is read again
	var a Account
	var entries []ledger.Entry
	var tampered error
	for range reads {
		now, err := s.o.Store.BankAccountByID(ctx, id)
		if err != nil {
			return a, nil, err
		}
		if _, differs := ledger.Differs(a, now); tampered != nil && !differs {
			break
		}
		a = now
		if entries, tampered = check(ctx, s.o.Store, a); !errors.Is(tampered, ledger.ErrTampered) {
			break
		}
	}
	return a, entries, tampered
}

// nameAtGateway records what a gateway calls an account. Of two that do so at once, the first one's is kept. A name that an attacker
// wrote outside the service meanwhile is [ledger.ErrTampered].
func (s *Service) nameAtGateway(ctx context.Context, a Account, at gateway.Name, beneficiary string) (string, error) {
	is, named := a.namedAt(at, beneficiary), false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		if named, err = tx.SetBeneficiary(ctx, a, is); err != nil || !named {
			return err
		}
		return record(ctx, tx, a, is, ledger.ActorGateway, s.o.Now())
	})
	if err != nil || named {
		return beneficiary, err
	}
	now, _, err := s.trusted(ctx, a.ID)
	if err == nil && now.Beneficiary == "" {
		err = fmt.Errorf("bank account %s was decided on while it was being registered at the gateway", a.ID)
	}
	if err != nil {
		return "", err
	}
	if now.Gateway != at {
		return beneficiary, nil
	}
	return now.Beneficiary, nil
}
