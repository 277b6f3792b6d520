package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/store"
)

// line is a debit for a transfer of the gateway, so long after the start.
func line(id string, after time.Duration, debit money.Amount) reconcile.Line {
	return reconcile.Line{
		Line: gateway.Line{
			ID: id, At: start.Add(after), Debit: debit, Balance: 1000 - debit, HasBalance: true, Currency: "INR", Kind: "payout", RawKind: "pay",
			SourceID: "pout_" + id, Transfer: "pout_" + id, Amount: debit - 5, Fees: 5, Tax: 1, UTR: "U" + id,
		},
		Gateway: atGateway, FirstReported: "told", LastReported: "told",
	}
}

func lineIDs(lines []reconcile.Line) []string {
	ids := []string{}
	for _, l := range lines {
		ids = append(ids, l.ID)
	}
	return ids
}

func (b *bench) wantIDs(why string, got []reconcile.Line, err error, want ...string) {
	b.Helper()
	if ids := lineIDs(got); err != nil || !slices.Equal(ids, append([]string{}, want...)) {
		b.Errorf("%s: lines %v, error %v; want %v", why, ids, err, want)
	}
}

func testStatementLines(_ *testing.T, b *bench) {
	s := b.db.Reconciling(atGateway)
	first, second, other := line("txn_1", time.Hour, 105), line("txn_2", time.Hour, 205), line("txn_3", 2*time.Hour, 305)
	second.Transfer, second.Payout, second.HasBalance, second.Balance = "", "pyt_2", false, 0
	other.Debit, other.Credit, other.Currency = 0, 300, "USD"
	b.must(s.KeepLines(b.ctx(), []reconcile.Line{other, first, second}, start.Add(3*time.Hour)))
	whole := func(after reconcile.Line, limit int) ([]reconcile.Line, error) {
		return s.LinesBetween(b.ctx(), start, start.Add(24*time.Hour), after, limit)
	}
	got, err := whole(reconcile.Line{}, 10)
	b.wantIDs("all", got, err, "txn_1", "txn_2", "txn_3")
	if len(got) == 3 && (got[0] != first || got[1] != second || got[2] != other) {
		b.Errorf("read back\n%+v, want\n%+v", got, []reconcile.Line{first, second, other})
	}
	got, err = whole(first, 1)
	b.wantIDs("a page within a second", got, err, "txn_2")
	got, err = s.LinesBetween(b.ctx(), start.Add(time.Hour), start.Add(2*time.Hour), reconcile.Line{}, 10)
	b.wantIDs("a period without its end", got, err, "txn_1", "txn_2")
	got, err = s.LinesAbout(b.ctx(), []payout.ID{"pyt_2", "pyt_none"}, []string{"pout_txn_1"})
	b.wantIDs("by names", got, err, "txn_1", "txn_2")
	got, err = s.LinesAbout(b.ctx(), nil, nil)
	b.wantIDs("by no names", got, err)
	got, err = s.LinesByID(b.ctx(), []string{"txn_3", "txn_none"})
	b.wantIDs("by id", got, err, "txn_3")
	if taken, err := s.SumOfLines(b.ctx(), start, start.Add(24*time.Hour), "INR"); err != nil || taken != 310 {
		b.Errorf("the lines took %d, %v; want 310", taken, err)
	}

	changed := first
	changed.Debit, changed.LastReported, changed.UTR = 106, "told otherwise", "late"
	b.must(s.KeepLines(b.ctx(), []reconcile.Line{changed}, start.Add(5*time.Hour)))
	b.must(s.KeepLines(b.ctx(), []reconcile.Line{changed}, start.Add(4*time.Hour))) // by a clock that is behind
	b.must(s.MissLines(b.ctx(), start, start.Add(2*time.Hour), start.Add(5*time.Hour)))
	got, err = s.ChangedLines(b.ctx(), start, start.Add(24*time.Hour), reconcile.Line{}, 10)
	b.wantIDs("changed and missing", got, err, "txn_1", "txn_2")
	page, err := s.ChangedLines(b.ctx(), start, start.Add(24*time.Hour), got[0], 10)
	b.wantIDs("after the first", page, err, "txn_2")
	if len(got) == 2 && (got[0] != changed || got[0].FirstReported != "told" || !got[1].Missing) {
		b.Errorf("after a change there is %+v", got)
	}
	if taken, err := s.SumOfLines(b.ctx(), start, start.Add(24*time.Hour), "INR"); err != nil || taken != 106 {
		b.Errorf("the lines that are there took %d, %v; want 106", taken, err)
	}
	b.must(s.KeepLines(b.ctx(), []reconcile.Line{first, second}, start.Add(6*time.Hour)))
	got, err = s.ChangedLines(b.ctx(), start, start.Add(24*time.Hour), reconcile.Line{}, 10)
	b.wantIDs("told as at first", got, err)
}

func testStatementDays(_ *testing.T, b *bench) {
	s := b.db.Reconciling(atGateway)
	day := func(n int) reconcile.Day {
		from := start.AddDate(0, 0, n)
		return reconcile.Day{From: from, To: from.AddDate(0, 0, 1), ReadAt: from.AddDate(0, 0, 2), Lines: -1}
	}
	b.must(s.KeepDay(b.ctx(), day(1)))
	b.must(s.KeepDay(b.ctx(), day(0)))
	compared := day(0)
	compared.Lines, compared.Opening, compared.Closing, compared.HasBalances = 3, 10, -20, true
	b.must(s.KeepBalances(b.ctx(), compared))
	empty := day(1)
	empty.Lines = 0
	b.must(s.KeepBalances(b.ctx(), empty))
	b.must(s.KeepBalances(b.ctx(), day(7))) // which was not read
	got, err := s.Days(b.ctx(), start, start.AddDate(0, 0, 9))
	if want := []reconcile.Day{compared, empty}; err != nil || !slices.Equal(got, want) {
		b.Errorf("days %+v, error %v; want %+v", got, err, want)
	}
	if got, err := s.Days(b.ctx(), start.AddDate(0, 0, 1), start.AddDate(0, 0, 2)); err != nil || !slices.Equal(got, []reconcile.Day{empty}) {
		b.Errorf("within a day there are %+v, %v", got, err)
	}
	again := day(0)
	again.ReadAt = again.ReadAt.Add(time.Hour)
	b.must(s.KeepDay(b.ctx(), again))
	if got, err := s.Days(b.ctx(), start, start.AddDate(0, 0, 1)); err != nil || !slices.Equal(got, []reconcile.Day{again}) {
		b.Errorf("read again, a day is %+v, %v; want %+v", got, err, again)
	}
}

func testClearingAccount(_ *testing.T, b *bench) {
	s := b.db.Reconciling(atGateway)
	for _, seller := range []string{"usr_a", "usr_b"} {
		b.fund(b.seller(seller), 10_000)
	}
	paid := b.complete(b.ask("pyt_1", "usr_a", 1000, 10))
	b.complete(b.ask("pyt_2", "usr_b", 2000, 0))
	b.now = start.Add(time.Hour)
	b.move(paid, payout.Returned)
	b.ask("pyt_3", "usr_a", 500, 0)
	all := func(after reconcile.Entry, limit int) []reconcile.Entry {
		got, err := s.Entries(b.ctx(), start, start.Add(2*time.Hour), after, limit)
		b.must(err)
		return got
	}
	got := all(reconcile.Entry{}, 10)
	want := []reconcile.Entry{
		{At: start, Payout: "pyt_1", Paid: 990, Seller: "usr_a", Number: 6},
		{At: start, Payout: "pyt_2", Paid: 2000, Seller: "usr_b", Number: 6},
		{At: start.Add(time.Hour), Payout: "pyt_1", Paid: -990, Seller: "usr_a", Number: 7},
	}
	if !slices.Equal(got, want) {
		b.Errorf("the clearing account has %+v, want %+v", got, want)
	}
	if got := all(want[0], 1); !slices.Equal(got, want[1:2]) {
		b.Errorf("the page after the first is %+v", got)
	}
	if paid, returned, err := s.SumOfEntries(b.ctx(), start, start.Add(2*time.Hour)); err != nil || paid != 2990 || returned != 990 {
		b.Errorf("paid %d, returned %d, %v; want 2990 and 990", paid, returned, err)
	}
	if paid, returned, err := s.SumOfEntries(b.ctx(), start.Add(time.Hour), start.Add(2*time.Hour)); err != nil || paid != 0 || returned != 990 {
		b.Errorf("in the second hour paid %d, returned %d, %v; want 0 and 990", paid, returned, err)
	}
	b.testPayoutsOfStatement(s)
	named, err := s.PayoutsByTransfer(b.ctx(), []string{"pout_1", "pout_9"})
	if err != nil || len(named) != 1 || named[reconcile.TransferKey{Gateway: atGateway, ID: "pout_1"}] != "pyt_1" {
		b.Errorf("by their transfers there are %v, %v", named, err)
	}
	b.update(func(tx *store.Tx) error {
		for _, of := range []payout.UnmatchedTransfer{
			{Gateway: atGateway, Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: "pout_7"}}},
			{Gateway: atGateway, Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: "pout_8"}}},
			{Gateway: "another", Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: "pout_8"}}},
		} {
			if _, err := tx.RecordUnmatchedTransfer(b.ctx(), of); err != nil {
				return err
			}
		}
		_, err := tx.ResolveUnmatchedTransfer(b.ctx(), atGateway, "pout_7")
		if err != nil {
			return err
		}
		_, err = tx.ResolveUnmatchedTransfer(b.ctx(), "another", "pout_8") // which explains nothing here
		return err
	})
	settled, err := s.ResolvedUnmatchedTransfers(b.ctx(), atGateway, []string{"pout_7", "pout_8", "pout_9"})
	if err != nil || len(settled) != 1 || !settled["pout_7"] {
		b.Errorf("resolved transfers are %v, %v", settled, err)
	}
}

// testPayoutsOfStatement has payouts changed by hand, which the journal tells as they are: one completed, which says that it failed, and one that is
// gone. Of an entry that was changed nothing is believed, nor of a row that no journal knows.
func (b *bench) testPayoutsOfStatement(s reconcile.Store) {
	b.Helper()
	hand := b.engine.Hands(b.T, b.db)
	hand(`UPDATE payouts SET state = 'failed', status = 'failed', amount = 7, seller_id = 'usr_a' WHERE id = 'pyt_2'`)
	hand(`DELETE FROM payouts WHERE id = 'pyt_3'`)
	hand(`UPDATE entries SET data = REPLACE(data, '"state":"returned"', '"state":"waiting"') WHERE subject = 'pyt_1'`)
	hand(`UPDATE payouts SET id = 'pyt_4' WHERE id = 'pyt_1'`)
	got, err := s.PayoutsByID(b.ctx(), []payout.ID{"pyt_1", "pyt_2", "pyt_3", "pyt_4", "pyt_2"})
	b.must(err)
	for id, want := range map[payout.ID]payout.Payout{
		"pyt_1": {State: payout.Completed, Amount: 1000, Seller: "usr_a"},
		"pyt_2": {State: payout.Completed, Amount: 2000, Seller: "usr_b"},
		"pyt_3": {State: payout.Waiting, Amount: 500, Seller: "usr_a"},
	} {
		if p := got[id]; p.ID != id || p.State != want.State || p.Amount != want.Amount || p.Seller != want.Seller {
			b.Errorf("%s is %+v, want %+v", id, p, want)
		}
	}
	if len(got) != 3 {
		b.Errorf("found %d, want three: %+v", len(got), got)
	}
	hand(`UPDATE payouts SET id = 'pyt_1' WHERE id = 'pyt_4'`)
}

func testDifferences(_ *testing.T, b *bench) {
	s := b.db.Reconciling(atGateway)
	admin := b.seller("usr_admin")
	one := reconcile.Difference{
		ID: "dif_1", Kind: reconcile.PaidTwice, Gateway: atGateway, Subject: "pyt_1", Payout: "pyt_1", Detail: "twice", At: start, AtGateway: 200, InLedger: 100,
	}
	two := reconcile.Difference{ID: "dif_2", Kind: reconcile.LineChanged, Gateway: "elsewhere", Subject: "txn_1", Detail: "changed", At: start, AtGateway: -5}
	found := func(after time.Duration, found, gone []reconcile.Difference) {
		b.Helper()
		b.must(s.Found(b.ctx(), found, gone, start.Add(after)))
	}
	open := func(why string, want ...reconcile.Difference) {
		b.Helper()
		got, err := s.OpenDifferences(b.ctx(), reconcile.Difference{}, 10)
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("%s there are\n%+v (%v), want\n%+v", why, got, err, want)
		}
	}
	settle := func(id, detail string) (settled bool) {
		b.Helper()
		b.must(s.InTx(b.ctx(), func(tx reconcile.Tx) (err error) {
			if settled, err = tx.ResolveDifference(b.ctx(), id, detail, start.Add(5*time.Hour)); err != nil || !settled {
				return err
			}
			return ledger.RecordDecision(b.ctx(), tx, decision.New(decision.By{Admin: admin, Note: "why"}, decision.ResolveDifference, decision.Platform, id, b.now))
		}))
		return settled
	}
	found(time.Hour, []reconcile.Difference{one, two}, nil)
	one.FirstSeen, one.LastSeen, two.FirstSeen, two.LastSeen = start.Add(time.Hour), start.Add(time.Hour), start.Add(time.Hour), start.Add(time.Hour)
	open("found", one, two)
	if got, err := s.OpenDifferences(b.ctx(), one, 10); err != nil || !slices.Equal(got, []reconcile.Difference{two}) {
		b.Errorf("after the first there are %+v, %v", got, err)
	}
	if kinds, err := b.db.OpenKinds(b.ctx()); err != nil || len(kinds) != 2 || kinds[reconcile.PaidTwice] != 1 || kinds[reconcile.LineChanged] != 1 {
		b.Errorf("open are %v, %v", kinds, err)
	}

	// Found again, and gone only as it was read.
	found(2*time.Hour, []reconcile.Difference{two}, []reconcile.Difference{one})
	found(3*time.Hour, nil, []reconcile.Difference{two}) // which was seen since
	two.LastSeen = start.Add(2 * time.Hour)
	open("with one gone", two)
	if got, err := s.Difference(b.ctx(), "dif_1"); err != nil || !got.GoneAt.Equal(start.Add(2*time.Hour)) {
		b.Errorf("the one that is gone is %+v, %v", got, err)
	}
	if _, err := s.Difference(b.ctx(), "dif_none"); !errors.Is(err, reconcile.ErrNotFound) {
		b.Errorf("none is %v", err)
	}
	found(4*time.Hour, []reconcile.Difference{one}, nil)
	one.LastSeen = start.Add(4 * time.Hour)
	open("come back", one, two)

	// Settled as it was seen, and open again once it says something else.
	if settle("dif_1", "something else") || settle("dif_none", "twice") || !settle("dif_1", "twice") || settle("dif_1", "twice") {
		b.Error("not exactly one settling was right")
	}
	open("with one settled", two)
	found(6*time.Hour, []reconcile.Difference{one}, nil)
	open("found again as it was", two)
	one.Detail, one.LastSeen = "three times", start.Add(7*time.Hour)
	found(7*time.Hour, []reconcile.Difference{one}, nil)
	open("found otherwise", one, two)
}

func testReconcileTurns(_ *testing.T, b *bench) {
	s := b.db.Reconciling(atGateway)
	take := func(holder string, after time.Duration, want bool) {
		b.Helper()
		if got, err := s.AcquireLease(b.ctx(), holder, start.Add(after), start.Add(after+time.Minute)); err != nil || got != want {
			b.Errorf("%s acquires the lease: %t, %v; want %t", holder, got, err, want)
		}
	}
	take("a", 0, true)
	take("b", 30*time.Second, false)
	take("a", 30*time.Second, true)
	take("b", 80*time.Second, false)
	take("b", 91*time.Second, true)
	copied := b.with(b.engine.Tamper(b.T, b.db, `UPDATE reconcile_lease SET until = 4000000000000000`)).db.Reconciling(atGateway)
	if got, err := copied.AcquireLease(b.ctx(), "c", start.Add(92*time.Second), start.Add(2*time.Minute)); err != nil || !got {
		b.Errorf("a lease that was written by hand is kept for good: %t, %v", got, err)
	}
	b.must(s.ReleaseLease(b.ctx(), "a")) // which is not its any more
	take("a", 92*time.Second, false)
	b.must(s.ReleaseLease(b.ctx(), "b"))
	take("a", 92*time.Second, true)

	for _, want := range []reconcile.Pace{{Failures: 3, DueAt: start, LookedAt: start.Add(time.Hour)}, {LookedAt: start}} {
		b.must(s.SetPace(b.ctx(), want))
		if got, err := s.Pace(b.ctx()); err != nil || got != want {
			b.Errorf("the pace is %+v, %v; want %+v", got, err, want)
		}
	}
	if got, err := b.db.Reconciling("elsewhere").Pace(b.ctx()); err != nil || got != (reconcile.Pace{}) {
		b.Errorf("the pace at another gateway is %+v, %v; want none", got, err)
	}

	run := func(id string, day int, daily bool) reconcile.Run {
		p := reconcile.Period{From: start.AddDate(0, 0, day), To: start.AddDate(0, 0, day+1)}
		r := reconcile.Run{ID: id, Gateway: atGateway, Period: p, Daily: daily, EndedAt: start.AddDate(0, 0, day+2)}
		r.Result = reconcile.Result{Period: p, Lines: 3, Sums: reconcile.Sums{Paid: 7, Opening: money.Max}}
		b.must(s.KeepRun(b.ctx(), r))
		read := reconcile.Day{From: p.From, To: p.To, ReadAt: r.EndedAt, Lines: 3}
		b.must(s.KeepDay(b.ctx(), read))
		b.must(s.KeepBalances(b.ctx(), read))
		return r
	}
	if at, err := s.Reached(b.ctx(), start.AddDate(1, 0, 0)); err != nil || !at.IsZero() {
		b.Errorf("before any run %s was reached, %v", at, err)
	}
	first := run("rec_1", 1, true)
	run("rec_2", 0, true)
	third := run("rec_3", 5, false)
	if at, err := s.Reached(b.ctx(), start.AddDate(1, 0, 0)); err != nil || !at.Equal(start.AddDate(0, 0, 2)) {
		b.Errorf("%s was reached, %v; want the end of rec_1", at, err)
	}
	if at, err := b.db.Reconciling("elsewhere").Reached(b.ctx(), start.AddDate(1, 0, 0)); err != nil || !at.IsZero() {
		b.Errorf("%s was reached, %v; want none at a gateway whose statement was never read", at, err)
	}
	got, err := s.LastRuns(b.ctx(), 2)
	if err != nil || len(got) != 2 || got[0].ID != "rec_3" || got[0].Gateway != atGateway || got[1].ID != "rec_1" || got[0].Result.Sums != third.Result.Sums ||
		!got[1].Result.Period.From.Equal(first.Period.From) || !got[1].Daily || got[0].Daily {
		b.Errorf("the last runs are %+v, %v", got, err)
	}
	b.engine.Hands(b.T, b.db)(`UPDATE reconciliations SET result = 'garbage' WHERE id = 'rec_3'`)
	if got, err := s.LastRuns(b.ctx(), 2); err != nil || len(got) != 1 || got[0].ID != "rec_1" {
		b.Errorf("the last runs, one of which can't be read, are %+v, %v", got, err)
	}
	reconciled := func(why string, want time.Time, at ...gateway.Name) {
		b.Helper()
		if got, err := b.db.ReconciledAt(b.ctx(), at, start.AddDate(1, 0, 0)); err != nil || !got.Equal(want) {
			b.Errorf("%s was reconciled at %s, %v; want %s", why, got, err, want)
		}
	}
	reconciled("one gateway", start.AddDate(0, 0, 3), atGateway)
	reconciled("one of two gateways", time.Time{}, atGateway, "elsewhere")
	b.must(s.KeepRun(b.ctx(), reconcile.Run{ID: "rec_4", Gateway: "elsewhere", Daily: true, Period: first.Period, EndedAt: start.AddDate(0, 0, 2)}))
	reconciled("both", start.AddDate(0, 0, 2), atGateway, "elsewhere")
	reconciled("none", time.Time{})

	// A row that an attacker inserted ends in the future. The nights before are reconciled all the same.
	b.must(s.KeepRun(b.ctx(), reconcile.Run{ID: "rec_5", Gateway: atGateway, Daily: true, Period: reconcile.Period{From: start, To: start.AddDate(9, 0, 0)}, EndedAt: start.AddDate(0, 0, 2)}))
	if at, err := s.Reached(b.ctx(), start.AddDate(1, 0, 0)); err != nil || !at.Equal(start.AddDate(0, 0, 2)) {
		b.Errorf("%s was reached, %v; want the end of rec_1", at, err)
	}
	reconciled("one gateway", start.AddDate(0, 0, 3), atGateway)
}
