package payout_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// BenchmarkRequest measures 64 callers who ask for payouts, beside a floor: the same rows written by
// the same grouped transactions, with nothing decided and nothing remembered.
func BenchmarkRequest(b *testing.B) {
	const sellers, callers = 1000, 64
	db, service := benchMarket(b, sellers)
	run := func(name string, call func(n int64) error) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(callers / 2)
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(n.Add(1)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	ctx := b.Context()
	run("floor", func(n int64) error {
		seller, now := fmt.Sprintf("usr_%d", n%sellers), time.Now()
		p := payout.Payout{
			ID: payout.ID(id.New("pyt_", now)), Seller: seller, BankAccountID: "bka_usr_0", Amount: 50000,
			State: payout.Waiting, Rail: "IMPS", RequestedAt: now, ArriveAt: now, DueAt: now.Add(time.Hour),
		}
		return db.Update(ctx, func(tx *store.Tx) error {
			if _, err := tx.Append(ctx, ledger.Posting{
				Owner: seller, At: now, Type: ledger.PayoutRequested, Subject: string(p.ID), Actor: "user:" + seller, Data: "{}",
				Moved: ledger.ReservePayout(50000),
			}); err != nil {
				return err
			}
			return tx.InsertPayout(ctx, p)
		})
	})
	run("service", func(n int64) error {
		_, _, err := service.Request(ctx, payout.Request{Seller: fmt.Sprintf("usr_%d", n%sellers), Amount: 50000})
		return err
	})
	run("service with keys", func(n int64) error {
		_, _, err := service.Request(ctx, payout.Request{Seller: fmt.Sprintf("usr_%d", n%sellers), Amount: 50000, Key: id.Random(20)})
		return err
	})
}

// benchMarket opens a market whose sellers can withdraw without end.
func benchMarket(b *testing.B, sellers int) (*store.DB, *payout.Service) {
	b.Helper()
	db, err := store.OpenSQLite(b.Context(), filepath.Join(b.TempDir(), "bursar.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	keys := storetest.Keys(b)
	db.UseKeys(keys)
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		b.Fatal(err)
	}
	sales, err := sale.New(sale.Options{Store: db.Sales(), Now: time.Now, Zone: time.UTC})
	if err != nil {
		b.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	for i := range sellers {
		seller := fmt.Sprintf("usr_%d", i)
		if err := openSeller(b.Context(), db, keys, seller, past); err != nil {
			b.Fatal(err)
		}
		_, _, err := sales.Record(b.Context(), sale.NewSale{ID: "sale of " + seller, Seller: seller, Amount: money.Max, OccurredAt: past, AvailableAt: past})
		if err != nil {
			b.Fatal(err)
		}
	}
	for released := 1; released > 0; {
		if released, err = sales.ReleaseDue(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	g := &paperGateway{}
	service, err := payout.New(payout.Options{
		Mails: storetest.NewMailbox(b, db, keys, time.Now), Store: db.Payouts(), Gateways: gateway.Only(g), Beneficiaries: g, Currency: inr, Minimum: 50000,
		CancelWindow: time.Hour, Lease: time.Minute, GracePeriod: gracePeriod, ReversalsEvery: time.Minute, Zone: time.UTC, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), StateChanged: func(payout.State, payout.State) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	return db, service
}
