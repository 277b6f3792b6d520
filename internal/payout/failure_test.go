package payout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/storetest"
)

// TestStore_FailureIsNotSwallowed has each statement fail of each thing that the service does. The caller gets the error, or
// everything is as it is without the failure. Where it can be tried again at once, that leads there too.
func TestStore_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	seller, admin := payout.Caller{User: "usr_a"}, payout.Caller{User: ada.Admin, Admin: true, Note: ada.Note}
	step := func(s *story) func() (any, error) {
		return func() (any, error) { return nil, s.payouts.Step(t.Context(), s.id) }
	}
	disagreeing := func(s *story) func() (any, error) { // the step's own error is that the gateway disagrees
		return func() (any, error) {
			err := s.payouts.Step(t.Context(), s.id)
			if !errors.Is(err, storetest.ErrStatement) {
				err = nil
			}
			return nil, err
		}
	}
	stepIn := func(m mood) func(s *story) func() (any, error) {
		return func(s *story) func() (any, error) {
			s.now, s.gateway.mood = s.now.Add(windowOver), m
			return func() (any, error) {
				return nil, s.payouts.Step(t.Context(), s.id)
			}
		}
	}
	paid := func(s *story) {
		s.later(windowOver)
		s.gateway.transfers[string(s.id)].advance(1)
		s.later(time.Hour)
		s.wantState(payout.Completed)
	}
	stories := map[string]func(s *story) func() (any, error){
		"request": func(s *story) func() (any, error) {
			return func() (any, error) {
				p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1"})
				return p.Amount, err
			}
		},
		"request again": func(s *story) func() (any, error) {
			r := payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1"}
			first, _, err := s.payouts.Request(t.Context(), r)
			return func() (any, error) {
				p, replayed, again := s.payouts.Request(t.Context(), r)
				return fmt.Sprint(p.ID == first.ID, replayed), errors.Join(err, again)
			}
		},
		"request with a proof again": func(s *story) func() (any, error) { // in a transaction of its own, which reads the key itself
			o := s.options(t, s.db.Payouts())
			o.ProveAbove, o.Proofs = 1, proven{}
			payouts, err := payout.New(o)
			if err != nil {
				s.Fatal(err)
			}
			r := payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1", Session: "ses_1", Proof: "proof"}
			first, _, err := payouts.Request(t.Context(), r)
			return func() (any, error) {
				p, replayed, again := payouts.Request(t.Context(), r)
				return fmt.Sprint(p.ID == first.ID, replayed), errors.Join(err, again)
			}
		},
		"requested": func(s *story) func() (any, error) {
			first, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1"})
			return func() (any, error) {
				p, found, again := s.payouts.Requested(t.Context(), "usr_b", "k1")
				return fmt.Sprint(p.ID == first.ID, found), errors.Join(err, again)
			}
		},
		"answered": func(s *story) func() (any, error) {
			_, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1"})
			return func() (any, error) {
				answered, again := s.payouts.Answered(t.Context(), "usr_b", "k1")
				return answered, errors.Join(err, again)
			}
		},
		"refused": func(s *story) func() (any, error) {
			return func() (any, error) {
				_, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: opening + 1, Key: "k1"})
				if errors.Is(err, ledger.ErrInsufficient) {
					return err.Error(), nil
				}
				return nil, err
			}
		},
		"lease": func(s *story) func() (any, error) {
			s.now = s.now.Add(windowOver)
			return func() (any, error) { ids, err := s.payouts.LeaseDue(t.Context(), 10); return len(ids), err }
		},
		"submit":         stepIn(fair),
		"submit, lost":   stepIn(lostAnswers),
		"submit, no":     stepIn(refusing),
		"submit, closed": stepIn(closed),
		"submit, unsent": stepIn(unreachable),
		"submit, shun":   stepIn(shunning),
		"resolve": func(s *story) func() (any, error) {
			s.gateway.mood = lostAnswers
			s.later(windowOver)
			s.gateway.mood = fair
			return step(s)
		},
		"resend": func(s *story) func() (any, error) {
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.later(time.Minute)
			s.gateway.mood = fair
			return step(s)
		},
		"resend without funds": func(s *story) func() (any, error) { // see TestImport_PossiblySentGoesToReviewWithoutFunds
			var saved *backup
			s.gateway.mood, s.gateway.whenSent = refusing, func() { saved = s.save() }
			s.later(windowOver)
			s.gateway.mood, s.gateway.whenSent = fair, nil
			s.request("usr_a", opening)
			s.later(windowOver)
			s.putBack(t, saved)
			s.payouts = s.newPayoutsOn(t, s.db.Payouts())
			s.reconcileStartup()
			return step(s)
		},
		"two transfers": func(s *story) func() (any, error) {
			s.gateway.mood = lostAnswers
			s.later(windowOver)
			s.gateway.mood, s.gateway.twofold = fair, true
			return disagreeing(s)
		},
		"paid after its end": func(s *story) func() (any, error) {
			s.gateway.mood = refusing
			s.later(windowOver)
			s.put(s.made(gateway.Paid))
			return disagreeing(s)
		},
		"gateway not configured": func(s *story) func() (any, error) {
			s.route("another", s.another())
			s.payouts = s.newPayoutsOn(t, s.db.Payouts())
			s.now = s.now.Add(windowOver)
			return step(s)
		},
		"poll": func(s *story) func() (any, error) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			return step(s)
		},
		"discrepancy": func(s *story) func() (any, error) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].amount++
			return func() (any, error) {
				err := s.payouts.Step(t.Context(), s.id)
				if !errors.Is(err, storetest.ErrStatement) {
					err = nil
				}
				return nil, err
			}
		},
		"final check": func(s *story) func() (any, error) {
			s.gateway.mood = refusing
			s.later(windowOver)
			s.wantState(payout.Failed)
			return step(s)
		},
		"mail": func(s *story) func() (any, error) {
			s.gateway.mood = refusing
			s.later(windowOver)
			s.wantState(payout.Failed)
			return func() (any, error) {
				events, err := s.db.NumberEvents(t.Context(), 100, s.now, func(prefix string) string { return id.New(prefix, s.now) }, func(ctx context.Context, tx event.MailTx, e event.Event) error {
					return s.payouts.MailFailure(ctx, tx, e.Owner, payout.ID(e.Subject))
				})
				return len(events), err
			}
		},
		"return": func(s *story) func() (any, error) {
			paid(s)
			s.gateway.transfers[string(s.id)].advance(3)
			return step(s)
		},
		"poll reversals": func(s *story) func() (any, error) {
			paid(s)
			for range 4 { // until its own polls are far apart
				s.later(2 * time.Hour)
			}
			s.gateway.transfers[string(s.id)].advance(3)
			return func() (any, error) {
				s.now = s.now.Add(10 * time.Minute)
				return s.payouts.PollReversals(t.Context())
			}
		},
		"notify": func(s *story) func() (any, error) {
			s.later(windowOver)
			return func() (any, error) {
				err := s.payouts.Notify(t.Context(), paper, "evt_1", s.id)
				return nil, err
			}
		},
		"cancel": func(s *story) func() (any, error) {
			return func() (any, error) {
				_, _, err := s.payouts.Cancel(t.Context(), admin, s.id, "k2")
				return nil, err
			}
		},
		"cancel at the gateway": func(s *story) func() (any, error) {
			s.gateway.mood = queueing
			s.later(windowOver)
			s.gateway.mood = fair
			return func() (any, error) {
				_, _, err := s.payouts.Cancel(t.Context(), admin, s.id, "")
				return nil, err
			}
		},
		"send to review": func(s *story) func() (any, error) {
			s.gateway.mood = lostRequests
			s.later(windowOver)
			return func() (any, error) {
				_, err := s.payouts.SendToReview(t.Context(), ada, s.id)
				return nil, err
			}
		},
		"refund to balance": func(s *story) func() (any, error) {
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.gateway.mood = fair
			s.sendToReview(t, s.id)
			s.now = s.now.Add(time.Hour)
			return func() (any, error) {
				_, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
				return nil, err
			}
		},
		"refund what the gateway has": func(s *story) func() (any, error) {
			s.gateway.mood, s.gateway.misplaced = lostAnswers, true
			s.later(windowOver)
			s.gateway.mood = fair
			s.sendToReview(t, s.id)
			s.gateway.misplaced = false
			s.now = s.now.Add(time.Hour)
			return func() (any, error) {
				_, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
				if errors.Is(err, payout.ErrKnownToGateway) {
					err = nil
				}
				return nil, err
			}
		},
		"ask the gateway": func(s *story) func() (any, error) {
			s.gateway.mood = lostAnswers
			s.later(windowOver)
			s.gateway.mood = fair
			return func() (any, error) {
				_, err := s.payouts.AskGateway(t.Context(), ada, s.id)
				return nil, err
			}
		},
		"clear": func(s *story) func() (any, error) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].amount++
			s.later(time.Hour)
			said := s.payout().Discrepancy
			return func() (any, error) {
				err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, said)
				return nil, err
			}
		},
		"match transfer": func(s *story) func() (any, error) {
			s.gateway.mood = lostAnswers
			s.later(windowOver)
			s.gateway.mood, s.gateway.misplaced = fair, true
			return func() (any, error) {
				_, err := s.payouts.MatchTransfer(t.Context(), ada, s.id, s.gateway.transfers[string(s.id)].id)
				return nil, err
			}
		},
		"freeze": func(s *story) func() (any, error) {
			return func() (any, error) {
				err := s.payouts.Freeze(t.Context(), ada, "usr_a")
				return s.decided("usr_a"), err
			}
		},
		"unfreeze": func(s *story) func() (any, error) {
			err := s.payouts.Freeze(t.Context(), ada, "usr_a")
			s.later(windowOver) // it waits
			return func() (any, error) {
				return s.sentAfter("usr_a"), errors.Join(err, s.payouts.Unfreeze(t.Context(), ada, "usr_a"))
			}
		},
		"pause": func(s *story) func() (any, error) {
			return func() (any, error) {
				err := s.payouts.Pause(t.Context(), ada)
				return s.decided(decision.Platform), err
			}
		},
		"pause by a command": func(s *story) func() (any, error) {
			return func() (any, error) {
				by := decision.By{Operator: "asha", Note: "The bank is closed."}
				return s.decided(decision.Platform), payout.PauseOrResume(t.Context(), s.db.Payouts(), by, decision.PausePayouts, s.now)
			}
		},
		"resume": func(s *story) func() (any, error) {
			err := s.payouts.Pause(t.Context(), ada)
			s.later(windowOver) // it waits
			return func() (any, error) {
				return s.sentAfter(decision.Platform), errors.Join(err, s.payouts.Resume(t.Context(), ada))
			}
		},
		"lift hold": func(s *story) func() (any, error) {
			held := s.hold("usr_a")
			return func() (any, error) {
				err := s.payouts.LiftHold(t.Context(), ada, "usr_a", time.Time{})
				return s.decided("usr_a"), errors.Join(held, err)
			}
		},
		"resolve unmatched transfer": func(s *story) func() (any, error) {
			s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{id: "pout_9", amount: 500, progress: gateway.Paid, made: s.now}
			s.payouts = s.newPayoutsOn(t, s.db.Payouts())
			s.reconcileStartup()
			return func() (any, error) {
				err := s.payouts.ResolveUnmatchedTransfer(t.Context(), ada, "paper:pout_9")
				return s.decided("paper:pout_9"), err
			}
		},
		"startup": func(s *story) func() (any, error) {
			b := s.save()
			s.later(windowOver)
			s.request("usr_b", 90_000)
			s.later(windowOver)
			s.putBack(t, b)
			return func() (any, error) {
				// What goes wrong after an import is left to the next step.
				return func() { s.later(time.Second) }, s.payouts.ReconcileStartup(t.Context())
			}
		},
		"startup without funds": func(s *story) func() (any, error) { // see TestRestored_SpentMoney_NotPaidAgain
			b := s.save()
			if _, _, err := s.payouts.Cancel(t.Context(), seller, s.id, ""); err != nil {
				t.Fatal(err)
			}
			s.request("usr_a", opening)
			s.later(windowOver)
			s.putBack(t, b)
			return func() (any, error) {
				return func() { s.later(time.Second) }, s.payouts.ReconcileStartup(t.Context())
			}
		},
		"startup without a list": func(s *story) func() (any, error) {
			s.later(windowOver)
			s.now = s.now.Add(time.Second)
			s.gateway.lacking = unlisted
			s.payouts = s.newPayoutsOn(t, s.db.Payouts())
			return func() (any, error) { return nil, s.payouts.ReconcileStartup(t.Context()) }
		},
		"startup, another gateway's": func(s *story) func() (any, error) {
			other := s.another()
			s.route("another", s.gateway, other)
			other.transfers[string(s.id)] = &transfer{id: "x_1", amount: 100, progress: gateway.Paid, made: s.now}
			return s.reconcileUnmatched()
		},
		"startup, another transfer": func(s *story) func() (any, error) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].id = "pout_other"
			return s.reconcileUnmatched()
		},
		"startup, two transfers of what waits": func(s *story) func() (any, error) {
			b := s.save()
			s.later(windowOver)
			s.gateway.twofold = true
			s.putBack(t, b)
			return s.reconcileUnmatched()
		},
		"startup, nobody's transfer": func(s *story) func() (any, error) {
			s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{id: "pout_9", amount: 500, progress: gateway.Paid, made: s.now}
			return s.reconcileUnmatched()
		},
		"startup, tampered account": func(s *story) func() (any, error) {
			s.gateway.tampered = true
			s.gateway.transfers["pyt_"+strings.Repeat("0", 24)] = &transfer{
				id: "pout_9", amount: 90_000, progress: gateway.Paid, made: s.now, order: gateway.Order{Seller: "usr_b", Account: "bka_usr_b", Gross: 100_000},
			}
			return s.reconcileUnmatched()
		},
		"repair": func(s *story) func() (any, error) {
			s.place.ByHand(t, `UPDATE payouts SET amount = amount + 1; UPDATE sales SET amount = amount + 1; UPDATE earnings SET amount = amount + 1;
				UPDATE bank_accounts SET holder = 'Mallory'; UPDATE journals SET available = available + 1 WHERE owner = 'usr_b'`)
			repaired := 0 // by both tries: the first keeps what it did before the failure
			return func() (any, error) {
				repairs, err := s.db.Repair(t.Context(), s.keys, "tests", s.now, true)
				repaired += len(repairs)
				return repaired, err
			}
		},
		"sweep": func(s *story) func() (any, error) {
			_, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_b", Amount: 70_000, Key: "k1"})
			s.now = s.now.Add(30 * 24 * time.Hour)
			return func() (any, error) { n, sweep := s.payouts.Sweep(t.Context()); return n, errors.Join(err, sweep) }
		},
		"pause state": func(s *story) func() (any, error) {
			stopped := s.payouts.Pause(t.Context(), ada)
			return func() (any, error) {
				pause, err := s.payouts.PauseState(t.Context())
				return pause.By, errors.Join(stopped, err)
			}
		},
		"history": func(s *story) func() (any, error) {
			return func() (any, error) {
				list, total, err := s.payouts.History(t.Context(), seller, payout.Filter{Limit: 5})
				all, sum, allErr := s.payouts.History(t.Context(), admin, payout.Filter{Limit: 5})
				return fmt.Sprint(len(list), total, len(all), sum), errors.Join(err, allErr)
			}
		},
		"events": func(s *story) func() (any, error) {
			return func() (any, error) {
				events, err := s.payouts.Events(t.Context(), seller, s.id)
				return len(events), err
			}
		},
		"summary": func(s *story) func() (any, error) {
			return func() (any, error) {
				summary, err := s.payouts.Summary(t.Context(), "usr_a")
				return summary.Available, err
			}
		},
		"find": func(s *story) func() (any, error) {
			return func() (any, error) {
				found, err := s.payouts.Find(t.Context(), payout.Selection{Limit: 5})
				return len(found.Payouts), err
			}
		},
		"export": func(s *story) func() (any, error) {
			return func() (any, error) {
				exported := 0
				err := s.payouts.Export(t.Context(), payout.Selection{}, func(payout.Selected) error { exported++; return nil })
				return exported, err
			}
		},
		"explain": func(s *story) func() (any, error) {
			stopped := errors.Join(s.payouts.Freeze(t.Context(), ada, "usr_a"), s.payouts.Pause(t.Context(), ada), s.hold("usr_a"))
			return func() (any, error) {
				stoppedSeller, err := s.payouts.Explain(t.Context(), "usr_a")
				noSeller, otherErr := s.payouts.Explain(t.Context(), ada.Admin)
				why, whyErr := s.payouts.WhyStopped(t.Context(), "usr_b")
				text := why
				for _, b := range append(stoppedSeller.Blockers, noSeller.Blockers...) {
					text += fmt.Sprintln(b.Code, b.Since, b.Until)
				}
				return fmt.Sprint(text, stoppedSeller.Available, len(stoppedSeller.InTransit)), errors.Join(stopped, err, otherErr, whyErr)
			}
		},
		"read for admins": func(s *story) func() (any, error) {
			paid(s)
			other := s.request("usr_b", 90_000)
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.sendToReview(t, other.ID)
			reviewed := s.stored(t, other.ID)
			return func() (any, error) {
				s.payouts = s.newPayoutsOn(t, s.db.Payouts()) // which has read no days yet
				figures, figuresErr := s.payouts.Figures(t.Context())
				attention, attentionErr := s.payouts.Attention(t.Context())
				options, optionsErr := s.payouts.Options(t.Context(), reviewed)
				_, transferErr := s.payouts.UnmatchedTransfer(t.Context(), "paper:pout_9")
				if errors.Is(transferErr, payout.ErrUnmatchedTransferResolved) {
					transferErr = nil
				}
				return fmt.Sprintf("%+v %+v %d %d", figures.Days, figures.Open, len(attention.Unclear), len(options)),
					errors.Join(figuresErr, attentionErr, optionsErr, transferErr, s.payouts.CheckExport(t.Context(), payout.Selection{}))
			}
		},
	}
	// What the gateway was asked in vain is put off, and what it did is found by the next poll.
	notRepeatable := []string{"submit, lost", "submit, no", "submit, closed", "submit, unsent", "match transfer", "cancel at the gateway", "ask the gateway", "refund what the gateway has"}
	// These write nothing, so that no group tries anything again and hides the error.
	readOnly := []string{"pause state", "history", "events", "summary", "find", "export", "explain", "read for admins"}
	for name, begin := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				s := newStoryAtPlace(t, place)
				s.payouts = s.newPayoutsOn(t, s.db.Payouts())
				s.reconcileStartup()
				act := begin(s)
				var read any
				return storetest.Story{
					Grouped: !slices.Contains(readOnly, name), Repeatable: !slices.Contains(notRepeatable, name),
					Act: func() (err error) { read, err = act(); return err },
					State: func() string {
						switch then := read.(type) {
						case func():
							then()
							read = nil
						case func() int:
							read = then()
						case func() string:
							read = then()
						}
						return s.summary() + fmt.Sprint(read)
					},
				}
			})
		})
	}
}

// reconcileUnmatched starts beside a transfer that matches no payout, and lists such transfers once that is over.
func (s *story) reconcileUnmatched() func() (any, error) {
	s.Helper()
	s.payouts = s.newPayoutsOn(s, s.db.Payouts())
	return func() (any, error) {
		return func() string {
			s.later(time.Second) // what goes wrong after a report was found is left to the next step
			unmatched, err := s.db.OpenUnmatchedTransfers(s.Context(), 10)
			if err != nil {
				s.Fatal(err)
			}
			var list []string
			for _, u := range unmatched {
				list = append(list, u.Transfer.GatewayID+": "+u.Why)
			}
			return strings.Join(list, ", ")
		}, s.payouts.ReconcileStartup(s.Context())
	}
}

// decided counts, once it is called, the decisions about something.
func (s *story) decided(subject string) func() int {
	return func() int {
		s.Helper()
		all, err := s.db.Decisions(s.Context(), subject, 20)
		if err != nil {
			s.Fatal(err)
		}
		return len(all)
	}
}

// hold puts a seller's payouts on hold for three days.
func (s *story) hold(seller string) error {
	s.Helper()
	held, err := ledger.HoldPosting(seller, "user:"+seller, ledger.HoldPasswordReset, s.now, s.now.Add(72*time.Hour))
	if err != nil {
		return err
	}
	return s.db.Payouts().InTx(s.Context(), func(tx payout.Tx) error {
		_, err := tx.Append(s.Context(), held)
		return err
	})
}

// sentAfter is decided once what waited had the time to be sent: it is looked again if what it waits for is over, even where
// the payouts could not be made due by the decision.
func (s *story) sentAfter(subject string) func() int {
	return func() int {
		s.Helper()
		s.later(time.Hour)
		return s.decided(subject)()
	}
}

// summary is all that matters of what is stored.
func (s *story) summary() string {
	s.Helper()
	var b strings.Builder
	list, _, err := s.db.ListPayouts(s.Context(), payout.Filter{Limit: 100})
	if err != nil {
		s.Fatal(err)
	}
	slices.SortFunc(list, func(a, b payout.Payout) int { return strings.Compare(a.Seller, b.Seller) }) // of one moment, their ids are in any order
	for _, seen := range list {
		p := s.stored(s, seen.ID)
		decisions, err := s.db.Decisions(s.Context(), string(p.ID), 20)
		if err != nil {
			s.Fatal(err)
		}
		fmt.Fprintln(&b, p.Seller, p.Amount, p.State, p.Progress, p.GatewayID, p.UTR, p.ReasonCode, p.Discrepancy, p.DueAt.After(s.now), len(decisions))
	}
	for _, owner := range []string{"usr_a", "usr_b"} {
		balance, err := s.db.Balance(s.Context(), owner)
		if err != nil && !errors.Is(err, ledger.ErrTampered) {
			s.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %+v, shown: %t\n", owner, balance, err == nil)
	}
	paused, err := s.db.Payouts().PayoutsPaused(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	fmt.Fprintln(&b, "paused", paused)
	report, err := s.db.Audit(s.Context(), s.keys)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range report.Findings {
		fmt.Fprint(&b, f.Violations)
	}
	return b.String()
}

// proven takes every proof.
type proven struct{}

func (proven) ConfirmSeller(context.Context, payout.RequestTx, payout.Request) error { return nil }
func (proven) LockSession(context.Context, payout.RequestTx, payout.Request) error   { return nil }

func (proven) UseProof(context.Context, payout.RequestTx, payout.Request, []string) error { return nil }
