package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/reconcile"
	"bursar/internal/storetest"
)

// TestStore_FailureIsNotSwallowed fails each statement of each thing that the service does.
func TestStore_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *fixture) func() (any, error){
		"a period": func(w *fixture) func() (any, error) {
			return func() (any, error) {
				p, err := w.service.Period("2026-11-02", "2026-11-03")
				r, reconciled := w.service.Reconcile(t.Context(), p, true)
				return fmt.Sprintf("%+v %v", r.Sums, len(r.Differences)), errors.Join(err, reconciled)
			}
		},
		"today": func(w *fixture) func() (any, error) {
			return func() (any, error) {
				p, err := w.service.Period("today", "today")
				_, reconciled := w.service.Reconcile(t.Context(), p, true)
				return nil, errors.Join(err, reconciled)
			}
		},
		"what is due": func(w *fixture) func() (any, error) {
			return func() (any, error) { return nil, w.runDue(w.service) }
		},
		"what is open": func(w *fixture) func() (any, error) {
			w.must(w.runDue(w.service))
			w.now = w.now.Add(10 * time.Minute)
			return func() (any, error) { return nil, w.runDue(w.service) }
		},
		"settle": func(w *fixture) func() (any, error) {
			found := w.reconcile("02", "02").Differences // in the order of their ids, which are random
			d := found[slices.IndexFunc(found, func(d reconcile.Difference) bool { return d.Kind == reconcile.LineWithoutPayout })]
			by := decision.By{Admin: "usr_admin", Note: "The rent, paid by hand."}
			return func() (any, error) { return nil, w.service.Resolve(t.Context(), by, d.ID, d.Detail) }
		},
		"evidence": func(w *fixture) func() (any, error) {
			found := w.reconcile("02", "02").Differences
			return func() (any, error) {
				var read []string
				for _, d := range found {
					e, err := w.service.Evidence(t.Context(), d.ID)
					if err != nil {
						return nil, err
					}
					read = append(read, fmt.Sprint(e.Kind, len(e.Lines)))
				}
				slices.Sort(read)
				return read, nil
			}
		},
		"read": func(w *fixture) func() (any, error) {
			w.reconcile("02", "02")
			return func() (any, error) {
				o, err := w.service.Overview(t.Context(), 10)
				open, openErr := w.service.Open(t.Context(), 10)
				return fmt.Sprint(len(o.Runs), len(open)), errors.Join(err, openErr)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				w := newFixtureAt(t, place)
				id := w.pay("1234", 10_000)
				hand, topUp, reversal, adjustment := "payout", "bank_transfer", "reversal", "adjustment"
				w.misstate(sandbox.StatementChange{Change: "add", Line: string(id), Credit: new(int64(10_590)), Entity: &reversal})
				w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(3_000)), Entity: &adjustment})
				w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
				w.goTo(3, 10)
				w.misstate(sandbox.StatementChange{Change: "add", Credit: new(int64(100)), Entity: &topUp})
				w.goTo(4, 4)
				act := begin(w)
				var read any
				return storetest.Story{
					Once: true, Repeatable: !strings.HasPrefix(name, "what is"), // which is put off
					Act:   func() (err error) { read, err = act(); return err },
					State: func() string { return fmt.Sprint(w.open(), w.days(), read, settled(w)) },
				}
			})
		})
	}
}

// daysLost is a store that can't say which days were read, at one of the times when it is asked.
type daysLost struct {
	reconcile.Store
	lostAt, asked int
}

func (l *daysLost) Days(ctx context.Context, from, to time.Time) ([]reconcile.Day, error) {
	if l.asked++; l.asked == l.lostAt {
		return nil, storetest.ErrStatement
	}
	return l.Store.Days(ctx, from, to)
}

// The days that were read decide what counts as missing, so nothing is compared without them.
func TestReconcile_DaysLost_IsError(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(4, 4)
	store := &daysLost{Store: w.options.Store}
	w.options.Store = store
	service := w.instance()
	p, err := service.Period("2026-11-02", "2026-11-03")
	w.must(err)
	for store.lostAt = 1; ; store.lostAt++ {
		store.asked = 0
		_, err := service.Reconcile(t.Context(), p, true)
		if store.asked < store.lostAt { // they were never lost
			if err != nil || store.lostAt < 3 {
				t.Errorf("the days are asked for %d times, %v", store.asked, err)
			}
			break
		}
		if !errors.Is(err, storetest.ErrStatement) {
			t.Errorf("the days are lost at the time %d: %v", store.lostAt, err)
		}
	}
}

// settled counts the decisions on record.
func settled(w *fixture) int {
	w.Helper()
	list, err := w.db.Decisions(w.Context(), "", 10)
	w.must(err)
	return len(list)
}
