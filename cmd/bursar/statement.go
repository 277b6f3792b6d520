package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"bursar/internal/proof"
)

type statementCmd struct {
	Seller string `required:"" placeholder:"ID" help:"Whose statement."`
	From   string `placeholder:"DAY" help:"First day, or a time; the first of this month unless set."`
	To     string `placeholder:"DAY" help:"Last day, or a time before which the period ends; today unless set."`
	Format string `enum:"json,csv" default:"json" help:"\"json\", or \"csv\" for a spreadsheet; both hold the proof."`
}

func (statementCmd) Help() string {
	return "Every entry of the period, with the balances after it, and the proof that the ledger holds exactly this. " +
		"It works beside a running server, and makes a checkpoint first if the newest entries are in no checkpoint yet.\n\n" +
		examples("bursar statement --seller usr_… >statement.json", "bursar statement --seller usr_… --from 2026-10-01 --to 2026-10-31 --format csv >october.csv")
}

// Run writes the statement to standard output.
func (c statementCmd) Run(ctx context.Context, e *env) error {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	proofs, err := datastore.Proofs(quiet())
	if err != nil {
		return err
	}
	from, to, err := proofs.Period(c.From, c.To)
	if err != nil {
		return err
	}
	progress := progressOn(e.err)
	progress("Looking for the proof")
	statement, err := proofs.Statement(ctx, c.Seller, from, to)
	progress("")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(e.out)
	return errors.Join(statement.Write(out, proof.Format(c.Format)), out.Flush())
}

type checkpointCmd struct {
	Trust keyName `placeholder:"KID" help:"Go on from a last checkpoint that this key signed, though it is not in the key set any more."`
}

func (checkpointCmd) Help() string {
	return "It works beside a running server. Keep what it prints in another place: then not even an attacker who has the database and the keys " +
		"can change what the checkpoint holds without being found.\n\n" +
		examples("bursar checkpoint", "bursar checkpoint >>/mnt/elsewhere/checkpoints")
}

// Run makes a checkpoint and prints what is signed.
func (c checkpointCmd) Run(ctx context.Context, e *env) error {
	if c.Trust != "" && !c.Trust.isID() {
		return usageError{fmt.Errorf("--trust %s is not a key id; give the one that the refused checkpoint names", c.Trust)}
	}
	cfg, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	logger, err := newLogger(cfg, e.err)
	if err != nil {
		return err
	}
	proofs, err := datastore.Proofs(logger)
	if err != nil {
		return err
	}
	progress := progressOn(e.err)
	progress("Making a checkpoint")
	made, err := proofs.Make(ctx, proof.Trust{Key: string(c.Trust)})
	progress("")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%ssignature %s\n", made.Text(), made.Signature)
	return err
}
