package bank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/id"
)

// Recover makes sure that the seller's account with that id is in the book. One that is missing is
// made again of what the gateway knows of the beneficiary: a former account, for the payouts that
// went there. It fails with [ErrNone] when there is no such account anywhere, or it is somebody else's.
func (s *Service) Recover(ctx context.Context, seller string, accountID ID, beneficiary string) error {
	if !id.Valid(idPrefix, string(accountID)) {
		return ErrNone
	}
	a, err := s.o.Store.BankAccountByID(ctx, accountID)
	if errors.Is(err, ErrNone) {
		return s.remake(ctx, seller, accountID, beneficiary)
	}
	if err == nil && a.Seller != seller {
		return ErrNone
	}
	return err
}

func (s *Service) remake(ctx context.Context, seller string, accountID ID, beneficiary string) error {
	a, number, err := s.o.Registrar.DescribeBeneficiary(ctx, beneficiary)
	if err != nil {
		return fmt.Errorf("ask the gateway for bank account %s: %w", accountID, err)
	}
	a.ID, a.Seller, a.Beneficiary = accountID, seller, beneficiary
	a.Last4 = number.Last4()
	a.Status, a.Reason, a.NameScore = StatusUnverified, "Known from the payment gateway alone; register the account to use it.", noScore
	a.CreatedAt = s.o.Now().UTC().Truncate(time.Microsecond)
	if err := a.sealNumber(s.o.Seals.Keys, number); err != nil {
		return err
	}
	if err := a.reseal(s.o.Seals); err != nil {
		return err
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error { return tx.AddFormerAccount(ctx, a) })
}
