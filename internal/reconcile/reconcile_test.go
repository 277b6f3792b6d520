package reconcile_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway/sandbox"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

func TestReconcile_StatementAgrees_NoDifference(t *testing.T) {
	w := newFixture(t)
	for last4, want := range map[string]payout.State{
		"1234": payout.Completed, "0002": payout.Failed, "0003": payout.Returned, "0004": payout.Submitted,
	} {
		id := w.pay(last4, 100_000)
		for range 5 { // a return is found at a later look
			w.later(time.Minute)
		}
		if got := w.state(id); got != want {
			t.Fatalf("the payout to %s is %s, want %s", last4, got, want)
		}
	}
	w.goTo(3, 4)
	r := w.reconcile("02", "02")
	wantKinds(t, r)
	s := r.Sums
	if r.Lines != 7 || r.Payouts != 4 || r.Unjudged != 0 {
		t.Errorf("compared %d lines and %d payouts, %d not judged; want 7, 4 and 0", r.Lines, r.Payouts, r.Unjudged)
	}
	if s.Debits != 4*100_590 || s.Credits != 2*100_590 || s.Paid != 200_000 || s.Returned != 100_000 || s.Fees != 2*590 || s.UnderWay != 100_000 ||
		s.OtherPeriod != 0 || s.Differing != 0 || s.Gap() != 0 {
		t.Errorf("the sums are %+v", s)
	}
}

// pollNow notes the payouts that the gateway is to be asked about.
type pollNow struct {
	reconcile.Payouts
	ids []payout.ID
}

func (p *pollNow) PollNow(ctx context.Context, id payout.ID) (bool, error) {
	p.ids = append(p.ids, id)
	return p.Payouts.PollNow(ctx, id)
}

// Each case makes the statement wrong, and correct again where that is possible.
func TestReconcile_EachDifference_HasItsKind(t *testing.T) {
	usd, fee, reversal, adjustment := "USD", "payout", "reversal", "adjustment"
	for name, tt := range map[string]struct {
		last4   string
		want    []reconcile.Kind
		mistake func(w *fixture, id payout.ID)
		// told is what is left once every line is told as it was.
		kinds []reconcile.Kind
	}{
		"a line is missing": {"1234", []reconcile.Kind{reconcile.PayoutWithoutLine, reconcile.StatementHasGap}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
		}, nil},
		"the money moved twice": {"1234", []reconcile.Kind{reconcile.PaidTwice}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "double", Line: string(id)})
		}, nil},
		"another amount": {"1234", []reconcile.Kind{reconcile.AmountDiffers, reconcile.StatementHasGap}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "alter", Line: string(id), Debit: new(int64(90_000))})
		}, []reconcile.Kind{reconcile.LineChanged}},
		"another fee": {"1234", []reconcile.Kind{reconcile.FeeDiffers}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "alter", Line: string(id), Fees: new(int64(500))})
		}, nil},
		"another currency": {"1234", []reconcile.Kind{reconcile.CurrencyDiffers}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "alter", Line: string(id), Currency: &usd})
		}, nil},
		"somebody paid by hand": {"1234", []reconcile.Kind{reconcile.LineWithoutPayout}, func(w *fixture, _ payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &fee})
		}, nil},
		"money left": {"1234", []reconcile.Kind{reconcile.UnexplainedDebit}, func(w *fixture, _ payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &adjustment})
		}, nil},
		"the money came back in a form of its own": {"1234", []reconcile.Kind{reconcile.ReturnedAtGateway}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "add", Line: string(id), Credit: new(int64(100_590)), Entity: &reversal})
		}, nil},
		"the fee did not come back": {"0003", []reconcile.Kind{reconcile.FeeDiffers, reconcile.StatementHasGap}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "alter", Line: string(id), Credit: new(int64(100_000))})
		}, []reconcile.Kind{reconcile.LineChanged}},
		"a return is missing": {"0003", []reconcile.Kind{reconcile.ReturnWithoutLine, reconcile.StatementHasGap}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
		}, nil},
		"given back here alone": {"0002", []reconcile.Kind{reconcile.RefundedButPaid, reconcile.StatementHasGap}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
		}, nil},
		"returned, and more": {"0003", []reconcile.Kind{reconcile.AmountDiffers}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "double", Line: string(id)})
		}, nil},
		"under way, and back": {"0004", []reconcile.Kind{reconcile.ReturnedAtGateway}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "add", Line: string(id), Credit: new(int64(100_590)), Entity: &reversal})
		}, nil},
		"under way, twice": {"0004", []reconcile.Kind{reconcile.PaidTwice}, func(w *fixture, id payout.ID) {
			w.misstate(sandbox.StatementChange{Change: "double", Line: string(id)})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.pay("1234", 5_000)
			id := w.pay(tt.last4, 100_000)
			for range 5 {
				w.later(time.Minute)
			}
			tt.mistake(w, id)
			w.later(time.Minute)
			w.pay("1234", 6_000)
			w.goTo(3, 4)
			asked := &pollNow{Payouts: w.payouts}
			w.options.Payouts = asked
			w.service = w.instance()
			wantKinds(t, w.reconcile("02", "02"), tt.want...)
			var want []payout.ID
			if slices.Contains([]reconcile.Kind{reconcile.ReturnedAtGateway, reconcile.RefundedButPaid, reconcile.ReturnWithoutLine}, tt.want[0]) {
				want = []payout.ID{id}
			}
			if !slices.Equal(asked.ids, want) {
				t.Errorf("the gateway is to be asked about %v, want %v", asked.ids, want)
			}
			wantKinds(t, w.reconcile("02", "02"), tt.want...) // and again
			w.control(http.MethodDelete, "/control/statement", struct{}{})
			if tt.want[len(tt.want)-1] != reconcile.StatementHasGap {
				return // the money did move
			}
			wantKinds(t, w.reconcile("02", "02"), tt.kinds...)
			if got := w.open(); !slices.Equal(got, tt.kinds) {
				t.Errorf("with the statement corrected %v are open, want %v", got, tt.kinds)
			}
		})
	}
}

// TestEvidence_BothSides has the payout and the lines of each difference.
func TestEvidence_BothSides(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 5_000)
	w.goTo(3, 10)
	lost := w.pay("1234", 10_000)
	twice := w.pay("1234", 20_000)
	hand, charge := "payout", "charge"
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(lost)})
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(300)), Entity: &charge})
	w.misstate(sandbox.StatementChange{Change: "double", Line: string(twice)})
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	w.goTo(4, 4)
	lines := map[reconcile.Kind]int{}
	for _, d := range w.reconcile("03", "03").Differences {
		e, err := w.service.Evidence(t.Context(), d.ID)
		w.must(err)
		if e.ID != d.ID || (e.Payout == nil) != (d.Payout == "") || e.Payout != nil && e.Payout.ID != d.Payout {
			t.Errorf("the evidence of %+v is %+v", d, e)
		}
		if d.Kind == reconcile.LineWithoutPayout && e.AtGateway != 7_000 {
			t.Errorf("%d were taken at the gateway, want 7000", e.AtGateway)
		}
		lines[d.Kind] = len(e.Lines)
	}
	if want := map[reconcile.Kind]int{reconcile.PayoutWithoutLine: 0, reconcile.PaidTwice: 2, reconcile.LineWithoutPayout: 1, reconcile.UnexplainedDebit: 1}; !maps.Equal(lines, want) {
		t.Errorf("the differences have lines %v, want %v", lines, want)
	}
	for _, id := range []string{"", "dif_x", "dif_000000000000000000000000"} {
		if _, err := w.service.Evidence(t.Context(), id); !errors.Is(err, reconcile.ErrNotFound) {
			t.Errorf("the evidence of difference %q: %v", id, err)
		}
	}
}

// TestKinds_EachHasItsMeaning says each kind in a sentence of its own.
func TestKinds_EachHasItsMeaning(t *testing.T) {
	kinds := map[string]reconcile.Kind{}
	for _, k := range reconcile.Kinds() {
		meaning := k.Meaning()
		if before, taken := kinds[meaning]; taken || !strings.HasSuffix(meaning, ".") {
			t.Errorf("%s means %q, and so does %q", k, meaning, before)
		}
		kinds[meaning] = k
	}
}
