package payout_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// mood is how the gateway answers.
type mood string

const (
	fair         mood = "fair"
	lostAnswers  mood = "takes orders, loses the answers"
	lostRequests mood = "loses the requests"
	refusing     mood = "refuses"
	closed       mood = "turns requests away"
	silent       mood = "answers nothing at all"
	shunning     mood = "will not know the bank account"
	diesBefore   mood = "its caller dies before the order is sent"
	diesAfter    mood = "its caller dies after the order was taken"
	queueing     mood = "queues orders"
	slow         mood = "gets orders late"
	unreachable  mood = "can't be reached"
	unwritable   mood = "takes no such order"
)

// workerDied is what a worker panics with that ends in the middle of a step.
const workerDied = "the worker died"

var moods = []mood{fair, fair, lostAnswers, lostRequests, refusing, closed, silent, shunning, diesBefore, diesBefore, diesAfter, diesAfter, queueing, slow, slow, unreachable}

// paperGateway keeps transfers on paper: it is both a gateway with moods and the judge of what was paid.
type paperGateway struct {
	gateway.Gateway // what payouts don't ask

	calls     sync.Mutex // callers may cancel and reconcile at the same time; everything else is alone
	now       func() time.Time
	transfers map[string]*transfer
	mood      mood
	// tampered says that bank accounts were changed by hand.
	tampered bool
	ids      int
	sent     int
	// underway are orders that were sent and have yet to arrive, as late as lateness.
	underway map[string]lateOrder
	lateness time.Duration
	// misplaced makes look-ups by reference find nothing. whenFound runs before such a look-up is answered.
	misplaced bool
	whenFound func()
	// twofold has two transfers under each reference.
	twofold bool
	// mistakes answers a look-up by id with whatever there is.
	mistakes bool
	// forgetful makes look-ups find nothing, and deaf makes them fail; whenAsked runs when a beneficiary is asked for, and
	// whenAnswered before the answer.
	forgetful               bool
	deaf                    bool
	whenAsked, whenAnswered func()
	// bank answers for the gateway which account is paid, if it is set.
	bank *bank.Service
	// whenSent runs before an order is answered, and whenFetched while an answer is on its way.
	whenSent    func()
	whenFetched func()
	// whenTaken alters a transfer that is made.
	whenTaken func(*transfer)
	// unlisting hides all transfers from lists. torn makes a list fail after so many pages, and worn up to
	// so many.
	unlisting  bool
	torn, worn int
	// whenListed runs after a page was read.
	whenListed func()
	// retryAfter is how long it asks to be left alone when it turns requests away.
	retryAfter time.Duration
	// listsAll lists all transfers, whatever was asked for.
	listsAll bool
	// least is the smallest transfer.
	least money.Amount
	// name is what it is called, paper unless set, and lacking takes capabilities away.
	name    gateway.Name
	lacking func(*gateway.Capabilities)
}

type transfer struct {
	id       string
	body     string
	order    gateway.Order
	amount   money.Amount
	progress gateway.Progress
	paid     int
	made     time.Time
}

// advance moves a transfer on: what was under way is paid or fails, what was paid may come back.
func (t *transfer) advance(luck int) {
	switch {
	case t.progress == gateway.Queued && luck > 0:
		t.progress = gateway.InProgress
	case t.progress == gateway.InProgress && luck == 1:
		t.progress = gateway.Paid
		t.paid++
	case t.progress == gateway.InProgress && luck == 2:
		t.progress = gateway.Failed
	case t.progress == gateway.Paid && luck == 3:
		t.progress = gateway.Reversed
	}
}

func (g *paperGateway) Beneficiary(ctx context.Context, seller string, id bank.ID, at gateway.Name, requested int64) (string, error) {
	if g.whenAsked != nil {
		g.whenAsked()
	}
	if g.whenAnswered != nil {
		defer g.whenAnswered()
	}
	if g.bank != nil {
		return g.bank.Beneficiary(ctx, seller, id, at, requested)
	}
	switch g.mood {
	case silent:
		return "", errors.New("silence")
	case shunning:
		return "", fmt.Errorf("tell the gateway: %w", fault.New(fault.Refused, "bank_account_refused", "No such account."))
	default:
		return strings.Replace(string(id), "bka_", "fa_", 1), nil
	}
}

func (g *paperGateway) CheckPayable(ctx context.Context, seller string, id bank.ID, requested int64) error {
	if g.bank != nil {
		return g.bank.CheckPayable(ctx, seller, id, requested)
	}
	return nil
}

func (g *paperGateway) Prepare(o gateway.Order) (string, error) {
	if g.mood == unwritable {
		return "", errors.New("the order can't be written")
	}
	return fmt.Sprintf("%d %s %s %s %d %s %s", o.Amount, o.Rail, o.Seller, o.Account, o.Gross, o.Beneficiary, o.Currency), nil
}

// Recover knows the accounts that sellers joined with.
func (g *paperGateway) Recover(_ context.Context, seller string, id bank.ID, _ gateway.Name, beneficiary string) error {
	if g.tampered {
		return ledger.ErrTampered
	}
	if id != bank.ID("bka_"+seller) || (beneficiary != "" && beneficiary != "fa_"+seller) {
		return bank.ErrNone
	}
	return nil
}

func (g *paperGateway) Submit(_ context.Context, key, body string) gateway.Submission {
	g.calls.Lock()
	defer g.calls.Unlock()
	g.sent++
	g.arrive(g.now())
	if g.whenSent != nil {
		g.whenSent()
	}
	switch g.mood {
	case slow:
		if _, known := g.underway[key]; !known {
			g.underway[key] = lateOrder{body: body, arrives: g.now().Add(g.lateness)}
		}
		return gateway.Submission{Outcome: gateway.Unclear, ReasonCode: "timeout"}
	case lostRequests, silent:
		return gateway.Submission{Outcome: gateway.Unclear, ReasonCode: "timeout"}
	case refusing:
		return gateway.Submission{Outcome: gateway.Refused, ReasonCode: "bank_account_invalid"}
	case diesBefore:
		panic(workerDied)
	case closed:
		return gateway.Submission{Outcome: gateway.NotTaken, ReasonCode: "throttled", RetryAfter: g.retryAfter}
	case unreachable:
		return gateway.Submission{Outcome: gateway.NotTaken, NotSent: true, ReasonCode: "unreachable"}
	}
	t := g.take(key, body)
	switch g.mood {
	case diesAfter:
		panic(workerDied)
	case lostAnswers:
		return gateway.Submission{Outcome: gateway.Unclear, ReasonCode: "timeout"}
	}
	return gateway.Submission{Outcome: gateway.Accepted, Report: t.report(key)}
}

// bankRejected is why a bank does not pay.
const bankRejected = "bank_rejected"

// lateOrder is an order on its way.
type lateOrder struct {
	body    string
	arrives time.Time
}

// arrive takes the orders that have arrived by now. It wants calls locked, or nobody to call.
func (g *paperGateway) arrive(now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(g.underway)) {
		if order := g.underway[key]; !order.arrives.After(now) {
			delete(g.underway, key)
			g.take(key, order.body)
		}
	}
}

// take makes the transfer of an order, or finds it made. It wants calls locked.
func (g *paperGateway) take(key, body string) *transfer {
	t, known := g.transfers[key]
	if !known {
		g.ids++
		t = &transfer{id: fmt.Sprintf("pout_%06d", g.ids), body: body, progress: gateway.InProgress, made: g.now().Truncate(time.Second)}
		if g.mood == queueing {
			t.progress = gateway.Queued
		}
		o := &t.order
		if _, err := fmt.Sscanf(body, "%d %s %s %s %d %s %s", &t.amount, &o.Rail, &o.Seller, &o.Account, &o.Gross, &o.Beneficiary, &o.Currency); err != nil {
			panic(err)
		}
		if g.whenTaken != nil {
			g.whenTaken(t)
		}
		g.transfers[key] = t
	}
	if t.body != body {
		panic("a key was sent with another body")
	}
	return t
}

func (t *transfer) report(ref string) gateway.Report {
	r := gateway.Report{
		GatewayID: t.id, Reference: ref, Amount: t.amount, Beneficiary: t.order.Beneficiary, Currency: t.order.Currency,
		MadeAt: t.made, Progress: t.progress, RawStatus: string(t.progress),
	}
	if t.paid > 0 {
		r.UTR = "HDFCN00000000001"
	}
	if t.progress == gateway.Failed || t.progress == gateway.Reversed {
		r.ReasonCode, r.Reason = bankRejected, "The bank has closed this account."
	}
	return r
}

func (g *paperGateway) Find(_ context.Context, ref string) (gateway.Report, error) {
	g.calls.Lock()
	report, err := g.lookUp(func(r string, _ *transfer) bool { return r == ref && !g.misplaced })
	if g.twofold {
		report, err = gateway.Report{}, gateway.ErrManyTransfers
	}
	whenFound := g.whenFound
	g.calls.Unlock()
	if whenFound != nil {
		whenFound()
	}
	return report, err
}

func (g *paperGateway) Fetch(_ context.Context, id string) (gateway.Report, error) {
	g.calls.Lock()
	report, err := g.lookUp(func(_ string, t *transfer) bool { return t.id == id || g.mistakes })
	g.calls.Unlock()
	if then := g.whenFetched; then != nil {
		g.whenFetched = nil
		then()
	}
	return report, err
}

// saysNothing reports whether nobody learns from it how a transfer stands.
func (g *paperGateway) saysNothing() bool {
	return g.mood == silent || g.mood == unreachable || g.deaf
}

// lookUp wants calls locked.
func (g *paperGateway) lookUp(wanted func(ref string, t *transfer) bool) (gateway.Report, error) {
	g.arrive(g.now())
	if g.saysNothing() {
		return gateway.Report{}, errors.New("silence")
	}
	for ref, t := range g.transfers {
		if wanted(ref, t) && !g.forgetful {
			return t.report(ref), nil
		}
	}
	return gateway.Report{}, gateway.ErrUnknownTransfer
}

// Cancel lets go of what is queued, unless nobody hears it.
func (g *paperGateway) Cancel(_ context.Context, id string) (gateway.Report, error) {
	g.calls.Lock()
	defer g.calls.Unlock()
	for _, t := range g.transfers {
		if t.id == id && t.progress == gateway.Queued && g.mood != silent {
			t.progress = gateway.Cancelled
		}
	}
	return g.lookUp(func(_ string, t *transfer) bool { return t.id == id })
}

// Transfers lists them newest first, two to a page.
func (g *paperGateway) Transfers(_ context.Context, since time.Time, after gateway.Cursor) (gateway.TransferPage, error) {
	return g.list(since, after, func(*transfer) bool { return true })
}

func (g *paperGateway) Reversed(_ context.Context, since time.Time, after gateway.Cursor) (gateway.TransferPage, error) {
	return g.list(since, after, func(t *transfer) bool { return g.listsAll || t.progress == gateway.Reversed })
}

// list reads a page. Its cursor is how many are passed over, and an empty page is the end.
func (g *paperGateway) list(since time.Time, after gateway.Cursor, wanted func(*transfer) bool) (gateway.TransferPage, error) {
	g.calls.Lock()
	defer g.calls.Unlock()
	g.arrive(g.now())
	const page = 2
	skip, _ := strconv.Atoi(string(after))
	if g.mood == silent || (g.torn > 0 && skip >= g.torn*page) || skip < g.worn*page {
		return gateway.TransferPage{}, errors.New("silence")
	}
	var all []gateway.Transfer
	for ref, t := range g.transfers {
		if !g.unlisting && !t.made.Before(since) && wanted(t) {
			all = append(all, gateway.Transfer{Report: t.report(ref), Order: t.order})
			if g.twofold {
				second := *t
				second.id += "_second"
				all = append(all, gateway.Transfer{Report: second.report(ref), Order: t.order})
			}
		}
	}
	slices.SortFunc(all, func(a, b gateway.Transfer) int { return strings.Compare(b.GatewayID, a.GatewayID) })
	if g.whenListed != nil {
		defer g.whenListed()
	}
	listed := all[min(skip, len(all)):min(skip+page, len(all))]
	if len(listed) == 0 {
		return gateway.TransferPage{}, nil
	}
	return gateway.TransferPage{Transfers: listed, Next: gateway.Cursor(strconv.Itoa(skip + len(listed)))}, nil
}

// paper is the gateway's name.
const paper gateway.Name = "paper"

func (g *paperGateway) Name() gateway.Name { return cmp.Or(g.name, paper) }

func (g *paperGateway) Capabilities() gateway.Capabilities {
	c := gateway.Capabilities{
		Least:    g.least,
		Currency: "INR", Rails: []gateway.Rail{{Name: "slow"}},
		KeyLifetime: 7 * 24 * time.Hour, Lookup: true, List: true, Metadata: true, Cancel: true,
	}
	if g.lacking != nil {
		g.lacking(&c)
	}
	return c
}
