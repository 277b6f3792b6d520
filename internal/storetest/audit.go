package storetest

import (
	"strings"
	"testing"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// books fills a database with a bit of everything.
func (b *bench) books() {
	b.Helper()
	seller := b.seller("usr_a")
	b.seller("usr_empty")
	b.fund(seller, 10_000)
	b.sell("pending", seller, 700)
	b.complete(b.ask("pyt_completed", seller, 1000, 10))
	failed := b.ask("pyt_failed", seller, 1000, 10)
	failed.EndedAt = b.now
	failed = b.move(failed, payout.Submitting)
	b.move(failed, payout.Failed, ledger.Posting{
		Transfers: ledger.ReleasePayout("pyt_failed", 1000), Counts: ledger.Counts{Processing: -1, Failed: 1},
	})
	returned := b.complete(b.ask("pyt_returned", seller, 1000, 10))
	b.move(returned, payout.Returned, ledger.Posting{
		Transfers: ledger.ReturnPayout("pyt_returned", 990, 10), Counts: ledger.Counts{Completed: -1, Failed: 1},
	})
	b.ask("pyt_waiting", seller, 1000, 10)
	b.checkpoint()
}

func testCleanAudit(_ *testing.T, b *bench) {
	b.books()
	report := b.wantCleanAudit()
	if report.Sellers != 2 || report.Payouts != 4 || report.Sales != 2 || report.Transfers != 14 {
		b.Errorf("the report counts %d sellers, %d payouts, %d sales, %d transfers; want 2, 4, 2, 14",
			report.Sellers, report.Payouts, report.Sales, report.Transfers)
	}
}

// wantCleanAudit wants every invariant to hold, and returns the report.
func (b *bench) wantCleanAudit() ledger.Report {
	b.Helper()
	report, err := b.db.Audit(b.ctx())
	b.must(err)
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			b.Errorf("%s: %v", f.Name, f.Violations)
		}
	}
	return report
}

// testAuditFinds changes rows by hand, as nobody may, and wants the audit to name each broken
// invariant. Every invariant must be broken by some change, or it is not known to be checked.
func testAuditFinds(t *testing.T, b *bench) {
	t.Helper()
	b.world()
	report := b.wantCleanAudit()
	copied := b.tampered()
	tampers := []struct {
		sql  string
		want []string
	}{
		{`UPDATE seller_balances SET available = available + 1 WHERE seller_id = 'usr_a'`, []string{"book-sums-to-zero", "balances-match-transfers"}},
		{`UPDATE seller_balances SET pending = pending + 1, available = available - 1 WHERE seller_id = 'usr_a'`, []string{"balances-match-transfers", "pending-matches-sales"}},
		{`UPDATE seller_balances SET in_transit = in_transit - 1 WHERE seller_id = 'usr_a'`, []string{"book-sums-to-zero", "balances-match-transfers", "in-transit-matches-payouts"}},
		{`UPDATE seller_balances SET earned = earned + 1 WHERE seller_id = 'usr_a'`, []string{"totals-match-transfers", "earned-matches-sales"}},
		{`UPDATE seller_balances SET withdrawn = withdrawn + 1 WHERE seller_id = 'usr_a'`, []string{"totals-match-transfers", "withdrawn-matches-payouts"}},
		{`UPDATE seller_balances SET completed = completed + 1 WHERE seller_id = 'usr_a'`, []string{"counters-match-rows"}},
		{`UPDATE earnings SET amount = amount + 1, month = '2026-10' WHERE seller_id = 'usr_a'`, []string{"earned-matches-sales", "months-match-sales"}},
		{`UPDATE transfers SET number = 99 WHERE seller_id = 'usr_a' AND number = 3`, []string{"transfers-are-complete"}},
		{`UPDATE transfers SET ref = 'pyt_other' WHERE ref = 'pyt_waiting'`, []string{"payouts-match-transfers", "transfers-have-a-cause"}},
		{`UPDATE transfers SET amount = amount + 1 WHERE ref = 'pending'`, []string{"book-sums-to-zero", "balances-match-transfers", "sales-match-transfers", "totals-match-transfers"}},
		{`UPDATE transfers SET kind = 'payout_return' WHERE kind = 'sale_release'`, []string{"totals-match-transfers", "sales-match-transfers", "transfers-follow-recipes"}},
		{`UPDATE sales SET amount = amount + 1 WHERE id = 'pending'`, []string{"pending-matches-sales", "earned-matches-sales", "months-match-sales", "sales-match-transfers"}},
		{`UPDATE payouts SET amount = amount + 1 WHERE id = 'pyt_failed'`, []string{"payouts-match-transfers"}},
		{`UPDATE payouts SET due_at = NULL WHERE id = 'pyt_waiting'`, []string{"nothing-is-stuck"}},
		{`UPDATE payouts SET state = 'submitted' WHERE id = 'pyt_waiting'`, []string{"history-is-unbroken"}},
		{`UPDATE payouts SET status = 'cancelled' WHERE id = 'pyt_failed'`, []string{"counters-match-rows", "status-follows-state"}},
		{`UPDATE payouts SET contradiction = 'paid' WHERE id = 'pyt_failed'`, []string{"gateway-agrees"}},
		{`UPDATE transfers SET number = 0 WHERE seller_id = 'usr_a' AND number = 1`, []string{"transfers-are-complete"}},
		{`UPDATE payouts SET gateway_id = '' WHERE id = 'pyt_completed'`, []string{"paid-is-on-record"}},
		{`INSERT INTO strays (gateway_id, reference, seller_id, amount, progress, found_at, why, settled)
			VALUES ('pout_again', 'pyt_completed', 'usr_a', 990, 'paid', 0, 'paid again', 0)`, []string{"strays-are-settled"}},
		{`UPDATE payouts SET gateway_id = 'pout_returned' WHERE id = 'pyt_completed'`, []string{"gateway-transfers-are-told-apart"}},
		{`UPDATE payouts SET bank_account_id = 'bka_usr_empty' WHERE id = 'pyt_completed'`, []string{"owners-are-there"}},
		{`DELETE FROM users WHERE id = 'usr_b'`, []string{"owners-are-there"}},
		{`UPDATE transfers SET at = at + 1 WHERE seller_id = 'usr_a' AND number = 3`, []string{"chains-are-whole"}},
		{`UPDATE checkpoint_books SET transfers = 0 WHERE seller_id = 'usr_a'`, []string{"chains-are-whole", "books-match-checkpoint"}},
		{`UPDATE checkpoints SET root = previous`, []string{"checkpoints-are-signed", "books-match-checkpoint"}},
		{`UPDATE sales SET released_at = released_at + 1 WHERE id = 'sale for usr_a'`, []string{"times-match-transfers"}},
		{`UPDATE payouts SET completed_at = completed_at - 70000000 WHERE id = 'pyt_completed'`, []string{"times-match-transfers"}},
		{`UPDATE payout_events SET at = at - 70000000 WHERE payout_id = 'pyt_returned'`, []string{"times-match-transfers"}},
		{`UPDATE sales SET available_at = occurred_at, occurred_at = occurred_at - 1 WHERE id = 'pending'`, []string{"sales-match-requests"}},
		{`UPDATE payouts SET utr = 'HDFCN00000000002' WHERE id = 'pyt_completed'`, []string{"payouts-match-records"}},
		{`UPDATE sale_refunds SET at = at + 1`, []string{"refunds-match-transfers"}},
		{`UPDATE sale_refunds SET fingerprint = '501'`, []string{"sales-match-requests"}},
		{`UPDATE idempotency_keys SET payout_id = 'pyt_completed'`, []string{"keys-match-payouts"}},
		{`UPDATE idempotency_keys SET refusal = '{}'`, []string{"keys-match-payouts"}},
		{`UPDATE payouts SET bank_account_id = 'bka_usr_b' WHERE id = 'pyt_sending'`, []string{"orders-match-payouts", "owners-are-there"}},
		{`UPDATE payouts SET order_body = REPLACE(order_body, 'fa_usr_a', 'fa_usr_b') WHERE id = 'pyt_sending'`, []string{"orders-match-payouts"}},
		{`UPDATE bank_accounts SET beneficiary = 'fa_usr_b' WHERE id = 'bka_usr_a'`, []string{"orders-match-payouts", "beneficiaries-are-told-apart"}},
		{`DELETE FROM decisions WHERE subject = 'pyt_given'`, []string{"decisions-are-on-record"}},
		{`DELETE FROM decisions WHERE subject = 'pout_stray'`, []string{"decisions-are-on-record"}},
		{`UPDATE bank_accounts SET verification_id = '' WHERE id = 'bka_usr_b'`, []string{"decisions-are-on-record"}},
		{`UPDATE users SET role = 'admin' WHERE id = 'usr_b'`, []string{"decisions-are-on-record"}},
		{`UPDATE users SET role = 'admin' WHERE id = 'usr_a'`, []string{"decisions-are-on-record"}},
		{`INSERT INTO checkpoint_keys (kid, public_key) VALUES ('mallory', 'x')`, []string{"checkpoints-are-signed"}},
		{`DELETE FROM seller_balances WHERE seller_id = 'usr_b'`, []string{"owners-are-there"}},
		{`UPDATE payout_events SET from_state = 'cancelled' WHERE payout_id = 'pyt_failed' AND number = 2`, []string{"history-is-unbroken", "changes-follow-the-machine"}},
	}
	broken := map[string]bool{
		"floors-hold":   true, // the schema itself refuses what would break it
		"file-is-sound": true, // no statement damages a file; the engine's own tests do
	}
	for _, tt := range tampers {
		found := copied.found(tt.sql)
		for _, want := range tt.want {
			broken[want] = true
			if found[want] == "" {
				t.Errorf("after %s the audit names %v, want %s among them", tt.sql, found, want)
			}
		}
	}
	for _, f := range report.Findings {
		if !broken[f.Name] {
			t.Errorf("nothing here breaks %s", f.Name)
		}
	}
}

// testOneRow changes a row so that its finding lacks half of what it is made of, or that no sum of it can be had,
// beside another that is found all the same.
func testOneRow(t *testing.T, b *bench) {
	t.Helper()
	b.world()
	copied := b.tampered()
	const most = "9223372036854775807"
	for _, tt := range []struct {
		sql   string
		finds map[string]string // a part of the text, by the name of the finding
	}{
		{`UPDATE payouts SET requested_at = requested_at + 1 WHERE id = 'pyt_waiting'`, map[string]string{"times-match-transfers": "pyt_waiting"}},
		{`UPDATE payouts SET completed_at = requested_at WHERE id = 'pyt_waiting'`, map[string]string{"times-match-transfers": "pyt_waiting"}},
		{`UPDATE payouts SET ended_at = requested_at WHERE id = 'pyt_sending'`, map[string]string{"times-match-transfers": "pyt_sending"}},
		{`UPDATE payouts SET completed_at = completed_at + 70000000 WHERE id = 'pyt_completed';
			UPDATE transfers SET kind = 'payout_paid' WHERE ref = 'pyt_completed' AND kind = 'payout_hold'`, map[string]string{"times-match-transfers": "pyt_completed"}},
		{`UPDATE sales SET released_at = released_at + 1 WHERE id = 'sale for usr_a';
			UPDATE transfers SET kind = 'sale_release' WHERE ref = 'sale for usr_a'`, map[string]string{"times-match-transfers": "sale for usr_a"}},
		{`UPDATE transfers SET amount = ` + most + ` WHERE seller_id = 'usr_a' AND number = 1`, map[string]string{
			"book-sums-to-zero": "", "balances-match-transfers": "", "totals-match-transfers": "", "sales-match-transfers": "", "chains-are-whole": "usr_a",
		}},
		{`UPDATE seller_balances SET available = ` + most + ` WHERE seller_id = 'usr_a'`, map[string]string{
			"book-sums-to-zero": "", "balances-match-transfers": "usr_a",
		}},
		{`UPDATE payouts SET completed_at = -` + most + `, ended_at = -` + most + ` WHERE id = 'pyt_completed'`, map[string]string{"times-match-transfers": ""}},
		{`UPDATE payouts SET amount = ` + most + ` WHERE status = 'completed'`, map[string]string{
			"withdrawn-matches-payouts": "", "payouts-match-transfers": "pyt_completed",
		}},
	} {
		found := copied.found(tt.sql + `; UPDATE payouts SET contradiction = 'paid' WHERE id = 'pyt_failed'`)
		tt.finds["gateway-agrees"] = "pyt_failed"
		for name, part := range tt.finds {
			if found[name] == "" || !strings.Contains(found[name], part) {
				t.Errorf("after %s the audit finds %v, want %s of %q among them", tt.sql, found, name, part)
			}
		}
	}
	if left := copied.broken(); len(left) > 0 {
		t.Errorf("what was put right is still broken: %v", left)
	}
}
