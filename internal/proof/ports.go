package proof

import (
	"context"
	"crypto/ed25519"
	"errors"
	"time"

	"bursar/internal/ledger"
)

// Store reads journals and keeps checkpoints.
type Store interface {
	// LastCheckpoint is the newest one with its key, or the zero one where there is none.
	LastCheckpoint(ctx context.Context) (Checkpoint, Key, error)
	// Checkpoint is the one with a number, or the zero one where there is none.
	Checkpoint(ctx context.Context, number int64) (Checkpoint, error)
	// CheckpointKeys are those that ever signed one.
	CheckpointKeys(ctx context.Context) ([]Key, error)

	// Books lists journals in the order of their sellers' ids from after one on, up to limit, each beside where a
	// checkpoint has it.
	Books(ctx context.Context, checkpoint int64, after string, limit int) ([]Book, error)
	// Book is one of them, or one without a seller where there is none.
	Book(ctx context.Context, checkpoint int64, seller string) (Book, error)

	// EntriesAfter lists a seller's entries above a number, in order, up to limit. Their Before may be empty.
	EntriesAfter(ctx context.Context, seller string, number int64, limit int) ([]ledger.Entry, error)
	// Period is the numbers of a seller's first and last entry of a period, among the first so many entries: the
	// first that is not before the period, and the last that is not after it.
	Period(ctx context.Context, seller string, among int64, from, to time.Time) (first, last int64, err error)
	// SealedBetween lists where the checkpoints up to a number have a seller's journal, above one entry and up to
	// another, in order.
	SealedBetween(ctx context.Context, checkpoint int64, seller string, above, upTo int64) ([]ledger.Account, error)

	// TakeTurn leases the making of the next checkpoint to one holder, until it ends the lease or a time has come.
	TakeTurn(ctx context.Context, holder string, now, until time.Time) (bool, error)
	EndTurn(ctx context.Context, holder string) error
	// Seal writes journals of the checkpoint that is being made, and extends the lease. It fails with [ErrTurnLost]
	// if another holder has the lease.
	Seal(ctx context.Context, holder string, until time.Time, number int64, books []Sealed) error
	// Publish adds the checkpoint whose journals were written. It fails like Seal.
	Publish(ctx context.Context, holder string, c Checkpoint, key Key) error
}

// ErrTurnLost means that making a checkpoint took so long that another instance has begun to.
var ErrTurnLost = errors.New("another instance makes the checkpoint now")

// ErrBroken means that a journal does not lead on from where the last checkpoint has it.
var ErrBroken = errors.New("the journal does not lead on from the last checkpoint")

// Book is where a seller's journal stands.
type Book struct {
	Seller string
	// Now is the row of totals as it is stored.
	Now ledger.Account
	// Sealed is where a checkpoint has the journal: number, hash and totals. Its hash is empty where none has it.
	Sealed ledger.Account
}

func (b Book) isSealed() bool { return b.Sealed.Hash != "" }

// Sealed is a journal as a checkpoint has it.
type Sealed struct {
	Seller  string
	Account ledger.Account
}

// Signer has the service's keys.
type Signer interface {
	SigningKey() (kid string, key ed25519.PrivateKey)
	VerificationKey(kid string) (ed25519.PublicKey, bool)
}
