package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// What a deletion removes is removed of one user alone, and the audit finds nothing.
func testErasedUser(_ *testing.T, b *bench) {
	seller, other := b.seller("usr_a"), b.seller("usr_b")
	b.register("bka_2", seller)
	b.update(func(tx *store.Tx) error {
		for id, user := range map[string]string{"ses_1": seller, "ses_2": seller, "ses_3": other} {
			if err := tx.InsertSession(b.ctx(), newSession(id, user)); err != nil {
				return err
			}
		}
		return tx.EndSession(b.ctx(), "ses_2", "logout", signedInAt)
	})
	at := b.now.Add(time.Minute)
	b.update(func(tx *store.Tx) error {
		if err := tx.DeleteSessions(b.ctx(), seller); err != nil {
			return err
		}
		return tx.EraseBankAccounts(b.ctx(), seller, "Deleted.", at)
	})
	b.update(func(tx *store.Tx) error {
		for id, want := range map[string]bool{"ses_1": false, "ses_2": false, "ses_3": true} {
			if _, found, err := tx.Session(b.ctx(), id); err != nil || found != want {
				b.Errorf("%s is there: %v, %v; want %v", id, found, err, want)
			}
		}
		return nil
	})
	for id, erased := range map[bank.ID]bool{"bka_usr_a": true, "bka_2": true, "bka_usr_b": false} {
		a, err := b.db.BankAccountByID(b.ctx(), id)
		b.must(err)
		if gone := a.EncryptedNumber == "" && a.Status == bank.StatusRejected && !a.Current && a.DueAt.IsZero() && a.Reason == "Deleted."; gone != erased {
			b.Errorf("%s is %+v; want it erased: %v", id, a, erased)
		}
	}
	numbers := b.follow(seller)
	b.update(func(tx *store.Tx) error { return tx.EraseBankAccounts(b.ctx(), seller, "Deleted.", at) })
	if again := b.follow(seller); again != numbers {
		b.Errorf("to erase twice makes %d entries", again-numbers)
	}
	b.wantCleanAudit()
}

func (b *bench) wantOpenCase(when, user string, want bool) {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		if open, err := tx.HasOpenCase(b.ctx(), user); open != want || err != nil {
			b.Errorf("where %s, there is an open case: %t, %v; want %t", when, open, err, want)
		}
		return nil
	})
}

func testHasMoney(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser("usr_b")) })
	got := map[string]bool{}
	look := func(when, user string) {
		b.update(func(tx *store.Tx) (err error) {
			got[when], err = tx.HasMoney(b.ctx(), user)
			return err
		})
	}
	look("no journal", "usr_b")
	look("nothing", seller)
	b.sellAt("s1", seller, 700, 0, time.Hour)
	look("pending", seller)
	b.sell("s2", "usr_b", 700)
	look("available", "usr_b")
	want := map[string]bool{"no journal": false, "nothing": false, "pending": true, "available": true}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
	b.wantOpenCase("nothing is wrong", "usr_b", false)
	decide := func(a decision.Action) {
		b.update(func(tx *store.Tx) error {
			return ledger.RecordDecision(b.ctx(), tx, decision.New(decision.By{Admin: "usr_admin"}, a, "usr_b", "usr_b", b.now))
		})
	}
	decide(decision.FreezePayouts)
	b.wantOpenCase("payouts are frozen", "usr_b", true)
	decide(decision.UnfreezePayouts)
	b.wantOpenCase("payouts are resumed", "usr_b", false)
	paid := b.seller("usr_c")
	b.fund(paid, 1000)
	p := b.ask("pyt_1", paid, 100, 0)
	p.Discrepancy = "its transfer is processed"
	b.move(p, payout.Failed)
	b.wantOpenCase("a payout that failed has a discrepancy", paid, true)
	b.wantOpenCase("another seller's has", seller, false)
	b.update(func(tx *store.Tx) error {
		return tx.ResetUser(b.ctx(), auth.User{ID: seller, Email: "deleted " + seller, Role: auth.Buyer})
	})
	b.update(func(tx *store.Tx) error {
		if sells, err := tx.SellerExists(b.ctx(), seller); sells || err != nil {
			b.Errorf("a deleted user sells: %v, %v", sells, err)
		}
		return nil
	})
}

// A sale and a deletion at once: the deletion sees the money, or the sale finds no seller.
func testSalesBesideDeletions(_ *testing.T, b *bench) {
	const pairs = 24
	sold, free := make([]bool, pairs), make([]bool, pairs)
	for i := range pairs {
		b.seller(fmt.Sprint("usr_", i))
	}
	b.atOnce(2*pairs, func(n int) error {
		i := n / 2
		id := fmt.Sprint("usr_", i)
		return b.db.Update(b.ctx(), func(tx *store.Tx) (err error) {
			if n%2 == 1 {
				if err := tx.ResetUser(b.ctx(), auth.User{ID: id, Email: "deleted " + id, Role: auth.Buyer}); err != nil {
					return err
				}
				left, err := tx.HasMoney(b.ctx(), id)
				free[i] = !left
				return err
			}
			if sold[i], err = tx.SellerExists(b.ctx(), id); err != nil || !sold[i] {
				return err
			}
			s := sale.Sale{ID: id, Seller: id, Amount: 700, Month: "2026-11", OccurredAt: b.now, AvailableAt: b.now, CreatedAt: b.now, Fingerprint: "f"}
			if _, err := tx.InsertSale(b.ctx(), s); err != nil {
				return err
			}
			return post(b, tx, id, ledger.SaleRecorded, sale.SubjectPrefix+id, sale.Sale{ID: id}, s, ledger.Sale(700))
		})
	})
	for i := range pairs {
		if sold[i] && free[i] {
			b.Errorf("usr_%d sold, and was deleted without money", i)
		}
	}
}
