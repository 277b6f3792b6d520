package telemetry

import "github.com/prometheus/client_golang/prometheus"

func newReconciled(registry *prometheus.Registry) prometheus.Gauge {
	startupReconciled := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "bursar_startup_reconciled",
		Help: "1 once the gateway was asked, after the start, for what the ledger does not know; nothing is sent before.",
	})
	registry.MustRegister(startupReconciled)
	return startupReconciled
}

// SetStartupReconciled says that startup reconciliation listed transfers.
func (m *Metrics) SetStartupReconciled() { m.startupReconciled.Set(1) }
