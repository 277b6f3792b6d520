package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// Format is how a statement is written.
type Format string

// The formats, which tell the same.
const (
	JSON Format = "json"
	CSV  Format = "csv"
)

// Statement is a seller's entries of a period, and the proof that a checkpoint holds them. Entries that no checkpoint
// holds yet are in no statement.
type Statement struct {
	Summary
	inclusion inclusion
	start     start
	// before is the last entry before the period. It shows that the period begins where the lines do, and its totals
	// are the opening ones.
	before *ledger.Entry
	// lines writes the lines themselves, and what leads from them to the checkpoint.
	lines func(w writer) error
	zone  *time.Location
}

// Summary is what a statement says at the top.
type Summary struct {
	Seller   string
	Currency money.Currency
	// The period is from From on, and before To.
	From, To         time.Time
	Opening, Closing ledger.Balances
	// Entries is how many lines there are.
	Entries int64
}

// start is where the journal stands before the first entry that is written.
type start struct {
	Number int64
	Hash   ledger.Hash
}

// inclusion is the proof that a checkpoint holds a journal: where the journal stands, and its path in the tree.
type inclusion struct {
	Number     int64
	Hash       ledger.Hash
	Index      int64
	Path       []string
	Checkpoint Checkpoint
	Key        Key
}

// writer writes a statement, in this order.
type writer interface {
	begin(Summary) error
	line(ledger.Entry) error
	proof(s start, before, after *ledger.Entry) error
	// later writes the own hash of an entry that is not written itself.
	later(ledger.Hash) error
	end(inclusion) error
}

func newWriter(f Format, w io.Writer, c money.Currency) writer {
	if f == CSV {
		return newCSVWriter(w, c)
	}
	return newJSONWriter(w, c)
}

// FileName is the statement's without its ending, with the first and the last day of the period in the marketplace's zone.
func (s *Statement) FileName() string {
	return "statement-" + s.From.In(s.zone).Format(time.DateOnly) + "-to-" + s.To.Add(-time.Microsecond).In(s.zone).Format(time.DateOnly)
}

// Write writes the statement. It reads the entries on the way, a page at a time.
func (s *Statement) Write(w io.Writer, f Format) error {
	out := newWriter(f, w, s.Currency)
	if err := out.begin(s.Summary); err != nil {
		return err
	}
	if err := s.lines(out); err != nil {
		return err
	}
	return out.end(s.inclusion)
}

// ErrNoJournal means that there is nothing to make a statement of.
var ErrNoJournal = fault.New(fault.NotFound, "no_journal", "This seller has no ledger entries.")

// Statement makes a seller's statement of a period. If the newest entries are in no checkpoint yet, one is made for
// them, unless the last one was made just now: then the statement ends with that.
func (s *Service) Statement(ctx context.Context, seller string, from, to time.Time) (*Statement, error) {
	c, key, journal, err := s.checkpointed(ctx, seller)
	if err != nil {
		return nil, err
	}
	index, path, err := s.place(ctx, c, seller)
	if err != nil {
		return nil, err
	}
	first, last, err := s.o.Store.Period(ctx, seller, journal.Number, from, to)
	if err != nil {
		return nil, err
	}
	w := walk{store: s.o.Store, seller: seller, checkpoint: c.Number}
	begin, err := w.headAt(ctx, max(0, first-2))
	if err != nil {
		return nil, err
	}
	closing, err := w.headAt(ctx, last)
	if err != nil {
		return nil, err
	}
	st := &Statement{
		zone: s.o.Zone,
		Summary: Summary{
			Seller: seller, Currency: s.o.Currency, From: from, To: to, Closing: closing.Balances(), Entries: last - first + 1,
		},
		start:     start{begin.Number, begin.Hash},
		inclusion: inclusion{Number: journal.Number, Hash: journal.Hash, Index: index, Checkpoint: c, Key: key},
	}
	for _, other := range path {
		st.inclusion.Path = append(st.inclusion.Path, other.String())
	}
	if first > 1 {
		before, err := w.entryAt(ctx, first-1)
		if err != nil {
			return nil, err
		}
		st.before, begin = &before, headAfter(before)
	}
	st.Opening = begin.Balances()
	st.lines = func(out writer) error { return w.write(ctx, out, st, begin.Number, last) }
	return st, nil
}

// walk goes along a seller's journal.
type walk struct {
	store      Store
	seller     string
	checkpoint int64
}

// along yields each entry above a number and up to another. Where a checkpoint has the journal, the entry gets the hash
// that the checkpoint has: if the entries do not lead there, that line shows it.
func (w walk) along(ctx context.Context, number, upTo int64, yield func(ledger.Entry) error) error {
	for number < upTo {
		entries, err := w.store.EntriesAfter(ctx, w.seller, number, int(min(entriesPage, upTo-number)))
		if err != nil || len(entries) == 0 {
			return err
		}
		checkpointed, err := w.store.CheckpointedBetween(ctx, w.checkpoint, w.seller, number, entries[len(entries)-1].Number)
		if err != nil {
			return err
		}
		for _, e := range entries {
			number = e.Number
			for len(checkpointed) > 0 && checkpointed[0].Number <= number {
				if checkpointed[0].Number == number {
					e.Hash = checkpointed[0].Hash
				}
				checkpointed = checkpointed[1:]
			}
			if err := yield(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// entryAt is the entry with a number.
func (w walk) entryAt(ctx context.Context, number int64) (at ledger.Entry, err error) {
	err = w.along(ctx, number-1, number, func(e ledger.Entry) error {
		at = e
		return nil
	})
	if err == nil && at.Number != number {
		err = fmt.Errorf(`entry %d of %s is not there; run "bursar audit"`, number, w.seller)
	}
	return at, err
}

// headAt is where the journal stood after so many entries.
func (w walk) headAt(ctx context.Context, number int64) (ledger.Head, error) {
	if number == 0 {
		return ledger.NewHead(w.seller), nil
	}
	e, err := w.entryAt(ctx, number)
	return headAfter(e), err
}

func headAfter(e ledger.Entry) ledger.Head {
	return ledger.Head{Owner: e.Owner, Number: e.Number, Hash: e.Hash, Balance: e.After}
}

// write writes the entries above a number and up to the last line, and then what leads from there to the checkpoint.
func (w walk) write(ctx context.Context, out writer, st *Statement, above, last int64) error {
	proven := false
	err := w.along(ctx, above, st.inclusion.Number, func(e ledger.Entry) error {
		switch {
		case e.Number <= last:
			return out.line(e)
		case !proven:
			proven = true
			return out.proof(st.start, st.before, &e)
		default:
			return out.later(e.Own())
		}
	})
	if err == nil && !proven {
		err = out.proof(st.start, st.before, nil)
	}
	return err
}

// How long a statement waits for a checkpoint that holds its newest entries, and how long between two looks.
const (
	timeout   = 3 * time.Second
	pollEvery = 100 * time.Millisecond
)

// checkpointed is the newest checkpoint and where it has a seller's journal. It has a checkpoint made first if the newest
// entries are in none.
func (s *Service) checkpointed(ctx context.Context, seller string) (Checkpoint, Key, ledger.Head, error) {
	for left := timeout; ; {
		c, key, err := s.o.Store.LastCheckpoint(ctx)
		if err != nil {
			return Checkpoint{}, Key{}, ledger.Head{}, err
		}
		journalState, err := s.o.Store.JournalState(ctx, c.Number, seller)
		if err == nil && journalState.Seller == "" {
			err = ErrNoJournal
		}
		if err != nil {
			return Checkpoint{}, Key{}, ledger.Head{}, err
		}
		if journalState.isCheckpointed() && !journalState.Behind && journalState.Checkpointed.Number >= journalState.Now.Number {
			return c, key, journalState.Checkpointed, nil
		}
		if journalState.Behind && left < timeout { // in the newest checkpoint that can be made now, too
			return Checkpoint{}, Key{}, ledger.Head{}, ledger.ErrTampered.Because(
				fmt.Errorf("checkpoint %d left the journal of %s behind at entry %d", c.Number, seller, journalState.Checkpointed.Number))
		}
		rest, err := s.freshen(ctx)
		left -= max(rest, pollEvery)
		switch {
		case err != nil:
		case journalState.Behind:
			continue
		case left <= 0 && !journalState.isCheckpointed():
			err = errNotCheckpointed
		}
		if err != nil || left <= 0 {
			return c, key, journalState.Checkpointed, err
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return Checkpoint{}, Key{}, ledger.Head{}, ctx.Err()
		}
	}
}

// freshen makes a checkpoint, or returns for how long to wait before one may be made.
func (s *Service) freshen(ctx context.Context) (rest time.Duration, err error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end, err := s.begin(waiting)
	if err != nil && ctx.Err() == nil { // one is being made, and takes long
		return timeout, nil
	}
	if err != nil {
		return 0, err
	}
	defer end()
	s.mu.Lock()
	rest = s.restUntil.Sub(s.o.Now())
	s.mu.Unlock()
	if rest > 0 {
		return rest, nil
	}
	if _, err := s.makeInTurn(ctx, Trust{}); errors.Is(err, errBeingMade) {
		return pollEvery, nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}
