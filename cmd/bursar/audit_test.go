package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"bursar/internal/ledger"
)

// TestReport_SaysWhereThereMayBeMore reports as many violations as are listed, and one less.
func TestReport_SaysWhereThereMayBeMore(t *testing.T) {
	for _, n := range []int{ledger.MaxViolations - 1, ledger.MaxViolations} {
		f := ledger.Finding{Name: "sales-match-journal", Promise: "Each sale is what its entries fold to."}
		for range n {
			f.Violations = append(f.Violations, ledger.Violation{Seller: "usr_1", Problem: "the amount is wrong"})
		}
		r := ledger.Report{Findings: []ledger.Finding{f}}
		var text, data bytes.Buffer
		if err := writeReport(&text, r); err != nil {
			t.Fatal(err)
		}
		if err := writeReportJSON(&data, r); err != nil {
			t.Fatal(err)
		}
		var report auditedAll
		if err := json.Unmarshal(data.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		full := n == ledger.MaxViolations
		if strings.Contains(text.String(), "there may be more") != full || report.Findings[0].MayBeMore != full {
			t.Errorf("%d violations are reported as\n%s\n%s", n, text.String(), data.String())
		}
	}
}

// TestReport_SaysWhereTheAuditStopped reports a file that is not whole, of which nothing was counted, and one row that is wrong.
func TestReport_SaysWhereTheAuditStopped(t *testing.T) {
	file := ledger.Finding{Name: "file-is-sound", Promise: "The database's file is whole.", Violations: []ledger.Violation{{Problem: "a row is missing from an index"}}}
	for _, r := range []ledger.Report{
		{Findings: []ledger.Finding{file}},
		{Findings: []ledger.Finding{{Name: "sales-match-journal"}, file}, Sellers: 3},
	} {
		var text bytes.Buffer
		if err := writeReport(&text, r); err != nil {
			t.Fatal(err)
		}
		stopped := len(r.Findings) == 1
		if strings.Contains(text.String(), "checked nothing else") != stopped || strings.Contains(text.String(), ": 3 sellers") == stopped {
			t.Errorf("%d findings are reported as\n%s", len(r.Findings), text.String())
		}
	}
}

// TestAudit_Verdict tells books that are wrong from a gateway that says something else.
func TestAudit_Verdict(t *testing.T) {
	violated := func(name string) ledger.Finding {
		return ledger.Finding{Name: name, Promise: "It holds.", Violations: []ledger.Violation{{Subject: "pyt_1", Problem: "it does not"}}}
	}
	held := ledger.Finding{Name: "payouts-match-journal", Promise: "It holds."}
	for want, findings := range map[string][]ledger.Finding{
		"The ledger is balanced: ":                             {held, {Name: ledger.GatewayAgrees}},
		"The ledger is balanced, but a gateway has reported ":  {held, violated(ledger.GatewayAgrees)},
		"The ledger is NOT balanced. Stop payouts, keep this ": {violated(held.Name), violated(ledger.GatewayAgrees)},
	} {
		var text strings.Builder
		if err := writeReport(&text, ledger.Report{Findings: findings}); err != nil || !strings.Contains(text.String(), want) {
			t.Errorf("the audit says, with error %v:\n%s\nwant %q", err, text.String(), want)
		}
	}
}
