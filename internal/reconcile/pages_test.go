package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/reconcile"
)

// longStatement is a day's statement of many pages. The gateway turns one request in a hundred away.
type longStatement struct {
	of           *fixture
	pages, calls int
}

func (l *longStatement) Name() gateway.Name { return l.of.client.Name() }

func (l *longStatement) Capabilities() gateway.Capabilities {
	return razorpayx.Capabilities(l.of.options.Currency)
}

func (l *longStatement) Lines(_ context.Context, from, _ time.Time, after gateway.Cursor) (gateway.LinePage, error) {
	if l.calls++; l.calls%100 == 99 {
		return gateway.LinePage{}, errors.New("too many requests")
	}
	n, _ := strconv.Atoi(string(after)) // the first page is asked for with nothing
	p := gateway.LinePage{Lines: []gateway.Line{{
		ID: fmt.Sprint("txn_", from.Unix(), "_", n), Credit: 100, Amount: 100, Currency: "INR", At: from.Add(time.Hour), Kind: gateway.LineOther, RawKind: "bank_transfer",
	}}}
	if n+1 < l.pages {
		p.Next = gateway.Cursor(strconv.Itoa(n + 1))
	}
	return p, nil
}

// A day's statement has more pages than the gateway answers without a failure. The night is reconciled all the same.
func TestRunDue_OnePageInAHundredFails(t *testing.T) {
	w := newFixture(t)
	l := &longStatement{of: w, pages: 150}
	w.options.Statement = l
	s, err := reconcile.New(w.options)
	w.must(err)
	w.goTo(3, 4)
	var last error
	for range 24 * 60 {
		if _, err := s.RunDue(t.Context()); err != nil {
			last = err
		}
		w.now = w.now.Add(time.Minute)
	}
	if at, err := w.db.ReconciledAt(t.Context(), []gateway.Name{w.client.Name()}, w.now); err != nil || at.IsZero() {
		t.Errorf("after a day and %d requests nothing is reconciled: %v, %v", l.calls, last, err)
	}
}
