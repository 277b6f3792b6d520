package sale_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bursar/internal/money"
	"bursar/internal/sale"
)

func TestListIsNewestFirst(t *testing.T) {
	s := openShop(t)
	var want []string
	for i := range 5 {
		id := fmt.Sprint("order-", i)
		s.record(sale.NewSale{ID: id, Seller: "usr_seller", Amount: 100, OccurredAt: s.now.Add(time.Duration(i) * time.Hour)}, true)
		want = append([]string{id}, want...)
	}
	list, total, err := s.sales.List(t.Context(), "usr_seller", 1, 3)
	var got []string
	for _, listed := range list {
		got = append(got, listed.ID)
	}
	if err != nil || total != 5 || !slices.Equal(got, want[1:4]) {
		t.Errorf("%v of %d, %v; want %v of 5", got, total, err, want[1:4])
	}
}

func TestMonthsLeaveNoneOut(t *testing.T) {
	s := openShop(t) // it is November
	for month, amount := range map[time.Month]money.Amount{time.July: 7, time.September: 900, time.November: 1100, time.December: 12} {
		s.record(sale.NewSale{
			ID: month.String(), Seller: "usr_seller", Amount: amount, OccurredAt: time.Date(2026, month, 5, 0, 0, 0, 0, time.UTC),
		}, true)
	}
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "September", ID: "r", Amount: 1}); err != nil {
		t.Fatal(err)
	}
	s.now = time.Date(2026, 10, 31, 18, 30, 0, 0, time.UTC) // November in India already
	months := func(n int) []sale.Month {
		got, err := s.sales.Months(t.Context(), "usr_seller", n)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := []sale.Month{{"2026-08", 0}, {"2026-09", 899}, {"2026-10", 0}, {"2026-11", 1100}}
	if got := months(4); !slices.Equal(got, want) {
		t.Errorf("four months: %v, want %v", got, want)
	}
	if got := months(11); len(got) != 11 || got[0].Month != "2026-01" {
		t.Errorf("eleven months: %v", got)
	}
	if got := months(1_000_000); len(got) != 120 || got[119] != want[3] {
		t.Errorf("a million months are %d, the last one %v", len(got), got[len(got)-1])
	}
	if got := months(0); !slices.Equal(got, want[3:]) {
		t.Errorf("no months: %v, want this one", got)
	}
}

// TestReleasesFollowTheZone has sales that become available around midnight in India.
func TestReleasesFollowTheZone(t *testing.T) {
	s := openShop(t)
	india := time.FixedZone("IST", 19800)
	day := func(n int) time.Time { return time.Date(2026, 11, 2+n, 0, 0, 0, 0, india) }
	for id, at := range map[string]time.Time{
		"today": day(1).Add(-time.Microsecond), "tomorrow": day(1), "also tomorrow": day(2).Add(-time.Hour), "far": day(30), "too far": day(31),
	} {
		s.record(sale.NewSale{ID: id, Seller: "usr_seller", Amount: 100, OccurredAt: s.now.Add(-time.Hour), AvailableAt: at}, true)
	}
	want := []sale.Release{{day(0), 100, 1}, {day(1), 200, 2}, {day(30), 100, 1}}
	for limit, want := range map[int][]sale.Release{10: want, 2: want[:2], 0: nil, -1: nil} {
		got, err := s.sales.Releases(t.Context(), "usr_seller", limit)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(a, b sale.Release) bool {
			return a.Day.Equal(b.Day) && a.Amount == b.Amount && a.Sales == b.Sales
		}) {
			t.Errorf("%d releases: %v, want %v", limit, got, want)
		}
	}
}
