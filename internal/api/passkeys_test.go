package api_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"bursar/internal/auth"
)

// device keeps one passkey, which another implementation than the service's signs with.
type device struct {
	t     *testing.T
	party virtualwebauthn.RelyingParty
	key   virtualwebauthn.Credential
	owner []byte // the handle that the service gave its user
	does  virtualwebauthn.AuthenticatorOptions
}

func newDevice(t *testing.T) *device {
	t.Helper()
	const whole = 77 // bytes of a public key; the library drops zeros at the front of a coordinate, which are one in 128
	key := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	for len(key.Key.AttestationData()) != whole {
		key = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	}
	return &device{t: t, party: virtualwebauthn.RelyingParty{ID: "localhost", Name: "Bursar", Origin: "http://localhost:8080"}, key: key}
}

func (d *device) authenticator() virtualwebauthn.Authenticator {
	does := d.does
	does.UserHandle = d.owner
	return virtualwebauthn.NewAuthenticatorWithOptions(does)
}

// create answers as navigator.credentials.create does.
func (d *device) create(options string) string {
	d.t.Helper()
	parsed, err := virtualwebauthn.ParseAttestationOptions(options)
	must(d.t, err)
	d.owner = []byte(parsed.UserID)
	return virtualwebauthn.CreateAttestationResponse(d.party, d.authenticator(), d.key, *parsed)
}

// get answers as navigator.credentials.get does.
func (d *device) get(options string) string {
	d.t.Helper()
	parsed, err := virtualwebauthn.ParseAssertionOptions(options)
	must(d.t, err)
	d.key.Counter++
	return virtualwebauthn.CreateAssertionResponse(d.party, d.authenticator(), d.key, *parsed)
}

// changed is the device with something changed of it; the counter stays the first's.
func (d *device) changed(change func(*device)) *device {
	other := *d
	change(&other)
	return &other
}

func (a answer) options(t *testing.T) string {
	t.Helper()
	options, err := json.Marshal(a.read(t, "data.options"))
	must(t, err)
	return string(options)
}

func (h *fixture) addPasskey(u user, proof string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/factors", token: u.token, body: `{"type":"passkey","name":"My phone"}`, header: header("Step-Up", proof)})
}

func (h *fixture) confirmPasskey(u user, id, attestation string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/factors/" + id + "/confirm", token: u.token, body: `{"attestation":` + attestation + `}`})
}

// withPasskey adds a user's first passkey.
func (h *fixture) withPasskey(u user) (d *device, id string, recovery []string) {
	h.t.Helper()
	made := h.addPasskey(u, "").want(h.t, 201)
	d, id = newDevice(h.t), made.text(h.t, "data.id")
	confirmed := h.confirmPasskey(u, id, d.create(made.options(h.t))).want(h.t, 200)
	var body struct {
		Data struct{ RecoveryCodes []string }
	}
	must(h.t, json.Unmarshal([]byte(confirmed.body), &body))
	return d, id, body.Data.RecoveryCodes
}

// firstStepWithPasskey signs in with the password, and returns the challenge and the options.
func (h *fixture) firstStepWithPasskey(u user) (challenge, options string) {
	h.t.Helper()
	f := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + u.email + `","password":"` + password + `"}`}).
		wantFailure(h.t, 401, "second_factor_required", "challenge", "methods", "options")
	return f.Details["challenge"], f.Details["options"]
}

func (h *fixture) secondStepWith(challenge, assertion string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/login/factor", body: `{"challenge":"` + challenge + `","assertion":` + assertion + `}`})
}

func (h *fixture) passkeyOptions() string {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/passkeys/login/options"}).want(h.t, 200).options(h.t)
}

func (h *fixture) loginPasskey(assertion string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/passkeys/login", body: `{"assertion":` + assertion + `}`})
}

func (h *fixture) wantCleanAudit() {
	h.t.Helper()
	if report, err := h.db.Audit(h.t.Context(), nil); err != nil || !report.Clean() {
		h.t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

func (h *fixture) wantEvents(u user, types ...string) {
	h.t.Helper()
	events := h.do(call{method: "GET", path: "/api/auth/security-events", token: u.token}).want(h.t, 200)
	for _, want := range types {
		if !strings.Contains(events.body, want) {
			h.t.Errorf("the user does not see %s: %s", want, events.body)
		}
	}
}

func TestPasskey_AsTheOnlyFactor(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	d, id, recovery := h.withPasskey(seller)
	if len(recovery) != 10 {
		t.Fatalf("there are %d recovery codes", len(recovery))
	}
	listed := h.do(call{method: "GET", path: "/api/auth/factors", token: seller.token}).want(t, 200)
	if listed.text(t, "data.factors.0.type") != "passkey" || listed.text(t, "data.factors.0.name") != "My phone" || listed.text(t, "data.factors.0.id") != id {
		t.Errorf("listed are %s", listed.body)
	}

	if export := h.do(call{method: "GET", path: "/api/auth/export", token: seller.token}).want(t, 200); export.text(t, "data.factors.0.name") != "My phone" {
		t.Errorf("the export is %s", export.body)
	}

	challenge, options := h.firstStepWithPasskey(seller)
	in := h.secondStepWith(challenge, d.get(options)).want(t, 200)
	sessions := h.do(call{method: "GET", path: "/api/auth/sessions", token: in.text(t, "data.token")}).want(t, 200)
	if !strings.Contains(sessions.body, `"methods":["pwd","webauthn"]`) {
		t.Errorf("the sessions are %s", sessions.body)
	}
	h.secondStep(challenge, "recoveryCode", recovery[0]).wantFailure(t, 401, "invalid_challenge") // it was answered
	challenge, _ = h.firstStepWithPasskey(seller)
	h.secondStep(challenge, "recoveryCode", recovery[0]).want(t, 200)

	in = h.loginPasskey(d.get(h.passkeyOptions())).want(t, 200)
	alone := user{seller.id, seller.email, in.text(t, "data.token"), ""}
	sessions = h.do(call{method: "GET", path: "/api/auth/sessions", token: alone.token}).want(t, 200)
	if !strings.Contains(sessions.body, `"methods":["webauthn"]`) {
		t.Errorf("the sessions are %s", sessions.body)
	}

	// Another one needs a proof, and is not the same again.
	h.addPasskey(alone, "").wantFailure(t, 401, "step_up_required", "methods", "options")
	asked := h.stepUp(alone, `"action":"factor.add"`).wantFailure(t, 401, "step_up_required", "methods", "options")
	if asked.Details["methods"] != "passkey recovery_code" {
		t.Errorf("the methods are %s", asked.Details["methods"])
	}
	proof := h.stepUp(alone, `"action":"factor.add","assertion":`+d.get(asked.Details["options"])).want(t, 200).text(t, "data.proof")
	made := h.addPasskey(alone, proof).want(t, 201)
	if options := made.options(t); !strings.Contains(options, base64.RawURLEncoding.EncodeToString(d.key.ID)) {
		t.Errorf("the browser may add the passkey that is there: %s", options)
	}
	h.confirmPasskey(alone, made.text(t, "data.id"), d.create(made.options(t))).wantFailure(t, 400, "passkey_known")
	other := newDevice(t)
	if codes := h.confirmPasskey(alone, made.text(t, "data.id"), other.create(made.options(t))).want(t, 200); !strings.Contains(codes.body, `"recoveryCodes":[]`) {
		t.Errorf("with the second passkey came %s", codes.body)
	}
	h.loginPasskey(other.get(h.passkeyOptions())).want(t, 200)

	for _, factor := range []string{id, made.text(t, "data.id")} {
		asked := h.do(call{method: "DELETE", path: "/api/auth/factors/" + factor, token: seller.token}).wantFailure(t, 401, "step_up_required", "methods", "options")
		proof := h.stepUp(seller, `"action":"factor.remove","factorId":"`+factor+`","assertion":`+other.get(asked.Details["options"])).want(t, 200).text(t, "data.proof")
		h.do(call{method: "DELETE", path: "/api/auth/factors/" + factor, token: seller.token, header: header("Step-Up", proof)}).want(t, 200)
	}
	h.loginPasskey(other.get(h.passkeyOptions())).wantFailure(t, 401, "invalid_passkey")
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}).want(t, 200)
	h.wantEvents(seller, "account.factor_added", "account.factor_removed", "account.recovery_code_used")
	h.wantCleanAudit()
}

// TestPasskey_BesideAnApp adds a passkey to an authenticator app.
func TestPasskey_BesideAnApp(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	a, _, _ := h.enrol(seller)
	h.addPasskey(seller, "").wantFailure(t, 401, "step_up_required", "methods")
	proof := h.stepUp(seller, `"action":"factor.add","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	made := h.addPasskey(seller, proof).want(t, 201)
	d, id := newDevice(t), made.text(t, "data.id")
	h.do(call{method: "POST", path: "/api/auth/factors/" + id + "/confirm", token: seller.token, body: `{"code":"123456"}`}).wantFailure(t, 404, "factor_not_found")
	h.confirmPasskey(seller, id, d.create(made.options(t))).want(t, 200)

	challenge, options := h.firstStepWithPasskey(seller)
	h.secondStep(challenge, "code", a.code()).want(t, 200)
	h.secondStepWith(challenge, d.get(options)).wantFailure(t, 401, "invalid_challenge")
	challenge, options = h.firstStepWithPasskey(seller)
	h.secondStepWith(challenge, d.get(options)).want(t, 200)
	h.wantCleanAudit()
}

// wrongAnswers are what a device may not do, at registration and later.
var wrongAnswers = map[string]func(*device){
	"of another site":                 func(d *device) { d.party.Origin = "https://evil.example" },
	"of an address of loopback":       func(d *device) { d.party.Origin = "http://127.0.0.1:8080" },
	"of another port":                 func(d *device) { d.party.Origin = "http://localhost:8081" },
	"for another party":               func(d *device) { d.party.ID = "evil.example" },
	"without a user present":          func(d *device) { d.does.UserNotPresent = true },
	"without its user verified":       func(d *device) { d.does.UserNotVerified = true },
	"backed up, and no backup may be": func(d *device) { d.does.BackupState = true },
}

// tampered changes a byte of a part of an answer.
func tampered(t *testing.T, answer, part string) string {
	t.Helper()
	var whole struct {
		Type     string            `json:"type"`
		ID       string            `json:"id"`
		RawID    string            `json:"rawId"`
		Response map[string]string `json:"response"`
	}
	must(t, json.Unmarshal([]byte(answer), &whole))
	raw, err := base64.RawURLEncoding.DecodeString(whole.Response[part])
	must(t, err)
	raw[len(raw)-1] ^= 1
	whole.Response[part] = base64.RawURLEncoding.EncodeToString(raw)
	text, err := json.Marshal(whole)
	must(t, err)
	return string(text)
}

func TestConfirmPasskey_Refuses(t *testing.T) {
	h := openFixture(t)
	n := 0
	begin := func() (u user, id, options string) {
		n++
		u = h.signUp(fmt.Sprintf("Seller%d", n), auth.Seller)
		made := h.addPasskey(u, "").want(t, 201)
		return u, made.text(t, "data.id"), made.options(t)
	}
	wantNone := func(u user) {
		t.Helper()
		h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + u.email + `","password":"` + password + `"}`}).want(t, 200)
	}
	for name, change := range wrongAnswers {
		u, id, options := begin()
		if a := h.confirmPasskey(u, id, newDevice(t).changed(change).create(options)); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		} else {
			a.wantFailure(t, 400, "invalid_passkey")
		}
		wantNone(u)
	}

	u, id, options := begin()
	d := newDevice(t)
	h.confirmPasskey(u, id, tampered(t, d.create(options), "attestationObject")).wantFailure(t, 400, "invalid_passkey")
	h.confirmPasskey(u, id, strings.Replace(d.create(options), `"attestationObject":"`, `"attestationObject":"AA`, 1)).wantFailure(t, 422, "validation_failed", "attestation")
	h.confirmPasskey(u, id, `{}`).wantFailure(t, 422, "validation_failed", "attestation")
	h.confirmPasskey(u, id, `"text"`).wantFailure(t, 400, "invalid_request", "attestation")
	h.confirmPasskey(u, id, `{"id":"`+strings.Repeat("A", 33<<10)+`"}`).wantFailure(t, 422, "validation_failed", "attestation")
	h.do(call{method: "POST", path: "/api/auth/factors", token: u.token, body: `{"type":"passkey","name":"` + strings.Repeat("x", 51) + `"}`}).wantFailure(t, 422, "validation_failed", "name")
	huge := d.changed(func(d *device) { d.key.ID = make([]byte, 1024) })
	h.confirmPasskey(u, id, huge.create(options)).wantFailure(t, 422, "validation_failed", "attestation")
	login := h.passkeyOptions() // whose challenge is not for this
	parsed, err := virtualwebauthn.ParseAssertionOptions(login)
	must(t, err)
	h.confirmPasskey(u, id, virtualwebauthn.CreateAttestationResponse(d.party, d.authenticator(), d.key, virtualwebauthn.AttestationOptions{Challenge: parsed.Challenge})).
		wantFailure(t, 400, "invalid_passkey")

	other, otherID, otherOptions := begin()
	h.confirmPasskey(u, id, d.create(otherOptions)).wantFailure(t, 400, "invalid_passkey") // another user's challenge
	h.confirmPasskey(u, otherID, d.create(otherOptions)).wantFailure(t, 404, "factor_not_found")
	again := other
	again.token = h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + other.email + `","password":"` + password + `"}`}).want(t, 200).text(t, "data.token")
	h.confirmPasskey(again, otherID, d.create(otherOptions)).wantFailure(t, 400, "invalid_passkey") // another session
	h.clock.advance(5 * time.Minute)
	h.confirmPasskey(other, otherID, d.create(otherOptions)).wantFailure(t, 400, "invalid_passkey") // too late
	next := h.addPasskey(other, "").want(t, 201)
	h.confirmPasskey(other, otherID, d.create(otherOptions)).wantFailure(t, 404, "factor_not_found") // given up for the next
	answer := d.create(next.options(t))
	h.confirmPasskey(other, next.text(t, "data.id"), answer).want(t, 200)
	h.confirmPasskey(other, next.text(t, "data.id"), answer).wantFailure(t, 400, "factor_confirmed")
	wantNone(u)
	h.wantCleanAudit()
}

func TestLoginPasskey_Refuses(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	d, _, _ := h.withPasskey(seller)
	theirs, _, _ := h.withPasskey(other)
	changes := map[string]func(*device){
		"by another key":      func(d *device) { d.key.Key = newDevice(t).key.Key },
		"of an unknown key":   func(d *device) { d.key.ID = []byte("another") },
		"for another user":    func(d *device) { d.owner = theirs.owner },
		"for no user":         func(d *device) { d.owner = nil },
		"for an unknown user": func(d *device) { d.owner = []byte("usr_0VbVJmnbyQrmfVJ1OaqE18SI") },
	}
	maps.Copy(changes, wrongAnswers)
	var told string
	for name, change := range changes {
		d.key.Counter++
		a := h.loginPasskey(d.changed(change).get(h.passkeyOptions()))
		if a.status != 401 || told != "" && a.body != told {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		told = a.body
	}
	for _, part := range []string{"signature", "authenticatorData"} {
		h.loginPasskey(tampered(t, d.get(h.passkeyOptions()), part)).wantFailure(t, 401, "invalid_passkey")
	}
	h.loginPasskey(`{}`).wantFailure(t, 422, "validation_failed", "assertion")
	h.do(call{method: "POST", path: "/api/auth/passkeys/login", body: `{}`}).wantFailure(t, 400, "invalid_request", "assertion")

	options := h.passkeyOptions()
	answer := d.get(options)
	h.loginPasskey(answer).want(t, 200)
	h.loginPasskey(answer).wantFailure(t, 401, "invalid_passkey")         // the same again
	h.loginPasskey(d.get(options)).wantFailure(t, 401, "invalid_passkey") // the challenge again
	options = h.passkeyOptions()
	h.clock.advance(5 * time.Minute)
	h.loginPasskey(d.get(options)).wantFailure(t, 401, "invalid_passkey")
	_, options = h.firstStepWithPasskey(seller)
	h.loginPasskey(d.get(options)).wantFailure(t, 401, "invalid_passkey") // a challenge for the second step
	h.loginPasskey(strings.Replace(d.get(h.passkeyOptions()), `"clientDataJSON":"`, `"clientDataJSON":"eyJ4Ijo`, 1)).wantFailure(t, 422, "validation_failed", "assertion")

	h.do(call{method: "POST", path: "/api/admin/users/" + seller.id + "/access", token: h.signUp("Boss", auth.Admin).token, body: `{"role":"seller","suspended":true,"note":"gone"}`}).want(t, 200)
	h.loginPasskey(d.get(h.passkeyOptions())).wantFailure(t, 401, "invalid_passkey")
	h.loginPasskey(theirs.get(h.passkeyOptions())).want(t, 200)

	refused := 0
	for range 120 {
		if h.loginPasskey(theirs.changed(func(d *device) { d.owner = nil }).get(h.passkeyOptions())).status == 429 {
			refused++
		}
	}
	if refused < 20 || refused > 60 {
		t.Errorf("of 120 more attempts %d were refused", refused)
	}
}

func TestLoginPasskey_OfManyAtOnceOneSucceeds(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	d, _, _ := h.withPasskey(seller)
	answer := []byte(d.get(h.passkeyOptions()))
	var all sync.WaitGroup
	var good atomic.Int64
	for range 4 {
		all.Go(func() {
			_, err := h.auth.LoginPasskey(t.Context(), answer, auth.Device{Address: "192.0.2.1"})
			if err == nil {
				good.Add(1)
			} else if !errors.Is(err, auth.ErrSignInPasskey) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := good.Load(); n != 1 {
		t.Errorf("an answer was taken %d times", n)
	}
}

// TestPasskey_Cloned has the counter of a passkey stand still, as it does where another device used a copy of it.
func TestPasskey_Cloned(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	d, _, _ := h.withPasskey(seller)
	copied := *d
	once := d.get(h.passkeyOptions())
	h.loginPasskey(once).want(t, 200)
	h.loginPasskey(once).wantFailure(t, 401, "invalid_passkey") // sent again, by a client that had no answer
	challenge, options := h.firstStepWithPasskey(seller)
	second := d.get(options)
	h.secondStepWith(challenge, second).want(t, 200)
	h.secondStepWith(challenge, second).wantFailure(t, 401, "invalid_passkey")
	events := h.do(call{method: "GET", path: "/api/auth/security-events", token: seller.token}).want(t, 200)
	if strings.Contains(events.body, "passkey_cloned") {
		t.Errorf("an answer that was sent twice is a clone's: %s", events.body)
	}
	h.loginPasskey(copied.get(h.passkeyOptions())).wantFailure(t, 401, "invalid_passkey")
	h.wantEvents(seller, "account.passkey_cloned")
	copied.key.Counter = 0
	challenge, options = h.firstStepWithPasskey(seller)
	h.secondStepWith(challenge, copied.get(options)).wantFailure(t, 401, "invalid_passkey")
	h.loginPasskey(d.get(h.passkeyOptions())).want(t, 200)

	// A passkey of a password manager counts nothing.
	still := h.signUp("Ravi", auth.Seller)
	s, _, _ := h.withPasskey(still)
	for range 2 {
		s.key.Counter = ^uint32(0) // the next is zero
		h.loginPasskey(s.get(h.passkeyOptions())).want(t, 200)
	}
	// Some change whether they may be backed up.
	s.key.Counter = ^uint32(0)
	h.loginPasskey(s.changed(func(d *device) { d.does.BackupEligible, d.does.BackupState = true, true }).get(h.passkeyOptions())).want(t, 200)
	h.wantCleanAudit()
}

func TestSecondStepAndStepUp_RefusePasskeys(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	d, id, _ := h.withPasskey(seller)
	theirs, _, _ := h.withPasskey(other)
	calm := func() { h.clock.advance(time.Hour) } // so that attempts are counted by none before

	for name, change := range wrongAnswers {
		calm()
		challenge, options := h.firstStepWithPasskey(seller)
		if a := h.secondStepWith(challenge, d.changed(change).get(options)); a.status != 401 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	calm()
	challenge, options := h.firstStepWithPasskey(seller)
	next, nextOptions := h.firstStepWithPasskey(seller)
	_, theirOptions := h.firstStepWithPasskey(other)
	h.secondStepWith(challenge, d.get(nextOptions)).wantFailure(t, 401, "invalid_passkey")
	h.secondStepWith(challenge, d.get(theirOptions)).wantFailure(t, 401, "invalid_passkey")
	h.secondStepWith(challenge, d.get(h.passkeyOptions())).wantFailure(t, 401, "invalid_passkey")
	h.secondStepWith(challenge, theirs.get(options)).wantFailure(t, 401, "invalid_passkey")
	calm()
	challenge, options = h.firstStepWithPasskey(seller)
	h.secondStepWith(challenge, tampered(t, d.get(options), "signature")).wantFailure(t, 401, "invalid_passkey")
	h.secondStepWith(challenge, `{}`).wantFailure(t, 422, "validation_failed", "assertion")
	h.secondStepWith(next, d.get(nextOptions)).wantFailure(t, 401, "invalid_challenge") // too late
	answer := d.get(options)
	again := h.secondStepWith(challenge, answer).want(t, 200)
	h.secondStepWith(challenge, answer).wantFailure(t, 401, "invalid_passkey")
	challenge, _ = h.firstStepWithPasskey(seller)
	h.secondStepWith(challenge, answer).wantFailure(t, 401, "invalid_passkey")

	// A proof is signed for one action of one session.
	calm()
	ask := func(u user, action string) string {
		t.Helper()
		return h.stepUp(u, action).wantFailure(t, 401, "step_up_required", "methods", "options").Details["options"]
	}
	prove := func(u user, action, assertion string) answerOf {
		return answerOf{t, h.stepUp(u, action+`,"assertion":`+assertion)}
	}
	const replace = `"action":"bank_account.replace","accountNumber":"50100123454321","ifsc":"HDFC0000053"`
	const elsewhere = `"action":"bank_account.replace","accountNumber":"50100123450000","ifsc":"HDFC0000053"`
	prove(seller, elsewhere, d.get(ask(seller, replace))).refused()
	prove(seller, `"action":"factor.remove","factorId":"`+id+`"`, d.get(ask(seller, `"action":"factor.add"`))).refused()
	prove(seller, `"action":"password.change"`, d.get(ask(seller, `"action":"factor.add"`))).refused()
	prove(user{token: again.text(t, "data.token")}, replace, d.get(ask(seller, replace))).refused()
	prove(seller, replace, d.get(ask(other, replace))).refused()
	prove(seller, replace, theirs.get(ask(seller, replace))).refused()
	prove(seller, replace, d.get(h.passkeyOptions())).refused()
	calm()
	prove(seller, replace, tampered(t, d.get(ask(seller, replace)), "signature")).refused()
	late := ask(seller, replace)
	h.clock.advance(5 * time.Minute)
	prove(seller, replace, d.get(late)).refused()
	options = ask(seller, replace)
	prove(seller, replace, d.get(options)).want(t, 200)
	prove(seller, replace, d.get(options)).refused()
	h.wantEvents(seller, "account.passkey_refused")
	h.wantCleanAudit()
}

// answerOf is an answer to a wish for a proof.
type answerOf struct {
	t *testing.T
	answer
}

func (a answerOf) refused() {
	a.t.Helper()
	a.wantFailure(a.t, 400, "invalid_passkey")
}

func TestPasskeys_AreBounded(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	d, _, _ := h.withPasskey(seller)
	add := func() answer {
		t.Helper()
		h.clock.advance(time.Hour)
		asked := h.stepUp(seller, `"action":"factor.add"`).wantFailure(t, 401, "step_up_required", "methods", "options")
		return h.addPasskey(seller, h.stepUp(seller, `"action":"factor.add","assertion":`+d.get(asked.Details["options"])).want(t, 200).text(t, "data.proof"))
	}
	for range 9 {
		made := add().want(t, 201)
		h.confirmPasskey(seller, made.text(t, "data.id"), newDevice(t).create(made.options(t))).want(t, 200)
	}
	add().wantFailure(t, 400, "too_many_factors")
}

// TestPasskeys_NotAtEveryAddress opens the service where browsers offer no passkeys.
func TestPasskeys_NotAtEveryAddress(t *testing.T) {
	for address, wantParty := range map[string]string{
		"http://192.168.1.10:8080": "", "https://192.0.2.1": "", "http://pay.example": "",
		"https://pay.example": "pay.example", "https://Pay.Example:8443": "pay.example", "http://localhost:8080": "localhost", "http://[::1]:80": "localhost",
	} {
		h := openFixture(t)
		h.authOptions.PublicAddress = address
		service, err := auth.New(h.authOptions)
		must(t, err)
		options, err := service.PasskeyOptions()
		if wantParty == "" {
			if !errors.Is(err, auth.ErrNoPasskeys) {
				t.Errorf("%s: %s, %v", address, options, err)
			}
			continue
		}
		if !strings.Contains(string(options), `"rpId":"`+wantParty+`"`) {
			t.Errorf("%s: %s, %v", address, options, err)
		}
	}
}
