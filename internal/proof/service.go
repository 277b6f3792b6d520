package proof

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// Options are what the service is made of.
type Options struct {
	Store  Store
	Signer Signer
	// Keys check the MACs of entries: a checkpoint takes in only what the service wrote.
	Keys     ledger.Keys
	Currency money.Currency
	// Every is how often a checkpoint is made.
	Every time.Duration
	// Zone is where days begin.
	Zone   *time.Location
	Now    func() time.Time
	Logger *slog.Logger
}

// Service makes checkpoints, and statements that they prove.
type Service struct {
	o      Options
	holder string
	// making is held by the goroutine that makes a checkpoint.
	making chan struct{}

	mu sync.Mutex
	// tiles are those of the newest checkpoint that was asked about.
	tiles *tiles
	// restUntil is when a statement may have the next checkpoint made.
	restUntil time.Time
}

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Signer == nil || o.Keys == nil || o.Currency == (money.Currency{}) || o.Every <= 0 || o.Zone == nil || o.Now == nil || o.Logger == nil {
		return nil, errors.New("proof: the service needs all its parts")
	}
	const holderSize = 16
	return &Service{o: o, holder: id.Random(holderSize), making: make(chan struct{}, 1)}, nil
}

// JWKS is the public keys that checkpoints were ever signed with, as a JSON Web Key Set.
func (s *Service) JWKS(ctx context.Context) ([]byte, error) {
	keys, err := s.o.Store.CheckpointKeys(ctx)
	if err != nil {
		return nil, err
	}
	return publish(keys)
}

// Faults of the service.
var (
	errNotCheckpointed = fault.New(fault.Unavailable, "statement_not_ready",
		"There is no checkpoint yet that holds this seller's entries. Try again in a minute.").After(time.Minute)
	errBeingMade = fault.New(fault.Unavailable, "checkpoint_being_made", "Another instance makes a checkpoint at this moment. Try again shortly.")
)
