package payout

import (
	"fmt"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/seal"
)

// Event is one change of a payout's state.
type Event struct {
	At     time.Time
	From   State
	To     State
	Reason string
}

// after is the head of a payout's history with e at its end: a hash of the head before, and of e. The payout is sealed
// with it, so that no event can be changed, dropped or added, nor the payout be put back to what it was before one.
func (e Event) after(id ID, head string) string {
	return string(ledger.HashOf(fmt.Sprintf("bursar payout event v1 %q %q %d %q %q %q", id, head, e.At.UnixMicro(), e.From, e.To, e.Reason)))
}

// headOf is the head of a history.
func headOf(id ID, events []Event) (head string) {
	for _, e := range events {
		head = e.after(id, head)
	}
	return head
}

// CheckHistory fails with [seal.ErrBroken] if the events, oldest first, are not all that the service wrote of the payout.
func (p Payout) CheckHistory(s seal.Seals, events []Event) error {
	if p.ID.requestedAt().Before(s.Since) || headOf(p.ID, events) == p.History {
		return nil
	}
	return fmt.Errorf("the history of payout %s: %w", p.ID, seal.ErrBroken)
}
