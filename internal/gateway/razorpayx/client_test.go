package razorpayx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
)

const (
	keySecret     = "a-secret-that-nobody-may-see"
	ownAccount    = "7878780080316316"
	reference     = "pyt_0Tz3aB9xQ2mK7LpW4sYd1eHc"
	sellerID      = "usr_0Tz3aB9xQ2mK7LpW4sYd1eHc"
	bankAccountID = "bka_0Tz3aB9xQ2mK7LpW4sYd1eHc"
	accountNumber = "50100012345678"
)

// newClient makes a client of the gateway at an address.
func newClient(t *testing.T, baseURL string, change func(*razorpayx.Options)) *razorpayx.Client {
	t.Helper()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	o := razorpayx.Options{
		BaseURL: baseURL, KeyID: "rzp_test_key", KeySecret: keySecret, AccountNumber: ownAccount,
		Currency: inr, Timeout: 5 * time.Second, Now: time.Now,
	}
	if change != nil {
		change(&o)
	}
	c, err := razorpayx.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gateway serves a handler at an address of its own.
func serving(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// saying answers every call alike.
func saying(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func sample(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestPrepare_BodyIsDeterministic(t *testing.T) {
	c := newClient(t, "https://gateway.example/v1", nil)
	order := gateway.Order{
		Reference: reference, Beneficiary: "fa_00000000000001", Amount: 60050, Currency: "INR", Rail: "IMPS",
		Seller: sellerID, Account: bankAccountID, Gross: 60550,
	}
	want := `{"account_number":"7878780080316316","fund_account_id":"fa_00000000000001","amount":60050,"currency":"INR",` +
		`"mode":"IMPS","purpose":"payout","queue_if_low_balance":true,"reference_id":"pyt_0Tz3aB9xQ2mK7LpW4sYd1eHc",` +
		`"narration":"pyt0Tz3aB9xQ2mK7LpW4sYd1eHc","notes":{"amount_with_fee":"60550",` +
		`"bank_account_id":"bka_0Tz3aB9xQ2mK7LpW4sYd1eHc","payout_id":"pyt_0Tz3aB9xQ2mK7LpW4sYd1eHc","seller_id":"usr_0Tz3aB9xQ2mK7LpW4sYd1eHc"}}`
	for range 2 {
		got, err := c.Prepare(order)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	}
}

func TestPrepare_InvalidOrder_IsError(t *testing.T) {
	c := newClient(t, "https://gateway.example/v1", nil)
	good := gateway.Order{
		Reference: reference, Beneficiary: "fa_00000000000001", Amount: 100, Currency: "INR", Rail: "NEFT",
		Seller: sellerID, Account: bankAccountID, Gross: 100,
	}
	if _, err := c.Prepare(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*gateway.Order){
		"no reference":             func(o *gateway.Order) { o.Reference = "" },
		"a reference too long":     func(o *gateway.Order) { o.Reference = strings.Repeat("a", 37) },
		"no beneficiary":           func(o *gateway.Order) { o.Beneficiary = "" },
		"less than a rupee":        func(o *gateway.Order) { o.Amount = 99 },
		"another currency":         func(o *gateway.Order) { o.Currency = "USD" },
		"no mode":                  func(o *gateway.Order) { o.Rail = "" },
		"nobody's":                 func(o *gateway.Order) { o.Seller = "" },
		"a seller too long":        func(o *gateway.Order) { o.Seller = strings.Repeat("a", 257) },
		"no account":               func(o *gateway.Order) { o.Account = "" },
		"less with the fee":        func(o *gateway.Order) { o.Gross = 99 },
		"nothing known of the fee": func(o *gateway.Order) { o.Gross = 0 },
	} {
		o := good
		spoil(&o)
		if body, err := c.Prepare(o); err == nil {
			t.Errorf("%s: prepared %s", name, body)
		}
	}
}

func TestSubmitSortsEveryAnswer(t *testing.T) {
	html := "<!doctype html><h1>Bad gateway</h1>"
	for name, test := range map[string]struct {
		status      int
		body        string
		wantOutcome gateway.SubmitOutcome
		wantCode    string
	}{
		"processing":             {200, sample(t, "payout_processing"), gateway.Accepted, ""},
		"queued":                 {200, sample(t, "payout_queued"), gateway.Accepted, ""},
		"created with 201":       {201, sample(t, "payout_processing"), gateway.Accepted, ""},
		"fields of other types":  {200, `{"id":"pout_00000000000001","status":"processing","fees":"590","notes":[],"status_details":null}`, gateway.Accepted, ""},
		"success without an id":  {200, `{"entity":"payout","status":"processing"}`, gateway.Unclear, "unreadable_answer"},
		"success without status": {200, `{"id":"pout_00000000000001"}`, gateway.Unclear, "unreadable_answer"},
		"success in HTML":        {200, html, gateway.Unclear, "unreadable_answer"},
		"success of nothing":     {200, "", gateway.Unclear, "unreadable_answer"},
		"success of null":        {200, "null", gateway.Unclear, "unreadable_answer"},
		"success cut short":      {200, sample(t, "payout_processing")[:200], gateway.Unclear, "unreadable_answer"},
		"redirect":               {302, "", gateway.Unclear, "gateway_error"},
		"refused":                {400, sample(t, "error_amount"), gateway.Refused, "input_validation_failed"},
		"refused with 422":       {422, sample(t, "error_amount"), gateway.Refused, "input_validation_failed"},
		"refused with 404":       {404, sample(t, "error_unknown_id"), gateway.Refused, "refused"},
		"400 in HTML":            {400, html, gateway.Unclear, "unreadable_answer"},
		"400 of an empty error":  {400, `{"error":{}}`, gateway.Unclear, "unreadable_answer"},
		"400 of a server error":  {400, sample(t, "error_server"), gateway.Unclear, "gateway_error"},
		"key with another body":  {400, sample(t, "error_other_body"), gateway.Unclear, "key_reused"},
		"wrong key":              {401, sample(t, "error_authentication"), gateway.NotTaken, "authentication_failed"},
		"400 about the key":      {400, sample(t, "error_authentication"), gateway.NotTaken, "authentication_failed"},
		"forbidden":              {403, html, gateway.NotTaken, "forbidden"},
		"address not allowed":    {400, sample(t, "error_address"), gateway.NotTaken, "address_not_allowed"},
		"wrong base address":     {400, sample(t, "error_unknown_url"), gateway.NotTaken, "wrong_base_address"},
		"wrong debit account":    {400, sample(t, "error_debit_account"), gateway.NotTaken, "debit_account_invalid"},
		"debit account by field": {400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"The format is invalid.","field":"account_number"}}`, gateway.NotTaken, "debit_account_invalid"},
		"400 of the bank":        {400, `{"error":{"code":"GATEWAY_ERROR","description":"The bank is not there."}}`, gateway.Unclear, "gateway_error"},
		"400 for their reason":   {400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Try again.","reason":"server_error"}}`, gateway.Unclear, "gateway_error"},
		"not enough balance":     {400, sample(t, "error_low_balance"), gateway.NotTaken, "insufficient_funds"},
		"throttled":              {429, sample(t, "error_throttled"), gateway.NotTaken, "throttled"},
		"throttled in HTML":      {429, html, gateway.NotTaken, "throttled"},
		"conflict":               {409, sample(t, "error_throttled"), gateway.Unclear, "in_flight"},
		"teapot":                 {418, html, gateway.Unclear, "gateway_error"},
		"server error":           {500, sample(t, "error_server"), gateway.Unclear, "gateway_error"},
		"bad gateway":            {502, html, gateway.Unclear, "gateway_error"},
		"unavailable":            {503, "", gateway.Unclear, "gateway_error"},
		"gateway timeout":        {504, "", gateway.Unclear, "gateway_error"},
		"a mebibyte too much":    {200, strings.Repeat(" ", 1<<20) + sample(t, "payout_processing"), gateway.Unclear, "answer_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, serving(t, saying(test.status, test.body)), nil)
			got := c.Submit(t.Context(), reference, "{}")
			if got.Outcome != test.wantOutcome || got.ReasonCode != test.wantCode {
				t.Errorf("got outcome %d, code %q; want %d, %q", got.Outcome, got.ReasonCode, test.wantOutcome, test.wantCode)
			}
			if (got.Reason == "") != (got.Outcome == gateway.Accepted) {
				t.Errorf("reason %q of outcome %d", got.Reason, got.Outcome)
			}
		})
	}
}

func TestSubmit_SendsKeyAndExactBody(t *testing.T) {
	const body = `{"amount": 100 , "reference_id":"x"}`
	var calls atomic.Int64
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		id, secret, _ := r.BasicAuth()
		sent, _ := io.ReadAll(r.Body)
		got := []string{r.Method, r.URL.String(), r.Header.Get("X-Payout-Idempotency"), r.Header.Get("Content-Type"), id, secret, string(sent)}
		want := []string{"POST", "/v1/payouts", reference, "application/json", "rzp_test_key", keySecret, body}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		saying(200, sample(t, "payout_processing"))(w, r)
	}), nil)
	if got := c.Submit(t.Context(), reference, body); got.Outcome != gateway.Accepted {
		t.Errorf("outcome %d: %s", got.Outcome, got.Reason)
	}
	if calls.Load() != 1 {
		t.Errorf("sent %d times", calls.Load())
	}
}

func TestSubmit_Redirect_NotFollowed(t *testing.T) {
	var calls atomic.Int64
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/v1/elsewhere", http.StatusTemporaryRedirect)
	}), nil)
	if got := c.Submit(t.Context(), reference, "{}"); got.Outcome != gateway.Unclear {
		t.Errorf("outcome %d", got.Outcome)
	}
	if calls.Load() != 1 {
		t.Errorf("called %d times", calls.Load())
	}
}

func TestSubmit_Throttled_ReportsRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-3":                            0,
		"soon":                          0,
		"999999":                        time.Hour,
		"Fri, 20 Nov 2026 10:00:30 GMT": 30 * time.Second,
		"Fri, 20 Nov 2026 09:00:00 GMT": 0,
	} {
		c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", header)
			saying(429, sample(t, "error_throttled"))(w, r)
		}), func(o *razorpayx.Options) { o.Now = func() time.Time { return now } })
		got := c.Submit(t.Context(), reference, "{}")
		if got.Outcome != gateway.NotTaken || got.RetryAfter != want {
			t.Errorf("Retry-After %q: outcome %d, wait %s; want %s", header, got.Outcome, got.RetryAfter, want)
		}
	}
}

// Once a request was sent, the gateway may have accepted it, even if no answer arrives.
func TestSubmit_NoCompleteAnswer_Unclear(t *testing.T) {
	patient := make(chan struct{})
	t.Cleanup(func() { close(patient) })
	for name, h := range map[string]http.HandlerFunc{
		"cut before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut within the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2000")
			_, _ = io.WriteString(w, `{"id":"pout_00000000000001","status":"processing"}`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"never answered": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-patient:
			case <-r.Context().Done():
			}
		},
		"switched to another protocol": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn) // says nothing until the client closes
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, serving(t, h), func(o *razorpayx.Options) { o.Timeout = 300 * time.Millisecond })
			if got := c.Submit(t.Context(), reference, "{}"); got.Outcome != gateway.Unclear || got.ReasonCode == "" {
				t.Errorf("outcome %d, code %q", got.Outcome, got.ReasonCode)
			}
		})
	}
}

func TestSubmit_HTTP2Aborted_Unclear(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the call came over %s", r.Proto)
		}
		panic(http.ErrAbortHandler)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, func(o *razorpayx.Options) { o.Transport = server.Client().Transport.(*http.Transport) })
	if got := c.Submit(t.Context(), reference, "{}"); got.Outcome != gateway.Unclear {
		t.Errorf("outcome %d, code %q", got.Outcome, got.ReasonCode)
	}
}

func TestSubmit_NothingSent_NotTaken(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tls := httptest.NewUnstartedServer(saying(200, "{}"))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)

	for name, test := range map[string]struct {
		ctx  context.Context //nolint:containedctx // that it has ended is what the case is about
		base string
	}{
		"nobody listens":         {t.Context(), closed.URL},
		"the context has ended":  {ended, serving(t, saying(200, sample(t, "payout_processing")))},
		"an unknown certificate": {t.Context(), tls.URL},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, test.base, nil)
			if got := c.Submit(test.ctx, reference, "{}"); got.Outcome != gateway.NotTaken {
				t.Errorf("outcome %d, code %q: %s", got.Outcome, got.ReasonCode, got.Reason)
			}
		})
	}
}

func TestRateIsHonoured(t *testing.T) {
	var calls atomic.Int64
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		saying(200, sample(t, "payout_processing"))(w, r)
	}), func(o *razorpayx.Options) {
		turns := 1
		o.Turn = func(context.Context) error {
			if turns--; turns < 0 {
				return errors.New("no turn is near")
			}
			return nil
		}
	})
	if got := c.Submit(t.Context(), reference, "{}"); got.Outcome != gateway.Accepted {
		t.Fatalf("first: outcome %d", got.Outcome)
	}
	got := c.Submit(t.Context(), reference, "{}")
	if got.Outcome != gateway.NotTaken || got.ReasonCode != "rate_limited" || calls.Load() != 1 {
		t.Errorf("second: outcome %d, code %q, %d calls", got.Outcome, got.ReasonCode, calls.Load())
	}
}

func TestFetch_RemovesZeroCharacters(t *testing.T) {
	odd := strings.Replace(sample(t, "payout_processed"), `"523223155921"`, `"52\u000032\\u00003155921"`, 1)
	got, err := newClient(t, serving(t, saying(200, odd)), nil).Fetch(t.Context(), "pout_00000000000001")
	if want := `5232\u00003155921`; err != nil || got.UTR != want {
		t.Errorf("UTR %q, error %v; want %q", got.UTR, err, want)
	}
}

func TestReports(t *testing.T) {
	for file, want := range map[string]gateway.Report{
		"payout_processing": {Progress: gateway.InProgress, RawStatus: "processing", ReasonCode: "payout_bank_processing", Reason: "The bank is working on the transfer."},
		"payout_queued":     {Progress: gateway.Queued, RawStatus: "queued", ReasonCode: "low_balance", Reason: "The marketplace's account is being topped up; the transfer goes out then."},
		"payout_processed":  {Progress: gateway.Paid, RawStatus: "processed", ReasonCode: "payout_processed", UTR: "523223155921"},
		"payout_reversed":   {Progress: gateway.Reversed, RawStatus: "reversed", ReasonCode: "bank_account_closed", Reason: "The bank account is closed. Register another bank account."},
	} {
		want.GatewayID, want.Reference, want.Amount = "pout_00000000000001", reference, 1_000_000
		want.Beneficiary, want.Currency = "fa_00000000000001", "INR"
		want.MadeAt = time.Date(2018, 12, 21, 9, 1, 10, 0, time.UTC)
		c := newClient(t, serving(t, saying(200, sample(t, file))), nil)
		got, err := c.Fetch(t.Context(), "pout_00000000000001")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// Each call that returns a report is answered by a gateway that paid another account in another currency, and by one
// that omits both.
func TestReport_HasBeneficiaryAndCurrency(t *testing.T) {
	const told = `"fund_account_id":"fa_00000000000009","currency":"USD"`
	for said, want := range map[string][2]string{
		told:                                     {"fa_00000000000009", "USD"},
		`"fund_account_id":"","currency":""`:     {"", ""},
		`"fund_account_id":null,"currency":null`: {"", ""},
		`"narration":"x"`:                        {"", ""},
		`"fund_account_id":7,"currency":{}`:      {"", ""},
		`"currency":"inr","fund_account_id":"` + strings.Repeat("fa_", 999) + `"`: {strings.Repeat("fa_", 999)[:64], "INR"},
	} {
		body := `{"id":"pout_00000000000001","reference_id":"` + reference + `","amount":100,"status":"processed",` + said + `}`
		c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == "/v1/payouts" {
				saying(200, `{"entity":"collection","items":[`+body+`]}`)(w, r)
				return
			}
			saying(200, body)(w, r)
		}), nil)
		for name, ask := range map[string]func() (gateway.Report, error){
			"submit": func() (gateway.Report, error) { return c.Submit(t.Context(), reference, "{}").Report, nil },
			"fetch":  func() (gateway.Report, error) { return c.Fetch(t.Context(), "pout_00000000000001") },
			"cancel": func() (gateway.Report, error) { return c.Cancel(t.Context(), "pout_00000000000001") },
			"find":   func() (gateway.Report, error) { return c.Find(t.Context(), reference) },
			"list":   func() (gateway.Report, error) { return first(c.Transfers(t.Context(), time.Time{}, "")) },
			"return": func() (gateway.Report, error) { return first(c.Reversed(t.Context(), time.Time{}, "")) },
		} {
			got, err := ask()
			if err != nil || got.Reference != reference || got.Beneficiary != want[0] || got.Currency != want[1] {
				t.Errorf("%s, %.60s: %+v, %v; want %q", name, said, got, err, want)
			}
		}
	}
}

func first(page gateway.TransferPage, err error) (gateway.Report, error) {
	if err != nil || len(page.Transfers) == 0 {
		return gateway.Report{}, err
	}
	return page.Transfers[0].Report, nil
}

func TestFetch_MapsEveryStatus(t *testing.T) {
	for status, want := range map[string]gateway.Progress{
		"pending": gateway.InProgress, "scheduled": gateway.InProgress, "processing": gateway.InProgress,
		"queued": gateway.Queued, "processed": gateway.Paid, "reversed": gateway.Reversed, "failed": gateway.Failed,
		"rejected": gateway.Failed, "cancelled": gateway.Cancelled, "on_the_moon": gateway.Unrecognised,
	} {
		body := `{"id":"pout_00000000000001","reference_id":"r","status":"` + status + `","notes":[],"status_details":null,"error":{"code":"NA"}}`
		got, err := newClient(t, serving(t, saying(200, body)), nil).Fetch(t.Context(), "pout_00000000000001")
		if err != nil || got.Progress != want {
			t.Errorf("%s: %s, %v; want %s", status, got.Progress, err, want)
		}
		ended := want == gateway.Reversed || want == gateway.Failed || want == gateway.Cancelled
		if ended == (got.Reason == "") {
			t.Errorf("%s: reason %q", status, got.Reason)
		}
	}
}

func TestFind_UnknownTransferOnlyForCompleteList(t *testing.T) {
	other := strings.ReplaceAll(sample(t, "payouts"), reference, "pyt_another")
	for name, test := range map[string]struct {
		status      int
		body        string
		wantUnknown bool
	}{
		"empty list":          {200, sample(t, "payouts_none"), true},
		"others alone":        {200, other, true},
		"a list of nothing":   {200, `{"entity":"collection"}`, false},
		"no list":             {200, `{}`, false},
		"HTML":                {200, "<html>", false},
		"server error":        {500, sample(t, "error_server"), false},
		"a wrong path":        {400, sample(t, "error_unknown_url"), false},
		"a full page of none": {200, `{"entity":"collection","items":[` + strings.Repeat(`{"id":"pout_x"},`, 99) + `{"id":"pout_x"}]}`, false},
		"two of the same":     {200, `{"entity":"collection","items":[{"id":"pout_1","reference_id":"` + reference + `","status":"processed"},{"id":"pout_2","reference_id":"` + reference + `","status":"processed"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, serving(t, saying(test.status, test.body)), nil)
			_, err := c.Find(t.Context(), reference)
			if err == nil || errors.Is(err, gateway.ErrUnknownTransfer) != test.wantUnknown {
				t.Errorf("got %v, want unknown %t", err, test.wantUnknown)
			}
		})
	}
}

func TestFind_QueriesByReference(t *testing.T) {
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		got := []string{r.Method, r.URL.Path, q.Get("account_number"), q.Get("reference_id")}
		if diff := cmp.Diff([]string{"GET", "/v1/payouts", ownAccount, reference}, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		saying(200, sample(t, "payouts"))(w, r)
	}), nil)
	got, err := c.Find(t.Context(), reference)
	if err != nil || got.Progress != gateway.Paid || got.GatewayID != "pout_00000000000001" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Some gateways ignore the filter and list everything, page by page or at once.
func TestFind_UnfilteredList(t *testing.T) {
	item := func(n int, reference string) string {
		return fmt.Sprintf(`{"id":"pout_%014d","reference_id":%q,"status":"processed","amount":100}`, n, reference)
	}
	var others []string
	for n := range 25 {
		others = append(others, item(n, fmt.Sprintf("pyt_another%d", n)))
	}
	ours := item(77, reference)
	for name, tt := range map[string]struct {
		items   []string
		page    int
		paged   bool
		wantErr error
	}{
		"on the first page":            {append([]string{ours}, others...), 10, true, nil},
		"on the last page":             {append(slices.Clone(others), ours), 10, true, nil},
		"nowhere":                      {others, 10, true, gateway.ErrUnknownTransfer},
		"all at once":                  {append(slices.Clone(others), ours), 100, false, nil},
		"all at once, and nowhere":     {others, 100, false, gateway.ErrUnknownTransfer},
		"two, on pages of their own":   {append([]string{ours}, append(slices.Clone(others), item(78, reference))...), 10, true, gateway.ErrManyTransfers},
		"its id in the notes alone":    {[]string{strings.Replace(ours, fmt.Sprintf("%q", reference), `null,"notes":{"payout_id":"`+reference+`"}`, 1)}, 10, true, nil},
		"without saying that it lists": {[]string{ours}, 10, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
				skip, _ := strconv.Atoi(r.URL.Query().Get("skip"))
				if !tt.paged {
					skip = 0
				}
				page := tt.items[min(skip, len(tt.items)):min(skip+tt.page, len(tt.items))]
				body := `{"entity":"collection","items":[` + strings.Join(page, ",") + `]}`
				if strings.HasPrefix(name, "without") {
					body = strings.Replace(body, `"entity":"collection",`, "", 1)
				}
				saying(200, body)(w, r)
			}), nil)
			got, err := c.Find(t.Context(), reference)
			if !errors.Is(err, tt.wantErr) || (err == nil && (got.GatewayID != "pout_00000000000077" || got.Reference != reference)) {
				t.Errorf("got %+v, %v; want %v", got, err, tt.wantErr)
			}
		})
	}
}

// Each page of the gateway's list has new transfers and names a next page.
func TestFind_EndlessList_IsError(t *testing.T) {
	n := 0
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		saying(200, fmt.Sprintf(`{"entity":"collection","items":[{"id":"pout_%d","reference_id":"x","status":"processed"}]}`, n))(w, r)
	}), nil)
	if _, err := c.Find(t.Context(), reference); err == nil || errors.Is(err, gateway.ErrUnknownTransfer) || n > 100 {
		t.Errorf("%v after %d pages", err, n)
	}
}

func TestTextMayComeAsANumber(t *testing.T) {
	for text, want := range map[string]razorpayx.Text{`"a b"`: "a b", `null`: "", `523223155921`: "523223155921", `"523223155921"`: "523223155921", `""`: "", `"null"`: "null"} {
		var got razorpayx.Text
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestTransfers_IncludeOrders(t *testing.T) {
	since := time.Date(2026, 11, 20, 10, 0, 0, 999, time.UTC)
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		want := "/v1/payouts?account_number=" + ownAccount + "&count=100&from=1795168800&skip=200"
		if diff := cmp.Diff(want, r.URL.String()); r.Method != http.MethodGet || diff != "" {
			t.Errorf("request %s (-want +got):\n%s", r.Method, diff)
		}
		saying(200, sample(t, "payouts_all"))(w, r)
	}), nil)
	page, err := c.Transfers(t.Context(), since, "200.")
	if err != nil || !strings.HasPrefix(string(page.Next), "203.") {
		t.Fatalf("the next page begins at %q, %v", page.Next, err)
	}
	got := page.Transfers
	want := []gateway.Transfer{
		{
			Report: gateway.Report{
				GatewayID: "pout_00000000000003", Reference: reference, Amount: 1_000_000, MadeAt: time.Date(2018, 12, 21, 9, 1, 10, 0, time.UTC),
				Beneficiary: "fa_00000000000001", Currency: "INR",
				Progress: gateway.Paid, RawStatus: "processed", ReasonCode: "payout_processed", UTR: "523223155921",
			},
			Order: gateway.Order{
				Reference: reference, Beneficiary: "fa_00000000000001", Amount: 1_000_000, Currency: "INR", Rail: "IMPS",
				Seller: sellerID, Account: bankAccountID, Gross: 1_000_500,
			},
		},
		{ // by hand in the vendor's dashboard: without notes and a reference
			Report: gateway.Report{
				GatewayID: "pout_00000000000002", Amount: 2_500_000, MadeAt: time.Date(2018, 12, 21, 9, 0, 0, 0, time.UTC),
				Beneficiary: "fa_00000000000002", Currency: "INR", Progress: gateway.InProgress, RawStatus: "scheduled",
			},
			Order: gateway.Order{Beneficiary: "fa_00000000000002", Amount: 2_500_000, Currency: "INR", Rail: "NEFT"},
		},
		{ // with notes of other kinds
			Report: gateway.Report{
				GatewayID: "pout_00000000000001", Reference: "salary 12", Amount: 100, MadeAt: time.Date(2018, 12, 21, 9, 0, 0, 0, time.UTC),
				Beneficiary: "fa_00000000000003", Currency: "INR",
				Progress: gateway.Failed, RawStatus: "rejected", Reason: "The payout was not approved. Ask the marketplace about it.",
			},
			Order: gateway.Order{Reference: "salary 12", Beneficiary: "fa_00000000000003", Amount: 100, Currency: "INR", Rail: "RTGS", Seller: "12"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
}

func TestReversed_QueriesByStatus(t *testing.T) {
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		want := "/v1/payouts?account_number=" + ownAccount + "&count=100&from=1795168800&skip=0&status=reversed"
		if diff := cmp.Diff(want, r.URL.String()); r.Method != http.MethodGet || diff != "" {
			t.Errorf("request %s (-want +got):\n%s", r.Method, diff)
		}
		saying(200, sample(t, "payouts_all"))(w, r)
	}), nil)
	got, err := c.Reversed(t.Context(), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), "")
	if err != nil || len(got.Transfers) != 3 { // what else a gateway lists is passed over by who asked
		t.Errorf("%d transfers, %v", len(got.Transfers), err)
	}
}

func TestTransfers_IncompleteList_IsError(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
	}{
		"a list of nothing":  {200, `{"entity":"collection","count":0}`},
		"no list":            {200, `{"entity":"payout","items":[]}`},
		"cut short":          {200, sample(t, "payouts_all")[:900]},
		"what is no payout":  {200, `{"entity":"collection","items":[{"id":"fa_00000000000001","status":"processed"}]}`},
		"without a status":   {200, `{"entity":"collection","items":[{"id":"pout_00000000000001"}]}`},
		"HTML":               {200, "<html>"},
		"server error":       {500, sample(t, "error_server")},
		"throttled":          {429, sample(t, "error_throttled")},
		"not our account":    {400, sample(t, "error_debit_account")},
		"not our key at all": {401, sample(t, "error_authentication")},
	} {
		got, err := newClient(t, serving(t, saying(test.status, test.body)), nil).Transfers(t.Context(), time.Time{}, "")
		if err == nil {
			t.Errorf("%s: %d transfers", name, len(got.Transfers))
		}
	}
	none, err := newClient(t, serving(t, saying(200, sample(t, "payouts_none"))), nil).Transfers(t.Context(), time.Time{}, "")
	if err != nil || len(none.Transfers) != 0 || none.Next != "" {
		t.Errorf("an empty list: %+v, %v", none, err)
	}
}

func TestFetch_UnknownTransferOnlyForUnknownID(t *testing.T) {
	for file, wantUnknown := range map[string]bool{
		"error_unknown_id": true, "error_unknown_url": false, "error_authentication": false, "error_server": false,
	} {
		_, err := newClient(t, serving(t, saying(400, sample(t, file))), nil).Fetch(t.Context(), "pout_00000000000009")
		if err == nil || errors.Is(err, gateway.ErrUnknownTransfer) != wantUnknown {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// verified is the account that the samples tell of.
var verified = gateway.VerificationRequest{Account: bankAccountID, Beneficiary: "fa_00000000000001"}

func TestVerifications(t *testing.T) {
	for file, want := range map[string]gateway.Verification{
		"validation_created":   {Outcome: gateway.OutcomePending, NameScore: -1},
		"validation_active":    {Outcome: gateway.OutcomeValid, RegisteredName: "Asha Rao", NameScore: -1},
		"validation_composite": {Outcome: gateway.OutcomeValid, RegisteredName: "Asha Rao", NameScore: 100},
		"validation_invalid":   {Outcome: gateway.OutcomeInvalid, NameScore: -1},
		"validation_failed":    {Outcome: gateway.OutcomeFault, NameScore: -1},
	} {
		c := newClient(t, serving(t, saying(200, sample(t, file))), nil)
		want.ID = "fav_00000000000001"
		got, err := c.Verification(t.Context(), verified, "fav_00000000000001")
		if err != nil {
			t.Fatal(err)
		}
		if (got.Reason == "") != (got.Outcome == gateway.OutcomeValid) {
			t.Errorf("%s: reason %q", file, got.Reason)
		}
		got.Reason = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// A completed verification without a known account status goes to review.
func TestVerification_OutcomeFollowsAccountStatus(t *testing.T) {
	for results, want := range map[string]gateway.Outcome{
		`null`:                         gateway.OutcomeReview,
		`{}`:                           gateway.OutcomeReview,
		`{"account_status":null}`:      gateway.OutcomeReview,
		`{"account_status":"maybe"}`:   gateway.OutcomeReview,
		`{"account_status":"ACTIVE"}`:  gateway.OutcomeValid,
		`{"account_status":"active"}`:  gateway.OutcomeValid,
		`{"account_status":"invalid"}`: gateway.OutcomeInvalid,
	} {
		body := `{"id":"fav_00000000000001","status":"completed","results":` + results + `}`
		got, err := newClient(t, serving(t, saying(200, body)), nil).Verification(t.Context(), verified, "fav_00000000000001")
		if err != nil || got.Outcome != want {
			t.Errorf("%s: %s, %v; want %s", results, got.Outcome, err, want)
		}
	}
}

// An answer about another account, or another verification, is none, whatever it says. One that leaves out which is
// about the one that was asked for.
func TestVerification_OfAnotherAccountIsNotApplied(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		asked    func(*gateway.VerificationRequest) // what somebody changed of the account before it was asked about
		begins   bool
		stands   bool
	}{
		"as asked":                      {begins: true, stands: true},
		"another beneficiary":           {from: `"fa_00000000000001"`, to: `"fa_00000000000002"`},
		"another bank account":          {from: bankAccountID, to: "bka_0Tz3aB9xQ2mK7LpW4sYd1eHd"},
		"a bank account that is a list": {from: `"` + bankAccountID + `"`, to: "[1]"},
		"another verification":          {from: "fav_00000000000001", to: "fav_00000000000002", begins: true},
		"no beneficiary":                {from: `"fa_00000000000001"`, to: `""`, begins: true, stands: true},
		"no bank account":               {from: "bank_account_id", to: "x", begins: true, stands: true},
		"no beneficiary, another bank account": {
			from: `"id": "fa_00000000000001"`, to: `"x": 1`, asked: func(a *gateway.VerificationRequest) { a.Account = "bka_0Tz3aB9xQ2mK7LpW4sYd1eHd" },
		},
		"asked for by another account": {asked: func(a *gateway.VerificationRequest) {
			a.Account, a.Beneficiary = "bka_0Tz3aB9xQ2mK7LpW4sYd1eHd", "fa_00000000000002"
		}},
		"asked for by one without a name yet": {asked: func(a *gateway.VerificationRequest) { a.Beneficiary = "" }},
	} {
		account := verified
		if tt.asked != nil {
			tt.asked(&account)
		}
		c := newClient(t, serving(t, saying(200, strings.ReplaceAll(sample(t, "validation_active"), tt.from, tt.to))), nil)
		for call, want := range map[string]bool{"start": tt.begins, "ask": tt.stands} {
			ask := map[string]func(context.Context, gateway.VerificationRequest) (gateway.Verification, error){
				"start": c.StartVerification,
				"ask": func(ctx context.Context, v gateway.VerificationRequest) (gateway.Verification, error) {
					return c.Verification(ctx, v, "fav_00000000000001")
				},
			}[call]
			got, err := ask(t.Context(), account)
			if (err == nil) != want || want && got.Outcome != gateway.OutcomeValid || !want && got != (gateway.Verification{}) {
				t.Errorf("%s, %s: %+v, %v", name, call, got, err)
			}
			if err != nil && (fault.From(err) != nil || strings.Contains(err.Error(), accountNumber)) {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
	}
}

func TestVerification_Unreadable_IsError(t *testing.T) {
	for _, body := range []string{"", "<html>", "{}", `{"id":"pout_00000000000001","status":"completed"}`, `{"id":"fav_00000000000001","status":"perhaps"}`} {
		if got, err := newClient(t, serving(t, saying(200, body)), nil).Verification(t.Context(), verified, "fav_00000000000001"); err == nil {
			t.Errorf("%q was read as %+v", body, got)
		}
	}
	asked := false
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked = true
		saying(200, sample(t, "validation_created"))(w, r)
	}), nil)
	if _, err := c.StartVerification(t.Context(), gateway.VerificationRequest{Account: bankAccountID}); err == nil || asked {
		t.Errorf("an account that the gateway does not know was sent for verification: %t, %v", asked, err)
	}
}

// destination is the account that the samples tell of.
var destination = gateway.Destination{Holder: "Asha Rao", AccountNumber: accountNumber, IFSC: "HDFC0000053"}

func TestEnsureBeneficiary_CreatesContactAndFundAccount(t *testing.T) {
	var got []string
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		name := map[string]string{"/v1/contacts": "contact", "/v1/fund_accounts": "fund_account"}[r.URL.Path]
		saying(200, sample(t, name))(w, r)
	}), nil)
	asha := destination
	asha.Holder = "Asha  Rao"
	id, err := c.EnsureBeneficiary(t.Context(), bankAccountID, asha)
	if err != nil || id != "fa_00000000000001" {
		t.Fatalf("%q, %v", id, err)
	}
	want := []string{
		`POST /v1/contacts {"name":"Asha Rao","type":"vendor","reference_id":"bka_0Tz3aB9xQ2mK7LpW4sYd1eHc"}`,
		`POST /v1/fund_accounts {"contact_id":"cont_00000000000001","account_type":"bank_account",` +
			`"bank_account":{"name":"Asha Rao","ifsc":"HDFC0000053","account_number":"50100012345678"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestEnsureBeneficiary_OtherFundAccount_IsError(t *testing.T) {
	for name, change := range map[string][2]string{
		"another number": {accountNumber, "50100012345999"},
		"another bank":   {"HDFC0000053", "ICIC0000001"},
		"no id":          {"fa_00000000000001", "x"},
	} {
		c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/contacts" {
				saying(200, sample(t, "contact"))(w, r)
				return
			}
			saying(200, strings.Replace(sample(t, "fund_account"), change[0], change[1], 1))(w, r)
		}), nil)
		if id, err := c.EnsureBeneficiary(t.Context(), bankAccountID, destination); err == nil || fault.From(err) != nil || strings.Contains(err.Error(), "50100") {
			t.Errorf("%s: %q, %v; want an error without the number", name, id, err)
		}
	}
}

func TestDescribeBeneficiary(t *testing.T) {
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Method + " " + r.URL.Path; got != "GET /v1/fund_accounts/fa_00000000000001" {
			t.Errorf("asked for %s", got)
		}
		saying(200, sample(t, "fund_account"))(w, r)
	}), nil)
	got, err := c.DescribeBeneficiary(t.Context(), "fa_00000000000001")
	if want := destination; err != nil || got != want {
		t.Errorf("it is %+v of %q at %q, %v", got, got.Holder, got.IFSC, err)
	}
	for name, test := range map[string]struct {
		status   int
		body     string
		wantNone bool
	}{
		"unknown there":       {400, sample(t, "error_unknown_id"), true},
		"not a bank account":  {200, `{"id":"fa_00000000000001","account_type":"vpa","vpa":{"address":"asha@upi"}}`, true},
		"another one":         {200, strings.ReplaceAll(sample(t, "fund_account"), "fa_00000000000001", "fa_2"), false},
		"a wrong path":        {400, sample(t, "error_unknown_url"), false},
		"server error":        {500, sample(t, "error_server"), false},
		"HTML in its place":   {200, "<html>", false},
		"somebody else's key": {401, sample(t, "error_authentication"), false},
	} {
		_, err := newClient(t, serving(t, saying(test.status, test.body)), nil).DescribeBeneficiary(t.Context(), "fa_00000000000001")
		if err == nil || errors.Is(err, gateway.ErrUnknownBeneficiary) != test.wantNone {
			t.Errorf("%s: %v, want none %t", name, err, test.wantNone)
		}
	}
}

func TestEnsureBeneficiary_OnlyInvalidAccountIsRefused(t *testing.T) {
	for file, wantRefused := range map[string]bool{
		"error_ifsc": true, "error_authentication": false, "error_server": false, "error_unknown_id": false, "error_address": false,
	} {
		c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/contacts" {
				saying(200, sample(t, "contact"))(w, r)
				return
			}
			saying(400, sample(t, file))(w, r)
		}), nil)
		_, err := c.EnsureBeneficiary(t.Context(), bankAccountID, destination)
		if err == nil || errors.Is(err, gateway.ErrDestinationRefused) != wantRefused || (fault.From(err) != nil) != wantRefused {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestErrors_HideAccountNumbersAndSecrets(t *testing.T) {
	leaky := `{"error":{"code":"BAD_REQUEST_ERROR","description":"Account ` + accountNumber + ` of ` + ownAccount + ` is not good"}}`
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, base := range map[string]string{
		"refused":     serving(t, saying(400, leaky)),
		"forbidden":   serving(t, saying(403, leaky)),
		"failing":     serving(t, saying(500, leaky)),
		"unreadable":  serving(t, saying(200, leaky)),
		"cut":         serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"unreachable": closed.URL,
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, base, nil)
			submission := c.Submit(t.Context(), reference, "{}")
			_, errEnsure := c.EnsureBeneficiary(t.Context(), bankAccountID, destination)
			_, errFind := c.Find(t.Context(), reference)
			_, errFetch := c.Fetch(t.Context(), "pout_00000000000001")
			_, errCancel := c.Cancel(t.Context(), "pout_00000000000001")
			_, errStart := c.StartVerification(t.Context(), verified)
			_, errTransfers := c.Transfers(t.Context(), time.Time{}, "")
			_, errReversed := c.Reversed(t.Context(), time.Time{}, "")
			_, errDescribe := c.DescribeBeneficiary(t.Context(), "fa_00000000000001")
			for _, err := range []error{errEnsure, errFind, errFetch, errCancel, errStart, errTransfers, errReversed, errDescribe, errors.New(submission.Reason)} {
				for _, secret := range []string{accountNumber, ownAccount, keySecret, "rzp_test_key"} {
					if err == nil || strings.Contains(err.Error(), secret) {
						t.Errorf("%v", err)
					}
				}
			}
		})
	}
}

func TestNewRefusesHalfAClient(t *testing.T) {
	for name, spoil := range map[string]func(*razorpayx.Options){
		"no address":        func(o *razorpayx.Options) { o.BaseURL = "" },
		"no scheme":         func(o *razorpayx.Options) { o.BaseURL = "api.razorpay.com/v1" },
		"a password within": func(o *razorpayx.Options) { o.BaseURL = "https://a:b@gateway.example" },
		"no key":            func(o *razorpayx.Options) { o.KeyID = "" },
		"no secret":         func(o *razorpayx.Options) { o.KeySecret = "" },
		"no account":        func(o *razorpayx.Options) { o.AccountNumber = "" },
		"no currency":       func(o *razorpayx.Options) { o.Currency = money.Currency{} },
		"no clock":          func(o *razorpayx.Options) { o.Now = nil },
		"negative timeout":  func(o *razorpayx.Options) { o.Timeout = -1 },
	} {
		inr, _ := money.ParseCurrency("INR")
		o := razorpayx.Options{BaseURL: "https://gateway.example/v1", KeyID: "k", KeySecret: "s", AccountNumber: "1", Currency: inr, Now: time.Now}
		if _, err := razorpayx.New(o); err != nil {
			t.Fatal(err)
		}
		spoil(&o)
		if _, err := razorpayx.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestContactNames(t *testing.T) {
	for holder, want := range map[string]string{
		"Asha Rao":                       "Asha Rao",
		"  Asha \t Rao ":                 "Asha Rao",
		"M/s. Rao & Sons (Pune)":         "M/s. Rao Sons (Pune",
		"D'Souza":                        "D’Souza",
		"Rao Ltd.":                       "Rao Ltd.",
		"Li":                             "Account of Li",
		"आशा राव":                        "Account holder",
		"José":                           "Jos",
		"--":                             "Account holder",
		strings.Repeat("abcdefghi ", 10): strings.TrimSpace(strings.Repeat("abcdefghi ", 5)),
	} {
		if got := razorpayx.ContactName(holder); got != want {
			t.Errorf("%q: got %q, want %q", holder, got, want)
		}
	}
}

func TestContactNamesAlwaysFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holder := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z'’_/(). -]{0,60}`)).Draw(t, "holder")
		name := razorpayx.ContactName(holder)
		if !razorpayx.ValidContactName(name) {
			t.Fatalf("%q became %q", holder, name)
		}
		if again := razorpayx.ContactName(name); again != name {
			t.Fatalf("%q became %q, and that %q", holder, name, again)
		}
	})
}

// RazorpayX forgets an idempotency key after seven days: what it got later with the same key would be another payout.
func TestCapabilities_KeysLiveSevenDays(t *testing.T) {
	rupees, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	if got := razorpayx.Capabilities(rupees); got.KeyLifetime != 168*time.Hour || got.ResendFor() != 144*time.Hour {
		t.Errorf("keys live for %s, and an order is sent again for %s", got.KeyLifetime, got.ResendFor())
	}
}

// TestVerification_NameScore reads the least score and the best, which are no lack of one.
func TestVerification_NameScore(t *testing.T) {
	for score, want := range map[string]int{`0`: 0, `"0"`: 0, `1`: 1, `99.5`: 99, `100`: 100, `-1`: -1, `101`: -1, `null`: -1, `"high"`: -1} {
		body := `{"id":"fav_00000000000001","status":"completed","results":{"account_status":"active","name_match_score":` + score + `}}`
		got, err := newClient(t, serving(t, saying(200, body)), nil).Verification(t.Context(), verified, "fav_00000000000001")
		if err != nil || got.NameScore != want {
			t.Errorf("%s: %d, %v; want %d", score, got.NameScore, err, want)
		}
	}
}
