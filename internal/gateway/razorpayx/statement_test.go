package razorpayx_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
)

var (
	statementFrom = time.Unix(1545300000, 0)
	statementTo   = time.Unix(1545400000, 0)
)

func TestLines_ReadsPage(t *testing.T) {
	var asked string
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery
		saying(http.StatusOK, sample(t, "transactions"))(w, r)
	}), nil)
	page, err := c.Lines(t.Context(), statementFrom, statementTo, "200.")
	if err != nil || page.Next != "202." {
		t.Fatalf("the next page begins at %q, %v", page.Next, err)
	}
	got := page.Lines
	if want := "GET /v1/transactions?account_number=" + ownAccount + "&count=100&from=1545300000&skip=200&to=1545400000"; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	want := []gateway.Line{
		{
			ID: "txn_00000000000002", At: time.Unix(1545382870, 0).UTC(), Debit: 1000590, Balance: 99999998999410, HasBalance: true, Currency: "INR",
			Kind: gateway.LinePayout, RawKind: "payout", SourceID: "pout_00000000000001", Transfer: "pout_00000000000001", Reference: reference,
			Amount: 1000000, Fees: 590, Tax: 90, UTR: "523223155921",
		},
		{
			ID: "txn_00000000000001", At: time.Unix(1545380000, 0).UTC(), Credit: 100000000000000, Balance: 100000000000000, HasBalance: true,
			Currency: "INR", Kind: gateway.LineOther, RawKind: "bank_transfer", SourceID: "bt_00000000000001", Amount: 100000000000000,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lines differ (-want +got):\n%s", diff)
	}
}

// The sources have forms that the vendor does not document.
func TestLines_IdentifyPayout(t *testing.T) {
	const other = "pyt_9Tz3aB9xQ2mK7LpW4sYd1eHc"
	for source, want := range map[string][2]string{
		`{"id":"pout_1","entity":"payout","notes":{"payout_id":"` + reference + `"}}`:            {"pout_1", reference},
		`{"id":"pout_1","entity":"payout","notes":[]}`:                                           {"pout_1", ""},
		`{"id":"rvrsl_1","entity":"reversal","payout_id":"pout_1"}`:                              {"pout_1", ""},
		`{"id":"rvrsl_1","entity":"reversal","payout":{"id":"pout_1","notes":["x"]}}`:            {"pout_1", ""},
		`{"id":"rvrsl_1","entity":"reversal","reference_id":"` + reference + `"}`:                {"", reference},
		`{"id":"rvrsl_1","payouts":["pout_1","pout_2"]}`:                                         {"", ""}, // which of them?
		`{"id":"rvrsl_1","of":"pout_1","again":"pout_1"}`:                                        {"pout_1", ""},
		`{"id":"pout_1","entity":"payout","linked":"pout_2","about":"` + reference + `"}`:        {"pout_1", reference},
		`{"id":"pout_1","notes":{"payout_id":"` + reference + `","instead_of":"` + other + `"}}`: {"pout_1", reference},
		`{"id":"pout_ 1","entity":"payout"}`:                                                     {"", ""},
		`{"id":"bt_1","entity":"bank_transfer"}`:                                                 {"", ""},
		`null`:                                                                                   {"", ""},
		`[]`:                                                                                     {"", ""},
		`"pout_1"`:                                                                               {"pout_1", ""},
	} {
		body := fmt.Sprintf(`{"entity":"collection","count":1,"items":[{"id":"txn_1","debit":5,"created_at":1545380000,"source":%s}]}`, source)
		c := newClient(t, serving(t, saying(http.StatusOK, body)), nil)
		got, err := c.Lines(t.Context(), statementFrom, statementTo, "")
		if err != nil || len(got.Lines) != 1 {
			t.Errorf("%s: %v, %v", source, got, err)
			continue
		}
		if l := got.Lines[0]; l.Transfer != want[0] || l.Reference != want[1] || l.HasBalance {
			t.Errorf("%s names %q and %q, want %q", source, l.Transfer, l.Reference, want)
		}
	}
}

func TestLines_InvalidStatement_IsError(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		body, want string
	}{
		"no list":         {http.StatusOK, `{"entity":"payout"}`, "holds no list"},
		"no items":        {http.StatusOK, `{"entity":"collection"}`, "holds no list"},
		"html":            {http.StatusOK, `<html>`, "not readable"},
		"refused":         {http.StatusBadRequest, sample(t, "error_server"), "the gateway answered 400"},
		"another account": {http.StatusOK, `{"entity":"collection","items":[{"id":"txn_1","account_number":"1112220000000000","debit":1}]}`, "is of another account"},
		"no line":         {http.StatusOK, `{"entity":"collection","items":[{"id":"pout_1"}]}`, "what is no line"},
	} {
		_, err := newClient(t, serving(t, saying(tt.status, tt.body)), nil).Lines(t.Context(), statementFrom, statementTo, "")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "1112220000000000") || strings.Contains(err.Error(), ownAccount) {
			t.Errorf("%s: %v, want one that says %q", name, err, tt.want)
		}
	}
	_, err := newClient(t, serving(t, saying(http.StatusTooManyRequests, sample(t, "error_throttled"))), nil).Lines(t.Context(), statementFrom, statementTo, "")
	if _, isRefused := errors.AsType[*razorpayx.RefusedError](err); !isRefused {
		t.Errorf("throttled: %v", err)
	}
}
