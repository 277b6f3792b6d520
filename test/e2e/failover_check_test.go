//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"bursar/test/harness"
)

// What an instance may have: connections to the database, and lines in a second of its log that are not
// about a request, which is what its workers say when all their steps fail at once.
const (
	connectionsEach = 26
	logLinesEach    = 30
)

// checkLeaks looks for what outages may leave behind: connections, goroutines that wait for ever, and
// logs that nobody can read.
func (f *failover) checkLeaks() {
	f.t.Helper()
	f.sql(`SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'bursar'`, func(r row) error { return r.Scan(&f.connections) })
	if f.connections > connectionsEach*len(f.instances) {
		f.t.Errorf("%d connections to the database, want at most %d each", f.connections, connectionsEach)
	}
	harness.Until(f.t, "no more goroutines are there than before, beside those of connections", func() bool {
		f.goroutines = f.countGoroutines()
		return f.goroutines <= f.goroutinesBefore+connectionsEach*len(f.instances)
	})
	for _, i := range f.instances {
		f.logLines = max(f.logLines, busiestSecond(f.t, i))
	}
	if f.logLines > logLinesEach {
		f.t.Errorf("an instance logged %d lines in a second that are not about a request, want at most %d", f.logLines, logLinesEach)
	}
}

// countGoroutines counts those of all instances, once nobody is connected to them.
func (f *failover) countGoroutines() (all int) {
	f.t.Helper()
	f.client.CloseIdleConnections()
	for _, i := range f.instances {
		all += f.gauge(i, "go_goroutines")
	}
	return all
}

// report writes what came of it, in short.
func (f *failover) report(audit string) {
	w := tabwriter.NewWriter(f.t.Output(), 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	cancelled := f.cancelled()
	fmt.Fprintln(w)
	row("calls answered", "%d", f.answered.Load())
	row("  after tries that were made again", "%d: %s", f.repeated.Load(), f.told())
	row("  whose outcome was unknown until then", "%d", f.unknown.Load())
	row("  made once more, and answered the same", "%d", f.replayed.Load())
	row("payouts acknowledged, all in the ledger", "%d, and no others", len(f.payouts))
	row("  paid by the gateway, each once", "%d", len(f.payouts)-cancelled)
	row("  cancelled, and not paid", "%d", cancelled)
	row("sales acknowledged, all in the ledger", "%d, and no others", len(f.sales))
	row("balances right to the paisa", "%d", len(f.sellers))
	row("audit", "%s", audit[strings.LastIndex(audit, "\n")+1:])
	row("connections to the database", "%d", f.connections)
	row("goroutines", "%d, before the load %d", f.goroutines, f.goroutinesBefore)
	row("log lines not about a request", "at most %d in a second", f.logLines)
	fmt.Fprintf(w, "\nincident\ttook\tno write answered for\tevery instance writes after\n")
	for _, in := range f.incidents {
		fmt.Fprintf(w, "%s\t%d ms\t%d ms\t%d ms\n", in.name, in.took.Milliseconds(), in.gap.Milliseconds(), in.back.Milliseconds())
	}
	fmt.Fprintln(w)
}
