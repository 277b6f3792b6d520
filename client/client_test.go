package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"bursar/client"
)

// serve answers with what each function in turn does; the last one does for all that follow.
func serve(t *testing.T, answers ...http.HandlerFunc) (*client.Client, *atomic.Int64) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(requests.Add(1))
		answers[min(n, len(answers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{BaseURL: server.URL + "/", Key: "bsk_key", MaxWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c, &requests
}

func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// reply answers with data.
func reply[T any](t *testing.T, w http.ResponseWriter, data T) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(struct {
		Success bool `json:"success"`
		Data    T    `json:"data"`
	}{true, data}); err != nil {
		t.Error(err)
	}
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

const (
	requested   = `{"success":true,"message":"","data":{"payoutId":"pyt_1","amount":600.50}}`
	unavailable = `{"success":false,"error":"Try again.","code":"unavailable"}`
	tooMany     = `{"success":false,"error":"Too many.","code":"too_many_attempts"}`
)

func TestRequestPayout_RepeatsUnderOneKey(t *testing.T) {
	var keys []string
	note := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			next(w, r)
		}
	}
	for _, own := range []string{"", "order-7"} {
		keys = nil
		c, _ := serve(t, note(cut), note(answer(503, unavailable, "Retry-After", "0")), note(answer(201, requested)))
		p, err := c.RequestPayout(t.Context(), "usr_1", client.NewPayout{Amount: "600.50", IdempotencyKey: own})
		if err != nil || p.PayoutID != "pyt_1" || p.Amount != "600.50" {
			t.Errorf("%+v, %v", p, err)
		}
		if len(keys) != 3 || keys[0] == "" || own != "" && keys[0] != own || slices.ContainsFunc(keys, func(k string) bool { return k != keys[0] }) {
			t.Errorf("the keys were %q", keys)
		}
	}
}

func TestRetries(t *testing.T) {
	requestPayout := func(ctx context.Context, c *client.Client) error {
		_, err := c.RequestPayout(ctx, "usr_1", client.NewPayout{Amount: "600"})
		return err
	}
	addEndpoint := func(ctx context.Context, c *client.Client) error {
		_, err := c.AddEndpoint(ctx, client.NewEndpoint{URL: "https://shop.example"})
		return err
	}
	for _, test := range []struct {
		name string
		do   func(context.Context, *client.Client) error
		fail http.HandlerFunc
		want int64 // requests
	}{
		{"a payout after 503", requestPayout, answer(503, unavailable), 4},
		{"a payout after a proxy's 502", requestPayout, answer(502, "<html>"), 4},
		{"a payout after a lost answer", requestPayout, cut, 4},
		{"a payout after 429", requestPayout, answer(429, tooMany), 4},
		{"a payout after 500", requestPayout, answer(500, unavailable), 1},
		{"a payout that is refused", requestPayout, answer(400, unavailable), 1},
		{"a payout after 429 with a long wait", requestPayout, answer(429, tooMany, "Retry-After", "3600"), 1},
		{"an endpoint after 429", addEndpoint, answer(429, tooMany), 4},
		{"an endpoint after 503", addEndpoint, answer(503, unavailable), 1}, // it may be there
		{"an endpoint after a lost answer", addEndpoint, cut, 1},
		{"after a redirect", requestPayout, answer(307, "", "Location", "/elsewhere"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, requests := serve(t, test.fail)
			if err := test.do(t.Context(), c); err == nil || requests.Load() != test.want {
				t.Errorf("%d requests, %v; want %d", requests.Load(), err, test.want)
			}
		})
	}
}

func TestRetry_ManyAttempts(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		answer(503, unavailable)(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{BaseURL: server.URL, Key: "bsk_key", Attempts: 100, MaxWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RequestPayout(t.Context(), "usr_1", client.NewPayout{Amount: "600"}); err == nil || requests.Load() != 100 {
		t.Errorf("%d requests, %v; want 100", requests.Load(), err)
	}
}

func TestRetry_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(503, unavailable, "Retry-After", "600")(w, r)
		time.AfterFunc(50*time.Millisecond, cancel) // while the client waits, or before it has the answer
	}))
	defer server.Close()
	c, err := client.New(client.Config{BaseURL: server.URL, Key: "bsk_key", MaxWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Seller(ctx, "usr_1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestError(t *testing.T) {
	c, _ := serve(t, answer(422, `{"success":false,"error":"The request is invalid.","code":"validation_failed","details":{"name":"is too short","email":"is no address."}}`,
		"X-Request-Id", "req-1"), answer(404, "<html>nothing</html>"), answer(200, "<html>hello</html>"), answer(200, `{"success":false}`))
	_, err := c.CreateSeller(t.Context(), client.NewSeller{})
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Status != 422 || refused.RequestID != "req-1" || refused.Details["name"] != "is too short" || !client.HasCode(err, "validation_failed") {
		t.Fatalf("%#v", err)
	}
	if want := "The request is invalid. email: is no address. name: is too short. (validation_failed)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	_, err = c.Seller(t.Context(), "usr_1")
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != "" || refused.Status != 404 || strings.Contains(err.Error(), "<html>") {
		t.Errorf("an answer of another server: %v", err)
	}
	for range 2 {
		if _, err := c.Seller(t.Context(), "usr_1"); err == nil || !strings.Contains(err.Error(), "not by Bursar") {
			t.Errorf("an answer of another server: %v", err)
		}
	}
}

func TestIDs_StayOnePathSegment(t *testing.T) {
	var path string
	c, requests := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		answer(200, `{"success":true,"data":{}}`)(w, r)
	})
	if _, err := c.Balance(t.Context(), client.ExternalID("a/../b?c#d é")); err != nil {
		t.Fatal(err)
	}
	if want := "/api/marketplace/sellers/ext:a%2F..%2Fb%3Fc%23d%20%C3%A9/balance"; path != want {
		t.Errorf("asked for %s, want %s", path, want)
	}
	for _, id := range []string{"", ".", "..", client.ExternalID("")} {
		if _, err := c.Seller(t.Context(), id); err == nil {
			t.Errorf("%q was taken for an id", id)
		}
	}
	if requests.Load() != 1 {
		t.Error("a request was sent without an id")
	}
}

func TestNew_RefusesWhatCannotBe(t *testing.T) {
	for _, c := range []client.Config{
		{},
		{BaseURL: "https://pay.example"},
		{Key: "k"},
		{BaseURL: "pay.example", Key: "k"},
		{BaseURL: "ftp://pay.example", Key: "k"},
		{BaseURL: "https://pay.example", Key: "k\n"},
		{BaseURL: "https://u:p@pay.example", Key: "k"},
		{BaseURL: "https://pay.example", Key: "k", Attempts: -1},
	} {
		if _, err := client.New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestRecordSales_SendsBatches(t *testing.T) {
	var sizes []int
	batch := func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Sales []client.NewSale }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sizes = append(sizes, len(body.Sales))
		results := make([]client.SaleResult, len(body.Sales))
		for i, s := range body.Sales {
			results[i] = client.SaleResult{SaleID: s.SaleID, Success: true}
		}
		reply(t, w, struct {
			Results []client.SaleResult `json:"results"`
		}{results})
	}
	sales := make([]client.NewSale, 1100)
	for i := range sales {
		sales[i] = client.NewSale{SaleID: strconv.Itoa(i), SellerID: "usr_1", Amount: "1"}
	}
	c, _ := serve(t, batch)
	results, err := c.RecordSales(t.Context(), sales)
	if err != nil || len(results) != 1100 || results[1099].SaleID != "1099" || !slices.Equal(sizes, []int{500, 500, 100}) {
		t.Errorf("%d results of %v, %v", len(results), sizes, err)
	}
	c, _ = serve(t, batch, answer(400, unavailable))
	if results, err := c.RecordSales(t.Context(), sales); err == nil || len(results) != 500 {
		t.Errorf("%d results, %v; want those of the first request, and an error", len(results), err)
	}
}

func TestAmount(t *testing.T) {
	for _, test := range []struct {
		amount   client.Amount
		currency string
		units    int64
	}{{"1499.50", "INR", 149950}, {"-0.05", "INR", -5}, {"600", "JPY", 600}, {"1.234", "KWD", 1234}, {"90071992547409.91", "INR", 1<<53 - 1}} {
		units, err := test.amount.MinorUnits(test.currency)
		if err != nil || units != test.units {
			t.Errorf("%s %s is %d, %v; want %d", test.amount, test.currency, units, err, test.units)
		}
		back, err := client.FromMinorUnits(units, test.currency)
		if again, _ := back.MinorUnits(test.currency); err != nil || again != units {
			t.Errorf("%d became %s, %v", units, back, err)
		}
	}
	for _, wrong := range []client.Amount{"", "1,5", "1.005", "1e40", "NaN", "+1", "90071992547409.92"} {
		if units, err := wrong.MinorUnits("INR"); err == nil {
			t.Errorf("%q was counted as %d", wrong, units)
		}
	}
	if _, err := client.FromMinorUnits(1, "XXX"); err == nil {
		t.Error("XXX passes for a currency")
	}
	// A JSON reader that takes a detour over floating point gives 90071992547409.91 back as another number.
	text := `{"refundId":"r","amount":90071992547409.91}`
	var r client.NewRefund
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if back, err := json.Marshal(r); err != nil || string(back) != text {
		t.Errorf("%s became %s, %v", text, back, err)
	}
	for _, wrong := range []client.Amount{"1,5", "x", "01"} {
		if _, err := json.Marshal(client.NewSale{Amount: wrong}); err == nil {
			t.Errorf("%q was written", wrong)
		}
	}
	if _, err := json.Marshal(client.NewSale{}); err == nil {
		t.Error("a sale without an amount was written")
	}
	if err := json.Unmarshal([]byte(`{"amount":"5"}`), &r); err == nil {
		t.Error("a string was read as an amount")
	}
}

// feed serves events 1 to last, three on a page, as the API does: next goes past events of other types.
func feed(t *testing.T, last int64) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		page := client.EventsPage{Events: []client.Event{}, Next: after}
		for n := after + 1; n <= min(after+3, last); n++ {
			e := client.Event{Number: n, Type: client.SaleRecorded, Data: json.RawMessage(`{}`)}
			if n%5 == 0 {
				e.Type = client.PayoutFailed
			}
			if want := r.URL.Query().Get("type"); want == "" || want == string(e.Type) {
				page.Events = append(page.Events, e)
			}
			page.Next = n
		}
		reply(t, w, page)
	}
}

func TestEvents_ReadsToTheEnd(t *testing.T) {
	c, _ := serve(t, feed(t, 11))
	numbers := func(types ...client.EventType) (list []int64) {
		for e, err := range c.Events(t.Context(), 1, types...) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, e.Number)
		}
		return list
	}
	if got := numbers(); !slices.Equal(got, []int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("read %v", got)
	}
	if got := numbers(client.PayoutFailed); !slices.Equal(got, []int64{5, 10}) { // though the first page has none
		t.Errorf("read %v", got)
	}
	c, requests := serve(t, feed(t, 11), answer(409, `{"success":false,"error":"The feed ends before.","code":"cursor_ahead"}`))
	read := 0
	for _, err := range c.Events(t.Context(), 0) {
		if err == nil {
			read++
		} else if !client.HasCode(err, "cursor_ahead") {
			t.Error(err)
		}
	}
	if read != 3 || requests.Load() != 2 {
		t.Errorf("read %d events in %d requests", read, requests.Load())
	}
}

func TestFollow_GoesOnUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, _ := serve(t, feed(t, 2), feed(t, 2), feed(t, 4)) // at the end with the second page
	var numbers []int64
	for e, err := range c.Follow(ctx, 0) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		if numbers = append(numbers, e.Number); e.Number == 4 {
			cancel()
		}
	}
	if !slices.Equal(numbers, []int64{1, 2, 3, 4}) {
		t.Errorf("read %v", numbers)
	}
}

func TestEvent_TellsTypesApart(t *testing.T) {
	e := client.Event{Type: client.SaleRefunded, Data: json.RawMessage(`{"sellerId":"usr_1","saleId":"s","amount":5,"entry":3,"balance":{"available":-1,"pending":0,"inTransit":2},"refund":{"refundId":"r","amount":1.5}}`)}
	sale, err := e.Sale()
	if err != nil || sale.SaleID != "s" || sale.Amount != "5" {
		t.Errorf("%+v, %v", sale, err)
	}
	if refund, err := e.Refund(); err != nil || refund.Amount != "1.5" {
		t.Errorf("%+v, %v", refund, err)
	}
	if change, err := e.Change(); err != nil || change.Entry != 3 || change.Balance.Available != "-1" {
		t.Errorf("%+v, %v", change, err)
	}
	if _, err := e.Payout(); err == nil {
		t.Error("a sale was read as a payout")
	}
	e.Data = json.RawMessage(`{"sellerId":"usr_1","tampered":true}`)
	if _, err := e.Sale(); !errors.Is(err, client.ErrTampered) {
		t.Errorf("%v", err)
	}
}

const secret, otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDAAAAAAAAAAA=", "whsec_AAAAsBQIhrscChlQIMV+b5sSYspob7oDAAAAAAAAAAA="

// delivery is one that another library signed.
func delivery(t *testing.T, secret, body string, at time.Time) http.Header {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign("evt_1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	header.Set("Webhook-Id", "evt_1")
	header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	header.Set("Webhook-Signature", signature)
	return header
}

const body = `{"type":"payout.completed","timestamp":"2026-11-20T09:30:00.000Z","data":{"id":"pyt_1","sellerId":"usr_1","amount":600.5}}`

func TestVerify(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	verifier := func(secrets ...string) *client.Webhooks {
		w, err := client.NewWebhooks(secrets...)
		if err != nil {
			t.Fatal(err)
		}
		w.Now = func() time.Time { return now }
		return w
	}
	for name, w := range map[string]*client.Webhooks{"one secret": verifier(secret), "two secrets": verifier(otherSecret, secret)} {
		e, err := w.Verify(delivery(t, secret, body, now.Add(-4*time.Minute)), []byte(body))
		if err != nil || e.ID != "evt_1" || e.Type != client.PayoutCompleted {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if p, err := e.Payout(); err != nil || p.Amount != "600.5" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	two := delivery(t, otherSecret, body, now)
	two.Set("Webhook-Signature", "v1a,AAAA "+two.Get("Webhook-Signature")+" "+delivery(t, secret, body, now).Get("Webhook-Signature"))
	if _, err := verifier(secret).Verify(two, []byte(body)); err != nil {
		t.Errorf("one of two signatures: %v", err)
	}
	without := func(name string) http.Header {
		h := delivery(t, secret, body, now)
		h.Del(name)
		return h
	}
	otherID := delivery(t, secret, body, now)
	otherID.Set("Webhook-Id", "evt_2")
	for name, test := range map[string]struct {
		header http.Header
		body   string
	}{
		"another secret":       {delivery(t, otherSecret, body, now), body},
		"another body":         {delivery(t, secret, body, now), strings.Replace(body, "600.5", "900.5", 1)},
		"another id":           {otherID, body},
		"too old":              {delivery(t, secret, body, now.Add(-6*time.Minute)), body},
		"from the future":      {delivery(t, secret, body, now.Add(6*time.Minute)), body},
		"without a signature":  {without("Webhook-Signature"), body},
		"without an id":        {without("Webhook-Id"), body},
		"without a time":       {without("Webhook-Timestamp"), body},
		"nothing":              {http.Header{}, ""},
		"a signature of no v1": {http.Header{"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {"1795167000"}, "Webhook-Signature": {"v2,AAAA v1 v1,"}}, body},
	} {
		if e, err := verifier(secret).Verify(test.header, []byte(test.body)); !errors.Is(err, client.ErrNotVerified) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	for _, wrong := range [][]string{nil, {""}, {"whsec_"}, {"C2FV"}, {"whsec_?"}} {
		if _, err := client.NewWebhooks(wrong...); err == nil {
			t.Errorf("%q passes for a secret", wrong)
		}
	}
}

func TestHandler(t *testing.T) {
	w, err := client.NewWebhooks(secret)
	if err != nil {
		t.Fatal(err)
	}
	fails := errors.New("the disk is full")
	var taken []string
	handler := w.Handler(func(_ context.Context, e client.Event) error {
		if len(taken) > 0 {
			return fails
		}
		taken = append(taken, e.ID)
		return nil
	})
	deliver := func(method string, header http.Header, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
		r.Header = header
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer
	}
	good := delivery(t, secret, body, time.Now())
	long := strings.Repeat(" ", 1<<20) + body
	for _, test := range []struct {
		name   string
		answer *httptest.ResponseRecorder
		want   int
	}{
		{"another body", deliver("POST", good, "{}"), 400},
		{"a long body", deliver("POST", delivery(t, secret, long, time.Now()), long), 400},
		{"GET", deliver("GET", good, body), 405},
		{"a delivery", deliver("POST", good, body), 204},
		{"a failure", deliver("POST", good, body), 500},
	} {
		if test.answer.Code != test.want || strings.Contains(test.answer.Body.String(), fails.Error()) {
			t.Errorf("%s was answered %d %s, want %d", test.name, test.answer.Code, test.answer.Body, test.want)
		}
	}
	if !slices.Equal(taken, []string{"evt_1"}) {
		t.Errorf("took %v", taken)
	}
}
