package ledger

import (
	"slices"

	"bursar/internal/money"
)

// recipe says which accounts a kind of transfer may touch, and how it counts towards the totals.
type recipe struct {
	debit, credit     []Account
	earned, withdrawn money.Amount // -1, 0 or +1
}

// FitsRecipe reports whether t is a transfer that some recipe makes.
func (t Transfer) FitsRecipe() bool {
	r := recipes[t.Kind]
	return t.Amount > 0 && t.Ref != "" && slices.Contains(r.debit, t.Debit) && slices.Contains(r.credit, t.Credit)
}

// recipes is every way that money may move.
var recipes = map[Kind]recipe{
	KindSale:          {debit: []Account{Sales}, credit: []Account{Pending}, earned: +1},
	KindSaleRelease:   {debit: []Account{Pending}, credit: []Account{Available}},
	KindSaleRefund:    {debit: []Account{Pending, Available}, credit: []Account{Sales}, earned: -1},
	KindPayoutHold:    {debit: []Account{Available}, credit: []Account{InTransit}},
	KindPayoutRelease: {debit: []Account{InTransit}, credit: []Account{Available}},
	KindPayoutPaid:    {debit: []Account{InTransit}, credit: []Account{Gateway}, withdrawn: +1},
	KindPayoutFee:     {debit: []Account{InTransit}, credit: []Account{Fees}, withdrawn: +1},
	KindPayoutReturn:  {debit: []Account{Gateway}, credit: []Account{Available}, withdrawn: -1},
	KindFeeReturn:     {debit: []Account{Fees}, credit: []Account{Available}, withdrawn: -1},
}

// Sale is money earned, not withdrawable yet.
func Sale(saleID string, amount money.Amount) []Transfer {
	return []Transfer{{KindSale, Sales, Pending, amount, saleID}}
}

// ReleaseSale makes what is left of a sale withdrawable.
func ReleaseSale(saleID string, amount money.Amount) []Transfer {
	return []Transfer{{KindSaleRelease, Pending, Available, amount, saleID}}
}

// RefundSale takes earnings back: from available once the sale was released, else from pending.
func RefundSale(saleID string, amount money.Amount, released bool) []Transfer {
	from := Pending
	if released {
		from = Available
	}
	return []Transfer{{KindSaleRefund, from, Sales, amount, saleID}}
}

// HoldPayout sets a payout's whole amount aside.
func HoldPayout(payoutID string, amount money.Amount) []Transfer {
	return []Transfer{{KindPayoutHold, Available, InTransit, amount, payoutID}}
}

// ReleasePayout gives a held amount back: the payout was cancelled, or it failed.
func ReleasePayout(payoutID string, amount money.Amount) []Transfer {
	return []Transfer{{KindPayoutRelease, InTransit, Available, amount, payoutID}}
}

// SettlePayout spends a held amount: the bank paid net, and the platform keeps the fee.
func SettlePayout(payoutID string, net, fee money.Amount) []Transfer {
	return withFee(
		Transfer{KindPayoutPaid, InTransit, Gateway, net, payoutID},
		Transfer{KindPayoutFee, InTransit, Fees, fee, payoutID})
}

// ReturnPayout undoes SettlePayout: the bank sent the money back, and the fee goes back with it.
func ReturnPayout(payoutID string, net, fee money.Amount) []Transfer {
	return withFee(
		Transfer{KindPayoutReturn, Gateway, Available, net, payoutID},
		Transfer{KindFeeReturn, Fees, Available, fee, payoutID})
}

func withFee(main, fee Transfer) []Transfer {
	if fee.Amount == 0 {
		return []Transfer{main}
	}
	return []Transfer{main, fee}
}
