package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"bursar/internal/auth"
)

const (
	// trustedTimeout is how long one request of the issuer may take, while a seller waits.
	trustedTimeout = 5 * time.Second
	// Keys are fetched again at this age, and for a key that is not known, but not before the pause: anybody can make up a key id.
	trustedKeysAge   = time.Hour
	trustedKeysPause = 10 * time.Second
	// maxTrustedToken bounds the tokens that are looked at.
	maxTrustedToken = 8 << 10
	// maxTrustedLife is how long a token may be valid: nothing here can end it before.
	maxTrustedLife = 24 * time.Hour
	trustedSkew    = time.Minute
	minRSABits     = 2048
)

// trustedAlgorithms are by what tokens may be signed: with the others, a party that knows a shared secret or a public key could
// sign, or everybody.
var trustedAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA}

// trustedTypes are those of tokens that say who a user is (RFC 8725 §3.11). Others, such as logout tokens, say something else.
var trustedTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// TrustedOptions are what a [Trusted] is made of.
type TrustedOptions struct {
	// Issuer is compared exactly with what the issuer says of itself, and tokens of it.
	Issuer string
	// Audience has to be among those that a token is meant for.
	Audience string
	// SellerClaim is the claim that holds the seller's external id.
	SellerClaim string
	Now         func() time.Time
}

// Trusted checks access tokens of one issuer, by its published keys. It is safe for concurrent use.
type Trusted struct {
	o    TrustedOptions
	http *http.Client

	mu   sync.RWMutex
	keys map[string]jose.JSONWebKey

	// turn lets one at a time look at what follows, and ask the issuer.
	turn    chan struct{}
	asked   time.Time
	failure error
}

var _ auth.TrustedIssuer = (*Trusted)(nil)

// NewTrusted makes one. It asks the issuer nothing yet: one that is down does not delay the start.
func NewTrusted(o TrustedOptions) (*Trusted, error) {
	if o.Audience == "" || o.SellerClaim == "" || o.Now == nil {
		return nil, errors.New("oauth: a trusted issuer needs an audience, a claim and a clock")
	}
	if err := CheckAddress(o.Issuer); err != nil {
		return nil, err
	}
	return &Trusted{o: o, http: newHTTPClient(trustedTimeout, o.Issuer), turn: make(chan struct{}, 1)}, nil
}

// Name is the issuer.
func (t *Trusted) Name() string { return t.o.Issuer }

// Issued reports whether a token says that it is of this issuer. It checks nothing else.
func (t *Trusted) Issued(token string) bool {
	_, _, err := t.parse(token)
	return err == nil
}

// Verify returns the external id of the seller whom a token is about.
func (t *Trusted) Verify(ctx context.Context, token string) (string, error) {
	signed, said, err := t.parse(token)
	if err == nil {
		err = t.check(signed.Signatures[0].Protected, said)
	}
	if err != nil { // before anybody is asked anything
		return "", auth.ErrToken.Because(err)
	}
	header := signed.Signatures[0].Protected
	key, err := t.key(ctx, header.KeyID)
	if err != nil {
		return "", err
	}
	if err := fits(key, header.Algorithm); err != nil {
		return "", auth.ErrToken.Because(err)
	}
	if _, err := signed.Verify(key); err != nil { // the payload is what parse read
		return "", auth.ErrToken.Because(err)
	}
	externalID, err := said.seller(t.o.SellerClaim)
	if err != nil {
		return "", auth.ErrToken.Because(err)
	}
	return externalID, nil
}

// parse takes a token of this issuer apart. Nothing of it is proven.
func (t *Trusted) parse(token string) (*jose.JSONWebSignature, tokenClaims, error) {
	if len(token) > maxTrustedToken {
		return nil, nil, errors.New("the token is too long")
	}
	signed, err := jose.ParseSignedCompact(token, trustedAlgorithms)
	if err != nil {
		return nil, nil, err
	}
	var said tokenClaims
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &said); err != nil {
		return nil, nil, err
	}
	if issuer, err := said.text("iss"); err != nil || issuer != t.o.Issuer {
		return nil, nil, errors.New("the token is of another issuer")
	}
	return signed, said, nil
}

// check checks everything about a token but its signature.
func (t *Trusted) check(header jose.Header, said tokenClaims) error {
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	if !slices.Contains(trustedTypes, strings.ToLower(kind)) {
		return fmt.Errorf("the token is a %q", cleaned(kind, 60))
	}
	if header.KeyID == "" {
		return errors.New("the token names no key")
	}
	if !slices.Contains(said.audience(), t.o.Audience) {
		return errors.New("the token is meant for another service")
	}
	if _, bound := said["cnf"]; bound {
		return errors.New("the token is bound to a key of its holder, and nothing proves that the caller has it")
	}
	times, err := said.times()
	now := t.o.Now()
	switch {
	case err != nil:
		return err
	case times.expires.Sub(times.issued) > maxTrustedLife:
		return fmt.Errorf("the token is valid for more than %s", maxTrustedLife)
	case times.issued.After(now.Add(trustedSkew)), times.notBefore.After(now.Add(trustedSkew)):
		return errors.New("the token is not valid yet")
	case !now.Before(times.expires.Add(trustedSkew)):
		return errors.New("the token has expired")
	default:
		return nil
	}
}

// key finds a key of the issuer by its id.
func (t *Trusted) key(ctx context.Context, id string) (jose.JSONWebKey, error) {
	key, known := t.known(id)
	if known { // nobody waits for a fetch that runs
		select {
		case t.turn <- struct{}{}:
		default:
			return key, nil
		}
	} else {
		select {
		case t.turn <- struct{}{}:
		case <-ctx.Done():
			return key, auth.ErrIssuerUnavailable.Because(ctx.Err())
		}
	}
	defer func() { <-t.turn }()
	age := trustedKeysAge
	if _, known = t.known(id); !known || t.failure != nil {
		age = trustedKeysPause
	}
	if t.asked.IsZero() || t.o.Now().Sub(t.asked) >= age {
		t.failure = t.fetch(ctx)
		t.asked = t.o.Now()
	}
	key, known = t.known(id)
	switch {
	case known:
		return key, nil
	case t.failure != nil:
		return key, auth.ErrIssuerUnavailable.After(trustedKeysPause).Because(errors.New(cleaned(t.failure.Error(), 400)))
	default:
		return key, auth.ErrToken.Because(errors.New("the issuer has no such key"))
	}
}

func (t *Trusted) known(id string) (jose.JSONWebKey, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	key, known := t.keys[id]
	return key, known
}

// fetch asks the issuer for its keys. Those that are known stay if that fails. It goes on when the caller goes away.
func (t *Trusted) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trustedTimeout)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, t.http), t.o.Issuer)
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	var says struct {
		Keys string `json:"jwks_uri"`
	}
	if err := found.Claims(&says); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	if err := CheckAddress(says.Keys); err != nil {
		return fmt.Errorf("discovery: jwks_uri: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, says.Keys, nil)
	if err != nil {
		return err
	}
	response, err := t.http.Do(request)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	keys, err := readKeys(body)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = keys
	return nil
}

// readKeys reads a set of keys. Keys that can't sign a token, or are of a kind that we don't know, are left out; so are all
// that share an id, of which the right one can't be told.
func readKeys(body []byte) (map[string]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	keys := map[string]jose.JSONWebKey{}
	seen := map[string]bool{}
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) != nil || key.KeyID == "" || (key.Use != "" && key.Use != "sig") {
			continue
		}
		if seen[key.KeyID] {
			delete(keys, key.KeyID)
			continue
		}
		seen[key.KeyID] = true
		keys[key.KeyID] = key
	}
	if len(keys) == 0 {
		return nil, errors.New("the issuer publishes no key that signs tokens")
	}
	return keys, nil
}

// fits fails unless a key is a public one that such a signature can be made for.
func fits(key jose.JSONWebKey, algorithm string) error {
	if key.Algorithm != "" && key.Algorithm != algorithm {
		return fmt.Errorf("the key is for %s, and the token is signed by %s", cleaned(key.Algorithm, 20), algorithm)
	}
	ok := false
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		ok = (algorithm == string(jose.RS256) || algorithm == string(jose.PS256)) && public.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		ok = algorithm == string(jose.ES256) && public.Curve == elliptic.P256()
	case ed25519.PublicKey:
		ok = algorithm == string(jose.EdDSA)
	}
	if !ok {
		return fmt.Errorf("the key is of a kind that does not sign by %s, or is too short", algorithm)
	}
	return nil
}

// tokenClaims are the claims of a token by their exact names.
type tokenClaims map[string]json.RawMessage

func (c tokenClaims) text(name string) (string, error) {
	var s string
	if err := json.Unmarshal(c[name], &s); err != nil {
		return "", fmt.Errorf("the token's %s is missing or no text", name)
	}
	return s, nil
}

// audience is one name, or several.
func (c tokenClaims) audience() []string {
	if one, err := c.text("aud"); err == nil {
		return []string{one}
	}
	var several []string
	if json.Unmarshal(c["aud"], &several) != nil {
		return nil
	}
	return several
}

// tokenTimes are when a token was issued, and between when and when it is valid.
type tokenTimes struct{ issued, notBefore, expires time.Time }

func (c tokenClaims) times() (t tokenTimes, err error) {
	if t.issued, err = c.instant("iat"); err != nil {
		return t, err
	}
	t.notBefore = t.issued
	if _, given := c["nbf"]; given {
		if t.notBefore, err = c.instant("nbf"); err != nil {
			return t, err
		}
	}
	t.expires, err = c.instant("exp")
	return t, err
}

// instant is a number of seconds since 1970.
func (c tokenClaims) instant(name string) (time.Time, error) {
	var seconds float64
	if err := json.Unmarshal(c[name], &seconds); err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}, fmt.Errorf("the token's %s is missing or no time", name)
	}
	return time.Unix(int64(seconds), 0), nil
}

// seller is the external id in a claim: a text, or a whole number in its digits.
func (c tokenClaims) seller(claim string) (string, error) {
	var found identifier
	if text, given := c[claim]; given {
		if err := found.UnmarshalJSON(text); err != nil {
			return "", err
		}
	}
	if found == "" {
		return "", errors.New("the token names no seller")
	}
	return string(found), nil
}
