package telemetry

import "github.com/prometheus/client_golang/prometheus"

// reconciled is what is known of the book beside the gateway's own.
type reconciled struct {
	done   prometheus.Gauge
	strays prometheus.Gauge
}

func newReconciled(registry *prometheus.Registry) reconciled {
	r := reconciled{
		done: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bursar_gateway_reconciled",
			Help: "1 once the gateway was asked, after the start, for what the book does not know; nothing is sent before.",
		}),
		strays: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bursar_stray_transfers",
			Help: "Transfers under references of ours that are in nobody's book; a person has to settle them. Should be 0.",
		}),
	}
	registry.MustRegister(r.done, r.strays)
	return r
}

// SetReconciled says that the gateway was asked for what the book does not know.
func (m *Metrics) SetReconciled() { m.reconciled.done.Set(1) }

// SetStrays says how many stray transfers wait for a person now.
func (m *Metrics) SetStrays(n int64) { m.reconciled.strays.Set(float64(n)) }
