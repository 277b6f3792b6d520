package dashboard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/web"
)

var (
	errNoPage     = fault.New(fault.NotFound, "not_found", "There is nothing at this address. It may have been mistyped, or what was here is gone.")
	errNotAllowed = fault.New(fault.Malformed, "method_not_allowed", "This address can't be used in this way.")
	errInternal   = fault.New(0, "internal_error", "Something went wrong on our side. Try again; if it stays, tell the operator the number below.")
	errTimeout    = fault.New(fault.Unavailable, "timeout",
		"This took too long and was given up. It may have been done all the same: look before you try again.")
)

// headings say in a few words what the page of a status is about.
var headings = map[int]string{
	http.StatusForbidden:           "Not allowed",
	http.StatusNotFound:            "Page not found",
	http.StatusMethodNotAllowed:    "That can't be done here",
	http.StatusTooManyRequests:     "Too many attempts",
	http.StatusServiceUnavailable:  "Not available just now",
	http.StatusInternalServerError: "Something went wrong",
}

// problem is what the page about a failure shows.
type problem struct {
	Heading   string
	Sentence  string
	RequestID string
	// OnTo is where the visitor can go from here.
	OnTo, OnToLabel string
}

// countTampered counts what is refused because the records of a seller were changed outside the service.
func (d *dashboard) countTampered(err error) {
	if d.o.Tampered != nil && errors.Is(err, ledger.ErrTampered) {
		d.o.Tampered(ledger.TamperedKind)
	}
}

// failed makes a page of what went wrong, and logs what a visitor may not see.
func (d *dashboard) failed(ctx context.Context, v *pageRequest, err error) page {
	if errors.Is(err, errSignIn) {
		return goTo(signInAddress(v.r))
	}
	if errors.Is(err, auth.ErrAdminFactor) {
		return goTo(factorsPath).saying("admin-factor")
	}
	d.countTampered(err)
	f := fault.From(err)
	switch {
	case f != nil && errors.Unwrap(f) != nil:
		d.o.Logger.WarnContext(ctx, "page refused", "code", f.Code, "cause", errors.Unwrap(f))
	case f == nil && ctx.Err() != nil: // the deadline ran out, or the visitor is gone and reads no answer
		d.o.Logger.WarnContext(ctx, "page aborted", "error", err, "cause", context.Cause(ctx))
		f = errTimeout
	case f == nil:
		d.o.Logger.ErrorContext(ctx, "page failed", "error", err)
		f = errInternal
	}
	status := web.StatusOf(f.Kind)
	if f.Code == errNotAllowed.Code {
		status = http.StatusMethodNotAllowed
	}
	about := problem{Heading: headings[status], Sentence: say(f), OnTo: home, OnToLabel: "Go to your overview"}
	if about.Heading == "" {
		about.Heading = "That did not work"
	}
	if !v.signedIn() {
		about.OnTo, about.OnToLabel = "/login", "Sign in"
	}
	p := show("problem", about.Heading, &about)
	p.status, p.retryAfter = status, f.RetryAfter
	return p
}

// outcomeUnknown is the code of a change that may have been made or not.
const outcomeUnknown = "outcome_unknown"

// sentences say in the words of the pages what the services say in the words of the API.
var sentences = map[string]string{
	auth.ErrToken.Code:            "You are not signed in any more. Sign in again.",
	auth.ErrRole.Code:             "You don't have access to this page.",
	auth.ErrEmailNotVerified.Code: "Confirm your e-mail address first. Your profile page takes the code that was mailed to you, and sends another.",
	payout.ErrNotFound.Code:       "You have no such payout. Its address may have been mistyped.",
	payout.ErrBankUnverified.Code: "Your bank account is not verified yet. Look at your bank account to see how far it is, and why.",
	outcomeUnknown:                "The database's answer was lost, so it is not known whether this was done. Look before you try again.",
	payout.ErrKeyReused.Code:      "From this form a payout of another amount was requested already. Look at your payouts before you request another.",
}

// say is a failure as the pages say it, with how long to wait where that is known.
func say(f *fault.Error) string {
	sentence, ours := sentences[f.Code]
	if !ours {
		sentence = f.Message
	}
	if f.RetryAfter > 0 && f.Code != auth.ErrThrottled.Code { // whose message says it already
		sentence += " " + waitOf(f.RetryAfter)
	}
	return sentence
}

// waitOf tells how long to wait, never too short.
func waitOf(wait time.Duration) string {
	switch seconds := int(math.Ceil(wait.Seconds())); {
	case seconds <= 1:
		return "Try again in a second."
	case seconds <= 90:
		return fmt.Sprintf("Try again in %d seconds.", seconds)
	case seconds <= 90*60:
		return fmt.Sprintf("Try again in %d minutes.", (seconds+59)/60)
	default:
		return fmt.Sprintf("Try again in %d hours.", (seconds+3599)/3600)
	}
}
