package storetest

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
	"bursar/internal/store"
)

func idsOf(list []payout.Payout) (ids []payout.ID) {
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	return ids
}

func testSearch(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	b.ask("pyt_1", seller, 100, 0) // which has neither a gateway's id nor a UTR
	refer := func(id payout.ID, gatewayID, utr string) payout.Payout {
		p := b.move(b.ask(id, seller, 100, 0), payout.Submitting)
		p.GatewayID, p.UTR = gatewayID, utr
		return b.move(p, payout.Submitted)
	}
	whole := refer("pyt_2", "pout_2", "UTR2")
	refer("pyt_3", "pout_3", "UTR2")
	refer("pyt_4", "pyt_2", "")
	for _, tt := range []struct {
		query string
		limit int
		want  []payout.ID
	}{
		{"pyt_1", 10, []payout.ID{"pyt_1"}},
		{"pout_3", 10, []payout.ID{"pyt_3"}},
		{"UTR2", 10, []payout.ID{"pyt_3", "pyt_2"}},
		{"UTR2", 1, []payout.ID{"pyt_3"}},
		{"pyt_2", 10, []payout.ID{"pyt_4", "pyt_2"}},
		{"", 10, nil},
		{"pyt_", 10, nil},
	} {
		got, err := b.db.SearchPayouts(b.ctx(), tt.query, tt.limit)
		b.must(err)
		if ids := idsOf(got); !slices.Equal(ids, tt.want) {
			b.Errorf("%q finds %v, want %v", tt.query, ids, tt.want)
		}
	}
	if got, err := b.db.SearchPayouts(b.ctx(), "pout_2", 1); err != nil || len(got) != 1 || got[0] != whole {
		b.Errorf("found\n%+v, %v; want\n%+v", got, err, whole)
	}
}

// testLate has payouts that should have arrived, in each state that a payout may be late in.
func testLate(t *testing.T, b *bench) {
	t.Helper()
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	late := func(id payout.ID, state payout.State, change func(*payout.Payout)) {
		p := b.ask(id, seller, 100, 0)
		if state != payout.Waiting {
			p = b.move(p, payout.Submitting)
		}
		p.DueAt = b.now.Add(7 * time.Hour)
		change(&p)
		b.move(p, state)
	}
	same := func(*payout.Payout) {}
	late("pyt_1", payout.Submitted, same)
	late("pyt_2", payout.Waiting, same)
	late("pyt_3", payout.Unknown, same)
	late("pyt_4", payout.ManualReview, same)
	late("pyt_5", payout.Completed, func(p *payout.Payout) { p.GatewayID, p.CompletedAt = "pout_5", b.now })
	late("pyt_6", payout.Submitted, func(p *payout.Payout) { p.Discrepancy = "can't be" })
	late("pyt_7", payout.Submitted, func(p *payout.Payout) { p.ReasonCode = "gateway_not_configured" })
	at := func(now time.Time, limit int, want ...payout.ID) {
		t.Helper()
		got, err := b.db.LatePayouts(b.ctx(), now, limit)
		if ids := idsOf(got); err != nil || !slices.Equal(ids, want) {
			t.Errorf("late are %v, %v; want %v", ids, err, want)
		}
	}
	arrival := b.now.Add(time.Hour)
	at(arrival, 10)
	at(arrival.Add(time.Second), 10, "pyt_1", "pyt_2", "pyt_3")
	at(arrival.Add(time.Second), 2, "pyt_1", "pyt_2")
	w, err := b.db.Watch(b.ctx(), arrival.Add(time.Second))
	if b.must(err); w.Late != 3 || !w.LateSince.Equal(arrival) {
		t.Errorf("the watch sees %+v", w)
	}
	if w, err = b.db.Watch(b.ctx(), arrival); err != nil || w.Late != 0 || !w.LateSince.IsZero() {
		t.Errorf("the watch sees %+v, %v", w, err)
	}
}

func testAttention(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 10_000)
	for id, state := range map[payout.ID]payout.State{
		"pyt_1": payout.Waiting, "pyt_2": payout.Unknown, "pyt_3": payout.ManualReview, "pyt_4": payout.Submitted, "pyt_5": payout.Unknown,
	} {
		p := b.ask(id, seller, 100, 0)
		if id == "pyt_4" || id == "pyt_5" {
			p.Discrepancy = "can't be"
		}
		b.move(p, state)
	}
	for limit, want := range map[int][]payout.ID{10: {"pyt_2", "pyt_3", "pyt_5"}, 2: {"pyt_2", "pyt_3"}} {
		got, err := b.db.UnresolvedPayouts(b.ctx(), limit)
		if ids := idsOf(got); err != nil || !slices.Equal(ids, want) {
			b.Errorf("%d unclear: %v, %v; want %v", limit, ids, err, want)
		}
	}
	for limit, want := range map[int][]payout.ID{10: {"pyt_4", "pyt_5"}, 1: {"pyt_4"}} {
		got, err := b.db.PayoutsWithDiscrepancy(b.ctx(), limit)
		if ids := idsOf(got); err != nil || !slices.Equal(ids, want) {
			b.Errorf("%d with a discrepancy: %v, %v; want %v", limit, ids, err, want)
		}
	}
	later, sooner := unmatchedTransfer("pout_1", b.now.Add(time.Hour)), unmatchedTransfer("pout_2", b.now)
	later.Transfer.MadeAt, later.Transfer.Currency, later.Transfer.UTR = time.Time{}, "", "" // the gateway did not say
	b.update(func(tx *store.Tx) error {
		for _, s := range []payout.UnmatchedTransfer{later, sooner} {
			if _, err := tx.RecordUnmatchedTransfer(b.ctx(), s); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int][]payout.UnmatchedTransfer{10: {sooner, later}, 1: {sooner}} {
		got, err := b.db.OpenUnmatchedTransfers(b.ctx(), limit)
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("%d unmatched transfers:\n%+v, %v; want\n%+v", limit, got, err, want)
		}
	}
	for _, want := range []payout.UnmatchedTransfer{later, sooner} {
		if got, found, err := b.db.OpenUnmatchedTransfer(b.ctx(), atGateway, want.Transfer.GatewayID); err != nil || !found || got != want {
			b.Errorf("an unmatched transfer:\n%+v, %t, %v; want\n%+v", got, found, err, want)
		}
	}
	b.update(func(tx *store.Tx) error {
		resolved, err := tx.ResolveUnmatchedTransfer(b.ctx(), atGateway, "pout_1")
		if !resolved {
			b.Error("pout_1 was not resolved")
		}
		return err
	})
	for at, id := range map[gateway.Name]string{"another": "pout_2", atGateway: "pout_1", "": "pout_3"} {
		if got, found, err := b.db.OpenUnmatchedTransfer(b.ctx(), at, id); err != nil || found {
			b.Errorf("%s at %s is %+v, %v", id, at, got, err)
		}
	}
}

func unmatchedTransfer(gatewayID string, found time.Time) payout.UnmatchedTransfer {
	s := payout.UnmatchedTransfer{Gateway: atGateway, FoundAt: found, Why: "its seller is not in the ledger"}
	s.Transfer.Report = gateway.Report{
		GatewayID: gatewayID, Reference: "pyt_9", Amount: 500, Currency: "INR", MadeAt: found.Add(-time.Hour), Progress: gateway.Paid, UTR: "627812345678",
	}
	s.Transfer.Order.Seller = "usr_gone"
	return s
}
