package auth_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/keyset"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// fixture is a service over a database of its own, with a clock that stands still.
type fixture struct {
	*auth.Service
	t       testing.TB
	clock   *clock
	db      *store.DB
	keys    *keyset.Set
	options auth.Options
	place   storetest.Place
	mailbox *storetest.Mailbox
}

func newFixture(t testing.TB, change ...func(*auth.Options)) *fixture {
	t.Helper()
	return newFixtureAt(t, storetest.NewPlace(t), change...)
}

// newFixtureAt is a fixture with its database at a place.
func newFixtureAt(t testing.TB, place storetest.Place, change ...func(*auth.Options)) *fixture {
	t.Helper()
	dir := t.TempDir()
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(dir, "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, clock: &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}, keys: keys, place: place}
	w.db = w.place.Open(t)
	w.mailbox = storetest.NewMailbox(t, w.db, keys, w.clock.Now)
	w.options = auth.Options{
		Store: w.db.Auth(), Keys: keys, Encrypter: keys, Mails: w.mailbox, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
		Issuer: "https://pay.example", RefreshGrace: 10 * time.Second, Throttle: true, CheapHashes: true,
	}
	for _, c := range change {
		c(&w.options)
	}
	w.Service = newService(t, w.options)
	return w
}

// again is another instance of the service, on the same database and keys.
func (w *fixture) again(change ...func(*auth.Options)) *auth.Service {
	w.t.Helper()
	o := w.options
	for _, c := range change {
		c(&o)
	}
	return newService(w.t, o)
}

func newService(t testing.TB, o auth.Options) *auth.Service {
	t.Helper()
	s, err := auth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const (
	email    = "asha@example.com"
	password = "tamarind-42-lane"
)

var home = auth.Device{Address: "203.0.113.7"}

// register makes a seller at home.
func (w *fixture) register() auth.SignIn {
	w.t.Helper()
	in, err := w.Register(w.t.Context(), auth.Registration{Name: "Asha", Email: email, Password: password, Role: auth.Seller, Device: home})
	if err != nil {
		w.t.Fatal(err)
	}
	return in
}

// admin makes an admin, who decides.
func (w *fixture) admin(name string) decision.By {
	w.t.Helper()
	u, err := w.CreateUser(w.t.Context(), auth.Registration{Name: name, Email: name + "@bursar.example", Password: password, Role: auth.Admin})
	if err != nil {
		w.t.Fatal(err)
	}
	return decision.By{Admin: u.ID, Note: "Ticket 812."}
}

// principal is who a sign-in makes of its holder.
func (w *fixture) principal(in auth.SignIn) auth.Principal {
	w.t.Helper()
	p, err := w.Authenticate(w.t.Context(), in.Token)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *fixture) login(email, password string, from auth.Device) (auth.SignIn, error) {
	return w.Login(w.t.Context(), auth.Credentials{Email: email, Password: password, Device: from})
}

// known is a device at d that the account of a sign-in knows.
func known(in auth.SignIn, d auth.Device) auth.Device {
	d.Tokens = []string{in.DeviceToken}
	return d
}

// wantDead fails unless nothing of a sign-in works any more.
func (w *fixture) wantDead(in auth.SignIn) {
	w.t.Helper()
	_, err := w.Authenticate(w.t.Context(), in.Token)
	wantErr(w.t, err, auth.ErrToken)
	_, err = w.Refresh(w.t.Context(), in.RefreshToken)
	wantErr(w.t, err, auth.ErrRefresh)
}

func (w *fixture) wantAlive(in auth.SignIn) {
	w.t.Helper()
	if _, err := w.Authenticate(w.t.Context(), in.Token); err != nil {
		w.t.Errorf("the token is dead: %v", err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
}

// wantThrottled fails unless err asks to wait, and returns how long.
func wantThrottled(t testing.TB, err error) time.Duration {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Code != auth.ErrThrottled.Code || f.RetryAfter <= 0 {
		t.Fatalf("error = %v, want a throttle with a time to wait", err)
	}
	return f.RetryAfter
}
