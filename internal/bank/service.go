package bank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/seal"
)

// Options are what a service is made of.
type Options struct {
	Store     Store
	Seals     seal.Seals
	Registrar Registrar
	Verifier  Verifier
	Directory Directory
	Now       func() time.Time
	Logger    *slog.Logger
	// IDs and Jitter are set by simulations alone, which must come out the same again. Jitter spreads a wait.
	IDs    id.Source
	Jitter func(time.Duration) time.Duration
}

// Service registers and verifies bank accounts. It is safe for concurrent use.
type Service struct {
	o Options
	// jitter spreads a wait by up to a fifth either way, so that what failed together does not come
	// back together.
	jitter func(time.Duration) time.Duration
}

// New makes a service.
func New(o Options) (*Service, error) {
	switch {
	case o.Store == nil || o.Seals.Keys == nil || o.Registrar == nil || o.Verifier == nil || o.Directory == nil:
		return nil, errors.New("bank: a service needs a store, keys to seal with, a registrar, a verifier and a directory")
	case o.Now == nil || o.Logger == nil:
		return nil, errors.New("bank: a service needs a clock and a logger")
	}
	if o.Jitter == nil {
		o.Jitter = jitter
	}
	return &Service{o: o, jitter: o.Jitter}, nil
}

func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1)
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

// ErrNotAccepted keeps a payout from an account that was accepted when it was asked for, and is not any more.
var ErrNotAccepted = fault.New(fault.Refused, "bank_account_not_accepted",
	"The bank account is not accepted any more. Register it again or another one, and request the payout again.")

// Beneficiary is what the gateway calls an account that is to be paid; it is told of the account when it first matters.
// It fails with [ErrNotAccepted] for an account that is not verified, whatever it was when the payout was asked for, and
// with [seal.ErrBroken] for one that somebody changed by hand. Safe to repeat.
func (s *Service) Beneficiary(ctx context.Context, id ID) (string, error) {
	a, err := s.trusted(ctx, id)
	if a.Status == StatusRejected || (err == nil && a.Status != StatusVerified) {
		err = ErrNotAccepted
	}
	if err != nil {
		return "", err
	}
	return s.beneficiaryOf(ctx, a)
}

// beneficiaryOf is what the gateway calls an account that is trusted; it is told of it if it was not yet.
func (s *Service) beneficiaryOf(ctx context.Context, a Account) (string, error) {
	if a.Beneficiary != "" {
		return a.Beneficiary, nil
	}
	number, err := a.open(s.o.Seals.Keys)
	if err != nil {
		return "", err
	}
	beneficiary, err := s.o.Registrar.EnsureBeneficiary(ctx, a, number)
	if err != nil {
		return "", fmt.Errorf("make bank account %s known to the gateway: %w", a.ID, err)
	}
	if beneficiary == "" {
		return "", fmt.Errorf("the gateway gave bank account %s no name", a.ID)
	}
	return s.nameAtGateway(ctx, a, beneficiary)
}

// trusted finds an account, and fails with [seal.ErrBroken] if it is not what the service wrote. What is decided on it
// is sealed again, so it is looked at before.
func (s *Service) trusted(ctx context.Context, id ID) (Account, error) {
	a, err := s.o.Store.BankAccountByID(ctx, id)
	if err == nil {
		err = a.checkSeal(s.o.Seals)
	}
	return a, err
}

// nameAtGateway records what the gateway calls an account. Of two who do so at once, the first one's is kept.
func (s *Service) nameAtGateway(ctx context.Context, a Account, beneficiary string) (string, error) {
	seen := a.Seal
	a.Beneficiary = beneficiary
	if err := a.reseal(s.o.Seals); err != nil {
		return "", err
	}
	named := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		named, err = tx.SetBeneficiary(ctx, seen, a)
		return err
	})
	if err != nil || named {
		return beneficiary, err
	}
	now, err := s.o.Store.BankAccountByID(ctx, a.ID)
	if err == nil && now.Beneficiary == "" {
		err = fmt.Errorf("bank account %s was decided on while the gateway was told of it", a.ID)
	}
	return now.Beneficiary, err
}
