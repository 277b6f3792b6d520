package api_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
)

// unreadable are bodies that are no JSON object, whatever the endpoint.
var unreadable = map[string]string{
	"nothing":                    ``,
	"blanks":                     "  \n",
	"no JSON":                    `name=Asha`,
	"cut short":                  `{"a":1`,
	"trailing comma":             `{"a":1,}`,
	"single quotes":              `{'a':1}`,
	"comment":                    `{"a":1} // one`,
	"array":                      `[{"a":1}]`,
	"null":                       `null`,
	"text":                       `"a"`,
	"number":                     `1`,
	"second object":              `{"a":1}{"a":1}`,
	"trailing word":              `{"a":1} x`,
	"byte order mark":            "\ufeff{}",
	"invalid UTF-8":              "{\"a\":\"\xff\"}",
	"overlong UTF-8":             "{\"a\":\"\xc0\x80\"}",
	"bare control character":     "{\"a\":\"\x01\"}",
	"half a surrogate pair":      `{"a":"\ud800"}`,
	"wrong half":                 `{"a":"\udc00"}`,
	"half then text":             `{"a":"\ud83dx"}`,
	"half a pair in a name":      `{"\ud800":1}`,
	"repeated name":              `{"a":1,"a":2}`,
	"repeated name, escaped":     `{"a":1,"\u0061":2}`,
	"repeated name, same value":  `{"a":1,"b":2,"a":1}`,
	"repeated name deeper":       `{"a":{"b":1,"b":2}}`,
	"repeated name in a list":    `{"a":[{"b":1,"b":2}]}`,
	"too deep":                   `{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
	"far too deep":               strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
	"leading zero":               `{"a":01}`,
	"not a number":               `{"a":NaN}`,
	"hexadecimal":                `{"a":0x10}`,
	"plus sign":                  `{"a":+1}`,
	"number without its decimal": `{"a":1.}`,
}

// withBody are the endpoints that read a body, and who may call them.
func (h *fixture) withBody() map[string]call {
	seller, admin := h.signUp("Asha", auth.Seller), h.signUp("Ada", auth.Admin)
	return map[string]call{
		"register": {method: "POST", path: "/api/auth/register"},
		"login":    {method: "POST", path: "/api/auth/login"},
		"refresh":  {method: "POST", path: "/api/auth/refresh"},
		"request":  {method: "POST", path: "/api/payouts/request", token: seller.token},
		"bank":     {method: "PUT", path: "/api/bank-account", token: seller.token},
		"sale":     {method: "POST", path: "/api/marketplace/sales", token: h.serviceKey},
		"refund":   {method: "POST", path: "/api/marketplace/sales/s1/refund", token: h.serviceKey},
		"seller":   {method: "PUT", path: "/api/marketplace/sellers/" + seller.id, token: h.serviceKey},
		"resolve":  {method: "POST", path: "/api/admin/bank-accounts/bka_" + seller.id[4:] + "/verification", token: admin.token},
		"access":   {method: "POST", path: "/api/admin/users/" + seller.id + "/access", token: admin.token},
	}
}

func TestUnreadableBodies(t *testing.T) {
	h := openFixture(t)
	for endpoint, c := range h.withBody() {
		for name, body := range unreadable {
			t.Run(endpoint+"/"+name, func(t *testing.T) {
				c.body = body
				h.do(c).wantFailure(t, 400, "invalid_json")
			})
		}
	}
}

func TestBodySize(t *testing.T) {
	const limit = 64 << 10
	h := openFixture(t)
	padded := func(size int) string {
		const empty = `{"pad":""}`
		return `{"pad":"` + strings.Repeat("x", size-len(empty)) + `"}`
	}
	for endpoint, c := range h.withBody() {
		t.Run(endpoint, func(t *testing.T) {
			c.body = padded(limit)
			if a := h.do(c); a.status == 413 {
				t.Error("64 KiB are refused")
			}
			c.body = padded(limit + 1)
			h.do(c).wantFailure(t, 413, "body_too_large")
			c.body = padded(200 << 10)
			h.do(c).wantFailure(t, 413, "body_too_large")
		})
	}
}

// TestBody_Encoding sends JSON under several media types, which are all read, and in encodings that are not.
func TestBody_Encoding(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	for name, tt := range map[string]struct {
		header map[string]string
		want   string
	}{
		"curl -d":            {header("Content-Type", "application/x-www-form-urlencoded"), ""},
		"text":               {header("Content-Type", "text/plain"), ""},
		"no type":            {header("Content-Type", ""), ""},
		"no type at all":     {header("Content-Type", "; charset"), ""},
		"UTF-8":              {header("Content-Type", "application/json; charset=UTF-8"), ""},
		"UTF-8, quoted":      {header("Content-Type", `application/json; charset="utf-8"`), ""},
		"identity":           {header("Content-Encoding", "identity"), ""},
		"Latin 1":            {header("Content-Type", "application/json; charset=iso-8859-1"), "Send it as UTF-8."},
		"UTF-16":             {header("Content-Type", "application/json;charset=utf-16"), "Send it as UTF-8."},
		"gzip":               {header("Content-Encoding", "gzip"), "Send it without Content-Encoding."},
		"identity, and gzip": {header("Content-Encoding", "identity, gzip"), "Send it without Content-Encoding."},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.do(call{method: "POST", path: "/api/payouts/request", token: seller.token, body: `{}`, header: tt.header})
			if tt.want == "" {
				a.wantFailure(t, 400, "invalid_request", "amount") // it was read
			} else if a.wantFailure(t, 415, "unsupported_encoding"); !strings.Contains(a.body, tt.want) {
				t.Errorf("the answer is %s, want %q", a.body, tt.want)
			}
		})
	}
	// A caller without access learns nothing about the body.
	h.do(call{method: "POST", path: "/api/payouts/request", body: `{}`, header: header("Content-Encoding", "gzip")}).wantFailure(t, 401, "invalid_token")
}

func TestBody_TooSlow_TimesOut(t *testing.T) {
	h := openFixture(t)
	server := httptest.NewUnstartedServer(h.handler)
	server.Config.ReadTimeout = 50 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)

	body, rest := io.Pipe()
	t.Cleanup(func() { must(t, rest.Close()) })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/auth/login", body)
	must(t, err)
	go func() { _, _ = rest.Write([]byte(`{"email":`)) }()
	h.send(request, "").wantFailure(t, 408, "request_timeout")
}

// TestBody_WrongTypesAndMissingFields leaves out all required fields, and sends fields of each type that is not theirs.
func TestBody_WrongTypesAndMissingFields(t *testing.T) {
	h := openFixture(t)
	const (
		text, number, flag = "text", "number", "flag"
	)
	values := map[string]string{text: `"text"`, number: `7`, flag: `true`, "object": `{"a":1}`, "list": `["text"]`}
	type fields = map[string]string
	tests := map[string]struct{ required, optional fields }{
		"register": {fields{"name": text, "email": text, "password": text}, fields{"role": text}},
		"login":    {fields{"email": text, "password": text}, nil},
		"refresh":  {fields{"refreshToken": text}, nil},
		"request":  {fields{"amount": number}, fields{"notes": text}},
		"bank":     {fields{"accountHolder": text, "accountNumber": text, "ifsc": text}, nil},
		"sale":     {fields{"saleId": text, "sellerId": text, "amount": number}, fields{"occurredAt": text, "availableAt": text}},
		"refund":   {fields{"refundId": text}, fields{"amount": number}},
		"seller":   {fields{"productsListed": number}, nil},
		"resolve":  {fields{"verified": flag}, fields{"reason": text}},
		"access":   {fields{"role": text, "suspended": flag}, nil},
	}
	endpoints := h.withBody()
	if len(tests) != len(endpoints) {
		t.Fatalf("%d endpoints read a body, and %d are tried", len(endpoints), len(tests))
	}
	for endpoint, test := range tests {
		c := endpoints[endpoint]
		all := maps.Clone(test.required)
		maps.Copy(all, test.optional)

		t.Run(endpoint+"/missing", func(t *testing.T) {
			status, code := 400, "invalid_request"
			if endpoint == "register" {
				status, code = 422, "validation_failed"
			}
			names := slices.Collect(maps.Keys(test.required))
			c.body = `{}`
			h.do(c).wantFailure(t, status, code, names...)
			c.body = nulls(names)
			h.do(c).wantFailure(t, status, code, names...)
			c.body = strings.ToUpper(nulls(names)) // names count with their case
			c.body = strings.ReplaceAll(c.body, "NULL", "1")
			h.do(c).wantFailure(t, status, code, names...)
		})
		for wrong, value := range values {
			t.Run(endpoint+"/"+wrong, func(t *testing.T) {
				var given, want []string
				for name, right := range all {
					if right != wrong {
						want = append(want, name)
						given = append(given, fmt.Sprintf("%q:%s", name, value))
					}
				}
				if len(given) == 0 {
					return // the right type for every field
				}
				if endpoint != "register" { // where a missing field is no lesser problem
					for name, right := range test.required {
						if right == wrong {
							want = append(want, name)
						}
					}
				}
				c.body = "{" + strings.Join(given, ",") + "}"
				h.do(c).wantFailure(t, 400, "invalid_request", want...)
			})
		}
	}
}

func nulls(names []string) string {
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%q:null", name))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
