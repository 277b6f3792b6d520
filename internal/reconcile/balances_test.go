package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/reconcile"
)

// listed is a gateway whose statement has these lines.
type listed struct {
	reconcile.Statement
	name  gateway.Name
	lines []gateway.Line
}

func (l listed) Name() gateway.Name { return l.name }

func (l listed) Lines(_ context.Context, from, to time.Time, _ gateway.Cursor) (page gateway.LinePage, err error) {
	for _, line := range l.lines {
		if !line.At.Before(from) && line.At.Before(to) {
			page.Lines = append(page.Lines, line)
		}
	}
	return page, nil
}

// statement has a service of its own read these lines.
func (w *fixture) statement(name gateway.Name, lines ...gateway.Line) {
	w.Helper()
	for i := range lines {
		if lines[i].ID == "" {
			lines[i].ID = fmt.Sprintf("txn_%02d", i)
		}
		if lines[i].Currency == "" {
			lines[i].Currency = "INR"
		}
	}
	w.options.Statement, w.options.Store = listed{w.client, name, lines}, w.db.Reconciling(name)
	w.service = w.instance()
}

// line is of an hour of a November day, and moves the account from one balance to another. It is no payout's.
func line(day, hour int, from, to money.Amount) gateway.Line {
	l := gateway.Line{At: time.Date(2026, 11, day, hour, 0, 0, 0, india), Balance: to, HasBalance: true, Kind: gateway.LineVerification}
	if l.Debit = from - to; from < to {
		l.Debit, l.Credit = 0, to-from
	}
	return l
}

// Lines of one second come in any order, so only the balances say which of them was first.
func TestReconcile_Balances(t *testing.T) {
	without := func(l gateway.Line) gateway.Line { l.HasBalance = false; return l }
	foreign := func(l gateway.Line) gateway.Line { l.Currency = "USD"; return l }
	for name, tt := range map[string]struct {
		lines            []gateway.Line
		opening, closing money.Amount
		gaps             []string // what is said of each
	}{
		"one after the other":           {[]gateway.Line{line(2, 9, 1000, 900), line(2, 10, 900, 950), line(2, 11, 950, 400)}, 1000, 400, nil},
		"in one second, the last first": {[]gateway.Line{line(2, 9, 950, 400), line(2, 9, 900, 950), line(2, 9, 1000, 900)}, 1000, 400, nil},
		"a debit between is missing": {
			[]gateway.Line{line(2, 9, 1000, 900), line(2, 11, 500, 400)},
			1000, 400,
			[]string{"The balances of the day lead from 10.00 to 4.00 with one jump between lines"},
		},
		"a credit between is missing": {
			[]gateway.Line{line(2, 9, 1000, 1100), line(2, 11, 1500, 1600)},
			1000, 1600,
			[]string{"The balances of the day lead from 10.00 to 16.00 with one jump between lines"},
		},
		"two are missing": {
			[]gateway.Line{line(2, 9, 1000, 900), line(2, 11, 500, 400), line(2, 12, 300, 200)},
			1000, 200,
			[]string{"The balances of the day lead from 10.00 to 2.00 with 2 jumps between lines"},
		},
		"a balance comes up again before one is missing": {
			[]gateway.Line{line(2, 9, 1000, 900), line(2, 10, 900, 1000), line(2, 11, 500, 400), line(2, 12, 1000, 950)},
			1000, 950,
			[]string{"The balances of the day lead from 10.00 to 9.50 with one jump between lines"},
		},
		"the day before says which was first": {
			[]gateway.Line{line(2, 9, 1200, 1000), line(3, 9, 500, 400), line(3, 9, 1000, 900), line(3, 10, 400, 300)},
			1200, 300,
			[]string{"The balances of the day lead from 10.00 to 3.00 with one jump between lines"},
		},
		"the day before says where a circle began": {
			[]gateway.Line{line(2, 9, 1200, 1000), line(3, 9, 900, 1000), line(3, 9, 1000, 900), line(4, 9, 1000, 800)}, 1200, 800, nil,
		},
		"a circle begins with its first line":  {[]gateway.Line{line(2, 9, 900, 1000), line(2, 10, 1000, 900), line(3, 9, 900, 800)}, 900, 800, nil},
		"a circle whose first line may be any": {[]gateway.Line{line(2, 9, 900, 1000), line(2, 10, 1000, 900), line(3, 9, 1000, 800)}, 900, 800, nil},
		"a circle after another balance": {
			[]gateway.Line{line(2, 9, 1200, 1100), line(3, 9, 900, 1000), line(3, 10, 1000, 900)},
			1200, 900,
			[]string{"The day begins with a balance of 9.00, and the day before ended with 11.00"},
		},
		"the last line of a day is missing": {
			[]gateway.Line{line(2, 9, 1000, 900), line(3, 9, 900, 800), line(4, 9, 700, 600)},
			1000, 600,
			[]string{"The day begins with a balance of 7.00, and the day before ended with 8.00"},
		},
		"the last line of a day is missing, and none is on the next": {
			[]gateway.Line{line(2, 9, 1000, 900), line(4, 9, 700, 600)},
			1000, 600,
			[]string{"The day begins with a balance of 7.00, and the day before ended with 9.00"},
		},
		"a line has no balance": {
			[]gateway.Line{line(2, 9, 1000, 900), without(line(3, 9, 900, 800)), line(3, 10, 500, 400), line(4, 9, 700, 600)}, 1000, 600, nil,
		},
		"a line of another currency": {
			[]gateway.Line{line(2, 9, 1000, 900), foreign(line(3, 9, 90, 80)), line(4, 9, 700, 600)}, 1000, 600, nil,
		},
		"balances again after a day without": {
			[]gateway.Line{without(line(2, 9, 1000, 900)), line(3, 9, 900, 800), line(4, 9, 700, 600)},
			900, 600,
			[]string{"The day begins with a balance of 7.00, and the day before ended with 8.00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.statement("other", tt.lines...)
			w.goTo(5, 4)
			r := w.reconcile("02", "04")
			if s := r.Sums; !s.HasBalances || s.Opening != tt.opening || s.Closing != tt.closing {
				t.Errorf("the balances lead from %d to %d, want %d and %d", s.Opening, s.Closing, tt.opening, tt.closing)
			}
			var gaps []string
			for _, d := range r.Differences {
				if d.Kind == reconcile.StatementHasGap {
					gaps = append(gaps, d.Detail)
				}
			}
			if !slices.EqualFunc(gaps, tt.gaps, strings.HasPrefix) {
				t.Errorf("the gaps are %q, want %q", gaps, tt.gaps)
			}
		})
	}
}

// Each line counts once in the sums: as a payout's, as a fee, as a verification, as money put in, or as unexplained.
func TestReconcile_Sums(t *testing.T) {
	w := newFixture(t)
	const unknown = "pyt_0TMv3kQx8hPq2Zb7Lr4Wd9Yc"
	of := func(hour int, kind gateway.LineKind, from, to money.Amount, change func(*gateway.Line)) gateway.Line {
		l := line(2, hour, from, to)
		l.Kind = kind
		change(&l)
		return l
	}
	plain := func(*gateway.Line) {}
	w.statement("other",
		of(9, gateway.LineFee, 1000, 997, plain),
		of(9, gateway.LineVerification, 997, 990, plain),
		of(9, gateway.LinePayout, 990, 900, func(l *gateway.Line) { l.ID, l.Transfer = "txn_taken", "pout_unknown" }),
		of(10, gateway.LineReversal, 900, 920, func(l *gateway.Line) { l.ID, l.Transfer = "txn_given", "pout_unknown" }),
		of(11, gateway.LinePayout, 920, 909, func(l *gateway.Line) { l.ID, l.Reference = "txn_named", unknown }),
		of(12, gateway.LinePayout, 909, 908, func(l *gateway.Line) { l.ID = "txn_single" }),
		of(13, "adjustment", 908, 878, func(l *gateway.Line) { l.ID, l.RawKind = "txn_left", "correction" }),
		of(14, "top-up", 878, 1378, plain),
		of(15, "adjustment", 1378, 1361, func(l *gateway.Line) { l.ID, l.Currency = "txn_foreign", "USD" }),
	)
	w.goTo(3, 4)
	r := w.reconcile("02", "02")
	want := reconcile.Sums{Taken: -378, PutIn: 500, Checks: 7, Other: 30, Debits: 102, Credits: 20, Fees: 3, Differing: 82}
	if r.Lines != 9 || r.Sums != want {
		t.Errorf("%d lines were compared, with sums\n%+v, want 9 with\n%+v", r.Lines, r.Sums, want)
	}
	details := map[string]string{}
	for _, d := range r.Differences {
		details[string(d.Kind)+" "+d.Subject] = d.Detail
	}
	if want := map[string]string{
		"line-without-payout pout_unknown": "No payout here is pout_unknown: line txn_given gives 0.20 INR on 2 November 2026 04:30:00 UTC, balance 9.20; " +
			"line txn_taken takes 0.90 INR on 2 November 2026 03:30:00 UTC, balance 9.00. It keeps 0.70.",
		"line-without-payout " + unknown: "No payout here is " + unknown + ": line txn_named takes 0.11 INR on 2 November 2026 05:30:00 UTC, balance 9.09. It keeps 0.11.",
		"line-without-payout txn_single": "No payout here is txn_single: line txn_single takes 0.01 INR on 2 November 2026 06:30:00 UTC, balance 9.08. It keeps 0.01.",
		"unexplained-debit txn_left":     "It takes 0.30 INR on 2 November 2026 07:30:00 UTC, balance 8.78; the gateway calls that correction.",
		"currency-differs txn_foreign":   "It takes 0.17 USD on 2 November 2026 09:30:00 UTC, balance 13.61, and the ledger counts INR.",
	}; !maps.Equal(details, want) {
		t.Errorf("found are\n%q, want\n%q", details, want)
	}
}

// The ledger has the payouts of all gateways, and a statement the lines of one.
func TestReconcile_OtherGateway(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 10_000)
	w.goTo(3, 4)
	w.statement("other")
	r := w.reconcile("02", "02")
	if wantKinds(t, r); r.Sums.OtherGateway != -10_000 || r.Payouts != 1 || r.Unjudged != 0 {
		t.Errorf("of the payout through another gateway there is %+v", r)
	}
	taken := line(2, 11, 20_000, 10_000)
	taken.Kind, taken.Reference = gateway.LinePayout, string(id)
	w.statement("other", taken)
	r = w.reconcile("02", "02")
	if wantKinds(t, r, reconcile.LineBeforeOrder); r.Sums.OtherGateway != 0 {
		t.Errorf("the sums are %+v", r.Sums)
	}
}

// Two gateways may give one id to their lines, and both have each day. What differs at one of them is neither changed nor gone
// because of the other.
func TestReconcile_TwoGateways(t *testing.T) {
	w := newFixture(t)
	w.goTo(3, 4)
	debit := func(hour int, from, to money.Amount) gateway.Line {
		l := line(2, hour, from, to)
		l.Kind, l.RawKind = "adjustment", "correction"
		return l
	}
	w.statement("first", debit(9, 1000, 900), debit(11, 500, 400))
	wantKinds(t, w.reconcile("02", "02"), reconcile.UnexplainedDebit, reconcile.UnexplainedDebit, reconcile.StatementHasGap)
	first := w.service
	w.statement("second", debit(9, 700, 650), debit(11, 600, 590))
	wantKinds(t, w.reconcile("02", "02"), reconcile.UnexplainedDebit, reconcile.UnexplainedDebit, reconcile.StatementHasGap)
	open := func(why string, first, second int) {
		t.Helper()
		all, err := w.service.Open(t.Context(), 10)
		w.must(err)
		have := map[gateway.Name]int{}
		for _, d := range all {
			have[d.Gateway]++
		}
		if have["first"] != first || have["second"] != second {
			t.Errorf("%s, %v differences are open, want %d and %d", why, have, first, second)
		}
	}
	open("at first", 3, 3)
	all, err := w.service.Open(t.Context(), 10)
	w.must(err)
	for _, d := range all {
		if e, err := first.Evidence(t.Context(), d.ID); err != nil || d.Kind == reconcile.UnexplainedDebit && (len(e.Lines) != 1 || e.Lines[0].Gateway != d.Gateway) {
			t.Errorf("%s of %s has the lines %+v, %v", d.Kind, d.Gateway, e.Lines, err)
		}
	}
	w.statement("second", debit(9, 700, 650), debit(10, 650, 600), debit(11, 600, 590))
	wantKinds(t, w.reconcile("02", "02"), reconcile.LineChanged, reconcile.UnexplainedDebit, reconcile.UnexplainedDebit, reconcile.UnexplainedDebit)
	open("once the second statement has the line that was missing", 3, 4)
	w.goTo(3, 5)
	w.must(w.runDue(first))
	open("once the first one was looked at", 3, 4)
}

// Two gateways may give one id to their transfers. Each statement says what was taken for one of its own.
func TestReconcile_TwoGateways_LineWithoutPayout(t *testing.T) {
	w := newFixture(t)
	w.goTo(3, 4)
	for name, taken := range map[gateway.Name]money.Amount{"first": 100, "second": 30} {
		l := line(2, 9, 1000, 1000-taken)
		l.Kind, l.Transfer = gateway.LinePayout, "pout_1"
		w.statement(name, l)
		wantKinds(t, w.reconcile("02", "02"), reconcile.LineWithoutPayout)
	}
	all, err := w.service.Open(t.Context(), 10)
	w.must(err)
	got := map[gateway.Name]money.Amount{}
	for _, d := range all {
		got[d.Gateway] = d.AtGateway
	}
	if want := map[gateway.Name]money.Amount{"first": 100, "second": 30}; !maps.Equal(got, want) {
		t.Errorf("taken are %v, want %v", got, want)
	}
}

// A payout's line in another currency is a difference of the day that has the line, even without another line of the payout.
func TestReconcile_ForeignLineOfPayout(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 10_000)
	l := line(3, 11, 20_000, 10_000)
	l.Kind, l.Reference, l.Currency = gateway.LinePayout, string(id), "USD"
	w.statement(w.client.Name(), l)
	w.goTo(4, 4)
	r := w.reconcile("03", "03")
	if wantKinds(t, r, reconcile.CurrencyDiffers); r.Differences[0].Payout != id {
		t.Errorf("it is about %q, want the payout", r.Differences[0].Payout)
	}
}

// A line that can't be told from others is not compared.
func TestReconcile_LineWithoutID_IsError(t *testing.T) {
	w := newFixture(t)
	l := line(2, 11, 1000, 900)
	l.ID = " "
	w.statement("other", l)
	w.goTo(3, 4)
	p, err := w.service.Period("2026-11-02", "2026-11-02")
	w.must(err)
	if _, err := w.service.Reconcile(t.Context(), p, true); err == nil || !strings.Contains(err.Error(), "a line without an id") {
		t.Errorf("it ended with %v", err)
	}
}

// withoutStatement is a gateway that lists no lines.
type withoutStatement struct{ reconcile.Statement }

func (withoutStatement) Capabilities() gateway.Capabilities { return gateway.Capabilities{} }

// Without a statement there is nothing to compare: an admin who asks for it gets an error, and nothing is due.
func TestReconcile_NoStatement(t *testing.T) {
	w := newFixture(t)
	w.options.Statement = withoutStatement{w.client}
	w.service = w.instance()
	w.goTo(3, 4)
	p, err := w.service.Period("2026-11-02", "2026-11-02")
	w.must(err)
	if _, err := w.service.Reconcile(t.Context(), p, true); !errors.Is(err, reconcile.ErrNoStatement) {
		t.Errorf("it ended with %v, want %v", err, reconcile.ErrNoStatement)
	}
	w.must(w.runDue(w.service))
	w.wantDays()
}
