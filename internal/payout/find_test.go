package payout_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/fault"
	"bursar/internal/payout"
)

func TestParseSelection(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Zone = time.FixedZone("IST", 19800)
	payouts, err := payout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	day := func(year int, month time.Month, d int) time.Time {
		return time.Date(year, month, d, 0, 0, 0, 0, o.Zone)
	}
	after := s.id
	for _, tt := range []struct {
		name  string
		given map[string]string
		want  payout.Selection
		wrong []string // fields
	}{
		{"nothing", nil, payout.Selection{}, nil},
		{"all of it", map[string]string{
			"sellerId": "usr_0TMv3kQx8hPq2Zb7Lr4Wd9Yc", "status": "failed", "state": "manual_review", "minAmount": "1", "maxAmount": "1",
			"bank": "hdfc", "reason": "bank_rejected", "date": "ended", "from": "2026-11-20", "to": "2026-11-20", "sort": "amount", "after": string(after),
		}, payout.Selection{
			Seller: "usr_0TMv3kQx8hPq2Zb7Lr4Wd9Yc", Status: payout.StatusFailed, State: payout.ManualReview, MinAmount: 100, MaxAmount: 100,
			Bank: "HDFC", Reason: "bank_rejected", Date: payout.DateEnded, From: day(2026, 11, 20), To: day(2026, 11, 21), Sort: payout.LargestFirst, After: after,
		}, nil},
		{"every status", map[string]string{"status": "all"}, payout.Selection{}, nil},
		{"late", map[string]string{"state": "late"}, payout.Selection{LateAt: s.now}, nil},
		{"discrepancy", map[string]string{"state": "discrepancy"}, payout.Selection{Discrepancy: true}, nil},
		{"the first and the last day", map[string]string{"from": "2000-01-01", "to": "2100-12-31"}, payout.Selection{From: day(2000, 1, 1), To: day(2101, 1, 1)}, nil},
		{"oldest", map[string]string{"sort": "oldest", "date": "completed"}, payout.Selection{Sort: payout.OldestFirst, Date: payout.DateCompleted}, nil},
		{"the longest reason", map[string]string{"reason": strings.Repeat("~", 64)}, payout.Selection{Reason: strings.Repeat("~", 64)}, nil},
		{"the least character", map[string]string{"reason": "!"}, payout.Selection{Reason: "!"}, nil},
		{"too long a reason", map[string]string{"reason": strings.Repeat("~", 65)}, payout.Selection{}, []string{"reason"}},
		{"a control character", map[string]string{"reason": "\x7f"}, payout.Selection{}, []string{"reason"}},
		{"all wrong", map[string]string{
			"sellerId": "usr_1", "status": "late", "state": "odd", "minAmount": "0", "maxAmount": "x", "bank": "HDF1", "reason": "no such",
			"date": "sent", "from": "1999-12-31", "to": "2101-01-01", "sort": "newer", "after": "7",
		}, payout.Selection{}, []string{"after", "bank", "date", "from", "maxAmount", "minAmount", "reason", "sellerId", "sort", "state", "status", "to"}},
		{"no such day", map[string]string{"from": "2026-02-30"}, payout.Selection{}, []string{"from"}},
		{"turned around", map[string]string{"minAmount": "2", "maxAmount": "1.99", "from": "2026-11-21", "to": "2026-11-20"}, payout.Selection{}, []string{"maxAmount", "to"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := payouts.ParseSelection(func(name string) string { return tt.given[name] })
			if tt.wrong != nil {
				if wrong := slices.Sorted(maps.Keys(fault.From(err).Details)); err == nil || !slices.Equal(wrong, tt.wrong) {
					t.Errorf("wrong are %v, want %v", wrong, tt.wrong)
				}
				return
			}
			if tt.want.Date == "" {
				tt.want.Date = payout.DateRequested
			}
			if tt.want.Sort == "" {
				tt.want.Sort = payout.NewestFirst
			}
			if err != nil || got != tt.want {
				t.Errorf("%+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestFigures_DaysOfZone(t *testing.T) {
	s := newStory(t)
	o := s.options(t, s.db.Payouts())
	o.Zone = time.FixedZone("IST", 19800)
	for at, want := range map[time.Time]time.Time{
		time.Date(2026, 11, 20, 18, 29, 59, 0, time.UTC): time.Date(2026, 11, 20, 0, 0, 0, 0, o.Zone),
		time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC):  time.Date(2026, 11, 21, 0, 0, 0, 0, o.Zone),
	} {
		o.Now = func() time.Time { return at }
		payouts, err := payout.New(o)
		if err != nil {
			t.Fatal(err)
		}
		f, err := payouts.Figures(t.Context())
		if err != nil || len(f.Days) != payout.FiguresDays || !f.Days[payout.FiguresDays-1].Day.Equal(want) {
			t.Errorf("at %s the days are %+v, %v; want the last to begin at %s", at, f.Days, err, want)
		}
	}
}

func TestFind_NextOnlyWhereMoreFollow(t *testing.T) {
	s := newStory(t)
	for range 2 {
		s.request("usr_b", 60_000)
	}
	all, err := s.payouts.Find(t.Context(), payout.Selection{Limit: 10})
	if err != nil || len(all.Payouts) != 3 {
		t.Fatalf("%d payouts, %v", len(all.Payouts), err)
	}
	for limit, want := range map[int]struct {
		found int
		next  payout.ID
	}{1: {1, all.Payouts[0].ID}, 2: {2, all.Payouts[1].ID}, 3: {3, ""}, 4: {3, ""}} {
		f, err := s.payouts.Find(t.Context(), payout.Selection{Limit: limit})
		if err != nil || len(f.Payouts) != want.found || f.Next != want.next {
			t.Errorf("limit %d: %d payouts, next %q, %v; want %d, %q", limit, len(f.Payouts), f.Next, err, want.found, want.next)
		}
	}
}

func TestParseSelection_Bank(t *testing.T) {
	s := newStory(t)
	for bank, want := range map[string]bool{"AZAZ": true, "za": false, "HDFCX": false, "HD@C": false, "HD[C": false} {
		sel, err := s.payouts.ParseSelection(func(name string) string { return map[string]string{"bank": bank}[name] })
		if is := err == nil && sel.Bank == bank; is != want {
			t.Errorf("bank %q is taken %t, %v; want %t", bank, is, err, want)
		}
	}
}

// An export reads page by page, and each payout once.
func TestExport_ManyPages(t *testing.T) {
	s := newStory(t)
	const added = 5000 // a page of an export
	s.place.ByHand(t, fmt.Sprintf(`INSERT INTO payouts (id, seller_id, bank_account_id, amount, fee, notes, rail, state, status, requested_at, arrive_at, gateway)
		WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
		SELECT 'pyt_00000' || (1000000000000000000 + n), seller_id, bank_account_id, amount, fee, notes, rail, state, status, requested_at, arrive_at, gateway
		FROM payouts, numbers`, added))
	seen := map[payout.ID]bool{}
	err := s.payouts.Export(t.Context(), payout.Selection{Sort: payout.NewestFirst}, func(p payout.Selected) error {
		if seen[p.ID] {
			return fmt.Errorf("payout %s is exported twice", p.ID)
		}
		seen[p.ID] = true
		return nil
	})
	if err != nil || len(seen) != added+1 || !seen[s.id] {
		t.Errorf("%d payouts are exported, %v; want %d", len(seen), err, added+1)
	}
}

// A caller who takes no more ends the export.
func TestExport_EndsWithItsCaller(t *testing.T) {
	s := newStory(t)
	s.request("usr_b", 60_000)
	gone, exported := errors.New("gone"), 0
	if err := s.payouts.Export(t.Context(), payout.Selection{}, func(payout.Selected) error { exported++; return gone }); !errors.Is(err, gone) || exported != 1 {
		t.Errorf("after %d payouts: %v", exported, err)
	}
}

// An export is of the whole selection, whatever page of it is on the screen.
func TestExport_IgnoresPage(t *testing.T) {
	s := newStory(t)
	s.request("usr_b", 60_000)
	for _, sel := range []payout.Selection{{}, {Limit: 1}, {After: s.id}, {Limit: 1, After: s.id}} {
		exported := 0
		err := s.payouts.Export(t.Context(), sel, func(payout.Selected) error { exported++; return nil })
		if err != nil || exported != 2 {
			t.Errorf("of page %q with limit %d, %d payouts are exported, %v", sel.After, sel.Limit, exported, err)
		}
	}
}
