package store

import (
	"context"
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
	return tx.endBankAccounts(ctx, userID, `encrypted_number <> ''`, ledger.ActorUser+userID, now,
		func(a bank.Account) bank.Account { return a.Erased(reason) })
}

// endBankAccounts makes those of a user's bank accounts for which a condition holds what end makes of them: former ones, rejected.
func (tx *Tx) endBankAccounts(ctx context.Context, userID, where, actor string, now time.Time, end func(bank.Account) bank.Account) error {
	var all []bank.Account
	err := tx.each(ctx, selectBankAccounts+`WHERE seller_id = $1 AND `+where+` ORDER BY id`+tx.dialect.forUpdate("bank_accounts"),
		[]any{userID}, collect(&all, bankAccountFields.dest))
	if err != nil {
		return err
	}
	for _, a := range all {
		ended := end(a)
		if _, err := tx.exec(ctx, `UPDATE bank_accounts SET is_current = 0, encrypted_number = $2, status = $3, reason = $4, verified_at = NULL, due_at = NULL, mac = '' WHERE id = $1`,
			string(a.ID), ended.EncryptedNumber, string(ended.Status), ended.Reason); err != nil {
			return err
		}
		p, err := bank.Recorded(a, ended, actor, now)
		if err != nil {
			return err
		}
		if _, err := tx.Append(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// HasMoney reports whether a user's totals hold money or a payout under way, and keeps them so until the transaction ends.
func (tx *Tx) HasMoney(ctx context.Context, userID string) (bool, error) {
	var pending, available, inTransit, processing int64
	_, err := tx.one(ctx, `SELECT pending, available, in_transit, processing FROM journals WHERE owner = $1`+tx.dialect.forUpdate("journals"), []any{userID},
		&pending, &available, &inTransit, &processing)
	return pending != 0 || available != 0 || inTransit != 0 || processing != 0, err
}
