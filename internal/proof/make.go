package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/ledger"
)

// How much is read at once, and how long the lease on making a checkpoint lasts unless it is extended.
const (
	journalsPage = 500
	entriesPage  = 1000
	leaseLasts   = time.Minute
)

// A checkpoint that a statement waits for is made at most once in leastRest, and so that making them takes at most a
// twentieth of the time.
const (
	leastRest = time.Second
	restShare = 20
)

// MakeDue makes a checkpoint if the last one is old enough. It returns 0: there is nothing more to do then.
func (s *Service) MakeDue(ctx context.Context) (int, error) {
	last, _, err := s.o.Store.LastCheckpoint(ctx)
	if err != nil {
		return 0, err
	}
	if age := s.o.Now().Sub(last.At); last.Number > 0 && age < s.o.Every && age > -s.o.Every {
		return 0, nil
	}
	_, err = s.Make(ctx, Trust{})
	if errors.Is(err, errBeingMade) {
		err = nil
	}
	return 0, err
}

// Trust is what the operator approves that the service would refuse by itself.
type Trust struct {
	// Key is the id of a key that may have signed the last checkpoint, though it is not in the key set any more.
	Key string
}

// Make makes a checkpoint now. It holds every journal as it is at some moment of the making, and blocks no writes. It
// signs only what continues the last checkpoint: that one must be signed by a key of this installation (or be
// trusted), and have been made of the journals that are kept with it. A journal that does not lead on from there is
// left where the last checkpoint has it, and this one says so.
func (s *Service) Make(ctx context.Context, trust Trust) (Checkpoint, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	defer end()
	return s.makeInTurn(ctx, trust)
}

// begin waits until no other goroutine of this instance makes a checkpoint.
func (s *Service) begin(ctx context.Context) (end func(), err error) {
	select {
	case s.making <- struct{}{}:
		return func() { <-s.making }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// makeInTurn makes a checkpoint unless another instance does.
func (s *Service) makeInTurn(ctx context.Context, trust Trust) (Checkpoint, error) {
	began := s.o.Now()
	mine, err := s.o.Store.AcquireLease(ctx, s.holder, began, began.Add(leaseLasts))
	if err != nil {
		return Checkpoint{}, err
	}
	if !mine {
		return Checkpoint{}, errBeingMade
	}
	c, err := s.make(ctx, trust)
	s.mu.Lock()
	now := s.o.Now()
	s.restUntil = now.Add(max(leastRest, restShare*now.Sub(began)))
	s.mu.Unlock()
	return c, errors.Join(err, s.o.Store.ReleaseLease(context.WithoutCancel(ctx), s.holder))
}

func (s *Service) make(ctx context.Context, trust Trust) (Checkpoint, error) {
	last, key, err := s.o.Store.LastCheckpoint(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	if err := s.continues(last, key, trust); err != nil {
		return Checkpoint{}, err
	}
	m := maker{s: s, last: last.Number, until: s.o.Now().Add(leaseLasts), tiles: &tiles{checkpoint: last.Number + 1}}
	if err := m.run(ctx); err != nil {
		return Checkpoint{}, err
	}
	if last.Number > 0 && (m.before.Journals() != last.Journals || m.before.String() != last.Root) {
		return Checkpoint{}, fmt.Errorf(`checkpoint %d does not hold the journals that are kept with it, so none is made after it; run "bursar audit"`, last.Number)
	}
	next := Checkpoint{
		Number: last.Number + 1, At: s.o.Now(), Currency: s.o.Currency.Code(),
		Journals: m.tiles.journals(), Root: m.tiles.root().String(),
	}
	if last.Number > 0 {
		next.Previous = last.Hash()
	}
	_, private := s.o.Signer.SigningKey()
	next, key = next.sign(private)
	if err := s.o.Store.Publish(ctx, s.holder, next, key); err != nil {
		return Checkpoint{}, err
	}
	s.mu.Lock()
	s.tiles = m.tiles
	s.mu.Unlock()
	s.o.Logger.InfoContext(ctx, "checkpoint made", slog.Int64("number", next.Number), slog.Int64("journals", next.Journals),
		slog.String("hash", string(next.Hash())), slog.String("kid", next.KeyID))
	return next, nil
}

// continues refuses to go on from a checkpoint that is not ours. Otherwise an attacker who can write to the database
// could make one, and have the service sign what follows from it.
func (s *Service) continues(last Checkpoint, key Key, trust Trust) error {
	if last.Number == 0 {
		return nil
	}
	if err := last.SignedBy(key); err != nil {
		return fmt.Errorf("checkpoint %d: %w", last.Number, err)
	}
	if _, ours := s.o.Signer.VerificationKey(last.KeyID); !ours && last.KeyID != trust.Key {
		return fmt.Errorf(`checkpoint %d is signed with key %s, which is not in the key set; if it once was, run "bursar checkpoint --trust %[2]s"`, last.Number, last.KeyID)
	}
	return nil
}

// maker goes through all journals once.
type maker struct {
	s     *Service
	last  int64 // the checkpoint before
	until time.Time
	// before adds up the journals as that one has them, and tiles as this one does.
	before Root
	tiles  *tiles
}

func (m *maker) run(ctx context.Context) error {
	for after := ""; ; {
		journalStates, err := m.s.o.Store.Journals(ctx, m.last, after, journalsPage)
		if err != nil {
			return err
		}
		if len(journalStates) == 0 {
			return nil
		}
		if err := m.page(ctx, journalStates); err != nil {
			return err
		}
		after = journalStates[len(journalStates)-1].Seller
	}
}

func (m *maker) page(ctx context.Context, journalStates []JournalState) error {
	var moved []Checkpointed
	for _, b := range journalStates {
		if b.isCheckpointed() {
			m.before.Add(b.Seller, b.Checkpointed, b.Behind)
		}
		at, err := m.follow(ctx, b)
		behind := errors.Is(err, ErrBroken)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case behind:
			m.s.o.Logger.ErrorContext(ctx, `journal does not continue its last checkpoint`,
				slog.String("seller", b.Seller), slog.Any("error", err))
			at = b.Checkpointed
			moved = append(moved, Checkpointed{b.Seller, at, at.Hash != ""}) // overwrites what an unfinished checkpoint may have left
		case err != nil:
			return err
		}
		if !behind && (!isAt(at, b.Checkpointed) || b.Behind) {
			moved = append(moved, Checkpointed{Seller: b.Seller, Head: at})
		}
		if at.Hash != "" {
			m.tiles.add(b.Seller, leafOf(b.Seller, at, behind))
		}
	}
	now := m.s.o.Now()
	if len(moved) == 0 && now.Add(leaseLasts/2).Before(m.until) {
		return nil
	}
	m.until = now.Add(leaseLasts)
	return m.s.o.Store.SaveJournals(ctx, m.s.holder, m.until, m.last+1, moved)
}

// follow walks from where the last checkpoint has a journal to where it is now. Each entry must follow on the one before
// and carry the service's MAC, and the row of totals must be the last entry's.
func (m *maker) follow(ctx context.Context, b JournalState) (ledger.Head, error) {
	at := ledger.NewHead(b.Seller)
	if b.isCheckpointed() {
		at = b.Checkpointed
		at.Owner = b.Seller
	}
	if b.Now.Number < at.Number {
		return at, fmt.Errorf("%w: it went back from entry %d to entry %d", ErrBroken, at.Number, b.Now.Number)
	}
	if err := b.Now.Check(m.s.o.Keys); err != nil {
		return at, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	for at.Number < b.Now.Number {
		entries, err := m.s.o.Store.EntriesAfter(ctx, b.Seller, at.Number, int(min(entriesPage, b.Now.Number-at.Number)))
		if err != nil {
			return at, err
		}
		if len(entries) == 0 {
			return at, fmt.Errorf("%w: there is no entry after entry %d", ErrBroken, at.Number)
		}
		for _, e := range entries {
			if at, err = at.Follow(m.s.o.Keys, e); err != nil {
				return at, fmt.Errorf("%w: %w", ErrBroken, err)
			}
		}
	}
	if at.Hash != b.Now.Hash || at.Balance != b.Now.Balance {
		return at, fmt.Errorf("%w: the row of totals is not that after entry %d", ErrBroken, at.Number)
	}
	return at, nil
}

// isAt reports whether two heads are the same place of a journal. Their MACs may be by different keys.
func isAt(a, b ledger.Head) bool {
	return a.Number == b.Number && a.Hash == b.Hash && a.Balance == b.Balance
}
