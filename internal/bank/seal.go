package bank

import (
	"context"
	"fmt"

	"bursar/internal/id"
	"bursar/internal/seal"
)

// words are what the seal of an account is of: all that decides whether and where it is paid, and why. Its number has a
// seal of its own, and whether it is the current one is left out, because the next one replaces it without reading.
func (a Account) words() string {
	return fmt.Sprintf("bank_accounts|seal|%q %q %q %q %q %q %d %q %q %q %d %q %d", a.ID, a.Seller, a.Holder, a.IFSC, a.Last4, a.Beneficiary,
		a.CreatedAt.UnixMicro(), a.Status, a.Reason, a.RegisteredName, a.NameScore, a.VerificationID, a.VerifiedAt.UnixMicro())
}

// reseal seals the account as it is now.
func (a *Account) reseal(s seal.Seals) (err error) {
	a.Seal, err = s.Make(a.words())
	return err
}

// CheckSeal fails with [seal.ErrBroken] if the account is not as the service wrote it. One that was rejected without
// the key has no seal, and is paid by nobody.
func (a Account) CheckSeal(s seal.Seals) error {
	if a.Status == StatusRejected && a.Seal == "" {
		return nil
	}
	return a.checkSeal(s)
}

// checkSeal is CheckSeal where the account is to be paid, or decided on.
func (a Account) checkSeal(s seal.Seals) error {
	if err := s.Check(a.Seal, id.Time(idPrefix, string(a.ID)), a.words()); err != nil {
		return fmt.Errorf("bank account %s: %w", a.ID, err)
	}
	return nil
}

// Vouch seals an account as it is now, because a person has made sure that it is right, and returns it. It fails with
// [ErrNone].
func Vouch(ctx context.Context, store Store, s seal.Seals, id ID) (Account, error) {
	a, err := store.BankAccountByID(ctx, id)
	if err != nil {
		return Account{}, err
	}
	seen := a.Seal
	if err := a.reseal(s); err != nil {
		return Account{}, err
	}
	saved := false
	err = store.InTx(ctx, func(tx Tx) (err error) {
		saved, err = tx.SetBeneficiary(ctx, seen, a)
		return err
	})
	if err == nil && !saved {
		err = fmt.Errorf("bank account %s has changed meanwhile; look at it again", id)
	}
	return a, err
}

// CheckNumber reports, as an error, why the account's number is not one that was sealed for it.
func (a Account) CheckNumber(keys seal.Keys) error {
	number, err := a.open(keys)
	if err == nil && number.Last4() != a.Last4 {
		err = fmt.Errorf("bank account %s is shown as ending in %q, and its number does not", a.ID, a.Last4)
	}
	return err
}

// sealNumber encrypts the account's number, for this account alone.
func (a *Account) sealNumber(keys seal.Keys, n Number) (err error) {
	if a.SealedNumber, err = keys.Seal(n.Reveal(), a.numberContext()); err != nil {
		return fmt.Errorf("seal the number of bank account %s: %w", a.ID, err)
	}
	return nil
}

// open decrypts the account's number.
func (a Account) open(keys seal.Keys) (Number, error) {
	digits, err := keys.Open(a.SealedNumber, a.numberContext())
	if err != nil {
		return Number{}, fmt.Errorf("open the number of bank account %s: %w", a.ID, err)
	}
	return Number{digits}, nil
}

func (a Account) numberContext() string { return "bank_accounts|sealed_number|" + string(a.ID) }
