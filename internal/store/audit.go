package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// invariant is one promise about the whole book and the query that finds where it does not hold:
// each row says so in one text column.
type invariant struct {
	name    string
	promise string
	query   string
}

// invariants recompute everything that is kept from what it was made of: totals from transfers, and
// transfers from sales and payouts. Each is also held, on another path, by the code that writes.
var invariants = []invariant{
	{
		"book-sums-to-zero", "What sellers are owed is what the platform's accounts hold for them.",
		`SELECT 'sellers are owed ' || owed || ', the platform''s accounts hold ' || held FROM (
			SELECT (SELECT COALESCE(SUM(pending + available + in_transit), 0) FROM seller_balances) AS owed,
			(SELECT COALESCE(SUM(CASE WHEN debit LIKE 'platform:%' THEN amount ELSE 0 END
				- CASE WHEN credit LIKE 'platform:%' THEN amount ELSE 0 END), 0) FROM transfers) AS held) AS sums
		WHERE owed <> held`,
	},
	{
		"balances-match-transfers", "Each seller's balances are the sum of the seller's transfers.",
		`SELECT b.seller_id || ' has ' || b.pending || '/' || b.available || '/' || b.in_transit || ' pending/available/in transit, the transfers make '
			|| COALESCE(t.pending, 0) || '/' || COALESCE(t.available, 0) || '/' || COALESCE(t.in_transit, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id,
			SUM(CASE credit WHEN 'seller:pending' THEN amount ELSE 0 END - CASE debit WHEN 'seller:pending' THEN amount ELSE 0 END) AS pending,
			SUM(CASE credit WHEN 'seller:available' THEN amount ELSE 0 END - CASE debit WHEN 'seller:available' THEN amount ELSE 0 END) AS available,
			SUM(CASE credit WHEN 'seller:in_transit' THEN amount ELSE 0 END - CASE debit WHEN 'seller:in_transit' THEN amount ELSE 0 END) AS in_transit
			FROM transfers GROUP BY seller_id) t ON t.seller_id = b.seller_id
		WHERE b.pending <> COALESCE(t.pending, 0) OR b.available <> COALESCE(t.available, 0) OR b.in_transit <> COALESCE(t.in_transit, 0)`,
	},
	{
		"totals-match-transfers", "Each seller's earned and withdrawn totals are the sum of the transfers that count towards them.",
		`SELECT b.seller_id || ' has ' || b.earned || '/' || b.withdrawn || ' earned/withdrawn, the transfers make ' || COALESCE(t.earned, 0) || '/' || COALESCE(t.withdrawn, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id,
			SUM(CASE kind WHEN 'sale' THEN amount WHEN 'sale_refund' THEN -amount ELSE 0 END) AS earned,
			SUM(CASE WHEN kind IN ('payout_paid', 'payout_fee') THEN amount WHEN kind IN ('payout_return', 'fee_return') THEN -amount ELSE 0 END) AS withdrawn
			FROM transfers GROUP BY seller_id) t ON t.seller_id = b.seller_id
		WHERE b.earned <> COALESCE(t.earned, 0) OR b.withdrawn <> COALESCE(t.withdrawn, 0)`,
	},
	{
		"transfers-are-complete", "Each seller's transfers are numbered without a gap, and none is missing at the end.",
		`SELECT b.seller_id || ' should have ' || b.transfers || ' transfers, has ' || COUNT(t.number) || ' up to number ' || COALESCE(MAX(t.number), 0)
		FROM seller_balances b LEFT JOIN transfers t ON t.seller_id = b.seller_id
		GROUP BY b.seller_id, b.transfers HAVING COUNT(t.number) <> b.transfers OR COALESCE(MAX(t.number), 0) <> b.transfers
			OR COALESCE(MIN(t.number), 1) <> 1`,
	},
	{
		"floors-hold", "No pending or in-transit balance is below zero.",
		`SELECT seller_id || ' has ' || pending || ' pending and ' || in_transit || ' in transit' FROM seller_balances WHERE pending < 0 OR in_transit < 0`,
	},
	{
		"pending-matches-sales", "Each seller's pending balance is what is left of the sales not released yet.",
		`SELECT b.seller_id || ' has ' || b.pending || ' pending, the sales make ' || COALESCE(s.amount, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id, SUM(amount - refunded) AS amount FROM sales WHERE released_at IS NULL GROUP BY seller_id) s
		ON s.seller_id = b.seller_id WHERE b.pending <> COALESCE(s.amount, 0)`,
	},
	{
		"earned-matches-sales", "Each seller's earned total is all sales less their refunds, and so is the sum over months.",
		`SELECT b.seller_id || ' has earned ' || b.earned || ', the sales make ' || COALESCE(s.amount, 0) || ', the months ' || COALESCE(m.amount, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id, SUM(amount - refunded) AS amount FROM sales GROUP BY seller_id) s ON s.seller_id = b.seller_id
		LEFT JOIN (SELECT seller_id, SUM(amount) AS amount FROM earnings GROUP BY seller_id) m ON m.seller_id = b.seller_id
		WHERE b.earned <> COALESCE(s.amount, 0) OR b.earned <> COALESCE(m.amount, 0)`,
	},
	{
		"months-match-sales", "What a seller earned in a month is that month's sales less their refunds.",
		`SELECT e.seller_id || ' has ' || e.amount || ' in ' || e.month || ', the sales make ' || COALESCE(s.amount, 0)
		FROM earnings e LEFT JOIN (SELECT seller_id, month, SUM(amount - refunded) AS amount FROM sales GROUP BY seller_id, month) s
		ON s.seller_id = e.seller_id AND s.month = e.month WHERE e.amount <> COALESCE(s.amount, 0)`,
	},
	{
		"sales-match-transfers", "Each sale was booked once, released at most once and only for what was left, and refunded as its refunds say.",
		`SELECT 'sale ' || s.id || ' of ' || s.amount || ' was booked ' || COALESCE(t.sales, 0) || ' times for ' || COALESCE(t.sold, 0)
			|| ', released ' || COALESCE(t.releases, 0) || ' times for ' || COALESCE(t.released, 0)
			|| ', refunded ' || COALESCE(t.refunded, 0) || ' of ' || s.refunded || ' (refunds: ' || COALESCE(r.amount, 0) || ')'
		FROM sales s LEFT JOIN (SELECT ref, seller_id,
			SUM(CASE kind WHEN 'sale' THEN 1 ELSE 0 END) AS sales, SUM(CASE kind WHEN 'sale' THEN amount ELSE 0 END) AS sold,
			SUM(CASE kind WHEN 'sale_release' THEN 1 ELSE 0 END) AS releases, SUM(CASE kind WHEN 'sale_release' THEN amount ELSE 0 END) AS released,
			SUM(CASE kind WHEN 'sale_refund' THEN amount ELSE 0 END) AS refunded,
			SUM(CASE WHEN kind = 'sale_refund' AND debit = 'seller:pending' THEN amount ELSE 0 END) AS refunded_before
			FROM transfers WHERE kind IN ('sale', 'sale_release', 'sale_refund') GROUP BY ref, seller_id) t ON t.ref = s.id AND t.seller_id = s.seller_id
		LEFT JOIN (SELECT sale_id, SUM(amount) AS amount FROM sale_refunds GROUP BY sale_id) r ON r.sale_id = s.id
		WHERE COALESCE(t.sales, 0) <> 1 OR t.sold <> s.amount OR t.refunded <> s.refunded OR COALESCE(r.amount, 0) <> s.refunded
			OR t.releases > 1 OR (s.released_at IS NULL AND t.releases > 0)
			OR (s.released_at IS NOT NULL AND t.released <> s.amount - t.refunded_before)`,
	},
	{
		"in-transit-matches-payouts", "Each seller's in-transit balance is the sum of the payouts that have not ended.",
		`SELECT b.seller_id || ' has ' || b.in_transit || ' in transit, the payouts make ' || COALESCE(p.amount, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id, SUM(amount) AS amount FROM payouts WHERE status = 'processing' GROUP BY seller_id) p
		ON p.seller_id = b.seller_id WHERE b.in_transit <> COALESCE(p.amount, 0)`,
	},
	{
		"withdrawn-matches-payouts", "Each seller's withdrawn total is the sum of the completed payouts.",
		`SELECT b.seller_id || ' has withdrawn ' || b.withdrawn || ', the payouts make ' || COALESCE(p.amount, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id, SUM(amount) AS amount FROM payouts WHERE status = 'completed' GROUP BY seller_id) p
		ON p.seller_id = b.seller_id WHERE b.withdrawn <> COALESCE(p.amount, 0)`,
	},
	{
		"payouts-match-transfers", "Each payout was held once, then settled once or given back once, and returned only after it was settled.",
		`SELECT 'payout ' || p.id || ' (' || p.state || ') of ' || p.amount || ' was held ' || COALESCE(t.held, 0) || ', given back ' || COALESCE(t.released, 0)
			|| ', paid ' || COALESCE(t.paid, 0) || ' and ' || COALESCE(t.fee, 0) || ' in fees, returned ' || COALESCE(t.returned, 0)
			|| ', in ' || COALESCE(t.transfers, 0) || ' transfers'
		FROM payouts p LEFT JOIN (SELECT ref, seller_id, COUNT(*) AS transfers,
			SUM(CASE kind WHEN 'payout_hold' THEN amount ELSE 0 END) AS held, SUM(CASE kind WHEN 'payout_release' THEN amount ELSE 0 END) AS released,
			SUM(CASE kind WHEN 'payout_paid' THEN amount ELSE 0 END) AS paid, SUM(CASE kind WHEN 'payout_fee' THEN amount ELSE 0 END) AS fee,
			SUM(CASE WHEN kind IN ('payout_return', 'fee_return') THEN amount ELSE 0 END) AS returned
			FROM transfers WHERE kind NOT IN ('sale', 'sale_release', 'sale_refund') GROUP BY ref, seller_id) t ON t.ref = p.id AND t.seller_id = p.seller_id
		WHERE COALESCE(t.held, 0) <> p.amount
			OR t.released <> CASE WHEN p.state IN ('failed', 'cancelled') THEN p.amount ELSE 0 END
			OR t.paid <> CASE WHEN p.state IN ('completed', 'returned') THEN p.amount - p.fee ELSE 0 END
			OR t.fee <> CASE WHEN p.state IN ('completed', 'returned') THEN p.fee ELSE 0 END
			OR t.returned <> CASE WHEN p.state = 'returned' THEN p.amount ELSE 0 END
			OR t.transfers <> 1 + CASE p.state WHEN 'failed' THEN 1 WHEN 'cancelled' THEN 1
				WHEN 'completed' THEN 1 + CASE WHEN p.fee > 0 THEN 1 ELSE 0 END
				WHEN 'returned' THEN 2 + CASE WHEN p.fee > 0 THEN 2 ELSE 0 END ELSE 0 END`,
	},
	{
		"transfers-have-a-cause", "Each transfer is for a sale or a payout of the same seller.",
		`SELECT t.seller_id || '''s transfer ' || t.number || ' (' || t.kind || ') is for ' || t.ref || ', which is none of the seller''s'
		FROM transfers t WHERE NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = t.ref AND p.seller_id = t.seller_id)
			AND NOT EXISTS (SELECT 1 FROM sales s WHERE s.id = t.ref AND s.seller_id = t.seller_id)`,
	},
	{
		"gateway-transfers-are-told-apart", "No two payouts name the same transfer of the gateway.",
		`SELECT COUNT(*) || ' payouts name the transfer ' || gateway_id || ', among them ' || MIN(id) || ' and ' || MAX(id)
		FROM payouts WHERE gateway_id <> '' GROUP BY gateway_id HAVING COUNT(*) > 1`,
	},
	{
		"owners-are-there", "Each payout goes to a bank account of its own seller, and each book belongs to a user.",
		`SELECT 'payout ' || p.id || ' goes to bank account ' || p.bank_account_id || ', which is none of its seller''s' FROM payouts p
		WHERE NOT EXISTS (SELECT 1 FROM bank_accounts a WHERE a.id = p.bank_account_id AND a.seller_id = p.seller_id)
		UNION ALL
		SELECT 'the book of ' || b.seller_id || ' belongs to nobody' FROM seller_balances b
		WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = b.seller_id)
		UNION ALL
		SELECT DISTINCT 'there are transfers, sales or payouts of ' || seller_id || ', and no book' FROM (SELECT seller_id FROM transfers
			UNION SELECT seller_id FROM sales UNION SELECT seller_id FROM payouts UNION SELECT seller_id FROM earnings) AS owners
		WHERE NOT EXISTS (SELECT 1 FROM seller_balances b WHERE b.seller_id = owners.seller_id)`,
	},
	{
		"counters-match-rows", "Each seller's counters are the number of sales, and of payouts by status.",
		`SELECT b.seller_id || ' counts ' || b.sales || ' sales and ' || b.processing || '/' || b.completed || '/' || b.failed || '/' || b.cancelled
			|| ' payouts, there are ' || COALESCE(s.n, 0) || ' and ' || COALESCE(p.processing, 0) || '/' || COALESCE(p.completed, 0) || '/' || COALESCE(p.failed, 0) || '/' || COALESCE(p.cancelled, 0)
		FROM seller_balances b LEFT JOIN (SELECT seller_id, COUNT(*) AS n FROM sales GROUP BY seller_id) s ON s.seller_id = b.seller_id
		LEFT JOIN (SELECT seller_id, SUM(CASE status WHEN 'processing' THEN 1 ELSE 0 END) AS processing, SUM(CASE status WHEN 'completed' THEN 1 ELSE 0 END) AS completed,
			SUM(CASE status WHEN 'failed' THEN 1 ELSE 0 END) AS failed, SUM(CASE status WHEN 'cancelled' THEN 1 ELSE 0 END) AS cancelled
			FROM payouts GROUP BY seller_id) p ON p.seller_id = b.seller_id
		WHERE b.sales <> COALESCE(s.n, 0) OR b.processing <> COALESCE(p.processing, 0) OR b.completed <> COALESCE(p.completed, 0)
			OR b.failed <> COALESCE(p.failed, 0) OR b.cancelled <> COALESCE(p.cancelled, 0)`,
	},
	{
		"history-is-unbroken", "Each payout's recorded changes lead from waiting to its present state.",
		`SELECT 'payout ' || p.id || ' is ' || p.state || ', its history ends with ' || COALESCE((SELECT to_state FROM payout_events e WHERE e.payout_id = p.id ORDER BY number DESC LIMIT 1), 'waiting')
		FROM payouts p WHERE p.state <> COALESCE((SELECT to_state FROM payout_events e WHERE e.payout_id = p.id ORDER BY number DESC LIMIT 1), 'waiting')
		UNION ALL
		SELECT 'payout ' || e.payout_id || ' went from ' || e.from_state || ' at change ' || e.number || ', where it was not'
		FROM payout_events e LEFT JOIN payout_events before ON before.payout_id = e.payout_id AND before.number = e.number - 1
		WHERE e.from_state <> COALESCE(before.to_state, 'waiting')`,
	},
	{
		"nothing-is-stuck", "Each payout that has not ended has a next step, or is held for a person.",
		`SELECT 'payout ' || id || ' is ' || state || ' and nothing is to be done about it' FROM payouts
		WHERE status = 'processing' AND state <> 'held' AND due_at IS NULL`,
	},
	{
		"gateway-agrees", "The gateway has said nothing about a payout that contradicts the books, and none was kept back that was changed by hand.",
		`SELECT 'payout ' || id || ' is ' || state || '; found: ' || contradiction FROM payouts WHERE contradiction <> ''`,
	},
	{
		"strays-are-settled", "Each transfer that the gateway made for us belongs to a payout in the book, or a person has settled it.",
		`SELECT 'the gateway''s transfer ' || s.gateway_id || ' of ' || s.amount || ' for ' || s.reference || ': ' || s.why FROM strays s
		WHERE s.settled = 0 AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = s.reference AND p.gateway_id = s.gateway_id)`,
	},
	{
		"paid-is-on-record", "Each completed payout names the gateway's transfer and when it was paid.",
		`SELECT 'payout ' || id || ' is ' || state || ' without the gateway''s id or the time' FROM payouts
		WHERE state IN ('completed', 'returned') AND (gateway_id = '' OR completed_at IS NULL)`,
	},
}

// Audit recomputes the whole book and checks every invariant, from one consistent view and without
// holding up anybody's writes.
func (db *DB) Audit(ctx context.Context) (ledger.Report, error) {
	view := &sql.TxOptions{ReadOnly: true, Isolation: db.dialect.snapshot}
	tx, err := db.reader.BeginTx(ctx, view)
	for try := 1; try < maxTries && db.dialect.lost(err); try++ {
		tx, err = db.reader.BeginTx(ctx, view)
	}
	if err != nil {
		return ledger.Report{}, fmt.Errorf("audit: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	a := auditor{ctx: ctx, tx: tx, unreadable: db.dialect.unreadable, overflowed: db.dialect.overflowed}
	for _, statement := range db.dialect.readAll {
		a.do(statement)
	}
	var r ledger.Report
	if sound := a.sound(db.dialect.unsound); len(sound.Violations) > 0 { // nothing that is read counts for much
		return ledger.Report{Findings: []ledger.Finding{sound}}, a.err
	} else if db.dialect.unsound != "" {
		r.Findings = append(r.Findings, sound)
	}
	for table, n := range map[string]*int64{"seller_balances": &r.Sellers, "transfers": &r.Transfers, "payouts": &r.Payouts, "sales": &r.Sales} {
		a.each(`SELECT COUNT(*) FROM `+table, func(rows row) error { return rows.Scan(n) })
	}
	for _, i := range slices.Concat(invariants, rowInvariants) {
		r.Findings = append(r.Findings, a.hold(i))
	}
	r.Findings = append(r.Findings, a.recipes(), a.machine(), a.statuses(), a.records(), a.chains())
	r.Findings = append(r.Findings, a.checkpoints()...)
	return r, a.err
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
func (a *auditor) all(query string, scan func(row) error) {
	if a.err != nil {
		return
	}
	rows, err := a.tx.QueryContext(a.ctx, query)
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

// recipes holds every transfer against the recipes of package ledger.
func (a *auditor) recipes() ledger.Finding {
	f := ledger.Finding{Name: "transfers-follow-recipes", Promise: "Each transfer moves between the accounts that its kind may touch."}
	a.each(`SELECT kind, debit, credit, COUNT(*), MIN(amount), MIN(ref) FROM transfers GROUP BY kind, debit, credit`, func(r row) error {
		var t ledger.Transfer
		var n int64
		err := r.Scan(&t.Kind, &t.Debit, &t.Credit, &n, &t.Amount, &t.Ref)
		if err == nil && !t.FitsRecipe() {
			f.Violations = append(f.Violations, fmt.Sprintf("%d transfers of kind %s go from %s to %s", n, t.Kind, t.Debit, t.Credit))
		}
		return err
	})
	return f
}

// machine holds every recorded change against the payout's state machine.
func (a *auditor) machine() ledger.Finding {
	f := ledger.Finding{Name: "changes-follow-the-machine", Promise: "Each change of a payout's state is one that the state machine allows."}
	a.each(`SELECT from_state, to_state, COUNT(*) FROM payout_events GROUP BY from_state, to_state`, func(r row) error {
		var from, to payout.State
		var n int64
		err := r.Scan(&from, &to, &n)
		if err == nil && !from.CanBecome(to) {
			f.Violations = append(f.Violations, fmt.Sprintf("%d payouts went from %s to %s", n, from, to))
		}
		return err
	})
	return f
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
