package api

import (
	"context"
	"encoding/json"
	"net/http"

	"bursar/internal/auth"
	"bursar/internal/limits"
	"bursar/internal/sale"
)

type saleRequest struct{ sale.NewSale }

func (req *saleRequest) read(in *input) {
	req.ID = in.text("saleId", limits.Reference)
	req.Seller = in.text("sellerId", checkSellerReference)
	req.Amount = in.amount("amount")
	req.OccurredAt = in.optionalInstant("occurredAt")
	req.AvailableAt = in.optionalInstant("availableAt")
}

// checkSellerReference returns what is wrong with a seller's id in a body, or "".
func checkSellerReference(name string) string {
	if auth.IsExternalID(name) {
		return auth.CheckSellerName(name)
	}
	return limits.Reference(name)
}

type saleJSON struct {
	SaleID   string `json:"saleId"`
	SellerID string `json:"sellerId"`
	// ExternalID is there if the request named the seller by it.
	ExternalID     string      `json:"externalId,omitempty"`
	Amount         json.Number `json:"amount"`
	RefundedAmount json.Number `json:"refundedAmount"`
	Status         string      `json:"status"`
	OccurredAt     string      `json:"occurredAt"`
	AvailableAt    string      `json:"availableAt"`
	ReleasedAt     orNull      `json:"releasedAt"`
	CreatedAt      string      `json:"createdAt"`
}

func (a *api) saleOf(s sale.Sale) saleJSON {
	status := "pending"
	if s.Released() {
		status = "released"
	}
	return saleJSON{
		SaleID:         s.ID,
		SellerID:       s.Seller,
		Amount:         a.amount(s.Amount),
		RefundedAmount: a.amount(s.Refunded),
		Status:         status,
		OccurredAt:     stamp(s.OccurredAt),
		AvailableAt:    stamp(s.AvailableAt),
		ReleasedAt:     stampOrNull(s.ReleasedAt),
		CreatedAt:      stamp(s.CreatedAt),
	}
}

// createdOr200 is 201 for what is new and 200 for what was there already.
func createdOr200(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (a *api) recordSale(ctx context.Context, c caller, req saleRequest) (reply[saleJSON], error) {
	req.Actor = c.service.Actor()
	var externalID string
	var err error
	if req.Seller, externalID, err = a.resolveSeller(ctx, req.Seller); err != nil {
		return reply[saleJSON]{}, err
	}
	s, created, err := a.o.Sales.Record(ctx, req.NewSale)
	if err != nil {
		return reply[saleJSON]{}, err
	}
	shown := a.saleOf(s)
	shown.ExternalID = externalID
	return reply[saleJSON]{status: createdOr200(created), data: shown}, nil
}

type refundRequest struct{ sale.NewRefund }

func (req *refundRequest) read(in *input) {
	req.Sale = in.r.PathValue("saleId")
	if limits.Reference(req.Sale) != "" {
		in.refuse(sale.ErrNotFound)
	}
	req.ID = in.text("refundId", limits.Reference)
	in.notNull("amount", "must be a number; leave it out for all that is left of the sale")
	in.misnamed("refundAmount", "amount")
	req.Amount = in.optionalAmount("amount")
}

type refundJSON struct {
	RefundID  string      `json:"refundId"`
	Amount    json.Number `json:"amount"`
	CreatedAt string      `json:"createdAt"`
	Sale      saleJSON    `json:"sale"`
}

func (a *api) refundSale(ctx context.Context, c caller, req refundRequest) (reply[refundJSON], error) {
	req.Actor = c.service.Actor()
	s, refund, created, err := a.o.Sales.Refund(ctx, req.NewRefund)
	return reply[refundJSON]{
		status: createdOr200(created),
		data:   refundJSON{refund.ID, a.amount(refund.Amount), stamp(refund.At), a.saleOf(s)},
	}, err
}
