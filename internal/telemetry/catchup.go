package telemetry

import "github.com/prometheus/client_golang/prometheus"

func newCaughtUp(registry *prometheus.Registry) prometheus.Gauge {
	caughtUp := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "bursar_gateway_caught_up",
		Help: "1 once the gateway was asked, after the start, for what the book does not know; nothing is sent before.",
	})
	registry.MustRegister(caughtUp)
	return caughtUp
}

// SetCaughtUp says that the gateway was asked for what the book does not know.
func (m *Metrics) SetCaughtUp() { m.caughtUp.Set(1) }
