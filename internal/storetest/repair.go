package storetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// noCheckpoint is how a database looks before the first checkpoint.
const noCheckpoint = `DELETE FROM checkpoints; DELETE FROM checkpoint_journals; DELETE FROM checkpoint_keys`

// testRepair changes rows by hand, and has them made what the journal says.
func testRepair(t *testing.T, b *bench) {
	t.Helper()
	b.target()
	frozen, err := b.db.Payout(b.ctx(), "pyt_failed")
	b.must(err)
	frozen.Discrepancy = payout.TamperedNote
	copied := b.tampered()
	repair := func(apply bool) []store.Repair {
		t.Helper()
		all, err := copied.db.Repair(b.ctx(), b.keys, "asha", b.now, apply)
		b.must(err)
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
			completed, failed, cancelled, hold_until, frozen FROM journals WHERE owner = 'usr_b'`, "usr_empty2"},
		{"another seller's entries", fmt.Sprintf(entriesLike, "'usr_b'", "subject", "pyt_open"), "usr_b"},
		{"another seller's entries where there is no journal", `INSERT INTO entries SELECT 'usr_new', number, at, type, subject, actor, data, pending, available,
			in_transit, sales, gateway, fees, after, hash, mac FROM entries WHERE owner = 'usr_a'`, "usr_new"},
		{"an entry that can't be read", fmt.Sprintf(entriesLike, "owner", "subject", "pyt_open") + `; UPDATE entries SET after = 'much' WHERE number > 1000`, "usr_a"},
		{"a sale inserted, with copies of entries", anotherSale + `; ` + fmt.Sprintf(entriesLike, "owner", "'sale:more'", "sale:held"), "sale:more"},
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
		{"a bank account's MAC", `UPDATE bank_accounts SET mac = 'x' WHERE id = 'bka_usr_a'`, "bka_usr_a"},
		{"a former bank account's MAC", `UPDATE bank_accounts SET mac = (SELECT mac FROM bank_accounts WHERE id = 'bka_usr_a') WHERE id = 'bka_usr_empty'`, "bka_usr_empty"},
		{"a bank account of another seller", `UPDATE bank_accounts SET is_current = 0 WHERE id = 'bka_usr_a'; UPDATE bank_accounts SET seller_id = 'usr_a' WHERE id = 'bka_usr_b'`, "bka_usr_b"},
		{"an old bank account", `UPDATE bank_accounts SET is_current = 0 WHERE id = 'bka_new'; ` + putBack("bank_accounts", "id = 'bka_usr_empty'"), "bka_usr_empty"},
		{"a bank account inserted", `INSERT INTO bank_accounts (id, seller_id, is_current, holder, ifsc, last4, encrypted_number, status, reason, registered_name,
			name_score, beneficiary, gateway, verification_id, tries, created_at) VALUES ('bka_more', 'usr_a', 0, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, 0)`, "bka_more"},
		{"a bank account inserted, and a payout to it", `INSERT INTO bank_accounts (id, seller_id, is_current,
			holder, ifsc, last4, encrypted_number, status, reason, registered_name, name_score, beneficiary, gateway, verification_id, tries, created_at)
			VALUES ('bka_more', 'usr_a', 0, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, 0); UPDATE payouts SET bank_account_id = 'bka_more' WHERE id = 'pyt_open'`, "bka_more"},
		{"a bank account dropped", `DELETE FROM bank_accounts WHERE id = 'bka_new'`, "bka_new"},
		{"a bank account with payouts dropped", `DELETE FROM bank_accounts WHERE id = 'bka_usr_a'`, "bka_usr_a"},
		{"an account's number", `UPDATE bank_accounts SET encrypted_number = encrypted_number || 'x' WHERE id = 'bka_usr_a'`, "bka_usr_a"},
		{"an account's number for its hash", `UPDATE bank_accounts SET encrypted_number = '' WHERE id = 'bka_usr_a'`, "bka_usr_a"},
		{"an order that was sent", `UPDATE payouts SET order_body = 'another' WHERE id = 'pyt_sending'`, "pyt_sending"},
		{"a payout that was sent dropped", `DELETE FROM payouts WHERE id = 'pyt_sending'`, "pyt_sending"},
		{"a payout's status", `UPDATE payouts SET status = 'completed' WHERE id = 'pyt_open'`, "pyt_open"},
		{"a payout's next step", `UPDATE payouts SET due_at = NULL WHERE id = 'pyt_open'`, "pyt_open"},
		{"a sale's next step", `UPDATE sales SET due_at = NULL WHERE id = 'held'`, "sale:held"},
		{"a sale due earlier", `UPDATE sales SET due_at = available_at - 1 WHERE id = 'held'`, "sale:held"},
		{"a sale due later", `UPDATE sales SET due_at = available_at + 1 WHERE id = 'held'`, "sale:held"},
		{"a released sale due again", `UPDATE sales SET due_at = available_at WHERE id = 'pending'`, "sale:pending"},
		{"a sale moved to another seller", `UPDATE sales SET seller_id = 'usr_b', month = '2020-01' WHERE id = 'held'`, "sale:held"},
		{"a session", `UPDATE sessions SET user_id = 'usr_a'`, "session ses_b"},
		{"an adjusted balance", `UPDATE journals SET earned = earned + 75, available = available + 75 WHERE owner = 'usr_a'`, "usr_a"},
		{"earnings", `UPDATE earnings SET amount = amount + 1 WHERE seller_id = 'usr_a'`, "usr_a"},
		{"the feed's last number", `UPDATE event_feed SET last = 1`, "event feed"},
		{"the feed's last number dropped", `DELETE FROM event_feed`, "event feed"},
		{"the feed's last number below zero", `UPDATE event_feed SET last = -5`, "event feed"},
		{"the feed's last number too high", `UPDATE event_feed SET last = 9223372036854775807`, "event feed"},
		{"the number of an event too high", `UPDATE events SET number = 9223372036854775807 WHERE number = 2`, "event feed"},
		{"the numbers of events below zero", `UPDATE events SET number = -number WHERE number IN (1, (SELECT MAX(number) FROM events))`, "event feed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			copied.hands(tt.sql)
			// What belongs to no journal, or can't be read, may be all that is left of one, so there the audit is careful.
			careful := slices.Contains([]string{"a balance of nobody", "another seller's entries where there is no journal", "an entry that can't be read"}, tt.name)
			for name, said := range copied.broken() {
				if strings.Contains(said, "Restore the journal from a backup") && !careful {
					t.Errorf("a repair does it, and %s says: %s", name, said)
				}
			}
			before := copied.state()
			dry := repair(false)
			if after := copied.state(); after != before {
				t.Errorf("a repair that was not to be applied wrote something: %s", cmp.Diff(before, after))
			}
			done := repair(true)
			if diff := cmp.Diff(dry, done); diff != "" {
				t.Errorf("what was shown is not what was done: %s", diff)
			}
			found := false
			for _, r := range done {
				found = found || r.Subject == tt.subject
				if r.Impossible != "" || r.Change == "" {
					t.Errorf("not repaired: %+v", r)
				}
			}
			const numberIsLost = "its number is nowhere else, so the account is rejected"
			lost := slices.Contains([]string{"a bank account dropped", "a bank account with payouts dropped", "an account's number", "an account's number for its hash"}, tt.name)
			if says := strings.Contains(fmt.Sprint(done), numberIsLost); says != lost {
				t.Errorf("that an account's number is lost: %t, want %t; repairs are %+v", says, lost, done)
			}
			if !found {
				t.Errorf("repairs are %+v, want one of %s", done, tt.subject)
			}
			if left := copied.broken(); len(left) > 0 {
				t.Errorf("after the repair the audit finds %v", left)
			}
			for _, r := range done {
				unrecorded := r.Owner == "" || r.Owner == "usr_new" || tt.name == "a balance of nobody" || tt.name == "earnings"
				entries, err := copied.db.EntriesAbout(b.ctx(), r.Owner, r.Subject)
				b.must(err)
				recorded := slices.ContainsFunc(entries, func(e ledger.Entry) bool {
					return e.Type == ledger.Repaired && e.Actor == "operator:asha" && e.At.Equal(b.now)
				})
				if !unrecorded && !recorded {
					t.Errorf("the journal doesn't say who repaired %s", r.Subject)
				}
			}
			if again := repair(true); len(again) > 0 {
				t.Errorf("a second repair does %+v", again)
			}
			copied.restore()
		})
	}
	t.Run("a payout that was frozen", func(t *testing.T) {
		copied.move(frozen, frozen.State)
		if found := copied.broken(); !strings.Contains(found["gateway-agrees"], `Run "bursar repair"`) {
			t.Errorf("the audit finds %v", found)
		}
		dry, done := repair(false), repair(true)
		if len(done) != 1 || done[0].Subject != "pyt_failed" || done[0].Impossible != "" || !cmp.Equal(dry, done) {
			t.Errorf("shown was %+v, done was %+v", dry, done)
		}
		if left := copied.broken(); len(left) > 0 {
			t.Errorf("after the repair the audit finds %v", left)
		}
		if p, err := copied.db.Payout(b.ctx(), "pyt_failed"); err != nil || p.Discrepancy != "" || p.DueAt.IsZero() {
			t.Errorf("it is %+v, %v; want it looked at again", p, err)
		}
		copied.restore()
	})
	t.Run("a payout that the gateway seemed to send to another account", func(t *testing.T) {
		copied.hands(`UPDATE bank_accounts SET beneficiary = 'fa_usr_b' WHERE id = 'bka_usr_a'`)
		blamed := frozen
		blamed.Discrepancy = "it has a transfer to another account"
		copied.move(blamed, blamed.State)
		dry, done := repair(false), repair(true)
		if len(done) != 2 || done[0].Subject != "bka_usr_a" || done[1].Subject != "pyt_failed" || !cmp.Equal(dry, done) {
			t.Errorf("shown was %+v, done was %+v, want the account and the payout", dry, done)
		}
		if left := copied.broken(); len(left) > 0 {
			t.Errorf("after the repair the audit finds %v", left)
		}
		if p, err := copied.db.Payout(b.ctx(), "pyt_failed"); err != nil || p.Discrepancy != "" {
			t.Errorf("it is %+v, %v; want it without the discrepancy", p, err)
		}
		copied.restore()
	})
	t.Run("a payout to a bank account that can't be repaired", func(t *testing.T) {
		copied.hands(`UPDATE entries SET data = ` + b.erased("bka_usr_a") + ` WHERE owner = 'usr_a' AND subject = 'bka_usr_a' AND number = (
			SELECT MIN(number) FROM entries WHERE owner = 'usr_a' AND subject = 'bka_usr_a');
			UPDATE bank_accounts SET holder = 'Mallory' WHERE id = 'bka_usr_a'; UPDATE payouts SET amount = amount + 1 WHERE id = 'pyt_open'`)
		before := copied.state()
		impossible := map[string]bool{}
		for _, r := range repair(true) {
			impossible[r.Subject] = r.Impossible != ""
		}
		if !impossible["bka_usr_a"] || !impossible["pyt_open"] {
			t.Errorf("said to be impossible is %v, want the bank account and its payout", impossible)
		}
		if after := copied.state(); after != before {
			t.Errorf("rows were written: %s", cmp.Diff(before, after))
		}
		copied.restore()
	})
	t.Run("a bank account inserted, and a payout to it that can't be repaired", func(t *testing.T) {
		copied.hands(`INSERT INTO bank_accounts (id, seller_id, is_current, holder, ifsc, last4, encrypted_number, status, reason, registered_name,
			name_score, beneficiary, gateway, verification_id, tries, created_at) VALUES ('bka_more', 'usr_a', 0, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, 0);
			UPDATE payouts SET bank_account_id = 'bka_more' WHERE id = 'pyt_open';
			UPDATE entries SET data = ` + b.erased("pyt_open") + ` WHERE subject = 'pyt_open' AND type = 'payout.requested'`)
		impossible := map[string]string{}
		for _, r := range repair(true) {
			impossible[r.Subject] = r.Impossible
		}
		if impossible["pyt_open"] == "" || impossible["bka_more"] == "" {
			t.Errorf("said to be impossible is %q, want the payout and its bank account", impossible)
		}
		copied.restore()
	})
	t.Run("a row of what may have been paid", func(t *testing.T) {
		copied.hands(strings.Join([]string{
			anotherPayout, strings.ReplaceAll(anotherPayout, "pyt_more", "pyt_same"), strings.ReplaceAll(anotherPayout, "pyt_more", "pyt_copy"),
			`UPDATE payouts SET gateway_id = 'pout_more' WHERE id IN ('pyt_more', 'pyt_same')`,
			`UPDATE payouts SET (gateway, gateway_id) = (SELECT p.gateway, p.gateway_id FROM payouts p WHERE p.gateway_id NOT IN ('', 'pout_more') LIMIT 1) WHERE id = 'pyt_copy'`,
		}, "; "))
		can := map[string]bool{}
		for _, r := range repair(true) {
			can[r.Subject] = r.Impossible == ""
		}
		if want := map[string]bool{"pyt_more": false, "pyt_same": false, "pyt_copy": true}; !maps.Equal(can, want) {
			t.Errorf("removed are %v, want %v", can, want)
		}
		if _, err := copied.db.Payout(b.ctx(), "pyt_more"); err != nil {
			t.Errorf("the row: %v", err)
		}
		copied.restore()
	})
	for name, tt := range map[string]struct{ sql, left string }{
		"a sale's entry erased":                            {`UPDATE entries SET data = ` + b.erased("sale:held") + ` WHERE subject = 'sale:held' AND type = 'sale.recorded'`, "sales-match-journal"},
		"an entry changed":                                 {`UPDATE entries SET data = '{}' WHERE subject = 'pyt_open'`, inJournal},
		"an entry dropped":                                 {`DELETE FROM entries WHERE owner = 'usr_a' AND number = 5`, inJournal},
		"an entry erased":                                  {`UPDATE entries SET data = ` + b.erased("pyt_open") + ` WHERE subject = 'pyt_open' AND type = 'payout.requested'`, payoutsMatch},
		"the last entries dropped":                         {`DELETE FROM entries WHERE owner = 'usr_a' AND number > 5`, inJournal},
		"a journal dropped":                                {noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_a'; DELETE FROM journals WHERE owner = 'usr_a'`, inJournal},
		"all entries dropped, and the balance raised":      {noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_a'; UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`, inJournal},
		"the last entries and the balance dropped":         {noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_a' AND number > 5; DELETE FROM journals WHERE owner = 'usr_a'`, inJournal},
		"the last entries dropped, and the balance raised": {noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_a' AND number > 5; UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`, inJournal},
		"the last entry put elsewhere":                     {`UPDATE entries SET number = number + 7 WHERE owner = 'usr_a' AND number = (SELECT number FROM journals WHERE owner = 'usr_a')`, inJournal},
		"an entry moved elsewhere, under another number":   {`UPDATE entries SET owner = 'usr_zz', number = 99 WHERE owner = 'usr_a' AND number = 5`, inJournal},
		"entries copied over a journal": {noCheckpoint + `; DELETE FROM entries WHERE owner = 'usr_a'; DELETE FROM journals WHERE owner = 'usr_a';
			INSERT INTO entries SELECT 'usr_a', number, at, type, subject, actor, data, pending, available, in_transit, sales, gateway, fees, after, hash, mac
			FROM entries WHERE owner = 'usr_b'`, inJournal},
		"an entry dropped behind an old balance": {putBack("journals", "owner = 'usr_a'") +
			`; DELETE FROM entries WHERE owner = 'usr_a' AND number = (SELECT number FROM journals WHERE owner = 'usr_a') + 1`, inJournal},
		"entries moved elsewhere, and the balance put back": {noCheckpoint + `; UPDATE entries SET owner = 'usr_zz'
			WHERE owner = 'usr_a' AND number > (SELECT number FROM old_journals WHERE owner = 'usr_a'); ` + putBack("journals", "owner = 'usr_a'"), inJournal},
		"entries moved elsewhere behind copies, and the balance put back": {noCheckpoint + `; UPDATE entries SET owner = 'usr_zz'
			WHERE owner = 'usr_a' AND number > (SELECT number FROM old_journals WHERE owner = 'usr_a');
			INSERT INTO entries SELECT 'usr_zz', number, at, type, subject, actor, data, pending, available, in_transit, sales, gateway, fees, after, hash, mac
			FROM entries WHERE owner = 'usr_a'; ` + putBack("journals", "owner = 'usr_a'"), inJournal},
		"a journal put back": {`DELETE FROM entries WHERE owner = 'usr_a' AND number > (SELECT number FROM old_journals WHERE owner = 'usr_a'); ` +
			putBack("journals", "owner = 'usr_a'"), inJournal},
	} {
		t.Run(name, func(t *testing.T) {
			copied.hands(tt.sql)
			before := copied.state()
			dry := repair(false)
			done := repair(true)
			if diff := cmp.Diff(dry, done); diff != "" {
				t.Errorf("what was shown is not what was done: %s", diff)
			}
			if after := copied.state(); after != before {
				t.Errorf("rows of a damaged journal were written: %s", cmp.Diff(before, after))
			}
			var impossible []string
			for _, r := range done {
				if r.Impossible != "" {
					impossible = append(impossible, r.Subject)
				}
			}
			if left := copied.broken(); len(impossible) == 0 || left[tt.left] == "" {
				t.Errorf("%q can't be repaired, and the audit finds %v; want %s", impossible, left, tt.left)
			}
			if tt.left == inJournal && !slices.Contains(impossible, "usr_a") {
				t.Errorf("%q can't be repaired, want the journal among them", impossible)
			}
			copied.restore()
		})
	}
	t.Run("a row beside another seller's damaged journal", func(t *testing.T) {
		copied.hands(`DELETE FROM entries WHERE owner = 'usr_b' AND number = 2; UPDATE payouts SET amount = amount + 1 WHERE id = 'pyt_open'`)
		can := map[string]bool{}
		for _, r := range repair(true) {
			can[r.Subject] = r.Impossible == ""
		}
		if can["usr_b"] || !can["pyt_open"] {
			t.Errorf("repaired are %v, want the payout and not the journal", can)
		}
		copied.restore()
	})
	b.must(copied.append(b.posting("usr_a", ledger.SaleRecorded, ledger.Sale(1))))
	if _, err := copied.db.Payout(b.ctx(), payout.ID("pyt_open")); err != nil {
		t.Error(err)
	}
}

// erased is what the data of the first entry about a subject is once it was erased, as SQL.
func (b *bench) erased(subject string) string {
	b.Helper()
	entries, err := b.db.EntriesAbout(b.ctx(), "usr_a", subject)
	b.must(err)
	return `'{"erased":"` + string(entries[0].Digest()) + `"}'`
}

// RunFailingRepair has each statement of a repair fail. The operator gets the error and what was repaired before it, no row is
// repaired by halves, and a second try repairs the rest. The database is a file.
func RunFailingRepair(t *testing.T, e Engine) {
	t.Helper()
	b := &bench{T: t, engine: e, keys: Keys(t), db: e.Open(t), now: start}
	b.db.UseKeys(b.keys)
	b.target()
	e.Hands(t, b.db)(strings.Join([]string{
		anotherPayout, anotherSale, fmt.Sprintf(entriesLike, "'usr_b'", "subject", "pyt_open"),
		`UPDATE journals SET available = available + 1 WHERE owner = 'usr_a'`,
		`INSERT INTO journals SELECT 'usr_empty2', number, hash, mac, pending, available, in_transit, earned, withdrawn, sales, processing,
			completed, failed, cancelled, hold_until, frozen FROM journals WHERE owner = 'usr_a'`,
		`UPDATE payouts SET amount = amount + 1 WHERE id = 'pyt_open'`,
		`UPDATE sales SET amount = amount + 1 WHERE id = 'held'`,
		`UPDATE bank_accounts SET status = 'verified' WHERE id = 'bka_new'`,
		`INSERT INTO bank_accounts (id, seller_id, is_current, holder, ifsc, last4, encrypted_number, status, reason, registered_name,
			name_score, beneficiary, gateway, verification_id, tries, created_at) VALUES ('bka_more', 'usr_a', 0, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, 0)`,
		`UPDATE sessions SET user_id = 'usr_a'`,
		`UPDATE earnings SET amount = amount + 1 WHERE seller_id = 'usr_a'`,
		`UPDATE event_feed SET last = 1`,
	}, "; "))
	path := filepath.Join(t.TempDir(), "changed.db")
	b.must(b.db.Backup(b.ctx(), path))
	changed, err := os.ReadFile(path)
	b.must(err)
	EachFailure(t, func(t *testing.T, place Place) Story {
		t.Helper()
		if err := os.WriteFile(place.Path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		copied := &bench{T: t, engine: e, keys: b.keys, db: place.Open(t), now: b.now}
		var done []store.Repair
		return Story{
			Act: func() error {
				repaired, err := copied.db.Repair(t.Context(), b.keys, "asha", b.now, true)
				done = append(done, repaired...)
				return err
			},
			State: func() string {
				return fmt.Sprintf("%+v, and broken is %v", done, (&tampered{bench: copied}).broken())
			},
			Repeatable: true, Once: true,
		}
	})
}
