package auth

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
)

// Limits of sign-ins through a provider.
const (
	// FlowLife is how long a browser has from the start of a sign-in to its end.
	FlowLife = 10 * time.Minute
	// usedKept is for how long a used thing is remembered after it is no longer good: the clocks of instances differ.
	usedKept = time.Hour
	// providerTimeout is how long a provider may take to identify a user.
	providerTimeout = 15 * time.Second
	// maxCallbacks is how many wait for one provider at once. A slow one must not hold up the other.
	maxCallbacks = 16
	// secretDigits of base 62 are 256 bits, and a verifier as RFC 7636 §4.1 wants it.
	secretDigits = 43
)

// flowPurpose keeps what is encrypted for a sign-in from passing for anything else that is encrypted.
const flowPurpose = "bursar sign-in through a provider v1:"

const stateSeparator = "."

// flow is what a browser carries, encrypted, from the start of a sign-in to its end. Nothing of it is
// stored here: a start costs nothing that lasts, and the browser that brings it back is the one that began.
type flow struct {
	Provider ProviderID
	ProviderRequest
	Redirect  string
	Role      Role // of a user who is new
	ExpiresAt time.Time
}

// ProviderStart asks for a sign-in through a provider.
type ProviderStart struct {
	Provider ProviderID
	// Redirect is a path of ours to go to in the end; it comes back as it is.
	Redirect string
	// Role is for a user who is new. None is buyer.
	Role Role
}

// BegunSignIn is a sign-in on its way to the provider.
type BegunSignIn struct {
	// URL is where to send the browser.
	URL string
	// Flow names the sign-in, newer ones after older, and Encrypted is what the browser must bring back.
	Flow      string
	Encrypted string
}

// FlowOf is the name of the sign-in that a state belongs to, or "" for one that can't be ours.
func FlowOf(state string) string {
	name, secret, _ := strings.Cut(state, stateSeparator)
	if !id.Valid("", name) || len(secret) != secretDigits {
		return ""
	}
	return name
}

// HasProvider reports whether a provider is set up.
func (s *Service) HasProvider(p ProviderID) bool { return s.o.Providers[p] != nil }

// BeginSignIn begins a sign-in through a provider. It fails with [ErrProviderNotConfigured], with
// [ErrProviderUnavailable], or with a fault that names the field at fault.
func (s *Service) BeginSignIn(ctx context.Context, start ProviderStart) (BegunSignIn, error) {
	provider, ok := s.o.Providers[start.Provider]
	if !ok {
		return BegunSignIn{}, ErrProviderNotConfigured
	}
	role, ok := ParseRole(string(start.Role))
	if !ok {
		return BegunSignIn{}, fault.Field("role", "must be seller or buyer")
	}
	now := s.o.Now()
	name := id.New("", now)
	f := flow{
		Provider: start.Provider, Redirect: start.Redirect, Role: role, ExpiresAt: now.Add(FlowLife),
		ProviderRequest: ProviderRequest{
			State: name + stateSeparator + id.Random(secretDigits), Nonce: id.Random(secretDigits), Verifier: id.Random(secretDigits),
		},
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	address, err := provider.Begin(ctx, f.ProviderRequest)
	if err != nil {
		return BegunSignIn{}, asUnavailable(ctx, err)
	}
	encrypted, err := s.encryptJSON(f, flowPurpose+name)
	if err != nil {
		return BegunSignIn{}, fmt.Errorf("encrypt a sign-in: %w", err)
	}
	return BegunSignIn{URL: address, Flow: name, Encrypted: encrypted}, nil
}

// ProviderReturn is a browser that comes back from a provider.
type ProviderReturn struct {
	Provider ProviderID
	// Encrypted is what the browser kept for the sign-in that the answer's state names, or "".
	Encrypted string
	// Answer is the query of the callback.
	Answer url.Values
	// Presented is the access token that the browser was signed in with, if any. Its session ends.
	Presented string
	Device    Device
}

// FinishSignIn signs in the user whom the provider names. It also returns the path that was asked for
// at the start, as far as that is known, even when it fails: with [ErrProviderNotConfigured],
// [ErrSignInExpired], [ErrBusy], what [Provider] fails with, or what stands in the way of the account:
// [ErrEmailMissing], [ErrEmailUnverified], [ErrAdminByPassword], [ErrEmailReserved], [ErrIdentityUnlinked], [ErrSuspended], [ErrThrottled].
func (s *Service) FinishSignIn(ctx context.Context, r ProviderReturn) (SignIn, string, error) {
	provider, ok := s.o.Providers[r.Provider]
	if !ok {
		return SignIn{}, "", ErrProviderNotConfigured
	}
	f, err := s.openFlow(r)
	if err != nil {
		return SignIn{}, f.Redirect, err
	}
	if err := s.useFlow(ctx, f); err != nil {
		return SignIn{}, f.Redirect, err
	}
	select {
	case s.callbacks[r.Provider] <- struct{}{}:
		defer func() { <-s.callbacks[r.Provider] }()
	default:
		return SignIn{}, f.Redirect, ErrBusy.After(busyRetry)
	}
	who, err := askProvider(ctx, provider, f.ProviderRequest, r.Answer)
	if err != nil {
		return SignIn{}, f.Redirect, err
	}
	signIn, err := s.admitIdentity(ctx, who, f, r)
	return signIn, f.Redirect, err
}

// openFlow finds out which sign-in comes back, and that it began in this browser, at this provider, and
// not too long ago. What it was for is returned even if it is refused.
func (s *Service) openFlow(r ProviderReturn) (flow, error) {
	refuse := func(f flow, why string) (flow, error) { return f, ErrSignInExpired.Because(errors.New(why)) }
	states := r.Answer["state"]
	if len(states) != 1 || FlowOf(states[0]) == "" {
		return refuse(flow{}, "the state is missing or none of ours")
	}
	if r.Encrypted == "" {
		return refuse(flow{}, "the browser did not begin it, or lost its cookie")
	}
	text, err := s.o.Encrypter.Decrypt(r.Encrypted, flowPurpose+FlowOf(states[0]))
	if err != nil {
		return refuse(flow{}, "the cookie is not what was encrypted for this state")
	}
	var f flow
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return refuse(flow{}, "the cookie can't be read")
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(states[0])) != 1:
		return refuse(f, "the state is another one")
	case f.Provider != r.Provider:
		return refuse(f, "it was begun at another provider")
	case !s.o.Now().Before(f.ExpiresAt):
		return refuse(f, "it took too long")
	default:
		return f, nil
	}
}

// useFlow lets one of any number of callbacks of a sign-in through, and is durable before the provider is
// asked anything: a code is never exchanged for two.
func (s *Service) useFlow(ctx context.Context, f flow) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		unused, err := useOnce(ctx, tx, FlowOf(f.State), f.ExpiresAt)
		if err == nil && !unused {
			err = ErrSignInExpired.Because(errors.New("it was used already"))
		}
		return err
	})
}

// useOnce notes that something was used that is good until a time, and reports whether it is the first time.
func useOnce(ctx context.Context, tx ProofTx, what string, until time.Time) (bool, error) {
	return tx.UseSignIn(ctx, what, until.Add(usedKept))
}

// askProvider finds out who came back.
func askProvider(ctx context.Context, p Provider, r ProviderRequest, answer url.Values) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	who, err := p.Finish(ctx, r, answer)
	if err != nil {
		return Identity{}, asUnavailable(ctx, err)
	}
	return who, nil
}

// asUnavailable says of a failure that carries no fault, after the time for it ran out, that the provider
// did not answer.
func asUnavailable(ctx context.Context, err error) error {
	if fault.From(err) == nil && ctx.Err() != nil {
		return ErrProviderUnavailable.Because(err)
	}
	return err
}

// signInProblems are the messages about a failed sign-in.
var signInProblems = []*fault.Error{
	ErrProviderDenied, ErrProviderUnavailable, ErrProviderAnswer, ErrSignInExpired, ErrEmailMissing, ErrEmailUnverified,
	ErrAdminByPassword, ErrEmailReserved, ErrIdentityUnlinked, ErrSuspended, ErrThrottled, ErrBusy, ErrSignInFailed,
}

// SignInProblem is the message about why a sign-in through a provider failed: one of a few
// sentences, and [ErrSignInFailed] for all that is not their concern.
func SignInProblem(err error) *fault.Error {
	for _, known := range signInProblems {
		if errors.Is(err, known) {
			return known
		}
	}
	return ErrSignInFailed
}

// IsSignInProblem reports whether a sentence is one that [SignInProblem] may have given. A page shows no
// others, whatever the link says that led to it.
func IsSignInProblem(sentence string) bool {
	for _, known := range signInProblems {
		if sentence == known.Message {
			return true
		}
	}
	return false
}

// logSignIn tells the operator who was let in through which provider, and what that did to the account.
func (s *Service) logSignIn(ctx context.Context, p ProviderID, user User, did deed, from Device) {
	s.o.Logger.InfoContext(ctx, "signed in", slog.String("user_id", user.ID), slog.String("address", from.Address),
		slog.String("provider", string(p)), slog.String("account", string(did)))
}
