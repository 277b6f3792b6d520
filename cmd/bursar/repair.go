package main

import (
	"context"
	"fmt"
	"os/user"
	"time"

	"bursar/internal/app"
)

type repairCmd struct {
	Apply bool   `help:"Make the changes. Without it they are only shown."`
	By    string `placeholder:"NAME" help:"Who runs it, for the record. Default: the user of the system."`
}

func (repairCmd) Help() string {
	return "Balances, payouts, sales and bank accounts are rebuilt from the journal, where they are not what it says: somebody changed them in the database. " +
		"First it shows what it would change. Stop payouts, keep a backup and find out who made the changes; then run it with --apply. " +
		"Each change is recorded in the journal of the seller whom it is about.\n\n" +
		"A journal that was changed itself can't be rebuilt from the database: restore it from a backup. The exit code is 1 while there is anything that was not repaired.\n\n" +
		examples("bursar repair", "bursar repair --apply --by asha", "bursar audit")
}

// Run shows or makes the repairs.
func (c repairCmd) Run(ctx context.Context, e *env) error {
	by := c.By
	if by == "" {
		if u, err := user.Current(); err == nil {
			by = u.Username
		}
	}
	if by == "" {
		return usageError{fmt.Errorf("say who runs the repair with --by NAME")}
	}
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	progress := progressOn(e.err)
	progress("Comparing every row with the journal")
	shown, left := 0, 0
	err = datastore.Repair(ctx, by, time.Now(), c.Apply, func(r app.Repair) error {
		progress("")
		shown++
		if r.Impossible != "" || !c.Apply {
			left++
		}
		_, err := fmt.Fprintln(e.out, repairLine(r))
		return err
	})
	progress("")
	if err != nil {
		return err
	}
	switch {
	case shown == 0:
		_, err = fmt.Fprintln(e.out, "Every row is what the journal says. There is nothing to repair.")
	case !c.Apply:
		_, err = fmt.Fprintf(e.out, "Rows that are not what the journal says: %d. Nothing was changed; run it with --apply to repair them.\n", shown)
	case left > 0:
		_, err = fmt.Fprintf(e.out, "Rows repaired: %d. Rows that could not be repaired: %d.\n", shown-left, left)
	default:
		_, err = fmt.Fprintf(e.out, "Rows repaired: %d. Run \"bursar audit\" to check.\n", shown)
	}
	if err == nil && left > 0 {
		err = errReported
	}
	return err
}

func repairLine(r app.Repair) string {
	line := r.Subject + ": " + r.Change
	if r.Owner != "" && r.Owner != r.Subject {
		line += " (seller " + r.Owner + ")"
	}
	if r.Impossible != "" {
		line += ". It can't be repaired: " + r.Impossible
	}
	return line + "."
}
