package payout

import (
	"time"

	"bursar/internal/ledger"
)

// StateChange is one change of a payout's state.
type StateChange struct {
	At     time.Time
	From   State
	To     State
	Reason string
}

// Fold is a payout as its entries tell it, oldest first.
func Fold(id ID, entries []ledger.Entry) (Payout, error) { return ledger.Fold(Payout{ID: id}, entries) }

// StateChangesOf are the changes of state that a payout's entries tell, up to the first that can't be read.
func StateChangesOf(id ID, entries []ledger.Entry) ([]StateChange, error) {
	var events []StateChange
	p := Payout{ID: id}
	for _, e := range entries {
		was := p.State
		if err := ledger.ApplyEntry(e, &p); err != nil {
			return events, err
		}
		if was != p.State && was != "" {
			events = append(events, StateChange{At: e.At, From: was, To: p.State, Reason: p.Reason})
		}
	}
	return events, nil
}
