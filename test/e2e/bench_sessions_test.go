//go:build unix

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/crypto/argon2"

	"bursar/internal/auth"
	"bursar/internal/id"
	"bursar/test/harness"
)

// BenchmarkRefresh rotates refresh tokens on 16 connections, a session each, on PostgreSQL beside SQLite.
func BenchmarkRefresh(b *testing.B) {
	const connections = 16
	postgres := newMarket(b, onPostgres(b), 1)
	sqlite := newMarket(b, onSQLite, 1)
	b.Run("connections=16", func(b *testing.B) {
		compare(b, connections, postgres.refreshes(b, "postgres", connections), sqlite.refreshes(b, "sqlite", connections))
	})
}

// refreshes returns a side that rotates the tokens of a number of sessions.
func (m *market) refreshes(b *testing.B, name string, sessions int) side {
	b.Helper()
	tokens := make(chan string, sessions)
	for range sessions {
		s, err := m.users.Login(b.Context(), auth.Credentials{Email: m.sellers[0].User.Email, Password: sellersPassword})
		if err != nil {
			b.Fatal(err)
		}
		tokens <- s.RefreshToken
	}
	return side{name, func(ctx context.Context) error {
		answer, err := ask(ctx, m.client, http.MethodPost, m.url+"/api/auth/refresh", "", `{"refreshToken":"`+<-tokens+`"}`)
		if err != nil {
			return err
		}
		var refreshed struct{ RefreshToken string }
		if err := harness.ReadData(answer, &refreshed); err != nil {
			return err
		}
		tokens <- refreshed.RefreshToken
		return nil
	}}
}

// BenchmarkPasswords registers and signs in on 16 connections, beside bare argon2id with the same parameters on two at a time.
func BenchmarkPasswords(b *testing.B) {
	const connections = 16
	m := newMarket(b, onSQLite, 1)
	hash := make(chan struct{}, 2) // more at once would only cost memory
	floor := side{"argon2id", func(context.Context) error {
		hash <- struct{}{}
		defer func() { <-hash }()
		salt := make([]byte, 16)
		_, _ = rand.Read(salt)
		argon2.IDKey([]byte(sellersPassword), salt, 2, 19456, 1, 32)
		return nil
	}}
	b.Run("register", func(b *testing.B) {
		compare(b, connections, side{"bursar", func(ctx context.Context) error {
			body := fmt.Sprintf(`{"name":"Asha Rao","email":"%s@example.com","password":%q}`, id.Random(16), sellersPassword)
			_, err := ask(ctx, m.client, http.MethodPost, m.url+"/api/auth/register", "", body)
			return err
		}}, floor)
	})
	login := side{"bursar", func(ctx context.Context) error {
		body := fmt.Sprintf(`{"email":%q,"password":%q}`, m.sellers[0].User.Email, sellersPassword)
		_, err := ask(ctx, m.client, http.MethodPost, m.url+"/api/auth/login", "", body)
		return err
	}}
	if err := login.call(b.Context()); err != nil { // replaces the cheap hash that the seller was registered with
		b.Fatal(err)
	}
	b.Run("login", func(b *testing.B) { compare(b, connections, login, floor) })
}
