package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"bursar/internal/ledger"
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
