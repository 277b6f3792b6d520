package auth_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// at is an address of its own for each number.
func at(i int) auth.Device {
	return auth.Device{Address: fmt.Sprintf("198.51.%d.%d", 100+i/250, 1+i%250)}
}

func TestThrottle_AddressGetsTwentyTriesAtAnAccount(t *testing.T) {
	for name, email := range map[string]string{"a user": email, "nobody": "nobody@example.com"} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.register()
			tried, wait := w.fail(email, attacker)
			if tried != 20 || wait != 90*time.Second {
				t.Errorf("%d tries, then wait %v; want 20 and 90s", tried, wait)
			}
			w.clock.advance(wait - time.Microsecond)
			_, err := w.login(email, "not-the-password", attacker)
			if left := wantThrottled(t, err); left != time.Microsecond {
				t.Errorf("wait %v, want what is left of it", left)
			}
			w.clock.advance(time.Microsecond)
			if tried, _ := w.fail(email, attacker); tried != 1 {
				t.Errorf("%d tries after the wait, want 1", tried)
			}
			w.clock.advance(24 * time.Hour)
			if tried, _ := w.fail(email, attacker); tried != 20 {
				t.Errorf("%d tries a day later, want 20", tried)
			}
		})
	}
}

// NIST SP 800-63B allows 100 wrong passwords; these are spread over as many addresses as the attacker likes.
func TestThrottle_UnknownDevicesGetFiftyTriesAtAnAccount(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	lookedAt := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			_, err := w.login(email, "not-the-password", at(i/2))
			if errors.Is(err, auth.ErrCredentials) {
				n++
			} else {
				wantThrottled(t, err)
			}
		}
		return n
	}
	if n := lookedAt(0, 400); n != 50 {
		t.Errorf("%d of 400 guesses from 200 addresses were looked at, want 50", n)
	}
	total := 50
	for range 60 {
		w.clock.advance(time.Minute)
		total += lookedAt(0, 400)
	}
	if total > 100 {
		t.Errorf("%d guesses were looked at within an hour, want at most 100", total)
	}
	if _, err := w.login(email, password, known(in, cafe)); err != nil {
		t.Errorf("the owner's device: %v", err)
	}
}

func TestThrottle_SpellingOfAnEmailIsNoNewAccount(t *testing.T) {
	w := newFixture(t)
	w.register()
	w.fail(email, attacker)
	if tried, _ := w.fail("ASHA@Example.com", attacker); tried != 0 {
		t.Errorf("%d tries, want 0", tried)
	}
}

func TestThrottle_GuessesElsewhereDoNotLockOutANewAddress(t *testing.T) {
	w := newFixture(t)
	w.register()
	if tried, _ := w.fail(email, attacker); tried != 20 {
		t.Fatalf("%d tries", tried)
	}
	if _, err := w.login(email, password, cafe); err != nil {
		t.Errorf("the owner is locked out where nobody guessed: %v", err)
	}
}

func TestThrottle_NoAddressIsALicenceToGuess(t *testing.T) {
	w := newFixture(t)
	in := w.register() // at home, where somebody else guesses now
	lookedAt := 0
	for range 150 {
		if _, err := w.login(email, "not-the-password", home); errors.Is(err, auth.ErrCredentials) {
			lookedAt++
		} else {
			wantThrottled(t, err)
		}
	}
	if lookedAt != 20 {
		t.Errorf("%d of 150 guesses were looked at, want 20", lookedAt)
	}
	_, err := w.login(email, password, home)
	wantThrottled(t, err)
	if _, err := w.login(email, password, known(in, home)); err != nil {
		t.Errorf("the owner's device: %v", err)
	}
}

func TestThrottle_KnownDeviceHasItsOwnTries(t *testing.T) {
	w := newFixture(t)
	device := known(w.register(), home)
	again, err := w.login(email, password, cafe)
	if err != nil {
		t.Fatal(err)
	}
	other := known(again, cafe)
	tried, wait := w.fail(email, device)
	if tried != 20 || wait != time.Minute {
		t.Errorf("%d tries, then wait %v; want 20 and 1m", tried, wait)
	}
	_, err = w.login(email, password, device)
	wantThrottled(t, err) // a stolen device is no licence to guess either
	if _, err := w.login(email, password, other); err != nil {
		t.Errorf("another known device: %v", err)
	}
	w.clock.advance(wait)
	if _, err := w.login(email, password, device); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if tried, _ := w.fail(email, device); tried != 20 {
		t.Errorf("%d tries after the right password, want 20 again", tried)
	}
	if tried, _ := w.fail(email, attacker); tried != 20 {
		t.Errorf("unknown devices have %d tries, want 20", tried)
	}
	// Another account does not know the device.
	if tried, _ := w.fail("nobody@example.com", device); tried != 20 {
		t.Errorf("%d tries at another account, want 20", tried)
	}
}

func TestLogin_DeviceToken(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	ravi, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password, Device: cafe})
	if err != nil {
		t.Fatal(err)
	}
	w.fail(email, attacker)
	later, err := w.login(email, password, known(in, cafe))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		tokens []string
		want   bool
	}{
		"its own":               {[]string{in.DeviceToken}, true},
		"renewed":               {[]string{later.DeviceToken}, true},
		"beside others":         {[]string{ravi.DeviceToken, "x", in.DeviceToken}, true},
		"none":                  {nil, false},
		"empty":                 {[]string{""}, false},
		"another account's":     {[]string{ravi.DeviceToken}, false},
		"flipped":               {[]string{in.DeviceToken[:20] + flipLast(in.DeviceToken[:21])[20:] + in.DeviceToken[21:]}, false},
		"an access token":       {[]string{in.Token}, false},
		"a refresh token":       {[]string{in.RefreshToken}, false},
		"behind too many":       {slices.Concat(make([]string, 16), []string{in.DeviceToken}), false},
		"twice, once too long":  {[]string{strings.Repeat("x", 1<<16), in.DeviceToken}, true},
		"the id of the account": {[]string{in.User.ID}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.login(email, password, auth.Device{Address: attacker.Address, Tokens: test.tokens})
			if got := err == nil; got != test.want {
				t.Errorf("known: %v (%v), want %v", got, err, test.want)
			}
		})
	}
	t.Run("renewed is the same device", func(t *testing.T) {
		w.fail(email, known(in, cafe))
		_, err := w.login(email, password, known(later, cafe))
		wantThrottled(t, err)
	})
	t.Run("after half a year", func(t *testing.T) {
		w.clock.advance(auth.DeviceLife)
		w.fail(email, attacker)
		_, err := w.login(email, password, known(later, attacker))
		wantThrottled(t, err)
	})
}

func TestThrottle_AddressGetsAHundredTriesOverAllAccounts(t *testing.T) {
	w := newFixture(t)
	for i := range 100 {
		_, err := w.login(fmt.Sprintf("user%d@example.com", i), "not-the-password", attacker)
		wantErr(t, err, auth.ErrCredentials)
	}
	_, err := w.login("user100@example.com", "not-the-password", attacker)
	if wait := wantThrottled(t, err); wait != 30*time.Second {
		t.Errorf("wait %v, want 30s", wait)
	}
	// A try that one bucket refuses costs the others nothing.
	if tried, _ := w.fail("user100@example.com", cafe); tried != 20 {
		t.Errorf("%d tries elsewhere, want 20", tried)
	}
	w.clock.advance(30 * time.Second)
	_, err = w.login("user101@example.com", "not-the-password", attacker)
	wantErr(t, err, auth.ErrCredentials)
}

func TestThrottle_WaitIsTheLongestOfAll(t *testing.T) {
	w := newFixture(t)
	for i := range 80 {
		_, err := w.login(fmt.Sprintf("user%d@example.com", i), "not-the-password", attacker)
		wantErr(t, err, auth.ErrCredentials)
	}
	w.fail(email, attacker) // now both are full
	_, err := w.login(email, "not-the-password", attacker)
	if wait := wantThrottled(t, err); wait != 90*time.Second {
		t.Errorf("wait %v, want the account's 90s and not the address's 30s", wait)
	}
}

func TestThrottle_RightPasswordsCostNoTries(t *testing.T) {
	w := newFixture(t)
	w.register()
	for i := range 60 {
		for range 2 {
			if _, err := w.login(email, password, at(i)); err != nil {
				t.Fatalf("sign-in %d: %v", i, err)
			}
		}
	}
	for range 120 {
		if _, err := w.login(email, password, attacker); err != nil {
			t.Fatal(err)
		}
	}
	if tried, _ := w.fail(email, attacker); tried != 20 {
		t.Errorf("%d tries left, want 20", tried)
	}
}

// Attempts that are under way count as failures until their passwords were found right. None of these may be refused for it.
func TestThrottle_RightPasswordsAtOnce(t *testing.T) {
	w := newFixture(t)
	device := known(w.register(), home)
	for name, from := range map[string]auth.Device{"an unknown device": cafe, "a known device": device} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if _, err := w.login(email, password, from); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestThrottle_RightPasswordDoesNotResetUnknownDevices(t *testing.T) {
	w := newFixture(t)
	w.register()
	for range 19 {
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

func TestThrottle_TriesAtOnceAreAllCounted(t *testing.T) {
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
	if lookedAt != 20 {
		t.Errorf("%d of %d tries at once were looked at, want 20", lookedAt, callers)
	}
}

func TestThrottle_OutlivesARestart(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	w.fail(email, attacker)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	restarted := w.again(func(o *auth.Options) { o.Store = w.place.Open(t).Auth() })
	_, err := restarted.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: attacker})
	wantThrottled(t, err)
	if _, err := restarted.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: known(in, attacker)}); err != nil {
		t.Errorf("the known device was forgotten: %v", err)
	}
}

func TestThrottle_RefusalSaysHowLongToWait(t *testing.T) {
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

func TestThrottle_AddressesOfOneSite(t *testing.T) {
	tests := map[string]struct {
		first, second string
		want          bool
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
			w.fail(email, auth.Device{Address: tt.first})
			tried, _ := w.fail(email, auth.Device{Address: tt.second})
			if got := tried == 0; got != tt.want {
				t.Errorf("%d tries at the second address; counted together: %v, want %v", tried, got, tt.want)
			}
		})
	}
}

func TestThrottle_RegistrationsFromOneAddress(t *testing.T) {
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

func TestThrottle_Off(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	w.register()
	for range 150 {
		_, err := w.login(email, "not-the-password", home)
		if f := fault.From(err); f == nil || f.Code != auth.ErrCredentials.Code {
			t.Fatal(err)
		}
	}
}

// An instance's clock was a day ahead while a user signed in through it, and is corrected. The user signs in with the right password.
func TestThrottle_ClockWasAhead(t *testing.T) {
	w := newFixture(t)
	w.register()
	w.clock.advance(24 * time.Hour)
	_, err := w.login(email, password, cafe)
	wantErr(t, err, nil)
	w.fail(email, attacker)
	w.clock.advance(-24 * time.Hour)
	for _, from := range []auth.Device{cafe, attacker} {
		if _, err := w.login(email, password, from); err != nil {
			t.Errorf("with the right password from %s: %v", from.Address, err)
		}
	}
	if tried, _ := w.fail(email, attacker); tried != 20 {
		t.Errorf("%d wrong tries, want 20", tried)
	}
}
