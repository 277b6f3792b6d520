package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/decision"
	port "bursar/internal/gateway"
	"bursar/internal/health"
	"bursar/internal/inbox"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/search"
	"bursar/internal/telemetry"
)

// front is the API of an instance as a program calls it, with the token of a seller or an admin, or with a service key.
type front struct {
	m       *market
	handler http.Handler
	token   string
	key     auth.ServiceKey
	proof   string // that goes with each call; "" for none
}

// openFront opens the API for a seller, who comes by a link of the marketplace.
func (m *market) openFront(on *instance, s *seller) (f front, err error) {
	key, err := m.addServiceKey(on, "storefront "+m.now.String(), time.Time{})
	link, _, err2 := on.users.CreateSessionLink(m.ctx, key, s.id)
	opened, err3 := on.users.OpenSessionLink(m.ctx, link, "", auth.Device{})
	hooks := map[port.Name]port.ReadWebhook{}
	for _, g := range on.gateways {
		hooks[g.name] = g.webhooks.Read
	}
	handler, err4 := api.New(api.Options{
		Auth: on.users, Bank: on.bank, Sales: on.sales, Payouts: on.payouts, Search: search.Service{Store: on.db, Currency: rupees()}, Inbox: on.inbox(),
		Events: on.events, Endpoints: on.webhooks, Decisions: on.db, Ledger: on.db, Reconciling: on.reconciling, Mails: noMails{}, Health: noHealth{},
		Audits: &health.Audits{}, Statements: on.proofs, Webhooks: hooks, Currency: rupees(), BaseURL: &url.URL{Scheme: "http", Host: "bursar.simulated"},
		Ping: on.db.Ping, Draining: func() bool { return false }, Now: on.now, Logger: m.logger(on.name), Metrics: telemetry.NewMetrics(),
	})
	return front{m: m, handler: handler, token: opened.Token}, errors.Join(err, err2, err3, err4)
}

// inbox is what waits for admins.
func (on *instance) inbox() inbox.Service {
	return inbox.Service{Payouts: on.payouts, Bank: on.bank, Reconciling: on.reconciling, Webhooks: on.webhooks, Store: on.db.Inbox(), Now: on.now}
}

// noMails and noHealth answer what nobody asks here.
type (
	noMails  struct{}
	noHealth struct{}
)

func (noMails) Latest(context.Context, int) ([]mail.Row, error) { return nil, nil }
func (noMails) Mail(context.Context, string) (row mail.Row, is bool, err error) {
	return row, false, nil
}
func (noMails) Body(string) (string, bool, error)                      { return "", false, nil }
func (noHealth) Instance() (i health.Instance)                         { return i }
func (noHealth) Loops() []health.Loop                                  { return nil }
func (noHealth) Backlog(context.Context) (b health.Backlog, err error) { return b, nil }

// ask calls the API, and returns its answer.
func (f front) ask(method, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(f.m.ctx, method, path, strings.NewReader(body))
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	if f.proof != "" {
		r.Header.Set("Step-Up", f.proof)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// read reads something that is there.
func (f front) read(path string, data any) {
	status, _ := f.call(http.MethodGet, path, "", "", data)
	f.m.assert(answersAreKnown, status == http.StatusOK, "", "GET %s is answered with %d", path, status)
}

// call calls the API, and returns its answer's status and header. What it says is read into data.
func (f front) call(method, path, key, body string, data any) (int, http.Header) {
	w := f.ask(method, path, key, body)
	answer := struct{ Data any }{data}
	err := json.NewDecoder(bytes.NewReader(w.Body.Bytes())).Decode(&answer)
	f.m.assert(answersAreKnown, err == nil, "", "%s %s is answered with %d, and %s: %v", method, path, w.Code, w.Body, err)
	return w.Code, w.Header()
}

// checkFront has a seller read their balance and history by API, and ask for a payout under a key, again under it, and under one that differs in the
// case of a letter.
func (m *market) checkFront() {
	on, s := m.anyInstance(), m.payable()
	if on == nil || s == nil {
		return
	}
	f, err := m.openFront(on, s)
	if !m.assert(answersAreKnown, err == nil, s.id, "the API for %s: %v", s.id, err) {
		return
	}
	f.checkBalance("/api/payouts/balance", s)
	for _, status := range append(payout.Statuses(), "") {
		f.checkHistory("/api/payouts/history", s, status)
	}
	f.checkRequests(s)
	f.checkKeyAsksForSuspended(on, s)
	m.follow(on, s.id)
	m.follow(on, decision.Platform)
}

func (f front) checkBalance(path string, s *seller) {
	m, row := f.m, f.m.model.row(s.id)
	var got struct{ AvailableBalance, PendingBalance json.Number }
	f.read(path, &got)
	m.assert(readsAgree, isAmount(got.AvailableBalance, row.Available) && isAmount(got.PendingBalance, row.Pending), s.id, "%s sees %+v, and has %d and %d", s.id, got, row.Available, row.Pending)
}

// isAmount reports whether an answer's number is an amount of so many paise.
func isAmount(n json.Number, want money.Amount) bool {
	text, isNegative := strings.CutPrefix(n.String(), "-")
	got, err := rupees().Parse(text)
	if isNegative {
		got = -got
	}
	return err == nil && got == want || want == 0 && n.String() == "0"
}

// checkHistory pages through a seller's payouts of a status, and wants all, the newest first, and their number.
func (f front) checkHistory(path string, s *seller, status payout.Status) {
	const limit = 3
	m := f.m
	want := m.model.historyOf(s.id, status)
	total := len(want)
	pages := (total + limit - 1) / limit
	for page := 1; page <= pages+1 && m.violation == nil; page++ {
		var got struct {
			Payouts []struct {
				ID     payout.ID
				Status payout.Status
				Amount json.Number
			}
			Pagination struct{ CurrentPage, TotalPages, TotalItems, ItemsPerPage int }
		}
		f.read(fmt.Sprintf("%s?page=%d&limit=%d&status=%s", path, page, limit, cmp.Or(status, "all")), &got)
		right := got.Pagination.CurrentPage == page && got.Pagination.TotalPages == pages && got.Pagination.TotalItems == total && got.Pagination.ItemsPerPage == limit
		shown := want[:min(limit, len(want))]
		want = want[len(shown):]
		right = right && len(got.Payouts) == len(shown)
		for i := 0; right && i < len(shown); i++ {
			p, w := got.Payouts[i], m.model.payouts[shown[i]]
			right = p.ID == shown[i] && p.Status == w.state.Status() && isAmount(p.Amount, w.amount)
		}
		m.assert(readsAgree, right, s.id, "page %d of the payouts of %s with the status %s is %+v, and there are %v on it of %d on %d pages", page, s.id, status, got, shown, total, pages)
	}
}

// checkRequests asks for the least under a key, and for that again once it has been sent.
func (f front) checkRequests(s *seller) {
	m := f.m
	body := `{"amount":` + rupees().FormatFixed(minimum) + `,"notes":"by API"}`
	type requested struct {
		PayoutID payout.ID
		Amount   json.Number
		Status   payout.Status
	}
	ask := func(key string) (got requested, status int, replayed bool, made payout.ID) {
		a := &ask{seller: s.id, amount: minimum, notes: "by API", key: key}
		m.spawn(0, "seller "+s.name, func() {
			m.current.ask = a
			defer func() { m.current.ask = nil }()
			code, header := f.call(http.MethodPost, "/api/payouts/request", key, body, &got)
			status, replayed = code, header.Get("Idempotent-Replayed") == "true"
		})
		m.pass(m.now + 5*time.Minute)
		return got, status, replayed, a.made
	}
	first, status, replayed, made := ask("By-API-1")
	m.assert(answersAreTrue, m.violation != nil || status == http.StatusCreated && !replayed && made != "" && first == requested{made, first.Amount, payout.StatusProcessing} && isAmount(first.Amount, minimum), s.id,
		"%s asked for the least by API, was answered with %d, and %+v (replayed: %t), and made %q", s.id, status, first, replayed, made)
	again, status, replayed, made := ask("By-API-1")
	m.assert(oneAnswerPerKey, m.violation != nil || status == http.StatusCreated && replayed && made == "" && again == first, s.id,
		"%s asked again under a key by API, was answered with %d, and %+v (replayed: %t), and made %q; the first answer was %+v", s.id, status, again, replayed, made, first)
	_, status, replayed, made = ask("by-api-1")
	m.assert(oneAnswerPerKey, m.violation != nil || !replayed && (status == http.StatusCreated && made != "" || m.model.row(s.id).Available < minimum), s.id,
		"%s asked under another key by API, was answered with %d (replayed: %t), and made %q", s.id, status, replayed, made)
}
