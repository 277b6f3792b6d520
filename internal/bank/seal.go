package bank

import (
	"context"
	"fmt"

	"bursar/internal/id"
	"bursar/internal/seal"
)

// words are what the seal of an account is of: all that decides whether and where it is paid.
func (a Account) words(accepted bool) string {
	return fmt.Sprintf("bank_accounts|seal|%q %q %q %q %q %q %t", a.ID, a.Seller, a.Holder, a.IFSC, a.Last4, a.Beneficiary, accepted)
}

// reseal seals the account as it is now.
func (a *Account) reseal(s seal.Seals) (err error) {
	a.Seal, err = s.Make(a.words(a.Status == StatusVerified))
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

// checkSeal is CheckSeal where the account is to be paid, or decided on. An accepted one may have been rejected since,
// which harms nobody; none can be accepted without the key.
func (a Account) checkSeal(s seal.Seals) error {
	may := []string{a.words(true)}
	if a.Status != StatusVerified {
		may = append(may, a.words(false))
	}
	if err := s.Check(a.Seal, id.Time(idPrefix, string(a.ID)), may...); err != nil {
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
