package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"bursar/internal/auth"
)

// plain is a provider of OAuth 2.0 alone, as GitHub is. OAuth says what a client may do and not who the user
// are; the convention is to ask an address of the provider who the token belongs to.
type plain struct {
	config   *oauth2.Config
	userinfo string
	http     *http.Client
}

func newPlain(o Options, client *http.Client) *plain {
	return &plain{
		config: &oauth2.Config{
			ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.RedirectURL, Scopes: o.Scopes,
			// Nothing says how the client is to prove itself, so x/oauth2 tries what works.
			Endpoint: oauth2.Endpoint{AuthURL: o.AuthURL, TokenURL: o.TokenURL, AuthStyle: oauth2.AuthStyleAutoDetect},
		},
		userinfo: o.UserinfoURL,
		http:     client,
	}
}

func (p *plain) meet(context.Context) (provider, error) { return p, nil }

func (p *plain) oauth() *oauth2.Config { return p.config }

func (p *plain) more(auth.ProviderRequest) []oauth2.AuthCodeOption { return nil }

// checkIssuer compares origins: nobody told us the issuer of this provider, but it can't live elsewhere.
func (p *plain) checkIssuer(issuer string) error {
	if issuer == "" {
		return nil
	}
	at, err := url.Parse(p.config.Endpoint.AuthURL)
	if err != nil {
		return err
	}
	from, err := url.Parse(issuer)
	if err != nil || from.Scheme != at.Scheme || from.Host != at.Host {
		return errors.New("the answer is of another issuer")
	}
	return nil
}

func (p *plain) identify(ctx context.Context, _ auth.ProviderRequest, token *oauth2.Token) (auth.Identity, error) {
	var c claims
	if err := get(ctx, p.http, p.userinfo, token, &c); err != nil {
		return auth.Identity{}, err
	}
	if err := p.findEmail(ctx, token, &c); err != nil {
		return auth.Identity{}, err
	}
	return c.identity(p.userinfo, cmp.Or(c.Subject, c.ID))
}

// listedEmail is one of the addresses of a person at GitHub, and at those who do as GitHub does.
type listedEmail struct {
	Email    text `json:"email"`
	Primary  yes  `json:"primary"`
	Verified yes  `json:"verified"`
}

// findEmail looks for the address of a person in their list of addresses, if the provider has one. A list
// has the last word: the primary address on it is theirs to the provider, and counts as verified if it is
// there. Without a list, what userinfo said stands.
func (p *plain) findEmail(ctx context.Context, token *oauth2.Token, c *claims) error {
	var all []listedEmail
	err := get(ctx, p.http, p.userinfo+"/emails", token, &all)
	answer, answered := errors.AsType[statusError](err)
	switch {
	case err == nil:
	case answered && answer.status < http.StatusInternalServerError: // it has none, or has not let us see it
		return nil
	case bool(c.EmailVerified) && c.Email != "" && !isOnTheWay(err): // what is there is no list
		return nil
	default:
		return fmt.Errorf("list of e-mail addresses: %w", err)
	}
	c.EmailVerified = false
	for _, one := range all {
		if one.Primary && one.Email != "" {
			c.Email, c.EmailVerified = one.Email, one.Verified
			return nil
		}
	}
	return nil
}
