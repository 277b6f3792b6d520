package auth

import (
	"context"
	"net/url"
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
	// Verifier proves that whoever exchanges the code began the sign-in (PKCE, RFC 7636).
	Verifier string
}

// Identity is who somebody is at an identity provider. It is told apart by Issuer and Subject alone:
// e-mail addresses change hands.
type Identity struct {
	Issuer  string
	Subject string
	// Email may be empty. EmailVerified says that the provider vouches for it.
	Email         string
	EmailVerified bool
	// Name and Avatar, an https address, are what the provider shows; either may be empty.
	Name   string
	Avatar string
}
