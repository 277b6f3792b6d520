//go:build unix

package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"bursar/test/harness"
)

// BenchmarkSettlement takes payouts from their request to completed, through the built-in sandbox without a rate and
// without a cancel window. An iteration is 1,000 payouts of 64 sellers, requested on 64 connections and then awaited.
// It has no floor: compare it with an earlier run on the same machine, by processor time where the machine is busy.
// The processor time is that of this process: service, sandbox and client, and not PostgreSQL.
func BenchmarkSettlement(b *testing.B) {
	const sellers, payouts = 64, 1000
	onEachEngine(b, func(b *testing.B, on engine) {
		m := newMarket(b, on, sellers, "BURSAR_CANCEL_WINDOW=0s", "BURSAR_GATEWAY_RATE=none")
		asked := 0
		b.Run("payouts=1000", func(b *testing.B) {
			used := processorTimeOfTests(b)
			b.ResetTimer()
			for range b.N {
				m.settle(b, payouts)
				asked += payouts
			}
			took, cost := b.Elapsed(), processorTimeOfTests(b)-used
			if completed := m.count(b, "completed"); completed != asked {
				b.Fatalf("of %d payouts %d are completed", asked, completed)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.N*payouts)/took.Seconds(), "payouts/s")
			b.ReportMetric(float64(cost.Microseconds())/float64(b.N*payouts), "cpu-µs/payout")
		})
	})
}

// settle requests payouts, and returns when none is processing any more.
func (m *market) settle(b *testing.B, payouts int) {
	b.Helper()
	err := inParallel(b.Context(), payouts, func(ctx context.Context, _ int) error {
		_, err := m.requestPayout(ctx)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	for m.count(b, "processing") > 0 {
		time.Sleep(50 * time.Millisecond)
	}
}

// count returns how many payouts have a status. While some are processing it stops at the first seller who has one.
func (m *market) count(b *testing.B, status string) int {
	b.Helper()
	all := 0
	for _, s := range m.sellers {
		answer, err := ask(b.Context(), m.client, http.MethodGet, m.url+"/api/payouts/history?limit=1&status="+status, s.Token, "")
		if err != nil {
			b.Fatal(err)
		}
		var page struct{ Pagination struct{ TotalItems int } }
		if err := harness.ReadData(answer, &page); err != nil {
			b.Fatal(err)
		}
		if all += page.Pagination.TotalItems; status == "processing" && all > 0 {
			break
		}
	}
	return all
}
