package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
)

func TestNotes(t *testing.T) {
	w := newFixture(t)
	ada, grace := w.admin("Ada"), w.admin("Grace")
	user := w.register().User.ID
	add := func(by decision.By, text string, wantCreated bool) auth.Note {
		t.Helper()
		by.Note = text
		n, created, err := w.AddNote(t.Context(), by, user)
		if err != nil || created != wantCreated {
			t.Fatalf("%q: %+v, created %t, %v", text, n, created, err)
		}
		return n
	}
	if notes, err := w.Notes(t.Context(), user); err != nil || len(notes) != 0 {
		t.Errorf("before the first there are %+v, %v", notes, err)
	}
	first := add(ada, "Called.\nA new account follows.", true)
	if first.Admin != ada.Admin || first.Text != "Called.\nA new account follows." || !first.At.Equal(w.clock.Now()) || first.ID == "" {
		t.Errorf("the first is %+v", first)
	}
	w.clock.advance(time.Hour)
	second := add(grace, first.Text, true) // another admin's
	if again := add(ada, first.Text, false); again != first {
		t.Errorf("the same again is %+v, want %+v", again, first)
	}
	notes, err := w.Notes(t.Context(), user)
	if err != nil || len(notes) != 2 || notes[0] != second || notes[1] != first {
		t.Errorf("listed are %+v, %v", notes, err)
	}

	for name, by := range map[string]decision.By{"none": {Admin: ada.Admin, Note: " \n"}, "long": {Admin: ada.Admin, Note: strings.Repeat("x", 1001)}} {
		if _, _, err := w.AddNote(t.Context(), by, user); fault.From(err) == nil || fault.From(err).Details["note"] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err = w.AddNote(t.Context(), ada, "usr_nobody")
	wantErr(t, err, auth.ErrUserNotFound)

	events, err := w.SecurityEvents(t.Context(), user, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Action == decision.NoteUser {
			t.Errorf("the user is shown %+v", e)
		}
	}
	if entries, err := w.db.Entries(t.Context(), user, 0, 100); err != nil || strings.Contains(fmt.Sprint(entries), "Called") {
		t.Errorf("the user's journal has %+v, %v", entries, err)
	}
}

// TestNotes_ClickedTwice adds one note at the same time from many callers.
func TestNotes_ClickedTwice(t *testing.T) {
	w := newFixture(t)
	ada := w.admin("Ada")
	user := w.register().User.ID
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, _, err := w.AddNote(t.Context(), ada, user); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if notes, err := w.Notes(t.Context(), user); err != nil || len(notes) != 1 {
		t.Errorf("there are %+v, %v", notes, err)
	}
}

func TestNotes_HaveALimit(t *testing.T) {
	w := newFixture(t)
	by := w.admin("Ada")
	user := w.register().User.ID
	for i := range auth.MaxNotes {
		by.Note = fmt.Sprint("Note ", i)
		if _, _, err := w.AddNote(t.Context(), by, user); err != nil {
			t.Fatal(err)
		}
	}
	if _, created, err := w.AddNote(t.Context(), by, user); created || err != nil {
		t.Errorf("the last one again: %t, %v", created, err)
	}
	by.Note = "One more"
	_, _, err := w.AddNote(t.Context(), by, user)
	wantErr(t, err, auth.ErrTooManyNotes)
}
