package store

import (
	"fmt"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// rowInvariants hold what no transfer tells against another record of the same: the time in the chain, what was
// asked for, what is being sent, what was decided. Whoever changes one by hand must change the other too.
var rowInvariants = []invariant{
	{
		"times-match-transfers", "Each sale and each payout has the times at which its money moved.",
		`SELECT 'sale ' || s.id || ' says it was made at ' || s.created_at || ' and released at ' || COALESCE(s.released_at, 0)
			|| ', its transfers ' || COALESCE(t.sold, 0) || ' and ' || COALESCE(t.released, 0)
		FROM sales s JOIN (SELECT ref, seller_id, MAX(CASE kind WHEN 'sale' THEN at END) AS sold, MAX(CASE kind WHEN 'sale_release' THEN at END) AS released
			FROM transfers WHERE kind IN ('sale', 'sale_release') GROUP BY ref, seller_id) t ON t.ref = s.id AND t.seller_id = s.seller_id
		WHERE s.created_at <> t.sold OR s.released_at <> t.released
		UNION ALL
		SELECT 'payout ' || p.id || ' says it was requested at ' || p.requested_at || ', paid at ' || COALESCE(p.completed_at, 0) || ' and over at ' || COALESCE(p.ended_at, 0)
			|| ', its transfers ' || COALESCE(t.held, 0) || ', ' || COALESCE(t.paid, 0) || ' and ' || COALESCE(t.last, 0)
		FROM payouts p JOIN (SELECT ref, seller_id, MAX(CASE kind WHEN 'payout_hold' THEN at END) AS held,
			MAX(CASE kind WHEN 'payout_paid' THEN at END) AS paid, COALESCE(MAX(CASE kind WHEN 'payout_return' THEN at END), MAX(CASE WHEN kind <> 'payout_hold' THEN at END)) AS last
			FROM transfers WHERE kind NOT IN ('sale', 'sale_release', 'sale_refund') GROUP BY ref, seller_id) t ON t.ref = p.id AND t.seller_id = p.seller_id
		WHERE ABS(COALESCE(p.completed_at, 0) - COALESCE(t.paid, 0)) > ` + slack + ` OR ABS(COALESCE(p.ended_at, 0) - COALESCE(t.last, 0)) > ` + slack + `
			OR (p.requested_at <> t.held AND NOT (p.requested_at < t.held -- found at the gateway, after a restore
				AND EXISTS (SELECT 1 FROM payout_events e WHERE e.payout_id = p.id AND e.number = 1 AND e.to_state = 'submitted' AND ABS(e.at - t.held) <= ` + slack + `)))
		UNION ALL
		SELECT 'payout ' || p.id || ' says it became ' || e.to_state || ' at ' || e.at || ', and was sent or over at ' || COALESCE(p.sent_at, 0) || ' or ' || COALESCE(p.ended_at, 0)
		FROM payouts p JOIN payout_events e ON e.payout_id = p.id AND e.to_state = p.state WHERE p.status <> 'processing' AND ABS(e.at - p.ended_at) > ` + slack + `
		UNION ALL
		SELECT 'payout ' || p.id || ' says it was sent at ' || p.sent_at || ', and its history does not' FROM payouts p WHERE p.sent_at IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM payout_events e WHERE e.payout_id = p.id AND e.to_state = 'submitting' AND ABS(e.at - p.sent_at) <= ` + slack + `)`,
	},
	{
		"sales-match-requests", "Each sale and each refund is what the marketplace asked for, and no sale was released early.",
		`SELECT 'sale ' || id || ' of ' || amount || ' for ' || seller_id || ' at ' || occurred_at || ', to be withdrawn from ' || available_at || ', was asked for as "' || fingerprint || '"'
		FROM sales WHERE NOT (fingerprint = seller_id || ' ' || amount || ' ' || occurred_at || ' ' || available_at
			OR fingerprint = seller_id || ' ' || amount || ' ' || occurred_at || ' -'
			OR fingerprint = seller_id || ' ' || amount || ' - ' || available_at AND occurred_at IN (created_at, available_at)
			OR fingerprint = seller_id || ' ' || amount || ' - -' AND occurred_at = created_at)
			OR available_at < occurred_at OR released_at < available_at
		UNION ALL
		SELECT 'refund ' || id || ' of sale ' || sale_id || ' of ' || amount || ' was asked for as "' || fingerprint || '"'
		FROM sale_refunds WHERE fingerprint NOT IN (amount || '', '0')`,
	},
	{
		"refunds-match-transfers", "Each refund was booked when and as it was made.",
		`SELECT 'the refunds of sale ' || ref || ' at ' || at || ' and its transfers differ by ' || SUM(amount) FROM (
			SELECT ref, at, amount FROM transfers WHERE kind = 'sale_refund' UNION ALL SELECT sale_id, at, -amount FROM sale_refunds) AS both_records
		GROUP BY ref, at HAVING SUM(amount) <> 0`,
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
		"orders-match-payouts", "Each order that is being sent names its payout's seller, bank account and amount.",
		`SELECT 'the order of payout ' || p.id || ' is for somebody or something else' FROM payouts p JOIN bank_accounts a ON a.id = p.bank_account_id
		WHERE p.order_body <> '' AND (REPLACE(p.order_body, p.seller_id, '') = p.order_body OR REPLACE(p.order_body, p.bank_account_id, '') = p.order_body
			OR REPLACE(p.order_body, p.amount || '', '') = p.order_body OR (a.beneficiary <> '' AND REPLACE(p.order_body, a.beneficiary, '') = p.order_body))`,
	},
	{
		"beneficiaries-are-told-apart", "No two bank accounts stand for the same account at the gateway.",
		`SELECT COUNT(*) || ' bank accounts name the gateway''s ' || beneficiary || ', among them ' || MIN(id) || ' and ' || MAX(id)
		FROM bank_accounts WHERE beneficiary <> '' GROUP BY beneficiary HAVING COUNT(*) > 1`,
	},
	{
		"decisions-are-on-record", "What only an admin can decide was decided by one.",
		`SELECT 'payout ' || p.id || ' was given back, and nobody decided it' FROM payouts p WHERE p.reason_code = 'given_back' AND p.state = 'failed'
			AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.subject = p.id AND d.action = 'give_payout_back')
		UNION ALL
		SELECT 'the transfer ' || s.gateway_id || ' was settled, and nobody decided it' FROM strays s
		WHERE s.settled = 1 AND s.found_at > ` + decisionsSince + ` AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.subject = s.gateway_id AND d.action = 'settle_stray')
		UNION ALL
		SELECT 'bank account ' || a.id || ' is verified, by nobody' FROM bank_accounts a
		WHERE a.status = 'verified' AND a.verification_id = '' AND a.created_at > ` + decisionsSince + `
			AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.subject = a.id AND d.action = 'accept_bank_account')
		UNION ALL
		SELECT 'user ' || u.id || ' is ' || u.role || CASE u.suspended WHEN 1 THEN ', suspended' ELSE '' END || ', which is not what was decided last' FROM users u
		WHERE EXISTS (SELECT 1 FROM decisions d WHERE d.subject = u.id AND d.action = 'change_access')
			AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.subject = u.id AND d.action = 'change_access'
				AND d.note LIKE 'Now ' || u.role || CASE u.suspended WHEN 1 THEN ', suspended' ELSE '' END || '.%'
				AND d.at = (SELECT MAX(at) FROM decisions WHERE subject = u.id AND action = 'change_access'))
		UNION ALL
		SELECT 'difference ' || f.id || ' was settled, and nobody decided it' FROM differences f
		WHERE f.settled_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.subject = f.id AND d.action = 'settle_difference')
		UNION ALL
		SELECT 'user ' || u.id || ' has a book and is an admin, and nobody decided it' FROM users u
		WHERE u.role = 'admin' AND u.created_at > ` + decisionsSince + ` AND EXISTS (SELECT 1 FROM seller_balances b WHERE b.seller_id = u.id)
			AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.subject = u.id AND d.action = 'change_access')`,
	},
}

// slack is how far the clock may go on, in microseconds, between the time that a payout is given and that of
// its transfers.
const slack = `60000000`

// decisionsSince is when this database began to keep a record of decisions. What is older may lack one.
const decisionsSince = `(SELECT MAX(applied_at) FROM schema_migrations WHERE name LIKE '0004%')`

// records holds every paid payout against the record that was made of it.
func (a *auditor) records() ledger.Finding {
	f := ledger.Finding{Name: "payouts-match-records", Promise: "Each paid payout went where it says, under the references that it says."}
	a.all(`SELECT id, seller_id, bank_account_id, mode, gateway_id, utr, completed_at, record FROM payouts WHERE record <> ''`, func(r row) error {
		var p payout.Payout
		var record string
		err := r.Scan(&p.ID, &p.Seller, &p.BankAccountID, &p.Mode, &p.GatewayID, &p.UTR, instant{&p.CompletedAt}, &record)
		if err == nil && record != p.Record() && len(f.Violations) < ledger.MaxViolations {
			f.Violations = append(f.Violations, fmt.Sprintf("payout %s says that it went to bank account %s as %s under %q, and its record says otherwise",
				p.ID, p.BankAccountID, p.GatewayID, p.UTR))
		}
		return err
	})
	return f
}
