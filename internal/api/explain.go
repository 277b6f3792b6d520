package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/payout"
)

type explainedJSON struct {
	Buckets  bucketsJSON   `json:"buckets"`
	Blockers []blockerJSON `json:"blockers"`
}

type bucketsJSON struct {
	Available json.Number     `json:"available"`
	Pending   []pendingJSON   `json:"pending"`
	InTransit []inTransitJSON `json:"inTransit"`
	Owed      json.Number     `json:"owed"`
}

type pendingJSON struct {
	Amount json.Number `json:"amount"`
	// ReleaseAt is null for what is released later than the listed days.
	ReleaseAt orNull `json:"releaseAt"`
}

type inTransitJSON struct {
	PayoutID         payout.ID   `json:"payoutId"`
	Amount           json.Number `json:"amount"`
	RequestedAt      string      `json:"requestedAt"`
	EstimatedArrival string      `json:"estimatedArrival"`
	Late             bool        `json:"late"`
}

type blockerJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Refusal is the code of the failure that a request ends with.
	Refusal string `json:"refusal"`
	Since   string `json:"since,omitempty"`
	Until   string `json:"until,omitempty"`
	Action  string `json:"action,omitempty"`
}

// errMoving asks for a repeat: sales were released between two reads.
var errMoving = fault.New(fault.Unavailable, "busy", "The balance changes at the moment. Try again.").After(time.Second)

const (
	explainTries = 5
	allReleases  = 1000 // more than there are days that are listed
)

func (a *api) explain(ctx context.Context, who caller, _ none) (reply[explainedJSON], error) {
	user, _, err := a.o.Auth.User(ctx, who.UserID)
	if err != nil {
		return reply[explainedJSON]{}, err
	}
	explained, err := a.explainedOf(ctx, user)
	return answer(explained, err)
}

type sellerExplainedJSON struct {
	sellerIDsJSON
	explainedJSON
}

func (a *api) explainSeller(ctx context.Context, _ caller, name sellerName) (reply[sellerExplainedJSON], error) {
	user, err := a.sellerNamed(ctx, name)
	if err != nil {
		return reply[sellerExplainedJSON]{}, err
	}
	explained, err := a.explainedOf(ctx, user)
	return answer(sellerExplainedJSON{sellerIDsOf(user), explained}, err)
}

func (a *api) explainedOf(ctx context.Context, user auth.User) (explainedJSON, error) {
	for try := 1; try <= explainTries; try++ {
		found, err := a.o.Payouts.Explain(ctx, user.ID)
		if err != nil {
			return explainedJSON{}, err
		}
		releases, err := a.o.Sales.Releases(ctx, user.ID, allReleases)
		if err != nil {
			return explainedJSON{}, err
		}
		blockers, err := a.blockersOf(ctx, user, found.Blockers)
		if err != nil {
			return explainedJSON{}, err
		}
		later := found.Pending
		e := explainedJSON{
			Buckets: bucketsJSON{
				Available: a.amount(found.Available), Owed: a.amount(found.Available + found.Pending + found.Balance.InTransit),
				Pending: []pendingJSON{}, InTransit: []inTransitJSON{},
			},
			Blockers: blockers,
		}
		for _, r := range releases {
			later -= r.Amount
			e.Buckets.Pending = append(e.Buckets.Pending, pendingJSON{a.amount(r.Amount), stampOrNull(r.Day)})
		}
		if later < 0 { // some were released, or more were recorded, since the balance was read
			continue
		}
		if later > money.Amount(0) {
			e.Buckets.Pending = append(e.Buckets.Pending, pendingJSON{Amount: a.amount(later)})
		}
		for _, p := range found.InTransit {
			e.Buckets.InTransit = append(e.Buckets.InTransit, inTransitJSON{p.ID, a.amount(p.Amount), stamp(p.RequestedAt), stamp(p.ArriveAt), p.IsLate(a.o.Now())})
		}
		return e, nil
	}
	return explainedJSON{}, errMoving
}

// blockersOf are those of the user and those of the money, in the order in which a request is refused.
func (a *api) blockersOf(ctx context.Context, user auth.User, list []payout.Blocker) ([]blockerJSON, error) {
	var ofUser []payout.Blocker
	if user.Suspended {
		since, err := a.o.Auth.SuspendedSince(ctx, user.ID)
		if err != nil {
			return nil, err
		}
		ofUser = append(ofUser, payout.SuspendedBlocker(since, auth.ErrSellerSuspended))
	}
	if refusal := a.o.Auth.CheckMayRequestPayout(auth.Principal{Verified: user.Verified}); refusal != nil {
		ofUser = append(ofUser, payout.MailBlocker(user.CreatedAt, refusal))
	}
	shown := []blockerJSON{}
	for _, b := range slices.Concat(ofUser, list) {
		one := blockerJSON{Code: b.Code, Message: b.Message, Refusal: fault.From(b.Refusal).Code, Action: b.Action}
		if b.Code == payout.BlockedNoAccount { // accounts are replaced, never removed
			b.Since = user.CreatedAt
		}
		if !b.Since.IsZero() {
			one.Since = stamp(b.Since)
		}
		if !b.Until.IsZero() {
			one.Until = stamp(b.Until)
		}
		shown = append(shown, one)
	}
	return shown, nil
}
