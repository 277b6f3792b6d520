package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bursar/internal/auth"
)

type batchResult struct {
	SaleID  string            `json:"saleId"`
	Success bool              `json:"success"`
	Code    string            `json:"code"`
	Error   string            `json:"error"`
	Details map[string]string `json:"details"`
}

// batch records sales and returns what became of each.
func (h *fixture) batch(lines ...string) []batchResult {
	h.t.Helper()
	a := h.marketplace("POST", "sales:batch", `{"sales":[`+strings.Join(lines, ",")+`]}`).want(h.t, 200)
	var body struct {
		Data struct{ Results []batchResult }
	}
	must(h.t, json.Unmarshal([]byte(a.body), &body))
	return body.Data.Results
}

func TestSaleBatch(t *testing.T) {
	h := openFixture(t)
	asha := h.newSeller("17")
	bina := h.signUp("Bina", auth.Seller)
	line := func(id, seller, amount string) string {
		return fmt.Sprintf(`{"saleId":%q,"sellerId":%q,"amount":%s,"occurredAt":"2026-11-20T09:30:00Z"}`, id, seller, amount)
	}
	lines := []string{
		line("s1", "ext:17", "100"), line("s2", bina.id, "200"), line("s3", "ext:nobody", "1"), line("s4", "usr_"+strings.Repeat("0", 24), "1"),
		line("s5", "ext:17", "-1"), `{"saleId":"s6","sellerId":"ext:17"}`, `7`, line("s1", asha.id, "100"), line("s1", "ext:17", "101"),
		`{"saleId":"s7","sellerId":"ext:17","amount":1,"occurredAt":"2026-11-20T09:30:00Z","availableAt":"2026-11-19T09:30:00Z"}`, line("s8", "ext:17", "300"),
	}
	want := []string{
		"s1 true", "s2 true", "s3 seller_not_found", "s4 seller_not_found", "s5 validation_failed amount", "s6 invalid_request amount", " invalid_json",
		"s1 true", "s1 sale_conflict", "s7 validation_failed availableAt", "s8 true",
	}
	for range 2 { // the same again changes nothing
		for i, r := range h.batch(lines...) {
			got := r.SaleID + " " + r.Code
			if r.Success {
				got += "true"
			} else if r.Error == "" {
				t.Errorf("line %d says nothing: %+v", i, r)
			}
			for field := range r.Details {
				got += " " + field
			}
			if got != want[i] {
				t.Errorf("line %d is %q, want %q", i, got, want[i])
			}
		}
		for seller, pending := range map[string]string{"ext:17": "400", bina.id: "200"} {
			if got := fmt.Sprint(h.marketplace("GET", "sellers/"+seller+"/balance", "").want(t, 200).read(t, "data.pendingBalance")); got != pending {
				t.Errorf("%s has %s pending, want %s", seller, got, pending)
			}
		}
	}
	// The single route and the batch are one.
	h.marketplace("POST", "sales", line("s8", asha.id, "300")).want(t, 200)
	h.marketplace("POST", "sales", line("s8", asha.id, "301")).wantFailure(t, 409, "sale_conflict")

	for body, detail := range map[string]string{`{"sales":[]}`: "sales", `{"sales":[` + strings.Repeat("1,", 500) + `1]}`: "sales"} {
		h.marketplace("POST", "sales:batch", body).wantFailure(t, 422, "validation_failed", detail)
	}
	for _, body := range []string{`{}`, `{"sales":{}}`, `{"sales":null}`} {
		h.marketplace("POST", "sales:batch", body).wantFailure(t, 400, "invalid_request", "sales")
	}
	h.marketplace("POST", "sales:batch", `{"sales":[],"x":"`+strings.Repeat("x", 1<<20)+`"}`).wantFailure(t, 413, "body_too_large")
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}

// TestSaleBatch_Full records as many sales as there may be, all fields as long as they can be. One that is refused after it was
// added, because its seller's totals are full, harms none.
func TestSaleBatch_Full(t *testing.T) {
	h := openFixture(t)
	for _, externalID := range []string{"full", "other"} {
		h.newSeller(externalID)
	}
	var lines []string
	for i := range 500 {
		seller := "other"
		amount := "1"
		if i < 130 { // two more than the totals can count
			seller, amount = "full", "90071992547409.91"
		}
		lines = append(lines, fmt.Sprintf(`{"saleId":"%s%03d","sellerId":"ext:%s","amount":%s,"occurredAt":"2026-11-20T09:30:00.000000Z","availableAt":"2026-11-20T09:30:00.000000Z"}`,
			strings.Repeat("ü", 125), i, seller, amount))
	}
	refused := 0
	for i, r := range h.batch(lines...) {
		switch {
		case r.Code == "total_too_large" && i < 130:
			refused++
		case !r.Success:
			t.Fatalf("line %d is %+v", i, r)
		}
	}
	if refused != 2 {
		t.Errorf("%d sales were refused, want 2", refused)
	}
	if got := fmt.Sprint(h.marketplace("GET", "sellers/ext:other/balance", "").want(t, 200).read(t, "data.pendingBalance")); got != "370" {
		t.Errorf("the other seller has %s pending", got)
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %s, %v", fmt.Sprint(report.Findings), err)
	}
}
