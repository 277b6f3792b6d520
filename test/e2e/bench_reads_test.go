//go:build unix

package e2e

import (
	"net/http"
	"testing"
)

// BenchmarkRead reads a seller's account, balance and first page of history on 16 connections, beside the floor. Each
// of 500 sellers has ten payouts, which is a full page.
func BenchmarkRead(b *testing.B) {
	const sellers, connections = 500, 16
	onEachEngine(b, func(b *testing.B, on engine) {
		m, f := newMarket(b, on, sellers), newFloor(b, on, sellers)
		m.withdraw(b, floorHistory)
		for _, read := range []struct{ name, path string }{
			{"me", "/api/auth/me"},
			{"balance", "/api/payouts/balance"},
			{"history", "/api/payouts/history"},
		} {
			answer, err := ask(b.Context(), m.client, http.MethodGet, m.url+read.path, m.seller().Token, "")
			if err != nil {
				b.Fatal(err)
			}
			f.answers["/"+read.name] = answer
			b.Run(read.name, func(b *testing.B) {
				compare(b, connections, m.reads(read.path), f.reads("/"+read.name))
			})
		}
	})
}
