package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bursar/internal/ledger"
)

// appendSale appends a sale to a journal.
func appendSale(t *testing.T, db *DB, owner, subject string) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.Append(t.Context(), ledger.Posting{
			Owner: owner, At: noon, Type: ledger.SaleRecorded, Moved: ledger.Sale(1000), Subject: subject, Actor: "system", Data: "{}",
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckNewest_EntryAddedMeanwhile adds an entry after the balance was read, and before the entries are: that is no tampering.
func TestCheckNewest_EntryAddedMeanwhile(t *testing.T) {
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	appendSale(t, db, "asha", "sale:1")
	added := false
	db.FailBefore(func(statement string) error {
		if strings.HasPrefix(statement, entriesFrom) && !added {
			added = true
			appendSale(t, db, "asha", "sale:2")
		}
		return nil
	})
	if err := db.CheckNewest(t.Context(), "asha", 1, ledger.Listing{Numbers: []int64{1}}); err != nil || !added {
		t.Errorf("an entry was added meanwhile: %t, and the journal is not whole: %v", added, err)
	}
}

// TestCheckNewest_RemembersWhole reads entries once: a journal that was found whole is read from there on the next time, until
// the caller relies on another entry or a sale is recorded.
func TestCheckNewest_RemembersWhole(t *testing.T) {
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	for i := range 3 {
		appendSale(t, db, "asha", fmt.Sprint("sale:", i))
	}
	check := func(last int64, whole bool) {
		t.Helper()
		if err := db.CheckNewest(t.Context(), "asha", 0, ledger.Listing{Numbers: []int64{last}}); errors.Is(err, ledger.ErrTampered) == whole || (err == nil) != whole {
			t.Errorf("%v; want it whole: %t", err, whole)
		}
	}
	check(2, true)
	if err := db.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.exec(t.Context(), `UPDATE entries SET subject = 'hidden' WHERE number = 1`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	check(2, true)
	check(3, false)
	appendSale(t, db, "asha", "sale:0")
	check(2, false)
}

// TestCheckNewest_LongJournal looks at the 10,000 newest entries, and takes the one before them on trust.
func TestCheckNewest_LongJournal(t *testing.T) {
	const entries = maxTailEntries + 3
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	do := func(fn func(*Tx) error) {
		t.Helper()
		if err := db.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	do(func(tx *Tx) error {
		for i := range entries {
			_, err := tx.Append(t.Context(), ledger.Posting{
				Owner: "asha", At: noon, Type: ledger.SaleRecorded, Moved: ledger.Sale(1000), Subject: fmt.Sprint("sale:", i), Actor: "system", Data: "{}",
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for number, whole := range map[int]bool{2: true, 3: true, 4: false, entries: false} {
		change := func(to string) {
			do(func(tx *Tx) error {
				_, err := tx.exec(t.Context(), `UPDATE entries SET actor = $1 WHERE number = $2`, to, number)
				return err
			})
		}
		change("mallory")
		if err := db.CheckNewest(t.Context(), "asha", entries, ledger.Listing{Numbers: []int64{int64(number)}}); errors.Is(err, ledger.ErrTampered) == whole || (err == nil) != whole {
			t.Errorf("with another entry %d: %v; want it whole: %t", number, err, whole)
		}
		change("system")
	}
}
