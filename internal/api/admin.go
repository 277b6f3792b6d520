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

// decidesAs is who decides: the marketplace's server, whose scope is enough, or an admin, who proves a guarded decision.
func (a *api) decidesAs(ctx context.Context, who caller, action decision.Action, subject, note string) (decision.By, error) {
	if who.service.ID != "" {
		return decision.By{Key: who.service.ID, Note: note}, nil
	}
	by := decision.By{Admin: who.UserID, Note: note}
	if !action.Guarded() {
		return by, nil
	}
	return by, a.o.Auth.ProveDecision(ctx, who.Principal, action, subject)
}

// decide has a decision carried out by who may make it.
func (a *api) decide(
	ctx context.Context, who caller, action decision.Action, subject, note string, do func(ctx context.Context, by decision.By, subject string) error,
) error {
	by, err := a.decidesAs(ctx, who, action, subject, note)
	if err != nil {
		return err
	}
	return do(ctx, by, subject)
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
	err := a.decide(ctx, who, decision.ChangeAccess, req.user, req.note, func(ctx context.Context, by decision.By, user string) error {
		return a.o.Auth.SetAccess(ctx, by, user, req.role, req.suspended)
	})
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
	err := a.decide(ctx, who, decision.LiftHold, req.seller, req.note, func(ctx context.Context, by decision.By, seller string) error {
		return a.o.Payouts.LiftHold(ctx, by, seller, req.until)
	})
	return reply[liftHoldJSON]{message: "The hold is lifted. The seller can request payouts again.", data: liftHoldJSON{req.seller}}, err
}
