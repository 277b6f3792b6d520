package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// testRepair changes rows by hand, and has them made what the journal says.
func testRepair(t *testing.T, b *bench) {
	t.Helper()
	b.target()
	copied := b.tampered()
	repair := func(apply bool) (all []store.Repair) {
		t.Helper()
		b.must(copied.db.Repair(b.ctx(), b.keys, "asha", b.now, apply, func(r store.Repair) error {
			all = append(all, r)
			return nil
		}))
		return all
	}
	if all := repair(true); len(all) > 0 {
		t.Errorf("where nothing is wrong, repairs are %+v", all)
	}
	for _, tt := range []struct{ name, sql, subject string }{
		{"a balance", `UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`, "usr_a"},
		{"an old balance", putBack("journals", "owner = 'usr_a'"), "usr_a"},
		{"a balance dropped", `DELETE FROM journals WHERE owner = 'usr_a'`, "usr_a"},
		{"a balance of nobody", `INSERT INTO journals SELECT 'usr_empty2', number, hash, mac, pending, available, in_transit, earned, withdrawn, sales, processing,
			completed, failed, cancelled FROM journals WHERE owner = 'usr_b'`, "usr_empty2"},
		{"a payout's amount", `UPDATE payouts SET amount = amount + 1, fee = 0, bank_account_id = 'bka_usr_b' WHERE id = 'pyt_open'`, "pyt_open"},
		{"a payout's state", putBack("payouts", "id = 'pyt_waiting'"), "pyt_waiting"},
		{"a payout dropped", `DELETE FROM payouts WHERE id = 'pyt_completed'`, "pyt_completed"},
		{"a payout inserted", anotherPayout, "pyt_more"},
		{"a sale's amount", `UPDATE sales SET amount = amount + 1 WHERE id = 'held'`, "sale:held"},
		{"a sale's release", putBack("sales", "id = 'pending'"), "sale:pending"},
		{"a sale dropped", `DELETE FROM sale_refunds; DELETE FROM sales WHERE id = 'sale for usr_b'`, "sale:sale for usr_b"},
		{"a sale inserted", anotherSale, "sale:more"},
		{"a refund", `UPDATE sale_refunds SET amount = amount + 1`, "sale:sale for usr_b"},
		{"a bank account's status", `UPDATE bank_accounts SET status = 'verified' WHERE id = 'bka_new'`, "bka_new"},
		{"an old bank account", `UPDATE bank_accounts SET is_current = 0 WHERE id = 'bka_new'; ` + putBack("bank_accounts", "id = 'bka_usr_empty'"), "bka_usr_empty"},
		{"a bank account inserted", `INSERT INTO bank_accounts (id, seller_id, is_current, holder, ifsc, last4, sealed_number, status, reason, registered_name,
			name_score, beneficiary, gateway, verification_id, tries, created_at) VALUES ('bka_more', 'usr_a', 0, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, 0)`, "bka_more"},
		{"earnings", `UPDATE earnings SET amount = amount + 1 WHERE seller_id = 'usr_a'`, "usr_a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			copied.hands(tt.sql)
			before := copied.state()
			dry := repair(false)
			if after := copied.state(); after != before {
				t.Errorf("a repair that was not to be applied wrote something: %s", cmp.Diff(before, after))
			}
			done := repair(true)
			for _, all := range [][]store.Repair{dry, done} {
				found := false
				for _, r := range all {
					found = found || r.Subject == tt.subject && r.Impossible == "" && r.Change != ""
				}
				if !found {
					t.Errorf("repairs are %+v, want one of %s", all, tt.subject)
				}
			}
			if left := copied.broken(); len(left) > 0 {
				t.Errorf("after the repair the audit finds %v", left)
			}
			if again := repair(true); len(again) > 0 {
				t.Errorf("a second repair does %+v", again)
			}
			copied.restore()
		})
	}
	for name, sql := range map[string]string{
		"an entry changed":       `UPDATE entries SET data = '{}' WHERE subject = 'pyt_open'`,
		"an entry dropped":       `DELETE FROM entries WHERE owner = 'usr_a' AND number = 5`,
		"a bank account dropped": `DELETE FROM bank_accounts WHERE id = 'bka_new'`,
		"an order that was sent": `UPDATE payouts SET order_body = 'another' WHERE id = 'pyt_sending'`,
		"a bank account, and a payout to it": `UPDATE payouts SET bank_account_id = 'bka_more' WHERE id = 'pyt_open'; INSERT INTO bank_accounts (id, seller_id, is_current,
			holder, ifsc, last4, sealed_number, status, reason, registered_name, name_score, beneficiary, gateway, verification_id, tries, created_at)
			VALUES ('bka_more', 'usr_a', 0, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, 0)`,
	} {
		t.Run(name, func(t *testing.T) {
			copied.hands(sql)
			impossible := 0
			for _, r := range repair(true) {
				if r.Impossible != "" {
					impossible++
				}
			}
			if left := copied.broken(); impossible == 0 || len(left) == 0 && name[:1] != "a" {
				t.Errorf("%d can't be repaired, and the audit finds %v", impossible, left)
			}
			copied.restore()
		})
	}
	b.must(copied.append(b.posting("usr_a", ledger.SaleRecorded, ledger.Sale(1))))
	if _, err := copied.db.Payout(b.ctx(), payout.ID("pyt_open")); err != nil {
		t.Error(err)
	}
}
