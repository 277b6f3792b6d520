package reconcile

import (
	"context"
	"errors"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// Statement is a gateway's record of our account.
type Statement interface {
	// Name is the gateway's, and is kept with each line.
	Name() gateway.Name
	Capabilities() gateway.Capabilities
	// Lines lists a page of the lines, see [gateway.Gateway].
	Lines(ctx context.Context, from, to time.Time, after gateway.Cursor) (gateway.LinePage, error)
}

// Payouts looks after payouts.
type Payouts interface {
	// PollNow makes the next poll of a payout due now, and reports whether it is one that is polled.
	PollNow(ctx context.Context, id payout.ID) (bool, error)
}

// Store keeps what was read of one gateway's statement. What was found, and the record of comparisons, is of all gateways.
type Store interface {
	// KeepLines adds lines that a reading found, which began at a time. One that is stored already is stored as
	// it is now, and only FirstReported stays.
	KeepLines(ctx context.Context, lines []Line, readAt time.Time) error
	// MissLines notes the lines of a period that a reading did not find, which began at a time.
	MissLines(ctx context.Context, from, to, readAt time.Time) error
	// KeepDay adds a day that was read whole, or its newer reading.
	KeepDay(ctx context.Context, d Day) error
	// KeepBalances notes how many lines a day has that was read whole, and its balances.
	KeepBalances(ctx context.Context, d Day) error
	// Days lists the days that were read whole and that end after one time and begin before another, in order.
	Days(ctx context.Context, from, to time.Time) ([]Day, error)

	// LinesBetween lists lines of a period in the order of their time and id, after a line, up to limit.
	LinesBetween(ctx context.Context, from, to time.Time, after Line, limit int) ([]Line, error)
	// ChangedLines lists those lines of a period, after one of them, that changed or disappeared later.
	ChangedLines(ctx context.Context, from, to time.Time, after Line, limit int) ([]Line, error)
	// LinesAbout lists all lines that name one of the payouts, by its id here or at the gateway.
	LinesAbout(ctx context.Context, payouts []payout.ID, transfers []string) ([]Line, error)
	// LinesByID finds those of ids that there are, of any gateway.
	LinesByID(ctx context.Context, ids []string) ([]Line, error)
	// SumOfLines adds up the lines of a period in a currency that are not missing: what they took, less
	// what they put in.
	SumOfLines(ctx context.Context, from, to time.Time, currency string) (money.Amount, error)

	// Entries lists the ledger's transfers to and from the gateway of a period, and the ends of payouts that failed or were cancelled,
	// in the order of their time, seller and number, after an entry, up to limit.
	Entries(ctx context.Context, from, to time.Time, after Entry, limit int) ([]Entry, error)
	// SumOfEntries adds them up: what was paid, and what was returned.
	SumOfEntries(ctx context.Context, from, to time.Time) (paid, returned money.Amount, err error)
	// PayoutsByID finds those of ids that a journal knows, with what the service wrote about them there. What is not recorded in
	// entries, such as when the next step is due, is left out.
	PayoutsByID(ctx context.Context, ids []payout.ID) (map[payout.ID]payout.Payout, error)
	// PayoutsByTransfer finds the payouts that have these ids at any gateway.
	PayoutsByTransfer(ctx context.Context, transfers []string) (map[TransferKey]payout.ID, error)
	// ResolvedUnmatchedTransfers finds those of a gateway's transfers that an admin has resolved as unmatched.
	ResolvedUnmatchedTransfers(ctx context.Context, at gateway.Name, transfers []string) (map[string]bool, error)

	// Difference finds one, or [ErrNotFound].
	Difference(ctx context.Context, id string) (Difference, error)
	// OpenDifferences lists those that wait for a person, the first found first, after one, up to limit.
	OpenDifferences(ctx context.Context, after Difference, limit int) ([]Difference, error)
	// Differences finds those of ids that there are.
	Differences(ctx context.Context, ids []string) ([]Difference, error)
	// Found notes differences that were found, and that others are gone unless they were found again since
	// they were read. One that says something else than when it was resolved is open again.
	Found(ctx context.Context, found, gone []Difference, at time.Time) error

	// KeepRun adds a comparison to the record.
	KeepRun(ctx context.Context, r Run) error
	// LastRuns lists the newest comparisons of all gateways, the newest first.
	LastRuns(ctx context.Context, limit int) ([]Run, error)
	// FirstSent is when the gateway was first sent a payout, and zero for never.
	FirstSent(ctx context.Context) (time.Time, error)
	// Reached is how far the service had come by itself at a time: the end of the last day, and zero for never.
	Reached(ctx context.Context, at time.Time) (time.Time, error)

	// AcquireLease leases reconciliation to one holder until a time, or extends its lease.
	AcquireLease(ctx context.Context, holder string, now, until time.Time) (bool, error)
	ReleaseLease(ctx context.Context, holder string) error
	// Pace is how the daily work goes, and SetPace notes that.
	Pace(ctx context.Context) (Pace, error)
	SetPace(ctx context.Context, p Pace) error

	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what reconcile asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	ledger.Appender
	// ResolveDifference notes that a person has explained an open difference that says detail, and reports
	// whether there is one.
	ResolveDifference(ctx context.Context, id, detail string, at time.Time) (bool, error)
}

// Pace is how the daily work goes.
type Pace struct {
	// Failures counts those since the last success, and nothing is tried before DueAt.
	Failures int
	DueAt    time.Time
	// LookedAt is when open differences were last looked at again.
	LookedAt time.Time
}

// Run is a comparison on record.
type Run struct {
	ID string // prefix "rec_"
	// Gateway is the one whose statement was compared.
	Gateway gateway.Name
	Period  Period
	// Daily means that the service did it by itself.
	Daily   bool
	EndedAt time.Time
	Result  Result
}

// errLeaseLost means that reconciling took so long that another instance has begun to.
var errLeaseLost = errors.New("another instance reconciles now")
