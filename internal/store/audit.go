package store

import (
	"context"
	"database/sql"
	"fmt"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// AuditKeys are what an audit checks MACs and account numbers with.
type AuditKeys interface {
	ledger.Keys
	bank.Keys
}

// invariant is one promise about the whole datastore and the query that finds where it does not hold:
// each row says so in one text column.
type invariant struct {
	name    string
	promise string
	query   string
}

// invariants are what no single row's entries tell. That rows equal what the journal folds to is checked apart.
var invariants = []invariant{
	{
		"earnings-match-sales", "What each seller earned in each month is the sum of the month's sales, less their refunds.",
		`SELECT seller_id || ' earned ' || SUM(earned) || ' in ' || month || ', the sales make ' || SUM(sold) FROM (
			SELECT seller_id, month, amount AS earned, 0 AS sold FROM earnings
			UNION ALL SELECT seller_id, month, 0, amount - refunded FROM sales) AS both_records
		GROUP BY seller_id, month HAVING SUM(earned) <> SUM(sold)`,
	},
	{
		"keys-match-payouts", "Each idempotency key stands for the payout that was asked for under it.",
		`SELECT 'a key of ' || k.user_id || ' stands for ' || k.payout_id || ', which is not what it was used for' FROM idempotency_keys k
		WHERE k.refusal = '' AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = k.payout_id
			AND (k.fingerprint = 'cancel ' || p.id OR p.seller_id = k.user_id AND k.fingerprint = 'request ' || p.amount || ' ' || p.notes))
		UNION ALL
		SELECT 'a key of ' || k.user_id || ' says that ' || k.payout_id || ' was refused, and it is there' FROM idempotency_keys k
		WHERE k.refusal <> '' AND k.fingerprint LIKE 'request %' AND EXISTS (SELECT 1 FROM payouts p WHERE p.id = k.payout_id)`,
	},
	{
		"beneficiaries-are-told-apart", "No two bank accounts stand for the same account at the gateway.",
		`SELECT COUNT(*) || ' bank accounts name the gateway''s ' || beneficiary || ', among them ' || MIN(id) || ' and ' || MAX(id)
		FROM bank_accounts WHERE beneficiary <> '' GROUP BY gateway, beneficiary HAVING COUNT(*) > 1`,
	},
	{
		"gateway-transfers-are-told-apart", "No two payouts name the same transfer of the gateway.",
		`SELECT COUNT(*) || ' payouts name the transfer ' || gateway_id || ', among them ' || MIN(id) || ' and ' || MAX(id)
		FROM payouts WHERE gateway_id <> '' GROUP BY gateway, gateway_id HAVING COUNT(*) > 1`,
	},
	{
		"owners-are-there", "Each payout goes to a bank account of its own seller, and each journal belongs to a user or the platform.",
		`SELECT 'payout ' || p.id || ' goes to bank account ' || p.bank_account_id || ', which is not its seller''s' FROM payouts p
		WHERE NOT EXISTS (SELECT 1 FROM bank_accounts a WHERE a.id = p.bank_account_id AND a.seller_id = p.seller_id)
		UNION ALL
		SELECT 'the journal of ' || j.owner || ' belongs to nobody' FROM journals j
		WHERE j.owner <> 'platform' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = j.owner)`,
	},
	{
		"nothing-is-stuck", "Each payout that has not ended has a next step, or waits for manual review; each pending sale has a release.",
		`SELECT 'payout ' || id || ' is ' || state || ' and has no next step' FROM payouts
		WHERE status = 'processing' AND state <> 'manual_review' AND due_at IS NULL
		UNION ALL
		SELECT 'sale ' || id || ' is pending and has no release' FROM sales WHERE released_at IS NULL AND due_at IS NULL`,
	},
	{
		"gateway-agrees", "The gateway has reported nothing about a payout that conflicts with the journal, and none is frozen.",
		`SELECT 'payout ' || id || ' is ' || state || '; found: ' || contradiction FROM payouts WHERE contradiction <> ''`,
	},
	{
		"strays-are-settled", "Each transfer that the gateway made for us belongs to a payout, or a person has resolved it.",
		`SELECT 'the gateway''s transfer ' || s.gateway_id || ' of ' || s.amount || ' for ' || s.reference || ': ' || s.why FROM strays s
		WHERE s.settled = 0 AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = s.reference AND p.gateway_id = s.gateway_id)`,
	},
	{
		"paid-is-on-record", "Each completed payout names the gateway's transfer and when it was paid.",
		`SELECT 'payout ' || id || ' is ' || state || ' without the gateway''s id or the time' FROM payouts
		WHERE state IN ('completed', 'returned') AND (gateway_id = '' OR completed_at IS NULL)`,
	},
	{
		"decisions-are-on-record", "What only an admin can decide was decided by one.",
		`SELECT 'the transfer ' || s.gateway_id || ' was resolved, and nobody decided it' FROM strays s
		WHERE s.settled = 1 AND NOT EXISTS (SELECT 1 FROM entries d WHERE d.subject = s.gateway_id AND d.type = 'admin.decided' AND d.data LIKE '%"action":"settle_stray"%')
		UNION ALL
		SELECT 'difference ' || f.id || ' was resolved, and nobody decided it' FROM differences f
		WHERE f.settled_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entries d WHERE d.subject = f.id AND d.type = 'admin.decided' AND d.data LIKE '%"action":"settle_difference"%')
		UNION ALL
		SELECT 'user ' || u.id || ' is ' || u.role || CASE u.suspended WHEN 1 THEN ', suspended' ELSE '' END || ', which is not what was decided last' FROM users u
		JOIN entries d ON d.owner = u.id AND d.subject = u.id AND d.type = 'admin.decided'
			AND d.number = (SELECT MAX(number) FROM entries WHERE owner = u.id AND subject = u.id AND type = 'admin.decided')
		WHERE d.data NOT LIKE '%"note":"Now ' || u.role || CASE u.suspended WHEN 1 THEN ', suspended' ELSE '' END || '.%'
		UNION ALL
		SELECT 'user ' || u.id || ' has sold and is an admin, and nobody decided it' FROM users u
		JOIN journals j ON j.owner = u.id AND j.sales > 0
		WHERE u.role = 'admin' AND NOT EXISTS (SELECT 1 FROM entries d WHERE d.owner = u.id AND d.subject = u.id AND d.type = 'admin.decided')`,
	},
}

// Audit follows every journal from its first entry, folds the rows about money anew, and checks every invariant, from
// one consistent view and without holding up anybody's writes. Without keys it checks no MAC and no account number.
func (db *DB) Audit(ctx context.Context, keys AuditKeys) (ledger.Report, error) {
	a, end, err := db.newAuditor(ctx, keys)
	if err != nil {
		return ledger.Report{}, err
	}
	defer end()
	var r ledger.Report
	if sound := a.sound(db.dialect.unsound); len(sound.Violations) > 0 { // nothing that is read counts for much
		return ledger.Report{Findings: []ledger.Finding{sound}}, a.err
	} else if db.dialect.unsound != "" {
		r.Findings = append(r.Findings, sound)
	}
	for query, n := range map[string]*int64{
		"SELECT COUNT(*) FROM journals WHERE sales > 0": &r.Sellers, "SELECT COUNT(*) FROM entries": &r.Entries,
		"SELECT COUNT(*) FROM payouts": &r.Payouts, "SELECT COUNT(*) FROM sales": &r.Sales,
	} {
		a.each(query, func(rows row) error { return rows.Scan(n) })
	}
	r.Findings = append(r.Findings, a.journals(), a.payouts(), a.sales())
	r.Findings = append(r.Findings, a.bankAccounts()...)
	r.Findings = append(r.Findings, a.serviceKeys())
	for _, i := range invariants {
		r.Findings = append(r.Findings, a.hold(i))
	}
	r.Findings = append(r.Findings, a.statuses())
	r.Findings = append(r.Findings, a.checkpoints()...)
	return r, a.err
}

// newAuditor begins a consistent view of everything. The function ends it.
func (db *DB) newAuditor(ctx context.Context, keys AuditKeys) (a *auditor, end func(), err error) {
	view := &sql.TxOptions{ReadOnly: true, Isolation: db.dialect.snapshot}
	tx, err := db.reader.BeginTx(ctx, view)
	for try := 1; try < maxTries && db.dialect.lost(err); try++ {
		tx, err = db.reader.BeginTx(ctx, view)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	a = &auditor{ctx: ctx, tx: tx, unreadable: db.dialect.unreadable, overflowed: db.dialect.overflowed, keys: keys}
	for _, statement := range db.dialect.readAll {
		a.do(statement)
	}
	return a, func() { _ = tx.Rollback() }, nil // it only read
}

// auditor reads within one view, up to its first error.
type auditor struct {
	ctx context.Context //nolint:containedctx // it lives for one call
	tx  *sql.Tx
	err error
	// unreadable says what the errors of reads mean.
	unreadable func(error) error
	// overflowed says that a number became larger than the engine can count.
	overflowed func(error) bool
	keys       AuditKeys
	// mismatch is told each subject whose row is not what the journal says; nil for nobody.
	mismatch func(subject string)
}

// What a finding says where its query can't name what is wrong.
const (
	nameless = "a row breaks it that lacks what would name it"
	tooLarge = "it can't be checked: a sum of it is larger than any amount"
)

// hold holds the whole book against an invariant. Numbers that somebody made too large to add up break that one, and
// hide no other: an engine that would end the transaction over it goes back to the savepoint.
func (a *auditor) hold(i invariant) ledger.Finding {
	f := ledger.Finding{Name: i.name, Promise: i.promise}
	a.do(`SAVEPOINT invariant`)
	a.each(i.query, func(r row) error {
		violation := sql.NullString{}
		err := r.Scan(&violation)
		if err == nil && !violation.Valid {
			violation.String = nameless
		}
		f.Violations = append(f.Violations, violation.String)
		return err
	})
	if a.err != nil && a.overflowed(a.err) {
		a.err = nil
		a.do(`ROLLBACK TO SAVEPOINT invariant`)
		f.Violations = append([]string{tooLarge}, f.Violations[:min(len(f.Violations), ledger.MaxViolations-1)]...)
	}
	a.do(`RELEASE SAVEPOINT invariant`)
	return f
}

// do runs a statement that reads nothing.
func (a *auditor) do(statement string) {
	if a.err != nil {
		return
	}
	if _, err := a.tx.ExecContext(a.ctx, statement); err != nil {
		a.err = fmt.Errorf("audit: %w", a.unreadable(err))
	}
}

// sound looks at the file before anything that is in it, if there is a way to.
func (a *auditor) sound(query string) ledger.Finding {
	f := ledger.Finding{Name: "file-is-sound", Promise: "The database's file is whole, and its indexes agree with its tables."}
	if query == "" {
		return f
	}
	a.each(query, func(r row) error {
		var violation string
		err := r.Scan(&violation)
		f.Violations = append(f.Violations, violation)
		return err
	})
	return f
}

// each scans the first rows of a query, as many as a finding lists violations.
func (a *auditor) each(query string, scan func(row) error) {
	n := 0
	a.all(query, func(r row) error {
		if n++; n > ledger.MaxViolations {
			return nil
		}
		return scan(r)
	})
}

// all scans every row of a query.
func (a *auditor) all(query string, scan func(row) error, args ...any) {
	if a.err != nil {
		return
	}
	rows, err := a.tx.QueryContext(a.ctx, query, args...)
	if err == nil {
		err = eachRow(rows, func(r row) error {
			if err := scan(r); err != nil { // it has nothing, or something else, where every row has a number or a text
				return fmt.Errorf("the database is damaged, a row of it can't be read: %w", err)
			}
			return nil
		})
	}
	if err != nil {
		a.err = fmt.Errorf("audit: %w", a.unreadable(err))
	}
}

// statuses holds every payout's status against its state.
func (a *auditor) statuses() ledger.Finding {
	f := ledger.Finding{Name: "status-follows-state", Promise: "Each payout's status is the one that its state stands for."}
	a.each(`SELECT state, status, COUNT(*) FROM payouts GROUP BY state, status`, func(r row) error {
		var state payout.State
		var status payout.Status
		var n int64
		err := r.Scan(&state, &status, &n)
		if err == nil && state.Status() != status {
			f.Violations = append(f.Violations, fmt.Sprintf("%d payouts are %s with status %s", n, state, status))
		}
		return err
	})
	return f
}
