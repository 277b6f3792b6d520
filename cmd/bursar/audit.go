package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"bursar/internal/app"
	"bursar/internal/ledger"
	"bursar/internal/proof"
)

type auditCmd struct {
	JSON        bool     `help:"Print the report as JSON."`
	Kept        []string `xor:"keys" placeholder:"FILE" help:"Compare the ledger with what was kept elsewhere: a statement, or what \"bursar checkpoint\" printed. May be given more than once."`
	WithoutKeys bool     `xor:"keys" help:"Audit without the key set. No MAC, signature or account number is checked, so an entry that an attacker wrote is not found."`
}

func (auditCmd) Help() string {
	return "Every journal is followed from its first entry and every row is compared with it, from one consistent view and without holding up a running server. " +
		"The exit code is 0 when the ledger is balanced, and 1 when any check failed. The audit fails without the key set, unless --without-keys is given.\n\n" +
		"A database that was restored to an older state, or that an attacker with the key set rewrote, passes the audit by itself; --kept finds it.\n\n" +
		examples("bursar audit", "bursar audit --kept /mnt/elsewhere/checkpoints --kept october.json", "bursar audit --json | jq '.findings[] | select(.violations != [])'")
}

// Run checks the ledger and reports.
func (c auditCmd) Run(ctx context.Context, e *env) error {
	_, datastore, err := e.open(ctx, app.Inspect)
	if err != nil {
		return err
	}
	defer datastore.Close()
	progress := progressOn(e.err)
	progress("Checking the ledger")
	report, err := c.audit(ctx, datastore)
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

// audit checks the ledger by itself, with the key set, and against what was kept elsewhere.
func (c auditCmd) audit(ctx context.Context, datastore *app.Datastore) (ledger.Report, error) {
	if c.WithoutKeys {
		return datastore.Audit(ctx)
	}
	if err := datastore.OpenKeys(ctx); err != nil {
		return ledger.Report{}, fmt.Errorf("%w. To audit without the key set, so that no MAC, signature or account number is checked, add --without-keys", err)
	}
	report, err := datastore.Audit(ctx)
	if err != nil || len(c.Kept) == 0 {
		return report, err
	}
	finding, err := c.compare(ctx, datastore)
	report.Findings = append(report.Findings, finding)
	return report, err
}

// compare compares the ledger with what was kept elsewhere.
func (c auditCmd) compare(ctx context.Context, datastore *app.Datastore) (ledger.Finding, error) {
	f := ledger.Finding{Name: "ledger-matches-kept", Promise: "The ledger continues each checkpoint and statement that was kept elsewhere."}
	proofs, err := datastore.Proofs(quiet())
	if err != nil {
		return f, err
	}
	for _, path := range c.Kept {
		kept, err := readKept(path)
		if err != nil {
			return f, usageError{fmt.Errorf("--kept %s: %w", path, err)}
		}
		for _, k := range kept {
			mismatches, err := proofs.Mismatches(ctx, k)
			if err != nil {
				return f, fmt.Errorf("--kept %s: %w", path, err)
			}
			for _, mismatch := range mismatches {
				f.Violations = append(f.Violations, ledger.Violation{
					Subject: path, Problem: mismatch, Next: "Restore the database from a backup that goes on from it (docs/tampering.md)",
				})
			}
		}
	}
	f.Violations = f.Violations[:min(len(f.Violations), ledger.MaxViolations)]
	return f, nil
}

func readKept(path string) ([]proof.Kept, error) {
	file, err := os.Open(path) //nolint:gosec // an operator names it
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return proof.ReadKept(file)
}

func writeReport(w io.Writer, r ledger.Report) error {
	passed, failed := "ok    ", "FAILED"
	if isTerminal(w) {
		passed, failed = "✓", "✗"
	}
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Name))
	}
	for _, f := range r.Findings {
		mark := passed
		if len(f.Violations) > 0 {
			mark = failed
		}
		if _, err := fmt.Fprintf(w, "%s %-*s %s\n", mark, width, f.Name, f.Promise); err != nil {
			return err
		}
		for _, violation := range f.Lines() {
			if _, err := fmt.Fprintf(w, "       %s\n", printable(violation)); err != nil {
				return err
			}
		}
		if f.IsFull() {
			if _, err := fmt.Fprintf(w, "       At most %d are listed; there may be more. Mend these, and audit again.\n", ledger.MaxViolations); err != nil {
				return err
			}
		}
	}
	if len(r.Findings) == 1 && !r.Clean() { // a file that is not whole: nothing in it was read
		_, err := fmt.Fprintln(w, "The audit stopped there and checked nothing else. Stop payouts, keep this report and a backup, mend this first, and audit again.")
		return err
	}
	verdict := "The ledger is balanced"
	switch {
	case r.Clean():
	case onlyGatewayDisagrees(r):
		verdict = "The ledger is balanced, but a gateway has reported what conflicts with it. An admin has to look into each line above"
	default:
		verdict = "The ledger is NOT balanced. Stop payouts, keep this report and a backup, and look into each line above"
	}
	if _, err := fmt.Fprintf(w, "%s: %s, %s, %s, %d journal entries.\n",
		verdict, counted(r.Sellers, "seller"), counted(r.Sales, "sale"), counted(r.Payouts, "payout"), r.Entries); err != nil || r.MACsChecked {
		return err
	}
	_, err := fmt.Fprintln(w, "No MAC, signature or account number was checked, so an entry that an attacker wrote may not be found.")
	return err
}

// onlyGatewayDisagrees reports whether a report names nothing but what gateways reported about payouts.
func onlyGatewayDisagrees(r ledger.Report) bool {
	return !slices.ContainsFunc(r.Findings, func(f ledger.Finding) bool { return len(f.Violations) > 0 && f.Name != ledger.GatewayAgrees })
}

func writeReportJSON(w io.Writer, r ledger.Report) error { return writeJSON(w, reportJSON(r)) }

// auditedAll is a report for programs.
type auditedAll struct {
	Clean    bool          `json:"clean"`
	Sellers  int64         `json:"sellers"`
	Sales    int64         `json:"sales"`
	Payouts  int64         `json:"payouts"`
	Entries  int64         `json:"entries"`
	Findings []findingJSON `json:"findings"`
	// MACsChecked is false where the audit had no key set.
	MACsChecked bool `json:"macsChecked"`
}

type findingJSON struct {
	Name       string   `json:"name"`
	Promise    string   `json:"promise"`
	Violations []string `json:"violations"`
	// Details are the violations by their parts.
	Details []violationJSON `json:"details"`
	// MayBeMore says that as many are listed as can be.
	MayBeMore bool `json:"mayBeMore"`
}

type violationJSON struct {
	Seller  string `json:"seller"`
	Subject string `json:"subject"`
	Problem string `json:"problem"`
	Next    string `json:"next"`
}

func reportJSON(r ledger.Report) *auditedAll {
	out := &auditedAll{r.Clean(), r.Sellers, r.Sales, r.Payouts, r.Entries, nil, r.MACsChecked}
	for _, f := range r.Findings {
		details := []violationJSON{}
		for _, v := range f.Violations {
			details = append(details, violationJSON(v))
		}
		out.Findings = append(out.Findings, findingJSON{f.Name, f.Promise, f.Lines(), details, f.IsFull()})
	}
	return out
}

// counted is a number of things, such as "1 seller".
func counted(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
