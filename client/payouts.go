package client

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// NewPayout is a withdrawal for a seller.
type NewPayout struct {
	Amount Amount `json:"amount"`
	Notes  string `json:"notes,omitempty"`
	// IdempotencyKey names the request: 1 to 255 printable ASCII characters. The same key with the same request gets the first
	// answer for seven days. Without it the client makes one, which makes this call's own repeats safe; keep one of your own
	// with the order to pay if your program may end and begin again.
	IdempotencyKey string `json:"-"`
}

// RequestedPayout is a withdrawal that is under way.
type RequestedPayout struct {
	SellerID         string    `json:"sellerId"`
	ExternalID       string    `json:"externalId"`
	PayoutID         string    `json:"payoutId"`
	Amount           Amount    `json:"amount"`
	Status           string    `json:"status"`
	EstimatedArrival time.Time `json:"estimatedArrival"`
	AccountNumber    string    `json:"accountNumber"`
	RequestedAt      time.Time `json:"requestedAt"`
	Source           string    `json:"source"`
}

// RequestPayout withdraws a seller's money to their verified bank account, once, however often it is sent. What stops the
// seller stops the server: [Client.Explain] says what. Scope: payouts:write.
func (c *Client) RequestPayout(ctx context.Context, sellerID string, p NewPayout) (RequestedPayout, error) {
	var requested RequestedPayout
	r := onSeller(http.MethodPost, sellerID, "payouts")
	r.body, r.idempotencyKey = p, cmp.Or(p.IdempotencyKey, newIdempotencyKey())
	return requested, c.do(ctx, r, &requested)
}

// ListedPayout is a payout as lists have it.
type ListedPayout struct {
	ID     string `json:"id"`
	Amount Amount `json:"amount"`
	// Status is processing, completed, failed or cancelled.
	Status        string    `json:"status"`
	AccountNumber string    `json:"accountNumber"`
	RequestedAt   time.Time `json:"requestedAt"`
	// CompletedAt is zero, and UTR, the bank's reference, empty until the payout is completed.
	CompletedAt time.Time `json:"completedAt,omitzero"`
	UTR         string    `json:"utr,omitempty"`
	// EstimatedArrival is zero unless the payout is processing.
	EstimatedArrival time.Time `json:"estimatedArrival,omitzero"`
}

// PayoutsPage is one page of a seller's payouts.
type PayoutsPage struct {
	SellerID   string         `json:"sellerId"`
	ExternalID string         `json:"externalId"`
	Payouts    []ListedPayout `json:"payouts"`
	Pagination Pagination     `json:"pagination"`
}

// Payouts reads one page of a seller's payouts, newest first: those with a status, or with "" all. Scope: payouts:read.
func (c *Client) Payouts(ctx context.Context, sellerID, status string, page Page) (PayoutsPage, error) {
	var payouts PayoutsPage
	r := onSeller(http.MethodGet, sellerID, "payouts")
	r.query = page.query()
	r.query.Set("status", cmp.Or(status, "all"))
	return payouts, c.do(ctx, r, &payouts)
}
