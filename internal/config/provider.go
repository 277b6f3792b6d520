package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"bursar/internal/web"
)

// Scopes that are asked for unless others are set. GitHub's are those of most who do as it does.
const (
	openIDScopes = "openid email profile"
	plainScopes  = "read:user user:email"
)

// providers reads the identity providers, which send people back to the public address.
func (p *parser) providers(s Settings, c *Config) {
	c.ProviderA = p.provider("PROVIDER_A_", "Provider A", s.ProviderA)
	c.ProviderB = p.provider("PROVIDER_B_", "Provider B", s.ProviderB)
	origin, err := url.Parse(c.BaseURL)
	if c.HasProviders() && err == nil && origin.Scheme == "http" && !web.IsLoopback(origin.Host) {
		p.problem("BASE_URL", c.BaseURL, "is not encrypted, and identity providers send people back there; write an https address")
	}
}

// provider reads an identity provider. One of which anything but its label is set is meant, so all that it
// needs must be.
func (p *parser) provider(prefix, usualLabel string, s ProviderSettings) *Provider {
	addresses := s.AuthURL + s.TokenURL + s.UserinfoURL
	switch {
	case s.Issuer+addresses+s.ClientID+s.ClientSecret+s.Scopes == "":
		return nil
	case s.Issuer != "" && addresses != "":
		p.problem(prefix+"ISSUER", s.Issuer, "is set beside addresses of the provider; keep it for OpenID Connect, or keep the addresses for OAuth 2.0 alone")
	case s.Issuer+addresses == "":
		p.problem(prefix+"ISSUER", "", "is not set, and other settings of the provider are; set it to the issuer of an OpenID Connect provider, or set "+
			"the three addresses _AUTH_URL, _TOKEN_URL and _USERINFO_URL of one that speaks OAuth 2.0 alone")
	case s.Issuer != "":
		p.endpoint(prefix+"ISSUER", s.Issuer, false)
	default:
		p.endpoint(prefix+"AUTH_URL", s.AuthURL, true)
		p.endpoint(prefix+"TOKEN_URL", s.TokenURL, true)
		p.endpoint(prefix+"USERINFO_URL", s.UserinfoURL, false)
	}
	if s.ClientID == "" {
		p.problem(prefix+"CLIENT_ID", "", "is not set, and other settings of the provider are; set it to our id there")
	}
	if s.ClientSecret == "" {
		p.problem(prefix+"CLIENT_SECRET", "", "is not set, and other settings of the provider are; set it to the secret that belongs to our id there")
	}
	usual := plainScopes
	if s.Issuer != "" {
		usual = openIDScopes
	}
	scopes := strings.Fields(cmp.Or(s.Scopes, usual))
	if s.Issuer != "" && !slices.Contains(scopes, "openid") {
		p.problem(prefix+"SCOPES", s.Scopes, "lacks openid, without which OpenID Connect names nobody; write scopes such as \"openid email profile\"")
	}
	return &Provider{
		Label: cmp.Or(s.Label, usualLabel), Issuer: s.Issuer, AuthURL: s.AuthURL, TokenURL: s.TokenURL, UserinfoURL: s.UserinfoURL,
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, Scopes: scopes,
	}
}

// endpoint checks an address that codes and secrets are sent to. It is kept to the letter: issuers are
// compared so.
func (p *parser) endpoint(name, text string, mayHaveQuery bool) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		p.problem(name, "", "is not set, and other addresses of the provider are; set it to that one, which its documentation tells")
	case err != nil, u.Hostname() == "", u.User != nil, u.Fragment != "", u.RawQuery != "" && !mayHaveQuery, u.Scheme != "https" && u.Scheme != "http":
		p.problem(name, "", "is not an address; write one such as https://id.example.com")
	case u.Scheme == "http" && !web.IsLoopback(u.Hostname()):
		p.problem(name, text, "is not encrypted, and secrets are sent there; write an https address")
	}
}
