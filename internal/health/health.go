// Package health is what operators see of the service's own work: instances, work loops, backlogs and audits.
package health

import "time"

// Instance is the process that answers.
type Instance struct {
	Version   string
	StartedAt time.Time
	Pools     []Pool
}

// Pool is the database connections of one kind.
type Pool struct {
	Name       string
	InUse, Max int
	// Waits and Waited are how often and how long callers waited for one, since the start.
	Waits  int64
	Waited time.Duration
}

// Loop is one of the work loops of this instance.
type Loop struct {
	Name string
	// Every is how long it rests when nothing is due.
	Every time.Duration
	// Steps and Failures count since the start.
	Steps, Failures int64
	// LastPollAt is when it last learnt what is due. It and the others are zero for never; LastError is
	// the last failure's text.
	LastPollAt    time.Time
	LastStepAt    time.Time
	LastFailureAt time.Time
	LastError     string
}

// Backlog is what is due in the whole service, all instances together.
type Backlog struct {
	Unknown, ManualReview, Discrepancies, UnmatchedTransfers, AccountsInReview, Differences int64
	// WebhooksDisabled counts webhook endpoints that the service disabled.
	WebhooksDisabled int64
	// Late counts payouts that should have arrived; the first of them should have at LateSince, zero for none.
	Late      int64
	LateSince time.Time
	// Since when the longest waiting of each has been due; zero where nothing is.
	PayoutDue, AccountDue, SaleDue, MailDue time.Time
}

// State is how a loop does.
type State string

// States of a loop. Steps that fail are tried again, and some are bound to fail: an unknown payout does at each poll.
const (
	NotStarted State = "not_started"
	Stalled    State = "stalled"
	Retrying   State = "retrying"
	Working    State = "working"
)

const (
	// slack is how much longer than three of its rests a loop may be silent: its steps take their time.
	slack = time.Minute
	// recent is how long a failure counts.
	recent = 5 * time.Minute
)

// State is how the loop does at now.
func (l Loop) State(now time.Time) State {
	switch {
	case l.LastPollAt.IsZero() && l.LastFailureAt.IsZero():
		return NotStarted
	case l.LastPollAt.IsZero() || now.Sub(l.LastPollAt) > 3*l.Every+slack:
		return Stalled
	case !l.LastFailureAt.IsZero() && now.Sub(l.LastFailureAt) < recent:
		return Retrying
	default:
		return Working
	}
}
