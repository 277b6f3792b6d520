package main

import (
	"context"
	"errors"
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
	return "Balances, payouts, sales and bank accounts are rebuilt from the journal, where they differ from it because of tampering. " +
		"First it shows what it would change. Keep a backup and find out who made the changes; then run it with --apply. " +
		"Each change is recorded in its seller's journal. A journal that was changed itself can't be rebuilt: restore it from a backup.\n\n" +
		"It works beside a running server, row by row; if it breaks off, run it again. Stop all instances while an attacker may still write to the database. " +
		"After --apply it audits the ledger, and says what is left. The exit code is 0 when there is nothing left to repair and the audit is clean, and 1 otherwise.\n\n" +
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
	if err != nil && len(repairs) > 0 {
		err = fmt.Errorf("the repair broke off after what is listed; run it again for the rest: %w", err)
	}
	if c.JSON {
		return c.writeJSON(ctx, e, datastore, repairs, err)
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
	if err != nil {
		return err
	}
	return c.sumUp(ctx, e, datastore, len(repairs), left)
}

// sumUp says how many rows there were, of which left can't be repaired, and audits the ledger where they were repaired.
func (c repairCmd) sumUp(ctx context.Context, e *env, datastore *app.Datastore, repairs, left int) (err error) {
	switch {
	case repairs == 0:
		_, err = fmt.Fprintln(e.out, "Every row is what the journal says. There is nothing to repair. \"bursar audit\" tells whether anything else is wrong.")
	case !c.Apply && left == repairs:
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d. None of them can be repaired from it.\n", repairs)
	case !c.Apply && left > 0:
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d, of which %d can't be repaired. Nothing was changed; run it with --apply to repair the others.\n", repairs, left)
	case !c.Apply:
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d. Nothing was changed; run it with --apply to repair them.\n", repairs)
	case left > 0:
		_, err = fmt.Fprintf(e.out, "Rows repaired: %d. Rows that could not be repaired: %d.\n", repairs-left, left)
	default:
		_, err = fmt.Fprintf(e.out, "Rows repaired: %d.\n", repairs)
	}
	switch {
	case err != nil:
		return err
	case !c.Apply && repairs > 0:
		return errReported
	case !c.Apply:
		return nil
	default:
		return auditAfter(ctx, e, datastore)
	}
}

// writeJSON writes the repairs for programs, with the audit after them where they were made. If they broke off, it writes those before
// that, and returns the error.
func (c repairCmd) writeJSON(ctx context.Context, e *env, datastore *app.Datastore, repairs []app.Repair, brokeOff error) error {
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
	if brokeOff != nil {
		if len(repairs) == 0 {
			return brokeOff
		}
		return errors.Join(writeJSON(e.out, out), brokeOff)
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
			if _, err := fmt.Fprintln(e.out, "  "+printable(line)); err != nil {
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
	return printable(v.String())
}
