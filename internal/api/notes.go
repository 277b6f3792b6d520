package api

import (
	"context"

	"bursar/internal/auth"
	"bursar/internal/decision"
)

type noteRequest struct{ seller, note string }

func (req *noteRequest) read(in *input) {
	req.seller = in.sellerID()
	req.note = in.text("note", checkReason)
}

type noteJSON struct {
	NoteID    string `json:"noteId"`
	Note      string `json:"note"`
	CreatedBy string `json:"createdBy"`
	CreatedAt string `json:"createdAt"`
}

func noteOf(n auth.Note) noteJSON { return noteJSON{n.ID, n.Text, n.Admin, stamp(n.At)} }

func (a *api) addNote(ctx context.Context, who caller, req noteRequest) (reply[noteJSON], error) {
	n, created, err := a.o.Auth.AddNote(ctx, decision.By{Admin: who.UserID, Note: req.note}, req.seller)
	return reply[noteJSON]{status: createdOr200(created), data: noteOf(n)}, err
}

type notesRequest struct{ seller string }

func (req *notesRequest) read(in *input) { req.seller = in.sellerID() }

type notesJSON struct {
	Notes []noteJSON `json:"notes"`
}

func (a *api) notesOf(ctx context.Context, _ caller, req notesRequest) (reply[notesJSON], error) {
	notes, err := a.o.Auth.Notes(ctx, req.seller)
	return answer(notesJSON{mapped(notes, noteOf)}, err)
}
