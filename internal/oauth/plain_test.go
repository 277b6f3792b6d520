package oauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/oauth"
)

// hub answers as GitHub does: a token in a form, people with numbers, and e-mail addresses in a list.
type hub struct {
	*httptest.Server
	token  string
	user   string
	emails string
	// status stands in for that of the list.
	status int
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{
		token:  "access_token=" + accessToken + "&scope=read%3Auser%2Cuser%3Aemail&token_type=bearer",
		user:   `{"login": "asha", "id": 9007199254740993, "avatar_url": "https://avatars.example/u/1", "name": "Asha Rao", "email": null}`,
		emails: `[{"email": "old@example.com", "primary": false, "verified": true}, {"email": "asha@example.com", "primary": true, "verified": true}]`,
		status: http.StatusOK,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login/oauth/access_token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		answer := h.token
		switch {
		case r.PostFormValue("client_id") != clientID || r.PostFormValue("client_secret") != clientSecret:
			answer = "error=incorrect_client_credentials&error_description=The+client_id+and%2For+client_secret+passed+are+incorrect."
		case r.PostFormValue("code") != goodCode || r.PostFormValue("code_verifier") == "":
			answer = "error=bad_verification_code&error_description=The+code+passed+is+incorrect+or+expired."
		}
		_, _ = w.Write([]byte(answer)) // with status 200, as GitHub does
	})
	ask := func(answer *string, status *int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+accessToken || r.Header.Get("User-Agent") != "Bursar" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(*status)
			_, _ = w.Write([]byte(*answer))
		}
	}
	fine := http.StatusOK
	mux.HandleFunc("GET /user", ask(&h.user, &fine))
	mux.HandleFunc("GET /user/emails", ask(&h.emails, &h.status))
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

func (h *hub) client(t *testing.T) *oauth.Client {
	t.Helper()
	client, err := oauth.New(oauth.Options{
		Label: "Hub", ClientID: clientID, ClientSecret: clientSecret, RedirectURL: redirectURL, Scopes: []string{"read:user", "user:email"},
		AuthURL: h.URL + "/login/oauth/authorize", TokenURL: h.URL + "/login/oauth/access_token", UserinfoURL: h.URL + "/user",
		Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (h *hub) signIn(t *testing.T, change ...func(url.Values)) (auth.Identity, error) {
	t.Helper()
	client := h.client(t)
	r := auth.ProviderRequest{State: "state", Nonce: "nonce", Verifier: "a-verifier-that-is-long-enough-to-be-one"}
	address, err := client.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil || u.Query().Has("nonce") || u.Query().Get("code_challenge_method") != "S256" || u.Query().Get("state") != r.State {
		t.Errorf("the way there is %s", address)
	}
	answer := url.Values{"code": {goodCode}, "state": {r.State}}
	for _, c := range change {
		c(answer)
	}
	return client.Finish(t.Context(), r, answer)
}

func TestSignInWithoutAnIDToken(t *testing.T) {
	tests := map[string]struct {
		with func(*hub)
		want func(*auth.Identity)
	}{
		"as GitHub answers": {},
		"a token in JSON": {
			with: func(h *hub) { h.token = `{"access_token": "` + accessToken + `", "token_type": "bearer"}` },
		},
		"the primary address is not verified": {
			with: func(h *hub) {
				h.emails = `[{"email": "asha@example.com", "primary": true, "verified": false}, {"email": "b@example.com", "primary": false, "verified": true}]`
			},
			want: func(i *auth.Identity) { i.EmailVerified = false },
		},
		"verified is a text that says no": {
			with: func(h *hub) { h.emails = `[{"email": "asha@example.com", "primary": true, "verified": "false"}]` },
			want: func(i *auth.Identity) { i.EmailVerified = false },
		},
		"no address is primary": {
			with: func(h *hub) { h.emails = `[{"email": "b@example.com", "primary": false, "verified": true}]` },
			want: func(i *auth.Identity) { i.Email, i.EmailVerified = "", false },
		},
		"a public address is not a verified one": {
			with: func(h *hub) {
				h.user, h.emails = `{"login": "asha", "id": 9007199254740993, "email": "victim@example.com"}`, `[]`
			},
			want: func(i *auth.Identity) {
				*i = auth.Identity{Issuer: i.Issuer, Subject: i.Subject, Name: "asha", Email: "victim@example.com"}
			},
		},
		"there is no list": {
			with: func(h *hub) {
				h.user, h.status = `{"id": 9007199254740993, "name": "Asha Rao", "email": "asha@example.com"}`, http.StatusNotFound
			},
			want: func(i *auth.Identity) { i.EmailVerified, i.Avatar = false, "" },
		},
		"the list may not be read": {
			with: func(h *hub) { h.status = http.StatusForbidden },
			want: func(i *auth.Identity) { i.Email, i.EmailVerified = "", false },
		},
		"userinfo vouches for the address": {
			with: func(h *hub) {
				h.user, h.emails = `{"sub": "a-1", "id": 1, "name": "Asha Rao", "email": "asha@example.com", "email_verified": true}`, `{"no": "list"}`
			},
			want: func(i *auth.Identity) { i.Subject, i.Avatar = "a-1", "" },
		},
		"userinfo vouches, and there is no list": {
			with: func(h *hub) {
				h.user, h.status = `{"sub": "a-1", "name": "Asha Rao", "email": "asha@example.com", "email_verified": true}`, http.StatusUnauthorized
			},
			want: func(i *auth.Identity) { i.Subject, i.Avatar = "a-1", "" },
		},
		"the list denies what userinfo vouches for": {
			with: func(h *hub) {
				h.user = `{"sub": "a-1", "name": "Asha Rao", "email": "asha@example.com", "email_verified": true}`
				h.emails = `[{"email": "asha@example.com", "primary": true, "verified": false}]`
			},
			want: func(i *auth.Identity) { i.Subject, i.Avatar, i.EmailVerified = "a-1", "", false },
		},
		"an empty list denies what userinfo vouches for": {
			with: func(h *hub) {
				h.user = `{"sub": "a-1", "name": "Asha Rao", "email": "asha@example.com", "email_verified": true}`
				h.emails = `[]`
			},
			want: func(i *auth.Identity) { i.Subject, i.Avatar, i.EmailVerified = "a-1", "", false },
		},
		"the list has another address than userinfo": {
			with: func(h *hub) {
				h.user = `{"sub": "a-1", "name": "Asha Rao", "email": "victim@example.com", "email_verified": true}`
				h.emails = `[{"email": "asha@example.com", "primary": true, "verified": true}]`
			},
			want: func(i *auth.Identity) { i.Subject, i.Avatar = "a-1", "" },
		},
		"userinfo denies the address": {
			with: func(h *hub) {
				h.user, h.status = `{"id": "a-1", "email": "asha@example.com", "email_verified": "false"}`, http.StatusNotFound
			},
			want: func(i *auth.Identity) {
				*i = auth.Identity{Issuer: i.Issuer, Subject: "a-1", Email: "asha@example.com"}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			if tt.with != nil {
				tt.with(h)
			}
			if h.token[0] == '{' {
				h.Config.Handler = asJSON(h.Config.Handler)
			}
			want := auth.Identity{
				Issuer: h.client(t).Issuer(), Subject: "9007199254740993", Email: "asha@example.com", EmailVerified: true,
				Name: "Asha Rao", Avatar: "https://avatars.example/u/1",
			}
			if tt.want != nil {
				tt.want(&want)
			}
			if who, err := h.signIn(t); err != nil || who != want {
				t.Errorf("%+v, %v; want %+v", who, err, want)
			}
		})
	}
}

// asJSON declares every answer as JSON.
func asJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(declared{w}, r) })
}

type declared struct{ http.ResponseWriter }

func (d declared) Write(b []byte) (int, error) {
	d.Header().Set("Content-Type", "application/json")
	return d.ResponseWriter.Write(b)
}

func TestPlainSignIn_InvalidAnswer_Refused(t *testing.T) {
	tests := map[string]struct {
		with  func(*hub)
		by    func(url.Values)
		want  *fault.Error
		cause string
	}{
		"the person said no":  {by: func(a url.Values) { a.Set("error", "access_denied") }, want: auth.ErrProviderDenied, cause: "access_denied"},
		"another code":        {by: func(a url.Values) { a.Set("code", "shh-other") }, want: auth.ErrProviderAnswer, cause: "bad_verification_code"},
		"another origin":      {by: func(a url.Values) { a.Set("iss", "https://other.example") }, want: auth.ErrProviderAnswer, cause: "another issuer"},
		"nobody":              {with: func(h *hub) { h.user = `{"login": "asha"}` }, want: auth.ErrProviderAnswer, cause: "names nobody"},
		"a fraction of one":   {with: func(h *hub) { h.user = `{"id": 1.5}` }, want: auth.ErrProviderAnswer, cause: "names nobody"},
		"a number with power": {with: func(h *hub) { h.user = `{"id": 1e3}` }, want: auth.ErrProviderAnswer, cause: "names nobody"},
		"many at once":        {with: func(h *hub) { h.user = `[{"id": 1}]` }, want: auth.ErrProviderAnswer, cause: "as expected"},
		"the list fails":      {with: func(h *hub) { h.status = 500 }, want: auth.ErrProviderUnavailable, cause: "status 500"},
		"the list is none":    {with: func(h *hub) { h.emails = `{}` }, want: auth.ErrProviderAnswer, cause: "list of e-mail addresses"},
		"no token":            {with: func(h *hub) { h.token = "token_type=bearer" }, want: auth.ErrProviderAnswer, cause: "missing access_token"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			if tt.with != nil {
				tt.with(h)
			}
			var changes []func(url.Values)
			if tt.by != nil {
				changes = append(changes, tt.by)
			}
			_, err := h.signIn(t, changes...)
			refused(t, err, tt.want, tt.cause)
		})
	}
}

func TestPlainSignIn_SameOriginIssuer_Accepted(t *testing.T) {
	h := newHub(t)
	if _, err := h.signIn(t, func(a url.Values) { a.Set("iss", h.URL+"/login/oauth") }); err != nil {
		t.Error(err)
	}
}

func TestHalfAProviderIsNone(t *testing.T) {
	whole := oauth.Options{
		Label: "Test", ClientID: clientID, ClientSecret: clientSecret, RedirectURL: "https://pay.example/cb", Issuer: "https://id.example", Now: time.Now,
	}
	if _, err := oauth.New(whole); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*oauth.Options){
		func(o *oauth.Options) { o.Label = "" },
		func(o *oauth.Options) { o.ClientID = "" },
		func(o *oauth.Options) { o.ClientSecret = "" },
		func(o *oauth.Options) { o.RedirectURL = "" },
		func(o *oauth.Options) { o.RedirectURL = "http://pay.example/cb" },
		func(o *oauth.Options) { o.Issuer = "http://id.example" },
		func(o *oauth.Options) { o.Issuer = "id.example" },
		func(o *oauth.Options) { o.Issuer = "" },
		func(o *oauth.Options) { o.TokenURL = "https://id.example/token" },
		func(o *oauth.Options) {
			o.Issuer, o.AuthURL, o.TokenURL = "", "https://id.example/a", "https://id.example/t"
		},
		func(o *oauth.Options) { o.Now = nil },
		func(o *oauth.Options) { o.Timeout = -1 },
	} {
		o := whole
		change(&o)
		if _, err := oauth.New(o); err == nil {
			t.Errorf("case %d is taken: %s", i, fmt.Sprintf("%+v", o))
		}
	}
}
