package storetest

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// repairBeside runs a transaction that begins a repair by its second argument, which returns once the repair waits for the
// transaction. It returns what was repaired. Where one transaction writes at a time, the test is skipped.
func (b *bench) repairBeside(t *testing.T, meanwhile func(tx *store.Tx, repair func()) error) []store.Repair {
	t.Helper()
	if b.engine.Waiting == "" {
		t.Skip("a repair writes when nobody else does")
	}
	var repairs []store.Repair
	var failed error
	ended := make(chan struct{})
	transactions := 0
	b.update(func(tx *store.Tx) error {
		transactions++
		return meanwhile(tx, func() {
			if transactions > 1 { // it was begun already
				return
			}
			go func() {
				defer close(ended)
				repairs, failed = b.db.Repair(b.ctx(), b.keys, "asha", b.now, true)
			}()
			for len(b.engine.Rows(b.T, b.db, b.engine.Waiting)) == 0 {
				select {
				case <-ended:
					t.Errorf("the repair did not wait for the transaction; it ended with %v", failed)
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	})
	<-ended
	b.must(failed)
	if transactions != 1 {
		t.Errorf("the transaction beside the repair was run %d times", transactions)
	}
	return repairs
}

// wantRepaired compares the subjects of repairs, each of which is to have one entry that says who ran the repair.
func (b *bench) wantRepaired(owner string, repairs []store.Repair, want ...string) {
	b.Helper()
	var got, recorded []string
	for _, r := range repairs {
		got = append(got, r.Subject)
		if r.Impossible != "" {
			b.Errorf("not repaired: %+v", r)
		}
	}
	entries, err := b.db.EntriesAfter(b.ctx(), owner, 0, 100)
	b.must(err)
	for _, e := range entries {
		if e.Type == ledger.Repaired {
			recorded = append(recorded, e.Subject)
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(recorded, want) {
		b.Errorf("repaired are %q, and the journal says %q; want %q", got, recorded, want)
	}
	b.wantCleanAudit()
}

// postponed adds pending sales whose release an attacker rescheduled, which stops no refund of them.
func (b *bench) postponed(seller string, ids ...string) {
	b.Helper()
	for _, id := range ids {
		b.sellAt(id, seller, 1000, 0, time.Hour)
	}
	b.engine.Hands(b.T, b.db)(`UPDATE sales SET due_at = due_at + 1`)
}

// testRepairBesideRefund refunds a sale while a repair waits for it. The repair knows the refund then.
func testRepairBesideRefund(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.postponed(seller, "s1")
	repairs := b.repairBeside(t, func(tx *store.Tx, repair func()) error {
		err := b.refundIn(tx, "s1", "r1", 300)
		repair()
		return err
	})
	b.wantRepaired(seller, repairs, "sale:s1")
	b.update(func(tx *store.Tx) error {
		s, err := tx.SaleForUpdate(b.ctx(), "s1")
		if err != nil {
			return err
		}
		_, isThere, err := tx.Refund(b.ctx(), "s1", "r1")
		if s.Refunded != 300 || !isThere {
			b.Errorf("refunded are %d, and that the refund is there: %t; want 300 of it", s.Refunded, isThere)
		}
		return err
	})
}

// testRepairBesideCompletion completes a payout, whose next step an attacker dropped, while a repair waits for it. It needs no
// repair then.
func testRepairBesideCompletion(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.fund(seller, 5000)
	p := b.move(b.ask("pyt_1", seller, 900, 0), payout.Submitting)
	p.GatewayID = "pout_1"
	p = b.move(p, payout.Submitted)
	b.engine.Hands(b.T, b.db)(`UPDATE payouts SET due_at = NULL`)
	p.State, p.UTR, p.CompletedAt, p.EndedAt, p.DueAt = payout.Completed, "HDFCN1", b.now, b.now, time.Time{}
	repairs := b.repairBeside(t, func(tx *store.Tx, repair func()) error {
		err := b.moveIn(tx, p)
		repair()
		return err
	})
	b.wantRepaired(seller, repairs)
	if now, err := b.db.Payout(b.ctx(), p.ID); err != nil || now.State != payout.Completed || !now.DueAt.IsZero() {
		b.Errorf("the payout is %s and due %s, %v; want it completed", now.State, now.DueAt, err)
	}
}

// testRepairBesideRegistration registers a bank account while a repair waits for the one before. The new one stays the current one.
func testRepairBesideRegistration(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.engine.Hands(b.T, b.db)(`UPDATE bank_accounts SET registered_name = 'Mallory'`)
	repairs := b.repairBeside(t, func(tx *store.Tx, repair func()) error {
		// Package bank registers none after one that it sees was tampered with; the change came just after it looked.
		err := b.addAccount(tx, bank.Account{
			ID: "bka_new", Seller: seller, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234", Current: true,
			Status: bank.StatusVerified, NameScore: -1, CreatedAt: b.now, VerifiedAt: b.now,
		})
		repair()
		return err
	})
	b.wantRepaired(seller, repairs, "bka_usr_a")
	if a, err := b.db.BankAccount(b.ctx(), seller); err != nil || a.ID != "bka_new" {
		b.Errorf("the current account is %q, %v; want the new one", a.ID, err)
	}
}

// testRepairLockOrder refunds the second of two sales that are to be repaired. The refund locks its sale, then the journal. A
// repair that still had the journal of the first sale would wait for the refund, and the refund for it.
func testRepairLockOrder(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.postponed(seller, "s1", "s2")
	repairs := b.repairBeside(t, func(tx *store.Tx, repair func()) error {
		if _, err := tx.SaleForUpdate(b.ctx(), "s2"); err != nil {
			return err
		}
		repair()
		return b.refundIn(tx, "s2", "r1", 300)
	})
	b.wantRepaired(seller, repairs, sale.SubjectPrefix+"s1", sale.SubjectPrefix+"s2")
}

// testRepairOfRightRow makes rows right while a repair waits for them. It writes nothing.
func testRepairOfRightRow(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.postponed(seller, "s1")
	repairs := b.repairBeside(t, func(tx *store.Tx, repair func()) error {
		err := tx.PostponeRelease(b.ctx(), "s1", b.now.Add(time.Hour))
		repair()
		return err
	})
	b.wantRepaired(seller, repairs)
}

// testShownRepair shows what a repair would do while a transaction has the seller's journal. It waits for none that is whole.
func testShownRepair(t *testing.T, b *bench) {
	t.Helper()
	if b.engine.Waiting == "" {
		t.Skip("a transaction has everything")
	}
	seller := b.seller("usr_a")
	b.postponed(seller, "s1")
	b.update(func(tx *store.Tx) error {
		if _, err := tx.Append(b.ctx(), b.posting(seller, ledger.SaleRecorded, ledger.Sale(1))); err != nil {
			return err
		}
		shown, err := b.db.Repair(b.ctx(), b.keys, "asha", b.now, false)
		if len(shown) != 1 || shown[0].Subject != "sale:s1" {
			t.Errorf("shown are %+v, want the sale", shown)
		}
		return err
	})
}
