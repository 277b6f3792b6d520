package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// planted is a bug that somebody could make.
type planted struct {
	name  string
	edits []edit
}

// edit changes a file of the source, named from the root of the module.
type edit struct{ file, old, new string }

const (
	payoutStep    = "internal/payout/step.go"
	payoutService = "internal/payout/service.go"
	payoutSettle  = "internal/payout/settle.go"
	payoutCancel  = "internal/payout/cancel.go"
	payoutRequest = "internal/payout/request.go"
	recipesFile   = "internal/ledger/recipes.go"
	saleService   = "internal/sale/service.go"
)

// bugs are planted one at a time. `make planted` finds out in how many seeds each is found.
var bugs = []planted{
	{"the lease is skipped", []edit{
		{payoutStep, "ids, err = tx.TakeDuePayouts(ctx, now, now.Add(s.o.Lease), limit)", "ids, err = tx.TakeDuePayouts(ctx, now, now.Add(0), limit)"},
		{payoutStep, "Submitting, body, now // Tries goes on: being turned away again waits longer\n\t\tp.DueAt = now.Add(s.o.Lease)", "Submitting, body, now\n\t\tp.DueAt = now"},
	}},
	{"a time-out is taken for a failure", []edit{
		{payoutStep, "a.Reason))\n\t\treturn s.unclear(ctx, id)\n", "a.Reason))\n\t\treturn s.fail(ctx, id, a.ReasonCode, a.Reason)\n"},
	}},
	{"a 5xx is taken for an order that was not taken", []edit{
		{"internal/razorpayx/payouts.go", `payout.Submission{ReasonCode: "gateway_error"`, `payout.Submission{Answer: payout.NotTaken, ReasonCode: "gateway_error"`},
	}},
	{"a lost connection is taken for none", []edit{
		{"internal/razorpayx/client.go", "return response{}, c.lost(err, !connected.Load())", "return response{}, c.lost(err, true)"},
	}},
	{"unknown to the gateway is taken for failed", []edit{
		{payoutStep, "\tif errors.Is(err, ErrUnknownToGateway) && p.State == Unknown && p.Tries > 0", "\tif errors.Is(err, ErrUnknownToGateway) && p.State == Unknown {\n\t\t_, err := s.change(ctx, p.ID, func(p *Payout) error {\n\t\t\tp.ReasonCode = \"not_found\"\n\t\t\ts.finish(p, Failed)\n\t\t\treturn nil\n\t\t})\n\t\treturn err\n\t}\n\tif errors.Is(err, ErrUnknownToGateway) && p.State == Unknown && p.Tries > 0"},
	}},
	{"a refusal of a repeat is believed", []edit{
		{payoutStep, "\tif answer.Answer == Accepted {\n\t\t_, err := s.merge(ctx, sent, answer.Report)", "\tif answer.Answer == Refused {\n\t\t_, err := s.change(ctx, sent.ID, func(p *Payout) error {\n\t\t\tp.ReasonCode, p.Reason = answer.ReasonCode, answer.Reason\n\t\t\ts.finish(p, Failed)\n\t\t\treturn nil\n\t\t})\n\t\treturn err\n\t}\n\tif answer.Answer == Accepted {\n\t\t_, err := s.merge(ctx, sent, answer.Report)"},
	}},
	{"a retry takes a new key", []edit{
		{payoutStep, "s.o.Gateway.Submit(ctx, string(sent.ID), sent.OrderBody)", `s.o.Gateway.Submit(ctx, fmt.Sprintf("%s-%d", sent.ID, sent.Tries), sent.OrderBody)`},
	}},
	{"an order is sent again after its key ran out", []edit{
		{payoutStep, "p.Tries > 0 && s.o.Now().Before(p.SentAt.Add(keyLifetime))", "p.Tries > 0"},
		{payoutStep, "p.State == Held || !now.Before(p.SentAt.Add(keyLifetime))", "p.State == Held"},
	}},
	{"a webhook is believed", []edit{
		{payoutStep, "\t\t_, err = tx.HastenPayout(ctx, id, now)\n\t\treturn err\n", "\t\tp, err := tx.PayoutForUpdate(ctx, id)\n\t\tif err != nil || p.State != Submitted {\n\t\t\treturn nil\n\t\t}\n\t\twas := p\n\t\tp.CompletedAt = now\n\t\tp.end(Completed, now)\n\t\treturn s.move(ctx, tx, was, p, now)\n"},
	}},
	{"a webhook's signature is not checked", []edit{
		{"internal/razorpayx/webhook.go", "\tmatch := false\n", "\tmatch := true\n"},
	}},
	{"what failed is given back twice", []edit{
		{payoutService, "return ledger.ReleasePayout(ref, p.Amount), ledger.Counts{Processing: -1, Failed: +1}", "return append(ledger.ReleasePayout(ref, p.Amount), ledger.ReleasePayout(ref, p.Amount)...), ledger.Counts{Processing: -1, Failed: +1}"},
	}},
	{"what was cancelled stays in transit", []edit{
		{payoutService, "return ledger.ReleasePayout(ref, p.Amount), ledger.Counts{Processing: -1, Cancelled: +1}", "return nil, ledger.Counts{}"},
	}},
	{"a payout is completed at every look", []edit{
		{payoutService, "\tif from == p.State {\n\t\treturn nil, ledger.Counts{}\n\t}\n", ""},
	}},
	{"what was sent is cancelled without asking", []edit{
		{payoutCancel, "(p.State == Submitted && p.Progress == Queued)", "p.State == Submitted"},
		{payoutCancel, "\t\tif p.State == Submitted {\n\t\t\treturn Payout{}, errAskGateway\n\t\t}\n", ""},
	}},
	{"an old payout is cancelled without asking", []edit{
		{payoutCancel, "\t\t_, err = s.wasSent(ctx, p)\n\t\treturn p, err\n", "\t\treturn p, nil\n"},
		{"internal/payout/catchup.go", "\tcase p.State == Waiting:\n\t\t_, err := s.believe(ctx, id, t.Report)\n\t\treturn err\n", "\tcase p.State == Waiting:\n\t\treturn nil\n"},
	}},
	{"the balance is read, and then written", []edit{
		{payoutRequest, "\tdraft := s.draft(r)\n", "\tdraft := s.draft(r)\n\tif sum, err := s.o.Store.Summary(ctx, r.Seller, \"\", \"\"); err == nil && sum.Available >= r.Amount {\n\t\tdraft.Tries = 1\n\t}\n"},
		{payoutRequest, "\t\tCounts:    ledger.Counts{Processing: +1},\n", "\t\tCounts:    ledger.Counts{Processing: +1},\n\t\tMayOverdraw: p.Tries == 1,\n"},
	}},
	{"the hold is not taken", []edit{
		{payoutRequest, "\terr = ledger.Post(ctx, tx, ledger.Posting{\n\t\tSeller: p.Seller, At: p.RequestedAt,\n\t\tTransfers: ledger.HoldPayout(string(p.ID), p.Amount),\n\t\tCounts:    ledger.Counts{Processing: +1},\n\t})\n", ""},
	}},
	{"the idempotency key is ignored", []edit{
		{"internal/payout/once.go", `if m.key == "" {`, `if m.key == "" || m.key != "" {`},
	}},
	{"an unverified account is paid", []edit{
		{payoutRequest, "errors.Is(err, bank.ErrNone) || (err == nil && account.Status != bank.StatusVerified)", "errors.Is(err, bank.ErrNone)"},
	}},
	{"a payout goes to the account of today", []edit{
		{"internal/bank/service.go", "\treturn s.beneficiaryOf(ctx, a)\n", "\tif today, none := s.o.Store.BankAccount(ctx, a.Seller); none == nil {\n\t\ta = today\n\t}\n\treturn s.beneficiaryOf(ctx, a)\n"},
	}},
	{"strangers see payouts", []edit{
		{payoutService, "return c.Admin || c.User == p.Seller", "return c.Admin || c.User != \"\" || p.Seller != \"\""},
	}},
	{"the fee is not booked", []edit{
		{recipesFile, "\t\tTransfer{KindPayoutPaid, InTransit, Gateway, net, payoutID},\n\t\tTransfer{KindPayoutFee, InTransit, Fees, fee, payoutID})", "\t\tTransfer{KindPayoutPaid, InTransit, Gateway, net + fee, payoutID},\n\t\tTransfer{KindPayoutFee, InTransit, Fees, 0, payoutID})"},
	}},
	{"a return is booked without its fee", []edit{
		{recipesFile, "\t\tTransfer{KindFeeReturn, Fees, Available, fee, payoutID})", "\t\tTransfer{KindFeeReturn, Fees, Available, 0, payoutID})"},
	}},
	{"the fee is rounded down", []edit{
		{"internal/payout/fee.go", "return min(charge+charge.Share(f.tax), amount)", "return min(charge+charge*money.Amount(f.tax)/money.Amount(whole), amount)"},
	}},
	{"a returned payout is never noticed", []edit{
		{payoutSettle, "\t\tif last := s.o.Arrival.LookAgainUntil(p.CompletedAt); next.After(last) {\n\t\t\treturn last\n\t\t}\n\t\treturn next\n", "\t\t_ = next\n\t\treturn time.Time{}\n"},
		{"internal/payout/returns.go", "if !isKnown ||", "if isKnown ||"},
		{"internal/reconcile/run.go", "if d.Kind == ReturnedAtGateway || d.Kind", "if d.Kind"},
	}},
	{"nobody looks again at what the gateway has", []edit{
		{payoutSettle, "\tcase p.State == Completed || p.Status() == StatusProcessing:\n", "\tcase p.Status() == StatusProcessing && p.Tries > 2:\n\t\treturn time.Time{}\n\tcase p.State == Completed || p.Status() == StatusProcessing:\n"},
	}},
	{"a sale is released twice", []edit{
		{saleService, "\tif err == nil || len(due) == 0 {\n\t\treturn len(due), err\n\t}\n", "\tif len(due) == 0 {\n\t\treturn len(due), err\n\t}\n"},
		{saleService, "\tif err != nil || !pending {\n", "\tif err != nil || pending && false {\n"},
	}},
	{"a refund is taken from the wrong account", []edit{
		{saleService, "ledger.RefundSale(sale.ID, r.Amount, sale.Released())", "ledger.RefundSale(sale.ID, r.Amount, !sale.Released())"},
	}},
	{"a sale that is told again is booked again", []edit{
		{saleService, "\tif !inserted {\n", "\tif !inserted && sale.Amount%2 == 0 {\n"},
	}},
	{"a sale is released too early", []edit{
		{saleService, "\tnow := s.o.Now()\n\tvar due []string\n", "\tnow := s.o.Now()\n\tnow = now.Add(time.Minute)\n\tvar due []string\n"},
	}},
	{"the gateway is not asked after the start", []edit{
		{payoutStep, "\tif !s.CaughtUp() {\n\t\treturn nil, nil\n\t}\n", ""},
	}},
	{"the gateway is asked from too late on", []edit{
		{"internal/payout/catchup.go", "s.look.since = last.Add(-clocksApart)", "s.look.since = last.Add(6 * time.Hour)"},
	}},
	{"a found payout is not charged", []edit{
		{"internal/payout/adopt.go", "\t\t\tTransfers: ledger.HoldPayout(string(id), waiting.Amount),\n", "\t\t\tTransfers: ledger.HoldPayout(string(id), 1),\n"},
	}},
	{"the same money is paid again after a restore", []edit{
		{"internal/payout/adopt.go", "\t\treturn tx.DoubtUnsent(ctx, waiting.Seller, codeOverdrawn)\n", "\t\treturn nil\n"},
	}},
	{"the cancel window is skipped", []edit{
		{"internal/payout/request.go", "\t\tDueAt:       submitAt,", "\t\tDueAt:       now,"},
	}},
	{"the minimum is not checked", []edit{
		{"internal/payout/request.go", "if r.Amount < s.o.Minimum {", "if r.Amount < 100 {"},
	}},
	{"an idempotency key is everybody's", []edit{
		{"internal/payout/request.go", "memo{user: r.Seller, key: r.Key", `memo{user: "", key: r.Key`},
	}},
	{"the account that was shown is not compared", []edit{
		{"internal/payout/request.go", `if p.BankAccountID != "" && p.BankAccountID != account.ID {`, `if p.BankAccountID != "" && account.ID == "" {`},
	}},
	{"what happened to a payout is told to strangers", []edit{
		{"internal/payout/service.go", "\tif _, err := s.Payout(ctx, c, id); err != nil {\n\t\treturn nil, err\n\t}\n", ""},
	}},
	{"a list shows whomever it is asked for", []edit{
		{"internal/payout/service.go", "\tif !c.Admin {\n\t\tf.Seller = c.User", "\tif !c.Admin && f.Seller == \"\" {\n\t\tf.Seller = c.User"},
	}},
	{"a page of the history is cut short", []edit{
		{"internal/store/payout.go", "args = append(args, f.Seller, f.Limit+f.Offset)", "args = append(args, f.Seller, f.Limit)"},
	}},
	{"this month and the last are exchanged", []edit{
		{"internal/store/payout.go", "&s.Sales, &s.ThisMonth, &s.LastMonth", "&s.Sales, &s.LastMonth, &s.ThisMonth"},
	}},
	{"what is pending counts what was released", []edit{
		{"internal/store/sale.go", "s.seller_id = $1 AND s.released_at IS NULL AND s.available_at", "s.seller_id = $1 AND s.available_at"},
	}},
	{"a rate limit is taken for a refusal", []edit{
		{"internal/razorpayx/payouts.go", `Answer: payout.NotTaken, ReasonCode: "rate_limited"`, `Answer: payout.Refused, ReasonCode: "rate_limited"`},
	}},
	{"a wrong API key is taken for a refusal", []edit{
		{"internal/razorpayx/payouts.go", `Answer: payout.NotTaken, ReasonCode: "authentication_failed", Reason: "The gateway does`, `Answer: payout.Refused, ReasonCode: "authentication_failed", Reason: "The gateway does`},
	}},
	{"a 409 is taken for an order that was not taken", []edit{
		{"internal/razorpayx/payouts.go", `return payout.Submission{ReasonCode: "in_flight"`, `return payout.Submission{Answer: payout.NotTaken, ReasonCode: "in_flight"`},
	}},
	{"a page of HTML is taken for a refusal", []edit{
		{"internal/razorpayx/payouts.go", "\tif !readable {\n\t\treturn payout.Submission{Reason", "\tif !readable {\n\t\treturn payout.Submission{Answer: payout.Refused, Reason"},
	}},
	{"an unknown status is taken for paid", []edit{
		{"internal/razorpayx/payouts.go", "Progress:  payout.Unrecognised,", "Progress:  payout.Paid,"},
	}},
	{"an unknown status is taken for failed", []edit{
		{"internal/razorpayx/payouts.go", "Progress:  payout.Unrecognised,", "Progress:  payout.Rejected,"},
	}},
	{"another amount is believed", []edit{
		{payoutSettle, "case r.Amount != p.Net():", "case r.Amount < 0:"},
	}},
	{"another account is believed", []edit{
		{payoutSettle, "&& r.Beneficiary != p.Beneficiary:", "&& r.Beneficiary == \"\":"},
	}},
	{"another currency is believed", []edit{
		{payoutSettle, "&& r.Currency != c.Code():", "&& c.Code() == \"\":"},
	}},
	{"what the gateway leaves out is taken for a difference", []edit{
		{payoutSettle, "case r.Beneficiary != \"\" && p.Beneficiary", "case p.Beneficiary"},
	}},
	{"every transfer goes by IMPS", []edit{
		{"internal/payout/arrival.go", "case a.India && amount <= impsMost:", "case a.India:"},
	}},
	{"the bank's reference is overwritten with nothing", []edit{
		{"internal/payout/settle.go", "\tif r.UTR != \"\" {\n\t\tp.UTR = r.UTR\n\t}\n", "\tp.UTR = r.UTR\n"},
	}},
	{"the bank's reference is not saved", []edit{
		{"internal/store/payout.go", "p.Tries, p.OrderBody, p.GatewayID, string(p.Progress), p.UTR,", `p.Tries, p.OrderBody, p.GatewayID, string(p.Progress), "",`},
	}},
	{"Retry-After is ignored", []edit{
		{"internal/razorpayx/client.go", "return min(max(wait, 0), time.Hour)", "return min(max(wait, 0), 0)"},
	}},
	{"what has waited longest is taken last", []edit{
		{"internal/store/payout.go", "WHERE due_at <= $1 ORDER BY due_at LIMIT $3 + 0", "WHERE due_at <= $1 ORDER BY due_at DESC LIMIT $3 + 0"},
	}},
	{"news hurries what is being sent", []edit{
		{"internal/store/payout.go", "state <> 'submitting' AND", ""},
	}},
	{"what was refused is committed", []edit{
		{"internal/store/sqlite.go", "\t\tif outcomes[i] == nil || !tx.wrote {", "\t\tif outcomes[i] == nil || !tx.wrote || len(group) == 1 {"},
	}},
	{"a transfer is skipped at each page of the list", []edit{
		{"internal/payout/catchup.go", "s.look.listed+len(page), page", "s.look.listed+len(page)+1, page"},
	}},
	{"money is given back without asking", []edit{
		{"internal/payout/decide.go", "\tcase err == nil:\n\t\treturn s.keep(ctx, id, report)\n\tcase !errors", "\tcase err == nil && report.GatewayID == \"\":\n\t\treturn s.keep(ctx, id, report)\n\tcase err != nil && !errors"},
	}},
	{"money is given back too early", []edit{
		{"internal/payout/decide.go", "if wait := from.Sub(s.o.Now()); wait > 0 {", "if wait := from.Sub(s.o.Now()); wait > 1000*time.Hour {"},
	}},
	{"a decision is not put on record", []edit{
		{"internal/payout/decide.go", "\t\treturn tx.RecordDecision(ctx, record)", "\t\t_ = record\n\t\treturn nil"},
	}},
	{"a contradiction is cleared that nobody saw", []edit{
		{"internal/payout/decide.go", `if p.Contradiction == "" || p.Contradiction != seen {`, `if p.Contradiction == "" {`},
	}},
	{"a name that is near is verified", []edit{
		{"internal/bank/name.go", "nameVerified = 85", "nameVerified = 60"},
	}},
	{"registrations are not limited", []edit{
		{"internal/bank/register.go", "\tcase !counted:\n", "\tcase !counted && false:\n"},
	}},
	{"another account that ends alike is the same", []edit{
		{"internal/bank/register.go", "|| current.Last4 != r.Number.Last4() {", "{"},
		{"internal/bank/register.go", "return err == nil && number == r.Number, err", `return err == nil && number.Last4() != "", err`},
	}},
	{"an account number is in an error", []edit{
		{"internal/razorpayx/beneficiaries.go", `fmt.Errorf("make a fund account for bank account %s: %w", a.ID, err)`, `fmt.Errorf("make a fund account for bank account %s: %w", number.Reveal(), err)`},
	}},
	{"no signature will do", []edit{
		{"internal/razorpayx/webhook.go", "\tmatch := false\n", "\tmatch := signature == \"\"\n"},
	}},
	{"another sale under a used id is accepted", []edit{
		{"internal/sale/service.go", "if err == nil && first.Fingerprint != sale.Fingerprint {", `if err == nil && first.Fingerprint == "" {`},
	}},
	{"a refund may not overdraw", []edit{
		{"internal/sale/service.go", "\t\tMayOverdraw: true,\n", ""},
	}},
	{"refunds of different sales share their ids", []edit{
		{"internal/store/sale.go", "FROM sale_refunds WHERE sale_id = $1 AND id = $2`", "FROM sale_refunds WHERE (sale_id = $1 OR 1=1) AND id = $2`"},
	}},
	{"a decision on a bank account leaves its seal as it was", []edit{
		{"internal/bank/verify.go", "\tif err := a.reseal(s.o.Seals); err != nil {\n\t\treturn false, err\n\t}\n", ""},
	}},
	{"an account is named at the gateway under its old seal", []edit{
		{"internal/bank/service.go", "\ta.Beneficiary = beneficiary\n\tif err := a.reseal(s.o.Seals); err != nil {", "\terr := a.reseal(s.o.Seals)\n\ta.Beneficiary = beneficiary\n\tif err != nil {"},
		{"internal/bank/service.go", "\terr := s.o.Store.InTx(ctx, func(tx Tx) (err error) {\n\t\tnamed,", "\terr = s.o.Store.InTx(ctx, func(tx Tx) (err error) {\n\t\tnamed,"},
	}},
	{"an adopted payout is not sealed", []edit{
		{"internal/payout/adopt.go", "errors.Join(err, p.sealIn(s.o.Seals))", "errors.Join(err)"},
	}},
	{"the default hold is none", []edit{
		{"internal/sale/service.go", "draft.OccurredAt.Add(s.o.Hold)", "draft.OccurredAt"},
	}},
	{"when an order was sent is not recorded", []edit{
		{payoutStep, "p.State, p.OrderBody, p.SentAt = Submitting, body, now //", "p.State, p.OrderBody = Submitting, body //"},
	}},
	{"who has lost the claim sends all the same", []edit{
		{payoutStep, "\tclaimed, err := s.claim(ctx, p, body)\n\tif err != nil || !claimed {", "\t_, err = s.claim(ctx, p, body)\n\tif err != nil {"},
	}},
	{"what is sent again is not counted", []edit{
		{payoutStep, "\t\tp.Tries++\n\t\tp.DueAt = s.o.Now().Add(s.o.Lease).Truncate", "\t\tp.DueAt = s.o.Now().Add(s.o.Lease).Truncate"},
	}},
	{"what is sent again takes no lease", []edit{
		{payoutStep, "\t\tp.DueAt = s.o.Now().Add(s.o.Lease).Truncate(time.Microsecond) // as it is stored, or it would seem hastened\n", ""},
	}},
	{"what is held is sent again", []edit{
		{payoutStep, "if p.State != Unknown || p.Tries != seen.Tries {", "if p.Tries != seen.Tries {"},
	}},
	{"a refusal is believed without looking", []edit{
		{payoutStep, "\t\treport, err := s.o.Gateway.Find(ctx, string(id))\n\t\tswitch {\n\t\tcase err == nil:\n\t\t\t_, err := s.merge(ctx, Payout{ID: id}, report)", "\t\treport, err := Report{}, ErrUnknownToGateway\n\t\tswitch {\n\t\tcase err == nil:\n\t\t\t_, err := s.merge(ctx, Payout{ID: id}, report)"},
	}},
	{"what was turned away counts as never sent", []edit{
		{payoutStep, "\tif answer.NotSent {", "\tif answer.Answer == NotTaken {"},
	}},
	{"what was turned away is tried again at once", []edit{
		{payoutStep, "p.DueAt = s.o.Now().Add(max(atLeast, s.jitter(backoff(p.Tries, time.Second, 5*time.Minute))))", "p.DueAt = s.o.Now().Add(atLeast)"},
	}},
	{"what was turned away is not asked about", []edit{
		{"internal/payout/catchup.go", "(!p.RequestedAt.Before(s.started) && p.SentAt.IsZero())", "!p.RequestedAt.Before(s.started)"},
	}},
	{"what is unknown is held at once", []edit{
		{payoutStep, "if p.State == Held || !now.Before(p.SentAt.Add(keyLifetime)) {", "if p.State == Held || now.Before(p.SentAt.Add(keyLifetime)) {"},
	}},
	{"news of what was never sent hurries it", []edit{
		{"internal/store/payout.go", "AND state <> 'submitting' AND (state <> 'waiting' OR sent_at IS NOT NULL)", "AND state <> 'submitting'"},
	}},
	{"whom an admin cancels for is mixed up", []edit{
		{payoutCancel, "if !c.Admin || c.User == p.Seller {", "if c.Admin || c.User == p.Seller {"},
	}},
	{"a cancellation at the gateway is not on record", []edit{
		{payoutCancel, "\t\treturn c.recordCancel(ctx, tx, p, s.o.Now())\n\t})\n\tif _, contr", "\t\treturn nil\n\t})\n\tif _, contr"},
	}},
	{"any answer to a cancellation is a yes", []edit{
		{payoutCancel, "\tmoved, err := s.mergeIf(ctx, p, report,", "\treport.Progress = CalledOff\n\tmoved, err := s.mergeIf(ctx, p, report,"},
	}},
	{"the key of a cancellation does not tell payouts apart", []edit{
		{payoutCancel, `fingerprint: fmt.Sprintf("cancel %s", id), payout`, `fingerprint: fmt.Sprint("cancel"), payout`},
	}},
	{"a key does not tell notes apart", []edit{
		{payoutRequest, `fmt.Sprintf("request %d %s", r.Amount, r.Notes)`, `fmt.Sprintf("request %d", r.Amount)`},
	}},
	{"the overview shows a former account", []edit{
		{"internal/store/payout.go", "LEFT JOIN bank_accounts a ON a.seller_id = u.id AND a.is_current = 1", "LEFT JOIN bank_accounts a ON a.seller_id = u.id AND a.is_current >= 0"},
	}},
	{"the month of the overview is in UTC", []edit{
		{payoutService, "now := s.o.Now().In(s.o.Zone)\n", "now := s.o.Now().UTC()\n"},
	}},
	{"the month of a sale is in UTC", []edit{
		{saleService, "draft.OccurredAt.In(s.o.Zone).Format", "draft.OccurredAt.UTC().Format"},
	}},
	{"what comes today is shown for tomorrow", []edit{
		{"internal/sale/views.go", "now.Day()+i, 0", "now.Day()+i+1, 0"},
	}},
	{"more than the sale is refunded", []edit{
		{saleService, "refund.Amount > sale.Left()", "refund.Amount > sale.Amount"},
		{"internal/store/sale.go", "AND refunded + $2 <= amount`", "AND refunded >= 0`"},
	}},
	{"a refund of all that is left is another one when told again", []edit{
		{saleService, "\tfingerprint := strconv.FormatInt(int64(n.Amount), 10)\n", "\tif n.Amount == 0 {\n\t\tn.Amount = sale.Left()\n\t}\n\tfingerprint := strconv.FormatInt(int64(n.Amount), 10)\n"},
	}},
	{"what was refunded whole can not be released", []edit{
		{saleService, "if err != nil || sale.Left() == 0 {", "if err != nil {"},
	}},
	{"a sale at another time is the same", []edit{
		{saleService, `fmt.Sprintf("%s %d %s %s", n.Seller, n.Amount, stamp(n.OccurredAt), stamp(n.AvailableAt))`, `fmt.Sprintf("%s %d %s", n.Seller, n.Amount, stamp(n.AvailableAt))`},
	}},
	{"a sale of another seller is the same", []edit{
		{saleService, `fmt.Sprintf("%s %d %s %s", n.Seller, n.Amount, stamp`, `fmt.Sprintf("%d %s %s", n.Amount, stamp`},
	}},
	{"another transfer is believed", []edit{
		{payoutSettle, `r.Reference != string(p.ID) || (p.GatewayID != "" && p.GatewayID != r.GatewayID)`, "r.Reference != string(p.ID)"},
	}},
	{"a smaller amount is believed", []edit{
		{payoutSettle, "case r.Amount != p.Net():", "case r.Amount > p.Net():"},
	}},
	{"what was called off has failed", []edit{
		{payoutSettle, "\tcase CalledOff:\n\t\treturn Cancelled", "\tcase CalledOff:\n\t\treturn Failed"},
	}},
	{"what was unknown for long may be given back at once", []edit{
		{"internal/payout/decide.go", "if e.To == Held {", "if e.To == Unknown {"},
	}},
	{"money is given back without patience", []edit{
		{"internal/payout/decide.go", "e.At.Add(s.o.Lease + s.o.Patience)", "e.At.Add(s.o.Lease)"},
	}},
	{"decisions need no reason", []edit{
		{"internal/decision/decision.go", `if strings.TrimSpace(by.Note) == "" {`, `if strings.TrimSpace(by.Note) == "-" {`},
	}},
	{"identifying a transfer is not on record", []edit{
		{"internal/payout/ask.go", "\t\t\treturn movedOn(p)\n\t\t}\n\t\treturn tx.RecordDecision(ctx, made)", "\t\t\treturn movedOn(p)\n\t\t}\n\t\treturn nil"},
	}},
	{"asking the gateway is not on record", []edit{
		{"internal/payout/ask.go", "if err := s.o.Store.InTx(ctx, func(tx Tx) error { return tx.RecordDecision(ctx, asked) }); err", "if err := error(nil); err"},
	}},
	{"a rejected account stays though it is registered again", []edit{
		{"internal/bank/register.go", "if altered || current.Status == StatusRejected ||", "if altered ||"},
	}},
	{"another verification is believed", []edit{
		{"internal/razorpayx/validations.go", "if v.ID != id {", `if v.ID == "" {`},
	}},
	{"another fund account is taken", []edit{
		{"internal/razorpayx/beneficiaries.go", "\t\terr = account.isOf(a.IFSC, number)\n", "\t\terr = nil\n"},
	}},
	{"an account that was found again is verified", []edit{
		{"internal/bank/recover.go", "a.Status, a.Reason, a.NameScore = StatusUnverified,", "a.Status, a.Reason, a.NameScore = StatusVerified,"},
	}},
	{"a rejected account is paid", []edit{
		{"internal/bank/service.go", "if a.Status == StatusRejected || (err == nil && a.Status != StatusVerified) {", `if err == nil && a.Status == "none" {`},
	}},
	{"a verification takes no lease", []edit{
		{"internal/bank/verify.go", "now.Add(lease), limit", "now, limit"},
	}},
	{"a replaced account is still to be verified", []edit{
		{"internal/store/bank.go", "SET is_current = 0, due_at = NULL WHERE seller_id = $1 AND is_current = 1`, a.Seller", "SET is_current = 0 WHERE seller_id = $1 AND is_current = 1`, a.Seller"},
	}},
	{"account numbers are not sealed", []edit{
		{"internal/bank/seal.go", "a.SealedNumber, err = keys.Seal(n.Reveal(), a.numberContext())", "a.SealedNumber = n.Reveal()"},
		{"internal/bank/seal.go", "\tdigits, err := keys.Open(a.SealedNumber, a.numberContext())\n", "\tdigits, err := a.SealedNumber, error(nil)\n"},
	}},
	{"days without the gateway are not reconciled later", []edit{
		{"internal/reconcile/run.go", "return s.days(Period{s.midnight(reached, -againDays), over}), nil", "return s.days(Period{s.midnight(over, -1), over}), nil"},
	}},
	{"nothing is reconciled by itself", []edit{
		{"internal/reconcile/run.go", "func (s *Service) RunDue(ctx context.Context) (int, error) {\n", "func (s *Service) RunDue(ctx context.Context) (int, error) {\n\tif s != nil {\n\t\treturn 0, nil\n\t}\n"},
	}},
	{"differences are not written down", []edit{
		{"internal/reconcile/run.go", "if err := s.note(ctx, c.found, nil); err != nil {", "if err := s.note(ctx, nil, nil); err != nil {"},
	}},
	{"a statement has what came after it", []edit{
		{"internal/store/chain.go", "MAX(CASE WHEN at < $4 THEN number END)", "MAX(CASE WHEN at <= $4 THEN number END)"},
	}},
	{"no checkpoint is made by itself", []edit{
		{"internal/proof/make.go", "if age := s.o.Now().Sub(last.At); last.Number > 0 && age < s.o.Every && age > -s.o.Every {", "if s != nil || last.Number > 0 {"},
	}},
	{"a page of transfers begins with the last one again", []edit{
		{"internal/store/ledger.go", "WHERE seller_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3 + 0`", "WHERE seller_id = $1 AND number <= $2 ORDER BY number DESC LIMIT $3 + 0`"},
	}},
}

// root is that of the module, seen from this package.
const root = "../.."

// overlay plants a bug in copies of the files that it is in, and returns them by their paths.
func (p planted) overlay(t *testing.T) map[string]string {
	t.Helper()
	changed := map[string]string{}
	for _, e := range p.edits {
		text, seen := changed[e.file]
		if !seen {
			content, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(content)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s: this is %d times in %s, want once; fit the bug to the code as it is now:\n%s", p.name, n, e.file, e.old)
		}
		changed[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return changed
}

// TestPlantedBugsFitTheCode keeps the bugs from rotting while nobody plants them.
func TestPlantedBugsFitTheCode(t *testing.T) {
	compiler := newCompiler(t)
	names := map[string]bool{}
	for _, bug := range slices.Concat(bugs, furtherBugs) {
		if err := compiler.check(bug.overlay(t)); err != nil {
			t.Errorf("%s: %v", bug.name, err)
		}
		if names[bug.name] {
			t.Errorf("%s is there twice", bug.name)
		}
		names[bug.name] = true
	}
}

// TestPlantedBugsAreFound plants each bug, and runs the simulator until it is found. It takes long, and so runs
// only where BURSAR_TEST_PLANTED says how many seeds a bug may take; BURSAR_TEST_PLANT chooses bugs by name.
func TestPlantedBugsAreFound(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("BURSAR_TEST_PLANTED"))
	if seeds == 0 {
		t.Skip("set BURSAR_TEST_PLANTED=20 to plant bugs and find each in 20 seeds")
	}
	chosen := regexp.MustCompile(os.Getenv("BURSAR_TEST_PLANT"))
	var table []string
	for _, bug := range slices.Concat(bugs, furtherBugs) {
		if !chosen.MatchString(bug.name) {
			continue
		}
		t.Run(strings.ReplaceAll(bug.name, " ", "-"), func(t *testing.T) {
			row := bug.find(t, seeds)
			t.Log(row)
			table = append(table, row)
		})
	}
	t.Logf("\n| planted bug | seeds | found as | on day |\n|---|---|---|---|\n%s", strings.Join(table, "\n"))
}

// find builds the program with the bug in it, runs seed after seed, and returns a row of the table.
func (p planted) find(t *testing.T, seeds int) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "bursar")
	build := exec.Command("go", "build", "-overlay", p.writeOverlay(t, dir), "-o", program, "./cmd/bursar")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for seed := 1; seed <= seeds; seed++ {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		out, err := exec.CommandContext(ctx, program, "simulate", "--seed", strconv.Itoa(seed), "--days", "7", "--sellers", "20").CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case errors.As(err, &exit) && exit.ExitCode() == 1 && strings.Contains(string(out), "BROKEN"):
			return fmt.Sprintf("| %s | %d | `%s` | %s |", p.name, seed, match(out, `BROKEN\s+(\S+):`), match(out, `\(day (\d+)\)`))
		default:
			t.Fatalf("seed %d: %v\n%s", seed, err, out)
		}
	}
	t.Errorf("not found in %d seeds", seeds)
	return fmt.Sprintf("| %s | more than %d | | |", p.name, seeds)
}

func match(out []byte, pattern string) string {
	if found := regexp.MustCompile(pattern).FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return ""
}

// writeOverlay writes the changed files, and what the go command reads of them.
func (p planted) writeOverlay(t *testing.T, dir string) string {
	t.Helper()
	replace := map[string]string{}
	files := p.overlay(t)
	for i, file := range sortedKeys(files) {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(changed, []byte(files[file]), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[original] = changed
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
