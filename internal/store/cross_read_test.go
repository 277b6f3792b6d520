package store

import (
	"errors"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/pgtest"
)

// TestCrossRead hides an entry for the moment in which it is looked for, before its journal is read and behind that.
func TestCrossRead(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testCrossRead(t, openTemp(t)) })
	t.Run("postgres", func(t *testing.T) {
		db, err := OpenPostgres(t.Context(), pgtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		testCrossRead(t, db)
	})
}

func testCrossRead(t *testing.T, db *DB) {
	t.Helper()
	db.UseKeys(testKeys(t))
	for _, subject := range []string{"sale:1", "sale:2"} {
		appendSale(t, db, "asha", subject)
	}
	appended := ledger.Posting{Owner: "asha", At: noon, Type: ledger.Repaired, Subject: "sale:1", Actor: "system", Data: "{}"}
	change := func(from, to string) func(*Tx) error {
		return func(tx *Tx) error {
			_, err := tx.exec(t.Context(), `UPDATE entries SET subject = $2 WHERE subject = $1`, from, to)
			return err
		}
	}
	hide, show := change("sale:1", "sale:hidden"), change("sale:hidden", "sale:1")
	list := func(tx *Tx) error { _, err := tx.EntriesAbout(t.Context(), "asha", "sale:1"); return err }
	walk := func(tx *Tx) error { return tx.CheckJournal(t.Context(), "asha", 1) }
	walkNewest := func(tx *Tx) error { return tx.CheckNewest(t.Context(), "asha") }
	add := func(tx *Tx) error { _, err := tx.Append(t.Context(), appended); return err }
	undone := errors.New("undone")
	for name, tt := range map[string]struct {
		steps  []func(*Tx) error
		hidden bool
	}{
		"nothing hidden":                          {[]func(*Tx) error{list, walk, list, walkNewest}, false},
		"added by itself":                         {[]func(*Tx) error{list, walk, add, walk, list}, false},
		"hidden from the list":                    {[]func(*Tx) error{hide, list, show, walk}, true},
		"hidden from a late list":                 {[]func(*Tx) error{walk, hide, list}, true},
		"hidden, newest entries":                  {[]func(*Tx) error{hide, list, show, walkNewest}, true},
		"hidden from a late list, newest entries": {[]func(*Tx) error{walkNewest, hide, list}, true},
	} {
		var got error
		err := db.Update(t.Context(), func(tx *Tx) error {
			for _, step := range tt.steps {
				got = errors.Join(got, step(tx))
			}
			return undone
		})
		if !errors.Is(err, undone) || errors.Is(got, ledger.ErrTampered) != tt.hidden || !tt.hidden && got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestCrossRead_AddedMeanwhile has another transaction add an entry about what was listed, before the journal is read: that is no tampering, and
// the first one is tried again.
func TestCrossRead_AddedMeanwhile(t *testing.T) {
	db, err := OpenPostgres(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(testKeys(t))
	appendSale(t, db, "asha", "sale:1")
	tries := 0
	err = db.Update(t.Context(), func(tx *Tx) error {
		if _, err := tx.EntriesAbout(t.Context(), "asha", "sale:1"); err != nil {
			return err
		}
		if tries++; tries == 1 {
			err := db.Update(t.Context(), func(tx *Tx) error {
				_, err := tx.Append(t.Context(), ledger.Posting{Owner: "asha", At: noon, Type: ledger.Repaired, Subject: "sale:1", Actor: "system", Data: "{}"})
				return err
			})
			if err != nil {
				return err
			}
		}
		return tx.CheckJournal(t.Context(), "asha", 1)
	})
	if err != nil || tries != 2 {
		t.Errorf("the transaction ran %d times and ended with %v", tries, err)
	}
}

// TestCrossRead_OthersGoOn has a listing that left out an entry fail once: what is about something else may be whole.
func TestCrossRead_OthersGoOn(t *testing.T) {
	place := func(number int64, subject string) ledger.Entry {
		return ledger.Entry{Number: number, Posting: ledger.Posting{Owner: "asha", Type: ledger.SaleRecorded, Subject: subject}}
	}
	var c crossRead
	for _, subject := range []string{"sale:1", "sale:2"} {
		var listed []ledger.Entry
		if subject == "sale:2" {
			listed = append(listed, place(2, subject))
		}
		if err := c.list("asha", journalListing{ledger.ListingAbout(subject, listed), 9}); err != nil {
			t.Fatal(err)
		}
	}
	for try, want := range []bool{true, false} {
		err := errors.Join(c.walk(place(1, "sale:1")), c.walk(place(2, "sale:2")))
		if errors.Is(err, ledger.ErrNotListed) != want || errors.Is(err, ledger.ErrTampered) != want {
			t.Errorf("in walk %d: %v", try, err)
		}
	}
	if err := c.list("asha", journalListing{ledger.ListingAbout("sale:1", nil), 9}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("listed once more: %v", err)
	}
}

// TestCheckNewest_Listings has each kind of listing leave out an entry.
func TestCheckNewest_Listings(t *testing.T) {
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	for _, subject := range []string{"sale:1", "sale:2", "sale:3"} {
		appendSale(t, db, "asha", subject)
	}
	for name, tt := range map[string]struct {
		listing ledger.Listing
		whole   bool
	}{
		"all about it":           {ledger.Listing{Subject: "sale:2", Numbers: []int64{2}}, true},
		"nothing about it":       {ledger.Listing{Subject: "sale:2"}, false},
		"all of a type":          {ledger.Listing{Type: ledger.SaleRecorded, Numbers: []int64{1, 2, 3}}, true},
		"not all of a type":      {ledger.Listing{Type: ledger.SaleRecorded, Numbers: []int64{1, 3}}, false},
		"the newest":             {ledger.Listing{Type: ledger.SaleRecorded, Numbers: []int64{2, 3}, Cut: true}, true},
		"the newest but for one": {ledger.Listing{Type: ledger.SaleRecorded, Numbers: []int64{2}, Cut: true}, false},
		"others":                 {ledger.Listing{Subject: "sale:9"}, true},
	} {
		for range 2 { // what was found whole is remembered
			if err := db.CheckNewest(t.Context(), "asha", 3, tt.listing); errors.Is(err, ledger.ErrTampered) == tt.whole || (err == nil) != tt.whole {
				t.Errorf("%s: %v; want it whole: %t", name, err, tt.whole)
			}
		}
	}
}

// TestCheckDecided_HiddenDecision has a user's row read while the decision that took their access away could not be found.
func TestCheckDecided_HiddenDecision(t *testing.T) {
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	decided := decision.New(decision.By{Admin: "usr_admin", Note: "Left."}, decision.ChangeAccess, "usr_1", "usr_1", noon)
	if err := db.Update(t.Context(), func(tx *Tx) error { return ledger.RecordDecision(t.Context(), tx, decided) }); err != nil {
		t.Fatal(err)
	}
	entries, err := db.EntriesAfter(t.Context(), "usr_1", 0, 2)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for data, hidden := range map[string]bool{"": true, entries[0].Data: false} {
		u := storedUser{User: auth.User{ID: "usr_1"}, decided: data}
		if err := db.checkDecided(t.Context(), u); errors.Is(err, auth.ErrTampered) != hidden || !hidden && err != nil {
			t.Errorf("with the decision %q: %v", data, err)
		}
	}
}
