package api

import (
	"context"
	"encoding/json"
	"math"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/sale"
)

// adjustRequest names its seller by Bursar's id, or by "ext:" and the marketplace's.
type adjustRequest struct{ sale.NewAdjustment }

func (req *adjustRequest) read(in *input) {
	req.Seller = in.r.PathValue("sellerId")
	if auth.CheckSellerName(req.Seller) != "" {
		in.refuse(auth.ErrUserNotFound)
	}
	req.ID = in.text("adjustmentId", limits.Reference)
	req.Amount = in.signedAmount("amount")
	req.Reason = in.text("reason", sale.CheckReason)
	req.By.Note = in.text("note", checkReason)
}

// adjustmentJSON is an adjustment as its seller sees it.
type adjustmentJSON struct {
	AdjustmentID     string      `json:"adjustmentId"`
	Amount           json.Number `json:"amount"`
	Reason           string      `json:"reason"`
	AvailableBalance json.Number `json:"availableBalance"`
	CreatedAt        string      `json:"createdAt"`
}

// adminAdjustmentJSON is one as admins see it.
type adminAdjustmentJSON struct {
	adjustmentJSON
	SellerID  string `json:"sellerId"`
	Note      string `json:"note"`
	CreatedBy string `json:"createdBy"`
}

func (a *api) adjustmentOf(m sale.Adjustment) adjustmentJSON {
	return adjustmentJSON{m.ID, a.amount(m.Amount), m.Reason, a.amount(m.Available), stamp(m.At)}
}

func (a *api) adminAdjustmentOf(m sale.Adjustment) adminAdjustmentJSON {
	by := m.Admin
	switch {
	case m.Operator != "":
		by = ledger.ActorOperator + m.Operator
	case m.Key != "":
		by = ledger.ActorKey + m.Key
	}
	return adminAdjustmentJSON{a.adjustmentOf(m), m.Seller, m.Note, by}
}

func (a *api) adjust(ctx context.Context, who caller, req adjustRequest) (reply[adminAdjustmentJSON], error) {
	var err error
	if req.Seller, err = a.sellerToAdjust(ctx, who, req.Seller); err == nil {
		req.By, err = a.decidesAs(ctx, who, decision.AdjustBalance, req.Seller, req.By.Note)
	}
	if err != nil {
		return reply[adminAdjustmentJSON]{}, err
	}
	m, created, err := a.o.Sales.Adjust(ctx, req.NewAdjustment)
	return reply[adminAdjustmentJSON]{status: createdOr200(created), data: a.adminAdjustmentOf(m)}, err
}

// sellerToAdjust is the id of the seller that a service key or an admin names.
func (a *api) sellerToAdjust(ctx context.Context, who caller, name string) (string, error) {
	if who.service.ID != "" {
		user, err := a.sellerNamed(ctx, sellerName(name))
		return user.ID, err
	}
	if id.Valid(auth.UserIDPrefix, name) {
		return name, nil
	}
	user, err := a.o.Auth.Seller(ctx, name)
	return user.ID, err
}

// adjustmentsRequest asks for a page of a seller's adjustments.
type adjustmentsRequest struct {
	before int64
	limit  int
}

func (req *adjustmentsRequest) read(in *input) {
	req.before = int64(in.number("before", 0, math.MaxInt))
	req.limit = in.number("limit", 20, 100)
}

type adjustmentsOfRequest struct {
	adjustmentsRequest
	seller string
}

func (req *adjustmentsOfRequest) read(in *input) {
	req.seller = in.sellerID()
	req.adjustmentsRequest.read(in)
}

type adjustmentsJSON[A any] struct {
	Adjustments []A `json:"adjustments"`
	// Next is for the parameter before of the next page; left out on the last.
	Next int64 `json:"next,omitempty"`
}

// adjustmentsPage reads a page of a seller's adjustments, each written by one.
func adjustmentsPage[A any](ctx context.Context, a *api, seller string, req adjustmentsRequest, one func(sale.Adjustment) A) (reply[adjustmentsJSON[A]], error) {
	list, err := a.o.Sales.Adjustments(ctx, seller, req.before, req.limit+1)
	if err != nil {
		return reply[adjustmentsJSON[A]]{}, err
	}
	page := adjustmentsJSON[A]{}
	if len(list) > req.limit {
		list = list[:req.limit]
		page.Next = list[req.limit-1].Entry
	}
	page.Adjustments = mapped(list, one)
	return reply[adjustmentsJSON[A]]{data: page}, nil
}

// adjustments lists the caller's own.
func (a *api) adjustments(ctx context.Context, who caller, req adjustmentsRequest) (reply[adjustmentsJSON[adjustmentJSON]], error) {
	return adjustmentsPage(ctx, a, who.UserID, req, a.adjustmentOf)
}

func (a *api) adjustmentsOf(ctx context.Context, _ caller, req adjustmentsOfRequest) (reply[adjustmentsJSON[adminAdjustmentJSON]], error) {
	return adjustmentsPage(ctx, a, req.seller, req.adjustmentsRequest, a.adminAdjustmentOf)
}
