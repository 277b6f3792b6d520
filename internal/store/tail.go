package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// journalTails remembers what the newest entries of journals say, of those that units of work found whole. Without it each
// step of a payout reads what its seller's journal holds since the step before: of a seller with many payouts under way,
// all of their entries.
type journalTails struct {
	mu sync.Mutex
	of map[string]*journalTail // by owner
	// subjects is how many all tails know.
	subjects int
}

// journalTail is what is known of a journal's newest entries.
type journalTail struct {
	// at is where the journal stood when the tail was kept.
	at ledger.Account
	// newest is the number of the newest entry about each subject that is known. It tells that an entry was deleted since:
	// the newest one that is left of its subject has another number.
	newest map[string]int64
}

// mostSubjects bounds the memory of all tails to some megabytes.
const mostSubjects = 50_000

// find returns where an owner's journal stood, if its tail knows the newest entry of each of the subjects by that number.
func (t *journalTails) find(owner string, newest map[string]int64) (at ledger.Account, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.of[owner]
	if tail == nil {
		return at, false
	}
	for subject, number := range newest {
		if tail.newest[subject] != number {
			return at, false
		}
	}
	return tail.at, true
}

// keep has the tail of a journal that stood at known go on with entries, up to now. known is zero for a tail that begins
// with entries. Where another unit has gone on from known before, keep does nothing.
func (t *journalTails) keep(known ledger.Account, entries []ledger.Entry, now ledger.Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.of[now.Owner]
	switch {
	case known == ledger.Account{}:
		t.remove(now.Owner)
		tail = &journalTail{newest: make(map[string]int64, len(entries))}
	case tail == nil || tail.at != known:
		return
	}
	if t.subjects+len(entries) > mostSubjects {
		t.of, t.subjects = nil, 0
		return
	}
	if t.of == nil {
		t.of = map[string]*journalTail{}
	}
	t.of[now.Owner] = tail
	t.subjects -= len(tail.newest)
	for _, e := range entries {
		tail.newest[e.Subject] = e.Number
	}
	tail.at = now
	t.subjects += len(tail.newest)
}

func (t *journalTails) forget(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(owner)
}

// remove is forget for who has the lock.
func (t *journalTails) remove(owner string) {
	if tail := t.of[owner]; tail != nil {
		t.subjects -= len(tail.newest)
		delete(t.of, owner)
	}
}

// unitTail is the end of a journal, on which payouts of a unit rely.
type unitTail struct {
	// newest is the number of the newest entry about each of the payouts.
	newest map[string]int64
	// known is where the journal stood when it was last found whole up to there; zero if that does not help.
	known ledger.Account
	// from is the number of the first entry that is read: the earliest with which one of the payouts came to its state, or
	// the one behind known.
	from int64
	// entries are those read, in order.
	entries []ledger.Entry
	// err says that one of them is missing, or is not as the service wrote it.
	err error
}

// loadTails are the statements that read the ends of journals, where they have grown since their tails were kept.
func (u *unit) loadTails(group []*unitJob) []load {
	for _, j := range group {
		if p := u.payouts[payout.ID(j.scope.Payout)]; p != nil {
			u.relyOn(p.Seller, string(p.ID))
		}
	}
	var all []load
	for owner, tail := range u.tails {
		stood := u.stood(owner)
		at, known := u.kept.find(owner, tail.newest)
		switch {
		case known && at == stood:
			tail.known, tail.from = at, at.Number+1
			continue
		case known && at.Number < stood.Number:
			tail.known, tail.from = at, at.Number+1
		}
		all = append(all, load{entriesSince, []any{owner, tail.from}, tail.scan})
	}
	return all
}

// relyOn notes that a change relies on what its owner's journal says of a payout.
func (u *unit) relyOn(owner, id string) {
	about := u.entries[entriesOf{owner, id}].list
	came := payout.CameToState(about)
	if came == 0 {
		return
	}
	tail := u.tails[owner]
	if tail == nil {
		tail = &unitTail{newest: map[string]int64{}, from: math.MaxInt64}
		u.tails[owner] = tail
	}
	tail.newest[id] = about[len(about)-1].Number
	tail.from = min(tail.from, came)
}

// stood is where an owner's journal stood when it was loaded; zero without its row.
func (u *unit) stood(owner string) ledger.Account {
	if j := u.journals[owner]; j != nil {
		return j.loaded
	}
	return ledger.Account{}
}

var entriesSince = `SELECT ` + entryColumns + ` FROM entries WHERE owner = $1 AND number >= $2 ORDER BY number`

func (t *unitTail) scan(r row) error {
	e, err := scanEntry(r)
	if errors.Is(err, ledger.ErrTampered) {
		err = nil // its hash says so as well
	}
	t.entries = append(t.entries, e)
	return err
}

// checkTails checks the ends of journals. It fails if one does not go on from where its tail was kept, as after a restore of
// the datastore: then each change of the group is checked by itself, without tails.
func (u *unit) checkTails() error {
	for owner, tail := range u.tails {
		_, tail.err = u.stood(owner).CheckNewest(u.signing, tail.from, tail.known, slices.Values(tail.entries))
		if tail.err == nil {
			continue
		}
		u.kept.forget(owner)
		if tail.known.Number > 0 {
			return fmt.Errorf("%w: %w", errSpoiled, tail.err)
		}
	}
	return nil
}

// keepTails keeps what the unit has read and written of journals, once it is committed.
func (u *unit) keepTails() {
	written := map[string][]ledger.Entry{}
	for _, e := range u.writes.entries {
		written[e.Owner] = append(written[e.Owner], e)
	}
	for owner, tail := range u.tails {
		if tail.err == nil && u.journals[owner] != nil {
			u.kept.keep(tail.known, slices.Concat(tail.entries, written[owner]), u.journals[owner].now)
			delete(written, owner)
		}
	}
	for owner, entries := range written {
		if at := u.journals[owner].loaded; at.Number > 0 {
			u.kept.keep(at, entries, u.journals[owner].now)
		}
	}
}
