//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/id"
	"bursar/internal/sale"
)

// BenchmarkChain measures what chains cost whoever asks for a payout or records a sale. Half of the sellers are as a
// binary without chains leaves them: the same statements, where nothing is hashed and no head is written. The
// halves take turns in short slices, because the machine has other things to do, and each pair of slices
// gives one ratio. An iteration is a pair.
func BenchmarkChain(b *testing.B) {
	onEachEngine(b, func(b *testing.B, on engine) {
		h := newHall(b, on, 128)
		with, without := h.sellers[:64], h.sellers[64:]
		h.unchain(b, without)
		b.Run("payout request over HTTP", func(b *testing.B) {
			takeTurns(b, func(half func() auth.SignIn) error {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, h.service.URL+"/api/payouts/request", nil)
				if err != nil {
					return err
				}
				r.Header.Set("Authorization", "Bearer "+half().Token)
				h.requestBody(r)
				_, err = h.do(r)
				return err
			}, with, without)
		})
		b.Run("posting of a sale", func(b *testing.B) {
			takeTurns(b, func(half func() auth.SignIn) error {
				_, _, err := h.services.Sales.Record(context.WithoutCancel(b.Context()), sale.NewSale{ID: id.Random(20), Seller: half().User.ID, Amount: 100})
				return err
			}, with, without)
		})
	})
}

// unchain has sellers' chains not begun.
func (h *hall) unchain(b *testing.B, sellers []auth.SignIn) {
	b.Helper()
	driver, address := "pgx", h.database.Postgres
	if address == "" {
		driver, address = "sqlite", "file:"+h.database.SQLite+"?_pragma=busy_timeout(5000)"
	}
	raw, err := sql.Open(driver, address)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	for _, s := range sellers {
		if _, err := raw.ExecContext(b.Context(), `UPDATE seller_balances SET chained = -1, head = '' WHERE seller_id = $1`, s.User.ID); err != nil {
			b.Fatal(err)
		}
	}
}

// takeTurns makes calls for one half of the sellers and then for the other, each pair the other way around, and
// reports the medians of both, and of the ratio of each pair with the quarters around it; and what they used of a
// processor, which says more where many share one.
func takeTurns(b *testing.B, call func(half func() auth.SignIn) error, with, without []auth.SignIn) {
	b.Helper()
	const connections, calls = 16, 64
	slice := func(sellers []auth.SignIn) (took, processor time.Duration) {
		var next, left atomic.Int64
		left.Store(calls)
		half := func() auth.SignIn { return sellers[next.Add(1)%int64(len(sellers))] }
		var workers sync.WaitGroup
		began, used := time.Now(), ownTime(b)
		for range connections {
			workers.Go(func() {
				for left.Add(-1) >= 0 {
					if err := call(half); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		return time.Since(began), ownTime(b) - used
	}
	slice(with) // warm
	slice(without)
	var chained, bare, ratios, processor []float64
	b.ResetTimer()
	for n := range b.N {
		var c, u, cUsed, uUsed time.Duration
		if n%2 == 0 {
			c, cUsed = slice(with)
			u, uUsed = slice(without)
		} else {
			u, uUsed = slice(without)
			c, cUsed = slice(with)
		}
		chained, bare = append(chained, float64(c.Microseconds())/calls), append(bare, float64(u.Microseconds())/calls)
		ratios, processor = append(ratios, c.Seconds()/u.Seconds()), append(processor, cUsed.Seconds()/uUsed.Seconds())
	}
	part := func(all []float64, p float64) float64 {
		slices.Sort(all)
		return all[int(p*float64(len(all)-1))]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(part(bare, .5), "µs-without")
	b.ReportMetric(part(chained, .5), "µs-with")
	b.ReportMetric(part(ratios, .25), "ratio-low")
	b.ReportMetric(part(ratios, .5), "ratio")
	b.ReportMetric(part(ratios, .75), "ratio-high")
	b.ReportMetric(part(processor, .5), "processor-ratio")
}

// ownTime is how long this process has used a processor. A database server's is not in it.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
