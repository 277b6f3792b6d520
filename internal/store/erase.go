package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
)

// DeleteSessions deletes all sessions of a user.
func (tx *Tx) DeleteSessions(ctx context.Context, userID string) error {
	_, err := tx.exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, userID)
	return err
}

// EraseBankAccounts deletes the numbers of all bank accounts of a user. They are rejected in the journal.
func (tx *Tx) EraseBankAccounts(ctx context.Context, userID, reason string, now time.Time) error {
	return tx.endBankAccounts(ctx, userID, ledger.ActorUser+userID, time.Time{}, now,
		func(a bank.Account) bank.Account { return a.Erased(reason) })
}

// endBankAccounts makes each of a user's bank accounts that was registered at an instant or later what end makes of it: a former one, rejected. It goes
// by the user's journal: an attacker may have rejected, moved or deleted the row of an account outside the service, to put it back once the account
// would have ended.
func (tx *Tx) endBankAccounts(ctx context.Context, userID, actor string, since, now time.Time, end func(bank.Account) bank.Account) error {
	rows := map[bank.ID]bank.Account{}
	err := tx.each(ctx, selectBankAccounts+`WHERE seller_id = $1 OR id IN (
			SELECT subject FROM entries WHERE owner = $1 AND type = 'bank_account.added') ORDER BY id`+tx.dialect.forUpdate("bank_accounts"),
		[]any{userID}, func(r *row) {
			var a bank.Account
			r.Scan(bankAccountFields.dest(&a)...)
			rows[a.ID] = a
		})
	if err != nil {
		return err
	}
	var ids []bank.ID
	err = tx.each(ctx, `SELECT id FROM bank_accounts WHERE seller_id = $1 UNION
			SELECT subject FROM entries WHERE owner = $1 AND type = 'bank_account.added' ORDER BY 1`, []any{userID}, collect(&ids, itself))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := tx.endBankAccount(ctx, userID, id, rows[id], actor, since, now, end); err != nil {
			return err
		}
	}
	return nil
}

// endBankAccount ends one of them, and its row, if there is one.
func (tx *Tx) endBankAccount(
	ctx context.Context, userID string, id bank.ID, row bank.Account, actor string, since, now time.Time, end func(bank.Account) bank.Account,
) error {
	entries, err := tx.EntriesAbout(ctx, userID, string(id))
	is, known := row, len(entries) > 0
	switch {
	case errors.Is(err, ledger.ErrTampered): // an entry that ends the account whatever those before say
		is, known = bank.Account{ID: id, Seller: userID, Current: true, Status: bank.StatusVerified, CreatedAt: now, VerifiedAt: now}, true
	case err == nil && known:
		is, err = bank.Fold(id, entries)
	}
	if err != nil && !errors.Is(err, ledger.ErrTampered) {
		return err
	}
	if known && is.CreatedAt.Before(since) {
		return nil
	}
	is.EncryptedNumber = cmp.Or(row.EncryptedNumber, is.EncryptedNumber)
	ended := end(is)
	_, err = tx.exec(ctx, `UPDATE bank_accounts SET is_current = 0, encrypted_number = CASE WHEN $2 = '' THEN '' ELSE encrypted_number END, status = $3, reason = $4, verified_at = NULL, due_at = NULL, mac = '' WHERE id = $1`,
		string(id), ended.EncryptedNumber, string(ended.Status), ended.Reason)
	if _, differs := ledger.Differs(is, ended); err != nil || !known || !differs { // the journal does not know it: the row was changed outside the service
		return err
	}
	p, err := bank.Recorded(is, ended, actor, now)
	if err == nil {
		_, err = tx.Append(ctx, p)
	}
	return err
}

// HasMoney reports whether a user's totals hold money or a payout under way, and keeps them so until the transaction ends.
func (tx *Tx) HasMoney(ctx context.Context, userID string) (bool, error) {
	var pending, available, inTransit, processing int64
	_, err := tx.one(ctx, `SELECT pending, available, in_transit, processing FROM journals WHERE owner = $1`+tx.dialect.forUpdate("journals"), []any{userID},
		&pending, &available, &inTransit, &processing)
	return pending != 0 || available != 0 || inTransit != 0 || processing != 0, err
}

// HasOpenCase reports whether a user's payouts are frozen, one whose amount the user has again has a discrepancy, or an open unmatched
// transfer names the user.
func (tx *Tx) HasOpenCase(ctx context.Context, userID string) (bool, error) {
	var frozen bool
	if _, err := tx.one(ctx, `SELECT frozen FROM journals WHERE owner = $1`, []any{userID}, flagged{&frozen}); err != nil || frozen {
		return frozen, err
	}
	var one int
	if isNamed, err := tx.one(ctx, namesSeller, []any{userID}, &one); err != nil || isNamed {
		return isNamed, err
	}
	id, err := tx.UnpaidWithDiscrepancy(ctx, userID)
	return id != "", err
}
