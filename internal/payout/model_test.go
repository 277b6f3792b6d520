package payout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/seal"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// reached counts how often payouts were seen in each state, over all checks.
type reached map[payout.State]int

// TestBooksHoldWhateverHappens drives the real services and the real store through random sales,
// refunds, requests, cancellations, gateway answers and decisions of an admin on a clock of its own, and holds
// the books against a model after every step. In the end each payout must have reached an end, and the gateway
// must have paid exactly those that say so, exactly once.
func TestBooksHoldWhateverHappens(t *testing.T) {
	seen := reached{}
	tryIt := func() {
		rapid.Check(t, func(rt *rapid.T) {
			m := newMarket(t, rt)
			m.seen = seen
			defer m.close()
			rt.Repeat(map[string]func(*rapid.T){
				"sale":    m.recordSale,
				"refund":  m.refund,
				"request": m.request,
				"again":   m.requestAgain,
				"cancel":  m.cancel,
				"wait":    m.wait,
				"step":    m.step,
				"work on": m.workOn,
				"bank":    m.bankMoves,
				"trouble": m.trouble,
				"admin":   m.decide,
				"weather": m.weather,
				"backup":  m.backUp,
				"restore": m.restore,
				"":        m.check,
			})
			m.drain(rt)
		})
	}
	for seed := range uint64(5) { // luck may not have led everywhere
		seeded(t, 1+seed, tryIt)
		if testing.Short() || len(seen.missing()) == 0 {
			return
		}
	}
	t.Errorf("no payout was ever %s: the model no longer leads there", seen.missing())
}

// missing lists the states that were never seen.
func (r reached) missing() (states []payout.State) {
	for _, s := range payout.States() {
		if r[s] == 0 {
			states = append(states, s)
		}
	}
	return states
}

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

// failer is what a market needs of a test: testing.T and rapid.T both have it.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// market is the system and, beside it, the model of what must be true.
type market struct {
	ctx     context.Context //nolint:containedctx // a test's
	tb      testing.TB
	place   storetest.Place
	db      *store.DB
	sales   *sale.Service
	payouts *payout.Service
	seals   seal.Seals
	luck    *luck
	gateway *paperGateway
	now     time.Time

	sellers []string
	sold    map[string]*soldItem
	asked   []*ask
	// told and refunds are what the marketplace knows, and may tell again.
	told    []sale.NewSale
	refunds []sale.NewRefund
	saved   *backup
	started time.Time
	count   int
	seen    reached
}

type soldItem struct {
	seller      string
	amount      money.Amount
	refunded    money.Amount
	availableAt time.Time
}

type ask struct {
	request payout.Request
	id      payout.ID
	refusal string
	// keyLost says that the payout was restored and its key was not.
	keyLost bool
}

func newMarket(t *testing.T, rt failer) *market {
	t.Helper()
	m := &market{
		ctx: t.Context(), tb: t, now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC),
		sellers: []string{"usr_a", "usr_b"}, sold: map[string]*soldItem{},
	}
	m.place, m.seals, m.luck = storetest.NewPlace(t), storetest.Seals(t), newLuck()
	m.gateway = &paperGateway{transfers: map[string]*transfer{}, underway: map[string]lateOrder{}, now: func() time.Time { return m.now }}
	m.open(rt)
	if err := insertUser(m.ctx, m.db, ada.Admin, auth.Admin, m.now); err != nil {
		rt.Fatal(err)
	}
	for _, seller := range m.sellers {
		m.join(rt, seller)
	}
	if err := m.payouts.CatchUp(m.ctx); err != nil {
		rt.Fatal(err)
	}
	return m
}

// join adds a seller with enough to withdraw: random sales alone seldom make a payout.
func (m *market) join(t failer, seller string) {
	t.Helper()
	if err := openSeller(m.ctx, m.db, seller, m.now); err != nil {
		t.Fatal(err)
	}
	opening := &soldItem{seller: seller, amount: 2_000_000, availableAt: m.now}
	m.sold["opening of "+seller] = opening
	m.record(t, sale.NewSale{
		ID: "opening of " + seller, Seller: seller, Amount: opening.amount, OccurredAt: m.now.Add(-time.Hour), AvailableAt: m.now,
	})
	m.release(t)
}

// record records a sale, and keeps what the marketplace knows of it.
func (m *market) record(t failer, n sale.NewSale) bool {
	t.Helper()
	_, created, err := m.sales.Record(m.ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	if created {
		m.told = append(m.told, n)
	}
	return created
}

// open opens the database and starts the services.
func (m *market) open(t failer) {
	t.Helper()
	db := m.place.Open(m.tb)
	m.db = db
	clock := func() time.Time { return m.now }
	var err error
	m.sales, err = sale.New(sale.Options{Store: db.Sales(), Now: clock, Hold: time.Hour, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	m.payouts, m.started = m.newPayouts(t), m.now
}

const (
	lease    = time.Minute
	patience = 10 * time.Minute
)

// newPayouts starts a service for payouts, as on one of many instances.
func (m *market) newPayouts(t failer) *payout.Service {
	t.Helper()
	return m.newPayoutsOn(t, undoing{m.db.Payouts()})
}

func (m *market) newPayoutsOn(t failer, store payout.Store) *payout.Service {
	t.Helper()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	fee, err := payout.ParseFee("5+0.5%", inr)
	if err != nil {
		t.Fatal(err)
	}
	service, err := payout.New(payout.Options{
		Store: store, Gateway: m.gateway, Beneficiaries: m.gateway, Seals: m.seals, Currency: inr, Minimum: 50000, Fee: fee,
		Arrival: payout.Arrival{Zone: time.UTC}, CancelWindow: time.Minute, Lease: lease, Patience: patience, Zone: time.UTC,
		Now: func() time.Time { return m.now }, Logger: slog.New(slog.DiscardHandler), Moved: func(payout.State, payout.State) {},
		IDs: id.Source{Random: m.luck}, Jitter: m.luck.jitter,
	})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// openSeller adds a seller with a verified bank account.
func openSeller(ctx context.Context, db *store.DB, seller string, now time.Time) error {
	if err := insertUser(ctx, db, seller, auth.Seller, now); err != nil {
		return err
	}
	return db.Bank().InTx(ctx, func(tx bank.Tx) error {
		return tx.ReplaceBankAccount(ctx, bank.Account{
			ID: bank.ID("bka_" + seller), Seller: seller, Holder: "Asha", IFSC: "HDFC0000053", Last4: "1234",
			Status: bank.StatusVerified, NameScore: -1, Beneficiary: "fa_" + seller, CreatedAt: now, VerifiedAt: now,
		})
	})
}

func insertUser(ctx context.Context, db *store.DB, id string, role auth.Role, now time.Time) error {
	return db.Auth().InTx(ctx, func(tx auth.Tx) error {
		return tx.InsertUser(ctx, auth.User{ID: id, Name: "Asha", Email: id + "@example.com", Role: role, CreatedAt: now})
	})
}

func (m *market) close() { _ = m.db.Close() }

func (m *market) recordSale(t *rapid.T) {
	m.count++
	id := fmt.Sprintf("sale-%d", rapid.IntRange(1, m.count).Draw(t, "sale")) // some ids come again
	item, again := m.sold[id]
	if !again {
		item = &soldItem{
			seller: rapid.SampledFrom(m.sellers).Draw(t, "seller"),
			amount: money.Amount(rapid.Int64Range(1, 500_000).Draw(t, "amount")),
		}
		item.availableAt = m.now.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "hold")) * time.Hour)
	}
	created := m.record(t, sale.NewSale{
		ID: id, Seller: item.seller, Amount: item.amount, OccurredAt: item.availableAt.Add(-48 * time.Hour), AvailableAt: item.availableAt,
	})
	if created == again {
		t.Fatalf("record %s: created %t; known before: %t", id, created, again)
	}
	m.sold[id] = item
}

func (m *market) refund(t *rapid.T) {
	if len(m.sold) == 0 {
		t.Skip("nothing was sold")
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.sold))).Draw(t, "sale")
	item := m.sold[id]
	m.count++
	amount := money.Amount(rapid.Int64Range(1, int64(item.amount)).Draw(t, "amount"))
	n := sale.NewRefund{Sale: id, ID: fmt.Sprintf("refund-%d", m.count), Amount: amount}
	fits := amount <= item.amount-item.refunded
	_, _, created, err := m.sales.Refund(m.ctx, n)
	if !fits {
		if !errors.Is(err, sale.ErrRefundTooLarge) {
			t.Fatalf("refund of %d from %d with %d refunded: %v", amount, item.amount, item.refunded, err)
		}
		return
	}
	if err != nil || !created {
		t.Fatalf("refund: created %t, error %v", created, err)
	}
	item.refunded += amount
	m.refunds = append(m.refunds, n)
	if _, _, created, err := m.sales.Refund(m.ctx, n); err != nil || created {
		t.Fatalf("repeat of a refund: created %t, error %v", created, err)
	}
}

func (m *market) request(t *rapid.T) {
	m.count++
	a := &ask{request: payout.Request{
		Seller: rapid.SampledFrom(m.sellers).Draw(t, "seller"),
		Amount: money.Amount(rapid.Int64Range(50_000, 400_000).Draw(t, "amount")),
		Key:    fmt.Sprintf("key-%d", m.count),
	}}
	available := m.wantBalance(t, a.request.Seller).Available
	p, replayed, err := m.payouts.Request(m.ctx, a.request)
	switch {
	case replayed:
		t.Fatal("a new key was taken for an old one")
	case a.request.Amount > available:
		if !errors.Is(err, ledger.ErrInsufficient) {
			t.Fatalf("asked for %d of %d: %v", a.request.Amount, available, err)
		}
		a.refusal = fault.From(err).Message
	case err != nil:
		t.Fatalf("asked for %d of %d: %v", a.request.Amount, available, err)
	default:
		a.id = p.ID
	}
	m.asked = append(m.asked, a)
}

// requestAgain repeats a request under its key: the first answer must come again, and nothing else.
func (m *market) requestAgain(t *rapid.T) {
	if len(m.asked) == 0 {
		t.Skip("nothing was asked for")
	}
	a := rapid.SampledFrom(m.asked).Draw(t, "request")
	if a.keyLost {
		t.Skip("it would be a new request")
	}
	p, replayed, err := m.payouts.Request(m.ctx, a.request)
	if !replayed || p.ID != a.id {
		t.Fatalf("repeat of %s gave %s, replayed %t", a.id, p.ID, replayed)
	}
	if f := fault.From(err); (f == nil) != (a.refusal == "") || (f != nil && f.Message != a.refusal) {
		t.Fatalf("repeat gave %v, first %q", err, a.refusal)
	}
	other := a.request
	other.Amount++
	if _, _, err := m.payouts.Request(m.ctx, other); !errors.Is(err, payout.ErrKeyReused) {
		t.Fatalf("the key was taken for another amount: %v", err)
	}
}

func (m *market) cancel(t *rapid.T) {
	id, ok := m.anyPayout(t)
	if !ok {
		t.Skip("no payout")
	}
	before, err := m.db.Payout(m.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := m.payouts.Cancel(m.ctx, payout.Caller{User: before.Seller}, id, "")
	if before.State == payout.Submitted && err == nil && m.gateway.transfers[string(id)].progress != payout.CalledOff {
		t.Fatal("cancelled a payout that the gateway has not let go of")
	}
	transfer, known := m.gateway.transfers[string(id)]
	mayBeSent := before.State == payout.Waiting && (before.RequestedAt.Before(m.started) || !before.SentAt.IsZero())
	switch {
	case mayBeSent && m.gateway.saysNothing():
		if !errors.Is(err, payout.ErrCancelUnclear) {
			t.Fatalf("cancel a payout that may have been sent: %v", err)
		}
		return
	case mayBeSent && known:
		if err == nil && transfer.progress != payout.CalledOff {
			t.Fatal("cancelled a payout that was sent before, or turned away and taken")
		}
		return
	}
	if before.State == payout.Waiting && (err != nil || p.State != payout.Cancelled) {
		t.Fatalf("cancel a waiting payout: %s, %v", p.State, err)
	}
	if before.State != payout.Waiting && before.State != payout.Submitted && !errors.Is(err, payout.ErrNotCancellable) {
		t.Fatalf("cancel a payout that is %s: %v", before.State, err)
	}
}

func (m *market) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
	if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
		m.now = m.now.AddDate(0, 0, 7) // longer than the gateway honours a key
	}
	m.release(t)
}

func (m *market) release(t failer) {
	for {
		n, err := m.sales.ReleaseDue(m.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// step takes what is due, and does some of it twice: a lease may run out under a slow worker.
func (m *market) step(t *rapid.T) {
	ids, err := m.payouts.TakeDue(m.ctx, rapid.IntRange(1, 4).Draw(t, "limit"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		for range rapid.IntRange(0, 2).Draw(t, "times") { // none: the worker died
			m.tryStep(id)
		}
	}
}

// tryStep takes a step in whatever weather. An error is the gateway's answer, and a panic the end of a
// worker in the middle of its step; the books are checked afterwards.
func (m *market) tryStep(id payout.ID) {
	defer func() {
		if died := recover(); died != nil && died != workerDied {
			panic(died)
		}
	}()
	_ = m.payouts.Step(m.ctx, id)
}

func (m *market) bankMoves(t *rapid.T) {
	m.gateway.arrive(m.now)
	for _, ref := range slices.Sorted(maps.Keys(m.gateway.transfers)) {
		m.gateway.transfers[ref].advance(rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, "luck"))
		if rapid.Bool().Draw(t, "webhook") {
			event := fmt.Sprintf("event-%d", rapid.IntRange(1, 1000).Draw(t, "event"))
			if err := m.payouts.Hint(m.ctx, event, payout.ID(ref)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// workOn lets enough time pass for something to be due, and takes it.
func (m *market) workOn(t *rapid.T) {
	m.wait(t)
	m.step(t)
}

func (m *market) weather(t *rapid.T) {
	m.gateway.mood = rapid.SampledFrom(moods).Draw(t, "mood")
	m.gateway.lateness = m.lateness(t)
}

// lateness is short of the patience that the service has.
func (m *market) lateness(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(lease+patience)-1).Draw(t, "lateness"))
}

// trouble makes it likely that something is unclear.
func (m *market) trouble(t *rapid.T) {
	m.gateway.mood, m.gateway.lateness = rapid.SampledFrom([]mood{slow, lostAnswers, lostRequests, silent}).Draw(t, "mood"), m.lateness(t)
	m.request(t)
	m.now = m.now.Add(windowOver)
	m.step(t)
}

// decide is an admin at work, who tries to get unclear payouts settled.
func (m *market) decide(t *rapid.T) {
	a, err := m.payouts.Attention(m.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Unclear) == 0 {
		t.Skip("nothing is unclear")
	}
	id := rapid.SampledFrom(a.Unclear).Draw(t, "payout").ID
	sent := m.gateway.sent
	switch rapid.SampledFrom([]string{"ask", "hold", "identify", "give back", "give back"}).Draw(t, "decision") {
	case "ask":
		m.ask(t)
	case "hold":
		m.hold(t, id)
	case "identify":
		m.identify(t, id)
	case "give back":
		m.hold(t, id)
		m.now = m.now.Add(rapid.SampledFrom([]time.Duration{0, patience / 2, lease + patience}).Draw(t, "patience"))
		m.gateway.mood = rapid.SampledFrom([]mood{m.gateway.mood, fair, silent}).Draw(t, "mood")
		m.giveBack(t, id)
	}
	if m.gateway.sent != sent {
		t.Fatal("a decision sent something")
	}
}

func (m *market) stored(t failer, id payout.ID) payout.Payout {
	t.Helper()
	p, err := m.db.Payout(m.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask asks about any payout.
func (m *market) ask(t *rapid.T) {
	id, _ := m.anyPayout(t)
	_, err := m.payouts.AskGateway(m.ctx, ada, id)
	if err != nil && !errors.Is(err, payout.ErrNoTransfer) && !errors.Is(err, payout.ErrGatewayUnclear) {
		t.Fatalf("ask about %s: %v", id, err)
	}
}

func (m *market) hold(t failer, id payout.ID) {
	before := m.stored(t, id)
	p, err := m.payouts.Hold(m.ctx, ada, id)
	switch {
	case before.State != payout.Unknown:
		if !errors.Is(err, payout.ErrMovedOn) {
			t.Fatalf("hold a payout that is %s: %v", before.State, err)
		}
	case err != nil || p.State != payout.Held:
		t.Fatalf("hold an unknown payout: %s, %v", p.State, err)
	}
}

func (m *market) identify(t *rapid.T, id payout.ID) {
	m.gateway.arrive(m.now)
	if len(m.gateway.transfers) == 0 {
		t.Skip("there is no transfer")
	}
	ref := rapid.SampledFrom(slices.Sorted(maps.Keys(m.gateway.transfers))).Draw(t, "transfer")
	p, err := m.payouts.Identify(m.ctx, ada, id, m.gateway.transfers[ref].id)
	if err == nil && (ref != string(id) || p.GatewayID != m.gateway.transfers[ref].id) {
		t.Fatalf("%s was taken for the transfer of %s", id, ref)
	}
}

// giveBack wants money given back where it may be, and nowhere else: neither where the gateway has the
// transfer, nor where it may still get it.
func (m *market) giveBack(t failer, id payout.ID) {
	before := m.stored(t, id)
	from, held := m.payouts.GiveBackFrom(m.ctx, id)
	_, known := m.gateway.transfers[string(id)]
	_, underway := m.gateway.underway[string(id)]
	_, err := m.payouts.GiveBack(m.ctx, ada, id)
	switch {
	case err == nil && (known || underway):
		t.Fatalf("%s was given back, and the gateway has it (%t) or will (%t)", id, known, underway)
	case (held == nil) != (before.State == payout.Held):
		t.Fatalf("of a payout that is %s it is said when it may be given back: %v", before.State, held)
	case before.State == payout.Held && !m.now.Before(from) && !m.gateway.saysNothing() && !known && !underway && err != nil:
		t.Fatalf("nothing is against giving %s back, but %v", id, err)
	}
}

func (m *market) anyPayout(t *rapid.T) (payout.ID, bool) {
	var ids []payout.ID
	for _, a := range m.asked {
		if a.id != "" {
			ids = append(ids, a.id)
		}
	}
	if len(ids) == 0 {
		return "", false
	}
	return rapid.SampledFrom(ids).Draw(t, "payout"), true
}

// wantBalance works a seller's totals out from what was sold, what was asked for, and where each payout is.
func (m *market) wantBalance(t failer, seller string) ledger.Balance {
	var want ledger.Balance
	for _, item := range m.sold {
		if item.seller != seller {
			continue
		}
		want.Counts.Sales++
		want.Earned += item.amount - item.refunded
	}
	got, err := m.db.Balance(m.ctx, seller)
	if err != nil {
		t.Fatal(err)
	}
	want.Pending = got.Pending // when a sale is released is checked by the audit
	want.Available = want.Earned - want.Pending
	for _, a := range m.asked {
		if a.id == "" || a.request.Seller != seller {
			continue
		}
		p, err := m.db.Payout(m.ctx, a.id)
		if err != nil {
			t.Fatalf("an acknowledged payout is gone: %v", err)
		}
		m.seen[p.State]++
		switch p.Status() {
		case payout.StatusProcessing:
			want.InTransit += p.Amount
			want.Available -= p.Amount
			want.Counts.Processing++
		case payout.StatusCompleted:
			want.Withdrawn += p.Amount
			want.Available -= p.Amount
			want.Counts.Completed++
		case payout.StatusFailed:
			want.Counts.Failed++
		case payout.StatusCancelled:
			want.Counts.Cancelled++
		}
	}
	return want
}

func (m *market) check(t *rapid.T) {
	for _, seller := range m.sellers {
		got, err := m.db.Balance(m.ctx, seller)
		if err != nil {
			t.Fatal(err)
		}
		if want := m.wantBalance(t, seller); got != want {
			t.Fatalf("%s has\n%+v, want\n%+v", seller, got, want)
		}
	}
	report, err := m.db.Audit(m.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(report.Findings, m.auditSeals(t)...) {
		if len(f.Violations) > 0 {
			t.Fatalf("%s is violated: %v", f.Name, f.Violations)
		}
	}
	for ref, tr := range m.gateway.transfers {
		if tr.paid > 1 {
			t.Fatalf("%s was paid %d times", ref, tr.paid)
		}
	}
}

// auditSeals holds the payouts against their seals; the bank accounts here have none.
func (m *market) auditSeals(t *rapid.T) []ledger.Finding {
	findings, err := m.db.AuditSeals(m.ctx, m.seals)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range findings {
		findings[i].Violations = slices.DeleteFunc(f.Violations, func(v string) bool { return strings.Contains(v, "bank account") })
	}
	return findings
}

// drain lets a fortnight of fair weather pass, after which nothing may be open.
func (m *market) drain(t *rapid.T) {
	m.gateway.mood = fair
	fate := map[string]int{}
	for quarter := range 80 {
		m.now = m.now.Add(6 * time.Hour)
		m.release(t)
		m.gateway.arrive(m.now)
		for _, ref := range slices.Sorted(maps.Keys(m.gateway.transfers)) {
			if _, known := fate[ref]; !known {
				fate[ref] = rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "fate")
			}
			m.gateway.transfers[ref].advance(1)
			if quarter == 4 && m.gateway.transfers[ref].progress == payout.Paid {
				m.gateway.transfers[ref].advance(fate[ref]) // some come back the next day
			}
			if quarter == 5 { // a webhook may come late, but it comes; after the third day only it tells of a return
				if err := m.payouts.Hint(m.ctx, "late event of "+ref, payout.ID(ref)); err != nil {
					t.Fatal(err)
				}
			}
		}
		ids, err := m.payouts.TakeDue(m.ctx, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			m.tryStep(id)
		}
	}
	m.check(t)
	for _, a := range m.asked {
		if a.id == "" {
			continue
		}
		p, err := m.db.Payout(m.ctx, a.id)
		if err != nil {
			t.Fatal(err)
		}
		tr := m.gateway.transfers[string(a.id)]
		paid := tr != nil && tr.progress == payout.Paid
		if p.Status() == payout.StatusProcessing && p.State != payout.Held {
			t.Fatalf("%s is %s for ever; the gateway has %+v", p.ID, p.State, tr)
		}
		if paid != (p.State == payout.Completed) {
			t.Fatalf("%s is %s; the gateway has %+v", p.ID, p.State, tr)
		}
		if paid && tr.amount != p.Net() {
			t.Fatalf("%s: the bank got %d, want %d", p.ID, tr.amount, p.Net())
		}
	}
	m.checkNobodyGotTooMuch(t)
}

// checkNobodyGotTooMuch wants nobody overdrawn but by refunds, not counting what is held for a person.
func (m *market) checkNobodyGotTooMuch(t *rapid.T) {
	covered := map[string]money.Amount{}
	for _, item := range m.sold {
		covered[item.seller] += item.refunded
	}
	for _, a := range m.asked {
		if a.id == "" {
			continue
		}
		p, err := m.db.Payout(m.ctx, a.id)
		if err != nil {
			t.Fatal(err)
		}
		if p.State == payout.Held {
			covered[p.Seller] += p.Amount
		}
	}
	for _, seller := range m.sellers {
		b, err := m.db.Balance(m.ctx, seller)
		if err != nil {
			t.Fatal(err)
		}
		if b.Available < -covered[seller] {
			t.Fatalf("%s was paid too much: available %d, refunds and held payouts explain %d", seller, b.Available, covered[seller])
		}
	}
}

// mood is how the gateway answers.
type mood string

const (
	fair         mood = "fair"
	lostAnswers  mood = "takes orders, loses the answers"
	lostRequests mood = "loses the requests"
	refusing     mood = "refuses"
	closed       mood = "turns requests away"
	silent       mood = "answers nothing at all"
	shunning     mood = "will not know the bank account"
	diesBefore   mood = "its caller dies before the order is sent"
	diesAfter    mood = "its caller dies after the order was taken"
	queueing     mood = "queues orders"
	slow         mood = "gets orders late"
	unreachable  mood = "can't be reached"
)

// workerDied is what a worker panics with that ends in the middle of a step.
const workerDied = "the worker died"

var moods = []mood{fair, fair, lostAnswers, lostRequests, refusing, closed, silent, shunning, diesBefore, diesBefore, diesAfter, diesAfter, queueing, slow, slow, unreachable}

// paperGateway keeps transfers on paper: it is both a gateway with moods and the judge of what was paid.
type paperGateway struct {
	calls     sync.Mutex // callers may cancel and catch up beside each other; everything else is alone
	now       func() time.Time
	transfers map[string]*transfer
	mood      mood
	ids       int
	sent      int
	// underway are orders that were sent and have yet to arrive, as late as lateness.
	underway map[string]lateOrder
	lateness time.Duration
	// misplaced makes look-ups by reference find nothing. whenFound runs before such a look-up is answered.
	misplaced bool
	whenFound func()
	// twofold has two transfers under each reference.
	twofold bool
	// mistakes answers a look-up by id with whatever there is.
	mistakes bool
	// forgetful makes look-ups find nothing, and deaf makes them fail; whenAsked runs when a beneficiary is asked for.
	forgetful bool
	deaf      bool
	// altered says that somebody changed each bank account by hand.
	altered   bool
	whenAsked func()
	// whenSent runs before an order is answered, and whenFetched while an answer is on its way.
	whenSent    func()
	whenFetched func()
	// whenTaken alters a transfer that is made.
	whenTaken func(*transfer)
	// unlisting hides all transfers from lists. torn makes a list fail after so many pages, and worn up to
	// so many.
	unlisting  bool
	torn, worn int
	// whenListed runs after a page was read.
	whenListed func()
	// unpaged gives everything on each page.
	unpaged bool
	// listsAll lists all transfers, whatever was asked for.
	listsAll bool
}

type transfer struct {
	id       string
	body     string
	order    payout.Order
	amount   money.Amount
	progress payout.Progress
	paid     int
	made     time.Time
}

// advance moves a transfer on: what was under way is paid or fails, what was paid may come back.
func (t *transfer) advance(luck int) {
	switch {
	case t.progress == payout.Queued && luck > 0:
		t.progress = payout.InProgress
	case t.progress == payout.InProgress && luck == 1:
		t.progress = payout.Paid
		t.paid++
	case t.progress == payout.InProgress && luck == 2:
		t.progress = payout.Rejected
	case t.progress == payout.Paid && luck == 3:
		t.progress = payout.Reversed
	}
}

func (g *paperGateway) Beneficiary(_ context.Context, id bank.ID) (string, error) {
	if g.whenAsked != nil {
		g.whenAsked()
	}
	if g.altered {
		return "", fmt.Errorf("bank account %s: %w", id, seal.ErrBroken)
	}
	switch g.mood {
	case silent:
		return "", errors.New("silence")
	case shunning:
		return "", fmt.Errorf("tell the gateway: %w", fault.New(fault.Refused, "bank_account_refused", "No such account."))
	default:
		return strings.Replace(string(id), "bka_", "fa_", 1), nil
	}
}

func (g *paperGateway) Prepare(o payout.Order) (string, error) {
	return fmt.Sprintf("%d %s %s %s %d %s %s", o.Amount, o.Mode, o.Seller, o.Account, o.Gross, o.Beneficiary, o.Currency), nil
}

// Recover knows the accounts that sellers joined with.
func (g *paperGateway) Recover(_ context.Context, seller string, id bank.ID, beneficiary string) error {
	if id != bank.ID("bka_"+seller) || (beneficiary != "" && beneficiary != "fa_"+seller) {
		return bank.ErrNone
	}
	return nil
}

func (g *paperGateway) Submit(_ context.Context, key, body string) payout.Submission {
	g.calls.Lock()
	defer g.calls.Unlock()
	g.sent++
	g.arrive(g.now())
	if g.whenSent != nil {
		g.whenSent()
	}
	switch g.mood {
	case slow:
		if _, known := g.underway[key]; !known {
			g.underway[key] = lateOrder{body: body, arrives: g.now().Add(g.lateness)}
		}
		return payout.Submission{Answer: payout.Unclear, ReasonCode: "timeout"}
	case lostRequests, silent:
		return payout.Submission{Answer: payout.Unclear, ReasonCode: "timeout"}
	case refusing:
		return payout.Submission{Answer: payout.Refused, ReasonCode: "bank_account_invalid"}
	case diesBefore:
		panic(workerDied)
	case closed:
		return payout.Submission{Answer: payout.NotTaken, ReasonCode: "rate_limited"}
	case unreachable:
		return payout.Submission{Answer: payout.NotTaken, NotSent: true, ReasonCode: "unreachable"}
	}
	t := g.take(key, body)
	switch g.mood {
	case diesAfter:
		panic(workerDied)
	case lostAnswers:
		return payout.Submission{Answer: payout.Unclear, ReasonCode: "timeout"}
	}
	return payout.Submission{Answer: payout.Accepted, Report: t.report(key)}
}

// lateOrder is an order on its way.
type lateOrder struct {
	body    string
	arrives time.Time
}

// arrive takes the orders that have arrived by now. It wants calls locked, or nobody to call.
func (g *paperGateway) arrive(now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(g.underway)) {
		if order := g.underway[key]; !order.arrives.After(now) {
			delete(g.underway, key)
			g.take(key, order.body)
		}
	}
}

// take makes the transfer of an order, or finds it made. It wants calls locked.
func (g *paperGateway) take(key, body string) *transfer {
	t, known := g.transfers[key]
	if !known {
		g.ids++
		t = &transfer{id: fmt.Sprintf("pout_%06d", g.ids), body: body, progress: payout.InProgress, made: g.now().Truncate(time.Second)}
		if g.mood == queueing {
			t.progress = payout.Queued
		}
		o := &t.order
		if _, err := fmt.Sscanf(body, "%d %s %s %s %d %s %s", &t.amount, &o.Mode, &o.Seller, &o.Account, &o.Gross, &o.Beneficiary, &o.Currency); err != nil {
			panic(err)
		}
		if g.whenTaken != nil {
			g.whenTaken(t)
		}
		g.transfers[key] = t
	}
	if t.body != body {
		panic("a key was sent with another body")
	}
	return t
}

func (t *transfer) report(ref string) payout.Report {
	r := payout.Report{
		GatewayID: t.id, Reference: ref, Amount: t.amount, Beneficiary: t.order.Beneficiary, Currency: t.order.Currency,
		MadeAt: t.made, Progress: t.progress, RawStatus: string(t.progress),
	}
	if t.paid > 0 {
		r.UTR = "HDFCN00000000001"
	}
	return r
}

func (g *paperGateway) Find(_ context.Context, ref string) (payout.Report, error) {
	g.calls.Lock()
	report, err := g.lookUp(func(r string, _ *transfer) bool { return r == ref && !g.misplaced })
	if g.twofold {
		report, err = payout.Report{}, payout.ErrManyTransfers
	}
	whenFound := g.whenFound
	g.calls.Unlock()
	if whenFound != nil {
		whenFound()
	}
	return report, err
}

func (g *paperGateway) Fetch(_ context.Context, id string) (payout.Report, error) {
	g.calls.Lock()
	report, err := g.lookUp(func(_ string, t *transfer) bool { return t.id == id || g.mistakes })
	g.calls.Unlock()
	if then := g.whenFetched; then != nil {
		g.whenFetched = nil
		then()
	}
	return report, err
}

// saysNothing reports whether nobody learns from it how a transfer stands.
func (g *paperGateway) saysNothing() bool {
	return g.mood == silent || g.mood == unreachable || g.deaf
}

// lookUp wants calls locked.
func (g *paperGateway) lookUp(wanted func(ref string, t *transfer) bool) (payout.Report, error) {
	g.arrive(g.now())
	if g.saysNothing() {
		return payout.Report{}, errors.New("silence")
	}
	for ref, t := range g.transfers {
		if wanted(ref, t) && !g.forgetful {
			return t.report(ref), nil
		}
	}
	return payout.Report{}, payout.ErrUnknownToGateway
}

// Cancel lets go of what is queued, unless nobody hears it.
func (g *paperGateway) Cancel(_ context.Context, id string) (payout.Report, error) {
	g.calls.Lock()
	defer g.calls.Unlock()
	for _, t := range g.transfers {
		if t.id == id && t.progress == payout.Queued && g.mood != silent {
			t.progress = payout.CalledOff
		}
	}
	return g.lookUp(func(_ string, t *transfer) bool { return t.id == id })
}

// Transfers lists them newest first, two to a page.
func (g *paperGateway) Transfers(_ context.Context, since time.Time, skip int) ([]payout.Transfer, error) {
	return g.list(since, skip, func(*transfer) bool { return true })
}

func (g *paperGateway) Reversed(_ context.Context, since time.Time, skip int) ([]payout.Transfer, error) {
	return g.list(since, skip, func(t *transfer) bool { return g.listsAll || t.progress == payout.Reversed })
}

func (g *paperGateway) list(since time.Time, skip int, wanted func(*transfer) bool) ([]payout.Transfer, error) {
	g.calls.Lock()
	defer g.calls.Unlock()
	g.arrive(g.now())
	const page = 2
	if g.mood == silent || (g.torn > 0 && skip >= g.torn*page) || skip < g.worn*page {
		return nil, errors.New("silence")
	}
	var all []payout.Transfer
	for ref, t := range g.transfers {
		if !g.unlisting && !t.made.Before(since) && wanted(t) {
			all = append(all, payout.Transfer{Report: t.report(ref), Order: t.order})
		}
	}
	slices.SortFunc(all, func(a, b payout.Transfer) int { return strings.Compare(b.GatewayID, a.GatewayID) })
	if g.unpaged {
		return all, nil
	}
	if g.whenListed != nil {
		defer g.whenListed()
	}
	return all[min(skip, len(all)):min(skip+page, len(all))], nil
}
