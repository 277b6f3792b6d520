package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/inbox"
	"bursar/internal/payout"
	"bursar/internal/webhook"
)

const (
	inboxPath = adminHome + "/inbox"
	// tasksShown is how many tasks the inbox shows of each part.
	tasksShown = 30
)

// kindLabel is a kind in a word or two.
func kindLabel(k inbox.Kind) label {
	switch k {
	case inbox.Discrepancy:
		return label{"Discrepancy", bad}
	case inbox.Unmatched:
		return label{"Unmatched transfer", bad}
	case inbox.ManualReview:
		return label{"In review", bad}
	case inbox.NoGateway:
		return label{"No gateway", bad}
	case inbox.Late:
		return label{"Late", bad}
	case inbox.Difference:
		return label{"Difference", bad}
	case inbox.Account:
		return label{"Bank account", busy}
	case inbox.Endpoint:
		return label{"Webhook endpoint", bad}
	default:
		return label{"Unknown", busy}
	}
}

func inboxAddress(k inbox.Kind) string {
	return inboxPath + "?" + url.Values{"kind": {string(k)}}.Encode()
}

// task is one thing that waits for a person, as the inbox shows it.
type task struct {
	inbox.Task
	Path string
	// Evidence is what is known, in sentences.
	Evidence []string
	// Names are compared where the task is a bank account.
	Names *namePair
	// Mine says that the admin who looks is on it.
	Mine bool
}

// Label is its kind.
func (t task) Label() label { return kindLabel(t.Kind) }

// What says what it is.
func (t task) What() string {
	switch t.Kind {
	case inbox.Discrepancy:
		return "Payout with a discrepancy"
	case inbox.Unmatched:
		return "Unmatched transfer"
	case inbox.ManualReview:
		return "Payout in review"
	case inbox.NoGateway:
		return "Payout without a gateway"
	case inbox.Late:
		return "Late payout"
	case inbox.Difference:
		return "Difference from the gateway's statement"
	case inbox.Account:
		return "Bank account to compare"
	case inbox.Endpoint:
		return "Webhook endpoint"
	default:
		return "Payout with an unknown outcome"
	}
}

// Whose says whose it is, or "". An endpoint has its address there.
func (t task) Whose() string {
	switch {
	case t.Kind == inbox.Endpoint:
		return t.Endpoint.Where()
	case t.Kind == inbox.Difference && t.Seller == "":
		return ""
	}
	return cmp.Or(t.SellerName, t.Seller, "unknown seller")
}

// SinceWord says what happened then.
func (t task) SinceWord() string {
	switch t.Kind {
	case inbox.Unmatched, inbox.Difference:
		return "Found"
	case inbox.Account:
		return "Added"
	case inbox.Late:
		return "Should have arrived"
	case inbox.Discrepancy, inbox.NoGateway:
		return "Requested"
	case inbox.Endpoint:
		if t.Endpoint.Tampered {
			return "Added"
		}
		return "Stopped taking events"
	default:
		return "First sent"
	}
}

// MayAsk reports whether the gateway can be asked about it together with others.
func (t task) MayAsk() bool {
	return t.Kind == inbox.Late || t.Kind == inbox.ManualReview || t.Kind == inbox.Unknown
}

// ClaimPath is where it is claimed, and released.
func (t task) ClaimPath() string { return inboxPath + "/claim" }

// inboxView is what waits for a person.
type inboxView struct {
	Kind    inbox.Kind // "" for all
	Filters []filter
	// Tasks wait for a decision; Looked are still looked for by themselves.
	Tasks, Looked []task
	// Cut says that there are more than are shown.
	Cut bool
	// Ask asks the gateway about several payouts; nil where there are none.
	Ask *form
	// Asked is what came of that.
	Asked []askedRow
}

// adminInbox lists what waits for a person, the oldest first.
func (d *dashboard) adminInbox(ctx context.Context, v *pageRequest) (page, error) {
	in, err := d.inbox(ctx, v)
	return show("admin-inbox", "Inbox", in), err
}

func (d *dashboard) inbox(ctx context.Context, v *pageRequest) (*inboxView, error) {
	kind := inbox.Kind(v.query("kind"))
	if !slices.Contains(inbox.Kinds(), kind) {
		kind = ""
	}
	all, cut, err := d.o.Inbox.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	in := &inboxView{Kind: kind, Filters: inboxFilters(all, kind), Cut: cut}
	for _, t := range all {
		if kind != "" && t.Kind != kind {
			continue
		}
		list := &in.Tasks
		if t.Kind == inbox.Unknown {
			list = &in.Looked
		}
		if len(*list) == tasksShown {
			in.Cut = true
			continue
		}
		shown := d.taskOf(v, t)
		*list = append(*list, shown)
		if shown.MayAsk() && in.Ask == nil {
			in.Ask = &form{Action: inboxPath + "/ask", Fields: []field{noteField(false)}, Hidden: []hidden{{"kind", string(kind)}}}
		}
	}
	return in, nil
}

// taskOf adds to a task what the page says of it.
func (d *dashboard) taskOf(v *pageRequest, of inbox.Task) task {
	t := task{Task: of, Path: adminPayoutAddress(payout.ID(of.Subject)), Mine: of.Claim.Admin == v.who.UserID}
	switch of.Kind {
	case inbox.Discrepancy:
		t.Evidence = []string{"The gateway says: " + sentenceOf(of.Payout.Discrepancy)}
		if of.Payout.IsTampered() {
			t.Evidence = []string{"Tampered with: " + sentenceOf(of.Payout.Discrepancy)}
		}
	case inbox.ManualReview:
		t.Evidence = []string{"It was sent, and the gateway could not say what became of it."}
	case inbox.NoGateway:
		t.Evidence = []string{fmt.Sprintf("Its gateway, %s, is not configured, so nothing more is sent or asked. Configure it again, or cancel the payout where that is offered.", of.Payout.Gateway)}
	case inbox.Late:
		t.Evidence = []string{lateEvidence(*of.Payout)}
	case inbox.Unmatched:
		s := of.Transfer
		t.Path = unmatchedAddress(of.Subject)
		t.Evidence = []string{fmt.Sprintf("The gateway has transfer %s, which is %s, and the ledger has no payout for it: %s",
			of.Subject, wordsOr(progressWords, s.Transfer.Progress), sentenceOf(s.Why))}
	case inbox.Difference:
		t.Path = differenceAddress(of.Subject)
		t.Evidence = []string{of.Difference.Kind.Meaning(), of.Difference.Detail}
	case inbox.Account:
		t.Path, t.Names = accountAddress(of.Account.ID), compareNames(*of.Account)
		t.Evidence = []string{"The names are " + likenessWords(of.Account.NameScore) + "."}
		if of.Account.RegisteredName == "" {
			t.Evidence = []string{"The bank returned no name. " + sentenceOf(of.Account.Reason)}
		}
	case inbox.Endpoint:
		t.Path, t.Evidence = webhookAddress(of.Subject), []string{endpointEvidence(*of.Endpoint)}
	default:
		t.Evidence = []string{fmt.Sprintf("The answer is missing; checked %s so far.", times(of.Payout.Tries))}
	}
	for i := range t.Evidence {
		t.Evidence[i] = d.readable(t.Evidence[i], v.zone)
	}
	return t
}

var (
	plainAmount = regexp.MustCompile(`\b\d+(\.\d+)? [A-Z]{3}\b`)
	plainTime   = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// readable writes amounts and times in a text as the pages do: "1250.00 INR" as "₹1,250.00", and times in a zone.
func (d *dashboard) readable(text string, zone *time.Location) string {
	text = plainAmount.ReplaceAllStringFunc(text, func(s string) string {
		digits, isOurs := strings.CutSuffix(s, " "+d.o.Currency.Code())
		amount, err := d.o.Currency.Parse(digits)
		if !isOurs || err != nil {
			return s
		}
		return d.o.Currency.Display(amount)
	})
	return plainTime.ReplaceAllStringFunc(text, func(s string) string {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return s
		}
		return at.In(zone).Format(exactLayout)
	})
}

func endpointEvidence(e webhook.Endpoint) string {
	switch {
	case e.Tampered:
		return "It was changed outside Bursar, so nothing is delivered. Remove it and add it again."
	case e.Reason == webhook.Gone:
		return "It answered 410, so it was disabled, and events are no longer kept for it. Enable it, keep it disabled, or remove it."
	default:
		return "It took nothing for five days, so it was disabled, and events are no longer kept for it. Enable it once its server works, and replay what it missed."
	}
}

func lateEvidence(p payout.Payout) string {
	switch {
	case p.IsStopped():
		return "It waits because payouts are frozen for this seller or paused for all, or an unmatched transfer names the seller."
	case p.State == payout.Unknown:
		return fmt.Sprintf("The gateway's answer is missing; checked %s so far.", times(p.Tries))
	case p.State == payout.Waiting:
		return fmt.Sprintf("It is not sent yet; tried %s by now.", times(p.Tries))
	default:
		return "The gateway has it and has not said that the bank paid. Ask the gateway, with the payout's id as the reference."
	}
}

// adminClaim has an admin be on a task, or not any more.
func (d *dashboard) adminClaim(ctx context.Context, v *pageRequest) (page, error) {
	subject := v.form.Get("subject")
	var err error
	said := notice("claimed")
	if v.form.Get("release") != "" {
		said = "released"
		err = d.o.Inbox.Release(ctx, v.who.UserID, subject)
	} else {
		_, err = d.o.Inbox.Claim(ctx, v.who.UserID, subject)
	}
	switch {
	case errors.Is(err, inbox.ErrClaimed):
		said = "claimed-by-other"
	case errors.Is(err, inbox.ErrNotClaimed):
		said = "not-claimed"
	case errors.Is(err, inbox.ErrNoTask):
		said = "no-longer-fits"
	case err != nil:
		return page{}, err
	}
	return goTo(inboxOf(v)).saying(said), nil
}

// inboxOf is the part of the inbox that a form was sent from.
func inboxOf(v *pageRequest) string {
	if kind := inbox.Kind(v.form.Get("kind")); slices.Contains(inbox.Kinds(), kind) {
		return inboxAddress(kind)
	}
	return inboxPath
}

// askedRow is what came of asking the gateway about a payout.
type askedRow struct {
	ID     payout.ID
	Path   string
	Result string
}

// adminAsk asks the gateway about several payouts, each by a decision of its own.
func (d *dashboard) adminAsk(ctx context.Context, v *pageRequest) (page, error) {
	by, chosen := byOf(v), v.form["payout"]
	err := by.RequireNote()
	switch {
	case len(chosen) == 0:
		err = fault.Field("payouts", "must be chosen in the list")
	case len(chosen) > inbox.MaxAsked:
		err = fault.Field("payouts", fmt.Sprintf("must be at most %d", inbox.MaxAsked))
	}
	var asked []askedRow
	if err == nil {
		for _, given := range chosen {
			asked = append(asked, d.ask(ctx, by, given))
		}
	}
	in, showErr := d.inbox(ctx, v)
	if showErr != nil {
		return page{}, errors.Join(err, showErr)
	}
	in.Asked = asked
	p := show("admin-inbox", "Inbox", in)
	if err == nil {
		return p, nil
	}
	if in.Ask == nil {
		return goTo(inboxOf(v)).saying("no-longer-fits"), nil
	}
	return d.again(ctx, p, in.Ask.fill(v.form), err)
}

func (d *dashboard) ask(ctx context.Context, by decision.By, given string) askedRow {
	id, err := payout.ParseID(given)
	row := askedRow{ID: id, Path: adminPayoutAddress(id)}
	if err != nil {
		row.Result = errNoPayout.Message
		return row
	}
	p, err := d.o.Payouts.AskGateway(ctx, by, id)
	f := fault.From(err)
	switch {
	case err == nil:
		row.Result = "The payout is " + strings.ToLower(stateLabel(p).Word) + "."
	case f != nil:
		row.Result = f.Message
	case ctx.Err() != nil:
		row.Result = errTimeout.Message
	default:
		d.o.Logger.ErrorContext(ctx, "gateway not asked", "payout_id", string(id), "error", err)
		row.Result = errInternal.Message
	}
	return row
}

// inboxFilters leads to the kinds that there are.
func inboxFilters(all []inbox.Task, current inbox.Kind) []filter {
	counts := make(map[inbox.Kind]int)
	for _, t := range all {
		counts[t.Kind]++
	}
	filters := []filter{{"All", inboxPath, current == ""}}
	for _, k := range inbox.Kinds() {
		if counts[k] > 0 || k == current {
			filters = append(filters, filter{fmt.Sprintf("%s (%d)", kindLabel(k).Word, counts[k]), inboxAddress(k), k == current})
		}
	}
	return filters
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// sentenceOf ends a text as sentences end.
func sentenceOf(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
