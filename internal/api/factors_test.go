package api_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/mail"
	"bursar/internal/npmtest"
)

// app is an authenticator app, which is another implementation than the service's.
type app struct {
	h      *fixture
	secret string
}

// code is the one that the app shows now. The service takes each once, so the clock moves on.
func (a app) code() string {
	a.h.t.Helper()
	a.h.clock.advance(30 * time.Second)
	code, err := totp.GenerateCode(a.secret, a.h.clock.Now())
	must(a.h.t, err)
	return code
}

// enrol adds an authenticator app for a user, and returns it with its id and the recovery codes.
func (h *fixture) enrol(u user) (a app, id string, recovery []string) {
	h.t.Helper()
	made := h.do(call{method: "POST", path: "/api/auth/factors", token: u.token, body: `{"type":"totp"}`}).want(h.t, 201)
	a = app{h, made.text(h.t, "data.secret")}
	if uri := made.text(h.t, "data.uri"); !strings.HasPrefix(uri, "otpauth://totp/127.0.0.1:8080:") || !strings.Contains(uri, "secret="+a.secret) {
		h.t.Errorf("the app gets %s", uri)
	}
	id = made.text(h.t, "data.id")
	confirmed := h.do(call{method: "POST", path: "/api/auth/factors/" + id + "/confirm", token: u.token, body: `{"code":"` + a.code() + `"}`}).want(h.t, 200)
	var body struct {
		Data struct{ RecoveryCodes []string }
	}
	must(h.t, json.Unmarshal([]byte(confirmed.body), &body))
	return a, id, body.Data.RecoveryCodes
}

// firstStep signs in with the password, and returns the challenge.
func (h *fixture) firstStep(u user) string {
	h.t.Helper()
	f := h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + u.email + `","password":"` + password + `"}`}).wantFailure(h.t, 401, "second_factor_required", "challenge", "methods")
	return f.Details["challenge"]
}

func (h *fixture) secondStep(challenge, field, code string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/login/factor", body: `{"challenge":"` + challenge + `","` + field + `":"` + code + `"}`})
}

func TestSignInInTwoSteps(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	a, id, recovery := h.enrol(seller)
	if len(recovery) != 10 {
		t.Fatalf("there are %d recovery codes", len(recovery))
	}
	h.do(call{method: "GET", path: "/api/auth/factors", token: seller.token}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/factors/" + id + "/confirm", token: seller.token, body: `{"code":"` + a.code() + `"}`}).wantFailure(t, 400, "factor_confirmed")

	challenge := h.firstStep(seller)
	h.secondStep(challenge, "code", "000000").wantFailure(t, 401, "wrong_code")
	code := a.code()
	in := h.secondStep(challenge, "code", code).want(t, 200)
	h.do(call{method: "GET", path: "/api/auth/me", token: in.text(t, "data.token")}).want(t, 200)
	sessions := h.do(call{method: "GET", path: "/api/auth/sessions", token: in.text(t, "data.token")}).want(t, 200)
	if !strings.Contains(sessions.body, `"methods":["pwd","otp"]`) {
		t.Errorf("the sessions are %s", sessions.body)
	}
	h.secondStep(challenge, "code", a.code()).wantFailure(t, 401, "invalid_challenge") // once
	next := h.firstStep(seller)
	h.secondStep(next, "code", code).wantFailure(t, 401, "wrong_code") // a code is taken once, and none before the last
	h.secondStep(next, "recoveryCode", " "+strings.ToUpper(recovery[0])).want(t, 200)
	next = h.firstStep(seller)
	h.secondStep(next, "recoveryCode", recovery[0]).wantFailure(t, 401, "wrong_code")
	h.clock.advance(5 * time.Minute)
	h.secondStep(next, "recoveryCode", recovery[1]).wantFailure(t, 401, "invalid_challenge")
	h.secondStep("nonsense", "code", "123456").wantFailure(t, 401, "invalid_challenge")
	h.secondStep(next, "code", "").wantFailure(t, 422, "validation_failed", "code")

	next = h.firstStep(seller)
	for range 5 {
		h.secondStep(next, "code", "000000").wantFailure(t, 401, "wrong_code")
	}
	h.secondStep(next, "code", a.code()).wantFailure(t, 429, "too_many_attempts")

	// A challenge ends with the password that it was for.
	next = h.firstStep(seller)
	proof := h.stepUp(seller, `"action":"password.change","recoveryCode":"`+recovery[1]+`"`).want(t, 200).text(t, "data.proof")
	change := call{method: "POST", path: "/api/auth/password/change", token: seller.token, body: `{"currentPassword":"` + password + `","newPassword":"another horse battery"}`}
	h.do(change).wantFailure(t, 401, "step_up_required", "methods")
	change.header = header("Step-Up", proof)
	h.do(change).want(t, 200)
	h.secondStep(next, "recoveryCode", recovery[2]).wantFailure(t, 401, "invalid_challenge")
}

func (h *fixture) stepUp(u user, body string) answer {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/api/auth/step-up", token: u.token, body: "{" + body + "}"})
}

// TestStepUp has a thief with a stolen session try to have the seller's money paid elsewhere.
func TestStepUp(t *testing.T) {
	h := openFixture(t)
	seller, other := h.signUp("Asha", auth.Seller), h.signUp("Ravi", auth.Seller)
	h.withBank(seller, "6789")
	a, id, recovery := h.enrol(seller)
	const number, another = "50100123454321", "50100123450000"
	put := func(u user, number, proof string) answer {
		return h.do(call{
			method: "PUT", path: "/api/bank-account", token: u.token, header: header("Step-Up", proof),
			body: `{"accountHolder":"Asha Rao","accountNumber":"` + number + `","ifsc":"HDFC0000053"}`,
		})
	}
	prove := func(number, code string) answer {
		return h.stepUp(seller, `"action":"bank_account.replace","accountNumber":"`+number+`","ifsc":"HDFC0000053","code":"`+code+`"`)
	}
	refused := put(seller, number, "")
	refused.wantFailure(t, 401, "step_up_required", "methods")
	if got := refused.header.Get("WWW-Authenticate"); got != `Bearer error="insufficient_user_authentication"` {
		t.Errorf("WWW-Authenticate is %q", got)
	}
	put(seller, number, "nonsense").wantFailure(t, 401, "step_up_required", "methods")
	prove(number, "000000").wantFailure(t, 400, "wrong_code")
	h.stepUp(seller, `"action":"bank_account.replace","accountNumber":"1","ifsc":"x","code":"1"`).wantFailure(t, 422, "validation_failed", "accountNumber", "ifsc")
	h.stepUp(seller, `"action":"everything","code":"1"`).wantFailure(t, 422, "validation_failed", "action")
	h.stepUp(seller, `"action":"factor.add","password":"`+password+`"`).wantFailure(t, 422, "validation_failed", "code")

	proof := prove(number, a.code()).want(t, 200).text(t, "data.proof")
	put(seller, another, proof).wantFailure(t, 401, "step_up_required", "methods") // it is for one account
	again := h.do(call{method: "POST", path: "/api/auth/login/factor", body: `{"challenge":"` + h.firstStep(seller) + `","recoveryCode":"` + recovery[0] + `"}`}).want(t, 200)
	stolen := seller
	stolen.token = again.text(t, "data.token")
	put(stolen, number, proof).wantFailure(t, 401, "step_up_required", "methods") // of one session
	h.do(call{method: "POST", path: "/api/auth/factors", token: seller.token, body: `{"type":"totp"}`, header: header("Step-Up", proof)}).
		wantFailure(t, 401, "step_up_required", "methods") // and one action
	put(seller, number, proof).want(t, 200)
	put(seller, another, proof).wantFailure(t, 401, "step_up_required", "methods")
	late := prove(another, a.code()).want(t, 200).text(t, "data.proof")
	h.clock.advance(5 * time.Minute)
	put(seller, another, late).wantFailure(t, 401, "step_up_required", "methods")
	put(other, number, "").want(t, 200) // who has no second factor needs no proof

	events := h.do(call{method: "GET", path: "/api/auth/security-events", token: seller.token}).want(t, 200)
	for _, want := range []string{"account.code_refused", "account.proof_missing", "account.factor_added", "account.recovery_code_used"} {
		if !strings.Contains(events.body, want) {
			t.Errorf("the seller does not see %s: %s", want, events.body)
		}
	}

	told := map[string]int{}
	for _, d := range h.mailbox.To(seller.email) {
		if m, is := d.(mail.BankAccountRefused); is && !m.At.IsZero() {
			told[m.Now]++
		}
	}
	if told[number[len(number)-4:]] < 3 || told[another[len(another)-4:]] < 2 {
		t.Errorf("of the refused accounts the seller was told %v", told)
	}

	remove := call{method: "DELETE", path: "/api/auth/factors/" + id, token: seller.token}
	h.do(remove).wantFailure(t, 401, "step_up_required", "methods")
	remove.header = header("Step-Up", h.stepUp(seller, `"action":"factor.remove","factorId":"`+id+`","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof"))
	h.do(call{method: "DELETE", path: "/api/auth/factors/" + id, token: other.token}).wantFailure(t, 404, "factor_not_found")
	h.do(remove).want(t, 200)
	h.do(remove).wantFailure(t, 404, "factor_not_found")
	h.do(call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}).want(t, 200)
	h.request(seller, `{"amount":600}`).wantFailure(t, 409, "payouts_on_hold", "until")
	h.stepUp(seller, `"action":"factor.add","password":"wrong"`).wantFailure(t, 400, "wrong_password", "password")
	h.stepUp(seller, `"action":"factor.add","password":"`+password+`"`).want(t, 200)
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

// TestStepUp_FirstAccount has a thief add the account that a seller with a second factor lacks.
func TestStepUp_FirstAccount(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	a, _, _ := h.enrol(seller)
	put := call{
		method: "PUT", path: "/api/bank-account", token: seller.token,
		body: `{"accountHolder":"Asha Rao","accountNumber":"50100123456789","ifsc":"HDFC0000053"}`,
	}
	h.do(put).wantFailure(t, 401, "step_up_required", "methods")
	if refused := mailOf[mail.BankAccountRefused](h, seller.email); refused.Now != "6789" {
		t.Errorf("the seller is mailed %+v", refused)
	}
	put.header = header("Step-Up", h.stepUp(seller, `"action":"bank_account.replace","accountNumber":"50100123456789","ifsc":"HDFC0000053","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof"))
	h.do(put).want(t, 200)
	put.header = nil
	h.do(put).want(t, 200) // it is there
}

// TestFactors_RemovedByMail has a thief with a session of a minute ago add the first factors, and the owner remove them.
func TestFactors_RemovedByMail(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.withBank(seller, "6789")
	a, _, _ := h.enrol(seller)
	m := mailOf[mail.FirstFactor](h, seller.email)
	if m.Passkey || m.At.IsZero() || m.Address == "" {
		t.Errorf("the mail is %+v", m)
	}
	second := h.do(call{
		method: "POST", path: "/api/auth/factors", token: seller.token, body: `{"type":"totp"}`,
		header: header("Step-Up", h.stepUp(seller, `"action":"factor.add","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")),
	}).want(t, 201)
	another := app{h, second.text(t, "data.secret")}
	h.do(call{method: "POST", path: "/api/auth/factors/" + second.text(t, "data.id") + "/confirm", token: seller.token, body: `{"code":"` + another.code() + `"}`}).want(t, 200)
	if changed := mailOf[mail.FactorChanged](h, seller.email); !changed.Added {
		t.Errorf("of the second factor the mail is %+v", changed)
	}
	if err := h.auth.UndoEmailChange(t.Context(), m.Token, auth.Device{}); !errors.Is(err, auth.ErrMailToken) {
		t.Errorf("the token undoes something else: %v", err)
	}
	h.clock.advance(7*24*time.Hour - 5*time.Minute)
	must(t, h.auth.CheckUndoFactor(t.Context(), m.Token))
	var done atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := h.auth.UndoFactors(t.Context(), m.Token, auth.Device{}); err == nil {
				done.Add(1)
			} else if !errors.Is(err, auth.ErrMailToken) {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if done.Load() != 1 {
		t.Errorf("the link was used %d times", done.Load())
	}
	if notice := mailOf[mail.FactorChanged](h, seller.email); notice.Added || !notice.All || notice.HoldUntil.IsZero() {
		t.Errorf("of the removal the seller is mailed %+v", notice)
	}
	h.do(call{method: "GET", path: "/api/auth/me", token: seller.token}).wantFailure(t, 401, "invalid_token")
	login := call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}
	seller.token = h.do(login).want(t, 200).text(t, "data.token")
	left := h.do(call{method: "GET", path: "/api/auth/factors", token: seller.token}).want(t, 200)
	if !strings.Contains(left.body, `"factors":[]`) || !strings.Contains(left.body, `"recoveryCodesLeft":0`) {
		t.Errorf("left are %s", left.body)
	}
	h.request(seller, `{"amount":600}`).wantFailure(t, 409, "payouts_on_hold", "until")
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
	h.enrol(seller)
	m = mailOf[mail.FirstFactor](h, seller.email)
	h.clock.advance(7 * 24 * time.Hour)
	if err := h.auth.UndoFactors(t.Context(), m.Token, auth.Device{}); !errors.Is(err, auth.ErrMailToken) {
		t.Errorf("a link of 7 days ago: %v", err)
	}
}

// TestUndoEmailChange_RemovesLaterFactors has a thief change the address first, so that the mail about the factor is the thief's.
func TestUndoEmailChange_RemovesLaterFactors(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "POST", path: "/api/auth/verify-email", body: `{"token":"` + mailOf[mail.VerifyEmail](h, seller.email).Token + `"}`}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"thief@example.com"}`}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + mailOf[mail.ConfirmEmail](h, "thief@example.com").Token + `"}`}).want(t, 200)
	h.enrol(seller)
	must(t, h.auth.UndoEmailChange(t.Context(), mailOf[mail.EmailChanged](h, seller.email).Token, auth.Device{}))
	h.setByLink(seller)
	login := call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"` + password + `"}`}
	h.do(login).want(t, 200)
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

// TestUndoEmailChange_KeepsEarlierFactors leaves what protected the account before the change.
func TestUndoEmailChange_KeepsEarlierFactors(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.do(call{method: "POST", path: "/api/auth/verify-email", body: `{"token":"` + mailOf[mail.VerifyEmail](h, seller.email).Token + `"}`}).want(t, 200)
	a, _, _ := h.enrol(seller)
	h.clock.advance(time.Minute)
	proof := h.stepUp(seller, `"action":"email.change","email":"new@example.com","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof")
	h.do(call{method: "POST", path: "/api/auth/email/change", token: seller.token, body: `{"email":"new@example.com"}`, header: header("Step-Up", proof)}).want(t, 200)
	h.do(call{method: "POST", path: "/api/auth/email/confirm", body: `{"token":"` + mailOf[mail.ConfirmEmail](h, "new@example.com").Token + `"}`}).want(t, 200)
	must(t, h.auth.UndoEmailChange(t.Context(), mailOf[mail.EmailChanged](h, seller.email).Token, auth.Device{}))
	h.setByLink(seller)
	h.secondStep(h.firstStep(seller), "code", a.code()).want(t, 200)
}

// TestFactors_BegunLongAgo are not confirmed: the sign-in that began them is not fresh any more.
func TestFactors_BegunLongAgo(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	begun := h.do(call{method: "POST", path: "/api/auth/factors", token: seller.token, body: `{"type":"totp"}`}).want(t, 201)
	a := app{h, begun.text(t, "data.secret")}
	confirm := call{method: "POST", path: "/api/auth/factors/" + begun.text(t, "data.id") + "/confirm", token: seller.token}
	h.clock.advance(15*time.Minute + time.Second)
	confirm.body = `{"code":"` + a.code() + `"}`
	h.do(confirm).wantFailure(t, 404, "factor_not_found")
}

// TestFactors_RemovedByAnOperator lets a user in whose second factors are all lost.
func TestFactors_RemovedByAnOperator(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.enrol(seller)
	login := call{method: "POST", path: "/api/auth/login", body: `{"email":"` + seller.email + `","password":"another horse"}`}
	for _, remove := range []bool{false, true} {
		_, err := h.auth.ResetPassword(t.Context(), decision.By{Operator: "bela"}, seller.id, "another horse", remove)
		must(t, err)
		if !remove {
			h.do(login).wantFailure(t, 401, "second_factor_required", "challenge", "methods")
		}
	}
	seller.token = h.do(login).want(t, 200).text(t, "data.token")
	events := h.do(call{method: "GET", path: "/api/auth/security-events", token: seller.token}).want(t, 200)
	if !strings.Contains(events.body, "account.factors_cleared") {
		t.Errorf("the user sees nothing of it: %s", events.body)
	}
	if report, err := h.db.Audit(t.Context(), nil); err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Findings, err)
	}
}

// TestFactors_AnotherImplementation confirms an app with the code of a program that nobody here wrote, which reads what a
// phone reads.
func TestFactors_AnotherImplementation(t *testing.T) {
	modules := npmtest.Packages(t)
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	begun := h.do(call{method: "POST", path: "/api/auth/factors", token: seller.token, body: `{"type":"totp"}`}).want(t, 201)
	const program = `const {URI} = require(process.argv[1] + '/otpauth')
		process.stdout.write(URI.parse(process.argv[2]).generate({timestamp: Number(process.argv[3])}))`
	now := strconv.FormatInt(h.clock.Now().UnixMilli(), 10)
	code, err := exec.CommandContext(t.Context(), "node", "--input-type=commonjs", "-e", program, "--", modules, begun.text(t, "data.uri"), now).Output()
	if err != nil || len(code) != 6 {
		t.Fatalf("the program says %q, %v", code, err)
	}
	confirm := call{method: "POST", path: "/api/auth/factors/" + begun.text(t, "data.id") + "/confirm", token: seller.token}
	confirm.body = `{"code":"` + string(code) + `"}`
	h.do(confirm).want(t, 200)
}
