package bank_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// fixture is a bank service on a real store and real keys, with a gateway that says what it is told to.
type fixture struct {
	t       *testing.T
	now     time.Time
	place   storetest.Place
	db      *store.DB
	store   bank.Store
	keys    *keyset.Set
	mailbox *storetest.Mailbox
	service *bank.Service
	router  *gateway.Router
	gateway *double
	log     bytes.Buffer
}

// double is a gateway that gives one answer after another, the last one again and
// again, and remembers what it was asked.
type double struct {
	gateway.Gateway // what is not asked of it here
	name            gateway.Name
	lacking         bool // no verification
	nameless        bool // it has no name for an account

	mu      sync.Mutex
	answers []answer
	// meanwhile runs while the gateway is asked; the other two run while it gets an account, and while it describes one.
	meanwhile, told, described func()

	beneficiaryErr error
	registered     []string                      // numbers that were made known, in full
	started        []string                      // beneficiaries of the verifications begun
	asked          []gateway.VerificationRequest // whose verifications were asked about
	askedFor       string                        // the last verification asked about
}

type answer struct {
	verification gateway.Verification
	err          error
}

func (g *double) Name() gateway.Name {
	if g.name != "" {
		return g.name
	}
	return "double"
}

func (g *double) Capabilities() gateway.Capabilities {
	return gateway.Capabilities{Currency: "INR", Verification: !g.lacking}
}

func (g *double) EnsureBeneficiary(_ context.Context, reference string, d gateway.Destination) (string, error) {
	if g.told != nil {
		g.told()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.registered = append(g.registered, d.AccountNumber)
	if g.nameless {
		return "", nil
	}
	return "fa_" + reference, g.beneficiaryErr
}

// DescribeBeneficiary tells the number that was registered last.
func (g *double) DescribeBeneficiary(_ context.Context, beneficiary string) (gateway.Destination, error) {
	if g.described != nil {
		g.described()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.beneficiaryErr != nil {
		return gateway.Destination{}, g.beneficiaryErr
	}
	if len(g.registered) == 0 || !strings.HasPrefix(beneficiary, "fa_") {
		return gateway.Destination{}, gateway.ErrUnknownBeneficiary
	}
	return gateway.Destination{Holder: "Asha D", IFSC: "HDFC0000053", AccountNumber: g.registered[len(g.registered)-1]}, nil
}

func (g *double) StartVerification(_ context.Context, a gateway.VerificationRequest) (gateway.Verification, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started = append(g.started, a.Beneficiary)
	return g.answer()
}

func (g *double) Verification(_ context.Context, a gateway.VerificationRequest, id string) (gateway.Verification, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked, g.askedFor = append(g.asked, a), id
	return g.answer()
}

func (g *double) answer() (gateway.Verification, error) {
	if g.meanwhile != nil {
		g.meanwhile()
	}
	a := g.answers[0]
	if len(g.answers) > 1 {
		g.answers = g.answers[1:]
	}
	return a.verification, a.err
}

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

func newFixture(t *testing.T, answers ...answer) *fixture {
	t.Helper()
	return newFixtureAt(t, storetest.NewPlace(t), answers...)
}

func newFixtureAt(t *testing.T, place storetest.Place, answers ...answer) *fixture {
	t.Helper()
	h := &fixture{t: t, now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), gateway: &double{answers: answers}}
	h.place = place
	db := h.place.Open(t)
	h.db, h.store, h.keys = db, db.Bank(), storetest.Keys(t)
	h.mailbox = storetest.NewMailbox(t, db, h.keys, func() time.Time { return h.now })
	h.open()
	for _, user := range []string{"usr_asha", "usr_ravi", ada.Admin} {
		err := db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
			return tx.InsertUser(t.Context(), auth.User{ID: user, Name: "Somebody", Email: user + "@example.com", Role: auth.Seller, CreatedAt: h.now})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// gateways are those that are configured: the one, unless a test says otherwise.
func (h *fixture) gateways() *gateway.Router {
	if h.router != nil {
		return h.router
	}
	return gateway.Only(h.gateway)
}

// open starts the service.
func (h *fixture) open() {
	h.t.Helper()
	var err error
	h.service, err = bank.New(bank.Options{
		Store: h.store, Keys: h.keys, Mails: h.mailbox, Gateways: h.gateways(), Directory: ifsc.New(), CoolDown: 72 * time.Hour,
		Now: func() time.Time { return h.now }, Logger: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// ashas is a registration as a seller makes it.
func (h *fixture) ashas() bank.Registration {
	return bank.Registration{Seller: "usr_asha", Holder: "Asha Desai", Number: mustNumber(h.t, "50100123456789"), IFSC: "HDFC0000053"}
}

// asked is the number of an entry that would have asked for a payout just now.
func (h *fixture) asked(seller string) int64 {
	h.t.Helper()
	entries, err := h.db.Entries(h.t.Context(), seller, 0, 1)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(entries) == 0 {
		return 1
	}
	return entries[0].Number
}

func (h *fixture) register(r bank.Registration) bank.Account {
	h.t.Helper()
	a, err := h.service.Register(h.t.Context(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func (h *fixture) account() bank.Account {
	h.t.Helper()
	a, err := h.service.Account(h.t.Context(), "usr_asha")
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func (h *fixture) due() []bank.ID {
	h.t.Helper()
	ids, err := h.service.LeaseDue(h.t.Context(), 10)
	if err != nil {
		h.t.Fatal(err)
	}
	return ids
}

// step waits until the account's next step is due, takes it, and returns how long it waited.
func (h *fixture) step() (time.Duration, error) {
	h.t.Helper()
	a := h.account()
	if a.DueAt.IsZero() {
		h.t.Fatalf("nothing is due for an account that is %s", a.Status)
	}
	waited := max(a.DueAt.Sub(h.now), 0)
	h.now = h.now.Add(waited)
	if diff := cmp.Diff([]bank.ID{a.ID}, h.due()); diff != "" {
		h.t.Fatalf("what is due (-want +got):\n%s", diff)
	}
	return waited, h.service.Step(h.t.Context(), a.ID)
}

func (h *fixture) mustStep() time.Duration {
	h.t.Helper()
	waited, err := h.step()
	if err != nil {
		h.t.Fatal(err)
	}
	return waited
}

func pending() answer {
	return answer{verification: gateway.Verification{ID: "fav_1", Outcome: gateway.OutcomePending, NameScore: -1}}
}

func valid(name string, score int) answer {
	return answer{verification: gateway.Verification{ID: "fav_1", Outcome: gateway.OutcomeValid, RegisteredName: name, NameScore: score}}
}

func technicalFault() answer {
	return answer{verification: gateway.Verification{ID: "fav_1", Outcome: gateway.OutcomeFault, NameScore: -1}}
}

func TestVerification(t *testing.T) {
	h := newFixture(t, pending(), pending(), valid("ASHA DESAI", 100))
	if _, err := h.service.Account(t.Context(), "usr_asha"); !errors.Is(err, bank.ErrNone) {
		t.Fatalf("before there is one: err = %v, want ErrNone", err)
	}

	a := h.register(h.ashas())
	if a.Status != bank.StatusUnverified || a.Masked() != "****6789" || !strings.HasPrefix(string(a.ID), "bka_") {
		t.Errorf("a new account: %+v", a)
	}
	if diff := cmp.Diff(a, h.account()); diff != "" {
		t.Errorf("what was answered and what is read differ (-answered +read):\n%s", diff)
	}

	if waited := h.mustStep(); waited != 0 {
		t.Errorf("the first step waits %s, want none", waited)
	}
	if got := h.account(); got.VerificationID != "fav_1" || got.Status != bank.StatusUnverified || got.Beneficiary != "fa_"+string(a.ID) {
		t.Errorf("after the first step: %+v", got)
	}
	h.mustStep()
	if got := h.due(); len(got) != 0 {
		t.Errorf("%v are due before their time", got)
	}

	// News from the gateway makes the next step due now. It is asked, not believed.
	for _, id := range []string{"fav_other", "", "fav_1", "fav_1"} {
		if err := h.service.Notify(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if waited := h.mustStep(); waited != 0 {
		t.Errorf("after a hint the step waits %s, want none", waited)
	}
	got := h.account()
	if got.Status != bank.StatusVerified || got.Reason != "" || !got.VerifiedAt.Equal(h.now) || !got.DueAt.IsZero() || got.NameScore != 100 {
		t.Errorf("verified: %+v", got)
	}
	if want := `level=INFO msg="bank account verification ended" bank_account=` + string(a.ID) + " status=verified"; strings.Count(h.log.String(), want) != 1 {
		t.Errorf("the log is %s; want in it once: %s", h.log.String(), want)
	}
	if len(h.gateway.started) != 1 || len(h.gateway.asked) != 2 || len(h.gateway.registered) != 1 {
		t.Errorf("the gateway was asked too much: %d begun, %d asked, %d registered",
			len(h.gateway.started), len(h.gateway.asked), len(h.gateway.registered))
	}
	for _, asked := range h.gateway.asked {
		if asked.Account != string(a.ID) || asked.Beneficiary != "fa_"+string(a.ID) || h.gateway.askedFor != "fav_1" {
			t.Errorf("the gateway was asked about %+v", asked)
		}
	}
	h.now = h.now.AddDate(1, 0, 0)
	if err := h.service.Notify(t.Context(), "fav_1"); err != nil {
		t.Fatal(err)
	}
	if got := h.due(); len(got) != 0 {
		t.Errorf("%v are due after the verification ended", got)
	}
}

func TestOutcomes(t *testing.T) {
	tests := []struct {
		about      string
		answer     answer
		wantStatus bank.Status
		wantReason string // a part of it
		wantScore  int
	}{
		{"the very name", valid("ASHA DESAI", 100), bank.StatusVerified, "", 100},
		{"just alike enough", valid("ASHA D", 85), bank.StatusVerified, "", 85},
		{"not quite", valid("A DESAI", 84), bank.StatusReview, "not quite", 84},
		{"hardly", valid("A D", 60), bank.StatusReview, "not quite", 60},
		{"another", valid("A RAO", 59), bank.StatusRejected, "another name", 59},
		{"not at all", valid("RAVI KUMAR", 0), bank.StatusRejected, "another name", 0},
		{"the very name, and the verifier says otherwise", valid("ASHA DESAI", 0), bank.StatusRejected, "another name", 0},
		{"no name given", valid("", -1), bank.StatusVerified, "", -1},
		{"a name without a score, the same", valid("Mrs. DESAI ASHA", -1), bank.StatusVerified, "", 100},
		{"a name without a score, an initial", valid("A DESAI", -1), bank.StatusReview, "not quite", 70},
		{"a name without a score, another", valid("RAVI KUMAR", -1), bank.StatusRejected, "another name", 0},
		{
			"no such account, in the verifier's words",
			answer{verification: gateway.Verification{ID: "fav_1", Outcome: gateway.OutcomeInvalid, NameScore: -1, Reason: "Closed."}},
			bank.StatusRejected, "Closed.", -1,
		},
		{
			"no such account",
			answer{verification: gateway.Verification{ID: "fav_1", Outcome: gateway.OutcomeInvalid, NameScore: -1}},
			bank.StatusRejected, "no such account", -1,
		},
		{
			"the gateway will never pay it",
			answer{err: fault.New(fault.Refused, "bank_account_refused", "No such IFSC.")},
			bank.StatusRejected, "No such IFSC.", -1,
		},
		{
			"a word that we don't know",
			answer{verification: gateway.Verification{ID: "fav_1", Outcome: "maybe", NameScore: -1}},
			bank.StatusReview, "could not be finished", -1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			h := newFixture(t, tt.answer)
			h.register(h.ashas())
			h.mustStep()
			got := h.account()
			if got.Status != tt.wantStatus || !strings.Contains(got.Reason, tt.wantReason) || (got.Reason == "") != (tt.wantReason == "") || got.NameScore != tt.wantScore {
				t.Errorf("%s, %q, score %d; want %s, %q, score %d", got.Status, got.Reason, got.NameScore, tt.wantStatus, tt.wantReason, tt.wantScore)
			}
			if !got.DueAt.IsZero() || got.VerifiedAt.IsZero() == (got.Status == bank.StatusVerified) {
				t.Errorf("it ended with due %s, verified %s", got.DueAt, got.VerifiedAt)
			}
			if name := tt.answer.verification.RegisteredName; name != "" && strings.Contains(got.Reason, name) {
				t.Errorf("the reason tells the registered name: %s", got.Reason)
			}
		})
	}
}

// withoutKeys can't encrypt, because the keys can't be had.
type withoutKeys struct{ plainEncrypter }

var errKeys = errors.New("the keys can't be had")

func (withoutKeys) Encrypt(string, string) (string, error) { return "", errKeys }

// TestRegister_NumberNotEncrypted_NotStored registers an account whose number nobody could read again.
func TestRegister_NumberNotEncrypted_NotStored(t *testing.T) {
	h := newFixture(t)
	service, err := bank.New(bank.Options{
		Store: h.store, Keys: withoutKeys{}, Mails: h.mailbox, Gateways: h.gateways(), Directory: ifsc.New(),
		Now: func() time.Time { return h.now }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := service.Register(t.Context(), h.ashas()); !errors.Is(err, errKeys) {
		t.Errorf("registered was %+v, %v", a, err)
	}
	if a, err := h.service.Account(t.Context(), h.ashas().Seller); !errors.Is(err, bank.ErrNone) {
		t.Errorf("stored is %+v, %v", a, err)
	}
}

func TestManualVerification(t *testing.T) {
	h := newFixture(t)
	var err error
	h.service, err = bank.New(bank.Options{
		Store: h.store, Keys: plainEncrypter{}, Mails: h.mailbox, Gateways: h.gateways(), ByHand: true, Directory: ifsc.New(),
		Now: func() time.Time { return h.now }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	a := h.register(h.ashas())
	h.mustStep()
	if got := h.account(); got.Status != bank.StatusReview || !strings.Contains(got.Reason, "by hand") || !got.DueAt.IsZero() {
		t.Errorf("after the step: %+v", got)
	}
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	if got := h.account(); got.Status != bank.StatusVerified || !got.VerifiedAt.Equal(h.now) {
		t.Errorf("after the decision: %+v", got)
	}
}

// A technical fault says nothing about the account: it is verified anew, ever more rarely, and in the
// end by a person.
func TestFaultsAreTriedAgain(t *testing.T) {
	h := newFixture(t, technicalFault())
	h.register(h.ashas())
	h.mustStep()
	var first, before time.Duration
	for try := 2; try <= 12; try++ {
		if got := h.account(); got.Status != bank.StatusUnverified || !strings.Contains(got.Reason, "tried again") {
			t.Fatalf("before try %d: %s, %q", try, got.Status, got.Reason)
		}
		if err := h.service.Notify(t.Context(), ""); err != nil { // of no verification
			t.Fatal(err)
		}
		waited := h.mustStep()
		if waited < before/2 || waited < 8*time.Second || waited > 4*time.Hour {
			t.Errorf("try %d comes %s after the one before, which waited %s", try, waited, before)
		}
		if try == 2 {
			first = waited
		}
		before = waited
	}
	if before < 16*first {
		t.Errorf("the waits grow from %s to %s only", first, before)
	}
	if got := h.account(); got.Status != bank.StatusReview || !got.DueAt.IsZero() || !strings.Contains(got.Reason, "could not be finished") {
		t.Errorf("in the end: %+v", got)
	}
	if len(h.gateway.started) != 12 || len(h.gateway.asked) != 0 {
		t.Errorf("%d verifications were begun and %d asked about, want 12 and 0", len(h.gateway.started), len(h.gateway.asked))
	}
}

func TestStep_TemporaryFault_ThenVerified(t *testing.T) {
	h := newFixture(t, technicalFault(), pending(), technicalFault(), pending(), valid("ASHA DESAI", 100))
	h.register(h.ashas())
	for range 5 {
		h.mustStep()
	}
	if got := h.account(); got.Status != bank.StatusVerified || got.Reason != "" {
		t.Errorf("in the end: %s, %q", got.Status, got.Reason)
	}
	if len(h.gateway.started) != 3 || len(h.gateway.asked) != 2 {
		t.Errorf("%d verifications were begun and %d asked about, want 3 and 2", len(h.gateway.started), len(h.gateway.asked))
	}
}

// A lost answer says nothing: the verification that is under way is polled again, and no second one is paid for.
func TestStep_GatewayError_RetriesSameVerification(t *testing.T) {
	cut := errors.New("the connection was cut")
	h := newFixture(t, pending(), answer{err: cut}, valid("ASHA DESAI", 100))
	h.register(h.ashas())
	h.mustStep()
	if _, err := h.step(); !errors.Is(err, cut) {
		t.Errorf("err = %v, want the gateway's", err)
	}
	h.mustStep()
	if got := h.account(); got.Status != bank.StatusVerified || got.Tries != 1 || len(h.gateway.started) != 1 {
		t.Errorf("in the end: %s after %d failures, %d verifications begun", got.Status, got.Tries, len(h.gateway.started))
	}
}

func TestStep_VerificationWithoutID_Fails(t *testing.T) {
	h := newFixture(t, answer{verification: gateway.Verification{Outcome: gateway.OutcomePending}})
	h.register(h.ashas())
	if _, err := h.step(); err == nil {
		t.Error("the step succeeded: it would begin and pay for another verification at each poll")
	}
}

func TestStep_Interrupted_CountsNoTry(t *testing.T) {
	h := newFixture(t, answer{err: context.Canceled})
	a := h.register(h.ashas())
	ctx, cancel := context.WithCancel(t.Context())
	h.gateway.meanwhile = cancel
	if err := h.service.Step(ctx, a.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that of the context", err)
	}
	if got := h.account(); got.Tries != 0 || got.Status != bank.StatusUnverified {
		t.Errorf("after the interruption: %+v", got)
	}
}

// The week is over at its last instant, not after it.
func TestStep_SlowVerification_ReviewWhenTheWeekIsOver(t *testing.T) {
	for age, want := range map[time.Duration]bank.Status{
		7*24*time.Hour - time.Microsecond: bank.StatusUnverified, 7 * 24 * time.Hour: bank.StatusReview,
	} {
		h := newFixture(t, pending())
		a := h.register(h.ashas())
		h.now = a.CreatedAt.Add(age)
		h.mustStep()
		if got := h.account().Status; got != want {
			t.Errorf("after %s it is %s, want %s", age, got, want)
		}
	}
}

// A bank may take days. It is polled often at first and then hourly, for a week.
func TestStep_SlowVerification_ReviewAfterAWeek(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	h.mustStep()
	steps := 1
	for ; h.account().Status == bank.StatusUnverified && steps < 1000; steps++ {
		age := h.now.Sub(a.CreatedAt)
		waited := h.mustStep()
		if waited < 1600*time.Millisecond || waited > 72*time.Minute || waited > 2*time.Second*12/10+age*3/10 {
			t.Fatalf("at the age of %s it waits %s", age, waited)
		}
	}
	age := h.now.Sub(a.CreatedAt)
	if got := h.account(); got.Status != bank.StatusReview || age < 7*24*time.Hour || age > 7*24*time.Hour+72*time.Minute {
		t.Errorf("after %s and %d steps it is %s, want review after a week", age, steps, got.Status)
	}
}

func TestLease_ExclusiveUntilExpiry(t *testing.T) {
	h := newFixture(t, pending())
	h.register(h.ashas())
	if got := h.due(); len(got) != 1 {
		t.Fatalf("%d are due, want 1", len(got))
	}
	if got := h.due(); len(got) != 0 {
		t.Fatal("it was leased twice")
	}
	h.now = h.now.Add(2 * time.Minute)
	if got := h.due(); len(got) != 1 {
		t.Error("it is not due again after the lease ran out")
	}
}

// A hint that comes while the gateway is giving its last stale answer is not lost.
func TestNotification_DuringStep(t *testing.T) {
	h := newFixture(t, pending(), pending(), valid("ASHA DESAI", 100))
	h.register(h.ashas())
	h.mustStep()
	h.gateway.meanwhile = func() {
		if err := h.service.Notify(t.Context(), "fav_1"); err != nil {
			t.Error(err)
		}
	}
	h.mustStep()
	if waited := h.mustStep(); waited != 0 {
		t.Errorf("the hint was forgotten: the next step waits %s", waited)
	}
	if got := h.account(); got.Status != bank.StatusVerified || !got.DueAt.IsZero() {
		t.Errorf("a hint during the last step keeps it due: %+v", got)
	}
}

func TestStep_AlreadyVerified_AsksNothing(t *testing.T) {
	h := newFixture(t, valid("ASHA DESAI", 100))
	a := h.register(h.ashas())
	h.mustStep()
	if err := h.service.Step(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if len(h.gateway.started)+len(h.gateway.asked) != 1 {
		t.Errorf("the gateway was asked %d times and %d times, want once in all", len(h.gateway.started), len(h.gateway.asked))
	}
	if err := h.service.Step(t.Context(), "bka_nobody"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("a step of no account: err = %v, want ErrNone", err)
	}
}

func TestBeneficiary(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	if to, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); !errors.Is(err, bank.ErrNotAccepted) {
		t.Errorf("an account that nobody has accepted is paid to %q, %v", to, err)
	}
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	h.gateway.beneficiaryErr = errors.New("down")
	if _, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); !errors.Is(err, h.gateway.beneficiaryErr) {
		t.Errorf("err = %v, want the gateway's", err)
	}
	h.gateway.beneficiaryErr = nil
	for range 2 {
		got, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller))
		if want := "fa_" + string(a.ID); got != want || err != nil {
			t.Errorf("Beneficiary = %q, %v; want %q", got, err, want)
		}
	}
	if diff := cmp.Diff([]string{"50100123456789", "50100123456789"}, h.gateway.registered); diff != "" {
		t.Errorf("numbers made known: one that failed and one for good (-want +got):\n%s", diff)
	}
	if _, err := h.service.Beneficiary(t.Context(), "usr_nobody", "bka_nobody", "double", h.asked("usr_nobody")); !errors.Is(err, bank.ErrNone) {
		t.Errorf("of no account: err = %v, want ErrNone", err)
	}
	err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.RejectBankAccounts(t.Context(), a.Seller, "It was taken over.", h.now)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); !errors.Is(err, bank.ErrNotAccepted) {
		t.Errorf("of a rejected account: err = %v, want ErrNotAccepted", err)
	}
}

// A payout is asked for, and then a start after a restore makes so many former accounts again that one page of those that were added last holds none that was
// there before.
func TestBeneficiary_ManyAddedSince_Paid(t *testing.T) {
	h := newFixture(t, accepted(100))
	a := h.register(h.ashas())
	h.mustStep()
	requested := h.asked(a.Seller)
	h.gateway.registered = []string{"00100123456780"}
	for i := range 101 {
		if err := h.service.Recover(t.Context(), a.Seller, bank.ID(id.New("bka_", h.now)), "double", fmt.Sprint("fa_", i)); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", requested); err != nil || to != "fa_"+string(a.ID) {
		t.Errorf("it is paid to %q, %v", to, err)
	}
}

func TestNumber_EncryptedInDatabaseFiles(t *testing.T) {
	h := newFixture(t, pending())
	if h.place.Path == "" {
		t.Skip("this database is not in files of ours")
	}
	h.register(h.ashas())
	files, err := filepath.Glob(h.place.Path + "*")
	if err != nil || len(files) < 2 { // the database, and its log at least
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), "5010012345") {
			t.Errorf("%s holds a number that can be read, or can't be read: %v", file, err)
		}
	}
}

func TestBeneficiary_CopiedEncryptedNumber_Refused(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	stolen := h.register(bank.Registration{Seller: "usr_ravi", Holder: "Ravi Kumar", Number: mustNumber(t, "30200987654321"), IFSC: "SBIN0000001"})
	stolen.ID, stolen.EncryptedNumber, stolen.Status = "bka_stolen", a.EncryptedNumber, bank.StatusVerified
	err := h.store.InTx(t.Context(), func(tx bank.Tx) error {
		if _, err := tx.InsertBankAccount(t.Context(), stolen); err != nil {
			return err
		}
		added, err := bank.Recorded(bank.Account{ID: stolen.ID}, stolen, "user:usr_ravi", h.now) // or the journal would tell
		if err == nil {
			_, err = tx.Append(t.Context(), added)
		}
		if err == nil { // a later entry: the account was there when a payout was asked for
			_, err = tx.Append(t.Context(), ledger.Posting{
				Owner: stolen.Seller, At: h.now, Type: ledger.SaleRecorded, Subject: "sale:order-1", Actor: ledger.ActorMarketplace, Data: "{}", Moved: ledger.Sale(100),
			})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.service.Beneficiary(t.Context(), stolen.Seller, stolen.ID, "double", h.asked(stolen.Seller)); err == nil || errors.Is(err, ledger.ErrTampered) || len(h.gateway.registered) > 0 {
		t.Errorf("an encrypted number was opened in another row: %v; the gateway was told %q", err, h.gateway.registered)
	}
}

func TestBranch(t *testing.T) {
	h := newFixture(t)
	if got, ok := h.service.Branch("HDFC0000053"); !ok || got.Bank != "HDFC Bank" {
		t.Errorf("Branch = %+v, %v; want HDFC Bank", got, ok)
	}
}

func TestNewRefusesHalfAService(t *testing.T) {
	h := newFixture(t)
	whole := bank.Options{
		Store: h.store, Keys: plainEncrypter{}, Mails: h.mailbox, Gateways: gateway.Only(&double{}), Directory: ifsc.New(),
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	if _, err := bank.New(whole); err != nil {
		t.Fatal(err)
	}
	for part, take := range map[string]func(*bank.Options){
		"store":     func(o *bank.Options) { o.Store = nil },
		"keys":      func(o *bank.Options) { o.Keys = nil },
		"mails":     func(o *bank.Options) { o.Mails = nil },
		"gateways":  func(o *bank.Options) { o.Gateways = nil },
		"directory": func(o *bank.Options) { o.Directory = nil },
		"clock":     func(o *bank.Options) { o.Now = nil },
		"logger":    func(o *bank.Options) { o.Logger = nil },
	} {
		half := whole
		take(&half)
		if _, err := bank.New(half); err == nil {
			t.Errorf("a service without a %s was made", part)
		}
	}
}

// plainEncrypter encrypts nothing, for tests that are about something else.
type plainEncrypter struct{}

func (plainEncrypter) Encrypt(plaintext, _ string) (string, error) { return plaintext, nil }
func (plainEncrypter) Decrypt(encrypted, _ string) (string, error) { return encrypted, nil }
