package simulate_test

// takeoverBugs were planted where money and accounts end or change hands by ways that the simulator did not play: takeovers, deletions, statements and matches.
var takeoverBugs = []planted{
	{"a takeover puts payouts on hold where there is no money", []edit{
		{inAuth, "if err == nil && money {", "if err == nil && !money {"},
	}},
	{"sessions outlive a takeover", []edit{
		{inAuth, "func() error { return s.endSessions(ctx, tx, u.ID, \"\", reason) },", "func() error { _ = reason; return nil },"},
	}},
	{"identities outlive a takeover", []edit{
		{inAuth, "func() error { return tx.RemoveIdentities(ctx, u.ID) },", ""},
	}},
	{"mailed links outlive a takeover", []edit{
		{inAuth, "return tx.DeleteMailTokens(ctx, u.ID, allPurposes)", "return tx.DeleteMailTokens(ctx, u.ID, resetPassword)"},
	}},
	{"second factors outlive a takeover", []edit{
		{inAuth, "func() error { return s.clearFactors(ctx, tx, u.ID, from) }, // journals are locked last", ""},
	}},
	{"bank accounts outlive a takeover", []edit{
		{inAuth, "if unclaimed {\n\t\t\t\treturn nil", "if !unclaimed {\n\t\t\t\treturn nil"},
	}},
	{"session links outlive a takeover", []edit{
		{inAuth, "if err := tx.DeleteUnusedSessionLinks(ctx, userID); err != nil {\n\t\treturn err\n\t}\n\tfor _, purpose", "for _, purpose"},
	}},
	{"a forgotten password of an account that nobody confirmed is only replaced", []edit{
		{inAuth, "if u.Verified || u.Role == Admin {\n\t\tif err = s.replaceForgotten", "if u.Verified || !u.Suspended {\n\t\tif err = s.replaceForgotten"},
	}},
	{"an identity without a verified address gets the account with it", []edit{
		{inAuth, "case !who.EmailVerified:\n\t\treturn User{}, \"\", ErrEmailUnverified", "case !who.EmailVerified && user.Verified:\n\t\treturn User{}, \"\", ErrEmailUnverified"},
	}},
	{"a takeover keeps the former's profile", []edit{
		{inAuth, "if u.ExternalID != \"\" { // the marketplace wrote", "if u.ExternalID == \"\" { // the marketplace wrote"},
	}},
	{"a registration that is confirmed keeps the former's password", []edit{
		{inAuth, "u.Role, u.PasswordHash, u.Name = t.Role, t.PasswordHash, t.Name", "u.Role, u.Name = t.Role, t.Name"},
	}},
	{"a failure to resume payouts that waited is swallowed", []edit{
		{inPayout, "_, err := tx.RescheduleStopped(ctx, seller, d.At)\n\t\treturn err", "_, _ = tx.RescheduleStopped(ctx, seller, d.At)\n\t\treturn nil"},
	}},
	{"a failure to record that payouts are frozen is swallowed", []edit{
		{inPayout, "if err := ledger.RecordDecision(ctx, tx, d); err != nil || d.Owner == decision.Platform {\n\t\t\treturn err", "if _ = ledger.RecordDecision(ctx, tx, d); d.Owner == decision.Platform {\n\t\t\treturn nil"},
	}},
	{"a failure to take a refund off the month is swallowed", []edit{
		{inSale, "return tx.AddEarnings(ctx, sale.Seller, sale.Month, -r.Amount)", "_ = tx.AddEarnings(ctx, sale.Seller, sale.Month, -r.Amount)\n\treturn nil"},
	}},
	{"a failure to end the bank account before is swallowed", []edit{
		{inBank, "if err := s.endCurrent(ctx, tx, draft, by); err != nil {\n\t\treturn Account{}, err\n\t}", "_ = s.endCurrent(ctx, tx, draft, by)"},
	}},
	{"a failure to save why a request was refused is swallowed", []edit{
		{inPayout, "return tx.SaveIdempotencyRefusal(ctx, call.user, call.key, string(text))", "_ = tx.SaveIdempotencyRefusal(ctx, call.user, call.key, string(text))\n\treturn nil"},
	}},
	{"a failure to save a notification is taken for one that came before", []edit{
		{inPayout, "if err != nil || !isNew {\n\t\t\treturn err\n\t\t}\n\t\t_, err = tx.ReschedulePayout", "if !isNew {\n\t\t\treturn nil\n\t\t}\n\t\t_, err = tx.ReschedulePayout"},
	}},
	{"a refund is added without a limit", []edit{
		{inStore, "SET refunded = refunded + $2 WHERE id = $1 AND refunded + $2 <= amount", "SET refunded = refunded + $2 WHERE id = $1"},
	}},
	{"a sale that is released is marked as released again", []edit{
		{inStore, "SET released_at = $2, due_at = NULL WHERE id = $1 AND released_at IS NULL", "SET released_at = $2, due_at = NULL WHERE id = $1"},
	}},
	{"a decision about a bank account does not ask for its status", []edit{
		{inStore, "WHERE id = $1 AND status = $2 AND beneficiary = $12 AND is_current = 1", "WHERE id = $1 AND $2 <> '' AND beneficiary = $12 AND is_current = 1"},
	}},
	{"a beneficiary takes another one's place", []edit{
		{inStore, "WHERE id = $1 AND beneficiary = $5 AND gateway = $6 AND verification_id = $7 AND status = $8", "WHERE id = $1 AND beneficiary <> $5 || 'x' AND gateway <> $6 || 'x' AND verification_id = $7 AND status = $8"},
	}},
	{"any user ends a session", []edit{
		{inStore, "WHERE id = $2 AND user_id = $1 AND ended_at IS NULL", "WHERE id = $2 AND $1 <> '' AND ended_at IS NULL"},
	}},
	{"a changed row is written whatever state it was found in", []edit{
		{inStore, "wheres = append(wheres, fmt.Sprintf(\"%s = ?%d\", c.name, i+1))", "wheres = append(wheres, fmt.Sprintf(map[bool]string{true: \"?%[2]d IS NOT NULL AND '%[1]s' <> ''\", false: \"%[1]s = ?%[2]d\"}[c.role == expected], c.name, i+1))"},
	}},
	{"money that is pending keeps no account from being deleted", []edit{
		{inStore, "return pending != 0 || available != 0 || inTransit != 0 || processing != 0, err", "return available != 0 || inTransit != 0 || processing != 0, err"},
	}},
	{"who owes money may delete the account", []edit{
		{inStore, "return pending != 0 || available != 0 || inTransit != 0 || processing != 0, err", "return pending != 0 || available > 0 || inTransit != 0 || processing != 0, err"},
	}},
	{"a balance is corrected of a seller who is gone", []edit{
		{inSale, "if !sells {\n\t\treturn Adjustment{}, false, ErrSellerNotFound\n\t}", ""},
		{inSale, "sells, err := tx.SellerExists(ctx, n.Seller)\n\tif err != nil {\n\t\treturn Adjustment{}, false, err\n\t}", "_, err := tx.SellerExists(ctx, n.Seller)\n\tif err != nil {\n\t\treturn Adjustment{}, false, err\n\t}"},
	}},
	{"a bank account is registered for a seller who is gone", []edit{
		{inBank, "if err == nil && !exists {\n\t\t\terr = ErrSellerGone", "if err == nil && !exists && r.imported {\n\t\t\terr = ErrSellerGone"},
	}},
	{"a refund does not ask the statement", []edit{
		{inPayout, "} else if taken > 0 {\n\t\treturn Payout{}, ErrPaidByStatement", "} else if taken > seen.Amount {\n\t\treturn Payout{}, ErrPaidByStatement"},
	}},
	{"what the statement put back still keeps a payout from being refunded", []edit{
		{inStore, "THEN amount ELSE credit END), 0) AS BIGINT) FROM statement_lines WHERE gateway = $1 AND missing = 0 AND id IN (", "THEN 0 ELSE 0 END), 0) AS BIGINT) FROM statement_lines WHERE gateway = $1 AND missing = 0 AND id IN ("},
	}},
	{"the statement is asked for lines by the transfer alone", []edit{
		{inStore, "WHERE gateway = $1 AND payout_id <> '' AND payout_id = $2\n\t\tUNION SELECT id", "WHERE gateway = $1 AND payout_id = '' AND payout_id = $2\n\t\tUNION SELECT id"},
	}},
	{"a transfer under another reference is matched", []edit{
		{inPayout, "case r.Reference != string(p.ID):", "case r.Reference == \"\":"},
	}},
	{"a difference that was gone stays gone", []edit{
		{inStore, "gone_at = NULL", "gone_at = differences.gone_at"},
	}},
	{"a fee that does not come back is no difference", []edit{
		{inReconcile, "len(d.credits) == len(d.debits) && d.given != d.taken", "len(d.credits) == len(d.debits) && d.given > d.taken"},
	}},
	{"a return that names no payout counts as money put in", []edit{
		{inReconcile, "case l.ofPayout():\n\t\tc.unmatched", "case l.Credit > 0:\n\t\tsums.PutIn += l.Credit\n\tcase l.ofPayout():\n\t\tc.unmatched"},
		{inReconcile, "case l.Credit > 0:\n\t\tsums.PutIn += l.Credit\n\tcase l.Kind == gateway.LineVerification", "case l.Kind == gateway.LineVerification"},
	}},
	{"a day that is compared alone begins with any balance", []edit{
		{inReconcile, "for _, d := range slices.Backward(days) {\n\t\tif !d.To.Equal(end)", "for _, d := range days {\n\t\tif !d.To.Equal(end)"},
	}},
	{"a difference that can't be judged is gone", []edit{
		{inReconcile, "if !judged && !d.elsewhere() { // of another gateway's payout the lines alone say that nothing differs\n\t\t\tr.leave", "if !judged && len(found) > 0 {\n\t\t\tr.leave"},
	}},
	{"a verification of which nothing was answered begins again", []edit{
		{inBank, "v = gateway.Verification{ID: seen.VerificationID, Outcome: gateway.OutcomeFault, NameScore: noScore}", "v = gateway.Verification{Outcome: gateway.OutcomeFault, NameScore: noScore}"},
	}},
	{"an event that is missing is nothing to the audit", []edit{
		{inStore, "GROUP BY j.owner, j.number, j.subject, j.type HAVING COUNT(f.owner) <> 1", "GROUP BY j.owner, j.number, j.subject, j.type HAVING COUNT(f.owner) > 1"},
	}},
	{"a difference is resolved that no admin saw", []edit{
		{inStore, "SET resolved_at = $3 WHERE id = $1 AND detail = $2 AND gone_at IS NULL", "SET resolved_at = $3 WHERE id = $1 AND detail <> $2 || '?' AND gone_at IS NULL"},
	}},
	{"a forgotten password that is set puts no hold on payouts", []edit{
		{inAuth, "if err = s.replaceForgotten(ctx, tx, u, hash); err == nil {\n\t\t\tholdUntil, err = s.holdPayouts(ctx, tx, u, ledger.HoldPasswordReset)\n\t\t}", "err = s.replaceForgotten(ctx, tx, u, hash)"},
	}},
	{"an event that is there twice is nothing to the audit", []edit{
		{inStore, "GROUP BY j.owner, j.number, j.subject, j.type HAVING COUNT(f.owner) <> 1", "GROUP BY j.owner, j.number, j.subject, j.type HAVING COUNT(f.owner) < 1"},
	}},
	{"a feed that stopped is not repaired", []edit{
		{inStore, "if err != nil || newest <= last && last <= most {", "if err != nil || last >= -1 {"},
	}},
	{"a checkpoint keeps what an unfinished one left", []edit{
		{inStore, "ON CONFLICT (seller_id, checkpoint) DO UPDATE SET number = excluded.number,\n\t\t\t\ttotals = excluded.totals, hash = excluded.hash, behind = excluded.behind`", "ON CONFLICT (seller_id, checkpoint) DO NOTHING`"},
	}},
	{"a page of the largest payouts leaves out those as large as the last one", []edit{
		{inStore, "(p.amount, p.id) < ((SELECT amount FROM payouts WHERE id = $17), $17))", "p.amount < (SELECT amount FROM payouts WHERE id = $17))"},
	}},
	{"a day without lines begins with any balance", []edit{
		{inReconcile, "if d.Lines > 0 {\n\t\t\tc.balances.before", "if d.Lines >= 0 {\n\t\t\tc.balances.before"},
	}},
	{"what comes at midnight is shown on two days", []edit{
		{inStore, "AND s.available_at >= d.since AND s.available_at < d.until", "AND s.available_at >= d.since AND s.available_at <= d.until"},
	}},
	{"a repair gives the numbers of events to others", []edit{
		{inStore, "if err != nil || newest <= last && last <= most {", "if err != nil || last == newest {"},
	}},
	{"a line of nobody's in another currency is no difference any more", []edit{
		{inReconcile, "d.Kind == UnexplainedDebit || d.Kind == CurrencyDiffers && d.Payout == \"\"", "d.Kind == UnexplainedDebit"},
	}},
	{"a feed that is read by type stays at the last one", []edit{
		{inEvent, "if next == after && after > 0 {", "if len(found) == 0 && after > 0 {"},
	}},
	{"an admin is shown the first pause", []edit{
		{inPayout, "if e.Type != ledger.PayoutsFrozen {\n\t\t\tcontinue", "if e.Type != ledger.PayoutsFrozen || state.By != \"\" {\n\t\t\tcontinue"},
	}},
	{"figures leave out what was paid and returned", []edit{
		{inStore, "WHERE p.completed_at >= $1 AND p.completed_at < $2 GROUP BY 1", "WHERE p.completed_at >= $1 AND p.completed_at < $2 AND p.ended_at IS NULL GROUP BY 1"},
	}},
	{"a day's figures count two days", []edit{
		{inPayout, "s.o.Store.PaidByBank(ctx, day.Day, s.startOfDay(day.Day, 1))", "s.o.Store.PaidByBank(ctx, day.Day, s.startOfDay(day.Day, 2))"},
	}},
	{"figures forget at which bank payouts failed", []edit{
		{inPayout, "e.bank(f.Bank).Failed.add(1, f.Amount)", "e.bank(f.Bank).Failed.add(0, f.Amount)"},
	}},
	{"the newest payout under way is shown as the oldest", []edit{
		{inStore, "ORDER BY requested_at, id LIMIT 1", "ORDER BY requested_at DESC, id LIMIT 1"},
	}},
	{"a selection by amount leaves out the least", []edit{
		{inStore, "p.amount >= $9", "p.amount > $9"},
	}},
	{"a selection up to a moment takes it in", []edit{
		{inStore, "p.ended_at < CAST($16 AS BIGINT)", "p.ended_at <= CAST($16 AS BIGINT)"},
	}},
	{"a quote's rail is that of the amount before the fee", []edit{
		{inPayout, "s.o.Arrival.Estimate(chosen.Capabilities().Rails, p.Net(), submitAt)", "s.o.Arrival.Estimate(chosen.Capabilities().Rails, p.Amount, submitAt)"},
	}},
	{"a refresh token that is used again ends no session", []edit{
		{inAuth, "return owner, replayed, endCopied(ctx, tx, owner, session, now)", "return owner, replayed, nil"},
	}},
	{"a repaired payout has no next step", []edit{
		{inPayout, "if row.DueAt.IsZero() {\n\t\trow.DueAt = now", "if row.DueAt.IsZero() && row.State == \"\" {\n\t\trow.DueAt = now"},
	}},
	{"an entry that an index hides is not missed", []edit{
		{inStore, "broken := l.check(e.Owner, e.IndexKey())", "var broken error"},
	}},
	{"of the secrets that were replaced only the last one signs", []edit{
		{inWebhook, "old := append([]string{e.Secret}, e.signingOld(s.now())...)", "old := []string{e.Secret}"},
	}},
	{"a return is missed before its day can be on the statement", []edit{
		{inReconcile, "d.p.State == payout.Returned && credits < debits && !d.isReadSince(d.p.EndedAt)", "d.p.State == payout.Returned && credits < debits && !d.isReadSince(d.p.CompletedAt)"},
	}},
	{"an admin is shown the other gateways' lines of a difference", []edit{
		{inReconcile, "func(l Line) bool { return l.Gateway != e.Gateway }", "func(l Line) bool { return l.Gateway == e.Gateway }"},
	}},
	{"a secret that was replaced long ago signs again", []edit{
		{inWebhook, "append([]string{e.Secret}, e.signingOld(s.now())...)", "append([]string{e.Secret}, e.OldSecrets...)"},
	}},
	{"a transfer that failed after it was paid is no return", []edit{
		{inPayout, "case gateway.Reversed, gateway.Failed:\n\t\tif from == Completed", "case gateway.Failed:\n\t\treturn Failed\n\tcase gateway.Reversed:\n\t\tif from == Completed"},
	}},
	{"a sale that one batch has three times is refused", []edit{
		{inSale, "ids[group[i].ID] = ids[group[i].ID] || added[i]", "ids[group[i].ID] = added[i]"},
	}},
	{"a refund that no journal knows is let be", []edit{
		{inSale, "for id := range known {\n\t\treturn ledger.ErrTampered", "for id := range known {\n\t\tif id != \"\" {\n\t\t\tcontinue\n\t\t}\n\t\treturn ledger.ErrTampered"},
	}},
	{"a link is swept away while its session lasts", []edit{
		{inAuth, "now.Add(-LinkSessionLife), sweepBatch", "now, sweepBatch"},
	}},
	{"the code that confirmed a second factor is taken again", []edit{
		{inAuth, "f.Counter = step\n\t\treturn f, err", "_ = step\n\t\treturn f, err"},
	}},
	{"an order that never left counts as sent", []edit{
		{inPayout, "s.backToWaiting(p, 0)\n\t\tp.SentAt = seen.SentAt", "s.backToWaiting(p, 0)"},
	}},
	{"what could not be taken in at a start stops nobody", []edit{
		{inPayout, "if s.hasLost(seller) {", "if s.hasLost(seller) && seller == \"\" {"},
	}},
	{"what may have been sent just before a start is refunded at once", []edit{
		{inPayout, "return max(s.started.Add(s.o.Lease+s.o.GracePeriod).Sub(s.o.Now()), 0)", "return 0"},
	}},
	{"a payout is refunded before the lease of its last sending is over", []edit{
		{inPayout, "e.At.Add(s.o.Lease + s.o.GracePeriod)", "e.At.Add(s.o.GracePeriod)"},
	}},
	{"a seller who is made an admin keeps the sessions of links", []edit{
		{inAuth, "case role != Seller:\n\t\terr := tx", "case role == Buyer:\n\t\terr := tx"},
	}},
	{"a suspension only pauses the sessions", []edit{
		{inAuth, "case suspended:\n\t\treturn s.endSessions(ctx, tx, userID, \"\", endedBySuspension)", "case suspended:\n\t\treturn nil"},
	}},
	{"the session of a link outlives its service key", []edit{
		{inAuth, "!key.ExpiresAt.IsZero() && key.ExpiresAt.Before(ends)", "!key.ExpiresAt.IsZero() && ends.IsZero()"},
	}},
	{"a rotation without a grace leaves the secrets before the last", []edit{
		{inAuth, "\t\t\tr.Until = until\n", "\t\t\t_ = r\n"},
	}},
	{"the refresh of a second tab ends the session", []edit{
		{inAuth, "since := s.Counter - 1 - counter", "since := s.Counter - counter"},
	}},
	{"an e-mail address that is changed puts no hold on payouts", []edit{
		{inAuth, "until, err := s.holdPayouts(ctx, tx, u, ledger.HoldEmailChanged)", "until, err := time.Time{}, error(nil)"},
	}},
	{"a change of the e-mail address that is undone leaves the thief's session", []edit{
		{inAuth, "if err := s.endSessions(ctx, tx, u.ID, \"\", endedByUndo); err != nil {\n\t\t\treturn err\n\t\t}", ""},
	}},
	{"a score of the name counts for nothing beside the name", []edit{
		{inBank, "if v.NameScore < 0 && v.RegisteredName != \"\" {", "if v.NameScore < 0 || v.RegisteredName != \"\" {"},
	}},
	{"a notification that comes while the gateway is asked is forgotten", []edit{
		{inPayout, "if rescheduled && !p.DueAt.IsZero() {", "if rescheduled && p.DueAt.IsZero() {"},
	}},
	{"an admin who cancels a payout of their own decides about it", []edit{
		{inPayout, "return c.Admin && c.User != p.Seller", "return c.Admin && p.Seller != \"\""},
	}},
	{"an adjustment is repeated with another reason", []edit{
		{inSale, "first.Amount != n.Amount || first.Reason != n.Reason || first.Note != n.By.Note", "first.Amount != n.Amount || first.Note != n.By.Note"},
	}},
	{"a payout that is due too early is sent", []edit{
		{inPayout, "if wait := s.cancelWindowLeft(*p); wait > 0 {", "if wait := s.cancelWindowLeft(*p); wait > s.o.Lease+s.o.CancelWindow {"},
	}},
	{"a rotation without a grace leaves the links that were not opened", []edit{
		{inAuth, "if err := tx.DeleteUnusedLinksOfKey(ctx, keyID); err != nil {\n\t\treturn err\n\t}", ""},
	}},
}
