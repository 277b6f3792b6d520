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

	// Journals lists journals in the order of their sellers' ids from after one on, up to limit, each beside where a
	// checkpoint has it.
	Journals(ctx context.Context, checkpoint int64, after string, limit int) ([]JournalState, error)
	// JournalState is one of them, or one without a seller where there is none.
	JournalState(ctx context.Context, checkpoint int64, seller string) (JournalState, error)

	// EntriesAfter lists a seller's entries above a number, in order, up to limit. Their Before may be empty.
	EntriesAfter(ctx context.Context, seller string, number int64, limit int) ([]ledger.Entry, error)
	// Period is the numbers of a seller's first and last entry of a period, among the first so many entries: from the first one
	// that is not before the period, to the one before the first that is after it. Without any, last is first - 1.
	Period(ctx context.Context, seller string, among int64, from, to time.Time) (first, last int64, err error)
	// CheckpointedBetween lists where the checkpoints up to a number have a seller's journal, above one entry and up to
	// another, in order.
	CheckpointedBetween(ctx context.Context, checkpoint int64, seller string, above, upTo int64) ([]ledger.Head, error)

	// AcquireLease leases the making of the next checkpoint to one holder, until it ends the lease or a time has come.
	AcquireLease(ctx context.Context, holder string, now, until time.Time) (bool, error)
	ReleaseLease(ctx context.Context, holder string) error
	// SaveJournals writes journals of the checkpoint that is being made, and extends the lease. It fails with [ErrLeaseLost]
	// if another holder has the lease.
	SaveJournals(ctx context.Context, holder string, until time.Time, number int64, journalStates []Checkpointed) error
	// Publish adds the checkpoint whose journals were written. It fails like SaveJournals.
	Publish(ctx context.Context, holder string, c Checkpoint, key Key) error
}

// ErrLeaseLost means that making a checkpoint took so long that another instance has begun to.
var ErrLeaseLost = errors.New("another instance makes the checkpoint now")

// ErrBroken means that a journal does not lead on from where the last checkpoint has it.
var ErrBroken = errors.New("the journal does not lead on from the last checkpoint")

// JournalState is where a seller's journal stands.
type JournalState struct {
	Seller string
	// Now is the row of totals as it is stored.
	Now ledger.Head
	// Checkpointed is where a checkpoint has the journal: number, hash and totals. Its hash is empty where none has it.
	Checkpointed ledger.Head
	// Behind says that the checkpoint left the journal there, because what came later did not lead on from it.
	Behind bool
}

func (b JournalState) isCheckpointed() bool { return b.Checkpointed.Hash != "" }

// Checkpointed is a journal as a checkpoint has it.
type Checkpointed struct {
	Seller string
	Head   ledger.Head
	Behind bool
}

// Signer has the service's keys.
type Signer interface {
	SigningKey() (kid string, key ed25519.PrivateKey)
	VerificationKey(kid string) (ed25519.PublicKey, bool)
}
