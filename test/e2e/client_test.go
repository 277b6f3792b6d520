package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/client"
	"bursar/test/harness"
)

// lostAnswers sends requests, and loses the first answer to each payout request: the service did what it was asked, and
// the caller can't know.
type lostAnswers struct {
	lost atomic.Int64
	mu   sync.Mutex
	keys map[string]bool
}

func (l *lostAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	key := r.Header.Get("Idempotency-Key")
	if err != nil || key == "" {
		return response, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[key] {
		return response, nil
	}
	l.keys[key] = true
	l.lost.Add(1)
	_ = response.Body.Close()
	return nil, io.ErrUnexpectedEOF
}

// taken is what a receiver of webhooks has stored, by id.
type taken struct {
	mu     sync.Mutex
	events map[string]client.Event
}

func (k *taken) take(_ context.Context, e client.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events[e.ID] = e
	return nil
}

// event finds an event that was taken; its ID is empty for none.
func (k *taken) event(id string) client.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.events[id]
}

// sellers are more than one page of any list has.
const sellers = 121

// TestGoClient plays a marketplace's server from a seller's first day to the payout, through our client and against the
// program as it is released.
func TestGoClient(t *testing.T) {
	ctx := t.Context()
	i := harness.NewDefaultInstance(t, "BURSAR_CANCEL_WINDOW=1s", "BURSAR_SANDBOX_SETTLE_AFTER=0s")
	i.Start(t)
	made, err := i.Command("apikey", "create", "--name", "shop").Output()
	must(t, err)
	lossy := &lostAnswers{keys: map[string]bool{}}
	bursar, err := client.New(client.Config{BaseURL: i.API, Key: strings.TrimSpace(string(made)), HTTPClient: &http.Client{Transport: lossy}})
	must(t, err)

	// The receiver starts first, and has the secret once the endpoint is there.
	received := &taken{events: map[string]client.Event{}}
	var handler atomic.Value
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().(http.Handler).ServeHTTP(w, r) }))
	defer receiver.Close()
	endpoint, err := bursar.AddEndpoint(ctx, client.NewEndpoint{URL: receiver.URL, Description: "shop"})
	must(t, err)
	webhooks, err := client.NewWebhooks(endpoint.Secret)
	must(t, err)
	handler.Store(webhooks.Handler(received.take))
	if result, err := bursar.TestEndpoint(ctx, endpoint.ID); err != nil || !result.Delivered {
		t.Fatalf("the test event: %+v, %v", result, err)
	}

	asha := client.NewSeller{ExternalID: "shop/17", Name: "Asha Rao", Email: "asha@shop.example"}
	seller, err := bursar.CreateSeller(ctx, asha)
	must(t, err)
	if again, err := bursar.CreateSeller(ctx, asha); err != nil || again != seller {
		t.Fatalf("the same seller again: %+v, %v", again, err)
	}
	if _, err := bursar.CreateSeller(ctx, client.NewSeller{ExternalID: "shop/17", Name: "Somebody", Email: asha.Email}); !client.HasCode(err, "seller_conflict") {
		t.Fatalf("another seller under the id: %v", err)
	}
	if _, err := bursar.CreateSeller(ctx, client.NewSeller{ExternalID: "x", Name: "A", Email: "none"}); !client.HasCode(err, "validation_failed") || !strings.Contains(err.Error(), "email: ") {
		t.Fatalf("a seller without an address: %v", err)
	}
	id := client.ExternalID("shop/17")
	must(t, bursar.SetProductsListed(ctx, id, 7))
	if account, err := bursar.RegisterBankAccount(ctx, id, client.NewBankAccount{AccountHolder: "Asha Rao", AccountNumber: "50100123456789", IFSC: "HDFC0000053"}); err != nil || account.AccountNumber != "****6789" {
		t.Fatalf("%+v, %v", account, err)
	}

	long := time.Now().Add(-100 * time.Hour).UTC().Truncate(time.Millisecond)
	sale := client.NewSale{SaleID: "order-1", SellerID: id, Amount: "1499.50", OccurredAt: long, AvailableAt: long.Add(time.Hour)}
	recorded, err := bursar.RecordSale(ctx, sale)
	if err != nil || recorded.SellerID != seller.SellerID || recorded.Amount != "1499.5" || !recorded.OccurredAt.Equal(long) {
		t.Fatalf("%+v, %v", recorded, err)
	}
	results, err := bursar.RecordSales(ctx, []client.NewSale{sale, {SaleID: "order-2", SellerID: id, Amount: "100"}, {SaleID: "order-3", SellerID: client.ExternalID("nobody"), Amount: "5"}})
	if err != nil || len(results) != 3 || !results[0].Success || !results[1].Success || results[2].Code != "seller_not_found" {
		t.Fatalf("%+v, %v", results, err)
	}
	if refund, err := bursar.RefundSale(ctx, "order-2", client.NewRefund{RefundID: "r-1"}); err != nil || refund.Amount != "100" || refund.Sale.RefundedAmount != "100" {
		t.Fatalf("%+v, %v", refund, err)
	}
	for _, amount := range []client.Amount{"5.5", "-5.5"} {
		made, err := bursar.AdjustBalance(ctx, id, client.NewAdjustment{AdjustmentID: "by " + string(amount), Amount: amount, Reason: "A fee.", Note: "Ticket 1."})
		if err != nil || made.Amount != amount || made.SellerID != seller.SellerID || !strings.HasPrefix(made.CreatedBy, "key:") {
			t.Fatalf("%+v, %v", made, err)
		}
	}
	harness.Until(t, "the money can be withdrawn", func() bool {
		explained, err := bursar.Explain(ctx, id)
		must(t, err)
		return len(explained.Blockers) == 0 && explained.Buckets.Available == "1499.5" && explained.Buckets.Owed == "1499.5"
	})

	payout, err := bursar.RequestPayout(ctx, id, client.NewPayout{Amount: "600.25", Notes: "weekly"})
	if err != nil || payout.Amount != "600.25" || payout.Source != "marketplace" || lossy.lost.Load() != 1 {
		t.Fatalf("%+v, %v, %d answers lost", payout, err, lossy.lost.Load())
	}
	if _, err := bursar.RequestPayout(ctx, id, client.NewPayout{Amount: "899.26"}); !client.HasCode(err, "insufficient_balance") {
		t.Fatalf("more than there is: %v", err)
	}
	follow, cancel := context.WithTimeout(ctx, time.Minute) // ends a loop that would never end
	defer cancel()
	for e, err := range bursar.Follow(follow, 0, client.PayoutCompleted) {
		must(t, err)
		p, err := e.Payout()
		must(t, err)
		if p.ID != payout.PayoutID || p.NetAmount != "600.25" || p.CompletedAt.IsZero() {
			t.Errorf("completed %+v", p)
		}
		break
	}
	page, err := bursar.Payouts(ctx, id, "completed", client.Page{})
	if err != nil || len(page.Payouts) != 1 || page.Payouts[0].ID != payout.PayoutID || page.Pagination.TotalItems != 1 {
		t.Fatalf("a lost answer made these payouts: %+v, %v", page, err)
	}
	if balance, err := bursar.Balance(ctx, id); err != nil || balance.AvailableBalance != "899.25" || balance.TotalWithdrawn != "600.25" {
		t.Fatalf("%+v, %v", balance, err)
	}
	if sales, err := bursar.Sales(ctx, id, client.Page{Size: 1}); err != nil || len(sales.Sales) != 1 || sales.Pagination.TotalPages != 2 {
		t.Fatalf("%+v, %v", sales, err)
	}
	if link, err := bursar.SessionLink(ctx, id); err != nil || !strings.HasPrefix(link.URL, i.API) {
		t.Fatalf("%v", err)
	}
	for i := range sellers - 1 {
		_, err := bursar.CreateSeller(ctx, client.NewSeller{ExternalID: fmt.Sprint("n-", i), Name: "Ravi Shah", Email: fmt.Sprintf("ravi-%d@shop.example", i)})
		must(t, err)
	}
	listed := 0
	for s, err := range bursar.Sellers(ctx) {
		must(t, err)
		if listed++; s.ExternalID == asha.ExternalID && s != seller {
			t.Errorf("listed %+v, created %+v", s, seller)
		}
	}
	if listed != sellers {
		t.Errorf("%d sellers are listed, of %d", listed, sellers)
	}
	checkEvents(t, bursar, received, endpoint.ID)
	lookAfterEndpoint(t, bursar, endpoint)
}

// checkEvents reads the feed, each event as what it is about, and waits until the receiver has all.
func checkEvents(t *testing.T, bursar *client.Client, received *taken, endpoint string) {
	t.Helper()
	registered := 0
	harness.Until(t, "all sellers are in the feed", func() bool {
		registered = 0
		for _, err := range bursar.Events(t.Context(), 0, client.SellerRegistered) {
			must(t, err)
			registered++
		}
		return registered == sellers
	})
	var feed []client.Event
	for e, err := range bursar.Events(t.Context(), 0) {
		must(t, err)
		if feed = append(feed, e); e.Number != int64(len(feed)) {
			t.Fatalf("event %d has the number %d", len(feed), e.Number)
		}
		if _, err := e.Change(); err != nil {
			t.Error(err)
		}
		readWhole(t, e)
	}
	for _, want := range []client.EventType{client.SellerRegistered, client.BankAccountVerified, client.SaleRecorded, client.SaleRefunded, client.SaleReleased, client.PayoutRequested, client.PayoutCompleted} {
		if !slices.ContainsFunc(feed, func(e client.Event) bool { return e.Type == want }) {
			t.Errorf("the feed has no %s", want)
		}
	}
	harness.Until(t, "the receiver has all events", func() bool {
		return !slices.ContainsFunc(feed, func(e client.Event) bool { return received.event(e.ID).ID == "" })
	})
	for _, e := range feed {
		got := received.event(e.ID)
		if got.Type != e.Type || !got.Timestamp.Equal(e.Timestamp) || !sameJSON(t, got.Data, e.Data) {
			t.Errorf("the feed has %+v, and delivered was %+v", e, got)
		}
	}
	harness.Until(t, "all deliveries are recorded", func() bool {
		delivered := map[string]bool{}
		for d, err := range bursar.Deliveries(t.Context(), client.DeliveryFilter{EndpointID: endpoint, Status: "delivered"}) {
			must(t, err)
			if delivered[d.EventID] = true; d.EndpointID != endpoint || d.ResponseStatus != http.StatusNoContent {
				t.Errorf("delivered %+v", d)
			}
		}
		return !slices.ContainsFunc(feed, func(e client.Event) bool { return !delivered[e.ID] })
	})
	if queued, err := bursar.Redeliver(t.Context(), feed[0].ID, client.Redelivery{EndpointID: endpoint, Through: feed[2].ID}); err != nil || queued != 3 {
		t.Errorf("sent %d events again, %v", queued, err)
	}
}

// readWhole fails the test if an event has a member that the client's types lack.
func readWhole(t *testing.T, e client.Event) {
	t.Helper()
	var into any
	switch kind, _, _ := strings.Cut(string(e.Type), "."); kind {
	case "seller":
		into = &client.RegisteredSeller{}
	case "sale":
		into = &struct {
			client.Sale
			besideObject
			Refund *client.SaleRefund `json:"refund"`
		}{}
	case "payout":
		into = &struct {
			client.Payout
			besideObject
		}{}
	case "bank_account":
		into = &struct {
			client.BankAccount
			besideObject
		}{}
	case "balance":
		into = &struct {
			client.Adjustment
			besideObject
		}{}
	default:
		into = &client.Change{}
	}
	strict := json.NewDecoder(bytes.NewReader(e.Data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		t.Errorf("%s: %v in %s", e.Type, err, e.Data)
	}
}

// besideObject is what events say beside their objects, but for the seller, which is a member of both.
type besideObject struct {
	Entry   int64           `json:"entry"`
	Balance json.RawMessage `json:"balance"`
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	must(t, json.Unmarshal(a, &x))
	must(t, json.Unmarshal(b, &y))
	return reflect.DeepEqual(x, y)
}

// lookAfterEndpoint changes an endpoint in every way there is.
func lookAfterEndpoint(t *testing.T, bursar *client.Client, endpoint client.Endpoint) {
	t.Helper()
	ctx := t.Context()
	disabled, types := "disabled", []client.EventType{client.PayoutCompleted}
	changed, err := bursar.ChangeEndpoint(ctx, endpoint.ID, client.EndpointChange{Status: &disabled, Types: &types})
	if err != nil || changed.Status != "disabled" || !slices.Equal(changed.Types, types) || changed.Description != "shop" {
		t.Errorf("%+v, %v", changed, err)
	}
	rotated, err := bursar.RotateSecret(ctx, endpoint.ID)
	if err != nil || rotated.Secret == "" || rotated.Secret == endpoint.Secret || rotated.RotatedUntil.IsZero() {
		t.Errorf("rotated until %s, %v", rotated.RotatedUntil, err)
	}
	if read, err := bursar.Endpoint(ctx, endpoint.ID); err != nil || read.Secret != "" || read.URL != endpoint.URL {
		t.Errorf("%+v, %v", read, err)
	}
	if list, err := bursar.Endpoints(ctx); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	must(t, bursar.RemoveEndpoint(ctx, endpoint.ID))
	if _, err := bursar.Endpoint(ctx, endpoint.ID); !client.HasCode(err, "endpoint_not_found") {
		t.Errorf("after its removal: %v", err)
	}
}
