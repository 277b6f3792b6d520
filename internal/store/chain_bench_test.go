package store

import (
	"fmt"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
)

// BenchmarkMoveBalance measures the statement that moves a balance and its chain, beside the same
// statement where the chain is behind and stays where it is.
func BenchmarkMoveBalance(b *testing.B) {
	db := openTemp(b)
	ctx, now := b.Context(), time.Now()
	for name, behind := range map[string]bool{"floor": true, "with its chain": false} {
		seller := "usr_" + name
		err := db.Update(ctx, func(tx *Tx) error {
			if err := tx.InsertUser(ctx, auth.User{ID: seller, Email: seller, Role: auth.Seller, CreatedAt: now}); err != nil {
				return err
			}
			if err := tx.OpenBook(ctx, seller); err != nil || !behind {
				return err
			}
			_, err := tx.exec(ctx, "UPDATE seller_balances SET chained = -1 WHERE seller_id = $1", seller)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"floor", "with its chain"} {
		b.Run(name, func(b *testing.B) {
			err := db.Update(ctx, func(tx *Tx) error {
				for i := range b.N {
					transfers := ledger.Sale(fmt.Sprintf("order-%d", i), 50_000)
					change := ledger.Change{Balance: ledger.Balance{Pending: 50_000, Earned: 50_000}, Transfers: 1}
					if _, err := tx.MoveBalance(ctx, "usr_"+name, change, ledger.Links(now, transfers), false); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
