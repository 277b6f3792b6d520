package reconcile_test

import (
	"errors"
	"fmt"
	"testing"

	"bursar/internal/decision"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/storetest"
)

// TestStore_FailureIsNotSwallowed fails each statement of each thing that the service does.
func TestStore_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *fixture) func() (any, error){
		"a period": func(w *fixture) func() (any, error) {
			return func() (any, error) {
				p, err := w.service.Period("2026-11-02", "2026-11-02")
				r, reconciled := w.service.Reconcile(t.Context(), p, true)
				return fmt.Sprintf("%+v %v", r.Sums, len(r.Differences)), errors.Join(err, reconciled)
			}
		},
		"what is due": func(w *fixture) func() (any, error) {
			return func() (any, error) { return nil, w.runDue(w.service) }
		},
		"settle": func(w *fixture) func() (any, error) {
			d := w.reconcile("02", "02").Differences[0]
			by := decision.By{Admin: "usr_admin", Note: "The rent, paid by hand."}
			return func() (any, error) { return nil, w.service.Settle(t.Context(), by, d.ID, d.Detail) }
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
				w.pay("1234", 10_000)
				hand := "payout"
				w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
				w.goTo(3, 4)
				act := begin(w)
				var read any
				return storetest.Story{
					Repeatable: name != "what is due", // which is put off
					Act:        func() (err error) { read, err = act(); return err },
					State:      func() string { return fmt.Sprint(w.open(), w.days(), read, settled(w)) },
				}
			})
		})
	}
}

// settled counts the decisions on record.
func settled(w *fixture) int {
	w.Helper()
	list, err := w.db.Decisions(w.Context(), "", 10)
	w.must(err)
	return len(list)
}
