package auth_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// mailed lists the mails of one kind to asha, the oldest first.
func mailed[D mail.Data](w *fixture) []D {
	w.t.Helper()
	var all []D
	for _, d := range w.mailbox.To(email) {
		if m, ok := d.(D); ok {
			all = append(all, m)
		}
	}
	return all
}

// lastMailed is the newest mail of one kind to asha, of so many.
func lastMailed[D mail.Data](w *fixture, of int) D {
	w.t.Helper()
	all := mailed[D](w)
	if len(all) != of {
		w.t.Fatalf("%d mails %T, want %d", len(all), *new(D), of)
	}
	return all[of-1]
}

// answerMails does what the job does, and returns how many requests it answered.
func (w *fixture) answerMails() (answered int) {
	w.t.Helper()
	for {
		n, err := w.AnswerMailRequest(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			return answered
		}
		answered += n
	}
}

// forgot asks for a link for asha, and returns its token: that of the mail with this number.
func (w *fixture) forgot(number int) string {
	w.t.Helper()
	wantErr(w.t, w.ForgotPassword(w.t.Context(), email, home), nil)
	w.answerMails()
	return lastMailed[mail.ResetPassword](w, number).Token
}

// registerAgain registers asha's address once more, and returns the token of the mail with this number.
func (w *fixture) registerAgain(password string, number int) string {
	w.t.Helper()
	_, err := w.Register(w.t.Context(), auth.Registration{Name: "Asha Rao", Email: "Asha@Example.com", Password: password, Role: auth.Buyer, Device: home})
	wantErr(w.t, err, auth.ErrEmailTaken)
	return lastMailed[mail.RegisteredAgain](w, number).Token
}

func (w *fixture) user() auth.User {
	w.t.Helper()
	u, _, err := w.db.UserByEmail(w.t.Context(), email)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// wantEvents compares a user's security events, the newest first.
func (w *fixture) wantEvents(user string, want ...ledger.Type) {
	w.t.Helper()
	events, err := w.SecurityEvents(w.t.Context(), user, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []ledger.Type
	for _, e := range events {
		got = append(got, e.Type)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("events %v, want %v", got, want)
	}
}

func TestVerifyEmail(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	m := lastMailed[mail.VerifyEmail](w, 1)
	if m.Name != "Asha" || !m.RegisteredAt.Equal(w.clock.Now()) || m.Address != home.Address {
		t.Errorf("the mail says %+v", m)
	}
	p, err := w.PendingRegistration(t.Context(), m.Token)
	if err != nil || p.Name != "Asha" || p.Email != email || p.From.Address != home.Address || p.Another {
		t.Errorf("the page says %+v, %v", p, err)
	}
	if w.user().Verified {
		t.Fatal("looking at it confirmed it")
	}
	wantErr(t, w.VerifyEmail(t.Context(), m.Token), nil)
	if u := w.user(); !u.Verified || u.ID != in.User.ID {
		t.Errorf("the user is %+v", u)
	}
	w.wantAlive(in)
	if p := w.principal(in); !p.Verified {
		t.Error("the session does not say that the user is verified")
	}
	w.wantEvents(in.User.ID, ledger.AccountEmailVerified)
	wantErr(t, w.VerifyEmail(t.Context(), m.Token), auth.ErrMailToken)
	_, err = w.PendingRegistration(t.Context(), m.Token)
	wantErr(t, err, auth.ErrMailToken)
	wantErr(t, w.VerifyEmailByCode(t.Context(), w.principal(in), "whatever"), nil) // there is nothing to do
	wantErr(t, w.ResendVerification(t.Context(), w.principal(in), home), nil)
	if mails := w.mailbox.To(email); len(mails) != 1 {
		t.Errorf("%d mails to a verified address", len(mails))
	}
}

func TestVerifyEmail_Expires(t *testing.T) {
	w := newFixture(t)
	w.register()
	m := lastMailed[mail.VerifyEmail](w, 1)
	w.clock.advance(24 * time.Hour)
	wantErr(t, w.VerifyEmail(t.Context(), m.Token), auth.ErrMailToken)
	for _, token := range []string{"", "x", m.Token + "x", strings.Repeat("x", 10_000)} {
		wantErr(t, w.VerifyEmail(t.Context(), token), auth.ErrMailToken)
	}
	if n, err := w.Sweep(t.Context()); err != nil || n == 0 {
		t.Errorf("swept %d, %v", n, err)
	}
	if w.user().Verified {
		t.Error("the user is verified")
	}
}

func TestVerifyEmailByCode(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	p := w.principal(in)
	m := lastMailed[mail.VerifyEmail](w, 1)
	if len(m.Code) != 8 || strings.Trim(m.Code, "0123456789") != "" {
		t.Fatalf("the code is %q", m.Code)
	}
	for range 4 {
		wantErr(t, w.VerifyEmailByCode(t.Context(), p, "00000000"), auth.ErrCode)
	}
	other, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password, Device: home})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.VerifyEmailByCode(t.Context(), w.principal(other), m.Code), auth.ErrCode)
	wantErr(t, w.VerifyEmailByCode(t.Context(), p, m.Code), nil) // the fifth try
	if !w.user().Verified {
		t.Error("the user is not verified")
	}
	wantErr(t, w.VerifyEmail(t.Context(), m.Token), auth.ErrMailToken)
}

func TestVerifyEmailByCode_FiveTries(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	p := w.principal(in)
	m := lastMailed[mail.VerifyEmail](w, 1)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { wantErr(t, w.VerifyEmailByCode(t.Context(), p, "00000000"), auth.ErrCode) })
	}
	wg.Wait()
	wantErr(t, w.VerifyEmailByCode(t.Context(), p, m.Code), auth.ErrCode)
	if w.user().Verified {
		t.Error("the sixth try confirmed it")
	}
	wantErr(t, w.ResendVerification(t.Context(), p, home), nil)
	again := lastMailed[mail.VerifyEmail](w, 2)
	wantErr(t, w.VerifyEmailByCode(t.Context(), p, m.Code), auth.ErrCode)
	wantErr(t, w.VerifyEmail(t.Context(), m.Token), auth.ErrMailToken) // it ended when the newer one was sent
	wantErr(t, w.VerifyEmailByCode(t.Context(), p, again.Code), nil)
	if err := w.Logout(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.VerifyEmailByCode(t.Context(), p, again.Code), auth.ErrToken)
	wantErr(t, w.ResendVerification(t.Context(), p, home), auth.ErrToken)
}

// TestMails_Limits has a user ask for more mails than they get. The answers are the same, and the last mail works.
func TestMails_Limits(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	for range 2 { // the second comes within a minute
		wantErr(t, w.ResendVerification(t.Context(), p, home), nil)
	}
	lastMailed[mail.VerifyEmail](w, 2)
	w.clock.advance(time.Minute)
	for range 6 { // 5 an hour, one of them by registering
		wantErr(t, w.ResendVerification(t.Context(), p, home), nil)
		w.clock.advance(time.Minute)
	}
	last := lastMailed[mail.VerifyEmail](w, 5)
	for range 48 {
		w.clock.advance(time.Hour)
		wantErr(t, w.ResendVerification(t.Context(), p, home), nil)
		if all := mailed[mail.VerifyEmail](w); len(all) > 0 {
			last = all[len(all)-1]
		}
	}
	if n := len(mailed[mail.VerifyEmail](w)); n < 20 || n > 30 { // ten a day for two days, and ten at once
		t.Errorf("%d mails in two days", n)
	}
	wantErr(t, w.VerifyEmail(t.Context(), last.Token), nil)
}

// TestRegisterAgain is about the owner of an address that another person registered before.
func TestRegisterAgain(t *testing.T) {
	s := newStreet(t)
	squatter := s.squat()
	s.addBankAccount(bank.Account{
		ID: "bka_theirs", Seller: squatter.User.ID, Holder: "Mallory", IFSC: "HDFC0000053", Last4: "6666", Status: bank.StatusVerified, Current: true,
		NameScore: -1, CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
	})
	theirs := lastMailed[mail.VerifyEmail](s.fixture, 1)
	reset := s.forgot(1)
	token := s.registerAgain(nextPassword, 1)
	if _, err := s.login(email, nextPassword, home); !errors.Is(err, auth.ErrCredentials) {
		t.Errorf("before it is confirmed: %v", err)
	}
	s.wantAlive(squatter)
	p, err := s.PendingRegistration(t.Context(), token)
	if err != nil || !p.Another || p.Name != "Asha Rao" || p.From.Address != home.Address {
		t.Errorf("the page says %+v, %v", p, err)
	}

	wantErr(t, s.VerifyEmail(t.Context(), token), nil)
	u := s.user()
	if !u.Verified || u.ID != squatter.User.ID || u.Name != "Asha Rao" || u.Role != auth.Buyer {
		t.Errorf("the user is %+v", u)
	}
	s.wantEvents(u.ID, ledger.AccountTakenOver, ledger.AdminDecided)
	s.wantDead(squatter)
	_, err = s.login(email, password, den)
	wantErr(t, err, auth.ErrCredentials)
	if _, err := s.login(email, nextPassword, home); err != nil {
		t.Errorf("the owner's password: %v", err)
	}
	if a, err := s.db.BankAccountByID(t.Context(), "bka_theirs"); err != nil || a.Status != bank.StatusRejected {
		t.Errorf("the bank account is %+v, %v", a, err)
	}
	// Nothing that was mailed before does anything any more.
	wantErr(t, s.VerifyEmail(t.Context(), theirs.Token), auth.ErrMailToken)
	wantErr(t, s.VerifyEmail(t.Context(), token), auth.ErrMailToken)
	wantErr(t, s.SetForgottenPassword(t.Context(), reset, "another-password", den), auth.ErrMailToken)
}

// TestRegisterAgain_EachAttemptIsItsOwn has three registrations with one address. A token activates its own password.
func TestRegisterAgain_EachAttemptIsItsOwn(t *testing.T) {
	const third = "jackfruit-7-square"
	for name, confirm := range map[string]func(w *fixture, own, second, third string) (token, password string){
		"the first":  func(_ *fixture, own, _, _ string) (string, string) { return own, password },
		"the second": func(_ *fixture, _, second, _ string) (string, string) { return second, nextPassword },
		"the third":  func(_ *fixture, _, _, last string) (string, string) { return last, third },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			in := w.register()
			own := lastMailed[mail.VerifyEmail](w, 1).Token
			second := w.registerAgain(nextPassword, 1)
			w.clock.advance(time.Minute)
			token, right := confirm(w, own, second, w.registerAgain(third, 2))
			wantErr(t, w.VerifyEmail(t.Context(), token), nil)
			for _, word := range []string{password, nextPassword, third} {
				if _, err := w.login(email, word, home); (err == nil) != (word == right) {
					t.Errorf("%s: %v", word, err)
				}
			}
			if token == own {
				w.wantAlive(in)
			} else {
				w.wantDead(in)
			}
			for _, other := range []string{own, second} {
				wantErr(t, w.VerifyEmail(t.Context(), other), auth.ErrMailToken)
			}
		})
	}
}

// TestRegisterAgain_AtOnce has two registrations with one address confirmed at the same moment.
func TestRegisterAgain_AtOnce(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	tokens := []string{lastMailed[mail.VerifyEmail](w, 1).Token, w.registerAgain(nextPassword, 1)}
	var confirmed atomic.Int64
	var wg sync.WaitGroup
	for _, token := range append(tokens, tokens...) {
		wg.Go(func() {
			err := w.VerifyEmail(t.Context(), token)
			if err == nil {
				confirmed.Add(1)
				return
			}
			wantErr(t, err, auth.ErrMailToken)
		})
	}
	wg.Wait()
	if confirmed.Load() != 1 {
		t.Errorf("%d of them were confirmed", confirmed.Load())
	}
	_, first := w.login(email, password, home)
	_, second := w.login(email, nextPassword, home)
	_, session := w.Authenticate(t.Context(), in.Token)
	if (first == nil) == (second == nil) || (session == nil) != (first == nil) {
		t.Errorf("the passwords: %v, %v; the session: %v", first, second, session)
	}
}

// TestRegisterAgain_Verified has the owner of a verified account get a notice, from which nothing can be done.
func TestRegisterAgain_Verified(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	wantErr(t, w.VerifyEmail(t.Context(), lastMailed[mail.VerifyEmail](w, 1).Token), nil)
	_, err := w.Register(t.Context(), auth.Registration{Name: "Mallory", Email: email, Password: nextPassword, Device: den})
	wantErr(t, err, auth.ErrEmailTaken)
	if m := lastMailed[mail.AccountExists](w, 1); m.Address != den.Address {
		t.Errorf("the mail says %+v", m)
	}
	if again := mailed[mail.RegisteredAgain](w); len(again) > 0 {
		t.Errorf("the owner was asked to confirm %+v", again)
	}
	w.wantAlive(in)
}

func TestRegisterAgain_TamperedOrSuspended(t *testing.T) {
	for name, change := range map[string]string{
		"suspended": "", "tampered": `UPDATE users SET verified = 1 WHERE email = '` + email + `'`,
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			w := newFixture(t, func(o *auth.Options) { o.Tampered = func(kind string) { told = append(told, kind) } })
			in := w.register()
			own := lastMailed[mail.VerifyEmail](w, 1).Token
			token := w.forgot(1)
			if change == "" {
				wantErr(t, w.SetAccess(t.Context(), w.admin("office"), in.User.ID, auth.Seller, true), nil)
			} else {
				w.place.ByHand(t, change)
			}
			before := len(w.mailbox.To(email))
			w.clock.advance(2 * time.Minute)
			_, err := w.Register(t.Context(), auth.Registration{Name: "Asha", Email: email, Password: nextPassword, Device: home})
			wantErr(t, err, auth.ErrEmailTaken)
			wantErr(t, w.ForgotPassword(t.Context(), email, home), nil)
			w.answerMails()
			wantErr(t, w.VerifyEmail(t.Context(), own), auth.ErrMailToken)
			wantErr(t, w.SetForgottenPassword(t.Context(), token, nextPassword, home), auth.ErrMailToken)
			if mails := w.mailbox.To(email); len(mails) != before {
				t.Errorf("mailed %+v", mails[before:])
			}
			if wantNotice := change != ""; slices.Contains(told, "user") != wantNotice {
				t.Errorf("the alerts are of %v", told)
			}
		})
	}
}

// TestMailToken_Forged has an attacker who can write to the database make tokens.
func TestMailToken_Forged(t *testing.T) {
	for name, change := range map[string]string{
		"another user's":  `user_id = (SELECT id FROM users WHERE email = '` + email + `')`,
		"another purpose": `purpose = 'reset_password'`,
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			w := newFixture(t, func(o *auth.Options) { o.Tampered = func(kind string) { told = append(told, kind) } })
			w.register()
			if _, err := w.Register(t.Context(), auth.Registration{Name: "Mallory", Email: "mallory@example.com", Password: nextPassword, Device: den}); err != nil {
				t.Fatal(err)
			}
			mallorys, _ := w.mailbox.To("mallory@example.com")[0].(mail.VerifyEmail)
			w.place.ByHand(t, `UPDATE mail_tokens SET `+change+` WHERE user_id = (SELECT id FROM users WHERE email = 'mallory@example.com')`)
			wantErr(t, w.VerifyEmail(t.Context(), mallorys.Token), auth.ErrMailToken)
			wantErr(t, w.SetForgottenPassword(t.Context(), mallorys.Token, "another-password", den), auth.ErrMailToken)
			if len(told) == 0 || told[0] != "mail_token" {
				t.Errorf("the alerts are of %v", told)
			}
		})
	}
}

func TestForgottenPassword(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	wantErr(t, w.VerifyEmail(t.Context(), lastMailed[mail.VerifyEmail](w, 1).Token), nil)
	elsewhere, err := w.login(email, password, cafe)
	if err != nil {
		t.Fatal(err)
	}
	token := w.forgot(1)
	f := fault.From(w.SetForgottenPassword(t.Context(), token, "short", home))
	if f == nil || f.Details["password"] == "" {
		t.Errorf("a short one: %v", f)
	}
	wantErr(t, w.SetForgottenPassword(t.Context(), token, nextPassword, home), nil)
	w.wantDead(in)
	w.wantDead(elsewhere)
	_, err = w.login(email, password, home)
	wantErr(t, err, auth.ErrCredentials)
	if m := lastMailed[mail.PasswordChanged](w, 1); !m.Reset || m.First || m.Address != home.Address {
		t.Errorf("the owner's notice: %+v", m)
	}
	w.wantEvents(in.User.ID, ledger.AccountPasswordReset, ledger.AccountEmailVerified)
	wantErr(t, w.SetForgottenPassword(t.Context(), token, "another-password", home), auth.ErrMailToken)
	// No device is known any more.
	w.fail(email, attacker)
	_, err = w.login(email, nextPassword, known(elsewhere, attacker))
	wantThrottled(t, err)
	if _, err := w.login(email, nextPassword, home); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

func TestForgottenPassword_Tokens(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	first := w.forgot(1)
	wantErr(t, w.ForgotPassword(t.Context(), email, home), nil) // within the minute: no mail, and the first one works
	w.answerMails()
	w.clock.advance(time.Minute)
	second := w.forgot(2)
	wantErr(t, w.SetForgottenPassword(t.Context(), first, nextPassword, home), auth.ErrMailToken)
	wantErr(t, w.VerifyEmail(t.Context(), second), auth.ErrMailToken) // it is for another purpose
	w.clock.advance(30 * time.Minute)
	wantErr(t, w.SetForgottenPassword(t.Context(), second, nextPassword, home), auth.ErrMailToken)
	third := w.forgot(3)
	if _, err := w.ChangePassword(t.Context(), p, password, nextPassword, home); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.SetForgottenPassword(t.Context(), third, "another-password", home), auth.ErrMailToken)
	if _, err := w.login(email, nextPassword, home); err != nil {
		t.Errorf("the password that was changed: %v", err)
	}
}

// TestResetPassword_NeverVerified has the owner of an address reset the password of an account that another person
// registered with it.
func TestForgottenPassword_NeverVerified(t *testing.T) {
	s := newStreet(t)
	trojan := auth.Identity{Issuer: "https://careless.example", Subject: "666", Email: email}
	squatter := s.mustArrive(trojan)
	if _, err := s.ChangePassword(t.Context(), s.principal(squatter), "", password, den); err != nil {
		t.Fatal(err)
	}
	s.addBankAccount(bank.Account{
		ID: "bka_theirs", Seller: squatter.User.ID, Holder: "Mallory", IFSC: "HDFC0000053", Last4: "6666", Status: bank.StatusVerified, Current: true,
		NameScore: -1, CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
	})
	theirs := lastMailed[mail.VerifyEmail](s.fixture, 1)
	mallorys := auth.ProfileChange{Name: new("Mallory"), Bio: new("Pay me at"), Website: new("https://evil.example"), Avatar: new("https://evil.example/a.png")}
	wantErr(t, s.SetProfile(t.Context(), s.principal(squatter), mallorys, den), nil)
	wantErr(t, s.SetForgottenPassword(t.Context(), s.forgot(1), nextPassword, home), nil)
	s.wantDead(squatter)
	if u := s.user(); u.Name == "Mallory" || u.Profile != (auth.Profile{}) {
		t.Errorf("the owner's profile is the squatter's: %+v", u)
	}
	_, err := s.arrive(trojan)
	wantErr(t, err, auth.ErrEmailUnverified)
	_, err = s.login(email, password, den)
	wantErr(t, err, auth.ErrCredentials)
	wantErr(t, s.VerifyEmail(t.Context(), theirs.Token), auth.ErrMailToken)
	if a, err := s.db.BankAccountByID(t.Context(), "bka_theirs"); err != nil || a.Status != bank.StatusRejected {
		t.Errorf("the bank account is %+v, %v", a, err)
	}
	s.wantEvents(squatter.User.ID, ledger.AccountTakenOver, ledger.AccountProfileChanged, ledger.AccountPasswordChanged)
	in, err := s.login(email, nextPassword, home)
	if err != nil || !in.User.Verified {
		t.Errorf("the owner's sign-in: %+v, %v", in.User, err)
	}
}

// The marketplace has taken its providers away. Their users get a password of their own.
func TestForgotPassword_ProvidersGone(t *testing.T) {
	s := newStreet(t)
	s.mustArrive(asha())
	s.Service = s.again(func(o *auth.Options) { o.Providers = nil })
	wantErr(t, s.ForgotPassword(t.Context(), email, home), nil)
	s.answerMails()
	for _, d := range s.mailbox.To("Asha@Example.com") {
		if m, ok := d.(mail.ResetPassword); ok {
			wantErr(t, s.SetForgottenPassword(t.Context(), m.Token, nextPassword, home), nil)
		}
	}
	_, err := s.login(email, nextPassword, home)
	wantErr(t, err, nil)
}

// A provider was replaced by one with another issuer. Its users can't sign in there any more, and get a link.
func TestForgotPassword_ProviderReplaced(t *testing.T) {
	s := newStreet(t)
	s.mustArrive(asha())
	s.a.issuer = "https://another.example"
	wantErr(t, s.ForgotPassword(t.Context(), email, home), nil)
	s.answerMails()
	if all := s.mailbox.To("Asha@Example.com"); len(all) != 1 || all[0].Kind() != mail.KindResetPassword {
		t.Errorf("mailed %+v; want a link", all)
	}
}

func TestForgotPassword_AtTheProvider(t *testing.T) {
	s := newStreet(t)
	s.mustArrive(asha())
	wantErr(t, s.ForgotPassword(t.Context(), email, home), nil)
	s.answerMails()
	if all := s.mailbox.To("Asha@Example.com"); len(all) != 1 || all[0].Kind() != mail.KindPasswordAtProvider {
		t.Errorf("mailed %+v", all)
	}
	if all := mailed[mail.ResetPassword](s.fixture); len(all) > 0 {
		t.Errorf("a link was mailed: %+v", all)
	}
}

// TestForgotPassword_SaysNothing compares the answers of addresses that have an account and addresses that have none.
func TestForgotPassword_SaysNothing(t *testing.T) {
	w := newFixture(t)
	w.register()
	for _, address := range []string{email, "nobody@example.com"} {
		wantErr(t, w.ForgotPassword(t.Context(), address, home), nil)
	}
	wantErr(t, w.ForgotPassword(t.Context(), "no address", home), nil)
	if got := len(w.mailbox.To(email)); got != 1 {
		t.Errorf("%d mails before the job", got)
	}
	if n := w.answerMails(); n != 2 { // the same is done for both, but for the mail
		t.Errorf("%d requests", n)
	}
	if got := w.mailbox.To("nobody@example.com"); len(got) > 0 {
		t.Errorf("mailed to nobody: %+v", got)
	}
	lastMailed[mail.ResetPassword](w, 1)
	// A flood from one address is dropped, and answered alike.
	for range 60 {
		wantErr(t, w.ForgotPassword(t.Context(), "nobody@example.com", den), nil)
	}
	if n := w.answerMails(); n != 30 {
		t.Errorf("%d requests of a flood", n)
	}
}

func TestForgottenPassword_TwoAtOnce(t *testing.T) {
	w := newFixture(t)
	w.register()
	token := w.forgot(1)
	words := []string{"first-of-them-all", "second-of-them-all", "third-of-them-all", "fourth-of-them-all"}
	errs := make([]error, len(words))
	var wg sync.WaitGroup
	for i, word := range words {
		wg.Go(func() { errs[i] = w.SetForgottenPassword(t.Context(), token, word, home) })
	}
	wg.Wait()
	won := 0
	for i, word := range words {
		_, err := w.login(email, word, home)
		if (err == nil) != (errs[i] == nil) {
			t.Errorf("%s: reset %v, sign-in %v", word, errs[i], err)
		}
		if errs[i] == nil {
			won++
			continue
		}
		wantErr(t, errs[i], auth.ErrMailToken)
	}
	if won != 1 {
		t.Errorf("%d resets won", won)
	}
	lastMailed[mail.PasswordChanged](w, 1)
}

// TestResetPassword_BesideSignIns has sign-ins with the old password beside a reset. None of their sessions is alive
// afterwards.
func TestForgottenPassword_BesideSignIns(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	w.register()
	token := w.forgot(1)
	var mu sync.Mutex
	var sessions []auth.SignIn
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				in, err := w.login(email, password, home)
				if err != nil {
					wantErr(t, err, auth.ErrCredentials)
					continue
				}
				mu.Lock()
				sessions = append(sessions, in)
				mu.Unlock()
			}
		})
	}
	wg.Go(func() { wantErr(t, w.SetForgottenPassword(t.Context(), token, nextPassword, home), nil) })
	wg.Wait()
	for _, in := range sessions {
		w.wantDead(in)
	}
}

// TestResetPassword_DuringASignIn has a reset come between the check of the old password and the session.
func TestForgottenPassword_DuringASignIn(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	w.register()
	token := w.forgot(1)
	reset := sync.OnceFunc(func() { wantErr(t, w.SetForgottenPassword(t.Context(), token, nextPassword, home), nil) })
	slow := w.again(func(o *auth.Options) { o.Store = meanwhile{o.Store, reset} })
	_, err := slow.Login(t.Context(), auth.Credentials{Email: email, Password: password, Device: den})
	wantErr(t, err, auth.ErrCredentials)
	if live, err := w.Sessions(t.Context(), auth.Principal{UserID: w.user().ID}); err != nil || len(live) > 0 {
		t.Errorf("sessions %+v, %v", live, err)
	}
}

func TestCheckMayRequestPayout(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	wantErr(t, w.CheckMayRequestPayout(p), nil)
	strict := w.again(func(o *auth.Options) { o.RequireVerifiedEmail = true })
	wantErr(t, strict.CheckMayRequestPayout(p), auth.ErrEmailNotVerified)
	p.Verified = true
	wantErr(t, strict.CheckMayRequestPayout(p), nil)
}

// TestNamesInMails has names carry no message to an address that was not proven.
func TestNamesInMails(t *testing.T) {
	for name, want := range map[string]string{
		"Asha Rao": "Asha Rao", "J. O’Hara-Smith": "J. O’Hara-Smith", "देवी": "देवी",
		"visit evil.example": "", "https //evil": "", "You won 1000": "", "Sign in now to get your money": "", "a@b": "",
	} {
		w := newFixture(t)
		if _, err := w.Register(t.Context(), auth.Registration{Name: name, Email: email, Password: password, Device: home}); err != nil {
			t.Fatal(err)
		}
		if m := lastMailed[mail.VerifyEmail](w, 1); m.Name != want {
			t.Errorf("%q is mailed as %q", name, m.Name)
		}
	}
}
