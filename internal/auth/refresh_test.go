package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/auth"
)

func (w *fixture) refresh(token string) auth.SignIn {
	w.t.Helper()
	in, err := w.Refresh(w.t.Context(), token)
	if err != nil {
		w.t.Fatalf("refresh: %v", err)
	}
	return in
}

func TestRefreshGivesNewTokens(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	w.clock.advance(time.Hour)
	second := w.refresh(first.RefreshToken)
	if second.Token == first.Token || second.RefreshToken == first.RefreshToken {
		t.Error("a token stayed the same")
	}
	if second.User.ID != first.User.ID || second.User.Role != auth.Seller || second.ExpiresIn != 7*24*time.Hour {
		t.Errorf("sign-in = %+v", second)
	}
	w.wantAlive(second)
	w.wantAlive(first) // until its own end: the session is the same
	w.clock.advance(time.Hour)
	w.wantAlive(w.refresh(second.RefreshToken))
}

func TestRefresh_ReplayWithinGrace_SameSuccessor(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	second := w.refresh(first.RefreshToken)
	w.clock.advance(10*time.Second - time.Microsecond)
	again := w.refresh(first.RefreshToken)
	if again.RefreshToken != second.RefreshToken {
		t.Error("one refresh token has two successors")
	}
	w.wantAlive(again)
	w.wantAlive(w.refresh(second.RefreshToken))
}

func TestRefresh_ReplayAfterGrace_EndsSession(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	second := w.refresh(first.RefreshToken)
	w.clock.advance(10 * time.Second)
	_, err := w.Refresh(t.Context(), first.RefreshToken)
	wantErr(t, err, auth.ErrRefresh)
	w.wantDead(first)
	w.wantDead(second)
}

// Each case uses a chain of tokens, and replays the one at an index, some time after the last use.
func TestRefresh_GraceIsPerToken(t *testing.T) {
	const almost = 10*time.Second - time.Microsecond
	quick := []time.Duration{0, 0, 0, 0, 0}
	steady := []time.Duration{0, 5 * time.Second, 5 * time.Second, 5 * time.Second, 5 * time.Second, 5 * time.Second, 5 * time.Second}
	tests := map[string]struct {
		uses   []time.Duration // the pause before each
		replay int
		after  time.Duration
		want   bool
	}{
		"grandparent":                     {[]time.Duration{0, 0}, 0, 0, true},
		"grandparent at last":             {[]time.Duration{0, 0}, 0, almost, true},
		"grandparent too late":            {[]time.Duration{0, 0}, 0, 10 * time.Second, false},
		"its successor used late":         {[]time.Duration{0, almost}, 0, 0, true},
		"its successor used too late":     {[]time.Duration{0, 10 * time.Second}, 0, 0, false},
		"first of a quick chain":          {quick, 0, almost, true},
		"middle of a quick chain":         {quick, 2, almost, true},
		"first of a quick chain, late":    {quick, 0, 10 * time.Second, false},
		"long chain, used 30 s ago":       {steady, 0, 0, false},
		"long chain, used 10 s ago":       {steady, 4, 0, false},
		"long chain, used 5 s ago":        {steady, 5, 0, true},
		"long chain, used 9 s ago":        {steady, 5, 4 * time.Second, true},
		"after a pause, a new grandchild": {[]time.Duration{0, time.Hour, time.Second, time.Second}, 1, 7 * time.Second, true},
		"before a pause":                  {[]time.Duration{0, time.Hour, time.Second, time.Second}, 0, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			ins := []auth.SignIn{w.register()}
			for i, pause := range tt.uses {
				w.clock.advance(pause)
				ins = append(ins, w.refresh(ins[i].RefreshToken))
			}
			w.clock.advance(tt.after)
			again, err := w.Refresh(t.Context(), ins[tt.replay].RefreshToken)
			newest := ins[len(ins)-1]
			if !tt.want {
				wantErr(t, err, auth.ErrRefresh)
				w.wantDead(newest)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if again.RefreshToken != ins[tt.replay+1].RefreshToken {
				t.Error("one refresh token has two successors")
			}
			w.wantAlive(again)
			w.wantAlive(w.refresh(newest.RefreshToken)) // the lineage goes on
		})
	}
}

// The model is a plain list of the tokens and when each was used.
func TestRefresh_FollowsModel(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	w.register()
	rapid.Check(t, func(r *rapid.T) {
		in, err := w.login(email, password, home)
		if err != nil {
			r.Fatal(err)
		}
		tokens := []string{in.RefreshToken}
		var used []time.Time
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			w.clock.advance(time.Duration(rapid.IntRange(0, 6000).Draw(r, "pause")) * time.Millisecond)
			i := rapid.IntRange(0, len(used)).Draw(r, "token")
			again, err := w.Refresh(t.Context(), tokens[i])
			now := w.clock.Now()
			if i < len(used) && now.Sub(used[i]) >= 10*time.Second {
				wantErr(t, err, auth.ErrRefresh)
				_, err = w.Refresh(t.Context(), tokens[len(tokens)-1])
				wantErr(t, err, auth.ErrRefresh)
				return
			}
			if err != nil {
				r.Fatal(err)
			}
			if i == len(used) {
				used, tokens = append(used, now), append(tokens, again.RefreshToken)
			}
			if again.RefreshToken != tokens[i+1] {
				r.Fatal("one refresh token has two successors")
			}
		}
	})
}

func TestRefresh_Replay_KeepsOtherSessions(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	other, err := w.login(email, password, home)
	if err != nil {
		t.Fatal(err)
	}
	w.refresh(first.RefreshToken)
	w.clock.advance(time.Minute)
	_, err = w.Refresh(t.Context(), first.RefreshToken)
	wantErr(t, err, auth.ErrRefresh)
	w.wantAlive(other)
}

func TestRefresh_NoGrace_TokenWorksOnce(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.RefreshGrace = 0 })
	first := w.register()
	second := w.refresh(first.RefreshToken)
	w.clock.advance(-time.Millisecond) // as two at once may read the clock in the other order
	_, err := w.Refresh(t.Context(), first.RefreshToken)
	wantErr(t, err, auth.ErrRefresh)
	w.wantDead(second)
}

func TestRefresh_AtOnce_OneSuccessor(t *testing.T) {
	w := newFixture(t)
	first := w.register()
	second := w.again() // another instance takes half of them
	const callers = 50
	ins := make([]auth.SignIn, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		service := w.Service
		if i%2 == 1 {
			service = second
		}
		wg.Go(func() { ins[i], errs[i] = service.Refresh(t.Context(), first.RefreshToken) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		if ins[i].RefreshToken != ins[0].RefreshToken {
			t.Fatal("one refresh token has two successors")
		}
		w.wantAlive(ins[i])
	}
	w.wantAlive(w.refresh(ins[0].RefreshToken))
}

func TestRefreshNeverResurrects(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	w.register()
	for range 25 {
		in, err := w.login(email, password, home)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Authenticate(t.Context(), in.Token)
		if err != nil {
			t.Fatal(err)
		}
		var refreshed auth.SignIn
		var refreshErr, logoutErr error
		var wg sync.WaitGroup
		wg.Go(func() { refreshed, refreshErr = w.Refresh(t.Context(), in.RefreshToken) })
		wg.Go(func() { logoutErr = w.Logout(t.Context(), p) })
		wg.Wait()
		if logoutErr != nil {
			t.Fatal(logoutErr)
		}
		w.wantDead(in)
		if refreshErr == nil {
			w.wantDead(refreshed)
		} else if !errors.Is(refreshErr, auth.ErrRefresh) {
			t.Fatal(refreshErr)
		}
	}
}

func TestSession_ExpiresIdleOrAtMaximumAge(t *testing.T) {
	const day = 24 * time.Hour
	t.Run("idle", func(t *testing.T) {
		w := newFixture(t)
		in := w.register()
		w.clock.advance(30*day - time.Microsecond)
		in = w.refresh(in.RefreshToken) // slides
		w.clock.advance(30*day - time.Microsecond)
		in = w.refresh(in.RefreshToken)
		w.clock.advance(30 * day)
		w.wantDead(in)
	})
	t.Run("at most", func(t *testing.T) {
		w := newFixture(t)
		in := w.register()
		for range 89 {
			w.clock.advance(day)
			in = w.refresh(in.RefreshToken)
		}
		w.clock.advance(day - time.Microsecond)
		w.wantAlive(in)
		w.clock.advance(time.Microsecond)
		w.wantDead(in)
	})
}

func TestRefresh_AfterAccessChange(t *testing.T) {
	w := newFixture(t)
	by := w.admin("Ada")
	in := w.register()
	if err := w.SetAccess(t.Context(), by, in.User.ID, auth.Buyer, false); err != nil {
		t.Fatal(err)
	}
	in = w.refresh(in.RefreshToken)
	if in.User.Role != auth.Buyer {
		t.Errorf("role = %s, want the new one", in.User.Role)
	}
	if err := w.SetAccess(t.Context(), by, in.User.ID, auth.Buyer, true); err != nil {
		t.Fatal(err)
	}
	w.wantDead(in)
}

func TestRefresh_InvalidToken_Refused(t *testing.T) {
	w := newFixture(t)
	in := w.register()
	other, err := w.login(email, password, home)
	if err != nil {
		t.Fatal(err)
	}
	cut := func(token string) (session, user, counter, mac string) {
		parts := strings.Split(token, ".")
		if len(parts) != 4 {
			t.Fatalf("%d parts in a token, want 4", len(parts))
		}
		return parts[0], parts[1], parts[2], parts[3]
	}
	session, user, counter, mac := cut(in.RefreshToken)
	name := session + "." + user
	otherName, _, _, otherMAC := cut(other.RefreshToken)
	tests := map[string]string{
		"empty":              "",
		"prefix":             "brt_",
		"access token":       in.Token,
		"no MAC":             name + "." + counter,
		"empty MAC":          name + "." + counter + ".",
		"another counter":    name + ".1." + mac,
		"padded counter":     name + ".00." + mac,
		"signed counter":     name + ".+0." + mac,
		"negative counter":   name + ".-1." + mac,
		"huge counter":       name + ".99999999999999999999." + mac,
		"another session":    otherName + "." + user + "." + counter + "." + mac,
		"another user":       session + "." + flipLast(user) + "." + counter + "." + mac,
		"no user":            session + "." + counter + "." + mac,
		"another's MAC":      name + "." + counter + "." + otherMAC,
		"flipped MAC":        name + "." + counter + "." + flipLast(mac),
		"trailing byte":      in.RefreshToken + "A",
		"trailing newline":   in.RefreshToken + "\n",
		"leading space":      " " + in.RefreshToken,
		"upper-case prefix":  "BRT_" + strings.TrimPrefix(in.RefreshToken, "brt_"),
		"without its prefix": strings.TrimPrefix(in.RefreshToken, "brt_"),
		"a megabyte":         "brt_" + strings.Repeat("A", 1<<20),
	}
	for name, token := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := w.Refresh(t.Context(), token)
			wantErr(t, err, auth.ErrRefresh)
		})
	}
	w.refresh(in.RefreshToken) // none of them hurt the session
}

func cut3(t *testing.T, token string) (a, b, c string) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%d parts in a token, want 3", len(parts))
	}
	return parts[0], parts[1], parts[2]
}

// flipLast changes the last character only: in base64, bits of it may mean nothing.
func flipLast(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, s[len(s)-1])
	return s[:len(s)-1] + string(alphabet[last^1])
}

func FuzzRefreshToken(f *testing.F) {
	w := newFixture(f)
	in := w.register()
	f.Add(in.RefreshToken)
	f.Add(in.RefreshToken + ".")
	f.Add("brt_000000000000000000000000.000000000000000000000000.0.AAAA")
	f.Add("brt_..")
	f.Add(in.Token)
	f.Fuzz(func(t *testing.T, token string) {
		_, err := w.Refresh(t.Context(), token)
		if token == in.RefreshToken {
			return
		}
		wantErr(t, err, auth.ErrRefresh)
	})
}

// meanwhileStore does something once a session was advanced.
type meanwhileStore struct {
	auth.Store
	then func()
}

func (m *meanwhileStore) AdvanceSession(ctx context.Context, session string, counter int64, now, until time.Time, grace time.Duration) (string, bool, error) {
	owner, advanced, err := m.Store.AdvanceSession(ctx, session, counter, now, until, grace)
	m.then()
	return owner, advanced, err
}

// TestRefresh_BesideADecision gives the role of the moment, and nothing to a user who was suspended meanwhile.
func TestRefresh_BesideADecision(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		store := &meanwhileStore{}
		w := newFixture(t, func(o *auth.Options) { store.Store, o.Store = o.Store, store })
		in, by := w.register(), w.admin("office")
		store.then = func() { wantErr(t, w.SetAccess(t.Context(), by, in.User.ID, auth.Buyer, suspended), nil) }
		again, err := w.Refresh(t.Context(), in.RefreshToken)
		if suspended {
			wantErr(t, err, auth.ErrRefresh)
			continue
		}
		if err != nil || again.User.Role != auth.Buyer || again.User.ID != in.User.ID || again.User.Email != in.User.Email {
			t.Errorf("refreshed as %+v, %v", again.User, err)
		}
	}
}
