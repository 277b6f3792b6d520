package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"bursar/internal/ledger"
)

// CheckNewest is [Tx.CheckNewest] outside of a transaction, for a journal that goes on to the entry upTo at least, where no listing leaves out
// an entry. It reads on from where it found the journal whole, unless older entries may have been hidden since: a listing is another one, or a
// sale was recorded, which may have been recorded before.
func (db *DB) CheckNewest(ctx context.Context, owner string, upTo int64, listings ...ledger.Listing) error {
	head, err := db.head(ctx, owner)
	if err != nil {
		return err
	}
	if head.Number < upTo { // the row is an old one
		return ledger.ErrTampered.Because(fmt.Errorf("the journal of %s ends with entry %d, and has an entry %d", owner, head.Number, upTo))
	}
	read := pagesOf(ctx, db.query, owner)
	check := func(e ledger.Entry) error {
		for _, l := range listings {
			if err := l.Check(e); err != nil {
				return err
			}
		}
		return nil
	}
	relied := sha256.Sum256(fmt.Append(nil, owner, listings))
	known := db.checkedHeads.upTo(relied, head.Number)
	if known.Counts.Sales != head.Counts.Sales {
		known = ledger.Head{}
	}
	at, err := db.signer.checkNewest(head, beforeReach(head), known, head.Number, read, check)
	if known.Number > 0 && errors.Is(err, ledger.ErrTampered) { // the datastore may have been put back since then
		at, err = db.signer.checkNewest(head, beforeReach(head), ledger.Head{}, head.Number, read, check)
	}
	if err == nil {
		db.checkedHeads.keep(relied, at)
	}
	return err
}

// checkedHeads keeps where journals stood when [DB.CheckNewest] found them whole, by the owner and the listings.
type checkedHeads struct {
	mu sync.Mutex
	at map[[sha256.Size]byte]ledger.Head
}

// upTo is how a journal stood when it was last found whole; zero when that is not known, or was beyond the entry last.
func (c *checkedHeads) upTo(relied [sha256.Size]byte, last int64) ledger.Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[relied]; at.Number <= last {
		return at
	}
	return ledger.Head{}
}

func (c *checkedHeads) keep(relied [sha256.Size]byte, at ledger.Head) {
	const most = 10_000 // some megabytes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || len(c.at) >= most {
		c.at = map[[sha256.Size]byte]ledger.Head{}
	}
	c.at[relied] = at
}
