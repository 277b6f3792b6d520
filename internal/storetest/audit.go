package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// fill fills a database with a bit of everything.
func (b *bench) fill() {
	b.Helper()
	seller := b.seller("usr_a")
	b.seller("usr_empty")
	b.fund(seller, 10_000)
	b.sell("pending", seller, 700)
	b.complete(b.ask("pyt_completed", seller, 1000, 10))
	failed := b.move(b.ask("pyt_failed", seller, 1000, 10), payout.Submitting)
	failed.EndedAt, failed.DueAt = b.now, time.Time{}
	b.move(failed, payout.Failed)
	b.move(b.complete(b.ask("pyt_returned", seller, 1000, 10)), payout.Returned)
	b.ask("pyt_waiting", seller, 1000, 10)
	b.checkpoint()
}

func testCleanAudit(_ *testing.T, b *bench) {
	b.fill()
	report := b.wantCleanAudit()
	if report.Sellers != 1 || report.Payouts != 4 || report.Sales != 2 || report.Entries != 16 {
		b.Errorf("the report counts %d sellers, %d payouts, %d sales, %d entries; want 1, 4, 2, 16",
			report.Sellers, report.Payouts, report.Sales, report.Entries)
	}
}

// wantCleanAudit wants every invariant to hold, and returns the report.
func (b *bench) wantCleanAudit() ledger.Report {
	b.Helper()
	report, err := b.db.Audit(b.ctx(), b.keys)
	b.must(err)
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			b.Errorf("%s: %v", f.Name, f.Violations)
		}
	}
	return report
}

// testAuditPages has more sales, payouts and bank accounts than are read at once, and changes the last of each.
func testAuditPages(_ *testing.T, b *bench) {
	const page = 500
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	p := b.ask("pyt_000", seller, 1, 0)
	b.updates(page, func(tx *store.Tx, i int) error {
		p.ID = payout.ID(fmt.Sprintf("pyt_%03d", i+1))
		if err := post(b, tx, seller, ledger.PayoutRequested, string(p.ID), payout.Payout{ID: p.ID}, p, ledger.ReservePayout(1)); err != nil {
			return err
		}
		return tx.InsertPayout(b.ctx(), p)
	})
	b.updates(page+1, func(tx *store.Tx, i int) error {
		return b.insertSale(tx, sale.Sale{
			ID: fmt.Sprintf("sale-%03d", i), Seller: seller, Amount: 100, Month: "2026-11", OccurredAt: b.now, AvailableAt: b.now, CreatedAt: b.now, Fingerprint: "f",
		})
	})
	account := b.register("bka_more_000", seller)
	b.updates(page, func(tx *store.Tx, i int) error {
		account.ID = bank.ID(fmt.Sprintf("bka_more_%03d", i+1))
		account.VerificationID, account.Beneficiary = "fav_"+string(account.ID), "fa_"+string(account.ID)
		account.EncryptedNumber = b.encrypted(account)
		return b.addAccount(tx, account)
	})
	if report := b.wantCleanAudit(); report.Sales != page+2 || report.Payouts != page+1 { // one sale is what the payouts are paid from
		b.Errorf("the report counts %d sales and %d payouts, want %d and %d", report.Sales, report.Payouts, page+2, page+1)
	}
	hands := b.engine.Hands(b.T, b.db)
	for _, tt := range []struct{ change, finding, subject string }{
		{`UPDATE sales SET occurred_at = occurred_at + 1 WHERE id = 'sale-500'`, "sales-match-journal", "sale:sale-500"},
		{`DELETE FROM sales WHERE id = 'sale-500'`, "sales-match-journal", "sale:sale-500"},
		{`UPDATE payouts SET amount = amount + 1 WHERE id = 'pyt_500'`, "payouts-match-journal", "pyt_500"},
		{`DELETE FROM payouts WHERE id = 'pyt_500'`, "payouts-match-journal", "pyt_500"},
		{`UPDATE bank_accounts SET holder = 'Mallory' WHERE id = 'bka_more_500'`, "bank-accounts-match-journal", "bka_more_500"},
		{`DELETE FROM bank_accounts WHERE id = 'bka_more_500'`, "bank-accounts-match-journal", "bka_more_500"},
	} {
		hands(tt.change)
		report, err := b.db.Audit(b.ctx(), b.keys)
		b.must(err)
		i := slices.IndexFunc(report.Findings, func(f ledger.Finding) bool { return f.Name == tt.finding })
		if found := report.Findings[i].Violations; len(found) != 1 || found[0].Subject != tt.subject {
			b.Errorf("after %s the audit finds %v", tt.change, found)
		}
	}
}

// testAuditFinds changes rows by hand, as nobody may, and wants the audit to name each broken
// invariant. Every invariant must be broken by some change, or it is not known to be checked.
func testAuditFinds(t *testing.T, b *bench) {
	t.Helper()
	b.fillAll()
	report := b.wantCleanAudit()
	copied := b.tampered()
	tampers := []struct {
		sql  string
		want []string // names of findings; behind a colon, a part of what each says
	}{
		{`UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`, []string{"journals-are-whole"}},
		{`UPDATE journals SET completed = completed + 1 WHERE owner = 'usr_a'`, []string{"journals-are-whole"}},
		{`UPDATE entries SET number = 99 WHERE owner = 'usr_a' AND number = 3`, []string{"journals-are-whole"}},
		{`UPDATE journals SET pending = pending + 1 WHERE owner = 'usr_a'`, []string{"journals-are-whole: Run \"bursar repair\""}},
		{noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_a' AND number = 25`, []string{"journals-are-whole: and the journal ends with entry 24. Restore the journal"}},
		{`UPDATE journals SET pending = pending + 1 WHERE owner = 'usr_a'; UPDATE entries SET at = at + 1 WHERE owner = 'usr_a' AND number = 25`, []string{"journals-are-whole: 701 minor units pending, and the journal leads to 700 minor units. Restore the journal"}},
		// Of several entries behind the end of the journal, each is named.
		{fmt.Sprintf(entriesLike, "owner", "subject", "pyt_completed"), []string{"journals-are-whole: entry 1005 of usr_a", "journals-are-whole: entry 1007 of usr_a"}},
		{fmt.Sprintf(entriesLike, "''", "subject", "sale:pending"), []string{"journals-are-whole"}},
		{`UPDATE entries SET subject = 'pyt_other' WHERE subject = 'pyt_waiting'`, []string{"journals-are-whole", "payouts-match-journal"}},
		{`UPDATE entries SET data = '{}' WHERE subject = 'bka_usr_a' AND number = 1`, []string{"journals-are-whole", "bank-accounts-match-journal"}},
		{`UPDATE earnings SET amount = amount + 1, month = '2026-10' WHERE seller_id = 'usr_a'`, []string{"earnings-match-sales: the earnings of 2026-10 are 10701 minor units, and the sales make 0 minor units", "earnings-match-sales: of 2026-11 are 0 minor units, and the sales make 10700 minor units"}},
		{`UPDATE sales SET amount = amount + 1 WHERE id = 'pending'`, []string{"sales-match-journal", "earnings-match-sales"}},
		{`UPDATE sales SET available_at = occurred_at, occurred_at = occurred_at - 1 WHERE id = 'pending'`, []string{"sales-match-journal"}},
		{`UPDATE sales SET due_at = NULL WHERE id = 'pending'`, []string{"nothing-is-stuck"}},
		{`UPDATE sales SET due_at = available_at - 1 WHERE id = 'pending'`, []string{"nothing-is-stuck"}},
		{noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_b'; DELETE FROM journals WHERE owner = 'usr_b'`, []string{"journals-are-whole"}},
		{`UPDATE event_feed SET last = last + 1`, []string{"events-match-journal"}},
		{`UPDATE events SET number = -number WHERE number = 1`, []string{"events-match-journal: numbered from -1 to"}},
		{`INSERT INTO queued_events (owner, entry, type) SELECT owner, entry, type FROM events WHERE type = 'payout.failed'`, []string{"events-match-journal: payout.failed, is 2 events"}},
		{`UPDATE sale_refunds SET at = at + 1`, []string{"sales-match-journal"}},
		{`UPDATE payouts SET amount = amount + 1 WHERE id = 'pyt_failed'`, []string{"payouts-match-journal"}},
		{`UPDATE payouts SET state = 'submitted' WHERE id = 'pyt_waiting'`, []string{"payouts-match-journal"}},
		{`UPDATE payouts SET due_at = NULL WHERE id = 'pyt_waiting'`, []string{"nothing-is-stuck"}},
		{`UPDATE payouts SET status = 'cancelled' WHERE id = 'pyt_failed'`, []string{"status-follows-state"}},
		{`UPDATE payouts SET discrepancy = 'paid' WHERE id = 'pyt_failed'`, []string{"gateway-agrees: it is failed; found: paid", "payouts-match-journal"}},
		{`UPDATE payouts SET gateway_id = '' WHERE id = 'pyt_completed'`, []string{"paid-is-on-record", "payouts-match-journal"}},
		{`UPDATE payouts SET gateway_id = 'pout_returned' WHERE id = 'pyt_completed'`, []string{"gateway-transfers-are-told-apart"}},
		{`UPDATE payouts SET bank_account_id = 'bka_usr_empty' WHERE id = 'pyt_completed'`, []string{"owners-are-there", "payouts-match-journal"}},
		{`UPDATE payouts SET order_body = REPLACE(order_body, 'fa_usr_a', 'fa_usr_b') WHERE id = 'pyt_sending'`, []string{"payouts-match-journal"}},
		{`INSERT INTO unmatched_transfers (gateway, gateway_id, reference, seller_id, amount, progress, found_at, why, resolved)
			VALUES ('sandbox', 'pout_again', 'pyt_completed', 'usr_a', 990, 'paid', 0, 'paid again', 0)`, []string{"unmatched-transfers-are-resolved: the gateway sandbox has the transfer pout_again of 990 minor units for it: paid again"}},
		{
			`INSERT INTO unmatched_transfers (gateway, gateway_id, reference, seller_id, amount, currency, progress, utr, found_at, why, resolved)
			VALUES ('sandbox', 'pout_again', 'pyt_completed', 'usr_a', 990, 'USD', 'paid', '627812345678', 0, 'paid again', 0)`,
			[]string{"unmatched-transfers-are-resolved: the gateway sandbox has the transfer pout_again of 990 minor units for it, in USD, with UTR 627812345678: paid again"},
		},
		{`DELETE FROM users WHERE id = 'usr_b'`, []string{"owners-are-there"}},
		{`DELETE FROM journals WHERE owner = 'usr_b'`, []string{"journals-are-whole"}},
		{`DELETE FROM journals WHERE owner = (SELECT MAX(owner) FROM entries)`, []string{"journals-are-whole: the row of the balance is missing"}}, // no other follows
		{`DELETE FROM bank_accounts WHERE id = 'bka_usr_a'`, []string{"owners-are-there", "bank-accounts-match-journal", "payouts-match-journal"}},
		{`UPDATE bank_accounts SET beneficiary = 'fa_usr_b' WHERE id = 'bka_usr_a'`, []string{"beneficiaries-are-told-apart", "bank-accounts-match-journal"}},
		{`UPDATE bank_accounts SET encrypted_number = (SELECT encrypted_number FROM bank_accounts WHERE id = 'bka_usr_a') WHERE id = 'bka_usr_b'`, []string{"account-numbers-are-encrypted"}},
		{`UPDATE idempotency_keys SET payout_id = 'pyt_completed'`, []string{"keys-match-payouts"}},
		{`UPDATE idempotency_keys SET refusal = '{}'`, []string{"keys-match-payouts"}},
		{`UPDATE sessions SET user_id = 'usr_a'`, []string{"sessions-are-ours"}},
		{`DELETE FROM factors`, []string{"factors-are-ours"}},
		{`UPDATE service_keys SET hash = hash || 'x'`, []string{"service-keys-are-ours"}},
		{`DELETE FROM entries WHERE type = 'service_key.created'`, []string{"service-keys-are-ours", "journals-are-whole"}},
		{`UPDATE webhook_endpoints SET url = 'https://mallory.example'`, []string{"webhook-endpoints-are-ours"}},
		{`DELETE FROM entries WHERE subject = 'sandbox:pout_unmatched'`, []string{"decisions-are-on-record", "journals-are-whole"}},
		{`UPDATE users SET role = 'admin' WHERE id = 'usr_b'`, []string{"users-are-ours"}},
		{`UPDATE users SET suspended = 1 WHERE id = 'usr_b'`, []string{"users-are-ours"}},
		{`INSERT INTO differences (id, kind, gateway, subject, payout_id, detail, at, at_gateway, in_ledger, first_seen, last_seen, resolved_at)
			VALUES ('dif_1', 'k', 'sandbox', 's', '', '', 0, 0, 0, 0, 0, 1)`, []string{"decisions-are-on-record"}},
		{`UPDATE checkpoint_journals SET number = 0 WHERE seller_id = 'usr_a'`, []string{"journals-are-whole: and that was changed. Restore the checkpoints", "journals-match-checkpoint"}},
		{`UPDATE checkpoint_journals SET behind = 1 WHERE seller_id = 'usr_a' AND checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_journals WHERE seller_id = 'usr_a')`, []string{"journals-match-checkpoint"}},
		{`UPDATE journals SET earned = earned + 1 WHERE owner = 'usr_a'`, []string{"totals-match-adjustments: the seller earned", "journals-are-whole"}},
		{`UPDATE entries SET available = available + 1, sales = sales - 1 WHERE type = 'balance.adjusted'`, []string{"adjustments-are-made-once", "journals-are-whole"}},
		{`UPDATE checkpoints SET root = previous`, []string{"checkpoints-are-signed", "journals-match-checkpoint"}},
		{`INSERT INTO checkpoint_keys (kid, public_key) VALUES ('mallory', 'x')`, []string{"checkpoints-are-signed: key mallory"}},
	}
	broken := map[string]bool{
		"file-is-sound":  true, // no statement damages a file; the engine's own tests do
		"schema-is-ours": true, // testSchemaIsOurs has a trigger
	}
	for _, tt := range tampers {
		found := copied.found(tt.sql)
		for _, want := range tt.want {
			name, part, _ := strings.Cut(want, ": ")
			broken[name] = true
			if found[name] == "" || !strings.Contains(found[name], part) {
				t.Errorf("after %s the audit names %v, want %s among them", tt.sql, found, want)
			}
		}
	}
	// Without the keys nobody can tell that the service did not write an entry, so the one in another journal is named.
	copied.hands(fmt.Sprintf(entriesLike, "'usr_b'", "subject", "pyt_completed"))
	const elsewhere = "of seller usr_b is about it too"
	if found := copied.brokenTo(nil); !strings.Contains(found["payouts-match-journal"], elsewhere) {
		t.Errorf("with entries in another journal the audit names %v, want %q among them", found, elsewhere)
	}
	copied.restore()
	copied.update(func(tx *store.Tx) error {
		p := payout.Payout{ID: "pyt_former", Seller: "usr_a", BankAccountID: "bka_usr_b", Amount: 1, State: payout.Waiting}
		return post(copied.bench, tx, p.Seller, ledger.PayoutRequested, string(p.ID), payout.Payout{ID: p.ID}, p, ledger.ReservePayout(1))
	})
	const toFormer = "payouts-go-to-current-accounts"
	broken[toFormer] = true
	if found := copied.broken()[toFormer]; !strings.Contains(found, "payout pyt_former: entry 26 requested it to bank account bka_usr_b") {
		t.Errorf("of a payout that was requested to another account the audit says %q", found)
	}
	copied.update(func(tx *store.Tx) error {
		was := payout.Payout{ID: "pyt_former", Seller: "usr_a", State: payout.Waiting}
		is := was
		is.State = payout.Submitting
		return post(copied.bench, tx, was.Seller, ledger.PayoutSubmitting, string(was.ID), was, is, ledger.Moved{})
	})
	if found := copied.broken()[toFormer]; !strings.Contains(found, "payout pyt_former: entry 26 requested it to bank account bka_usr_b") {
		t.Errorf("once that was sent the audit says %q", found)
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
	b.fillAll()
	copied := b.tampered()
	const most = "9223372036854775807"
	for _, tt := range []struct {
		sql   string
		finds map[string]string // a part of the text, by the name of the finding
	}{
		{`UPDATE payouts SET completed_at = -` + most + `, ended_at = -` + most + ` WHERE id = 'pyt_completed'`, map[string]string{"payouts-match-journal": "pyt_completed"}},
		{`UPDATE payouts SET amount = ` + most + ` WHERE status = 'completed'`, map[string]string{"payouts-match-journal": "pyt_completed"}},
		{`UPDATE entries SET pending = ` + most + `, sales = -` + most + ` WHERE owner = 'usr_a' AND number = 2`, map[string]string{
			"journals-are-whole": "entry 2 of usr_a", "sales-match-journal": "sale for usr_a",
		}},
		{`UPDATE entries SET after = '` + strings.Repeat(most+" ", 9) + most + `' WHERE owner = 'usr_a' AND number = 2`, map[string]string{"journals-are-whole": "entry 2 of usr_a"}},
		{`UPDATE entries SET after = '` + most + `1 0 0 0 0 0 0 0 0 0' WHERE subject = 'pyt_waiting'`, map[string]string{"journals-are-whole": "usr_a"}},
		{`UPDATE entries SET data = 'no JSON' WHERE subject IN ('pyt_completed', 'sale:pending', 'bka_usr_a')`, map[string]string{
			"journals-are-whole": "usr_a", "payouts-match-journal": "pyt_completed", "sales-match-journal": "pending", "bank-accounts-match-journal": "bka_usr_a",
		}},
		{`UPDATE entries SET data = '{"amount":"a lot","status":7}' WHERE subject IN ('pyt_completed', 'sale:pending', 'bka_usr_a')`, map[string]string{
			"journals-are-whole": "usr_a", "payouts-match-journal": "pyt_completed", "sales-match-journal": "pending", "bank-accounts-match-journal": "bka_usr_a",
		}},
		{`UPDATE journals SET available = ` + most + `, earned = -` + most + ` WHERE owner = 'usr_a'`, map[string]string{"journals-are-whole": "seller usr_a: the balance"}},
		{`UPDATE sales SET amount = ` + most + ` WHERE seller_id IN ('usr_a', 'usr_b'); UPDATE earnings SET amount = -` + most, map[string]string{
			"earnings-match-sales": "", "sales-match-journal": "sale for usr_a",
		}},
		{`UPDATE payouts SET state = 'none', status = 'failed' WHERE id = 'pyt_completed'`, map[string]string{"payouts-match-journal": "pyt_completed", "status-follows-state": "payout pyt_completed: it is none"}},
	} {
		found := copied.found(tt.sql + `; UPDATE payouts SET discrepancy = 'paid' WHERE id = 'pyt_failed'`)
		tt.finds["gateway-agrees"] = "pyt_failed"
		for name, part := range tt.finds {
			if found[name] == "" || !strings.Contains(found[name], part) {
				t.Errorf("after %s the audit finds %v, want %s of %q among them", tt.sql, found, name, part)
			}
		}
	}
	if left := copied.broken(); len(left) > 0 {
		t.Errorf("what was repaired is still broken: %v", left)
	}
}
