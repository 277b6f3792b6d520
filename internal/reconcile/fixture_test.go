package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

// india is where the days of these tests begin.
var india = time.FixedZone("IST", 19800)

// fixture is the services on a database, the sandbox at the other end of a wire, and a clock that is set by hand.
type fixture struct {
	*testing.T
	db      *store.DB
	box     *sandbox.Sandbox
	at      string
	sales   *sale.Service
	payouts *payout.Service
	service *reconcile.Service
	options reconcile.Options
	client  *razorpayx.Client
	now     time.Time
	// ahead is by how much the gateway's clock is ahead of ours.
	ahead time.Duration
	// broken is answered in place of what the gateway says, if it is set.
	broken http.HandlerFunc
	asked  int
}

const grace = 10 * time.Minute

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureAt(t, storetest.NewPlace(t))
}

func newFixtureAt(t *testing.T, place storetest.Place) *fixture {
	t.Helper()
	w := &fixture{T: t, db: place.Open(t), now: time.Date(2026, 11, 2, 10, 0, 0, 0, india)}
	inr, err := money.ParseCurrency("INR")
	w.must(err)
	quiet := slog.New(slog.DiscardHandler)
	clock := func() time.Time { return w.now }
	w.box, err = sandbox.New(sandbox.Options{
		KeyID: "rzp_test_key", KeySecret: "secret", AccountNumber: "7878780080316316", SettleAfter: time.Second, Currency: inr, Now: func() time.Time { return clock().Add(w.ahead) }, Logger: quiet,
	})
	w.must(err)
	t.Cleanup(func() { _ = w.box.Close() })
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.asked++; w.broken != nil {
			w.broken(rw, r)
			return
		}
		w.box.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.at = server.URL
	w.client, err = razorpayx.New(razorpayx.Options{
		BaseURL: server.URL + "/v1", KeyID: "rzp_test_key", KeySecret: "secret", AccountNumber: "7878780080316316", Currency: inr, Now: clock,
	})
	w.must(err)
	w.sales, err = sale.New(sale.Options{Store: w.db.Sales(), Now: clock, Zone: india})
	w.must(err)
	fee, err := payout.ParseFee("5", inr)
	w.must(err)
	w.payouts, err = payout.New(payout.Options{
		Mails: storetest.NewMailbox(t, w.db, storetest.Keys(t), clock), Store: w.db.Payouts(), Gateways: gateway.Only(w.client), Beneficiaries: beneficiaries{w}, Currency: inr, Minimum: 1000, Fee: fee,
		Arrival: payout.NewArrival(inr, india, payout.Holidays{}), Lease: time.Minute, GracePeriod: grace, ReversalsEvery: time.Minute, Zone: india, Now: clock, Logger: quiet, StateChanged: func(payout.State, payout.State) {},
		Jitter: func(d time.Duration) time.Duration { return d },
	})
	w.must(err)
	w.options = reconcile.Options{
		Store: w.db.Reconciling(w.client.Name()), Statement: w.client, Payouts: w.payouts, Currency: inr, GracePeriod: grace, Zone: india, Now: clock, Logger: quiet,
	}
	w.service = w.instance()
	for _, last4 := range []string{"1234", "0002", "0003", "0004"} {
		w.seller("usr_"+last4, last4)
	}
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
		return tx.InsertUser(t.Context(), auth.User{ID: "usr_admin", Email: "admin", Role: auth.Admin, CreatedAt: w.now})
	}))
	w.must(w.payouts.ReconcileStartup(t.Context()))
	return w
}

// instance is a service of its own on the same database.
func (w *fixture) instance() *reconcile.Service {
	w.Helper()
	s, err := reconcile.New(w.options)
	w.must(err)
	return s
}

// beneficiaries knows the accounts of the sellers, whose ids end with an account's last digits.
type beneficiaries struct{ w *fixture }

func (b beneficiaries) Beneficiary(ctx context.Context, _ string, id bank.ID, _ gateway.Name, _ int64) (string, error) {
	last4 := string(id[len(id)-4:])
	return b.w.client.EnsureBeneficiary(ctx, string(id), gateway.Destination{Holder: "Asha Rao", IFSC: "HDFC0000053", AccountNumber: "5010001234" + last4})
}

func (beneficiaries) CheckPayable(context.Context, string, bank.ID, int64) error { return nil }

func (beneficiaries) Recover(context.Context, string, bank.ID, gateway.Name, string) error {
	return nil
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// seller adds a seller with money and an account that ends with the digits.
func (w *fixture) seller(id, last4 string) {
	w.Helper()
	ctx := w.Context()
	w.must(w.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.InsertUser(ctx, auth.User{ID: id, Email: id, Role: auth.Seller, CreatedAt: w.now}); err != nil {
			return err
		}
		account := bank.Account{
			ID: bank.ID("bka_" + last4), Seller: id, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: last4, Current: true,
			Status: bank.StatusVerified, NameScore: -1, CreatedAt: w.now, VerifiedAt: w.now,
		}
		if _, err := tx.InsertBankAccount(ctx, account); err != nil {
			return err
		}
		added, err := bank.Recorded(bank.Account{ID: account.ID}, account, "user:"+id, w.now)
		if err == nil {
			_, err = tx.Append(ctx, added)
		}
		return err
	}))
	_, _, err := w.sales.Record(ctx, sale.NewSale{ID: "sale " + id, Seller: id, Amount: 10_000_000, AvailableAt: w.now})
	w.must(err)
	_, err = w.sales.ReleaseDue(ctx)
	w.must(err)
}

// ask asks for a payout, which sends net to an account.
func (w *fixture) ask(last4 string, net money.Amount) payout.ID {
	w.Helper()
	p, _, err := w.payouts.Request(w.Context(), payout.Request{Seller: "usr_" + last4, Amount: net + 500})
	w.must(err)
	return p.ID
}

// pay asks for a payout and lets the gateway and the work go on until it stands still.
func (w *fixture) pay(last4 string, net money.Amount) payout.ID {
	w.Helper()
	id := w.ask(last4, net)
	for range 8 {
		w.later(3 * time.Second)
	}
	return id
}

// later lets time pass, and then happen what is due.
func (w *fixture) later(d time.Duration) {
	w.Helper()
	w.now = w.now.Add(d)
	for range 3 {
		w.must(w.box.TakeSteps(w.Context()))
		ids, err := w.payouts.LeaseDue(w.Context(), 100)
		w.must(err)
		for _, id := range ids {
			w.must(w.payouts.Step(w.Context(), id))
		}
	}
}

// goTo sets the clock, with nothing happening meanwhile.
func (w *fixture) goTo(day, hour int) { w.now = time.Date(2026, 11, day, hour, 0, 0, 0, india) }

func (w *fixture) state(id payout.ID) payout.State {
	w.Helper()
	p, err := w.db.Payout(w.Context(), id)
	w.must(err)
	return p.State
}

// control tells the sandbox to do something, and returns its answer.
func (w *fixture) control(method, path string, body any) map[string]any {
	w.Helper()
	text, err := json.Marshal(body)
	w.must(err)
	request, err := http.NewRequestWithContext(w.Context(), method, w.at+path, bytes.NewReader(text))
	w.must(err)
	response, err := http.DefaultClient.Do(request)
	w.must(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	w.must(err)
	if response.StatusCode != http.StatusOK {
		w.Fatalf("%s %s: %d %s", method, path, response.StatusCode, answer)
	}
	var read map[string]any
	w.must(json.Unmarshal(answer, &read))
	return read
}

func (w *fixture) misstate(change sandbox.StatementChange) map[string]any {
	w.Helper()
	return w.control(http.MethodPost, "/control/statement", change)
}

// reconcile compares the days from one to another of November.
func (w *fixture) reconcile(from, to string) reconcile.Result {
	w.Helper()
	p, err := w.service.Period("2026-11-"+from, "2026-11-"+to)
	w.must(err)
	r, err := w.service.Reconcile(w.Context(), p, true)
	w.must(err)
	if rest := r.Sums.Rest(); rest != 0 {
		w.Errorf("nothing accounts for %d: %+v", rest, r.Sums)
	}
	return r
}

// wantKinds compares the kinds of open differences.
func wantKinds(t *testing.T, r reconcile.Result, want ...reconcile.Kind) {
	t.Helper()
	var got []reconcile.Kind
	for _, d := range r.Differences {
		if d.Open() {
			got = append(got, d.Kind)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v: %+v", got, want, r.Differences)
	}
}

// open lists the kinds of the differences that wait for a person.
func (w *fixture) open() []reconcile.Kind {
	w.Helper()
	all, err := w.service.Open(w.Context(), 100)
	w.must(err)
	var kinds []reconcile.Kind
	for _, d := range all {
		kinds = append(kinds, d.Kind)
	}
	slices.Sort(kinds)
	return kinds
}
