package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// testTails moves payouts in units of work, which remember the ends of journals that they found whole. An entry about a payout
// that is taken away afterwards is missed all the same, also if later ones are left, and nothing moves until it is back. So is
// an entry about something else that no unit has seen.
func testTails(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.ask("pyt_1", seller, 300, 0)
	b.ask("pyt_2", seller, 300, 0)
	hands := b.engine.Hands(b.T, b.db)
	without := func(subject string, t ledger.Type, do func()) {
		entry := fmt.Sprintf(`subject = '%s' AND type = '%s'`, subject, t)
		hands(`UPDATE entries SET owner = 'usr_hidden' WHERE owner = 'usr_a' AND ` + entry)
		do()
		hands(`UPDATE entries SET owner = 'usr_a' WHERE owner = 'usr_hidden' AND ` + entry)
	}
	moves := func(id payout.ID, to payout.State) {
		b.Helper()
		b.must(b.moveInUnit(id, to))
	}
	refuses := func(id payout.ID, to payout.State) {
		b.Helper()
		if err := b.moveInUnit(id, to); !errors.Is(err, ledger.ErrTampered) {
			b.Errorf("%s to %s without an entry: %v, want %v", id, to, err, ledger.ErrTampered)
		}
	}
	moves("pyt_1", payout.Submitting)
	moves("pyt_2", payout.Submitting)
	moves("pyt_1", payout.Unknown)
	b.sell("sale-1", seller, 500)
	moves("pyt_2", payout.Unknown)
	moves("pyt_1", payout.Submitted)

	putBack := func() {
		hands(`UPDATE payouts SET state = 'unknown' WHERE id = 'pyt_1'`)
		refuses("pyt_1", payout.Submitted)
		refuses("pyt_2", payout.Submitted)
		hands(`UPDATE payouts SET state = 'submitted' WHERE id = 'pyt_1'`)
	}
	without("pyt_1", ledger.PayoutSubmitted, putBack)
	b.sell("sale-0", seller, 500)
	moves("pyt_1", payout.Submitted) // it only gets a reference, which the entry before does not tell of
	without("pyt_1", ledger.PayoutSubmitted, putBack)
	moves("pyt_2", payout.Submitted)

	b.sell("sale-2", seller, 500)
	b.sell("sale-3", seller, 500)
	without("sale:sale-2", ledger.SaleRecorded, func() { refuses("pyt_2", payout.Completed) })
	moves("pyt_2", payout.Completed)
	moves("pyt_1", payout.Completed)
	b.wantCleanAudit()
}

// testLongTails moves payouts whose seller has sold so much since that a unit does not read all of it. Such a change is served once more
// after the journal was read, and later ones go on from there. An entry that is missing is missed all the same.
func testLongTails(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.ask("pyt_1", seller, 300, 0)
	b.ask("pyt_2", seller, 300, 0)
	sales := make([]ledger.Posting, 2000) // more than a unit reads, with the entries above
	for i := range sales {
		sales[i] = b.posting(seller, ledger.SaleRecorded, ledger.Sale(1))
		sales[i].Subject = fmt.Sprint("sale:", i)
	}
	for some := range slices.Chunk(sales, 50) { // a transaction ends after ten seconds, however slow the machine is
		b.must(b.append(some...))
	}
	moves := func(b *bench, id payout.ID, to payout.State, want int) {
		b.Helper()
		b.served = 0
		if err := b.moveInUnit(id, to); err != nil || b.served != want {
			b.Errorf("%s to %s was served %d times, want %d (error %v)", id, to, b.served, want, err)
		}
	}
	restarted := func(changes string) *bench { return b.with(b.engine.Tamper(b.T, b.db, changes)) }

	without := restarted(`UPDATE entries SET owner = 'usr_hidden' WHERE subject = 'sale:1000'`)
	if err := without.moveInUnit("pyt_1", payout.Submitting); !errors.Is(err, ledger.ErrTampered) {
		b.Errorf("without an entry: %v, want %v", err, ledger.ErrTampered)
	}

	afresh := restarted(`UPDATE users SET name = name`)
	served := 0
	afresh.must(afresh.db.Payouts().InGroup(b.ctx(), ledger.Scope{Payout: "pyt_1"}, func(payout.ChangeTx) error {
		served++
		return nil
	}))
	if served != 1 {
		b.Errorf("a change that relies on no journal was served %d times", served)
	}
	moves(afresh, "pyt_2", payout.Submitting, 2)
	moves(afresh, "pyt_1", payout.Submitting, 2) // its entry is older
	moves(afresh, "pyt_2", payout.Unknown, 1)
	moves(afresh, "pyt_1", payout.Unknown, 1)
	afresh.must(afresh.append(b.posting(seller, ledger.SaleRecorded, ledger.Sale(1))))
	moves(afresh, "pyt_1", payout.Submitted, 1)
}

// testWrittenEnds cuts off an entry that this process wrote outside of a unit, with the totals put back. Neither way to write goes on until
// it is back.
func testWrittenEnds(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.ask("pyt_1", seller, 300, 0)
	b.must(b.moveInUnit("pyt_1", payout.Submitting))
	hands := b.engine.Hands(b.T, b.db)
	hands(`CREATE TABLE old_journals AS SELECT * FROM journals`) //nolint:unqueryvet // all of it
	b.sell("sale-4", seller, 500)
	const isNew = ` AND number > (SELECT number FROM old_journals WHERE owner = 'usr_a')`
	hands(`CREATE TABLE cut AS SELECT * FROM journals WHERE owner = 'usr_a'`) //nolint:unqueryvet // all of it
	hands(`UPDATE entries SET owner = 'usr_hidden' WHERE owner = 'usr_a'` + isNew + `; ` + putBack("journals", "owner = 'usr_a'"))
	if err := b.moveInUnit("pyt_1", payout.Unknown); !errors.Is(err, ledger.ErrTampered) {
		b.Errorf("a step in a unit: %v, want %v", err, ledger.ErrTampered)
	}
	if err := b.db.Update(b.ctx(), func(tx *store.Tx) error { return tx.CheckJournal(b.ctx(), "usr_a", 1) }); !errors.Is(err, ledger.ErrTampered) {
		b.Errorf("a check in a transaction: %v, want %v", err, ledger.ErrTampered)
	}
	hands(`UPDATE entries SET owner = 'usr_a' WHERE owner = 'usr_hidden'` + isNew)
	hands(`DELETE FROM journals WHERE owner = 'usr_a'; INSERT INTO journals SELECT * FROM cut`) //nolint:unqueryvet // all of it
	b.must(b.moveInUnit("pyt_1", payout.Unknown))
}

// moveInUnit takes a payout to a state in a unit of work, after the checks that package payout makes before money moves. A payout
// that is in that state gets the bank's reference.
func (b *bench) moveInUnit(id payout.ID, to payout.State) error {
	return b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Payout: string(id)}, func(tx payout.ChangeTx) error {
		b.served++
		was, err := tx.PayoutForUpdate(b.ctx(), id)
		if err != nil {
			return err
		}
		entries, err := tx.EntriesAbout(b.ctx(), was.Seller, string(id))
		if err == nil {
			err = errors.Join(payout.CheckEntries(was, entries), tx.CheckJournal(b.ctx(), was.Seller, payout.CameToState(entries)))
		}
		if err != nil {
			return err
		}
		p, moved, what := was, ledger.Moved{}, steps[to]
		p.State = to
		switch {
		case to == was.State:
			p.UTR, what = "HDFCN00000000001", ledger.PayoutUpdated
		case to == payout.Completed:
			moved = ledger.SettlePayout(p.Net(), p.Fee)
			p.GatewayID, p.CompletedAt, p.EndedAt, p.DueAt = "pout_"+string(p.ID[4:]), b.now, b.now, time.Time{}
		}
		if updated, err := tx.UpdatePayout(b.ctx(), was.State, p); err != nil || !updated {
			return errors.Join(err, fmt.Errorf("%s was loaded as %s, and moved: %t", id, was.State, updated))
		}
		return post(b, tx, was.Seller, what, string(id), was, p, moved)
	})
}
