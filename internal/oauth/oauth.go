// Package oauth signs people in at identity providers, by OpenID Connect or by plain OAuth 2.0.
//
// A [Client] is one provider: it makes the address that a browser is sent to, and finds out who came
// back. With OpenID Connect the proof is an ID token, signed and meant for us; without it, it is what the
// provider says about the access token's owner. Nothing that comes from a provider is trusted
// further than that: it chooses no address that we may not ask (guard.go), no size and no time that we
// must bear (transport.go), and no word that a person reads (errors.go).
package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"bursar/internal/auth"
)

// usualTimeout is how long a person waits for a provider.
const usualTimeout = 10 * time.Second

// Options are what a client is made of: Issuer for OpenID Connect, or else the three addresses of plain
// OAuth 2.0.
type Options struct {
	// Label is what people call the provider.
	Label        string
	ClientID     string
	ClientSecret string
	Scopes       []string
	// RedirectURL is where the provider sends the browser back to, as it is registered there.
	RedirectURL string

	// Issuer is compared exactly with what the provider says of itself.
	Issuer string

	AuthURL     string
	TokenURL    string
	UserinfoURL string

	// Timeout bounds all that is asked of the provider for one step; ten seconds unless set.
	Timeout time.Duration
	Now     func() time.Time
}

func (o Options) check() error {
	switch {
	case o.Label == "" || o.ClientID == "" || o.ClientSecret == "":
		return errors.New("oauth: a label, a client id and its secret are needed")
	case o.Now == nil || o.Timeout < 0:
		return errors.New("oauth: a clock is needed, and a time-out that is not negative")
	case o.Issuer != "" && o.AuthURL+o.TokenURL+o.UserinfoURL != "":
		return errors.New("oauth: a provider has an issuer, or else addresses")
	}
	addresses := []string{o.RedirectURL, o.Issuer}
	if o.Issuer == "" {
		addresses = []string{o.RedirectURL, o.AuthURL, o.TokenURL, o.UserinfoURL}
	}
	for _, address := range addresses {
		if err := CheckAddress(address); err != nil {
			return err
		}
	}
	return nil
}

// protocol is how a provider is talked to.
type protocol interface {
	// meet returns the provider as it is now. It may have to ask it.
	meet(context.Context) (provider, error)
}

// provider is one that can be talked to.
type provider interface {
	oauth() *oauth2.Config
	// more is what the way there needs beside the state and the challenge.
	more(auth.ProviderRequest) []oauth2.AuthCodeOption
	// checkIssuer refuses an answer that another one sent (RFC 9207). The issuer is "" where the answer
	// names none.
	checkIssuer(issuer string) error
	identify(context.Context, auth.ProviderRequest, *oauth2.Token) (auth.Identity, error)
}

// Client signs people in at one provider.
type Client struct {
	label    string
	issuer   string
	timeout  time.Duration
	http     *http.Client
	protocol protocol
}

var _ auth.Provider = (*Client)(nil)

// New makes a client. It asks the provider nothing yet: one that is down does not delay the start.
func New(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, usualTimeout)
	c := &Client{label: o.Label, issuer: cmp.Or(o.Issuer, o.UserinfoURL), timeout: o.Timeout}
	if o.Issuer != "" {
		c.http = newHTTPClient(o.Timeout, o.Issuer)
		c.protocol = newOpenID(o, c.http)
	} else {
		c.http = newHTTPClient(o.Timeout, o.AuthURL, o.TokenURL, o.UserinfoURL)
		c.protocol = newPlain(o, c.http)
	}
	return c, nil
}

// Label is what people call the provider.
func (c *Client) Label() string { return c.label }

// Issuer is the issuer of the identities that the client finds.
func (c *Client) Issuer() string { return c.issuer }

// Begin is the address to send the browser to.
func (c *Client) Begin(ctx context.Context, r auth.ProviderRequest) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	p, err := c.protocol.meet(ctx)
	if err != nil {
		return "", sorted(err)
	}
	return p.oauth().AuthCodeURL(r.State, append(p.more(r), oauth2.S256ChallengeOption(r.Verifier))...), nil
}

// Finish finds out who came back with an answer.
func (c *Client) Finish(ctx context.Context, r auth.ProviderRequest, answer url.Values) (auth.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	who, err := c.finish(ctx, r, answer)
	if err != nil {
		return auth.Identity{}, sorted(err)
	}
	return who, nil
}

func (c *Client) finish(ctx context.Context, r auth.ProviderRequest, values url.Values) (auth.Identity, error) {
	a, err := readAnswer(values, r.State)
	if err != nil {
		return auth.Identity{}, err
	}
	p, err := c.protocol.meet(ctx)
	if err != nil {
		return auth.Identity{}, err
	}
	if err := p.checkIssuer(a.issuer); err != nil { // before anything of the answer is believed, even a no
		return auth.Identity{}, err
	}
	if a.refusal != nil {
		return auth.Identity{}, a.refusal
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, c.http)
	token, err := p.oauth().Exchange(ctx, a.code, oauth2.VerifierOption(r.Verifier))
	if err != nil {
		return auth.Identity{}, withoutBody(err)
	}
	return p.identify(ctx, r, token)
}
