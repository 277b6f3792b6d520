package proof

import (
	"context"
	"crypto/ed25519"
	"errors"
	"time"

	"bursar/internal/ledger"
)

// Store keeps books and checkpoints.
type Store interface {
	// LastCheckpoint is the newest one with its key, or the zero one where there is none.
	LastCheckpoint(ctx context.Context) (Checkpoint, Key, error)
	// Checkpoint is the one with a number, or the zero one where there is none.
	Checkpoint(ctx context.Context, number int64) (Checkpoint, error)
	// CheckpointKeys are those that ever signed one.
	CheckpointKeys(ctx context.Context) ([]Key, error)

	// Books lists books in the order of their sellers' ids from after one on, up to limit, each beside what
	// a checkpoint has of it.
	Books(ctx context.Context, checkpoint int64, after string, limit int) ([]Book, error)
	// Book is one of them, or one without a seller where there is none.
	Book(ctx context.Context, checkpoint int64, seller string) (Book, error)
	// ChainsSince is when this database began to chain transfers.
	ChainsSince(ctx context.Context) (time.Time, error)
	// CatchUp adds to a chain what it lacks, a batch at most, and returns how much it still lacks. It fails
	// with [ErrBroken] if the transfers are not there.
	CatchUp(ctx context.Context, seller string) (int64, error)

	// EntriesAfter lists a seller's transfers above a number, in order, up to limit.
	EntriesAfter(ctx context.Context, seller string, number int64, limit int) ([]ledger.Entry, error)
	// Period is the numbers of a seller's first transfer of a period and of its last one, among the first
	// so many: the first that is not before it, and the last that is not after it.
	Period(ctx context.Context, seller string, among int64, from, to time.Time) (first, last int64, err error)
	// SealedUpTo is the longest chain up to a number that one of the first checkpoints has, if any has one.
	SealedUpTo(ctx context.Context, checkpoint int64, seller string, number int64) (ledger.Chain, bool, error)
	// SealedBetween lists the chains above one number and up to another that the first checkpoints have.
	SealedBetween(ctx context.Context, checkpoint int64, seller string, above, upTo int64) ([]ledger.Chain, error)

	// TakeTurn lets one holder make the next checkpoint, until it is over or a time has come.
	TakeTurn(ctx context.Context, holder string, now, until time.Time) (bool, error)
	EndTurn(ctx context.Context, holder string) error
	// Seal writes books of the checkpoint that is being made, and keeps the turn until another time. It
	// fails with [ErrTurnLost] if somebody else has the turn.
	Seal(ctx context.Context, holder string, until time.Time, number int64, books []Sealed) error
	// Publish adds the checkpoint whose books were sealed. It fails like Seal.
	Publish(ctx context.Context, holder string, c Checkpoint, key Key) error
}

// ErrTurnLost means that making a checkpoint took so long that somebody else has begun to.
var ErrTurnLost = errors.New("another instance makes the checkpoint now")

// Unchained is for how long after chains began a binary that knows of none may run beside those that do, and
// leave transfers behind that are chained later. What lacks its place in a chain after that was made by hand.
const Unchained = 24 * time.Hour

// ErrBroken means that a chain is not that of its transfers.
var ErrBroken = errors.New("the transfers do not lead to the head of the chain")

// Book is where a seller's chain stands.
type Book struct {
	Seller string
	// Transfers is how many there are: more than the chain has where a binary without chains made some.
	Transfers int64
	// Chain has no standing, which is that of all transfers in the book.
	Chain ledger.Chain
	// Sealed is where a checkpoint has the chain; without a head, it has none.
	Sealed ledger.Chain
}

func (b Book) isSealed() bool { return b.Sealed.Head != "" }

// Sealed is a book as a checkpoint has it.
type Sealed struct {
	Seller string
	Chain  ledger.Chain
}

// Signer has the service's keys.
type Signer interface {
	SigningKey() (kid string, key ed25519.PrivateKey)
	VerificationKey(kid string) (ed25519.PublicKey, bool)
}
