package store

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"bursar/internal/fault"
)

// Limits of grouped writing: how many jobs may wait, and how many share one commit.
const (
	maxQueue = 4096
	maxGroup = 256
)

var errClosed = fault.New(fault.Unavailable, "shutting_down", "The service is shutting down. Try again in a moment.")

// errServeAlone says that a group can't be served together: each of its jobs is served by itself then.
var errServeAlone = errors.New("the jobs of this group have to be served one by one")

// job is a closure that waits for its turn in a group.
type job[T any] struct {
	ctx    context.Context //nolint:containedctx // a job is a call that waits its turn
	fn     func(T) error
	answer chan error
}

// queue is where jobs wait. The jobs that wait while one group commits become the next group, so that they
// share the cost of a durable commit, and no job waits for a timer. The measurements are
// in docs/adr/0003-group-commit.md.
type queue[J any] struct {
	jobs    chan J
	closing sync.RWMutex
	closed  bool
	sizes   *groupSizes
}

func newQueue[J any]() queue[J] {
	return queue[J]{jobs: make(chan J, maxQueue), sizes: &groupSizes{}}
}

// put adds a job, waiting for a place no longer than ctx. It adds none once ctx has ended.
func (q *queue[J]) put(ctx context.Context, j J) error {
	q.closing.RLock()
	defer q.closing.RUnlock()
	if q.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil { // a select would take either case
		return errNotBegun.Because(err)
	}
	select {
	case q.jobs <- j:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "busy", "Too many writes are waiting. Try again in a moment.").Because(ctx.Err())
	}
}

// take waits for a job and returns it with all others that wait already, in group's memory. It returns
// none once the queue is closed and empty.
func (q *queue[J]) take(group []J) []J {
	group = group[:0]
	first, open := <-q.jobs
	if !open {
		return group
	}
	group = append(group, first)
	runtime.Gosched() // let callers that are about to queue join this group
	defer func() { q.sizes.add(len(group)) }()
	for len(group) < maxGroup {
		select {
		case j, open := <-q.jobs:
			if !open {
				return group
			}
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// close lets no more jobs in.
func (q *queue[J]) close() {
	q.closing.Lock()
	defer q.closing.Unlock()
	if !q.closed {
		q.closed = true
		close(q.jobs)
	}
}
