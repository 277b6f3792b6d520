package bank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// Recover makes sure that the seller's account with that id is in the ledger. One that is missing is
// made again of what the gateway knows of the beneficiary: a former account, for the payouts that
// went there. It fails with [ErrNone] when there is no such account anywhere, it belongs to another seller, or the beneficiary,
// where it is known, is another account; and with [ledger.ErrTampered] when it was changed outside the service: once it is repaired,
// it may be the seller's.
func (s *Service) Recover(ctx context.Context, seller string, accountID ID, at gateway.Name, beneficiary string) error {
	if !id.Valid(IDPrefix, string(accountID)) {
		return ErrNone
	}
	g, err := s.o.Gateways.Named(at)
	if err != nil {
		return err
	}
	a, _, err := s.trusted(ctx, accountID)
	switch {
	case errors.Is(err, ErrNone):
		return s.remake(ctx, g, seller, accountID, beneficiary)
	case err != nil:
		return err
	case a.Seller != seller:
		return ErrNone
	case beneficiary == "" || beneficiary == a.Beneficiary && a.Gateway == at:
		return nil
	case a.Beneficiary != "" && a.Gateway == at:
		return ErrNone
	default:
		return s.recognise(ctx, g, a, beneficiary)
	}
}

// recognise stores the gateway's name of an account that was registered there after the backup was made. It fails with
// [ErrNone] unless what it calls so is that account.
func (s *Service) recognise(ctx context.Context, g gateway.Gateway, a Account, beneficiary string) error {
	described, number, err := s.describe(ctx, g, a.ID, beneficiary)
	if err != nil {
		return err
	}
	a, _, err = s.trusted(ctx, a.ID) // it may have changed while the gateway was asked
	if err != nil {
		return err
	}
	ours, err := a.open(s.o.Keys)
	if err != nil || number != ours || described.IFSC != a.IFSC {
		return ErrNone.Because(err)
	}
	if a.Beneficiary != "" { // another gateway's name is kept
		return nil
	}
	name, err := s.nameAtGateway(ctx, a, g.Name(), beneficiary)
	if err == nil && name != beneficiary {
		err = ErrNone
	}
	return err
}

// describe asks a gateway for the account behind a beneficiary. It fails with [ErrNone] when that is no account of ours.
func (s *Service) describe(ctx context.Context, g gateway.Gateway, accountID ID, beneficiary string) (Account, Number, error) {
	described, err := g.DescribeBeneficiary(ctx, beneficiary)
	if errors.Is(err, gateway.ErrUnknownBeneficiary) {
		return Account{}, Number{}, ErrNone.Because(err)
	}
	if err != nil {
		return Account{}, Number{}, fmt.Errorf("ask the gateway for bank account %s: %w", accountID, err)
	}
	number, numberErr := ParseNumber(described.AccountNumber)
	ifsc, ifscErr := ParseIFSC(described.IFSC)
	if err := errors.Join(numberErr, ifscErr); err != nil {
		return Account{}, Number{}, ErrNone.Because(err)
	}
	return Account{Holder: described.Holder, IFSC: ifsc}, number, nil
}

// remake makes an account that the database lacks of what the gateway knows of its beneficiary, which not every gateway tells.
func (s *Service) remake(ctx context.Context, g gateway.Gateway, seller string, accountID ID, beneficiary string) error {
	if beneficiary == "" {
		return ErrNone
	}
	a, number, err := s.describe(ctx, g, accountID, beneficiary)
	if err != nil {
		return err
	}
	a.ID, a.Seller, a.Beneficiary, a.Gateway = accountID, seller, beneficiary, g.Name()
	a.Last4 = number.Last4()
	a.Status, a.Reason, a.NameScore = StatusUnverified, "Known from the payment gateway alone; register the account to use it.", noScore
	a.CreatedAt = s.o.Now().UTC().Truncate(time.Microsecond)
	if err := a.encryptNumber(s.o.Keys, number); err != nil {
		return err
	}
	inserted := false
	err = s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		if inserted, err = tx.InsertBankAccount(ctx, a); err != nil || !inserted {
			return err
		}
		return record(ctx, tx, Account{ID: a.ID}, a, ledger.ActorGateway, a.CreatedAt)
	})
	if err != nil || inserted {
		return err
	}
	there, _, err := s.trusted(ctx, accountID) // another start made it meanwhile, or it was hidden when it was looked for
	switch {
	case err != nil: // nobody knows whose it is; the start tries again
		return err
	case there.Seller != seller || there.Beneficiary != beneficiary || there.Gateway != g.Name():
		return ErrNone
	default:
		return nil
	}
}
