package sale

import (
	"context"
	"errors"
	"maps"
	"slices"

	"bursar/internal/ledger"
)

// journals is what a transaction knows of sellers' journals: whether an entry is missing that could have told that a sale was released
// or refunded.
type journals struct {
	// checkedFrom is the number of the entry from which on this transaction found each seller's journal complete, so that a batch of
	// releases reads it once.
	checkedFrom map[string]int64
	// readAhead is what was read outside of a transaction, by the ids of sales. It is nil in the first of two transactions.
	readAhead map[string]journalRead
	// tooLong is from which entry on a journal has to be read ahead, by seller, and sales are those that need it.
	tooLong map[string]int64
	sales   []Sale
}

// journalRead is how a seller's journal stood when it was found whole, from the first entry about a sale on, and the entries about that
// sale among those that were read.
type journalRead struct {
	entries []ledger.Entry
	at      ledger.Head
	// err is [ledger.ErrTampered] if it was not whole.
	err error
}

// errLongJournal means that a sale can't be released or refunded, because its seller's journal has to be read outside of the transaction
// first.
var errLongJournal = errors.New("sale: the journal is too long to be read in a transaction")

const (
	// maxReadInTx bounds how many entries of a journal a transaction reads.
	maxReadInTx = 2000
	// maxLong bounds how many longer journals are read for one batch.
	maxLong = 5
)

// check fails with [ledger.ErrTampered] if an entry of the sale's seller is missing since the first about the sale, and with
// errLongJournal if that can't be told yet.
func (j *journals) check(ctx context.Context, tx Tx, sale Sale, entries []ledger.Entry) error {
	from := entries[0].Number
	if checked, known := j.checkedFrom[sale.Seller]; known && checked <= from {
		return nil
	}
	ahead, isRead := j.readAhead[sale.ID]
	if ahead.err != nil {
		return ahead.err
	}
	if isRead && ahead.stillMatches(entries) {
		err := tx.CheckJournalAfter(ctx, sale.Seller, ahead.at)
		if !errors.Is(err, ledger.ErrTampered) { // else the datastore may have been restored since
			return err
		}
	}
	end, err := tx.JournalEnd(ctx, sale.Seller)
	if err == nil && !isRead && end-from > maxReadInTx {
		if first, known := j.tooLong[sale.Seller]; !known || from < first {
			j.tooLong[sale.Seller] = from
		}
		j.sales = append(j.sales, sale)
		return errLongJournal
	}
	if err == nil {
		err = tx.CheckJournal(ctx, sale.Seller, from)
	}
	if err == nil {
		j.checkedFrom[sale.Seller] = from
	}
	return err
}

// stillMatches reports whether the entries about the sale are those that were read ahead, and others that came later.
func (s journalRead) stillMatches(entries []ledger.Entry) bool {
	later := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Number > s.at.Number })
	if later < 0 {
		later = len(entries)
	}
	return slices.EqualFunc(entries[:later], s.entries, func(a, b ledger.Entry) bool { return a.Number == b.Number && a.Hash == b.Hash })
}

// inTx runs fn in a transaction. If fn returns errLongJournal, inTx reads the journals that are too long, and runs fn once more.
func (s *Service) inTx(ctx context.Context, fn func(Tx, *journals) error) error {
	var ahead map[string]journalRead
	for {
		var j journals
		err := s.o.Store.InTx(ctx, func(tx Tx) error {
			j = journals{checkedFrom: map[string]int64{}, readAhead: ahead, tooLong: map[string]int64{}}
			return fn(tx, &j)
		})
		if !errors.Is(err, errLongJournal) || ahead != nil {
			return err
		}
		if ahead, err = s.read(ctx, j); err != nil {
			return err
		}
	}
}

// read reads the journals that are too long, outside of a transaction.
func (s *Service) read(ctx context.Context, j journals) (map[string]journalRead, error) {
	ahead := map[string]journalRead{}
	for _, seller := range slices.Sorted(maps.Keys(j.tooLong)) {
		var subjects []string
		for _, sale := range j.sales {
			if sale.Seller == seller {
				subjects = append(subjects, subject(sale.ID))
			}
		}
		at, about, err := s.o.Store.CheckJournalFrom(ctx, seller, j.tooLong[seller], subjects)
		if err != nil && !errors.Is(err, ledger.ErrTampered) {
			return nil, err
		}
		for _, sale := range j.sales {
			if sale.Seller == seller {
				ahead[sale.ID] = journalRead{about[subject(sale.ID)], at, err}
			}
		}
	}
	return ahead, nil
}
