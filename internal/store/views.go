package store

import (
	"context"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// Each domain sees the database as its own Store. Reads are methods of DB; only the type of the
// transaction's closure differs.

// Auth is the database as auth sees it.
func (db *DB) Auth() auth.Store { return authStore{db} }

// Bank is the database as bank sees it.
func (db *DB) Bank() bank.Store { return bankStore{db} }

// Sales is the database as sale sees it.
func (db *DB) Sales() sale.Store { return saleStore{db} }

// Payouts is the database as payout sees it.
func (db *DB) Payouts() payout.Store { return payoutStore{db} }

type (
	authStore   struct{ *DB }
	bankStore   struct{ *DB }
	saleStore   struct{ *DB }
	payoutStore struct{ *DB }
)

func (s authStore) InTx(ctx context.Context, fn func(auth.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

func (s bankStore) InTx(ctx context.Context, fn func(bank.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

func (s saleStore) InTx(ctx context.Context, fn func(sale.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

func (s payoutStore) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

// InGroup serves changes of payouts in units of work.
func (s payoutStore) InGroup(ctx context.Context, scope ledger.Scope, fn func(payout.ChangeTx) error) error {
	if s.units != nil {
		return s.units.do(ctx, scope, fn)
	}
	return s.writer.(*groupWriter).change(ctx, scope, fn)
}
