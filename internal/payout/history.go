package payout

import (
	"time"

	"bursar/internal/ledger"
)

// Event is one change of a payout's state.
type Event struct {
	At     time.Time
	From   State
	To     State
	Reason string
}

// Fold is a payout as its entries tell it, oldest first.
func Fold(id ID, entries []ledger.Entry) (Payout, error) { return ledger.Fold(Payout{ID: id}, entries) }

// EventsOf are the changes of state that a payout's entries tell.
func EventsOf(id ID, entries []ledger.Entry) ([]Event, error) {
	var events []Event
	p := Payout{ID: id}
	for _, e := range entries {
		was := p.State
		if err := ledger.ApplyEntry(e, &p); err != nil {
			return nil, err
		}
		if was != p.State && was != "" {
			events = append(events, Event{At: e.At, From: was, To: p.State, Reason: p.Reason})
		}
	}
	return events, nil
}
