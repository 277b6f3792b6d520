package auth_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
)

func TestSetAccess_RecordsDecision(t *testing.T) {
	w := newFixture(t)
	by := w.admin("Ada")
	in := w.register()
	if err := w.SetAccess(t.Context(), by, in.User.ID, auth.Buyer, true); err != nil {
		t.Fatal(err)
	}
	w.wantDead(in)
	wantErr(t, w.SetAccess(t.Context(), by, "usr_nobody", auth.Buyer, true), auth.ErrUserNotFound)
	long := decision.By{Admin: by.Admin, Note: strings.Repeat("x", 1001)}
	if f := fault.From(w.SetAccess(t.Context(), long, in.User.ID, auth.Seller, false)); f == nil || f.Details["note"] == "" {
		t.Errorf("a note without end: %v", f)
	}
	all, err := w.db.Decisions(t.Context(), "", 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("decisions %+v, %v; want one", all, err)
	}
	d := all[0]
	if d.Admin != by.Admin || d.Subject != in.User.ID || d.Action != decision.ChangeAccess || d.Note != "Now buyer, suspended. Ticket 812." {
		t.Errorf("decision %+v", d)
	}
	if !d.At.Equal(w.clock.Now()) {
		t.Errorf("decided at %v", d.At)
	}
}

// TestSetAccess_NoSellerAnyMore_EndsSessionsOfLinks makes a seller an admin whom a link of the marketplace signed in: nobody proved to be them.
func TestSetAccess_NoSellerAnyMore_EndsSessionsOfLinks(t *testing.T) {
	for _, role := range []auth.Role{auth.Admin, auth.Buyer} {
		t.Run(string(role), func(t *testing.T) {
			w := newFixture(t)
			by := w.admin("Ada")
			_, key := w.serviceKey("shop")
			in := w.openLink(key)
			wantErr(t, w.SetAccess(t.Context(), by, in.User.ID, role, false), nil)
			_, err := w.Authenticate(t.Context(), in.Token)
			wantErr(t, err, auth.ErrToken)
		})
	}
}

func TestSetAccess_KeepsLastAdmin(t *testing.T) {
	w := newFixture(t)
	ada := w.admin("Ada")
	grace := w.admin("Grace")
	change := func(by decision.By, of string, role auth.Role, suspended bool) error {
		return w.SetAccess(t.Context(), by, of, role, suspended)
	}
	if err := change(ada, grace.Admin, auth.Admin, true); err != nil { // a suspended admin is none
		t.Fatal(err)
	}
	wantErr(t, change(grace, ada.Admin, auth.Seller, false), auth.ErrLastAdmin)
	wantErr(t, change(ada, ada.Admin, auth.Admin, true), auth.ErrLastAdmin)
	if err := change(ada, grace.Admin, auth.Seller, true); err != nil { // who is no admin any more
		t.Errorf("the last admin can't change others: %v", err)
	}
	if err := change(ada, ada.Admin, auth.Admin, false); err != nil {
		t.Errorf("the last admin can't stay one: %v", err)
	}
	if err := change(ada, grace.Admin, auth.Admin, false); err != nil {
		t.Fatal(err)
	}
	if err := change(grace, ada.Admin, auth.Seller, false); err != nil {
		t.Errorf("one of two can't go: %v", err)
	}
}

func TestSetAccess_MutualDemotion_KeepsOneAdmin(t *testing.T) {
	for range 5 {
		w := newFixture(t)
		ada, grace := w.admin("Ada"), w.admin("Grace")
		var both sync.WaitGroup
		errs := make([]error, 2)
		both.Go(func() { errs[0] = w.SetAccess(t.Context(), ada, grace.Admin, auth.Buyer, false) })
		both.Go(func() { errs[1] = w.SetAccess(t.Context(), grace, ada.Admin, auth.Buyer, false) })
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), auth.ErrLastAdmin) {
			t.Fatalf("errors %v, want one to be the last admin", errs)
		}
	}
}

func TestUsersAreFound(t *testing.T) {
	w := newFixture(t)
	asha := w.register().User
	for _, address := range []string{"ash@example.com", "Ashok@Example.com", "ashe_s@example.com", "bela@example.com"} {
		if _, err := w.Register(t.Context(), auth.Registration{Name: "Somebody", Email: address, Password: password}); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		query string
		limit int
		want  string
	}{
		"an id":                   {asha.ID, 10, "asha@example.com"},
		"an id nobody has":        {"usr_000000000000000000000000", 10, ""},
		"an address":              {"asha@example.com", 10, "asha@example.com"},
		"a beginning":             {"ash", 10, "ash@example.com asha@example.com ashe_s@example.com Ashok@Example.com"},
		"in another case":         {" ASHO ", 10, "Ashok@Example.com"},
		"up to a limit":           {"ash", 2, "ash@example.com asha@example.com"},
		"a limit below one":       {"ash", -1, "ash@example.com"},
		"everybody":               {"", 2, "ash@example.com asha@example.com"},
		"the middle of one":       {"sha@", 10, ""},
		"a pattern":               {"ash%", 10, ""},
		"a pattern for one":       {"ash_", 10, ""},
		"another script":          {"аsha", 10, ""},
		"what no address holds":   {"ash\x00", 10, ""},
		"longer than any address": {strings.Repeat("a", 300), 10, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			users, err := w.FindUsers(t.Context(), test.query, test.limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range users {
				got = append(got, u.Email)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("found %v, want %s", got, test.want)
			}
		})
	}
	found, _, err := w.User(t.Context(), asha.ID)
	if err != nil || found.Email != asha.Email {
		t.Errorf("user %+v, %v", found, err)
	}
	_, _, err = w.User(t.Context(), "usr_nobody")
	wantErr(t, err, auth.ErrUserNotFound)
}

func TestReplaceAccess_MovedMeanwhile(t *testing.T) {
	w := newFixture(t)
	user, grace := w.register().User, w.admin("Grace")
	seen := user.Access()
	wantErr(t, w.SetAccess(t.Context(), w.admin("Ada"), user.ID, auth.Buyer, true), nil)
	wantErr(t, w.ReplaceAccess(t.Context(), grace, user.ID, seen, auth.Access{Role: auth.Seller}), auth.ErrAccessMoved)
	if is := w.user().Access(); is != (auth.Access{Role: auth.Buyer, Suspended: true}) {
		t.Errorf("the access is %+v", is)
	}
	wantErr(t, w.ReplaceAccess(t.Context(), grace, user.ID, w.user().Access(), auth.Access{Role: auth.Seller}), nil)
	if is := w.user().Access(); is != (auth.Access{Role: auth.Seller}) {
		t.Errorf("the access is %+v", is)
	}
	if all, err := w.db.Decisions(t.Context(), user.ID, 10); err != nil || len(all) != 2 || all[0].Admin != grace.Admin {
		t.Errorf("decisions %+v, %v; want the two that were carried out", all, err)
	}
}
