package telemetry

import "github.com/prometheus/client_golang/prometheus"

func newReconciled(registry *prometheus.Registry) prometheus.Gauge {
	reconciled := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "bursar_gateway_reconciled",
		Help: "1 once the gateway was asked, after the start, for what the book does not know; nothing is sent before.",
	})
	registry.MustRegister(reconciled)
	return reconciled
}

// SetReconciled says that the gateway was asked for what the book does not know.
func (m *Metrics) SetReconciled() { m.reconciled.Set(1) }
