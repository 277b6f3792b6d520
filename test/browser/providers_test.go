package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bursar/internal/npmtest"
	"bursar/test/harness"
)

// member is a user as /me tells.
type member struct {
	ID, Name, Email, Role string
	IsVerified            bool
}

// me is who the browser is signed in as, or nobody.
func (i *instance) me(b *harness.Visitor) member {
	b.T.Helper()
	p := b.Get(i.API + "/api/auth/me")
	var data struct{ User member }
	if err := harness.ReadData([]byte(p.Body), &data); err != nil {
		b.T.Fatal(err)
	}
	return data.User
}

// consent is the page where a provider asks whoever starts a sign-in there.
func (i *instance) consent(b *harness.Visitor, start string) harness.Reply {
	b.T.Helper()
	return b.Follow(b.Get(i.API+"/api/auth/"+start), "")
}

// mustEnd checks where a sign-in ended: at a path of ours, or on the sign-in page with a sentence that has
// some words in it.
func (i *instance) mustEnd(t *testing.T, p harness.Reply, path, words string) {
	t.Helper()
	to, err := url.Parse(p.LeadsTo())
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != http.StatusSeeOther || to.Scheme+"://"+to.Host != i.API || to.Path != path || !strings.Contains(to.Query().Get("error"), words) {
		t.Fatalf("the sign-in ended with %d %s %s, want %s and %q", p.Status, to, p.Body, path, words)
	}
}

func as(who string) url.Values { return url.Values{"person": {who + "@example.com"}} }

func TestProviderSignIn_Sandbox(t *testing.T) {
	i := newDefaultInstance(t)
	i.Start(t)

	seller := harness.NewVisitor(t)
	consent := i.consent(seller, "provider-a?redirect=/dashboard/payouts&role=seller")
	if !strings.Contains(consent.Body, "test provider") || !strings.Contains(consent.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the consent page is %v %s", consent.Header, consent.Body)
	}
	callback := seller.Submit(consent, as("asha"))
	end := seller.Get(callback.LeadsTo())
	i.mustEnd(t, end, "/dashboard/payouts", "")
	asha := i.me(seller)
	if want := (member{asha.ID, "Asha Rao", "asha@example.com", "seller", true}); asha != want || asha.ID == "" {
		t.Errorf("signed in as %+v, want %+v", asha, want)
	}
	for _, cookie := range end.Header.Values("Set-Cookie") {
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
			t.Errorf("a cookie is open: %s", cookie)
		}
	}

	t.Run("the same person again", func(t *testing.T) {
		b := harness.NewVisitor(t)
		end := b.Get(b.Submit(i.consent(b, "provider-a?role=buyer"), as("asha")).LeadsTo())
		i.mustEnd(t, end, "/dashboard", "")
		if again := i.me(b); again != asha {
			t.Errorf("signed in as %+v, want %+v", again, asha)
		}
	})
	t.Run("the same address at the other provider", func(t *testing.T) {
		b := harness.NewVisitor(t)
		end := b.Get(b.Submit(i.consent(b, "provider-b"), as("asha")).LeadsTo())
		i.mustEnd(t, end, "/dashboard", "")
		if linked := i.me(b); linked != asha {
			t.Errorf("signed in as %+v, want %+v", linked, asha)
		}
	})
	t.Run("somebody who types who they are", func(t *testing.T) {
		b := harness.NewVisitor(t)
		consent := i.consent(b, "provider-b")
		_, other, _ := strings.Cut(consent.Body, "</form>")
		consent.Body = other
		wrong := b.Submit(consent, url.Values{"name": {""}, "email": {"nobody"}})
		if wrong.Status != http.StatusUnprocessableEntity || !strings.Contains(wrong.Body, "Write a name") || !strings.Contains(wrong.Body, "Write an e-mail address") {
			t.Fatalf("the answer does not say what is wrong: %d %s", wrong.Status, wrong.Body)
		}
		end := b.Get(b.Submit(consent, url.Values{"name": {"Zoë <b>"}, "email": {"zoe@example.com"}, "verified": {"yes"}}).LeadsTo())
		i.mustEnd(t, end, "/dashboard", "")
		if zoe := i.me(b); zoe.Email != "zoe@example.com" || zoe.Role != "buyer" || !zoe.IsVerified {
			t.Errorf("signed in as %+v", zoe)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		b := harness.NewVisitor(t)
		end := b.Get(b.Submit(i.consent(b, "provider-a?redirect=/dashboard/sales"), url.Values{"cancel": {"yes"}}).LeadsTo())
		i.mustEnd(t, end, "/login", "You did not finish signing in")
		if !strings.Contains(end.LeadsTo(), "redirect=") || i.me(b).ID != "" {
			t.Errorf("after Cancel, the browser goes to %s as %+v", end.LeadsTo(), i.me(b))
		}
	})
	t.Run("two tabs", func(t *testing.T) {
		b := harness.NewVisitor(t)
		first, second := i.consent(b, "provider-a?redirect=/one"), i.consent(b, "provider-b?redirect=/two")
		i.mustEnd(t, b.Get(b.Submit(second, as("ravi")).LeadsTo()), "/two", "")
		i.mustEnd(t, b.Get(b.Submit(first, as("ravi")).LeadsTo()), "/one", "")
	})
	if log := i.Output(t, "stderr"); strings.Contains(log, "code=") || strings.Contains(log, "state=") || strings.Contains(log, "eyJ") {
		t.Errorf("the log tells secrets: %s", log)
	}
}

func TestProviderSignIn_ForeignCallback_Refused(t *testing.T) {
	i := newDefaultInstance(t)
	i.Start(t)
	const refused = "begun in another browser"

	attacker, victim := harness.NewVisitor(t), harness.NewVisitor(t)
	// The victim opens a callback that the attacker did not.
	stolen := attacker.Submit(i.consent(attacker, "provider-a"), as("ravi")).LeadsTo()
	i.mustEnd(t, victim.Get(stolen), "/login", refused)
	if i.me(victim).ID != "" {
		t.Error("a browser was signed in by another one's callback")
	}

	// It is used once, also where it began.
	i.mustEnd(t, attacker.Get(stolen), "/dashboard", "")
	i.mustEnd(t, attacker.Get(stolen), "/login", refused)

	// The answer of one provider is brought to the other.
	other := attacker.Submit(i.consent(attacker, "provider-a"), as("ravi")).LeadsTo()
	i.mustEnd(t, attacker.Get(strings.Replace(other, "provider-a", "provider-b", 1)), "/login", refused)

	// The code of one sign-in is brought to another one of the same browser.
	one, two := attacker.Submit(i.consent(attacker, "provider-a"), as("asha")).LeadsTo(), attacker.Submit(i.consent(attacker, "provider-a"), as("ravi")).LeadsTo()
	i.mustEnd(t, attacker.Get(with(t, one, "code", query(t, two, "code"))), "/login", "does not prove who you are")

	// Answers are made up, or changed.
	for name, change := range map[string]func(string) string{
		"no code":        func(to string) string { return with(t, to, "code") },
		"two codes":      func(to string) string { return with(t, to, "code", query(t, to, "code"), "other") },
		"another code":   func(to string) string { return with(t, to, "code", "made-up") },
		"another issuer": func(to string) string { return with(t, to, "iss", "https://other.example") },
		"no issuer":      func(to string) string { return with(t, to, "iss") },
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.NewVisitor(t)
			to := b.Submit(i.consent(b, "provider-b"), as("asha")).LeadsTo()
			i.mustEnd(t, b.Get(change(to)), "/login", "does not prove who you are")
			i.mustEnd(t, b.Get(to), "/login", refused) // it had its chance
			if i.me(b).ID != "" {
				t.Error("a changed answer signed somebody in")
			}
		})
	}
}

// An attacker registered with the victim's e-mail address and a bank account, and requested a payout, before the victim
// signs in.
func TestTakeover_SquattersPayout_Fails(t *testing.T) {
	i := newDefaultInstance(t, "BURSAR_CANCEL_WINDOW=5s", "BURSAR_SANDBOX_SETTLE_AFTER=100ms")
	i.Start(t)
	var squatter struct {
		Token string
		User  struct{ ID string }
	}
	i.Call(t, "POST", "/api/auth/register", "", `{"name": "Asha Rao", "email": "asha@example.com", "password": "squatters horse", "role": "seller"}`, &squatter)
	i.Call(t, "PUT", "/api/bank-account", squatter.Token, `{"accountHolder": "Some Body", "accountNumber": "50100234567812", "ifsc": "HDFC0000053"}`, new(struct{}))
	i.earn(t, squatter.User.ID, "order-1", 5000)
	harness.Until(t, "there is money to take", func() bool {
		var b struct {
			AvailableBalance float64
			BankAccount      struct{ IsVerified bool }
		}
		i.Call(t, "GET", "/api/payouts/balance", squatter.Token, "", &b)
		return b.AvailableBalance == 5000 && b.BankAccount.IsVerified
	})
	var asked struct{ PayoutID string }
	i.Call(t, "POST", "/api/payouts/request", squatter.Token, `{"amount": 4000}`, &asked)

	victim := harness.NewVisitor(t)
	i.mustEnd(t, victim.Get(victim.Submit(i.consent(victim, "provider-a"), as("asha")).LeadsTo()), "/dashboard", "")
	if i.me(victim).ID != squatter.User.ID {
		t.Fatal("the account was not taken over")
	}
	see := func(path string, data any) {
		t.Helper()
		if err := harness.ReadData([]byte(victim.Get(i.API+"/api/payouts/"+path).Body), data); err != nil {
			t.Fatal(err)
		}
	}
	var p struct{ Status, FailureReason string }
	harness.Until(t, "the payout has ended", func() bool {
		see(asked.PayoutID, &p)
		return p.Status != "processing"
	})
	if p.Status != "failed" || !strings.Contains(p.FailureReason, "not verified any more") {
		t.Errorf("the squatter's payout ended as %+v", p)
	}
	var b struct{ AvailableBalance float64 }
	if see("balance", &b); b.AvailableBalance != 5000 {
		t.Errorf("the victim has %v", b)
	}
}

// with is an address with other values of a parameter.
func with(t *testing.T, address, name string, values ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	all := u.Query()
	all[name] = values
	u.RawQuery = all.Encode()
	return u.String()
}

func query(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}

// The built-in provider answers only direct calls from the machine of the service.
func TestSandboxProvider_NotLocal_NotFound(t *testing.T) {
	const discovery = "/sandbox/identity/a/.well-known/openid-configuration"
	for name, settings := range map[string][]string{
		"on all addresses": {"BURSAR_ADDR=0.0.0.0:%s", "BURSAR_BASE_URL=http://localhost:%s"},
		"public":           {"BURSAR_BASE_URL=https://pay.example.com"},
		"with another provider": {
			"BURSAR_PROVIDER_B_ISSUER=https://id.example.com", "BURSAR_PROVIDER_B_CLIENT_ID=x", "BURSAR_PROVIDER_B_CLIENT_SECRET=hush",
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newDefaultInstance(t)
			_, port, _ := strings.Cut(strings.TrimPrefix(i.API, "http://"), ":")
			for _, setting := range settings {
				i.Environ = append(i.Environ, strings.ReplaceAll(setting, "%s", port))
			}
			i.Start(t)
			b := harness.NewVisitor(t)
			for path, want := range map[string]string{
				"/api/auth/provider-a": "provider_not_configured", "/api/auth/provider-a/callback": "provider_not_configured",
				discovery: "", "/sandbox/identity/a/authorize": "", "/sandbox/identity/b/jwks": "",
			} {
				if p := b.Get(i.API + path); p.Status != http.StatusNotFound || !strings.Contains(p.Body, want) {
					t.Errorf("%s is answered with %d %s", path, p.Status, p.Body)
				}
			}
		})
	}

	i := newDefaultInstance(t)
	i.Start(t)
	ask := func(change func(*http.Request)) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, i.API+discovery, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if status := ask(func(*http.Request) {}); status != http.StatusOK {
		t.Fatalf("the sandbox is not there at all: %d", status)
	}
	for name, change := range map[string]func(*http.Request){
		"by another name":        func(r *http.Request) { r.Host = "pay.example.com" },
		"by a name that rebinds": func(r *http.Request) { r.Host = "127.0.0.1.example.com:8080" },
		"for somebody":           func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") },
		"for somebody else":      func(r *http.Request) { r.Header.Set("Forwarded", "for=203.0.113.7") },
		"for nobody in words":    func(r *http.Request) { r.Header.Set("X-Forwarded-For", "") },
		"by nginx":               func(r *http.Request) { r.Header.Set("X-Real-IP", "203.0.113.7") },
		"through a proxy":        func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
	} {
		if status := ask(change); status != http.StatusNotFound {
			t.Errorf("asked %s, the sandbox answers %d", name, status)
		}
	}
}

// npmProvider is oidc-provider from npm, which asks people in two steps.
func npmProvider(t *testing.T, settings map[string]any) string {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", filepath.Join("testdata", "provider", "provider.mjs"), npmtest.Packages(t), string(text))
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	node.Stderr = log
	input, err := node.StdinPipe() // it ends when this does
	if err != nil {
		t.Fatal(err)
	}
	output, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = node.Process.Kill()
		_ = node.Wait()
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the provider said:\n%s", said)
		}
	})
	issuer, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider did not start: %v", err)
	}
	return strings.TrimSpace(issuer)
}

func TestProviderSignIn_NpmProvider(t *testing.T) {
	for _, algorithm := range []string{"RS256", "ES256"} {
		t.Run(algorithm, func(t *testing.T) {
			i := newDefaultInstance(t)
			issuer := npmProvider(t, map[string]any{
				"algorithm": algorithm, "emailInToken": algorithm == "RS256", // or else userinfo is asked for it
				"clientId": "bursar+1", "clientSecret": "a secret: %2B/+&", "redirectUri": i.API + "/api/auth/provider-a/callback",
			})
			i.Environ = append(i.Environ, "BURSAR_PROVIDER_A_ISSUER="+issuer, "BURSAR_PROVIDER_A_CLIENT_ID=bursar+1",
				"BURSAR_PROVIDER_A_CLIENT_SECRET=a secret: %2B/+&", "BURSAR_PROVIDER_A_LABEL=npm")
			i.Start(t)

			b := harness.NewVisitor(t)
			end := i.atNpm(b, "provider-a?role=seller&redirect=/dashboard/sales", "ravi")
			i.mustEnd(t, end, "/dashboard/sales", "")
			ravi := i.me(b)
			if want := (member{ravi.ID, "ravi of npm", "ravi@example.com", "seller", true}); ravi != want || ravi.ID == "" {
				t.Errorf("signed in as %+v, want %+v", ravi, want)
			}
			again := harness.NewVisitor(t)
			i.mustEnd(t, i.atNpm(again, "provider-a", "ravi"), "/dashboard", "")
			if i.me(again) != ravi {
				t.Errorf("signed in again as %+v", i.me(again))
			}

			stranger := harness.NewVisitor(t)
			i.mustEnd(t, i.atNpm(stranger, "provider-a", "unverified"), "/dashboard", "")
			if who := i.me(stranger); who.IsVerified || who.ID == ravi.ID {
				t.Errorf("an address that nobody vouches for is verified: %+v", who)
			}

			no := harness.NewVisitor(t)
			login := i.consent(no, "provider-a")
			end = no.Get(no.Follow(no.Get(login.URL.String()+"/abort"), i.API).LeadsTo())
			i.mustEnd(t, end, "/login", "You did not finish signing in")

			bare := harness.NewVisitor(t)
			way := with(t, with(t, bare.Get(i.API+"/api/auth/provider-a").LeadsTo(), "code_challenge"), "code_challenge_method")
			end = bare.Get(bare.Follow(bare.Get(way), i.API).LeadsTo())
			i.mustEnd(t, end, "/login", "does not prove who you are")

			if log := i.Output(t, "stderr"); !strings.Contains(log, i.API+"/api/auth/provider-a/callback") || strings.Contains(log, "a secret") {
				t.Errorf("the log lacks the callback to register, or tells too much: %s", log)
			}
		})
	}
}

// atNpm signs in at npm's provider, and returns what its callback is answered with.
func (i *instance) atNpm(b *harness.Visitor, start, login string) harness.Reply {
	b.T.Helper()
	asked := b.Submit(i.consent(b, start), url.Values{"login": {login}, "password": {"any"}})
	agreed := b.Submit(b.Follow(asked, ""), nil)
	return b.Get(b.Follow(agreed, i.API).LeadsTo())
}

// githubLike is a provider without OpenID Connect that knows one person.
func githubLike(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login/oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
		back := r.URL.Query()
		http.Redirect(w, r, back.Get("redirect_uri")+"?code=1&state="+url.QueryEscape(back.Get("state")), http.StatusFound)
	})
	mux.HandleFunc("POST /login/oauth/access_token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		if r.PostFormValue("client_secret") != "hush" || r.PostFormValue("code") != "1" || r.PostFormValue("code_verifier") == "" {
			fmt.Fprint(w, "error=bad_verification_code")
			return
		}
		fmt.Fprint(w, "access_token=token-1&scope=read%3Auser%2Cuser%3Aemail&token_type=bearer")
	})
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"login": "meera", "id": 9007199254740993, "name": null, "email": null, "avatar_url": "https://avatars.example/1"}`)
	})
	mux.HandleFunc("GET /user/emails", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"email": "old@example.com", "primary": false, "verified": true}, {"email": "meera@example.com", "primary": true, "verified": true}]`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestProviderSignIn_WithoutOpenIDConnect(t *testing.T) {
	hub := githubLike(t)
	i := newDefaultInstance(t, "BURSAR_PROVIDER_B_CLIENT_ID=x", "BURSAR_PROVIDER_B_CLIENT_SECRET=hush",
		"BURSAR_PROVIDER_B_AUTH_URL="+hub.URL+"/login/oauth/authorize", "BURSAR_PROVIDER_B_TOKEN_URL="+hub.URL+"/login/oauth/access_token",
		"BURSAR_PROVIDER_B_USERINFO_URL="+hub.URL+"/user")
	i.Start(t)
	b := harness.NewVisitor(t)
	callback := b.Follow(b.Get(i.API+"/api/auth/provider-b?role=seller"), i.API)
	i.mustEnd(t, b.Get(callback.LeadsTo()), "/dashboard", "")
	meera := i.me(b)
	if want := (member{meera.ID, "meera", "meera@example.com", "seller", true}); meera != want || meera.ID == "" {
		t.Errorf("signed in as %+v, want %+v", meera, want)
	}
}
