package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"bursar/internal/app"
	"bursar/internal/payout"
	"bursar/internal/simulate"
)

type simulateCmd struct {
	Seed    *uint64 `placeholder:"N" help:"What all chance is drawn from. The same seed gives the same run; without one, any."`
	Days    int     `default:"7" placeholder:"D" help:"How many virtual days there is trade (${default})."`
	Sellers int     `default:"20" placeholder:"S" help:"How many sellers there are (${default})."`
	Faults  string  `default:"all" placeholder:"LIST" help:"What goes wrong: all, none, or names joined by commas; all,-restore is all but one."`
	Limited bool    `help:"Have a gateway that lacks what others offer: it honours a key for a day, and has no lists, metadata, cancellations, verifications or statement, and with an even seed no lookup by our reference. No backup is put back then."`
	JSON    bool    `help:"Print what was done, and what was broken, as JSON."`
	Keep    string  `placeholder:"DIR" help:"Keep the datastores of the run in a directory. Each marketplace in it is a data directory for other commands, such as bursar audit --data-dir DIR/market-1."`
}

func (simulateCmd) Help() string {
	return "The real services, store, gateway client and sandbox trade in one process on a virtual clock, while a model follows every entry of the " +
		"journal. It touches no data of yours. The exit code is 0 when every promise held, 1 when one was broken, with the last events and the command that " +
		"shows it again, and 2 when there is no verdict. \"bursar help faults\" lists what can go wrong.\n\n" +
		examples("bursar simulate", "bursar simulate --seed 7 --days 7 --sellers 20",
			"bursar simulate --days 365 --sellers 1000 --faults none", "bursar simulate --faults crash,rival,restore", "bursar simulate --faults all,-outage", "bursar simulate --limited")
}

// faultsTopic is "bursar help faults".
type faultsTopic struct{}

func (faultsTopic) Help() string {
	var faults strings.Builder
	fmt.Fprint(&faults, "What \"bursar simulate --faults\" can name:\n")
	for _, name := range simulate.FaultNames() {
		fmt.Fprintf(&faults, "\n    %-12s %s", name, simulate.DescribeFault(name))
	}
	return faults.String()
}

func (faultsTopic) isTopic() {}

// Run points to the list.
func (faultsTopic) Run() error { return usageError{errors.New("run \"bursar help faults\"")} }

// Run runs the simulation and tells what came of it.
func (c simulateCmd) Run(ctx context.Context, e *env) error {
	faults, err := simulate.ParseFaults(c.Faults)
	if err != nil {
		return usageError{fmt.Errorf("--faults: %w", err)}
	}
	if entries, err := os.ReadDir(c.Keep); c.Keep != "" && err == nil && len(entries) > 0 {
		return usageError{fmt.Errorf("--keep: %s is not empty; name a directory that is, or one that is not there yet", c.Keep)}
	}
	options := simulate.Options{Seed: rand.Uint64() >> 32, Days: c.Days, Sellers: c.Sellers, Faults: faults, Limited: c.Limited, Dir: c.Keep}
	if c.Seed != nil {
		options.Seed = *c.Seed
	}
	if err := options.Check(); err != nil {
		return usageError{err}
	}
	app.CollectSeldom()
	progress := progressOn(e.err)
	began := time.Now()
	report, err := simulate.Run(ctx, options, func(s simulate.Stand) {
		progress("Day %d of %d: %d payouts, %d faults", s.Day, s.Days, s.Payouts, s.Faults)
	})
	progress("")
	if err != nil {
		return unfinished{err}
	}
	if ctx.Err() != nil && report.Violation == nil {
		return unfinished{errors.New("the simulation was stopped before its end; nothing was broken until then")}
	}
	write := writeSimulation
	if c.JSON {
		write = writeSimulationJSON
	}
	if err := write(e.out, report, time.Since(began)); err != nil {
		return unfinished{err}
	}
	if report.Violation != nil {
		return errReported
	}
	return nil
}

// writeSimulationJSON is writeSimulation for programs.
func writeSimulationJSON(w io.Writer, r simulate.Report, took time.Duration) error {
	type violation struct {
		Check   string    `json:"check"`
		Promise string    `json:"promise"`
		Detail  string    `json:"detail"`
		At      time.Time `json:"at"`
		Day     int       `json:"day"`
		Seed    uint64    `json:"seed"`
		Sellers int       `json:"sellers"`
		Events  []string  `json:"events"`
	}
	out := struct {
		Passed      bool                   `json:"passed"`
		Violation   *violation             `json:"violation"`
		Seed        uint64                 `json:"seed"`
		Days        int                    `json:"days"`
		Sellers     int                    `json:"sellers"`
		Markets     int                    `json:"markets"`
		Limited     bool                   `json:"limited"`
		Fingerprint string                 `json:"fingerprint"`
		Seconds     float64                `json:"seconds"`
		Sales       int64                  `json:"sales"`
		Refunds     int64                  `json:"refunds"`
		Adjustments int64                  `json:"adjustments"`
		Payouts     int64                  `json:"payouts"`
		Imported    int64                  `json:"imported"`
		Ended       map[payout.State]int64 `json:"ended"`
		Faults      map[string]int64       `json:"faults"`
		Checks      int64                  `json:"checks"`
		Audits      int64                  `json:"audits"`
	}{
		r.Violation == nil, nil, r.Seed, r.Days, r.Options.Sellers, r.Markets, r.Limited, r.Fingerprint, took.Seconds(),
		r.Sales, r.Refunds, r.Adjustments, r.Asked, r.Imported, r.Ends, r.Faulted, r.Checks, r.Audits,
	}
	if v := r.Violation; v != nil {
		out.Violation = &violation{v.Name, v.Promise, v.Detail, v.At, v.Day, v.Seed, v.Sellers, v.Events}
	}
	return writeJSON(w, out)
}

// writeSimulation writes what was done, and the verdict.
func writeSimulation(w io.Writer, r simulate.Report, took time.Duration) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
	row("seed", "%d", r.Seed)
	row("virtual days", "%d, and %d for all to end", r.Days, r.QuietDays)
	row("sellers", "%d, in %d marketplace%s", r.Options.Sellers, r.Markets, plural(r.Markets))
	row("sales", "%d, %d refunds, %d adjustments", r.Sales, r.Refunds, r.Adjustments)
	row("payouts", "%d asked for, %d found again after a restore", r.Asked, r.Imported)
	row("  proofs", "%d used, and %d requests refused for want of one", r.Proven, r.Unproven)
	row("  ended", "%s", ends(r.Ends))
	row("orders", "%d sent, of which %d unclear", r.Sent, r.Unknown)
	row("gateway", "%d calls, %d webhooks, %d unmatched transfers", r.Calls, r.Webhooks, r.Unmatched)
	row("instances", "%d crashes, %d restores, %d takeovers", r.Crashes, r.Restores, r.Takeovers)
	row("faults", "%s", counts(r.Faulted))
	row("checks", "%d, and %d audits of the ledger", r.Checks, r.Audits)
	row("took", "%s", took.Round(10*time.Millisecond))
	row("fingerprint", "%s", r.Fingerprint)
	if err := table.Flush(); err != nil {
		return err
	}
	if r.Violation == nil {
		_, err := fmt.Fprintln(w, "held")
		return err
	}
	return writeViolation(w, r)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func writeViolation(w io.Writer, r simulate.Report) error {
	v := r.Violation
	fmt.Fprintf(w, "\nFAILED  %s: %s\n  %s\n  at %s (day %d)\n\nThe last events:\n", v.Name, v.Promise, v.Detail, v.At.Format(time.RFC3339Nano), v.Day)
	for _, event := range v.Events {
		fmt.Fprintf(w, "  %s\n", event)
	}
	limited := ""
	if r.Limited {
		limited = " --limited"
	}
	_, err := fmt.Fprintf(w, "\nTo see it again:\n  bursar simulate --seed %d --days %d --sellers %d --faults %s%s\n", v.Seed, r.Days, v.Sellers, r.Faults, limited)
	return err
}

// ends tells how payouts ended, in the order of a payout's life.
func ends(n map[payout.State]int64) string {
	var parts []string
	for _, state := range payout.States() {
		if n[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[state], state))
		}
	}
	return orNone(parts)
}

func counts(n map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if n[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, n[name]))
		}
	}
	return orNone(parts)
}

func orNone(parts []string) string {
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
