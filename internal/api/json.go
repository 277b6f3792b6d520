package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"bursar/internal/auth"
	"bursar/internal/money"
)

// success is the envelope of what went well.
type success[Data any] struct {
	Success bool   `json:"success"`
	Message string `json:"message,omitempty"`
	Data    Data   `json:"data,omitzero"`
}

// failure is the envelope of what did not.
type failure struct {
	Success bool              `json:"success"`
	Error   string            `json:"error"`
	Code    string            `json:"code"`
	Details map[string]string `json:"details,omitempty"`
}

// request is what an endpoint asks for: it takes its parts from the input, which collects problems.
type request[Req any] interface {
	*Req
	read(in *input)
}

// reply is what an endpoint answers. The zero status is 200.
type reply[Data any] struct {
	status  int
	message string
	data    Data
	// replayed says that this is the answer to an earlier request under the same key.
	replayed bool
	// endCookie takes the sign-in cookie away.
	endCookie bool
	// device is set where the user's account knows the browser from now on.
	device deviceCookie
}

// deviceCookie is the cookie by which a user's account knows a browser.
type deviceCookie struct{ user, token string }

func (a *api) setDevice(w http.ResponseWriter, r *http.Request, d deviceCookie) {
	if d.token == "" {
		return
	}
	for _, cookie := range a.cookies.Device(r, d.user, d.token, int(auth.DeviceLife/time.Second)) {
		http.SetCookie(w, cookie)
	}
}

// none is the request of an endpoint that reads nothing, and the data of an answer without any.
type none struct{}

func (*none) read(*input) {}

// admissionHolds is for how long a caller who was let in counts as such. A body can be held back until its
// sender is signed out, suspended, or another user.
const admissionHolds = 100 * time.Millisecond

// handle makes a handler of one typed call: it finds the caller, reads the request, calls, and writes
// the envelope. A caller without access learns nothing about the request that they sent.
func handle[Req, Data any, P request[Req]](
	a *api, admit gate, call func(context.Context, caller, Req) (reply[Data], error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := a.o.Now()
		who, err := admit(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		var req Req
		in := input{api: a, w: w, r: r}
		P(&req).read(&in)
		if err := in.problem(); err != nil {
			a.fail(w, r, err)
			return
		}
		if a.o.Now().Sub(began) > admissionHolds {
			if who, err = admit(r); err != nil {
				a.fail(w, r, err)
				return
			}
		}
		answer, err := call(r.Context(), who, req)
		if answer.replayed {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if answer.endCookie {
			http.SetCookie(w, a.cookies.SignIn("", -1))
		}
		a.setDevice(w, r, answer.device)
		if answer.status == 0 {
			answer.status = http.StatusOK
		}
		a.write(w, r, answer.status, success[Data]{Success: true, Message: answer.message, Data: answer.data})
	}
}

// write answers with a JSON body.
func (a *api) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	text, err := encode(body)
	if err != nil {
		a.fail(w, r, fmt.Errorf("encode an answer: %w", err))
		return
	}
	writeBytes(w, status, "application/json", text)
}

// encode writes JSON as people would: no page will ever hold it, so < and & stay what they are.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return text.Bytes(), err
}

// writeBytes answers with a body that is ready. That the client may be gone is no error of ours.
func writeBytes(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON, or a page of our own
}

// amount writes money as the JSON number that it is, digit by digit.
func (a *api) amount(m money.Amount) json.Number { return json.Number(a.o.Currency.Format(m)) }

// stamp is how answers write a time: RFC 3339 in UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// orNull is text that is null while there is none.
type orNull string

// MarshalJSON writes null for none.
func (s orNull) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return encode(string(s))
}

// stampOrNull is a time that is null while not known.
func stampOrNull(t time.Time) orNull {
	if t.IsZero() {
		return ""
	}
	return orNull(stamp(t))
}

// lifetime writes a duration the way the interface does: whole days are "7d".
func lifetime(d time.Duration) string {
	if day := 24 * time.Hour; d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}
