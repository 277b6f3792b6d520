package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

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
