package api

import (
	"context"
	"encoding/json"
	"net/http"

	"bursar/internal/sale"
)

type saleRequest struct{ sale.NewSale }

func (req *saleRequest) read(in *input) {
	req.ID = in.text("saleId", checkReference)
	req.Seller = in.text("sellerId", checkReference)
	req.Amount = in.amount("amount")
	req.OccurredAt = in.optionalInstant("occurredAt")
	req.AvailableAt = in.optionalInstant("availableAt")
}

type saleJSON struct {
	SaleID         string      `json:"saleId"`
	SellerID       string      `json:"sellerId"`
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
	s, created, err := a.o.Sales.Record(ctx, req.NewSale)
	if err != nil {
		return reply[saleJSON]{}, err
	}
	return reply[saleJSON]{status: createdOr200(created), data: a.saleOf(s)}, nil
}

type refundRequest struct{ sale.NewRefund }

func (req *refundRequest) read(in *input) {
	req.Sale = in.r.PathValue("saleId")
	if checkReference(req.Sale) != "" {
		in.refuse(sale.ErrNotFound)
	}
	req.ID = in.text("refundId", checkReference)
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
	if err != nil {
		return reply[refundJSON]{}, err
	}
	return reply[refundJSON]{
		status: createdOr200(created),
		data:   refundJSON{refund.ID, a.amount(refund.Amount), stamp(refund.At), a.saleOf(s)},
	}, nil
}

type sellerRequest struct {
	seller         string
	productsListed int64
}

func (req *sellerRequest) read(in *input) {
	req.seller = in.r.PathValue("sellerId")
	if checkReference(req.seller) != "" {
		in.refuse(sale.ErrSellerNotFound)
	}
	req.productsListed = in.count("productsListed")
}

type sellerJSON struct {
	SellerID       string `json:"sellerId"`
	ProductsListed int64  `json:"productsListed"`
}

func (a *api) setSeller(ctx context.Context, _ caller, req sellerRequest) (reply[sellerJSON], error) {
	if err := a.o.Auth.SetProductsListed(ctx, req.seller, req.productsListed); err != nil {
		return reply[sellerJSON]{}, err
	}
	return reply[sellerJSON]{data: sellerJSON{req.seller, req.productsListed}}, nil
}
