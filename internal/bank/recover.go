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
// went there. It fails with [ErrNone] when there is no such account anywhere, or it is somebody else's, or
// the beneficiary, where it is told, is another account.
func (s *Service) Recover(ctx context.Context, seller string, accountID ID, beneficiary string) error {
	if !id.Valid(idPrefix, string(accountID)) {
		return ErrNone
	}
	a, err := s.o.Store.BankAccountByID(ctx, accountID)
	switch {
	case errors.Is(err, ErrNone):
		return s.remake(ctx, seller, accountID, beneficiary)
	case err != nil:
		return err
	case a.Seller != seller:
		return ErrNone
	case beneficiary == "" || beneficiary == a.Beneficiary:
		return nil
	case a.Beneficiary != "":
		return ErrNone
	default:
		return s.recognise(ctx, a, beneficiary)
	}
}

// recognise notes what the gateway calls an account that it was told of after the book was saved. It fails with
// [ErrNone] unless what it calls so is that account.
func (s *Service) recognise(ctx context.Context, a Account, beneficiary string) error {
	told, number, err := s.o.Registrar.DescribeBeneficiary(ctx, beneficiary)
	if err != nil {
		return fmt.Errorf("ask the gateway for bank account %s: %w", a.ID, err)
	}
	ours, err := a.open(s.o.Seals.Keys)
	if err := errors.Join(err, a.checkSeal(s.o.Seals)); err != nil || number != ours || told.IFSC != a.IFSC {
		return ErrNone.Because(err)
	}
	name, err := s.nameAtGateway(ctx, a, beneficiary)
	if err == nil && name != beneficiary {
		err = ErrNone
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
