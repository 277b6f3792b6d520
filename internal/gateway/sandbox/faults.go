package sandbox

import (
	"bytes"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// Fault is something that goes wrong with calls of the API. Exactly one of Status, Cut, Truncate and
// Delay alone is what the caller sees; Delay goes with any.
type Fault struct {
	// Method and Path choose the calls; empty is any. Path may hold wildcards (path.Match), as in
	// "/v1/payouts/*".
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Times is how many calls it happens to; zero is one.
	Times int `json:"times,omitempty"`
	// When is "before" the call is carried out, in place of it, or "after" it, in place of its answer.
	// Empty is before.
	When string `json:"when,omitempty"`
	// Status answers with a status and the vendor's error body, or with a page of HTML.
	Status int  `json:"status,omitempty"`
	HTML   bool `json:"html,omitempty"`
	// RetryAfter goes with Status, in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// Cut ends the connection without an answer, Truncate in the middle of the call's own answer.
	Cut      bool `json:"cut,omitempty"`
	Truncate bool `json:"truncate,omitempty"`
	// Delay holds the answer back, as "1.5s".
	Delay string `json:"delay,omitempty"`

	delay time.Duration
}

const (
	beforeCall = "before"
	afterCall  = "after"
)

// prepared is f with its defaults, or a refusal.
func (f Fault) prepared() (Fault, error) {
	var err error
	if f.Delay != "" {
		f.delay, err = time.ParseDuration(f.Delay)
	}
	f.Times = max(f.Times, 1)
	if f.When == "" {
		f.When = beforeCall
	}
	if f.Truncate {
		f.When = afterCall
	}
	if _, badPath := path.Match(f.Path, "/"); badPath != nil {
		return f, invalid("path", "The path is not a pattern.")
	}
	effects := 0
	for _, has := range []bool{f.Status != 0, f.Cut, f.Truncate} {
		if has {
			effects++
		}
	}
	switch {
	case err != nil || f.delay < 0:
		return f, invalid("delay", `The delay must be a duration such as "1.5s".`)
	case f.When != beforeCall && f.When != afterCall:
		return f, invalid("when", `When must be "before" or "after".`)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return f, invalid("status", "The status must be between 200 and 599.")
	case effects > 1 || (effects == 0 && f.delay == 0):
		return f, invalid("status", "A fault needs one of status, cut, truncate or delay.")
	}
	return f, nil
}

func (f Fault) matches(r *http.Request) bool {
	samePath, _ := path.Match(f.Path, r.URL.Path) // the pattern was checked
	return (f.Method == "" || f.Method == r.Method) && (f.Path == "" || samePath)
}

// faults are those that are yet to happen, in the order in which they were added.
type faults struct {
	mu   sync.Mutex
	list []Fault
}

func (f *faults) add(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fault)
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

func (f *faults) all() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Fault{}, f.list...)
}

// take uses up the first fault that matches r.
func (f *faults) take(r *http.Request) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.list, func(fault Fault) bool { return fault.matches(r) })
	if i < 0 {
		return Fault{}, false
	}
	fault := f.list[i]
	if f.list[i].Times--; f.list[i].Times == 0 {
		f.list = slices.Delete(f.list, i, i+1)
	}
	return fault, true
}

// misbehaving lets faults happen to calls.
func (s *Sandbox) misbehaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, ok := s.faults.take(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		buffered := &bufferedAnswer{header: http.Header{}, status: http.StatusOK}
		if fault.When == afterCall {
			next.ServeHTTP(buffered, r)
		}
		pause(r.Context(), fault.delay)
		switch {
		case r.Context().Err() != nil || fault.Cut:
			panic(http.ErrAbortHandler) // net/http's own way to cut a connection
		case fault.Truncate:
			buffered.release(w, buffered.body.Len()/2)
		case fault.Status != 0:
			fault.answer(w)
		case fault.When == afterCall:
			buffered.release(w, buffered.body.Len())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// answer writes the status and body of a fault.
func (f Fault) answer(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if f.HTML {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte("<!doctype html><title>Trouble</title><h1>Something stands between you and the gateway</h1>\n"))
		return
	}
	problem := errServer.problem
	if f.Status < http.StatusInternalServerError {
		problem = errThrottled.problem
	}
	writeJSON(w, f.Status, razorpayx.ErrorBody{Error: problem})
}

// bufferedAnswer is an answer that was not sent yet.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *bufferedAnswer) Header() http.Header         { return h.header }
func (h *bufferedAnswer) WriteHeader(status int)      { h.status = status }
func (h *bufferedAnswer) Write(p []byte) (int, error) { return h.body.Write(p) }

// release sends the first n bytes of the answer. If they are not all, it then cuts the connection.
func (h *bufferedAnswer) release(w http.ResponseWriter, n int) {
	maps.Copy(w.Header(), h.header)
	w.WriteHeader(h.status)
	_, _ = w.Write(h.body.Bytes()[:n])
	if n == h.body.Len() {
		return
	}
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
