package oauth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"bursar/internal/auth"
)

const (
	// A description of a provider is fetched again at this age, and after a failure not before the pause.
	descriptionAge = time.Hour
	discoveryPause = 5 * time.Second

	// Keys may be fetched twice in a row, and then once in this time: a kid that is not in the set asks
	// for a fetch, and anybody can make one up.
	keysPause = 30 * time.Second

	// clockSkew is how far the provider's clock may be ahead.
	clockSkew = 5 * time.Minute
)

// algorithms are those that a provider alone can sign by. With the others, a party that knows a shared secret
// or a public key could, or everybody.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// openID is a provider of OpenID Connect, which describes itself.
type openID struct {
	o    Options
	http *http.Client

	// turn lets one at a time look at what follows, and ask the provider.
	turn    chan struct{}
	known   *described
	asked   time.Time
	failure error
}

func newOpenID(o Options, client *http.Client) *openID {
	return &openID{o: o, http: client, turn: make(chan struct{}, 1)}
}

// meet asks the provider for its description, unless it is known. While it can't be had, the last one is
// good, and a caller without one gets the error at once for a while.
func (d *openID) meet(ctx context.Context) (provider, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, outage{ctx.Err()}
	}
	age := descriptionAge
	if d.failure != nil {
		age = discoveryPause
	}
	if d.asked.IsZero() || d.o.Now().Sub(d.asked) >= age {
		found, err := d.discoverInTime(ctx)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) { // the browser went away, and the provider is not to blame
			return nil, outage{err}
		}
		d.asked, d.failure = d.o.Now(), err
		if err == nil {
			d.known = found
		}
	}
	if d.known == nil {
		return nil, outage{d.failure}
	}
	return d.known, nil
}

// discoverInTime leaves time for what follows, if the last description can be used.
func (d *openID) discoverInTime(ctx context.Context) (*described, error) {
	if d.known != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.o.Timeout/4)
		defer cancel()
	}
	return d.discover(ctx)
}

// described is a provider as it describes itself.
type described struct {
	o        Options
	config   *oauth2.Config
	http     *http.Client
	keys     oidc.KeySet
	userinfo string
	// algorithms are those that it signs by.
	algorithms []string
	// namesItself says that its answers name it (RFC 9207).
	namesItself bool
}

func (d *openID) discover(ctx context.Context) (*described, error) {
	ctx = oidc.ClientContext(ctx, d.http)
	found, err := oidc.NewProvider(ctx, d.o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var says struct {
		Keys        string   `json:"jwks_uri"`
		Algorithms  []string `json:"id_token_signing_alg_values_supported"`
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
		NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := found.Claims(&says); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	endpoint := found.Endpoint()
	for name, address := range map[string]string{
		"authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL, "jwks_uri": says.Keys,
	} {
		if err := CheckAddress(address); err != nil {
			return nil, fmt.Errorf("discovery: %s: %w", name, err)
		}
	}
	if endpoint.AuthStyle = oauth2.AuthStyleInHeader; len(says.AuthMethods) > 0 && !slices.Contains(says.AuthMethods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &described{
		o: d.o, http: d.http, userinfo: found.UserInfoEndpoint(), namesItself: says.NamesItself,
		config: &oauth2.Config{
			ClientID: d.o.ClientID, ClientSecret: d.o.ClientSecret, RedirectURL: d.o.RedirectURL, Scopes: d.o.Scopes, Endpoint: endpoint,
		},
		keys:       newKeys(says.Keys, d.http, d.o.Now),
		algorithms: slices.DeleteFunc(says.Algorithms, func(a string) bool { return !slices.Contains(algorithms, a) }),
	}, nil
}

func (p *described) oauth() *oauth2.Config { return p.config }

func (p *described) more(r auth.ProviderRequest) []oauth2.AuthCodeOption {
	return []oauth2.AuthCodeOption{oidc.Nonce(r.Nonce)}
}

func (p *described) checkIssuer(issuer string) error {
	switch {
	case issuer == "" && p.namesItself:
		return errors.New("the answer names no issuer, and the provider's do")
	case issuer != "" && issuer != p.o.Issuer:
		return errors.New("the answer is of another issuer")
	default:
		return nil
	}
}

// identify reads the ID token, and asks the userinfo endpoint for an e-mail address that is not in it.
func (p *described) identify(ctx context.Context, r auth.ProviderRequest, token *oauth2.Token) (auth.Identity, error) {
	raw, _ := token.Extra("id_token").(string)
	proven, c, err := p.verify(ctx, r, raw)
	if err != nil {
		return auth.Identity{}, err
	}
	if proven.AccessTokenHash != "" {
		if err := proven.VerifyAccessToken(token.AccessToken); err != nil {
			return auth.Identity{}, err
		}
	}
	if c.Email == "" && p.userinfo != "" {
		var userinfo claims
		if err := get(ctx, p.http, p.userinfo, token, &userinfo); err != nil {
			return auth.Identity{}, fmt.Errorf("userinfo: %w", err)
		}
		if userinfo.Subject != identifier(proven.Subject) { // OpenID Connect Core §5.3.2
			return auth.Identity{}, errors.New("userinfo is about another subject than the ID token")
		}
		c.Email, c.EmailVerified = userinfo.Email, userinfo.EmailVerified
		c.Name, c.Picture = cmp.Or(c.Name, userinfo.Name), cmp.Or(c.Picture, userinfo.Picture)
	}
	return c.identity(p.o.Issuer, identifier(proven.Subject))
}

// verify checks an ID token (OpenID Connect Core §3.1.3.7).
func (p *described) verify(ctx context.Context, r auth.ProviderRequest, raw string) (*oidc.IDToken, claims, error) {
	if strings.Count(raw, ".") != 2 || strings.ContainsAny(raw, "{ \t\r\n") { // the library reads another form too
		return nil, claims{}, errors.New("the provider gave no ID token")
	}
	keys := &witness{KeySet: p.keys}
	proven, err := oidc.NewVerifier(p.o.Issuer, keys, &oidc.Config{
		ClientID: p.o.ClientID, SupportedSigningAlgs: p.algorithms, Now: p.o.Now,
	}).Verify(ctx, raw)
	switch {
	case isOnTheWay(keys.err): // without the keys, nothing is said about the token
		return nil, claims{}, outage{keys.err}
	case err != nil:
		return nil, claims{}, err
	}
	var c claims
	if err := proven.Claims(&c); err != nil {
		return nil, claims{}, fmt.Errorf("ID token: %w", err)
	}
	isOurs := c.AuthorizedParty == p.o.ClientID
	switch {
	case r.Nonce == "" || subtle.ConstantTimeCompare([]byte(proven.Nonce), []byte(r.Nonce)) != 1:
		return nil, claims{}, errors.New("the ID token has another nonce")
	case !isOurs && (c.AuthorizedParty != "" || len(proven.Audience) > 1):
		return nil, claims{}, errors.New("the ID token was issued to another party")
	case proven.IssuedAt.After(p.o.Now().Add(clockSkew)):
		return nil, claims{}, errors.New("the ID token is of the future")
	}
	return proven, c, nil
}

// witness remembers why a signature could not be checked. The verifier makes a text of it.
type witness struct {
	oidc.KeySet
	err error
}

// VerifySignature is the key set's.
func (w *witness) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := w.KeySet.VerifySignature(ctx, jwt)
	w.err = err
	return payload, err
}

// newKeys makes the key set of a provider. It is fetched when it is needed, and again for a kid that is
// not in it, but not as often as anybody likes.
func newKeys(address string, client *http.Client, now func() time.Time) oidc.KeySet {
	bounded := *client
	bounded.Transport = &seldom{limit: rate.NewLimiter(rate.Every(keysPause), 2), now: now, next: client.Transport}
	return oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &bounded), address)
}

// seldom refuses requests beyond its limit.
type seldom struct {
	limit *rate.Limiter
	now   func() time.Time
	next  http.RoundTripper
}

// RoundTrip passes on what is within the limit.
func (s *seldom) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.AllowN(s.now(), 1) {
		return nil, errors.New("the keys were fetched a moment ago")
	}
	return s.next.RoundTrip(r)
}
