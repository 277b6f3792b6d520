package store

import (
	"database/sql"
	"slices"
	"sync/atomic"
)

// Stats is how busy the database is kept by this process.
type Stats struct {
	// Pools are the connections that are taken one at a time: "read", and "write" where there are several.
	Pools map[string]sql.DBStats
	// Queues are what waits to go in a group: reads of single "rows"; all "writes" on SQLite; "changes" of payouts and "refreshes"
	// of sessions on PostgreSQL.
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

// Stats tells how busy the database is kept.
func (db *DB) Stats() Stats {
	s := Stats{Pools: map[string]sql.DBStats{"read": db.reader.Stats()}, Queues: map[string]QueueStats{}}
	switch w := db.writer.(type) {
	case *groupWriter:
		s.Queues["writes"] = w.queue.stats()
	case postgresWriter:
		s.Pools["write"] = w.pool.Stats()
		s.Queues["changes"] = db.units.queue.stats()
		s.Queues["refreshes"] = db.statements.queue.stats()
	}
	if db.keyed != nil {
		s.Queues["rows"] = db.keyed.queue.stats()
	}
	return s
}

// groupSizes counts groups by their size.
type groupSizes struct {
	grouped atomic.Uint64
	counts  [len(sizeBounds)]atomic.Uint64
}

var sizeBounds = [...]int{1, 2, 4, 8, 16, 32, 64, 128, maxGroup}

func (g *groupSizes) add(size int) {
	bucket, _ := slices.BinarySearch(sizeBounds[:], size)
	g.counts[bucket].Add(1)
	g.grouped.Add(uint64(size))
}

func (q *queue[J]) stats() QueueStats {
	s := QueueStats{Waiting: len(q.jobs), Grouped: q.sizes.grouped.Load(), UpTo: map[int]uint64{}}
	for i, bound := range sizeBounds {
		s.Groups += q.sizes.counts[i].Load()
		s.UpTo[bound] = s.Groups
	}
	return s
}
