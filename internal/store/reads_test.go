package store

import (
	"context"
	"errors"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// TestRead_FailureIsReturned has each statement of each read fail: a read that fails must not look like one that found nothing.
func TestRead_FailureIsReturned(t *testing.T) {
	db := openTemp(t)
	keys := testKeys(t)
	db.UseKeys(keys)
	appendSale(t, db, "asha", "s1")
	failAt, ran, failed := 0, 0, ""
	broken := errors.New("the disk is gone")
	db.FailBefore(func(statement string) error {
		if ran++; ran != failAt {
			return nil
		}
		failed = statement
		return broken
	})
	for name, read := range map[string]func(context.Context) error{
		"UnresolvedPayouts":      func(ctx context.Context) error { _, err := db.UnresolvedPayouts(ctx, 10); return err },
		"PayoutsWithDiscrepancy": func(ctx context.Context) error { _, err := db.PayoutsWithDiscrepancy(ctx, 10); return err },
		"PayoutsWithoutGateway":  func(ctx context.Context) error { _, err := db.PayoutsWithoutGateway(ctx, 10); return err },
		"SearchPayouts":          func(ctx context.Context) error { _, err := db.SearchPayouts(ctx, "x", 10); return err },
		"Claims":                 func(ctx context.Context) error { _, err := db.Inbox().Claims(ctx, noon); return err },
		"MatchUsers":             func(ctx context.Context) error { _, err := db.MatchUsers(ctx, "x", "x", [3]string{}, 10); return err },
		"UserNames":              func(ctx context.Context) error { _, err := db.UserNames(ctx, []string{"x"}); return err },
		"PayoutsWithPart":        func(ctx context.Context) error { _, err := db.PayoutsWithPart(ctx, "x", 10); return err },
		"AccountsEndingIn":       func(ctx context.Context) error { _, err := db.AccountsEndingIn(ctx, "x", 10); return err },
		"SaleByID":               func(ctx context.Context) error { _, _, err := db.SaleByID(ctx, "x"); return err },
		"PaidByBank":             func(ctx context.Context) error { _, err := db.PaidByBank(ctx, noon, noon); return err },
		"FailedSince":            func(ctx context.Context) error { _, err := db.FailedSince(ctx, noon); return err },
		"OpenPayouts":            func(ctx context.Context) error { _, err := db.OpenPayouts(ctx, noon); return err },
		"SelectPayouts":          func(ctx context.Context) error { _, err := db.SelectPayouts(ctx, payout.Selection{}); return err },
		"SumPayouts":             func(ctx context.Context) error { _, err := db.SumPayouts(ctx, payout.Selection{}); return err },
		"OpenUnmatchedTransfer": func(ctx context.Context) error {
			_, _, err := db.OpenUnmatchedTransfer(ctx, "sandbox", "pout_1")
			return err
		},
		"OldestUnmatched":        func(ctx context.Context) error { _, err := db.OldestUnmatched(ctx, "sandbox", "x"); return err },
		"UnmatchedSellers":       func(ctx context.Context) error { _, err := db.UnmatchedSellers(ctx, 10); return err },
		"OpenUnmatchedTransfers": func(ctx context.Context) error { _, err := db.OpenUnmatchedTransfers(ctx, 10); return err },
		"UserByEmail":            func(ctx context.Context) error { _, _, err := db.UserByEmail(ctx, "x"); return err },
		"UserByID":               func(ctx context.Context) error { _, _, err := db.UserByID(ctx, "x"); return err },
		"UserWithStats":          func(ctx context.Context) error { _, _, _, err := db.UserWithStats(ctx, "x"); return err },
		"UserExists":             func(ctx context.Context) error { _, err := db.UserExists(ctx, "x"); return err },
		"Users":                  func(ctx context.Context) error { _, err := db.Users(ctx, auth.UserFilter{}, "", 10); return err },
		"LiveSession":            func(ctx context.Context) error { _, _, err := db.LiveSession(ctx, "x", noon); return err },
		"LiveSessions":           func(ctx context.Context) error { _, err := db.LiveSessions(ctx, "x", noon, 10); return err },
		"FactorsOf":              func(ctx context.Context) error { _, err := db.FactorsOf(ctx, "x"); return err },
		"ThrottledAt":            func(ctx context.Context) error { _, err := db.ThrottledAt(ctx, []string{"x"}); return err },
		"ServiceKey":             func(ctx context.Context) error { _, _, err := db.ServiceKey(ctx, "x", noon); return err },
		"BankAccount":            func(ctx context.Context) error { _, err := db.BankAccount(ctx, "x"); return notFound(err) },
		"BankAccountByID":        func(ctx context.Context) error { _, err := db.BankAccountByID(ctx, "x"); return notFound(err) },
		"AccountsInReview":       func(ctx context.Context) error { _, err := db.AccountsInReview(ctx, 10); return err },
		"EntriesAbout":           func(ctx context.Context) error { _, err := db.EntriesAbout(ctx, "asha", "s1"); return err },
		"EntriesAboutBefore": func(ctx context.Context) error {
			_, err := db.EntriesAboutBefore(ctx, "asha", "s1", 10, 10)
			return err
		},
		"CheckNewest": func(ctx context.Context) error { return db.CheckNewest(ctx, "asha", 0) },
		"CheckJournal in a transaction": func(ctx context.Context) error {
			return db.Update(ctx, func(tx *Tx) error { return tx.CheckJournal(ctx, "asha", 1) })
		},
		"Entries":       func(ctx context.Context) error { _, err := db.Entries(ctx, "asha", 10, 10); return err },
		"EntriesAfter":  func(ctx context.Context) error { _, err := db.EntriesAfter(ctx, "asha", 0, 10); return err },
		"Period":        func(ctx context.Context) error { _, _, err := db.Period(ctx, "asha", 1, noon, noon); return err },
		"Balance":       func(ctx context.Context) error { _, err := db.Balance(ctx, "asha"); return err },
		"Decisions":     func(ctx context.Context) error { _, err := db.Decisions(ctx, "asha", 10); return err },
		"PayoutsPaused": func(ctx context.Context) error { _, err := db.PayoutsPaused(ctx); return err },
		"Payout":        func(ctx context.Context) error { _, err := db.Payout(ctx, "x"); return notFound(err) },
		"ListPayouts": func(ctx context.Context) error {
			_, _, err := db.ListPayouts(ctx, payout.Filter{Seller: "asha", Limit: 10})
			return err
		},
		"Summary":      func(ctx context.Context) error { _, err := db.Summary(ctx, "asha", "2026-11", "2026-10"); return err },
		"ListSales":    func(ctx context.Context) error { _, _, err := db.ListSales(ctx, "asha", 0, 10); return err },
		"Earnings":     func(ctx context.Context) error { _, err := db.Earnings(ctx, "asha", "2026-10", "2026-11"); return err },
		"NewestSent":   func(ctx context.Context) error { _, err := db.NewestSent(ctx, "sandbox", 1); return err },
		"LastSent":     func(ctx context.Context) error { _, _, err := db.LastSent(ctx); return err },
		"MayHaveTaken": func(ctx context.Context) error { _, err := db.MayHaveTaken(ctx, "sandbox"); return err },
		"FirstUserAt":  func(ctx context.Context) error { _, err := db.FirstUserAt(ctx); return err },
		"PayoutsByID":  func(ctx context.Context) error { _, err := db.PayoutsByID(ctx, []payout.ID{"x"}); return err },
		"OpenKinds":    func(ctx context.Context) error { _, err := db.OpenKinds(ctx); return err },
		"Pinned":       func(ctx context.Context) error { _, _, err := db.Pinned(ctx, "x"); return err },
		"PinnedUnder":  func(ctx context.Context) error { _, err := db.PinnedUnder(ctx, "x"); return err },
		"View of what blocks a payout": func(ctx context.Context) error {
			return db.Payouts().View(ctx, func(v payout.View) error {
				_, account := v.AccountToPay(ctx, "asha")
				_, balance := v.Balance(ctx, "asha")
				_, paused := v.PayoutsPaused(ctx)
				_, about := v.EntriesAbout(ctx, "asha", "s1")
				_, newest := v.NewestOfType(ctx, "asha", "s1", ledger.SaleRecorded)
				_, below := v.BelowSince(ctx, "asha", 1000)
				_, inTransit := v.PayoutsInTransit(ctx, "asha", 10)
				return errors.Join(notFound(account), balance, paused, about, newest, below, inTransit)
			})
		},
		"ReconciledAt": func(ctx context.Context) error {
			_, err := db.ReconciledAt(ctx, []gateway.Name{"sandbox"}, noon)
			return err
		},
		"Audit": func(ctx context.Context) error { _, err := db.Audit(ctx, keys); return err },
		"Watch": func(ctx context.Context) error { _, err := db.Watch(ctx, noon); return err },
	} {
		for n := 0; ; n++ { // 0 is no failure
			failAt, ran, failed = n, 0, ""
			err := read(t.Context())
			if n == 0 && (err != nil || ran == 0) {
				t.Errorf("%s ran %d statements, %v", name, ran, err)
			}
			if n > 0 && failed == "" {
				break // there are no more
			}
			if n > 0 && failed != "ROLLBACK" && !errors.Is(err, broken) {
				t.Errorf("%s ended with %v though this failed: %s", name, err, failed)
			}
		}
	}
}

// notFound drops the error of a read that found nothing.
func notFound(err error) error {
	if errors.Is(err, payout.ErrNotFound) || errors.Is(err, bank.ErrNone) {
		return nil
	}
	return err
}
