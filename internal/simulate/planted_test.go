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

// The packages in which bugs are planted.
const (
	inAPI       = "internal/api"
	inAuth      = "internal/auth"
	inBank      = "internal/bank"
	inDecision  = "internal/decision"
	inEvent     = "internal/event"
	inLedger    = "internal/ledger"
	inPayout    = "internal/payout"
	inProof     = "internal/proof"
	inRazorpayx = "internal/gateway/razorpayx"
	inHTTPAPI   = "internal/gateway/httpapi"
	inInbox     = "internal/inbox"
	inMail      = "internal/mail"
	inMessage   = "internal/mail/message"
	inReconcile = "internal/reconcile"
	inSale      = "internal/sale"
	inSearch    = "internal/search"
	inStore     = "internal/store"
	inWebhook   = "internal/webhook"
)

// bugs are planted one at a time. `make planted` finds out in how many seeds each is found.
var bugs = []planted{
	{"the lease is skipped", []edit{
		{inPayout, "ids, err = tx.LeaseDuePayouts(ctx, now, now.Add(s.o.Lease), limit)", "ids, err = tx.LeaseDuePayouts(ctx, now, now.Add(0), limit)"},
		{inPayout, "Submitting, body, now // Tries goes on: being turned away again waits longer\n\t\tp.DueAt = now.Add(s.o.Lease)", "Submitting, body, now\n\t\tp.DueAt = now"},
	}},
	{"a time-out is taken for a failure", []edit{
		{inPayout, "a.Reason))\n\t\treturn s.markUnknown(ctx, id, a.RetryAfter)\n", "a.Reason))\n\t\treturn s.fail(ctx, id, a.ReasonCode, a.Reason)\n"},
	}},
	{"a 5xx is taken for an order that was not taken", []edit{
		{inRazorpayx, `gateway.Submission{ReasonCode: "gateway_error"`, `gateway.Submission{Outcome: gateway.NotTaken, ReasonCode: "gateway_error"`},
	}},
	{"a lost connection is taken for none", []edit{
		{inHTTPAPI, "return Response{}, lost(err, !connected.Load())", "return Response{}, lost(err, true)"},
	}},
	{"unknown to the gateway is taken for failed", []edit{
		{inPayout, "\tif notFound && p.State == Unknown && p.Tries > 0", "\tif notFound && p.State == Unknown {\n\t\t_, err := s.change(ctx, p.ID, func(p *Payout) error {\n\t\t\tp.ReasonCode = \"not_found\"\n\t\t\ts.finish(p, Failed)\n\t\t\treturn nil\n\t\t})\n\t\treturn err\n\t}\n\tif notFound && p.State == Unknown && p.Tries > 0"},
	}},
	{"a refusal of a resend is final", []edit{
		{inPayout, "\tif answer.Outcome == gateway.Accepted {\n\t\treturn s.applyReport(ctx, sent, answer.Report)", "\tif answer.Outcome == gateway.Refused {\n\t\t_, err := s.change(ctx, sent.ID, func(p *Payout) error {\n\t\t\tp.ReasonCode, p.Reason = answer.ReasonCode, answer.Reason\n\t\t\ts.finish(p, Failed)\n\t\t\treturn nil\n\t\t})\n\t\treturn err\n\t}\n\tif answer.Outcome == gateway.Accepted {\n\t\treturn s.applyReport(ctx, sent, answer.Report)"},
	}},
	{"a retry takes a new key", []edit{
		{inPayout, "s.sendClaimed(ctx, g, sent.ID,", `s.sendClaimed(ctx, g, ID(fmt.Sprintf("%s-%d", sent.ID, sent.Tries)),`},
	}},
	{"an order is sent again after its key ran out", []edit{
		{inPayout, "return now.Before(p.SentAt.Add(g.Capabilities().ResendFor()))", "return !p.SentAt.IsZero()"},
	}},
	{"a webhook is believed", []edit{
		{inPayout, "\t\t_, err = tx.ReschedulePayout(ctx, id, now)\n\t\treturn err\n", "\t\tp, err := tx.PayoutForUpdate(ctx, id)\n\t\tif err != nil || p.State != Submitted {\n\t\t\treturn nil\n\t\t}\n\t\twas := p\n\t\tp.CompletedAt = now\n\t\tp.endAs(Completed, now)\n\t\treturn s.save(ctx, tx, was, p, \"system\", now)\n"},
	}},
	{"a webhook's signature is not checked", []edit{
		{inRazorpayx, "\tmatch := false\n", "\tmatch := true\n"},
	}},
	{"a failed payout is refunded twice", []edit{
		{inPayout, "\tcase Failed, Cancelled:\n\t\treturn ledger.ReleasePayout(p.Amount)\n", "\tcase Failed:\n\t\treturn ledger.ReleasePayout(2 * p.Amount)\n\tcase Cancelled:\n\t\treturn ledger.ReleasePayout(p.Amount)\n"},
	}},
	{"what was cancelled stays in transit", []edit{
		{inPayout, "\tcase Failed, Cancelled:\n\t\treturn ledger.ReleasePayout(p.Amount)\n", "\tcase Failed:\n\t\treturn ledger.ReleasePayout(p.Amount)\n"},
	}},
	{"a payout is completed at every look", []edit{
		{inPayout, "\tif from == p.State {\n\t\treturn ledger.Moved{}\n\t}\n", ""},
	}},
	{"what was sent is cancelled without asking", []edit{
		{inPayout, "if p.State != Submitted || p.Progress != gateway.Queued {", "if p.State != Submitted {"},
		{inPayout, "if _, differs := ledger.Differs(asked, p); differs {", "if _, differs := ledger.Differs(asked, p); differs && asked.State == Waiting {"},
		{inPayout, "\t\tif p.State == Submitted {\n\t\t\tatGateway = p\n\t\t\treturn Payout{}, errAskGateway\n\t\t}\n", ""},
	}},
	{"an old payout is cancelled without asking", []edit{
		{inPayout, "wasFound, err = s.findToCancel(ctx, asked)", "err = ctx.Err()"},
		{inPayout, "moved, err := s.recordTransfer(ctx, p, t.Report)", "moved, err := true, error(nil)"},
	}},
	{"the balance is read, and then written", []edit{
		{inPayout, "\tdraft := s.draft(r)\n", "\tdraft := s.draft(r)\n\tif sum, err := s.o.Store.Summary(ctx, r.Seller, \"\", \"\"); err == nil && sum.Available >= r.Amount {\n\t\tdraft.Tries = 1\n\t}\n"},
		{inPayout, "data, err := ledger.Patch(Payout{ID: p.ID}, p)", "kind := ledger.PayoutRequested\n\tif p.Tries == 1 {\n\t\tkind, p.Tries = ledger.PayoutImported, 0\n\t}\n\tdata, err := ledger.Patch(Payout{ID: p.ID}, p)"},
		{inPayout, "Type: ledger.PayoutRequested,", "Type: kind,"},
	}},
	{"next to nothing is reserved", []edit{
		{inPayout, "ledger.ReservePayout(p.Amount)", "ledger.ReservePayout(1)"},
	}},
	{"a replaced account is paid before the cool-down is over", []edit{
		{inPayout, "until := balance.Hold(now);", "until := balance.Hold(now.Add(time.Hour));"},
	}},
	{"the second replacement of an account begins no hold", []edit{
		{inBank, "current.Status == StatusVerified || tampered || !onHold.IsZero()", "current.Status == StatusVerified && onHold.IsZero() || tampered"},
	}},
	{"an idempotency key keeps the answer that payouts are on hold", []edit{
		{inPayout, `ErrOnHold = fault.New(fault.Conflict,`, `ErrOnHold = fault.New(fault.Refused,`},
	}},
	{"a claim does not look whether payouts are frozen", []edit{
		{inPayout, "if why != \"\" {\n\t\t\ts.markStopped", "if why == whyPaused {\n\t\t\ts.markStopped"},
	}},
	{"payouts are looked at before the claim and not in it", []edit{
		{inPayout, "\tif stopped, err := s.leaveStopped(ctx, p); stopped || err != nil {\n\t\treturn err\n\t}\n\tsent, err", "\tif why, err := s.WhyStopped(ctx, p.Seller); why != \"\" || err != nil {\n\t\treturn errors.Join(s.requeue(ctx, p.ID, Waiting, 0), err)\n\t}\n\tsent, err"},
		{inPayout, "if why != \"\" {\n\t\t\ts.markStopped", "if why == \"never\" {\n\t\t\ts.markStopped"},
	}},
	{"an unknown payout is sent again while payouts are stopped", []edit{
		{inPayout, "isStopped = why != \"\" || errors.Is(err, bank.ErrNotAccepted)", "isStopped = why == \"never\" || errors.Is(err, bank.ErrNotAccepted)"},
	}},
	{"payouts may be requested while all are paused", []edit{
		{inPayout, "\tif err == nil && paused {\n", "\tif err == nil && paused && balance.InTransit != 0 {\n"},
	}},
	{"resuming payouts thaws a frozen seller's cool-down", []edit{
		{inLedger, "b.Frozen = t == PayoutsFrozen\n", "b.Frozen = t == PayoutsFrozen\n\t\tif !b.Frozen {\n\t\t\tb.HoldUntil = 0\n\t\t}\n"},
	}},
	{"what waited is not sent when payouts are resumed", []edit{
		{inStore, "reason_code = '`+payout.CodeStopped+`' AND ($1 = '' OR seller_id = $1)", "reason_code = '`+payout.CodeStopped+`' AND ($1 = 'nobody' OR seller_id = $1)"},
	}},
	{"a proof makes several payouts", []edit{
		{inAuth, "\tif err == nil && !first {\n\t\terr = s.stepUpRequired(p, all, a, to)\n", "\tif err == nil && !first && given.ByCode {\n\t\terr = s.stepUpRequired(p, all, a, to)\n"},
	}},
	{"a proof is for any amount", []edit{
		{inPayout, "[]string{strconv.FormatInt(int64(amount), 10), string(account)}", "[]string{strconv.FormatInt(0*int64(amount), 10), string(account)}"},
	}},
	{"no proof is asked for under an idempotency key", []edit{
		{inPayout, "{ return r.Session != \"\" && s.NeedsProof(r.Amount) }", "{ return r.Session != \"\" && r.Key == \"\" && s.NeedsProof(r.Amount) }"},
	}},
	{"a repeat under an idempotency key needs a new proof", []edit{
		{inPayout, "\tdraft := s.draft(r)\n", "\tdraft := s.draft(r)\n\tif known, _, err := s.Requested(ctx, r.Seller, r.Key); r.Proof != \"\" && r.Key != \"\" && err == nil && known.ID != \"\" {\n\t\tr.Key = \"again \" + r.Key\n\t}\n"},
	}},
	{"what is late is not looked for long enough", []edit{
		{inStore, "const stepWithin = 8 * time.Hour", "const stepWithin = time.Minute"},
	}},
	{"the idempotency key is ignored", []edit{
		{inPayout, `if call.key == "" {`, `if call.key == "" || call.key != "" {`},
	}},
	{"an unverified account is paid", []edit{
		{inPayout, "errors.Is(err, bank.ErrNone) || (err == nil && account.Status != bank.StatusVerified)", "errors.Is(err, bank.ErrNone)"},
	}},
	{"a payout goes to the account of today", []edit{
		{inBank, "\treturn s.beneficiaryOf(ctx, a, g)\n", "\tif today, none := s.o.Store.BankAccount(ctx, a.Seller); none == nil {\n\t\ta = today\n\t}\n\treturn s.beneficiaryOf(ctx, a, g)\n"},
	}},
	{"other sellers see payouts", []edit{
		{inPayout, "return c.Admin || c.User == p.Seller", "return c.Admin || c.User != \"\" || p.Seller != \"\""},
	}},
	{"the fee is not recorded", []edit{
		{inLedger, "Moved{InTransit: -net - fee, Gateway: net, Fees: fee}", "Moved{InTransit: -net - fee, Gateway: net + fee}"},
	}},
	{"a return is recorded without its fee", []edit{
		{inLedger, "Moved{Available: net + fee, Gateway: -net, Fees: -fee}", "Moved{Available: net, Gateway: -net}"},
	}},
	{"the fee is rounded down", []edit{
		{inPayout, "return min(charge+charge.Share(f.tax), amount)", "return min(charge+charge*money.Amount(f.tax)/money.Amount(whole), amount)"},
	}},
	{"a returned payout is never noticed", []edit{
		{inPayout, "\t\tif last := s.o.Arrival.FinalCheckUntil(p.CompletedAt); next.After(last) {\n\t\t\treturn last\n\t\t}\n\t\treturn next\n", "\t\t_ = next\n\t\treturn time.Time{}\n"},
		{inPayout, "if !isKnown ||", "if isKnown ||"},
		{inReconcile, "[]Kind{ReturnedAtGateway, ", "[]Kind{"},
	}},
	{"nobody looks again at what the gateway has", []edit{
		{inPayout, "\tcase p.State == Completed || p.Status() == StatusProcessing:\n", "\tcase p.Status() == StatusProcessing && p.Tries > 2:\n\t\treturn time.Time{}\n\tcase p.State == Completed || p.Status() == StatusProcessing:\n"},
	}},
	{"a sale is released twice", []edit{
		{inStore, "SET released_at = $2, due_at = NULL WHERE id = $1 AND released_at IS NULL", "SET released_at = $2 WHERE id = $1"},
		{inSale, "if err != nil || sale.Released() {", "if err != nil {"},
	}},
	{"a refund is taken from the wrong account", []edit{
		{inSale, "ledger.RefundSale(r.Amount, sale.Released())", "ledger.RefundSale(r.Amount, !sale.Released())"},
	}},
	{"a sale that is reported again is recorded again", []edit{
		{inSale, "\tif !inserted {\n", "\tif !inserted && sale.Amount%2 == 0 {\n"},
	}},
	{"a sale is released too early", []edit{
		{inSale, "\tnow := s.o.Now()\n\tvar due []string\n", "\tnow := s.o.Now()\n\tnow = now.Add(time.Minute)\n\tvar due []string\n"},
	}},
	{"the gateway is not asked after the start", []edit{
		{inPayout, "\tif !s.StartupReconciled() {\n\t\treturn nil, nil\n\t}\n", ""},
	}},
	{"the gateway is asked from too late on", []edit{
		{inPayout, "s.progress.since = last.Add(-ClocksApart)", "s.progress.since = last.Add(6 * time.Hour)"},
	}},
	{"a found payout is not charged", []edit{
		{inPayout, "ledger.ReservePayout(waiting.Amount)", "ledger.ReservePayout(1)"},
	}},
	{"the same money is paid again after a restore", []edit{
		{inPayout, "return s.markUnsent(ctx, tx, waiting.Seller, now)", "return nil"},
	}},
	{"the cancel window is skipped", []edit{
		{inPayout, "\t\tDueAt:       submitAt,", "\t\tDueAt:       now,"},
	}},
	{"the minimum is not checked", []edit{
		{inPayout, "if r.Amount < s.o.Minimum {", "if r.Amount < 100 {"},
	}},
	{"an idempotency key is everybody's", []edit{
		{inPayout, "user: r.Seller, key: r.key()", `user: "", key: r.key()`},
	}},
	{"the account that was shown is not compared", []edit{
		{inPayout, `if p.BankAccountID != "" && p.BankAccountID != account.ID {`, `if p.BankAccountID != "" && account.ID == "" {`},
	}},
	{"other sellers see a payout's events", []edit{
		{inPayout, "p, err := s.Payout(ctx, c, id)\n\tif err != nil {\n\t\treturn nil, err", "p, err := s.o.Store.Payout(ctx, id)\n\tif err != nil {\n\t\treturn nil, err"},
	}},
	{"a list shows any seller's payouts", []edit{
		{inPayout, "\tif !c.Admin {\n\t\tf.Seller = c.User", "\tif !c.Admin && f.Seller == \"\" {\n\t\tf.Seller = c.User"},
	}},
	{"a page of the history is cut short", []edit{
		{inStore, "[]any{f.Limit, f.Seller, f.Offset, f.Limit + f.Offset}", "[]any{f.Limit, f.Seller, f.Offset, f.Limit}"},
	}},
	{"this month and the last are exchanged", []edit{
		{inStore, "&sales, &s.ThisMonth, &s.LastMonth", "&sales, &s.LastMonth, &s.ThisMonth"},
	}},
	{"what is pending counts what was released", []edit{
		{inStore, "s.seller_id = $1 AND s.released_at IS NULL AND s.available_at", "s.seller_id = $1 AND s.available_at"},
	}},
	{"a rate limit is taken for a refusal", []edit{
		{inRazorpayx, `Outcome: gateway.NotTaken, ReasonCode: "throttled"`, `Outcome: gateway.Refused, ReasonCode: "throttled"`},
	}},
	{"a wrong API key is taken for a refusal", []edit{
		{inRazorpayx, `Outcome: gateway.NotTaken, ReasonCode: "authentication_failed", Reason: "The gateway does`, `Outcome: gateway.Refused, ReasonCode: "authentication_failed", Reason: "The gateway does`},
	}},
	{"a 409 is taken for an order that was not taken", []edit{
		{inRazorpayx, `return gateway.Submission{ReasonCode: "in_flight"`, `return gateway.Submission{Outcome: gateway.NotTaken, ReasonCode: "in_flight"`},
	}},
	{"a page of HTML is taken for a refusal", []edit{
		{inRazorpayx, "\tif !readable {\n\t\treturn gateway.Submission{Reason", "\tif !readable {\n\t\treturn gateway.Submission{Outcome: gateway.Refused, Reason"},
	}},
	{"an unknown status is taken for paid", []edit{
		{inRazorpayx, "Progress:  gateway.Unrecognised,", "Progress:  gateway.Paid,"},
	}},
	{"an unknown status is taken for failed", []edit{
		{inRazorpayx, "Progress:  gateway.Unrecognised,", "Progress:  gateway.Failed,"},
	}},
	{"another amount is accepted", []edit{
		{inPayout, "case r.Amount != p.Net():\n\t\treturn fmt.Errorf(\"it has a transfer of %s %s, ordered were %s\", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))", "case r.Amount < 0:\n\t\treturn fmt.Errorf(\"it has a transfer of %s %s, ordered were %s\", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))"},
	}},
	{"another account is accepted", []edit{
		{inPayout, "&& r.Beneficiary != p.Beneficiary:", "&& r.Beneficiary == \"\":"},
	}},
	{"another currency is accepted", []edit{
		{inPayout, "&& r.Currency != c.Code():", "&& c.Code() == \"\":"},
	}},
	{"what the gateway leaves out counts as a difference", []edit{
		{inPayout, "case r.Beneficiary != \"\" && p.Beneficiary", "case p.Beneficiary"},
	}},
	{"every transfer goes by IMPS", []edit{
		{inRazorpayx, "{Name: imps, Max: impsMax,", "{Name: imps,"},
	}},
	{"the bank's reference is overwritten with nothing", []edit{
		{inPayout, "\tif r.UTR != \"\" {\n\t\tp.UTR = r.UTR\n\t}\n", "\tp.UTR = r.UTR\n"},
	}},
	{"the bank's reference is not saved", []edit{
		{inStore, `asText("utr", mutable,`, `asText("utr", insertOnly,`},
	}},
	{"Retry-After is ignored", []edit{
		{inHTTPAPI, "return min(max(wait, 0), time.Hour)", "return min(max(wait, 0), 0)"},
	}},
	{"what has waited longest is taken last", []edit{
		{inStore, "SELECT id FROM payouts WHERE due_at <= $1 ORDER BY due_at LIMIT", "SELECT id FROM payouts WHERE due_at <= $1 ORDER BY due_at DESC LIMIT"},
	}},
	{"a notification hurries what is being sent", []edit{
		{inStore, "(state <> 'submitting' OR due_at > $3) AND", "(state <> 'submitting' OR due_at > $2) AND"},
	}},
	{"what was refused is committed", []edit{
		{inStore, "\t\tif outcomes[i] == nil || !tx.wrote {", "\t\tif outcomes[i] == nil || !tx.wrote || len(group) == 1 {"},
	}},
	{"a transfer is skipped at each page of the list", []edit{
		{inRazorpayx, "place{at.skip + len(transfers), digest}", "place{at.skip + len(transfers) + 1, digest}"},
	}},
	{"a payout is refunded without asking", []edit{
		{inPayout, "\tcase err == nil:\n\t\treturn s.applyLateReport(ctx, seen, report)\n\tcase errors.Is(err, gateway.ErrNotOffered):", "\tcase err == nil && report.GatewayID == \"\":\n\t\treturn s.applyLateReport(ctx, seen, report)\n\tcase err == nil || errors.Is(err, gateway.ErrNotOffered):"},
	}},
	{"a payout is refunded too early", []edit{
		{inPayout, "if wait := from.Sub(s.o.Now()); wait > 0 {", "if wait := from.Sub(s.o.Now()); wait > 1000*time.Hour {"},
	}},
	{"a decision is not put on record", []edit{
		{inPayout, "\t\treturn ledger.RecordDecision(ctx, tx, record)", "\t\t_ = record\n\t\treturn nil"},
	}},
	{"a discrepancy is resolved that no admin saw", []edit{
		{inPayout, `if p.Discrepancy == "" || p.Discrepancy != seen {`, `if p.Discrepancy == "" {`},
	}},
	{"a name that is near is verified", []edit{
		{inBank, "nameVerified = 85", "nameVerified = 60"},
	}},
	{"registrations are not limited", []edit{
		{inBank, "\tcase !counted:\n", "\tcase !counted && false:\n"},
	}},
	{"another account that ends alike is the same", []edit{
		{inBank, "|| current.IFSC != r.IFSC || current.Last4 != r.Number.Last4():", "|| current.IFSC != r.IFSC:"},
		{inBank, "return err == nil && number == r.Number, false, err", `return err == nil && number.Last4() != "", false, err`},
	}},
	{"an account number is in an error", []edit{
		{inRazorpayx, `fmt.Errorf("make a fund account for bank account %s: %w", reference, err)`, `fmt.Errorf("make a fund account for bank account %s: %w", d.AccountNumber, err)`},
	}},
	{"no signature will do", []edit{
		{inRazorpayx, "\tmatch := false\n", "\tmatch := signature == \"\"\n"},
	}},
	{"another sale under a used id is accepted", []edit{
		{inSale, "if err == nil && first.Fingerprint != sale.Fingerprint {", `if err == nil && first.Fingerprint == "" {`},
	}},
	{"a refund may not make a balance negative", []edit{
		{inLedger, "even if the money has left.\n\t\tmayGoNegative: true,", "even if the money has left."},
	}},
	{"an adjustment may not make a balance negative", []edit{
		{inLedger, "m.Available != 0 }, mayGoNegative: true}", "m.Available != 0 }}"},
	}},
	{"an adjustment that is repeated is made again", []edit{
		{inSale, "tx.EntriesAbout(ctx, n.Seller, made.Subject)", "tx.EntriesAbout(ctx, n.Seller, made.ID)"},
	}},
	{"another adjustment under one id is answered as the first", []edit{
		{inSale, "first.Amount != n.Amount || first.Reason", "first.Reason"},
	}},
	{"refunds of different sales share their ids", []edit{
		{inStore, "FROM sale_refunds WHERE sale_id = $1 AND id = $2`", "FROM sale_refunds WHERE (sale_id = $1 OR 1=1) AND id = $2`"},
	}},
	{"how a verification ended is not in the journal", []edit{
		{inBank, "if err := record(ctx, tx, seen, *a, actor, s.o.Now()); err", "if err := error(nil); err != nil && actor == \"\" || err"},
	}},
	{"what the gateway calls an account is not in the journal", []edit{
		{inBank, "return record(ctx, tx, was, a, ledger.ActorGateway, s.o.Now())", "_ = was\n\t\treturn nil"},
	}},
	{"the default holding period is none", []edit{
		{inSale, "draft.OccurredAt.Add(s.o.HoldingPeriod)", "draft.OccurredAt"},
	}},
	{"when an order was sent is not recorded", []edit{
		{inPayout, "p.State, p.OrderBody, p.SentAt = Submitting, body, now //", "p.State, p.OrderBody = Submitting, body //"},
	}},
	{"who has lost the claim sends all the same", []edit{
		{inPayout, "claimed, err := s.startSubmitting(ctx, p, body)\n", "_, err = s.startSubmitting(ctx, p, body)\n"},
		{inPayout, "\tif err != nil || !claimed {\n\t\treturn err\n\t}\n\tanswer, err := s.sendClaimed(ctx, g, p.ID,", "\tif err != nil {\n\t\treturn err\n\t}\n\tanswer, err := s.sendClaimed(ctx, g, p.ID,"},
	}},
	{"what is sent again is not counted", []edit{
		{inPayout, "\t\tp.Tries++\n\t\tp.DueAt = s.o.Now().Add(s.o.Lease).Truncate", "\t\tp.DueAt = s.o.Now().Add(s.o.Lease).Truncate"},
	}},
	{"what is sent again takes no lease", []edit{
		{inPayout, "\t\tp.DueAt = s.o.Now().Add(s.o.Lease).Truncate(time.Microsecond) // as it is stored, or it would seem rescheduled\n", ""},
	}},
	{"a payout in review is sent again", []edit{
		{inPayout, "if p.State != Unknown || p.Tries != seen.Tries || p.Gateway", "if p.Tries != seen.Tries || p.Gateway"},
	}},
	{"a refusal is believed without looking", []edit{
		{inPayout, "\t\treport, err := g.Find(ctx, string(id))\n\t\tswitch {\n\t\tcase err == nil:\n\t\t\treturn s.applyReport(ctx, Payout{ID: id}, report)", "\t\treport, err := gateway.Report{}, gateway.ErrUnknownTransfer\n\t\tswitch {\n\t\tcase err == nil:\n\t\t\treturn s.applyReport(ctx, Payout{ID: id}, report)"},
	}},
	{"what was turned away counts as never sent", []edit{
		{inPayout, "\tif answer.NotSent {", "\tif answer.Outcome == gateway.NotTaken {"},
	}},
	{"what was turned away is tried again at once", []edit{
		{inPayout, "p.DueAt = s.o.Now().Add(max(atLeast, s.o.Jitter(retry.Backoff(p.Tries, time.Second, 5*time.Minute))))", "p.DueAt = s.o.Now().Add(atLeast + retry.Backoff(p.Tries, 0, 0))"},
	}},
	{"what was turned away is not asked about", []edit{
		{inPayout, "(s.requestedAt(p).Before(s.started) || !p.SentAt.IsZero())", "s.requestedAt(p).Before(s.started)"},
	}},
	{"an unknown payout goes to review at once", []edit{
		{inPayout, "if p.State == ManualReview || !mayResend(g, *p, now) {", "if p.State == ManualReview || mayResend(g, *p, now) {"},
	}},
	{"a notification hurries what was never sent", []edit{
		{inStore, "AND (state <> 'submitting' OR due_at > $3) AND (state <> 'waiting' OR sent_at IS NOT NULL)", "AND (state <> 'submitting' OR due_at > $3)"},
	}},
	{"whom an admin cancels for is mixed up", []edit{
		{inPayout, "{ return c.Admin && c.User != p.Seller }", "{ return !c.Admin && c.User != p.Seller }"},
	}},
	{"a cancellation at the gateway is not on record", []edit{
		{inPayout, "\t\t\tif err == nil {\n\t\t\t\terr = s.recordCancel(ctx, tx, c, is, made)\n\t\t\t}\n", ""},
	}},
	{"any answer to a cancellation is a yes", []edit{
		{inPayout, "\tmoved, err := s.applyReportIf(ctx, scope, p, report,", "\treport.Progress = gateway.Cancelled\n\tmoved, err := s.applyReportIf(ctx, scope, p, report,"},
	}},
	{"the key of a cancellation does not tell payouts apart", []edit{
		{inPayout, `fingerprint: FingerprintCancel + string(id), payout`, `fingerprint: FingerprintCancel, payout`},
	}},
	{"a key does not tell notes apart", []edit{
		{inPayout, `fmt.Sprintf(FingerprintRequest+"%d %s", r.Amount, r.Notes)`, `fmt.Sprintf(FingerprintRequest+"%d", r.Amount)`},
	}},
	{"the overview shows a former account", []edit{
		{inStore, "LEFT JOIN bank_accounts a ON a.seller_id = u.id AND a.is_current = 1", "LEFT JOIN bank_accounts a ON a.seller_id = u.id AND a.is_current >= 0"},
	}},
	{"the month of the overview is in UTC", []edit{
		{inPayout, "now := s.o.Now().In(s.o.Zone)\n\treturn s.o.Store.Summary", "now := s.o.Now().UTC()\n\treturn s.o.Store.Summary"},
	}},
	{"the month of a sale is in UTC", []edit{
		{inSale, "draft.OccurredAt.In(s.o.Zone).Format", "draft.OccurredAt.UTC().Format"},
	}},
	{"what comes today is shown for tomorrow", []edit{
		{inSale, "limits.StartOfDay(now, i)", "limits.StartOfDay(now, i+1)"},
	}},
	{"more than the sale is refunded", []edit{
		{inSale, "refund.Amount > sale.Left()", "refund.Amount > sale.Amount"},
		{inStore, "AND refunded + $2 <= amount`", "AND refunded >= 0`"},
	}},
	{"a refund of all that is left is another one when told again", []edit{
		{inSale, "\tfingerprint := strconv.FormatInt(int64(n.Amount), 10)\n", "\tif n.Amount == 0 {\n\t\tn.Amount = sale.Left()\n\t}\n\tfingerprint := strconv.FormatInt(int64(n.Amount), 10)\n"},
	}},
	{"what was refunded whole can not be released", []edit{
		{inLedger, "m == ReleaseSale(m.Available) && m.Available >= 0", "m == ReleaseSale(m.Available) && m.Available > 0"},
	}},
	{"a sale at another time is the same", []edit{
		{inSale, `fmt.Sprintf("%s %d %s %s", n.Seller, n.Amount, stamp(n.OccurredAt), stamp(n.AvailableAt))`, `fmt.Sprintf("%s %d %s", n.Seller, n.Amount, stamp(n.AvailableAt))`},
	}},
	{"a sale of another seller is the same", []edit{
		{inSale, `fmt.Sprintf("%s %d %s %s", n.Seller, n.Amount, stamp`, `fmt.Sprintf("%d %s %s", n.Amount, stamp`},
	}},
	{"another transfer is believed", []edit{
		{inPayout, `r.Reference != string(p.ID) || (p.GatewayID != "" && p.GatewayID != r.GatewayID)`, "r.Reference != string(p.ID)"},
	}},
	{"a smaller amount is accepted", []edit{
		{inPayout, "case r.Amount != p.Net():\n\t\treturn fmt.Errorf(\"it has a transfer of %s %s, ordered were %s\", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))", "case r.Amount > p.Net():\n\t\treturn fmt.Errorf(\"it has a transfer of %s %s, ordered were %s\", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))"},
	}},
	{"what was cancelled has failed", []edit{
		{inPayout, "\tcase gateway.Cancelled:\n\t\treturn Cancelled", "\tcase gateway.Cancelled:\n\t\treturn Failed"},
	}},
	{"a payout that was unknown for long may be refunded at once", []edit{
		{inPayout, "if e.To == ManualReview {", "if e.To == Unknown {"},
	}},
	{"a payout is refunded without a grace period", []edit{
		{inPayout, "e.At.Add(s.o.Lease + s.o.GracePeriod)", "e.At.Add(s.o.Lease)"},
	}},
	{"decisions need no reason", []edit{
		{inDecision, `if strings.TrimSpace(by.Note) == "" {`, `if strings.TrimSpace(by.Note) == "-" {`},
	}},
	{"identifying a transfer is not on record", []edit{
		{inPayout, "return func(tx ChangeTx, _ Payout) error { return ledger.RecordDecision(ctx, tx, made) }, nil", "return nil, nil"},
	}},
	{"asking the gateway is not on record", []edit{
		{inPayout, "if err := checkOwner(ctx, tx, seen); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn ledger.RecordDecision(ctx, tx, asked)", "return checkOwner(ctx, tx, seen)"},
	}},
	{"a rejected account stays though it is registered again", []edit{
		{inBank, "case current.Status == StatusRejected && !r.imported || current.Holder", "case current.Holder"},
	}},
	{"another verification is believed", []edit{
		{inRazorpayx, "if v.ID != id {", `if v.ID == "" {`},
	}},
	{"another fund account is taken", []edit{
		{inRazorpayx, "\t\terr = account.isOf(d)\n", "\t\terr = nil\n"},
	}},
	{"an account that was found again is verified", []edit{
		{inBank, "a.Status, a.Reason, a.NameScore = StatusUnverified,", "a.Status, a.Reason, a.NameScore = StatusVerified,"},
	}},
	{"a rejected account is paid", []edit{
		{inBank, "if err == nil && a.Status != StatusVerified {", `if err == nil && a.Status == "none" {`},
	}},
	{"a verification takes no lease", []edit{
		{inBank, "now.Add(lease), limit", "now, limit"},
	}},
	{"a replaced account is still to be verified", []edit{
		{inStore, "is_current = 0, due_at = NULL WHERE seller_id = $1 AND is_current = 1`, a.Seller", "is_current = 0 WHERE seller_id = $1 AND is_current = 1`, a.Seller"},
	}},
	{"account numbers are not encrypted", []edit{
		{inBank, "a.EncryptedNumber, err = keys.Encrypt(n.Reveal(), a.numberContext())", "a.EncryptedNumber = n.Reveal()"},
		{inBank, "\tdigits, err := keys.Decrypt(a.EncryptedNumber, a.numberContext())\n", "\tdigits, err := a.EncryptedNumber, error(nil)\n"},
	}},
	{"days without the gateway are not reconciled later", []edit{
		{inReconcile, "return s.days(Period{s.midnight(reached, -againDays), over}), nil", "return s.days(Period{s.midnight(over, -1), over}), nil"},
	}},
	{"nothing is reconciled by itself", []edit{
		{inReconcile, "func (s *Service) RunDue(ctx context.Context) (int, error) {\n", "func (s *Service) RunDue(ctx context.Context) (int, error) {\n\tif s != nil {\n\t\treturn 0, nil\n\t}\n"},
	}},
	{"differences are not written down", []edit{
		{inReconcile, "if err := s.note(ctx, c.found, nil); err != nil {", "if err := s.note(ctx, nil, nil); err != nil {"},
	}},
	{"a statement has what came after it", []edit{
		{inStore, "COALESCE(MIN(CASE WHEN at >= $4 THEN number END)", "COALESCE(MIN(CASE WHEN at > $4 THEN number END)"},
	}},
	{"no checkpoint is made by itself", []edit{
		{inProof, "if age := s.o.Now().Sub(last.At); last.Number > 0 && age < s.o.Every && age > -s.o.Every {", "if s != nil || last.Number > 0 {"},
	}},
	{"a page of entries begins with the last one again", []edit{
		{inStore, "FROM entries WHERE owner = $1 AND number < $2 ORDER BY number DESC", "FROM entries WHERE owner = $1 AND number <= $2 ORDER BY number DESC"},
	}},
	{"a payout is sent as its row has it", []edit{
		{inPayout, "entries, err := check(ctx, s.o.Store, p)\n", "entries, err := []ledger.Entry{{}}, error(nil)\n"},
		{inPayout, "why, err := s.checkToSend(ctx, tx, *p)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif p.IsTampered()", "why, err := s.whyStopped(ctx, tx, p.Seller)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif p.IsTampered()"},
		{inPayout, "if err != nil && (!isTampered(err) || !movement.IsZero() || from != p.State) {", "if err != nil && !isTampered(err) {"},
	}},
	{"a payout is sent though entries are missing", []edit{
		{inPayout, "err = tx.CheckJournal(ctx, p.Seller, CameToState(entries))", "_ = entries"},
		{inBank, "err = s.o.Store.CheckNewest(ctx, a.Seller, max(entries[len(entries)-1].Number, requested),\n\t\tledger.ListingAbout(string(a.ID), entries), ledger.ListingOf(ledger.BankAccountAdded, added, maxFormer))", "_ = math.Pi"},
	}},
	{"a journal is not checked again when a sale is recorded", []edit{
		{inStore, "if known.Counts.Sales != a.Counts.Sales {", "if known.Counts.Sales < 0 {"},
	}},
	{"who wrote an entry is not asked", []edit{
		{inLedger, "case !CheckMAC(keys, e.MAC, macText(e.Owner, e.Number, e.Hash, e.After)):", `case e.MAC == "":`},
	}},
	{"who wrote a balance is not asked", []edit{
		{inLedger, "if !CheckMAC(keys, a.MAC, macText(a.Owner, a.Number, a.Hash, a.Balance)) {", `if a.MAC == "" {`},
	}},
	{"a bank account is paid as its row has it", []edit{
		{inBank, "if entries, tampered = check(ctx, s.o.Store, a); !errors.Is(tampered, ledger.ErrTampered) {", "if s != nil {"},
		{inBank, "err = s.o.Store.CheckNewest(ctx, a.Seller, max(entries[len(entries)-1].Number, requested),\n\t\tledger.ListingAbout(string(a.ID), entries), ledger.ListingOf(ledger.BankAccountAdded, added, maxFormer))", "_ = math.Pi"},
	}},
	{"a payout that was tampered with is cancelled", []edit{
		{inPayout, "_, err := check(ctx, tx, p) // the gateway is not even asked of one that was tampered with\n\t\treturn p, err", "return p, nil"},
		{inPayout, "if err != nil && (!isTampered(err) || !movement.IsZero() || from != p.State) {", "if err != nil && !isTampered(err) {"},
	}},
	{"a payout that was tampered with is paid as its row has it", []edit{
		{inPayout, "if err != nil && (!isTampered(err) || !movement.IsZero() || from != p.State) {", "if err != nil && !isTampered(err) {"},
		{inPayout, "\t_, err := checkToMove(ctx, tx, p)\n\tif isTampered(err) {\n\t\treturn false, nil", "\terr := error(nil)\n\tif isTampered(err) {\n\t\treturn false, nil"},
	}},
	{"a sale is released as its row has it", []edit{
		{inSale, "\tentries, err := check(ctx, tx, sale)\n\tif err == nil {\n\t\terr = j.check(ctx, tx, sale, entries)\n\t}\n", ""},
	}},
	{"that a sale was tampered with is swallowed", []edit{
		{inSale, `return fmt.Errorf("release sale %s: %w", id, err), tx.PostponeRelease(ctx, id, now.Add(retryRelease))`, "_ = retryRelease"},
	}},
	{"a sale that was tampered with is postponed for good", []edit{
		{inSale, "tx.PostponeRelease(ctx, id, now.Add(retryRelease))", "tx.PostponeRelease(ctx, id, now.Add(1000*retryRelease))"},
	}},
	{"a sale is refunded as its row has it", []edit{
		{inSale, "\tentries, err := check(ctx, tx, sale)\n\tif err == nil {\n\t\terr = checkRefund(sale, n.ID, first, entries)\n\t}\n", ""},
		{inSale, "\tif err := j.check(ctx, tx, sale, entries); err != nil {\n\t\treturn Sale{}, Refund{}, false, err\n\t}\n", ""},
	}},
	{"a repaired payout stays frozen", []edit{
		{inPayout, "\t\tif p.IsTampered() { // it was repaired\n\t\t\tp.Discrepancy = \"\"\n\t\t}\n\t\tif why != \"\" {\n\t\t\ts.markStopped", "\t\tif why != \"\" {\n\t\t\ts.markStopped"},
		{inPayout, "if intact && p.IsTampered() {", `if intact && p.Discrepancy == "-" {`},
	}},
	{"that the gateway has a payout is not in the journal", []edit{
		{inPayout, "if !inJournal {", "if !inJournal || p.State == Submitted {"},
	}},
	{"an entry does not tell the bank's reference", []edit{
		{inLedger, "if f.same(from, to) {\n\t\t\tcontinue", "if f.same(from, to) || f.name == \"utr\" {\n\t\t\tcontinue"},
	}},
	{"a balance moves without its entry", []edit{
		{inStore, "entryTable.inserts(d, w.entries)", "entryTable.inserts(d, slices.DeleteFunc(w.entries, func(e ledger.Entry) bool { return e.Number%16 == 0 }))"},
		{inStore, "added, err := tx.write(ctx, entryTable.insertsMissing(tx.dialect, []ledger.Entry{e}))", "added, err := true, error(nil)\n\tif e.Number%16 != 0 {\n\t\tadded, err = tx.write(ctx, entryTable.insertsMissing(tx.dialect, []ledger.Entry{e}))\n\t}"},
	}},
	{"a page of the journal leaves one out", []edit{
		{inStore, "FROM entries WHERE owner = $1 AND number > $2 ORDER BY number LIMIT", "FROM entries WHERE owner = $1 AND number > $2 AND (number + $2) % 50 <> 7 ORDER BY number LIMIT"},
	}},
	{"a failed payout counts as cancelled", []edit{
		{inLedger, "PayoutFailed: {fits: isRelease, counts: Counts{Processing: -1, Failed: +1}}", "PayoutFailed: {fits: isRelease, counts: Counts{Processing: -1, Cancelled: +1}}"},
	}},
	{"a return stays withdrawn", []edit{
		{inLedger, "withdrawn: -1, counts: Counts{Completed: -1, Failed: +1}", "counts: Counts{Completed: -1, Failed: +1}"},
	}},
	{"a refund stays earned", []edit{
		{inLedger, "b.Earned -= m.Sales\n", "b.Earned -= min(m.Sales, 0)\n"},
	}},
	{"what is released is not what is left", []edit{
		{inSale, "ledger.ReleaseSale(sale.Left())", "ledger.ReleaseSale(sale.Amount)"},
	}},
	{"what is returned comes back without its fee", []edit{
		{inPayout, "return ledger.ReturnPayout(p.Net(), p.Fee)", "return ledger.ReturnPayout(p.Net(), 0)"},
	}},
	{"an import is doubted though the balance is not negative", []edit{
		{inPayout, "if e.After.Available >= 0 {", "if e.After.Available >= ledger.MaxTotal {"},
	}},
	{"a verification goes on from what it is not any more", []edit{
		{inStore, "AND reason = $13 AND registered_name = $14 AND name_score = $15 AND verification_id = $16", "AND CAST($13 AS TEXT) IS NOT NULL AND CAST($14 AS TEXT) IS NOT NULL AND CAST($15 AS BIGINT) IS NOT NULL AND CAST($16 AS TEXT) IS NOT NULL"},
	}},
	{"what has moved on meanwhile is taken for tampered with", []edit{
		{inPayout, "isTampered(err) && s.hasMovedOn(ctx, p) {", "isTampered(err) && p.Amount < 0 && s.hasMovedOn(ctx, p) {"},
	}},
}

// root is that of the module, seen from this package.
const root = "../.."

// overlay plants a bug in copies of the files that it is in, and returns them by their paths.
func (p planted) overlay(t *testing.T) map[string]string {
	t.Helper()
	s := source{map[string]string{}, map[string]bool{}}
	for _, e := range p.edits {
		if err := s.apply(e); err != nil {
			t.Errorf("%s: %v", p.name, err)
			return nil
		}
	}
	changed := map[string]string{}
	for file := range s.changed {
		changed[file] = s.texts[file]
	}
	return changed
}

// TestPlantedBugsFitTheCode keeps the bugs from rotting while nobody plants them.
func TestPlantedBugsFitTheCode(t *testing.T) {
	compiler := newCompiler(t)
	names := map[string]bool{}
	for _, bug := range slices.Concat(bugs, furtherBugs, moreBugs, takeoverBugs, gatewayBugs, limitedBugs, verificationBugs, apiBugs, outsiderBugs) {
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
	for _, bug := range slices.Concat(bugs, furtherBugs, moreBugs, takeoverBugs, gatewayBugs, limitedBugs, verificationBugs, apiBugs, outsiderBugs) {
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
	args := []string{"simulate", "--days", "7", "--sellers", "20"}
	if slices.ContainsFunc(limitedBugs, func(l planted) bool { return l.name == p.name }) {
		args = append(args, "--limited")
	}
	for seed := 1; seed <= seeds; seed++ {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		out, err := exec.CommandContext(ctx, program, append(args, "--seed", strconv.Itoa(seed))...).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case errors.As(err, &exit) && exit.ExitCode() == 1 && strings.Contains(string(out), "FAILED"):
			return fmt.Sprintf("| %s | %d | `%s` | %s |", p.name, seed, match(out, `FAILED\s+(\S+):`), match(out, `\(day (\d+)\)`))
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
