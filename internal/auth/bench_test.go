package auth_test

import (
	"testing"

	"golang.org/x/crypto/argon2"

	"bursar/internal/auth"
)

// What a request pays to know who is asking, beside the read of the session that is its floor.
func BenchmarkAuthenticate(b *testing.B) {
	w := newFixture(b)
	in := w.register()
	p, err := w.Authenticate(b.Context(), in.Token)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("floor=LiveSession", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, live, err := w.db.LiveSession(b.Context(), p.Session, w.clock.Now()); err != nil || !live {
				b.Fatal(live, err)
			}
		}
	})
	b.Run("known token", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Authenticate(b.Context(), in.Token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new token", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fresh := w.again() // remembers nothing
			if _, err := fresh.Authenticate(b.Context(), in.Token); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What a sign-in costs beside its floor, one password hash.
func BenchmarkLogin(b *testing.B) {
	w := newFixture(b, func(o *auth.Options) { o.CheapHashes = false })
	device := known(w.register(), home)
	b.Run("floor=argon2id", func(b *testing.B) {
		for b.Loop() {
			argon2.IDKey([]byte(password), []byte("saltsaltsaltsalt"), 2, 19456, 1, 32)
		}
	})
	b.Run("known device", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.login(email, password, device); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unknown device", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.login(email, password, cafe); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRefresh(b *testing.B) {
	w := newFixture(b)
	in := w.register()
	for b.Loop() {
		next, err := w.Refresh(b.Context(), in.RefreshToken)
		if err != nil {
			b.Fatal(err)
		}
		in = next
	}
}
