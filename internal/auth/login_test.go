package auth_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"bursar/internal/auth"
)

func TestLoginRefusalsLookAlike(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	suspended, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password, Device: home})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetAccess(t.Context(), w.admin("Ada"), suspended.User.ID, auth.Buyer, true); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ email, password string }{
		"wrong password":   {email, "tamarind-42-lanf"},
		"empty password":   {email, ""},
		"unknown user":     {"nobody@example.com", password},
		"no e-mail":        {"", password},
		"suspended":        {"ravi@example.com", password},
		"hash as password": {email, in.User.PasswordHash},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := w.login(tt.email, tt.password, home)
			if err == nil || err.Error() != auth.ErrCredentials.Error() {
				t.Errorf("error = %v, want exactly %v", err, auth.ErrCredentials)
			}
		})
	}
}

// Each password signs in, and no similar one does.
func TestLogin_PasswordMatchesExactly(t *testing.T) {
	base := strings.Repeat("a", 71)
	tests := map[string]struct {
		password   string
		neighbours []string
	}{
		"72 bytes":         {base + "b", []string{base + "c", base, base + "bb"}},
		"73 bytes":         {base + "bb", []string{base + "bc", base + "b"}},
		"128 bytes":        {strings.Repeat("a", 127) + "b", []string{strings.Repeat("a", 128), strings.Repeat("a", 127)}},
		"1024 bytes":       {strings.Repeat("a", 1023) + "b", []string{strings.Repeat("a", 1024), strings.Repeat("a", 1023)}},
		"64 emoji":         {strings.Repeat("🪙", 64), []string{strings.Repeat("🪙", 63), strings.Repeat("🪙", 63) + "💰"}},
		"NUL inside":       {"before\x00after", []string{"before\x00", "before", "before\x00other"}},
		"NFC":              {"caf\u00e9-caf\u00e9", []string{"cafe\u0301-cafe\u0301"}},
		"NFD":              {"cafe\u0301-cafe\u0301", []string{"caf\u00e9-caf\u00e9"}},
		"spaces around it": {"  tamarind  ", []string{"tamarind", "  tamarind", "tamarind  "}},
		"case":             {"Tamarind", []string{"tamarind", "TAMARIND"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			r := auth.Registration{Name: "Asha", Email: email, Password: tt.password, Device: home}
			if _, err := w.Register(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			for _, wrong := range tt.neighbours {
				_, err := w.login(email, wrong, home)
				wantErr(t, err, auth.ErrCredentials)
			}
			if _, err := w.login(email, tt.password, home); err != nil {
				t.Errorf("the password itself: %v", err)
			}
		})
	}
}

func TestLogin_OutdatedCost_ReplacesHash(t *testing.T) {
	w := newFixture(t)
	w.register()
	hash := func() string {
		user, _, err := w.db.UserByEmail(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		return user.PasswordHash
	}
	cheap := hash()
	standard := w.again(func(o *auth.Options) { o.CheapHashes = false })
	credentials := auth.Credentials{Email: email, Password: password, Device: home}

	credentials.Password = "wrong-password"
	_, err := standard.Login(t.Context(), credentials)
	wantErr(t, err, auth.ErrCredentials)
	if hash() != cheap {
		t.Error("a wrong password changed the hash")
	}
	credentials.Password = password
	if _, err := standard.Login(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	strong := hash()
	if !strings.HasPrefix(strong, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash = %s", strong)
	}
	if _, err := standard.Login(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	if hash() != strong {
		t.Error("a hash of today's cost was made anew")
	}
}

// meanwhile does something just before a transaction begins.
type meanwhile struct {
	auth.Store
	do func()
}

func (m meanwhile) InTx(ctx context.Context, fn func(auth.Tx) error) error {
	m.do()
	return m.Store.InTx(ctx, fn)
}

// Two sign-ins find a hash of another cost at once. One replaces it, which must not turn the other away.
func TestLogin_WhileTheHashIsReplaced(t *testing.T) {
	w := newFixture(t)
	w.register() // with a cheap hash
	standard := w.again(func(o *auth.Options) { o.CheapHashes = false })
	other := w.again(func(o *auth.Options) { o.CheapHashes = false })
	credentials := auth.Credentials{Email: email, Password: password, Device: home}
	once := sync.OnceFunc(func() {
		if _, err := other.Login(t.Context(), credentials); err != nil {
			t.Error(err)
		}
	})
	raced := w.again(func(o *auth.Options) {
		o.CheapHashes = false
		o.Throttle = false // so that the first transaction is the one that lets the user in
		o.Store = meanwhile{o.Store, once}
	})
	in, err := raced.Login(t.Context(), credentials)
	if err != nil {
		t.Fatalf("the right password: %v", err)
	}
	w.fail(email, attacker)
	if _, err := standard.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: known(in, attacker)}); err != nil {
		t.Errorf("the device that lost the race: %v", err)
	}
}

func TestLogin_UserChangedMeanwhile_Refused(t *testing.T) {
	var another auth.User
	changes := map[string]func(*fixture, auth.User) error{
		"suspended": func(w *fixture, u auth.User) error {
			return w.SetAccess(w.t.Context(), w.admin("Ada"), u.ID, u.Role, true)
		},
		"another password": func(w *fixture, u auth.User) error {
			return w.db.Auth().InTx(w.t.Context(), func(tx auth.Tx) error {
				_, err := tx.SetPasswordHash(w.t.Context(), u.ID, u.PasswordHash, another.PasswordHash)
				return err
			})
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
			user := w.register().User
			var err error
			another, err = w.CreateUser(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: nextPassword, Role: auth.Buyer})
			if err != nil {
				t.Fatal(err)
			}
			raced := w.again(func(o *auth.Options) {
				o.Store = meanwhile{o.Store, func() {
					if err := change(w, user); err != nil {
						t.Error(err)
					}
				}}
			})
			_, err = raced.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: home})
			wantErr(t, err, auth.ErrCredentials)
		})
	}
}
