package sale

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"bursar/internal/fault"
)

// recordBatch bounds how many sales one transaction records, so that requests wait little for it.
const recordBatch = 50

// errAlone says that the sales of a transaction have to be recorded one by one, because one failed after it had been added.
var errAlone = errors.New("a sale of a group failed")

// RecordAll records sales as [Service.Record] does, in few transactions, and returns what became of each: nil or the fault
// that it was refused with. A sale that is refused harms no other. If it fails itself, some may have been recorded; to
// record them again is safe.
func (s *Service) RecordAll(ctx context.Context, sales []NewSale) ([]error, error) {
	refused := make([]error, 0, len(sales))
	for group := range slices.Chunk(sales, recordBatch) {
		errs, err := s.recordGroup(ctx, group)
		if errors.Is(err, errAlone) {
			errs, err = s.recordEach(ctx, group)
		}
		if err != nil {
			return nil, err
		}
		refused = append(refused, errs...)
	}
	return refused, nil
}

// isRefusal reports whether an error is about one sale, and not about the database.
func isRefusal(err error) bool {
	f := fault.From(err)
	return f != nil && f.Kind != fault.Unavailable
}

// recordGroup records sales in one transaction. It fails with [errAlone] if that is not possible, and records none then.
func (s *Service) recordGroup(ctx context.Context, group []NewSale) ([]error, error) {
	now := s.o.Now()
	drafts, invalid := make([]Sale, len(group)), make([]error, len(group))
	order := make([]int, len(group))
	for i, n := range group {
		order[i] = i
		drafts[i], invalid[i] = s.draft(n, now)
	}
	// Sales are locked by id, then journals by owner, as everywhere. Of two with one id the first in the request counts.
	bySale := slices.SortedStableFunc(slices.Values(order), func(a, b int) int { return cmp.Compare(group[a].ID, group[b].ID) })
	bySeller := slices.SortedStableFunc(slices.Values(order), func(a, b int) int { return cmp.Compare(group[a].Seller, group[b].Seller) })
	var refused []error
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		refused = slices.Clone(invalid)
		added, ids := make([]bool, len(group)), make(map[string]bool, len(group))
		for _, i := range bySale {
			if refused[i] != nil {
				continue
			}
			var err error
			if _, added[i], err = insert(ctx, tx, drafts[i], ids); isRefusal(err) {
				refused[i] = err
			} else if err != nil {
				return err
			}
			ids[group[i].ID] = ids[group[i].ID] || added[i]
		}
		for _, i := range bySeller {
			if !added[i] {
				continue
			}
			if err := earn(ctx, tx, drafts[i], group[i].Actor, now); isRefusal(err) {
				return errAlone
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	return refused, err
}

// recordEach records each sale in a transaction of its own.
func (s *Service) recordEach(ctx context.Context, group []NewSale) ([]error, error) {
	refused := make([]error, len(group))
	for i, n := range group {
		if _, _, err := s.Record(ctx, n); isRefusal(err) {
			refused[i] = err
		} else if err != nil {
			return nil, err
		}
	}
	return refused, nil
}
