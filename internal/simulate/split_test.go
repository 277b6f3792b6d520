package simulate

import (
	"testing"
	"time"
)

// Each marketplace of a large run can be run again by itself.
func TestMarkets_LargeRun_Split(t *testing.T) {
	o := Options{Seed: 7, Days: 30, Sellers: 3*SellersTogether + 1}
	seeds, sellers := map[uint64]bool{}, 0
	for i, part := range o.markets() {
		sellers += part.Sellers
		seeds[part.Seed] = true
		if again := part.markets(); len(again) != 1 || again[0] != part {
			t.Errorf("marketplace %d is %+v, and by itself it is %+v", i, part, again)
		}
	}
	if len(seeds) != 4 || sellers != o.Sellers || !seeds[o.Seed] {
		t.Errorf("%d marketplaces with %d sellers, want 4 with %d, one of them with the run's own seed", len(seeds), sellers, o.Sellers)
	}
}

func TestLongRun_HasAsManyFaultsAsAShortOneAndQuietBetween(t *testing.T) {
	const day = 24 * time.Hour
	for days, foul := range map[int]time.Duration{1: day, 7: 7 * day, 31: 31 * day, 40: 40 * day, 41: 40 * day, 365: 40 * day, MostDays: 40 * day} {
		m := &market{o: Options{Days: days, Faults: Faults{crash: true}}}
		is := m.end()
		if m.isLong() {
			foulShare := 12 / (12*time.Hour + m.fairAfter(12*time.Hour)).Hours()
			is = time.Duration(float64(is) * foulShare)
		}
		if is < foul-day || is > foul+time.Minute {
			t.Errorf("of %d days, %s are foul, want %s", days, is, foul)
		}
	}
	if fair := (&market{o: Options{Days: 365}}); fair.isLong() {
		t.Error("there is no foul weather without faults, and so nothing to space")
	}
}
