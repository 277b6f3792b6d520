//go:build unix

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/webhook"
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

// BenchmarkPayoutRequestWithEndpoint requests payouts while every event is posted to a webhook endpoint that answers at
// once, beside a service without one. What the first has left to deliver goes on in the slices of the second.
func BenchmarkPayoutRequestWithEndpoint(b *testing.B) {
	const sellers, connections = 500, 64
	onEachEngine(b, func(b *testing.B, on engine) {
		var received atomic.Int64
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
		b.Cleanup(receiver.Close)
		with, without := newMarket(b, on, sellers), newMarket(b, on, sellers)
		_, _, err := with.services.Endpoints.Add(b.Context(), decision.By{Operator: "bench"}, webhook.NewEndpoint{URL: receiver.URL})
		if err != nil {
			b.Fatal(err)
		}
		compare(b, connections, with.requests().named("with"), without.requests().named("without"))
		b.ReportMetric(float64(received.Load()), "delivered")
	})
}
