package payout

import "slices"

// State is where a payout is in its life.
type State string

// States.
const (
	// Waiting is ours alone: the cancel window, or the gateway would not take it yet.
	Waiting State = "waiting"
	// Submitting means that the request may be on its way to the gateway.
	Submitting State = "submitting"
	// Unknown means that the gateway's answer is missing: it may have been paid.
	Unknown State = "unknown"
	// ManualReview means that Bursar can't learn the outcome; an admin resolves it.
	ManualReview State = "manual_review"
	// Submitted means that the gateway has it.
	Submitted State = "submitted"
	// Completed means that the bank was paid.
	Completed State = "completed"
	// Failed means that it was never paid, and the seller has the money back.
	Failed State = "failed"
	// Returned means that the bank sent the money back after it was paid.
	Returned State = "returned"
	// Cancelled means that the seller or an admin cancelled it.
	Cancelled State = "cancelled"
)

// transitions is the machine: from each state, the states that may follow.
var transitions = map[State][]State{
	Waiting:      {Submitting, Submitted, Failed, Cancelled}, // submitted: the ledger was put back, and the gateway has it
	Submitting:   {Waiting, Unknown, Submitted, Completed, Failed, Cancelled},
	Unknown:      {Submitted, Completed, Failed, Cancelled, ManualReview},
	ManualReview: {Submitted, Completed, Failed, Cancelled},
	Submitted:    {Completed, Failed, Cancelled, ManualReview}, // in review: the gateway forgot it
	Completed:    {Returned},
	Failed:       {},
	Returned:     {},
	Cancelled:    {},
}

// States lists every state in the order of a payout's life.
func States() []State {
	return []State{Waiting, Submitting, Unknown, ManualReview, Submitted, Completed, Failed, Returned, Cancelled}
}

// UnresolvedStates are those of payouts whose outcome is not known.
var UnresolvedStates = []State{Unknown, ManualReview}

// Next lists the states that may follow s.
func (s State) Next() []State { return slices.Clone(transitions[s]) }

// canBecome reports whether to may follow s.
func (s State) canBecome(to State) bool { return slices.Contains(transitions[s], to) }

// Status is what the interface calls a payout in its four words.
type Status string

// Statuses.
const (
	StatusProcessing Status = "processing"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// Statuses lists the four.
func Statuses() []Status {
	return []Status{StatusProcessing, StatusCompleted, StatusFailed, StatusCancelled}
}

// Status is how the seller sees s: all before an end is processing, and returned is failed.
func (s State) Status() Status {
	switch s {
	case Completed:
		return StatusCompleted
	case Failed, Returned:
		return StatusFailed
	case Cancelled:
		return StatusCancelled
	default:
		return StatusProcessing
	}
}

// isUnresolved reports whether nobody knows yet what became of the payout's order.
func (p Payout) isUnresolved() bool { return p.State == Unknown || p.State == ManualReview }

// mayBeAtGateway reports whether a gateway may have the payout: it was sent, or found there after the database was restored.
func (p Payout) mayBeAtGateway() bool { return !p.SentAt.IsZero() || p.GatewayID != "" }

// endedUnpaid reports whether the seller has the amount in the balance again: the payout was never paid, or the bank returned it. Money that
// leaves for it now is paid twice.
func (p Payout) endedUnpaid() bool {
	return p.State == Failed || p.State == Cancelled || p.State == Returned
}
