package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

// scripted is a provider that says what a test has it say: much of it, no real one can be made to.
type scripted struct {
	issuer string

	mu    sync.Mutex
	says  auth.Identity
	fails error
	// asked is what came with each callback that got as far as here.
	asked []auth.ProviderRequest
	// hold, if there is one, is waited for before the provider answers. whenBlocked runs when somebody waits.
	block       chan struct{}
	whenBlocked func()
}

func (s *scripted) Label() string { return "Scripted" }

func (s *scripted) Issuer() string { return s.issuer }

func (s *scripted) Begin(_ context.Context, r auth.ProviderRequest) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "https://a.example/authorize?" + url.Values{"state": {r.State}, "nonce": {r.Nonce}}.Encode(), s.fails
}

func (s *scripted) Finish(ctx context.Context, r auth.ProviderRequest, _ url.Values) (auth.Identity, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	says, fails, block := s.says, s.fails, s.block
	s.mu.Unlock()
	if block != nil {
		if s.whenBlocked != nil {
			s.whenBlocked()
		}
		select {
		case <-block:
		case <-ctx.Done():
			return auth.Identity{}, ctx.Err()
		}
	}
	return says, fails
}

func (s *scripted) answer(who auth.Identity, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says, s.fails = who, err
}

func (s *scripted) timesAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// street is a world with two providers.
type street struct {
	*fixture
	a, b *scripted
}

func newStreet(t testing.TB, change ...func(*auth.Options)) *street {
	t.Helper()
	s := &street{a: &scripted{issuer: "https://a.example"}, b: &scripted{issuer: "https://b.example"}}
	providers := func(o *auth.Options) {
		o.Providers = map[auth.ProviderID]auth.Provider{auth.ProviderA: s.a, auth.ProviderB: s.b}
	}
	s.fixture = newFixture(t, append([]func(*auth.Options){providers}, change...)...)
	return s
}

// begin starts a sign-in, and returns what comes back of it.
func (s *street) begin(p auth.ProviderID, role auth.Role) auth.ProviderReturn {
	s.t.Helper()
	begun, err := s.BeginSignIn(s.t.Context(), auth.ProviderStart{Provider: p, Redirect: "/payouts", Role: role})
	if err != nil {
		s.t.Fatal(err)
	}
	to, err := url.Parse(begun.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	state := to.Query().Get("state")
	if auth.FlowOf(state) != begun.Flow || begun.Flow == "" {
		s.t.Fatalf("state %q does not name its flow %q", state, begun.Flow)
	}
	return auth.ProviderReturn{
		Provider: p, Encrypted: begun.Encrypted, Answer: url.Values{"state": {state}, "code": {"c"}}, Device: home,
	}
}

func (s *street) finish(r auth.ProviderReturn) (auth.SignIn, error) {
	s.t.Helper()
	in, redirect, err := s.FinishSignIn(s.t.Context(), r)
	if err == nil && redirect != "/payouts" {
		s.t.Errorf("redirect %q", redirect)
	}
	return in, err
}

// arrive signs in through provider A as who.
func (s *street) arrive(who auth.Identity) (auth.SignIn, error) {
	s.t.Helper()
	s.a.answer(who, nil)
	return s.finish(s.begin(auth.ProviderA, auth.Seller))
}

func (s *street) mustArrive(who auth.Identity) auth.SignIn {
	s.t.Helper()
	in, err := s.arrive(who)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wantAlive(in)
	return in
}

// verify makes a user's e-mail address verified, and leaves the rest.
func (s *street) verify(u auth.User) {
	s.t.Helper()
	err := s.db.Auth().InTx(s.t.Context(), func(tx auth.Tx) error {
		user, _, err := tx.UserByEmail(s.t.Context(), auth.EmailKey(u.Email))
		if err != nil {
			return err
		}
		return tx.VerifyUser(s.t.Context(), user.ID)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// asha is who she is at provider A.
func asha() auth.Identity {
	return auth.Identity{
		Issuer: "https://a.example", Subject: "7", Email: "Asha@Example.com", EmailVerified: true,
		Name: "Asha Rao", Avatar: "https://a.example/asha.png",
	}
}

func TestFinishSignIn_NewUser_GetsAccount(t *testing.T) {
	s := newStreet(t)
	first := s.mustArrive(asha())
	u, _, err := s.User(t.Context(), first.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	if u.Name != "Asha Rao" || u.Email != "Asha@Example.com" || u.Role != auth.Seller || !u.Verified || u.PasswordHash != "" ||
		u.Profile != (auth.Profile{Avatar: "https://a.example/asha.png"}) {
		t.Errorf("user %+v", u)
	}
	if first.ExpiresIn != 7*24*time.Hour || first.RefreshToken == "" {
		t.Errorf("signed in with %+v", first)
	}
	s.refresh(first.RefreshToken)
	moved := asha()
	moved.Email, moved.Name = "asha@elsewhere.example", "Another Name"
	again := s.mustArrive(moved)
	if again.User.ID != u.ID || again.User.Email != u.Email || again.User.Name != u.Name {
		t.Errorf("she came back as %+v", again.User)
	}
	identities, err := s.Identities(t.Context(), u.ID)
	if err != nil || len(identities) != 1 || identities[0].Email != "Asha@Example.com" || !identities[0].Since.Equal(s.clock.Now()) {
		t.Errorf("identities %+v, %v", identities, err)
	}
}

// TestWhoseAccountItIs is every way to meet an account, or none.
func TestWhoseAccountItIs(t *testing.T) {
	unverified := func(s *street) { s.register() }
	verified := func(s *street) { s.verify(s.register().User) }
	suspend := func(s *street, role auth.Role) {
		u, _, err := s.db.UserByEmail(s.t.Context(), email)
		if err == nil {
			err = s.SetAccess(s.t.Context(), s.admin("Grace"), u.ID, role, true)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	admin := func(s *street) {
		if _, err := s.CreateUser(s.t.Context(), auth.Registration{Name: "Asha", Email: email, Password: password, Role: auth.Admin}); err != nil {
			s.t.Fatal(err)
		}
	}
	vouched := func(i *auth.Identity) { i.EmailVerified = true }
	unvouched := func(i *auth.Identity) { i.EmailVerified = false }
	mail := func(address string) func(*auth.Identity) {
		return func(i *auth.Identity) { i.Email = address }
	}
	tests := map[string]struct {
		account func(*street)
		says    func(*auth.Identity)
		want    error
		// passwordWorks and verified say what the account is like then.
		passwordWorks, verified bool
	}{
		"nobody, vouched for":              {func(*street) {}, vouched, nil, false, true},
		"nobody, not vouched for":          {func(*street) {}, unvouched, nil, false, false},
		"nobody, without an address":       {func(*street) {}, mail(""), auth.ErrEmailMissing, false, false},
		"nobody, with no proper address":   {func(*street) {}, mail("Asha <asha@example.com>"), auth.ErrEmailMissing, false, false},
		"nobody, with a look-alike":        {func(*street) {}, mail("аsha@example.com"), auth.ErrEmailMissing, false, false},
		"unverified, vouched for":          {unverified, vouched, nil, false, true},
		"unverified, not vouched for":      {unverified, unvouched, auth.ErrEmailUnverified, true, false},
		"unverified, without an address":   {unverified, mail(""), auth.ErrEmailMissing, true, false},
		"verified, vouched for":            {verified, vouched, nil, true, true},
		"verified, not vouched for":        {verified, unvouched, auth.ErrEmailUnverified, true, true},
		"admin, vouched for":               {admin, vouched, auth.ErrAdminByPassword, true, false},
		"admin, not vouched for":           {admin, unvouched, auth.ErrEmailUnverified, true, false},
		"verified admin":                   {func(s *street) { admin(s); s.verify(auth.User{Email: email}) }, vouched, auth.ErrAdminByPassword, true, true},
		"suspended":                        {func(s *street) { unverified(s); suspend(s, auth.Seller) }, vouched, auth.ErrSuspended, false, false},
		"suspended and verified":           {func(s *street) { verified(s); suspend(s, auth.Seller) }, vouched, auth.ErrSuspended, false, true},
		"suspended, not vouched for":       {func(s *street) { unverified(s); suspend(s, auth.Seller) }, unvouched, auth.ErrEmailUnverified, false, false},
		"suspended admin":                  {func(s *street) { admin(s); suspend(s, auth.Admin) }, vouched, auth.ErrSuspended, false, false},
		"an account of another address":    {unverified, mail("asha@example.org"), nil, true, false},
		"an address with a tag is another": {unverified, mail("asha+1@example.com"), nil, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t)
			test.account(s)
			before, existed, err := s.db.UserByEmail(t.Context(), email)
			if err != nil {
				t.Fatal(err)
			}
			who := asha()
			test.says(&who)
			in, err := s.arrive(who)
			wantErr(t, err, test.want)
			if (err == nil) != (in.Token != "") {
				t.Errorf("signed in with %+v and %v", in, err)
			}
			after, exists, err := s.db.UserByEmail(t.Context(), email)
			if err != nil {
				t.Fatal(err)
			}
			if after.Verified != test.verified || existed && after.ID != before.ID {
				t.Errorf("%+v became %+v", before, after)
			}
			if test.want != nil && after != before {
				t.Errorf("a refusal made %+v of %+v", after, before)
			}
			if exists && after.Role == auth.Admin && !existed {
				t.Error("a sign-in made an admin")
			}
			if _, err := s.login(email, password, home); (err == nil) != test.passwordWorks {
				t.Errorf("with the password: %v", err)
			}
			identities, err := s.Identities(t.Context(), after.ID)
			if want := test.want == nil && strings.EqualFold(who.Email, email); err != nil || (len(identities) == 1) != want {
				t.Errorf("identities %+v, %v", identities, err)
			}
		})
	}
}

func TestFinishSignIn_SuspendedUser_Refused(t *testing.T) {
	s := newStreet(t)
	in := s.mustArrive(asha())
	by := s.admin("Ada")
	if err := s.SetAccess(t.Context(), by, in.User.ID, auth.Seller, true); err != nil {
		t.Fatal(err)
	}
	_, err := s.arrive(asha())
	wantErr(t, err, auth.ErrSuspended)
	if err := s.SetAccess(t.Context(), by, in.User.ID, auth.Buyer, false); err != nil {
		t.Fatal(err)
	}
	if again := s.mustArrive(asha()); again.User.Role != auth.Buyer {
		t.Errorf("the start's role was given to %+v", again.User)
	}
}

func TestFinishSignIn_IdentityIsIssuerAndSubject(t *testing.T) {
	s := newStreet(t)
	first := s.mustArrive(asha())
	namesake := auth.Identity{Issuer: "https://b.example", Subject: "7", Email: "ravi@example.com", EmailVerified: true}
	if other := s.mustArrive(namesake); other.User.ID == first.User.ID {
		t.Error("the same subject of another issuer is the same user")
	}
	work := asha()
	work.Subject = "8" // the same address, vouched for
	if same := s.mustArrive(work); same.User.ID != first.User.ID {
		t.Error("a second identity with her verified address is another user")
	}
	stranger := asha()
	stranger.Subject, stranger.EmailVerified = "9", false
	_, err := s.arrive(stranger)
	wantErr(t, err, auth.ErrEmailUnverified)
	identities, err := s.Identities(t.Context(), first.User.ID)
	if err != nil || len(identities) != 2 {
		t.Errorf("identities %+v, %v; want two", identities, err)
	}
}

func TestFinishSignIn_InvalidIdentity_Refused(t *testing.T) {
	s := newStreet(t)
	for name, change := range map[string]func(*auth.Identity){
		"no issuer":        func(i *auth.Identity) { i.Issuer = "" },
		"no subject":       func(i *auth.Identity) { i.Subject = "" },
		"an endless one":   func(i *auth.Identity) { i.Subject = strings.Repeat("7", 513) },
		"one with NUL":     func(i *auth.Identity) { i.Subject = "7\x00" },
		"one of bytes":     func(i *auth.Identity) { i.Issuer = "https://\xff.example" },
		"one turned round": func(i *auth.Identity) { i.Subject = "\u202e7" },
	} {
		t.Run(name, func(t *testing.T) {
			who := asha()
			change(&who)
			_, err := s.arrive(who)
			wantErr(t, err, auth.ErrProviderAnswer)
		})
	}
}

func TestFinishSignIn_NewUser_NameAndAvatarCleaned(t *testing.T) {
	long := strings.Repeat("é", 60)
	tests := map[string]struct {
		tells        auth.Identity
		name, avatar string
	}{
		"as it is":           {auth.Identity{Name: "Asha Rao", Avatar: "https://a.example/1"}, "Asha Rao", "https://a.example/1"},
		"nothing":            {auth.Identity{}, "asha", ""},
		"too long":           {auth.Identity{Name: long}, long[:100], ""},
		"cut at a blank":     {auth.Identity{Name: strings.Repeat("a", 49) + " b"}, strings.Repeat("a", 49), ""},
		"blanks":             {auth.Identity{Name: " \t Asha\n Rao "}, "Asha Rao", ""},
		"turned round":       {auth.Identity{Name: "Asha\u202eoaR"}, "Asha oaR", ""},
		"bytes":              {auth.Identity{Name: "As\xffha"}, "Asha", ""},
		"one letter":         {auth.Identity{Name: "A"}, "asha", ""},
		"nothing to be seen": {auth.Identity{Name: "\u2800\u200b\u3164"}, "asha", ""},
		"a short address":    {auth.Identity{Email: "a@example.com"}, "New user", ""},
		"a picture by http":  {auth.Identity{Avatar: "http://a.example/1"}, "asha", ""},
		"a picture of code":  {auth.Identity{Avatar: "javascript:alert(1)"}, "asha", ""},
		"an endless picture": {auth.Identity{Avatar: "https://a.example/" + strings.Repeat("a", 2048)}, "asha", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t)
			who := test.tells
			who.Issuer, who.Subject, who.EmailVerified = "https://a.example", "7", true
			if who.Email == "" {
				who.Email = email
			}
			in := s.mustArrive(who)
			u, _, err := s.User(t.Context(), in.User.ID)
			if err != nil || u.Name != test.name || u.Profile.Avatar != test.avatar || auth.CheckName(u.Name) != "" {
				t.Errorf("name %q, avatar %q, %v; want %q and %q", u.Name, u.Profile.Avatar, err, test.name, test.avatar)
			}
		})
	}
}

func TestRolesOfNewcomers(t *testing.T) {
	s := newStreet(t)
	for i, role := range []auth.Role{"", auth.Buyer, auth.Seller} {
		r := s.begin(auth.ProviderA, role)
		s.a.answer(auth.Identity{Issuer: "https://a.example", Subject: fmt.Sprint(i), Email: fmt.Sprintf("u%d@example.com", i)}, nil)
		in, err := s.finish(r)
		want := role
		if want == "" {
			want = auth.Buyer
		}
		if err != nil || in.User.Role != want {
			t.Errorf("asked for %q: %q, %v", role, in.User.Role, err)
		}
	}
	for _, role := range []auth.Role{auth.Admin, "Seller", "owner"} {
		_, err := s.BeginSignIn(t.Context(), auth.ProviderStart{Provider: auth.ProviderA, Role: role})
		if f := fault.From(err); f == nil || f.Details["role"] == "" {
			t.Errorf("asked for %q: %v", role, err)
		}
	}
}

func TestFinishSignIn_NewUsers_LimitedAsRegistrations(t *testing.T) {
	s := newStreet(t)
	const burst = 500
	for i := range burst {
		if _, err := s.arrive(auth.Identity{Issuer: "https://a.example", Subject: fmt.Sprint("u", i), Email: fmt.Sprintf("u%d@example.com", i)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.arrive(asha())
	wantThrottled(t, err)
	if got := auth.SignInProblem(err); got != auth.ErrThrottled {
		t.Errorf("people are told %v", got)
	}
	_, taken, err := s.db.UserByEmail(t.Context(), email)
	if taken || err != nil {
		t.Errorf("a user was made all the same, %v", err)
	}
	if _, err := s.arrive(auth.Identity{Issuer: "https://a.example", Subject: "u0"}); err != nil {
		t.Errorf("who has an account: %v", err)
	}
}

func TestFinishSignIn_NewUserInTabs_OneUser(t *testing.T) {
	for range 5 {
		s := newStreet(t)
		s.a.answer(asha(), nil)
		const tabs = 8
		ids := make([]string, tabs)
		var all sync.WaitGroup
		for i := range tabs {
			r := s.begin(auth.ProviderA, auth.Seller)
			all.Go(func() {
				in, err := s.finish(r)
				if err != nil {
					t.Error(err)
				}
				ids[i] = in.User.ID
			})
		}
		all.Wait()
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Fatalf("users %v, want one", ids)
			}
		}
		identities, err := s.Identities(t.Context(), ids[0])
		if err != nil || len(identities) != 1 {
			t.Errorf("identities %+v, %v", identities, err)
		}
	}
}

func TestFinishSignIn_RepeatedAtOnce_OneSucceeds(t *testing.T) {
	s := newStreet(t)
	s.a.answer(asha(), nil)
	r := s.begin(auth.ProviderA, auth.Seller)
	var through, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := s.finish(r)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				through++
			case errors.Is(err, auth.ErrSignInExpired):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if through != 1 || refused != 9 || s.a.timesAsked() != 1 {
		t.Errorf("%d went through and %d were refused; the provider was asked %d times", through, refused, s.a.timesAsked())
	}
	if _, err := s.finish(r); !errors.Is(err, auth.ErrSignInExpired) {
		t.Errorf("later: %v", err)
	}
}

func TestFinishSignIn_AfterFailure_Expired(t *testing.T) {
	s := newStreet(t)
	r := s.begin(auth.ProviderA, auth.Seller)
	s.a.answer(auth.Identity{}, auth.ErrProviderDenied)
	_, err := s.finish(r)
	wantErr(t, err, auth.ErrProviderDenied)
	s.a.answer(asha(), nil)
	_, err = s.finish(r)
	wantErr(t, err, auth.ErrSignInExpired)
}

func TestFinishSignIn_ForgedOrExpired_Refused(t *testing.T) {
	state := func(r auth.ProviderReturn) string { return r.Answer.Get("state") }
	tests := map[string]func(*street, *auth.ProviderReturn){
		"no state":             func(_ *street, r *auth.ProviderReturn) { r.Answer.Del("state") },
		"an empty state":       func(_ *street, r *auth.ProviderReturn) { r.Answer.Set("state", "") },
		"two states":           func(_ *street, r *auth.ProviderReturn) { r.Answer.Add("state", state(*r)) },
		"a made-up state":      func(_ *street, r *auth.ProviderReturn) { r.Answer.Set("state", "x.y") },
		"another secret":       func(_ *street, r *auth.ProviderReturn) { r.Answer.Set("state", flipLast(state(*r))) },
		"a shorter secret":     func(_ *street, r *auth.ProviderReturn) { r.Answer.Set("state", state(*r)[:60]) },
		"another browser":      func(_ *street, r *auth.ProviderReturn) { r.Encrypted = "" },
		"another tab's cookie": func(s *street, r *auth.ProviderReturn) { r.Encrypted = s.begin(auth.ProviderA, "").Encrypted },
		"another tab's state": func(s *street, r *auth.ProviderReturn) {
			r.Answer = s.begin(auth.ProviderA, "").Answer
		},
		"a changed cookie": func(_ *street, r *auth.ProviderReturn) {
			middle, other := len(r.Encrypted)/2, "A"
			if r.Encrypted[middle] == 'A' {
				other = "B"
			}
			r.Encrypted = r.Encrypted[:middle] + other + r.Encrypted[middle+1:]
		},
		"another provider": func(_ *street, r *auth.ProviderReturn) { r.Provider = auth.ProviderB },
		"a cookie of other making": func(s *street, r *auth.ProviderReturn) {
			encrypted, err := s.keys.Encrypt(`{"Provider":"provider-a","State":"`+state(*r)+`","ExpiresAt":"2099-01-01T00:00:00Z"}`, "bank account number")
			if err != nil {
				s.t.Fatal(err)
			}
			r.Encrypted = encrypted
		},
		"too late": func(s *street, _ *auth.ProviderReturn) { s.clock.advance(auth.FlowLife) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t)
			s.a.answer(asha(), nil)
			s.b.answer(asha(), nil)
			r := s.begin(auth.ProviderA, auth.Seller)
			change(s, &r)
			_, err := s.finish(r)
			wantErr(t, err, auth.ErrSignInExpired)
			if f := fault.From(err); f == nil || errors.Unwrap(f) == nil {
				t.Error("the log is not told why")
			}
			if n := s.a.timesAsked() + s.b.timesAsked(); n != 0 {
				t.Error("a provider was asked")
			}
		})
	}
}

func TestFinishSignIn_JustBeforeExpiry_Succeeds(t *testing.T) {
	s := newStreet(t)
	s.a.answer(asha(), nil)
	r := s.begin(auth.ProviderA, auth.Seller)
	s.clock.advance(auth.FlowLife - time.Microsecond)
	if _, err := s.finish(r); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(time.Hour)
	if n, err := s.Sweep(t.Context()); err != nil || n != 1 { // the registration's bucket; an instance may be slow
		t.Errorf("swept %d, %v", n, err)
	}
	s.clock.advance(time.Hour)
	if n, err := s.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("swept %d, %v; want the note that it was used", n, err)
	}
}

func TestFinishSignIn_Failure_ReturnsRedirect(t *testing.T) {
	s := newStreet(t)
	denied, late := s.begin(auth.ProviderA, auth.Seller), s.begin(auth.ProviderA, auth.Seller)
	s.a.answer(auth.Identity{}, auth.ErrProviderDenied)
	fails := func(r auth.ProviderReturn, want error) {
		t.Helper()
		_, redirect, err := s.FinishSignIn(t.Context(), r)
		wantErr(t, err, want)
		if redirect != "/payouts" {
			t.Errorf("to %q", redirect)
		}
	}
	fails(denied, auth.ErrProviderDenied)
	fails(denied, auth.ErrSignInExpired)
	s.clock.advance(time.Hour)
	fails(late, auth.ErrSignInExpired)
}

func TestProvidersThatFail(t *testing.T) {
	tests := map[string]struct{ err, want, told error }{
		"denied":      {auth.ErrProviderDenied.Because(errors.New("access_denied")), auth.ErrProviderDenied, auth.ErrProviderDenied},
		"unavailable": {auth.ErrProviderUnavailable, auth.ErrProviderUnavailable, auth.ErrProviderUnavailable},
		"no proof":    {fmt.Errorf("wrapped: %w", auth.ErrProviderAnswer), auth.ErrProviderAnswer, auth.ErrProviderAnswer},
		"a bug":       {errBug, errBug, auth.ErrSignInFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t)
			r := s.begin(auth.ProviderA, auth.Seller)
			s.a.answer(asha(), test.err)
			_, err := s.finish(r)
			wantErr(t, err, test.want)
			if told := auth.SignInProblem(err); !errors.Is(told, test.told) || !auth.IsSignInProblem(told.Message) {
				t.Errorf("people are told %v", told)
			}
			if _, err := s.BeginSignIn(t.Context(), auth.ProviderStart{Provider: auth.ProviderA}); !errors.Is(err, test.want) {
				t.Errorf("at the start: %v", err)
			}
			if _, made, err := s.db.UserByEmail(t.Context(), email); made || err != nil {
				t.Errorf("a user was made, %v", err)
			}
		})
	}
}

var errBug = errors.New("a bug")

func TestFinishSignIn_ProviderSilent_Unavailable(t *testing.T) {
	s := newStreet(t)
	s.a.block = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s.a.whenBlocked = cancel
	_, _, err := s.FinishSignIn(ctx, s.begin(auth.ProviderA, auth.Seller))
	wantErr(t, err, auth.ErrProviderUnavailable)
}

func TestFewCallbacksWaitAtOnce(t *testing.T) {
	s := newStreet(t)
	s.a.answer(asha(), nil)
	s.a.block = make(chan struct{})
	const places = 16
	var waiting sync.WaitGroup
	for range places {
		r := s.begin(auth.ProviderA, auth.Seller)
		waiting.Go(func() {
			if _, err := s.finish(r); err != nil {
				t.Error(err)
			}
		})
	}
	for s.a.timesAsked() < places {
		time.Sleep(time.Millisecond)
	}
	turnedAway := s.begin(auth.ProviderA, auth.Seller)
	_, err := s.finish(turnedAway)
	wantErr(t, err, auth.ErrBusy)
	s.b.answer(auth.Identity{Issuer: "https://b.example", Subject: "1", Email: "meera@example.com"}, nil)
	if _, err := s.finish(s.begin(auth.ProviderB, auth.Seller)); err != nil { // has places of its own
		t.Error(err)
	}
	close(s.a.block)
	waiting.Wait()
	_, err = s.finish(turnedAway) // used up, so that nobody can hammer with one
	wantErr(t, err, auth.ErrSignInExpired)
	s.mustArrive(asha())
}

func TestFinishSignIn_EndsBrowsersPreviousSession(t *testing.T) {
	s := newStreet(t)
	earlier, elsewhere := s.register(), s.mustArrive(auth.Identity{Issuer: "https://a.example", Subject: "9", Email: "ravi@example.com"})
	s.a.answer(auth.Identity{Issuer: "https://a.example", Subject: "8", Email: "meera@example.com"}, nil)
	r := s.begin(auth.ProviderA, auth.Seller)
	r.Presented = earlier.Token
	in, err := s.finish(r)
	if err != nil {
		t.Fatal(err)
	}
	s.wantAlive(in)
	s.wantDead(earlier)
	s.wantAlive(elsewhere)

	r = s.begin(auth.ProviderA, auth.Seller)
	r.Presented = "no token"
	if _, err := s.finish(r); err != nil {
		t.Errorf("with a cookie of no session: %v", err)
	}
	r = s.begin(auth.ProviderA, auth.Seller)
	r.Presented = elsewhere.Token
	s.a.answer(auth.Identity{}, auth.ErrProviderDenied)
	_, err = s.finish(r)
	wantErr(t, err, auth.ErrProviderDenied)
	s.wantAlive(elsewhere)
}

func TestBeginSignIn_SecretsUniqueAndEncrypted(t *testing.T) {
	s := newStreet(t)
	s.a.answer(asha(), nil)
	seen := map[string]bool{}
	for range 3 {
		r := s.begin(auth.ProviderA, auth.Seller)
		if _, err := s.finish(r); err != nil {
			t.Fatal(err)
		}
		asked := s.a.asked[len(s.a.asked)-1]
		if asked.State != r.Answer.Get("state") {
			t.Errorf("state %q", asked.State)
		}
		verifier := regexp.MustCompile(`^[0-9A-Za-z._~-]{43,128}$`) // RFC 7636 §4.1
		if !verifier.MatchString(asked.Verifier) || len(asked.Nonce) < 43 {
			t.Errorf("verifier %q, nonce %q", asked.Verifier, asked.Nonce)
		}
		for _, secret := range []string{asked.State, asked.Nonce, asked.Verifier} {
			if seen[secret] {
				t.Errorf("%q came twice", secret)
			}
			seen[secret] = true
			if strings.Contains(r.Encrypted, secret) {
				t.Error("the cookie can be read")
			}
		}
	}
}

func TestFinishSignIn_LogsUserWithoutSecrets(t *testing.T) {
	var log bytes.Buffer
	s := newStreet(t, func(o *auth.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	s.register()
	r := s.begin(auth.ProviderA, auth.Seller)
	s.a.answer(asha(), nil)
	in, err := s.finish(r)
	if err != nil {
		t.Fatal(err)
	}
	s.mustArrive(asha())
	work := asha()
	work.Subject = "8"
	s.mustArrive(work)
	s.mustArrive(auth.Identity{Issuer: "https://a.example", Subject: "9", Email: "ravi@example.com"})
	for _, want := range []string{"taken_over", "found", "linked", "registered"} {
		if !regexp.MustCompile(`msg="signed in" user_id=usr_\w+ address=203.0.113.7 provider=provider-a account=` + want).MatchString(log.String()) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
	for _, secret := range []string{r.Answer.Get("state"), r.Encrypted, in.Token, in.RefreshToken, s.a.asked[0].Verifier, s.a.asked[0].Nonce, "example.com"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %.30s", secret)
		}
	}
}

func TestSignInButtons_OnlyConfiguredProviders(t *testing.T) {
	s := newStreet(t)
	if got := s.SignInButtons(); len(got) != 2 || got[0] != (auth.SignInButton{ID: auth.ProviderA, Label: "Scripted"}) {
		t.Errorf("buttons %+v", got)
	}
	one := s.again(func(o *auth.Options) { o.Providers = map[auth.ProviderID]auth.Provider{auth.ProviderB: s.b} })
	if got := one.SignInButtons(); len(got) != 1 || got[0].ID != auth.ProviderB || one.HasProvider(auth.ProviderA) || !one.HasProvider(auth.ProviderB) {
		t.Errorf("buttons %+v", got)
	}
	_, err := one.BeginSignIn(t.Context(), auth.ProviderStart{Provider: auth.ProviderA})
	wantErr(t, err, auth.ErrProviderNotConfigured)
	_, _, err = one.FinishSignIn(t.Context(), s.begin(auth.ProviderA, auth.Buyer))
	wantErr(t, err, auth.ErrProviderNotConfigured)
	if got := newFixture(t).SignInButtons(); len(got) != 0 {
		t.Errorf("buttons %+v of no provider", got)
	}
	for name, wrong := range map[string]map[auth.ProviderID]auth.Provider{"a third": {"provider-c": s.a}, "none": {auth.ProviderA: nil}} {
		o := s.options
		o.Providers = wrong
		if _, err := auth.New(o); err == nil {
			t.Errorf("%s: a service was made", name)
		}
	}
}

func TestIsSignInProblem_OnlyOwnMessages(t *testing.T) {
	for _, err := range []error{errBug, auth.ErrThrottled.WithMessage("Wait."), auth.ErrBusy, auth.ErrEmailTaken, auth.ErrSuspended} {
		if !auth.IsSignInProblem(auth.SignInProblem(err).Message) {
			t.Errorf("%v: told what is not shown", err)
		}
	}
	for _, made := range []string{"", "Your account was hacked. Call 555-0100.", auth.ErrEmailTaken.Message, auth.ErrSuspended.Message + " "} {
		if auth.IsSignInProblem(made) {
			t.Errorf("%q would be shown", made)
		}
	}
}
