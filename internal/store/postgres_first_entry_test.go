package store_test

import (
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/pgtest"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// TestAppend_AfterAnotherMadeTheJournal has two transactions decide that a journal is empty. One appends to it, and the other has to
// decide again, because there was no row that it could have locked.
func TestAppend_AfterAnotherMadeTheJournal(t *testing.T) {
	db, err := store.OpenPostgres(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(storetest.Keys(t))
	post := func(tx *store.Tx, subject string) error {
		_, err := tx.Append(t.Context(), ledger.Posting{
			Owner: "usr_a", At: time.Unix(1, 0), Type: ledger.AccountProfileChanged, Subject: subject, Actor: "system", Data: "{}",
		})
		return err
	}
	var known []int // how many entries each try finds before it decides
	err = db.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.CheckNewest(t.Context(), "usr_a"); err != nil {
			return err
		}
		entries, err := tx.EntriesAbout(t.Context(), "usr_a", "first")
		if err != nil {
			return err
		}
		if known = append(known, len(entries)); len(known) == 1 {
			if err := db.Update(t.Context(), func(other *store.Tx) error { return post(other, "first") }); err != nil {
				return err
			}
		}
		return post(tx, "second")
	})
	if err != nil || len(known) != 2 || known[0] != 0 || known[1] != 1 {
		t.Errorf("the tries found %v entries, %v; want none, and then one", known, err)
	}
	entries, err := db.Entries(t.Context(), "usr_a", 0, 10)
	if err != nil || len(entries) != 2 || entries[0].Subject != "second" || entries[1].Subject != "first" {
		t.Errorf("the journal has %+v, %v", entries, err)
	}
}
