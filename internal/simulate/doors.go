package simulate

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// door is a route of the API, and who may call it.
type door struct {
	method, path string
	admins       bool
	scope        auth.Scope // of service keys; "" lets none in
	sellers      bool       // and admins with them
}

// unknownUser, unknownPayout and unknownThing are in the paths of doors: nothing has these ids.
const (
	unknownUser   = "usr_0TMv3kQx8hPq2Zb7Lr4Wd9Wh"
	unknownPayout = "pyt_0TMv3kQx8hPq2Zb7Lr4Wd9Wh"
	unknownThing  = "none"
)

// doors lists the routes that not everybody may call, but for those of one's own account.
func doors() (all []door) {
	for _, path := range []string{
		"GET /keys", "POST /keys", "POST /keys/" + unknownThing + "/rotate", "POST /keys/" + unknownThing + "/revoke",
		"GET /inbox", "POST /inbox/ask", "POST /inbox/" + unknownThing + "/claim", "POST /inbox/" + unknownThing + "/release",
		"GET /decisions", "GET /decisions?format=csv", "GET /figures", "GET /search?q=a", "GET /payouts", "GET /payouts?format=csv", "GET /payouts/" + unknownPayout,
		"POST /payouts/" + unknownPayout + "/ask", "POST /payouts/" + unknownPayout + "/review", "POST /payouts/" + unknownPayout + "/match",
		"POST /payouts/" + unknownPayout + "/resolve", "POST /payouts/" + unknownPayout + "/refund", "GET /payouts/pause", "POST /payouts/pause", "POST /payouts/resume",
		"GET /bank-accounts/" + unknownThing, "POST /bank-accounts/" + unknownThing + "/verification",
		"GET /users", "GET /users/" + unknownUser, "POST /users/" + unknownUser + "/access", "GET /users/" + unknownUser + "/security-events",
		"POST /sellers/" + unknownUser + "/lift-hold", "POST /sellers/" + unknownUser + "/freeze", "POST /sellers/" + unknownUser + "/unfreeze",
		"GET /sellers/" + unknownUser + "/adjustments", "GET /sellers/" + unknownUser + "/notes", "POST /sellers/" + unknownUser + "/notes",
		"GET /differences", "GET /differences/" + unknownThing, "POST /differences/" + unknownThing + "/resolve", "GET /reconciliation",
		"GET /ledger/audit", "POST /ledger/audit", "GET /health", "GET /mails", "GET /mails/" + unknownThing,
		"GET /unmatched-transfers", "GET /unmatched-transfers/" + unknownThing, "POST /unmatched-transfers/" + unknownThing + "/resolve",
	} {
		method, path, _ := strings.Cut(path, " ")
		all = append(all, door{method: method, path: "/api/admin" + path, admins: true})
	}
	all = append(all, door{method: http.MethodPost, path: "/api/admin/sellers/" + unknownUser + "/adjustments", admins: true, scope: auth.ScopeSellersWrite})
	for _, of := range []struct {
		scope auth.Scope
		paths []string
	}{
		{auth.ScopeSalesWrite, []string{"POST /sales", "POST /sales:batch", "POST /sales/" + unknownThing + "/refund"}},
		{auth.ScopeSellersWrite, []string{"POST /sellers", "PUT /sellers/" + unknownUser, "PUT /sellers/" + unknownUser + "/bank-account", "POST /sellers/" + unknownUser + "/session"}},
		{auth.ScopeSellersRead, []string{"GET /sellers", "GET /sellers/" + unknownUser}},
		{auth.ScopeBalancesRead, []string{"GET /sellers/" + unknownUser + "/balance", "GET /sellers/" + unknownUser + "/explain", "GET /sellers/" + unknownUser + "/sales"}},
		{auth.ScopePayoutsRead, []string{"GET /sellers/" + unknownUser + "/payouts"}},
		{auth.ScopePayoutsWrite, []string{"POST /sellers/" + unknownUser + "/payouts"}},
	} {
		for _, path := range of.paths {
			method, path, _ := strings.Cut(path, " ")
			all = append(all, door{method: method, path: "/api/marketplace" + path, scope: of.scope})
		}
	}
	all = append(all, door{method: http.MethodGet, path: "/api/events", scope: auth.ScopeEventsRead})
	for _, path := range []string{
		"POST /endpoints", "GET /endpoints", "GET /endpoints/" + unknownThing, "PATCH /endpoints/" + unknownThing, "DELETE /endpoints/" + unknownThing,
		"POST /endpoints/" + unknownThing + "/rotate-secret", "POST /endpoints/" + unknownThing + "/test", "GET /deliveries", "POST /events/" + unknownThing + "/redeliver",
	} {
		method, path, _ := strings.Cut(path, " ")
		all = append(all, door{method: method, path: "/api/webhooks" + path, admins: true, scope: auth.ScopeWebhooksWrite})
	}
	for _, path := range []string{
		"GET /payouts/balance", "GET /payouts/explain", "GET /payouts/history", "GET /payouts/statement", "GET /payouts/adjustments", "POST /payouts/request",
		"GET /payouts/" + unknownPayout, "GET /payouts/" + unknownPayout + "/events", "POST /payouts/" + unknownPayout + "/cancel", "GET /bank-account", "PUT /bank-account",
	} {
		method, path, _ := strings.Cut(path, " ")
		all = append(all, door{method: method, path: "/api" + path, admins: true, sellers: true})
	}
	return all
}

// openAdmin gives the admin a password and a session, and opens the API for them.
func (f front) openAdmin(on *instance) (front, error) {
	m := f.m
	err := on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
		_, err := tx.SetPasswordHash(m.ctx, m.admin, "", formerHash)
		return err
	})
	signIn, err2 := on.users.Login(m.ctx, auth.Credentials{Email: adminsEmail, Password: formerPassword})
	f.token = signIn.Token
	return f, errors.Join(err, err2)
}

// openShop opens the API for a service key that has some scopes, and ends at a time unless that is zero.
func (f front) openShop(on *instance, name string, scopes auth.Scopes, expires time.Time) (front, error) {
	m := f.m
	key, err := m.addKey(on, name, scopes, expires)
	f.key = key
	secret, _, err2 := on.users.RotateServiceKey(m.ctx, f.key.ID, 0, ledger.ActorAdmin+m.admin)
	f.token = secret
	return f, errors.Join(err, err2)
}

// status is how a call without a body is answered. Each one is of something that is not there, so that none changes anything.
func (f front) status(d door) int {
	return f.ask(d.method, d.path, "", "").Code
}

func isKeptOut(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// checkDoors calls each route with every kind of access. Who may not is kept out, and who may can read.
func (m *market) checkDoors() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil {
		return
	}
	seller, err := m.openFront(on, s)
	admins, err2 := seller.openAdmin(on)
	all, err3 := admins.openShop(on, "all", auth.AllScopes(), time.Time{})
	nobody, forger := seller, seller
	nobody.token, forger.token = "", seller.token+"A"
	scopes := auth.AllScopes().List()
	lacking := make(map[auth.Scope]front, len(scopes))
	for i, scope := range scopes {
		others := strings.Join(slices.Delete(slices.Clone(scopes), i, i+1), " ")
		key, err := admins.openShop(on, "all but "+scope, auth.Scopes(others), time.Time{})
		lacking[auth.Scope(scope)] = key
		err3 = errors.Join(err3, err)
	}
	if !m.assert(answersAreKnown, errors.Join(err, err2, err3) == nil, s.id, "open the API: %v", errors.Join(err, err2, err3)) {
		return
	}
	kept := func(d door, who string, f front, isLetIn bool) {
		if isLetIn && d.method != http.MethodGet {
			return // it says nothing of the door, and may change something
		}
		status := f.status(d)
		m.assert(doorsKept, isLetIn != isKeptOut(status) && status < http.StatusInternalServerError, "", "that %s may call %s %s is %t, and the answer is %d", who, d.method, d.path, isLetIn, status)
	}
	for _, d := range doors() {
		kept(d, "nobody", nobody, false)
		kept(d, "a forger", forger, false)
		kept(d, "a seller", seller, d.sellers)
		kept(d, "an admin", admins, d.admins)
		kept(d, "a key with all scopes", all, d.scope != "")
		if d.scope != "" {
			kept(d, "a key without "+string(d.scope), lacking[d.scope], false)
		}
	}
	m.checkRevoked(on, admins)
	m.follow(on, s.id)
	m.follow(on, decision.Platform)
}

// checkRevoked has a service key end at its time, and another one when it is revoked.
func (m *market) checkRevoked(on *instance, admins front) {
	sellers := door{method: http.MethodGet, path: "/api/marketplace/sellers"}
	brief, err := admins.openShop(on, "brief", auth.AllScopes(), on.now().Add(time.Hour))
	revoked, err2 := admins.openShop(on, "revoked", auth.AllScopes(), time.Time{})
	open := []int{brief.status(sellers), revoked.status(sellers)}
	_, err3 := on.users.RevokeServiceKey(m.ctx, revoked.key.ID, ledger.ActorAdmin+m.admin)
	m.assert(answersAreKnown, errors.Join(err, err2, err3) == nil && slices.Equal(open, []int{http.StatusOK, http.StatusOK}), "", "two service keys are answered with %v: %v", open, errors.Join(err, err2, err3))
	m.assert(doorsKept, isKeptOut(revoked.status(sellers)), "", "a service key was revoked, and is answered with %d", revoked.status(sellers))
	m.pass(m.now + time.Hour + time.Second)
	m.assert(doorsKept, m.violation != nil || isKeptOut(brief.status(sellers)), "", "service key %s was good for an hour, which is over, and is answered with %d", brief.key.ID, brief.status(sellers))
}

// checkGuarded gives the admin a second factor. From then on no decision that moves money or access is carried out without a proof of that decision.
func (m *market) checkGuarded() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil || len(m.model.historyOf(s.id, "")) == 0 {
		return
	}
	f, err := m.openFront(on, s)
	admins, err2 := f.openAdmin(on)
	guardedKey, err3 := f.openShop(on, "guarded", auth.AllScopes(), time.Time{})
	endpoints, err4 := on.webhooks.Endpoints(m.ctx)
	if !m.assert(answersAreKnown, errors.Join(err, err2, err3, err4) == nil, s.id, "open the API: %v", errors.Join(err, err2, err3, err4)) || len(endpoints) == 0 {
		return
	}
	m.pass(m.now + 2*time.Minute) // the codes of before are used up
	added := admins.tell("POST", "/api/auth/factors", "type", "totp")
	code, err := totp.GenerateCode(added.Data.Secret, on.now())
	confirmed := admins.tell("POST", "/api/auth/factors/"+added.Data.ID+"/confirm", "code", code)
	m.assert(answersAreKnown, err == nil && confirmed.status == http.StatusOK, m.admin, "a second factor of the admin: %v, %+v, %+v", err, added, confirmed)
	payoutID, account := string(m.model.historyOf(s.id, "")[0]), string(m.model.sellers[s.id].current)
	for _, guarded := range []struct{ call, body string }{
		{"POST /api/payouts/" + payoutID + "/cancel", ``},
		{"POST /api/admin/payouts/" + payoutID + "/match", `{"note":"seen","gatewayId":"pout_1"}`},
		{"POST /api/admin/payouts/" + payoutID + "/refund", `{"note":"seen","noTransferAtGateway":true}`},
		{"POST /api/admin/unmatched-transfers/sandbox:pout_1/resolve", `{"note":"seen"}`},
		{"POST /api/admin/bank-accounts/" + account + "/verification", `{"verified":true,"seen":"verified"}`},
		{"POST /api/admin/bank-accounts/" + account + "/verification", `{"verified":false,"reason":"Not theirs."}`},
		{"POST /api/admin/users/" + s.id + "/access", `{"role":"seller","suspended":true,"note":"seen"}`},
		{"POST /api/admin/sellers/" + s.id + "/lift-hold", `{"note":"seen"}`},
		{"POST /api/admin/sellers/" + s.id + "/freeze", `{"reason":"seen"}`},
		{"POST /api/admin/sellers/" + s.id + "/unfreeze", `{"reason":"seen"}`},
		{"POST /api/admin/payouts/pause", `{"reason":"seen"}`},
		{"POST /api/admin/payouts/resume", `{"reason":"seen"}`},
		{"POST /api/admin/sellers/" + s.id + "/adjustments", `{"adjustmentId":"guarded","amount":1,"reason":"A gift.","note":"seen"}`},
		{"POST /api/admin/keys", `{"name":"mine"}`},
		{"POST /api/admin/keys/" + guardedKey.key.ID + "/rotate", `{}`},
		{"POST /api/admin/keys/" + guardedKey.key.ID + "/revoke", ``},
		{"POST /api/webhooks/endpoints", `{"url":"https://elsewhere.example/hook"}`},
		{"PATCH /api/webhooks/endpoints/" + endpoints[0].ID, `{"description":"mine"}`},
		{"POST /api/webhooks/endpoints/" + endpoints[0].ID + "/rotate-secret", ``},
		{"DELETE /api/webhooks/endpoints/" + endpoints[0].ID, ``},
	} {
		method, path, _ := strings.Cut(guarded.call, " ")
		m.spawn(0, admin, func() {
			w := admins.ask(method, path, "", guarded.body)
			m.assert(doorsKept, w.Code == http.StatusUnauthorized && strings.Contains(w.Body.String(), "step_up_required"), s.id, "the admin has a second factor, and without a proof %s is answered with %d: %s", guarded.call, w.Code, w.Body)
		})
		m.pass(m.now + time.Second)
	}
	for _, action := range []string{
		"cancel_payout", "match_transfer", "refund_payout", "resolve_unmatched_transfer", "accept_bank_account", "reject_bank_account", "change_access", "lift_hold", "freeze_payouts", "unfreeze_payouts",
		"pause_payouts", "resume_payouts", "adjust_balance", "create_key", "rotate_key", "revoke_key", "add_webhook", "change_webhook", "rotate_webhook", "remove_webhook",
	} {
		got := admins.tell("POST", "/api/auth/step-up", "action", "admin."+action, "subject", s.id)
		m.assert(doorsKept, got.status == http.StatusUnauthorized && got.Code == "step_up_required" && got.Details["methods"] != "", s.id, "the admin asks how to prove %s, and is answered with %d %s %v", action, got.status, got.Code, got.Details)
	}
	m.follow(on, s.id)
	m.follow(on, decision.Platform)
}
