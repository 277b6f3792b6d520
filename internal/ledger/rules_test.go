package ledger_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// all is every type of entry.
var all = []ledger.Type{
	ledger.SaleRecorded, ledger.SaleReleased, ledger.SaleRefunded,
	ledger.PayoutRequested, ledger.PayoutImported, ledger.PayoutCompleted, ledger.PayoutFailed, ledger.PayoutCancelled, ledger.PayoutReturned, ledger.BalanceAdjusted,
	ledger.PayoutRequeued, ledger.PayoutSubmitting, ledger.PayoutSubmitted, ledger.PayoutUnknown, ledger.PayoutReview, ledger.PayoutUpdated,
	ledger.BankAccountAdded, ledger.BankAccountReplaced, ledger.BankAccountVerified, ledger.BankAccountRejected, ledger.BankAccountReview, ledger.BankAccountUpdated,
	ledger.DiscrepancyFound, ledger.DiscrepancyResolved, ledger.AdminDecided, ledger.Repaired,
	"thing.happened",
}

// moving is the types that move money.
var moving = all[:10]

// TestAfter_MovementsOfEachType holds every type against every movement: what is not listed here is refused.
func TestAfter_MovementsOfEachType(t *testing.T) {
	type effect map[ledger.Type]ledger.Balance // what an allowed entry adds to the totals
	for _, tt := range []struct {
		name string
		m    ledger.Moved
		want effect
	}{
		{"a sale", ledger.Moved{Sales: -100, Pending: 100}, effect{
			ledger.SaleRecorded: {Pending: 100, Earned: 100, Counts: ledger.Counts{Sales: 1}},
		}},
		{"a release", ledger.Moved{Pending: -100, Available: 100}, effect{
			ledger.SaleReleased: {Pending: -100, Available: 100},
		}},
		{"a refund before the release", ledger.Moved{Pending: -100, Sales: 100}, effect{
			ledger.SaleRefunded: {Pending: -100, Earned: -100},
		}},
		{"a refund after the release", ledger.Moved{Available: -100, Sales: 100}, effect{
			ledger.SaleRefunded:    {Available: -100, Earned: -100},
			ledger.BalanceAdjusted: {Available: -100, Earned: -100},
		}},
		{"a reservation", ledger.Moved{Available: -100, InTransit: 100}, effect{
			ledger.PayoutRequested: {Available: -100, InTransit: 100, Counts: ledger.Counts{Processing: 1}},
			ledger.PayoutImported:  {Available: -100, InTransit: 100, Counts: ledger.Counts{Processing: 1}},
		}},
		{"a reservation released", ledger.Moved{InTransit: -100, Available: 100}, effect{
			ledger.PayoutFailed:    {InTransit: -100, Available: 100, Counts: ledger.Counts{Processing: -1, Failed: 1}},
			ledger.PayoutCancelled: {InTransit: -100, Available: 100, Counts: ledger.Counts{Processing: -1, Cancelled: 1}},
		}},
		{"a payout with a fee", ledger.Moved{InTransit: -100, Gateway: 90, Fees: 10}, effect{
			ledger.PayoutCompleted: {InTransit: -100, Withdrawn: 100, Counts: ledger.Counts{Processing: -1, Completed: 1}},
		}},
		{"a payout without a fee", ledger.Moved{InTransit: -100, Gateway: 100}, effect{
			ledger.PayoutCompleted: {InTransit: -100, Withdrawn: 100, Counts: ledger.Counts{Processing: -1, Completed: 1}},
		}},
		{"a return with a fee", ledger.Moved{Available: 100, Gateway: -90, Fees: -10}, effect{
			ledger.PayoutReturned: {Available: 100, Withdrawn: -100, Counts: ledger.Counts{Completed: -1, Failed: 1}},
		}},
		{"a return without a fee", ledger.Moved{Available: 100, Gateway: -100}, effect{
			ledger.PayoutReturned: {Available: 100, Withdrawn: -100, Counts: ledger.Counts{Completed: -1, Failed: 1}},
		}},

		// A sale that was refunded in full releases nothing, and entries that move no money leave all totals alone.
		{"nothing", ledger.Moved{}, func() effect {
			want := effect{ledger.SaleReleased: {}}
			for _, typ := range all[len(moving):] {
				want[typ] = ledger.Balance{}
			}
			return want
		}()},

		{"a release undone", ledger.Moved{Pending: 100, Available: -100}, effect{}},
		{"a payout of a fee alone", ledger.Moved{InTransit: -10, Fees: 10}, effect{}},
		{"a payout with a negative fee", ledger.Moved{InTransit: -99, Gateway: 100, Fees: -1}, effect{}},
		{"a payout that takes from the gateway", ledger.Moved{InTransit: -90, Gateway: -10, Fees: 100}, effect{}},
		{"a return of a fee alone", ledger.Moved{Available: 10, Fees: -10}, effect{}},
		{"a return that charges a fee", ledger.Moved{Available: 99, Gateway: -100, Fees: 1}, effect{}},
		{"a return that pays the gateway", ledger.Moved{Available: 90, Gateway: 10, Fees: -100}, effect{}},
		{"a return to pending", ledger.Moved{Pending: 100, Gateway: -100}, effect{}},
		{"a payout from available", ledger.Moved{Available: -100, Gateway: 100}, effect{}},
		{"a payout from pending", ledger.Moved{Pending: -100, Gateway: 100}, effect{}},
		{"a correction upwards", ledger.Moved{Sales: -100, Available: 100}, effect{
			ledger.BalanceAdjusted: {Available: 100, Earned: 100},
		}},
		{"a sale into transit", ledger.Moved{Sales: -100, InTransit: 100}, effect{}},
		{"a refund from transit", ledger.Moved{InTransit: -100, Sales: 100}, effect{}},
		{"a refund from both accounts", ledger.Moved{Pending: -50, Available: -50, Sales: 100}, effect{}},
		{"fees from available", ledger.Moved{Available: -100, Fees: 100}, effect{}},
		{"sales to fees", ledger.Moved{Sales: -100, Fees: 100}, effect{}},
		{"money from nowhere", ledger.Moved{Pending: 100}, effect{}},
		{"money from nowhere into available", ledger.Moved{Available: 100}, effect{}},
		{"a sale that loses some", ledger.Moved{Sales: -100, Pending: 99}, effect{}},
		{"a reservation that adds some", ledger.Moved{Available: -100, InTransit: 101}, effect{}},
		{"a payout that loses some", ledger.Moved{InTransit: -100, Gateway: 90, Fees: 9}, effect{}},
		{"a sale and a release", ledger.Moved{Sales: -100, Pending: 50, Available: 50}, effect{}},
	} {
		from := ledger.Balance{
			Pending: 1000, Available: 2000, InTransit: 3000, Earned: 7000, Withdrawn: 1000,
			Counts: ledger.Counts{Sales: 10, Processing: 20, Completed: 30, Failed: 40, Cancelled: 50},
		}
		for _, typ := range all {
			got, err := from.After(typ, tt.m)
			effect, isAllowed := tt.want[typ]
			switch want := plus(from, effect); {
			case !isAllowed && err == nil:
				t.Errorf("%s is taken as %s", tt.name, typ)
			case !isAllowed && (errors.Is(err, ledger.ErrInsufficient) || errors.Is(err, ledger.ErrTooLarge)):
				t.Errorf("%s as %s is refused like a seller's mistake: %v", tt.name, typ, err)
			case isAllowed && (err != nil || got != want):
				t.Errorf("%s as %s leaves %s, %v; want %s", tt.name, typ, got.Text(), err, want.Text())
			}
		}
	}
}

func plus(a, b ledger.Balance) ledger.Balance {
	c, d := a.Counts, b.Counts
	return ledger.Balance{
		Pending: a.Pending + b.Pending, Available: a.Available + b.Available, InTransit: a.InTransit + b.InTransit,
		Earned: a.Earned + b.Earned, Withdrawn: a.Withdrawn + b.Withdrawn,
		Counts: ledger.Counts{
			Sales: c.Sales + d.Sales, Processing: c.Processing + d.Processing,
			Completed: c.Completed + d.Completed, Failed: c.Failed + d.Failed, Cancelled: c.Cancelled + d.Cancelled,
		},
	}
}

// TestAfter_Amounts refuses amounts of nothing, and negative ones, which would be other movements.
func TestAfter_Amounts(t *testing.T) {
	from := ledger.Balance{Pending: 1000, Available: 1000, InTransit: 1000, Earned: 3000, Withdrawn: 1000}
	for _, tt := range []struct {
		typ  ledger.Type
		make func(money.Amount) ledger.Moved
		zero bool // whether an amount of nothing is allowed
	}{
		{ledger.SaleRecorded, ledger.Sale, false},
		{ledger.SaleReleased, ledger.ReleaseSale, true},
		{ledger.SaleRefunded, func(a money.Amount) ledger.Moved { return ledger.RefundSale(a, false) }, false},
		{ledger.SaleRefunded, func(a money.Amount) ledger.Moved { return ledger.RefundSale(a, true) }, false},
		{ledger.PayoutRequested, ledger.ReservePayout, false},
		{ledger.PayoutImported, ledger.ReservePayout, false},
		{ledger.PayoutFailed, ledger.ReleasePayout, false},
		{ledger.PayoutCancelled, ledger.ReleasePayout, false},
		{ledger.PayoutCompleted, func(a money.Amount) ledger.Moved { return ledger.SettlePayout(a, 0) }, false},
		{ledger.PayoutCompleted, func(a money.Amount) ledger.Moved { return ledger.SettlePayout(a, 10) }, false},
		{ledger.PayoutReturned, func(a money.Amount) ledger.Moved { return ledger.ReturnPayout(a, 0) }, false},
		{ledger.PayoutReturned, func(a money.Amount) ledger.Moved { return ledger.ReturnPayout(a, 10) }, false},
	} {
		for amount, want := range map[money.Amount]bool{1: true, 0: tt.zero, -1: false, -100: false} {
			if _, err := from.After(tt.typ, tt.make(amount)); (err == nil) != want {
				t.Errorf("%s of %d: %+v: %v", tt.typ, amount, tt.make(amount), err)
			}
		}
	}
}

// TestAfter_Floors takes exactly what is there, and one more.
func TestAfter_Floors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		typ   ledger.Type
		m     ledger.Moved
		has   ledger.Balance
		floor bool // whether one unit less is refused
	}{
		{"release", ledger.SaleReleased, ledger.ReleaseSale(100), ledger.Balance{Pending: 100}, true},
		{"refund from pending", ledger.SaleRefunded, ledger.RefundSale(100, false), ledger.Balance{Pending: 100}, true},
		{"refund from available", ledger.SaleRefunded, ledger.RefundSale(100, true), ledger.Balance{Available: 100}, false},
		{"refund from nothing", ledger.SaleRefunded, ledger.RefundSale(100, true), ledger.Balance{Available: -5}, false},
		{"request", ledger.PayoutRequested, ledger.ReservePayout(100), ledger.Balance{Available: 100}, true},
		{"import", ledger.PayoutImported, ledger.ReservePayout(100), ledger.Balance{Available: 100}, false},
		{"import from nothing", ledger.PayoutImported, ledger.ReservePayout(100), ledger.Balance{Available: -5}, false},
		{"completion", ledger.PayoutCompleted, ledger.SettlePayout(90, 10), ledger.Balance{InTransit: 100}, true},
		{"failure", ledger.PayoutFailed, ledger.ReleasePayout(100), ledger.Balance{InTransit: 100}, true},
		{"cancellation", ledger.PayoutCancelled, ledger.ReleasePayout(100), ledger.Balance{InTransit: 100}, true},
		// What adds to available is never refused for its being below zero, before or after.
		{"release below zero", ledger.SaleReleased, ledger.ReleaseSale(100), ledger.Balance{Pending: 100, Available: -500}, true},
		{"failure below zero", ledger.PayoutFailed, ledger.ReleasePayout(100), ledger.Balance{InTransit: 100, Available: -500}, true},
		{"return below zero", ledger.PayoutReturned, ledger.ReturnPayout(90, 10), ledger.Balance{Available: -500}, false},
	} {
		if _, err := tt.has.After(tt.typ, tt.m); err != nil {
			t.Errorf("%s of exactly what there is: %v", tt.name, err)
		}
		less, want := tt.has, ledger.ErrBelowZero
		switch {
		case tt.m.Pending < 0:
			less.Pending--
		case tt.m.InTransit < 0:
			less.InTransit--
		default:
			less.Available--
			want = ledger.ErrInsufficient
		}
		if _, err := less.After(tt.typ, tt.m); errors.Is(err, want) != tt.floor || (err != nil) != tt.floor {
			t.Errorf("%s of one more than there is: %v", tt.name, err)
		}
	}
}

// TestAfter_Ceilings brings each total to its bound, and one beyond.
func TestAfter_Ceilings(t *testing.T) {
	const most = ledger.MaxTotal
	for _, tt := range []struct {
		name   string
		typ    ledger.Type
		make   func(money.Amount) ledger.Moved
		amount money.Amount // the most that is allowed
		has    ledger.Balance
	}{
		{"an amount", ledger.SaleRecorded, ledger.Sale, most, ledger.Balance{}},
		{"pending", ledger.SaleRecorded, ledger.Sale, 1, ledger.Balance{Pending: most - 1}},
		{"earned", ledger.SaleRecorded, ledger.Sale, 1, ledger.Balance{Earned: most - 1}},
		{"available", ledger.SaleReleased, ledger.ReleaseSale, 1, ledger.Balance{Pending: 10, Available: most - 1}},
		{"in transit", ledger.PayoutRequested, ledger.ReservePayout, 1, ledger.Balance{Available: 10, InTransit: most - 1}},
		{
			"withdrawn", ledger.PayoutCompleted, func(a money.Amount) ledger.Moved { return ledger.SettlePayout(a-1, 1) }, 5,
			ledger.Balance{InTransit: 10, Withdrawn: most - 5},
		},
		{
			"available, downwards", ledger.SaleRefunded, func(a money.Amount) ledger.Moved { return ledger.RefundSale(a, true) }, 1,
			ledger.Balance{Available: -most + 1},
		},
		{"earned, by a correction", ledger.BalanceAdjusted, ledger.AdjustBalance, 1, ledger.Balance{Earned: most - 1}},
		{"available, by a correction", ledger.BalanceAdjusted, ledger.AdjustBalance, 1, ledger.Balance{Available: most - 1}},
		{
			"earned, downwards", ledger.SaleRefunded, func(a money.Amount) ledger.Moved { return ledger.RefundSale(a, true) }, 1,
			ledger.Balance{Earned: -most + 1},
		},
		{
			"withdrawn, downwards", ledger.PayoutReturned, func(a money.Amount) ledger.Moved { return ledger.ReturnPayout(a, 0) }, 1,
			ledger.Balance{Withdrawn: -most + 1},
		},
	} {
		if _, err := tt.has.After(tt.typ, tt.make(tt.amount)); err != nil {
			t.Errorf("%s up to its bound: %v", tt.name, err)
		}
		if _, err := tt.has.After(tt.typ, tt.make(tt.amount+1)); !errors.Is(err, ledger.ErrTooLarge) {
			t.Errorf("%s beyond its bound: %v", tt.name, err)
		}
	}
	for i := range 6 { // sums that overflow 64 bits are refused before anything is added up
		for _, extreme := range []money.Amount{math.MinInt64, math.MaxInt64, most + 1, -most - 1} {
			var amounts [6]money.Amount
			amounts[i] = extreme
			for _, typ := range moving {
				if _, err := (ledger.Balance{}).After(typ, movedOf(amounts)); !errors.Is(err, ledger.ErrTooLarge) {
					t.Errorf("%s of %d in account %d: %v", typ, extreme, i, err)
				}
			}
		}
	}
}

// TestAfter_Property runs random commands, and keeps a ledger of its own: what every account of the chart holds.
func TestAfter_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b ledger.Balance
		var held [6]money.Amount
		requests, sales := int64(0), int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "entries") {
			typ, m := anyMovement(t)
			after, err := b.After(typ, m)
			if err != nil {
				if !errors.Is(err, ledger.ErrInsufficient) && !errors.Is(err, ledger.ErrBelowZero) {
					t.Fatalf("%s of %+v: %v", typ, m, err)
				}
				if m.Pending+b.Pending >= 0 && m.InTransit+b.InTransit >= 0 && m.Available+b.Available >= 0 {
					t.Fatalf("%s of %+v is refused, and %s is enough", typ, m, b.Text())
				}
				continue
			}
			b = after
			for i, a := range m.Amounts() {
				held[i] += a
			}
			if typ == ledger.PayoutRequested || typ == ledger.PayoutImported {
				requests++
			}
			if typ == ledger.SaleRecorded {
				sales++
			}
		}
		in := movedOf(held)
		if b.Pending != in.Pending || b.Available != in.Available || b.InTransit != in.InTransit || b.Earned != -in.Sales || b.Withdrawn != in.Gateway+in.Fees {
			t.Fatalf("the totals are %s, and the accounts hold %+v", b.Text(), in)
		}
		var sum money.Amount
		for _, a := range held {
			sum += a
		}
		if sum != 0 || b.Pending+b.Available+b.InTransit+b.Withdrawn != b.Earned {
			t.Fatalf("money was made or lost: %s, and the accounts hold %+v", b.Text(), in)
		}
		if b.Pending < 0 || b.InTransit < 0 || b.Counts.Processing+b.Counts.Completed+b.Counts.Failed+b.Counts.Cancelled != requests || b.Counts.Sales != sales {
			t.Fatalf("%d payouts were requested and %d sales recorded, and the totals are %s", requests, sales, b.Text())
		}
		if s := b.Balances(); s.Pending != b.Pending || s.Available != b.Available || s.InTransit != b.InTransit {
			t.Fatalf("%+v stands for %s", s, b.Text())
		}
	})
}

// anyMovement is a type of entry and what it may move, in small amounts so that refusals happen.
func anyMovement(t *rapid.T) (ledger.Type, ledger.Moved) {
	amount := money.Amount(rapid.Int64Range(1, 20).Draw(t, "amount"))
	fee := money.Amount(rapid.Int64Range(0, int64(amount)-1).Draw(t, "fee"))
	switch typ := rapid.SampledFrom(all).Draw(t, "type"); typ {
	case ledger.SaleRecorded:
		return typ, ledger.Sale(10 * amount)
	case ledger.SaleReleased:
		return typ, ledger.ReleaseSale(amount)
	case ledger.SaleRefunded:
		return typ, ledger.RefundSale(amount, rapid.Bool().Draw(t, "released"))
	case ledger.PayoutRequested, ledger.PayoutImported:
		return typ, ledger.ReservePayout(amount)
	case ledger.PayoutFailed, ledger.PayoutCancelled:
		return typ, ledger.ReleasePayout(amount)
	case ledger.PayoutCompleted:
		return typ, ledger.SettlePayout(amount-fee, fee)
	case ledger.PayoutReturned:
		return typ, ledger.ReturnPayout(amount-fee, fee)
	case ledger.BalanceAdjusted:
		if rapid.Bool().Draw(t, "downwards") {
			amount = -amount
		}
		return typ, ledger.AdjustBalance(amount)
	default:
		return typ, ledger.Moved{}
	}
}

// TestMoved_Amounts holds the order of amounts against the chart of accounts, which is stored and told by position.
func TestMoved_Amounts(t *testing.T) {
	m := ledger.Moved{Pending: 1, Available: 2, InTransit: 3, Sales: 4, Gateway: 5, Fees: 6}
	if !slices.Equal(m.Amounts(), []money.Amount{1, 2, 3, 4, 5, 6}) || movedOf([6]money.Amount{1, 2, 3, 4, 5, 6}) != m {
		t.Errorf("%+v is told as %v", m, m.Amounts())
	}
	want := []string{"seller:pending", "seller:available", "seller:in_transit", "platform:sales", "platform:gateway", "platform:fees"}
	if !slices.Equal(ledger.Accounts(), want) {
		t.Errorf("the accounts are %v", ledger.Accounts())
	}
	for i := range 6 {
		var amounts [6]money.Amount
		amounts[i] = 1
		if movedOf(amounts).IsZero() {
			t.Errorf("a movement in account %d is none", i)
		}
	}
	if !(ledger.Moved{}).IsZero() {
		t.Error("no movement is one")
	}
}

// movedOf is the inverse of [ledger.Moved.Amounts].
func movedOf(a [6]money.Amount) ledger.Moved {
	return ledger.Moved{Pending: a[0], Available: a[1], InTransit: a[2], Sales: a[3], Gateway: a[4], Fees: a[5]}
}
