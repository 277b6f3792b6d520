//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"bursar/internal/money"
)

// settle lets every payout come to its end, without its waits.
func (f *failover) settle() {
	f.t.Helper()
	left, before := 0, 0
	for range 600 {
		f.sql(`UPDATE payouts SET due_at = 0 WHERE due_at IS NOT NULL AND status = 'processing'`, nil)
		f.sql(`SELECT COUNT(*) FROM payouts WHERE status = 'processing'`, func(rows pgx.Rows) error { return rows.Scan(&left) })
		if left == 0 {
			return
		}
		if left/500 != before/500 {
			f.say("%d payouts are still on their way", left)
		}
		before = left
		time.Sleep(500 * time.Millisecond)
	}
	f.t.Fatalf("%d payouts never came to their end", left)
}

// checkPayouts compares the payouts in the books with those that were acknowledged: there is each of
// them, as it was asked for, and no other.
func (f *failover) checkPayouts() {
	f.t.Helper()
	found := 0
	f.sql(`SELECT id, seller_id, amount, status FROM payouts`, func(rows pgx.Rows) error {
		var id, seller, status string
		var amount money.Amount
		if err := rows.Scan(&id, &seller, &amount, &status); err != nil {
			return err
		}
		p := f.payouts[id]
		want := "completed"
		if p != nil && p.cancelled {
			want = "cancelled"
		}
		switch {
		case p == nil:
			f.t.Errorf("payout %s of %s is in the books, and nobody was told", id, inRupees(amount))
		case p.seller.id != seller || p.amount != amount || status != want:
			f.t.Errorf("payout %s: %s of %s is %s, want %s of %s %s", id, inRupees(amount), seller, status, inRupees(p.amount), p.seller.id, want)
		}
		found++
		return nil
	})
	if found != len(f.payouts) {
		f.t.Errorf("%d payouts are in the books, %d were acknowledged", found, len(f.payouts))
	}
}

// checkMoves compares the money that moved at the gateway with what was asked for.
func (f *failover) checkMoves() {
	f.t.Helper()
	response, err := f.client.Get(f.gateway + "/control/moves")
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	var moves []struct {
		Reference string       `json:"reference_id"`
		Net       money.Amount `json:"net"`
		Count     int          `json:"count"`
	}
	if err := json.NewDecoder(response.Body).Decode(&moves); err != nil {
		f.t.Fatal(err)
	}
	paid := 0
	for _, m := range moves {
		p := f.payouts[m.Reference]
		switch {
		case p == nil || m.Count > 1:
			f.t.Errorf("the gateway paid %s %d times, %s in all", m.Reference, m.Count, inRupees(m.Net))
		case p.cancelled && m.Net != 0, !p.cancelled && m.Net != p.amount:
			f.t.Errorf("the gateway paid %s for %s, which is %s (cancelled: %t)", inRupees(m.Net), m.Reference, inRupees(p.amount), p.cancelled)
		case !p.cancelled:
			paid++
		}
	}
	if want := len(f.payouts) - f.cancelled(); paid != want {
		f.t.Errorf("the gateway paid %d payouts, want %d", paid, want)
	}
}

func (f *failover) cancelled() (n int) {
	for _, p := range f.payouts {
		if p.cancelled {
			n++
		}
	}
	return n
}

func (f *failover) checkSales() {
	f.t.Helper()
	found := 0
	f.sql(`SELECT id, seller_id, amount, refunded FROM sales`, func(rows pgx.Rows) error {
		var id, seller string
		var amount, refunded money.Amount
		if err := rows.Scan(&id, &seller, &amount, &refunded); err != nil {
			return err
		}
		s := f.sales[id]
		if s == nil || s.seller.id != seller || s.amount != amount || s.refunded != refunded {
			f.t.Errorf("sale %s is of %s, %s refunded, want %+v", id, inRupees(amount), inRupees(refunded), s)
		}
		found++
		return nil
	})
	if found != len(f.sales) {
		f.t.Errorf("%d sales are in the books, %d were acknowledged", found, len(f.sales))
	}
}

// checkBalances works out what each seller must have, to the paisa.
func (f *failover) checkBalances() {
	f.t.Helper()
	earned, withdrawn := map[*seller]money.Amount{}, map[*seller]money.Amount{}
	for _, s := range f.sales {
		earned[s.seller] += s.amount - s.refunded
	}
	for _, p := range f.payouts {
		if !p.cancelled {
			withdrawn[p.seller] += p.amount
		}
	}
	for _, s := range f.sellers {
		want := []money.Amount{earned[s] - withdrawn[s], 0, earned[s], withdrawn[s]}
		until(f.t, "sales are released", func() bool { return rupees(f.t, f.balance(s).PendingBalance) == 0 })
		b := f.balance(s)
		for i, got := range []json.Number{b.AvailableBalance, b.PendingBalance, b.TotalEarnings, b.TotalWithdrawn} {
			if rupees(f.t, got) != want[i] {
				f.t.Errorf("%s has %+v, want %d", s.email, b, want)
			}
		}
	}
}

// What an instance may have: connections to the database, and lines in a second of its log that are not
// about a request, which is what its workers say when all their steps fail at once.
const (
	connectionsEach = 24
	logLinesEach    = 30
)

// checkLeaks looks for what outages may leave behind: connections, goroutines that wait for ever, and
// logs that nobody can read.
func (f *failover) checkLeaks() {
	f.t.Helper()
	f.sql(`SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'bursar'`, func(rows pgx.Rows) error { return rows.Scan(&f.connections) })
	if f.connections > connectionsEach*len(f.instances) {
		f.t.Errorf("%d connections to the database, want at most %d each", f.connections, connectionsEach)
	}
	until(f.t, "no more goroutines are there than before, beside those of connections", func() bool {
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
	row("payouts acknowledged, all in the books", "%d, and no others", len(f.payouts))
	row("  paid by the gateway, each once", "%d", len(f.payouts)-cancelled)
	row("  cancelled, and not paid", "%d", cancelled)
	row("sales acknowledged, all in the books", "%d, and no others", len(f.sales))
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
