package simulate_test

// moreBugs were planted by an engineer who had read the service and not the simulator. Many needed what it did not play, or did not check.
var moreBugs = []planted{
	{"a page of the statement begins one line too late", []edit{
		{inRazorpayx, "Next: listPosition{skip: at.skip + len(items)}.cursor()}", "Next: listPosition{skip: at.skip + len(items) + 1}.cursor()}"},
	}},
	{"a request of just the least amount is refused", []edit{
		{inPayout, "if r.Amount < s.o.Minimum {", "if r.Amount <= s.o.Minimum {"},
	}},
	{"what was refused under a key is decided again", []edit{
		{inPayout, "refusal = err\n\t\t\treturn saveRefusal(ctx, tx, call, refused)", "_ = saveRefusal\n\t\t\treturn err"},
	}},
	{"idempotency keys are forgotten after a day", []edit{
		{inPayout, "keysKept   = 7 * 24 * time.Hour", "keysKept   = 24 * time.Hour"},
	}},
	{"a key does not tell amounts apart", []edit{
		{inPayout, `fmt.Sprintf(FingerprintRequest+"%d %s", r.Amount, r.Notes)`, `fmt.Sprintf(FingerprintRequest+"%s", r.Notes)`},
	}},
	{"the fee is taken without its tax", []edit{
		{inPayout, "return min(charge+charge.Share(f.tax), amount)", "return min(charge, amount)"},
	}},
	{"a payout that is paid keeps the reason for which it waited", []edit{
		{inPayout, "p.CompletedAt = now\n\t\tp.ReasonCode, p.Reason = \"\", \"\"\n", "p.CompletedAt = now\n"},
	}},
	{"a refund of all that is left is of the whole sale", []edit{
		{inSale, "refund.Amount = sale.Left()", "refund.Amount = sale.Amount"},
	}},
	{"a page of the feed that is cut short skips the rest", []edit{
		{inEvent, "next = e.Number\n\t\t\tif len(types)", "next = page[len(page)-1].Number\n\t\t\tif len(types)"},
	}},
	{"whatever a look-up lists is taken for the payout's transfer", []edit{
		{inRazorpayx, "if reference == p.reference() {", "if reference != \"\" {"},
	}},
	{"a 400 about our own account is a refusal", []edit{
		{inRazorpayx, "{text: \"razorpayx account number is invalid\", outcome: gateway.NotTaken, code: \"debit_account_invalid\"},\n\t{field: \"account_number\", outcome: gateway.NotTaken, code: \"debit_account_invalid\"},\n", ""},
	}},
	{"a payout of just the limit needs a proof", []edit{
		{inPayout, "s.o.ProveAbove > 0 && amount > s.o.ProveAbove", "s.o.ProveAbove > 0 && amount >= s.o.ProveAbove"},
	}},
	{"a caller hears that they cancelled what another has cancelled", []edit{
		{inPayout, "if err == nil && !unanswered {", "if err == nil && !unanswered && p.State != Cancelled {"},
	}},
	{"a payout that was sent while a cancellation looked it up is cancelled", []edit{
		{inPayout, "if _, differs := ledger.Differs(asked, p); differs {", "if asked.State != Waiting {"},
	}},
	{"an imported payout is charged today's fee", []edit{
		{inPayout, "Fee: o.Gross - t.Amount,", "Fee: s.o.Fee.Of(o.Gross),"},
	}},
	{"another holder's name makes no other account", []edit{
		{inBank, "current.Status == StatusRejected && !r.imported || current.Holder != r.Holder || current.IFSC != r.IFSC", "current.Status == StatusRejected && !r.imported || current.IFSC != r.IFSC"},
	}},
	{"a returned payout is not mailed", []edit{
		{inEvent, "return t == PayoutFailed || t == PayoutReturned", "return t == PayoutFailed"},
	}},
	{"a sale that a batch repeats is earned again", []edit{
		{inSale, "if !added[i] {\n\t\t\t\tcontinue", "if refused[i] != nil {\n\t\t\t\tcontinue"},
	}},
	{"a pause that was tampered with freezes each payout", []edit{
		{inPayout, "err = fmt.Errorf(\"%w: %s\", errPauseUnclear, err.Error())", "err = fmt.Errorf(\"read the pause: %w\", err)"},
	}},
	{"the wait of what is turned away does not grow", []edit{
		{inPayout, "func (s *Service) putBack(p *Payout, atLeast time.Duration) {\n\tp.Tries++\n", "func (s *Service) putBack(p *Payout, atLeast time.Duration) {\n"},
	}},
	{"a payout that is sent still says that payouts are paused", []edit{
		{inPayout, "p.clearNoGateway()\n\t\tp.clearStopped()\n", "p.clearNoGateway()\n"},
	}},
	{"an account with a payout under way may be deleted", []edit{
		{inStore, "return pending != 0 || available != 0 || inTransit != 0 || processing != 0, err", "return pending != 0 || available != 0, err"},
	}},
	{"a refund counts in the month in which it is made", []edit{
		{inSale, "return tx.AddEarnings(ctx, sale.Seller, sale.Month, -r.Amount)", "return tx.AddEarnings(ctx, sale.Seller, r.At.Format(monthLayout), -r.Amount)"},
	}},
	{"an imported payout is no event", []edit{
		{inEvent, "ledger.PayoutImported:  PayoutRequested,\n", ""},
	}},
	{"a service key's idempotency keys are the seller's own", []edit{
		{inPayout, "if r.KeyActor == \"\" || r.Key == \"\" {\n\t\treturn r.Key", "if r.KeyActor == \"\" || r.Key != \"\" {\n\t\treturn r.Key"},
	}},
	{"a debit for a payout that waits is not found", []edit{
		{inReconcile, "case payout.Waiting:\n\t\tif debits > credits {", "case payout.Waiting:\n\t\tif debits > credits+1 {"},
	}},
	{"an imported payout does not tell how it went", []edit{
		{inRazorpayx, "Rail: gateway.RailName(p.Mode),", ""},
	}},
	{"any 400 about a fund account is about the bank account", []edit{
		{inRazorpayx, `return strings.Contains(said, "ifsc") || strings.Contains(said, "account number format")`, `return said != ""`},
	}},
	{"a verification that failed is asked about again", []edit{
		{inBank, "if v.Outcome == gateway.OutcomeFault {\n\t\t\tv.ID = \"\"\n\t\t}\n\t\treturn v, err", "return v, err"},
	}},
	{"a seller's payouts are frozen twice", []edit{
		{inPayout, "if balance.Frozen == isStop(d.Action) {", "if !balance.Frozen && !isStop(d.Action) {"},
	}},
	{"an admin's key is not kept where the gateway cancels", []edit{
		{inPayout, "if call.key != \"\" {\n\t\t\t\tanswered, err = tx.SaveIdempotency(", "if call.key != \"\" && !c.Admin {\n\t\t\t\tanswered, err = tx.SaveIdempotency("},
	}},
	{"an admin who hears later that a payout is cancelled is not on record", []edit{
		{inPayout, "if cancelled {\n\t\t\treturn p, s.recordCancel(ctx, tx, c, p, made)\n\t\t}", "if cancelled {\n\t\t\treturn p, nil\n\t\t}"},
	}},
	{"a found transfer in another currency is imported", []edit{
		{inPayout, "case t.Currency != \"\" && t.Currency != s.o.Currency.Code():\n\t\treturn p, \"it is in another", "case t.Currency == s.o.Currency.Code()+\"?\":\n\t\treturn p, \"it is in another"},
	}},
	{"a found transfer to another seller's account is imported", []edit{
		{inBank, "case a.Seller != seller:", "case a.Seller == \"\":"},
	}},
	{"an unmatched transfer that was resolved is listed again", []edit{
		{inStore, "ON CONFLICT (gateway, gateway_id) DO NOTHING`,\n\t\tstring(s.Gateway)", "ON CONFLICT (gateway, gateway_id) DO UPDATE SET resolved = 0 WHERE unmatched_transfers.resolved = 1`,\n\t\tstring(s.Gateway)"},
	}},
	{"an unmatched transfer is resolved twice", []edit{
		{inStore, "SET resolved = 1 WHERE gateway = $1 AND gateway_id = $2 AND resolved = 0", "SET resolved = 1 WHERE gateway = $1 AND gateway_id = $2"},
	}},
	{"what is paid after its end freezes nobody", []edit{
		{inPayout, "if err == nil && !balance.Frozen {\n\t\terr = errNotFrozen", "if err == nil && !balance.Frozen && r.GatewayID == \"\" {\n\t\terr = errNotFrozen"},
	}},
	{"each discrepancy freezes its seller", []edit{
		{inPayout, "if alreadyRecorded || !journaled.isRefundedOf(r) {", "if alreadyRecorded || journaled.ID == \"\" {"},
	}},
	{"whether payouts are frozen is asked before the claim", []edit{
		{inPayout, "claimed := false\n\tchanged, err := s.changeIn(", "claimed := false\n\tearly, _ := s.whyStopped(ctx, s.o.Store, seen.Seller)\n\tchanged, err := s.changeIn("},
		{inPayout, "\t\tif why != \"\" {\n\t\t\ts.markStopped(p, why)", "\t\tif why = early; why != \"\" {\n\t\t\ts.markStopped(p, why)"},
	}},
	{"a proof is taken after its five minutes", []edit{
		{inAuth, "|| !s.o.Now().Before(given.Until) {", "|| s.o.Now().IsZero() {"},
	}},
	{"a refresh takes the session of a link beyond its hour", []edit{
		{inAuth, "session.ExpiresAt, session.CapAt = ends, ends", "session.ExpiresAt = ends"},
	}},
	{"who asked the gateway to cancel gets no answer after a crash", []edit{
		{inPayout, "if p.State != Cancelled || key == \"\" {", "if p.State != Cancelled || key != \"\" || key == \"\" {"},
	}},
	{"the last month begins a month ago", []edit{
		{inPayout, "limits.StartOfDay(now, -now.Day()).Format(monthLayout)", "limits.StartOfDay(now.AddDate(0, -1, 0), 0).Format(monthLayout)"},
	}},
	{"a change of the e-mail address can be undone for a day", []edit{
		{inAuth, "newMailToken(UndoEmailChange, u.ID, from, now, mail.UndoLife)", "newMailToken(UndoEmailChange, u.ID, from, now, mail.ConfirmLife)"},
	}},
	{"a verification that tells of another account counts", []edit{
		{inRazorpayx, "if named := v.FundAccount.ID; named != \"\" && named != a.Beneficiary {", "if named := v.FundAccount.ID; named == \"?\" {"},
	}},
	{"who has read further than the feed goes hears nothing", []edit{
		{inEvent, "if err == nil && after > last {", "if err == nil && after > last+1000 {"},
	}},
	{"the grace of a refresh token is that of the last one", []edit{
		{inAuth, "return now.Sub(s.Refreshes[since]) < grace", "return now.Sub(s.Refreshes[0]) < grace"},
	}},
	{"an event that is sent again during an attempt waits as that one says", []edit{
		{inStore, "due_at = CASE WHEN $3 = 'delivered' OR due_at = $10 THEN $9 ELSE due_at END\n", "due_at = CASE WHEN $3 = 'delivered' OR due_at IS NOT NULL OR due_at = $10 THEN $9 ELSE due_at END\n"},
	}},
	{"an attempt at the former address counts for the new one", []edit{
		{inWebhook, "isMoved := found && e.URL != before.URL", "isMoved := found && e.URL == \"\""},
	}},
	{"a link opens two sessions", []edit{
		{inStore, "WHERE hash = $1 AND session_id = '' AND", "WHERE hash = $1 AND"},
	}},
	{"a secret that was replaced works after its grace", []edit{
		{inStore, "r.until > $2", "r.until > 0*$2"},
	}},
	{"what a bank reversed before anybody heard that it was paid is a discrepancy", []edit{
		{inPayout, "to == Completed && p.wasReversed(now)", "to == Completed && p.State == Returned"},
	}},
	{"a connection that was closed without an answer was never there", []edit{
		{inHTTPAPI, "return Response{}, lost(err, !connected.Load())", "return Response{}, lost(err, !connected.Load() || errors.Is(err, io.EOF))"},
	}},
	{"the end of a payout is watched for three days, whether banks work or not", []edit{
		{inPayout, "return a.at(a.workingDay(completedAt, 3), 24*60)", "return a.at(completedAt.AddDate(0, 0, 3), 24*60)"},
	}},
	{"the days of a statement are those of UTC", []edit{
		{inProof, "limits.Day(text, days, zone); err == nil {\n\t\treturn bounded(", "limits.Day(text, days, time.UTC); err == nil {\n\t\treturn bounded("},
	}},
	{"a statement without an entry closes with the newest balance", []edit{
		{inProof, "closing, err := w.headAt(ctx, last)", "closing, err := w.headAt(ctx, map[bool]int64{true: journal.Number, false: last}[last < first])"},
	}},
	{"the last day that an admin asks for is left out", []edit{
		{inPayout, "return limits.StartOfDay(day, later)", "return day"},
	}},
	{"another sale under the id of one in the same batch repeats that one", []edit{
		{inSale, "if err == nil && first.Fingerprint != sale.Fingerprint {", "if err == nil && first.Fingerprint != sale.Fingerprint && !added[sale.ID] {"},
	}},
	{"an unmatched transfer of a seller whom nobody knows waits for nobody", []edit{
		{inInbox, "for _, t := range attention.UnmatchedTransfers {\n", "for _, t := range attention.UnmatchedTransfers {\n\t\tif t.Transfer.Order.Seller == \"\" {\n\t\t\tcontinue\n\t\t}\n"},
	}},
	{"idempotency keys that differ in the case of letters are one", []edit{
		{inAPI, "key := values[0]\n", "key := strings.ToLower(values[0])\n"},
	}},
	{"a repeated request tells what became of the payout", []edit{
		{inAPI, "Status:           payout.StatusProcessing,", "Status:           p.Status(),"},
	}},
	{"a full last page of the history is followed by one more", []edit{
		{inAPI, "(total + perPage - 1) / perPage", "total/perPage + 1"},
	}},
	{"a freeze ends while a discrepancy of an unpaid payout is open", []edit{
		{inPayout, "if d.Action == decision.UnfreezePayouts {", "if d.Action == decision.UnfreezePayouts && d.Note == \"\" {"},
	}},
	{"an admin may end their own hold", []edit{
		{inDecision, "case AcceptBankAccount, LiftHold, RefundPayout, ResolveDiscrepancy, UnfreezePayouts:", "case AcceptBankAccount, RefundPayout, ResolveDiscrepancy, UnfreezePayouts:"},
	}},
	{"an account is accepted by who has not seen that it was rejected", []edit{
		{inBank, "seen.Status == StatusRejected && v.Seen != StatusRejected", "seen.Status == StatusRejected && v.Seen == StatusVerified"},
	}},
	{"a hold is lifted by who has seen another one", []edit{
		{inPayout, "!seen.IsZero() && !seen.Truncate(", "seen.Before(now) && !seen.IsZero() && !seen.Truncate("},
	}},
	{"a sale without a time is another one when it is recorded again", []edit{
		{inSale, "draft(n NewSale, now time.Time) (Sale, error) {\n", "draft(n NewSale, now time.Time) (Sale, error) {\n\tif n.OccurredAt.IsZero() && n.AvailableAt.IsZero() {\n\t\tn.OccurredAt = now\n\t}\n"},
	}},
	{"an admin who claims a task again has it no longer", []edit{
		{inStore, "ON CONFLICT (subject) DO UPDATE SET at = $3 WHERE claims.admin_id = $2", "ON CONFLICT (subject) DO NOTHING"},
	}},
	{"a date until which a gateway asks to be left alone is not read", []edit{
		{inHTTPAPI, "http.ParseTime(text); err == nil {", "http.ParseTime(text); err == nil && seconds > 0 {"},
	}},
	{"a service key asks for payouts of a suspended seller", []edit{
		{inAPI, "\tuser, err := a.sellerToActFor(ctx, req.seller)\n\tif err == nil {\n\t\terr = a.o.Auth.CheckMayRequestPayout(", "\tuser, err := a.sellerNamed(ctx, req.seller)\n\tif err == nil {\n\t\terr = a.o.Auth.CheckMayRequestPayout("},
	}},
	{"a forgotten password that is set holds the payouts of those alone who have money", []edit{
		{inAuth, "\t\t\tholdUntil, err = s.holdPayouts(ctx, tx, u, ledger.HoldPasswordReset)", "\t\t\tif has, _ := tx.HasMoney(ctx, u.ID); has {\n\t\t\t\tholdUntil, err = s.holdPayouts(ctx, tx, u, ledger.HoldPasswordReset)\n\t\t\t}"},
	}},
}
