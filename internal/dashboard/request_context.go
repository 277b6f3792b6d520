package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/payout"
)

// handler answers a visit. It changes nothing but through the services, and writes nothing.
type handler func(context.Context, *pageRequest) (page, error)

// pageRequest is one request, as far as a handler may know it.
type pageRequest struct {
	r *http.Request
	// who is zero for a visitor who is not signed in.
	who auth.Principal
	// form is what was posted; empty for a request that changes nothing.
	form url.Values
	// zone is the viewer's; zoneKnown says that the browser told it.
	zone      *time.Location
	zoneKnown bool
	// options are those of a passkey; they go out in the place of a page.
	options json.RawMessage
	// cookies go out with the answer, whatever it is.
	cookies []*http.Cookie
}

func (v *pageRequest) signedIn() bool { return v.who.UserID != "" }

// caller is the visitor as the payout service knows them.
func (v *pageRequest) caller() payout.Caller {
	return payout.Caller{User: v.who.UserID, Admin: v.who.Role == auth.Admin}
}

// query is a parameter of the address, or "".
func (v *pageRequest) query(name string) string {
	s := v.r.URL.Query().Get(name)
	if !isText(s) {
		return ""
	}
	return s
}

// isText reports whether every database can compare with s: PostgreSQL takes no zero character.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// maxPage bounds what an address can make the store skip.
const maxPage = 100_000

// pageNumber is the page of a list that the address asks for. What is no number is the first page.
func (v *pageRequest) pageNumber() int {
	n, err := strconv.Atoi(v.query("page"))
	if err != nil || n < 1 || n > maxPage {
		return 1
	}
	return n
}

// maxForm bounds every form, in bytes.
const maxForm = 64 << 10

var (
	errTooLarge = fault.New(fault.TooLarge, "body_too_large", "What you sent is larger than 64 KiB. Shorten it and send it again.")
	errTooSlow  = fault.New(fault.TooSlow, "request_timeout", "What you sent did not arrive in time. Send it again.")
	errNoForm   = fault.New(fault.Malformed, "invalid_form", "What was sent is not a form of these pages. Go back, reload the page and try again.")
)

// readForm reads what was posted, and nothing but a form. A form without fields may come without a body.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if r.ContentLength == 0 && r.Header.Get("Content-Type") == "" {
		return url.Values{}, nil
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/x-www-form-urlencoded" {
		return nil, errNoForm
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err = r.ParseForm()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, errTooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errTooSlow
	}
	if err != nil {
		return nil, errNoForm.Because(err)
	}
	for _, values := range r.PostForm {
		for _, value := range values {
			if !isText(value) {
				return nil, errNoForm
			}
		}
	}
	return r.PostForm, nil
}
