package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"bursar/test/harness"
)

// Eight instances start on an empty database, of which each knows nothing but its own address and that database: they
// make one schema, one key set and one sandbox.
func TestInstances_StartAtOnce_ShareKeysAndSchema(t *testing.T) {
	s := shopOnPostgres(t, 8)
	for _, i := range s.instances {
		i.Environ = slices.DeleteFunc(i.Environ, func(setting string) bool { return strings.HasPrefix(setting, "BURSAR_METRICS_ADDR=") })
		i.Begin(t)
	}
	for _, i := range s.instances {
		harness.Until(t, i.API+" is ready", i.IsReady)
	}

	files, err := filepath.Glob("../../internal/store/migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	if err := s.database.QueryRow(`SELECT COUNT(*) FROM schema_migrations`).Scan(&applied); err != nil || applied != len(files) {
		t.Errorf("%d migrations were applied (%v), want %d", applied, err, len(files))
	}
	keys, sandboxes := map[string]int{}, map[string]int{}
	records := 0
	for _, i := range s.instances {
		_, jwks, err := harness.Send("GET", i.API+"/.well-known/jwks.json", "", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		keys[string(jwks)]++
		sandboxes[sandboxAddress(t, i)]++
		if _, err := os.Stat(filepath.Join(i.DataDir(), "sandbox.db")); err == nil {
			records++
		}
		if _, err := os.Stat(filepath.Join(i.DataDir(), "keys.json")); err == nil {
			t.Errorf("%s has a key set of its own", i.API)
		}
	}
	if len(keys) != 1 || len(sandboxes) != 1 || records != 1 {
		t.Errorf("%d key sets, %d sandboxes in %d files; want one of each", len(keys), len(sandboxes), records)
	}
	s.open(t) // a token of any instance, an account encrypted by any instance, for all
	for _, i := range s.instances {
		i.Stop(t)
	}
}

// Users sign out, refresh, change or lose their access on one instance, and another instance knows it at once.
func TestInstances_SeeEachOthersChanges(t *testing.T) {
	s := shopOnPostgres(t, 2)
	for _, i := range s.instances {
		i.Environ = append(i.Environ, "BURSAR_LOGIN_THROTTLE=on", "BURSAR_REFRESH_REUSE_GRACE=1h")
	}
	s.start(t)
	s.open(t)
	here, there := s.instances[0], s.instances[1]
	wantStatus := func(t *testing.T, i *harness.Instance, token, path string, want int) {
		t.Helper()
		if status, answer, err := harness.Send("GET", i.API+path, token, "", nil); err != nil || status != want {
			t.Errorf("GET %s was answered with %d (%v): %s; want %d", path, status, err, answer, want)
		}
	}
	register := func(t *testing.T, name string) session {
		t.Helper()
		var in session
		here.Call(t, "POST", "/api/auth/register", "", fmt.Sprintf(
			`{"name":"Kabir Shah","email":"%s@example.com","password":"monsoon-market","role":"seller"}`, name), &in)
		wantStatus(t, there, in.Token, "/api/payouts/balance", http.StatusOK)
		return in
	}
	access := func(t *testing.T, user, role string, suspended bool) {
		t.Helper()
		here.Call(t, "POST", "/api/admin/users/"+user+"/access", s.admin(t).Token, fmt.Sprintf(`{"role":%q,"suspended":%t}`, role, suspended), nil)
	}

	t.Run("Logout", func(t *testing.T) {
		in := register(t, "logout")
		here.Call(t, "POST", "/api/auth/logout", in.Token, "", nil)
		wantStatus(t, there, in.Token, "/api/auth/me", http.StatusUnauthorized)
	})
	t.Run("Suspension", func(t *testing.T) {
		in := register(t, "suspended")
		access(t, in.User.ID, "seller", true)
		wantStatus(t, there, in.Token, "/api/auth/me", http.StatusUnauthorized)
	})
	t.Run("RoleChange", func(t *testing.T) {
		in := register(t, "demoted")
		access(t, in.User.ID, "buyer", false)
		wantStatus(t, there, in.Token, "/api/payouts/balance", http.StatusForbidden)
	})
	login := func(t *testing.T, i *harness.Instance, name, password string) session {
		t.Helper()
		var in session
		i.Call(t, "POST", "/api/auth/login", "", fmt.Sprintf(`{"email":"%s@example.com","password":%q}`, name, password), &in)
		return in
	}
	t.Run("EndOfASession", func(t *testing.T) {
		in := register(t, "two-places")
		other := login(t, there, "two-places", "monsoon-market")
		var listed struct {
			Sessions []struct {
				ID      string
				Current bool
			}
		}
		here.Call(t, "GET", "/api/auth/sessions", in.Token, "", &listed)
		if len(listed.Sessions) != 2 || listed.Sessions[0].Current || !listed.Sessions[1].Current {
			t.Fatalf("sessions %+v, want the current one and one after it", listed.Sessions)
		}
		here.Call(t, "DELETE", "/api/auth/sessions/"+listed.Sessions[0].ID, in.Token, "", nil)
		wantStatus(t, there, other.Token, "/api/auth/me", http.StatusUnauthorized)
		other = login(t, there, "two-places", "monsoon-market")
		here.Call(t, "DELETE", "/api/auth/sessions", in.Token, "", nil)
		wantStatus(t, there, other.Token, "/api/auth/me", http.StatusUnauthorized)
		wantStatus(t, there, in.Token, "/api/auth/me", http.StatusOK)
	})
	t.Run("Deletion", func(t *testing.T) {
		in := register(t, "deleted")
		other := login(t, there, "deleted", "monsoon-market")
		here.Call(t, "DELETE", "/api/auth/me", in.Token, `{"password":"monsoon-market"}`, nil)
		wantStatus(t, there, other.Token, "/api/auth/me", http.StatusUnauthorized)
		if again := register(t, "deleted"); again.User.ID == in.User.ID {
			t.Error("the address stands for the deleted user")
		}
		if export, err := here.Command("user", "export").Output(); err != nil || strings.Contains(string(export), "deleted usr_") {
			t.Errorf("the export of users has the deleted one (%v): %s", err, export)
		}
	})
	t.Run("PasswordChange", func(t *testing.T) {
		in := register(t, "changed")
		other := login(t, there, "changed", "monsoon-market")
		here.Call(t, "POST", "/api/auth/password/change", in.Token, `{"currentPassword":"monsoon-market","newPassword":"another-market"}`, nil)
		wantStatus(t, there, other.Token, "/api/auth/me", http.StatusUnauthorized)
		wantStatus(t, there, in.Token, "/api/auth/me", http.StatusOK)
		login(t, there, "changed", "another-market")
		harness.Until(t, "the owner got a mail about the new password", func() bool {
			mails, err := filepath.Glob(filepath.Join(here.DataDir(), "outbox", "*.eml"))
			if err != nil {
				t.Fatal(err)
			}
			more, err := filepath.Glob(filepath.Join(there.DataDir(), "outbox", "*.eml"))
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(append(mails, more...), func(path string) bool {
				text := readText(t, path)
				return strings.Contains(text, "changed@example.com") && strings.Contains(text, "Subject: Your password was changed")
			})
		})
	})
	t.Run("Refresh", func(t *testing.T) {
		in := register(t, "refreshed")
		body := fmt.Sprintf(`{"refreshToken":%q}`, in.RefreshToken)
		var first, again session
		here.Call(t, "POST", "/api/auth/refresh", "", body, &first)
		there.Call(t, "POST", "/api/auth/refresh", "", body, &again)
		if first.RefreshToken != again.RefreshToken {
			t.Errorf("within the grace one token has two successors: %s and %s", first.RefreshToken, again.RefreshToken)
		}
	})
	t.Run("IdempotencyKeys", func(t *testing.T) { sameKeyEverywhere(t, s) })
	t.Run("Throttle", func(t *testing.T) { oneThrottle(t, s) })
}

// sameKeyEverywhere asks for the same payout on all instances at once, and then for another under its key.
func sameKeyEverywhere(t *testing.T, s *shop) {
	t.Helper()
	seller := s.sellers[0]
	key := http.Header{"Idempotency-Key": {"one"}}
	var mu sync.Mutex
	ids := map[string]int{}
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			i := s.instances[n%len(s.instances)]
			for range 100 {
				status, answer, err := harness.Send("POST", i.API+"/api/payouts/request", seller.token, `{"amount":700}`, key)
				var made struct{ PayoutID string }
				if err == nil && status == http.StatusCreated && harness.ReadData(answer, &made) == nil {
					mu.Lock()
					ids[made.PayoutID]++
					mu.Unlock()
					return
				}
				if err != nil || status != http.StatusConflict { // which says that it is under way
					t.Errorf("answered with %d (%v): %s", status, err, answer)
					return
				}
			}
		})
	}
	all.Wait()
	if len(ids) != 1 {
		t.Errorf("one key made %d payouts: %v", len(ids), ids)
	}
	for _, i := range s.instances {
		status, answer, err := harness.Send("POST", i.API+"/api/payouts/request", seller.token, `{"amount":701}`, key)
		if err != nil || status != http.StatusUnprocessableEntity {
			t.Errorf("another amount under the key was answered with %d (%v): %s", status, err, answer)
		}
	}
}

// oneThrottle guesses a password on all instances at once.
func oneThrottle(t *testing.T, s *shop) {
	t.Helper()
	const tries = 20 // that an address has
	var mu sync.Mutex
	answers := map[int]int{}
	var all sync.WaitGroup
	for n := range 3 * tries {
		all.Go(func() {
			status, _, err := harness.Send("POST", s.instances[n%len(s.instances)].API+"/api/auth/login", "",
				`{"email":"nobody@example.com","password":"not-this-one"}`, nil)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			answers[status]++
			mu.Unlock()
		})
	}
	all.Wait()
	if answers[http.StatusUnauthorized] != tries || answers[http.StatusTooManyRequests] != 2*tries {
		t.Errorf("%d tries were answered with %v, want %d let through", 3*tries, answers, tries)
	}
}

// The instance that runs the sandbox is stopped, or killed, while payouts are under way: another one takes the sandbox
// over, with all its records.
func TestSandbox_InstanceEnds_AnotherTakesOver(t *testing.T) {
	for name, end := range map[string]func(*harness.Instance, *testing.T){"Stopped": (*harness.Instance).Stop, "Killed": (*harness.Instance).Kill} {
		t.Run(name, func(t *testing.T) {
			s := shopOnPostgres(t, 2)
			s.start(t)
			s.open(t)
			second := s.instances[1]
			s.ask(t, 4, func() string { return second.API })
			harness.Until(t, "some are paid", func() bool { return s.count(t, s.sellers[0], "completed") > 2 })
			end(s.instances[0], t)
			s.instances = s.instances[1:]
			paid := s.count(t, s.sellers[0], "completed")
			harness.Until(t, "more are paid", func() bool { return s.count(t, s.sellers[0], "completed") > paid+2 })
			s.close(t)
			s.settle(t)
			s.check(t)
			second.Stop(t)
		})
	}
}

// A migration that a later version might bring is applied while one instance is under load, and another instance starts
// on the result.
func TestInstances_NewerSchema_KeepServing(t *testing.T) {
	s := shopOnPostgres(t, 2)
	before, after := s.instances[0], s.instances[1]
	before.Start(t)
	s.instances = []*harness.Instance{before}
	s.open(t)
	s.ask(t, 4, func() string { return before.API })
	more := func() {
		t.Helper()
		paid := s.count(t, s.sellers[0], "completed")
		harness.Until(t, "more are paid", func() bool { return s.count(t, s.sellers[0], "completed") > paid+2 })
	}
	more()
	if _, err := s.database.Exec(`BEGIN;
		ALTER TABLE payouts ADD COLUMN batch TEXT;
		ALTER TABLE users ADD COLUMN phone TEXT;
		CREATE TABLE batches (id TEXT PRIMARY KEY, created_at BIGINT NOT NULL);
		CREATE INDEX payouts_by_batch ON payouts (batch) WHERE batch IS NOT NULL;
		INSERT INTO schema_migrations (name, checksum, applied_at) VALUES ('9999_batches.sql', 'of a later version', 0);
		COMMIT`); err != nil {
		t.Fatal(err)
	}
	more()
	after.Start(t)
	s.ask(t, 4, func() string { return after.API })
	more()
	s.instances = []*harness.Instance{before, after}
	more()
	s.close(t)
	if n := s.unanswered.Load(); n > 0 {
		t.Errorf("%d requests were not answered", n)
	}
	s.settle(t)
	s.check(t)
}

// session is what a sign-in is answered with.
type session struct {
	User                struct{ ID string }
	Token, RefreshToken string
}

// admin is a new admin's session.
func (s *shop) admin(t *testing.T) session {
	t.Helper()
	s.admins++
	email := fmt.Sprintf("admin%d@example.com", s.admins)
	create := s.any().Command("user", "create", "--name", "Priya Menon", "--email", email, "--role", "admin", "--password-stdin")
	create.Stdin = strings.NewReader("monsoon-market\n")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var in session
	s.any().Call(t, "POST", "/api/auth/login", "", fmt.Sprintf(`{"email":%q,"password":"monsoon-market"}`, email), &in)
	return in
}
