package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"bursar/internal/id"
	"bursar/internal/telemetry"
)

// requestTimeout bounds the work for one request that may wait: for its turn to write, for a password
// hash, or for the gateway.
const requestTimeout = 15 * time.Second

// ServeHTTP does for every request what they have in common: an id, headers, a deadline, recovery, a
// count and a line in the log.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := a.o.Now()
	a.o.Metrics.RequestStarted()

	requestID := requestID(r.Header)
	a.setHeaders(w.Header(), r.URL.Path, requestID)
	ctx := telemetry.WithRequest(r.Context(), &telemetry.Request{ID: requestID})
	if r.Method != http.MethodGet { // reads wait for nothing, and are most of all requests
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	r = withoutTrailingSlash(r.WithContext(ctx))

	out := &response{ResponseWriter: w}
	defer func() {
		cutShort := a.recovered(out, r, requestID, recover())
		a.ended(r, out, start)
		if cutShort { // the client must see that it has half an answer
			panic(http.ErrAbortHandler)
		}
	}()
	a.dispatch(out, r)
}

// recovered answers for a handler that panicked, if it did, and reports whether it is too late to.
func (a *api) recovered(out *response, r *http.Request, requestID string, broken any) (cutShort bool) {
	if broken == nil {
		return false
	}
	if err, ok := broken.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true
	}
	a.o.Logger.ErrorContext(r.Context(), "panic", "panic", fmt.Sprint(broken), "stack", string(debug.Stack()))
	if out.status != 0 {
		return true
	}
	clear(out.Header())
	a.setHeaders(out.Header(), r.URL.Path, requestID)
	a.write(out, r, http.StatusInternalServerError, failure{Error: errInternal.Message, Code: errInternal.Code})
	return false
}

// dispatch finds the route. It answers 404 for a path that the mux would redirect to a cleaner one, because a redirect has
// no envelope and loses a body.
func (a *api) dispatch(w http.ResponseWriter, r *http.Request) {
	if p := r.URL.EscapedPath(); path.Clean(p) != p {
		a.fail(w, r, errNoRoute)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// withoutTrailingSlash takes /path/ for /path.
func withoutTrailingSlash(r *http.Request) *http.Request {
	if p := r.URL.EscapedPath(); len(p) < 2 || !strings.HasSuffix(p, "/") {
		return r
	}
	u := *r.URL
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	r.URL = &u
	return r
}

// ended counts an answer and logs it. Queries, headers and bodies stay out of the log: they hold
// tokens. Reads that went well are many and tell little, so they are for debugging. Requests that were turned away
// because there are too many are logged once in a while, and are no errors: a caller can make as many as it likes.
func (a *api) ended(r *http.Request, out *response, start time.Time) {
	took := a.o.Now().Sub(start)
	status := out.status
	if status == 0 {
		status = http.StatusOK
	}
	// The client hung up and read no answer, whatever was done. A fault of ours stays one.
	gone := errors.Is(r.Context().Err(), context.Canceled) && status != http.StatusInternalServerError
	if gone {
		status = telemetry.StatusClientGone
	}
	a.o.Metrics.RequestDone(r.Pattern, r.Method, status, took)

	level, turnedAway := slog.LevelInfo, false
	switch {
	case gone:
	case status == http.StatusServiceUnavailable && a.o.Draining(): // as it should be
	case status == http.StatusServiceUnavailable:
		level, turnedAway = slog.LevelWarn, true
	case status == http.StatusTooManyRequests:
		turnedAway = true
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
	case status < http.StatusBadRequest && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		level = slog.LevelDebug
	}
	if !a.o.Logger.Enabled(r.Context(), level) {
		return
	}
	var suppressed int
	if turnedAway {
		var due bool
		if suppressed, due = a.sampler.sample(r.Pattern+" "+strconv.Itoa(status), a.o.Now()); !due {
			return
		}
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", r.Pattern),
		slog.String("path", shortened(r.URL.Path)),
		slog.Int("status", status),
		slog.Int("bytes", out.bytes),
		telemetry.Took(took),
		slog.String("client", a.o.TrustedProxies.Client(r)),
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	a.o.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// shortened keeps a made-up path from filling the log.
func shortened(p string) string {
	const most = 120
	if len(p) > most {
		return strings.ToValidUTF8(p[:most], "") + "…"
	}
	return p
}

// requestID takes the caller's own id for a request if it is a sane one, and makes one otherwise.
func requestID(h http.Header) string {
	given := h.Get("X-Request-Id")
	strange := func(c rune) bool {
		return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' || c == '_' || c == '.')
	}
	if given == "" || len(given) > 64 || strings.ContainsFunc(given, strange) {
		return id.Random(20)
	}
	return given
}

// commonHeaders is what every answer carries. An answer of ours is data: nothing in it may run, be
// framed or be guessed to be something else. Pages loosen this for themselves.
var commonHeaders = http.Header{
	"X-Content-Type-Options":  {"nosniff"},
	"Referrer-Policy":         {"no-referrer"},
	"X-Frame-Options":         {"DENY"},
	"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	"Permissions-Policy":      {"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"},
	// No page of another site keeps hold of a window of ours.
	"Cross-Origin-Opener-Policy": {"same-origin"},
}

// stayOnHTTPS makes browsers refuse to come by plain http for a year. Other hosts of the domain are not ours to decide on.
var stayOnHTTPS = []string{"max-age=31536000"}

func (a *api) setHeaders(h http.Header, path, requestID string) {
	maps.Copy(h, commonHeaders)
	if a.o.BaseURL.Scheme == "https" {
		h["Strict-Transport-Security"] = stayOnHTTPS
	}
	h.Set("X-Request-Id", requestID)
	if strings.HasPrefix(path, "/api") {
		h.Set("Cache-Control", "no-store")
	}
}

// response remembers what was answered.
type response struct {
	http.ResponseWriter
	status int
	bytes  int
}

// WriteHeader passes the first final status on.
func (o *response) WriteHeader(status int) {
	if o.status == 0 && status >= http.StatusOK {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write passes a part of the body on.
func (o *response) Write(p []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	n, err := o.ResponseWriter.Write(p)
	o.bytes += n
	return n, err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (o *response) Unwrap() http.ResponseWriter { return o.ResponseWriter }
