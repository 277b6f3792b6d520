package payout_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/keyset"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// failer is what a market needs of a test: testing.T and rapid.T both have it.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// market is the real services on a real store, with two sellers who can withdraw, a gateway on paper and a clock of
// its own.
type market struct {
	ctx     context.Context //nolint:containedctx // a test's
	tb      testing.TB
	place   storetest.Place
	db      *store.DB
	sales   *sale.Service
	payouts *payout.Service
	keys    *keyset.Set
	luck    *luck
	gateway *paperGateway
	now     time.Time
	log     bytes.Buffer // as text; all services write it through logger
	logger  *slog.Logger

	// A test sets these before it starts payouts. Unset, there is the one gateway, and no restore.
	router         *gateway.Router
	restoredByHand bool
}

func newMarket(t *testing.T, rt failer) *market {
	t.Helper()
	return newMarketAt(t, rt, storetest.NewPlace(t))
}

func newMarketAt(t *testing.T, rt failer, place storetest.Place) *market {
	t.Helper()
	m := &market{
		ctx: t.Context(), tb: t, now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC),
		place: place, keys: storetest.Keys(t), luck: newLuck(),
	}
	m.gateway = &paperGateway{transfers: map[string]*transfer{}, underway: map[string]lateOrder{}, now: func() time.Time { return m.now }}
	m.logger = slog.New(slog.NewTextHandler(&m.log, nil))
	m.open(rt)
	if err := insertUser(m.ctx, m.db, ada.Admin, auth.Admin, m.now); err != nil {
		rt.Fatal(err)
	}
	for _, seller := range []string{"usr_a", "usr_b"} {
		m.join(rt, seller)
	}
	if err := m.payouts.ReconcileStartup(m.ctx); err != nil {
		rt.Fatal(err)
	}
	return m
}

// join adds a seller with enough to withdraw.
func (m *market) join(t failer, seller string) {
	t.Helper()
	if err := openSeller(m.ctx, m.db, m.keys, seller, m.now); err != nil {
		t.Fatal(err)
	}
	m.record(t, sale.NewSale{
		ID: "opening of " + seller, Seller: seller, Amount: 2_000_000, OccurredAt: m.now.Add(-time.Hour), AvailableAt: m.now,
	})
	m.release(t)
}

func (m *market) record(t failer, n sale.NewSale) {
	t.Helper()
	if _, _, err := m.sales.Record(m.ctx, n); err != nil {
		t.Fatal(err)
	}
}

func (m *market) release(t failer) {
	t.Helper()
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

// open opens the database and starts the services.
func (m *market) open(t failer) {
	t.Helper()
	m.db = m.place.Open(m.tb)
	var err error
	m.sales, err = sale.New(sale.Options{Store: m.db.Sales(), Now: func() time.Time { return m.now }, HoldingPeriod: time.Hour, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	m.payouts = m.newPayouts(t)
}

func (m *market) close() { _ = m.db.Close() }

const (
	lease       = time.Minute
	gracePeriod = 10 * time.Minute
)

// newPayouts starts a service for payouts, as on one of many instances.
func (m *market) newPayouts(t failer) *payout.Service {
	t.Helper()
	return m.newPayoutsOn(t, undoing{Store: m.db.Payouts()})
}

func (m *market) newPayoutsOn(t failer, store payout.Store) *payout.Service {
	t.Helper()
	service, err := payout.New(m.options(t, store))
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// options are those of the tests' service.
func (m *market) options(t failer, store payout.Store) payout.Options {
	t.Helper()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	fee, err := payout.ParseFee("5+0.5%", inr)
	if err != nil {
		t.Fatal(err)
	}
	mails, err := mail.New(mail.Options{Store: m.db.Mails(), Keys: m.keys, Now: func() time.Time { return m.now }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return payout.Options{
		Mails: mails, Store: store, Gateways: m.gateways(), Restored: m.restoredByHand, Beneficiaries: m.gateway, Currency: inr, Minimum: 50000, Fee: fee,
		Arrival: payout.Arrival{Zone: time.UTC}, CancelWindow: window, Lease: lease, GracePeriod: gracePeriod, ReversalsEvery: 5 * time.Minute, Zone: time.UTC,
		Now: func() time.Time { return m.now }, Logger: m.logger, StateChanged: func(payout.State, payout.State) {},
		IDs: id.Source{Random: m.luck}, Jitter: m.luck.jitter,
	}
}

// gateways are those that are configured: the one, unless a test says otherwise.
func (m *market) gateways() *gateway.Router {
	if m.router != nil {
		return m.router
	}
	return gateway.Only(m.gateway)
}

// openSeller adds a seller with a verified bank account.
func openSeller(ctx context.Context, db *store.DB, keys bank.Keys, seller string, now time.Time) error {
	if err := insertUser(ctx, db, seller, auth.Seller, now); err != nil {
		return err
	}
	return addAccount(ctx, db, keys, bank.Account{
		ID: bank.ID("bka_" + seller), Seller: seller, Holder: "Asha", IFSC: "HDFC0000053", Last4: "1234", Current: true,
		Status: bank.StatusVerified, NameScore: -1, Beneficiary: "fa_" + seller, Gateway: paper, CreatedAt: now, VerifiedAt: now,
	})
}

// addAccount adds a bank account as package bank does.
func addAccount(ctx context.Context, db *store.DB, keys bank.Keys, a bank.Account) error {
	var err error
	if a.EncryptedNumber, err = keys.Encrypt("50100123451234", "bank_accounts|encrypted_number|"+string(a.ID)); err != nil {
		return err
	}
	added, err := bank.Recorded(bank.Account{ID: a.ID}, a, "user:"+a.Seller, a.CreatedAt)
	if err != nil {
		return err
	}
	return db.Bank().InTx(ctx, func(tx bank.Tx) error {
		if _, err := tx.InsertBankAccount(ctx, a); err != nil {
			return err
		}
		_, err := tx.Append(ctx, added)
		return err
	})
}

func insertUser(ctx context.Context, db *store.DB, id string, role auth.Role, now time.Time) error {
	return db.Auth().InTx(ctx, func(tx auth.Tx) error {
		return tx.InsertUser(ctx, auth.User{ID: id, Name: "Asha", Email: id + "@example.com", Role: role, CreatedAt: now})
	})
}

// stored is a payout as it is in the database.
func (m *market) stored(t failer, id payout.ID) payout.Payout {
	t.Helper()
	p, err := m.db.Payout(m.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tryStep takes a step whatever the gateway's mood. An error is the gateway's answer, and a panic the end of a worker
// in the middle of its step; what is stored is checked afterwards.
func (m *market) tryStep(id payout.ID) {
	defer func() {
		if died := recover(); died != nil && died != workerDied {
			panic(died)
		}
	}()
	_ = m.payouts.Step(m.ctx, id)
}

func (m *market) sendToReview(t failer, id payout.ID) {
	t.Helper()
	before := m.stored(t, id)
	p, err := m.payouts.SendToReview(m.ctx, ada, id)
	switch {
	case before.State != payout.Unknown:
		if !errors.Is(err, payout.ErrMovedOn) {
			t.Fatalf("review a payout that is %s: %v", before.State, err)
		}
	case err != nil || p.State != payout.ManualReview:
		t.Fatalf("review an unknown payout: %s, %v", p.State, err)
	}
}
