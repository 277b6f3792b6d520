package auth

import (
	"context"
	"log/slog"

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

// SetAccess gives a user a role, and suspends them or lets them in again, or fails with
// [ErrUserNotFound]. It holds from the user's next request on. A suspension ends their sessions.
func (s *Service) SetAccess(ctx context.Context, userID string, role Role, suspended bool) error {
	if role != Buyer && role != Seller && role != Admin {
		return fault.Field("role", "must be buyer, seller or admin")
	}
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		found, err := tx.SetUserAccess(ctx, userID, role, suspended)
		if err != nil {
			return err
		}
		if !found {
			return ErrUserNotFound
		}
		if !suspended {
			return nil
		}
		return tx.EndUserSessions(ctx, userID, endedBySuspension, s.o.Now())
	})
	if err != nil {
		return err
	}
	s.o.Logger.InfoContext(ctx, "access changed", slog.String("user", userID),
		slog.String("role", string(role)), slog.Bool("suspended", suspended))
	return nil
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
