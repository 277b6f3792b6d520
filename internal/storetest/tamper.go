package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// decisions are what the service does on the word of stored rows and entries. Each fails if they are not what the
// service wrote.

// appends adds an entry in a transaction.
func appends(owner string) func(*bench) error {
	return func(b *bench) error { return b.append(b.posting(owner, ledger.SaleRecorded, ledger.Sale(1))) }
}

// requests reserves money for a payout, by the way that groups requests.
func requests(seller string, amount money.Amount) func(*bench) error {
	return func(b *bench) error {
		return b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Owner: seller}, func(tx payout.ChangeTx) error {
			_, err := b.reserve(tx, seller, "pyt_tampered", amount)
			return err
		})
	}
}

// settles reads what the journal says of a payout, as it is done before its money moves.
func settles(id payout.ID) func(*bench) error {
	return func(b *bench) error {
		return b.db.Update(b.ctx(), func(tx *store.Tx) error {
			p, err := tx.PayoutForUpdate(b.ctx(), id)
			if err != nil {
				return err
			}
			entries, err := tx.EntriesAbout(b.ctx(), p.Seller, string(id))
			if err == nil {
				err = payout.CheckEntries(p, entries)
			}
			return err
		})
	}
}

// sends is settles for a payout that is about to be sent: no later entry may be missing either.
func sends(id payout.ID) func(*bench) error {
	return func(b *bench) error {
		if err := settles(id)(b); err != nil {
			return err
		}
		return b.db.Update(b.ctx(), func(tx *store.Tx) error {
			p, err := tx.Payout(b.ctx(), id)
			if err != nil {
				return err
			}
			entries, err := tx.EntriesAbout(b.ctx(), p.Seller, string(id))
			if err != nil {
				return err
			}
			err = tx.CheckJournal(b.ctx(), p.Seller, entries[0].Number)
			if _, broken := tx.Payout(b.ctx(), id); broken != nil { // what was found is to be recorded
				return fmt.Errorf("the transaction ended with the check: %v", broken) //nolint:errorlint // not what the check says
			}
			return err
		})
	}
}

// releases reads what the journal says of a sale, as it is done before it is released or refunded.
func releases(id string) func(*bench) error {
	return func(b *bench) error {
		return b.db.Update(b.ctx(), func(tx *store.Tx) error {
			s, err := tx.SaleForUpdate(b.ctx(), id)
			if err != nil {
				return err
			}
			entries, err := tx.EntriesAbout(b.ctx(), s.Seller, sale.SubjectPrefix+id)
			if err == nil {
				err = sale.CheckEntries(s, entries)
			}
			return err
		})
	}
}

// pays reads what the journal says of a bank account, as it is done before it is paid to.
func pays(id bank.ID) func(*bench) error {
	return func(b *bench) error {
		a, err := b.db.BankAccountByID(b.ctx(), id)
		if err != nil {
			return err
		}
		entries, err := b.db.EntriesAbout(b.ctx(), a.Seller, string(id))
		if err == nil {
			err = bank.CheckEntries(a, entries)
		}
		return err
	}
}

// attempt is something that an attacker with access to the database does to be paid more.
type attempt struct {
	name, sql string
	// found are the audit's findings.
	found []string
	// refused are the decisions that fail then.
	refused map[string]func(*bench) error
}

// putBack puts an old copy of rows in the place of what they are now.
func putBack(table, where string) string {
	return fmt.Sprintf("DELETE FROM %[1]s WHERE %[2]s; INSERT INTO %[1]s SELECT * FROM old_%[1]s WHERE %[2]s", table, where) //nolint:unqueryvet // all of it
}

type refusals = map[string]func(*bench) error

const (
	payoutsMatch  = "payouts-match-journal"
	salesMatch    = "sales-match-journal"
	accountsMatch = "bank-accounts-match-journal"

	// anotherPayout is a row like that of a payout that waits.
	anotherPayout = `INSERT INTO payouts (id, seller_id, bank_account_id, amount, fee, notes, rail, state, status, requested_at, arrive_at, due_at, tries,
			order_body, gateway_id, progress, utr, reason_code, reason, discrepancy, gateway)
		SELECT 'pyt_more', seller_id, bank_account_id, amount, fee, notes, rail, state, status, requested_at, arrive_at, due_at, tries,
			order_body, gateway_id, progress, utr, reason_code, reason, discrepancy, gateway FROM payouts WHERE id = 'pyt_open'`
	anotherSale = `INSERT INTO sales (id, seller_id, amount, refunded, month, occurred_at, available_at, created_at, fingerprint, due_at)
		SELECT 'more', seller_id, amount, 0, month, occurred_at, available_at, created_at, fingerprint, due_at FROM sales WHERE id = 'held'`
	entriesLike = `INSERT INTO entries SELECT %s, number + 1000, at, type, %s, actor, data, pending, available, in_transit, sales, gateway, fees,
		after, hash, mac FROM entries WHERE subject = '%s'`
)

// attempts are made on the database of [bench.target].
var attempts = []attempt{
	{
		"a balance raised", `UPDATE journals SET available = available + 100000 WHERE owner = 'usr_a'`,
		[]string{inJournal},
		refusals{"append": appends("usr_a"), "request": requests("usr_a", 1), "request what was added": requests("usr_a", 50_000), "send": sends("pyt_open")},
	},
	{
		"a balance raised, and the last entry's totals too", `UPDATE journals SET available = available + 100000 WHERE owner = 'usr_b';
		UPDATE entries SET after = REPLACE(after, '0 3900 600', '0 103900 600') WHERE owner = 'usr_b'`,
		[]string{inJournal},
		refusals{"append": appends("usr_b"), "request": requests("usr_b", 1), "send": sends("pyt_keyed")},
	},
	{
		"an in-transit amount raised", `UPDATE journals SET in_transit = in_transit + 100000 WHERE owner = 'usr_a'`,
		[]string{inJournal},
		refusals{"append": appends("usr_a"), "send": sends("pyt_open")},
	},
	{
		"another seller's balance", `UPDATE journals SET owner = 'usr_none' WHERE owner = 'usr_a'; UPDATE journals SET owner = 'usr_a' WHERE owner = 'usr_b'`,
		[]string{inJournal, "owners-are-there"},
		refusals{"append": appends("usr_a"), "request": requests("usr_a", 1), "send": sends("pyt_open")},
	},
	{"a sale inserted", anotherSale, []string{salesMatch, "earnings-match-sales"}, refusals{"release": releases("more")}},
	{
		"a sale inserted, with copies of entries", anotherSale + `; ` + fmt.Sprintf(entriesLike, "owner", "'sale:more'", "sale:held"),
		[]string{inJournal},
		refusals{"release": releases("more")},
	},
	{"a sale enlarged", `UPDATE sales SET amount = amount + 100000 WHERE id = 'held'`, []string{salesMatch, "earnings-match-sales"}, refusals{"release": releases("held")}},
	{
		"a sale enlarged, with its entry", `UPDATE sales SET amount = 100700 WHERE id = 'held';
		UPDATE entries SET data = REPLACE(data, '"amount":700', '"amount":100700'), pending = 100700, sales = -100700 WHERE subject = 'sale:held'`,
		[]string{inJournal},
		refusals{"release": releases("held")},
	},
	{
		"a refund taken off a sale", `UPDATE sales SET refunded = 0 WHERE id = 'sale for usr_b'; DELETE FROM sale_refunds`,
		[]string{salesMatch},
		refusals{"refund": releases("sale for usr_b")},
	},
	{"a sale dated back", `UPDATE sales SET available_at = occurred_at, due_at = occurred_at WHERE id = 'held'`, []string{salesMatch}, refusals{"release": releases("held")}},
	{"a sale of another seller", `UPDATE sales SET seller_id = 'usr_b' WHERE id = 'held'`, []string{salesMatch}, refusals{"release": releases("held")}},
	{"a payout inserted", anotherPayout, []string{payoutsMatch}, refusals{"send": sends("pyt_more")}},
	{
		"a payout inserted, with copies of entries", anotherPayout + `; ` + fmt.Sprintf(entriesLike, "owner", "'pyt_more'", "pyt_open"),
		[]string{inJournal},
		refusals{"send": sends("pyt_more")},
	},
	{"a payout's amount", `UPDATE payouts SET amount = amount + 100000 WHERE id = 'pyt_open'`, []string{payoutsMatch}, refusals{"send": sends("pyt_open"), "settle": settles("pyt_open")}},
	{"a payout's fee", `UPDATE payouts SET fee = 0 WHERE id = 'pyt_open'`, []string{payoutsMatch}, refusals{"send": sends("pyt_open"), "settle": settles("pyt_open")}},
	{
		"a payout's account", `UPDATE payouts SET bank_account_id = 'bka_usr_b' WHERE id = 'pyt_open'`,
		[]string{payoutsMatch, "owners-are-there"},
		refusals{"send": sends("pyt_open")},
	},
	{
		"a payout's amount, with its entry", `UPDATE payouts SET amount = 101000 WHERE id = 'pyt_open';
		UPDATE entries SET data = REPLACE(data, '"amount":1000', '"amount":101000'), available = -101000, in_transit = 101000 WHERE subject = 'pyt_open'`,
		[]string{inJournal},
		refusals{"send": sends("pyt_open"), "settle": settles("pyt_open")},
	},
	{
		"a payout of another seller", `UPDATE payouts SET seller_id = 'usr_b', bank_account_id = 'bka_usr_b' WHERE id = 'pyt_open'`,
		[]string{payoutsMatch},
		refusals{"send": sends("pyt_open")},
	},
	{"a payout of another seller, with copies of entries", `UPDATE payouts SET seller_id = 'usr_b', bank_account_id = 'bka_usr_b' WHERE id = 'pyt_open'; ` +
		fmt.Sprintf(entriesLike, "'usr_b'", "subject", "pyt_open"), []string{inJournal, payoutsMatch}, refusals{"send": sends("pyt_open"), "settle": settles("pyt_open")}},
	{
		"an account marked verified", `UPDATE bank_accounts SET status = 'verified', verified_at = 1, due_at = NULL WHERE id = 'bka_new'`,
		[]string{accountsMatch},
		refusals{"pay": pays("bka_new"), "request": requests("usr_empty", 1)},
	},
	{
		"another seller's account", `UPDATE bank_accounts SET is_current = 0 WHERE id = 'bka_usr_a'; UPDATE bank_accounts SET seller_id = 'usr_a' WHERE id = 'bka_usr_b'`,
		[]string{accountsMatch},
		refusals{"pay": pays("bka_usr_b"), "request": requests("usr_a", 1)},
	},
	{"an account's holder and digits", `UPDATE bank_accounts SET holder = 'Mallory', last4 = '6666' WHERE id = 'bka_usr_a'`, []string{accountsMatch}, refusals{"request": requests("usr_a", 1)}},
	{"an account marked verified, with a copy of an entry", `UPDATE bank_accounts SET status = 'verified', verified_at = 1, due_at = NULL WHERE id = 'bka_new';
		INSERT INTO entries SELECT owner, 1000, at, 'bank_account.verified', 'bka_new', actor, '{"status":"verified","verifiedAt":1}', 0, 0, 0, 0, 0, 0, after, hash, mac
			FROM entries WHERE owner = 'usr_empty' AND number = 1`, []string{inJournal}, refusals{"pay": pays("bka_new")}},
	{"an account's beneficiary", `UPDATE bank_accounts SET beneficiary = 'fa_mallory' WHERE id = 'bka_usr_b'`, []string{accountsMatch}, refusals{"pay": pays("bka_usr_b")}},
	{"an old balance", putBack("journals", "owner = 'usr_a'"), []string{inJournal}, refusals{"append": appends("usr_a"), "request": requests("usr_a", 1), "send": sends("pyt_open")}},
	{
		"a journal cut off, its totals put back", `DELETE FROM entries WHERE owner = 'usr_a' AND number > (SELECT number FROM old_journals WHERE owner = 'usr_a'); ` +
			putBack("journals", "owner = 'usr_a'"),
		[]string{inJournal},
		refusals{"send what it knows": sends("pyt_sending")},
	},
	{"a balance dropped", `DELETE FROM journals WHERE owner = 'usr_a'`, []string{inJournal}, refusals{"append": appends("usr_a"), "send": sends("pyt_open")}},
	{"an old payout", putBack("payouts", "id = 'pyt_waiting'"), []string{payoutsMatch}, refusals{"send": sends("pyt_waiting"), "settle": settles("pyt_waiting")}},
	{
		"an old payout, its later entry dropped", putBack("payouts", "id = 'pyt_waiting'") + `; DELETE FROM entries WHERE type = 'payout.cancelled' AND subject = 'pyt_waiting'`,
		[]string{inJournal},
		refusals{"send": sends("pyt_waiting")},
	},
	{"an old sale", putBack("sales", "id = 'pending'"), []string{salesMatch}, refusals{"release": releases("pending")}},
	{"an old bank account", `UPDATE bank_accounts SET is_current = 0 WHERE id = 'bka_new'; ` + putBack("bank_accounts", "id = 'bka_usr_empty'"), []string{accountsMatch}, refusals{"pay": pays("bka_usr_empty")}},
	{
		"an entry dropped in the middle", `DELETE FROM entries WHERE owner = 'usr_a' AND subject = 'pyt_waiting' AND type = 'payout.cancelled'`,
		[]string{inJournal, payoutsMatch},
		refusals{"settle": settles("pyt_waiting"), "send the next": sends("pyt_open"), "send an earlier": sends("pyt_sending")},
	},
	{
		"the last entry dropped", `DELETE FROM entries WHERE owner = 'usr_a' AND number = (SELECT number FROM journals WHERE owner = 'usr_a')`,
		[]string{inJournal},
		refusals{"send": sends("pyt_open"), "send an earlier": sends("pyt_sending")},
	},
	{"the first entry dropped", `DELETE FROM entries WHERE owner = 'usr_a' AND number = 1`, []string{inJournal, accountsMatch}, refusals{"pay": pays("bka_usr_a")}},
	{
		"an entry's amount", `UPDATE entries SET available = available - 1, in_transit = in_transit + 1 WHERE subject = 'pyt_open'`,
		[]string{inJournal, payoutsMatch},
		refusals{"send": sends("pyt_open"), "settle": settles("pyt_open")},
	},
	{"an entry's actor", `UPDATE entries SET actor = 'admin:usr_admin' WHERE subject = 'pyt_open'`, []string{inJournal}, refusals{"send": sends("pyt_open")}},
	{"an entry's totals", `UPDATE entries SET after = '0 1 0 0 0 0 0 0 0 0' WHERE subject = 'pyt_open'`, []string{inJournal}, refusals{"send": sends("pyt_open")}},
	{"an entry's totals made unreadable", `UPDATE entries SET after = 'much' WHERE subject = 'pyt_open'`, []string{inJournal}, refusals{"send": sends("pyt_open")}},
	{
		"an entry's data", `UPDATE entries SET data = REPLACE(data, 'bka_usr_a', 'bka_usr_b') WHERE subject = 'pyt_open'`,
		[]string{inJournal, payoutsMatch},
		refusals{"send": sends("pyt_open")},
	},
	{"an entry's data called erased", `UPDATE entries SET data = '{"erased":"x"}' WHERE subject = 'pyt_open'`, []string{inJournal}, refusals{"send": sends("pyt_open")}},
	{
		"an entry's MAC of another one", `UPDATE entries SET mac = (SELECT mac FROM entries WHERE owner = 'usr_a' AND number = 2) WHERE subject = 'pyt_open'`,
		[]string{inJournal},
		refusals{"send": sends("pyt_open")},
	},
	{
		"an owner's journal dropped", `DELETE FROM entries WHERE owner = 'usr_a'; DELETE FROM journals WHERE owner = 'usr_a'`,
		[]string{inJournal, payoutsMatch, salesMatch, accountsMatch},
		refusals{
			"request": requests("usr_a", 1), "send": sends("pyt_open"), "settle": settles("pyt_open"), "release": releases("held"), "pay": pays("bka_usr_a"),
		},
	},
	{
		"an owner's entries dropped", `DELETE FROM entries WHERE owner = 'usr_a'`,
		[]string{inJournal, payoutsMatch, salesMatch, accountsMatch},
		refusals{"send": sends("pyt_open"), "release": releases("held"), "pay": pays("bka_usr_a")},
	},
}

// target is a database that has moved on since copies of rows were kept as they were.
func (b *bench) target() {
	b.Helper()
	b.fillAll()
	hands := b.engine.Hands(b.T, b.db)
	for _, table := range []string{"journals", "payouts", "sales", "bank_accounts"} {
		hands(fmt.Sprintf("CREATE TABLE old_%[1]s AS SELECT * FROM %[1]s", table)) //nolint:unqueryvet // all of it
	}
	b.sellAt("held", "usr_a", 700, 0, time.Hour)
	waiting, err := b.db.Payout(b.ctx(), "pyt_waiting")
	b.must(err)
	waiting.EndedAt = b.now
	b.move(waiting, payout.Cancelled)
	b.ask("pyt_open", "usr_a", 1000, 10)
	b.release("pending")
	b.update(func(tx *store.Tx) error {
		return tx.RejectBankAccounts(b.ctx(), "usr_empty", "Register it again.", b.now)
	})
	b.register("bka_new", "usr_empty")
	b.checkpoint()
}

// testAttempts tampers with the database in every way that could make the service pay. Each is named by the audit, and
// each decision that rests on what was tampered with fails and writes nothing.
func testAttempts(t *testing.T, b *bench) {
	t.Helper()
	b.target()
	b.wantCleanAudit()
	copied := b.tampered()
	for _, decide := range []func(*bench) error{
		sends("pyt_open"), sends("pyt_sending"), settles("pyt_waiting"), releases("held"), releases("sale for usr_b"), pays("bka_usr_a"), pays("bka_new"),
	} {
		if err := decide(copied.bench); err != nil {
			t.Fatalf("before anything was tampered with: %v", err)
		}
	}
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			copied.hands(a.sql)
			found := copied.broken()
			for _, name := range a.found {
				if found[name] == "" {
					t.Errorf("the audit finds %v, want %s among them", found, name)
				}
			}
			before := copied.state()
			for _, what := range slices.Sorted(maps.Keys(a.refused)) {
				err := a.refused[what](copied.bench)
				if insufficient := errors.Is(err, ledger.ErrInsufficient) && strings.HasPrefix(a.name, "an owner's journal"); !errors.Is(err, ledger.ErrTampered) && !insufficient {
					t.Errorf("%s: %v, want %v", what, err, ledger.ErrTampered)
				}
			}
			if after := copied.state(); after != before {
				t.Errorf("a decision that was refused wrote something: %s", cmp.Diff(before, after))
			}
			copied.restore()
		})
	}
	if left := copied.broken(); len(left) > 0 {
		t.Errorf("what was repaired is still broken: %v", left)
	}
}

// readTotals reads totals that do not count the newest entries, because their row is an old one or missing. What is shown of an
// old row is old. Without the row nothing can be shown.
func (b *bench) readTotals(owner string, isMissing bool) {
	b.Helper()
	want := func(what string, err error, tampered bool) {
		b.Helper()
		if errors.Is(err, ledger.ErrTampered) != tampered || !tampered && err != nil {
			b.Errorf("%s: %v, want it to be tampered with: %t", what, err, tampered)
		}
	}
	_, err := b.db.Summary(b.ctx(), owner, "2026-11", "2026-10")
	want("the summary of "+owner, err, isMissing)
	_, err = b.db.Payouts().Balance(b.ctx(), owner)
	want("the balance of "+owner, err, isMissing)
	balance, err := b.db.Payouts().Balance(b.ctx(), "usr_nobody")
	want("the balance of nobody", err, false)
	b.must(b.db.Payouts().View(b.ctx(), func(v payout.View) error {
		_, err := v.Balance(b.ctx(), owner)
		want("the balance of "+owner+" in a view", err, true)
		viewed, err := v.Balance(b.ctx(), "usr_nobody")
		want("the balance of nobody in a view", err, false)
		_, err = v.Balance(b.ctx(), "usr_b")
		want("the balance of another seller in a view", err, false)
		if zero := (ledger.Balance{}); balance != zero || viewed != zero {
			b.Errorf("nobody has %+v and %+v", balance, viewed)
		}
		return nil
	}))
}

// testOldBalance puts an old row of totals back, which carries a MAC of the service. The next entry would get a number
// that is taken. That fails, in a transaction of its own and in one with others, and harms nobody else.
func testOldBalance(t *testing.T, b *bench) {
	t.Helper()
	b.target()
	for name, change := range map[string]string{
		"put back": putBack("journals", "owner = 'usr_a'"),
		"dropped":  `DELETE FROM journals WHERE owner = 'usr_a'`,
	} {
		t.Run(name, func(t *testing.T) {
			copied := b.tampered()
			copied.hands(change)
			copied.readTotals("usr_a", name == "dropped")
			before := copied.state()
			swallowed := copied.db.Update(b.ctx(), func(tx *store.Tx) error {
				_, err := tx.Append(b.ctx(), b.posting("usr_a", ledger.SaleRecorded, ledger.Sale(1)))
				if !errors.Is(err, ledger.ErrTampered) {
					t.Errorf("alone it is %v", err)
				}
				return nil
			})
			if !errors.Is(swallowed, ledger.ErrTampered) {
				t.Errorf("of a closure that goes on the outcome is %v", swallowed)
			}
			if after := copied.state(); after != before {
				t.Errorf("an old balance was written to: %s", cmp.Diff(before, after))
			}
			others := copied.head("usr_b")
			var refused atomic.Int64
			copied.atOnce(32, func(i int) error {
				seller := []string{"usr_a", "usr_b"}[i%2]
				err := copied.db.Payouts().InGroup(b.ctx(), ledger.Scope{Owner: seller}, func(tx payout.ChangeTx) error {
					_, err := tx.Append(b.ctx(), copied.posting(seller, ledger.PayoutRequested, ledger.ReservePayout(1)))
					return err
				})
				if seller == "usr_a" && errors.Is(err, ledger.ErrTampered) {
					refused.Add(1)
					return nil
				}
				return err
			})
			if after := copied.head("usr_b"); refused.Load() != 16 || after.Number != others.Number+16 {
				t.Errorf("%d of 16 were refused, and %d of another seller's 16 are done", refused.Load(), after.Number-others.Number)
			}
			copied.follow("usr_b")
			if rows := copied.engine.Rows(t, copied.db, `SELECT owner FROM entries WHERE owner = 'usr_a'`); len(rows) != len(b.engine.Rows(t, b.db, `SELECT owner FROM entries WHERE owner = 'usr_a'`)) {
				t.Errorf("the journal has %d entries", len(rows))
			}
			copied.restore()
		})
	}

	// Where the last entry is gone, the journal goes on behind the gap, and no payout from behind it is sent.
	copied := b.tampered()
	copied.hands(`DELETE FROM entries WHERE owner = 'usr_a' AND number = (SELECT number FROM journals WHERE owner = 'usr_a')`)
	copied.ask("pyt_behind", "usr_a", 100, 0)
	if err := sends("pyt_behind")(copied.bench); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("a payout that was asked for after the last entry was dropped: %v", err)
	}
}

// testTakenID inserts a row under the id of a payout that is about to be requested. The request is refused, alone and in a
// group, and no money moves.
func testTakenID(t *testing.T, b *bench) {
	t.Helper()
	b.target()
	copied := b.tampered()
	copied.hands(`CREATE TABLE taken AS SELECT * FROM payouts WHERE id = 'pyt_open'; UPDATE taken SET id = 'pyt_tampered'; INSERT INTO payouts SELECT * FROM taken`) //nolint:unqueryvet // whatever columns there are
	before := copied.state()
	alone := copied.db.Update(b.ctx(), func(tx *store.Tx) error {
		_, err := copied.reserve(tx, "usr_a", "pyt_tampered", 100)
		return err
	})
	if inGroup := requests("usr_a", 100)(copied.bench); !errors.Is(alone, ledger.ErrTampered) || !errors.Is(inGroup, ledger.ErrTampered) {
		t.Errorf("requested alone: %v, in a group: %v", alone, inGroup)
	}
	if after := copied.state(); after != before {
		t.Errorf("a request under a taken id was written: %s", cmp.Diff(before, after))
	}
	copied.ask("pyt_next", "usr_a", 100, 0)
}
