package auth_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/mail"
)

func TestRegisterSignsIn(t *testing.T) {
	w := newFixture(t)
	in := w.register()

	p, err := w.Authenticate(t.Context(), in.Token)
	if err != nil {
		t.Fatal(err)
	}
	if p.UserID != in.User.ID || p.Email != email || p.Role != auth.Seller {
		t.Errorf("principal = %+v", p)
	}
	user, stats, err := w.Me(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in.User, user); diff != "" {
		t.Errorf("the user who registered and the one stored differ:\n%s", diff)
	}
	if stats != (auth.Stats{}) {
		t.Errorf("stats of a new user = %+v", stats)
	}
	if user.Verified || user.Suspended || strings.Contains(user.PasswordHash, password) {
		t.Errorf("user = %+v", user)
	}
	if in.ExpiresIn.Hours() != 7*24 {
		t.Errorf("expires in %v", in.ExpiresIn)
	}
}

func TestRegistrationProblems(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.PasswordBlocklist = true })
	good := auth.Registration{Name: "Asha", Email: email, Password: password}
	tests := map[string]struct {
		change func(*auth.Registration)
		want   string
	}{
		"admin":             {func(r *auth.Registration) { r.Role = auth.Admin }, "role"},
		"other role":        {func(r *auth.Registration) { r.Role = "Seller" }, "role"},
		"no name":           {func(r *auth.Registration) { r.Name = "" }, "name"},
		"short name":        {func(r *auth.Registration) { r.Name = "A" }, "name"},
		"long name":         {func(r *auth.Registration) { r.Name = strings.Repeat("é", 51) }, "name"},
		"header in name":    {func(r *auth.Registration) { r.Name = "Asha\r\nBcc: x" }, "name"},
		"no e-mail":         {func(r *auth.Registration) { r.Email = "" }, "email"},
		"look-alike e-mail": {func(r *auth.Registration) { r.Email = "ash\u0430@example.com" }, "email"},
		"full-width e-mail": {func(r *auth.Registration) { r.Email = "\uff41sha@example.com" }, "email"},
		"zero-width e-mail": {func(r *auth.Registration) { r.Email = "asha\u200b@example.com" }, "email"},
		"header in e-mail":  {func(r *auth.Registration) { r.Email = "asha@example.com\r\nBcc: x@example.com" }, "email"},
		"trailing dot":      {func(r *auth.Registration) { r.Email = "asha@example.com." }, "email"},
		"trailing space":    {func(r *auth.Registration) { r.Email = "asha@example.com " }, "email"},
		"display name":      {func(r *auth.Registration) { r.Email = "Asha <asha@example.com>" }, "email"},
		"long e-mail":       {func(r *auth.Registration) { r.Email = strings.Repeat("a", 60) + "@" + strings.Repeat("b.", 97) + "com" }, "email"},
		"short password":    {func(r *auth.Registration) { r.Password = "seven77" }, "password"},
		"seven runes":       {func(r *auth.Registration) { r.Password = "ééééééé" }, "password"},
		"long password":     {func(r *auth.Registration) { r.Password = strings.Repeat("a", 1025) }, "password"},
		"common password":   {func(r *auth.Registration) { r.Password = "Password123" }, "password"},
		"own e-mail":        {func(r *auth.Registration) { r.Password = "Asha@Example.com" }, "password"},
		"own name":          {func(r *auth.Registration) { r.Name, r.Password = "Asha Raman", "asha raman" }, "password"},
		"own mailbox":       {func(r *auth.Registration) { r.Email, r.Password = "asharaman@example.com", "asharaman" }, "password"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := good
			tt.change(&r)
			_, err := w.Register(t.Context(), r)
			f := fault.From(err)
			if f == nil || f.Kind != fault.Invalid || len(f.Details) != 1 || f.Details[tt.want] == "" {
				t.Errorf("error = %+v, want one about %s", f, tt.want)
			}
		})
	}
	if _, err := w.Register(t.Context(), good); err != nil {
		t.Errorf("the good one is refused: %v", err)
	}
}

func TestRegister_BlocklistOff_AllowsCommonPassword(t *testing.T) {
	w := newFixture(t)
	if _, err := w.Register(t.Context(), auth.Registration{Name: "Asha", Email: email, Password: "password"}); err != nil {
		t.Errorf("eight characters are all that the interface asks: %v", err)
	}
}

func TestRegister_EmailCaseIgnored(t *testing.T) {
	w := newFixture(t)
	w.register()
	_, err := w.Register(t.Context(), auth.Registration{Name: "Asha", Email: "Asha@EXAMPLE.com", Password: password})
	wantErr(t, err, auth.ErrEmailTaken)
	in, err := w.login("ASHA@example.COM", password, home)
	if err != nil {
		t.Fatal(err)
	}
	if in.User.Email != email {
		t.Errorf("e-mail = %q, want it as it was given", in.User.Email)
	}
	if _, err := w.Register(t.Context(), auth.Registration{Name: "Asha", Email: "asha+shop@example.com", Password: password}); err != nil {
		t.Errorf("another mailbox: %v", err)
	}
}

func TestRegister_AtOnce_OneUser(t *testing.T) {
	w := newFixture(t)
	const callers = 20
	errs := make([]error, callers)
	ins := make([]auth.SignIn, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			ins[i], errs[i] = w.Register(t.Context(), auth.Registration{Name: "Asha", Email: email, Password: password, Device: home})
		})
	}
	wg.Wait()
	made := 0
	for i, err := range errs {
		if err == nil {
			made++
			w.wantAlive(ins[i])
		} else if !errors.Is(err, auth.ErrEmailTaken) {
			t.Errorf("error = %v, want %v", err, auth.ErrEmailTaken)
		}
	}
	if made != 1 {
		t.Errorf("%d registrations succeeded, want 1", made)
	}
}

func TestCreateUser_AdminSignsIn(t *testing.T) {
	w := newFixture(t)
	user, err := w.CreateUser(t.Context(), auth.Registration{Name: "Root", Email: "root@example.com", Password: password, Role: auth.Admin})
	if err != nil {
		t.Fatal(err)
	}
	in, err := w.login("root@example.com", password, home)
	if err != nil {
		t.Fatal(err)
	}
	if in.User.ID != user.ID || in.User.Role != auth.Admin {
		t.Errorf("signed in as %+v", in.User)
	}
	sent := w.mailbox.To("root@example.com")
	if len(sent) != 1 {
		t.Fatalf("mailed %+v, want a link to confirm the address", sent)
	}
	wantErr(t, w.VerifyEmail(t.Context(), sent[0].(mail.VerifyEmail).Token), nil) // who confirmed it can undo a change of it
	if in, err = w.login("root@example.com", password, home); err != nil || !in.User.Verified || in.User.Role != auth.Admin {
		t.Errorf("signed in as %+v, %v", in.User, err)
	}
	_, err = w.CreateUser(t.Context(), auth.Registration{Name: "Root", Email: "ROOT@example.com", Password: password, Role: auth.Admin})
	wantErr(t, err, auth.ErrEmailTaken)
	_, err = w.CreateUser(t.Context(), auth.Registration{Name: "Root", Email: "r@example.com", Password: password})
	if f := fault.From(err); f == nil || f.Details["role"] == "" {
		t.Errorf("a user without a role: %v", err)
	}
}
