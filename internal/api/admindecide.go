package api

import (
	"context"
	"encoding/json"
	"errors"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// shownDecisions bounds how many of what was decided about one thing is listed with it.
const shownDecisions = 20

type adminPayoutJSON struct {
	selectedPayoutJSON
	// GatewayProgress is what the gateway said last.
	GatewayProgress orNull             `json:"gatewayProgress"`
	Events          []eventJSON        `json:"events"`
	Entries         []entryJSON        `json:"entries"`
	Tampered        bool               `json:"tampered"`
	Decisions       []decisionJSON     `json:"decisions"`
	Options         []payoutOptionJSON `json:"options"`
}

// payoutOptionJSON is a decision that can be made.
type payoutOptionJSON struct {
	Action decision.Action `json:"action"`
	From   orNull          `json:"from"`
}

// entryJSON is an entry of a seller's journal as admins see it, without its data, which may name people.
type entryJSON struct {
	Number  int64       `json:"number"`
	At      string      `json:"at"`
	Type    ledger.Type `json:"type"`
	Subject string      `json:"subject"`
	Actor   string      `json:"actor"`
	Moved   movedJSON   `json:"moved"`
	After   totalsAfter `json:"after"`
}

// movedJSON is by how much an entry changes each account.
type movedJSON struct {
	Pending   json.Number `json:"pending"`
	Available json.Number `json:"available"`
	InTransit json.Number `json:"inTransit"`
	Sales     json.Number `json:"sales"`
	Gateway   json.Number `json:"gateway"`
	Fees      json.Number `json:"fees"`
}

// totalsAfter is what a seller has.
type totalsAfter struct {
	Available json.Number `json:"available"`
	Pending   json.Number `json:"pending"`
	InTransit json.Number `json:"inTransit"`
}

func (a *api) totalsOf(b ledger.Balance) totalsAfter {
	return totalsAfter{a.amount(b.Available), a.amount(b.Pending), a.amount(b.InTransit)}
}

func (a *api) entryOf(e ledger.Entry) entryJSON {
	m := e.Moved
	return entryJSON{
		e.Number, stamp(e.At), e.Type, e.Subject, e.Actor,
		movedJSON{a.amount(m.Pending), a.amount(m.Available), a.amount(m.InTransit), a.amount(m.Sales), a.amount(m.Gateway), a.amount(m.Fees)},
		a.totalsOf(e.After),
	}
}

func (a *api) adminPayout(ctx context.Context, who caller, req payoutIDRequest) (reply[adminPayoutJSON], error) {
	p, err := a.o.Payouts.Payout(ctx, who.onPayouts(), req.id)
	if err != nil {
		return reply[adminPayoutJSON]{}, err
	}
	data, err := a.adminPayoutOf(ctx, who, p)
	return answer(data, err)
}

// adminPayoutOf is all that is known of a payout. A history that was changed outside the service is shown all the same.
func (a *api) adminPayoutOf(ctx context.Context, who caller, p payout.Payout) (data adminPayoutJSON, err error) {
	names, err := a.o.Decisions.UserNames(ctx, []string{p.Seller})
	if err != nil {
		return data, err
	}
	data = adminPayoutJSON{
		selectedPayoutJSON: a.selectedPayout(payout.Selected{Payout: p, SellerName: names[p.Seller]}), GatewayProgress: orNull(p.Progress),
		Entries: []entryJSON{},
	}
	events, err := a.o.Payouts.Events(ctx, who.onPayouts(), p.ID)
	if err != nil {
		return data, err
	}
	data.Events = timelineOf(events)
	entries, err := a.o.Events.EntriesAbout(ctx, p.Seller, string(p.ID))
	if data.Tampered = errors.Is(err, ledger.ErrTampered); err != nil && !data.Tampered {
		return data, err
	}
	for _, e := range entries {
		if e.Type != ledger.AdminDecided { // they have a list of their own
			data.Entries = append(data.Entries, a.entryOf(e))
		}
	}
	if data.Decisions, err = a.decisionsOf(ctx, string(p.ID), shownDecisions); err != nil {
		return data, err
	}
	options, err := a.o.Payouts.Options(ctx, p)
	data.Options = mapped(options, func(o payout.Option) payoutOptionJSON { return payoutOptionJSON{o.Action, stampOrNull(o.From)} })
	return data, err
}

// decideRequest is an admin's decision about a payout, with why.
type decideRequest struct {
	id   payout.ID
	note string
}

func (req *decideRequest) read(in *input) {
	req.id = in.payoutID()
	req.note = in.text("note", checkReason)
}

// askPayoutRequest needs no reason: asking changes nothing by itself.
type askPayoutRequest struct{ decideRequest }

func (req *askPayoutRequest) read(in *input) {
	req.id = in.payoutID()
	req.note = in.optionalText("note", checkProse(decision.MaxNote))
}

type decidedPayoutJSON struct {
	PayoutID payout.ID     `json:"payoutId"`
	Status   payout.Status `json:"status"`
	State    payout.State  `json:"state"`
}

// decidePayout carries out a decision about a payout, and tells how the payout is then.
func (a *api) decidePayout(
	ctx context.Context, who caller, action decision.Action, req decideRequest, message string, do func(context.Context, decision.By, payout.ID) (payout.Payout, error),
) (reply[decidedPayoutJSON], error) {
	by, err := a.decidesAs(ctx, who, action, string(req.id), req.note)
	if err != nil {
		return reply[decidedPayoutJSON]{}, err
	}
	p, err := do(ctx, by, req.id)
	return reply[decidedPayoutJSON]{message: message, data: decidedPayoutJSON{p.ID, p.Status(), p.State}}, err
}

func (a *api) askAboutPayout(ctx context.Context, who caller, req askPayoutRequest) (reply[decidedPayoutJSON], error) {
	return a.decidePayout(ctx, who, decision.AskGateway, req.decideRequest, "The gateway was asked, and its answer was applied.", a.o.Payouts.AskGateway)
}

func (a *api) reviewPayout(ctx context.Context, who caller, req decideRequest) (reply[decidedPayoutJSON], error) {
	return a.decidePayout(ctx, who, decision.ReviewPayout, req, "The payout is in review. It is not sent again.", a.o.Payouts.SendToReview)
}

type matchRequest struct {
	decideRequest
	gatewayID string
}

func (req *matchRequest) read(in *input) {
	req.decideRequest.read(in)
	req.gatewayID = in.text("gatewayId", limits.Reference)
}

func (a *api) matchTransfer(ctx context.Context, who caller, req matchRequest) (reply[decidedPayoutJSON], error) {
	const message = "The gateway confirmed the transfer, and the payout goes on from there."
	return a.decidePayout(ctx, who, decision.MatchTransfer, req.decideRequest, message, func(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error) {
		return a.o.Payouts.MatchTransfer(ctx, by, id, req.gatewayID)
	})
}

type resolveDiscrepancyRequest struct {
	decideRequest
	seen string
}

// maxSeen is more than any discrepancy says.
const maxSeen = 4000

func (req *resolveDiscrepancyRequest) read(in *input) {
	req.decideRequest.read(in)
	req.seen = in.text("discrepancy", checkProse(maxSeen))
}

func (a *api) resolveDiscrepancy(ctx context.Context, who caller, req resolveDiscrepancyRequest) (reply[decidedPayoutJSON], error) {
	const message = "The discrepancy is resolved. Payouts that it froze stay frozen until you unfreeze them. If the gateway reports it again, it is recorded again."
	return a.decidePayout(ctx, who, decision.ResolveDiscrepancy, req.decideRequest, message, func(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error) {
		if err := a.o.Payouts.ResolveDiscrepancy(ctx, by, id, req.seen); err != nil {
			return payout.Payout{}, err
		}
		return a.o.Payouts.Payout(ctx, who.onPayouts(), id)
	})
}

// refundPayoutRequest is a refund by an admin who has looked into the gateway's own records.
type refundPayoutRequest struct{ decideRequest }

func (req *refundPayoutRequest) read(in *input) {
	req.decideRequest.read(in)
	if given := in.required("noTransferAtGateway"); given != nil && !in.flag("noTransferAtGateway") {
		in.noteInvalid("noTransferAtGateway", "must be true: look for the transfer in the gateway's own dashboard first")
	}
}

func (a *api) refundPayout(ctx context.Context, who caller, req refundPayoutRequest) (reply[decidedPayoutJSON], error) {
	return a.decidePayout(ctx, who, decision.RefundPayout, req.decideRequest, "The payout has failed, and its amount is back in the seller's balance.", a.o.Payouts.RefundToBalance)
}

type unmatchedJSON struct {
	ID         string       `json:"id"`
	Gateway    string       `json:"gateway"`
	GatewayID  string       `json:"gatewayPayoutId"`
	Reference  string       `json:"reference"`
	Amount     *json.Number `json:"amount"`
	Currency   orNull       `json:"currency"`
	SellerID   orNull       `json:"sellerId"`
	SellerName orNull       `json:"sellerName"`
	Progress   string       `json:"progress"`
	UTR        orNull       `json:"utr"`
	Why        string       `json:"why"`
	MadeAt     orNull       `json:"madeAt"`
	FoundAt    string       `json:"foundAt"`
}

func (a *api) unmatchedOf(u payout.UnmatchedTransfer, names map[string]string) unmatchedJSON {
	t := u.Transfer
	return unmatchedJSON{
		ID: u.ID(), Gateway: string(u.Gateway), GatewayID: t.GatewayID, Reference: t.Reference, Amount: a.amountOrNull(t.Amount), Currency: orNull(t.Currency), SellerID: orNull(t.Order.Seller),
		SellerName: orNull(names[t.Order.Seller]), Progress: string(t.Progress), UTR: orNull(t.UTR), Why: u.Why, MadeAt: stampOrNull(t.MadeAt), FoundAt: stamp(u.FoundAt),
	}
}

// amountOrNull is an amount that is null while not known.
func (a *api) amountOrNull(m money.Amount) *json.Number {
	if m == 0 {
		return nil
	}
	n := a.amount(m)
	return &n
}

type unmatchedListJSON struct {
	Transfers []unmatchedJSON `json:"transfers"`
}

func (a *api) unmatchedTransfers(ctx context.Context, _ caller, _ none) (reply[unmatchedListJSON], error) {
	open, err := a.o.Payouts.UnmatchedTransfers(ctx)
	if err != nil {
		return reply[unmatchedListJSON]{}, err
	}
	names, err := a.o.Decisions.UserNames(ctx, mapped(open, func(u payout.UnmatchedTransfer) string { return u.Transfer.Order.Seller }))
	return answer(unmatchedListJSON{mapped(open, func(u payout.UnmatchedTransfer) unmatchedJSON { return a.unmatchedOf(u, names) })}, err)
}

type unmatchedRequest struct{ id string }

func (req *unmatchedRequest) read(in *input) {
	req.id = in.r.PathValue("id")
	if limits.Reference(req.id) != "" {
		in.refuse(payout.ErrUnmatchedTransferResolved)
	}
}

func (a *api) unmatchedTransfer(ctx context.Context, _ caller, req unmatchedRequest) (reply[unmatchedJSON], error) {
	u, err := a.o.Payouts.UnmatchedTransfer(ctx, req.id)
	if err != nil {
		return reply[unmatchedJSON]{}, err
	}
	names, err := a.o.Decisions.UserNames(ctx, []string{u.Transfer.Order.Seller})
	return answer(a.unmatchedOf(u, names), err)
}

type resolveUnmatchedRequest struct {
	unmatchedRequest
	note string
}

func (req *resolveUnmatchedRequest) read(in *input) {
	req.unmatchedRequest.read(in)
	req.note = in.text("note", checkReason)
}

type resolvedUnmatchedJSON struct {
	ID string `json:"id"`
}

func (a *api) resolveUnmatched(ctx context.Context, who caller, req resolveUnmatchedRequest) (reply[resolvedUnmatchedJSON], error) {
	err := a.decide(ctx, who, decision.ResolveUnmatchedTransfer, req.id, req.note, a.o.Payouts.ResolveUnmatchedTransfer)
	return reply[resolvedUnmatchedJSON]{message: "The transfer is resolved. No money was moved.", data: resolvedUnmatchedJSON{req.id}}, err
}
