package api

import (
	"context"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/id"
)

// userID takes the id of a user from the path.
func (in *input) userID() string { return in.userAt("userId") }

// sellerID takes the id of a seller from the path.
func (in *input) sellerID() string { return in.userAt("sellerId") }

func (in *input) userAt(name string) string {
	user := in.r.PathValue(name)
	if !id.Valid(auth.UserIDPrefix, user) {
		in.refuse(auth.ErrUserNotFound)
	}
	return user
}

type accessRequest struct {
	user      string
	role      auth.Role
	suspended bool
	note      string
}

func (req *accessRequest) read(in *input) {
	req.user = in.userID()
	req.role = auth.Role(in.text("role", checkAnyRole))
	req.suspended = in.flag("suspended")
	req.note = in.optionalText("note", checkProse(decision.MaxNote))
}

func checkAnyRole(s string) string {
	switch auth.Role(s) {
	case auth.Buyer, auth.Seller, auth.Admin:
		return ""
	default:
		return "must be buyer, seller or admin"
	}
}

type accessJSON struct {
	UserID    string    `json:"userId"`
	Role      auth.Role `json:"role"`
	Suspended bool      `json:"suspended"`
}

func (a *api) setAccess(ctx context.Context, who caller, req accessRequest) (reply[accessJSON], error) {
	if err := a.o.Auth.ProveDecision(ctx, who.Principal, decision.ChangeAccess, req.user); err != nil {
		return reply[accessJSON]{}, err
	}
	by := decision.By{Admin: who.UserID, Note: req.note}
	err := a.o.Auth.SetAccess(ctx, by, req.user, req.role, req.suspended)
	return reply[accessJSON]{
		message: "The change applies from the user's next request.",
		data:    accessJSON{req.user, req.role, req.suspended},
	}, err
}

type liftHoldRequest struct {
	seller string
	note   string
	until  time.Time
}

func (req *liftHoldRequest) read(in *input) {
	req.seller = in.sellerID()
	req.note = in.text("note", checkProse(decision.MaxNote))
	req.until = in.optionalInstant("until")
}

type liftHoldJSON struct {
	SellerID string `json:"sellerId"`
}

func (a *api) liftHold(ctx context.Context, who caller, req liftHoldRequest) (reply[liftHoldJSON], error) {
	err := a.o.Auth.ProveDecision(ctx, who.Principal, decision.LiftHold, req.seller)
	if err == nil {
		err = a.o.Payouts.LiftHold(ctx, decision.By{Admin: who.UserID, Note: req.note}, req.seller, req.until)
	}
	return reply[liftHoldJSON]{message: "The hold is lifted. The seller can request payouts again.", data: liftHoldJSON{req.seller}}, err
}
