package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"bursar/internal/mail"
)

// Options are what a service is made of.
type Options struct {
	Store Store
	Keys  Keys
	// Encrypter keeps what a browser carries from the start of a sign-in to its end.
	Encrypter Encrypter
	// Mails tells users what happened to their accounts.
	Mails mail.Queuer
	// CoolDown is how long a seller's payouts are on hold after a change of the sign-in.
	CoolDown time.Duration
	// Providers are those that are set up, if any.
	Providers map[ProviderID]Provider
	// TrustedIssuer is the marketplace's own sign-in, or nil.
	TrustedIssuer TrustedIssuer
	Now           func() time.Time
	Logger        *slog.Logger
	// Tampered counts a row of a kind that was changed outside the service and refused; nil for nothing.
	Tampered func(kind string)
	// Issuer is the service's public address. Tokens are made by it and for it: one of another issuer
	// is refused.
	Issuer string
	// PublicAddress is where browsers find the service: passkeys are made for it. With none there are no passkeys.
	PublicAddress string
	// RefreshGrace is how long a refresh token, once used, returns its successor again. It is for
	// clients that lost the answer or refreshed twice at once.
	RefreshGrace time.Duration
	// Throttle bounds how often signing in and registering may be tried. Off is for load tests.
	Throttle bool
	// Tried is called with the action and the outcome of each attempt at what is throttled ([TriedOutcomes]). It may be nil.
	Tried func(action, outcome string)
	// AdminFactor keeps admins without a second factor from everything but enrolling one.
	AdminFactor bool
	// RequireVerifiedEmail refuses payout requests of users whose address is not verified.
	RequireVerifiedEmail bool
	// PasswordBlocklist refuses new passwords that are common or repeat the user's own name or e-mail.
	PasswordBlocklist bool
	// CheapHashes makes password hashes that protect nobody, fast. It is for tests.
	CheapHashes bool
}

// Service signs users in and tells who they are. It is safe for concurrent use.
type Service struct {
	o         Options
	passwords *hasher
	places    *places
	tokens    *tokens
	common    blocklist
	even      evenness
	callbacks map[ProviderID]chan struct{} // places of those who wait for each provider
	passkeys  *relyingParty                // nil where browsers offer none
}

// New makes a service.
func New(o Options) (*Service, error) {
	switch {
	case o.Store == nil || o.Keys == nil || o.Encrypter == nil || o.Mails == nil:
		return nil, errors.New("auth: a service needs a store, keys, an encrypter and mails")
	case o.Now == nil || o.Logger == nil:
		return nil, errors.New("auth: a service needs a clock and a logger")
	case o.Issuer == "" || o.RefreshGrace < 0:
		return nil, errors.New("auth: a service needs an issuer, and a grace that is not negative")
	}
	for id, p := range o.Providers {
		if p == nil || (id != ProviderA && id != ProviderB) {
			return nil, fmt.Errorf("auth: %q is no identity provider", id)
		}
	}
	if o.Tried == nil {
		o.Tried = func(string, string) {}
	}
	s := &Service{o: o, passwords: newHasher(standardCost), places: newPlaces(placesPerProcessor * runtime.GOMAXPROCS(0)), tokens: newTokens(o.Keys, o.Issuer)}
	s.callbacks = map[ProviderID]chan struct{}{
		ProviderA: make(chan struct{}, maxCallbacks), ProviderB: make(chan struct{}, maxCallbacks),
	}
	if o.PublicAddress != "" {
		var err error
		if s.passkeys, err = newRelyingParty(o.PublicAddress); err != nil {
			return nil, err
		}
	}
	if o.CheapHashes {
		s.passwords = newHasher(cheapCost)
	}
	if o.PasswordBlocklist {
		s.common = newBlocklist()
	}
	return s, nil
}

// SignIn is what a user holds once signed in.
type SignIn struct {
	// User has no more than id, e-mail and role after a refresh.
	User         User
	Token        string
	RefreshToken string
	// ExpiresIn is how long the access token lasts, if its session is not ended before.
	ExpiresIn time.Duration
	// DeviceToken is by what the user's account knows the device from now on; empty after a refresh.
	DeviceToken string
}

// JWKS is the public keys that access tokens can be checked with, as application/jwk-set+json.
func (s *Service) JWKS() []byte { return s.o.Keys.JWKS() }

// encryptJSON is what [Service.decryptJSON] reads in the same context.
func (s *Service) encryptJSON(v any, context string) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return s.o.Encrypter.Encrypt(string(text), context)
}

func (s *Service) decryptJSON(encrypted, context string, v any) error {
	text, err := s.o.Encrypter.Decrypt(encrypted, context)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), v)
}
