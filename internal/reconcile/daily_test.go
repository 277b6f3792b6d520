package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/limits"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

func (w *fixture) runDue(s *reconcile.Service) error {
	w.Helper()
	n, err := s.RunDue(w.Context())
	if n != 0 {
		w.Errorf("%d are left to do at once, want none", n)
	}
	return err
}

// days lists the days of November that were reconciled by the service itself, in the order in which they were.
func (w *fixture) days() (days []int) {
	w.Helper()
	o, err := w.service.Overview(w.Context(), 100)
	w.must(err)
	for _, r := range slices.Backward(o.Runs) {
		if r.Daily {
			days = append(days, r.Period.From.In(india).Day())
		}
	}
	return days
}

func (w *fixture) wantDays(want ...int) {
	w.Helper()
	if got := w.days(); !slices.Equal(got, want) {
		w.Errorf("reconciled were %v, want %v", got, want)
	}
}

func TestRunDue_OncePerDay(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.must(w.runDue(w.service))
	w.wantDays(1) // the day before the first start
	w.goTo(3, 2)
	w.must(w.runDue(w.service))
	w.wantDays(1) // it is too early for the next one
	w.goTo(3, 3)
	w.must(w.runDue(w.service))
	w.wantDays(1, 31, 1, 2) // with those before it once more
	asked := w.asked
	w.goTo(3, 23)
	w.must(w.runDue(w.service))
	w.must(w.runDue(w.instance()))
	if w.asked != asked {
		t.Errorf("the gateway was asked %d times more on the same day", w.asked-asked)
	}
	w.goTo(7, 4) // the service was away
	w.must(w.runDue(w.service))
	w.wantDays(1, 31, 1, 2, 1, 2, 3, 4, 5, 6)
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are %v", got)
	}
}

func TestRunDue_ClockWasAhead_ReconcilesSkippedDays(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 4)
	w.must(w.runDue(w.service))
	w.wantDays(2)
	w.goTo(20, 4)
	w.must(w.runDue(w.service))
	w.broken = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) }
	w.goTo(25, 4)
	if err := w.runDue(w.service); err == nil {
		t.Fatal("it did not fail")
	}

	w.broken = nil
	w.goTo(5, 12)
	w.pay("1234", 20_000)
	w.goTo(6, 4)
	w.must(w.runDue(w.service))
	if days := w.days(); !slices.Equal(days[:6], []int{2, 1, 2, 3, 4, 5}) { // those of the wrong clock ended later
		t.Errorf("reconciled were %v, want the 5th after the 2nd", days)
	}
	o, err := w.service.Overview(t.Context(), 1)
	if w.must(err); !o.Reached.Equal(time.Date(2026, 11, 6, 0, 0, 0, 0, india)) {
		t.Errorf("it reached %s", o.Reached)
	}
	p, err := w.service.Period("2026-11-05", "2026-11-05")
	w.must(err)
	r, err := w.service.Reconcile(t.Context(), p, false)
	if w.must(err); r.Lines != 1 || r.Open != 0 {
		t.Errorf("on the 5th there were %d lines and %d differences, want 1 and none", r.Lines, r.Open)
	}
}

// Between two days, only what is open is compared again, and no sooner than ten minutes after the last time.
func TestRunDue_OpenDifference_ComparedAgainAfterTenMinutes(t *testing.T) {
	w := newFixture(t)
	hand := "payout"
	line := w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	transfer, _ := line["source"].(map[string]any)["id"].(string)
	w.goTo(3, 4)
	w.must(w.runDue(w.service))
	asked := w.asked
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error { // which explains the line
		s := payout.UnmatchedTransfer{Gateway: w.client.Name(), Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: transfer}}, FoundAt: w.now}
		if _, err := tx.RecordUnmatchedTransfer(t.Context(), s); err != nil {
			return err
		}
		_, err := tx.ResolveUnmatchedTransfer(t.Context(), w.client.Name(), transfer)
		return err
	}))
	for _, tt := range []struct {
		wait time.Duration
		want []reconcile.Kind
	}{
		{10*time.Minute - time.Second, []reconcile.Kind{reconcile.LineWithoutPayout}},
		{time.Second, nil},
	} {
		w.now = w.now.Add(tt.wait)
		w.must(w.runDue(w.service))
		if got := w.open(); !slices.Equal(got, tt.want) {
			t.Errorf("at %s, open are %v, want %v", w.now.Format(time.TimeOnly), got, tt.want)
		}
	}
	w.wantDays(2)
	if w.asked != asked {
		t.Errorf("the gateway was asked %d times for no new day", w.asked-asked)
	}
}

// A difference about a payout is judged again, and says when it was last seen.
func TestRunDue_OpenDifference_SeenAgain(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 10_000)
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
	w.goTo(3, 4)
	for range 2 {
		w.must(w.runDue(w.service))
		open, err := w.service.Open(t.Context(), 10)
		if w.must(err); len(open) != 1 || open[0].Kind != reconcile.PayoutWithoutLine || !open[0].LastSeen.Equal(w.now) {
			t.Errorf("open are %+v, want one, last seen at %s", open, w.now)
		}
		w.now = w.now.Add(10 * time.Minute)
	}
}

// A difference about a line alone stays open for as long as the line stands.
func TestRunDue_LineStands_DifferenceStays(t *testing.T) {
	charge, usd := "charge", "USD"
	for kind, change := range map[reconcile.Kind]*sandbox.StatementChange{
		reconcile.UnexplainedDebit: nil, reconcile.CurrencyDiffers: {Change: "alter", Currency: &usd},
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newFixture(t)
			line := w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &charge})
			if change != nil {
				change.Line, _ = line["id"].(string)
				w.misstate(*change)
			}
			w.goTo(3, 4)
			for range 3 {
				w.must(w.runDue(w.service))
				if got := w.open(); !slices.Equal(got, []reconcile.Kind{kind}) {
					t.Errorf("at %s, open are %v, want %v", w.now.Format(time.TimeOnly), got, kind)
				}
				w.now = w.now.Add(10 * time.Minute)
			}
		})
	}
}

func TestRunDue_Failure_BacksOff(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 4)
	w.broken = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) }
	for i, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		if err := w.runDue(w.service); err == nil {
			t.Fatal("it did not fail")
		}
		asked := w.asked
		for _, wait := range []time.Duration{0, time.Duration(minutes)*time.Minute - time.Second} {
			w.now = w.now.Add(wait)
			if err := w.runDue(w.instance()); err != nil || w.asked != asked {
				t.Errorf("failure %d is not waited for: %v", i, err)
			}
		}
		w.now = w.now.Add(time.Second)
	}
	o, err := w.service.Overview(t.Context(), 1)
	if w.must(err); o.Failures != 8 || !o.Reached.IsZero() {
		t.Errorf("after eight failures there is %+v", o)
	}
	w.broken = nil
	w.must(w.runDue(w.service))
	w.wantDays(2)
	if o, err = w.service.Overview(t.Context(), 1); err != nil || o.Failures != 0 {
		t.Errorf("after a success there is %+v, %v", o, err)
	}
}

// TestRunDue_NeverToTheEnd has a long outage begin before the service had reconciled any day to its end. It goes on with the day on which
// the gateway was first sent a payout, and reads a month at most.
func TestRunDue_NeverToTheEnd(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.broken = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) }
	for day := 3; day < 6; day++ {
		w.goTo(day, 4)
		if err := w.runDue(w.service); err == nil {
			t.Fatal("it did not fail")
		}
	}
	w.broken = nil
	w.goTo(6, 4)
	w.must(w.runDue(w.service))
	w.wantDays(2, 3, 4, 5)
}

func TestRunDue_NeverForMonths_ReadsOne(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.now = time.Date(2027, 2, 3, 4, 0, 0, 0, india)
	w.must(w.runDue(w.service))
	days, err := w.options.Store.Days(t.Context(), w.now.AddDate(-1, 0, 0), w.now)
	w.must(err)
	if want := time.Date(2027, 1, 3, 0, 0, 0, 0, india); len(days) != 31 || !days[0].From.Equal(want) {
		t.Errorf("%d days were read, from %s on; want 31, from %s on", len(days), days[0].From, want)
	}
}

// A service that stops in the middle says so, and has not failed.
func TestRunDue_Stops(t *testing.T) {
	w := newFixture(t)
	w.goTo(3, 4)
	ctx, stop := context.WithCancel(t.Context())
	w.broken = func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done() // or an empty answer may arrive first
	}
	if _, err := w.service.RunDue(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v, want %v", err, context.Canceled)
	}
	if o, err := w.service.Overview(t.Context(), 1); err != nil || o.Failures != 0 || o.RetryAt.After(w.now) {
		t.Errorf("after it stopped there is %+v, %v", o, err)
	}
}

func TestReconcile_OneInstanceAtATime(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 4)
	other := w.instance()
	var once sync.Once
	w.broken = func(rw http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			if err := w.runDue(other); err != nil {
				t.Error(err)
			}
			p, err := other.Period("", "")
			w.must(err)
			if _, err := other.Reconcile(t.Context(), p, false); fault.From(err) == nil || fault.From(err).Code != "reconciling" {
				t.Errorf("beside another the comparison ended with %v", err)
			}
		})
		w.box.ServeHTTP(rw, r)
	}
	w.must(w.runDue(w.service))
	w.wantDays(2)

	// One that died leaves its turn to run out.
	taken, err := w.db.Reconciling(w.client.Name()).AcquireLease(t.Context(), "somebody", w.now, w.now.Add(time.Minute))
	if w.must(err); !taken {
		t.Fatal("the lease was not released")
	}
	w.goTo(4, 4)
	w.must(w.runDue(other))
	w.wantDays(2, 1, 2, 3)
}

// slowStore takes its time, and has somebody else try to take the turn after each call.
type slowStore struct {
	reconcile.Store
	w     *fixture
	calls int
}

func (s *slowStore) wait() {
	s.calls++
	s.w.now = s.w.now.Add(45 * time.Second)
	taken, err := s.AcquireLease(s.w.Context(), "another person", s.w.now, s.w.now.Add(time.Minute))
	if s.w.must(err); taken {
		s.w.Error("another holder could take the lease")
	}
}

func (s *slowStore) LinesBetween(ctx context.Context, from, to time.Time, after reconcile.Line, limit int) ([]reconcile.Line, error) {
	s.wait()
	return s.Store.LinesBetween(ctx, from, to, after, limit)
}

func (s *slowStore) Entries(ctx context.Context, from, to time.Time, after reconcile.Entry, limit int) ([]reconcile.Entry, error) {
	s.wait()
	return s.Store.Entries(ctx, from, to, after, limit)
}

func (s *slowStore) PayoutsByID(ctx context.Context, ids []payout.ID) (map[payout.ID]payout.Payout, error) {
	if len(ids) > 0 {
		s.wait()
	}
	return s.Store.PayoutsByID(ctx, ids)
}

func (s *slowStore) OpenDifferences(ctx context.Context, after reconcile.Difference, limit int) ([]reconcile.Difference, error) {
	s.wait()
	return s.Store.OpenDifferences(ctx, after, limit)
}

func TestReconcile_SlowStore_KeepsLease(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 4)
	slow := &slowStore{Store: w.db.Reconciling(w.client.Name()), w: w}
	w.options.Store = slow
	w.service = w.instance()
	if wantKinds(t, w.reconcile("02", "02")); slow.calls < 8 {
		t.Errorf("%d calls were slow, want more", slow.calls)
	}
}

// failingStore fails to find the lines of payouts the first time that it is asked.
type failingStore struct {
	reconcile.Store
	asked int
}

var errStore = errors.New("the database is gone")

func (s *failingStore) LinesAbout(ctx context.Context, payouts []payout.ID, transfers []string) ([]reconcile.Line, error) {
	if s.asked++; s.asked == 1 {
		return nil, errStore
	}
	return s.Store.LinesAbout(ctx, payouts, transfers)
}

// Without the lines of a payout it is not known how many days before the period have to be read.
func TestReconcile_ReachUnknown_IsError(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(3, 4)
	w.options.Store = &failingStore{Store: w.db.Reconciling(w.client.Name())}
	p, err := w.service.Period("2026-11-02", "2026-11-02")
	w.must(err)
	if _, err := w.instance().Reconcile(t.Context(), p, true); !errors.Is(err, errStore) {
		t.Errorf("it ended with %v, want %v", err, errStore)
	}
}

func TestManyAtOnceFindTheSame(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 10_000)
	w.misstate(sandbox.StatementChange{Change: "double", Line: string(id)})
	w.goTo(3, 4)
	var all sync.WaitGroup
	for range 4 {
		s := w.instance()
		all.Go(func() {
			for range 3 {
				if err := w.runDue(s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.wantDays(2)
	if got := w.open(); !slices.Equal(got, []reconcile.Kind{reconcile.PaidTwice}) {
		t.Errorf("open are %v", got)
	}
}

// The statement has more lines than a page, and the reading fails between pages. Then new lines shift the others
// between pages.
func TestReconcile_ReadingInterrupted_ReadsAll(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	topUp := "bank_transfer"
	for range 240 {
		w.misstate(sandbox.StatementChange{Change: "add", Credit: new(int64(100)), Entity: &topUp})
		w.now = w.now.Add(time.Second)
	}
	w.goTo(3, 4)
	cuts := 0
	w.broken = func(rw http.ResponseWriter, r *http.Request) {
		if skip, _ := strconv.Atoi(r.URL.Query().Get("skip")); skip >= 200 && cuts < 6 { // two readings, which ask three times each
			cuts++
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		w.box.ServeHTTP(rw, r)
	}
	p, err := w.service.Period("2026-11-02", "2026-11-02")
	w.must(err)
	for range 2 {
		if _, err := w.service.Reconcile(t.Context(), p, false); err == nil {
			t.Fatal("a cut reading did not fail")
		}
		if days, err := w.db.Reconciling(w.client.Name()).Days(t.Context(), p.From, p.To); err != nil || len(days) > 0 {
			t.Errorf("half a day counts as read: %+v, %v", days, err)
		}
	}
	r := w.reconcile("02", "02")
	if wantKinds(t, r); r.Lines != 242 || r.Sums.Gap() != 0 {
		t.Errorf("compared %d lines with a gap of %d, want 242 without", r.Lines, r.Sums.Gap())
	}

	// Today, with a line more before each page.
	w.goTo(2, 12)
	moving := 0
	w.broken = func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/transactions") && moving < 5 {
			moving++
			w.misstateIn(sandbox.StatementChange{Change: "add", Credit: new(int64(100)), Entity: &topUp})
		}
		w.box.ServeHTTP(rw, r)
	}
	if r := w.reconcile("02", "02"); r.Lines != 242 || r.Sums.Gap() != 0 {
		t.Errorf("beside new lines %d were compared, with a gap of %d; want 242 without", r.Lines, r.Sums.Gap())
	}
}

// misstateIn changes the statement from within a call of the gateway.
func (w *fixture) misstateIn(change sandbox.StatementChange) {
	broken := w.broken
	w.broken = nil
	w.misstate(change)
	w.broken = broken
}

func TestReconcile_InvalidStatement_IsError(t *testing.T) {
	line := func(change string) string {
		return `{"entity":"collection","count":1,"items":[{"id":"txn_1","entity":"transaction","account_number":"7878780080316316","currency":"INR",
			"debit":100,"credit":0,"balance":5,"created_at":1793596000,` + change + `"source":{"id":"pout_1","entity":"payout"}}]}`
	}
	const pages = 11 // the first has a line, and ten in a row have nothing new
	for name, tt := range map[string]struct{ body, want string }{
		"an endless list":    {line(""), "does not come to an end"},
		"no list":            {`{"entity":"payout"}`, "holds no list"},
		"another account":    {line(`"account_number":"1111",`), "is of another account"},
		"both ways":          {line(`"credit":100,`), "must either take an amount or give one"},
		"no amount":          {strings.Replace(line(""), "100", `"100"`, 1), "must either take an amount or give one"},
		"below zero":         {line(`"debit":-100,`), "must either take an amount or give one"},
		"no time":            {line(`"created_at":0,`), "does not tell its time"},
		"another day":        {line(`"created_at":1793396000,`), "the gateway's list is not of the day"},
		"no id":              {line(`"id":"",`), "what is no line of a statement"},
		"more than counts":   {line(`"debit":9007199254740993,`), "more than can be counted"},
		"a page of the bank": {"<html>", "not readable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.goTo(3, 4)
			w.broken = func(rw http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(rw, tt.body) }
			p, err := w.service.Period("2026-11-02", "2026-11-02")
			w.must(err)
			before := w.asked
			_, err = w.service.Reconcile(t.Context(), p, false)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "7878780080316316") {
				t.Errorf("it ended with %v, want one that says %q", err, tt.want)
			}
			if asked := w.asked - before; name == "an endless list" && asked != pages {
				t.Errorf("the gateway was asked for %d pages, want %d", asked, pages)
			}
		})
	}
}

func TestReconcile_DebitOnOtherDay_NotMissing(t *testing.T) {
	w := newFixture(t)
	w.goTo(2, 12)
	w.now = time.Date(2026, 11, 2, 23, 59, 57, 0, india)
	id := w.ask("1234", 100_000)
	w.later(time.Second) // at the gateway
	w.now = time.Date(2026, 11, 3, 0, 30, 0, 0, india)
	w.later(time.Second)
	if got := w.state(id); got != payout.Completed {
		t.Fatalf("the payout is %s", got)
	}
	w.goTo(4, 4)
	third := time.Date(2026, 11, 3, 0, 0, 0, 0, india)
	w.broken = func(rw http.ResponseWriter, r *http.Request) { // the day before can't be read
		if from, _ := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64); from < third.Add(-time.Hour).Unix() {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.box.ServeHTTP(rw, r)
	}
	p, err := w.service.Period("2026-11-03", "2026-11-03")
	w.must(err)
	if _, err := w.service.Reconcile(t.Context(), p, true); err == nil {
		t.Error("it did not fail without the day before")
	}
	w.broken = nil
	r := w.reconcile("03", "03")
	if wantKinds(t, r); r.Unjudged != 0 || r.Sums.OtherPeriod != -100_000 || r.Sums.Paid != 100_000 {
		t.Errorf("the sums of the second day are %+v", r.Sums)
	}
	if r := w.reconcile("02", "02"); r.Sums.OtherPeriod != 100_000 || r.Sums.Fees != 590 {
		t.Errorf("the sums of the first day are %+v", r.Sums)
	}
	if r := w.reconcile("02", "03"); r.Sums.OtherPeriod != 0 {
		t.Errorf("the sums of both days are %+v", r.Sums)
	}

	// A second debit, days later.
	w.misstate(sandbox.StatementChange{Change: "double", Line: string(id)})
	w.goTo(5, 4)
	wantKinds(t, w.reconcile("04", "04"), reconcile.PaidTwice)
}

// A payout is judged by its debit, which is read even where the day has the line that returned the money.
func TestReconcile_ReturnOnOtherDay_DebitIsRead(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 100_000)
	w.goTo(3, 12)
	w.control(http.MethodPut, "/control/payouts/"+string(id), sandbox.HandMove{Status: "reversed", Reason: "beneficiary_bank_rejected"})
	w.later(time.Minute)
	if got := w.state(id); got != payout.Returned {
		t.Fatalf("the payout is %s", got)
	}
	w.goTo(4, 4)
	r := w.reconcile("03", "03")
	if wantKinds(t, r); r.Payouts != 1 || r.Unjudged != 0 {
		t.Errorf("%d of %d payouts are not judged, want none of 1", r.Unjudged, r.Payouts)
	}
}

func TestReconcile_GatewayClockAhead_LineNotMissing(t *testing.T) {
	w := newFixture(t)
	w.ahead = 40 * time.Second
	w.now = time.Date(2026, 11, 2, 23, 59, 25, 0, india)
	id := w.pay("1234", 100_000)
	p, err := w.db.Payout(t.Context(), id)
	if w.must(err); p.State != payout.Completed || p.CompletedAt.In(india).Day() != 2 {
		t.Fatalf("the payout is %s, since %s", p.State, p.CompletedAt)
	}
	w.goTo(3, 4)
	if r := w.reconcile("02", "02"); r.Open != 0 || r.Unjudged != 1 || r.Sums.OtherPeriod != -100_000 {
		t.Errorf("before the next day was read: %+v", r)
	}
	w.goTo(4, 4)
	wantKinds(t, w.reconcile("03", "03"))
	if r := w.reconcile("02", "02"); r.Open != 0 || r.Unjudged != 0 {
		t.Errorf("after the next day was read: %+v", r)
	}
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
	w.later(time.Hour)
	wantKinds(t, w.reconcile("03", "03"), reconcile.LineChanged)
	wantKinds(t, w.reconcile("02", "02"), reconcile.PayoutWithoutLine)
}

func TestHalfADayIsReadAgain(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.now = w.now.Add(time.Hour)
	if r := w.reconcile("02", "02"); r.Lines != 2 {
		t.Errorf("at eleven there were %d lines, want 2", r.Lines)
	}
	w.pay("1234", 20_000)
	w.goTo(3, 4)
	p, err := w.service.Period("2026-11-02", "")
	w.must(err)
	r, err := w.service.Reconcile(t.Context(), p, false)
	if w.must(err); r.Lines != 3 || r.Open != 0 {
		t.Errorf("the next day there are %d lines and %d differences, want 3 and none", r.Lines, r.Open)
	}
	asked := w.asked
	if _, err = w.service.Reconcile(t.Context(), p, false); err != nil || w.asked != asked {
		t.Errorf("a day that was read whole is asked for again %d times, %v", w.asked-asked, err)
	}
}

// Today is compared as far as it has come.
func TestReconcile_Today_FindsMissingLine(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 10_000)
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
	w.goTo(2, 11)
	wantKinds(t, w.reconcile("02", "02"), reconcile.PayoutWithoutLine)
}

func TestReconcile_LastLineMissing_GapNextDay(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	last := w.pay("1234", 20_000)
	w.goTo(3, 12)
	w.pay("1234", 30_000)
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(last)})
	w.goTo(4, 4)
	wantKinds(t, w.reconcile("02", "02"), reconcile.PayoutWithoutLine)
	r := w.reconcile("03", "03")
	wantKinds(t, r, reconcile.StatementHasGap)
	w.control(http.MethodDelete, "/control/statement", struct{}{})
	wantKinds(t, w.reconcile("02", "03"))
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are still %v", got)
	}
}

// A day without lines keeps the balance that the day before ended with.
func TestReconcile_DayWithoutLines_GapAfterIt(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 10_000)
	w.goTo(2, 12)
	last := w.pay("1234", 20_000)
	w.goTo(4, 12)
	w.pay("1234", 30_000)
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(last)})
	w.goTo(5, 4)
	wantKinds(t, w.reconcile("02", "02"), reconcile.PayoutWithoutLine)
	if r := w.reconcile("03", "03"); r.Lines != 0 {
		t.Fatalf("the day between has %d lines, want none", r.Lines)
	}
	wantKinds(t, w.reconcile("04", "04"), reconcile.StatementHasGap)
}

// A day that ends with the balance that it began with is followed by one that begins with it.
func TestReconcile_DayEndsAsItBegan_NoGap(t *testing.T) {
	w := newFixture(t)
	w.pay("1234", 20_000)
	w.goTo(3, 12)
	hand, back := "payout", "reversal"
	w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	w.misstate(sandbox.StatementChange{Change: "add", Credit: new(int64(7_000)), Entity: &back})
	w.goTo(4, 12)
	w.pay("1234", 30_000)
	w.goTo(5, 4)
	if s := w.reconcile("03", "03").Sums; !s.HasBalances || s.Opening == 0 || s.Opening != s.Closing {
		t.Errorf("the day's sums are %+v, want one balance", s)
	}
	wantKinds(t, w.reconcile("04", "04"))
}

func TestReconcile_WaitingPayoutHasLine_LineBeforeOrder(t *testing.T) {
	w := newFixture(t)
	id, entity := w.ask("1234", 10_000), "payout"
	w.misstate(sandbox.StatementChange{Change: "add", Line: string(id), Debit: new(int64(10_000)), Entity: &entity})
	w.goTo(3, 4)
	wantKinds(t, w.reconcile("02", "02"), reconcile.LineBeforeOrder)
	if got := w.state(id); got != payout.Waiting {
		t.Errorf("a line moved the payout to %s", got)
	}
}

// The row of a payout that failed says that it was completed, or is gone: the night goes by the journal, and names the money that the gateway
// keeps.
func TestReconcile_FailedRowChangedByHand_RefundedButPaid(t *testing.T) {
	for name, change := range map[string]string{
		"completed": `UPDATE payouts SET state = 'completed', status = 'completed', completed_at = ended_at, ended_at = NULL`,
		"gone":      `DELETE FROM payouts`,
	} {
		t.Run(name, func(t *testing.T) {
			place := storetest.NewPlace(t)
			w := newFixtureAt(t, place)
			id := w.ask("0004", 100_000)
			w.later(time.Second)
			w.control(http.MethodPut, "/control/payouts/"+string(id), sandbox.HandMove{Status: "failed", Reason: "beneficiary_bank_rejected"})
			w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)}) // what gives it back
			w.later(time.Hour)
			w.later(time.Hour)
			if got := w.state(id); got != payout.Failed {
				t.Fatalf("the payout is %s", got)
			}
			place.ByHand(t, change)
			w.goTo(3, 4)
			wantKinds(t, w.reconcile("02", "02"), reconcile.RefundedButPaid)
		})
	}
}

// A payout that is paid days after its debit is judged by the day of the debit, which is read too, unless that is long ago.
func TestReconcile_DebitDaysBefore(t *testing.T) {
	for day, unjudged := range map[int]int{5: 0, 12: 0, 20: 1} {
		t.Run(fmt.Sprint("paid on day ", day), func(t *testing.T) {
			w := newFixture(t)
			id := w.ask("0004", 100_000)
			w.later(time.Second)
			w.goTo(day, 12)
			w.control(http.MethodPut, "/control/payouts/"+string(id), sandbox.HandMove{Status: "processed"})
			w.later(time.Hour)
			w.later(time.Hour)
			if got := w.state(id); got != payout.Completed {
				t.Fatalf("the payout is %s", got)
			}
			w.goTo(day+1, 4)
			r := w.reconcile(fmt.Sprintf("%02d", day), fmt.Sprintf("%02d", day))
			if wantKinds(t, r); r.Unjudged != unjudged || r.Sums.OtherPeriod != -100_000 {
				t.Errorf("%d are not judged, sums %+v; want %d", r.Unjudged, r.Sums, unjudged)
			}
		})
	}
}

// A payout fails days after its debit, its amount is the seller's again, and the gateway never gives it back. The night after the failure
// names it, whether the debit's day was compared before or is read only now, unless that is long ago.
func TestReconcile_FailedDaysAfterItsDebit_RefundedButPaid(t *testing.T) {
	fail := func(t *testing.T, day int, nightly bool) *fixture {
		t.Helper()
		w := newFixture(t)
		id := w.ask("0004", 100_000)
		w.later(time.Second)
		for d := 3; nightly && d <= day; d++ {
			w.goTo(d, 4)
			w.must(w.runDue(w.service))
		}
		w.goTo(day, 12)
		w.control(http.MethodPut, "/control/payouts/"+string(id), sandbox.HandMove{Status: "failed", Reason: "beneficiary_bank_rejected"})
		w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)}) // what gives it back
		w.later(time.Hour)
		w.later(time.Hour)
		if got := w.state(id); got != payout.Failed {
			t.Fatalf("the payout is %s", got)
		}
		w.goTo(day+1, 4)
		return w
	}
	for _, day := range []int{2, 3, 5, 9} {
		w := fail(t, day, true)
		for d := day + 1; d <= day+6; d++ {
			w.goTo(d, 4)
			w.must(w.runDue(w.service))
			w.later(time.Minute)
			if got := w.open(); !slices.Equal(got, []reconcile.Kind{reconcile.RefundedButPaid}) {
				t.Errorf("failed on day %d: on day %d open are %v", day, d, got)
			}
		}
	}
	for day, want := range map[int][]reconcile.Kind{5: {reconcile.RefundedButPaid}, 12: {reconcile.RefundedButPaid}, 20: nil} {
		w := fail(t, day, false)
		r := w.reconcile(fmt.Sprintf("%02d", day), fmt.Sprintf("%02d", day))
		if wantKinds(t, r, want...); (r.Unjudged > 0) != (want == nil) || r.Sums.Gap() != 0 {
			t.Errorf("failed on day %d: %d are not judged, sums %+v", day, r.Unjudged, r.Sums)
		}
	}
}

// A payout that was cancelled before it was sent, or refused at once, has no debit: nothing before the period is read for it.
func TestReconcile_GivenUpUnsent_ReadsNoDayBefore(t *testing.T) {
	w := newFixture(t)
	id := w.ask("1234", 10_000)
	w.goTo(6, 12)
	if _, _, err := w.payouts.Cancel(t.Context(), payout.Caller{User: "usr_1234"}, id, ""); err != nil {
		t.Fatal(err)
	}
	w.goTo(7, 4)
	if r := w.reconcile("06", "06"); r.Payouts != 1 || r.Unjudged != 0 {
		t.Errorf("%d of %d payouts are not judged", r.Unjudged, r.Payouts)
	}
	from := time.Date(2026, 11, 6, 0, 0, 0, 0, india)
	if read, err := w.options.Store.Days(t.Context(), time.Time{}, w.now); err != nil || len(read) != 1 || !read[0].From.Equal(from) {
		t.Errorf("read were %+v, %v; want the day that was asked for", read, err)
	}
}

func TestReconcile_ReturnedAtGateway_PollsPayout(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 100_000)
	for range 3 {
		w.later(2 * time.Hour) // the next look is hours away
	}
	w.control(http.MethodPut, "/control/payouts/"+string(id), sandbox.HandMove{Status: "reversed", Reason: "beneficiary_bank_rejected"})
	w.now = w.now.Add(5 * time.Minute)
	wantKinds(t, w.reconcile("02", "02")) // the line is within its grace
	w.now = w.now.Add(15 * time.Minute)
	wantKinds(t, w.reconcile("02", "02"), reconcile.ReturnedAtGateway)
	if got := w.state(id); got != payout.Completed {
		t.Fatalf("a line was believed: the payout is %s", got)
	}
	w.later(time.Second)
	if got := w.state(id); got != payout.Returned {
		t.Fatalf("the payout is %s, want returned: the gateway was to be asked now", got)
	}
	w.goTo(3, 2) // before the next day is due
	w.must(w.runDue(w.service))
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are still %v", got)
	}
}

// A payout with an open difference gets a reversal that the ledger may still learn of.
func TestReconcile_NotJudged_StaysOpen(t *testing.T) {
	w := newFixture(t)
	id := w.pay("1234", 100_000)
	w.misstate(sandbox.StatementChange{Change: "drop", Line: string(id)})
	w.goTo(3, 4)
	wantKinds(t, w.reconcile("02", "02"), reconcile.PayoutWithoutLine)
	reversal := "reversal"
	w.misstate(sandbox.StatementChange{Change: "add", Line: string(id), Credit: new(int64(100_590)), Entity: &reversal})
	w.now = w.now.Add(5 * time.Minute)
	wantKinds(t, w.reconcile("03", "03"))
	if got := w.open(); !slices.Equal(got, []reconcile.Kind{reconcile.PayoutWithoutLine}) {
		t.Errorf("open are %v", got)
	}
}

func TestResolve_HoldsUntilStatementChanges(t *testing.T) {
	w := newFixture(t)
	var log bytes.Buffer
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.service = w.instance()
	hand := "payout"
	line := w.misstate(sandbox.StatementChange{Change: "add", Debit: new(int64(7_000)), Entity: &hand})
	w.goTo(3, 4)
	r := w.reconcile("02", "02")
	wantKinds(t, r, reconcile.LineWithoutPayout)
	d := r.Differences[0]
	by := decision.By{Admin: "usr_admin", Note: "The rent, paid by hand."}
	if err := w.service.Resolve(t.Context(), decision.By{Admin: "usr_admin"}, d.ID, d.Detail); err == nil {
		t.Error("resolved without a note")
	}
	if err := w.service.Resolve(t.Context(), by, "dif_x", d.Detail); !errors.Is(err, reconcile.ErrNotFound) {
		t.Errorf("resolved what is no difference: %v", err)
	}
	w.must(w.service.Resolve(t.Context(), by, d.ID, d.Detail))
	if n := strings.Count(log.String(), `msg="admin decided"`); n != 1 {
		t.Errorf("%d decisions are in the log, want the one that was made", n)
	}
	if err := w.service.Resolve(t.Context(), by, d.ID, d.Detail); err == nil {
		t.Error("resolved twice")
	}
	r = w.reconcile("02", "02")
	if wantKinds(t, r); len(r.Differences) != 1 || r.Differences[0].ResolvedAt.IsZero() || r.Open != 0 {
		t.Errorf("resolved, there is %+v", r.Differences)
	}
	transfer, _ := line["source"].(map[string]any)["id"].(string)
	reversal := "reversal"
	w.misstate(sandbox.StatementChange{Change: "add", Line: transfer, Credit: new(int64(7_000)), Entity: &reversal})
	w.goTo(4, 4)
	wantKinds(t, w.reconcile("03", "03"), reconcile.LineWithoutPayout)

	// An admin who resolves it as an unmatched transfer explains it too.
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
		s := payout.UnmatchedTransfer{Gateway: w.client.Name(), Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: transfer}}, FoundAt: w.now}
		if _, err := tx.RecordUnmatchedTransfer(t.Context(), s); err != nil {
			return err
		}
		_, err := tx.ResolveUnmatchedTransfer(t.Context(), w.client.Name(), transfer)
		return err
	}))
	wantKinds(t, w.reconcile("03", "03"))
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are still %v", got)
	}
}

func TestPeriods(t *testing.T) {
	w := newFixture(t)
	w.goTo(5, 10)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, india) }
	for _, tt := range []struct {
		from, to   string
		start, end time.Time
	}{
		{"", "", at(4, 0, 0), at(5, 0, 0)},
		{"2026-11-01", "", at(1, 0, 0), at(5, 0, 0)},
		{"", "2026-11-02", at(2, 0, 0), at(3, 0, 0)},
		{"2026-11-01", "2026-11-02", at(1, 0, 0), at(3, 0, 0)},
		{"yesterday", "today", at(4, 0, 0), at(5, 9, 50)},
		{"today", "", at(5, 0, 0), at(5, 9, 50)},
		{"2016-10-27", "", time.Date(2016, 10, 27, 0, 0, 0, 0, india), at(5, 0, 0)},
	} {
		p, err := w.service.Period(tt.from, tt.to)
		if err != nil || !p.From.Equal(tt.start) || !p.To.Equal(tt.end) {
			t.Errorf("%q to %q is %v, %v", tt.from, tt.to, p, err)
		}
	}
	for _, tt := range []struct{ from, to, field string }{
		{"soon", "", "from"},
		{"", "2026-13-01", "to"},
		{"2026-11-06", "", "to"},
		{"", "2026-11-06", "to"},
		{"2026-11-01", "2026-11-06", "to"},
		{"2026-11-03", "2026-11-02", "from"},
		{"2016-10-26", "", "from"},
		{"0001-01-01", "", "from"},
		{"1999-12-31", "1999-12-31", "from"},
	} {
		_, err := w.service.Period(tt.from, tt.to)
		if f := fault.From(err); f == nil || f.Details[tt.field] == "" {
			t.Errorf("%q to %q: %v, want one about %s", tt.from, tt.to, err, tt.field)
		}
	}
	w.now = at(5, 0, 5)
	if _, err := w.service.Period("today", "today"); err == nil {
		t.Error("a day that has only begun can be compared")
	}
}

// The clocks of Chile go from midnight to one o'clock on 6 September 2026. That day is compared in the night after, and the next one in the next.
func TestRunDue_DayWithoutMidnight(t *testing.T) {
	w := newFixture(t)
	zone, err := time.LoadLocation("America/Santiago")
	w.must(err)
	w.options.Zone = zone
	w.service = w.instance()
	for day := 4; day <= 9; day++ {
		w.now = time.Date(2026, 9, day, 12, 0, 0, 0, zone)
		w.must(w.runDue(w.service))
		reached, err := w.options.Store.Reached(t.Context(), w.now)
		if want := limits.StartOfDay(w.now, 0); err != nil || !reached.Equal(want) {
			t.Fatalf("the days up to %s were compared, %v; want %s", reached.In(zone), err, want)
		}
	}
}
