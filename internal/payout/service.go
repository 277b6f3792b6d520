package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/limits"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/retry"
)

// Options are what a service is made of.
type Options struct {
	Store         Store
	Gateways      *gateway.Router
	Beneficiaries Beneficiaries
	Currency      money.Currency
	// Minimum is the least that may be asked for.
	Minimum money.Amount
	Fee     Fee
	Arrival Arrival
	// ProveAbove is the most that a seller may withdraw without a proof, which Proofs check. Zero is any amount.
	ProveAbove money.Amount
	Proofs     Proofs
	// Mails tells sellers that their payouts are frozen or resumed.
	Mails mail.Queuer
	// CancelWindow is how long a payout waits before it is handed to the gateway.
	CancelWindow time.Duration
	// Lease is how long a step may take before another worker may take it up, and so how long a crash
	// holds a payout up. It must be longer than a step can last.
	Lease time.Duration
	// GracePeriod is how long after its last sending an order may still turn up at the gateway. A payout in review
	// is refunded to the balance only after it.
	GracePeriod time.Duration
	// ReversalsEvery is how often the gateway is asked which transfers came back.
	ReversalsEvery time.Duration
	// Restored says that the database was put back to an older state, and that nobody has compared it with the records
	// of the gateways that can't list yet. Nothing is sent through any gateway then.
	Restored bool
	// Zone decides which month it is.
	Zone   *time.Location
	Now    func() time.Time
	Logger *slog.Logger
	// IDs and Jitter are set by simulations alone, which must come out the same again. Jitter spreads a wait.
	IDs    id.Source
	Jitter func(time.Duration) time.Duration
	// StateChanged is called for each durable change of state; the first is from "".
	StateChanged func(from, to State)
}

// Service takes payouts from request to end. It is safe for concurrent use.
type Service struct {
	o Options
	// started is when the service began. What is older may come from a database that was restored.
	started           time.Time
	progress          startupProgress
	rests             rests
	lost              lostTransfers
	startupReconciled atomic.Bool
	figures           figuresCache
}

// New makes a service.
func New(o Options) (*Service, error) {
	switch {
	case o.Store == nil || o.Gateways == nil || o.Beneficiaries == nil || o.Mails == nil:
		return nil, errors.New("payout: a service needs a store, gateways and their beneficiaries")
	case o.Now == nil || o.Zone == nil || o.Logger == nil || o.StateChanged == nil:
		return nil, errors.New("payout: a service needs a clock, a zone, a logger and a function for changes of state")
	case o.ProveAbove < 0 || o.ProveAbove > 0 && o.Proofs == nil:
		return nil, errors.New("payout: a limit for proofs must not be below zero, and needs proofs")
	case o.CancelWindow < 0:
		return nil, errors.New("payout: the cancel window must not be below zero")
	case o.Lease <= 0 || o.GracePeriod <= 0 || o.ReversalsEvery <= 0:
		return nil, errors.New("payout: the lease, the grace period and the time between polls for reversals must be above zero")
	}
	if err := o.Fee.CheckMinimum(o.Minimum, o.Gateways.Current().Capabilities().Least); err != nil {
		return nil, fmt.Errorf("payout: %w", err)
	}
	if o.Jitter == nil {
		o.Jitter = retry.Jitter
	}
	return &Service{o: o, started: o.Now()}, nil
}

// Caller is who asks about payouts: a seller sees their own, an admin everyone's.
type Caller struct {
	User  string
	Admin bool
	// IssuerActor is as in [Request].
	IssuerActor string
	// Note is why an admin acts, for the record; it may be empty.
	Note string
}

func (c Caller) sees(p Payout) bool { return c.Admin || c.User == p.Seller }

// Minimum is the least that may be asked for.
func (s *Service) Minimum() money.Amount { return s.o.Minimum }

// Payout finds one that the caller may see, or [ErrNotFound].
func (s *Service) Payout(ctx context.Context, c Caller, id ID) (Payout, error) {
	p, err := s.o.Store.Payout(ctx, id)
	if err == nil && !c.sees(p) {
		return Payout{}, ErrNotFound
	}
	return p, err
}

// History lists payouts that the caller may see, newest first, and how many there are in all.
func (s *Service) History(ctx context.Context, c Caller, f Filter) ([]Payout, int64, error) {
	if !c.Admin {
		f.Seller = c.User
	}
	return s.o.Store.ListPayouts(ctx, f)
}

// Events lists what happened to a payout that the caller may see, oldest first.
func (s *Service) Events(ctx context.Context, c Caller, id ID) ([]StateChange, error) {
	p, err := s.Payout(ctx, c, id)
	if err != nil {
		return nil, err
	}
	entries, err := s.o.Store.EntriesAbout(ctx, p.Seller, string(id))
	if err != nil && !isTampered(err) { // what was tampered with is shown all the same
		return nil, err
	}
	changes, unreadable := StateChangesOf(id, entries)
	if isTampered(err) {
		return changes, nil
	}
	return changes, unreadable
}

// Summary is all that a seller's overview shows.
func (s *Service) Summary(ctx context.Context, seller string) (Summary, error) {
	now := s.o.Now().In(s.o.Zone)
	return s.o.Store.Summary(ctx, seller, now.Format(monthLayout), limits.StartOfDay(now, -now.Day()).Format(monthLayout))
}

const monthLayout = "2006-01"

// How long idempotency keys are honoured (the API promises seven days), and gateway events remembered
// (gateways repeat them for days).
const (
	keysKept   = 7 * 24 * time.Hour
	eventsKept = 15 * 24 * time.Hour
	sweepBatch = 500
)

// Sweep forgets what is too old to matter, a batch at most, and returns how many rows that was.
func (s *Service) Sweep(ctx context.Context) (int64, error) {
	var forgotten int64
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		now := s.o.Now()
		forgotten, err = tx.Forget(ctx, now.Add(-keysKept), now.Add(-eventsKept), sweepBatch)
		return err
	})
	return forgotten, err
}
