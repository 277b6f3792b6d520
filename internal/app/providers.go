package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/config"
	"bursar/internal/oauth"
	"bursar/internal/oauth/sandbox"
	"bursar/internal/web"
)

// signInPlaces are the identity providers that people can sign in through, and the built-in ones among
// them, which are served here too.
type signInPlaces struct {
	providers map[auth.ProviderID]auth.Provider
	// sandboxes are the built-in ones, by the path that they are below.
	sandboxes map[string]http.Handler
	// issuer is the marketplace's own sign-in, or nil.
	issuer auth.TrustedIssuer
}

// newSignInPlaces makes the providers that are set up. Where none is, and nothing is at stake, it makes two
// built-in ones. Call it when the service's address is known.
func newSignInPlaces(ctx context.Context, cfg config.Config, logger *slog.Logger) (signInPlaces, error) {
	s := signInPlaces{providers: make(map[auth.ProviderID]auth.Provider), sandboxes: make(map[string]http.Handler)}
	if set := cfg.TrustedIssuer; set != nil {
		issuer, err := oauth.NewTrusted(oauth.TrustedOptions{
			Issuer: set.Issuer, Audience: set.Audience, SellerClaim: set.SellerClaim, Now: time.Now,
		})
		if err != nil {
			return s, err
		}
		s.issuer = issuer
		logger.InfoContext(ctx, "tokens of another issuer accepted", slog.String("issuer", set.Issuer), slog.String("audience", set.Audience))
	}
	if sandboxAllowed(cfg) {
		logger.InfoContext(ctx, "sandbox identity providers started")
		return s, s.addSandboxes(cfg)
	}
	for id, set := range map[auth.ProviderID]*config.Provider{auth.ProviderA: cfg.ProviderA, auth.ProviderB: cfg.ProviderB} {
		if set == nil {
			continue
		}
		logger.InfoContext(ctx, "identity provider configured",
			slog.String("provider", string(id)), slog.String("label", set.Label), slog.String("callback", callbackAddress(cfg, id)))
		if err := s.add(cfg, id, *set); err != nil {
			return s, err
		}
	}
	return s, nil
}

func callbackAddress(cfg config.Config, id auth.ProviderID) string {
	return cfg.Origin() + "/api/auth/" + string(id) + "/callback"
}

func (s signInPlaces) add(cfg config.Config, id auth.ProviderID, set config.Provider) error {
	client, err := oauth.New(oauth.Options{
		Label: set.Label, ClientID: set.ClientID, ClientSecret: set.ClientSecret, Scopes: set.Scopes, RedirectURL: callbackAddress(cfg, id),
		Issuer: set.Issuer, AuthURL: set.AuthURL, TokenURL: set.TokenURL, UserinfoURL: set.UserinfoURL,
		Now: time.Now,
	})
	s.providers[id] = client
	return err
}

// sandboxAllowed reports whether the built-in identity providers may be there. They let anybody be anybody,
// so it takes all of this: nobody set up a real one, nobody can reach the service from elsewhere or is
// meant to, by a proxy either, and no money that is real can move.
func sandboxAllowed(cfg config.Config) bool {
	origin, err := url.Parse(cfg.Origin())
	return err == nil && !cfg.HasProviders() && len(cfg.TrustedProxies) == 0 && web.IsLoopback(cfg.Addr.Addr) && web.IsLoopback(origin.Host) && cfg.Gateway == config.Sandbox
}

const sandboxesPath = "/sandbox/identity/"

// addSandboxes makes the built-in providers. They are at the address that is listened on, and asked over
// HTTP as any other.
func (s signInPlaces) addSandboxes(cfg config.Config) error {
	for id, label := range map[auth.ProviderID]string{auth.ProviderA: "Sandbox A", auth.ProviderB: "Sandbox B"} {
		path := sandboxesPath + strings.TrimPrefix(string(id), "provider-")
		set := config.Provider{
			Label: label, Issuer: "http://" + cfg.Addr.Addr + path, ClientID: "bursar", ClientSecret: rand.Text(),
			Scopes: []string{"openid", "email", "profile"},
		}
		provider, err := sandbox.New(sandbox.Options{
			Label: set.Label, Issuer: set.Issuer, ClientID: set.ClientID, ClientSecret: set.ClientSecret,
			RedirectURL: callbackAddress(cfg, id), Now: time.Now,
		})
		if err != nil {
			return err
		}
		s.sandboxes[path+"/"] = provider
		if err := s.add(cfg, id, set); err != nil {
			return err
		}
	}
	return nil
}

// before puts the built-in providers before the pages, for requests that nobody forwarded. To all others
// there is no such place.
func (s signInPlaces) before(pages http.Handler) http.Handler {
	if len(s.sandboxes) == 0 {
		return pages
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for path, provider := range s.sandboxes {
			if strings.HasPrefix(r.URL.Path, path) && sandbox.IsLocal(r) {
				provider.ServeHTTP(w, r)
				return
			}
		}
		pages.ServeHTTP(w, r)
	})
}
