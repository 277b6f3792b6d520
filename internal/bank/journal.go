package bank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/ledger"
)

// Keys encrypt account numbers. The context binds a number to its account, so that it can't be moved to another row.
type Keys interface {
	Encrypt(plaintext, context string) (string, error)
	Decrypt(encrypted, context string) (string, error)
}

// Fold is an account as its entries tell it, oldest first. They do not tell its number.
func Fold(id ID, entries []ledger.Entry) (Account, error) {
	return ledger.Fold(Account{ID: id}, entries)
}

// CheckEntries fails with [ledger.ErrTampered] unless the account is what its entries fold to. The caller has checked
// that the service wrote them.
func CheckEntries(a Account, entries []ledger.Entry) error {
	folded, err := Fold(a.ID, entries)
	if len(entries) == 0 {
		err = errors.New("its seller's journal does not know it")
	}
	if mismatch, differs := ledger.Compare(folded, a); err == nil && differs {
		err = mismatch
	}
	if err != nil {
		return ledger.ErrTampered.Because(fmt.Errorf("bank account %s: %w", a.ID, err))
	}
	return nil
}

// check fails with [ledger.ErrTampered] if the account is not what the service wrote. It returns the account's entries.
func check(ctx context.Context, from ledger.EntriesReader, a Account) ([]ledger.Entry, error) {
	entries, err := from.EntriesAbout(ctx, a.Seller, string(a.ID))
	if err == nil {
		err = CheckEntries(a, entries)
	}
	return entries, err
}

// record appends to the seller's journal what changes of an account, if anything does.
func record(ctx context.Context, tx Tx, was, is Account, actor string, now time.Time) error {
	if _, differs := ledger.Differs(was, is); !differs {
		return nil
	}
	p, err := Recorded(was, is, actor, now)
	if err == nil {
		_, err = tx.Append(ctx, p)
	}
	return err
}

// Recorded is the entry that takes an account from what it was to what it is.
func Recorded(was, is Account, actor string, now time.Time) (ledger.Posting, error) {
	data, err := ledger.Patch(was, is)
	return ledger.Posting{Owner: is.Seller, At: now, Type: entryType(was, is), Subject: string(is.ID), Actor: actor, Data: data}, err
}

func entryType(was, is Account) ledger.Type {
	switch {
	case was.Seller == "":
		return ledger.BankAccountAdded
	case was.Status != is.Status && is.Status == StatusVerified:
		return ledger.BankAccountVerified
	case was.Status != is.Status && is.Status == StatusRejected:
		return ledger.BankAccountRejected
	case was.Status != is.Status && is.Status == StatusReview:
		return ledger.BankAccountReview
	case was.Current && !is.Current:
		return ledger.BankAccountReplaced
	default:
		return ledger.BankAccountUpdated
	}
}

// Rejected is the account after another person took over the user that it belonged to: not paid to any more, and
// not to be decided on. One that was so before keeps its reason.
func (a Account) Rejected(reason string) Account {
	if a.Status == StatusRejected && !a.Current {
		return a
	}
	a.Current, a.Status, a.Reason, a.VerifiedAt, a.DueAt = false, StatusRejected, reason, time.Time{}, time.Time{}
	return a
}

// Erased is the account after its seller deleted the user account: rejected, and without its number.
func (a Account) Erased(reason string) Account {
	a = a.Rejected(reason)
	a.EncryptedNumber = ""
	return a
}

// CheckNumber reports, as an error, why the account's number is not one that was encrypted for it.
func (a Account) CheckNumber(keys Keys) error {
	if a.EncryptedNumber == "" && a.Status == StatusRejected { // it was lost or deleted, see [Account.Rebuilt] and [Account.Erased]
		return nil
	}
	number, err := a.open(keys)
	if err == nil && number.Last4() != a.Last4 {
		err = fmt.Errorf("bank account %s: it is shown as ending in %q, and its number does not", a.ID, a.Last4)
	}
	return err
}

// encryptNumber encrypts the account's number, for this account alone.
func (a *Account) encryptNumber(keys Keys, n Number) (err error) {
	if a.EncryptedNumber, err = keys.Encrypt(n.Reveal(), a.numberContext()); err != nil {
		return fmt.Errorf("encrypt the number of bank account %s: %w", a.ID, err)
	}
	return nil
}

// open decrypts the account's number.
func (a Account) open(keys Keys) (Number, error) {
	digits, err := keys.Decrypt(a.EncryptedNumber, a.numberContext())
	if err != nil {
		return Number{}, fmt.Errorf("bank account %s: its number can't be decrypted: %w", a.ID, err)
	}
	return Number{digits}, nil
}

func (a Account) numberContext() string { return "bank_accounts|encrypted_number|" + string(a.ID) }

// Rebuilt is the row of an account that was folded from its entries, and the entries that have to follow. What entries do
// not tell is taken from the row that was found. If that does not have the account's encrypted number, the number is
// lost, and the account is rejected, so that its seller registers it again.
func (a Account) Rebuilt(found Account, actor string, now time.Time) (row Account, then []ledger.Posting, err error) {
	row = a
	row.Tries, row.DueAt = found.Tries, found.DueAt
	if row.Status == StatusUnverified && row.Current && row.DueAt.IsZero() {
		row.DueAt = now
	}
	if a.EncryptedNumber == "" { // it was lost before
		return row, nil, nil
	}
	row.EncryptedNumber = found.EncryptedNumber
	if _, differs := ledger.Compare(a, row); !differs {
		return row, nil, nil
	}
	row.EncryptedNumber, row.Status, row.Reason, row.VerifiedAt, row.DueAt = "", StatusRejected, reasonLost, time.Time{}, time.Time{}
	p, err := Recorded(a, row, actor, now)
	return row, []ledger.Posting{p}, err
}

const reasonLost = "We no longer have the number of this account. Register it again to be paid there."
