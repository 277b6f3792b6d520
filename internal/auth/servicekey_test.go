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
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/storetest"
)

const operator = "operator:asha"

// serviceKey makes a key, and returns it with what is stored of it.
func (w *fixture) serviceKey(name string) (string, auth.ServiceKey) {
	w.t.Helper()
	key, _, err := w.CreateServiceKey(w.t.Context(), auth.NewServiceKey{Name: name}, operator)
	if err != nil {
		w.t.Fatal(err)
	}
	keys, err := w.ServiceKeys(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return key, keys[slices.IndexFunc(keys, func(k auth.ServiceKey) bool { return k.Name == name })]
}

func TestServiceKeys(t *testing.T) {
	w := newFixture(t)
	key, stored := w.serviceKey("marketplace")
	if got, err := w.AuthenticateService(t.Context(), key); err != nil || got.Actor() != "key:"+stored.ID {
		t.Errorf("a new key: %+v, %v", got, err)
	}
	in := w.register()
	for name, wrong := range map[string]string{
		"empty": "", "prefix": "bsk_", "flipped": flipLast(key), "longer": key + "A", "access token": in.Token,
		"upper case": "BSK_" + key[4:], "never made": "bsk_0000000000000000000000000000000000000000", "its id": stored.ID, "its hash": stored.Hash,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.AuthenticateService(t.Context(), wrong)
			wantErr(t, err, auth.ErrServiceKey)
		})
	}
}

func TestServiceKeyNames(t *testing.T) {
	w := newFixture(t)
	w.serviceKey("shop")
	_, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "shop"}, operator)
	wantErr(t, err, auth.ErrKeyNameTaken)
	_, err = w.RevokeServiceKey(t.Context(), "shop", operator)
	wantErr(t, err, nil)
	_, _, err = w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "shop"}, operator) // the journal names it
	wantErr(t, err, auth.ErrKeyNameTaken)
	for _, name := range []string{"", " shop", "shop ", "a\nb", "a\xffb", "key_1", string(make([]byte, 101))} {
		if _, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: name}, operator); fault.From(err) == nil {
			t.Errorf("%q was taken as a name: %v", name, err)
		}
	}
}

func TestServiceKey_Revoked(t *testing.T) {
	w := newFixture(t)
	byID, first := w.serviceKey("first")
	byName, _ := w.serviceKey("second")
	other, _ := w.serviceKey("third")
	another := w.again() // instance
	_, err := w.RevokeServiceKey(t.Context(), first.ID, operator)
	wantErr(t, err, nil)
	_, err = w.RevokeServiceKey(t.Context(), "second", operator)
	wantErr(t, err, nil)
	for _, key := range []string{byID, byName} {
		_, err = another.AuthenticateService(t.Context(), key)
		wantErr(t, err, auth.ErrServiceKey)
	}
	_, err = another.AuthenticateService(t.Context(), other)
	wantErr(t, err, nil)

	w.clock.advance(time.Hour)
	again, err := w.RevokeServiceKey(t.Context(), first.ID, operator)
	if err != nil || !again.RevokedAt.Equal(w.clock.Now().Add(-time.Hour)) {
		t.Errorf("revoked again: %+v, %v", again, err)
	}
	_, err = w.RevokeServiceKey(t.Context(), "nothing", operator)
	wantErr(t, err, auth.ErrKeyNotFound)
}

// TestServiceKey_FailureIsNotSwallowed fails each statement of what an operator does with keys. Each is done with its entry, or not at all.
func TestServiceKey_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(w *fixture) error{
		"create": func(w *fixture) error {
			_, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "second"}, operator)
			return err
		},
		"rotate": func(w *fixture) error {
			_, _, err := w.RotateServiceKey(t.Context(), "shop", time.Hour, operator)
			return err
		},
		"revoke": func(w *fixture) error {
			_, err := w.RevokeServiceKey(t.Context(), "shop", operator)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				w := newFixtureAt(t, place)
				w.serviceKey("shop")
				return storetest.Story{
					Repeatable: true,
					Act:        func() error { return act(w) },
					State: func() string {
						keys, err := w.ServiceKeys(t.Context())
						entries, entriesErr := w.db.EntriesAfter(t.Context(), decision.Platform, 0, 10)
						if err := errors.Join(err, entriesErr); err != nil {
							t.Fatal(err)
						}
						var all []string
						for _, k := range keys {
							all = append(all, fmt.Sprint(k.Name, k.Rotations, k.RevokedAt.IsZero(), k.Tampered))
						}
						slices.Sort(all) // of one moment, their ids are in any order
						for _, e := range entries {
							all = append(all, string(e.Type))
						}
						return strings.Join(all, ", ")
					},
				}
			})
		})
	}
}

func TestServiceKey_LastUsedDay(t *testing.T) {
	w := newFixture(t)
	key, _ := w.serviceKey("shop")
	for _, day := range []string{"2027-03-01", "2027-03-02"} {
		for range 2 {
			if _, err := w.AuthenticateService(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		if keys, err := w.ServiceKeys(t.Context()); err != nil || keys[0].UsedOn != day {
			t.Errorf("%+v, %v; want it used on %s", keys, err, day)
		}
		w.clock.advance(24 * time.Hour)
	}
}

// TestServiceKey_Tampered has a key that somebody put into the database.
func TestServiceKey_Tampered(t *testing.T) {
	var refused []string
	w := newFixture(t, func(o *auth.Options) { o.Tampered = func(kind string) { refused = append(refused, kind) } })
	key, stored := w.serviceKey("shop")
	w.place.ByHand(t, `UPDATE service_keys SET name = 'mallory'`)
	_, err := w.AuthenticateService(t.Context(), key)
	wantErr(t, err, auth.ErrServiceKey)
	if !slices.Equal(refused, auth.TamperedKinds()[:1]) {
		t.Errorf("the alerts are of %v", refused)
	}
	got, err := w.RevokeServiceKey(t.Context(), stored.ID, operator)
	if err != nil || got.RevokedAt.IsZero() || got.Tampered != "" {
		t.Errorf("revoked: %+v, %v", got, err)
	}
	_, err = w.AuthenticateService(t.Context(), key)
	wantErr(t, err, auth.ErrServiceKey)
	if len(refused) != 1 {
		t.Errorf("a revoked key is an event again: %v", refused)
	}
}

func TestServiceKey_Scopes(t *testing.T) {
	w := newFixture(t)
	create := func(name string, scopes ...string) auth.ServiceKey {
		t.Helper()
		key, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: name, Scopes: scopes}, operator)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := w.AuthenticateService(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	if k := create("all"); k.Scopes != auth.AllScopes() || k.RequireScope(auth.ScopeImportWrite) != nil {
		t.Errorf("a key of all scopes has %q", k.Scopes)
	}
	k := create("two", "payouts:read", "sellers:read", "payouts:read")
	if k.Scopes != "sellers:read payouts:read" || k.RequireScope(auth.ScopePayoutsRead) != nil {
		t.Errorf("the key has %q", k.Scopes)
	}
	err := k.RequireScope(auth.ScopePayoutsWrite)
	wantErr(t, err, auth.ErrScope)
	if f := fault.From(err); f.Details["scope"] != "payouts:write" {
		t.Errorf("it names %v", f.Details)
	}
	for _, wrong := range []string{"", "payouts", "sellers:read payouts:read", "Payouts:read"} {
		_, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "wrong", Scopes: []string{wrong}}, operator)
		if f := fault.From(err); f == nil || f.Details["scopes"] == "" {
			t.Errorf("%q is answered with %v", wrong, err)
		}
	}
}

func TestServiceKey_Expired(t *testing.T) {
	w := newFixture(t)
	create := func(expires time.Time) (string, error) {
		key, _, err := w.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "shop", ExpiresAt: expires}, operator)
		return key, err
	}
	if _, err := create(w.clock.Now()); fault.From(err) == nil {
		t.Errorf("a key that has expired already: %v", err)
	}
	key, err := create(w.clock.Now().Add(time.Hour))
	wantErr(t, err, nil)
	w.clock.advance(time.Hour - time.Microsecond)
	stored, err := w.AuthenticateService(t.Context(), key)
	wantErr(t, err, nil)
	w.clock.advance(time.Microsecond)
	_, err = w.AuthenticateService(t.Context(), key)
	wantErr(t, err, auth.ErrServiceKey)
	if stored.Status(w.clock.Now()) != "expired" {
		t.Errorf("it is %s", stored.Status(w.clock.Now()))
	}
	_, _, err = w.RotateServiceKey(t.Context(), "shop", time.Hour, operator)
	wantErr(t, err, auth.ErrKeyNotActive)
}

// TestServiceKey_Rotated rotates a key twice: the key that is in use keeps its grace.
func TestServiceKey_Rotated(t *testing.T) {
	w := newFixture(t)
	first, stored := w.serviceKey("shop")
	accepted := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			if got, err := w.AuthenticateService(t.Context(), key); err != nil || got.ID != stored.ID || got.Scopes != stored.Scopes {
				t.Errorf("%+v, %v", got, err)
			}
		}
	}
	refused := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			_, err := w.AuthenticateService(t.Context(), key)
			wantErr(t, err, auth.ErrServiceKey)
		}
	}
	rotate := func(grace time.Duration) string {
		t.Helper()
		key, got, err := w.RotateServiceKey(t.Context(), "shop", grace, operator)
		if err != nil || got.ID != stored.ID {
			t.Fatalf("%+v, %v", got, err)
		}
		return key
	}
	second := rotate(24 * time.Hour) // its answer is lost, say
	w.clock.advance(time.Hour)
	third := rotate(24 * time.Hour)
	accepted(first, second, third)
	w.clock.advance(23 * time.Hour)
	refused(first)
	accepted(second, third)
	fourth := rotate(time.Minute) // which also shortens the grace of what was before
	w.clock.advance(time.Minute)
	refused(first, second, third)
	accepted(fourth)
	fifth := rotate(0)
	refused(fourth)
	accepted(fifth)
	_, err := w.RevokeServiceKey(t.Context(), "shop", operator)
	wantErr(t, err, nil)
	refused(fourth, fifth)
	_, _, err = w.RotateServiceKey(t.Context(), "shop", 0, operator)
	wantErr(t, err, auth.ErrKeyNotActive)
	_, _, err = w.RotateServiceKey(t.Context(), "nothing", 0, operator)
	wantErr(t, err, auth.ErrKeyNotFound)
	for _, grace := range []time.Duration{-1, auth.MaxRotationGrace + 1} {
		if _, _, err = w.RotateServiceKey(t.Context(), "shop", grace, operator); fault.From(err) == nil {
			t.Errorf("a grace of %s: %v", grace, err)
		}
	}
	if report, err := w.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report, err)
	}
}

// TestServiceKey_RotatedAtOnce rotates a key several times at once: one of the new keys stays, the others have the grace.
func TestServiceKey_RotatedAtOnce(t *testing.T) {
	w := newFixture(t)
	first, _ := w.serviceKey("shop")
	made := make(chan string, 8)
	var all sync.WaitGroup
	for range cap(made) {
		all.Go(func() {
			key, _, err := w.RotateServiceKey(t.Context(), "shop", time.Hour, operator)
			if err != nil {
				t.Error(err)
			}
			made <- key
		})
	}
	all.Wait()
	close(made)
	keys := []string{first}
	for key := range made {
		keys = append(keys, key)
	}
	accepted := func() (n int) {
		for _, key := range keys {
			if _, err := w.AuthenticateService(t.Context(), key); err == nil {
				n++
			}
		}
		return n
	}
	if n := accepted(); n != len(keys) {
		t.Errorf("%d of %d keys are accepted within the grace", n, len(keys))
	}
	w.clock.advance(time.Hour)
	if n := accepted(); n != 1 {
		t.Errorf("%d keys are accepted after it", n)
	}
}

func TestServiceKey_RotatedTooOften(t *testing.T) {
	w := newFixture(t)
	first, _ := w.serviceKey("shop")
	var err error
	for range 21 {
		_, _, err = w.RotateServiceKey(t.Context(), "shop", time.Hour, operator)
	}
	wantErr(t, err, auth.ErrKeyRotations)
	_, err = w.AuthenticateService(t.Context(), first)
	wantErr(t, err, nil)
	_, _, err = w.RotateServiceKey(t.Context(), "shop", 0, operator)
	wantErr(t, err, nil)
}

// TestServiceKey_TamperedRotation has somebody keep an earlier key alive in the database.
func TestServiceKey_TamperedRotation(t *testing.T) {
	w := newFixture(t)
	first, _ := w.serviceKey("shop")
	_, _, err := w.RotateServiceKey(t.Context(), "shop", time.Hour, operator)
	wantErr(t, err, nil)
	w.place.ByHand(t, `UPDATE rotated_service_keys SET until = until + 1000000000000`)
	_, err = w.AuthenticateService(t.Context(), first)
	wantErr(t, err, auth.ErrServiceKey)
	_, _, err = w.RotateServiceKey(t.Context(), "shop", time.Hour, operator)
	wantErr(t, err, auth.ErrKeyNotActive)
}
