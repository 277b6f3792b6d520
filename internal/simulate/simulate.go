// Package simulate tries to break the payouts.
//
// A run is a marketplace in a world of its own: the real services, the real store on a SQLite file, the real
// client of the gateway and the real sandbox, under one clock that jumps to whatever is due next, with all that
// may go wrong. One thing happens at a time, and chance is drawn from a seed, so that the same seed gives the
// same run to the last transfer. Beside it stands a model that knows what every balance must be. The gateway's
// own record of what moved judges what was paid.
//
// Crashes here are those of the process, and never of the machine: the files are not synced.
package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"bursar/internal/payout"
)

// Options say what is to be run.
type Options struct {
	Seed    uint64
	Days    int
	Sellers int
	Faults  Faults
	// Limited has a poorer gateway: keys for a day, and neither lists, metadata, cancellations, verifications nor a
	// statement. With an even seed it finds no transfer by our reference either. No backup is put back then: without a
	// list nobody can tell what was paid since.
	Limited bool
	// Dir keeps the ledger of the run; empty is a temporary one that is removed.
	Dir string
}

// Limits of a run.
const (
	MostDays    = 3660
	MostSellers = 100_000
)

// SellersTogether is how many sellers share a marketplace. A larger run is of many, each of which depends on
// nothing but its own seed.
const SellersTogether = 250

// Check refuses what can't be run.
func (o Options) Check() error {
	switch {
	case o.Days < 1 || o.Days > MostDays:
		return fmt.Errorf("the days must be between 1 and %d", MostDays)
	case o.Sellers < 1 || o.Sellers > MostSellers:
		return fmt.Errorf("the sellers must be between 1 and %d", MostSellers)
	default:
		return nil
	}
}

// askEvery is how often a seller looks whether there is enough for a payout: each month or so, and more often in a
// run so small that little would happen.
func (o Options) askEvery() time.Duration {
	const enough = 400 // payouts
	whole := time.Duration(o.Days) * time.Duration(o.Sellers) * 24 * time.Hour
	return min(30*24*time.Hour, max(whole/enough, 4*time.Hour))
}

// markets are the options of each marketplace of a run. The first has the run's own seed.
func (o Options) markets() []Options {
	n := (o.Sellers + SellersTogether - 1) / SellersTogether
	list := make([]Options, n)
	seeds := rand.New(rand.NewPCG(o.Seed, uint64(o.Sellers)))
	for i := range list {
		list[i] = o
		list[i].Sellers = o.Sellers/n + btoi(i < o.Sellers%n)
		if i > 0 {
			list[i].Seed = seeds.Uint64() >> 16 // short enough to be typed
		}
	}
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Report is what a run came to.
type Report struct {
	Options
	Markets int
	// QuietDays are the days after the trade, in which everything comes to its end.
	QuietDays int
	// Violation is nil if everything held.
	Violation *Violation
	// Fingerprint is the same for two runs that did the same.
	Fingerprint string

	Sales, Refunds, Adjustments    int64
	Asked, Imported, Sent, Unknown int64
	Ends                           map[payout.State]int64
	Calls, Webhooks                int64
	Crashes, Restores, Takeovers   int64
	// Proven payouts were requested with a fresh proof, and Unproven requests were refused for want of one.
	Proven, Unproven int64
	// Unmatched transfers were listed.
	Unmatched      int64
	Checks, Audits int64
	Faulted        map[string]int64
}

// Stand is how far a run is.
type Stand struct {
	Day, Days       int
	Payouts, Faults int64
}

// Progress is called now and then with how far a run is.
type Progress func(Stand)

// stand is that of one marketplace, which others read.
type stand struct{ at, payouts, faults atomic.Int64 }

// Run runs a simulation to its end, or to the first promise that was broken.
func Run(ctx context.Context, o Options, progress Progress) (r Report, err error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "bursar-simulate-"); err != nil {
			return Report{}, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	runs := make([]*marketRun, 0)
	for i, options := range o.markets() {
		dir := filepath.Join(o.Dir, fmt.Sprintf("market-%d", i+1))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Report{}, err
		}
		runs = append(runs, &marketRun{o: options, dir: dir})
	}
	runAll(ctx, runs, progress)
	return sum(o, runs)
}

// marketRun is one marketplace of a run.
type marketRun struct {
	o     Options
	dir   string
	stand stand
	m     *market
	err   error
}

// runAll runs as many marketplaces at once as there are processors. One that comes after a broken promise need
// not be run.
func runAll(ctx context.Context, runs []*marketRun, progress Progress) {
	var next, broken atomic.Int64
	broken.Store(int64(len(runs)))
	stop := make(chan struct{})
	var reporting, workers sync.WaitGroup
	reporting.Go(func() { reportProgress(runs, progress, stop) })
	for range min(runtime.GOMAXPROCS(0), len(runs)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(runs)); i = next.Add(1) - 1 {
				if i > broken.Load() || ctx.Err() != nil {
					return
				}
				runs[i].run(ctx)
				if runs[i].m != nil && runs[i].m.violation != nil {
					broken.Store(min(broken.Load(), i))
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	reporting.Wait()
}

func (r *marketRun) run(ctx context.Context) {
	m, err := newMarket(ctx, r.o, r.dir, &r.stand)
	if err != nil {
		r.err = err
		return
	}
	r.m = m
	m.run()
}

func reportProgress(runs []*marketRun, progress Progress, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
			var at time.Duration
			s := Stand{Days: runs[0].o.Days}
			for _, r := range runs {
				at += time.Duration(r.stand.at.Load())
				s.Payouts += r.stand.payouts.Load()
				s.Faults += r.stand.faults.Load()
			}
			s.Day = min(int(at/time.Duration(len(runs))/(24*time.Hour)), s.Days)
			progress(s)
		}
	}
}

// sum adds the marketplaces up.
func sum(o Options, runs []*marketRun) (Report, error) {
	r := Report{Options: o, Markets: len(runs), QuietDays: int(quiet / (24 * time.Hour)), Ends: make(map[payout.State]int64), Faulted: map[string]int64{}}
	var prints []byte
	for _, run := range runs {
		if run.err != nil {
			return r, run.err
		}
		if run.m == nil {
			continue
		}
		t := run.m.tally
		r.Sales += t.sales
		r.Refunds += t.refunds
		r.Adjustments += t.adjustments
		r.Asked += t.asked
		r.Imported += t.imported
		r.Sent += t.sent
		r.Unknown += t.unknown
		r.Calls += t.calls
		r.Webhooks += t.webhooks
		r.Crashes += t.crashes
		r.Restores += t.restores
		r.Takeovers += t.takeovers
		r.Proven += t.proven
		r.Unproven += t.unproven
		r.Unmatched += t.unmatched
		r.Checks += t.checks
		r.Audits += t.audits
		for f, n := range t.faults {
			r.Faulted[catalogue[f].name] += n
		}
		for _, w := range run.m.model.payouts {
			r.Ends[w.state]++
		}
		prints = run.m.printed.Sum(prints)
		if r.Violation == nil {
			r.Violation = run.m.violation
		}
	}
	r.Fingerprint = fingerprint(prints)
	return r, nil
}

// fingerprint is short enough to be compared by eye.
func fingerprint(prints []byte) string {
	sum := sha256.Sum256(prints)
	return hex.EncodeToString(sum[:8])
}
