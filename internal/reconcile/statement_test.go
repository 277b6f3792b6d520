package reconcile_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway/sandbox"
	"bursar/internal/reconcile"
)

// What was found about one day stays open while another day is compared: the line is still there, and still nobody's.
func TestReconcile_OtherDay_KeepsWhatIsOpen(t *testing.T) {
	hand, adjustment := "payout", "adjustment"
	w := newFixture(t)
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(8_000)), Entity: &adjustment})
	w.goTo(3, 4)
	found := []reconcile.Kind{reconcile.LineWithoutPayout, reconcile.UnexplainedDebit}
	wantKinds(t, w.reconcile("02", "02"), found...)
	for _, day := range []int{3, 4} { // at the same moment, and a day later
		w.goTo(day, 4)
		wantKinds(t, w.reconcile("03", "03"))
		if got := w.open(); !slices.Equal(got, found) {
			t.Errorf("on the %d. open are %v, want %v", day, got, found)
		}
	}
}

// A line that was changed after it was read stays a difference, also when another day is compared.
func TestReconcile_OtherDay_KeepsChangedLine(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 100_000)
	w.goTo(3, 4)
	wantKinds(t, w.reconcile("02", "02"))
	w.misstate(sandbox.StatementChange{Change: "alter", Line: string(id), Debit: new(int64(90_000))})
	w.reconcile("02", "02")
	changed := w.open()
	if !slices.Contains(changed, reconcile.LineChanged) {
		t.Fatalf("open are %v, want %s among them", changed, reconcile.LineChanged)
	}
	w.goTo(4, 4)
	w.reconcile("03", "03")
	if got := w.open(); !slices.Equal(got, changed) {
		t.Errorf("open are %v, want %v", got, changed)
	}
}

// The fee that the gateway takes for a look at a bank account belongs to no payout, and is no difference.
func TestReconcile_VerificationsAreCounted(t *testing.T) {
	w := newFixture(t)
	look := "fund_account.validation"
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(236)), Entity: &look})
	w.goTo(3, 4)
	r := w.reconcile("02", "02")
	if wantKinds(t, r); r.Sums.Checks != 236 {
		t.Errorf("the sums are %+v", r.Sums)
	}
}

func TestSums_Gap(t *testing.T) {
	s := reconcile.Sums{HasBalances: true, Opening: 1000, Closing: 600, Taken: 300}
	if gap := s.Gap(); gap != -100 {
		t.Errorf("the gap is %d, want -100", gap)
	}
	s.HasBalances = false
	if gap := s.Gap(); gap != 0 {
		t.Errorf("without balances the gap is %d", gap)
	}
}

// A difference is told at the time of the first line of the day with the gap.
func TestReconcile_GapIsOfFirstLine(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 10)
	w.pay("1234", 20_000)
	first := w.now
	w.goTo(3, 12)
	dropped := w.pay("1234", 30_000)
	w.goTo(3, 13)
	w.pay("1234", 40_000)
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(dropped)})
	w.goTo(4, 4)
	differences := w.reconcile("02", "03").Differences
	i := slices.IndexFunc(differences, func(d reconcile.Difference) bool { return d.Kind == reconcile.StatementHasGap })
	if i < 0 || differences[i].At.Sub(first).Abs() > time.Hour {
		t.Errorf("found are %+v, want a gap at %s", differences, first)
	}
}

// A transfer that no payout explains happened when its newest line did.
func TestReconcile_LineWithoutPayout_IsOfNewestLine(t *testing.T) {
	w := newFixture(t)
	hand, reversal := "payout", "reversal"
	line := w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	transfer, _ := line["source"].(map[string]any)["id"].(string)
	taken := w.now
	w.goTo(2, 15)
	w.misstate(sandbox.StatementChange{Change: "add", Line: transfer, Credit: new(int64(2_000)), Entity: &reversal})
	returned := w.now
	w.now = returned.Add(grace - time.Second)
	wantKinds(t, w.reconcile("02", "02")) // the ledger may still learn of it
	w.goTo(3, 4)
	differences := w.reconcile("02", "02").Differences
	if len(differences) != 1 || differences[0].Kind != reconcile.LineWithoutPayout || !differences[0].At.Equal(returned) {
		t.Errorf("found are %+v, want one at %s, and not at %s", differences, returned, taken)
	}
}

// Nobody is warned of a statement that agrees, and somebody is of one that doesn't.
func TestReconcile_LogLevel(t *testing.T) {
	var log bytes.Buffer
	w := newFixture(t)
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.service = w.instance()
	id := w.pay("1234", 10_000)
	w.goTo(3, 4)
	for _, level := range []string{"level=INFO", "level=WARN"} {
		log.Reset()
		w.reconcile("02", "02")
		if !strings.Contains(log.String(), level+` msg="reconciliation finished"`) {
			t.Errorf("the log says %s, want %s", log.String(), level)
		}
		w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
		w.now = w.now.Add(time.Hour)
	}
}

// A reading tells how far it is, page by page and while it compares.
func TestReconcile_Progress(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 4)
	var read, compared []int
	asked := w.asked
	w.options.Progress = func(day time.Time, n int) {
		switch {
		case day.Day() != 2:
		case w.asked > asked:
			read = append(read, n)
		default:
			compared = append(compared, n)
		}
		asked = w.asked
	}
	w.service = w.instance()
	if w.reconcile("02", "02"); len(read) == 0 || read[0] != 2 || !slices.Equal(compared, []int{2}) {
		t.Errorf("told were %v lines as read and %v as compared, want 2", read, compared)
	}
}

// Amounts below zero are refused, each by itself.
func TestReconcile_AmountsBelowZero(t *testing.T) {
	for _, amount := range []string{`"fees":-1`, `"tax":-1`, `"amount":-1`} {
		t.Run(amount, func(t *testing.T) {
			w := newFixture(t)
			w.goTo(3, 4)
			w.broken = func(rw http.ResponseWriter, _ *http.Request) {
				_, _ = rw.Write([]byte(`{"entity":"collection","count":1,"items":[{"id":"txn_1","entity":"transaction","account_number":"7878780080316316",
					"currency":"INR","debit":100,"credit":0,"balance":5,"created_at":1793596000,"source":{"id":"pout_1","entity":"payout",` + amount + `}}]}`))
			}
			p, err := w.service.Period("2026-11-02", "2026-11-02")
			w.must(err)
			if _, err := w.service.Reconcile(t.Context(), p, false); err == nil || !strings.Contains(err.Error(), "has an amount below zero") {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
