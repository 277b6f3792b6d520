package client

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// Sale is what a seller earned from one sale.
type Sale struct {
	SaleID   string `json:"saleId"`
	SellerID string `json:"sellerId"`
	// ExternalID is empty if the request named the seller by Bursar's id.
	ExternalID     string `json:"externalId,omitempty"`
	Amount         Amount `json:"amount"`
	RefundedAmount Amount `json:"refundedAmount"`
	// Status is pending or released.
	Status      string    `json:"status"`
	OccurredAt  time.Time `json:"occurredAt"`
	AvailableAt time.Time `json:"availableAt"`
	ReleasedAt  time.Time `json:"releasedAt"` // zero while it is pending
	CreatedAt   time.Time `json:"createdAt"`
}

// NewSale is a sale that a seller made.
type NewSale struct {
	// SaleID is the marketplace's own id: 1 to 128 characters.
	SaleID   string `json:"saleId"`
	SellerID string `json:"sellerId"`
	// Amount is what the seller earned from it.
	Amount Amount `json:"amount"`
	// OccurredAt is now by default. Set it, so that a repeat after a crash is the same sale.
	OccurredAt time.Time `json:"occurredAt,omitzero"`
	// AvailableAt is when it may be withdrawn; by default the service's holding period after OccurredAt.
	AvailableAt time.Time `json:"availableAt,omitzero"`
}

// RecordSale records a sale. The same again changes nothing; other values under the same SaleID fail with sale_conflict. Scope:
// sales:write.
func (c *Client) RecordSale(ctx context.Context, s NewSale) (Sale, error) {
	var sale Sale
	return sale, c.do(ctx, call{method: http.MethodPost, path: []string{"marketplace", "sales"}, body: s, repeatable: true}, &sale)
}

// SaleResult is what became of one sale of many.
type SaleResult struct {
	SaleID string `json:"saleId"`
	// Success says that the sale is recorded now, or was before.
	Success bool `json:"success"`
	// Code, Message and Details say why it was refused, as an [Error] does.
	Code    string            `json:"code,omitempty"`
	Message string            `json:"error,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

// maxBatch is how many sales one request may have.
const maxBatch = 500

// RecordSales records any number of sales, 500 in a request. A sale that is refused harms no other, so look at each result;
// they are in the order of the sales. If a request fails, the results of those before it are returned beside the error, and
// all may be sent again. Scope: sales:write.
func (c *Client) RecordSales(ctx context.Context, sales []NewSale) ([]SaleResult, error) {
	results := make([]SaleResult, 0, len(sales))
	for batch := range slices.Chunk(sales, maxBatch) {
		var answer struct {
			Results []SaleResult `json:"results"`
		}
		body := struct {
			Sales []NewSale `json:"sales"`
		}{batch}
		if err := c.do(ctx, call{method: http.MethodPost, path: []string{"marketplace", "sales:batch"}, body: body, repeatable: true}, &answer); err != nil {
			return results, err
		}
		results = append(results, answer.Results...)
	}
	return results, nil
}

// Refund is what was taken back from a sale.
type Refund struct {
	RefundID  string    `json:"refundId"`
	Amount    Amount    `json:"amount"`
	CreatedAt time.Time `json:"createdAt"`
	Sale      Sale      `json:"sale"`
}

// NewRefund takes earnings back.
type NewRefund struct {
	// RefundID is the marketplace's own id: 1 to 128 characters.
	RefundID string `json:"refundId"`
	// Amount is all that is left of the sale if it is empty.
	Amount Amount `json:"amount,omitempty"`
}

// RefundSale takes back what a seller earned from a sale. The same again changes nothing; other values under the same RefundID
// fail with refund_conflict. Scope: sales:write.
func (c *Client) RefundSale(ctx context.Context, saleID string, r NewRefund) (Refund, error) {
	var refund Refund
	return refund, c.do(ctx, call{method: http.MethodPost, path: []string{"marketplace", "sales", saleID, "refund"}, body: r, repeatable: true}, &refund)
}

// SalesPage is one page of a seller's sales.
type SalesPage struct {
	SellerID   string     `json:"sellerId"`
	ExternalID string     `json:"externalId"`
	Sales      []Sale     `json:"sales"`
	Pagination Pagination `json:"pagination"`
}

// Sales reads one page of a seller's sales, newest first. Scope: balances:read.
func (c *Client) Sales(ctx context.Context, sellerID string, page Page) (SalesPage, error) {
	var sales SalesPage
	r := onSeller(http.MethodGet, sellerID, "sales")
	r.query = page.query()
	return sales, c.do(ctx, r, &sales)
}
