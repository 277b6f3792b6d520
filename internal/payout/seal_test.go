package payout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bursar/internal/payout"
)

// wantSealed checks whether the audit has it that the payout is what the service wrote.
func (s *story) wantSealed(want bool) { s.Helper(); s.wantWhole("seals-are-whole", want) }

// wantHistory checks whether the audit has it that the payout's events are what the service wrote.
func (s *story) wantHistory(want bool) { s.Helper(); s.wantWhole("histories-are-whole", want) }

func (s *story) wantWhole(finding string, want bool) {
	s.Helper()
	findings, err := s.db.AuditSeals(s.Context(), s.seals)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		if broken := strings.Contains(strings.Join(f.Violations, " "), string(s.id)); f.Name == finding && broken == want {
			s.Errorf("%s finds %q, want it to find the payout: %t", finding, f.Violations, !want)
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
			if p := s.wantState(payout.Submitted); p.Contradiction != "" {
				t.Errorf("it is still said that %s", p.Contradiction)
			}
			s.wantAvailable(held)
		})
	}
}

// TestNothingIsSentToAnAccountThatWasChangedByHand though the payout is what was asked for, which can be cancelled.
func TestNothingIsSentToAnAccountThatWasChangedByHand(t *testing.T) {
	s := newStory(t)
	s.gateway.altered = true
	s.later(windowOver)
	if p := s.wantState(payout.Waiting); !p.Altered() || p.Tries != 1 || s.gateway.sent > 0 {
		t.Errorf("%+v; it was sent %d times", p, s.gateway.sent)
	}
	if err := s.payouts.ClearContradiction(t.Context(), ada, s.id, s.payout().Contradiction); err != nil {
		t.Fatal(err)
	}
	decisions, err := s.db.Decisions(t.Context(), string(s.id), 10)
	if err != nil || len(decisions) != 1 || !strings.Contains(decisions[0].Note, "Found: this payout") {
		t.Errorf("on record is %+v, %v", decisions, err)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Error(err)
	}
	s.wantAvailable(opening)
}

// TestWhatWasChangedByHandIsNotGivenBack has somebody raise a payout after it was sent, by as much as its fee, so that what
// the bank is sent stays the same.
func TestWhatWasChangedByHandIsNotGivenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		mood     mood
		giveBack func(*story) error
	}{
		"by the gateway's word": {queueing, func(s *story) error {
			_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
			return err
		}},
		"by an admin's": {lostRequests, func(s *story) error {
			if _, err := s.payouts.Hold(t.Context(), ada, s.id); err != nil {
				return err
			}
			s.now = s.now.Add(time.Hour)
			_, err := s.payouts.GiveBack(t.Context(), ada, s.id)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 500_000}); err != nil {
				t.Fatal(err)
			}
			s.gateway.mood = tt.mood
			s.later(windowOver)
			s.gateway.mood = fair
			s.place.ByHand(t, `UPDATE payouts SET amount = amount + 400000, fee = fee + 400000 WHERE id = '`+string(s.id)+`'`)
			if err := tt.giveBack(s); !errors.Is(err, payout.ErrAltered) {
				t.Errorf("given back with %v", err)
			}
			s.wantAvailable(held - 500_000)
		})
	}
}

// TestAnOrderThatWasChangedByHandIsNotSentAgain has an order's answer missing, or makes it out to be.
func TestAnOrderThatWasChangedByHandIsNotSentAgain(t *testing.T) {
	for name, change := range map[string]string{
		"another order":      `UPDATE payouts SET order_body = order_body || ' '`,
		"a longer time":      `UPDATE payouts SET sent_at = sent_at + 1`,
		"one that was never": `UPDATE payouts SET state = 'unknown', tries = 1, sent_at = requested_at, order_body = 'all to fa_mallory'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.wantState(payout.Unknown)
			s.wantSealed(true)
			s.gateway.mood = fair
			s.place.ByHand(t, change)
			s.wantSealed(false)
			for range 5 {
				s.later(time.Hour)
			}
			if p := s.wantState(payout.Unknown); !p.Altered() || s.gateway.sent != 1 {
				t.Errorf("%+v; it was sent %d times, want once before it was changed", p, s.gateway.sent)
			}
			s.wantAvailable(held)
		})
	}
}

// TestWhatHasEndedDoesNotBeginAgain though somebody says so in the database.
func TestWhatHasEndedDoesNotBeginAgain(t *testing.T) {
	s := newStory(t)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Fatal(err)
	}
	s.wantSealed(true)
	s.place.ByHand(t, `UPDATE payouts SET state = 'waiting', status = 'processing', ended_at = NULL, due_at = requested_at`)
	s.wantSealed(false)
	s.later(windowOver)
	if p := s.wantState(payout.Waiting); !p.Altered() || s.gateway.sent > 0 {
		t.Errorf("%+v; it was sent %d times", p, s.gateway.sent)
	}
}

// TestTheGatewaysNewsMovesNoMoneyOfAPayoutThatWasChangedByHand until that is put right, and nothing is told of it any more.
func TestTheGatewaysNewsMovesNoMoneyOfAPayoutThatWasChangedByHand(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.place.ByHand(t, `UPDATE payouts SET amount = amount + 400000, fee = fee + 400000`)
	s.gateway.transfers[string(s.id)].progress = payout.Rejected
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); !p.Altered() {
		t.Errorf("%+v", p)
	}
	s.wantAvailable(held)
	s.place.ByHand(t, `UPDATE payouts SET amount = amount - 400000, fee = fee - 400000`)
	s.later(24 * time.Hour)
	if p := s.wantState(payout.Failed); p.Contradiction != "" {
		t.Errorf("%+v", p)
	}
	s.wantAvailable(opening)
	s.wantSealed(true)
}

// TestWhatHappenedCanNotBeToldOtherwise changes by hand what a payout says of its past, once it is completed.
func TestWhatHappenedCanNotBeToldOtherwise(t *testing.T) {
	const putBack = `UPDATE payouts SET state = old.state, status = old.status, processed_at = old.processed_at, completed_at = NULL, ended_at = NULL,
		progress = old.progress, utr = old.utr, record = old.record, history = old.history, seal = old.seal FROM before AS old`
	for name, tt := range map[string]struct {
		change         string
		sealed, events bool
	}{
		"what it was":      {`UPDATE payouts SET state = 'returned'`, false, true},
		"taken on":         {`UPDATE payouts SET processed_at = processed_at + 1`, false, true},
		"completed":        {`UPDATE payouts SET completed_at = completed_at + 1`, false, true},
		"over":             {`UPDATE payouts SET ended_at = ended_at + 1`, false, true},
		"the transfer":     {`UPDATE payouts SET gateway_id = 'pout_other'`, false, true},
		"the reference":    {`UPDATE payouts SET utr = 'HDFCN00000000002'`, false, true},
		"a reason":         {`UPDATE payouts SET reason_code = 'bank_rejected'`, false, true},
		"what it says why": {`UPDATE payouts SET reason = 'No such account.'`, false, true},
		"a contradiction":  {`UPDATE payouts SET contradiction = 'another amount'`, false, true},
		"the head":         {`UPDATE payouts SET history = ''`, false, false},
		"a time":           {`UPDATE payout_events SET at = at + 1 WHERE number = 2`, true, false},
		"why it moved":     {`UPDATE payout_events SET reason = 'Asked by phone.' WHERE number = 1`, true, false},
		"from where":       {`UPDATE payout_events SET from_state = 'unknown' WHERE number = 3`, true, false},
		"an event dropped": {`DELETE FROM payout_events WHERE number = 3`, true, false},
		"all dropped":      {`DELETE FROM payout_events`, true, false},
		"one added": {`INSERT INTO payout_events (payout_id, number, at, from_state, to_state, reason)
			SELECT payout_id, 4, at, 'completed', to_state, '' FROM payout_events WHERE number = 3`, true, false},
		"the row from before, whole":  {putBack, true, false},
		"and the history that it had": {putBack + `; DELETE FROM payout_events WHERE number = 3`, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			s.wantState(payout.Submitted)
			s.place.ByHand(t, `CREATE TABLE before AS SELECT * FROM payouts`) //nolint:unqueryvet // all of it
			made := s.gateway.transfers[string(s.id)]
			made.progress, made.paid = payout.Paid, 1
			s.later(time.Minute)
			s.wantState(payout.Completed)
			s.wantSealed(true)
			s.wantHistory(true)
			s.place.ByHand(t, tt.change)
			s.wantSealed(tt.sealed)
			s.wantHistory(tt.events)
			if tt.sealed && tt.events { // it was so once, but for the money, which has moved since
				s.wantViolated("in-transit-matches-payouts", "withdrawn-matches-payouts", "payouts-match-transfers", "counters-match-rows", "times-match-transfers")
			}
		})
	}
}

// TestWhatIsOlderThanSealsNeedsNone in a database that an earlier version wrote.
func TestWhatIsOlderThanSealsNeedsNone(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.place.ByHand(t, `UPDATE payouts SET seal = '', history = ''`)
	s.wantSealed(false)
	s.wantHistory(false)
	s.seals.Since = s.now
	s.wantSealed(true)
	s.wantHistory(true)
}

// TestWhatTheGatewaySaidIsKeptOnAPayoutThatWasChangedByHand: it has not seen the end of it.
func TestWhatTheGatewaySaidIsKeptOnAPayoutThatWasChangedByHand(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	made := s.gateway.transfers[string(s.id)]
	made.amount += 100
	s.later(time.Minute)
	said := s.wantState(payout.Submitted).Contradiction
	made.amount, made.progress = made.amount-100, payout.Rejected
	s.place.ByHand(t, `UPDATE payouts SET notes = 'gift'`)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); said == "" || p.Contradiction != said {
		t.Errorf("the gateway had said %q, and what is kept is %q", said, p.Contradiction)
	}
	s.place.ByHand(t, `UPDATE payouts SET notes = 'rent'`)
	s.wantSealed(true)
}

// TestAPersonVouchesForAPayout that was made by a version that seals nothing, or changed by hand and well.
func TestAPersonVouchesForAPayout(t *testing.T) {
	s := newStory(t)
	s.place.ByHand(t, `UPDATE payouts SET seal = ''`)
	s.later(windowOver)
	s.wantState(payout.Waiting)
	s.place.ByHand(t, `UPDATE payouts SET history = 'another'`)
	if _, err := payout.Vouch(t.Context(), s.db.Payouts(), s.seals, s.id, s.now); err != nil {
		t.Fatal(err)
	}
	s.wantSealed(true)
	s.wantHistory(true)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); p.Contradiction != "" {
		t.Errorf("%+v", p)
	}
	s.wantHistory(true)
	if _, err := payout.Vouch(t.Context(), s.db.Payouts(), s.seals, "pyt_none", s.now); !errors.Is(err, payout.ErrNotFound) {
		t.Errorf("vouched for nothing: %v", err)
	}
}
