package store

import (
	"context"
	"errors"
	"math"
	"slices"

	"bursar/internal/ledger"
)

// crossRead compares two reads of a transaction: what an index lists about a subject, and what the journal itself has of it, read entry by
// entry. An attacker may hide an entry from the first, such as that a sale was released; see [ledger.Listing].
type crossRead struct {
	listings map[string][]journalListing
	// walked are the entries that were read in their places, by owner and number.
	walked map[string]map[int64]ledger.IndexKey
}

// journalListing is a listing of a journal that ended with the entry upTo, or went on from there.
type journalListing struct {
	ledger.Listing
	upTo int64
}

// errListingRaced undoes a transaction that is to be tried again.
var errListingRaced = errors.New("another transaction added an entry about what this one has just listed")

func (l journalListing) check(owner string, k ledger.IndexKey) error {
	err := l.CheckKey(owner, k)
	if err != nil && k.Number > l.upTo {
		return errListingRaced
	}
	return err
}

// listsUpTo is the end of a journal that is about to be listed. On an engine with one writer at a time, no entry comes in between.
func (tx *Tx) listsUpTo(ctx context.Context, owner string) (number int64, err error) {
	if tx.dialect.lastNumber == "" {
		return math.MaxInt64, nil
	}
	_, err = tx.one(ctx, tx.dialect.lastNumber, []any{owner}, &number)
	return number, err
}

// list adds what was listed of an owner's journal.
func (c *crossRead) list(owner string, l journalListing) error {
	for _, key := range c.walked[owner] {
		if err := l.check(owner, key); err != nil {
			return err
		}
	}
	if c.listings == nil {
		c.listings = map[string][]journalListing{}
	}
	c.listings[owner] = append(c.listings[owner], l)
	return nil
}

// walk adds an entry that was read in its place. A listing that leaves it out fails once: other things of the journal may be whole.
func (c *crossRead) walk(e ledger.Entry) (err error) {
	if listings := c.listings[e.Owner]; len(listings) > 0 {
		c.listings[e.Owner] = slices.DeleteFunc(listings, func(l journalListing) bool {
			broken := l.check(e.Owner, e.IndexKey())
			err = errors.Join(err, broken)
			return broken != nil
		})
	}
	if c.walked == nil {
		c.walked = map[string]map[int64]ledger.IndexKey{}
	}
	if c.walked[e.Owner] == nil {
		c.walked[e.Owner] = map[int64]ledger.IndexKey{}
	}
	c.walked[e.Owner][e.Number] = e.IndexKey()
	return err
}

// append adds an entry that the transaction has made itself.
func (c *crossRead) append(e ledger.Entry) {
	for i := range c.listings[e.Owner] {
		c.listings[e.Owner][i].Append(e)
	}
}
