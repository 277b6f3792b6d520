package store

import (
	"context"
	"errors"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/seal"
)

// unsealedFor is how long after an upgrade instances of a version that seals nothing may still write.
const unsealedFor = 24 * time.Hour

// SealedSince is when everything in this database began to be sealed, by its migrations. It is zero for one that was
// born with seals.
func (db *DB) SealedSince(ctx context.Context) (time.Time, error) {
	var born, sealed time.Time
	err := db.queryOne(ctx, `SELECT MIN(applied_at), MAX(CASE name WHEN '0008_seals.sql' THEN applied_at END) FROM schema_migrations`, nil,
		instant{&born}, instant{&sealed})
	if err != nil || sealed.Sub(born) < time.Minute { // a new database gets all migrations at once
		return time.Time{}, err
	}
	return sealed.Add(unsealedFor), nil
}

// HasSeals reports whether anything in this database was ever sealed.
func (db *DB) HasSeals(ctx context.Context) (bool, error) {
	var one int
	return found(db.queryRow(ctx, `SELECT 1 WHERE EXISTS (SELECT 1 FROM payouts WHERE seal <> '') OR EXISTS (SELECT 1 FROM bank_accounts WHERE seal <> '')`).Scan(&one))
}

// AuditSeals checks what only who has the keys can: whether payouts and bank accounts are what the service wrote.
func (db *DB) AuditSeals(ctx context.Context, s seal.Seals) ([]ledger.Finding, error) {
	numbers := ledger.Finding{Name: "account-numbers-are-sealed", Promise: "Each bank account's number was sealed with a key of the key set, for that account, and ends as it is shown."}
	rows := ledger.Finding{Name: "seals-are-whole", Promise: "Each payout is what was asked for, and each bank account what was registered and accepted, by a seal of a key of the key set."}
	note := func(f *ledger.Finding, err error) {
		if err != nil && len(f.Violations) < ledger.MaxViolations {
			f.Violations = append(f.Violations, err.Error())
		}
	}
	accounts := db.eachBankAccount(ctx, func(a bank.Account) error {
		note(&numbers, a.CheckNumber(s.Keys))
		note(&rows, a.CheckSeal(s))
		return nil
	})
	payouts := db.query(ctx, `SELECT id, seller_id, bank_account_id, amount, fee, notes, mode, requested_at, arrive_at, state, order_body, sent_at, seal FROM payouts`, func(r row) error {
		var p payout.Payout
		err := r.Scan(&p.ID, &p.Seller, &p.BankAccountID, &p.Amount, &p.Fee, &p.Notes, &p.Mode, instant{&p.RequestedAt}, instant{&p.ArriveAt},
			&p.State, &p.OrderBody, instant{&p.SentAt}, &p.Seal)
		if err == nil {
			note(&rows, p.CheckSeal(s))
		}
		return err
	})
	return []ledger.Finding{numbers, rows}, errors.Join(accounts, payouts)
}
