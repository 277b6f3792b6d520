package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// AuditKeys are what an audit checks MACs and account numbers with.
type AuditKeys interface {
	ledger.Keys
	bank.Keys
}

// invariant is one promise about the whole datastore and the query that finds where it does not hold: each row is the
// seller, the subject and the problem, unless scan reads it.
type invariant struct {
	name    string
	promise string
	query   string
	next    string
	scan    func(words, *row) ledger.Violation
}

// invariants are what no single row's entries tell. That rows equal what the journal folds to is checked apart.
var invariants = []invariant{
	{
		name: "earnings-match-sales", promise: "What each seller earned in each month is the sum of the month's sales, less their refunds.",
		query: wrongEarnings, next: runRepair,
		scan: func(w words, r *row) (v ledger.Violation) {
			var month string
			var earned, sold money.Amount
			r.Scan(&v.Seller, &month, &earned, &sold)
			v.Problem = fmt.Sprintf("the earnings of %s are %s, and the sales make %s", month, w.amount(earned), w.amount(sold))
			return v
		},
	},
	{
		name: "totals-match-adjustments", promise: "What each seller earned in all is the sum of the seller's sales, less their refunds, and of the adjustments.",
		query: wrongTotals, next: runRepair,
		scan: func(w words, r *row) (v ledger.Violation) {
			var earned, explained money.Amount
			r.Scan(&v.Seller, &earned, &explained)
			v.Problem = fmt.Sprintf("the seller earned %s, and sales and adjustments make %s", w.amount(earned), w.amount(explained))
			return v
		},
	},
	{
		name: "adjustments-are-made-once", promise: "Each adjustment of a balance is one entry, which moves the amount that it tells of.",
		query: `SELECT owner, subject, 'it was made ' || COUNT(*) || ' times' FROM entries WHERE type = 'balance.adjusted' GROUP BY owner, subject HAVING COUNT(*) > 1
		UNION ALL
		SELECT owner, subject, 'its entry does not tell of the amount that it moved' FROM entries
		WHERE type = 'balance.adjusted' AND data NOT LIKE '%"amount":' || available || '}'`,
		next: restoreJournal,
	},
	{
		name: "keys-match-payouts", promise: "Each idempotency key stands for the payout that was asked for under it.",
		query: `SELECT k.user_id, k.payout_id, 'an idempotency key stands for it that was used for something else' FROM idempotency_keys k
		WHERE k.refusal = '' AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = k.payout_id
			AND (k.fingerprint = '` + payout.FingerprintCancel + `' || p.id OR p.seller_id = k.user_id AND k.fingerprint = '` + payout.FingerprintRequest + `' || p.amount || ' ' || p.notes))
		UNION ALL
		SELECT k.user_id, k.payout_id, 'an idempotency key says that it was refused, and it is there' FROM idempotency_keys k
		WHERE k.refusal <> '' AND k.fingerprint LIKE '` + payout.FingerprintRequest + `%' AND EXISTS (SELECT 1 FROM payouts p WHERE p.id = k.payout_id)`,
		next: "It moves no money; Bursar forgets the key seven days after it was used. Find out who changed it",
	},
	{
		name: "beneficiaries-are-told-apart", promise: "No two bank accounts stand for the same account at the gateway.",
		query: `SELECT '', MIN(id), COUNT(*) || ' bank accounts are ' || beneficiary || ' at the gateway, this one and ' || MAX(id) || ' among them'
		FROM bank_accounts WHERE beneficiary <> '' GROUP BY gateway, beneficiary HAVING COUNT(*) > 1`,
		next: runRepair,
	},
	{
		name: "gateway-transfers-are-told-apart", promise: "No two payouts name the same transfer of the gateway.",
		query: `SELECT '', MIN(id), COUNT(*) || ' payouts name the transfer ' || gateway_id || ', this one and ' || MAX(id) || ' among them'
		FROM payouts WHERE gateway_id <> '' GROUP BY gateway, gateway_id HAVING COUNT(*) > 1`,
		next: runRepair,
	},
	{
		name: "owners-are-there", promise: "Each payout goes to a bank account of its own seller, and each journal belongs to a user or the platform.",
		query: `SELECT p.seller_id, p.id, 'it goes to bank account ' || p.bank_account_id || ', which is not its seller''s' FROM payouts p
		WHERE NOT EXISTS (SELECT 1 FROM bank_accounts a WHERE a.id = p.bank_account_id AND a.seller_id = p.seller_id)
		UNION ALL
		SELECT j.owner, '', 'the journal belongs to nobody: there is no such user' FROM journals j
		WHERE j.owner <> 'platform' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = j.owner)`,
		next: runRepair + ". If a user is missing, restore the user's row from a backup",
	},
	{
		name: "nothing-is-stuck", promise: "Each payout that has not ended has a next step, or waits for manual review; each pending sale is due when it becomes available.",
		query: `SELECT seller_id, id, 'it is ' || state || ' and has no next step' FROM payouts WHERE ` + stuckPayout + `
		UNION ALL
		SELECT seller_id, 'sale:' || id, CASE WHEN released_at IS NOT NULL THEN 'it is released and due to be released again'
			WHEN due_at IS NULL THEN 'it is pending and has no release'
			ELSE 'it is due to be released at another time than it becomes available: the row was changed, or its seller''s records were when it was due' END FROM sales WHERE ` + wrongRelease,
		next: runRepair,
	},
	{
		name: ledger.GatewayAgrees, promise: "The gateway has reported nothing about a payout that conflicts with the journal, and none is frozen.",
		query: `SELECT seller_id, id, state, discrepancy FROM payouts WHERE discrepancy <> ''`,
		next:  lookInInbox,
		scan: func(_ words, r *row) (v ledger.Violation) {
			var p payout.Payout
			r.Scan(&v.Seller, &v.Subject, &p.State, &p.Discrepancy)
			v.Problem = fmt.Sprintf("it is %s; found: %s", p.State, p.Discrepancy)
			if p.IsTampered() {
				v.Next = runRepair
			}
			return v
		},
	},
	{
		name: "unmatched-transfers-are-resolved", promise: "Each transfer that the gateway made for us belongs to a payout, or a person has resolved it.",
		query: `SELECT s.seller_id, s.reference, s.gateway, s.gateway_id, s.amount, s.currency, s.utr, s.why FROM unmatched_transfers s
		WHERE s.resolved = 0 AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = s.reference AND p.gateway = s.gateway AND p.gateway_id = s.gateway_id)`,
		next: lookInInbox,
		scan: func(w words, r *row) (v ledger.Violation) {
			var at, transfer, currency, utr, why string
			var amount money.Amount
			r.Scan(&v.Seller, &v.Subject, &at, &transfer, &amount, &currency, &utr, &why)
			v.Problem = fmt.Sprintf("the gateway %s has the transfer %s of %s for it", at, transfer, w.amount(amount))
			if currency != "" {
				v.Problem += ", in " + currency
			}
			if utr != "" {
				v.Problem += ", with UTR " + utr
			}
			v.Problem += ": " + why
			return v
		},
	},
	{
		name: "paid-is-on-record", promise: "Each completed payout names the gateway's transfer and when it was paid.",
		query: `SELECT seller_id, id, 'it is ' || state || ' without the gateway''s id or the time' FROM payouts
		WHERE state IN ('completed', 'returned') AND (gateway_id = '' OR completed_at IS NULL)`,
		next: runRepair,
	},
	{
		name: "status-follows-state", promise: "Each payout's status is the one that its state stands for.",
		query: `SELECT seller_id, id, 'it is ' || state || ' and its status is ' || status FROM payouts WHERE ` + wrongStatus,
		next:  runRepair,
	},
	{
		name: "events-match-journal", promise: "Each event of the feed is an entry or a seller's registration, each of those is one event, and events are numbered without a gap.",
		query: wrongEvents,
		next:  "It moves no money; the marketplace was told what did not happen, or not told what did. Run \"bursar repair\" if new events get no numbers, and find out who changed it",
	},
	{
		name: "decisions-are-on-record", promise: "What only an admin can decide was decided by one.",
		query: `SELECT s.seller_id, s.gateway || ':' || s.gateway_id, 'the unmatched transfer was resolved, and no admin decided it' FROM unmatched_transfers s
		WHERE s.resolved = 1 AND NOT EXISTS (SELECT 1 FROM entries d WHERE d.subject = s.gateway || ':' || s.gateway_id AND d.type = 'admin.decided' AND d.data LIKE '%"action":"resolve_unmatched_transfer"%')
		UNION ALL
		SELECT '', f.id, 'the difference was resolved, and no admin decided it' FROM differences f
		WHERE f.resolved_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entries d WHERE d.subject = f.id AND d.type = 'admin.decided' AND d.data LIKE '%"action":"resolve_difference"%')`,
		next: "Find out who changed it, and look at it again",
	},
}

// What is wrong with rows beside the fields that the journal records. "bursar repair" finds these rows too.
const (
	stuckPayout = `status = 'processing' AND state <> 'manual_review' AND due_at IS NULL`
	// A sale is due when it becomes available, and never again. Where its records were tampered with, the service puts
	// the release off, and "bursar repair" makes it due then.
	wrongRelease = `(released_at IS NULL AND (due_at IS NULL OR due_at <> available_at) OR released_at IS NOT NULL AND due_at IS NOT NULL)`
	// wrongEarnings are the months whose earnings are not the sum of the sales, and wrongEarningsOfSeller those of one seller.
	wrongEarnings = `SELECT seller_id, month, CAST(SUM(earned) AS BIGINT), CAST(SUM(sold) AS BIGINT) FROM (
			SELECT seller_id, month, amount AS earned, 0 AS sold FROM earnings
			UNION ALL SELECT seller_id, month, 0, amount - refunded FROM sales) AS both_records
		GROUP BY seller_id, month HAVING SUM(earned) <> SUM(sold) ORDER BY seller_id, month`
	wrongEarningsOfSeller = `SELECT seller_id, month, CAST(SUM(earned) AS BIGINT), CAST(SUM(sold) AS BIGINT) FROM (
			SELECT seller_id, month, amount AS earned, 0 AS sold FROM earnings WHERE seller_id = $1
			UNION ALL SELECT seller_id, month, 0, amount - refunded FROM sales WHERE seller_id = $1) AS both_records
		GROUP BY seller_id, month HAVING SUM(earned) <> SUM(sold)`
	// wrongTotals are the sellers whose total of earnings is not the sum of what it is made of.
	wrongTotals = `SELECT owner, CAST(SUM(earned) AS BIGINT), CAST(SUM(explained) AS BIGINT) FROM (
			SELECT owner, earned, 0 AS explained FROM journals
			UNION ALL SELECT seller_id, 0, amount - refunded FROM sales
			UNION ALL SELECT owner, 0, available FROM entries WHERE type = 'balance.adjusted') AS all_records
		GROUP BY owner HAVING SUM(earned) <> SUM(explained) ORDER BY owner`
)

// wrongStatus finds payouts by a status that their state does not stand for.
var wrongStatus = func() string {
	cases := []string{"status <> CASE state"}
	for _, s := range payout.States() {
		cases = append(cases, fmt.Sprintf("WHEN '%s' THEN '%s'", s, s.Status()))
	}
	return strings.Join(append(cases, fmt.Sprintf("ELSE '%s' END", payout.State("").Status())), " ")
}()

// Audit follows every journal from its first entry, folds the rows about money again, and checks every invariant, from
// one consistent view and without holding up anybody's writes. Without keys it checks no MAC and no account number.
func (db *DB) Audit(ctx context.Context, keys AuditKeys) (ledger.Report, error) {
	a, end, err := db.newAuditor(ctx, keys)
	if err != nil {
		return ledger.Report{}, err
	}
	defer end()
	r := ledger.Report{MACsChecked: keys != nil}
	if sound, isDamaged := a.sound(db.dialect.unsound); isDamaged { // nothing that is read counts for much
		return ledger.Report{Findings: []ledger.Finding{sound}}, a.err
	} else if db.dialect.unsound != "" {
		r.Findings = append(r.Findings, sound)
	}
	schema := a.schema(db)
	r.Findings = append(r.Findings, schema)
	for query, n := range map[string]*int64{
		"SELECT COUNT(*) FROM journals WHERE sales > 0": &r.Sellers, "SELECT COUNT(*) FROM entries": &r.Entries,
		"SELECT COUNT(*) FROM payouts": &r.Payouts, "SELECT COUNT(*) FROM sales": &r.Sales,
	} {
		a.each(query, func(rows *row) { rows.Scan(n) })
	}
	checkpoints := a.checkpoints() // before the journals, which are compared with them
	r.Findings = append(r.Findings, a.journals()...)
	r.Findings = append(r.Findings, a.payouts(), a.sales())
	r.Findings = append(r.Findings, a.bankAccounts()...)
	r.Findings = append(r.Findings, a.people(), a.factors(), a.sessions(), a.serviceKeys(), a.webhookEndpoints())
	for _, i := range invariants {
		r.Findings = append(r.Findings, a.check(i))
	}
	r.Findings = append(r.Findings, checkpoints...)
	if a.err != nil && len(schema.Violations) > 0 && ctx.Err() == nil {
		note(&schema, ledger.Violation{Problem: "nothing else could be checked: " + a.err.Error()}, "Audit again without what is named here")
		return ledger.Report{Findings: []ledger.Finding{schema}}, nil
	}
	return r, a.err
}

// newAuditor begins a consistent view of everything. The function ends it.
func (db *DB) newAuditor(ctx context.Context, keys AuditKeys) (a *auditor, end func(), err error) {
	tx, err := db.beginView(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	a = &auditor{ctx: ctx, tx: viewed{tx, db.fail}, unreadable: db.dialect.unreadable, overflowed: db.dialect.overflowed, keys: keys, found: mismatches{sellers: map[string]bool{}, forged: map[entryPlace]bool{}}}
	for _, statement := range db.dialect.readAll {
		a.do(statement)
	}
	a.each(`SELECT value FROM settings WHERE name = '`+CurrencySetting+`'`, func(r *row) {
		var code string
		r.Scan(&code)
		a.words.currency, _ = money.ParseCurrency(code) // without one, minor units are shown
	})
	return a, func() { _ = tx.Rollback() }, nil // it only read
}

// auditor reads within one view, up to its first error.
type auditor struct {
	ctx context.Context //nolint:containedctx // it lives for one call
	tx  viewed
	err error
	// unreadable says what the errors of reads mean.
	unreadable func(error) error
	// overflowed says that a number became larger than the engine can count.
	overflowed func(error) bool
	keys       AuditKeys
	words      words
	found      mismatches
	// checkpointsChanged says that what is kept of the journals is not what the newest checkpoint was made of.
	checkpointsChanged bool
}

// mismatches are what "bursar repair" looks at.
type mismatches struct {
	// journals are owners whose journal is not whole, or does not lead to their row of totals; rewritten are those whose
	// journal is not what a checkpoint has.
	journals, rewritten []string
	// rows are the subjects whose rows are not what their entries fold to, and sellers are whose they are.
	rows    []string
	sellers map[string]bool
	// sessions are those that the service did not write.
	sessions []string
	// forged are the entries that the service did not write at their place. No row is what they say.
	forged map[entryPlace]bool
}

// What a finding says where its query can't name what is wrong.
const (
	nameless = "a row breaks this and lacks what would name it"
	tooLarge = "this can't be checked: a sum is larger than any amount"
)

// check checks the whole ledger against an invariant. Numbers that are too large to add up break that one, and
// hide no other: an engine that would end the transaction over it goes back to the savepoint.
func (a *auditor) check(i invariant) ledger.Finding {
	f := ledger.Finding{Name: i.name, Promise: i.promise}
	scan := i.scan
	if scan == nil {
		scan = scanViolation
	}
	a.do(`SAVEPOINT invariant`)
	a.each(i.query, func(r *row) { note(&f, scan(a.words, r), i.next) })
	if a.err != nil && a.overflowed(a.err) {
		a.err = nil
		a.do(`ROLLBACK TO SAVEPOINT invariant`)
		f.Violations = slices.Insert(f.Violations[:min(len(f.Violations), ledger.MaxViolations-1)], 0, ledger.Violation{Problem: tooLarge, Next: i.next})
	}
	a.do(`RELEASE SAVEPOINT invariant`)
	return f
}

// scanViolation reads the seller, the subject and the problem.
func scanViolation(_ words, r *row) ledger.Violation {
	var seller, subject, problem sql.NullString
	r.Scan(&seller, &subject, &problem)
	if !problem.Valid {
		problem.String = nameless
	}
	return ledger.Violation{Seller: seller.String, Subject: subject.String, Problem: problem.String}
}

// note adds a violation to a finding that does not list enough of them yet. next is what to do where the violation does
// not say so.
func note(f *ledger.Finding, v ledger.Violation, next string) {
	if v.Next == "" {
		v.Next = next
	}
	if len(f.Violations) < ledger.MaxViolations {
		f.Violations = append(f.Violations, v)
	}
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

// sound looks at the file before anything that is in it, if there is a way to. It reports whether what is read in a damaged file counts for
// little. A value that its column may not hold is read like any other.
func (a *auditor) sound(query string) (f ledger.Finding, isDamaged bool) {
	f = ledger.Finding{Name: "file-is-sound", Promise: "The database's file is whole, its indexes agree with its tables, and each column holds what it may."}
	if query == "" {
		return f, false
	}
	a.each(query, func(r *row) {
		var problem string
		r.Scan(&problem)
		next := runRepair + ". If it is still there then, no journal has the value: put it back by hand, or from a backup"
		if !isDisallowed(problem) {
			isDamaged, next = true, strings.ToUpper(howToMend[:1])+howToMend[1:]
		}
		note(&f, ledger.Violation{Problem: problem}, next)
	})
	return f, isDamaged
}

// schema looks for what makes rows other than Bursar writes them.
func (a *auditor) schema(db *DB) ledger.Finding {
	f := ledger.Finding{Name: "schema-is-ours", Promise: "No trigger, rule or row level security changes or hides rows, and each table is as Bursar makes it."}
	changes, err := db.schemaChanges(a.ctx, func(_ context.Context, query string, args ...any) (list []string, _ error) {
		a.all(query, collect(&list, itself), args...)
		return list, a.err
	})
	if a.err == nil {
		a.err = err
	}
	for _, change := range changes {
		note(&f, ledger.Violation{Problem: change}, "Drop what was added, or make what is missing; find out who changed the database, and compare the gateway's own records with the payouts since then")
	}
	return f
}

// each scans the first rows of a query, as many as a finding lists violations.
func (a *auditor) each(query string, scan func(*row)) {
	n := 0
	a.all(query, func(r *row) {
		if n++; n <= ledger.MaxViolations {
			scan(r)
		}
	})
}

// all scans every row of a query.
func (a *auditor) all(query string, scan func(*row), args ...any) {
	if a.err != nil {
		return
	}
	rows, err := a.tx.QueryContext(a.ctx, query, args...)
	if err == nil {
		err = eachRow(rows, func(r *row) {
			if scan(r); r.err != nil { // it has nothing, or something else, where every row has a number or a text
				r.err = fmt.Errorf("the database is damaged, a row of it can't be read: %w", r.err)
			}
		})
	}
	if err != nil {
		a.err = fmt.Errorf("audit: %w", a.unreadable(err))
	}
}
