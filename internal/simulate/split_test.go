package simulate

import "testing"

// TestALargeRunIsOfManyMarketplaces wants each of them to be seen again by itself.
func TestALargeRunIsOfManyMarketplaces(t *testing.T) {
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
