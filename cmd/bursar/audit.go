package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"bursar/internal/config"
	"bursar/internal/ledger"
	"bursar/internal/store"
)

type auditCmd struct {
	JSON bool `help:"Print the report as JSON."`
}

func (auditCmd) Help() string {
	return "Everything is recomputed from the transfers, from one consistent view and without holding up a running server. " +
		"The exit code is 0 when the books are right, and 1 when any promise is broken.\n\n" +
		examples("bursar audit", "bursar audit --json | jq '.findings[] | select(.violations != [])'")
}

// Run checks the books and reports.
func (c auditCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	db, err := openExisting(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	progress := progressOn(e.err)
	progress("Checking the books")
	report, err := db.Audit(ctx)
	if err == nil {
		err = addSigner(ctx, e, cfg, db, &report)
	}
	progress("")
	if err != nil {
		return err
	}
	write := writeReport
	if c.JSON {
		write = writeReportJSON
	}
	if err := write(e.out, report); err != nil {
		return err
	}
	if !report.Clean() {
		return errReported
	}
	return nil
}

// addSigner adds to a report whether the newest checkpoint, which names all others, is signed with a key of
// ours. The database by itself can't tell.
func addSigner(ctx context.Context, e *env, cfg config.Config, db *store.DB, r *ledger.Report) error {
	last, _, err := db.LastCheckpoint(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Stat(cfg.KeysFile); cfg.Keys == "" && cfg.KeysFile != "" && err != nil {
		fmt.Fprintf(e.err, "The key set is not at hand (%v), so it was not checked whether the checkpoints are signed with it.\n", err)
		return nil
	}
	keys, err := openKeys(ctx, cfg, db)
	if err != nil {
		return err
	}
	f := ledger.Finding{Name: "checkpoints-are-ours", Promise: "The newest checkpoint is signed with a key of the key set."}
	if _, ours := keys.VerificationKey(last.KeyID); !ours && last.Number > 0 {
		f.Violations = []string{fmt.Sprintf("checkpoint %d is signed with key %s", last.Number, last.KeyID)}
	}
	r.Findings = append(r.Findings, f)
	return nil
}

func writeReport(w io.Writer, r ledger.Report) error {
	kept, broken := "ok    ", "BROKEN"
	if isTerminal(w) {
		kept, broken = "✓", "✗"
	}
	for _, f := range r.Findings {
		mark := kept
		if len(f.Violations) > 0 {
			mark = broken
		}
		if _, err := fmt.Fprintf(w, "%s %-26s %s\n", mark, f.Name, f.Promise); err != nil {
			return err
		}
		for _, violation := range f.Violations {
			if _, err := fmt.Fprintf(w, "       %s\n", violation); err != nil {
				return err
			}
		}
	}
	verdict := "The books are right"
	if !r.Clean() {
		verdict = "The books are NOT right. Stop payouts, keep this report and a backup, and look into each line above"
	}
	_, err := fmt.Fprintf(w, "%s: %d sellers, %d sales, %d payouts, %d transfers.\n", verdict, r.Sellers, r.Sales, r.Payouts, r.Transfers)
	return err
}

func writeReportJSON(w io.Writer, r ledger.Report) error {
	type finding struct {
		Name       string   `json:"name"`
		Promise    string   `json:"promise"`
		Violations []string `json:"violations"`
	}
	out := struct {
		Clean     bool      `json:"clean"`
		Sellers   int64     `json:"sellers"`
		Sales     int64     `json:"sales"`
		Payouts   int64     `json:"payouts"`
		Transfers int64     `json:"transfers"`
		Findings  []finding `json:"findings"`
	}{r.Clean(), r.Sellers, r.Sales, r.Payouts, r.Transfers, nil}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, finding{f.Name, f.Promise, append([]string{}, f.Violations...)})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
