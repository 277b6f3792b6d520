package payout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"bursar/internal/event"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/storetest"
)

// The seller hears once of a payout that failed or was returned, and of no other.
func TestMailFailure(t *testing.T) {
	returned := func(s *story) {
		s.later(windowOver)
		s.gateway.transfers[string(s.id)].advance(1)
		s.later(time.Hour)
		s.gateway.transfers[string(s.id)].advance(3)
		s.later(2 * time.Hour)
		s.wantState(payout.Returned)
	}
	refused := func(s *story) {
		s.gateway.mood = refusing
		s.later(windowOver)
		s.wantState(payout.Failed)
	}
	for name, tt := range map[string]struct {
		story func(s *story)
		want  string // of the mail; empty for none
		// suppressed is how often the log says that there is none: at the try that is interrupted, and at the next one.
		suppressed int
	}{
		"completed": {story: func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Hour)
			s.wantState(payout.Completed)
		}},
		"cancelled": {story: func(s *story) {
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				t.Fatal(err)
			}
		}},
		"refused":  {story: refused, want: "₹1,000.00, false"},
		"returned": {story: returned, want: "₹1,000.00, true"},
		"refused two days ago": {story: func(s *story) {
			refused(s)
			s.now = s.now.Add(48 * time.Hour)
		}, want: "₹1,000.00, false"},
		"refused long ago": {story: func(s *story) {
			refused(s)
			s.now = s.now.Add(48*time.Hour + time.Second)
		}},
		"the row was changed": {story: func(s *story) {
			refused(s)
			s.place.ByHand(t, `UPDATE payouts SET amount = amount * 10, state = 'returned', reason = 'Call us.'`)
		}, want: "₹1,000.00, false"},
		"an entry was changed": {suppressed: 2, story: func(s *story) {
			refused(s)
			s.place.ByHand(t, `UPDATE entries SET data = REPLACE(data, '100000', '900000')`)
		}},
		"an entry was erased": {suppressed: 2, story: func(s *story) {
			refused(s)
			entries := s.entriesAbout(s.id)
			e := entries[len(entries)-1]
			s.place.ByHand(t, fmt.Sprintf(`UPDATE entries SET data = '{"erased":"%s"}' WHERE owner = '%s' AND number = %d`, ledger.HashOf(e.Data), e.Owner, e.Number))
		}},
		"an entry of the bank account was erased": {suppressed: 2, story: func(s *story) {
			refused(s)
			s.place.ByHand(t, `UPDATE entries SET data = '{}' WHERE subject = 'bka_usr_a'`)
		}},
		"the event was changed": {story: func(s *story) {
			s.place.ByHand(t, `UPDATE queued_events SET type = 'payout.failed' WHERE type = 'payout.requested'`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			mailbox := storetest.NewMailbox(t, s.db, s.keys, func() time.Time { return s.now })
			o := s.options(t, s.db.Payouts())
			o.Mails = mailbox
			payouts, err := payout.New(o)
			if err != nil {
				t.Fatal(err)
			}
			u, _, err := s.db.UserByID(t.Context(), "usr_a")
			if err != nil {
				t.Fatal(err)
			}
			tt.story(s)
			number := func(mailer event.Mailer) ([]event.Event, error) {
				return s.db.NumberEvents(t.Context(), 100, s.now, func(prefix string) string { return id.New(prefix, s.now) }, mailer)
			}
			interrupted := errors.New("interrupted")
			asked := 0
			if _, err := number(func(ctx context.Context, tx event.MailTx, e event.Event) error {
				asked++
				return errors.Join(payouts.MailFailure(ctx, tx, e.Owner, payout.ID(e.Subject)), interrupted)
			}); asked > 0 && !errors.Is(err, interrupted) || asked == 0 && err != nil {
				t.Errorf("a mail that could not be queued: %v", err)
			}
			for range 2 {
				if _, err := number(func(ctx context.Context, tx event.MailTx, e event.Event) error {
					return payouts.MailFailure(ctx, tx, e.Owner, payout.ID(e.Subject))
				}); err != nil {
					t.Error(err)
				}
			}
			var got []string
			for _, d := range mailbox.To(u.Email) {
				m, is := d.(mail.PayoutFailed)
				if !is || m.Payout != string(s.id) || m.Account == "" || !m.RequestedAt.Before(m.At) || m.At.After(s.now) {
					t.Errorf("the mail says %+v", d)
				}
				got = append(got, fmt.Sprintf("%s, %t", m.Amount, m.Returned))
			}
			s.wantLogged(tt.suppressed, slog.LevelWarn, "mail suppressed", "kind=payout-failed", "user=usr_a", string(s.id))
			if want := append([]string(nil), tt.want); tt.want == "" && len(got) > 0 || tt.want != "" && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the seller got the mails %v, want %q", got, tt.want)
			}
		})
	}
}
