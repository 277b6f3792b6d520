package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/health"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// workHealth is what the instance tells of itself; its backlog is the database's.
type workHealth struct {
	fixture *fixture
	loops   []health.Loop
}

func (h *workHealth) Loops() []health.Loop { return h.loops }

func (h *workHealth) Instance() health.Instance {
	return health.Instance{
		Version: "1.2.3-test", StartedAt: h.fixture.clock.Now().Add(-time.Hour),
		Pools: []health.Pool{{Name: "read", InUse: 3, Max: 7, Waits: 2, Waited: time.Second}},
	}
}

func (h *workHealth) Backlog(ctx context.Context) (health.Backlog, error) {
	w, err := h.fixture.db.Watch(ctx, h.fixture.clock.Now())
	if err != nil {
		return health.Backlog{}, err
	}
	kinds, err := h.fixture.db.OpenKinds(ctx)
	differences := int64(0)
	for _, n := range kinds {
		differences += n
	}
	return health.Backlog{
		Late: w.Late, WebhooksDisabled: w.WebhooksDisabled, LateSince: w.LateSince,
		Unknown: w.Unknown, ManualReview: w.ManualReview, Discrepancies: w.Discrepancies, UnmatchedTransfers: w.UnmatchedTransfers, AccountsInReview: w.AccountsInReview, Differences: differences,
		PayoutDue: w.PayoutDue, AccountDue: w.AccountDue, SaleDue: w.SaleDue,
	}, err
}

// audited are the database's, but for an audit that a test may hold up or change.
type audited struct {
	*store.DB
	keys  *keyset.Set
	audit func(context.Context) (ledger.Report, error)
	// meanwhile happens each time that a balance was read.
	meanwhile func()
}

func (b *audited) Balance(ctx context.Context, seller string) (ledger.Balance, error) {
	balance, err := b.DB.Balance(ctx, seller)
	if b.meanwhile != nil {
		b.meanwhile()
	}
	return balance, err
}

func (b *audited) Audit(ctx context.Context) (ledger.Report, error) {
	if b.audit != nil {
		return b.audit(ctx)
	}
	return b.DB.Audit(ctx, b.keys)
}

// adminFixture is a house with an admin at work, and a seller who has money and a bank account.
type adminFixture struct {
	*fixture
	*testing.T
	admin, seller person
}

const adminHome = "/dashboard/admin"

func openAdminFixture(t *testing.T) *adminFixture {
	t.Helper()
	h := openFixture(t)
	o := &adminFixture{fixture: h, T: t, admin: h.signUp("Priya Menon", auth.Admin), seller: h.signUp("Asha Rao", auth.Seller)}
	h.withBank(o.seller, "0008") // whose webhooks never come
	h.earn(o.seller, "order-1", 20_000_00)
	return o
}

func (o *adminFixture) by(note string) decision.By { return decision.By{Admin: o.admin.id, Note: note} }

// inReview gives a seller another account, of which the bank tells another name.
func (o *adminFixture) inReview(seller person, registered string) bank.ID {
	o.Helper()
	number, err := bank.ParseNumber(accountDigits + "7777")
	must(o, err)
	seen, err := o.bank.Register(o.Context(), bank.Registration{Seller: seller.id, Holder: "Asha Rao", Number: number, IFSC: "HDFC0000053"})
	must(o, err)
	a := seen
	a.Status, a.RegisteredName, a.NameScore, a.DueAt = bank.StatusReview, registered, 72, time.Time{}
	must(o, o.db.Bank().InTx(o.Context(), func(tx bank.Tx) error {
		p, err := bank.Recorded(seen, a, "system", o.clock.Now())
		if err == nil {
			_, err = tx.Append(o.Context(), p)
		}
		if err == nil {
			_, err = tx.SaveVerification(o.Context(), seen, a)
		}
		return err
	}))
	return a.ID
}

// step takes a payout's next step once the cancel window is over. What fails is seen in its state.
func (o *adminFixture) step(id payout.ID) payout.Payout {
	o.Helper()
	o.clock.advance(31 * time.Second)
	_ = o.payouts.Step(o.Context(), id)
	return o.payout(id)
}

func (o *adminFixture) payout(id payout.ID) payout.Payout {
	o.Helper()
	p, err := o.payouts.Payout(o.Context(), payout.Caller{Admin: true}, id)
	must(o, err)
	return p
}

func (o *adminFixture) wantState(id payout.ID, want payout.State) {
	o.Helper()
	if got := o.payout(id).State; got != want {
		o.Errorf("the payout is %s, want %s", got, want)
	}
}

// unknown makes a payout whose order never arrived, and whose answer is missing.
func (o *adminFixture) unknown(amount money.Amount) payout.ID {
	o.Helper()
	o.control("POST", "/control/faults", `{"method":"POST","path":"/v1/payouts","cut":true}`)
	return o.unclear(amount)
}

// made makes an unknown payout that the gateway has.
func (o *adminFixture) made(amount money.Amount) payout.ID {
	o.Helper()
	o.control("POST", "/control/faults", `{"method":"POST","path":"/v1/payouts","cut":true,"when":"after"}`)
	return o.unclear(amount)
}

func (o *adminFixture) unclear(amount money.Amount) payout.ID {
	o.Helper()
	id := o.ask(o.seller, amount, "Rent").ID
	if p := o.step(id); p.State != payout.Unknown {
		o.Fatalf("the payout is %s, want unknown", p.State)
	}
	return id
}

// sendToReview has the admin send a payout to review.
func (o *adminFixture) sendToReview(id payout.ID) payout.ID {
	o.Helper()
	_, err := o.payouts.SendToReview(o.Context(), o.by("to be asked in writing"), id)
	must(o, err)
	o.clock.advance(time.Second) // ids of decisions sort by their time
	return id
}

// withDiscrepancy makes a payout with a discrepancy.
func (o *adminFixture) withDiscrepancy(says string) payout.ID {
	o.Helper()
	was := o.ask(o.seller, 600_00, "")
	p := was
	p.Discrepancy = says
	data, err := ledger.Patch(was, p)
	must(o, err)
	must(o, o.db.Payouts().InTx(o.Context(), func(tx payout.Tx) error {
		if _, err := tx.Append(o.Context(), ledger.Posting{
			Owner: p.Seller, At: o.clock.Now(), Type: ledger.DiscrepancyFound, Subject: string(p.ID), Actor: "gateway", Data: data,
		}); err != nil {
			return err
		}
		_, err := tx.UpdatePayout(o.Context(), p.State, p)
		return err
	}))
	return p.ID
}

// unmatched records a transfer that belongs to nobody.
func (o *adminFixture) unmatched(gatewayID, why string) {
	o.Helper()
	must(o, o.db.Payouts().InTx(o.Context(), func(tx payout.Tx) error {
		_, err := tx.RecordUnmatchedTransfer(o.Context(), payout.UnmatchedTransfer{Gateway: "paper", FoundAt: o.clock.Now(), Why: why, Transfer: gateway.Transfer{
			Report: gateway.Report{GatewayID: gatewayID, Reference: "pyt_lost", Amount: 700_00, Currency: "INR", MadeAt: o.clock.Now(), Progress: gateway.Paid, UTR: "627812345678"},
			Order:  gateway.Order{Seller: "usr_gone"},
		}})
		return err
	}))
}

// control tells the sandbox what to do.
func (o *adminFixture) control(method, path, body string) {
	o.Helper()
	request, err := http.NewRequestWithContext(o.Context(), method, o.gateway+path, strings.NewReader(body))
	must(o, err)
	response, err := http.DefaultClient.Do(request)
	must(o, err)
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		o.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
}

// wantDecisions fails the test unless that is what was decided about something, oldest first.
func (o *adminFixture) wantDecisions(subject string, want ...decision.Action) {
	o.Helper()
	list, err := o.db.Decisions(o.Context(), subject, 50)
	must(o, err)
	var got []decision.Action
	for _, d := range list {
		got = append([]decision.Action{d.Action}, got...)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		o.Errorf("decided was %v, want %v", got, want)
	}
}

var (
	notRead = regexp.MustCompile(`(?s)<(script|style|title|noscript)\b.*?</(script|style|title|noscript)>|<[^>]*>`)
	spaces  = regexp.MustCompile(`[\s\x{a0}]+`)
)

// words is what a reader sees.
func (a answer) words() string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(notRead.ReplaceAllString(a.body, " ")), " "))
}

// reads fails the test unless a reader sees all of the texts.
func (a answer) reads(t *testing.T, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if words := a.words(); !strings.Contains(words, text) {
			t.Errorf("a reader does not see %q: %s", text, words)
		}
	}
	return a
}

// then follows to the page that the answer leads to.
func (b *browser) then(a answer) answer {
	b.t.Helper()
	return b.get(a.want(b.t, http.StatusSeeOther).header.Get("Location"))
}

// sandboxID asks the sandbox what it calls a payout's transfer.
func (o *adminFixture) sandboxID(id payout.ID) (string, error) {
	request, err := http.NewRequestWithContext(o.Context(), http.MethodGet, o.gateway+"/control/moves?reference_id="+string(id), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var moves []struct {
		PayoutID string `json:"payout_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&moves); err != nil || len(moves) != 1 {
		return "", fmt.Errorf("%d moves: %w", len(moves), err)
	}
	return moves[0].PayoutID, nil
}

// The mails page shows the state of each mail, and its text only where mails are written to a developer's files.
func TestMailsPage_TextOnlyInDevelopment(t *testing.T) {
	o := openAdminFixture(t)
	o.seller.post("/dashboard/profile/password", "currentPassword", password, "newPassword", "monsoon-17-terrace").leadsTo(t, "/dashboard/profile")
	list := o.admin.get(adminHome+"/mails").want(t, http.StatusOK).reads(t, "password-changed", "Queued", "a…@example.com")
	list.saysNot(t, "asha.rao@", adminHome+"/mails/mai_")
	rows, err := o.mailbox.Latest(t.Context(), 1)
	must(t, err)
	page := adminHome + "/mails/" + rows[0].ID
	o.admin.get(page).want(t, http.StatusNotFound)

	o.mails.bodies = map[string]string{rows[0].ID: "Subject: <b>Your password</b>\r\n"}
	o.admin.get(adminHome+"/mails").says(t, `href="`+page+`"`)
	checkPage(t, "a mail", o.admin.get(page).want(t, http.StatusOK).reads(t, "Subject: <b>Your password</b>"))
	o.seller.get(page).want(t, http.StatusForbidden)
}
