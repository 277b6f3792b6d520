package sandbox

import (
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"bursar/internal/gateway/razorpayx"
	"bursar/internal/web"
)

const maxBody = 64 << 10

// refusal is an answer of the vendor's error shape.
type refusal struct {
	status  int
	problem razorpayx.Problem
}

func (r *refusal) Error() string { return r.problem.Description }

// invalid refuses a request because of a field.
func invalid(field, description string) *refusal {
	return &refusal{http.StatusBadRequest, razorpayx.Problem{
		Code: razorpayx.CodeBadRequest, Description: description, Source: "business",
		Step: "NA", Reason: "input_validation_failed", Field: razorpayx.Text(field),
	}}
}

// bare refuses a request in the way of the vendor's older errors, without a source and a reason.
func bare(status int, description string) *refusal {
	return &refusal{status, razorpayx.Problem{Code: razorpayx.CodeBadRequest, Description: description}}
}

var (
	errUnknownID      = bare(http.StatusBadRequest, "The id provided does not exist")
	errUnknownURL     = bare(http.StatusBadRequest, "The requested URL was not found on the server.")
	errAccountNumber  = bare(http.StatusBadRequest, "The RazorpayX Account number is invalid.")
	errUnauthorized   = &refusal{http.StatusUnauthorized, razorpayx.Problem{Code: razorpayx.CodeBadRequest, Description: "Authentication failed", Source: "business", Step: "NA", Reason: "authentication_failed"}}
	errThrottled      = bare(http.StatusTooManyRequests, "Throttling Error")
	errServer         = &refusal{http.StatusInternalServerError, razorpayx.Problem{Code: razorpayx.CodeServerError, Description: "We are facing some trouble completing your request at the moment. Please try again shortly.", Source: "internal", Step: "NA", Reason: "server_error"}}
	errOtherBody      = invalid(razorpayx.IdempotencyHeader, "Different request body sent for the same Idempotency Header.")
	errLowBalance     = &refusal{http.StatusBadRequest, razorpayx.Problem{Code: razorpayx.CodeBadRequest, Description: "Your account does not have enough balance to carry out the payout operation.", Source: "business", Step: "NA", Reason: "insufficient_funds"}}
	errNotCancellable = bare(http.StatusBadRequest, "Only queued payouts can be cancelled.")
)

// localOnly refuses callers from elsewhere: a page of another site that a browser on this machine shows,
// even where its name resolves to this machine (DNS rebinding), and clients of a public address.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !web.IsLoopback(r.Host):
			refuseControl(w, "The control API answers only at a loopback address, such as http://127.0.0.1:8081.")
		case isCrossOrigin(r):
			refuseControl(w, "The control API refuses requests that a browser makes for another site.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuseControl(w http.ResponseWriter, description string) {
	writeJSON(w, http.StatusForbidden, razorpayx.ErrorBody{Error: bare(http.StatusForbidden, description).problem})
}

// isCrossOrigin is [http.CrossOriginProtection]'s rule, for safe methods too: the control API tells account
// numbers' last digits and all payments.
func isCrossOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin, err := url.Parse(r.Header.Get("Origin"))
		return r.Header.Get("Origin") != "" && (err != nil || origin.Host != r.Host)
	default:
		return true
	}
}

func unknownURL(*http.Request) (struct{}, error) { return struct{}{}, errUnknownURL }

// answer makes an HTTP handler of a call.
func answer[T any](s *Sandbox, call func(*http.Request) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		result, err := call(r)
		var no *refusal
		switch {
		case err == nil:
			writeJSON(w, http.StatusOK, result)
		case errors.As(err, &no):
			writeJSON(w, no.status, razorpayx.ErrorBody{Error: no.problem})
		default:
			s.o.Logger.ErrorContext(r.Context(), "sandbox request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
			writeJSON(w, errServer.status, razorpayx.ErrorBody{Error: errServer.problem})
		}
	}
}

func writeJSON[T any](w http.ResponseWriter, status int, v T) {
	body, err := json.Marshal(v)
	if err != nil { // only of a type that can't be written at all, which the tests would show
		status, body = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller has gone
}

// authenticated lets in who has the API key.
func (s *Sandbox) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		sameID := subtle.ConstantTimeCompare([]byte(id), []byte(s.o.KeyID))
		sameSecret := subtle.ConstantTimeCompare([]byte(secret), []byte(s.o.KeySecret))
		if sameID&sameSecret != 1 {
			writeJSON(w, errUnauthorized.status, razorpayx.ErrorBody{Error: errUnauthorized.problem})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readBody reads a JSON body, and also gives its bytes.
func readBody[T any](r *http.Request) (T, []byte, error) {
	var v T
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return v, nil, bare(http.StatusBadRequest, "The request body could not be read.")
	}
	if len(body) > maxBody {
		return v, nil, bare(http.StatusRequestEntityTooLarge, "The request body is too large.")
	}
	err = json.Unmarshal(body, &v)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		return v, nil, invalid(mistyped.Field, fmt.Sprintf("The %s field is invalid.", mistyped.Field))
	case err != nil:
		return v, nil, bare(http.StatusBadRequest, "The request body is not valid JSON.")
	}
	return v, body, nil
}

// page is which part of a list is asked for.
type page struct{ count, skip int }

const defaultCount = 10

func readPage(r *http.Request) (page, error) {
	count, err := readInt(r, "count", defaultCount, 1, razorpayx.MaxPage)
	if err != nil {
		return page{}, err
	}
	skip, err := readInt(r, "skip", 0, 0, 1<<40)
	return page{int(count), int(skip)}, err
}

func readInt(r *http.Request, name string, absent, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid(name, fmt.Sprintf("The %s must be between %d and %d.", name, least, most))
	}
	return n, nil
}

// ours checks that a request is about our account.
func (s *Sandbox) ours(accountNumber string) error {
	switch accountNumber {
	case "":
		return invalid("account_number", "The account number field is required.")
	case s.o.AccountNumber:
		return nil
	default:
		return errAccountNumber
	}
}

// collect makes a collection of rows. They are shown only when all are read, because showing may read
// more, and a reader that waits for another must not hold one.
func collect[Row, Shown any](q queryer, query string, args []any, scan func(scanner) (Row, error), show func(Row) (Shown, error)) (razorpayx.Collection[Shown], error) {
	list := razorpayx.Collection[Shown]{Entity: "collection", Items: []Shown{}}
	var rows []Row
	err := q.each(query, func(row scanner) error {
		item, err := scan(row)
		rows = append(rows, item)
		return err
	}, args...)
	if err != nil {
		return list, err
	}
	for _, row := range rows {
		shown, err := show(row)
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, shown)
	}
	list.Count = len(list.Items)
	return list, nil
}

// asIs shows what needs no more reading.
func asIs[T any](v T) (T, error) { return v, nil }

// orUnknown turns "no such row" into the vendor's refusal.
func orUnknown[T any](v T, err error) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		err = errUnknownID
	}
	return v, err
}

// notesText is how notes are stored. The limited profile checks and then drops them.
func (s *Sandbox) notesText(n razorpayx.Notes) (string, error) {
	if len(n) > razorpayx.MaxNotes {
		return "", invalid("notes", "Number of fields in notes should be less than or equal to 15")
	}
	for _, value := range n {
		if len(value) > razorpayx.MaxNote {
			return "", invalid("notes", "The notes value may not be greater than 256 characters.")
		}
	}
	if s.o.Profile == Limited {
		n = nil
	}
	text, err := n.MarshalJSON()
	return string(text), err
}

func parseNotes(text string) razorpayx.Notes {
	var n razorpayx.Notes
	_ = n.UnmarshalJSON([]byte(text)) // never fails
	return n
}
