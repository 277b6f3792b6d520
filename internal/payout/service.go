package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/seal"
)

// Options are what a service is made of.
type Options struct {
	Store         Store
	Gateway       Gateway
	Beneficiaries Beneficiaries
	Seals         seal.Seals
	Currency      money.Currency
	// Minimum is the least that may be asked for.
	Minimum money.Amount
	Fee     Fee
	Arrival Arrival
	// CancelWindow is how long a payout waits before it is handed to the gateway.
	CancelWindow time.Duration
	// Lease is how long a step may take before another worker may take it up, and so how long a crash
	// holds a payout up. It must be longer than a step can last.
	Lease time.Duration
	// Patience is how long after its last sending an order may still turn up at the gateway. A held payout
	// is given back to its seller only after it. Zero is ten minutes.
	Patience time.Duration
	// ReturnsEvery is how often the gateway is asked which transfers came back. Zero is five minutes.
	ReturnsEvery time.Duration
	// Zone decides which month it is.
	Zone   *time.Location
	Now    func() time.Time
	Logger *slog.Logger
	// IDs and Jitter are set by simulations alone, which must come out the same again. Jitter spreads a wait.
	IDs    id.Source
	Jitter func(time.Duration) time.Duration
	// Moved is told of each change of state once it is durable; the first is from "".
	Moved func(from, to State)
}

// Service takes payouts from request to end. It is safe for concurrent use.
type Service struct {
	o Options
	// jitter spreads a wait by up to a fifth either way, so that what failed together does not come
	// back together.
	jitter func(time.Duration) time.Duration
	// started is when the service began. What is older may come from a book that was put back.
	started  time.Time
	look     look
	caughtUp atomic.Bool
}

// New makes a service.
func New(o Options) (*Service, error) {
	switch {
	case o.Store == nil || o.Gateway == nil || o.Beneficiaries == nil:
		return nil, errors.New("payout: a service needs a store, a gateway and its beneficiaries")
	case o.Seals.Keys == nil:
		return nil, errors.New("payout: a service needs keys to seal with")
	case o.Now == nil || o.Zone == nil || o.Logger == nil || o.Moved == nil:
		return nil, errors.New("payout: a service needs a clock, a zone, a logger and somebody to tell of moves")
	case o.Minimum <= 0 || o.CancelWindow < 0 || o.Lease <= 0 || o.Patience < 0 || o.ReturnsEvery < 0:
		return nil, errors.New("payout: the minimum and the lease must be above zero, and no other wait below it")
	}
	if err := o.Fee.CheckMinimum(o.Minimum); err != nil {
		return nil, fmt.Errorf("payout: %w", err)
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.ReturnsEvery == 0 {
		o.ReturnsEvery = 5 * time.Minute
	}
	if o.Jitter == nil {
		o.Jitter = jitter
	}
	return &Service{o: o, jitter: o.Jitter, started: o.Now()}, nil
}

// defaultPatience leaves room for clocks that differ, besides the gateway's own delays.
const defaultPatience = 10 * time.Minute

func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1)
}

// Caller is who asks about payouts: a seller sees their own, an admin everyone's.
type Caller struct {
	User  string
	Admin bool
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
func (s *Service) Events(ctx context.Context, c Caller, id ID) ([]Event, error) {
	if _, err := s.Payout(ctx, c, id); err != nil {
		return nil, err
	}
	return s.o.Store.Events(ctx, id)
}

// Summary is all that a seller's overview shows.
func (s *Service) Summary(ctx context.Context, seller string) (Summary, error) {
	now := s.o.Now().In(s.o.Zone)
	firstOfMonth := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, s.o.Zone)
	return s.o.Store.Summary(ctx, seller, now.Format(monthLayout), firstOfMonth.AddDate(0, 0, -1).Format(monthLayout))
}

const monthLayout = "2006-01"

// errRaced means that somebody else moved the payout first; theirs is the outcome.
var errRaced = errors.New("payout: moved by somebody else")

// move saves p, whose state was from, and posts the money that goes with the change. It is the only
// way for a payout to change its state. It fails with errRaced when the stored state is another.
func (s *Service) move(ctx context.Context, tx Tx, was, p Payout, now time.Time) error {
	from := was.State
	if from != p.State && !from.CanBecome(p.State) {
		return fmt.Errorf("payout %s may not go from %s to %s", p.ID, from, p.State)
	}
	transfers, counts := effect(from, p)
	if from != p.State {
		p.History = Event{At: now, From: from, To: p.State, Reason: p.Reason}.after(p.ID, was.History)
	}
	if was.CheckSeal(s.o.Seals) != nil {
		if len(transfers) > 0 { // its amount may be another than was held
			return ErrAltered
		}
	} else if p.words() != was.words() {
		if err := p.sealIn(s.o.Seals); err != nil {
			return err
		}
	}
	moved, err := tx.MovePayout(ctx, from, p, now)
	if err != nil {
		return err
	}
	if !moved {
		return errRaced
	}
	if len(transfers) == 0 {
		return nil
	}
	err = ledger.Post(ctx, tx, ledger.Posting{Seller: p.Seller, At: now, Transfers: transfers, Counts: counts})
	if errors.Is(err, ledger.ErrInsufficient) { // our bug, and no refusal to be told: the money was held
		err = errors.New(err.Error())
	}
	if err != nil {
		return fmt.Errorf("payout %s from %s to %s: %w", p.ID, from, p.State, err)
	}
	return nil
}

// effect is the money that moves, and the counters with it, when p came from another state.
func effect(from State, p Payout) ([]ledger.Transfer, ledger.Counts) {
	if from == p.State {
		return nil, ledger.Counts{}
	}
	ref := string(p.ID)
	switch p.State {
	case Completed:
		return ledger.SettlePayout(ref, p.Net(), p.Fee), ledger.Counts{Processing: -1, Completed: +1}
	case Failed:
		return ledger.ReleasePayout(ref, p.Amount), ledger.Counts{Processing: -1, Failed: +1}
	case Cancelled:
		return ledger.ReleasePayout(ref, p.Amount), ledger.Counts{Processing: -1, Cancelled: +1}
	case Returned:
		return ledger.ReturnPayout(ref, p.Net(), p.Fee), ledger.Counts{Completed: -1, Failed: +1}
	default:
		return nil, ledger.Counts{}
	}
}

// change loads a payout, lets decide alter it, and saves it, all in one transaction, and reports
// whether it did. Decide may run more than once; it returns errRaced to leave things as they are, which
// is no error of change.
func (s *Service) change(ctx context.Context, id ID, decide func(*Payout) error) (bool, error) {
	return s.changeIn(ctx, id, func(_ Tx, p *Payout) error { return decide(p) })
}

// changeIn is change for a decision that asks the store.
func (s *Service) changeIn(ctx context.Context, id ID, decide func(Tx, *Payout) error) (bool, error) {
	var from, to State
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		p, err := tx.PayoutForUpdate(ctx, id)
		if err != nil {
			return err
		}
		was := p
		from = p.State
		if err := decide(tx, &p); err != nil {
			return err
		}
		to = p.State
		return s.move(ctx, tx, was, p, s.o.Now())
	})
	if err == nil && from != to {
		s.o.Moved(from, to)
	}
	if errors.Is(err, errRaced) {
		return false, nil
	}
	return err == nil, err
}

// How long idempotency keys are honoured (the API promises seven days), and gateway events remembered
// (RazorpayX retries for a day and replays within fifteen).
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
