package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"bursar/internal/config"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/money"
	"bursar/internal/payout"
)

type payoutCmd struct {
	List payoutListCmd `cmd:"" help:"List payouts, the newest first."`
	Show payoutShowCmd `cmd:"" help:"Show one payout, with what happened to it and what admins decided."`
}

type payoutListCmd struct {
	Seller string `placeholder:"USER" help:"Only those of a seller, named by id or e-mail address, or ext: and the external id."`
	State  string `default:"any" enum:"any,late,discrepancy,waiting,submitting,unknown,submitted,manual_review,completed,failed,returned,cancelled" help:"Only those in a state, those that are late, or those with a discrepancy."`
	From   string `placeholder:"DAY" help:"Only those requested on this day or later, such as 2026-11-20."`
	To     string `placeholder:"DAY" help:"Only those requested on this day or earlier."`
	Limit  int    `default:"50" help:"How many to list at most, up to 5000."`
	JSON   bool   `help:"Print them as JSON."`
}

func (payoutListCmd) Help() string {
	return "Columns on a terminal, and elsewhere tab-separated: id, amount, status as the seller sees it, state, when it was requested, the bank's reference, the seller's id and name. " +
		"It works beside a running server.\n\n" +
		examples("bursar payout list", "bursar payout list --state late", "bursar payout list --seller asha@example.com --from 2026-11-01 --to 2026-11-30 --json")
}

const maxListed = 5000

// Run prints the payouts.
func (c payoutListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 1 || c.Limit > maxListed {
		return usageError{fmt.Errorf("--limit must be from 1 to %d", maxListed)}
	}
	cfg, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	sel := payout.Selection{Date: payout.DateRequested, Sort: payout.NewestFirst, Limit: c.Limit}
	switch c.State {
	case "any":
	case payout.LateState:
		sel.LateAt = time.Now()
	case payout.DiscrepancyState:
		sel.Discrepancy = true
	default:
		sel.State = payout.State(c.State)
	}
	if sel.From, err = dayFlag("from", c.From, 0, cfg.Zone); err != nil {
		return err
	}
	if sel.To, err = dayFlag("to", c.To, 1, cfg.Zone); err != nil {
		return err
	}
	if c.Seller != "" {
		users, err := datastore.Auth()
		if err != nil {
			return err
		}
		seller, err := users.FindUser(ctx, c.Seller)
		if err != nil {
			return err
		}
		sel.Seller = seller.ID
	}
	list, err := datastore.DB().SelectPayouts(ctx, sel)
	if err != nil {
		return err
	}
	if c.JSON {
		all := make([]payoutListed, len(list))
		for i, p := range list {
			all[i] = payoutListed{payoutAsJSON(p.Payout, cfg.Currency), p.SellerName}
		}
		return json.NewEncoder(e.out).Encode(all)
	}
	out := bufio.NewWriter(e.out)
	t := newTable(e.out, "ID", "AMOUNT", "STATUS", "STATE", "REQUESTED", "UTR", "SELLER", "NAME")
	if !isTerminal(e.out) {
		t.w = out
	}
	for _, p := range list {
		t.row(string(p.ID), cfg.Currency.FormatFixed(p.Amount), string(p.State.Status()), string(p.State), p.RequestedAt.UTC().Format(time.RFC3339), p.UTR, p.Seller, p.SellerName)
	}
	return errors.Join(t.Flush(), out.Flush())
}

// dayFlag reads the beginning of a day in a zone, or that of another day so many days later; zero for none.
func dayFlag(name, text string, later int, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	day, err := limits.Day(text, later, zone)
	if err != nil {
		return time.Time{}, usageError{fmt.Errorf("--%s must be a day such as 2026-11-20", name)}
	}
	return day, nil
}

// payoutJSON is a payout as commands print it. Texts and times are empty while they are not known.
type payoutJSON struct {
	ID              payout.ID     `json:"id"`
	SellerID        string        `json:"sellerId"`
	Amount          json.Number   `json:"amount"`
	Fee             json.Number   `json:"fee"`
	NetAmount       json.Number   `json:"netAmount"`
	Status          payout.Status `json:"status"`
	State           payout.State  `json:"state"`
	AccountHolder   string        `json:"accountHolder"`
	AccountNumber   string        `json:"accountNumber"`
	IFSC            string        `json:"ifsc"`
	RequestedAt     string        `json:"requestedAt"`
	ArriveAt        string        `json:"estimatedArrival"`
	CompletedAt     string        `json:"completedAt"`
	Gateway         string        `json:"gateway"`
	GatewayPayoutID string        `json:"gatewayPayoutId"`
	UTR             string        `json:"utr"`
	ReasonCode      string        `json:"reasonCode"`
	Reason          string        `json:"reason"`
	Discrepancy     string        `json:"discrepancy"`
}

type payoutListed struct {
	payoutJSON
	SellerName string `json:"sellerName"`
}

func payoutAsJSON(p payout.Payout, c money.Currency) payoutJSON {
	amount := func(a money.Amount) json.Number { return json.Number(c.Format(a)) }
	return payoutJSON{
		p.ID, p.Seller, amount(p.Amount), amount(p.Fee), amount(p.Net()), p.State.Status(), p.State,
		p.AccountHolder, "****" + p.AccountLast4, p.AccountIFSC, timeText(p.RequestedAt), timeText(p.ArriveAt), timeText(p.CompletedAt),
		string(p.Gateway), p.GatewayID, p.UTR, p.ReasonCode, p.Reason, p.Discrepancy,
	}
}

// timeText is a time as commands print it, or "".
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(millis)
}

type payoutShowCmd struct {
	ID   string `arg:"" help:"The payout's id."`
	JSON bool   `help:"Print the payout as JSON."`
}

func (payoutShowCmd) Help() string {
	return "It works beside a running server.\n\n" + examples("bursar payout show pyt_0VbYw0dwbhHp3QTDSE0ztuuB", "bursar payout show pyt_0VbYw0dwbhHp3QTDSE0ztuuB --json")
}

// Run prints the payout. Of one whose entries the service did not write, it prints what is there, and fails.
func (c payoutShowCmd) Run(ctx context.Context, e *env) error {
	id, err := payout.ParseID(c.ID)
	if err != nil {
		return fmt.Errorf("there is no payout %s; list payouts with: bursar payout list", printable(c.ID))
	}
	cfg, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	db := datastore.DB()
	p, err := db.Payout(ctx, id)
	if errors.Is(err, payout.ErrNotFound) {
		return fmt.Errorf("there is no payout %s; list payouts with: bursar payout list", id)
	}
	if err != nil {
		return err
	}
	entries, tampered := db.EntriesAbout(ctx, p.Seller, string(id))
	if tampered != nil && !errors.Is(tampered, ledger.ErrTampered) {
		return tampered
	}
	var events []payout.StateChange
	if tampered == nil {
		tampered = payout.CheckEntries(p, entries)
		if events, err = payout.StateChangesOf(id, entries); err != nil {
			return err
		}
	}
	decisions, err := db.Decisions(ctx, string(id), 20)
	if err != nil {
		return err
	}
	if err := c.print(e, cfg, p, events, decisions); err != nil {
		return err
	}
	if tampered != nil {
		return errors.New("this payout or its journal was changed outside Bursar, so what is shown may be wrong: run bursar audit")
	}
	return nil
}

func (c payoutShowCmd) print(e *env, cfg config.Config, p payout.Payout, events []payout.StateChange, decisions []decision.Decision) error {
	if c.JSON {
		return json.NewEncoder(e.out).Encode(payoutDetails(p, events, decisions, cfg.Currency))
	}
	t := newTable(e.out)
	shown := payoutAsJSON(p, cfg.Currency)
	for _, row := range [][2]string{
		{"Id", string(p.ID)},
		{"Seller", p.Seller},
		{"Amount", cfg.Currency.FormatFixed(p.Amount) + " " + cfg.Currency.Code()},
		{"Fee", cfg.Currency.FormatFixed(p.Fee) + " " + cfg.Currency.Code()},
		{"Status", string(shown.Status)},
		{"State", string(p.State)},
		{"Why", p.Reason},
		{"Discrepancy", p.Discrepancy},
		{"Paid to", shown.AccountHolder + " " + shown.AccountNumber + " " + shown.IFSC},
		{"Requested", shown.RequestedAt},
		{"Expected by", shown.ArriveAt},
		{"Completed", shown.CompletedAt},
		{"Gateway", shown.Gateway},
		{"Gateway's id", p.GatewayID},
		{"Bank's reference", p.UTR},
	} {
		t.row(row[0], row[1])
	}
	for _, ev := range events {
		t.row("Event", timeText(ev.At)+" "+string(ev.From)+" to "+string(ev.To))
	}
	for _, d := range decisions {
		t.row("Decision", timeText(d.At)+" "+string(d.Action)+" by "+ledger.DecidedBy(d)+": "+d.Note)
	}
	return t.Flush()
}

func payoutDetails(p payout.Payout, events []payout.StateChange, decisions []decision.Decision, c money.Currency) any {
	type event struct {
		At     string       `json:"at"`
		From   payout.State `json:"from"`
		To     payout.State `json:"to"`
		Reason string       `json:"reason"`
	}
	out := struct {
		payoutJSON
		Events    []event       `json:"events"`
		Decisions []decidedJSON `json:"decisions"`
	}{payoutAsJSON(p, c), []event{}, decisionsJSON(decisions)}
	for _, ev := range events {
		out.Events = append(out.Events, event{timeText(ev.At), ev.From, ev.To, ev.Reason})
	}
	return out
}
