package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bursar/internal/app"
	"bursar/internal/bank"
	"bursar/internal/payout"
)

type vouchCmd struct {
	ID []string `arg:"" placeholder:"ID" help:"Payouts (pyt_…) and bank accounts (bka_…) whose rows are right."`
}

func (vouchCmd) Help() string {
	return "Payouts and bank accounts are sealed with the key set. One that does not fit its seal was changed in the database by somebody else than the service, " +
		"or written by a version that seals nothing; it is neither sent nor given back, and bursar audit names it. " +
		"Find out who changed it, and put the row right. A backup's row fits its seal again by itself; where there is none, this command seals rows as they are now.\n\n" +
		examples("bursar vouch pyt_0Vbf4Kht7U0jNZBF4eTAC71L", "bursar audit --json | jq -r '.findings[] | select(.name == \"seals-are-whole\").violations[]'")
}

// Run seals rows as they are.
func (c vouchCmd) Run(ctx context.Context, e *env) error {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	for _, id := range c.ID {
		said, err := vouch(ctx, datastore, id)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if _, err := fmt.Fprintln(e.out, said); err != nil {
			return err
		}
	}
	return nil
}

// vouch seals one row, and tells what was sealed.
func vouch(ctx context.Context, b *app.Datastore, id string) (string, error) {
	switch {
	case strings.HasPrefix(id, "pyt_"):
		p, err := payout.Vouch(ctx, b.DB().Payouts(), b.Seals(), payout.ID(id), time.Now())
		return fmt.Sprintf("%s is sealed: %d minor units, of them %d for the fee, for %s to bank account %s; it is %s.", id, p.Amount, p.Fee, p.Seller, p.BankAccountID, p.State), err
	case strings.HasPrefix(id, "bka_"):
		a, err := bank.Vouch(ctx, b.DB().Bank(), b.Seals(), bank.ID(id))
		return fmt.Sprintf("%s is sealed: %s of %s, %s, as %q at the gateway; it is %s.", id, a.Masked(), a.Seller, a.IFSC, a.Beneficiary, a.Status), err
	default:
		return "", usageError{errors.New("only payouts (pyt_…) and bank accounts (bka_…) are sealed")}
	}
}
