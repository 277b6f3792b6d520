package payout_test

import (
	"reflect"
	"testing"
	"time"

	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestFigures_PaidAndFailed has a payout fail at the last moment of a day, another at the first of the next, and a third paid.
func TestFigures_PaidAndFailed(t *testing.T) {
	s := newStory(t)
	midnight := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	s.gateway.mood = refusing
	s.later(midnight.Add(-time.Microsecond).Sub(s.now))
	s.wantState(payout.Failed)
	s.now = midnight.Add(-time.Minute)
	s.request("usr_b", 70_000)
	s.later(time.Minute)
	s.gateway.mood = fair
	paid := s.request("usr_b", 60_000)
	s.later(windowOver)
	s.gateway.transfers[string(paid.ID)].advance(1)
	s.later(time.Hour)
	s.now = midnight.Add(36 * time.Hour)
	open := s.request("usr_b", 50_000)

	count := func(n int64, amount money.Amount) payout.Count { return payout.Count{Number: n, Amount: amount} }
	first, both := count(1, 100_000), count(2, 170_000)
	for range 2 { // the second time, the days that are over are known
		f, err := s.payouts.Figures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]payout.Ended{
			"today": {Day: midnight.AddDate(0, 0, 1)},
			"yesterday": {
				Day: midnight, Paid: count(1, 60_000), Failed: count(1, 70_000),
				Banks:   []payout.BankCounts{{Bank: "HDFC", Paid: count(1, 60_000), Failed: count(1, 70_000)}},
				Reasons: []payout.ReasonCount{{Code: "bank_account_invalid", Count: count(1, 70_000)}},
			},
			"7days": {
				Day: midnight.AddDate(0, 0, -5), Paid: count(1, 60_000), Failed: both,
				Banks:   []payout.BankCounts{{Bank: "HDFC", Paid: count(1, 60_000), Failed: both}},
				Reasons: []payout.ReasonCount{{Code: "bank_account_invalid", Count: both}},
			},
			"30days": {
				Day: midnight.AddDate(0, 0, -28), Paid: count(1, 60_000), Failed: both,
				Banks:   []payout.BankCounts{{Bank: "HDFC", Paid: count(1, 60_000), Failed: both}},
				Reasons: []payout.ReasonCount{{Code: "bank_account_invalid", Count: both}},
			},
		} {
			if got := f.Of(payout.Periods[name]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		if day := f.Days[payout.FiguresDays-3]; day.Failed != first || day.Paid != count(0, 0) {
			t.Errorf("the first day is %+v", day)
		}
		if want := (payout.OpenPayouts{Count: count(1, 50_000), Oldest: open.ID, Since: open.RequestedAt}); f.Open != want {
			t.Errorf("open are %+v, want %+v", f.Open, want)
		}
	}
}

func TestFigures_Of_LargestFirst(t *testing.T) {
	count := func(n int64, amount money.Amount) payout.Count { return payout.Count{Number: n, Amount: amount} }
	f := payout.Figures{Days: []payout.Ended{
		{
			Banks:   []payout.BankCounts{{Bank: "AXIS", Paid: count(1, 10), Failed: count(1, 20)}, {Bank: "SBIN", Paid: count(2, 40)}},
			Reasons: []payout.ReasonCount{{Code: "b", Count: count(1, 5)}, {Code: "a", Count: count(1, 5)}},
		},
		{
			Banks:   []payout.BankCounts{{Bank: "ICIC", Failed: count(1, 30)}, {Bank: "AXIS", Paid: count(1, 9)}},
			Reasons: []payout.ReasonCount{{Code: "c", Count: count(2, 1)}},
		},
	}}
	sum := f.Of(payout.Period{From: 0, To: 2})
	wantBanks := []payout.BankCounts{
		{Bank: "SBIN", Paid: count(2, 40)}, {Bank: "AXIS", Paid: count(2, 19), Failed: count(1, 20)}, {Bank: "ICIC", Failed: count(1, 30)},
	}
	wantReasons := []payout.ReasonCount{{Code: "c", Count: count(2, 1)}, {Code: "a", Count: count(1, 5)}, {Code: "b", Count: count(1, 5)}}
	if !reflect.DeepEqual(sum.Banks, wantBanks) || !reflect.DeepEqual(sum.Reasons, wantReasons) {
		t.Errorf("the sum is %+v", sum)
	}
	for i, want := range []int64{0, 333, 1000} {
		if got := sum.Banks[i].Permille(); got != want {
			t.Errorf("of %s %d of a thousand failed, want %d", sum.Banks[i].Bank, got, want)
		}
	}
	if got := (payout.BankCounts{}).Permille(); got != 0 {
		t.Errorf("of none %d of a thousand failed", got)
	}
}

// The clocks of Chile go from midnight to one o'clock on 6 September 2026. What is paid on that day, also in its last hour, is among its figures, and in a
// selection of that day.
func TestFigures_DayWithoutMidnight(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Zone = zone
	if s.payouts, err = payout.New(o); err != nil {
		t.Fatal(err)
	}
	s.now = time.Date(2026, 9, 6, 11, 0, 0, 0, zone)
	s.reconcileStartup()
	for range 2 {
		p := s.request("usr_b", 50_000)
		s.later(windowOver)
		s.gateway.transfers[string(p.ID)].advance(1)
		s.later(time.Hour)
		if got := s.stateOf(p.ID); got != payout.Completed {
			t.Fatal(got)
		}
		s.now = time.Date(2026, 9, 6, 22, 40, 0, 0, zone)
	}
	s.now = time.Date(2026, 9, 7, 12, 0, 0, 0, zone)
	f, err := s.payouts.Figures(t.Context())
	if got := f.Of(payout.Periods["yesterday"]).Paid.Number; err != nil || got != 2 {
		t.Errorf("%d payouts were paid yesterday, %v; want 2", got, err)
	}
	selection, err := s.payouts.ParseSelection(func(name string) string {
		return map[string]string{"date": "completed", "from": "2026-09-06", "to": "2026-09-06"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	selection.Limit = 10
	if found, err := s.payouts.Find(t.Context(), selection); err != nil || found.Totals.Count != 2 {
		t.Errorf("%d payouts were completed on that day, %v; want 2", found.Totals.Count, err)
	}
}
