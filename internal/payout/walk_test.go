package payout_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestWalk_RowEqualsFold takes payouts through random answers of the gateway, cancellations and decisions. After every
// step each row has to be what the payout's entries fold to. In the end the audit is clean, each payout has ended, and
// the gateway has paid exactly those that are completed.
func TestWalk_RowEqualsFold(t *testing.T) {
	seen := map[payout.State]bool{}
	walks := func() {
		rapid.Check(t, func(rt *rapid.T) {
			w := &walk{market: newMarket(t, rt), seen: seen}
			defer w.close()
			rt.Repeat(map[string]func(*rapid.T){
				"request": w.request,
				"cancel":  w.cancel,
				"work":    w.work,
				"bank":    w.bankMoves,
				"mood":    w.changeMood,
				"trouble": w.trouble,
				"decide":  w.decide,
				"":        w.check,
			})
			w.drain(rt)
		})
	}
	for seed := range uint64(5) { // luck may not have led everywhere
		seeded(t, 1+seed, walks)
		if testing.Short() || len(seen) == len(payout.States()) {
			return
		}
	}
	t.Errorf("of the states %v the walks reach only %v", payout.States(), slices.Sorted(maps.Keys(seen)))
}

// walk is a market with the payouts that were asked for in it.
type walk struct {
	*market
	ids  []payout.ID
	seen map[payout.State]bool
}

// check compares every payout with its entries, and the balances with where the payouts are.
func (w *walk) check(t *rapid.T) {
	want := map[string]ledger.Balance{}
	for _, seller := range []string{"usr_a", "usr_b"} {
		want[seller] = ledger.Balance{Available: opening, Earned: opening, Counts: ledger.Counts{Sales: 1}}
	}
	for _, id := range w.ids {
		p := w.stored(t, id)
		w.seen[p.State] = true
		want[p.Seller] = withPayout(want[p.Seller], p)
		entries, err := w.db.EntriesAbout(w.ctx, p.Seller, string(id))
		if err != nil {
			t.Fatal(err)
		}
		folded, err := payout.Fold(id, entries)
		if err != nil {
			t.Fatal(err)
		}
		if mismatch, differs := ledger.Compare(folded, p); differs {
			t.Fatalf("%s: %v: the entries fold to\n%+v, the row is\n%+v", id, mismatch, folded, p)
		}
		if err := payout.CheckEntries(p, entries); err != nil {
			t.Fatal(err)
		}
	}
	for seller, want := range want {
		if got, err := w.db.Balance(w.ctx, seller); err != nil || got != want {
			t.Fatalf("%s has\n%+v, %v; want\n%+v", seller, got, err, want)
		}
	}
	for ref, tr := range w.gateway.transfers {
		if tr.paid > 1 {
			t.Fatalf("%s was paid %d times", ref, tr.paid)
		}
	}
}

// withPayout is what a payout makes of a seller's totals, worked out without the posting rules.
func withPayout(b ledger.Balance, p payout.Payout) ledger.Balance {
	switch p.Status() {
	case payout.StatusProcessing:
		b.Available, b.InTransit = b.Available-p.Amount, b.InTransit+p.Amount
		b.Counts.Processing++
	case payout.StatusCompleted:
		b.Available, b.Withdrawn = b.Available-p.Amount, b.Withdrawn+p.Amount
		b.Counts.Completed++
	case payout.StatusFailed:
		b.Counts.Failed++
	case payout.StatusCancelled:
		b.Counts.Cancelled++
	}
	return b
}

func (w *walk) audit(t *rapid.T) {
	report, err := w.db.Audit(w.ctx, w.keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			t.Fatalf("%s is violated: %v", f.Name, f.Violations)
		}
	}
}

// request asks for money. It is refused exactly where it is more than is available.
func (w *walk) request(t *rapid.T) {
	seller := rapid.SampledFrom([]string{"usr_a", "usr_b"}).Draw(t, "seller")
	amount := money.Amount(rapid.Int64Range(50_000, 900_000).Draw(t, "amount"))
	before, err := w.db.Balance(w.ctx, seller)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := w.payouts.Request(w.ctx, payout.Request{Seller: seller, Amount: amount})
	if errors.Is(err, ledger.ErrInsufficient) != (amount > before.Available) || (err != nil && !errors.Is(err, ledger.ErrInsufficient)) {
		t.Fatalf("asked for %d of %d: %v", amount, before.Available, err)
	}
	if err == nil {
		w.ids = append(w.ids, p.ID)
	}
}

func (w *walk) any(t *rapid.T) payout.ID {
	if len(w.ids) == 0 {
		t.Skip("there is no payout")
	}
	return rapid.SampledFrom(w.ids).Draw(t, "payout")
}

// cancel never ends a payout that the gateway has and has not let go of.
func (w *walk) cancel(t *rapid.T) {
	id := w.any(t)
	before := w.stored(t, id)
	_, _, err := w.payouts.Cancel(w.ctx, payout.Caller{User: before.Seller}, id, "")
	tr, known := w.gateway.transfers[string(id)]
	if err == nil && known && tr.progress != gateway.Cancelled {
		t.Fatalf("a payout was cancelled that was %s, and is %s at the gateway", before.State, tr.progress)
	}
}

// work lets time pass and takes what is due: some of it twice, because a lease may run out under a slow worker, and
// some of it never, because a worker may die.
func (w *walk) work(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
	if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
		w.now = w.now.AddDate(0, 0, 7) // longer than the gateway honours a key
	}
	w.take(t, rapid.IntRange(0, 2).Draw(t, "times"))
}

func (w *walk) take(t *rapid.T, times int) {
	ids, err := w.payouts.LeaseDue(w.ctx, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		for range times {
			w.tryStep(id)
		}
	}
}

// bankMoves takes the gateway's transfers on, and tells of some of them.
func (w *walk) bankMoves(t *rapid.T) {
	w.gateway.arrive(w.now)
	for _, ref := range slices.Sorted(maps.Keys(w.gateway.transfers)) {
		w.gateway.transfers[ref].advance(rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, "luck"))
		if rapid.Bool().Draw(t, "webhook") {
			event := fmt.Sprintf("event-%d", rapid.IntRange(1, 1000).Draw(t, "event"))
			if err := w.payouts.Notify(w.ctx, paper, event, payout.ID(ref)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (w *walk) changeMood(t *rapid.T) {
	w.gateway.mood = rapid.SampledFrom(moods).Draw(t, "mood")
	w.gateway.lateness = time.Duration(rapid.Int64Range(0, int64(lease+gracePeriod)-1).Draw(t, "lateness"))
}

// trouble makes it likely that something is unclear.
func (w *walk) trouble(t *rapid.T) {
	w.changeMood(t)
	w.gateway.mood = rapid.SampledFrom([]mood{slow, lostAnswers, lostRequests, silent, diesBefore, diesAfter}).Draw(t, "trouble")
	w.request(t)
	w.now = w.now.Add(windowOver)
	w.take(t, 1)
}

// decide is an admin at work. No decision sends anything, and none gives money back that the gateway has or may still get.
func (w *walk) decide(t *rapid.T) {
	id, sent := w.any(t), w.gateway.sent
	switch rapid.SampledFrom([]string{"ask", "review", "identify", "give back", "give back"}).Draw(t, "decision") {
	case "ask":
		_, err := w.payouts.AskGateway(w.ctx, ada, id)
		if err != nil && !errors.Is(err, payout.ErrNoTransfer) && !errors.Is(err, payout.ErrGatewayUnclear) {
			t.Fatalf("ask about %s: %v", id, err)
		}
	case "review":
		w.sendToReview(t, id)
	case "identify":
		w.match(t, id)
	case "give back":
		w.sendToReview(t, id)
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{0, gracePeriod / 2, lease + gracePeriod}).Draw(t, "patience"))
		w.gateway.mood = rapid.SampledFrom([]mood{w.gateway.mood, fair, silent}).Draw(t, "mood")
		w.refundToBalance(t, id)
	}
	if w.gateway.sent != sent {
		t.Fatal("a decision sent something")
	}
}

func (w *walk) match(t *rapid.T, id payout.ID) {
	w.gateway.arrive(w.now)
	if len(w.gateway.transfers) == 0 {
		t.Skip("there is no transfer")
	}
	ref := rapid.SampledFrom(slices.Sorted(maps.Keys(w.gateway.transfers))).Draw(t, "transfer")
	p, err := w.payouts.MatchTransfer(w.ctx, ada, id, w.gateway.transfers[ref].id)
	if err == nil && (ref != string(id) || p.GatewayID != w.gateway.transfers[ref].id) {
		t.Fatalf("%s was taken for the transfer of %s", id, ref)
	}
}

func (w *walk) refundToBalance(t *rapid.T, id payout.ID) {
	before := w.stored(t, id)
	from, refused := w.payouts.RefundableFrom(w.ctx, id)
	_, known := w.gateway.transfers[string(id)]
	_, underway := w.gateway.underway[string(id)]
	_, err := w.payouts.RefundToBalance(w.ctx, ada, id)
	switch {
	case err == nil && (known || underway):
		t.Fatalf("%s was given back, and the gateway has it (%t) or will (%t)", id, known, underway)
	case (refused == nil) != (before.State == payout.ManualReview):
		t.Fatalf("of a payout that is %s it is said when it may be given back: %v", before.State, refused)
	case before.State == payout.ManualReview && !w.now.Before(from) && !w.gateway.saysNothing() && !known && !underway && err != nil:
		t.Fatalf("nothing is against giving %s back, but %v", id, err)
	}
}

// drain lets three weeks pass in which the gateway works, after which nothing may be open.
func (w *walk) drain(t *rapid.T) {
	w.gateway.mood = fair
	fate := map[string]int{}
	for quarter := range 80 {
		w.now = w.now.Add(6 * time.Hour)
		w.gateway.arrive(w.now)
		for _, ref := range slices.Sorted(maps.Keys(w.gateway.transfers)) {
			tr := w.gateway.transfers[ref]
			if _, known := fate[ref]; !known {
				fate[ref] = rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "fate")
			}
			tr.advance(1)
			if quarter == 4 && tr.progress == gateway.Paid {
				tr.advance(fate[ref]) // some come back the next day
			}
			if quarter == 5 { // a webhook may come late, but it comes; after the third day only it tells of a return
				if err := w.payouts.Notify(w.ctx, paper, "late event of "+ref, payout.ID(ref)); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.take(t, 1)
	}
	w.check(t)
	w.audit(t)
	for _, id := range w.ids {
		p, tr := w.stored(t, id), w.gateway.transfers[string(id)]
		paid := tr != nil && tr.progress == gateway.Paid
		switch {
		case p.Status() == payout.StatusProcessing && p.State != payout.ManualReview:
			t.Fatalf("%s is %s for ever; the gateway has %+v", id, p.State, tr)
		case paid != (p.State == payout.Completed):
			t.Fatalf("%s is %s; the gateway has %+v", id, p.State, tr)
		case paid && tr.amount != p.Net():
			t.Fatalf("%s: the bank got %d, want %d", id, tr.amount, p.Net())
		}
	}
}

// TestRequest_RepeatedUnderItsKey gets the first answer again, to the letter, whatever has changed since.
func TestRequest_RepeatedUnderItsKey(t *testing.T) {
	s := newStory(t)
	made := payout.Request{Seller: "usr_a", Amount: afterReserve, Key: "made"} // all that there is
	first, replayed, err := s.payouts.Request(t.Context(), made)
	if err != nil || replayed {
		t.Fatalf("replayed %t, %v", replayed, err)
	}
	refused := payout.Request{Seller: "usr_a", Amount: 50_000, Key: "refused"}
	_, replayed, refusal := s.payouts.Request(t.Context(), refused)
	if !errors.Is(refusal, ledger.ErrInsufficient) || replayed {
		t.Fatalf("replayed %t, %v", replayed, refusal)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, first.ID, ""); err != nil {
		t.Fatal(err)
	}
	s.wantAvailable(afterReserve)
	if p, replayed, err := s.payouts.Request(t.Context(), made); err != nil || !replayed || p.ID != first.ID || p.State != payout.Cancelled {
		t.Errorf("the repeat gave %+v, replayed %t, %v", p, replayed, err)
	}
	if _, replayed, err := s.payouts.Request(t.Context(), refused); !replayed || !errors.Is(err, ledger.ErrInsufficient) || err.Error() != refusal.Error() {
		t.Errorf("the repeat gave %v, replayed %t; the first was %v", err, replayed, refusal)
	}
	s.wantAvailable(afterReserve)
	s.wantViolated()
}

// TestCancel_ByState tries to cancel a payout in each state that nobody can cancel it in any more.
func TestCancel_ByState(t *testing.T) {
	submitted := func(luck ...int) func(*story) {
		return func(s *story) {
			s.later(windowOver)
			for _, l := range luck {
				s.gateway.transfers[string(s.id)].advance(l)
				s.later(7 * time.Hour)
			}
		}
	}
	for want, until := range map[payout.State]func(*story){
		payout.Submitting: func(s *story) { s.gateway.mood = diesAfter; s.later(windowOver); s.gateway.mood = fair },
		payout.Unknown:    func(s *story) { s.gateway.mood = lostAnswers; s.later(windowOver); s.gateway.mood = fair },
		payout.ManualReview: func(s *story) {
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.sendToReview(s, s.id)
			s.gateway.mood = fair
		},
		payout.Submitted: submitted(),
		payout.Completed: submitted(1),
		payout.Failed:    submitted(2),
		payout.Returned:  submitted(1, 3),
		payout.Cancelled: func(s *story) {
			if _, _, err := s.payouts.Cancel(s.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				s.Fatal(err)
			}
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			s := newStory(t)
			until(s)
			before := s.wantState(want)
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrNotCancellable) {
				t.Errorf("cancelled: %v", err)
			}
			if p := s.wantState(want); p.EndedAt != before.EndedAt {
				t.Errorf("it ended at %s, and now at %s", before.EndedAt, p.EndedAt)
			}
			s.wantViolated()
		})
	}
}

// TestStep_WorkerDied has a worker die before or after the gateway took the order. Another one finds out after the
// lease, and the bank is paid once, even where the gateway does not find the order and gets it again.
func TestStep_WorkerDied(t *testing.T) {
	for name, tt := range map[string]struct {
		mood      mood
		forgetful bool
		sent      int
	}{
		"before":                                {diesBefore, false, 2},
		"after":                                 {diesAfter, false, 1},
		"after, and the gateway finds no order": {diesAfter, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood, s.gateway.forgetful = tt.mood, tt.forgetful
			s.later(windowOver)
			s.wantState(payout.Submitting)
			s.gateway.mood = fair
			s.later(lease - time.Second)
			s.wantState(payout.Submitting)
			s.later(2 * time.Second)
			s.wantState(payout.Submitted)
			s.gateway.forgetful = false
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Hour)
			s.wantState(payout.Completed)
			if tr := s.gateway.transfers[string(s.id)]; len(s.gateway.transfers) != 1 || tr.paid != 1 || s.gateway.sent != tt.sent {
				t.Errorf("it was sent %d times, want %d; the gateway has %d transfers, and paid this one %d times",
					s.gateway.sent, tt.sent, len(s.gateway.transfers), tr.paid)
			}
			s.wantAvailable(afterReserve)
			s.wantViolated()
		})
	}
}

// TestRefundToBalance_OrderArrivesLate has an order arrive as late as it can after its payout went to review.
func TestRefundToBalance_OrderArrivesLate(t *testing.T) {
	s := newStory(t)
	s.gateway.mood, s.gateway.lateness = slow, lease+gracePeriod-time.Nanosecond
	s.later(windowOver)
	s.sendToReview(t, s.id)
	from, err := s.payouts.RefundableFrom(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	s.now = from.Add(-time.Second)
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrTooEarly) || len(s.gateway.underway) == 0 {
		t.Errorf("while the order is on its way: %v", err)
	}
	s.now = from
	if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); !errors.Is(err, payout.ErrKnownToGateway) {
		t.Errorf("after it has arrived: %v", err)
	}
	s.wantState(payout.Submitted)
	s.wantAvailable(afterReserve)
	s.wantViolated()
}
