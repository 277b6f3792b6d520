package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"bursar/internal/config"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

type reconcileCmd struct {
	From      string `placeholder:"DAY" help:"First day; yesterday unless set."`
	To        string `placeholder:"DAY" help:"Last day; yesterday unless set. Today is compared as far as it has come."`
	Statement string `placeholder:"NAME" help:"Gateway whose statement is compared; the current one unless set."`
	Again     bool   `help:"Read those days again too that were read whole before."`
	JSON      bool   `help:"Print the result as JSON."`
}

func (reconcileCmd) Help() string {
	return "The gateway's statement of our account is read and compared with the ledger, line by line. Each difference has a name, " +
		"which docs/reconciliation.md explains; the dashboard's inbox shows them to admins, who resolve them with a note. " +
		"It works beside a running server, which does this each day by itself. " +
		"The exit code is 0 when nothing differs that was not resolved, 1 when something does, and 2 when the command was asked wrongly.\n\n" +
		examples("bursar reconcile", "bursar reconcile --from 2026-10-01 --to 2026-10-31", "bursar reconcile --statement razorpayx", "bursar reconcile --json | jq '.differences[] | select(.resolvedAt == null)'")
}

// Run reads the statement, compares and reports.
func (c reconcileCmd) Run(ctx context.Context, e *env) (err error) {
	cfg, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	progress := progressOn(e.err)
	service, err := datastore.Reconciliation(ctx, c.Statement, func(day time.Time, lines int) {
		progress("Reading the statement of %s: %d lines", day.Format(time.DateOnly), lines)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	period, err := service.Period(c.From, c.To)
	if err != nil {
		return err
	}
	progress("Reading the statement")
	result, err := service.Reconcile(ctx, period, c.Again)
	progress("")
	if err != nil {
		return err
	}
	write := writeResult
	if c.JSON {
		write = writeResultJSON
	}
	out := bufio.NewWriter(e.out)
	if err := errors.Join(write(out, cmp.Or(c.Statement, string(cfg.Gateway)), result, cfg), out.Flush()); err != nil {
		return err
	}
	if result.Open > 0 || result.Sums.Rest() != 0 {
		return errReported
	}
	return nil
}

func writeResult(w io.Writer, statement string, r reconcile.Result, cfg config.Config) error {
	last := r.Period.To.Add(-time.Nanosecond).In(cfg.Zone)
	fmt.Fprintf(w, "%s to %s (%s), compared with the statement of gateway %s: %d lines, %d payouts.\n\n",
		r.Period.From.In(cfg.Zone).Format(time.DateOnly), last.Format("2006-01-02 15:04"), cfg.Zone, statement, r.Lines, r.Payouts)
	writeSums(w, r.Sums, cfg.Currency)
	mark := "  "
	if isTerminal(w) {
		mark = "✗ "
	}
	resolved := 0
	for _, d := range r.Differences {
		if !d.Open() {
			resolved++
			continue
		}
		fmt.Fprintf(w, "\n%s%s  %s\n    %s\n    %s\n    At the gateway %s, in the ledger %s; found %s.\n", mark, d.Kind, d.Subject, d.Kind.Meaning(), d.Detail,
			cfg.Currency.FormatFixed(d.AtGateway), cfg.Currency.FormatFixed(d.InLedger), d.FirstSeen.In(cfg.Zone).Format("2006-01-02 15:04"))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict(r, resolved))
	return err
}

func verdict(r reconcile.Result, resolved int) string {
	var parts []string
	switch {
	case r.Sums.Rest() != 0:
		parts = append(parts, "The sums do NOT add up: keep this and a backup, and report it")
	case r.Open == 0:
		parts = append(parts, "Nothing differs")
	case r.Open == 1:
		parts = append(parts, "One difference needs attention; docs/reconciliation.md says what to do")
	default:
		parts = append(parts, fmt.Sprintf("%d differences need attention; docs/reconciliation.md says what to do about each", r.Open))
	}
	if resolved > 0 {
		parts = append(parts, fmt.Sprintf("%d resolved before", resolved))
	}
	if r.Unjudged > 0 {
		parts = append(parts, fmt.Sprintf("Not compared, because too fresh or from before what was read: %s", counted(int64(r.Unjudged), "payout")))
	}
	return strings.Join(parts, ". ") + "."
}

// writeSums proves the clearing account.
func writeSums(w io.Writer, s reconcile.Sums, c money.Currency) {
	line := func(what string, a money.Amount) { fmt.Fprintf(w, "  %-46s%20s\n", what, c.FormatFixed(a)) }
	optional := func(what string, a money.Amount) {
		if a != 0 {
			line(what, a)
		}
	}
	if s.HasBalances {
		line("Balance at the beginning", s.Opening)
	}
	optional("  put in", s.PutIn)
	line("  taken for payouts", -s.Debits)
	line("  returned for payouts", s.Credits)
	optional("  taken for checking bank accounts", -s.Checks)
	optional("  taken for other things", -s.Other)
	if s.HasBalances {
		line("Balance at the end", s.Closing)
		optional("  of which no line tells", s.Gap())
	}
	fmt.Fprintln(w)
	line("Paid in the ledger", s.Paid)
	line("  returned in the ledger", -s.Returned)
	line("  fees of the gateway", s.Fees)
	optional("  at the gateway, and not completed here yet", s.UnderWay)
	optional("  in another period than at the gateway", s.OtherPeriod)
	optional("  through other gateways", s.OtherGateway)
	optional("  differences", s.Differing)
	optional("UNEXPLAINED", s.Rest())
	line("Taken for payouts by the gateway, net", s.AtGateway())
}

func writeResultJSON(w io.Writer, statement string, r reconcile.Result, cfg config.Config) error {
	type difference struct {
		ID         string     `json:"id"`
		Kind       string     `json:"kind"`
		Meaning    string     `json:"meaning"`
		Gateway    string     `json:"gateway"`
		Subject    string     `json:"subject"`
		PayoutID   payout.ID  `json:"payoutId,omitempty"`
		Detail     string     `json:"detail"`
		At         time.Time  `json:"at"`
		AtGateway  string     `json:"atGateway"`
		InLedger   string     `json:"inLedger"`
		FirstSeen  time.Time  `json:"firstSeen"`
		ResolvedAt *time.Time `json:"resolvedAt"`
	}
	show := cfg.Currency.FormatFixed
	s := r.Sums
	sums := map[string]any{
		"putIn": show(s.PutIn), "debits": show(s.Debits), "credits": show(s.Credits), "checks": show(s.Checks), "other": show(s.Other),
		"paid": show(s.Paid), "returned": show(s.Returned), "fees": show(s.Fees), "underWay": show(s.UnderWay),
		"otherPeriod": show(s.OtherPeriod), "otherGateway": show(s.OtherGateway), "differing": show(s.Differing), "unexplained": show(s.Rest()), "atGateway": show(s.AtGateway()),
		"opening": nil, "closing": nil, "gap": nil,
	}
	if s.HasBalances {
		sums["opening"], sums["closing"], sums["gap"] = show(s.Opening), show(s.Closing), show(s.Gap())
	}
	out := struct {
		Gateway     string         `json:"gateway"`
		From        time.Time      `json:"from"`
		To          time.Time      `json:"to"`
		Currency    string         `json:"currency"`
		Lines       int            `json:"lines"`
		Payouts     int            `json:"payouts"`
		Unjudged    int            `json:"unjudged"`
		Open        int            `json:"open"`
		Sums        map[string]any `json:"sums"`
		Differences []difference   `json:"differences"`
	}{statement, r.Period.From, r.Period.To, cfg.Currency.Code(), r.Lines, r.Payouts, r.Unjudged, r.Open, sums, []difference{}}
	for _, d := range r.Differences {
		one := difference{
			d.ID, string(d.Kind), d.Kind.Meaning(), string(d.Gateway), d.Subject, d.Payout, d.Detail, d.At, show(d.AtGateway), show(d.InLedger), d.FirstSeen, nil,
		}
		if !d.ResolvedAt.IsZero() {
			one.ResolvedAt = &d.ResolvedAt
		}
		out.Differences = append(out.Differences, one)
	}
	return writeJSON(w, out)
}
