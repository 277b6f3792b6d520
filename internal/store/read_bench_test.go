package store

import (
	"fmt"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
)

// BenchmarkReads measures the reads that every request makes, beside the least that a read costs.
func BenchmarkReads(b *testing.B) {
	db := openTemp(b)
	db.UseKeys(testKeys(b))
	ctx, now := b.Context(), time.Now()
	for i := range 100 {
		user, session := fmt.Sprintf("usr_%d", i), fmt.Sprintf("ses_%d", i)
		err := db.Update(ctx, func(tx *Tx) error {
			if err := tx.InsertUser(ctx, auth.User{ID: user, Name: "Asha", Email: user + "@example.com", Role: auth.Seller, CreatedAt: now}); err != nil {
				return err
			}
			if _, err := tx.InsertBankAccount(ctx, bank.Account{ID: bank.ID("bka_" + user), Seller: user, Current: true, Status: bank.StatusVerified, CreatedAt: now}); err != nil {
				return err
			}
			if _, err := tx.Append(ctx, ledger.Posting{
				Owner: user, At: now, Type: ledger.SaleRecorded, Subject: "sale:" + user, Actor: "system", Data: "{}", Moved: ledger.Sale(100),
			}); err != nil {
				return err
			}
			return tx.InsertSession(ctx, auth.Session{ID: session, UserID: user, CreatedAt: now, ExpiresAt: now.Add(time.Hour), CapAt: now.Add(time.Hour)})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for name, read := range map[string]func() error{
		"floor": func() error {
			_, err := db.Balance(ctx, "usr_7")
			return err
		},
		"LiveSession": func() error {
			_, _, err := db.LiveSession(ctx, "ses_7", now)
			return err
		},
		"UserWithStats": func() error {
			_, _, _, err := db.UserWithStats(ctx, "usr_7")
			return err
		},
		"Summary": func() error {
			_, err := db.Summary(ctx, "usr_7", "2026-11", "2026-10")
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
