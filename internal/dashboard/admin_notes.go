package dashboard

import (
	"context"

	"bursar/internal/auth"
)

// noteRow is a note about a user as their page lists it.
type noteRow struct {
	auth.Note
	AdminName string
}

// AdminPath is the page of who wrote it.
func (r noteRow) AdminPath() string { return personAddress(r.Admin) }

// noteForm asks for a note about a user.
func noteForm(user string) *form {
	return &form{Action: personAddress(user) + "/notes", Submit: "Add note", Fields: []field{{
		Name: "note", Label: "New note", Type: "textarea", Max: 1000,
		Hint: "For the team. The user does not see it. It is stored permanently with your name.",
	}}}
}

// notesShown is how many of the newest notes about a user are shown.
const notesShown = 10

// noteRows lists the newest notes about a user with the names of the admins, and counts the others.
func (d *dashboard) noteRows(ctx context.Context, user string) ([]noteRow, int64, error) {
	notes, err := d.o.Auth.Notes(ctx, user)
	if err != nil {
		return nil, 0, err
	}
	older := max(0, len(notes)-notesShown)
	notes = notes[:len(notes)-older]
	admins := make([]string, 0, len(notes))
	for _, n := range notes {
		admins = append(admins, n.Admin)
	}
	names, err := d.people(ctx, admins...)
	rows := make([]noteRow, 0, len(notes))
	for _, n := range notes {
		rows = append(rows, noteRow{n, names[n.Admin]})
	}
	return rows, int64(older), err
}

// adminAddNote adds a note about a user.
func (d *dashboard) adminAddNote(ctx context.Context, v *pageRequest) (page, error) {
	p, shown, err := d.personPage(ctx, v)
	if err != nil {
		return page{}, err
	}
	if _, _, err := d.o.Auth.AddNote(ctx, byOf(v), shown.ID); err != nil {
		return d.again(ctx, p, shown.NoteForm.fill(v.form), err)
	}
	return goTo(shown.Path() + "#notes").saying("note-added"), nil
}
