package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EventType is what happened.
type EventType string

// The types of events.
const (
	BalanceAdjusted     EventType = "balance.adjusted"
	BalanceNegative     EventType = "balance.negative"
	BankAccountAdded    EventType = "bank_account.added"
	BankAccountRejected EventType = "bank_account.rejected"
	BankAccountReview   EventType = "bank_account.review"
	BankAccountVerified EventType = "bank_account.verified"
	PayoutCancelled     EventType = "payout.cancelled"
	PayoutCompleted     EventType = "payout.completed"
	PayoutFailed        EventType = "payout.failed"
	PayoutRequested     EventType = "payout.requested"
	PayoutReturned      EventType = "payout.returned"
	PayoutReview        EventType = "payout.review"
	PayoutSubmitted     EventType = "payout.submitted"
	PayoutUpdated       EventType = "payout.updated"
	SaleRecorded        EventType = "sale.recorded"
	SaleRefunded        EventType = "sale.refunded"
	SaleReleased        EventType = "sale.released"
	SellerRegistered    EventType = "seller.registered"
	// Ping is what [Client.TestEndpoint] sends. It is not in the feed.
	Ping EventType = "ping"
)

// Event is something that happened. Its methods read what it is about; which one has something to read depends on the type.
type Event struct {
	// ID is the same in the feed and in each delivery of the event.
	ID string `json:"id"`
	// Number is the place in the feed, from 1 and without a gap. It is 0 in a delivery.
	Number    int64     `json:"number"`
	Type      EventType `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	// Data is the object as it was after the event, as the API shows it.
	Data json.RawMessage `json:"data"`
}

// ErrTampered says that the seller's records were changed outside the service, which therefore says nothing of them. Read the
// event again once they are repaired.
var ErrTampered = errors.New("the seller's records were changed outside the service")

// Change is what an event says of its seller beside its object.
type Change struct {
	SellerID string `json:"sellerId"`
	// ExternalID is the marketplace's own id of the seller, empty for none.
	ExternalID string `json:"externalId"`
	// Entry numbers the changes of one seller: the event with the higher one is the later. It is 0 for seller.registered.
	Entry int64 `json:"entry"`
	// Balance is the seller's balances after the event.
	Balance struct {
		Available Amount `json:"available"`
		Pending   Amount `json:"pending"`
		InTransit Amount `json:"inTransit"`
	} `json:"balance"`
}

// Change reads whose event it is, and the seller's balances after it. It may fail with [ErrTampered], as all that follow.
func (e Event) Change() (Change, error) {
	return dataOf[Change](e, "")
}

// Sale reads the sale of an event sale.recorded, sale.released or sale.refunded.
func (e Event) Sale() (Sale, error) { return dataOf[Sale](e, "sale.") }

// SaleRefund is the refund of an event.
type SaleRefund struct {
	RefundID string `json:"refundId"`
	Amount   Amount `json:"amount"`
}

// Refund reads the refund of an event sale.refunded.
func (e Event) Refund() (SaleRefund, error) {
	data, err := dataOf[struct {
		Refund SaleRefund `json:"refund"`
	}](e, SaleRefunded)
	return data.Refund, err
}

// Payout is a payout as it was after an event.
type Payout struct {
	ID       string `json:"id"`
	SellerID string `json:"sellerId"`
	// ExternalID is the marketplace's own id of the seller, empty for none.
	ExternalID string `json:"externalId"`
	Amount     Amount `json:"amount"`
	Fee        Amount `json:"fee"`
	// NetAmount is the amount less the fee, which is what the bank is sent.
	NetAmount Amount `json:"netAmount"`
	// Status is processing, completed, failed or cancelled.
	Status      string `json:"status"`
	BankAccount struct {
		AccountNumber string `json:"accountNumber"`
		IFSC          string `json:"ifsc"`
		AccountHolder string `json:"accountHolder"`
	} `json:"bankAccount"`
	RequestedAt time.Time `json:"requestedAt"`
	ProcessedAt time.Time `json:"processedAt"` // zero before the gateway has it
	CompletedAt time.Time `json:"completedAt"` // zero before it is completed
	// UTR is the bank's reference; empty until the bank gives it.
	UTR             string `json:"utr"`
	Notes           string `json:"notes"`
	GatewayPayoutID string `json:"gatewayPayoutId"`
	FailureReason   string `json:"failureReason"`
	// Source is seller or marketplace: who asked for it. It is imported where that is not known, because a restore of the service's
	// database had lost the payout and it was imported from the gateway.
	Source string `json:"source"`
}

// Payout reads the payout of an event payout.*.
func (e Event) Payout() (Payout, error) { return dataOf[Payout](e, "payout.") }

// BankAccount reads the bank account of an event bank_account.*.
func (e Event) BankAccount() (BankAccount, error) { return dataOf[BankAccount](e, "bank_account.") }

// RegisteredSeller is a user who became a seller.
type RegisteredSeller struct {
	SellerID   string    `json:"sellerId"`
	ExternalID string    `json:"externalId"`
	Name       string    `json:"name"`
	Email      string    `json:"email"`
	CreatedAt  time.Time `json:"createdAt"`
}

// Seller reads the seller of an event seller.registered.
func (e Event) Seller() (RegisteredSeller, error) {
	return dataOf[RegisteredSeller](e, SellerRegistered)
}

// Adjustment is a correction of a seller's balance.
type Adjustment struct {
	SellerID string `json:"sellerId"`
	// ExternalID is the marketplace's own id of the seller, empty for none.
	ExternalID   string `json:"externalId"`
	AdjustmentID string `json:"adjustmentId"`
	// Amount was added to the available balance, or taken away where it is below zero.
	Amount           Amount    `json:"amount"`
	Reason           string    `json:"reason"`
	AvailableBalance Amount    `json:"availableBalance"`
	CreatedAt        time.Time `json:"createdAt"`
}

// Adjustment reads the correction of an event balance.adjusted.
func (e Event) Adjustment() (Adjustment, error) { return dataOf[Adjustment](e, BalanceAdjusted) }

// dataOf reads an event's data if its type begins as it must.
func dataOf[T any](e Event, begins EventType) (T, error) {
	var data T
	if !strings.HasPrefix(string(e.Type), string(begins)) {
		return data, fmt.Errorf("the event %s is %s, which has no %T", e.ID, e.Type, data)
	}
	var state struct {
		Tampered bool `json:"tampered"`
	}
	if err := json.Unmarshal(e.Data, &state); err != nil {
		return data, fmt.Errorf("the data of event %s: %w", e.ID, err)
	}
	if state.Tampered {
		return data, fmt.Errorf("the event %s: %w", e.ID, ErrTampered)
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, fmt.Errorf("the data of event %s: %w", e.ID, err)
	}
	return data, nil
}

// pause is how long [Client.Follow] waits at the end of the feed.
const pause = 2 * time.Second

// EventsPage is a part of the feed.
type EventsPage struct {
	Events []Event `json:"events"`
	// Next is where the next page begins: it is past events of other types, too. It is what was asked for at the feed's end.
	Next int64 `json:"next"`
}

// EventsAfter reads one page of events above a number, oldest first: those of the types, or without types all. Store Next in
// the same transaction as what you made of the events. It fails with cursor_ahead if the feed ends before the number, as after a
// restore from a backup. Scope: events:read.
func (c *Client) EventsAfter(ctx context.Context, number int64, types ...EventType) (EventsPage, error) {
	var page EventsPage
	r := call{method: http.MethodGet, path: []string{"events"}, query: url.Values{"after": {strconv.FormatInt(number, 10)}}, repeatable: true}
	if len(types) > 0 {
		r.query.Set("type", join(types))
	}
	return page, c.do(ctx, r, &page)
}

// Events reads all events above a number, oldest first, up to the end of the feed or the first error; see
// [Client.EventsAfter].
func (c *Client) Events(ctx context.Context, number int64, types ...EventType) iter.Seq2[Event, error] {
	return c.events(ctx, number, types, func() bool { return false })
}

// Follow is [Client.Events] that waits at the end of the feed and goes on, until ctx ends or a request fails for good. It looks
// every two seconds.
func (c *Client) Follow(ctx context.Context, number int64, types ...EventType) iter.Seq2[Event, error] {
	return c.events(ctx, number, types, func() bool {
		sleep(ctx, pause) // if ctx ended, the next request says so
		return true
	})
}

// events reads the feed, and asks at its end whether to go on.
func (c *Client) events(ctx context.Context, number int64, types []EventType, goesOn func() bool) iter.Seq2[Event, error] {
	types = slices.Clone(types)
	return func(yield func(Event, error) bool) {
		for after := number; ; {
			page, err := c.EventsAfter(ctx, after, types...)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			if page.Next == after && !goesOn() {
				return
			}
			after = page.Next
		}
	}
}

func join(types []EventType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ",")
}
