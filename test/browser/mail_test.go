package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bursar/internal/mail/mailtest"
	"bursar/test/harness"
)

var (
	mailedLink = regexp.MustCompile(`https?://\S+\?token=\S+`)
	mailedCode = regexp.MustCompile(`you are signed in: (\d{8})`)
)

// letter is the text of a mail.
type letter struct{ to, text string }

// readLetter reads the text part of a message.
func readLetter(t *testing.T, raw string) letter {
	t.Helper()
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	_, to, _ := strings.Cut(head, "To: <")
	to, _, _ = strings.Cut(to, ">")
	_, body, _ = strings.Cut(body, "\r\n\r\n") // the header of the part
	part, _, _ := strings.Cut(body, "\r\n--")
	text, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(part)))
	if err != nil {
		t.Fatal(err)
	}
	return letter{to, strings.ReplaceAll(string(text), "\r\n", "\n")}
}

// outbox lists the mails to an address, the oldest first.
func (i *instance) outbox(t *testing.T, to string) (letters []letter) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(i.DataDir(), "outbox", "*.eml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names { // whose ids begin with the time
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if l := readLetter(t, string(raw)); l.to == to {
			letters = append(letters, l)
		}
	}
	return letters
}

// mailed waits for the newest of so many mails to an address that says something.
func (i *instance) mailed(t *testing.T, to, saying string, of int) letter {
	t.Helper()
	var found []letter
	harness.Until(t, fmt.Sprintf("%d mails to %s say %q", of, to, saying), func() bool {
		found = nil
		for _, l := range i.outbox(t, to) {
			if strings.Contains(l.text, saying) {
				found = append(found, l)
			}
		}
		return len(found) >= of
	})
	return found[of-1]
}

// link is where a mail leads.
func (l letter) link(t *testing.T) string {
	t.Helper()
	link := mailedLink.FindString(l.text)
	if link == "" {
		t.Fatalf("no link in:\n%s", l.text)
	}
	return link
}

func (l letter) token(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(l.link(t))
	if err != nil {
		t.Fatal(err)
	}
	return at.Query().Get("token")
}

func newMailInstance(t *testing.T, settings ...string) *instance {
	t.Helper()
	i := newInstance(t, append([]string{
		"BURSAR_DATA_DIR=" + t.TempDir(), "BURSAR_METRICS_ADDR=off", "BURSAR_LOG_LEVEL=debug",
	}, settings...)...)
	i.Start(t)
	return i
}

// register makes a seller by the API, and returns their token.
func (i *instance) register(t *testing.T, name, email, password string) string {
	t.Helper()
	var in struct{ Token string }
	i.Call(t, "POST", "/api/auth/register", "", fmt.Sprintf(`{"name":%q,"email":%q,"password":%q,"role":"seller"}`, name, email, password), &in)
	return in.Token
}

// answer makes a call that may be refused, and returns its status and text.
func (i *instance) answer(t *testing.T, path, token, body string) (int, string) {
	t.Helper()
	status, text, err := harness.Send("POST", i.API+path, token, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return status, string(text)
}

func (i *instance) login(t *testing.T, email, password string) int {
	t.Helper()
	status, _ := i.answer(t, "/api/auth/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
	return status
}

func (i *instance) alive(t *testing.T, token string) bool {
	t.Helper()
	status, _, err := harness.Send("GET", i.API+"/api/auth/me", token, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return status == http.StatusOK
}

// TestMailedLinks has a program that scans mails open every link, and the owner press the buttons.
func TestMailedLinks(t *testing.T) {
	t.Parallel()
	i := newMailInstance(t, "BURSAR_REQUIRE_VERIFIED_EMAIL=on")
	const email = "asha@example.com"
	token := i.register(t, "Asha Rao", email, "correct horse")
	verify := i.mailed(t, email, "An account was registered", 1)
	if mailedCode.FindStringSubmatch(verify.text) == nil || !strings.Contains(verify.text, "by Asha Rao") || !strings.Contains(verify.text, "127.0.0.1") {
		t.Errorf("the mail says:\n%s", verify.text)
	}
	scan := func(link string) harness.Reply {
		t.Helper()
		v := harness.NewVisitor(t)
		for range 2 {
			v.Do(http.MethodHead, link, "")
			if p := v.Get(link); p.Status != http.StatusOK || p.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Fatalf("%s: %d, %v", link, p.Status, p.Header)
			}
		}
		return v.Get(link)
	}
	scanned := scan(verify.link(t))
	if status, text := i.answer(t, "/api/payouts/request", token, `{"amount":500}`); status != http.StatusForbidden || !strings.Contains(text, "email_not_verified") {
		t.Errorf("before the button: %d %s", status, text)
	}
	if p := harness.NewVisitor(t).Submit(scanned, nil); p.Status != http.StatusSeeOther || p.LeadsTo() != i.API+"/login" {
		t.Errorf("the button leads to %d %s", p.Status, p.LeadsTo())
	}
	if status, text := i.answer(t, "/api/payouts/request", token, `{"amount":500}`); status != http.StatusBadRequest {
		t.Errorf("after the button: %d %s", status, text)
	}

	known, knownText := i.answer(t, "/api/auth/password/forgot", "", `{"email":"`+email+`"}`)
	unknown, unknownText := i.answer(t, "/api/auth/password/forgot", "", `{"email":"nobody@example.com"}`)
	if known != http.StatusOK || known != unknown || knownText != unknownText {
		t.Errorf("known: %d %s; unknown: %d %s", known, knownText, unknown, unknownText)
	}
	reset := i.mailed(t, email, "new password", 1)
	scanned = scan(reset.link(t))
	if p := harness.NewVisitor(t).Submit(scanned, url.Values{"password": {"another horse"}}); p.Status != http.StatusSeeOther {
		t.Errorf("the reset is answered with %d: %s", p.Status, p.Body)
	}
	if i.alive(t, token) {
		t.Error("the session of before is alive")
	}
	if old, next := i.login(t, email, "correct horse"), i.login(t, email, "another horse"); old != http.StatusUnauthorized || next != http.StatusOK {
		t.Errorf("the old password: %d, the new one: %d", old, next)
	}
	i.mailed(t, email, "was reset on", 1)
	if p := harness.NewVisitor(t).Get(reset.link(t)); p.Status != http.StatusBadRequest {
		t.Errorf("the link again: %d", p.Status)
	}
	if letters := i.outbox(t, "nobody@example.com"); len(letters) > 0 {
		t.Errorf("mails to nobody: %v", letters)
	}
	said := i.Output(t, "stderr")
	for _, l := range []letter{verify, reset} {
		if strings.Contains(said, l.token(t)) {
			t.Error("the log has a token")
		}
	}
}

// TestPreHijack has an attacker register the owner's address first and wait. Whatever the owner then does with mails of
// their own, nothing of the attacker's works.
func TestPreHijack(t *testing.T) {
	t.Parallel()
	i := newMailInstance(t)
	for name, owner := range map[string]func(t *testing.T, email string) string{
		"registers too": func(t *testing.T, email string) string {
			t.Helper()
			status, text := i.answer(t, "/api/auth/register", "", fmt.Sprintf(`{"name":"The Owner","email":%q,"password":"owners-own-word"}`, email))
			if status != http.StatusBadRequest || !strings.Contains(text, "email_taken") {
				t.Fatalf("registering again: %d %s", status, text)
			}
			token := i.mailed(t, email, "by The Owner", 1).token(t)
			if status, text := i.answer(t, "/api/auth/verify-email", "", `{"token":"`+token+`"}`); status != http.StatusOK {
				t.Fatalf("confirming: %d %s", status, text)
			}
			return "owners-own-word"
		},
		"resets the password": func(t *testing.T, email string) string {
			t.Helper()
			i.answer(t, "/api/auth/password/forgot", "", `{"email":"`+email+`"}`)
			token := i.mailed(t, email, "new password", 1).token(t)
			if status, text := i.answer(t, "/api/auth/password/reset", "", `{"token":"`+token+`","password":"owners-own-word"}`); status != http.StatusOK {
				t.Fatalf("resetting: %d %s", status, text)
			}
			return "owners-own-word"
		},
	} {
		t.Run(name, func(t *testing.T) {
			email := strings.ReplaceAll(name, " ", "-") + "@example.com"
			attacker := i.register(t, "Mallory", email, "attackers-word")
			var in struct{ RefreshToken string }
			i.Call(t, "POST", "/api/auth/login", "", fmt.Sprintf(`{"email":%q,"password":"attackers-word"}`, email), &in)
			i.Call(t, "PUT", "/api/bank-account", attacker, `{"accountHolder":"Mallory","accountNumber":"50100234566666","ifsc":"HDFC0000053"}`, new(struct{}))
			first := i.mailed(t, email, "by Mallory", 1)

			word := owner(t, email)
			if status := i.login(t, email, "attackers-word"); status != http.StatusUnauthorized {
				t.Errorf("the attacker's password: %d", status)
			}
			if i.alive(t, attacker) {
				t.Error("the attacker's session is alive")
			}
			if status, _ := i.answer(t, "/api/auth/refresh", "", `{"refreshToken":"`+in.RefreshToken+`"}`); status != http.StatusUnauthorized {
				t.Errorf("the attacker's refresh token: %d", status)
			}
			if status, _ := i.answer(t, "/api/auth/verify-email", "", `{"token":"`+first.token(t)+`"}`); status != http.StatusBadRequest {
				t.Errorf("the first mail's link: %d", status)
			}
			var signedIn struct {
				Token string
				User  struct{ IsVerified bool }
			}
			i.Call(t, "POST", "/api/auth/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, word), &signedIn)
			if !signedIn.User.IsVerified {
				t.Error("the owner's address is not verified")
			}
			status, text, err := harness.Send("GET", i.API+"/api/bank-account", signedIn.Token, "", nil)
			if err != nil || status == http.StatusOK && !strings.Contains(string(text), "rejected") {
				t.Errorf("the attacker's bank account: %d %s %v", status, text, err)
			}
		})
	}
}

// TestMailServerOutOfOrder has the mail server refuse at first. No request waits for it, and the mail comes later.
func TestMailServerOutOfOrder(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Setup{Plain: true})
	server.Answer(func(mailtest.Stage, string) error { return mailtest.Answer(451, [3]int{4, 7, 1}, "greylisted") })
	i := newMailInstance(t,
		"BURSAR_SMTP_URL=smtp://"+url.UserPassword(mailtest.User, mailtest.Password).String()+"@"+server.Host+":"+server.Port,
		"BURSAR_MAIL_FROM=Payouts <payouts@example.com>")
	i.register(t, "Asha Rao", "asha@example.com", "correct horse")
	harness.Until(t, "the server refused the mail", func() bool { return strings.Contains(i.Output(t, "stderr"), "451") })
	server.Answer(func(mailtest.Stage, string) error { return nil })
	harness.Until(t, "the mail came", func() bool { return len(server.Took()) > 0 })
	token := readLetter(t, server.Took()[0].Raw).token(t)
	if status, text := i.answer(t, "/api/auth/verify-email", "", `{"token":"`+token+`"}`); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

// TestMailsInABrowser confirms an address by the code, and resets a password, as a person does.
func TestMailsInABrowser(t *testing.T) {
	for _, s := range []screen{phone, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			i, _ := newStreet(t)
			b := openBrowser(t, i.API, s)
			b.register("Asha Rao", "asha@example.com")
			verify := i.mailed(t, "asha@example.com", "An account was registered", 1)
			b.visit("/dashboard/profile")
			b.see("Not confirmed")
			b.keep("profile-unconfirmed")
			b.fill("Code from the mail", "00000000")
			b.expectRefusal()
			b.press("Confirm")
			b.see("This code is wrong")
			b.fill("Code from the mail", mailedCode.FindStringSubmatch(verify.text)[1])
			b.press("Confirm")
			b.see("Your e-mail address is confirmed.")
			b.press("Sign out")

			b.press("Forgot your password?")
			b.keep("forgot")
			b.fill("E-mail", "asha@example.com")
			b.press("Send the link")
			b.see("a link is on its way to it")
			link := i.mailed(t, "asha@example.com", "new password", 1).link(t)
			b.visit(strings.TrimPrefix(link, i.API))
			b.keep("reset")
			b.fill("New password", "another horse")
			b.press("Set password")
			b.see("Your password is set.")
			b.signIn("asha@example.com", "another horse")
			b.see("How you get paid")
			b.expectRefusal()
			b.visit(strings.TrimPrefix(link, i.API))
			b.see("This link is invalid")
			b.keep("dead-link")

			// A registration by link, with the page that says who registered.
			other := openBrowser(t, i.API, s)
			other.register("Ravi", "ravi@example.com")
			link = i.mailed(t, "ravi@example.com", "An account was registered", 1).link(t)
			other.visit(strings.TrimPrefix(link, i.API))
			other.see("ravi@example.com")
			other.keep("verify")
			other.press("Confirm e-mail address")
			other.see("Your e-mail address is confirmed.")
		})
	}
}

// TestMailedFailure has a payout to a closed bank account, and reads what the seller is mailed.
func TestMailedFailure(t *testing.T) {
	t.Parallel()
	i := newMailInstance(t, "BURSAR_CANCEL_WINDOW=0s", "BURSAR_SANDBOX_SETTLE_AFTER=0s", "BURSAR_SANDBOX_ADDR=127.0.0.1:0")
	const email = "asha@example.com"
	token := i.register(t, "Asha Rao", email, "correct horse")
	var account struct {
		Status string `json:"status"`
	}
	i.Call(t, "PUT", "/api/bank-account", token, `{"accountHolder":"Asha Rao","accountNumber":"50100123450002","ifsc":"HDFC0000053"}`, &account)
	harness.Until(t, "the bank account is verified", func() bool {
		i.Call(t, "GET", "/api/bank-account", token, "", &account)
		return account.Status == "verified"
	})
	var me struct {
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	i.Call(t, "GET", "/api/auth/me", token, "", &me)
	i.earn(t, me.User.ID, "s1", 900)
	var asked struct {
		ID string `json:"id"`
	}
	harness.Until(t, "the sale is available", func() bool {
		status, text, err := harness.Send("POST", i.API+"/api/payouts/request", token, `{"amount":600}`, nil)
		return err == nil && status == http.StatusCreated && json.Unmarshal(text, &struct{ Data any }{&asked}) == nil
	})
	l := i.mailed(t, email, "Your payout of ₹600.00 to the bank account ending in 0002 failed on ", 1)
	if !strings.Contains(l.text, i.API+"/dashboard/payouts/"+asked.ID) || !strings.Contains(l.text, "The reason: ") || strings.Contains(l.text, "50100123450002") {
		t.Errorf("the mail says:\n%s", l.text)
	}
}
