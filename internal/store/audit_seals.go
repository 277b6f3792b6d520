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
	rows := ledger.Finding{Name: "seals-are-whole", Promise: "Each payout and each bank account is as the service wrote it, by a seal of a key of the key set."}
	histories := ledger.Finding{Name: "histories-are-whole", Promise: "Each payout's history is what happened to it: all of it, in that order, at those times."}
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
	payouts := db.query(ctx, `SELECT id, seller_id, bank_account_id, amount, fee, notes, mode, state, requested_at, arrive_at, sent_at, processed_at,
		completed_at, ended_at, order_body, gateway_id, utr, reason_code, reason, contradiction, history, seal FROM payouts`, func(r row) error {
		var p payout.Payout
		err := r.Scan(&p.ID, &p.Seller, &p.BankAccountID, &p.Amount, &p.Fee, &p.Notes, &p.Mode, &p.State, instant{&p.RequestedAt}, instant{&p.ArriveAt},
			instant{&p.SentAt}, instant{&p.ProcessedAt}, instant{&p.CompletedAt}, instant{&p.EndedAt}, &p.OrderBody, &p.GatewayID, &p.UTR,
			&p.ReasonCode, &p.Reason, &p.Contradiction, &p.History, &p.Seal)
		if err == nil {
			note(&rows, p.CheckSeal(s))
		}
		return err
	})
	events := db.eachHistory(ctx, func(p payout.Payout, events []payout.Event) { note(&histories, p.CheckHistory(s, events)) })
	return []ledger.Finding{numbers, rows, histories}, errors.Join(accounts, payouts, events)
}

// eachHistory lists the events of all payouts, of which it tells the id and the head of the history.
func (db *DB) eachHistory(ctx context.Context, tell func(payout.Payout, []payout.Event)) error {
	var p payout.Payout
	var events []payout.Event
	told := func() {
		if p.ID != "" {
			tell(p, events)
		}
	}
	err := db.query(ctx, `SELECT p.id, p.history, e.at, COALESCE(e.from_state, ''), COALESCE(e.to_state, ''), COALESCE(e.reason, '')
		FROM payouts p LEFT JOIN payout_events e ON e.payout_id = p.id ORDER BY p.id, e.number`, func(r row) error {
		var next payout.Payout
		var e payout.Event
		if err := r.Scan(&next.ID, &next.History, instant{&e.At}, &e.From, &e.To, &e.Reason); err != nil {
			return err
		}
		if next.ID != p.ID {
			told()
			p, events = next, nil
		}
		if e != (payout.Event{}) {
			events = append(events, e)
		}
		return nil
	})
	if err == nil {
		told()
	}
	return err
}
