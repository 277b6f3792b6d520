package store

import (
	"fmt"

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
	UNION ALL SELECT seller_id, chained, 2, transfers, head, '', '', 0, '', 0, 0, 0 FROM seller_balances WHERE chained >= 0
	ORDER BY 1, 2, 3`

// chains builds each seller's chain from the transfers, and holds it against the heads that are kept. From
// one that does not fit it goes on with what is kept, so that each break is told once.
func (a *auditor) chains() ledger.Finding {
	f := ledger.Finding{
		Name:    "chains-are-whole",
		Promise: "Each seller's transfers are those that were chained when they were made, and that each checkpoint holds.",
	}
	w := chainWalk{}
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
		*w = chainWalk{seller: seller, chain: ledger.NewChain(seller)}
	}
	if what == aTransfer {
		if err := (instant{&e.At}).Scan(at); err != nil {
			return "", err
		}
		w.chain = w.chain.Add(e.At, e.Transfer)
		return "", nil
	}
	kept.Number, kept.Head = e.Number, ledger.Hash(e.Kind)
	keeper := fmt.Sprintf("checkpoint %d", at)
	if what == aBook {
		keeper = "the seller's chain"
	}
	if w.chain.Number != kept.Number || w.chain.Head != kept.Head {
		violation = fmt.Sprintf("%s's transfers %d to %d are not those that %s holds", seller, w.fits+1, max(kept.Number, w.fits+1), keeper)
	}
	if what == aSealedChain {
		w.chain = kept
	}
	w.fits = kept.Number
	return violation, nil
}

// checkpoints holds the checkpoints against each other, their signatures, and the books that the newest one
// was made of. Whether its key is one of ours is for those to say who have the keys.
func (a *auditor) checkpoints() []ledger.Finding {
	chain := ledger.Finding{Name: "checkpoints-are-signed", Promise: "Each checkpoint is signed, and names the one before it."}
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
