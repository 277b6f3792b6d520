// Package sandbox is an identity provider to try sign-in with: real OpenID Connect, and a consent page
// where one types who one is. It asks for no proof of that, so it belongs on loopback alone, where nothing
// is at stake.
//
// Its keys, codes and tokens live in memory and die with the process: a user on the consent page when
// the service restarts starts again. A code can be exchanged at the process that gave it and nowhere else.
// That is enough, because each process is a provider of its own, at its own address.
package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bursar/internal/web"
)

// Options are what a provider is made of. It has one client.
type Options struct {
	// Label is what people call the provider.
	Label string
	// Issuer is the address that the handler answers at.
	Issuer string

	ClientID     string
	ClientSecret string
	RedirectURL  string

	Now func() time.Time
}

func (o Options) check() error {
	if o.Label == "" || o.Issuer == "" || o.ClientID == "" || o.ClientSecret == "" || o.RedirectURL == "" || o.Now == nil {
		return errors.New("oauth/sandbox: a label, an issuer, a client and a clock are needed")
	}
	return nil
}

//go:embed page.html.tmpl style.css
var files embed.FS

// Provider is an identity provider.
type Provider struct {
	o      Options
	issuer *url.URL
	page   *template.Template
	style  []byte
	key    jose.JSONWebKey
	signer jose.Signer
	grants grants
	mux    http.Handler
}

// New makes a provider, with keys of its own.
func New(o Options) (*Provider, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &Provider{o: o, grants: newGrants(o.Now)}
	var err error
	if p.issuer, err = url.Parse(o.Issuer); err != nil {
		return nil, fmt.Errorf("oauth/sandbox: %w", err)
	}
	if p.page, err = template.ParseFS(files, "page.html.tmpl"); err != nil {
		return nil, err
	}
	if p.style, err = files.ReadFile("style.css"); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p.key = jose.JSONWebKey{Key: key, KeyID: rand.Text()[:8], Algorithm: string(jose.ES256), Use: "sig"}
	p.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, err
	}
	p.mux = p.routes()
	return p, nil
}

// routes is all there is, below the issuer's path.
func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /jwks", p.jwks)
	mux.HandleFunc("GET /authorize", p.ask)
	mux.HandleFunc("POST /authorize", p.decide)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", p.userinfo)
	mux.HandleFunc("GET /style.css", p.serveStyle)
	// A page of another site must not decide for its visitor.
	return http.StripPrefix(p.issuer.Path, http.NewCrossOriginProtection().Handler(mux))
}

// maxForm bounds a body.
const maxForm = 16 << 10

// ServeHTTP answers at the issuer's address.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	w.Header().Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// proxyHeaders are parts of the names of headers that proxies, content networks and clouds add. A header
// whose name ends in "ip" gives a client's address, which any proxy may add.
var proxyHeaders = []string{
	"Forwarded", "Via", "Remote-Addr", "X-Original-", "X-Envoy-", "X-Azure-", "X-Arr-", "X-Appengine-", "X-Google-", "X-Cloud-",
	"X-Amz", "X-Vercel-", "X-Nf-", "Cdn-", "Cf-", "Fly-", "Fastly-", "Akamai-",
}

func fromProxy(header string) bool {
	return strings.HasSuffix(strings.ToLower(header), "ip") ||
		slices.ContainsFunc(proxyHeaders, func(part string) bool { return strings.Contains(header, part) })
}

// IsLocal reports whether a request was made on this machine, to this machine, and by nobody in between as
// far as can be known. All others must be answered as if there were no provider. Browsers have not spoken
// HTTP/1.0 for long, and proxies that are not told otherwise do.
func IsLocal(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) || !web.IsLoopback(r.RemoteAddr) || !web.IsLoopback(r.Host) {
		return false
	}
	for name := range r.Header {
		if fromProxy(name) {
			return false
		}
	}
	return true
}
