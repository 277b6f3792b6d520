package simulate

import (
	"maps"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// model is what the book must be. It learns of each transaction that was committed what it was about
// (a sale, a refund, a payout that moved), works out the money by itself, and never looks at a transfer.
type model struct {
	sellers  map[string]*holder
	sales    map[string]*earning
	payouts  map[payout.ID]*withdrawal
	accounts map[bank.ID]*account
}

// holder is one seller's totals.
type holder struct {
	earned    money.Amount
	pending   money.Amount
	inTransit money.Amount
	withdrawn money.Amount
	refunded  money.Amount
	counts    ledger.Counts
	months    map[string]money.Amount // earned, by month
	current   bank.ID
	former    bank.ID
	// registered is when the last accounts were.
	registered []time.Duration
}

// row is what the seller's row must be.
func (h *holder) row() ledger.Balance {
	return ledger.Balance{
		Pending: h.pending, Available: h.earned - h.pending - h.inTransit - h.withdrawn, InTransit: h.inTransit,
		Earned: h.earned, Withdrawn: h.withdrawn, Counts: h.counts,
	}
}

type earning struct {
	seller      string
	amount      money.Amount
	refunded    money.Amount
	occurredAt  time.Time
	availableAt time.Time
	released    bool
	refunds     map[string]money.Amount
}

func (e *earning) left() money.Amount { return e.amount - e.refunded }

type withdrawal struct {
	seller  string
	account bank.ID
	amount  money.Amount
	fee     money.Amount
	state   payout.State
	sendAt  time.Time // when the time to cancel it is over
	sentAt  time.Time
	// sentBefore is what the book had for sentAt when it was sent last.
	sentBefore time.Time
	// due is when the book has its next step, in microseconds since 1970; 0 is never.
	due int64
	// taken is the instance that has the lease; nil when the last one to take it has put it down.
	taken  *instance
	leased int64
	// changed is when its state last did.
	changed time.Duration
	// takes is how often it was taken up.
	takes int
	// hinted is when news last made its step due.
	hinted time.Duration
	// last is what was last written of it.
	last payout.Payout
	// doubted says that it may be of money that was paid already, and heldBy that a person has it held.
	doubted, heldBy bool
}

func (w *withdrawal) net() money.Amount { return w.amount - w.fee }

type account struct {
	seller      string
	number      string // in full, if it is known
	last4       string
	status      bank.Status
	beneficiary string
	due         int64
}

func newModel() *model {
	return &model{map[string]*holder{}, map[string]*earning{}, map[payout.ID]*withdrawal{}, map[bank.ID]*account{}}
}

// copy is the model as it is now.
func (o *model) copy() *model {
	c := newModel()
	copyInto(c.sellers, o.sellers)
	for _, h := range c.sellers {
		h.months = maps.Clone(h.months)
	}
	copyInto(c.sales, o.sales)
	for _, e := range c.sales {
		e.refunds = maps.Clone(e.refunds)
	}
	copyInto(c.payouts, o.payouts)
	for _, w := range c.payouts {
		w.taken = nil
	}
	copyInto(c.accounts, o.accounts)
	return c
}

func copyInto[K comparable, V any](to, from map[K]*V) {
	for k, v := range from {
		same := *v
		to[k] = &same
	}
}

func (o *model) sold(s sale.Sale) {
	h := o.sellers[s.Seller]
	h.earned += s.Amount
	h.pending += s.Amount
	h.counts.Sales++
	o.sales[s.ID] = &earning{
		seller: s.Seller, amount: s.Amount, occurredAt: s.OccurredAt, availableAt: s.AvailableAt, refunds: map[string]money.Amount{},
	}
	h.earnedIn(s.OccurredAt, s.Amount)
}

func (o *model) refunded(r sale.Refund) {
	e := o.sales[r.Sale]
	h := o.sellers[e.seller]
	e.refunded += r.Amount
	e.refunds[r.ID] = r.Amount
	h.earned -= r.Amount
	h.refunded += r.Amount
	h.earnedIn(e.occurredAt, -r.Amount)
	if !e.released {
		h.pending -= r.Amount
	}
}

// earnedIn adds to the month of an instant. India has one zone, and no summer time.
func (h *holder) earnedIn(at time.Time, amount money.Amount) {
	h.months[at.UTC().Add(5*time.Hour+30*time.Minute).Format("2006-01")] += amount
}

func (o *model) released(id string) {
	e := o.sales[id]
	e.released = true
	o.sellers[e.seller].pending -= e.left()
}

func (o *model) asked(p payout.Payout) {
	h := o.sellers[p.Seller]
	h.inTransit += p.Amount
	h.counts.Processing++
	o.payouts[p.ID] = &withdrawal{seller: p.Seller, account: p.BankAccountID, amount: p.Amount, fee: p.Fee, state: payout.Waiting}
}

// moved takes a payout to a state, and its money with it.
func (o *model) moved(w *withdrawal, to payout.State) {
	h := o.sellers[w.seller]
	was, is := kindOf(w.state), kindOf(to)
	w.state = to
	if was == is {
		return
	}
	h.count(was, w.amount, -1)
	h.count(is, w.amount, +1)
}

// standing is where a payout's money is. The table is the model's own, not the service's.
type standing int

const (
	underWay standing = iota
	paidOut
	notPaid
	calledOff
)

func kindOf(s payout.State) standing {
	switch s {
	case payout.Completed:
		return paidOut
	case payout.Failed, payout.Returned:
		return notPaid
	case payout.Cancelled:
		return calledOff
	default:
		return underWay
	}
}

// count adds a payout to where its money is, or takes it away.
func (h *holder) count(s standing, amount money.Amount, sign int64) {
	amount *= money.Amount(sign)
	switch s {
	case underWay:
		h.inTransit += amount
		h.counts.Processing += sign
	case paidOut:
		h.withdrawn += amount
		h.counts.Completed += sign
	case notPaid:
		h.counts.Failed += sign
	case calledOff:
		h.counts.Cancelled += sign
	}
}

// agreedFee is 5 rupees and half a percent with 18 percent of tax on them, each rounded half up.
func agreedFee(amount money.Amount) money.Amount {
	charge := 500 + (amount*50+5_000)/10_000
	return charge + (charge*1_800+5_000)/10_000
}

const agreedFeeText = "5+0.5%+tax18%"
