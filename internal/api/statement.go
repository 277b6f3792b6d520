package api

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"bursar/internal/auth"
	"bursar/internal/id"
	"bursar/internal/proof"
)

type statementRequest struct {
	seller   string
	from, to time.Time
	format   proof.Format
}

func (req *statementRequest) read(in *input) {
	from, _ := in.parameter("from")
	to, _ := in.parameter("to")
	var err error
	req.from, req.to, err = in.api.o.Statements.Period(from, to)
	in.noteError(err)
	req.format = in.format()
	if s, given := in.parameter("sellerId"); given {
		req.seller = s
		if !id.Valid(auth.UserIDPrefix, s) {
			in.noteInvalid("sellerId", "must be a user's id, such as registration returns")
		}
	}
}

// stretch is how long a client may take for the next part of a statement.
const stretch = 30 * time.Second

// statement answers with a file, which is written while it is read from the ledger: it may be long.
func (a *api) statement(w http.ResponseWriter, r *http.Request) {
	who, err := a.payoutRole(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	req, in := statementRequest{}, input{api: a, w: w, r: r}
	req.read(&in)
	if who.Role != auth.Admin {
		req.seller = who.UserID
	} else if req.seller == "" {
		in.noteInvalid("sellerId", "is required of admins")
	}
	if err := in.problem(); err != nil {
		a.fail(w, r, err)
		return
	}
	statement, err := a.o.Statements.Statement(r.Context(), req.seller, req.from, req.to)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	contentType, before, after := "text/csv; charset=utf-8", "", ""
	if req.format == proof.JSON {
		contentType, before, after = "application/json", `{"success":true,"data":`, "}\n"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Disposition", `attachment; filename="`+statement.FileName()+"."+string(req.format)+`"`)
	out := &patient{w: w, controller: http.NewResponseController(w)}
	_, err = io.WriteString(out, before)
	if err == nil && r.Method != http.MethodHead {
		err = statement.Write(out, req.format)
	}
	if err == nil {
		_, err = io.WriteString(out, after)
	}
	a.endFile(w, r, out, err)
}

// endFile sends what is left of a file, and reports whether the client has all of it. A failure before anything was sent is answered as any
// other.
func (a *api) endFile(w http.ResponseWriter, r *http.Request, out *patient, err error) bool {
	if err == nil {
		err = out.flush()
	}
	switch {
	case err == nil:
	case !out.begun:
		w.Header().Del("Content-Disposition")
		a.fail(w, r, err)
	default:
		a.o.Logger.WarnContext(r.Context(), "file aborted", slog.String("file", w.Header().Get("Content-Disposition")), slog.Any("error", err))
		panic(http.ErrAbortHandler) // the client must see that it has half a file
	}
	return err == nil
}

// patient gives the client its time for each part of a long answer, and not for the whole.
type patient struct {
	w          io.Writer
	controller *http.ResponseController
	part       bytes.Buffer
	// begun says that a part was sent, and the status with it.
	begun bool
}

const partSize = 64 << 10

func (p *patient) Write(b []byte) (int, error) {
	p.part.Write(b)
	if p.part.Len() < partSize {
		return len(b), nil
	}
	return len(b), p.flush()
}

func (p *patient) flush() error {
	err := p.controller.SetWriteDeadline(time.Now().Add(stretch)) // by the connection's clock
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	if err == nil {
		p.begun = true
		_, err = p.w.Write(p.part.Bytes())
	}
	p.part.Reset()
	return err
}

// checkpointKeys gives the public keys that ever signed a checkpoint, which statements are checked with.
func (a *api) checkpointKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := a.o.Statements.JWKS(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	writeBytes(w, http.StatusOK, "application/jwk-set+json", keys)
}
