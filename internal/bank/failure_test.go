package bank_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/id"
	"bursar/internal/storetest"
)

// TestStore_FailureIsNotSwallowed fails each statement of each thing that the service does.
func TestStore_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(h *fixture) func() error{
		"register": func(h *fixture) func() error {
			return func() error { _, err := h.service.Register(t.Context(), h.ashas()); return err }
		},
		"register again": func(h *fixture) func() error {
			h.register(h.ashas())
			return func() error { _, err := h.service.Register(t.Context(), h.ashas()); return err }
		},
		"replace": func(h *fixture) func() error {
			h.register(h.ashas())
			other := h.ashas()
			other.Holder = "Asha D Desai"
			return func() error { _, err := h.service.Register(t.Context(), other); return err }
		},
		"lease": func(h *fixture) func() error {
			h.register(h.ashas())
			return func() error { _, err := h.service.LeaseDue(t.Context(), 10); return err }
		},
		"verify": func(h *fixture) func() error {
			a := h.register(h.ashas())
			return func() error { return h.service.Step(t.Context(), a.ID) }
		},
		"notify": func(h *fixture) func() error {
			h.gateway.answers = []answer{pending()}
			h.register(h.ashas())
			h.mustStep()
			return func() error { return h.service.Notify(t.Context(), "fav_1") }
		},
		"resolve": func(h *fixture) func() error {
			h.gateway.answers = []answer{valid("A DESAI", 70)}
			a := h.register(h.ashas())
			h.mustStep()
			return func() error {
				_, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true})
				return err
			}
		},
		"beneficiary": func(h *fixture) func() error {
			a := h.register(h.ashas())
			if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
				t.Fatal(err)
			}
			asked := h.asked("usr_asha")
			return func() error {
				name, err := h.service.Beneficiary(t.Context(), "usr_asha", a.ID, "double", asked)
				if err == nil && name != "fa_"+string(a.ID) {
					err = errors.New("another name: " + name)
				}
				return err
			}
		},
		"recover": func(h *fixture) func() error {
			h.gateway.registered = []string{"00100123456780"}
			lost := bank.ID(id.New("bka_", h.now))
			return func() error { return h.service.Recover(t.Context(), "usr_asha", lost, "double", "fa_1") }
		},
		"recognise": func(h *fixture) func() error {
			a := h.register(h.ashas())
			h.gateway.registered = []string{"50100123456789"}
			return func() error { return h.service.Recover(t.Context(), "usr_asha", a.ID, "double", "fa_1") }
		},
		"read": func(h *fixture) func() error {
			a := h.register(h.ashas())
			return func() error {
				_, err := h.service.Account(t.Context(), "usr_asha")
				_, byID := h.service.AccountByID(t.Context(), a.ID)
				_, inReview := h.service.InReview(t.Context(), 10)
				return errors.Join(err, byID, inReview)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				h := newFixtureAt(t, place, valid("ASHA DESAI", 100))
				return storetest.Story{Act: begin(h), State: func() string { return h.summary() }, Repeatable: name != "verify"} // which is put off
			})
		})
	}
}

// summary is all that matters of what is stored.
func (h *fixture) summary() string {
	h.t.Helper()
	a, err := h.service.Account(h.t.Context(), "usr_asha")
	if err != nil && !errors.Is(err, bank.ErrNone) {
		h.t.Fatal(err)
	}
	entries, err := h.db.EntriesAfter(h.t.Context(), "usr_asha", 0, 100)
	if err != nil {
		h.t.Fatal(err)
	}
	text := fmt.Sprint(a.Holder, a.Status, a.Reason, a.NameScore, a.Beneficiary != "", a.VerificationID, a.Tries, a.DueAt.Sub(h.now).Round(time.Minute))
	for _, e := range entries {
		text += " " + string(e.Type)
	}
	report, err := h.db.Audit(h.t.Context(), h.keys)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range report.Findings {
		text += fmt.Sprint(f.Violations)
	}
	return text
}
