package store

import (
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

// TestCheckJournal_EntryAddedMeanwhile adds an entry after the balance was read, and before the entries are: that is no tampering.
func TestCheckJournal_EntryAddedMeanwhile(t *testing.T) {
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
	if err := db.CheckJournal(t.Context(), "asha", 1); err != nil || !added {
		t.Errorf("an entry was added meanwhile: %t, and the journal is not whole: %v", added, err)
	}
}

// TestCheckJournal_RemembersWhole reads entries once: a journal that was found whole is read from there on the next time.
func TestCheckJournal_RemembersWhole(t *testing.T) {
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	for range 3 {
		appendSale(t, db, "asha", "sale:1")
	}
	if err := db.CheckJournal(t.Context(), "asha", 2); err != nil {
		t.Fatal(err)
	}
	if at := db.whole.upTo(entryPlace{"asha", 2}, 3); at.Number != 3 {
		t.Errorf("it is known to be whole up to entry %d, want 3", at.Number)
	}
}
