package auth_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

// profileOf changes all of a profile.
func profileOf(name string, p auth.Profile) auth.ProfileChange {
	return auth.ProfileChange{Name: &name, Avatar: &p.Avatar, Bio: &p.Bio, Website: &p.Website}
}

// Two changes at once of different parts lose nothing.
func TestSetProfile_LeavesWhatIsNotNamed(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	var wg sync.WaitGroup
	for _, change := range []auth.ProfileChange{{Name: new("Asha Rao")}, {Bio: new("Pots")}, {Website: new("https://a.example")}, {}} {
		wg.Go(func() {
			if err := w.SetProfile(t.Context(), p, change, home); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	user, _, err := w.Me(t.Context(), p)
	if want := (auth.Profile{Bio: "Pots", Website: "https://a.example"}); err != nil || user.Name != "Asha Rao" || user.Profile != want {
		t.Errorf("%+v, %v", user, err)
	}
}

func TestProfileRules(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	good := auth.Profile{Avatar: "https://cdn.example/a.png?s=2", Bio: "Pottery,\nsince 1998 " + strings.Repeat("é", 400), Website: "http://asha.example"}
	if err := w.SetProfile(t.Context(), p, profileOf("Asha Rao", good), home); err != nil {
		t.Fatal(err)
	}
	long := "https://a.example/" + strings.Repeat("a", 2048)
	tests := map[string]struct {
		name    string
		profile auth.Profile
		want    []string
	}{
		"a short name":          {"A", auth.Profile{}, []string{"name"}},
		"a bio too long":        {"Asha", auth.Profile{Bio: strings.Repeat("é", 501)}, []string{"bio"}},
		"a bio with NUL":        {"Asha", auth.Profile{Bio: "a\x00b"}, []string{"bio"}},
		"a bio turned around":   {"Asha", auth.Profile{Bio: "a\u202eb"}, []string{"bio"}},
		"a bio of bytes":        {"Asha", auth.Profile{Bio: "a\xffb"}, []string{"bio"}},
		"a website of scripts":  {"Asha", auth.Profile{Website: "javascript:alert(1)"}, []string{"website"}},
		"a website of data":     {"Asha", auth.Profile{Website: "data:text/html,x"}, []string{"website"}},
		"a website of no host":  {"Asha", auth.Profile{Website: "https://"}, []string{"website"}},
		"a website of a port":   {"Asha", auth.Profile{Website: "https://:443/"}, []string{"website"}},
		"a website of a user":   {"Asha", auth.Profile{Website: "https://bank.example@evil.example/"}, []string{"website"}},
		"a website of blanks":   {"Asha", auth.Profile{Website: "https://a.example/a b"}, []string{"website"}},
		"a website of lines":    {"Asha", auth.Profile{Website: "https://a.example/\nb"}, []string{"website"}},
		"a website of words":    {"Asha", auth.Profile{Website: "asha.example"}, []string{"website"}},
		"a website too long":    {"Asha", auth.Profile{Website: long}, []string{"website"}},
		"an avatar in the open": {"Asha", auth.Profile{Avatar: "http://a.example/a.png"}, []string{"avatar"}},
		"an avatar too long":    {"Asha", auth.Profile{Avatar: long}, []string{"avatar"}},
		"all at once":           {"", auth.Profile{Avatar: "x", Bio: "\x00", Website: "x"}, []string{"name", "bio", "website", "avatar"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := fault.From(w.SetProfile(t.Context(), p, profileOf(test.name, test.profile), home))
			if f == nil || f.Kind != fault.Invalid || len(f.Details) != len(test.want) {
				t.Fatalf("error %v, want one about %v", f, test.want)
			}
			for _, field := range test.want {
				if f.Details[field] == "" {
					t.Errorf("details %v say nothing about %s", f.Details, field)
				}
			}
		})
	}
	user, _, err := w.Me(t.Context(), p)
	if err != nil || user.Name != "Asha Rao" || user.Profile != good {
		t.Errorf("user %+v, %v: what was refused changed something", user, err)
	}
	if err := w.SetProfile(t.Context(), p, profileOf("Asha", auth.Profile{}), home); err != nil {
		t.Errorf("an empty profile: %v", err)
	}
}

func TestSessions_ListedAndEnded(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	started := w.clock.Now()
	w.clock.advance(time.Hour)
	phone, err := w.login(email, password, auth.Device{Address: "198.51.100.9", Agent: " Phone\x00\n\u202e/1.0 " + strings.Repeat("é", 200)})
	if err != nil {
		t.Fatal(err)
	}
	w.clock.advance(time.Hour)
	first = w.refresh(first.RefreshToken)
	p, onPhone := w.principal(first), w.principal(phone)

	sessions, err := w.Sessions(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := []auth.SessionInfo{
		{
			ID: onPhone.Session, CreatedAt: started.Add(time.Hour), LastUsedAt: started.Add(time.Hour),
			Agent: "Phone/1.0 " + strings.Repeat("é", 92), Address: "198.51.100.9", Methods: []string{"pwd"},
		},
		{ID: p.Session, CreatedAt: started, LastUsedAt: started.Add(2 * time.Hour), Address: home.Address, Methods: []string{"pwd"}},
	}
	if diff := cmp.Diff(want, sessions); diff != "" {
		t.Error(diff)
	}

	stranger, err := w.Register(t.Context(), auth.Registration{Name: "Ravi", Email: "ravi@example.com", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.EndSession(t.Context(), w.principal(stranger), onPhone.Session, home), auth.ErrNoSession) // it is not theirs
	w.wantAlive(phone)
	if err := w.EndSession(t.Context(), p, onPhone.Session, home); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.EndSession(t.Context(), p, onPhone.Session, home), auth.ErrNoSession)
	w.wantDead(phone)
	w.wantAlive(first)

	again, err := w.login(email, password, home)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.EndOtherSessions(t.Context(), w.principal(again), home); err != nil {
		t.Fatal(err)
	}
	w.wantDead(first)
	w.wantAlive(again)
	w.wantAlive(stranger)
	if sessions, err := w.Sessions(t.Context(), w.principal(again)); err != nil || len(sessions) != 1 {
		t.Errorf("sessions %+v, %v; want one", sessions, err)
	}
}

// A session that is ended while it is being refreshed is dead, and so is each token that came of it.
func TestEndSession_BesideRefreshes(t *testing.T) {
	w := newFixture(t)
	here := w.principal(w.register())
	there, err := w.login(email, password, cafe)
	if err != nil {
		t.Fatal(err)
	}
	session := w.principal(there).Session
	var mu sync.Mutex
	tokens := []auth.SignIn{there}
	var ended atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if next, err := w.Refresh(t.Context(), there.RefreshToken); err == nil {
				mu.Lock()
				tokens = append(tokens, next)
				mu.Unlock()
			}
		})
		wg.Go(func() {
			switch err := w.EndSession(t.Context(), here, session, home); {
			case err == nil:
				ended.Add(1)
			case !errors.Is(err, auth.ErrNoSession):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, in := range tokens {
		w.wantDead(in)
	}
	if ended.Load() != 1 {
		t.Errorf("it was ended %d times, want once", ended.Load())
	}
}

func TestRenew_KeepsSession(t *testing.T) {
	w := newFixture(t)
	p := w.principal(w.register())
	w.clock.advance(6 * 24 * time.Hour)
	token, err := w.Renew(p)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.advance(6 * 24 * time.Hour)
	again, err := w.Authenticate(t.Context(), token)
	if err != nil || again != p {
		t.Errorf("renewed into %+v, %v; want %+v", again, err, p)
	}
	if err := w.Logout(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	_, err = w.Authenticate(t.Context(), token)
	wantErr(t, err, auth.ErrToken)
}
