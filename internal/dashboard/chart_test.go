package dashboard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bursar/internal/dashboard"
	"bursar/internal/money"
	"bursar/internal/sale"
)

func months(earned ...money.Amount) []sale.Month {
	var all []sale.Month
	for i, e := range earned {
		all = append(all, sale.Month{Month: fmt.Sprintf("2026-%02d", i+1), Earned: e})
	}
	return all
}

func TestChartOf_LinesAndBars(t *testing.T) {
	bars, lines, zero := dashboard.ChartOf(rupees(t), months(0, 19_000_00, -4_000_00))
	if want := []string{"₹20,000", "₹15,000", "₹10,000", "₹5,000", "₹0", "−₹5,000"}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v", lines, want)
	}
	if zero != 800 || bars[0] != [2]int64{800, 0} || bars[1] != [2]int64{40, 760} || bars[2] != [2]int64{800, 160} {
		t.Errorf("zero at %d, bars %v", zero, bars)
	}
	if bars, _, _ := dashboard.ChartOf(rupees(t), months(0, 0, 0)); bars != nil {
		t.Errorf("nothing was earned, and it is drawn: %v", bars)
	}
}

func TestChartOf_BarsStayInside(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var earned []money.Amount
		size := min(money.Amount(1)<<random.IntN(55), money.Max)
		for range 12 {
			earned = append(earned, money.Amount(random.Int64N(int64(size)+1))-size/money.Amount(1+random.IntN(4)))
		}
		bars, lines, zero := dashboard.ChartOf(rupees(t), months(earned...))
		if len(lines) > 12 {
			t.Fatalf("%v has %d lines", earned, len(lines))
		}
		for i, b := range bars {
			if b[0] < 0 || b[1] < 0 || b[0]+b[1] > 1004 || zero < 0 || zero > 1000 {
				t.Fatalf("%v: bar %d from %d for %d, zero at %d", earned, i, b[0], b[1], zero)
			}
		}
	}
}
