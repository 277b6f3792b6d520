package store

import (
	"fmt"
	"testing"

	"bursar/internal/ledger"
)

// TestJournalTails_Keep goes on from where a journal was found whole, and from nowhere else.
func TestJournalTails_Keep(t *testing.T) {
	at := func(number int64) ledger.Account { return ledger.Account{Owner: "asha", Number: number} }
	entry := func(number int64, subject string) []ledger.Entry {
		return []ledger.Entry{{Number: number, Posting: ledger.Posting{Owner: "asha", Subject: subject}}}
	}
	tails := &journalTails{}
	finds := func(want int64, newest map[string]int64) {
		t.Helper()
		if got, known := tails.find("asha", newest); got.Number != want || known != (want > 0) {
			t.Errorf("%v is known up to %d, %t; want %d", newest, got.Number, known, want)
		}
	}
	finds(0, nil)
	tails.keep(at(1), entry(2, "pyt_1"), at(2)) // nothing was known up to 1
	finds(0, nil)
	tails.keep(ledger.Account{}, entry(2, "pyt_1"), at(2))
	finds(2, map[string]int64{"pyt_1": 2})
	finds(0, map[string]int64{"pyt_1": 1})
	finds(0, map[string]int64{"pyt_2": 1})
	tails.keep(at(2), entry(3, "pyt_2"), at(3))
	tails.keep(at(2), entry(3, "pyt_3"), at(3)) // another unit has gone on from 2
	finds(3, map[string]int64{"pyt_1": 2, "pyt_2": 3})
	finds(0, map[string]int64{"pyt_3": 3})
	tails.forget("asha")
	finds(0, nil)
	if tails.subjects != 0 {
		t.Errorf("without a tail, %d subjects are counted", tails.subjects)
	}
}

// TestJournalTails_AreBounded forgets all tails before they know more subjects than are allowed.
func TestJournalTails_AreBounded(t *testing.T) {
	tails := &journalTails{}
	for i := range mostSubjects + 2 {
		owner := fmt.Sprint("usr_", i)
		tails.keep(ledger.Account{}, []ledger.Entry{{Number: 1, Posting: ledger.Posting{Owner: owner, Subject: "pyt_1"}}}, ledger.Account{Owner: owner, Number: 1})
		if len(tails.of) > mostSubjects || tails.subjects != len(tails.of) {
			t.Fatalf("%d tails are kept, and %d subjects counted; at most %d are allowed", len(tails.of), tails.subjects, mostSubjects)
		}
	}
	if len(tails.of) != 1 {
		t.Errorf("%d tails are left after there were too many, want the last one", len(tails.of))
	}
}
