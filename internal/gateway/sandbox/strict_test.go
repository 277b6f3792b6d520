package sandbox_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/id"
	"bursar/internal/money"
)

func keyed(key string) http.Header { return http.Header{"X-Payout-Idempotency": {key}} }

func TestPayoutsAreStrict(t *testing.T) {
	w := open(t, nil)
	good := `{"account_number":"7878780080316316","fund_account_id":"` + w.beneficiary("4321").Beneficiary +
		`","amount":60050,"currency":"INR","mode":"IMPS","purpose":"payout","reference_id":"r","narration":"Payout 1"}`
	if status := w.call("POST", "/v1/payouts", good, keyed("good"), nil); status != 200 {
		t.Fatalf("the body that the others spoil: %d", status)
	}
	for name, test := range map[string]struct{ old, new, wantField string }{
		"no debit account":     {`"7878780080316316"`, `""`, "account_number"},
		"no beneficiary":       {`"fund_account_id"`, `"other"`, "fund_account_id"},
		"less than a rupee":    {`60050`, `99`, "amount"},
		"a negative amount":    {`60050`, `-60050`, "amount"},
		"half a paisa":         {`60050`, `60050.5`, "amount"},
		"an amount as text":    {`60050`, `"60050"`, "amount"},
		"too much for IMPS":    {`60050`, `50000001`, "amount"},
		"too little for RTGS":  {`IMPS`, `RTGS`, "amount"},
		"a mode in lower case": {`IMPS`, `imps`, "mode"},
		"another currency":     {`INR`, `USD`, "currency"},
		"another purpose":      {`"payout"`, `"fun"`, "purpose"},
		"a long reference":     {`"r"`, `"` + strings.Repeat("r", 41) + `"`, "reference_id"},
		"an underscore":        {`Payout 1`, `pyt_1`, "narration"},
		"a long narration":     {`Payout 1`, strings.Repeat("n", 31), "narration"},
	} {
		var body razorpayx.ErrorBody
		status := w.call("POST", "/v1/payouts", strings.Replace(good, test.old, test.new, 1), keyed("spoilt"), &body)
		if status != 400 || string(body.Error.Field) != test.wantField || body.Error.Code != "BAD_REQUEST_ERROR" {
			t.Errorf("%s: %d, %+v", name, status, body.Error)
		}
	}
	for _, key := range []string{"", "abc", strings.Repeat("k", 37), "with/slash", "with.dot"} {
		var body razorpayx.ErrorBody
		if status := w.call("POST", "/v1/payouts", good, keyed(key), &body); status != 400 || body.Error.Field != "X-Payout-Idempotency" {
			t.Errorf("key %q: %d, %+v", key, status, body.Error)
		}
	}
	if moves := w.moves(""); len(moves) != 1 || moves[0].Count != 1 {
		t.Errorf("what was refused has moved money: %+v", moves)
	}
}

// Each error is the vendor's own, to the letter: the samples that the client is tested with.
func TestErrorsAreTheVendors(t *testing.T) {
	w := open(t, nil)
	beneficiary := w.beneficiary("4321").Beneficiary
	payoutBody := func(account string, amount string) string {
		return `{"account_number":"` + account + `","fund_account_id":"` + beneficiary + `","amount":` + amount +
			`,"currency":"INR","mode":"IMPS","purpose":"payout"}`
	}
	if status := w.call("POST", "/v1/payouts", payoutBody(ownAccount, "500"), keyed("used"), nil); status != 200 {
		t.Fatal(status)
	}
	w.control("PUT", "/control/balance", `{"amount":0}`, nil)
	wrongKey := http.Header{"Authorization": {"Basic Og=="}}
	for name, test := range map[string]struct {
		method, path, body string
		header             http.Header
		wantStatus         int
		wantSample         string
	}{
		"wrong path":        {"GET", "/v1/nothing", "", nil, 400, "unknown_url"},
		"wrong verb":        {"DELETE", "/v1/payouts", "", nil, 400, "unknown_url"},
		"no such payout":    {"GET", "/v1/payouts/pout_00000000000001", "", nil, 400, "unknown_id"},
		"no id at all":      {"GET", "/v1/payouts/nothing", "", nil, 400, "unknown_id"},
		"no such account":   {"GET", "/v1/fund_accounts/fa_00000000000001", "", nil, 400, "unknown_id"},
		"no such check":     {"GET", "/v1/fund_accounts/validations/fav_00000000000001", "", nil, 400, "unknown_id"},
		"cancelling none":   {"POST", "/v1/payouts/pout_00000000000001/cancel", "", nil, 400, "unknown_id"},
		"no such contact":   {"POST", "/v1/fund_accounts", `{"contact_id":"cont_00000000000001","account_type":"bank_account","bank_account":{"name":"Asha Rao","ifsc":"HDFC0000053","account_number":"50100012344321"}}`, nil, 400, "unknown_id"},
		"wrong key":         {"GET", "/v1/payouts", "", wrongKey, 401, "authentication"},
		"short IFSC":        {"POST", "/v1/fund_accounts", `{"contact_id":"c","account_type":"bank_account","bank_account":{"name":"Asha Rao","ifsc":"HDFC","account_number":"50100012344321"}}`, nil, 400, "ifsc"},
		"too little":        {"POST", "/v1/payouts", payoutBody(ownAccount, "99"), keyed("little"), 400, "amount"},
		"another's account": {"POST", "/v1/payouts", payoutBody("1234567890", "500"), keyed("anothers"), 400, "debit_account"},
		"listing another's": {"GET", "/v1/payouts?account_number=1234567890", "", nil, 400, "debit_account"},
		"the key again":     {"POST", "/v1/payouts", payoutBody(ownAccount, "501"), keyed("used"), 400, "other_body"},
		"not enough":        {"POST", "/v1/payouts", payoutBody(ownAccount, "500"), keyed("not enough"), 400, "low_balance"},
	} {
		t.Run(name, func(t *testing.T) {
			var got json.RawMessage
			if status := w.call(test.method, test.path, test.body, test.header, &got); status != test.wantStatus {
				t.Errorf("status %d, want %d", status, test.wantStatus)
			}
			compare(t, "error_"+test.wantSample, got)
		})
	}
	for fault, name := range map[string]string{`{"status":429}`: "error_throttled", `{"status":500}`: "error_server"} {
		w.control("POST", "/control/faults", fault, nil)
		var got json.RawMessage
		w.call("GET", "/v1/banking_balances", "", nil, &got)
		compare(t, name, got)
	}
}

const sampleContact = `{"name":"Asha Rao","type":"vendor","reference_id":"bka_0Tz3aB9xQ2mK7LpW4sYd1eHc"}`

func (w *fixture) get(path string) (raw json.RawMessage) {
	w.t.Helper()
	w.control("GET", path, "", &raw)
	return raw
}

func (w *fixture) post(path, body string, header http.Header) (raw json.RawMessage) {
	w.t.Helper()
	if status := w.call("POST", path, body, header, &raw); status != http.StatusOK {
		w.t.Fatalf("%s: %d %s", path, status, raw)
	}
	return raw
}

// sampleAccount makes the fund account of the samples, with the number.
func (w *fixture) sampleAccount(number string) json.RawMessage {
	w.t.Helper()
	contact := w.post("/v1/contacts", sampleContact, nil)
	compare(w.t, "contact", contact)
	return w.post("/v1/fund_accounts", `{"contact_id":"`+idOf(w.t, contact)+`","account_type":"bank_account","bank_account":`+
		`{"name":"Asha Rao","ifsc":"HDFC0000053","account_number":"`+number+`"}}`, nil)
}

// event waits for the webhook with the name that is about an id.
func (w *fixture) event(name, about string) (found json.RawMessage) {
	w.t.Helper()
	w.eventually(name, func() bool {
		w.received.mu.Lock()
		defer w.received.mu.Unlock()
		for i, e := range w.received.events {
			p, v := e.Payload.Payout, e.Payload.Validation
			if e.Event == name && (p != nil && p.Entity.ID == about || v != nil && v.Entity.ID == about) {
				found = w.received.bodies[i]
			}
		}
		return found != nil
	})
	return found
}

// The sandbox writes the same samples that the client reads, apart from ids, times and UTRs.
func TestValidations_MatchVendorSamples(t *testing.T) {
	w := open(t, nil)
	good, bad := w.sampleAccount("50100012345678"), w.sampleAccount("50100012340001")
	compare(t, "fund_account", good)
	validate := func(account json.RawMessage) json.RawMessage {
		return w.post("/v1/fund_accounts/validations", `{"account_number":"`+ownAccount+`","fund_account":{"id":"`+idOf(t, account)+
			`"},"amount":100,"currency":"INR","notes":{"bank_account_id":"bka_0Tz3aB9xQ2mK7LpW4sYd1eHc"}}`, nil)
	}
	completed := func(v json.RawMessage) json.RawMessage {
		path := "/v1/fund_accounts/validations/" + idOf(t, v)
		w.eventually("a validation", func() bool { return strings.Contains(string(w.get(path)), `"completed"`) })
		return w.get(path)
	}
	begun := validate(good)
	compare(t, "validation_created", begun)
	compare(t, "validation_active", completed(begun))
	compare(t, "validation_invalid", completed(validate(bad)))
	compare(t, "validation_composite", completed(w.post("/v1/fund_accounts/validations", `{"source_account_number":"`+ownAccount+
		`","validation_type":"pennydrop","reference_id":"bka_0Tz3aB9xQ2mK7LpW4sYd1eHc","fund_account":{"account_type":"bank_account",`+
		`"bank_account":{"name":"Asha Rao","ifsc":"HDFC0000053","account_number":"50100012345678"},"contact":`+sampleContact+`}}`, nil)))
	compare(t, "event_validation_completed", w.event("fund_account.validation.completed", idOf(t, begun)))

	var list razorpayx.Collection[razorpayx.Validation]
	w.control("GET", "/v1/fund_accounts/validations?account_number="+ownAccount+"&fund_account_id="+idOf(t, good), "", &list)
	if list.Count != 2 || list.Items[1].ID != idOf(t, begun) {
		t.Errorf("%+v", list)
	}
}

func TestPayoutsAreTheVendors(t *testing.T) {
	const reference = "pyt_0Tz3aB9xQ2mK7LpW4sYd1eHc"
	w := open(t, nil)
	pay := func(account json.RawMessage, key string) json.RawMessage {
		body, err := w.client.Prepare(gateway.Order{
			Reference: reference, Beneficiary: idOf(t, account), Amount: 1000000, Currency: "INR", Rail: "IMPS",
			Seller: "usr_0Tz3aB9xQ2mK7LpW4sYd1eHc", Account: "bka_0Tz3aB9xQ2mK7LpW4sYd1eHc", Gross: 1000500,
		})
		if err != nil {
			t.Fatal(err)
		}
		return w.post("/v1/payouts", body, keyed(key))
	}
	paid := pay(w.sampleAccount("50100012345678"), "first")
	compare(t, "payout_processing", paid)
	w.reaches(idOf(t, paid), gateway.Paid)
	compare(t, "payout_processed", w.get("/v1/payouts/"+idOf(t, paid)))
	compare(t, "event_payout_processed", w.event("payout.processed", idOf(t, paid)))
	compare(t, "payouts", w.get("/v1/payouts?account_number="+ownAccount+"&reference_id="+reference))
	compare(t, "payouts_none", w.get("/v1/payouts?account_number="+ownAccount+"&reference_id=none"))
	compare(t, "transactions", w.get("/v1/transactions?account_number="+ownAccount))
	compare(t, "banking_balances", w.get("/v1/banking_balances"))

	failing := w.sampleAccount("50100012340002")
	failed := pay(failing, "second")
	w.reaches(idOf(t, failed), gateway.Reversed)
	compare(t, "payout_reversed", w.get("/v1/payouts/"+idOf(t, failed)))
	w.control("PUT", "/control/balance", `{"amount":0}`, nil)
	compare(t, "payout_queued", pay(failing, "third"))
}

func idOf(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var it struct{ ID string }
	if err := json.Unmarshal(raw, &it); err != nil || it.ID == "" {
		t.Fatalf("no id in %s", raw)
	}
	return it.ID
}

// compare holds JSON to a sample, apart from what differs each time.
func compare(t testing.TB, name string, got json.RawMessage) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("..", "razorpayx", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(timeless(t, want), timeless(t, got)); diff != "" {
		t.Errorf("%s (-sample +got):\n%s", name, diff)
	}
}

var (
	ids      = regexp.MustCompile(`"(cont|fa|fav|pout|txn|bt|acc|evt)_[0-9A-Za-z]{14}"`)
	instants = regexp.MustCompile(`"(created_at|refreshed_at)": ?[0-9]+`)
	utrs     = regexp.MustCompile(`"(utr|bank_reference)": ?"[A-Z0-9]{12,22}"`)
)

func timeless(t testing.TB, body []byte) any {
	t.Helper()
	body = ids.ReplaceAll(body, []byte(`"${1}_"`))
	body = instants.ReplaceAll(body, []byte(`"$1":0`))
	body = utrs.ReplaceAll(body, []byte(`"$1":"UTR"`))
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

func TestIdempotencyKey_Repeated_PaysOnce(t *testing.T) {
	w := open(t, nil)
	reference, body := w.order("4321", 60050)
	var callers sync.WaitGroup
	found := make([]gateway.Submission, 32)
	for i := range found {
		callers.Go(func() { found[i] = w.client.Submit(t.Context(), reference, body) })
	}
	callers.Wait()
	for _, s := range found {
		if s.Outcome != gateway.Accepted || s.Report.GatewayID != found[0].Report.GatewayID {
			t.Errorf("%+v", s)
		}
	}
	w.reaches(found[0].Report.GatewayID, gateway.Paid)
	if again := w.submit(reference, body); again.Progress != gateway.Paid {
		t.Errorf("a repeat gives an old state: %+v", again)
	}
	if got := w.client.Submit(t.Context(), reference, strings.Replace(body, "60050", "60051", 1)); got.Outcome != gateway.Unclear || got.ReasonCode != "key_reused" {
		t.Errorf("another body under the key: %+v", got)
	}
	if moves := w.moves(reference); len(moves) != 1 || moves[0].Count != 1 || moves[0].Debit != 60050 {
		t.Errorf("%+v", moves)
	}
}

func TestMoves_DuplicateReference_CountsBoth(t *testing.T) {
	w := open(t, nil)
	reference, body := w.order("4321", 60050)
	first := w.submit(reference, body)
	second := w.client.Submit(t.Context(), "another-key", body)
	if second.Outcome != gateway.Accepted || second.Report.GatewayID == first.GatewayID {
		t.Fatalf("%+v", second)
	}
	w.reaches(second.Report.GatewayID, gateway.Paid)
	if moves := w.moves(reference); len(moves) != 1 || moves[0].Count != 2 || moves[0].Debit != 120100 {
		t.Errorf("%+v", moves)
	}
	if _, err := w.client.Find(t.Context(), reference); err == nil {
		t.Error("the client found one payout where there are two")
	}
}

func TestContactAndFundAccount_Repeated_NotDuplicated(t *testing.T) {
	w := open(t, nil)
	contact := func(change string) string {
		body := strings.Replace(`{"name":"Asha Rao","email":"a@example.com","contact":"9","type":"vendor","reference_id":"r"}`, `"r"`, change, 1)
		var raw json.RawMessage
		if status := w.call("POST", "/v1/contacts", body, nil, &raw); status != 200 {
			t.Fatalf("%d: %s", status, raw)
		}
		return idOf(t, raw)
	}
	first, same, other := contact(`"r"`), contact(`"r"`), contact(`"s"`)
	if first != same || first == other {
		t.Errorf("%s, %s, %s", first, same, other)
	}
	account := func(contact, number string) string {
		var raw json.RawMessage
		w.call("POST", "/v1/fund_accounts", `{"contact_id":"`+contact+`","account_type":"bank_account","bank_account":{"name":"Asha Rao","ifsc":"HDFC0000053","account_number":"`+number+`"}}`, nil, &raw)
		return idOf(t, raw)
	}
	a, again, otherNumber, otherContact := account(first, "0501000"), account(first, "0501000"), account(first, "501000"), account(other, "0501000")
	if a != again || a == otherNumber || a == otherContact {
		t.Errorf("%s, %s, %s, %s", a, again, otherNumber, otherContact)
	}
	var list razorpayx.Collection[razorpayx.FundAccount]
	w.control("GET", "/v1/fund_accounts?contact_id="+first, "", &list)
	if list.Count != 2 || list.Items[1].BankAccount.AccountNumber != "0501000" {
		t.Errorf("%+v", list)
	}
}

func TestContactsAreStrict(t *testing.T) {
	w := open(t, nil)
	for body, wantField := range map[string]string{
		`{}`:                                    "name",
		`{"name":"Al"}`:                         "name",
		`{"name":"Asha & Rao"}`:                 "name",
		`{"name":"Asha Rao-"}`:                  "name",
		`{"name":"Asha Rao","type":"Vendor"}`:   "type",
		`{"name":"Asha Rao","email":"nothing"}`: "email",
		`{"name":7}`:                            "name",
		`not JSON`:                              "",
	} {
		var got razorpayx.ErrorBody
		if status := w.call("POST", "/v1/contacts", body, nil, &got); status != 400 || string(got.Error.Field) != wantField {
			t.Errorf("%s: %d, %+v", body, status, got.Error)
		}
	}
	huge := `{"name":"` + strings.Repeat("a", 70_000) + `"}`
	if status := w.call("POST", "/v1/contacts", huge, nil, nil); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge body: %d", status)
	}
}

func TestPayout_InactiveFundAccount_Refused(t *testing.T) {
	w := open(t, nil)
	reference, body := w.order("4321", 60050)
	var order razorpayx.PayoutRequest
	if err := json.Unmarshal([]byte(body), &order); err != nil {
		t.Fatal(err)
	}
	path := "/v1/fund_accounts/" + order.FundAccountID
	var account razorpayx.FundAccount
	w.control("PATCH", path, `{"active":false}`, &account)
	if account.Active {
		t.Error("the account is still active")
	}
	if got := w.client.Submit(t.Context(), reference, body); got.Outcome != gateway.Refused {
		t.Errorf("outcome %d, %s", got.Outcome, got.ReasonCode)
	}
	w.control("PATCH", path, `{"active":true}`, nil)
	made := w.submit(reference, body)
	w.control("PATCH", path, `{"active":false}`, nil)
	if again := w.submit(reference, body); again.GatewayID != made.GatewayID {
		t.Errorf("made %s, and the repeat gave %s", made.GatewayID, again.GatewayID)
	}
}

func TestListPayouts_FiltersAndPages(t *testing.T) {
	w := open(t, nil)
	all := make([]gateway.Report, 5)
	for i := range all {
		all[i] = w.pay("0004", money.Amount(100+i))
	}
	first := w.fetchWire(all[0].GatewayID)
	for query, want := range map[string][]string{
		"":                                       {all[4].GatewayID, all[3].GatewayID, all[2].GatewayID, all[1].GatewayID, all[0].GatewayID},
		"count=2":                                {all[4].GatewayID, all[3].GatewayID},
		"count=2&skip=3":                         {all[1].GatewayID, all[0].GatewayID},
		"skip=9":                                 {},
		"reference_id=" + all[2].Reference:       {all[2].GatewayID},
		"fund_account_id=" + first.FundAccountID: {all[0].GatewayID},
		"status=processed":                       {},
		"status=processing&mode=IMPS&count=1":    {all[4].GatewayID},
		"to=1000000000":                          {},
		"from=1000000000&count=1":                {all[4].GatewayID},
		"contact_id=cont_00000000000001":         {},
		"mode=NEFT":                              {},
	} {
		var list razorpayx.Collection[razorpayx.Payout]
		w.control("GET", "/v1/payouts?account_number="+ownAccount+"&"+query, "", &list)
		got := []string{}
		for _, p := range list.Items {
			got = append(got, p.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" || list.Count != len(want) {
			t.Errorf("%s: count %d (-want +got):\n%s", query, list.Count, diff)
		}
	}
	for _, query := range []string{"count=0", "count=101", "count=x", "skip=-1", "from=yesterday"} {
		if status := w.call("GET", "/v1/payouts?account_number="+ownAccount+"&"+query, "", nil, nil); status != 400 {
			t.Errorf("%s: %d", query, status)
		}
	}
}

func TestTransfers_IncludeOrders(t *testing.T) {
	w := open(t, nil)
	began := time.Now()
	var want []string
	for _, ending := range []string{"4321", "0004", "0002"} {
		want = append(want, w.pay(ending, 60050).GatewayID)
	}
	slices.Reverse(want)
	var got []string
	for after, more := gateway.Cursor(""), true; more; {
		page, err := w.client.Transfers(t.Context(), began, after)
		if err != nil {
			t.Fatal(err)
		}
		after, more = page.Next, page.Next != ""
		for _, transfer := range page.Transfers {
			got = append(got, transfer.GatewayID)
			o := transfer.Order
			if o.Seller == "" || !id.Valid("bka_", o.Account) || o.Gross != 60150 || o.Amount != 60050 || o.Rail != "IMPS" ||
				transfer.MadeAt.Before(began.Truncate(time.Second)) {
				t.Errorf("%+v", transfer)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
	if later, err := w.client.Transfers(t.Context(), began.Add(time.Hour), ""); err != nil || len(later.Transfers) > 0 {
		t.Errorf("%d transfers of the next hour, %v", len(later.Transfers), err)
	}
}

func (w *fixture) fetchWire(gatewayID string) razorpayx.Payout {
	w.t.Helper()
	var p razorpayx.Payout
	w.control("GET", "/v1/payouts/"+gatewayID, "", &p)
	return p
}

func TestSettleAfter_Changed_AffectsNewPayouts(t *testing.T) {
	w := open(t, func(o *sandbox.Options) { o.SettleAfter = time.Hour })
	slow := w.pay("4321", 60050)
	w.control("PUT", "/control/settle-after", `{"settle_after":"1ms"}`, nil)
	fast := w.pay("4321", 60050)
	w.reaches(fast.GatewayID, gateway.Paid)
	if got := w.fetch(slow.GatewayID); got.Progress != gateway.InProgress {
		t.Errorf("%+v", got)
	}
	if status := w.call("PUT", "/control/settle-after", `{"settle_after":"soon"}`, nil, nil); status != 400 {
		t.Errorf("status %d", status)
	}
}

func TestNewRefusesHalfASandbox(t *testing.T) {
	for name, spoil := range map[string]func(*sandbox.Options){
		"no key":            func(o *sandbox.Options) { o.KeyID = "" },
		"no secret":         func(o *sandbox.Options) { o.KeySecret = "" },
		"no account":        func(o *sandbox.Options) { o.AccountNumber = "" },
		"no currency":       func(o *sandbox.Options) { o.Currency = money.Currency{} },
		"no clock":          func(o *sandbox.Options) { o.Now = nil },
		"no logger":         func(o *sandbox.Options) { o.Logger = nil },
		"a negative wait":   func(o *sandbox.Options) { o.SettleAfter = -1 },
		"unsigned webhooks": func(o *sandbox.Options) { o.WebhookURL, o.WebhookSecret = "http://127.0.0.1:1", "" },
		"no address":        func(o *sandbox.Options) { o.WebhookURL = "nowhere" },
		"no file":           func(o *sandbox.Options) { o.Path = t.TempDir() },
	} {
		o := options()
		spoil(&o)
		if _, err := sandbox.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
