package sandbox

import (
	"bytes"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// request is what a client asks for (RFC 6749 §4.1.1, RFC 7636 §4.3, OpenID Connect Core §3.1.2.1).
type request struct {
	State     string
	Nonce     string
	Scope     string
	Challenge string
}

// readRequest takes a request of the client out of a query or a form. A problem has the code of an error
// for the client, or is "unknown_client": then nothing may be sent anywhere.
func (p *Provider) readRequest(values url.Values) (r request, problem string) {
	for _, several := range values {
		if len(several) > 1 {
			return r, "invalid_request"
		}
	}
	r = request{values.Get("state"), values.Get("nonce"), values.Get("scope"), values.Get("code_challenge")}
	switch {
	case values.Get("client_id") != p.o.ClientID || values.Get("redirect_uri") != p.o.RedirectURL:
		return r, "unknown_client"
	case values.Get("response_type") != "code":
		return r, "unsupported_response_type"
	case !slices.Contains(strings.Fields(r.Scope), "openid"):
		return r, "invalid_scope"
	case len(r.Challenge) != 43 || values.Get("code_challenge_method") != "S256": // PKCE is no choice (RFC 9700 §2.1.1)
		return r, "invalid_request"
	default:
		return r, ""
	}
}

// wants reports whether the client asked for what a scope stands for.
func (r request) wants(scope string) bool { return slices.Contains(strings.Fields(r.Scope), scope) }

// ask shows the consent page.
func (p *Provider) ask(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	asked, problem := p.readRequest(values)
	if problem != "" {
		p.refuse(w, asked, problem)
		return
	}
	p.show(w, http.StatusOK, page{Hidden: hidden(values), Verified: true})
}

// decide sends the browser back with what was decided on the consent page.
func (p *Provider) decide(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.show(w, http.StatusBadRequest, page{Problem: "The form can't be read."})
		return
	}
	asked, problem := p.readRequest(r.PostForm)
	if problem != "" {
		p.refuse(w, asked, problem)
		return
	}
	if r.PostForm.Has("cancel") {
		p.sendBack(w, asked, url.Values{"error": {"access_denied"}, "error_description": {"The person pressed Cancel."}})
		return
	}
	who, wrong := readPerson(r.PostForm)
	if wrong.any() {
		p.show(w, http.StatusUnprocessableEntity, page{
			Hidden: hidden(r.PostForm), Name: who.name, Email: who.email, Verified: who.verified, Wrong: wrong,
		})
		return
	}
	code, ok := p.grants.newCode(grant{person: who, request: asked, at: p.o.Now()})
	if !ok {
		p.sendBack(w, asked, url.Values{"error": {"temporarily_unavailable"}})
		return
	}
	p.sendBack(w, asked, url.Values{"code": {code}})
}

// refuse tells the client what is wrong with its request, or the person if there is no such client: a
// provider with open redirects is a tool for phishing.
func (p *Provider) refuse(w http.ResponseWriter, asked request, problem string) {
	if problem == "unknown_client" {
		p.show(w, http.StatusBadRequest, page{Problem: "Nobody with such a client_id and redirect_uri is known here. Go back, and start again."})
		return
	}
	p.sendBack(w, asked, url.Values{"error": {problem}})
}

func (p *Provider) sendBack(w http.ResponseWriter, asked request, answer url.Values) {
	answer.Set("iss", p.o.Issuer)
	if asked.State != "" {
		answer.Set("state", asked.State)
	}
	w.Header().Set("Location", p.o.RedirectURL+"?"+answer.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// people can be chosen with one click.
var people = []person{{"Asha Rao", "asha@example.com", true}, {"Ravi Kumar", "ravi@example.com", true}, {"Meera Iyer", "meera@example.com", false}}

// mistakes are what is wrong with the fields of the consent page.
type mistakes struct{ Name, Email string }

func (m mistakes) any() bool { return m != mistakes{} }

const (
	maxName  = 100
	maxEmail = 254
)

func readPerson(form url.Values) (person, mistakes) {
	for _, one := range people {
		if form.Get("person") == one.email {
			return one, mistakes{}
		}
	}
	who := person{strings.TrimSpace(form.Get("name")), strings.TrimSpace(form.Get("email")), form.Get("verified") == "yes"}
	var wrong mistakes
	if who.name == "" || len(who.name) > maxName || strings.ContainsFunc(who.name, unicode.IsControl) {
		wrong.Name = "Write a name, of at most 100 characters."
	}
	address, err := mail.ParseAddress(who.email)
	if err != nil || address.Address != who.email || len(who.email) > maxEmail {
		wrong.Email = "Write an e-mail address such as asha@example.com."
	}
	return who, wrong
}

// page is what the consent page shows.
type page struct {
	Label, Style string
	// Problem is shown in place of the form.
	Problem string
	Hidden  []field
	People  []choice

	Name, Email string
	Verified    bool
	Wrong       mistakes
}

type field struct{ Name, Value string }

type choice struct {
	Name, Email string
	Verified    bool
}

// hidden carries the client's request through the form.
func hidden(values url.Values) []field {
	var all []field
	for _, name := range []string{"response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge", "code_challenge_method"} {
		if values.Has(name) {
			all = append(all, field{name, values.Get(name)})
		}
	}
	return all
}

func (p *Provider) show(w http.ResponseWriter, status int, shown page) {
	shown.Label, shown.Style = p.o.Label, p.issuer.Path+"/style.css"
	for _, one := range people {
		shown.People = append(shown.People, choice{one.name, one.email, one.verified})
	}
	var body bytes.Buffer
	if err := p.page.Execute(&body, shown); err != nil {
		http.Error(w, "The page can't be shown.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// The answer to the form leads to the client, and browsers apply form-action to that too.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self' "+p.clientOrigin()+"; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // a browser that is gone reads nothing
}

func (p *Provider) clientOrigin() string {
	u, err := url.Parse(p.o.RedirectURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (p *Provider) serveStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(p.style)
}
