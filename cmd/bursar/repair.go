package main

import (
	"context"
	"fmt"
	"time"

	"bursar/internal/app"
	"bursar/internal/ledger"
)

type repairCmd struct {
	Apply bool   `help:"Make the changes. Without it they are only shown."`
	By    string `placeholder:"NAME" help:"Who runs it, for the record. Default: the user of the system."`
	JSON  bool   `help:"Print the repairs, and with --apply the audit after them, as JSON."`
}

func (repairCmd) Help() string {
	return "Balances, payouts, sales and bank accounts are rebuilt from the journal, where they differ from it, because the database was tampered with. " +
		"First it shows what it would change. Stop payouts, keep a backup and find out who made the changes; then run it with --apply. " +
		"Each change is recorded in the journal of the seller whom it is about.\n\n" +
		"After --apply it audits the ledger, and says what is left and what to do. A journal that was changed itself can't be rebuilt from the database: restore it from a backup. " +
		"The exit code is 0 when there is nothing left to repair and the audit is clean, and 1 otherwise.\n\n" +
		examples("bursar repair", "bursar repair --apply --by asha", "bursar repair --json | jq .repairs")
}

// Run shows or makes the repairs.
func (c repairCmd) Run(ctx context.Context, e *env) error {
	by, err := whoRuns(c.By)
	if err != nil {
		return err
	}
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	progress := progressOn(e.err)
	progress("Comparing every row with the journal")
	repairs, err := datastore.Repair(ctx, by, time.Now(), c.Apply)
	progress("")
	if err != nil {
		return err
	}
	if c.JSON {
		return c.writeJSON(ctx, e, datastore, repairs)
	}
	left := 0
	for _, r := range repairs {
		if r.Impossible != "" {
			left++
		}
		if _, err := fmt.Fprintln(e.out, repairLine(r)); err != nil {
			return err
		}
	}
	switch {
	case len(repairs) == 0:
		_, err = fmt.Fprintln(e.out, "Every row is what the journal says. There is nothing to repair. \"bursar audit\" tells whether anything else is wrong.")
	case !c.Apply && left == len(repairs):
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d. None of them can be repaired from it.\n", len(repairs))
	case !c.Apply && left > 0:
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d, of which %d can't be repaired. Nothing was changed; run it with --apply to repair the others.\n", len(repairs), left)
	case !c.Apply:
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d. Nothing was changed; run it with --apply to repair them.\n", len(repairs))
	case left > 0:
		_, err = fmt.Fprintf(e.out, "Rows repaired: %d. Rows that could not be repaired: %d.\n", len(repairs)-left, left)
	default:
		_, err = fmt.Fprintf(e.out, "Rows repaired: %d.\n", len(repairs))
	}
	switch {
	case err != nil:
		return err
	case !c.Apply && len(repairs) > 0:
		return errReported
	case !c.Apply:
		return nil
	default:
		return auditAfter(ctx, e, datastore)
	}
}

// writeJSON writes the repairs for programs, with the audit after them where they were made.
func (c repairCmd) writeJSON(ctx context.Context, e *env, datastore *app.Datastore, repairs []app.Repair) error {
	type repair struct {
		Owner      string `json:"owner"`
		Subject    string `json:"subject"`
		Change     string `json:"change"`
		Impossible string `json:"impossible,omitempty"`
	}
	out := struct {
		Applied bool        `json:"applied"`
		Repairs []repair    `json:"repairs"`
		Audit   *auditedAll `json:"audit,omitempty"`
	}{c.Apply, []repair{}, nil}
	for _, r := range repairs {
		out.Repairs = append(out.Repairs, repair(r))
	}
	done := c.Apply || len(repairs) == 0
	if c.Apply {
		report, err := datastore.Audit(ctx)
		if err != nil {
			return err
		}
		out.Audit = reportJSON(report)
		done = report.Clean()
	}
	if err := writeJSON(e.out, out); err != nil {
		return err
	}
	if !done {
		return errReported
	}
	return nil
}

// auditAfter audits what was repaired, and says what is left and what to do about it.
func auditAfter(ctx context.Context, e *env, datastore *app.Datastore) error {
	progress := progressOn(e.err)
	progress("Checking the ledger")
	report, err := datastore.Audit(ctx)
	progress("")
	if err != nil {
		return err
	}
	if report.Clean() {
		_, err = fmt.Fprintln(e.out, "The audit finds nothing wrong any more.")
		return err
	}
	if _, err := fmt.Fprintln(e.out, "The audit still finds:"); err != nil {
		return err
	}
	for _, f := range report.Findings {
		for _, line := range f.Lines() {
			if _, err := fmt.Fprintln(e.out, "  "+line); err != nil {
				return err
			}
		}
	}
	return errReported
}

func repairLine(r app.Repair) string {
	v := ledger.Violation{Seller: r.Owner, Subject: r.Subject, Problem: r.Change}
	if r.Subject == r.Owner { // the row of totals
		v.Subject = ""
	}
	if r.Impossible != "" {
		v.Next = "It can't be repaired: " + r.Impossible
	}
	return v.String()
}
