package ledger

import "time"

// Entry is a transfer as it stands in a seller's book.
type Entry struct {
	// Number counts the seller's transfers: 1, 2, 3 … without a gap.
	Number int64
	At     time.Time
	Transfer
}
