package sale

import (
	"context"
	"errors"
	"slices"

	"bursar/internal/ledger"
)

// journals is what a transaction knows of sellers' journals: whether an entry is missing that could have told that a sale was released
// or refunded.
type journals struct {
	// whole is from which entry on each seller's journal was found whole by this transaction, so that a batch of releases reads it once.
	whole map[string]int64
	// seen is what was read outside of a transaction, by the ids of sales.
	seen map[string]seenJournal
	// long lists the sales that have to be read so first.
	long []longJournal
}

// seenJournal is how a seller's journal stood when it was found whole, from the first entry about a sale on. The entries about that sale
// were read before.
type seenJournal struct {
	entries []ledger.Entry
	at      ledger.Head
	// err is [ledger.ErrTampered] if it was not whole.
	err error
}

// longJournal is a sale whose seller's journal is too long, since the sale was recorded, to be read while others wait.
type longJournal struct {
	sale    Sale
	entries []ledger.Entry
}

// errLongJournal means that nothing was done, because a journal has to be read outside of the transaction first.
var errLongJournal = errors.New("sale: the journal is too long to be read in a transaction")

// maxReadInTx bounds how many entries of a journal a transaction reads.
const maxReadInTx = 2000

// check fails with [ledger.ErrTampered] if an entry of the sale's seller is missing since the first about the sale, and with
// errLongJournal if that can't be told yet.
func (j *journals) check(ctx context.Context, tx Tx, sale Sale, entries []ledger.Entry) error {
	from := entries[0].Number
	if whole, known := j.whole[sale.Seller]; known && whole <= from {
		return nil
	}
	seen, isSeen := j.seen[sale.ID]
	if seen.err != nil {
		return seen.err
	}
	if isSeen && seen.tells(entries) {
		if err := tx.CheckJournalAfter(ctx, sale.Seller, seen.at); !errors.Is(err, ledger.ErrTampered) {
			return err
		} // the datastore may have been restored since
	}
	end, err := tx.JournalEnd(ctx, sale.Seller)
	if err == nil && !isSeen && end-from > maxReadInTx {
		j.long = append(j.long, longJournal{sale, entries})
		return errLongJournal
	}
	if err == nil {
		err = tx.CheckJournal(ctx, sale.Seller, from)
	}
	if err == nil {
		j.whole[sale.Seller] = from
	}
	return err
}

// tells reports whether the entries about the sale are those that were there, and others that came later.
func (s seenJournal) tells(entries []ledger.Entry) bool {
	n := len(s.entries)
	same := func(a, b ledger.Entry) bool { return a.Number == b.Number && a.Hash == b.Hash }
	isLater := func(e ledger.Entry) bool { return e.Number > s.at.Number }
	return len(entries) >= n && slices.EqualFunc(entries[:n], s.entries, same) && !slices.ContainsFunc(entries[n:], func(e ledger.Entry) bool { return !isLater(e) })
}

// inTx runs fn in a transaction. If journals are too long for that, it reads them and runs fn once more.
func (s *Service) inTx(ctx context.Context, fn func(Tx, *journals) error) error {
	seen := map[string]seenJournal{}
	for {
		var long []longJournal
		err := s.o.Store.InTx(ctx, func(tx Tx) error {
			j := journals{whole: map[string]int64{}, seen: seen}
			err := fn(tx, &j)
			long = j.long
			return err
		})
		if err != nil && !errors.Is(err, errLongJournal) || len(long) == 0 || len(seen) > 0 {
			return err
		}
		if err := s.read(ctx, long, seen); err != nil {
			return err
		}
	}
}

// read reads the journals of sales outside of a transaction, each seller's once.
func (s *Service) read(ctx context.Context, long []longJournal, seen map[string]seenJournal) error {
	from := map[string]int64{}
	for _, l := range long {
		first, known := from[l.sale.Seller]
		if n := l.entries[0].Number; !known || n < first {
			from[l.sale.Seller] = n
		}
	}
	for seller, first := range from {
		at, err := s.o.Store.CheckJournalFrom(ctx, seller, first)
		if err != nil && !errors.Is(err, ledger.ErrTampered) {
			return err
		}
		for _, l := range long {
			if l.sale.Seller == seller {
				seen[l.sale.ID] = seenJournal{l.entries, at, err}
			}
		}
	}
	return nil
}
