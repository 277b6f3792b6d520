package payout

import (
	"time"

	"bursar/internal/money"
)

// Quote is what a payout would cost and when it would arrive, if it were asked for now.
type Quote struct {
	Amount   money.Amount
	Fee      money.Amount
	Net      money.Amount
	Mode     Mode
	ArriveAt time.Time
	// CancelUntil is until when it can surely be cancelled.
	CancelUntil time.Time
}

// Attention is what waits for a person, oldest first, up to a hundred of each kind.
type Attention struct {
	// Unclear are the payouts whose outcome is not known: state unknown or held.
	Unclear []Payout
	// Contradicted are the payouts about which the gateway said what can't be true beside the books.
	Contradicted []Payout
	// Strays are the gateway's transfers that belong to no payout in the book and that nobody has settled.
	Strays []Stray
}
