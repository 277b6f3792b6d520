package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bursar/test/harness"
)

// These tests guess passwords at a whole service from many addresses: on Linux every address of 127.0.0.0/8 is this machine.

// caller calls a service from an address of its own.
type caller struct {
	http.Client
	api string
}

func newCaller(t *testing.T, i *harness.Instance, address string) *caller {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1000}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{http.Client{Transport: transport}, i.API}
}

// answered is an answer to a sign-in or a registration.
type answered struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	body    string
}

func (c *caller) post(ctx context.Context, path, body string, cookies ...*http.Cookie) (answered, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.api+path, strings.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	response, err := c.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, response.Header, response.Cookies(), string(text)}, err
}

const theirPassword = "tamarind-42-lane"

func (c *caller) login(ctx context.Context, email, password string, cookies ...*http.Cookie) (answered, error) {
	return c.post(ctx, "/api/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), cookies...)
}

func (c *caller) mustLogin(t *testing.T, want int, email, password string, cookies ...*http.Cookie) answered {
	t.Helper()
	a, err := c.login(t.Context(), email, password, cookies...)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != want {
		t.Fatalf("a sign-in of %s was answered with %d, want %d: %s", email, a.status, want, a.body)
	}
	return a
}

func (c *caller) register(t *testing.T, email string) answered {
	t.Helper()
	a, err := c.post(t.Context(), "/api/auth/register", fmt.Sprintf(`{"name":"Asha","email":%q,"password":%q,"role":"seller"}`, email, theirPassword))
	if err != nil {
		t.Fatal(err)
	}
	if a.status != http.StatusCreated {
		t.Fatalf("%s was registered with %d: %s", email, a.status, a.body)
	}
	return a
}

// deviceOf is the cookie by which an account knows a browser.
func deviceOf(t *testing.T, a answered) *http.Cookie {
	t.Helper()
	if len(a.cookies) != 1 || !strings.HasPrefix(a.cookies[0].Name, "bursar-device-") || !a.cookies[0].HttpOnly {
		t.Fatalf("cookies %v", a.cookies)
	}
	return a.cookies[0]
}

// guarded starts a service as people run it.
func guarded(t *testing.T) *harness.Instance {
	t.Helper()
	s := shopOnSQLite(t, "BURSAR_LOGIN_THROTTLE=on")
	s.start(t)
	return s.instances[0]
}

func TestGuessingPasswords(t *testing.T) {
	i := guarded(t)
	t.Run("from the owner's address", func(t *testing.T) {
		home := newCaller(t, i, "127.0.1.1")
		device := deviceOf(t, home.register(t, "home@example.com"))
		lookedAt := 0
		for range 150 {
			if a, err := home.login(t.Context(), "home@example.com", "a-guess-at-it"); err != nil || a.status == http.StatusUnauthorized {
				lookedAt++
			}
		}
		if lookedAt != 20 {
			t.Errorf("%d of 150 guesses were looked at, want 20", lookedAt)
		}
		if a := home.mustLogin(t, http.StatusTooManyRequests, "home@example.com", theirPassword); a.header.Get("Retry-After") == "" {
			t.Error("the refusal does not say when to come back")
		}
		deviceOf(t, home.mustLogin(t, http.StatusOK, "home@example.com", theirPassword, device))
	})
	t.Run("elsewhere", func(t *testing.T) {
		newCaller(t, i, "127.0.2.1").register(t, "framed@example.com")
		attacker := newCaller(t, i, "127.0.2.66")
		for range 20 {
			attacker.mustLogin(t, http.StatusUnauthorized, "framed@example.com", "a-guess-at-it")
		}
		newCaller(t, i, "127.0.2.2").mustLogin(t, http.StatusOK, "framed@example.com", theirPassword)
	})
	t.Run("from 200 addresses", func(t *testing.T) {
		device := deviceOf(t, newCaller(t, i, "127.0.3.1").register(t, "botnet@example.com"))
		lookedAt := 0
		for n := range 400 {
			a, err := newCaller(t, i, fmt.Sprintf("127.0.4.%d", 1+n/2)).login(t.Context(), "botnet@example.com", "a-guess-at-it")
			if err != nil || a.status == http.StatusUnauthorized {
				lookedAt++
			} else if a.status != http.StatusTooManyRequests {
				t.Fatalf("answered with %d: %s", a.status, a.body)
			}
		}
		if lookedAt < 50 || lookedAt > 100 {
			t.Errorf("%d of 400 guesses were looked at", lookedAt)
		}
		newCaller(t, i, "127.0.3.2").mustLogin(t, http.StatusOK, "botnet@example.com", theirPassword, device)
	})
}

// While 290 connections sign in without a pause, in each of the costliest ways, other users can sign in and register.
func TestLogin_Flood_OthersSignIn(t *testing.T) {
	const connections = 290
	i := guarded(t)
	newCaller(t, i, "127.0.9.66").register(t, "mallory@example.com")
	own := func(password string) func(int) (email, password string) {
		return func(int) (string, string) { return "mallory@example.com", password }
	}
	var guess atomic.Int64
	for n, flood := range []struct {
		name      string
		addresses int
		try       func(int) (email, password string)
	}{
		{"wrong passwords of their own account", 1, own("a-guess-at-it")},
		{"right passwords of their own account", 1, own(theirPassword)},
		{"right passwords from many addresses", 29, own(theirPassword)},
		{"many accounts from many addresses", 29, func(int) (string, string) {
			return fmt.Sprintf("nobody%d@example.com", guess.Add(1)), theirPassword
		}},
	} {
		t.Run(flood.name, func(t *testing.T) {
			email := fmt.Sprintf("asha%d@example.com", n)
			device := deviceOf(t, newCaller(t, i, "127.0.5.1").register(t, email))
			ctx, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var sent atomic.Int64
			begun := make(chan struct{})
			once := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
				if sent.Add(1) == connections {
					close(begun)
				}
			}})
			callers := make([]*caller, flood.addresses)
			for a := range callers {
				callers[a] = newCaller(t, i, fmt.Sprintf("127.0.%d.%d", 100+n, 1+a))
			}
			for c := range connections {
				all.Go(func() {
					for traced := once; ctx.Err() == nil; traced = ctx {
						email, password := flood.try(c)
						a, err := callers[c%flood.addresses].login(traced, email, password)
						if err == nil && a.status >= http.StatusInternalServerError && a.status != http.StatusServiceUnavailable {
							t.Errorf("the flood was answered with %d: %s", a.status, a.body)
						}
					}
				})
			}
			<-begun
			for o := range 5 {
				newCaller(t, i, fmt.Sprintf("127.0.6.%d", 1+o)).mustLogin(t, http.StatusOK, email, theirPassword)
			}
			newCaller(t, i, "127.0.7.1").register(t, fmt.Sprintf("new%d@example.com", n))
			callers[0].mustLogin(t, http.StatusOK, email, theirPassword, device) // at the same address
			end()
			all.Wait()
		})
	}
}
