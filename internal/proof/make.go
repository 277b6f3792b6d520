package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/ledger"
)

// How much is read at once, and how long a turn lasts unless it is kept.
const (
	booksPage   = 500
	entriesPage = 1000
	turnLasts   = time.Minute
)

// A checkpoint that somebody waits for is made at most once in leastRest, and so that making them takes a
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

// Trust is what somebody vouches for that the service would refuse by itself.
type Trust struct {
	// Key is the id of a key that may have signed the last checkpoint, though it is not in the key set any more.
	Key string
	// Unchained takes in transfers that no chain had when they were made, however new they are.
	Unchained bool
}

// Make makes a checkpoint now, which holds every book as it is at some moment of the making. It reads beside
// everybody's writes and holds up nobody. It signs nothing that does not continue the last checkpoint: that
// one must be signed by a key of this installation (or be trusted), its books
// must be those that it was made of, and each chain must lead on from where it had it.
func (s *Service) Make(ctx context.Context, trust Trust) (Checkpoint, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	defer end()
	return s.makeInTurn(ctx, trust)
}

// begin waits until nobody else here makes a checkpoint.
func (s *Service) begin(ctx context.Context) (end func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// makeInTurn makes a checkpoint unless somebody else does elsewhere.
func (s *Service) makeInTurn(ctx context.Context, trust Trust) (Checkpoint, error) {
	began := s.o.Now()
	mine, err := s.o.Store.TakeTurn(ctx, s.holder, began, began.Add(turnLasts))
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
	return c, errors.Join(err, s.o.Store.EndTurn(context.WithoutCancel(ctx), s.holder))
}

func (s *Service) make(ctx context.Context, trust Trust) (Checkpoint, error) {
	last, key, err := s.o.Store.LastCheckpoint(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	if err := s.vouch(last, key, trust); err != nil {
		return Checkpoint{}, err
	}
	m := maker{s: s, trust: trust, last: last.Number, until: s.o.Now().Add(turnLasts), tiles: &tiles{checkpoint: last.Number + 1}}
	if m.chainsSince, err = s.o.Store.ChainsSince(ctx); err != nil {
		return Checkpoint{}, err
	}
	if err := m.run(ctx); err != nil {
		return Checkpoint{}, err
	}
	if last.Number > 0 && (m.before.Books() != last.Books || m.before.String() != last.Root) {
		return Checkpoint{}, fmt.Errorf(`checkpoint %d does not hold the books that are kept with it, so none is made after it; run "bursar audit"`, last.Number)
	}
	next := Checkpoint{
		Number: last.Number + 1, At: s.o.Now(), Currency: s.o.Currency.Code(),
		Books: m.tiles.books(), Root: m.tiles.root().String(),
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
	s.o.Logger.InfoContext(ctx, "checkpoint made", slog.Int64("number", next.Number), slog.Int64("books", next.Books),
		slog.String("hash", string(next.Hash())), slog.String("kid", next.KeyID))
	return next, nil
}

// vouch refuses to go on from a checkpoint that is not ours: whoever can write to the database could have
// made it, and would have the service sign what follows from it.
func (s *Service) vouch(last Checkpoint, key Key, trust Trust) error {
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

// maker goes through all books once.
type maker struct {
	s     *Service
	trust Trust
	last  int64 // the checkpoint before
	until time.Time
	// chainsSince is when transfers began to be chained.
	chainsSince time.Time
	// before adds up the books as that one has them, and tiles as this one does.
	before Root
	tiles  *tiles
}

func (m *maker) run(ctx context.Context) error {
	for after := ""; ; {
		books, err := m.s.o.Store.Books(ctx, m.last, after, booksPage)
		if err != nil {
			return err
		}
		if len(books) == 0 {
			return nil
		}
		if err := m.page(ctx, books); err != nil {
			return err
		}
		after = books[len(books)-1].Seller
	}
}

func (m *maker) page(ctx context.Context, books []Book) error {
	var moved []Sealed
	for _, b := range books {
		if b.isSealed() {
			m.before.Add(b.Seller, b.Sealed)
		}
		chain, err := m.follow(ctx, b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrBroken):
			m.s.o.Logger.ErrorContext(ctx, `a book does not continue from its last checkpoint, and is left there; run "bursar audit"`,
				slog.String("seller", b.Seller), slog.Any("error", err))
			chain = b.Sealed
			moved = append(moved, Sealed{b.Seller, chain}) // over what somebody who did not finish may have left
		case err != nil:
			return err
		}
		if chain != b.Sealed {
			moved = append(moved, Sealed{b.Seller, chain})
		}
		if chain.Head != "" {
			m.tiles.add(b.Seller, bookSum(b.Seller, chain))
		}
	}
	now := m.s.o.Now()
	if len(moved) == 0 && now.Add(turnLasts/2).Before(m.until) {
		return nil
	}
	m.until = now.Add(turnLasts)
	return m.s.o.Store.Seal(ctx, m.s.holder, m.until, m.last+1, moved)
}

// follow walks from where the last checkpoint has a chain to where it is now, over the transfers themselves.
func (m *maker) follow(ctx context.Context, b Book) (ledger.Chain, error) {
	b, err := m.catchUp(ctx, b)
	if err != nil {
		return ledger.Chain{}, err
	}
	chain := b.Sealed
	if !b.isSealed() {
		chain = ledger.NewChain(b.Seller)
	}
	for chain.Number < b.Chain.Number {
		entries, err := m.s.o.Store.EntriesAfter(ctx, b.Seller, chain.Number, int(min(entriesPage, b.Chain.Number-chain.Number)))
		if err != nil {
			return ledger.Chain{}, err
		}
		if len(entries) == 0 {
			return ledger.Chain{}, fmt.Errorf("%w: there is none after number %d", ErrBroken, chain.Number)
		}
		for _, e := range entries {
			if chain = chain.Add(e.At, e.Transfer); chain.Number != e.Number {
				return ledger.Chain{}, fmt.Errorf("%w: number %d is missing", ErrBroken, chain.Number)
			}
		}
	}
	if chain.Number != b.Chain.Number || chain.Head != b.Chain.Head {
		return ledger.Chain{}, fmt.Errorf("%w: those after number %d", ErrBroken, b.Sealed.Number)
	}
	return chain, nil
}

// catchUp chains what a binary without chains made.
func (m *maker) catchUp(ctx context.Context, b Book) (Book, error) {
	for b.Transfers > b.Chain.Number {
		if err := m.mayCatchUp(ctx, b); err != nil {
			return b, err
		}
		_, err := m.s.o.Store.CatchUp(ctx, b.Seller)
		if err == nil {
			b, err = m.s.o.Store.Book(ctx, m.last, b.Seller)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// mayCatchUp refuses transfers that are too new to be those of such a binary, which somebody made by hand.
func (m *maker) mayCatchUp(ctx context.Context, b Book) error {
	if m.trust.Unchained || !m.s.o.Now().After(m.chainsSince.Add(Unchained)) {
		return nil
	}
	entries, err := m.s.o.Store.EntriesAfter(ctx, b.Seller, max(0, b.Chain.Number-1), entriesPage) // from the last one that is chained
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.At.After(m.chainsSince.Add(Unchained)) {
			return fmt.Errorf(`%w: number %d and those after it were not chained when they were made; if a binary older than chains made them, run "bursar checkpoint --unchained"`,
				ErrBroken, max(1, b.Chain.Number+1))
		}
	}
	return nil
}
