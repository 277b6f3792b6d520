package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// tailCache remembers what the newest entries of journals say, of those that units of work found whole. Without it each
// step of a payout reads what its seller's journal holds since the step before: of a seller with many payouts under way,
// all of their entries.
type tailCache struct {
	mu      sync.Mutex
	byOwner map[string]*journalTail
	// numbers is how many entries all tails know.
	numbers int
	// readingAhead lets one long end of a journal be read at a time.
	readingAhead sync.Mutex
	// ends are places to which this process wrote journals, or found them whole. If a journal does not go through there any more, entries are
	// gone, or the database was put back under the process: then start-up reconciliation comes first.
	ends map[string]journalEnd
}

// journalEnd is the place of an entry in its journal; zero for none.
type journalEnd struct {
	number int64
	hash   ledger.Hash
}

// journalTail is what is known of a journal's newest entries.
type journalTail struct {
	// end is where the journal stood when the tail was cached.
	end ledger.Head
	// entries are the numbers of the entries about each subject, from the one with which it came to its state. They tell an
	// entry that was taken away since: those that are left of its subject are others.
	entries map[string][]int64
}

// maxCachedNumbers bounds the memory of all tails to some megabytes, and that of all ends.
const maxCachedNumbers = 50_000

// find returns where an owner's journal stood, if its tail knows just those entries about each of the subjects.
func (t *tailCache) find(owner string, entries map[string][]int64) (end ledger.Head, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.byOwner[owner]
	if tail == nil {
		return end, false
	}
	for subject, numbers := range entries {
		if !slices.Equal(tail.entries[subject], numbers) {
			return end, false
		}
	}
	return tail.end, true
}

// keep has the tail of a journal that stood at known go on with entries, up to now. If known is zero, the entries begin a new
// tail. If another unit has gone on from known before, keep does nothing.
func (t *tailCache) keep(known ledger.Head, entries []ledger.Entry, now ledger.Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.byOwner[now.Owner]
	switch {
	case known == ledger.Head{}:
		t.remove(now.Owner)
		tail = &journalTail{entries: make(map[string][]int64, len(entries))}
	case tail == nil || tail.end != known:
		return
	}
	if len(entries) > maxCachedNumbers {
		t.remove(now.Owner)
		return
	}
	if t.numbers+len(entries) > maxCachedNumbers {
		t.byOwner, t.numbers = nil, 0
		return
	}
	if t.byOwner == nil {
		t.byOwner = map[string]*journalTail{}
	}
	t.byOwner[now.Owner] = tail
	for _, e := range entries {
		if !isAboutPayout(e) {
			continue
		}
		before := tail.entries[e.Subject]
		after := append(before, e.Number)
		if !slices.Contains(payout.KeepsState, e.Type) {
			after = []int64{e.Number}
		} else if len(before) == 0 { // the tail begins behind the entry with which it came to its state
			continue
		}
		tail.entries[e.Subject] = after
		t.numbers += len(after) - len(before)
	}
	tail.end = now
}

// isAboutPayout reports whether a tail has to know an entry. Of a seller who sells much, most entries are about sales.
func isAboutPayout(e ledger.Entry) bool { return strings.HasPrefix(e.Subject, gateway.ReferencePrefix) }

// distrust forgets what an owner's tail says. The journal still has to go through its end.
func (t *tailCache) distrust(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(owner)
}

// wrote moves the known end of a journal on after a commit, if the transaction began at that end. If it began elsewhere, entries may be gone: the known
// end stays, and the next check has to reach it.
func (t *tailCache) wrote(before, now ledger.Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end := t.ends[now.Owner]; end.number == 0 || end == endOf(before) {
		t.goTo(now)
	}
}

// wroteAll is wrote for what a closure appended, in order.
func (t *tailCache) wroteAll(appended []unitJournal) {
	for _, j := range appended {
		t.wrote(j.loaded, j.now)
	}
}

// whole goes on to where a journal stands that was found to go through the place that is known.
func (t *tailCache) whole(now ledger.Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends[now.Owner].number < now.Number {
		t.goTo(now)
	}
}

// goTo keeps where a journal stands; the caller holds mu.
func (t *tailCache) goTo(now ledger.Head) {
	if t.ends == nil || len(t.ends) >= maxCachedNumbers {
		t.ends = map[string]journalEnd{}
	}
	t.ends[now.Owner] = endOf(now)
}

func endOf(head ledger.Head) journalEnd { return journalEnd{head.Number, head.Hash} }

// end is the place of an owner's journal that is known. A transaction that reads the journal without a lock asks before it reads.
func (t *tailCache) end(owner string) journalEnd {
	if t == nil {
		return journalEnd{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[owner]
}

// entryAt reads the hash of the entry of an owner, $1, with a number, $2.
const entryAt = `SELECT hash FROM entries WHERE owner = $1 AND number = $2`

// check fails with [ledger.ErrTampered] if a journal that ends with the entry last does not go through its known end, where there is an entry
// with the hash that is there; "" for none.
func (end journalEnd) check(owner string, last int64, there ledger.Hash) error {
	if end.number == 0 || there == end.hash && end.number <= last {
		return nil
	}
	return ledger.ErrTampered.Because(fmt.Errorf("this process knows entry %d of the journal of %s, which is gone or another one now; if the database was put back, restart the service", end.number, owner))
}

// remove forgets an owner's tail; the caller holds mu.
func (t *tailCache) remove(owner string) {
	tail := t.byOwner[owner]
	if tail == nil {
		return
	}
	for _, numbers := range tail.entries {
		t.numbers -= len(numbers)
	}
	delete(t.byOwner, owner)
}

// unitTail is the end of a journal, on which payouts of a unit rely.
type unitTail struct {
	// about are the numbers of the entries about each of the payouts, from the one with which it came to its state.
	about map[string][]int64
	// wholeTo is where the journal stood when the cache found it whole up to there; zero if that does not help.
	wholeTo ledger.Head
	// through is the place of the journal that this process knows, and isThrough the hash of the entry that is there.
	through   journalEnd
	isThrough ledger.Hash
	// from is the number of the first entry that is read: the earliest with which one of the payouts came to its state, or
	// the one behind wholeTo.
	from int64
	// entries are those read, in order.
	entries []ledger.Entry
	// mayBeLong says that the journal was read ahead for a change before.
	mayBeLong bool
	// err says that one of them is missing, or is not as the service wrote it, or that the journal has to be read ahead.
	err error
}

// maxTailInUnit is how many entries of a journal a unit reads. A unit holds locks, and on SQLite all other writes.
const maxTailInUnit = 2000

// longTailError says that a change relies on more of a journal than a unit reads. It has to be read ahead.
type longTailError struct {
	owner string
	tail  *unitTail
	// end is the number of the journal's last entry.
	end int64
}

func (e *longTailError) Error() string {
	return fmt.Sprintf("entries %d to %d of the journal of %s are too many to be read in a unit", e.tail.from, e.end, e.owner)
}

func isLongTail(err error) bool {
	_, isLong := errors.AsType[*longTailError](err)
	return isLong
}

// readAhead reads the end of a journal, outside of any transaction, for changes that rely on much of it, and caches it if it is whole. What is
// wrong with it the change finds itself.
func (db *DB) readAhead(ctx context.Context, long *longTailError) error {
	db.tails.readingAhead.Lock()
	defer db.tails.readingAhead.Unlock()
	if end, known := db.tails.find(long.owner, long.tail.about); known && end.Number >= long.end { // another change had it read
		return nil
	}
	head, err := db.head(ctx, long.owner)
	if err != nil {
		return err
	}
	var about []ledger.Entry
	at, err := db.signer.checkNewest(head, long.tail.from, long.tail.wholeTo, head.Number, pagesOf(ctx, db.query, long.owner), func(e ledger.Entry) error {
		if isAboutPayout(e) {
			about = append(about, e)
		}
		return nil
	})
	if err == nil {
		db.tails.keep(long.tail.wholeTo, about, at)
	}
	if errors.Is(err, ledger.ErrTampered) {
		return nil
	}
	return err
}

// loadTails are the statements that read the ends of journals, where they have grown since their tails were cached.
func (u *unit) loadTails(d dialect, group []*unitJob) []load {
	for _, j := range group {
		if p := u.payouts[payout.ID(j.scope.Payout)]; p != nil {
			u.addTail(p.Seller, string(p.ID), j.isRepeat)
		}
	}
	var all []load
	if len(u.tails) > 0 {
		query, args := entriesKnownElsewhere(d, slices.Sorted(maps.Keys(u.tails)))
		all = append(all, load{query, args, u.scanKnownElsewhere})
	}
	for owner, tail := range u.tails {
		loaded := u.loadedEnd(owner)
		end, known := u.cached.find(owner, tail.about)
		if known && (end == loaded || end.Number < loaded.Number) {
			tail.wholeTo, tail.from = end, end.Number+1
		}
		if tail.through = u.cached.end(owner); tail.through == endOf(loaded) {
			tail.isThrough = loaded.Hash
		} else if tail.through.number > 0 {
			all = append(all, load{entryAt, []any{owner, tail.through.number}, func(r *row) { r.Scan(&tail.isThrough) }})
		}
		if known && end == loaded {
			continue
		}
		if loaded.Number-tail.from >= maxTailInUnit && !tail.mayBeLong {
			tail.err = &longTailError{owner, tail, loaded.Number}
			continue
		}
		all = append(all, load{entriesSince, []any{owner, tail.from}, tail.scan})
	}
	return all
}

// addTail notes that a change relies on what its owner's journal says of a payout.
func (u *unit) addTail(owner, id string, mayBeLong bool) {
	about := u.entries[entriesOf{owner, id}].list
	first := payout.CameToState(about)
	if first == 0 {
		return
	}
	tail := u.tails[owner]
	if tail == nil {
		tail = &unitTail{about: map[string][]int64{}, from: math.MaxInt64}
		u.tails[owner] = tail
	}
	var numbers []int64
	for _, e := range about {
		if e.Number >= first {
			numbers = append(numbers, e.Number)
		}
	}
	tail.about[id] = numbers
	tail.mayBeLong = tail.mayBeLong || mayBeLong
	tail.from = min(tail.from, first)
}

// loadedEnd is where an owner's journal stood when it was loaded; zero without its row.
func (u *unit) loadedEnd(owner string) ledger.Head {
	if j := u.journals[owner]; j != nil {
		return j.loaded
	}
	return ledger.Head{}
}

var entriesSince = `SELECT ` + entryColumns + ` FROM entries WHERE owner = $1 AND number >= $2 ORDER BY number`

func (t *unitTail) scan(r *row) {
	e, _ := scanEntry(r) // CheckNewest finds one that was tampered with by its hash
	t.entries = append(t.entries, e)
}

// checkTails checks the ends of journals. One that does not go on from where it was found whole stops its own changes, as long as that
// is so.
func (u *unit) checkTails() {
	for owner, tail := range u.tails {
		if tail.err == nil {
			_, tail.err = u.loadedEnd(owner).CheckNewest(u.macKeys, tail.from, tail.wholeTo, slices.Values(tail.entries))
		}
		if tail.err == nil {
			tail.err = tail.through.check(owner, u.loadedEnd(owner).Number, tail.isThrough)
		}
		if tail.err == nil {
			tail.err = u.checkListed(owner, tail.entries)
		}
		if tail.err != nil && !isLongTail(tail.err) {
			u.cached.distrust(owner)
		}
	}
}

// checkListed fails with [ledger.ErrTampered] if the entries about a subject that were looked for leave out one of a journal's end.
func (u *unit) checkListed(owner string, end []ledger.Entry) error {
	listings := map[string]ledger.Listing{}
	for _, e := range end {
		about, isRead := u.entries[entriesOf{owner, e.Subject}]
		if !isRead {
			continue
		}
		l, known := listings[e.Subject]
		if !known {
			l = ledger.ListingAbout(e.Subject, about.list)
			listings[e.Subject] = l
		}
		if err := l.Check(e); err != nil {
			return err
		}
	}
	return nil
}

// debits are the types of entries that take money from a seller for good, and of their events, as the index events_of_debits has them.
const debits = `('sale.refunded', 'balance.adjusted', 'payout.completed')`

// lacksCheckpoint is a condition that c is what the newest checkpoint has of a journal, and that the journal lacks that entry. A checkpoint
// has no hash of a journal that could not be followed then.
const lacksCheckpoint = `c.checkpoint = (SELECT MAX(m.checkpoint) FROM checkpoint_journals m WHERE m.seller_id = c.seller_id AND m.hash <> '')
	AND NOT EXISTS (SELECT 1 FROM entries e JOIN journals h ON h.owner = e.owner WHERE e.owner = c.seller_id AND e.number = c.number AND e.hash = c.hash
		AND e.number <= h.number)`

// entriesKnownElsewhere finds what else in the database knows entries that journals of some owners lack, or that are behind their ends: their newest checkpoint, the newest
// payout that is completed, and the newest event of a refund, an adjustment or a completed payout. An attacker may have cut off the end of a journal, with the
// totals put back to the entry that is the last then.
func entriesKnownElsewhere(d dialect, owners []string) (query string, args []any) {
	checkpointed, args := d.oneOf(nil, owners)
	paid, args := d.oneOf(args, owners)
	debited, args := d.oneOf(args, owners)
	return `SELECT c.seller_id, 'a checkpoint has entry ' || c.number FROM checkpoint_journals c WHERE c.seller_id ` + checkpointed + ` AND ` + lacksCheckpoint + `
		UNION ALL SELECT p.seller_id, 'payout ' || p.id || ' is completed' FROM payouts p WHERE p.id IN (
				SELECT (SELECT q.id FROM payouts q WHERE q.seller_id = j.owner AND q.status = 'completed'
					ORDER BY q.` + d.historyOrder + ` DESC LIMIT 1) FROM journals j WHERE j.owner ` + paid + `)
			AND NOT EXISTS (SELECT 1 FROM entries e JOIN journals h ON h.owner = e.owner WHERE e.subject = p.id AND e.owner >= p.seller_id
				AND e.owner <= p.seller_id AND e.number <= h.number)
		UNION ALL SELECT v.owner, 'event ' || v.id || ' is of entry ' || v.entry FROM events v WHERE v.owner ` + debited + ` AND v.type IN ` + debits + `
			AND v.entry = (SELECT MAX(w.entry) FROM events w WHERE w.owner = v.owner AND w.type IN ` + debits + `)
			AND NOT EXISTS (SELECT 1 FROM entries e JOIN journals h ON h.owner = e.owner WHERE e.owner = v.owner AND e.number = v.entry
				AND e.type = v.type AND e.number <= h.number)`, args
}

// endCutOff says that entries are missing of a journal that can be followed to its end.
func endCutOff(owner, by string) error {
	return ledger.ErrTampered.Because(fmt.Errorf("%s, of which the journal of %s knows nothing: its end was cut off, or the row was not written by the service", by, owner))
}

func (u *unit) scanKnownElsewhere(r *row) {
	var owner, by string
	r.Scan(&owner, &by)
	if tail := u.tails[owner]; tail != nil {
		tail.err = errors.Join(tail.err, endCutOff(owner, by))
	}
}

// keepTails caches what the unit has read and written of journals, once it is committed.
func (u *unit) keepTails() {
	written := map[string][]ledger.Entry{}
	for _, e := range u.writes.entries {
		written[e.Owner] = append(written[e.Owner], e)
	}
	for owner, tail := range u.tails {
		if tail.err == nil && u.journals[owner] != nil {
			u.cached.whole(u.journals[owner].now)
			u.cached.keep(tail.wholeTo, slices.Concat(tail.entries, written[owner]), u.journals[owner].now)
			delete(written, owner)
		}
	}
	for owner, entries := range written {
		j := u.journals[owner]
		u.cached.wrote(j.loaded, j.now)
		if j.loaded.Number > 0 {
			u.cached.keep(j.loaded, entries, j.now)
		}
	}
}
