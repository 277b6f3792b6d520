package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// signer holds the keys that entries are authenticated with. They are set once, after the datastore was opened,
// because the key set may lie in the database.
type signer struct{ keys atomic.Pointer[ledger.Keys] }

var errNoKeys = errors.New("store: the keys of the journal are not set")

func (s *signer) get() (ledger.Keys, error) {
	if keys := s.keys.Load(); keys != nil {
		return *keys, nil
	}
	return nil, errNoKeys
}

// UseKeys sets the keys that the journal's entries are authenticated with. Nothing is appended before.
func (db *DB) UseKeys(keys ledger.Keys) { db.signer.keys.Store(&keys) }

// balanceFields are an owner's totals.
var balanceFields = fields[ledger.Balance]{
	asNumber("pending", mutable, func(b *ledger.Balance) *money.Amount { return &b.Pending }),
	asNumber("available", mutable, func(b *ledger.Balance) *money.Amount { return &b.Available }),
	asNumber("in_transit", mutable, func(b *ledger.Balance) *money.Amount { return &b.InTransit }),
	asNumber("earned", mutable, func(b *ledger.Balance) *money.Amount { return &b.Earned }),
	asNumber("withdrawn", mutable, func(b *ledger.Balance) *money.Amount { return &b.Withdrawn }),
	asNumber("sales", mutable, func(b *ledger.Balance) *int64 { return &b.Counts.Sales }),
	asNumber("processing", mutable, func(b *ledger.Balance) *int64 { return &b.Counts.Processing }),
	asNumber("completed", mutable, func(b *ledger.Balance) *int64 { return &b.Counts.Completed }),
	asNumber("failed", mutable, func(b *ledger.Balance) *int64 { return &b.Counts.Failed }),
	asNumber("cancelled", mutable, func(b *ledger.Balance) *int64 { return &b.Counts.Cancelled }),
	rare(asNumber("hold_until", mutable, func(b *ledger.Balance) *int64 { return &b.HoldUntil })),
	rare(asFlag("frozen", mutable, func(b *ledger.Balance) *bool { return &b.Frozen })),
}

// headFields are the columns of a journal's head.
var headFields = append(fields[ledger.Head]{
	asText("owner", primaryKey, func(h *ledger.Head) *string { return &h.Owner }),
	asNumber("number", mutable, func(h *ledger.Head) *int64 { return &h.Number }),
	asText("hash", mutable, func(h *ledger.Head) *ledger.Hash { return &h.Hash }),
	asText("mac", mutable, func(h *ledger.Head) *string { return &h.MAC }),
}, within(func(h *ledger.Head) *ledger.Balance { return &h.Balance }, balanceFields)...)

var journalTable = &table[headUpdate]{
	name: "journals", texts: &sync.Map{},
	columns: within(func(m *headUpdate) *ledger.Head { return &m.Head }, headFields,
		asNumber("number", expected, func(m *headUpdate) *int64 { return &m.from })),
}

var (
	balanceColumns = balanceFields.names("")
	headColumns    = headFields.names("")
	selectHead     = `SELECT ` + headColumns + ` FROM journals WHERE owner = $1`
)

// entryFields are those of an entry's row. scanEntry reads the totals after it, which may be no totals.
var entryFields = fields[ledger.Entry]{
	asText("owner", primaryKey, func(e *ledger.Entry) *string { return &e.Owner }),
	asNumber("number", primaryKey, func(e *ledger.Entry) *int64 { return &e.Number }),
	asTime("at", insertOnly, func(e *ledger.Entry) *time.Time { return &e.At }),
	asText("type", insertOnly, func(e *ledger.Entry) *ledger.Type { return &e.Type }),
	asText("subject", insertOnly, func(e *ledger.Entry) *string { return &e.Subject }),
	asText("actor", insertOnly, func(e *ledger.Entry) *string { return &e.Actor }),
	asText("data", insertOnly, func(e *ledger.Entry) *string { return &e.Data }),
	rare(asNumber("pending", insertOnly, func(e *ledger.Entry) *money.Amount { return &e.Moved.Pending })),
	asNumber("available", insertOnly, func(e *ledger.Entry) *money.Amount { return &e.Moved.Available }),
	asNumber("in_transit", insertOnly, func(e *ledger.Entry) *money.Amount { return &e.Moved.InTransit }),
	rare(asNumber("sales", insertOnly, func(e *ledger.Entry) *money.Amount { return &e.Moved.Sales })),
	rare(asNumber("gateway", insertOnly, func(e *ledger.Entry) *money.Amount { return &e.Moved.Gateway })),
	rare(asNumber("fees", insertOnly, func(e *ledger.Entry) *money.Amount { return &e.Moved.Fees })),
	{name: "after", isText: true, role: insertOnly, value: func(e *ledger.Entry) any { return e.After.Text() }},
	asText("hash", insertOnly, func(e *ledger.Entry) *ledger.Hash { return &e.Hash }),
	asText("mac", insertOnly, func(e *ledger.Entry) *string { return &e.MAC }),
}

var entryTable = &table[ledger.Entry]{
	name: "entries", texts: &sync.Map{},
	columns: entryFields,
}

// head finds where an owner's journal stands, and keeps others from appending to it until the transaction ends. An
// owner without entries has a new head, which is not stored yet.
func (tx *Tx) head(ctx context.Context, owner string) (ledger.Head, error) {
	var head ledger.Head
	found, err := tx.one(ctx, selectHead+tx.dialect.forUpdate("journals"), []any{owner}, headFields.dest(&head)...)
	switch {
	case err != nil:
	case found && tx.absent[owner]: // what was decided without a journal is stale
		err = errFirstEntryRaced
	case !found:
		head = ledger.NewHead(owner)
		if tx.absent == nil {
			tx.absent = map[string]bool{}
		}
		tx.absent[owner] = true
	}
	return head, err
}

// Append adds an entry to its owner's journal, and moves the owner's totals with it.
func (tx *Tx) Append(ctx context.Context, p ledger.Posting) (ledger.Entry, error) {
	keys, err := tx.signer.get()
	if err != nil {
		return ledger.Entry{}, err
	}
	before, err := tx.head(ctx, p.Owner)
	if err != nil {
		return ledger.Entry{}, err
	}
	after, e, err := before.Post(keys, p)
	if err != nil {
		return ledger.Entry{}, err
	}
	update := headUpdate{after, before.Number}
	writes := journalTable.updates
	if before.Number == 0 {
		writes = journalTable.insertsMissing
	}
	saved, err := tx.write(ctx, writes(tx.dialect, []headUpdate{update}))
	if err != nil {
		return ledger.Entry{}, err
	}
	if !saved { // another transaction has just made the first entry, which no lock could prevent
		return ledger.Entry{}, errFirstEntryRaced
	}
	delete(tx.absent, p.Owner)
	added, err := tx.write(ctx, entryTable.insertsMissing(tx.dialect, []ledger.Entry{e}))
	if err == nil && !added { // the journal's row is locked, so no other transaction has added it
		err = tx.fail(entryTaken(e))
	}
	if err == nil {
		err = tx.queueEvents(ctx, event.Of(e))
	}
	if err == nil {
		tx.appended = append(tx.appended, unitJournal{before, after})
		tx.reads.append(e)
	}
	return e, err
}

// write runs statements, and reports whether each changed as many rows as it must.
func (tx *Tx) write(ctx context.Context, writes []write) (bool, error) {
	for _, w := range writes {
		n, err := tx.exec(ctx, w.sql, w.args...)
		if err != nil || n != w.rows && w.rows != anyRows {
			return false, err
		}
	}
	return true, nil
}

// errFirstEntryRaced undoes a transaction that is to be tried again.
var errFirstEntryRaced = errors.New("another transaction has made the first entry of this journal")

var entryColumns = entryFields.names("") + `, after`

// entryTaken says that there is an entry already where a journal is to be continued: its row was put back to an older state.
func entryTaken(e ledger.Entry) error {
	return ledger.ErrTampered.Because(fmt.Errorf("the balance of %s is that after entry %d, and there is an entry %d", e.Owner, e.Number-1, e.Number))
}

// scanEntry reads entryColumns, and what more the query selects. tampered says, as an error, that the service did not write the
// entry. A row that can't be read says nothing of that.
func scanEntry(r *row, more ...any) (e ledger.Entry, tampered error) {
	var after string
	r.Scan(append(entryFields.dest(&e, &after), more...)...)
	if r.err != nil {
		return e, nil //nolint:nilerr // the row keeps that error
	}
	var err error
	if e.After, err = ledger.ParseBalance(after); err != nil { // the service writes none that can't be read
		tampered = ledger.ErrTampered.Because(fmt.Errorf("entry %d of %s: %w", e.Number, e.Owner, err))
	}
	return e, tampered
}

// entriesAboutColumns is entries with the hash of the one before; entriesAbout is those of one subject in one journal. The
// owner is compared as an expression, because SQLite would rather read the owner's whole journal than the index of subjects.
var (
	entriesAboutColumns = `SELECT ` + entryFields.names("e.") + `, e.after, COALESCE(b.hash, '') FROM entries e
		LEFT JOIN entries b ON b.owner = e.owner AND b.number = e.number - 1`
	entriesAbout = entriesAboutColumns + ` WHERE e.subject = $1 AND e.owner >= $2 AND e.owner <= $2 ORDER BY e.number`
)

// scanCheckedEntry is scanEntry of a row of entriesAboutColumns, and checks the entry's MAC.
func scanCheckedEntry(r *row, keys ledger.Keys) (e ledger.Entry, tampered error) {
	var before ledger.Hash
	if e, tampered = scanEntry(r, &before); tampered != nil || r.err != nil {
		return e, tampered
	}
	if e.Before = before; e.Number == 1 {
		e.Before = ledger.FirstHash(e.Owner)
	}
	return e, e.Check(keys)
}

// checkedEntries collects entries, and fails with [ledger.ErrTampered] unless the service wrote all of them.
func (s *signer) checkedEntries(ctx context.Context, read queryFunc, query string, args ...any) ([]ledger.Entry, error) {
	keys, err := s.get()
	if err != nil {
		return nil, err
	}
	var entries []ledger.Entry
	var tampered error
	err = read(ctx, query, args, func(r *row) {
		e, broken := scanCheckedEntry(r, keys)
		tampered = errors.Join(tampered, broken)
		entries = append(entries, e)
	})
	return entries, errors.Join(err, tampered)
}

// EntriesAbout lists what the owner's journal says of a subject, oldest first. It fails with [ledger.ErrTampered] if
// the service did not write all of it.
func (db *DB) EntriesAbout(ctx context.Context, owner, subject string) ([]ledger.Entry, error) {
	return db.signer.checkedEntries(ctx, db.query, entriesAbout, subject, owner)
}

// EntriesAbout is [DB.EntriesAbout] as the transaction sees it.
func (tx *Tx) EntriesAbout(ctx context.Context, owner, subject string) ([]ledger.Entry, error) {
	upTo, err := tx.listsUpTo(ctx, owner)
	if err != nil {
		return nil, err
	}
	entries, err := tx.signer.checkedEntries(ctx, tx.each, entriesAbout, subject, owner)
	if err == nil {
		err = tx.reads.list(owner, journalListing{ledger.ListingAbout(subject, entries), upTo})
	}
	return entries, err
}

// WrittenWith reports whether the service wrote one of some journals with these keys, and whether there are any.
func (db *DB) WrittenWith(ctx context.Context, keys ledger.Keys) (written, hasJournals bool, err error) {
	err = db.query(ctx, `SELECT `+headColumns+` FROM journals LIMIT 20`, nil, func(r *row) {
		var head ledger.Head
		r.Scan(headFields.dest(&head)...)
		hasJournals = true
		written = written || head.Check(keys) == nil
	})
	return written, hasJournals, err
}

var accountsAdded = entriesAboutColumns + ` WHERE e.owner = $1 AND e.type = 'bank_account.added' AND e.number < $2 ORDER BY e.number DESC LIMIT $3 + 0`

// AccountsAdded lists the entries numbered below before that added an owner's bank accounts, newest first, up to limit. It fails with
// [ledger.ErrTampered] if the service did not write all of them.
func (db *DB) AccountsAdded(ctx context.Context, owner string, before int64, limit int) ([]ledger.Entry, error) {
	return db.signer.checkedEntries(ctx, db.query, accountsAdded, owner, before, limit)
}

// AccountsAdded is [DB.AccountsAdded] of all accounts, as the transaction sees it.
func (tx *Tx) AccountsAdded(ctx context.Context, owner string, limit int) ([]ledger.Entry, error) {
	upTo, err := tx.listsUpTo(ctx, owner)
	if err != nil {
		return nil, err
	}
	entries, err := tx.signer.checkedEntries(ctx, tx.each, accountsAdded, owner, math.MaxInt64, limit)
	if err == nil {
		err = tx.reads.list(owner, journalListing{ledger.ListingOf(ledger.BankAccountAdded, entries, limit), upTo})
	}
	return entries, err
}

// entriesAboutPage is a page of entriesAbout, newest first.
var entriesAboutPage = entriesAboutColumns + ` WHERE e.subject = $1 AND e.owner >= $2 AND e.owner <= $2 AND e.number < $3 ORDER BY e.number DESC LIMIT $4 + 0`

// EntriesAboutBefore lists what the owner's journal says of a subject, numbered below before, newest first, up to limit;
// before 0 begins at the newest. It fails with [ledger.ErrTampered] if the service did not write all of it.
func (db *DB) EntriesAboutBefore(ctx context.Context, owner, subject string, before int64, limit int) ([]ledger.Entry, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return db.signer.checkedEntries(ctx, db.query, entriesAboutPage, subject, owner, before, limit)
}

// CheckJournal fails with [ledger.ErrTampered] unless the owner's totals are those that the service wrote, and every
// entry from a number up to the last one is there as the service wrote it. So no entry of what is about to be paid can
// have been taken away, or made one about something else.
func (tx *Tx) CheckJournal(ctx context.Context, owner string, from int64) error {
	head, err := tx.checkFrom(ctx, owner, from, ledger.Head{})
	if err != nil {
		return err
	}
	return tx.checkEnds(ctx, head, tx.tails.end(owner))
}

// checkEnds fails with [ledger.ErrTampered] if the end of a journal was cut off, by the place that the process knows and by what else in the
// database knows of later entries.
func (tx *Tx) checkEnds(ctx context.Context, head ledger.Head, known journalEnd) error {
	if err := tx.checkEnd(ctx, head, known); err != nil {
		return err
	}
	query, args := entriesKnownElsewhere(tx.dialect, []string{head.Owner})
	var tampered error // not the statement's, after which the transaction could record nothing of it
	err := tx.each(ctx, query, args, func(r *row) {
		var owner, by string
		r.Scan(&owner, &by)
		tampered = errors.Join(tampered, endCutOff(owner, by))
	})
	return cmp.Or(err, tampered)
}

// checkEnd is check of the journal's known end.
func (tx *Tx) checkEnd(ctx context.Context, head ledger.Head, end journalEnd) error {
	if end.number == 0 || end == endOf(head) {
		return nil
	}
	var there ledger.Hash
	if _, err := tx.one(ctx, entryAt, []any{head.Owner, end.number}, &there); err != nil {
		return err
	}
	return end.check(head.Owner, head.Number, there)
}

// CheckJournalAfter is [Tx.CheckJournal] from where the journal was found whole.
func (tx *Tx) CheckJournalAfter(ctx context.Context, owner string, whole ledger.Head) error {
	_, err := tx.checkFrom(ctx, owner, whole.Number, whole)
	return err
}

func (tx *Tx) checkFrom(ctx context.Context, owner string, from int64, known ledger.Head) (ledger.Head, error) {
	head, err := tx.head(ctx, owner)
	if err != nil {
		return head, err
	}
	_, err = tx.signer.checkNewest(head, from, known, math.MaxInt64, pagesOf(ctx, tx.each, owner), tx.reads.walk)
	return head, err
}

// pageFunc reads a page of a journal's entries behind a number.
type pageFunc func(after int64, scan func(*row)) error

// pagesOf reads the entries of an owner's journal.
func pagesOf(ctx context.Context, read queryFunc, owner string) pageFunc {
	return func(after int64, scan func(*row)) error {
		return read(ctx, entriesFrom, []any{owner, after, auditPage}, scan)
	}
}

// JournalEnd is the number of the owner's last entry. The journal stays as it is until the transaction ends.
func (tx *Tx) JournalEnd(ctx context.Context, owner string) (int64, error) {
	head, err := tx.head(ctx, owner)
	return head.Number, err
}

// CheckJournalFrom is [Tx.CheckJournal] outside of a transaction. It returns how the journal stood, and which of the entries that it
// read are about each of some subjects.
func (db *DB) CheckJournalFrom(ctx context.Context, owner string, from int64, subjects []string) (ledger.Head, map[string][]ledger.Entry, error) {
	head, err := db.head(ctx, owner)
	if err != nil {
		return ledger.Head{}, nil, err
	}
	about := make(map[string][]ledger.Entry, len(subjects))
	for _, s := range subjects {
		about[s] = nil
	}
	at, err := db.signer.checkNewest(head, from, ledger.Head{}, head.Number, pagesOf(ctx, db.query, owner), func(e ledger.Entry) error {
		if list, isAsked := about[e.Subject]; isAsked {
			about[e.Subject] = append(list, e)
		}
		return nil
	})
	return at, about, err
}

// maxTailEntries bounds how far back [DB.CheckNewest] and [Tx.CheckNewest] look: a journal of years would take long to read.
const maxTailEntries = 10_000

// beforeReach is the number of the newest entry that is too old to be checked.
func beforeReach(head ledger.Head) int64 { return max(0, head.Number-maxTailEntries) }

// CheckNewest is [Tx.CheckJournal] of the newest entries, where there may be none.
func (tx *Tx) CheckNewest(ctx context.Context, owner string) error {
	head, err := tx.head(ctx, owner)
	if err != nil {
		return err
	}
	return tx.checkNewest(ctx, owner, head)
}

func (tx *Tx) checkNewest(ctx context.Context, owner string, head ledger.Head) error {
	_, err := tx.signer.checkNewest(head, beforeReach(head), ledger.Head{}, math.MaxInt64, pagesOf(ctx, tx.each, owner), tx.reads.walk)
	if errors.Is(err, ledger.ErrTampered) && tx.absent[owner] { // there was no row to lock, and another transaction may have made it since
		if _, raced := tx.head(ctx, owner); raced != nil {
			return raced
		}
	}
	return err
}

// head is where an owner's journal stands. One without entries is not stored.
func (db *DB) head(ctx context.Context, owner string) (ledger.Head, error) {
	head := ledger.NewHead(owner)
	err := db.queryOne(ctx, selectHead, []any{owner}, headFields.dest(&head)...)
	return head, err
}

// checkNewest reads the end of a journal in pages, up to an entry, and checks it; also checks each entry too, and may be nil.
func (s *signer) checkNewest(
	head ledger.Head, from int64, known ledger.Head, upTo int64, read pageFunc, also func(ledger.Entry) error,
) (ledger.Head, error) {
	keys, err := s.get()
	if err != nil {
		return known, err
	}
	var failed, hidden error
	at, err := head.CheckNewest(keys, from, known, func(yield func(ledger.Entry) bool) {
		for after := max(known.Number, from-1); ; {
			var page []ledger.Entry
			failed = read(after, func(r *row) {
				e, _ := scanEntry(r) // the hash of one that was tampered with says so as well
				page = append(page, e)
			})
			for _, e := range page {
				if failed != nil || e.Number > upTo || !yield(e) {
					return
				}
				if also != nil {
					hidden = errors.Join(hidden, also(e))
				}
				after = e.Number
			}
			if failed != nil || len(page) < auditPage {
				return
			}
		}
	})
	return at, cmp.Or(failed, err, hidden)
}

// entryPlace is where an entry stands.
type entryPlace struct {
	owner  string
	number int64
}

// Balance is the owner's totals, which stay as they are until the transaction ends; zero for an owner without a journal.
func (tx *Tx) Balance(ctx context.Context, owner string) (ledger.Balance, error) {
	head, err := tx.head(ctx, owner)
	return head.Balance, err
}

// newestOfType compares the owner as entriesAbout does, so that PostgreSQL does not walk through the whole journal.
const newestOfType = `SELECT at FROM entries WHERE subject = $1 AND owner >= $2 AND owner <= $2 AND type = $3 ORDER BY number DESC LIMIT 1`

// NewestOfType is when the newest entry of a type about a subject was made; zero if there is none.
func (tx *Tx) NewestOfType(ctx context.Context, owner, subject string, t ledger.Type) (at time.Time, err error) {
	_, err = tx.one(ctx, newestOfType, []any{subject, owner, string(t)}, instant{&at})
	return at, err
}

// tookBelow finds the newest entry before which at least so much was available, among the newest entries. moved is what an
// entry and all after it have moved, so the balance before the entry is what is available now less that.
const tookBelow = `SELECT at FROM (
		SELECT at, number, SUM(available) OVER (ORDER BY number DESC) AS moved FROM (
			SELECT at, number, available FROM entries WHERE owner = $1 ORDER BY number DESC LIMIT $4 + 0) AS newest) AS e
	WHERE CAST($2 AS BIGINT) - moved >= $3 ORDER BY number DESC LIMIT 1`

// BelowSince is when the available balance of an owner fell below an amount, for an owner who has less than that now. It is zero
// if the owner never had as much, or fell below it too many entries ago.
func (tx *Tx) BelowSince(ctx context.Context, owner string, amount money.Amount) (at time.Time, err error) {
	head, err := tx.head(ctx, owner)
	if err != nil {
		return time.Time{}, err
	}
	_, err = tx.one(ctx, tookBelow, []any{owner, int64(head.Balance.Available), int64(amount), maxTailEntries}, instant{&at})
	return at, err
}

var entriesPage = `SELECT ` + entryColumns + ` FROM entries WHERE owner = $1 AND number < $2 ORDER BY number DESC LIMIT $3 + 0`

// Entries lists an owner's entries numbered below before, newest first; before 0 begins at the newest.
func (db *DB) Entries(ctx context.Context, owner string, before int64, limit int) ([]ledger.Entry, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return db.entries(ctx, entriesPage, owner, before, limit)
}

// checkedPage is entriesPage with what checking an entry takes.
var checkedPage = entriesAboutColumns + ` WHERE e.owner = $1 AND e.number < $2 ORDER BY e.number DESC LIMIT $3 + 0`

// CheckedEntries is [DB.Entries] with each entry checked. At the first that the service did not write, it fails with
// [ledger.ErrTampered], and that entry is the last of the list.
func (db *DB) CheckedEntries(ctx context.Context, owner string, before int64, limit int) ([]ledger.Entry, error) {
	keys, err := db.signer.get()
	if err != nil {
		return nil, err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	var entries []ledger.Entry
	var tampered error
	err = db.query(ctx, checkedPage, []any{owner, before, limit}, func(r *row) {
		if tampered == nil {
			var e ledger.Entry
			e, tampered = scanCheckedEntry(r, keys)
			entries = append(entries, e)
		}
	})
	return entries, errors.Join(err, tampered)
}

var entriesFrom = `SELECT ` + entryColumns + ` FROM entries WHERE owner = $1 AND number > $2 ORDER BY number LIMIT $3 + 0`

// EntriesAfter lists an owner's entries above a number, in order, up to limit.
func (db *DB) EntriesAfter(ctx context.Context, owner string, number int64, limit int) ([]ledger.Entry, error) {
	return db.entries(ctx, entriesFrom, owner, number, limit)
}

func (db *DB) entries(ctx context.Context, query string, args ...any) ([]ledger.Entry, error) {
	var entries []ledger.Entry
	err := db.query(ctx, query, args, func(r *row) {
		e, tampered := scanEntry(r)
		r.fail(tampered)
		entries = append(entries, e)
	})
	return entries, err
}

// Period finds an owner's entries of a period among the first so many: from the first one that is not before it, to the one before
// the first that is after it. Times in a journal go back where clocks differ; periods that adjoin share no entry all the same.
// A period without entries ends before it begins: last is first - 1.
func (db *DB) Period(ctx context.Context, owner string, among int64, from, to time.Time) (first, last int64, err error) {
	var next int64
	err = db.queryOne(ctx, `SELECT COALESCE(MIN(CASE WHEN at >= $3 THEN number END), MAX(number) + 1, 1), COALESCE(MIN(CASE WHEN at >= $4 THEN number END), MAX(number) + 1, 1)
		FROM entries WHERE owner = $1 AND number <= $2`, []any{owner, among, micros(from), micros(to)}, &first, &next)
	return first, max(next, first) - 1, err
}

// areDecisions finds the entries of decisions, as the index entries_decided has it.
const areDecisions = `type IN ('admin.decided', 'payouts.frozen', 'payouts.unfrozen', 'balance.adjusted')`

// Decisions lists what was decided about a subject, or about everything where it is "", newest first.
func (db *DB) Decisions(ctx context.Context, subject string, limit int) ([]decision.Decision, error) {
	query, args := `SELECT `+entryColumns+` FROM entries WHERE `+areDecisions+` ORDER BY at DESC, owner DESC, number DESC LIMIT $1 + 0`, []any{limit}
	if subject != "" {
		query = `SELECT ` + entryColumns + ` FROM entries WHERE ` + areDecisions + ` AND subject = $2 ORDER BY at DESC, owner DESC, number DESC LIMIT $1 + 0`
		args = append(args, subject)
	}
	entries, err := db.entries(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var all []decision.Decision
	for _, e := range entries {
		if d, err := ledger.DecisionOf(e); err == nil { // else it was changed outside Bursar, as the audit says; the others are shown all the same
			all = append(all, d)
		}
	}
	return all, nil
}
