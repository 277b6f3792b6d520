package proof

import (
	"context"
	"fmt"
	"slices"
)

// tileSize is how many journals' hashes are kept as one. It is a power of two, so that each tile is a
// subtree; then a path through the whole tree is one through a tile, and one through the tree of tiles.
const tileSize = 1024

// tiles is the tree of a checkpoint, without its lowest levels.
type tiles struct {
	checkpoint int64
	roots      []sum
	// before[i] is the seller of the last journal before tile i.
	before []string

	open tree // the tile that is not full yet
	last string
}

func (t *tiles) add(seller string, leaf sum) {
	if t.open.n == 0 {
		t.before = append(t.before, t.last)
	}
	t.open.add(leaf)
	t.last = seller
	if t.open.n == tileSize {
		t.roots = append(t.roots, t.open.root())
		t.open = tree{}
	}
}

func (t *tiles) journals() int64 { return int64(len(t.roots))*tileSize + t.open.n }

// all is the roots of the tiles, the last of which may not be full.
func (t *tiles) all() []sum {
	if t.open.n == 0 {
		return t.roots
	}
	return append(slices.Clip(t.roots), t.open.root())
}

func (t *tiles) root() sum { return rootOf(t.all()) }

// place finds a seller's journal in the tree of a checkpoint: its index and its path.
func (s *Service) place(ctx context.Context, c Checkpoint, seller string) (index int64, path []sum, err error) {
	t, err := s.tilesOf(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	tile := len(t.before) - 1
	for tile > 0 && t.before[tile] >= seller {
		tile--
	}
	if tile < 0 {
		return 0, nil, errNotCheckpointed
	}
	var leaves []sum
	at := int64(-1)
	err = s.checkpointedJournals(ctx, c.Number, t.before[tile], func(other string, leaf sum) bool {
		if other == seller {
			at = int64(len(leaves))
		}
		leaves = append(leaves, leaf)
		return len(leaves) < tileSize
	})
	if err != nil {
		return 0, nil, err
	}
	if at < 0 || rootOf(leaves) != t.all()[tile] {
		return 0, nil, fmt.Errorf(`the journals kept with checkpoint %d were changed; run "bursar audit"`, c.Number)
	}
	return int64(tile)*tileSize + at, append(pathOf(leaves, at), pathOf(t.all(), int64(tile))...), nil
}

// tilesOf are those of a checkpoint. If another instance made it, this reads all journals once.
func (s *Service) tilesOf(ctx context.Context, c Checkpoint) (*tiles, error) {
	s.mu.Lock()
	known := s.tiles
	s.mu.Unlock()
	if known != nil && known.checkpoint == c.Number && known.root().String() == c.Root {
		return known, nil
	}
	t := &tiles{checkpoint: c.Number}
	if err := s.checkpointedJournals(ctx, c.Number, "", func(seller string, leaf sum) bool {
		t.add(seller, leaf)
		return true
	}); err != nil {
		return nil, err
	}
	if t.journals() != c.Journals || t.root().String() != c.Root {
		return nil, fmt.Errorf(`checkpoint %d does not hold the journals that are kept with it; run "bursar audit"`, c.Number)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tiles == nil || s.tiles.checkpoint <= c.Number {
		s.tiles = t
	}
	return t, nil
}

// checkpointedJournals yields the journals of a checkpoint that come after a seller's, until yield has enough.
func (s *Service) checkpointedJournals(ctx context.Context, checkpoint int64, after string, yield func(seller string, leaf sum) bool) error {
	for {
		journalStates, err := s.o.Store.Journals(ctx, checkpoint, after, journalsPage)
		if err != nil || len(journalStates) == 0 {
			return err
		}
		for _, b := range journalStates {
			if b.isCheckpointed() && !yield(b.Seller, leafOf(b.Seller, b.Checkpointed, b.Behind)) {
				return nil
			}
		}
		after = journalStates[len(journalStates)-1].Seller
	}
}
