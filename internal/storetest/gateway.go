package storetest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/store"
)

// atGateway is the gateway of all that a test does not say otherwise of.
const atGateway gateway.Name = "here"

// testGateways keeps what belongs to one gateway apart from what belongs to another.
func testGateways(_ *testing.T, b *bench) {
	const elsewhere gateway.Name = "elsewhere"
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)

	b.nameAtGateway("bka_usr_a", "fa_1", true)
	here := b.ask("pyt_1", seller, 100, 0)
	there := here
	there.ID, there.Gateway = "pyt_2", elsewhere
	b.update(func(tx *store.Tx) error { return tx.InsertPayout(b.ctx(), there) })
	for _, p := range []payout.Payout{here, there} {
		p.GatewayID = "pout_same"
		b.move(p, payout.Submitted)
	}
	for id, want := range map[payout.ID]payout.Payout{"pyt_1": {Gateway: atGateway, Beneficiary: "fa_1"}, "pyt_2": {Gateway: elsewhere}} {
		got, err := b.db.Payout(b.ctx(), id)
		if err != nil || got.Gateway != want.Gateway || got.Beneficiary != want.Beneficiary {
			b.Errorf("payout %s is at %q to %q, %v; want %q and %q", id, got.Gateway, got.Beneficiary, err, want.Gateway, want.Beneficiary)
		}
	}
	if a, err := b.db.BankAccountByID(b.ctx(), "bka_usr_a"); err != nil || a.Gateway != atGateway {
		b.Errorf("the account's name is %q's, %v", a.Gateway, err)
	}

	b.update(func(tx *store.Tx) error {
		for at, want := range map[gateway.Name]bool{atGateway: true, elsewhere: true} {
			if isNew, err := tx.SaveEvent(b.ctx(), at, "event", b.now); err != nil || isNew != want {
				b.Errorf("an event of %s: new %t, %v", at, isNew, err)
			}
		}
		return nil
	})

	ours, theirs := b.db.Reconciling(atGateway), b.db.Reconciling(elsewhere)
	transfers, err := ours.PayoutsByTransfer(b.ctx(), []string{"pout_same"})
	want := map[reconcile.TransferKey]payout.ID{{Gateway: atGateway, ID: "pout_same"}: "pyt_1", {Gateway: elsewhere, ID: "pout_same"}: "pyt_2"}
	if err != nil || !maps.Equal(transfers, want) {
		b.Errorf("two gateways gave the same id to %v, %v; want %v", transfers, err, want)
	}
	day := reconcile.Day{From: start, To: start.Add(24 * time.Hour), ReadAt: start.Add(30 * time.Hour)}
	b.must(ours.KeepLines(b.ctx(), []reconcile.Line{line("txn_1", time.Hour, 105)}, day.ReadAt))
	b.must(theirs.KeepLines(b.ctx(), []reconcile.Line{line("txn_1", time.Hour, 305)}, day.ReadAt))
	b.must(ours.KeepDay(b.ctx(), day))
	for name, tt := range map[gateway.Name]struct {
		store      reconcile.Store
		days, sum  int
		wantFromID int
	}{atGateway: {ours, 1, 105, 2}, elsewhere: {theirs, 0, 305, 2}} {
		sum, err := tt.store.SumOfLines(b.ctx(), day.From, day.To, "INR")
		b.must(err)
		days, err := tt.store.Days(b.ctx(), day.From, day.To)
		b.must(err)
		lines, err := tt.store.LinesBetween(b.ctx(), day.From, day.To, reconcile.Line{}, 10)
		b.must(err)
		if int(sum) != tt.sum || len(days) != tt.days || len(lines) != 1 || lines[0].Gateway != name || lines[0].RawKind != "pay" {
			b.Errorf("the statement of %s sums to %d, has %d days, and its lines are %+v", name, sum, len(days), lines)
		}
		if lines, err = tt.store.LinesByID(b.ctx(), []string{"txn_1"}); err != nil || len(lines) != tt.wantFromID {
			b.Errorf("%d lines have the id, %v", len(lines), err)
		}
		b.wantTaken(payout.Payout{ID: "pyt_9", Gateway: name, GatewayID: "pout_txn_1"}, money.Amount(tt.sum-5)) // which are fees
	}
	b.wantTaken(payout.Payout{ID: "pyt_9", Gateway: atGateway}, 0)
	named := line("txn_2", 2*time.Hour, 7)
	named.Payout, named.Transfer, named.Amount, named.Credit = "pyt_9", "", 0, 2 // the gateway does not tell the fees
	b.must(ours.KeepLines(b.ctx(), []reconcile.Line{named}, day.ReadAt))
	b.wantTaken(payout.Payout{ID: "pyt_9", Gateway: atGateway}, 5)
	// Another gateway's line that names the payout has the id of a line of ours that is about another one.
	others := line("txn_3", 3*time.Hour, 9)
	others.Payout, others.Transfer = "pyt_9", ""
	b.must(theirs.KeepLines(b.ctx(), []reconcile.Line{others}, day.ReadAt))
	b.must(ours.KeepLines(b.ctx(), []reconcile.Line{line("txn_3", 3*time.Hour, 9)}, day.ReadAt))
	b.wantTaken(payout.Payout{ID: "pyt_9", Gateway: atGateway}, 5)
	b.must(ours.MissLines(b.ctx(), day.From, day.To, day.ReadAt.Add(time.Hour)))
	b.wantTaken(payout.Payout{ID: "pyt_9", Gateway: atGateway, GatewayID: "pout_txn_1"}, 0)
}

// wantTaken checks what the statement of a payout's gateway says was taken for the payout.
func (b *bench) wantTaken(p payout.Payout, want money.Amount) {
	b.Helper()
	if taken, err := b.db.Payouts().TakenByStatement(b.ctx(), p); err != nil || taken != want {
		b.Errorf("the statement of %s took %d for %s, %v; want %d", p.Gateway, taken, p.ID, err, want)
	}
}

// testRescheduleInFlight makes due what one gateway may have.
func testRescheduleInFlight(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	later := b.now.Add(time.Hour)
	for id, state := range map[payout.ID]payout.State{
		"pyt_1": payout.Waiting, "pyt_2": payout.Submitting, "pyt_3": payout.Unknown, "pyt_4": payout.ManualReview, "pyt_5": payout.Submitted, "pyt_6": payout.Failed,
	} {
		p := b.ask(id, seller, 100, 0)
		p.DueAt = later
		b.move(p, state)
	}
	b.update(func(tx *store.Tx) error {
		if n, err := tx.RescheduleInFlight(b.ctx(), "elsewhere", b.now, b.now); err != nil || n != 0 {
			b.Errorf("%d payouts of another gateway were made due, %v", n, err)
		}
		if n, err := tx.RescheduleInFlight(b.ctx(), atGateway, b.now, later); err != nil || n != 2 { // the unknown one may have a lease
			b.Errorf("%d payouts without a lease were made due, %v, want 2", n, err)
		}
		n, err := tx.RescheduleInFlight(b.ctx(), atGateway, b.now, later.Add(-time.Second))
		if n != 1 || err != nil {
			b.Errorf("%d payouts whose lease is over were made due, %v, want 1", n, err)
		}
		const ago = time.Second // then, an hour was longer than any lease
		if n, err = tx.RescheduleInFlight(b.ctx(), atGateway, b.now.Add(-ago), later); n != 3 {
			b.Errorf("%d payouts were made due, want 3: one was being sent by a clock that was ahead", n)
		}
		return err
	})
	b.update(func(tx *store.Tx) error {
		due, err := tx.LeaseDuePayouts(b.ctx(), b.now, later, 10)
		slices.Sort(due)
		if want := []payout.ID{"pyt_2", "pyt_3", "pyt_4", "pyt_5"}; !slices.Equal(due, want) {
			b.Errorf("%v are due, want %v", due, want)
		}
		return err
	})
}

func testPayoutsWithoutGateway(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	for _, id := range []payout.ID{"pyt_1", "pyt_2", "pyt_3"} {
		p := b.ask(id, seller, 100, 0)
		if id != "pyt_2" {
			p.ReasonCode = "gateway_not_configured"
		}
		b.move(p, payout.Submitted)
	}
	for limit, want := range map[int][]payout.ID{10: {"pyt_1", "pyt_3"}, 1: {"pyt_1"}} {
		got, err := b.db.PayoutsWithoutGateway(b.ctx(), limit)
		if ids := idsOf(got); err != nil || !slices.Equal(ids, want) {
			b.Errorf("%d wait for a gateway: %v, %v; want %v", limit, ids, err, want)
		}
	}
}
