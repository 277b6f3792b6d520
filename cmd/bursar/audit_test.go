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
