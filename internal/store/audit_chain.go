package store

import (
	"fmt"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// What a row of selectChains is.
const (
	aTransfer = iota
	aSealedChain
	aBook
)

// selectChains is each seller's transfers with, behind the last one that it covers, each head that is kept.
const selectChains = `SELECT seller_id, number, 0 AS what, at, kind, debit, credit, amount, ref, 0 AS pending, 0 AS available, 0 AS in_transit FROM transfers
	UNION ALL SELECT seller_id, transfers, 1, checkpoint, head, '', '', 0, '', pending, available, in_transit FROM checkpoint_books WHERE head <> ''
	UNION ALL SELECT seller_id, chained, 2, transfers, head, '', '', 0, '', 0, 0, 0 FROM seller_balances
	ORDER BY 1, 2, 3`

// chains builds each seller's chain from the transfers, and holds it against the heads that are kept. From
// one that does not fit it goes on with what is kept, so that each break is told once.
func (a *auditor) chains() ledger.Finding {
	f := ledger.Finding{
		Name:    "chains-are-whole",
		Promise: "Each seller's transfers are those that were chained when they were made, and that each checkpoint holds.",
	}
	w := chainWalk{}
	a.all(selectChainsSince, func(r row) error { return r.Scan(instant{&w.unchainedUntil}) })
	w.unchainedUntil = w.unchainedUntil.Add(proof.Unchained)
	a.all(selectChains, func(r row) error {
		violation, err := w.step(r)
		if violation != "" && len(f.Violations) < ledger.MaxViolations {
			f.Violations = append(f.Violations, violation)
		}
		return err
	})
	return f
}

// chainWalk is a walk through all chains.
type chainWalk struct {
	seller string
	chain  ledger.Chain
	// fits is up to which number the chain is known to be whole.
	fits int64
	// ended says that the chain that is kept in the seller's book ends before here.
	ended bool
	// newest is when the newest transfer up to here was made, and unchainedUntil when the last could be that a
	// binary without chains made.
	newest, unchainedUntil time.Time
	// lacks says that the seller has transfers that the chain does not hold, which is yet to be told.
	lacks bool
}

// step takes the next row, and tells what does not fit there.
func (w *chainWalk) step(r row) (violation string, err error) {
	var (
		seller string
		what   int64
		e      ledger.Entry
		at     int64
		kept   ledger.Chain
	)
	if err := r.Scan(&seller, &e.Number, &what, &at, &e.Kind, &e.Debit, &e.Credit, &e.Amount, &e.Ref, &kept.Pending, &kept.Available, &kept.InTransit); err != nil {
		return "", err
	}
	if seller != w.seller {
		*w = chainWalk{seller: seller, chain: ledger.NewChain(seller), unchainedUntil: w.unchainedUntil}
	}
	if what == aTransfer {
		if err := (instant{&e.At}).Scan(at); err != nil {
			return "", err
		}
		w.chain = w.chain.Add(e.At, e.Transfer)
		w.newest = e.At
		return w.unchained(), nil
	}
	kept.Number, kept.Head = e.Number, ledger.Hash(e.Kind)
	if what == aBook {
		w.ended, w.lacks = true, at > kept.Number
	}
	if kept.Number < 0 { // not begun yet
		return "", nil
	}
	keeper := fmt.Sprintf("checkpoint %d", at)
	if what == aBook {
		keeper = "the seller's chain"
	}
	if what == aSealedChain && w.ended && w.fits < kept.Number {
		w.ended = false // it is told once
		violation = fmt.Sprintf("%s's chain was set back behind transfer %d, which checkpoint %d holds", seller, kept.Number, at)
	}
	if w.chain.Number != kept.Number || w.chain.Head != kept.Head {
		violation = fmt.Sprintf("%s's transfers %d to %d are not those that %s holds", seller, w.fits+1, max(kept.Number, w.fits+1), keeper)
	}
	if what == aSealedChain {
		w.chain = kept
	}
	w.fits = kept.Number
	if violation == "" {
		violation = w.unchained()
	}
	return violation, nil
}

// unchained tells of transfers that no chain holds, and that are too new, or come after one that is too new, for
// a binary without chains to have made them.
func (w *chainWalk) unchained() string {
	if !w.lacks || !w.newest.After(w.unchainedUntil) {
		return ""
	}
	w.lacks = false
	return fmt.Sprintf("%s's transfers from %d on were not chained when they were made", w.seller, w.fits+1)
}

// checkpoints holds the checkpoints against each other, their signatures, and the books that the newest one
// was made of. Whether its key is one of ours is for those to say who have the keys.
func (a *auditor) checkpoints() []ledger.Finding {
	chain := ledger.Finding{Name: "checkpoints-are-signed", Promise: "Each checkpoint is signed, and names the one before it; each key that is published signed one."}
	books := ledger.Finding{Name: "books-match-checkpoint", Promise: "The newest checkpoint was made of the books that are kept with it."}
	var last proof.Checkpoint
	a.all(`SELECT `+checkpointColumns+` ORDER BY c.number`, func(r row) error {
		c, key, err := scanCheckpoint(r)
		if err != nil {
			return err
		}
		for _, err := range []error{c.SignedBy(key), c.Follows(last)} {
			if err != nil && len(chain.Violations) < ledger.MaxViolations {
				chain.Violations = append(chain.Violations, fmt.Sprintf("checkpoint %d: %v", c.Number, err))
			}
		}
		last = c
		return nil
	})
	a.each(`SELECT k.kid FROM checkpoint_keys k WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.kid = k.kid) ORDER BY k.kid`, func(r row) error {
		var kid string
		err := r.Scan(&kid)
		chain.Violations = append(chain.Violations, fmt.Sprintf("key %s, which is published, signed no checkpoint", kid))
		return err
	})
	var root proof.Root
	a.all(`SELECT seller_id, transfers, head FROM checkpoint_books s
		WHERE checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_books WHERE seller_id = s.seller_id
			AND checkpoint <= (SELECT MAX(number) FROM checkpoints)) AND head <> '' ORDER BY seller_id`, func(r row) error {
		var seller string
		var c ledger.Chain
		err := r.Scan(&seller, &c.Number, &c.Head)
		root.Add(seller, c)
		return err
	})
	if last.Number > 0 && (root.String() != last.Root || root.Books() != last.Books) {
		books.Violations = append(books.Violations, fmt.Sprintf("checkpoint %d tells of %d books with the root %s, and %d are kept, with the root %s",
			last.Number, last.Books, last.Root, root.Books(), root.String()))
	}
	return []ledger.Finding{chain, books}
}
