package api

import (
	"context"
	"strings"

	"bursar/internal/decision"
)

// checkReason returns what is wrong with the reason of a decision.
func checkReason(s string) string {
	if strings.TrimSpace(s) == "" {
		return "must say why: what you saw, and where"
	}
	return checkProse(decision.MaxNote)(s)
}

type freezeRequest struct {
	seller string
	reason string
}

func (req *freezeRequest) read(in *input) {
	req.seller = in.sellerID()
	req.reason = in.text("reason", checkReason)
}

type freezeJSON struct {
	SellerID string `json:"sellerId"`
	Frozen   bool   `json:"frozen"`
}

func (a *api) freeze(ctx context.Context, who caller, req freezeRequest) (reply[freezeJSON], error) {
	err := a.decide(ctx, who, decision.FreezePayouts, req.seller, req.reason, a.o.Payouts.Freeze)
	return reply[freezeJSON]{
		message: "The seller's payouts are frozen. None can be requested, and none that waits is sent.", data: freezeJSON{req.seller, true},
	}, err
}

func (a *api) unfreeze(ctx context.Context, who caller, req freezeRequest) (reply[freezeJSON], error) {
	err := a.decide(ctx, who, decision.UnfreezePayouts, req.seller, req.reason, a.o.Payouts.Unfreeze)
	return reply[freezeJSON]{message: "The seller's payouts are resumed. Those that waited are sent.", data: freezeJSON{req.seller, false}}, err
}

type pauseRequest struct{ reason string }

func (req *pauseRequest) read(in *input) { req.reason = in.text("reason", checkReason) }

// ofAll is a decision about everyone's payouts.
func ofAll(do func(context.Context, decision.By) error) func(context.Context, decision.By, string) error {
	return func(ctx context.Context, by decision.By, _ string) error { return do(ctx, by) }
}

type pauseJSON struct {
	Paused bool `json:"paused"`
}

func (a *api) pause(ctx context.Context, who caller, req pauseRequest) (reply[*pauseJSON], error) {
	err := a.decide(ctx, who, decision.PausePayouts, decision.Platform, req.reason, ofAll(a.o.Payouts.Pause))
	return reply[*pauseJSON]{message: "All payouts are paused. None can be requested, and none that waits is sent.", data: &pauseJSON{true}}, err
}

type pauseStateJSON struct {
	Paused bool   `json:"paused"`
	Since  orNull `json:"since"`
	By     orNull `json:"by"`
	Reason orNull `json:"reason"`
}

// pauseState tells admins whether payouts are paused, and by which decision.
func (a *api) pauseState(ctx context.Context, _ caller, _ none) (reply[*pauseStateJSON], error) {
	p, err := a.o.Payouts.PauseState(ctx)
	return answer(&pauseStateJSON{p.Paused, stampOrNull(p.Since), orNull(p.By), orNull(p.Reason)}, err)
}

func (a *api) resume(ctx context.Context, who caller, req pauseRequest) (reply[*pauseJSON], error) {
	err := a.decide(ctx, who, decision.ResumePayouts, decision.Platform, req.reason, ofAll(a.o.Payouts.Resume))
	return reply[*pauseJSON]{message: "Payouts are resumed. Those that waited are sent.", data: &pauseJSON{false}}, err
}
