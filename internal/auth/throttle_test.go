package auth_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

var (
	cafe     = auth.Device{Address: "198.51.100.9"}
	attacker = auth.Device{Address: "192.0.2.66"}
)

// fail tries wrong passwords until the throttle says wait, and returns how many were looked at.
func (w *fixture) fail(email string, from auth.Device) (tried int, wait time.Duration) {
	w.t.Helper()
	for tried = range 1000 {
		_, err := w.login(email, "not-the-password", from)
		if !errors.Is(err, auth.ErrCredentials) {
			return tried, wantThrottled(w.t, err)
		}
	}
	w.t.Fatal("a thousand tries were looked at")
	return 0, 0
}

func TestThrottle_UnknownDeviceGetsTenTries(t *testing.T) {
	for name, email := range map[string]string{"a user": email, "nobody": "nobody@example.com"} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.register()
			tried, wait := w.fail(email, attacker)
			if tried != 10 || wait != 90*time.Second {
				t.Errorf("%d tries, then wait %v; want 10 and 90s", tried, wait)
			}
			w.clock.advance(wait - time.Microsecond)
			_, err := w.login(email, "not-the-password", cafe) // another address gets no more
			if left := wantThrottled(t, err); left != time.Microsecond {
				t.Errorf("wait %v, want what is left of it", left)
			}
			w.clock.advance(time.Microsecond)
			if tried, _ := w.fail(email, cafe); tried != 1 {
				t.Errorf("%d tries after the wait, want 1", tried)
			}
			w.clock.advance(24 * time.Hour)
			if tried, _ := w.fail(email, cafe); tried != 10 {
				t.Errorf("%d tries a day later, want 10", tried)
			}
		})
	}
}

func TestAnotherSpellingOfAnEmailGetsNoMoreTries(t *testing.T) {
	w := newFixture(t)
	w.register()
	w.fail(email, attacker)
	if tried, _ := w.fail("ASHA@Example.com", attacker); tried != 0 {
		t.Errorf("%d tries, want 0", tried)
	}
}

func TestAnAttackElsewhereLocksNobodyOut(t *testing.T) {
	w := newFixture(t)
	w.register() // at home
	w.fail(email, attacker)

	_, err := w.login(email, password, cafe)
	wantThrottled(t, err) // where the user never was, the right password does not help
	_, err = w.login(email, "a-slip-of-the-finger", home)
	wantErr(t, err, auth.ErrCredentials)
	if _, err := w.login(email, password, home); err != nil {
		t.Errorf("the owner is locked out at home: %v", err)
	}
}

func TestAKnownDeviceIsBoundByItsOwnTriesAlone(t *testing.T) {
	w := newFixture(t)
	w.register()
	tried, wait := w.fail(email, home)
	if tried != 20 || wait != time.Minute {
		t.Errorf("%d tries, then wait %v; want 20 and 1m", tried, wait)
	}
	if _, err := w.login(email, password, home); err != nil {
		t.Fatalf("the right password is locked out: %v", err)
	}
	if tried, _ := w.fail(email, home); tried != 20 {
		t.Errorf("%d tries after the right password, want 20 again", tried)
	}
	if tried, _ := w.fail(email, attacker); tried != 10 {
		t.Errorf("unknown devices have %d tries, want 10", tried)
	}
	// The address is known to one account and a stranger to all others.
	if tried, _ := w.fail("nobody@example.com", home); tried != 10 {
		t.Errorf("%d tries at another account, want 10", tried)
	}
}

func TestAnAddressGetsFiftyTriesOverAllAccounts(t *testing.T) {
	w := newFixture(t)
	for i := range 50 {
		_, err := w.login(fmt.Sprintf("user%d@example.com", i), "not-the-password", attacker)
		wantErr(t, err, auth.ErrCredentials)
	}
	_, err := w.login("user50@example.com", "not-the-password", attacker)
	if wait := wantThrottled(t, err); wait != 20*time.Second {
		t.Errorf("wait %v, want 20s", wait)
	}
	// A try that one bucket refuses costs the other nothing.
	if tried, _ := w.fail("user50@example.com", cafe); tried != 10 {
		t.Errorf("%d tries elsewhere, want 10", tried)
	}
	w.clock.advance(20 * time.Second)
	_, err = w.login("user51@example.com", "not-the-password", attacker)
	wantErr(t, err, auth.ErrCredentials)
}

func TestTheWaitIsTheLongestOfAll(t *testing.T) {
	w := newFixture(t)
	for i := range 40 {
		_, err := w.login(fmt.Sprintf("user%d@example.com", i), "not-the-password", attacker)
		wantErr(t, err, auth.ErrCredentials)
	}
	w.fail(email, attacker) // now both are full
	_, err := w.login(email, "not-the-password", attacker)
	if wait := wantThrottled(t, err); wait != 90*time.Second {
		t.Errorf("wait %v, want the account's 90s and not the address's 20s", wait)
	}
}

func TestRightPasswordsCostNoTries(t *testing.T) {
	w := newFixture(t)
	w.register()
	for i := range 60 { // each from a new address of its own, and once more from there
		from := auth.Device{Address: fmt.Sprintf("198.51.100.%d", i)}
		for range 2 {
			if _, err := w.login(email, password, from); err != nil {
				t.Fatalf("sign-in %d: %v", i, err)
			}
		}
	}
	if tried, _ := w.fail(email, attacker); tried != 10 {
		t.Errorf("%d tries left, want 10", tried)
	}
}

func TestThrottle_RightPasswordDoesNotResetUnknownDevices(t *testing.T) {
	w := newFixture(t)
	w.register()
	for range 9 {
		_, err := w.login(email, "not-the-password", attacker)
		wantErr(t, err, auth.ErrCredentials)
	}
	if _, err := w.login(email, password, cafe); err != nil {
		t.Fatal(err)
	}
	if tried, _ := w.fail(email, attacker); tried != 1 {
		t.Errorf("%d tries left, want 1", tried)
	}
}

func TestTriesAtOnceAreAllCounted(t *testing.T) {
	w := newFixture(t)
	w.register()
	second := w.again()
	const callers = 60
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		service := w.Service
		if i%2 == 1 {
			service = second
		}
		wg.Go(func() {
			_, errs[i] = service.Login(t.Context(), auth.Credentials{Email: email, Password: "not-the-password", Device: attacker})
		})
	}
	wg.Wait()
	lookedAt := 0
	for _, err := range errs {
		if errors.Is(err, auth.ErrCredentials) {
			lookedAt++
		} else {
			wantThrottled(t, err)
		}
	}
	if lookedAt != 10 {
		t.Errorf("%d of %d tries at once were looked at, want 10", lookedAt, callers)
	}
}

func TestARestartForgivesNothing(t *testing.T) {
	w := newFixture(t)
	w.register()
	w.fail(email, attacker)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	restarted := w.again(func(o *auth.Options) { o.Store = w.place.Open(t).Auth() })
	_, err := restarted.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: cafe})
	wantThrottled(t, err)
	if _, err := restarted.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: home}); err != nil {
		t.Errorf("the known device was forgotten: %v", err)
	}
}

func TestTheRefusalSaysHowLongToWait(t *testing.T) {
	w := newFixture(t)
	w.fail(email, attacker) // the next try is in 90 s
	for _, step := range []struct {
		pause time.Duration
		want  string
	}{
		{0, "Too many attempts. Try again in 90 seconds."},
		{64 * time.Second, "Too many attempts. Try again in 26 seconds."},
		{time.Microsecond, "Too many attempts. Try again in 26 seconds."},
		{25 * time.Second, "Too many attempts. Try again in 1 second."},
	} {
		w.clock.advance(step.pause)
		_, err := w.login(email, "not-the-password", attacker)
		wantThrottled(t, err)
		if got := fault.From(err).Message; got != step.want {
			t.Errorf("message = %q, want %q", got, step.want)
		}
	}
}

func TestAddressesOfOneSiteAreOne(t *testing.T) {
	tests := map[string]struct {
		known, from string
		want        bool
	}{
		"same":                  {"2001:db8:1:2::3", "2001:db8:1:2::3", true},
		"same site":             {"2001:db8:1:2::3", "2001:db8:1:2:ffff::1", true},
		"another site":          {"2001:db8:1:2::3", "2001:db8:1:3::3", false},
		"IPv4 written as IPv6":  {"203.0.113.7", "::ffff:203.0.113.7", true},
		"neighbouring IPv4":     {"203.0.113.7", "203.0.113.8", false},
		"another IPv6 spelling": {"2001:db8:0:0:0:0:0:1", "2001:DB8::1", true},
		"with a zone":           {"fe80::1%eth0", "fe80::1%eth1", true},
		"no address":            {"a-socket", "another-socket", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.register()
			if _, err := w.login(email, password, auth.Device{Address: tt.known}); err != nil {
				t.Fatal(err)
			}
			w.fail(email, attacker)
			_, err := w.login(email, password, auth.Device{Address: tt.from})
			if got := err == nil; got != tt.want {
				t.Errorf("known = %v (%v), want %v", got, err, tt.want)
			}
		})
	}
}

func TestRegistrationsFromOneAddress(t *testing.T) {
	w := newFixture(t)
	register := func(i int, from auth.Device) error {
		_, err := w.Register(t.Context(), auth.Registration{
			Name: "Asha", Email: fmt.Sprintf("user%d@example.com", i), Password: password, Device: from,
		})
		return err
	}
	for i := range 500 {
		if err := register(i, attacker); err != nil {
			t.Fatalf("registration %d: %v", i, err)
		}
	}
	if wait := wantThrottled(t, register(500, attacker)); wait != 2*time.Second {
		t.Errorf("wait %v, want 2s", wait)
	}
	if err := register(500, home); err != nil {
		t.Errorf("another address: %v", err)
	}
	w.clock.advance(2 * time.Second)
	if err := register(501, attacker); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestTheThrottleCanBeOff(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	w.register()
	for range 150 {
		_, err := w.login(email, "not-the-password", home)
		if f := fault.From(err); f == nil || f.Code != auth.ErrCredentials.Code {
			t.Fatal(err)
		}
	}
}
