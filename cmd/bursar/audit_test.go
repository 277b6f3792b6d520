package main

import (
	"strings"
	"testing"

	"bursar/internal/ledger"
)

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
