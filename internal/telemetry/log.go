// Package telemetry is how operators see the service: its log and its metrics.
//
// Nothing here is global. The command makes one logger and one [Metrics] and hands them to what
// has something to say.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Format is how log lines are written.
type Format string

// Formats: JSON for machines, text for people.
const (
	JSON Format = "json"
	Text Format = "text"
)

// NewLogger makes a logger that writes lines of at least the given level to w. It fails on a format
// that is not one of ours.
//
// Callers leave secrets out; values under a key that names one are redacted all the same.
func NewLogger(w io.Writer, level slog.Leveler, format Format) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: rewriter()}
	switch format {
	case JSON:
		return slog.New(requestHandler{slog.NewJSONHandler(w, options)}), nil
	case Text:
		return slog.New(requestHandler{slog.NewTextHandler(w, options)}), nil
	default:
		return nil, fmt.Errorf("log format %q is not known; use %s or %s", format, JSON, Text)
	}
}

// Request is what all log lines about one request have in common. User is filled in when it is known.
type Request struct {
	ID   string
	User string
}

type requestKey struct{}

// WithRequest adds the request's id to every log record under the context.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// SetUser notes who asked, where the context is a request's.
func SetUser(ctx context.Context, user string) {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		r.User = user
	}
}

// Took says how long something lasted, in milliseconds with three decimals.
func Took(d time.Duration) slog.Attr {
	return slog.Float64("took_ms", float64(d.Microseconds())/1000)
}

// requestHandler adds the request to each line.
type requestHandler struct{ slog.Handler }

func (h requestHandler) Handle(ctx context.Context, line slog.Record) error {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		line.AddAttrs(slog.String("request_id", r.ID))
		if r.User != "" {
			line.AddAttrs(slog.String("caller", r.User))
		}
	}
	return h.Handler.Handle(ctx, line)
}

func (h requestHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attrs)}
}

func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}

const redacted = "[redacted]"

// sensitive are the words that give a secret away when a key holds one, in any case and with any
// separators.
var sensitive = []string{
	"password", "secret", "token", "authorization", "cookie", "apikey", "servicekey", "signingkey",
	"privatekey", "accountnumber", "databaseurl", "signature",
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// rewriter takes the values of sensitive keys out of lines, and writes durations with their unit. It looks at each key once: keys are few, and lines are many.
func rewriter() func([]string, slog.Attr) slog.Attr {
	var mu sync.RWMutex
	known := map[string]bool{}
	return func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindGroup {
			return a // its members come by on their own
		}
		mu.RLock()
		secret, seen := known[a.Key]
		mu.RUnlock()
		if !seen {
			secret = isSensitive(a.Key)
			mu.Lock()
			known[a.Key] = secret
			mu.Unlock()
		}
		if secret {
			return slog.String(a.Key, redacted)
		}
		if a.Value.Kind() == slog.KindDuration { // JSON would have nanoseconds without a unit
			return slog.String(a.Key, a.Value.Duration().String())
		}
		return a
	}
}

func isSensitive(key string) bool {
	key = separators.Replace(strings.ToLower(key))
	return slices.ContainsFunc(sensitive, func(word string) bool { return strings.Contains(key, word) })
}
