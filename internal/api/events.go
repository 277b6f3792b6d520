package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/event"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

type feedRequest struct {
	after int64
	types []event.Type
	limit int
}

// maxTypes bounds a filter.
const maxTypes = 50

func (req *feedRequest) read(in *input) {
	req.after = in.cursor("after")
	req.limit = in.number("limit", event.MaxPage, event.MaxPage)
	if s, given := in.parameter("type"); given {
		for name := range strings.SplitSeq(s, ",") {
			if t := event.Type(name); slices.Contains(event.Types(), t) && len(req.types) < maxTypes {
				req.types = append(req.types, t)
				continue
			}
			in.noteInvalid("type", "must be types of events, separated by commas, such as payout.completed,payout.failed")
		}
	}
}

// cursor is a number that an earlier answer gave; 0 without it.
func (in *input) cursor(name string) int64 {
	s, given := in.parameter(name)
	if !given {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s[0] == '+' {
		in.noteInvalid(name, fmt.Sprintf("must be a whole number from 0 to %d", math.MaxInt64))
	}
	return n
}

type feedJSON struct {
	Events []feedEventJSON `json:"events"`
	// Next is for the parameter after of the next page, whether or not there is one yet.
	Next int64 `json:"next"`
}

type feedEventJSON struct {
	ID     string `json:"id"`
	Number int64  `json:"number"`
	eventBodyJSON
}

// eventBodyJSON is an event as a webhook delivers it.
type eventBodyJSON struct {
	Type      event.Type `json:"type"`
	Timestamp string     `json:"timestamp"`
	Data      any        `json:"data"`
}

func (a *api) feed(ctx context.Context, _ caller, req feedRequest) (reply[feedJSON], error) {
	events, next, err := a.o.Events.After(ctx, req.after, req.types, req.limit)
	if err != nil {
		return reply[feedJSON]{}, err
	}
	data := feedJSON{make([]feedEventJSON, 0, len(events)), next}
	r := a.renderer()
	for _, e := range events {
		body, err := r.body(ctx, e)
		if err != nil {
			return reply[feedJSON]{}, err
		}
		data.Events = append(data.Events, feedEventJSON{e.ID, e.Number, body})
	}
	return reply[feedJSON]{data: data}, nil
}

// EventBodies makes the function that writes an event as webhooks deliver it.
func EventBodies(events *event.Service, users Auth, accounts *bank.Service, currency money.Currency) func(context.Context, event.Event) ([]byte, error) {
	a := &api{o: Options{Events: events, Auth: users, Bank: accounts, Currency: currency}}
	return func(ctx context.Context, e event.Event) ([]byte, error) {
		body, err := a.renderer().body(ctx, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(body)
	}
}

// eventRenderer writes events. Each shows its object as it was after its entry: what the entries up to then fold to.
type eventRenderer struct {
	*api
	// entries are those that were read, by owner and subject. The journal is append-only, so those of an event that is
	// numbered are among them.
	entries map[[2]string]entriesRead
	// externalIDs are those that were read, by seller.
	externalIDs map[string]string
}

type entriesRead struct {
	list     []ledger.Entry
	tampered bool
}

func (a *api) renderer() *eventRenderer {
	return &eventRenderer{a, map[[2]string]entriesRead{}, map[string]string{}}
}

// eventContext is what each event tells beside its object.
type eventContext struct {
	// Entry numbers the entries of the seller's journal, so that a receiver can put a seller's events into order.
	Entry   int64            `json:"entry"`
	Balance eventBalanceJSON `json:"balance"`
}

// eventBalanceJSON is a seller's balances after the entry.
type eventBalanceJSON struct {
	Available json.Number `json:"available"`
	Pending   json.Number `json:"pending"`
	InTransit json.Number `json:"inTransit"`
}

type (
	saleEventJSON struct {
		saleJSON
		Refund *refundedJSON `json:"refund,omitempty"`
		eventContext
	}
	refundedJSON struct {
		RefundID string      `json:"refundId"`
		Amount   json.Number `json:"amount"`
	}
	payoutEventJSON struct {
		payoutJSON
		ExternalID string `json:"externalId,omitempty"`
		eventContext
	}
	accountEventJSON struct {
		SellerID   string `json:"sellerId"`
		ExternalID string `json:"externalId,omitempty"`
		bankAccountJSON
		eventContext
	}
	adjustmentEventJSON struct {
		SellerID   string `json:"sellerId"`
		ExternalID string `json:"externalId,omitempty"`
		adjustmentJSON
		eventContext
	}
	balanceEventJSON struct {
		SellerID   string `json:"sellerId"`
		ExternalID string `json:"externalId,omitempty"`
		eventContext
	}
	sellerEventJSON struct {
		SellerID   string `json:"sellerId"`
		ExternalID orNull `json:"externalId"`
		Name       string `json:"name"`
		Email      string `json:"email"`
		CreatedAt  string `json:"createdAt"`
	}
	// tamperedEventJSON stands for an object whose entries the service did not write, so that nothing is said of it.
	tamperedEventJSON struct {
		SellerID string `json:"sellerId"`
		Tampered bool   `json:"tampered"`
	}
)

func (r *eventRenderer) body(ctx context.Context, e event.Event) (eventBodyJSON, error) {
	data, err := r.data(ctx, e)
	if errors.Is(err, ledger.ErrTampered) || errors.Is(err, auth.ErrTampered) {
		data, err = tamperedEventJSON{e.Owner, true}, nil
	}
	return eventBodyJSON{e.Type, stamp(e.At), data}, err
}

func (r *eventRenderer) data(ctx context.Context, e event.Event) (any, error) {
	if e.Type == event.SellerRegistered && e.Entry == 0 {
		u, err := r.user(ctx, e.Owner)
		return sellerEventJSON{u.ID, orNull(u.ExternalID), u.Name, u.Email, stamp(u.CreatedAt)}, err
	}
	about, err := r.about(ctx, e.Owner, e.Subject)
	if err != nil {
		return nil, err
	}
	end := slices.IndexFunc(about, func(entry ledger.Entry) bool { return entry.Number == e.Entry })
	if end < 0 {
		return nil, ledger.ErrTampered.Because(fmt.Errorf("entry %d of %s is not about %s", e.Entry, e.Owner, e.Subject))
	}
	about = about[:end+1]
	entry := about[end]
	if !slices.Contains(event.Of(entry), e.Queued) {
		return nil, ledger.ErrTampered.Because(fmt.Errorf("entry %d of %s, %s, does not match event type %s", e.Entry, e.Owner, entry.Type, e.Type))
	}
	externalID, err := r.externalID(ctx, e.Owner)
	if err != nil {
		return nil, err
	}
	with := eventContext{entry.Number, eventBalanceJSON{r.amount(entry.After.Available), r.amount(entry.After.Pending), r.amount(entry.After.InTransit)}}
	switch kind, _, _ := strings.Cut(string(e.Type), "."); {
	case e.Type == event.BalanceNegative:
		return balanceEventJSON{e.Owner, externalID, with}, nil
	case e.Type == event.BalanceAdjusted:
		m, err := sale.AdjustmentOf(entry)
		return adjustmentEventJSON{e.Owner, externalID, r.adjustmentOf(m), with}, err
	case kind == "sale":
		return r.saleEvent(e, externalID, about, with)
	case kind == "payout":
		return r.payoutEvent(ctx, e, externalID, about, with)
	default:
		account, err := bank.Fold(bank.ID(e.Subject), about)
		return accountEventJSON{e.Owner, externalID, r.bankAccountOf(account), with}, unreadable(err)
	}
}

func (r *eventRenderer) saleEvent(e event.Event, externalID string, about []ledger.Entry, with eventContext) (any, error) {
	id := strings.TrimPrefix(e.Subject, sale.SubjectPrefix)
	s, err := sale.Fold(id, about)
	data := saleEventJSON{r.saleOf(s), nil, with}
	data.ExternalID = externalID
	if err == nil && e.Type == event.SaleRefunded {
		var refunds []sale.Refund
		refunds, err = sale.RefundsOf(id, about[len(about)-1:])
		for _, refund := range refunds {
			data.Refund = &refundedJSON{refund.ID, r.amount(refund.Amount)}
		}
	}
	return data, unreadable(err)
}

func (r *eventRenderer) payoutEvent(ctx context.Context, e event.Event, externalID string, about []ledger.Entry, with eventContext) (any, error) {
	p, err := payout.Fold(payout.ID(e.Subject), about)
	if err != nil {
		return nil, unreadable(err)
	}
	registered, err := r.about(ctx, e.Owner, string(p.BankAccountID))
	if err != nil {
		return nil, err
	}
	account, err := bank.Fold(p.BankAccountID, registered)
	p.AccountHolder, p.AccountLast4, p.AccountIFSC = account.Holder, account.Last4, string(account.IFSC)
	return payoutEventJSON{r.payoutOf(p), externalID, with}, unreadable(err)
}

// externalID is what the marketplace calls a seller. It is set when the seller is made, and nothing gives a seller another one;
// only a deletion of the account and an operator's reset take it away. It fails with [auth.ErrTampered] if that was changed outside the service: a
// consumer might credit another seller.
func (r *eventRenderer) externalID(ctx context.Context, seller string) (string, error) {
	known, read := r.externalIDs[seller]
	if read {
		return known, nil
	}
	u, err := r.user(ctx, seller)
	if err == nil {
		r.externalIDs[seller] = u.ExternalID
	}
	return u.ExternalID, err
}

func (r *eventRenderer) user(ctx context.Context, id string) (auth.User, error) {
	u, err := r.o.Auth.FindUser(ctx, id)
	if errors.Is(err, auth.ErrUserNotFound) { // users are never deleted
		err = auth.ErrTampered.Because(err)
	}
	return u, err
}

// unreadable says that entries can't be folded: the service writes none such.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return ledger.ErrTampered.Because(err)
}

// about lists the entries about a subject, and fails with [ledger.ErrTampered] if the service did not write all of them.
func (r *eventRenderer) about(ctx context.Context, owner, subject string) ([]ledger.Entry, error) {
	key := [2]string{owner, subject}
	read, known := r.entries[key]
	if !known {
		list, err := r.o.Events.EntriesAbout(ctx, owner, subject)
		read = entriesRead{list, errors.Is(err, ledger.ErrTampered)}
		if err != nil && !read.tampered {
			return nil, err
		}
		r.entries[key] = read
	}
	if read.tampered {
		return nil, ledger.ErrTampered
	}
	return read.list, nil
}
