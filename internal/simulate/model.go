package simulate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/event"
	port "bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// model is what the ledger must be. It learns of each transaction that was committed what it was about (a sale, a
// refund, a payout that moved), and keeps these facts. Money and rows are what the journal's entries fold to; the
// facts say what each entry must move, and what the totals must add up to.
type model struct {
	journals map[string]*journal
	sellers  map[string]*holder
	sales    map[string]*earning
	payouts  map[payout.ID]*withdrawal
	accounts map[bank.ID]*account
	adjusted map[string]*correction // by their ids
	// unmatched are the unmatched transfers that the ledger lists or listed, by [payout.UnmatchedTransfer.ID].
	unmatched map[string]*unmatched
	// paused is about the payouts of all sellers.
	paused stops
}

// journal is what one owner's entries fold to. Every entry is read back and followed once.
type journal struct {
	ledger.Head
	// hashes are of the chain after each entry.
	hashes []ledger.Hash
	// newest are when the newest entry of each type about each subject was made, and fellBelow when the available balance last fell
	// below zero and below the least payout.
	newest    map[aboutType]time.Time
	fellBelow [2]time.Time
	// events are those that the entries are, in order.
	events []event.Queued
	// decisions are the entries that are decisions, in order.
	decisions []onRecord
}

// holder is what is known of a seller beside the money.
type holder struct {
	refunded money.Amount
	months   map[string]money.Amount // earned, by month
	current  bank.ID
	former   bank.ID
	// holdUntil is when payouts may be requested again, in microseconds since 1970; 0 without a hold.
	holdUntil int64
	// frozen is about the seller's payouts.
	frozen stops
	// suspects says that some of the seller's payouts are suspect.
	suspects bool
	// registered is when the last accounts were.
	registered []time.Duration
}

// aboutType is what an entry is about, and of which type it is.
type aboutType struct {
	subject string
	is      ledger.Type
}

// remember notes when an entry was made that follows on a balance.
func (j *journal) remember(e ledger.Entry, before money.Amount) {
	j.newest[aboutType{e.Subject, e.Type}] = e.At
	if slices.Contains(decides, e.Type) {
		j.decisions = append(j.decisions, onRecord{e.Owner, e.Number, e.Subject, e.At.UnixMicro(), actionIn(e.Data)})
	}
	for i, least := range []money.Amount{0, minimum} {
		if before >= least && j.Available < least {
			j.fellBelow[i] = e.At
		}
	}
}

// journal finds an owner's, which is empty before the first entry.
func (o *model) journal(owner string) *journal {
	j := o.journals[owner]
	if j == nil {
		j = &journal{Head: ledger.NewHead(owner), newest: map[aboutType]time.Time{}}
		o.journals[owner] = j
	}
	return j
}

// row is what an owner's row of totals must be.
func (o *model) row(owner string) ledger.Balance { return o.journal(owner).Balance }

type earning struct {
	seller      string
	amount      money.Amount
	refunded    money.Amount
	occurredAt  time.Time
	availableAt time.Time
	released    bool
	recordedAt  time.Duration
	refunds     map[string]money.Amount
	newest      money.Amount // of the refunds
	newestID    string
	folded      sale.Sale
}

func (e *earning) left() money.Amount { return e.amount - e.refunded }

type withdrawal struct {
	seller  string
	at      port.Name // the gateway that it was asked for
	account bank.ID
	amount  money.Amount
	fee     money.Amount
	rail    port.RailName
	state   payout.State
	sendAt  time.Time // when the time to cancel it is over
	// requestedAt and arriveAt are when it was asked for and is to be there.
	requestedAt, arriveAt time.Time
	sentAt                time.Time
	// reviewedAt is when the payout went to review, by the clock of the instance that wrote it.
	reviewedAt time.Time
	// sentBefore is what the ledger had for sentAt when it was sent last.
	sentBefore time.Time
	// due is when the ledger has its next step, in microseconds since 1970; 0 is never.
	due int64
	// taken is the instance that has the lease; nil when the last one to take it has put it down.
	taken   *instance
	takenAt time.Duration
	leased  int64
	// changed is when its state last did.
	changed time.Duration
	// takes is how often it was taken up, at first at firstTakenAt, and resends how often it was sent again.
	takes, resends int
	firstTakenAt   time.Duration
	// notified is when a notification last made its step due.
	notified time.Duration
	// last is what was last written of it, and folded what its entries make of it.
	last, folded payout.Payout
	// gateway is what its entries say that went out through the gateway and stayed out.
	gateway money.Amount
	// doubted says that it may be of money that was paid already, and sentToReview that an admin sent it to review.
	doubted, sentToReview bool
	// suspect says that an imported payout took its seller's balance below zero before this one was sent, and that there has been less than nothing since.
	suspect bool
	// calledOff says that a caller was answered that they cancelled it.
	calledOff bool
}

func (w *withdrawal) net() money.Amount { return w.amount - w.fee }

type account struct {
	seller string
	number string // in full, if it is known
	last4  string
	status bank.Status
	// beneficiary is what a gateway calls it, and at which one.
	beneficiary string
	at          port.Name
	due         int64
	// wasReviewed says that an admin had to look at it.
	wasReviewed bool
	// steps counts how often its verification was taken up or written.
	steps  int
	folded bank.Account
}

func newModel() *model {
	return &model{map[string]*journal{}, map[string]*holder{}, map[string]*earning{}, map[payout.ID]*withdrawal{}, map[bank.ID]*account{}, map[string]*correction{}, map[string]*unmatched{}, stops{}}
}

// copy is the model as it is now.
func (o *model) copy() *model {
	c := newModel()
	copyInto(c.journals, o.journals)
	for _, j := range c.journals {
		j.hashes = slices.Clone(j.hashes)
		j.events, j.decisions = slices.Clone(j.events), slices.Clone(j.decisions)
		j.newest = maps.Clone(j.newest)
	}
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
	copyInto(c.adjusted, o.adjusted)
	copyInto(c.unmatched, o.unmatched)
	c.paused = o.paused
	return c
}

func copyInto[K comparable, V any](to, from map[K]*V) {
	for k, v := range from {
		same := *v
		to[k] = &same
	}
}

func (o *model) sold(s sale.Sale) {
	o.sales[s.ID] = &earning{
		seller: s.Seller, amount: s.Amount, occurredAt: s.OccurredAt, availableAt: s.AvailableAt, refunds: map[string]money.Amount{},
		folded: sale.Sale{ID: s.ID},
	}
	o.sellers[s.Seller].earnedIn(s.OccurredAt, s.Amount)
}

func (o *model) refunded(r sale.Refund) {
	e := o.sales[r.Sale]
	h := o.sellers[e.seller]
	e.refunded += r.Amount
	e.refunds[r.ID], e.newest, e.newestID = r.Amount, r.Amount, r.ID
	h.refunded += r.Amount
	h.earnedIn(e.occurredAt, -r.Amount)
}

// ownerOf is in whose journal a decision about a subject belongs: the platform's where no seller owns it.
func (o *model) ownerOf(subject string) string {
	switch {
	case o.payouts[payout.ID(subject)] != nil:
		return o.payouts[payout.ID(subject)].seller
	case o.accounts[bank.ID(subject)] != nil:
		return o.accounts[bank.ID(subject)].seller
	case o.sellers[subject] != nil:
		return subject
	default:
		return decision.Platform
	}
}

// earnedIn adds to the month of an instant. India has one zone, and no summer time.
func (h *holder) earnedIn(at time.Time, amount money.Amount) {
	h.months[at.UTC().Add(5*time.Hour+30*time.Minute).Format("2006-01")] += amount
}

func (o *model) asked(p payout.Payout) {
	o.payouts[p.ID] = &withdrawal{
		seller: p.Seller, at: p.Gateway, account: p.BankAccountID, amount: p.Amount, fee: p.Fee, rail: p.Rail, state: payout.Waiting, folded: payout.Payout{ID: p.ID},
		requestedAt: p.RequestedAt, arriveAt: p.ArriveAt,
	}
}

// moneyState is where a payout's money is. The table is the model's own, not the service's.
type moneyState int

const (
	underWay moneyState = iota
	paidOut
	notPaid
	calledOff
)

func kindOf(s payout.State) moneyState {
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

// sums are each seller's totals as the facts make them.
func (o *model) sums() map[string]ledger.Balance {
	all := make(map[string]ledger.Balance, len(o.sellers))
	for _, e := range o.sales {
		b := all[e.seller]
		b.Counts.Sales++
		b.Earned += e.left()
		if e.released {
			b.Available += e.left()
		} else {
			b.Pending += e.left()
		}
		all[e.seller] = b
	}
	for _, a := range o.adjusted {
		b := all[a.seller]
		b.Earned += a.amount
		b.Available += a.amount
		all[a.seller] = b
	}
	for _, w := range o.payouts {
		b := all[w.seller]
		switch kindOf(w.state) {
		case underWay:
			b.Available -= w.amount
			b.InTransit += w.amount
			b.Counts.Processing++
		case paidOut:
			b.Available -= w.amount
			b.Withdrawn += w.amount
			b.Counts.Completed++
		case notPaid:
			b.Counts.Failed++
		case calledOff:
			b.Counts.Cancelled++
		}
		all[w.seller] = b
	}
	for id, h := range o.sellers {
		b := all[id]
		b.HoldUntil, b.Frozen = h.holdUntil, h.frozen.stopped
		all[id] = b
	}
	return all
}

// moves is what an entry must move, by the facts after the transaction that appended it and by the entries before it. The
// table is the model's own.
func (o *model) moves(e ledger.Entry) ledger.Moved {
	if w := o.payouts[payout.ID(e.Subject)]; w != nil {
		switch is := kindOf(w.folded.State); {
		case w.folded.State == "" && (e.Type == ledger.PayoutRequested || e.Type == ledger.PayoutImported):
			return ledger.Moved{Available: -w.amount, InTransit: w.amount}
		case is == underWay && e.Type == ledger.PayoutCompleted:
			return ledger.Moved{InTransit: -w.amount, Gateway: w.net(), Fees: w.fee}
		case is == underWay && (e.Type == ledger.PayoutFailed || e.Type == ledger.PayoutCancelled):
			return ledger.Moved{InTransit: -w.amount, Available: w.amount}
		case is == paidOut && e.Type == ledger.PayoutReturned:
			return ledger.Moved{Available: w.amount, Gateway: -w.net(), Fees: -w.fee}
		default:
			return ledger.Moved{}
		}
	}
	if id, isAdjustment := strings.CutPrefix(e.Subject, sale.AdjustmentPrefix); isAdjustment {
		if a := o.adjusted[correctionID(e.Owner, id)]; a != nil && e.Type == ledger.BalanceAdjusted {
			return ledger.Moved{Available: a.amount, Sales: -a.amount}
		}
		return ledger.Moved{}
	}
	id, isSale := strings.CutPrefix(e.Subject, sale.SubjectPrefix)
	of := o.sales[id]
	switch {
	case !isSale || of == nil:
		return ledger.Moved{}
	case e.Type == ledger.SaleRecorded:
		return ledger.Moved{Pending: of.amount, Sales: -of.amount}
	case e.Type == ledger.SaleReleased && !of.folded.Released():
		return ledger.Moved{Pending: -of.left(), Available: of.left()}
	case e.Type == ledger.SaleRefunded && of.released:
		return ledger.Moved{Available: -of.newest, Sales: of.newest}
	case e.Type == ledger.SaleRefunded:
		return ledger.Moved{Pending: -of.newest, Sales: of.newest}
	default:
		return ledger.Moved{}
	}
}

// suspect notes which payouts may be of money that an imported one has paid already.
func (o *model) suspect(e ledger.Entry) {
	h, isNegative := o.sellers[e.Owner], e.After.Available < 0
	if h == nil || isNegative && e.Type != ledger.PayoutImported || !isNegative && !h.suspects {
		return
	}
	h.suspects = isNegative
	for id, w := range o.payouts {
		if w.seller == e.Owner {
			isUnsent := w.state == payout.Waiting || w.state == payout.Submitting || w.state == payout.Unknown
			w.suspect = isNegative && isUnsent && id != payout.ID(e.Subject)
		}
	}
}

// told lists the types of entries that are events of the same name.
var told = []ledger.Type{
	ledger.BankAccountAdded, ledger.BankAccountVerified, ledger.BankAccountRejected, ledger.BankAccountReview,
	ledger.SaleRecorded, ledger.SaleReleased, ledger.SaleRefunded, ledger.BalanceAdjusted,
	ledger.PayoutRequested, ledger.PayoutSubmitted, ledger.PayoutReview, ledger.PayoutCompleted, ledger.PayoutFailed,
	ledger.PayoutCancelled, ledger.PayoutReturned, ledger.PayoutUpdated,
}

// tells lists the events that an entry is, where so much was available before it. The table is the model's own.
func tells(e ledger.Entry, before money.Amount) (events []event.Queued) {
	switch {
	case e.Type == ledger.PayoutImported:
		events = append(events, event.Queued{Owner: e.Owner, Entry: e.Number, Type: event.PayoutRequested})
	case slices.Contains(told, e.Type):
		events = append(events, event.Queued{Owner: e.Owner, Entry: e.Number, Type: event.Type(e.Type)})
	}
	if before >= 0 && e.After.Available < 0 {
		events = append(events, event.Queued{Owner: e.Owner, Entry: e.Number, Type: event.BalanceNegative})
	}
	return events
}

// fold applies an entry to the row that it is about.
func (o *model) fold(e ledger.Entry) error {
	if e.Type == ledger.AdminDecided || e.Type == ledger.Repaired {
		return nil
	}
	if w := o.payouts[payout.ID(e.Subject)]; w != nil {
		w.gateway += e.Moved.Gateway
		return ledger.Apply(e.Data, &w.folded)
	}
	if a := o.accounts[bank.ID(e.Subject)]; a != nil {
		return ledger.Apply(e.Data, &a.folded)
	}
	if id, isSale := strings.CutPrefix(e.Subject, sale.SubjectPrefix); isSale && o.sales[id] != nil {
		return ledger.Apply(e.Data, &o.sales[id].folded)
	}
	return nil
}
