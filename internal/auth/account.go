package auth

import (
	"context"

	"bursar/internal/fault"
)

// Me returns the user who is asking, with the figures to show.
func (s *Service) Me(ctx context.Context, p Principal) (User, Stats, error) {
	user, stats, found, err := s.o.Store.UserWithStats(ctx, p.UserID)
	if err == nil && !found {
		err = ErrToken
	}
	return user, stats, err
}

// SetProductsListed records how many products a seller has listed, or fails with [ErrSellerNotFound].
func (s *Service) SetProductsListed(ctx context.Context, seller string, n int64) error {
	if n < 0 {
		return fault.Field("productsListed", "must not be negative")
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		found, err := tx.SetProductsListed(ctx, seller, n)
		if err == nil && !found {
			err = ErrSellerNotFound
		}
		return err
	})
}
