package telemetry

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
)

// DatabaseStats is how busy the database is kept by this process.
type DatabaseStats struct {
	// Pools are the connections, by what they are for.
	Pools map[string]sql.DBStats
	// Queues are what waits to go in a group, by what it is.
	Queues map[string]QueueStats
}

// QueueStats is how busy a queue is.
type QueueStats struct {
	// Waiting is how many wait now.
	Waiting int
	// Groups is how many groups there were, Grouped how many were in them all together.
	Groups, Grouped uint64
	// UpTo is how many groups had at most so many.
	UpTo map[int]uint64
}

// WatchDatabase asks how busy the database is kept whenever the metrics are asked for.
func (m *Metrics) WatchDatabase(stats func() DatabaseStats) {
	m.registry.MustRegister(databaseCollector(stats))
}

type databaseCollector func() DatabaseStats

var (
	descConnections = prometheus.NewDesc("bursar_database_connections",
		"Connections to the database, by what they are for and whether they are in use or idle.", []string{"pool", "state"}, nil)
	descConnectionsMost = prometheus.NewDesc("bursar_database_connections_max",
		"Most connections that a pool may open.", []string{"pool"}, nil)
	descWaits = prometheus.NewDesc("bursar_database_connection_waits_total",
		"How often a connection had to be waited for.", []string{"pool"}, nil)
	descWaited = prometheus.NewDesc("bursar_database_connection_wait_seconds_total",
		"Time that was spent waiting for connections.", []string{"pool"}, nil)
	descWaiting = prometheus.NewDesc("bursar_database_queue_length",
		"What waits to go to the database in a group: writes on SQLite; payout requests, and reads of rows, on PostgreSQL.",
		[]string{"queue"}, nil)
	descGroup = prometheus.NewDesc("bursar_database_group_size",
		"How many went to the database together.", []string{"queue"}, nil)
)

// Describe names what Collect gives.
func (databaseCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{descConnections, descConnectionsMost, descWaits, descWaited, descWaiting, descGroup} {
		to <- desc
	}
}

// Collect reads the figures as they are now.
func (c databaseCollector) Collect(to chan<- prometheus.Metric) {
	s := c()
	for pool, p := range s.Pools {
		for _, one := range []prometheus.Metric{
			prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(p.InUse), pool, "in_use"),
			prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(p.Idle), pool, "idle"),
			prometheus.MustNewConstMetric(descConnectionsMost, prometheus.GaugeValue, float64(p.MaxOpenConnections), pool),
			prometheus.MustNewConstMetric(descWaits, prometheus.CounterValue, float64(p.WaitCount), pool),
			prometheus.MustNewConstMetric(descWaited, prometheus.CounterValue, p.WaitDuration.Seconds(), pool),
		} {
			to <- one
		}
	}
	for queue, q := range s.Queues {
		upTo := map[float64]uint64{}
		for size, groups := range q.UpTo {
			upTo[float64(size)] = groups
		}
		to <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(q.Waiting), queue)
		to <- prometheus.MustNewConstHistogram(descGroup, q.Groups, float64(q.Grouped), upTo, queue)
	}
}
