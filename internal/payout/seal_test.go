package payout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bursar/internal/payout"
)

// wantSealed checks whether the audit has it that the payout is what was asked for.
func (s *story) wantSealed(want bool) {
	s.Helper()
	findings, err := s.db.AuditSeals(s.Context(), s.seals)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		if broken := strings.Contains(strings.Join(f.Violations, " "), string(s.id)); f.Name == "seals-are-whole" && broken == want {
			s.Errorf("the audit finds %q, want it to find the payout: %t", f.Violations, !want)
		}
	}
}

// TestWhatWasNotAskedForIsNotSent changes by hand each of the columns that a payout was made with.
func TestWhatWasNotAskedForIsNotSent(t *testing.T) {
	for column, to := range map[string]string{
		"seller_id": "'usr_b'", "bank_account_id": "'bka_usr_b'", "amount": "amount + 100", "fee": "fee - 100", "notes": "'gift'", "mode": "'RTGS'",
		"requested_at": "requested_at + 1", "arrive_at": "arrive_at - 1", "seal": "''",
	} {
		t.Run(column, func(t *testing.T) {
			s := newStory(t)
			s.wantSealed(true)
			s.place.ByHand(t, `CREATE TABLE kept AS SELECT * FROM payouts`) //nolint:unqueryvet // all of it
			s.place.ByHand(t, `UPDATE payouts SET `+column+` = `+to)
			s.wantSealed(false)
			for range 3 {
				s.later(windowOver)
			}
			if p := s.wantState(payout.Waiting); !p.Altered() || !p.SentAt.IsZero() || len(s.gateway.transfers) > 0 {
				t.Errorf("%+v; the gateway has %d transfers", p, len(s.gateway.transfers))
			}
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{Admin: true, User: "usr_admin"}, s.id, ""); !errors.Is(err, payout.ErrAltered) {
				t.Errorf("cancelled with %v", err)
			}
			s.wantAvailable(held)

			s.place.ByHand(t, `UPDATE payouts SET `+column+` = (SELECT `+column+` FROM kept)`)
			s.wantSealed(true)
			s.later(time.Hour)
			s.wantState(payout.Submitted)
			s.wantAvailable(held)
		})
	}
}
