package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"bursar/internal/ledger"
)

// CheckNewest is [Tx.CheckNewest] outside of a transaction, for a journal that goes on to the entry upTo at least. It reads on
// from where it found the journal whole, unless older entries may have been hidden since: the caller relies on another entry,
// last, or a sale was recorded, which may have been recorded before.
func (db *DB) CheckNewest(ctx context.Context, owner string, last, upTo int64) error {
	head, err := db.head(ctx, owner)
	if err != nil {
		return err
	}
	if head.Number < upTo { // the row is an old one
		return ledger.ErrTampered.Because(fmt.Errorf("the journal of %s ends with entry %d, and has an entry %d", owner, head.Number, upTo))
	}
	place, read := entryPlace{owner, last}, db.entriesAfter(ctx, owner)
	known := db.checkedHeads.upTo(place, head.Number)
	if known.Counts.Sales != head.Counts.Sales {
		known = ledger.Head{}
	}
	at, err := db.signer.checkNewest(head, beforeReach(head), known, head.Number, read)
	if known.Number > 0 && errors.Is(err, ledger.ErrTampered) { // the datastore may have been put back since then
		at, err = db.signer.checkNewest(head, beforeReach(head), ledger.Head{}, head.Number, read)
	}
	if err == nil {
		db.checkedHeads.keep(place, at)
	}
	return err
}

// checkedHeads keeps where journals stood when [DB.CheckNewest] found them whole, by the last entry that the caller knew.
type checkedHeads struct {
	mu sync.Mutex
	at map[entryPlace]ledger.Head
}

// upTo is how a journal stood when it was last found whole; zero when that is not known, or was beyond the entry last.
func (c *checkedHeads) upTo(place entryPlace, last int64) ledger.Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[place]; at.Number <= last {
		return at
	}
	return ledger.Head{}
}

func (c *checkedHeads) keep(place entryPlace, at ledger.Head) {
	const most = 10_000 // some megabytes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || len(c.at) >= most {
		c.at = map[entryPlace]ledger.Head{}
	}
	c.at[place] = at
}
