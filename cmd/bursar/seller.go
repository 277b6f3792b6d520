package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/config"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

type sellerCmd struct {
	Show sellerShowCmd `cmd:"" help:"Show a seller's balance, bank account, holds, corrections and the team's notes."`
}

type sellerShowCmd struct {
	Seller string `arg:"" help:"The seller's id or e-mail address, or ext: and the external id."`
	JSON   bool   `help:"Print the seller as JSON."`
}

func (sellerShowCmd) Help() string {
	return "It works beside a running server. How the seller signs in is in \"bursar user show\", and the payouts are in \"bursar payout list --seller\".\n\n" +
		examples("bursar seller show asha@example.com", "bursar seller show usr_0VbYw0dwbhHp3QTDSE0ztuuB --json", "bursar seller show ext:4711")
}

// soldBy is what commands show of a seller.
type soldBy struct {
	user        auth.User
	balance     ledger.Balance
	account     bank.Account // its id is empty where there is none
	adjustments []sale.Adjustment
	notes       []auth.Note
}

// newestShown is how many corrections and notes of a seller are shown.
const newestShown = 10

// Run prints the seller.
func (c sellerShowCmd) Run(ctx context.Context, e *env) error {
	cfg, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	s, err := readSeller(ctx, datastore, c.Seller)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.out).Encode(s.asJSON(cfg.Currency))
	}
	return s.print(e, cfg)
}

func readSeller(ctx context.Context, datastore *app.Datastore, named string) (s soldBy, err error) {
	users, err := datastore.Auth()
	if err != nil {
		return s, err
	}
	if s.user, err = users.FindUser(ctx, named); err != nil {
		return s, err
	}
	db := datastore.DB()
	if s.balance, err = db.Balance(ctx, s.user.ID); err != nil {
		return s, journalError(err)
	}
	if s.account, err = db.BankAccount(ctx, s.user.ID); err != nil && !errors.Is(err, bank.ErrNone) {
		return s, err
	}
	entries, err := db.AdjustmentEntries(ctx, s.user.ID, 0, newestShown)
	if err != nil {
		return s, journalError(err)
	}
	for _, entry := range entries {
		a, err := sale.AdjustmentOf(entry)
		if err != nil {
			return s, err
		}
		s.adjustments = append(s.adjustments, a)
	}
	s.notes, err = users.Notes(ctx, s.user.ID)
	s.notes = s.notes[:min(len(s.notes), newestShown)]
	return s, err
}

// journalError tells an operator what to do where the seller's journal or balance can't be believed.
func journalError(err error) error {
	if errors.Is(err, ledger.ErrTampered) {
		return errors.New("the journal or the balance of this seller was changed outside Bursar: run bursar audit")
	}
	return err
}

func (s soldBy) print(e *env, cfg config.Config) error {
	amount := func(a money.Amount) string { return cfg.Currency.FormatFixed(a) + " " + cfg.Currency.Code() }
	account := "none"
	if s.account.ID != "" {
		account = fmt.Sprintf("%s %s %s, %s", s.account.Holder, s.account.Masked(), s.account.IFSC, s.account.Status)
	}
	hold := "no"
	if until := s.balance.Hold(time.Now()); !until.IsZero() {
		hold = "until " + timeText(until)
	}
	counts := s.balance.Counts
	t := newTable(e.out)
	for _, row := range [][2]string{
		{"Id", s.user.ID},
		{"External id", s.user.ExternalID},
		{"Name", s.user.Name},
		{"E-mail", s.user.Email},
		{"Role", string(s.user.Role)},
		{"Suspended", yesNo(s.user.Suspended)},
		{"Available", amount(s.balance.Available)},
		{"Pending", amount(s.balance.Pending)},
		{"In transit", amount(s.balance.InTransit)},
		{"Earned", amount(s.balance.Earned)},
		{"Withdrawn", amount(s.balance.Withdrawn)},
		{"Bank account", account},
		{"Payouts frozen", yesNo(s.balance.Frozen)},
		{"Payouts on hold", hold},
		{"Payouts", fmt.Sprintf("%d processing, %d completed, %d failed, %d cancelled", counts.Processing, counts.Completed, counts.Failed, counts.Cancelled)},
	} {
		t.row(row[0], row[1])
	}
	for _, a := range s.adjustments {
		t.row("Correction", fmt.Sprintf("%s %s (%s): %s", timeText(a.At), amount(a.Amount), a.ID, a.Reason))
	}
	for _, n := range s.notes {
		t.row("Note", timeText(n.At)+" by admin:"+n.Admin+": "+n.Text)
	}
	return t.Flush()
}

func (s soldBy) asJSON(c money.Currency) any {
	type balance struct {
		Available json.Number `json:"available"`
		Pending   json.Number `json:"pending"`
		InTransit json.Number `json:"inTransit"`
		Earned    json.Number `json:"earned"`
		Withdrawn json.Number `json:"withdrawn"`
		Currency  string      `json:"currency"`
	}
	type account struct {
		ID            bank.ID     `json:"id"`
		AccountHolder string      `json:"accountHolder"`
		AccountNumber string      `json:"accountNumber"`
		IFSC          bank.IFSC   `json:"ifsc"`
		Status        bank.Status `json:"status"`
	}
	type correction struct {
		AdjustmentID string      `json:"adjustmentId"`
		Amount       json.Number `json:"amount"`
		Reason       string      `json:"reason"`
		Note         string      `json:"note"`
		By           string      `json:"by"`
		At           string      `json:"at"`
	}
	type note struct {
		Note string `json:"note"`
		By   string `json:"by"`
		At   string `json:"at"`
	}
	amount := func(a money.Amount) json.Number { return json.Number(c.Format(a)) }
	b := s.balance
	out := struct {
		userJSON
		Balance     balance          `json:"balance"`
		BankAccount *account         `json:"bankAccount"`
		Frozen      bool             `json:"payoutsFrozen"`
		HoldUntil   string           `json:"payoutsOnHoldUntil"`
		Payouts     map[string]int64 `json:"payouts"`
		Corrections []correction     `json:"corrections"`
		Notes       []note           `json:"notes"`
	}{
		userJSON: asJSON(s.user),
		Balance:  balance{amount(b.Available), amount(b.Pending), amount(b.InTransit), amount(b.Earned), amount(b.Withdrawn), c.Code()},
		Frozen:   b.Frozen, HoldUntil: timeText(b.Hold(time.Now())),
		Payouts: map[string]int64{
			"processing": b.Counts.Processing, "completed": b.Counts.Completed, "failed": b.Counts.Failed, "cancelled": b.Counts.Cancelled,
		},
		Corrections: []correction{}, Notes: []note{},
	}
	if s.account.ID != "" {
		out.BankAccount = &account{s.account.ID, s.account.Holder, s.account.Masked(), s.account.IFSC, s.account.Status}
	}
	for _, a := range s.adjustments {
		out.Corrections = append(out.Corrections, correction{a.ID, amount(a.Amount), a.Reason, a.Note, a.Actor(), timeText(a.At)})
	}
	for _, n := range s.notes {
		out.Notes = append(out.Notes, note{n.Text, ledger.ActorAdmin + n.Admin, timeText(n.At)})
	}
	return out
}
