package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/store"
)

// register makes an account with every field set the seller's current one, due for verification now.
func (b *bench) register(id, seller string) bank.Account {
	b.Helper()
	a := bank.Account{
		ID: bank.ID(id), Seller: seller, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "6789",
		Status: bank.StatusUnverified, Reason: "waits", RegisteredName: "ASHA RAO", NameScore: 88, Beneficiary: "fa_1", Gateway: atGateway,
		VerificationID: "fav_" + id, Tries: 2, DueAt: b.now, CreatedAt: b.now, VerifiedAt: b.now, Current: true,
	}
	a.EncryptedNumber = b.encrypted(a)
	b.update(func(tx *store.Tx) error { return b.addAccount(tx, a) })
	return a
}

// nameAtGateway records what the gateway calls an account, as package bank does.
func (b *bench) nameAtGateway(id bank.ID, name string, want bool) {
	b.Helper()
	a, err := b.db.BankAccountByID(b.ctx(), id)
	b.must(err)
	b.nameAtGatewayAs(a.Status, id, name, want)
}

func (b *bench) nameAtGatewayAs(status bank.Status, id bank.ID, name string, want bool) {
	b.Helper()
	was, err := b.db.BankAccountByID(b.ctx(), id)
	b.must(err)
	is, seen := was, was
	is.Beneficiary, is.Gateway, is.Status = name, atGateway, status
	seen.Beneficiary, seen.Gateway, seen.Status = "", "", status
	b.update(func(tx *store.Tx) error {
		named, err := tx.SetBeneficiary(b.ctx(), seen, is)
		if named != want {
			b.Errorf("%s was recorded: %t, want %t", name, named, want)
		}
		if err != nil || !named {
			return err
		}
		return b.record(tx, was, is)
	})
}

func testBankAccounts(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	second := b.register("bka_2", seller)
	current, err := b.db.BankAccount(b.ctx(), seller)
	b.must(err)
	if diff := cmp.Diff(second, current); diff != "" {
		b.Error(diff)
	}
	first, err := b.db.BankAccountByID(b.ctx(), "bka_usr_a")
	if err != nil || first.Last4 != "1234" || !first.DueAt.IsZero() || first.Current {
		b.Errorf("the first account became %+v, %v", first, err)
	}
	b.update(func(tx *store.Tx) error {
		got, err := tx.CurrentBankAccount(b.ctx(), seller)
		if diff := cmp.Diff(second, got); diff != "" || err != nil {
			b.Error(diff, err)
		}
		toPay, err := tx.AccountToPay(b.ctx(), seller)
		want := bank.Account{ID: second.ID, Seller: seller, Current: true, Holder: second.Holder, IFSC: second.IFSC, Last4: second.Last4, Status: second.Status}
		if diff := cmp.Diff(want, toPay); diff != "" || err != nil {
			b.Error(diff, err)
		}
		_, missing := tx.CurrentBankAccount(b.ctx(), "usr_b")
		_, nothing := tx.AccountToPay(b.ctx(), "usr_b")
		if !errors.Is(missing, bank.ErrNone) || !errors.Is(nothing, bank.ErrNone) {
			b.Errorf("a seller without an account: %v, %v", missing, nothing)
		}
		return nil
	})
	b.nameAtGatewayAs(bank.StatusRejected, "bka_usr_a", "fa_early", false)
	b.nameAtGateway("bka_usr_a", "fa_first", true)
	b.nameAtGateway("bka_usr_a", "fa_late", false) // it has a name already
	is, err := b.db.BankAccountByID(b.ctx(), "bka_usr_a")
	b.must(err)
	for name, change := range map[string]func(*bank.Account){
		"another name":         func(a *bank.Account) { a.Beneficiary = "fa_other" },
		"another gateway":      func(a *bank.Account) { a.Gateway = "another" },
		"another verification": func(a *bank.Account) { a.VerificationID = "fav_other" },
		"another status":       func(a *bank.Account) { a.Status = bank.StatusRejected },
	} {
		seen, next := is, is
		change(&seen)
		next.Beneficiary, next.Gateway = "fa_next", "next"
		b.update(func(tx *store.Tx) error {
			if named, err := tx.SetBeneficiary(b.ctx(), seen, next); named || err != nil {
				b.Errorf("an account that was seen with %s is named: %t, %v", name, named, err)
			}
			return nil
		})
	}
	first, err = b.db.BankAccountByID(b.ctx(), "bka_usr_a")
	if err != nil || first.Beneficiary != "fa_first" {
		b.Errorf("the beneficiary became %q, %v", first.Beneficiary, err)
	}
	for id, read := range map[string]func(string) (bank.Account, error){
		"usr_b":    func(id string) (bank.Account, error) { return b.db.BankAccount(b.ctx(), id) },
		"bka_none": func(id string) (bank.Account, error) { return b.db.BankAccountByID(b.ctx(), bank.ID(id)) },
	} {
		if _, err := read(id); !errors.Is(err, bank.ErrNone) {
			b.Errorf("%s: error %v, want %v", id, err, bank.ErrNone)
		}
	}
}

func testVerificationLeases(_ *testing.T, b *bench) {
	const accounts = 40
	for i := range accounts {
		seller := b.seller(fmt.Sprintf("usr_%02d", i))
		b.register(fmt.Sprintf("bka_%02d", i), seller)
	}
	b.leasesOnce(accounts, func(tx *store.Tx, now, until time.Time, limit int) ([]string, error) {
		ids, err := tx.LeaseDueVerifications(b.ctx(), now, until, limit)
		return texts(ids), err
	})
}

func testVerificationProgress(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	a := b.register("bka_2", seller)
	save := func(seen, a bank.Account, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			saved, err := tx.SaveVerification(b.ctx(), seen, a)
			if saved != want {
				b.Errorf("save %s after %s: %t, want %t", a.Status, seen.Status, saved, want)
			}
			return err
		})
	}
	reschedule := func(verification string, at time.Time, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			rescheduled, err := tx.RescheduleVerification(b.ctx(), verification, at)
			if rescheduled != want {
				b.Errorf("reschedule %q: %t, want %t", verification, rescheduled, want)
			}
			return err
		})
	}
	wantStored := func(want bank.Account) {
		b.Helper()
		got, err := b.db.BankAccountByID(b.ctx(), want.ID)
		b.must(err)
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
	}
	reschedule("", b.now, false)
	reschedule("fav_none", b.now, false)

	seen := a
	seen.DueAt = b.now.Add(time.Minute) // leased when it was read
	save(a, seen, true)
	reschedule(a.VerificationID, b.now.Add(time.Second), true) // a notification meanwhile is kept, though the step says later
	later := seen
	later.Tries, later.DueAt = 3, b.now.Add(time.Hour)
	save(seen, later, true)
	later.DueAt = b.now.Add(time.Second)
	wantStored(later)

	verified := later
	verified.Status, verified.VerifiedAt, verified.DueAt, verified.Reason = bank.StatusVerified, b.now.Add(time.Hour), time.Time{}, ""
	verified.RegisteredName, verified.NameScore, verified.VerificationID = "ASHA R", 99, "fav_new"
	renamed := later
	renamed.Beneficiary = "fa_other"
	save(renamed, verified, false) // the gateway calls it otherwise than it was seen
	save(later, verified, true)
	wantStored(verified)
	save(later, verified, false) // it is unverified no more
	reschedule("fav_new", b.now, false)

	b.register("bka_3", seller)
	save(verified, later, false) // it is current no more
	verified.Current = false
	wantStored(verified)
}

// testHasVerifiedAccount takes accounts through decisions. Of each account the newest verification or rejection counts, and only the seller's own do.
func testHasVerifiedAccount(_ *testing.T, b *bench) {
	want := func(seller string, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			has, err := tx.HasVerifiedAccount(b.ctx(), seller)
			if has != want {
				b.Errorf("the journal says that %s has a verified account: %t, want %t", seller, has, want)
			}
			return err
		})
	}
	decide := func(a bank.Account, status bank.Status) bank.Account {
		b.Helper()
		is := a
		is.Status = status
		b.update(func(tx *store.Tx) error { return b.record(tx, a, is) })
		return is
	}
	seller, other := b.seller("usr_a"), b.seller("usr_b")
	a := b.register("bka_a", seller)
	decide(b.register("bka_b", other), bank.StatusVerified)
	want("usr_none", false)
	want(seller, false)

	a = decide(a, bank.StatusVerified)
	want(seller, true)
	a = decide(a, bank.StatusReview)
	want(seller, true)
	decide(a, bank.StatusRejected)
	want(seller, false)
	decide(b.register("bka_a2", seller), bank.StatusVerified)
	want(seller, true)
	decide(b.register("bka_a3", seller), bank.StatusRejected) // as an undone change of the address does
	want(seller, true)

	added := func(of string, entries []ledger.Entry, err error, want ...string) {
		b.Helper()
		var got []string
		for _, e := range entries {
			got = append(got, e.Subject)
		}
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("the accounts of %s are %v, %v; want %v", of, got, err, want)
		}
	}
	b.update(func(tx *store.Tx) error {
		entries, err := tx.AccountsAdded(b.ctx(), seller, 2)
		added(seller, entries, err, "bka_a3", "bka_a2")
		return nil
	})
	entries, err := b.db.AccountsAdded(b.ctx(), other, math.MaxInt64, 10)
	added(other, entries, err, "bka_b", "bka_usr_b")
	entries, err = b.db.AccountsAdded(b.ctx(), other, entries[0].Number, 10)
	added(other, entries, err, "bka_usr_b")
	changed := b.with(b.engine.Tamper(b.T, b.db, `UPDATE entries SET at = at + 1 WHERE subject = 'bka_b'`))
	if _, err := changed.db.AccountsAdded(b.ctx(), other, math.MaxInt64, 10); !errors.Is(err, ledger.ErrTampered) {
		b.Errorf("the accounts of %s, one of them changed by hand: %v", other, err)
	}
}

func testFormerAccounts(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	current, err := b.db.BankAccount(b.ctx(), seller)
	b.must(err)
	want := bank.Account{
		ID: "bka_old", Seller: seller, Holder: "A Rao", IFSC: "SBIN0000300", Last4: "9876", EncryptedNumber: "encrypted",
		Status: bank.StatusUnverified, NameScore: -1, Beneficiary: "fa_1", CreatedAt: b.now,
	}
	for i, holder := range []string{want.Holder, "another person"} {
		a := want
		a.Holder = holder
		b.update(func(tx *store.Tx) error {
			inserted, err := tx.InsertBankAccount(b.ctx(), a)
			if inserted != (i == 0) {
				b.Errorf("insert %d: %t", i, inserted)
			}
			return err
		})
	}
	got, err := b.db.BankAccountByID(b.ctx(), want.ID)
	b.must(err)
	if got != want {
		b.Errorf("read back\n%+v, want\n%+v", got, want)
	}
	still, err := b.db.BankAccount(b.ctx(), seller)
	b.must(err)
	if still != current {
		b.Errorf("the current account is\n%+v, want\n%+v", still, current)
	}
}

// review leaves an account's verification to a person.
func (b *bench) review(id bank.ID) bank.Account {
	b.Helper()
	seen, err := b.db.BankAccountByID(b.ctx(), id)
	b.must(err)
	a := seen
	a.Status, a.DueAt = bank.StatusReview, time.Time{}
	b.update(func(tx *store.Tx) error {
		saved, err := tx.SaveVerification(b.ctx(), seen, a)
		if err != nil || !saved {
			return err
		}
		return b.record(tx, seen, a)
	})
	return a
}

func testAccountsInReview(_ *testing.T, b *bench) {
	var want []bank.Account
	for _, seller := range []string{"usr_c", "usr_a", "usr_b", "usr_d"} {
		b.register("bka_"+seller+"_2", b.seller(seller))
		if seller != "usr_b" { // whose verification is under way
			want = append(want, b.review(bank.ID("bka_"+seller+"_2")))
		}
	}
	b.register("bka_usr_d_3", "usr_d") // and the one before is not paid to any more
	want = []bank.Account{want[1], want[0]}
	got, err := b.db.AccountsInReview(b.ctx(), 10)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		b.Error(diff, err)
	}
	got, err = b.db.AccountsInReview(b.ctx(), 1)
	if diff := cmp.Diff(want[:1], got); diff != "" || err != nil {
		b.Error(diff, err)
	}
}
