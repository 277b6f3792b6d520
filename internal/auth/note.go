package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// Note is what an admin noted about a user, for the team. It is an entry of the platform's journal, not of the user's: users
// read theirs in statements.
type Note struct {
	ID    string // the decision's
	Admin string // a user's id
	At    time.Time
	Text  string
}

// MaxNotes is how many notes there may be about one user.
const MaxNotes = 200

// ErrTooManyNotes means that there are [MaxNotes] about the user.
var ErrTooManyNotes = fault.New(fault.Refused, "too_many_notes", "There are 200 notes about this user, which is the most that Bursar keeps.")

// noteSubject is the name of a user's notes in the platform's journal.
func noteSubject(userID string) string { return NotePrefix + userID }

// NotePrefix begins the name of a user's notes in the platform's journal, before the id.
const NotePrefix = "note:"

// AddNote adds an admin's note about a user, and reports whether it is new: the same words of the same admin again are the
// note that is there. It fails with [ErrUserNotFound], [ErrTooManyNotes], [ledger.ErrTampered] or a fault that names the note.
func (s *Service) AddNote(ctx context.Context, by decision.By, userID string) (Note, bool, error) {
	if err := by.RequireNote(); err != nil {
		return Note{}, false, err
	}
	made := decision.New(by, decision.NoteUser, decision.Platform, noteSubject(userID), s.o.Now())
	var note Note
	var created bool
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		note, created = Note{ID: made.ID, Admin: by.Admin, At: made.At, Text: by.Note}, true
		_, found, err := tx.UserForUpdate(ctx, userID) // a second click waits here, and finds the first one's note
		if err != nil {
			return err
		}
		if !found {
			return ErrUserNotFound
		}
		entries, err := tx.EntriesAbout(ctx, decision.Platform, noteSubject(userID))
		if err != nil {
			return err
		}
		known, err := notesOf(entries)
		if err != nil {
			return err
		}
		same := func(n Note) bool { return n.Admin == by.Admin && n.Text == by.Note }
		if i := slices.IndexFunc(known, same); i >= 0 {
			note, created = known[i], false
			return nil
		}
		if len(known) >= MaxNotes {
			return ErrTooManyNotes
		}
		return ledger.RecordDecision(ctx, tx, made)
	})
	if err != nil {
		return Note{}, false, err
	}
	return note, created, nil
}

// Notes lists what admins noted about a user, newest first.
func (s *Service) Notes(ctx context.Context, userID string) ([]Note, error) {
	entries, err := s.o.Store.EntriesAboutBefore(ctx, decision.Platform, noteSubject(userID), 0, MaxNotes)
	if err != nil {
		return nil, err
	}
	return notesOf(entries)
}

// notesOf reads notes from their entries.
func notesOf(entries []ledger.Entry) ([]Note, error) {
	notes := make([]Note, 0, len(entries))
	for _, e := range entries {
		made, err := ledger.DecisionOf(e)
		if err != nil {
			return nil, err
		}
		notes = append(notes, Note{ID: made.ID, Admin: strings.TrimPrefix(e.Actor, ledger.ActorAdmin), At: e.At, Text: made.Note})
	}
	return notes, nil
}
