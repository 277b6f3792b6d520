package reconcile

import (
	"testing"
	"time"

	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestFeeOf_ToldByAnotherLine excuses a line that returns money from telling its fee, and none that takes money.
func TestFeeOf_ToldByAnotherLine(t *testing.T) {
	taken := Line{ID: "taken", Debit: 1010, Fees: 10}
	for _, tt := range []struct {
		line  Line
		right bool
	}{
		{taken, true},
		{Line{ID: "returned", Credit: 1010}, true},
		{Line{ID: "returned without the fee", Credit: 1000}, true},
		{Line{ID: "returned with more", Credit: 1011}, false},
		{Line{ID: "taken again", Debit: 1010}, false},
	} {
		d := caseFile{p: payout.Payout{Amount: 1000}, lines: []Line{taken, tt.line}}
		if fee, right := d.feeOf(tt.line); right != tt.right {
			t.Errorf("%s: the fee %d may be: %t, want %t", tt.line.ID, fee, right, tt.right)
		}
	}
}

// TestJudge_ReturnNotRead does not miss the line of a return before the statement was read up to that return.
func TestJudge_ReturnNotRead(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	taken := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	ended := taken.Add(time.Hour)
	d := caseFile{
		p:     payout.Payout{ID: "pyt_1", Amount: 1000, State: payout.Returned, RequestedAt: taken, SentAt: taken, CompletedAt: taken, EndedAt: ended},
		lines: []Line{{ID: "taken", Debit: 1000, At: taken, Currency: inr.Code()}},
		after: ended.Add(time.Hour), currency: inr,
	}
	for _, tt := range []struct {
		to     time.Time
		judged bool
		found  int
	}{
		{ended.Add(-time.Second), false, 0},
		{ended, true, 1},
	} {
		d.read = coverage{{taken.Add(-time.Hour), tt.to}}
		found, judged := d.judge()
		if judged != tt.judged || len(found) != tt.found {
			t.Errorf("read up to %s it is judged: %t, and differs in %v; want %t and %d", tt.to, judged, found, tt.judged, tt.found)
		}
	}
}

// TestBegun_AllowsForClocks looks for the debit from ten minutes before the first moment that the gateway can have taken it.
func TestBegun_AllowsForClocks(t *testing.T) {
	asked := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	sent, processed := asked.Add(time.Minute), asked.Add(2*time.Minute)
	for name, tt := range map[string]struct {
		p    payout.Payout
		want time.Time
	}{
		"asked for":           {payout.Payout{RequestedAt: asked}, asked},
		"sent":                {payout.Payout{RequestedAt: asked, SentAt: sent}, sent},
		"sent and processed":  {payout.Payout{RequestedAt: asked, SentAt: sent, ProcessedAt: processed}, sent},
		"processed, and sent": {payout.Payout{RequestedAt: asked, SentAt: processed, ProcessedAt: sent}, sent},
		"processed":           {payout.Payout{RequestedAt: asked, ProcessedAt: processed}, processed},
	} {
		if got := begun(tt.p); !got.Equal(tt.want.Add(-10 * time.Minute)) {
			t.Errorf("%s: it began at %s, want ten minutes before %s", name, got, tt.want)
		}
	}
}
