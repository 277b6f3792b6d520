package reconcile

import (
	"time"

	"bursar/internal/money"
)

// Period is the time that is compared, without its end.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// holds reports whether t is in the period.
func (p Period) holds(t time.Time) bool { return !t.Before(p.From) && t.Before(p.To) }

// Result is what comparing a period came to.
type Result struct {
	Period Period `json:"period"`
	// Lines and Payouts count what was compared.
	Lines   int `json:"lines"`
	Payouts int `json:"payouts"`
	// Unjudged counts payouts of which the statement was not read far enough back.
	Unjudged int  `json:"unjudged"`
	Sums     Sums `json:"sums"`
	// Differences are those about what the period holds, resolved ones among them.
	Differences []Difference `json:"-"`
	// Open counts those of them that wait for a person.
	Open int `json:"open"`
}

// Sums prove the clearing account: what the statement says went out for payouts is what the ledger says, and
// what accounts for the rest, to the last minor unit.
type Sums struct {
	// Opening and Closing are the account's balances at both ends, where the gateway tells them.
	Opening     money.Amount `json:"opening"`
	Closing     money.Amount `json:"closing"`
	HasBalances bool         `json:"hasBalances"`
	// Taken is what all lines took, less what they put in.
	Taken money.Amount `json:"taken"`
	// PutIn is credits that are no payout's, Checks debits for checking bank accounts, Other all others.
	PutIn  money.Amount `json:"putIn"`
	Checks money.Amount `json:"checks"`
	Other  money.Amount `json:"other"`
	// Debits and Credits are those of payouts.
	Debits  money.Amount `json:"debits"`
	Credits money.Amount `json:"credits"`

	// Paid and Returned are the ledger's.
	Paid     money.Amount `json:"paid"`
	Returned money.Amount `json:"returned"`

	// Fees is what the gateway kept for itself. UnderWay is what it took for payouts that the ledger has not
	// completed yet. OtherPeriod is what the gateway and the ledger have in different periods. Differing is
	// what the differences come to.
	Fees        money.Amount `json:"fees"`
	UnderWay    money.Amount `json:"underWay"`
	OtherPeriod money.Amount `json:"otherPeriod"`
	// OtherGateway is what the ledger has of payouts through other gateways, below zero for what was paid.
	OtherGateway money.Amount `json:"otherGateway"`
	Differing    money.Amount `json:"differing"`
}

// AtGateway is what the gateway took for payouts, less what it returned.
func (s Sums) AtGateway() money.Amount { return s.Taken - s.Checks - s.Other + s.PutIn }

// InLedger is what the ledger has of that.
func (s Sums) InLedger() money.Amount { return s.Paid - s.Returned }

// Rest is what nothing accounts for. It is zero: the left side is summed by the database over all lines and
// all transfers, the right one payout by payout.
func (s Sums) Rest() money.Amount {
	return s.AtGateway() - s.InLedger() - s.Fees - s.UnderWay - s.OtherPeriod - s.OtherGateway - s.Differing
}

// Gap is by how much the balances differ from what the lines make of them.
func (s Sums) Gap() money.Amount {
	if !s.HasBalances {
		return 0
	}
	return s.Closing - s.Opening + s.Taken
}
