package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"bursar/internal/fault"
	"bursar/internal/web"
)

var (
	errInternal = fault.New(0, "internal_error",
		"Something went wrong on our side. Try again; if it stays, tell the operator this answer's X-Request-Id.")
	errTimeout = fault.New(fault.Unavailable, "timeout",
		"This took too long and was given up. It may have been done all the same: look before you try again, or repeat it with the same Idempotency-Key.")
	errNoRoute = fault.New(fault.NotFound, "not_found", "There is nothing at this address. GET /docs shows what there is.")
)

// fail answers with what a caller may know about err, and logs the rest.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	f := fault.From(err)
	switch {
	case f != nil && errors.Unwrap(f) != nil:
		if before, due := a.refused.tell(f, a.o.Now()); due {
			a.o.Logger.WarnContext(ctx, "request refused", "code", f.Code, "cause", errors.Unwrap(f), "suppressed", before)
		}
	case f == nil && ctx.Err() != nil: // the deadline ran out, or the client is gone and reads no answer
		a.o.Logger.WarnContext(ctx, "request aborted", "error", err, "cause", context.Cause(ctx))
		f = errTimeout
	case f == nil:
		a.o.Logger.ErrorContext(ctx, "request failed", "error", err)
		f = errInternal
	}
	status := web.StatusOf(f.Kind)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter(f.RetryAfter))
	}
	a.write(w, r, status, failure{Error: f.Message, Code: f.Code, Details: f.Details})
}

// refusals are logged with their causes, and those that come with an outage now and then: each request has
// a line in the log of its own.
type refusals struct {
	mu         sync.Mutex
	told       map[string]time.Time // by code
	suppressed map[string]int
}

const tellEvery = 10 * time.Second

// tell reports whether a refusal is logged, and how many like it were suppressed since the last one.
func (r *refusals) tell(f *fault.Error, now time.Time) (before int, due bool) {
	if f.Kind != fault.Unavailable {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.told[f.Code]; known && now.Sub(last) < tellEvery {
		r.suppressed[f.Code]++
		return 0, false
	}
	if r.told == nil {
		r.told, r.suppressed = map[string]time.Time{}, map[string]int{}
	}
	before = r.suppressed[f.Code]
	r.told[f.Code], r.suppressed[f.Code] = now, 0
	return before, true
}

// retryAfter is a wait in whole seconds, never too few and never none.
func retryAfter(wait time.Duration) string {
	seconds := (wait + time.Second - 1) / time.Second
	return strconv.FormatInt(int64(max(seconds, 1)), 10)
}

// notAllowed answers a method that the path does not have.
func (a *api) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	a.write(w, r, http.StatusMethodNotAllowed, failure{
		Error: "This address does not take " + r.Method + ". It takes " + allow + ".",
		Code:  "method_not_allowed",
	})
}
