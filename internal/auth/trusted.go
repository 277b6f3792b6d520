package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// TrustedIssuer is the marketplace's own sign-in, whose access tokens sellers may send in place of ours.
type TrustedIssuer interface {
	// Name is the issuer, as its tokens name it.
	Name() string
	// Issued reports whether a token says that it is of this issuer. It checks nothing, and asks nobody.
	Issued(token string) bool
	// Verify returns the external id of the seller whom a token is about. It fails with [ErrToken], or with
	// [ErrIssuerUnavailable] while the issuer can't be asked for the key.
	Verify(ctx context.Context, token string) (externalID string, err error)
}

// Failures of tokens of a trusted issuer.
var (
	ErrIssuerUnavailable = fault.New(fault.Unavailable, "issuer_unavailable",
		"The sign-in that issued this token can't be asked for its keys at the moment. Try again in a moment.")
	ErrUnknownSeller = fault.New(fault.Forbidden, "unknown_seller",
		"No seller has the external id that this token names. The marketplace makes sellers with POST /api/marketplace/sellers.")
	ErrSessionNeeded = fault.New(fault.Forbidden, "session_needed",
		"This needs a sign-in at Bursar: a token of another issuer has no session here. Sign in on the pages, or with POST /api/auth/login.")
	ErrTrustedSuspended = fault.New(fault.Forbidden, "seller_suspended", "This seller is suspended. Contact support to learn more.")
)

// IsOfTrustedIssuer reports whether a token says that it is of the trusted issuer. It may be forged.
func (s *Service) IsOfTrustedIssuer(token string) bool {
	return s.o.TrustedIssuer != nil && s.o.TrustedIssuer.Issued(token)
}

// AuthenticateTrusted finds the seller who holds a token of the trusted issuer. It believes the token in nothing but the
// seller's external id: role, address and suspension are what the database says now. The principal has no session. It fails
// as [TrustedIssuer.Verify] does, or with [ErrUnknownSeller], [ErrTrustedSuspended] or [ErrRole].
func (s *Service) AuthenticateTrusted(ctx context.Context, token string) (Principal, error) {
	if s.o.TrustedIssuer == nil {
		return Principal{}, ErrToken
	}
	externalID, err := s.o.TrustedIssuer.Verify(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	if problem := CheckExternalID(externalID); problem != "" {
		return Principal{}, ErrUnknownSeller.Because(fmt.Errorf("the external id in the token %s", problem))
	}
	user, found, err := s.o.Store.UserByExternalID(ctx, externalID)
	switch {
	case errors.Is(err, ErrTampered):
		s.tampered(ctx, tamperedUser, slog.String("user_id", user.ID))
		return Principal{}, ErrToken.Because(err)
	case err != nil:
		return Principal{}, err
	case !found:
		return Principal{}, ErrUnknownSeller
	case user.Role != Seller: // an admin signs in here, where a second factor may be asked for
		return Principal{}, ErrRole.WithMessage("Tokens of another issuer are for sellers. Sign in at Bursar.")
	case user.Suspended:
		return Principal{}, ErrTrustedSuspended
	}
	return Principal{
		UserID: user.ID, Email: user.Email, Role: user.Role, Verified: user.Verified, Issuer: s.o.TrustedIssuer.Name(),
	}, nil
}

// IssuerActor names who asks without a session of ours, for the journal; "" where they have one.
func (p Principal) IssuerActor() string {
	if p.Issuer == "" {
		return ""
	}
	return ledger.ActorIssuer + p.Issuer
}
