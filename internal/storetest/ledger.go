package storetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
)

func testPostings(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.update(func(tx *store.Tx) error {
		return ledger.Post(b.ctx(), tx, ledger.Posting{
			Seller: seller, At: b.now,
			Transfers: []ledger.Transfer{
				{Kind: ledger.KindSale, Debit: ledger.Sales, Credit: ledger.Pending, Amount: 70, Ref: "s"},
				{Kind: ledger.KindSaleRefund, Debit: ledger.Available, Credit: ledger.Sales, Amount: 30, Ref: "s"},
			},
			Counts: ledger.Counts{Sales: 1, Failed: 2},
		})
	})
	want := ledger.Balance{Pending: 70, Available: 970, Earned: 1040, Counts: ledger.Counts{Sales: 2, Failed: 2}}
	stored, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	if stored != want {
		b.Errorf("stored %+v, want %+v", stored, want)
	}
	b.update(func(tx *store.Tx) error {
		for id, want := range map[string]money.Amount{seller: 970, "usr_nobody": 0} {
			available, err := tx.Available(b.ctx(), id)
			if err != nil || available != want {
				b.Errorf("%s has %d available, %v; want %d", id, available, err, want)
			}
		}
		return nil
	})
	none, err := b.db.Balance(b.ctx(), "usr_nobody")
	b.must(err)
	if none != (ledger.Balance{}) {
		b.Errorf("a seller without a book has %+v, want zeros", none)
	}
}

func testLargeAmounts(_ *testing.T, b *bench) {
	const large = money.Amount(1 << 52)
	for _, seller := range []string{"usr_a", "usr_b", "usr_c"} {
		b.fund(b.seller(seller), large)
		b.complete(b.ask(payout.ID("pyt_"+seller), seller, large-1, large-2))
		got, err := b.db.Balance(b.ctx(), seller)
		b.must(err)
		if got.Available != 1 || got.Earned != large || got.Withdrawn != large-1 {
			b.Errorf("%s has %+v of %d", seller, got, large)
		}
	}
	b.wantCleanAudit()
}

func testFloors(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	before, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	tests := []struct {
		name        string
		transfers   []ledger.Transfer
		mayOverdraw bool
		want        error
	}{
		{"available, one too much", ledger.HoldPayout("p", 1001), false, ledger.ErrInsufficient},
		{"pending below zero", ledger.RefundSale("s", 1, false), true, ledger.ErrInsufficient},
		{"in transit below zero", ledger.ReleasePayout("p", 1), true, ledger.ErrInsufficient},
		{"all that is available", ledger.HoldPayout("p", 1000), false, nil},
		{"a refund beyond it", ledger.RefundSale("s", 500, true), true, nil},
		{"more while below zero", ledger.HoldPayout("p", 1), false, ledger.ErrInsufficient},
		{"giving back while below zero", ledger.ReleasePayout("p", 100), false, nil},
	}
	for _, tt := range tests {
		err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
			return ledger.Post(b.ctx(), tx, ledger.Posting{Seller: seller, At: b.now, Transfers: tt.transfers, MayOverdraw: tt.mayOverdraw})
		})
		if !errors.Is(err, tt.want) {
			b.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
	after, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	if want := (ledger.Balance{Available: -400, InTransit: 900, Earned: before.Earned - 500, Counts: before.Counts}); after != want {
		b.Errorf("in the end %+v, want %+v", after, want)
	}
	for name, p := range map[string]ledger.Posting{
		"no transfers":   {Seller: seller, At: b.now},
		"no seller":      {At: b.now, Transfers: ledger.Sale("s", 1)},
		"nothing moved":  {Seller: seller, At: b.now, Transfers: ledger.Sale("s", 0)},
		"backwards":      {Seller: seller, At: b.now, Transfers: ledger.Sale("s", -5)},
		"without reason": {Seller: seller, At: b.now, Transfers: ledger.Sale("", 5)},
		"no such recipe": {Seller: seller, At: b.now, Transfers: []ledger.Transfer{{Kind: ledger.KindSale, Debit: ledger.Gateway, Credit: ledger.Available, Amount: 5, Ref: "s"}}},
	} {
		err := b.db.Update(b.ctx(), func(tx *store.Tx) error { return ledger.Post(b.ctx(), tx, p) })
		if err == nil {
			b.Errorf("a posting with %s was taken", name)
		}
	}
}

func testOverspending(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 7*100)
	var callers sync.WaitGroup
	var held atomic.Int64
	for range 24 {
		callers.Go(func() {
			err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
				return ledger.Post(b.ctx(), tx, ledger.Posting{Seller: seller, At: b.now, Transfers: ledger.HoldPayout("p", 100)})
			})
			switch {
			case err == nil:
				held.Add(1)
			case !errors.Is(err, ledger.ErrInsufficient):
				b.Error(err)
			}
		})
	}
	callers.Wait()
	got, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	if held.Load() != 7 || got.Available != 0 || got.InTransit != money.Amount(700) {
		b.Errorf("of a balance for 7, %d were held, leaving %d available and %d in transit", held.Load(), got.Available, got.InTransit)
	}
}

func testEntries(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	first := b.now
	b.now = b.now.Add(time.Hour)
	b.ask("pyt_1", seller, 600, 10)
	b.fund(b.seller("usr_b"), 70)
	newest := ledger.Entry{Number: 3, At: b.now, Transfer: ledger.HoldPayout("pyt_1", 600)[0]}
	released := ledger.Entry{Number: 2, At: first, Transfer: ledger.ReleaseSale("sale for usr_a", 1000)[0]}
	sold := ledger.Entry{Number: 1, At: first, Transfer: ledger.Sale("sale for usr_a", 1000)[0]}
	for _, tt := range []struct {
		seller string
		before int64
		limit  int
		want   []ledger.Entry
	}{
		{seller, 0, 10, []ledger.Entry{newest, released, sold}},
		{seller, 0, 2, []ledger.Entry{newest, released}},
		{seller, 2, 2, []ledger.Entry{sold}},
		{seller, 1, 2, nil},
		{"usr_nobody", 0, 2, nil},
	} {
		got, err := b.db.Entries(b.ctx(), tt.seller, tt.before, tt.limit)
		b.must(err)
		if !slices.Equal(got, tt.want) {
			b.Errorf("%d of %s before %d:\n%+v, want\n%+v", tt.limit, tt.seller, tt.before, got, tt.want)
		}
	}
}
