package payout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/storetest"
)

// stopping is the two ways to stop a seller's payouts.
var stopping = []struct {
	name, subject string
	stop, resume  func(context.Context, *payout.Service, decision.By) error
	stopped, not  error
	decided       []decision.Action
}{
	{
		"freeze", "usr_a",
		func(ctx context.Context, s *payout.Service, by decision.By) error { return s.Freeze(ctx, by, "usr_a") },
		func(ctx context.Context, s *payout.Service, by decision.By) error {
			return s.Unfreeze(ctx, by, "usr_a")
		},
		payout.ErrFrozen, payout.ErrNotFrozen,
		[]decision.Action{decision.FreezePayouts, decision.UnfreezePayouts},
	},
	{
		"pause", decision.Platform,
		func(ctx context.Context, s *payout.Service, by decision.By) error { return s.Pause(ctx, by) },
		func(ctx context.Context, s *payout.Service, by decision.By) error { return s.Resume(ctx, by) },
		payout.ErrPaused, payout.ErrNotPaused,
		[]decision.Action{decision.PausePayouts, decision.ResumePayouts},
	},
}

// wantOnHold asks for a payout, which must be refused without an end.
func (s *story) wantOnHold(seller string) {
	s.Helper()
	_, _, err := s.payouts.Request(s.Context(), payout.Request{Seller: seller, Amount: 100_000, Key: "later"})
	if f := fault.From(err); !errors.Is(err, payout.ErrOnHold) || f.Details["reason"] == "" || f.Details["until"] != "" {
		s.Errorf("a request of %s is answered with %v", seller, err)
	}
}

// TestStopped_WaitingIsNotSent stops payouts before the one that waits is sent, and resumes them.
func TestStopped_WaitingIsNotSent(t *testing.T) {
	for _, tt := range stopping {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			if err := tt.resume(t.Context(), s.payouts, ada); !errors.Is(err, tt.not) {
				t.Errorf("what was not stopped is resumed: %v", err)
			}
			if err := tt.stop(t.Context(), s.payouts, decision.By{Admin: ada.Admin, Note: " \n"}); fault.From(err) == nil || fault.From(err).Details["note"] == "" {
				t.Errorf("stopped without a reason: %v", err)
			}
			if err := tt.stop(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			stoppedAt := s.now
			if err := tt.stop(t.Context(), s.payouts, ada); !errors.Is(err, tt.stopped) {
				t.Errorf("stopped twice: %v", err)
			}
			for range 3 {
				s.later(15 * time.Minute)
				if p := s.wantState(payout.Waiting); p.ReasonCode != "payouts_stopped" || p.Reason == "" || p.DueAt.IsZero() || !p.SentAt.IsZero() {
					t.Fatalf("while payouts are stopped it is %+v", p)
				}
			}
			if s.gateway.sent > 0 {
				t.Errorf("%d orders were sent", s.gateway.sent)
			}
			s.wantOnHold("usr_a")
			s.wantAvailable(afterReserve)
			want := payout.PauseState{}
			if tt.subject == decision.Platform {
				want = payout.PauseState{Paused: true, Since: stoppedAt, By: ledger.ActorAdmin + ada.Admin, Reason: ada.Note}
			}
			if state, err := s.payouts.PauseState(t.Context()); state != want || err != nil {
				t.Errorf("the pause is %+v, %v; want %+v", state, err, want)
			}

			if err := tt.resume(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			s.later(0)
			if p := s.wantState(payout.Submitted); p.ReasonCode != "" || p.Reason != "" {
				t.Errorf("it was sent, and its reason is %s: %s", p.ReasonCode, p.Reason)
			}
			if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 100_000, Key: "later"}); err != nil {
				t.Error(err)
			}
			s.wantDecisions(tt.subject, tt.decided...)
			s.wantViolated()
		})
	}
}

// TestFreeze_IsMailed tells the seller of a freeze and of its end. Nobody is mailed about a pause.
func TestFreeze_IsMailed(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	mailbox := storetest.NewMailbox(t, s.db, s.keys, func() time.Time { return s.now })
	o.Mails = mailbox
	var err error
	if s.payouts, err = payout.New(o); err != nil {
		t.Fatal(err)
	}
	want := []mail.Data{mail.PayoutsFrozen{At: s.now}, mail.PayoutsFrozen{At: s.now.Add(time.Hour), Resumed: true}}
	for _, tt := range stopping {
		stopped := tt.stop(t.Context(), s.payouts, ada)
		s.now = s.now.Add(time.Hour)
		if err := errors.Join(stopped, tt.resume(t.Context(), s.payouts, ada)); err != nil {
			t.Fatal(err)
		}
	}
	if got := mailbox.To("usr_a@example.com"); !reflect.DeepEqual(got, want) {
		t.Errorf("mailed was %+v, want %+v", got, want)
	}
}

// TestFreeze_OfOneSeller leaves others alone, and what waits can be cancelled.
func TestFreeze_OfOneSeller(t *testing.T) {
	s := newStory(t)
	if err := s.payouts.Freeze(t.Context(), ada, "usr_nobody"); !errors.Is(err, payout.ErrSellerNotFound) {
		t.Errorf("frozen is nobody: %v", err)
	}
	if err := s.payouts.Freeze(t.Context(), ada, "usr_a"); err != nil {
		t.Fatal(err)
	}
	other, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	s.later(windowOver)
	if p := s.stored(t, other.ID); p.State != payout.Submitted {
		t.Errorf("the payout of another seller is %s", p.State)
	}
	s.wantState(payout.Waiting)
	p, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
	if err != nil || p.State != payout.Cancelled || p.ReasonCode != "" {
		t.Errorf("cancelled is %+v, %v", p, err)
	}
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestStopped_Resumed_AnswerLost sends what waited, and nobody knows whether it arrived. That it waited is no longer said.
func TestStopped_Resumed_AnswerLost(t *testing.T) {
	for _, tt := range stopping {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			if err := tt.stop(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			s.later(windowOver)
			if p := s.wantState(payout.Waiting); !p.IsStopped() {
				t.Errorf("it is not said that it waits: %q", p.ReasonCode)
			}
			s.gateway.mood = lostAnswers
			if err := tt.resume(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			s.later(0)
			if p := s.wantState(payout.Unknown); p.ReasonCode != "" || p.Reason != "" || p.IsStopped() {
				t.Errorf("its reason is %q: %q", p.ReasonCode, p.Reason)
			}
		})
	}
}

// TestStopped_SaysTheReasonOfNow ends one of two stops of a payout that waits for both.
func TestStopped_SaysTheReasonOfNow(t *testing.T) {
	s := newStory(t)
	freeze, pause := stopping[0], stopping[1]
	if err := errors.Join(freeze.stop(t.Context(), s.payouts, ada), pause.stop(t.Context(), s.payouts, ada)); err != nil {
		t.Fatal(err)
	}
	s.later(windowOver)
	if p := s.wantState(payout.Waiting); !strings.Contains(p.Reason, "of this account") {
		t.Errorf("frozen and paused, its reason is %q", p.Reason)
	}
	if err := freeze.resume(t.Context(), s.payouts, ada); err != nil {
		t.Fatal(err)
	}
	s.later(15 * time.Minute)
	if p := s.wantState(payout.Waiting); !strings.Contains(p.Reason, "for all sellers") {
		t.Errorf("only paused, its reason is %q", p.Reason)
	}
}

// TestStopped_UnknownIsNotSentAgain stops payouts while nobody knows whether one was sent.
func TestStopped_UnknownIsNotSentAgain(t *testing.T) {
	for _, tt := range stopping {
		t.Run(tt.name, func(t *testing.T) {
			s := newUnclearStory(t)
			sent := s.gateway.sent
			if err := tt.stop(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				s.later(time.Hour)
			}
			if s.wantState(payout.Unknown); s.gateway.sent != sent {
				t.Errorf("%d orders were sent again", s.gateway.sent-sent)
			}
			if err := tt.resume(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			s.later(8 * time.Hour)
			s.wantState(payout.Submitted)
			s.wantViolated()
		})
	}
}

// TestStopped_BesideClaims stops payouts while several instances send them: what was not claimed by then is not sent.
func TestStopped_BesideClaims(t *testing.T) {
	for _, tt := range stopping {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			ids := []payout.ID{s.id}
			for range 7 {
				p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 100_000})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, p.ID)
			}
			s.now = s.now.Add(windowOver)
			another := s.newPayouts(t)
			if err := another.ReconcileStartup(t.Context()); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for i, id := range ids {
				all.Go(func() {
					if err := []*payout.Service{s.payouts, another}[i%2].Step(t.Context(), id); err != nil {
						t.Error(err)
					}
				})
			}
			var waiting []payout.ID
			all.Go(func() {
				if err := tt.stop(t.Context(), another, ada); err != nil {
					t.Error(err)
				}
				for _, id := range ids {
					if p, err := s.db.Payout(t.Context(), id); err != nil {
						t.Error(err)
					} else if p.State == payout.Waiting {
						waiting = append(waiting, id)
					}
				}
			})
			all.Wait()
			for _, id := range waiting {
				if p := s.stored(t, id); p.State != payout.Waiting || s.gateway.transfers[string(id)] != nil {
					t.Errorf("payout %s waited when payouts were stopped, and is %s", id, p.State)
				}
			}
			if got := len(s.gateway.transfers) + len(waiting); got != len(ids) {
				t.Errorf("%d of %d payouts were sent, and %d wait", len(s.gateway.transfers), len(ids), len(waiting))
			}
			if tt.name == "freeze" {
				s.wantNoClaimAfterFreeze()
			}
			s.wantViolated()
		})
	}
}

// wantNoClaimAfterFreeze reads the seller's journal: behind the freeze nothing is being sent.
func (s *story) wantNoClaimAfterFreeze() {
	s.Helper()
	entries, err := s.db.EntriesAfter(s.Context(), "usr_a", 0, 1000)
	if err != nil {
		s.Fatal(err)
	}
	frozen := false
	for _, e := range entries {
		frozen = frozen || e.Type == ledger.PayoutsFrozen
		if frozen != e.After.Frozen || frozen && e.Type == ledger.PayoutSubmitting {
			s.Errorf("entry %d, %s, after the freeze: %t; its totals are %s", e.Number, e.Type, frozen, e.After.Text())
		}
	}
	if !frozen {
		s.Error(fmt.Sprint("there is no entry of the freeze among ", len(entries)))
	}
}

// TestPause_TamperedWith takes the pause out of the database: nothing is sent on its word.
func TestPause_TamperedWith(t *testing.T) {
	for name, sql := range map[string]string{
		"the flag":             `UPDATE journals SET frozen = 0 WHERE owner = 'platform'`,
		"the row":              `DELETE FROM journals WHERE owner = 'platform'`,
		"the entry":            `DELETE FROM entries WHERE owner = 'platform'`,
		"a row that was there": `UPDATE journals SET number = 1, hash = (SELECT hash FROM entries WHERE owner = 'platform' AND number = 1), mac = (SELECT mac FROM entries WHERE owner = 'platform' AND number = 1), frozen = 0 WHERE owner = 'platform'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			pause, resume := stopping[1].stop, stopping[1].resume
			if name == "a row that was there" { // an entry before, which leaves payouts going
				if err := s.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
					return ledger.RecordDecision(t.Context(), tx, decision.New(ada, decision.AskGateway, "", "pyt_1", s.now))
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := pause(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			s.place.ByHand(t, sql)
			s.later(windowOver)
			s.later(time.Hour)
			if p := s.wantState(payout.Waiting); s.gateway.sent > 0 || p.Discrepancy != "" { // the payout is as it was
				t.Errorf("%d orders were sent; its discrepancy is %q", s.gateway.sent, p.Discrepancy)
			}
			if _, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 100_000}); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("a request is answered with %v", err)
			}
			if e, err := s.payouts.Explain(t.Context(), "usr_a"); err != nil || !slices.ContainsFunc(e.Blockers, func(b payout.Blocker) bool { return b.Code == payout.BlockedTampered }) {
				t.Errorf("the seller hears of %+v, %v", e.Blockers, err)
			}
			if err := resume(t.Context(), s.payouts, ada); err == nil && name != "the entry" { // which the audit finds to be missing
				t.Error("payouts were resumed")
			}
		})
	}
}

func TestPauseState_UnreadableEntry(t *testing.T) {
	s := newStory(t)
	if err := s.payouts.Pause(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Payouts().InTx(t.Context(), func(tx payout.Tx) error {
		_, err := tx.Append(t.Context(), ledger.Posting{
			Owner: decision.Platform, At: s.now, Type: ledger.PayoutsFrozen, Subject: decision.Platform, Actor: "admin:usr_ada", Data: "no JSON",
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if state, err := s.payouts.PauseState(t.Context()); err == nil {
		t.Errorf("the state is %+v", state)
	}
}

// TestLiftHold needs a note, and a hold that stands. It lets the seller request again.
func TestLiftHold(t *testing.T) {
	s := newStory(t)
	request := func() error {
		_, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 60_000})
		return err
	}
	if err := s.payouts.LiftHold(t.Context(), ada, "usr_a", time.Time{}); !errors.Is(err, payout.ErrNoHold) {
		t.Errorf("without a hold: %v", err)
	}
	if err := s.hold("usr_a"); err != nil {
		t.Fatal(err)
	}
	err := request()
	if f := fault.From(err); !errors.Is(err, payout.ErrOnHold) || f.Details["until"] != s.now.Add(72*time.Hour).UTC().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("requested under a hold: %v", err)
	}
	if err := s.payouts.LiftHold(t.Context(), decision.By{Admin: ada.Admin}, "usr_a", time.Time{}); !errors.Is(err, fault.Field("note", "")) {
		t.Errorf("without a note: %v", err)
	}
	if err := s.payouts.LiftHold(t.Context(), ada, "usr_a", s.now.Add(71*time.Hour)); !errors.Is(err, payout.ErrHoldChanged) {
		t.Errorf("of another hold: %v", err)
	}
	s.wantDecisions("usr_a")
	if err := s.payouts.LiftHold(t.Context(), ada, "usr_a", s.now.Add(72*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.wantDecisions("usr_a", decision.LiftHold)
	if err := request(); err != nil {
		t.Errorf("requested after the hold was lifted: %v", err)
	}
	s.wantViolated()
}

// TestDecisions_OfOwnMoney lets no admin send or return their own money.
func TestDecisions_OfOwnMoney(t *testing.T) {
	s := newReviewStory(t)
	own := decision.By{Admin: "usr_a", Note: "It is fine."}
	if err := errors.Join(s.payouts.Freeze(t.Context(), ada, "usr_a"), s.hold("usr_a")); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Hour)
	for name, decide := range map[string]func() error{
		"unfreeze":  func() error { return s.payouts.Unfreeze(t.Context(), own, "usr_a") },
		"lift hold": func() error { return s.payouts.LiftHold(t.Context(), own, "usr_a", time.Time{}) },
		"refund":    func() error { _, err := s.payouts.RefundToBalance(t.Context(), own, s.id); return err },
	} {
		if err := decide(); !errors.Is(err, decision.ErrOwn) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.wantState(payout.ManualReview)
	if balance, err := s.db.Balance(t.Context(), "usr_a"); err != nil || !balance.Frozen || balance.Hold(s.now).IsZero() {
		t.Errorf("the balance is %+v, %v", balance, err)
	}
	if err := s.payouts.Freeze(t.Context(), own, "usr_a"); !errors.Is(err, payout.ErrFrozen) {
		t.Errorf("an admin stops their own payouts: %v", err)
	}
}

// secondFails is a store whose second transaction fails.
type secondFails struct {
	payout.Store
	begun int
}

func (f *secondFails) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	if f.begun++; f.begun == 2 {
		return errors.New("the disk is full")
	}
	return f.Store.InTx(ctx, fn)
}

// TestStopped_NotRescheduled ends a stop, and then can't make due what waits for that. The stop is over, the log says
// what failed, and what waits is sent when it is looked at next.
func TestStopped_NotRescheduled(t *testing.T) {
	for _, tt := range stopping {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			if err := tt.stop(t.Context(), s.payouts, ada); err != nil {
				t.Fatal(err)
			}
			s.later(windowOver)
			s.wantState(payout.Waiting)
			failing := s.newPayoutsOn(t, &secondFails{Store: s.db.Payouts()})
			if err := tt.resume(t.Context(), failing, ada); err != nil {
				t.Fatal(err)
			}
			s.wantLogged(1, slog.LevelWarn, "stopped payouts not rescheduled", "owner="+tt.subject, "disk is full")
			s.later(0)
			s.wantState(payout.Waiting)
			s.later(time.Hour)
			s.wantState(payout.Submitted)
		})
	}
}

// decisions lists what is on record about a subject, newest first.
func (s *story) decisions(subject string) []decision.Decision {
	s.Helper()
	list, err := s.db.Decisions(s.Context(), subject, 20)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// freezeless is a store that can't write a freeze while writes is false.
type freezeless struct {
	payout.Store
	writes *bool
}

func (f freezeless) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	return f.Store.InTx(ctx, func(tx payout.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if b, err := tx.Balance(ctx, "usr_a"); err != nil || b.Frozen && !*f.writes {
			return errors.Join(err, errDied)
		}
		return nil
	})
}

// lostStore is a store that fails whatever comes after a gateway's answer while it is down.
type lostStore struct {
	payout.Store
	down *bool
}

func (l lostStore) InGroup(ctx context.Context, scope ledger.Scope, fn func(payout.ChangeTx) error) error {
	if *l.down {
		return errDied
	}
	return l.Store.InGroup(ctx, scope, fn)
}

func (l lostStore) EntriesAbout(ctx context.Context, owner, subject string) ([]ledger.Entry, error) {
	if *l.down {
		return nil, errDied
	}
	return l.Store.EntriesAbout(ctx, owner, subject)
}

// TestPaidAfterItsEnd_DatabaseLost loses the database between the gateway's answer, that a payout that failed is paid, and the write. When it is
// back, the seller's next payout waits until the freeze is written.
func TestPaidAfterItsEnd_DatabaseLost(t *testing.T) {
	for name, tell := range map[string]func(*story){
		"paid":          func(s *story) { s.put(s.made(gateway.Paid)) },
		"two transfers": func(s *story) { s.gateway.twofold = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			next := s.failThenRequest()
			tell(s)
			s.notification("event-1")
			s.now = s.now.Add(windowOver)
			down := false
			s.payouts = s.newPayoutsOn(t, lostStore{s.db.Payouts(), &down})
			s.reconcileStartup()
			down = true
			if err := s.payouts.Step(t.Context(), s.id); !errors.Is(err, errDied) {
				t.Errorf("the step ended with %v", err)
			}
			down = false
			s.gateway.twofold = false // the next one has its own
			if err := s.payouts.Step(t.Context(), next.ID); err != nil {
				t.Errorf("the step of the next payout ended with %v", err)
			}
			if state, made := s.stateOf(next.ID), s.decisions("usr_a"); state != payout.Waiting || len(made) != 0 {
				t.Errorf("the next payout is %s, and on record are %+v", state, made)
			}
			tell(s)
			_ = s.payouts.Step(t.Context(), s.id)
			s.gateway.twofold = false
			if made := s.decisions("usr_a"); len(made) != 1 || made[0].Action != decision.FreezePayouts {
				t.Errorf("on record are %+v", made)
			}
			s.resolveAndUnfreeze()
			s.later(15 * time.Minute)
			if state := s.stateOf(next.ID); state != payout.Submitted {
				t.Errorf("payouts were resumed, and the next one is %s", state)
			}
		})
	}
}

// resolveAndUnfreeze has an admin end a freeze, which waits until the discrepancy is resolved.
func (s *story) resolveAndUnfreeze() {
	s.Helper()
	early := s.payouts.Unfreeze(s.Context(), ada, "usr_a")
	if !errors.Is(early, payout.ErrDiscrepancyOpen) || !strings.Contains(fault.From(early).Message, string(s.id)) {
		s.Errorf("with an open discrepancy, ending the freeze is answered with %v", early)
	}
	if err := s.payouts.ResolveDiscrepancy(s.Context(), ada, s.id, s.payout().Discrepancy); err != nil {
		s.Fatal(err)
	}
	if err := s.payouts.Unfreeze(s.Context(), ada, "usr_a"); err != nil {
		s.Fatal(err)
	}
}

// failThenRequest has the payout refused, and requests the next one.
func (s *story) failThenRequest() payout.Payout {
	s.gateway.mood = refusing
	s.later(windowOver)
	s.gateway.mood = fair
	s.wantState(payout.Failed)
	return s.request("usr_a", 100_000)
}

// TestPaidAfterItsEnd_FreezesSeller has a gateway that has a transfer, or two, of a payout whose amount its seller has back. The next payout would
// send that money again, so it waits until an admin has looked. What the admin has seen freezes nothing again.
// TestPaidAfterItsEnd_SaidOtherwiseMeanwhile has a gateway say that a payout that failed is paid, then otherwise. An admin resolves the discrepancy
// before that or after. When the gateway says once more that it is paid, that is new, and freezes the seller's payouts again.
func TestPaidAfterItsEnd_SaidOtherwiseMeanwhile(t *testing.T) {
	isPaid := func(s *story, made *transfer) { made.progress = gateway.Paid }
	says := func(word gateway.Progress) func(*story, *transfer) {
		return func(s *story, made *transfer) { s.gateway.twofold, made.progress = false, word }
	}
	anotherAmount := func(s *story, made *transfer) { made.progress, made.amount = gateway.Paid, s.payout().Net()-100 }
	twoTransfers := func(s *story, _ *transfer) { s.gateway.twofold = true }
	asOrdered := func(s *story, made *transfer) {
		s.gateway.twofold, made.progress, made.amount = false, gateway.Failed, s.payout().Net()
	}
	type words []func(*story, *transfer)
	for name, tt := range map[string]struct {
		first             func(*story, *transfer)
		meanwhile         words
		resolvedMeanwhile bool
	}{
		"under way, then failed":            {isPaid, words{says(gateway.InProgress), says(gateway.Failed)}, false},
		"under way":                         {isPaid, words{says(gateway.InProgress)}, false},
		"failed":                            {isPaid, words{says(gateway.Failed)}, false},
		"cancelled":                         {isPaid, words{says(gateway.Cancelled)}, false},
		"failed, after it was resolved":     {isPaid, words{says(gateway.Failed)}, true},
		"failed, and was of another amount": {anotherAmount, words{asOrdered}, false},
		"one that failed, and were two":     {twoTransfers, words{asOrdered}, false},
		"two, after it was resolved":        {twoTransfers, words{asOrdered}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			next := s.failThenRequest()
			made := s.made(gateway.Paid)
			s.put(made)
			say := func(what func(*story, *transfer)) string {
				what(s, made)
				s.notification("event-" + s.now.String())
				s.later(time.Second)
				return s.wantState(payout.Failed).Discrepancy
			}
			first := say(tt.first)
			s.wantOnHold("usr_a")
			if tt.resolvedMeanwhile {
				s.gateway.twofold = false // the admin claims it there
				s.resolveAndUnfreeze()
			}
			for _, what := range tt.meanwhile {
				say(what)
			}
			if !tt.resolvedMeanwhile {
				s.resolveAndUnfreeze()
			}
			if again := say(tt.first); again != first {
				t.Errorf("on record is %q, want %q", again, first)
			}
			s.wantOnHold("usr_a")
			s.gateway.twofold = false
			s.later(windowOver)
			if state := s.stateOf(next.ID); state != payout.Waiting {
				t.Errorf("the next payout is %s", state)
			}
			s.resolveAndUnfreeze()
			decided := len(s.decisions("usr_a"))
			say(tt.first) // which the admin has seen by now
			if now := s.decisions("usr_a"); len(now) != decided {
				t.Errorf("it was frozen again for what an admin has resolved: %+v", now[0])
			}
		})
	}
}

// TestPaidAfterItsEnd_RowChanged has the row of a payout that failed hide what the gateway's word means: it has a discrepancy that is none, or was
// completed, so that what the gateway says fits.
func TestPaidAfterItsEnd_RowChanged(t *testing.T) {
	for change, want := range map[string]string{
		`discrepancy = 'something else'`:                "something else",
		`state = 'completed', gateway_id = 'pout_paid'`: payout.TamperedNote,
	} {
		s := newStory(t)
		s.failThenRequest()
		made := s.made(gateway.Paid)
		made.id = "pout_paid"
		s.put(made)
		s.place.ByHand(t, `UPDATE payouts SET `+change+` WHERE id = '`+string(s.id)+`'`)
		s.notification("event-1")
		s.later(time.Second)
		s.wantOnHold("usr_a")
		if p := s.payout(); p.Discrepancy != want {
			t.Errorf("%s: on record is %q", change, p.Discrepancy)
		}
	}
}

// TestPaidAfterItsEnd_DiscrepancyFromBefore has a payout end unpaid that has a discrepancy already, which froze nobody. If the gateway says the same
// once more, or pays what was ordered, its seller's payouts are frozen.
func TestPaidAfterItsEnd_DiscrepancyFromBefore(t *testing.T) {
	oddAmount := func(t *testing.T) (*story, *transfer) {
		t.Helper()
		s := newReviewStory(t)
		odd := s.made(gateway.InProgress)
		odd.amount -= 100
		s.put(odd)
		if _, err := s.payouts.AskGateway(t.Context(), ada, s.id); err != nil {
			t.Fatal(err)
		}
		if s.payout().Discrepancy == "" {
			t.Fatal("the gateway has a transfer of another amount, and there is no discrepancy")
		}
		return s, odd
	}
	for name, tell := range map[string]func(*story, *transfer){
		"another amount is paid, by notification": func(s *story, odd *transfer) {
			odd.progress = gateway.Paid
			s.notification("event-1")
		},
		"the amount is paid, and nobody is notified": func(_ *story, odd *transfer) {
			odd.progress, odd.amount = gateway.Paid, odd.amount+100
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, odd := oddAmount(t)
			s.gateway.misplaced = true // for a moment, in which an admin refunds it
			s.now = s.now.Add(time.Hour)
			if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
				t.Fatal(err)
			}
			s.wantState(payout.Failed)
			s.gateway.misplaced = false
			tell(s, odd)
			for range 30 {
				s.later(time.Hour)
			}
			s.wantOnHold("usr_a")
		})
	}
	t.Run("the gateway fails it, and pays another amount", func(t *testing.T) {
		s, odd := oddAmount(t)
		odd.amount, odd.progress = odd.amount+100, gateway.Failed
		s.later(7 * time.Hour)
		s.wantState(payout.Failed)
		odd.amount, odd.progress = odd.amount-100, gateway.Paid
		s.notification("event-1")
		s.later(time.Second)
		s.wantOnHold("usr_a")
		s.resolveAndUnfreeze()
		s.notification("event-2")
		s.later(time.Second)
		if p := s.wantState(payout.Failed); p.Discrepancy == "" {
			t.Error("it was told again, and is not listed again")
		}
	})
}

// TestPaidTwice_BesideAnotherDiscrepancy has a payout in review with a discrepancy that freezes nobody. Then the gateway has two transfers of it.
func TestPaidTwice_BesideAnotherDiscrepancy(t *testing.T) {
	s := newReviewStory(t)
	odd := s.made(gateway.InProgress)
	odd.amount -= 100
	s.put(odd)
	if _, err := s.payouts.AskGateway(t.Context(), ada, s.id); err != nil {
		t.Fatal(err)
	}
	before := s.payout().Discrepancy
	if before == "" || len(s.decisions("usr_a")) > 0 {
		t.Fatalf("on record is %q, decided was %+v", before, s.decisions("usr_a"))
	}
	s.gateway.twofold = true
	s.notification("event-1")
	s.later(time.Hour)
	if now := s.payout().Discrepancy; now == before {
		t.Errorf("there are two transfers, and on record is %q", now)
	}
	s.wantOnHold("usr_a")
	if err := s.payouts.Unfreeze(t.Context(), ada, "usr_a"); err != nil {
		t.Fatal(err)
	}
	decided := len(s.decisions("usr_a"))
	for i := range 3 { // what an admin has seen freezes nobody again
		s.notification(fmt.Sprint("event-", i+2))
		s.later(7 * time.Hour)
	}
	if now := s.decisions("usr_a"); len(now) != decided {
		t.Errorf("it was frozen again: %+v", now[0])
	}
}

// TestPaidAgainAfterItsReturn has the bank return a payout, whose amount its seller has again. What the gateway says soon after that may be of
// before; later it means that the money left once more.
func TestPaidAgainAfterItsReturn(t *testing.T) {
	for name, tt := range map[string]struct {
		said     gateway.Progress
		lateFor  time.Duration
		isListed bool
	}{
		"paid, late":            {gateway.Paid, 14 * time.Minute, false},
		"paid again":            {gateway.Paid, 16 * time.Minute, true},
		"under way, late":       {gateway.InProgress, 4 * time.Minute, false},
		"under way again":       {gateway.InProgress, 6 * time.Minute, true},
		"returned, told again":  {gateway.Reversed, 24 * time.Hour, false},
		"paid again days later": {gateway.Paid, 72 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, made := newPaidStory(t)
			made.progress = gateway.Reversed
			s.notification("evt_back")
			s.later(time.Second)
			s.wantState(payout.Returned)
			s.wantAvailable(opening)
			s.now = s.now.Add(tt.lateFor)
			made.progress = tt.said
			s.notification("evt_again")
			s.later(0)
			if p := s.wantState(payout.Returned); (p.Discrepancy != "") != tt.isListed {
				t.Errorf("the discrepancy is %q", p.Discrepancy)
			}
			s.wantAvailable(opening)
			decided := s.decisions("usr_a")
			if !tt.isListed {
				if len(decided) > 0 {
					t.Errorf("on record are %+v", decided)
				}
				if tt.said == gateway.Reversed {
					return
				}
				for range 3 { // it is asked again, and says so still
					s.later(time.Hour)
				}
				decided = s.decisions("usr_a")
			}
			if len(decided) != 1 || decided[0].Action != decision.FreezePayouts {
				t.Errorf("on record are %+v, want a freeze", decided)
			}
			s.wantOnHold("usr_a")
			s.resolveAndUnfreeze()
		})
	}
}

func TestPaidAfterItsEnd_FreezesSeller(t *testing.T) {
	for name, tell := range map[string]func(*story){
		"paid":          func(s *story) { s.put(s.made(gateway.Paid)) },
		"under way":     func(s *story) { s.put(s.made(gateway.InProgress)) },
		"two transfers": func(s *story) { s.gateway.twofold = true },
		"paid, and its row was changed": func(s *story) {
			s.put(s.made(gateway.Paid))
			s.place.ByHand(s.T, `UPDATE payouts SET notes = 'gift' WHERE id = '`+string(s.id)+`'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			next := s.failThenRequest()
			tell(s)
			s.notification("event-1")
			s.later(time.Second)
			s.wantOnHold("usr_a")
			s.gateway.twofold = false // the next one has its own
			sent := s.gateway.sent
			s.later(windowOver)
			if state := s.stateOf(next.ID); state != payout.Waiting || s.gateway.sent != sent {
				t.Errorf("the next payout is %s, and %d orders were sent", state, s.gateway.sent-sent)
			}
			if made := s.decisions("usr_a"); len(made) != 1 || made[0].Action != decision.FreezePayouts || ledger.DecidedBy(made[0]) != ledger.ActorSystem || !strings.Contains(made[0].Note, string(s.id)) {
				t.Errorf("on record are %+v", made)
			}
			s.resolveAndUnfreeze()
			tell(s)
			s.notification("event-2")
			s.later(0)
			s.gateway.twofold = false
			if p := s.wantState(payout.Failed); p.Discrepancy == "" {
				t.Error("it was told again, and is not listed again")
			}
			s.later(15 * time.Minute)
			if state := s.stateOf(next.ID); state != payout.Submitted {
				t.Errorf("payouts were resumed, and the next one is %s", state)
			}
			if made := s.decisions("usr_a"); len(made) != 2 {
				t.Errorf("it was frozen again: on record are %+v", made)
			}
		})
	}
	t.Run("frozen before", func(t *testing.T) {
		s := newStory(t)
		s.failThenRequest()
		if err := s.payouts.Freeze(t.Context(), ada, "usr_a"); err != nil {
			t.Fatal(err)
		}
		s.put(s.made(gateway.Paid))
		s.notification("event-1")
		s.later(time.Second)
		if p := s.wantState(payout.Failed); p.Discrepancy == "" {
			t.Error("nothing was written down")
		}
		s.wantDecisions("usr_a", decision.FreezePayouts)
		s.resolveAndUnfreeze() // who froze them may not know of it
	})
	t.Run("not where the row alone says that it failed", func(t *testing.T) {
		s := newStory(t)
		s.later(windowOver)
		s.gateway.transfers[string(s.id)].advance(1)
		s.later(time.Hour)
		s.wantState(payout.Completed)
		s.place.ByHand(t, `UPDATE payouts SET state = 'failed' WHERE id = '`+string(s.id)+`'`)
		s.notification("event-1")
		s.later(time.Second)
		if p := s.payout(); !p.IsTampered() || len(s.decisions("usr_a")) > 0 {
			t.Errorf("the discrepancy is %q, and on record are %+v", p.Discrepancy, s.decisions("usr_a"))
		}
	})
	t.Run("a freeze that can't be written", func(t *testing.T) {
		s := newStory(t)
		next := s.failThenRequest()
		s.put(s.made(gateway.Paid))
		s.notification("event-1")
		s.now = s.now.Add(windowOver)
		writes := false
		s.payouts = s.newPayoutsOn(t, freezeless{s.db.Payouts(), &writes})
		s.reconcileStartup()
		if err := s.payouts.Step(t.Context(), s.id); !errors.Is(err, errDied) {
			t.Errorf("the step ended with %v", err)
		}
		if err := s.payouts.Step(t.Context(), next.ID); err != nil {
			t.Errorf("the step of the next payout ended with %v", err)
		}
		if state := s.stateOf(next.ID); state != payout.Waiting {
			t.Errorf("the freeze is not written, and the next payout is %s", state)
		}
		writes = true
		if err := s.payouts.Step(t.Context(), s.id); err == nil || len(s.decisions("usr_a")) != 1 {
			t.Errorf("the freeze can be written again: %v, and on record are %+v", err, s.decisions("usr_a"))
		}
		s.resolveAndUnfreeze()
		s.later(15 * time.Minute)
		if state := s.stateOf(next.ID); state != payout.Submitted {
			t.Errorf("payouts were resumed, and the next one is %s", state)
		}
	})
	t.Run("not for a transfer that failed", func(t *testing.T) {
		s := newStory(t)
		next := s.failThenRequest()
		s.put(s.made(gateway.Failed))
		s.gateway.transfers[string(s.id)].amount++
		s.notification("event-1")
		s.later(windowOver)
		if p := s.wantState(payout.Failed); p.Discrepancy == "" {
			t.Error("nothing was written down")
		}
		if state := s.stateOf(next.ID); state != payout.Submitted {
			t.Errorf("the next payout is %s", state)
		}
	})
}

// TestFreeze_ResumedBeforeTheDiscrepancy has an admin resume a seller's payouts right after they were frozen for a transfer, and before its discrepancy is recorded.
func TestFreeze_ResumedBeforeTheDiscrepancy(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	transfer := s.gateway.transfers[string(s.id)]
	transfer.progress = gateway.Failed
	s.later(time.Hour)
	s.wantState(payout.Failed)
	transfer.progress = gateway.Paid
	transfer.paid++
	admin, isResumed := s.newPayouts(t), false
	frozen := func() bool {
		b, err := s.db.Balance(t.Context(), "usr_a")
		if err != nil {
			t.Fatal(err)
		}
		return b.Frozen
	}
	s.payouts = s.newPayoutsOn(t, afterEach{s.db.Payouts(), func() {
		if !isResumed && frozen() {
			isResumed = true
			if err := admin.Unfreeze(t.Context(), ada, "usr_a"); err != nil {
				t.Error(err)
			}
		}
	}})
	s.reconcileStartup()
	s.later(48 * time.Hour)
	if s.payout().Discrepancy == "" || !isResumed || !frozen() {
		t.Errorf("a paid payout whose amount its seller has again has the discrepancy %q; payouts were resumed: %t; they are frozen: %t", s.payout().Discrepancy, isResumed, frozen())
	}
}

// afterEach does something after each transaction.
type afterEach struct {
	payout.Store
	do func()
}

func (a afterEach) InTx(ctx context.Context, fn func(payout.Tx) error) error {
	err := a.Store.InTx(ctx, fn)
	a.do()
	return err
}
