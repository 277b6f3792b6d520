package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/ledger"
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
	if errors.Is(err, ledger.ErrTampered) {
		a.o.Metrics.Tampered(ledger.TamperedKind)
	}
	f := fault.From(err)
	switch {
	case f != nil && errors.Unwrap(f) != nil && f.Kind == fault.Unavailable: // as every request during an outage
		if suppressed, due := a.sampler.sample(f.Code, a.o.Now()); due {
			a.o.Logger.WarnContext(ctx, "request refused", "code", f.Code, "cause", errors.Unwrap(f), "suppressed", suppressed)
		}
	case f != nil && errors.Unwrap(f) != nil:
		a.o.Logger.WarnContext(ctx, "request refused", "code", f.Code, "cause", errors.Unwrap(f))
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
		if errors.Is(f, auth.ErrStepUp) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_user_authentication"`) // RFC 9470
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", web.RetryAfter(f.RetryAfter))
	}
	a.write(w, r, status, failure{Error: f.Message, Code: f.Code, Details: f.Details})
}

// logSampler picks the events to log from those that come in floods, and counts the others.
type logSampler struct {
	mu         sync.Mutex
	logged     map[string]time.Time
	suppressed map[string]int
}

const sampleEvery = 10 * time.Second

// sample reports whether to log an event now, and how many of its name were suppressed since one was logged. There
// are few names.
func (s *logSampler) sample(event string, now time.Time) (suppressed int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.logged[event]; known && now.Sub(last) < sampleEvery {
		s.suppressed[event]++
		return 0, false
	}
	if s.logged == nil {
		s.logged, s.suppressed = map[string]time.Time{}, map[string]int{}
	}
	suppressed = s.suppressed[event]
	s.logged[event], s.suppressed[event] = now, 0
	return suppressed, true
}

// notAllowed answers a method that the path does not have.
func (a *api) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	a.write(w, r, http.StatusMethodNotAllowed, failure{
		Error: "This address does not take " + r.Method + ". It takes " + allow + ".",
		Code:  "method_not_allowed",
	})
}
