package ledger_test

import (
	"testing"

	"bursar/internal/ledger"
)

func TestReport_Clean(t *testing.T) {
	finding := func(violations int) ledger.Finding {
		return ledger.Finding{Violations: make([]ledger.Violation, violations)}
	}
	for _, tt := range []struct {
		findings []ledger.Finding
		want     bool
	}{
		{nil, true}, {[]ledger.Finding{finding(0), finding(0)}, true}, {[]ledger.Finding{finding(0), finding(1)}, false}, {[]ledger.Finding{finding(1), finding(0)}, false},
	} {
		if got := (ledger.Report{Findings: tt.findings}).Clean(); got != tt.want {
			t.Errorf("%+v is clean: %t", tt.findings, got)
		}
	}
	for n, want := range map[int]bool{0: false, ledger.MaxViolations - 1: false, ledger.MaxViolations: true} {
		if got := finding(n).IsFull(); got != want {
			t.Errorf("with %d violations it is full: %t", n, got)
		}
	}
}
