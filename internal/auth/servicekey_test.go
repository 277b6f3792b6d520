package auth_test

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

const operator = "operator:asha"

// serviceKey makes a key, and returns it with what is stored of it.
func (w *fixture) serviceKey(name string) (string, auth.ServiceKey) {
	w.t.Helper()
	key, err := w.CreateServiceKey(w.t.Context(), name, operator)
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
	_, err := w.CreateServiceKey(t.Context(), "shop", operator)
	wantErr(t, err, auth.ErrKeyNameTaken)
	_, err = w.RevokeServiceKey(t.Context(), "shop", operator)
	wantErr(t, err, nil)
	_, err = w.CreateServiceKey(t.Context(), "shop", operator) // the journal names it
	wantErr(t, err, auth.ErrKeyNameTaken)
	for _, name := range []string{"", " shop", "shop ", "a\nb", "key_1", string(make([]byte, 101))} {
		if _, err := w.CreateServiceKey(t.Context(), name, operator); fault.From(err) == nil {
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
