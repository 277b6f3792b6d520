package store

import (
	"errors"
	"fmt"
	"testing"

	"bursar/internal/ledger"
)

// TestJournalTails_Keep goes on from where a journal was found whole, and from nowhere else. It knows the entries about a
// payout from the one with which it came to its state.
func TestJournalTails_Keep(t *testing.T) {
	at := func(number int64) ledger.Head { return ledger.Head{Owner: "asha", Number: number} }
	entry := func(number int64, subject string, kind ledger.Type) []ledger.Entry {
		return []ledger.Entry{{Number: number, Posting: ledger.Posting{Owner: "asha", Subject: subject, Type: kind}}}
	}
	tails := &tailCache{}
	finds := func(want int64, entries map[string][]int64) {
		t.Helper()
		if got, known := tails.find("asha", entries); got.Number != want || known != (want > 0) {
			t.Errorf("%v is known up to %d, %t; want %d", entries, got.Number, known, want)
		}
	}
	finds(0, nil)
	tails.keep(at(1), entry(2, "pyt_1", ledger.PayoutRequested), at(2)) // nothing was known up to 1
	finds(0, nil)
	tails.keep(ledger.Head{}, entry(2, "pyt_1", ledger.PayoutRequested), at(2))
	finds(2, map[string][]int64{"pyt_1": {2}})
	finds(0, map[string][]int64{"pyt_1": {1}})
	finds(0, map[string][]int64{"pyt_2": {1}})
	tails.keep(at(2), entry(3, "pyt_2", ledger.PayoutUpdated), at(3)) // how it came to its state is not known
	finds(0, map[string][]int64{"pyt_2": {1, 3}})
	finds(0, map[string][]int64{"pyt_2": {3}})
	tails.keep(at(2), entry(3, "pyt_3", ledger.PayoutRequested), at(3)) // another unit has gone on from 2
	finds(0, map[string][]int64{"pyt_3": {3}})
	tails.keep(at(3), entry(4, "pyt_1", ledger.PayoutSubmitting), at(4))
	tails.keep(at(4), entry(5, "pyt_1", ledger.DiscrepancyFound), at(5))
	finds(5, map[string][]int64{"pyt_1": {4, 5}})
	finds(0, map[string][]int64{"pyt_1": {2, 5}})
	finds(0, map[string][]int64{"pyt_1": {4}})
	if tails.numbers != 2 {
		t.Errorf("%d entries are counted, want 2", tails.numbers)
	}
	tails.keep(ledger.Head{}, nil, at(6)) // another tail
	tails.whole(at(6))
	finds(6, nil)
	if tails.numbers != 0 {
		t.Errorf("without entries, %d are counted", tails.numbers)
	}
	tails.distrust("asha")
	finds(0, map[string][]int64{"pyt_1": {4, 5}})
	if end := tails.end("asha"); end.number != 6 {
		t.Errorf("the journal went to %d, want 6", end.number)
	}
	if end := tails.end("bela"); end.number != 0 {
		t.Errorf("a journal that was never looked at went to %d", end.number)
	}
	for _, a := range []struct{ from, to, want int64 }{{6, 7, 7}, {8, 9, 7}, {6, 9, 7}, {7, 8, 8}} { // others may have written between, or cut off the end
		if tails.wrote(at(a.from), at(a.to)); tails.end("asha").number != a.want {
			t.Errorf("after a write from %d to %d the journal is known to %d, want %d", a.from, a.to, tails.end("asha").number, a.want)
		}
	}
	tails.whole(at(12))
	if tails.whole(at(11)); tails.end("asha").number != 12 {
		t.Errorf("the journal was found whole up to 12, and is known to %d", tails.end("asha").number)
	}
}

// TestUnit_KeepTails begins the tail of a journal with what the unit has read and written, and goes on from there.
func TestUnit_KeepTails(t *testing.T) {
	at := func(number int64) ledger.Head { return ledger.Head{Owner: "asha", Number: number} }
	entry := func(number int64, kind ledger.Type) []ledger.Entry {
		return []ledger.Entry{{Number: number, Posting: ledger.Posting{Owner: "asha", Subject: "pyt_1", Type: kind}}}
	}
	cache := &tailCache{}
	unit := func(from int64, writes []ledger.Entry, tail *unitTail) {
		u := newUnit(nil, cache, 1)
		u.journals["asha"] = &unitJournal{loaded: at(from), now: at(from + int64(len(writes)))}
		u.writes.entries = writes
		if tail != nil {
			u.tails["asha"] = tail
		}
		u.keepTails()
	}
	finds := func(want int64, numbers ...int64) {
		t.Helper()
		if got, known := cache.find("asha", map[string][]int64{"pyt_1": numbers}); got.Number != want || known != (want > 0) {
			t.Errorf("the tail is known up to %d, %t; want %d", got.Number, known, want)
		}
	}
	unit(3, entry(4, ledger.PayoutSubmitting), &unitTail{entries: entry(3, ledger.PayoutRequested), err: errors.New("an entry is missing")})
	finds(0, 4)
	unit(3, entry(4, ledger.PayoutSubmitting), &unitTail{entries: entry(3, ledger.PayoutRequested)})
	finds(4, 4)
	unit(4, entry(5, ledger.DiscrepancyFound), nil)
	finds(5, 4, 5)
}

// TestUnit_CheckTails stops the changes of a journal that does not go on from where it was found whole, or can't be followed.
func TestUnit_CheckTails(t *testing.T) {
	for name, known := range map[string]ledger.Head{"known before": {Owner: "asha", Number: 1}, "not known before": {}} {
		u := newUnit(testKeys(t), &tailCache{}, 1)
		u.journals["asha"] = &unitJournal{loaded: ledger.Head{Owner: "asha", Number: 2}}
		u.tails["asha"] = &unitTail{wholeTo: known, from: 2}
		if u.checkTails(); !errors.Is(u.tails["asha"].err, ledger.ErrTampered) {
			t.Errorf("%s: the journal's changes end with %v", name, u.tails["asha"].err)
		}
	}
}

// TestUnit_CheckTails_EndKnown follows a journal to its end, which is not as far as this process knows it, or has another entry there.
func TestUnit_CheckTails_EndKnown(t *testing.T) {
	keys := testKeys(t)
	head := ledger.NewHead("asha")
	var entries []ledger.Entry
	for n := range 2 {
		after, e, err := head.Post(keys, ledger.Posting{Owner: "asha", Type: ledger.SaleRecorded, Subject: fmt.Sprint("sale:", n), Actor: ledger.ActorMarketplace, Data: "{}", Moved: ledger.Sale(100)})
		if err != nil {
			t.Fatal(err)
		}
		head, entries = after, append(entries, e)
	}
	for name, a := range map[string]struct {
		known ledger.Head
		fits  bool
	}{
		"as far as known": {head, true},
		"cut off":         {ledger.Head{Owner: "asha", Number: 3, Hash: head.Hash}, false},
		"another entry":   {ledger.Head{Owner: "asha", Number: 2, Hash: entries[0].Hash}, false},
		"never known":     {ledger.Head{}, true},
		"an older place":  {ledger.Head{Owner: "asha", Number: 1, Hash: entries[0].Hash}, true},
		"another older":   {ledger.Head{Owner: "asha", Number: 1, Hash: head.Hash}, false},
	} {
		cached := &tailCache{}
		cached.wrote(ledger.Head{}, a.known)
		u := newUnit(keys, cached, 1)
		u.journals["asha"] = &unitJournal{loaded: head}
		tail := &unitTail{from: 1, entries: entries, through: cached.end("asha")}
		for _, e := range entries {
			if e.Number == tail.through.number {
				tail.isThrough = e.Hash
			}
		}
		u.tails["asha"] = tail
		if u.checkTails(); (u.tails["asha"].err == nil) != a.fits || !a.fits && !errors.Is(u.tails["asha"].err, ledger.ErrTampered) {
			t.Errorf("%s: the journal's changes end with %v", name, u.tails["asha"].err)
		}
	}
}

// TestJournalEnd_Check has an entry that is known stand behind the end of its journal: the end was cut off, and the entry is back for a moment.
func TestJournalEnd_Check(t *testing.T) {
	end := journalEnd{3, "the hash of entry 3"}
	for last, fits := range map[int64]bool{2: false, 3: true, 4: true} {
		if err := end.check("asha", last, end.hash); errors.Is(err, ledger.ErrTampered) == fits || (err == nil) != fits {
			t.Errorf("a journal up to entry %d: %v", last, err)
		}
	}
	if err := end.check("asha", 4, "another"); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("with another entry 3: %v", err)
	}
}

// TestJournalTails_AreBounded forgets all tails before they know more entries than are allowed.
func TestJournalTails_AreBounded(t *testing.T) {
	tails := &tailCache{}
	for i := range maxCachedNumbers + 2 {
		owner := fmt.Sprint("usr_", i)
		tails.keep(ledger.Head{}, []ledger.Entry{{Number: 1, Posting: ledger.Posting{Owner: owner, Subject: "pyt_1"}}}, ledger.Head{Owner: owner, Number: 1})
		if len(tails.byOwner) > maxCachedNumbers || tails.numbers != len(tails.byOwner) {
			t.Fatalf("%d tails are kept, and %d entries counted; at most %d are allowed", len(tails.byOwner), tails.numbers, maxCachedNumbers)
		}
	}
	if len(tails.byOwner) != 1 {
		t.Errorf("%d tails are left after there were too many, want the last one", len(tails.byOwner))
	}
	keep := func(owner, subject string, n int) {
		entries := make([]ledger.Entry, n)
		for i := range entries {
			entries[i] = ledger.Entry{Number: int64(i + 1), Posting: ledger.Posting{Owner: owner, Subject: fmt.Sprint(subject, i)}}
		}
		tails.keep(ledger.Head{}, entries, ledger.Head{Owner: owner, Number: int64(n)})
	}
	tails = &tailCache{}
	keep("asha", "pyt_", 10)
	keep("bela", "pyt_", maxCachedNumbers+1) // too many by itself
	keep("chitra", "sale:", 10)
	if tails.byOwner["asha"] == nil || tails.byOwner["bela"] != nil || tails.byOwner["chitra"] == nil || tails.numbers != 10 {
		t.Errorf("%d tails and %d entries are kept, want those of the sellers without too many payouts, and no sales", len(tails.byOwner), tails.numbers)
	}
}
