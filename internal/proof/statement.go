package proof

import (
	"context"
	"errors"
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

// Statement is a seller's transfers of a period, and how they lead to a checkpoint. What a checkpoint does not
// hold yet is in no statement.
type Statement struct {
	Summary
	seal  seal
	start start
	// before is the last transfer before the period. It shows that the period begins where the lines do, and
	// its standing is the opening one.
	before *line
	// lines writes the lines themselves, and what leads from them to the checkpoint.
	lines func(w writer) error
}

// Summary is what a statement says at the top.
type Summary struct {
	Seller   string
	Currency money.Currency
	// The period is from From on, and before To.
	From, To         time.Time
	Opening, Closing ledger.Standing
	// Transfers is how many lines there are.
	Transfers int64
}

// line is a transfer, what it left in the accounts, and the head of the chain after it.
type line struct {
	ledger.Entry
	After ledger.Standing
	Hash  ledger.Hash
}

// start is the chain before the first line that is told.
type start struct {
	Number int64
	Hash   ledger.Hash
}

// seal is a book in a checkpoint.
type seal struct {
	Transfers  int64
	Head       ledger.Hash
	Index      int64
	Path       []string
	Checkpoint Checkpoint
	Key        Key
}

// writer writes a statement, in this order.
type writer interface {
	begin(Summary) error
	line(line) error
	proof(s start, before, after *line) error
	// later is the hash of an entry that is not told.
	later(ledger.Hash) error
	end(seal) error
}

func newWriter(f Format, w io.Writer, c money.Currency) writer {
	if f == CSV {
		return newCSVWriter(w, c)
	}
	return newJSONWriter(w, c)
}

// Write writes the statement. It reads the transfers on the way, a page at a time.
func (s *Statement) Write(w io.Writer, f Format) error {
	out := newWriter(f, w, s.Currency)
	if err := out.begin(s.Summary); err != nil {
		return err
	}
	if err := s.lines(out); err != nil {
		return err
	}
	return out.end(s.seal)
}

// ErrNoBook means that there is nothing to make a statement of.
var ErrNoBook = fault.New(fault.NotFound, "no_book", "Nothing was ever booked for this seller.")

// Statement makes a seller's statement of a period. If the newest transfers are in no checkpoint yet, one is
// made for them, unless the last one was made just now: then the statement ends with that.
func (s *Service) Statement(ctx context.Context, seller string, from, to time.Time) (*Statement, error) {
	c, key, book, err := s.sealed(ctx, seller)
	if err != nil {
		return nil, err
	}
	index, path, err := s.place(ctx, c, seller)
	if err != nil {
		return nil, err
	}
	first, last, err := s.o.Store.Period(ctx, seller, book.Number, from, to)
	if err != nil {
		return nil, err
	}
	last = max(last, first-1) // no transfer is in the period
	w := walk{store: s.o.Store, seller: seller, checkpoint: c.Number}
	begin, err := w.chainAt(ctx, max(0, first-2))
	if err != nil {
		return nil, err
	}
	closing, err := w.chainAt(ctx, last)
	if err != nil {
		return nil, err
	}
	st := &Statement{
		Summary: Summary{
			Seller: seller, Currency: s.o.Currency, From: from, To: to, Closing: closing.Standing, Transfers: last - first + 1,
		},
		start: start{begin.Number, begin.Head},
		seal:  seal{Transfers: book.Number, Head: book.Head, Index: index, Checkpoint: c, Key: key},
	}
	for _, other := range path {
		st.seal.Path = append(st.seal.Path, other.String())
	}
	if first > 1 {
		if st.before, err = w.lineAfter(ctx, begin); err != nil {
			return nil, err
		}
		begin = ledger.Chain{Number: st.before.Number, Standing: st.before.After, Head: st.before.Hash}
	}
	st.Opening = begin.Standing
	st.lines = func(out writer) error { return w.write(ctx, out, st, begin, last) }
	return st, nil
}

// walk goes along a seller's chain.
type walk struct {
	store      Store
	seller     string
	checkpoint int64
}

// along hands on each transfer after a chain, up to a number, with the hash of its entry. Where a checkpoint
// has the chain, the walk goes on from what that has: if the transfers do not lead there, the line says so.
func (w walk) along(ctx context.Context, c ledger.Chain, upTo int64, yield func(line, ledger.Hash) error) error {
	for c.Number < upTo {
		entries, err := w.store.EntriesAfter(ctx, w.seller, c.Number, int(min(entriesPage, upTo-c.Number)))
		if err != nil || len(entries) == 0 {
			return err
		}
		sealed, err := w.store.SealedBetween(ctx, w.checkpoint, w.seller, c.Number, entries[len(entries)-1].Number)
		if err != nil {
			return err
		}
		for _, e := range entries {
			c = c.Add(e.At, e.Transfer)
			c.Number = e.Number
			hash := c.EntryHash(e.At, e.Transfer)
			for len(sealed) > 0 && sealed[0].Number <= c.Number {
				if sealed[0].Number == c.Number {
					c = sealed[0]
				}
				sealed = sealed[1:]
			}
			if err := yield(line{e, c.Standing, c.Head}, hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// chainAt is the chain as it was after so many transfers.
func (w walk) chainAt(ctx context.Context, number int64) (ledger.Chain, error) {
	c, isSealed, err := w.store.SealedUpTo(ctx, w.checkpoint, w.seller, number)
	if err != nil {
		return c, err
	}
	if !isSealed {
		c = ledger.NewChain(w.seller)
	}
	err = w.along(ctx, c, number, func(l line, _ ledger.Hash) error {
		c = ledger.Chain{Number: l.Number, Standing: l.After, Head: l.Hash}
		return nil
	})
	return c, err
}

// lineAfter is the first one after a chain.
func (w walk) lineAfter(ctx context.Context, c ledger.Chain) (*line, error) {
	next := &line{Entry: ledger.Entry{Number: c.Number}, After: c.Standing, Hash: c.Head}
	err := w.along(ctx, c, c.Number+1, func(l line, _ ledger.Hash) error {
		*next = l
		return nil
	})
	return next, err
}

// write writes the lines up to the last one, and then the way to the checkpoint.
func (w walk) write(ctx context.Context, out writer, st *Statement, c ledger.Chain, last int64) error {
	told := false
	err := w.along(ctx, c, st.seal.Transfers, func(l line, entry ledger.Hash) error {
		switch {
		case l.Number <= last:
			return out.line(l)
		case !told:
			told = true
			return out.proof(st.start, st.before, &l)
		default:
			return out.later(entry)
		}
	})
	if err == nil && !told {
		err = out.proof(st.start, st.before, nil)
	}
	return err
}

// How long a statement waits for a checkpoint that holds its newest transfers.
const (
	patience  = 3 * time.Second
	lookAgain = 100 * time.Millisecond
)

// sealed finds the newest checkpoint and where it has a seller's chain, and has one made first if that is
// worth it.
func (s *Service) sealed(ctx context.Context, seller string) (Checkpoint, Key, ledger.Chain, error) {
	for left := patience; ; {
		c, key, err := s.o.Store.LastCheckpoint(ctx)
		if err != nil {
			return Checkpoint{}, Key{}, ledger.Chain{}, err
		}
		book, err := s.o.Store.Book(ctx, c.Number, seller)
		if err == nil && book.Seller == "" {
			err = ErrNoBook
		}
		if err != nil {
			return Checkpoint{}, Key{}, ledger.Chain{}, err
		}
		if book.isSealed() && book.Sealed.Number >= book.Transfers {
			return c, key, book.Sealed, nil
		}
		rest, err := s.freshen(ctx)
		left -= max(rest, lookAgain)
		if err == nil && left <= 0 && !book.isSealed() {
			err = errNotSealed
		}
		if err != nil || left <= 0 {
			return c, key, book.Sealed, err
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return Checkpoint{}, Key{}, ledger.Chain{}, ctx.Err()
		}
	}
}

// freshen makes a checkpoint, or returns for how long to wait before one may be made.
func (s *Service) freshen(ctx context.Context) (rest time.Duration, err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, err := s.begin(waiting)
	if err != nil && ctx.Err() == nil { // one is being made, and takes long
		return patience, nil
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
		return lookAgain, nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}
