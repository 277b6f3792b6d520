package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/proof"
)

func TestStatement_Download_Verifies(t *testing.T) {
	h := openFixture(t)
	seller, admin := h.signUp("asha", auth.Seller), h.signUp("root", auth.Admin)
	h.earn(seller, "=order 1", "1000.50")
	published := h.do(call{method: "GET", path: "/.well-known/jwks.json"}).want(t, 200)
	keys, err := proof.ParseKeys([]byte(published.body))
	must(t, err)
	for name, c := range map[string]call{
		"the seller's":        {path: "/api/payouts/statement", token: seller.token},
		"in a spreadsheet":    {path: "/api/payouts/statement?format=csv&from=2026-11-01&to=2026-11-30", token: seller.token},
		"with somebody's id":  {path: "/api/payouts/statement?sellerId=" + admin.id, token: seller.token},
		"with both days":      {path: "/api/payouts/statement?from=2026-11-01&to=2026-11-30", token: seller.token},
		"an admin's look":     {path: "/api/payouts/statement?sellerId=" + seller.id, token: admin.token},
		"until just after it": {path: "/api/payouts/statement?to=2026-11-20T09:30:01Z", token: seller.token},
	} {
		c.method = "GET"
		a := h.do(c).want(t, 200)
		v, err := proof.Verify(strings.NewReader(a.body), keys)
		must(t, err)
		if len(v.Problems) > 0 || v.Seller != seller.id || v.Entries < 1 || !v.Trusted {
			t.Errorf("%s: proven is %+v", name, v)
		}
		disposition, cache := a.header.Get("Content-Disposition"), a.header.Get("Cache-Control")
		if want := `attachment; filename="statement-2026-11-01-to-2026-11-`; !strings.HasPrefix(disposition, want) || cache != "no-store" {
			t.Errorf("%s: the file is %q, kept by %q", name, disposition, cache)
		}
	}
	all := h.do(call{method: "GET", path: "/.well-known/checkpoint-keys.json"}).want(t, 200)
	if keys, err := proof.ParseKeys([]byte(all.body)); err != nil || len(keys) != 1 {
		t.Errorf("the keys of checkpoints are %s, %v", all.body, err)
	}
	if a := h.do(call{method: http.MethodHead, path: "/api/payouts/statement", token: seller.token}); a.status != 200 || a.body != "" {
		t.Errorf("HEAD is answered with %d: %q", a.status, a.body)
	}
}

func TestStatement_WrongUserOrQuery_Refused(t *testing.T) {
	h := openFixture(t)
	seller, buyer, admin := h.signUp("asha", auth.Seller), h.signUp("bela", auth.Buyer), h.signUp("root", auth.Admin)
	for name, tt := range map[string]struct {
		token, query string
		status       int
		code         string
		field        string
	}{
		"nobody":                {"", "", 401, "invalid_token", ""},
		"a buyer":               {buyer.token, "", 403, "forbidden", ""},
		"an empty journal":      {seller.token, "", 404, "no_journal", ""},
		"an admin without whom": {admin.token, "", 422, "validation_failed", "sellerId"},
		"of nobody":             {admin.token, "?sellerId=usr_000000000000000000000000", 404, "no_journal", ""},
		"a strange id":          {admin.token, "?sellerId=1", 422, "validation_failed", "sellerId"},
		"a strange format":      {seller.token, "?format=pdf", 422, "validation_failed", "format"},
		"a strange day":         {seller.token, "?from=2026-02-30", 422, "validation_failed", "from"},
		"an end before":         {seller.token, "?from=2026-11-10&to=2026-11-09", 422, "validation_failed", "to"},
		"a broken query":        {seller.token, "?from=%zz", 400, "invalid_query", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			if tt.field != "" {
				fields = append(fields, tt.field)
			}
			h.do(call{method: "GET", path: "/api/payouts/statement" + tt.query, token: tt.token}).wantFailure(t, tt.status, tt.code, fields...)
		})
	}
}

// TestStatement_Long_Verifies reads a statement of more than 100 kB.
func TestStatement_Long_Verifies(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("asha", auth.Seller)
	for i := range 150 {
		h.earn(seller, strings.Repeat("x", i%50)+time.Duration(i).String(), "10")
	}
	a := h.do(call{method: "GET", path: "/api/payouts/statement", token: seller.token}).want(t, 200)
	v, err := proof.Verify(strings.NewReader(a.body), nil)
	must(t, err)
	if len(v.Problems) > 0 || v.Entries < 300 || len(a.body) < 100_000 {
		t.Errorf("of %d bytes is proven %+v", len(a.body), v)
	}
}

// TestStatement_Tampered_AnsweredAsAnyFailure has an entry changed by hand so that it can't be read.
func TestStatement_Tampered_AnsweredAsAnyFailure(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("asha", auth.Seller)
	h.earn(seller, "order 1", "1000.50")
	h.do(call{method: "GET", path: "/api/payouts/statement", token: seller.token}).want(t, 200)
	h.place.ByHand(t, `UPDATE entries SET after = 'nonsense' WHERE number = 2`)
	a := h.do(call{method: "GET", path: "/api/payouts/statement", token: seller.token})
	a.wantFailure(t, 409, "records_tampered")
	if file := a.header.Get("Content-Disposition"); file != "" {
		t.Errorf("the failure is the file %q", file)
	}
}
