package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// Repair is one row that was rebuilt from the journal, or would be.
type Repair struct {
	// Owner is whose journal says how the row has to be; empty for a row that no journal knows.
	Owner string
	// Subject is the row: an owner for the row of totals, or "sale:ID", a payout's or a bank account's id.
	Subject string
	// Change says what is wrong with the row and what becomes of it.
	Change string
	// Impossible says why the row can't be rebuilt; empty where it can.
	Impossible string
}

// Repair rebuilds the rows that are not what their journal says. It tells each, and changes nothing unless apply is
// set. Each change is one transaction with an entry that says who ran the repair. A journal that was damaged itself
// can't be rebuilt from anything here: it has to come from a backup.
func (db *DB) Repair(ctx context.Context, keys AuditKeys, by string, now time.Time, apply bool, tell func(Repair) error) error {
	owners, err := db.owners(ctx)
	if err != nil {
		return err
	}
	broken := map[string]bool{}
	for _, owner := range owners {
		r, err := db.repairAccount(ctx, keys, owner, by, now, apply)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		if r.Impossible != "" {
			broken[owner] = true
		}
		if err := tell(*r); err != nil {
			return err
		}
	}
	subjects, err := db.mismatches(ctx, keys)
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		r, err := db.repairRow(ctx, keys, subject, by, now, apply, broken)
		if err != nil {
			return fmt.Errorf("repair %s: %w", subject, err)
		}
		if r != nil {
			if err := tell(*r); err != nil {
				return err
			}
		}
	}
	return db.repairEarnings(ctx, apply, tell)
}

// owners lists whoever has entries or a row of totals.
func (db *DB) owners(ctx context.Context) ([]string, error) {
	var owners []string
	err := db.query(ctx, `SELECT owner FROM entries GROUP BY owner UNION SELECT owner FROM journals ORDER BY 1`, func(r row) error {
		var owner string
		err := r.Scan(&owner)
		owners = append(owners, owner)
		return err
	})
	return owners, err
}

// mismatches lists the subjects whose rows are not what the journal says.
func (db *DB) mismatches(ctx context.Context, keys AuditKeys) ([]string, error) {
	a, end, err := db.newAuditor(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer end()
	var subjects []string
	a.mismatch = func(subject string) { subjects = append(subjects, subject) }
	a.bankAccounts()
	a.sales()
	a.payouts()
	slices.SortFunc(subjects, func(x, y string) int { // accounts before the payouts that name them
		return strings.Compare(x, y)
	})
	return slices.Compact(subjects), a.err
}

// follow walks a journal from its first entry. It returns where it leads to, or why it can't be followed.
func (tx *Tx) follow(ctx context.Context, keys ledger.Keys, owner string) (at ledger.Account, damage, err error) {
	at = ledger.NewAccount(owner)
	for {
		var page []ledger.Entry
		err := tx.each(ctx, entriesFrom, []any{owner, at.Number, auditPage}, func(r row) error {
			e, err := scanEntry(r)
			if errors.Is(err, ledger.ErrTampered) {
				damage, err = err, nil
			}
			page = append(page, e)
			return err
		})
		if err != nil || damage != nil || len(page) == 0 {
			return at, damage, err
		}
		for _, e := range page {
			if at, damage = at.Follow(keys, e); damage != nil {
				return at, damage, nil
			}
		}
	}
}

var errUndo = errors.New("nothing is to be changed")

// change runs fn in a transaction, which is kept only where the repair is to be applied.
func (db *DB) change(ctx context.Context, apply bool, fn func(*Tx) error) error {
	err := db.Update(ctx, func(tx *Tx) error {
		if err := fn(tx); err != nil || apply {
			return err
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// repairAccount makes a row of totals what its journal leads to.
func (db *DB) repairAccount(ctx context.Context, keys AuditKeys, owner, by string, now time.Time, apply bool) (r *Repair, err error) {
	err = db.change(ctx, apply, func(tx *Tx) error {
		r = nil
		stored, err := tx.account(ctx, owner)
		if err != nil {
			return err
		}
		at, damage, err := tx.follow(ctx, keys, owner)
		switch {
		case err != nil:
			return err
		case damage != nil:
			r = &Repair{
				Owner: owner, Subject: owner, Change: "the journal can't be followed: " + causeOf(damage),
				Impossible: "an entry was changed or is missing; restore the journal from a backup",
			}
			return nil
		case stored == at:
			return nil
		case stored.Number > at.Number && stored.Check(keys) == nil: // the service wrote it, so there were such entries
			r = &Repair{
				Owner: owner, Subject: owner, Change: fmt.Sprintf("the journal ends with entry %d, and the balance is that after entry %d", at.Number, stored.Number),
				Impossible: "entries are missing; restore the journal from a backup",
			}
			return nil
		}
		r = &Repair{Owner: owner, Subject: owner, Change: fmt.Sprintf("the balance is %s after entry %d, and becomes %s after entry %d",
			stored.Text(), stored.Number, at.Text(), at.Number)}
		if _, err := tx.exec(ctx, `DELETE FROM journals WHERE owner = $1`, owner); err != nil || at.Number == 0 {
			return err
		}
		if _, err := tx.write(ctx, journalTable.inserts(tx.dialect, []journalMove{{at, 0}})); err != nil {
			return err
		}
		if !apply {
			return nil
		}
		return tx.recordRepair(ctx, owner, owner, r.Change, by, now)
	})
	return r, err
}

func causeOf(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return err.Error()
}

// recordRepair notes in the journal who had a row rebuilt.
func (tx *Tx) recordRepair(ctx context.Context, owner, subject, what, by string, now time.Time) error {
	data, err := ledger.Facts("repaired", what)
	if err != nil {
		return err
	}
	_, err = tx.Append(ctx, ledger.Posting{Owner: owner, At: now, Type: ledger.Repaired, Subject: subject, Actor: "operator:" + by, Data: data})
	return err
}

// authentic is the entries about a subject that the service wrote, and whose they are. Copies in another journal, and
// what somebody wrote by hand, are left out.
func (tx *Tx) authentic(ctx context.Context, keys ledger.Keys, subject string) (owner string, entries []ledger.Entry, err error) {
	err = tx.each(ctx, entriesAboutColumns+` WHERE e.subject = $1 ORDER BY e.owner, e.number`, []any{subject}, func(r row) error {
		e, tampered, err := scanCheckedEntry(r, keys)
		if err == nil && tampered == nil {
			owner, entries = e.Owner, append(entries, e)
		}
		return err
	})
	return owner, entries, err
}

// repairRow makes a payout, sale or bank account what its entries fold to. A row that no journal knows is removed.
func (db *DB) repairRow(ctx context.Context, keys AuditKeys, subject, by string, now time.Time, apply bool, broken map[string]bool) (r *Repair, err error) {
	err = db.change(ctx, apply, func(tx *Tx) error {
		owner, entries, err := tx.authentic(ctx, keys, subject)
		if err != nil {
			return err
		}
		r = &Repair{Owner: owner, Subject: subject}
		if broken[owner] || len(entries) == 0 && len(broken) > 0 { // its entries may be the damaged ones
			r.Change, r.Impossible = "the row is not what the journal says", "the journal itself is damaged"
			return nil
		}
		var changed bool
		switch {
		case strings.HasPrefix(subject, sale.SubjectPrefix):
			changed, err = tx.repairSale(ctx, r, strings.TrimPrefix(subject, sale.SubjectPrefix), entries)
		case strings.HasPrefix(subject, "bka_"):
			changed, err = tx.repairBankAccount(ctx, r, bank.ID(subject), entries)
		default:
			changed, err = tx.repairPayout(ctx, r, payout.ID(subject), entries, now)
		}
		if err != nil || !changed || owner == "" || !apply {
			return err
		}
		return tx.recordRepair(ctx, owner, subject, r.Change, by, now)
	})
	return r, err
}

// told says of the first field that differs what becomes of the row.
func told[R any](r *Repair, stored, folded R) bool {
	field, differs := ledger.Differs(stored, folded)
	if differs {
		r.Change = field + " was changed; the row becomes what the journal says"
	}
	return differs
}

// remove deletes a row that no journal knows.
func (tx *Tx) remove(ctx context.Context, r *Repair, statements []string, id string) (bool, error) {
	r.Change = "no journal knows this row; it is removed"
	for _, statement := range statements {
		if _, err := tx.exec(ctx, statement, id); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (tx *Tx) repairSale(ctx context.Context, r *Repair, id string, entries []ledger.Entry) (bool, error) {
	if len(entries) == 0 {
		return tx.remove(ctx, r, []string{`DELETE FROM sale_refunds WHERE sale_id = $1`, `DELETE FROM sales WHERE id = $1`}, id)
	}
	folded, err := sale.Fold(id, entries)
	if err != nil {
		return false, err
	}
	refunds, err := sale.RefundsOf(id, entries)
	if err != nil {
		return false, err
	}
	stored, err := tx.SaleForUpdate(ctx, id)
	missing := errors.Is(err, sale.ErrNotFound)
	if err != nil && !missing {
		return false, err
	}
	if !told(r, stored, folded) {
		r.Change = "the refunds were changed; they become what the journal says"
	}
	if missing {
		r.Change = "the row is missing; it is added again"
	}
	if _, err := tx.exec(ctx, `INSERT INTO sales (id, `+saleColumns+`, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (id) DO UPDATE SET seller_id = excluded.seller_id, amount = excluded.amount, refunded = excluded.refunded, month = excluded.month,
		occurred_at = excluded.occurred_at, available_at = excluded.available_at, released_at = excluded.released_at, created_at = excluded.created_at,
		fingerprint = excluded.fingerprint, due_at = excluded.due_at`,
		id, folded.Seller, int64(folded.Amount), int64(folded.Refunded), folded.Month, micros(folded.OccurredAt), micros(folded.AvailableAt),
		nullMicros(folded.ReleasedAt), micros(folded.CreatedAt), folded.Fingerprint, dueUnless(folded.Released(), folded.AvailableAt)); err != nil {
		return false, err
	}
	if _, err := tx.exec(ctx, `DELETE FROM sale_refunds WHERE sale_id = $1`, id); err != nil {
		return false, err
	}
	for _, refund := range refunds {
		if err := tx.InsertRefund(ctx, refund); err != nil {
			return false, err
		}
	}
	return true, nil
}

// dueUnless is when a next step is due, or NULL where there is none.
func dueUnless(done bool, at time.Time) any {
	if done {
		return nil
	}
	return micros(at)
}

func (tx *Tx) repairBankAccount(ctx context.Context, r *Repair, id bank.ID, entries []ledger.Entry) (bool, error) {
	var stored bank.Account
	found, err := tx.one(ctx, bankAccountColumns+`WHERE id = $1`, []any{string(id)}, bankAccountDest(&stored)...)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		var payouts int
		if _, err := tx.one(ctx, `SELECT COUNT(*) FROM payouts WHERE bank_account_id = $1`, []any{string(id)}, &payouts); err != nil {
			return false, err
		}
		if payouts > 0 {
			r.Change, r.Impossible = "no journal knows this row", fmt.Sprintf("%d payouts name it; run the repair again once they are right", payouts)
			return false, nil
		}
		return tx.remove(ctx, r, []string{`DELETE FROM bank_accounts WHERE id = $1`}, string(id))
	}
	if !found {
		r.Change, r.Impossible = "the row is missing", "its number is not in the journal; have the seller register it again"
		return false, nil
	}
	folded, err := bank.Fold(id, entries)
	if err != nil || !told(r, stored, folded) {
		return false, err
	}
	if folded.Current { // there is one for each seller
		if _, err := tx.exec(ctx, `UPDATE bank_accounts SET is_current = 0 WHERE seller_id = $1 AND id <> $2 AND is_current = 1`, folded.Seller, string(id)); err != nil {
			return false, err
		}
	}
	_, err = tx.exec(ctx, `UPDATE bank_accounts SET seller_id = $2, is_current = $3, holder = $4, ifsc = $5, last4 = $6, status = $7, reason = $8,
		registered_name = $9, name_score = $10, beneficiary = $11, verification_id = $12, created_at = $13, verified_at = $14, gateway = $15,
		due_at = CASE WHEN $7 = 'unverified' AND CAST($3 AS BIGINT) = 1 THEN COALESCE(due_at, $13) END WHERE id = $1`,
		string(id), folded.Seller, flag(folded.Current), folded.Holder, string(folded.IFSC), folded.Last4, string(folded.Status), folded.Reason,
		folded.RegisteredName, folded.NameScore, folded.Beneficiary, folded.VerificationID, micros(folded.CreatedAt), nullMicros(folded.VerifiedAt), string(folded.Gateway))
	return true, err
}

func (tx *Tx) repairPayout(ctx context.Context, r *Repair, id payout.ID, entries []ledger.Entry, now time.Time) (bool, error) {
	if len(entries) == 0 {
		return tx.remove(ctx, r, []string{`DELETE FROM payouts WHERE id = $1`}, string(id))
	}
	folded, err := payout.Fold(id, entries)
	if err != nil {
		return false, err
	}
	stored, err := tx.PayoutForUpdate(ctx, id)
	missing := errors.Is(err, payout.ErrNotFound)
	if err != nil && !missing {
		return false, err
	}
	if !told(r, stored, folded) {
		return false, nil
	}
	if missing {
		r.Change = "the row is missing; it is added again"
	}
	if body := (payout.Payout{OrderBody: stored.OrderBody}); folded.OrderBody != "" {
		if _, differs := ledger.Differs(body, payout.Payout{OrderBody: folded.OrderBody}); differs {
			r.Impossible = "the order that was sent was changed, and the journal has only its hash; ask the gateway, and decide on it by hand"
			return false, nil
		}
		folded.OrderBody = stored.OrderBody
	}
	if missing {
		if _, err := tx.AdoptPayout(ctx, folded); err != nil {
			return false, err
		}
	}
	if folded.DueAt = stored.DueAt; folded.DueAt.IsZero() {
		folded.DueAt = now // the service works out the next step
	}
	if _, err := tx.exec(ctx, `UPDATE payouts SET seller_id = $2, bank_account_id = $3, amount = $4, fee = $5, notes = $6, mode = $7,
		requested_at = $8, arrive_at = $9, gateway = $10 WHERE id = $1`, string(id), folded.Seller, string(folded.BankAccountID), int64(folded.Amount),
		int64(folded.Fee), folded.Notes, string(folded.Mode), micros(folded.RequestedAt), micros(folded.ArriveAt), string(folded.Gateway)); err != nil {
		return false, err
	}
	from := stored.State
	if missing {
		from = folded.State
	}
	moved, err := tx.MovePayout(ctx, from, folded)
	if err == nil && !moved {
		err = errors.New("it moved on meanwhile")
	}
	return true, err
}

// repairEarnings makes the months' sums what the sales make.
func (db *DB) repairEarnings(ctx context.Context, apply bool, tell func(Repair) error) error {
	var wrong []string
	err := db.change(ctx, apply, func(tx *Tx) error {
		wrong = nil
		err := tx.each(ctx, `SELECT DISTINCT seller_id FROM (SELECT seller_id, month, SUM(earned) AS earned, SUM(sold) AS sold FROM (
				SELECT seller_id, month, amount AS earned, 0 AS sold FROM earnings
				UNION ALL SELECT seller_id, month, 0, amount - refunded FROM sales) AS both_records
			GROUP BY seller_id, month) AS sums WHERE earned <> sold ORDER BY seller_id`, nil, func(r row) error {
			var seller string
			err := r.Scan(&seller)
			wrong = append(wrong, seller)
			return err
		})
		if err != nil {
			return err
		}
		for _, seller := range wrong {
			if _, err := tx.exec(ctx, `DELETE FROM earnings WHERE seller_id = $1`, seller); err != nil {
				return err
			}
			if _, err := tx.exec(ctx, `INSERT INTO earnings (seller_id, month, amount)
				SELECT seller_id, month, SUM(amount - refunded) FROM sales WHERE seller_id = $1 GROUP BY seller_id, month`, seller); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, seller := range wrong {
		if err := tell(Repair{Owner: seller, Subject: seller, Change: "the earnings by month are not the sales'; they are added up again"}); err != nil {
			return err
		}
	}
	return nil
}
