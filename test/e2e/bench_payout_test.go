//go:build unix

package e2e

import (
	"context"
	"net/http"
	"testing"

	"bursar/internal/id"
)

const payoutBody = `{"amount":500,"notes":"rent"}`

// BenchmarkPayoutRequest requests payouts under idempotency keys on 64 connections, of many sellers in turn and of one
// alone, beside the floor.
func BenchmarkPayoutRequest(b *testing.B) {
	const sellers, connections = 2000, 64
	onEachEngine(b, func(b *testing.B, on engine) {
		m, f := newMarket(b, on, sellers), newFloor(b, on, sellers)
		answer, err := m.requestPayout(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		f.answers["/request"] = answer
		b.Run("sellers=2000", func(b *testing.B) { compare(b, connections, m.requests(), f.requests(sellers)) })
		m.sellers = m.sellers[:1]
		b.Run("sellers=1", func(b *testing.B) { compare(b, connections, m.requests(), f.requests(1)) })
	})
}

// requests returns a side that requests payouts, of one seller after another.
func (m *market) requests() side {
	return side{"bursar", func(ctx context.Context) error {
		_, err := m.requestPayout(ctx)
		return err
	}}
}

func (m *market) requestPayout(ctx context.Context) ([]byte, error) {
	return ask(ctx, m.client, http.MethodPost, m.url+"/api/payouts/request", m.seller().Token, payoutBody, "Idempotency-Key", id.Random(20))
}
