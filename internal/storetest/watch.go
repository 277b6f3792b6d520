package storetest

import (
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

func (b *bench) watch() store.Watched {
	b.Helper()
	w, err := b.db.Watch(b.ctx(), b.now)
	b.must(err)
	return w
}

func testWatch(t *testing.T, b *bench) {
	t.Helper()
	if w := b.watch(); w != (store.Watched{}) {
		t.Errorf("of an empty journal the watch sees %+v, want nothing", w)
	}
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	due := func(id payout.ID, state payout.State, at time.Time) {
		p := b.ask(id, seller, 600, 0)
		p.DueAt, p.SentAt = at, b.now
		if state != payout.Waiting {
			p = b.move(p, payout.Submitting)
		}
		b.move(p, state)
	}
	due("pyt_1", payout.Unknown, b.now.Add(3*time.Hour))
	due("pyt_2", payout.Unknown, b.now.Add(2*time.Hour))
	due("pyt_3", payout.ManualReview, b.now.Add(4*time.Hour))
	due("pyt_4", payout.Waiting, b.now.Add(5*time.Hour))
	p := b.ask("pyt_5", seller, 600, 0)
	p.Discrepancy, p.DueAt = "paid after it failed", time.Time{}
	b.move(p, payout.Failed)

	b.update(func(tx *store.Tx) error {
		return b.addAccount(tx, bank.Account{
			ID: "bka_new", Seller: seller, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234", Current: true,
			Status: bank.StatusUnverified, NameScore: -1, CreatedAt: b.now, DueAt: b.now.Add(time.Minute),
		})
	})
	b.update(func(tx *store.Tx) error { // long available, but here only now
		_, err := tx.InsertSale(b.ctx(), sale.Sale{
			ID: "late", Seller: seller, Amount: 100, Month: "2026-10", OccurredAt: b.now.Add(-time.Hour),
			AvailableAt: b.now.Add(-time.Hour), CreatedAt: b.now, Fingerprint: "f",
		})
		return err
	})
	b.pause(true)
	p = b.ask("pyt_6", seller, 600, 0)
	p.ReasonCode, p.DueAt = "payouts_stopped", b.now.Add(6*time.Hour)
	b.move(p, payout.Waiting)
	reviewed := b.seller("usr_b")
	b.register("bka_replaced", reviewed)
	b.review("bka_replaced")
	b.register("bka_review", reviewed)
	b.review("bka_review")
	b.checkpoint()
	want := store.Watched{
		CheckpointAt: b.now, PayoutsStopped: 1, Paused: true,
		Unknown: 2, ManualReview: 1, Discrepancies: 1, AccountsInReview: 1,
		PayoutDue: b.now.Add(2 * time.Hour), AccountDue: b.now.Add(time.Minute), SaleDue: b.now,
	}
	if w := b.watch(); w != want {
		t.Errorf("the watch sees\n%+v, want\n%+v", w, want)
	}
}

func testGroupSizes(t *testing.T, b *bench) {
	t.Helper()
	b.seller("usr_a")
	b.fund("usr_a", 100_000)
	const requests = 20
	grouped := func() (n, groups uint64) {
		for _, q := range b.db.Stats().Queues {
			n, groups = n+q.Grouped, groups+q.Groups
			if q.UpTo[256] != q.Groups || q.UpTo[1] > q.Groups || q.Waiting != 0 {
				t.Errorf("of a queue at rest: %+v", q)
			}
		}
		return n, groups
	}
	before, groupsBefore := grouped()
	b.atOnce(requests, func(int) error {
		return b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Owner: "usr_a"}, func(tx payout.ChangeTx) error {
			_, err := tx.Balance(b.ctx(), "usr_a")
			return err
		})
	})
	after, groupsAfter := grouped()
	if after-before != requests {
		t.Errorf("%d requests were grouped, want %d", after-before, requests)
	}
	if groups := groupsAfter - groupsBefore; groups < 1 || groups > requests {
		t.Errorf("%d groups for %d requests", groups, requests)
	}
	for _, pool := range b.db.Stats().Pools {
		if pool.MaxOpenConnections < 1 {
			t.Errorf("a pool may open %d connections", pool.MaxOpenConnections)
		}
	}
}
