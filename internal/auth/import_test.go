package auth_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/passwordhash"
)

// add imports lines as one batch, and numbers them from 1.
func (w *fixture) add(o auth.ImportOptions, lines ...auth.ImportLine) []auth.ImportResult {
	w.t.Helper()
	for n := range lines {
		lines[n].Number = n + 1
	}
	results, err := w.NewImport(byOperator, o).Add(w.t.Context(), lines)
	if err != nil {
		w.t.Fatal(err)
	}
	return results
}

// said is an outcome and the fields at fault.
func said(r auth.ImportResult) string {
	return strings.TrimSpace(string(r.Outcome) + " " + strings.Join(slices.Sorted(maps.Keys(r.Problems)), " "))
}

func wantSaid(t *testing.T, results []auth.ImportResult, want ...string) {
	t.Helper()
	var got []string
	for _, r := range results {
		got = append(got, said(r))
	}
	if !slices.Equal(got, want) {
		t.Errorf("outcomes\n%q, want\n%q: %+v", got, want, results)
	}
}

const bcrypted = "$2b$04$.M34ielraXQlhFwt..riKOV6CUOO423yCTlgC.PZjEkboB9/thLDK"

func TestImport_bad_lines(t *testing.T) {
	w := newFixture(t)
	w.register()
	long := strings.Repeat("x", 600)
	results := w.add(auth.ImportOptions{},
		auth.ImportLine{ExternalID: "1", Email: "bela@example.com", Name: "Bela Shah", Role: auth.Seller, PasswordHash: bcrypted},
		auth.ImportLine{},
		auth.ImportLine{ExternalID: "has space", Email: "c@example.com", Name: "Chitra"},
		auth.ImportLine{ExternalID: strings.Repeat("x", 201), Email: "c@example.com", Name: "Chitra"},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", Role: auth.Admin},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", Role: "king"},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", PasswordHash: "5f4dcc3b5aa765d61d8327deb882cf99"},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", PasswordHash: "$argon2id$v=19$m=1048576,t=4,p=1$c2FsdHNhbHQ$a2V5a2V5a2V5a2V5a2V5aw"},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", CreatedAt: w.clock.Now().Add(time.Hour)},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", CreatedAt: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)},
		auth.ImportLine{Email: "c@example.com", Name: "Chitra", Profile: &auth.Profile{Bio: long, Avatar: "http://x"}},
		auth.ImportLine{ExternalID: "9", Email: email, Name: "Asha", Role: auth.Seller}, // who registered
		auth.ImportLine{Email: "c@example.com", Name: "Chitra"},
	)
	wantSaid(t, results, "created", "failed email name", "failed externalId", "failed externalId", "failed role", "failed role",
		"failed passwordHash", "failed passwordHash", "failed createdAt", "failed createdAt", "failed profile", "failed externalId", "created")
	if p := results[7].Problems["passwordHash"]; !strings.Contains(p, "costs too much") {
		t.Errorf("a hash that costs too much: %s", p)
	}
	if p := results[10].Problems["profile"]; !strings.Contains(p, "avatar must") || !strings.Contains(p, "bio must") {
		t.Errorf("a bad profile: %s", p)
	}
	wantSaid(t, w.add(auth.ImportOptions{AllowAdmins: true}, auth.ImportLine{Email: "d@example.com", Name: "Divya", Role: auth.Admin}), "created")
	w.wantDecisions("platform", "asha: import_users: Imported 1 users of lines 1 to 1. Ticket 812.", "asha: import_users: Imported 2 users of lines 1 to 13. Ticket 812.")
}

func TestImport_again(t *testing.T) {
	w := newFixture(t)
	line := auth.ImportLine{
		ExternalID: "1", Email: "Bela@example.com", Name: "Bela Shah", Role: auth.Seller, Verified: true, PasswordHash: bcrypted,
		CreatedAt: time.Date(2024, 5, 1, 10, 0, 0, 123456789, time.UTC), Profile: &auth.Profile{Bio: "Pots"},
	}
	first := w.add(auth.ImportOptions{}, line)
	wantSaid(t, first, "created")
	u, err := w.FindUser(t.Context(), "ext:1")
	if err != nil || u.Name != line.Name || u.Email != line.Email || u.Role != line.Role || !u.Verified || u.PasswordHash != bcrypted ||
		u.Profile != *line.Profile || !u.CreatedAt.Equal(line.CreatedAt.Truncate(time.Microsecond)) || u.ID != first[0].UserID {
		t.Fatalf("%+v, %v", u, err)
	}

	// What the user does later makes the line no other one.
	if _, err := w.login("bela@example.com", passwordOf(t, bcrypted), home); err != nil {
		t.Fatal(err)
	}
	err = w.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.SetProfile(t.Context(), u.ID, auth.ProfileChange{Name: new("Bela Shah-Rao"), Bio: new("Pots and pans")})
	})
	if err != nil {
		t.Fatal(err)
	}
	again := w.add(auth.ImportOptions{}, line)
	wantSaid(t, again, "unchanged")
	if again[0].UserID != u.ID {
		t.Errorf("unchanged is %s, want %s", again[0].UserID, u.ID)
	}

	change := func(c func(*auth.ImportLine)) auth.ImportLine {
		other := line
		c(&other)
		return other
	}
	wantSaid(t, w.add(auth.ImportOptions{},
		change(func(l *auth.ImportLine) { l.Name = "Bela Shah-Rao" }), // as it is now
		change(func(l *auth.ImportLine) { l.PasswordHash, l.Profile, l.CreatedAt = "", nil, time.Time{} }),
		change(func(l *auth.ImportLine) { l.Name = "Another" }),
		change(func(l *auth.ImportLine) { l.Email = "other@example.com" }),
		change(func(l *auth.ImportLine) { l.Role = "" }),
		change(func(l *auth.ImportLine) { l.Verified, l.Suspended = false, true }),
		change(func(l *auth.ImportLine) { l.PasswordHash = strings.Replace(bcrypted, "M34", "M35", 1) }),
		change(func(l *auth.ImportLine) { l.CreatedAt = l.CreatedAt.Add(time.Second) }),
		change(func(l *auth.ImportLine) { l.Profile = &auth.Profile{Bio: "Pans"} }),
		change(func(l *auth.ImportLine) { l.ExternalID = "2" }),
		change(func(l *auth.ImportLine) { l.ExternalID = "" }), // the e-mail address tells who it is
	), "unchanged", "unchanged", "failed name", "failed email", "failed role", "failed emailVerified suspended", "failed passwordHash",
		"failed createdAt", "failed profile", "failed externalId", "unchanged")
	w.wantDecisions("platform", "asha: import_users: Imported 1 users of lines 1 to 1. Ticket 812.")
}

// passwordOf finds the password of a hash among the vectors.
func passwordOf(t *testing.T, hash string) string {
	t.Helper()
	for _, v := range vectors(t) {
		if v.hash == hash {
			return v.password
		}
	}
	t.Fatalf("nothing is known of %s", hash)
	return ""
}

// vector is a hash that another program made, of a low cost.
type vector struct{ format, password, hash string }

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../passwordhash/testdata/cheap.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		v := vector{format: fields[0], hash: fields[3]}
		if err := json.Unmarshal([]byte(fields[2]), &v.password); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// Each user of each format signs in with the password that they had, and has a hash of ours from then on.
func TestImport_sign_in(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	all := vectors(t)
	var lines []auth.ImportLine
	for n, v := range all {
		lines = append(lines, auth.ImportLine{Email: fmt.Sprintf("user%d@example.com", n), Name: "A user", PasswordHash: v.hash})
	}
	for _, r := range w.add(auth.ImportOptions{}, lines...) {
		if r.Outcome != auth.ImportCreated {
			t.Fatalf("%+v", r)
		}
	}
	for n, v := range all {
		_, err := w.login(lines[n].Email, "y"+v.password[1:], home)
		wantErr(t, err, auth.ErrCredentials)
		for range 2 {
			if _, err := w.login(lines[n].Email, v.password, home); err != nil {
				t.Fatalf("%s %s: %v", v.format, v.hash, err)
			}
			u, err := w.FindUser(t.Context(), lines[n].Email)
			if err != nil || !strings.HasPrefix(u.PasswordHash, "$argon2id$v=19$m=8,t=1,p=1$") || auth.PasswordFormat(u) != "argon2id" {
				t.Fatalf("%s has the hash %s, %v", v.format, u.PasswordHash, err)
			}
		}
		_, err = w.login(lines[n].Email, v.password+"x", home)
		wantErr(t, err, auth.ErrCredentials)
	}
}

// Of many first sign-ins at once, one replaces the hash, and all succeed.
func TestImport_sign_ins_at_once(t *testing.T) {
	w := newFixture(t, func(o *auth.Options) { o.Throttle = false })
	wantSaid(t, w.add(auth.ImportOptions{}, auth.ImportLine{Email: "bela@example.com", Name: "Bela", PasswordHash: bcrypted}), "created")
	password := passwordOf(t, bcrypted)
	errs := make([]error, 12)
	var all sync.WaitGroup
	for n := range errs {
		all.Go(func() { _, errs[n] = w.login("bela@example.com", password, home) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Errorf("a sign-in with the right password: %v", err)
		}
	}
}

func TestImport_dry_run(t *testing.T) {
	w := newFixture(t)
	lines := []auth.ImportLine{
		{ExternalID: "1", Email: "bela@example.com", Name: "Bela Shah"},
		{ExternalID: "1", Email: "bela@example.com", Name: "Bela Shah"},
		{ExternalID: "1", Email: "bela2@example.com", Name: "Bela Shah"},
		{ExternalID: "2", Email: "BELA@example.com", Name: "Bela Shah"},
		{Email: "x", Name: "Xu Li"},
		{Email: "chitra@example.com", Name: "Chitra"},
	}
	want := []string{"created", "unchanged", "failed externalId", "failed email", "failed email", "created"}
	results := w.add(auth.ImportOptions{DryRun: true}, lines...)
	wantSaid(t, results, want...)
	if p := results[2].Problems["externalId"]; !strings.Contains(p, "line 1") {
		t.Errorf("the line that it contradicts is not named: %s", p)
	}
	if _, err := w.FindUser(t.Context(), "ext:1"); err == nil {
		t.Error("a dry run made a user")
	}
	w.wantDecisions("platform")
	// What it said is what happens, even if not under the same field.
	for n, r := range w.add(auth.ImportOptions{}, lines...) {
		if outcome, _, _ := strings.Cut(want[n], " "); string(r.Outcome) != outcome {
			t.Errorf("line %d: %+v, want %s", n+1, r, want[n])
		}
	}
	for _, r := range w.add(auth.ImportOptions{DryRun: true}, lines[0], lines[5]) {
		if r.Outcome != auth.ImportUnchanged {
			t.Errorf("a dry run after the import: %+v", r)
		}
	}
}

// Runs of one file beside each other make each user once.
func TestImport_at_once(t *testing.T) {
	w := newFixture(t)
	var mu sync.Mutex
	outcomes := map[auth.ImportOutcome]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for batch := range 5 {
				var lines []auth.ImportLine
				for n := range 10 {
					who := fmt.Sprint(batch*10 + n)
					lines = append(lines, auth.ImportLine{Number: n, ExternalID: who, Email: who + "@example.com", Name: "A user"})
				}
				results, err := w.NewImport(byOperator, auth.ImportOptions{}).Add(t.Context(), lines)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, r := range results {
					outcomes[r.Outcome]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if outcomes[auth.ImportCreated] != 50 || outcomes[auth.ImportUnchanged] != 150 {
		t.Errorf("outcomes %v, want 50 created and 150 unchanged", outcomes)
	}
}

// The decoy is of the costliest hash, and says nothing of it.
func TestImport_keeps_decoy(t *testing.T) {
	w := newFixture(t)
	decoy := func() string {
		t.Helper()
		decoy, err := w.db.PasswordDecoy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return decoy
	}
	in := w.register()
	own, _, err := w.User(t.Context(), in.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.add(auth.ImportOptions{}, auth.ImportLine{Email: "a@example.com", Name: "Our own", PasswordHash: own.PasswordHash})
	if decoy() != "" {
		t.Errorf("our own hash has the decoy %s", decoy())
	}
	costly := strings.Replace(bcrypted, "$04$", "$09$", 1)
	w.add(auth.ImportOptions{DryRun: true}, auth.ImportLine{Email: "b@example.com", Name: "Costly", PasswordHash: costly})
	if decoy() != "" {
		t.Errorf("a dry run left the decoy %s", decoy())
	}
	w.add(auth.ImportOptions{}, auth.ImportLine{Email: "b@example.com", Name: "Costly", PasswordHash: costly})
	w.add(auth.ImportOptions{}, auth.ImportLine{Email: "c@example.com", Name: "Cheap", PasswordHash: bcrypted})
	hash, err := passwordhash.Parse(decoy())
	if err != nil || hash.Format != "bcrypt" || !strings.HasPrefix(decoy(), "$2b$09$...") {
		t.Errorf("the decoy is %s, %v", decoy(), err)
	}
}
