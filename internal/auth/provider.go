package auth

import (
	"context"
	"net/url"

	"bursar/internal/fault"
)

// ProviderID names one of the identity providers, as it stands in the addresses of the API.
type ProviderID string

// The two providers of the interface.
const (
	ProviderA ProviderID = "provider-a"
	ProviderB ProviderID = "provider-b"
)

// Provider signs people in elsewhere. Every method may be called at once by many.
type Provider interface {
	// Label is what people call it, for a button.
	Label() string
	// Issuer is the issuer of its identities.
	Issuer() string
	// Begin is the address to send the browser to. It fails with [ErrProviderUnavailable] when the
	// provider can't be reached.
	Begin(ctx context.Context, r ProviderRequest) (string, error)
	// Finish finds out who came back with answer, the query of the callback. It fails with
	// [ErrProviderDenied] where the person or the provider said no, with [ErrProviderUnavailable], or
	// with [ErrProviderAnswer] for an answer that proves nothing. Faults carry their cause, for the log.
	Finish(ctx context.Context, r ProviderRequest, answer url.Values) (Identity, error)
}

// ProviderRequest is what ties the way there to the way back. It is made at random for each sign-in,
// and known to the browser that began it alone.
type ProviderRequest struct {
	// State is sent to the provider, and must come back (RFC 6749 §10.12).
	State string
	// Nonce is to be in the ID token (OpenID Connect Core §3.1.3.7).
	Nonce string
	// Verifier proves that the client that exchanges the code began the sign-in (PKCE, RFC 7636).
	Verifier string
}

// Identity is a user at an identity provider. Issuer and Subject alone identify it:
// e-mail addresses change hands.
type Identity struct {
	Issuer  string
	Subject string
	// Email may be empty. EmailVerified says that the provider verified it.
	Email         string
	EmailVerified bool
	// Name and Avatar, an https address, are what the provider shows; either may be empty.
	Name   string
	Avatar string
}

// Why a sign-in through a provider fails. The sentences are shown on the sign-in page, where people have
// e-mail and password and the other provider to go on with, so none of them holds anything that came from
// outside; the log has the cause.
var (
	ErrProviderNotConfigured = fault.New(fault.NotFound, "provider_not_configured",
		"Sign-in through this provider is not set up here. Sign in with e-mail and password.")
	ErrProviderDenied = fault.New(fault.Refused, "provider_denied",
		"You did not finish signing in at the provider, or it did not let you. Start again, or sign in with e-mail and password.")
	ErrProviderUnavailable = fault.New(fault.Unavailable, "provider_unavailable",
		"The provider can't be reached at the moment. Try again shortly, or sign in with e-mail and password.")
	ErrProviderAnswer = fault.New(fault.Refused, "provider_answer",
		"The provider's answer does not prove who you are. Start again; if it happens again, sign in with e-mail and password and tell the operator.")
	ErrSignInExpired = fault.New(fault.Refused, "sign_in_expired",
		"This sign-in was begun in another browser, took too long, or was used already. Start again.")
	ErrEmailMissing = fault.New(fault.Refused, "email_missing",
		"The provider did not tell an e-mail address that can be used here. Allow it to share yours and start again, or register with e-mail and password.")
	ErrEmailUnverified = fault.New(fault.Refused, "email_unverified",
		"There is an account with your e-mail address, and the provider has not verified that the address is yours. Verify it there and start again, or sign in with the account's password.")
	ErrAdminByPassword = fault.New(fault.Refused, "admin_by_password",
		"The account with your e-mail address is an administrator's, which a provider can't be linked to. Sign in with its password.")
	ErrIdentityUnlinked = fault.New(fault.Refused, "identity_unlinked",
		"A provider was unlinked from the account with your e-mail address, so none is linked by the address alone any more. Sign in another way, and start again here within 15 minutes.")
	ErrSuspended = fault.New(fault.Forbidden, "suspended",
		"Your account is suspended. Ask the marketplace's support why.")
	ErrSignInFailed = fault.New(fault.Unavailable, "sign_in_failed",
		"Something went wrong on our side, and you are not signed in. Try again in a moment; if it stays, tell the operator when it happened.")
)

// providerIDs lists the providers in the order of their buttons.
var providerIDs = []ProviderID{ProviderA, ProviderB}

// SignInButtons are the providers that are set up.
func (s *Service) SignInButtons() []SignInButton {
	var buttons []SignInButton
	for _, id := range providerIDs {
		if p, ok := s.o.Providers[id]; ok {
			buttons = append(buttons, SignInButton{ID: id, Label: p.Label()})
		}
	}
	return buttons
}
