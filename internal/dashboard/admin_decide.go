package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/payout"
)

// action is something that an admin may decide about a payout.
type action struct {
	Slug string
	// Title is what the button says. Does and DoesNot are what pressing it means.
	Title, Does, DoesNot string
	Danger               bool
	done                 notice
	decides              decision.Action
	// noteOptional says that it may be done without saying why.
	noteOptional bool
	// notices answer refusals that say that there is nothing left to decide.
	notices map[*fault.Error]notice
	// fields are what is asked beside the note, and hidden what the form carries along.
	fields func(payout.Payout) []field
	hidden func(payout.Payout) []hidden
	do     func(context.Context, *dashboard, *pageRequest, decision.By, payout.Payout) error
}

// actions lists what may be decided.
var actions = []action{
	{
		Slug: "ask", Title: "Ask the gateway now", done: "asked", noteOptional: true, decides: decision.AskGateway,
		notices: map[*fault.Error]notice{payout.ErrNoTransfer: "asked-none"},
		Does:    "Looks the transfer up at the gateway now and applies the answer. Bursar also does this by itself.",
		DoesNot: "It sends nothing and never makes a second transfer.",
		do: func(ctx context.Context, d *dashboard, _ *pageRequest, by decision.By, p payout.Payout) error {
			_, err := d.o.Payouts.AskGateway(ctx, by, p.ID)
			return err
		},
	},
	{
		Slug: "review", Title: "Send to review", done: "in-review", decides: decision.ReviewPayout,
		Does:    "Stops sending the order again. An admin decides what happens next.",
		DoesNot: "It does not cancel the transfer: if the gateway has the transfer, the seller may still be paid. The amount stays in transit.",
		do: func(ctx context.Context, d *dashboard, _ *pageRequest, by decision.By, p payout.Payout) error {
			_, err := d.o.Payouts.SendToReview(ctx, by, p.ID)
			return err
		},
	},
	{
		Slug: "match", Title: "Match a transfer", done: "matched", decides: decision.MatchTransfer,
		Does:    "Matches this payout with a transfer that you found at the gateway. The gateway has to confirm its amount and our reference.",
		DoesNot: "It moves no money by itself: what the gateway says of the transfer decides.",
		fields: func(payout.Payout) []field {
			return []field{{
				Name: "gatewayId", Label: "The gateway's id of the transfer", Type: "text", Autocomplete: "off", Max: 64,
				Hint: "As the gateway's own dashboard shows it.",
			}}
		},
		do: func(ctx context.Context, d *dashboard, v *pageRequest, by decision.By, p payout.Payout) error {
			gatewayID := strings.TrimSpace(v.form.Get("gatewayId"))
			if gatewayID == "" {
				return fault.Field("gatewayId", "is required: search the gateway's dashboard for "+string(p.ID))
			}
			_, err := d.o.Payouts.MatchTransfer(ctx, by, p.ID, gatewayID)
			return err
		},
	},
	{
		Slug: "resolve", Title: "Mark as resolved", done: "discrepancy-resolved", decides: decision.ResolveDiscrepancy,
		Does:    "Removes the discrepancy from this payout, once you have settled it with the seller and the gateway.",
		DoesNot: "It moves no money and changes no state, and payouts that it froze stay frozen until you resume them. If the gateway says it again, it is written down again.",
		hidden:  func(p payout.Payout) []hidden { return []hidden{{"seen", p.Discrepancy}} },
		do: func(ctx context.Context, d *dashboard, v *pageRequest, by decision.By, p payout.Payout) error {
			return d.o.Payouts.ResolveDiscrepancy(ctx, by, p.ID, plainLines(v.form.Get("seen")))
		},
	},
	{
		Slug: "cancel", Title: "Cancel payout", done: "payout-cancelled", Danger: true, noteOptional: true, decides: decision.CancelPayout,
		Does:    "Cancels the payout and returns the whole amount to the seller's balance.",
		DoesNot: "It takes back nothing that was paid: if the gateway does not let go of it any more, nothing changes.",
		do: func(ctx context.Context, d *dashboard, v *pageRequest, by decision.By, p payout.Payout) error {
			if err := by.CheckNote(); err != nil {
				return err
			}
			caller := v.caller()
			caller.Note = by.Note
			_, _, err := d.o.Payouts.Cancel(ctx, caller, p.ID, "")
			return err
		},
	},
	{
		Slug: refundSlug, Title: "Refund to balance", done: "refunded", Danger: true, decides: decision.RefundPayout,
		Does:    "Asks the gateway once more, and only if it knows no such transfer, ends the payout as failed and returns the whole amount to the seller's balance.",
		DoesNot: "It can't be undone. If the transfer was made after all, the seller has the money twice, and the loss is yours.",
		fields: func(p payout.Payout) []field {
			return []field{{
				Name: "looked", Label: "What you have seen", Type: "choice",
				Choices: []choice{{"yes", "The gateway has no such transfer", "I searched the gateway's own dashboard for " + string(p.ID) + " and for the amount, and there is none."}},
			}}
		},
		do: func(ctx context.Context, d *dashboard, v *pageRequest, by decision.By, p payout.Payout) error {
			if v.form.Get("looked") != "yes" {
				return fault.Field("looked", "must be that there is none: look at the gateway's own dashboard first")
			}
			_, err := d.o.Payouts.RefundToBalance(ctx, by, p.ID)
			return err
		},
	},
}

// refundSlug names the refund, whose button says the amount.
const refundSlug = "refund"

// actionsFor lists what may be decided about a payout as it is now.
func (d *dashboard) actionsFor(ctx context.Context, p payout.Payout) ([]actionRow, error) {
	options, err := d.o.Payouts.Options(ctx, p)
	if err != nil {
		return nil, err
	}
	var rows []actionRow
	for _, option := range options {
		i := slices.IndexFunc(actions, func(a action) bool { return a.decides == option.Action })
		if i >= 0 {
			rows = append(rows, actionRow{action: actions[i], Path: adminPayoutAddress(p.ID) + "/" + actions[i].Slug, From: option.From})
		}
	}
	return rows, nil
}

// AtOnce says that a press of the button is enough: nothing is asked and nothing can go wrong.
func (a actionRow) AtOnce() bool { return a.noteOptional && !a.Danger }

// form asks for what a decision needs.
func (a actionRow) form(p payout.Payout) *form {
	f := &form{Action: a.Path, Submit: a.Title}
	if a.action.fields != nil {
		f.Fields = a.action.fields(p)
	}
	if a.hidden != nil {
		f.Hidden = a.hidden(p)
	}
	f.Fields = append(f.Fields, noteField(a.noteOptional))
	return f
}

// noteField asks why.
func noteField(optional bool) field {
	return field{
		Name: "note", Label: "Note", Type: "textarea", Optional: optional, Max: 1000,
		Hint: "What you saw and where. It is stored permanently with your name; the seller does not see it.",
	}
}

// byOf is who decides, and why.
func byOf(v *pageRequest) decision.By {
	return decision.By{Admin: v.who.UserID, Note: strings.TrimSpace(plainLines(v.form.Get("note")))}
}

// plainLines is a text as it was typed; browsers send lines with a carriage return.
func plainLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// decideView is the page on which a decision is made.
type decideView struct {
	Payout payoutRow
	Action actionRow
	Form   *form
}

// Meaning says what the payout's state means.
func (d decideView) Meaning() string { return meaningOf(d.Payout.Payout) }

// actionOf finds the payout and the decision that the address names. Where the decision does not fit the
// payout any more, the answer leads back to it.
func (d *dashboard) actionOf(ctx context.Context, v *pageRequest) (p payout.Payout, a actionRow, back page, err error) {
	if p, err = d.payoutOf(ctx, v); err != nil {
		return p, a, back, err
	}
	slug := v.r.PathValue("decision")
	if !slices.ContainsFunc(actions, func(a action) bool { return a.Slug == slug }) {
		return p, a, back, errNoPage
	}
	fitting, err := d.actionsFor(ctx, p)
	if err != nil {
		return p, a, back, err
	}
	i := slices.IndexFunc(fitting, func(a actionRow) bool { return a.Slug == slug })
	if i < 0 {
		return p, a, goTo(adminPayoutAddress(p.ID)).saying("no-longer-fits"), nil
	}
	return p, fitting[i], back, nil
}

func (d *dashboard) decisionPage(ctx context.Context, v *pageRequest, p payout.Payout, a actionRow, f *form) (page, error) {
	if a.decides.Guarded() {
		if err := d.askForCode(ctx, v, f); err != nil {
			return page{}, err
		}
	}
	rows, err := d.payoutRows(ctx, []payout.Payout{p})
	if err != nil {
		return page{}, err
	}
	if a.Slug == refundSlug {
		f.Submit = "Refund " + d.o.Currency.Display(p.Amount)
	}
	return show("admin-decide", a.Title, &decideView{Payout: rows[0], Action: a, Form: f}), nil
}

// adminDecision shows the evidence, and asks for what a decision needs.
func (d *dashboard) adminDecision(ctx context.Context, v *pageRequest) (page, error) {
	p, a, back, err := d.actionOf(ctx, v)
	if err != nil || back.to != "" {
		return back, err
	}
	return d.decisionPage(ctx, v, p, a, a.form(p))
}

// adminDecide carries a decision out.
func (d *dashboard) adminDecide(ctx context.Context, v *pageRequest) (page, error) {
	p, a, back, err := d.actionOf(ctx, v)
	if err != nil || back.to != "" {
		return back, err
	}
	by := byOf(v)
	if !a.noteOptional {
		err = by.RequireNote()
	}
	if err == nil && a.decides.Guarded() {
		err = d.proveDecision(ctx, v, a.decides, string(p.ID))
	}
	if err == nil {
		err = a.do(ctx, d, v, by, p)
	}
	if err == nil {
		return goTo(adminPayoutAddress(p.ID)).saying(a.done), nil
	}
	for refusal, answer := range a.notices {
		if errors.Is(err, refusal) {
			return goTo(adminPayoutAddress(p.ID)).saying(answer), nil
		}
	}
	f := a.form(p).fill(v.form)
	again, showErr := d.decisionPage(ctx, v, p, a, f)
	if showErr != nil {
		return page{}, showErr
	}
	return d.again(ctx, again, f, err)
}
