package simulate_test

// apiBugs were planted in the API, in accounts and in mails, when the simulator began to play them.
var apiBugs = []planted{
	{"a mail that is not taken is tried again after the same wait", []edit{
		{inMail, "retry.Backoff(m.Tries, firstWait, longestWait)", "retry.Backoff(1, firstWait, longestWait)"},
	}},
	{"a mail that was rejected is tried again", []edit{
		{inMail, "case errors.As(err, &rejected):", "case errors.As(err, &rejected) && rejected.Reason == \"\":"},
	}},
	{"a mail that has ended keeps its text", []edit{
		{inStore, "UPDATE mails SET state = $2, content = '', last_error = $3", "UPDATE mails SET state = $2, last_error = $3"},
	}},
	{"a mail is not leased", []edit{
		{inMail, "tx.LeaseDueMails(ctx, now, now.Add(lease), limit)", "tx.LeaseDueMails(ctx, now, now.Add(0*lease), limit)"},
	}},
	{"a mail is never too old", []edit{
		{inMail, "case !s.o.Now().Before(m.GiveUpAt):", "case m.GiveUpAt.IsZero():"},
	}},
	{"the newest mail is sent first", []edit{
		{inStore, "SELECT id FROM mails WHERE due_at <= $1 ORDER BY due_at LIMIT", "SELECT id FROM mails WHERE due_at <= $1 ORDER BY due_at DESC LIMIT"},
	}},
	{"what became of mails is forgotten after three days", []edit{
		{inMail, "endedKept  = 30 * 24 * time.Hour", "endedKept  = 3 * 24 * time.Hour"},
	}},
	{"a sweep takes mails that wait", []edit{
		{inStore, "(SELECT id FROM mails WHERE ended_at < $1 ORDER BY ended_at LIMIT", "(SELECT id FROM mails WHERE created_at < $1 ORDER BY created_at LIMIT"},
	}},
	{"a link is mailed when it is over", []edit{
		{inMail, "KindResetPassword:      {decode[ResetPassword], ResetLife", "KindResetPassword:      {decode[ResetPassword], VerificationLife"},
	}},
	{"anybody has fifty links mailed in an hour", []edit{
		{inMail, `"address", to) + ":hour", 5, time.Hour}`, `"address", to) + ":hour", 50, time.Hour}`},
	}},
	{"a mail that is sent again is another one", []edit{
		{inMessage, `"<" + id + "@" + domain + ">"`, `"<" + id + fmt.Sprint(time.Now().UnixNano()) + "@" + domain + ">"`},
	}},
	{"a service key's scopes are not looked at", []edit{
		{inAuth, "if k.Scopes.Has(scope) {", "if k.Scopes != \"\" {"},
	}},
	{"a service key does not expire", []edit{
		{inAuth, "return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)", "return !k.ExpiresAt.IsZero() && now.Before(k.CreatedAt)"},
	}},
	{"sellers list all users", []edit{
		{inAPI, `{"GET", "/api/admin/users", handle(a, a.admin, a.users)},`, `{"GET", "/api/admin/users", handle(a, a.payoutRole, a.users)},`},
	}},
	{"sellers export the decisions", []edit{
		{inAPI, "func (a *api) exportDecisions(w http.ResponseWriter, r *http.Request) {\n\twho, err := a.admin(r)", "func (a *api) exportDecisions(w http.ResponseWriter, r *http.Request) {\n\twho, err := a.payoutRole(r)"},
	}},
	{"balances are read with the scope of sellers", []edit{
		{inAPI, "handle(a, a.marketplace(auth.ScopeBalancesRead), a.sellerBalance)", "handle(a, a.marketplace(auth.ScopeSellersRead), a.sellerBalance)"},
	}},
	{"the pages of sellers leave one out", []edit{
		{inAPI, "page.Next = list[req.limit-1].ID\n\t}\n\tfor _, u := range list", "page.Next = list[req.limit-1].ID\n\t\tlist = list[:req.limit-1]\n\t}\n\tfor _, u := range list"},
	}},
	{"the marketplace is shown what is left as refunded", []edit{
		{inAPI, "RefundedAmount: a.amount(s.Refunded),", "RefundedAmount: a.amount(s.Left()),"},
	}},
	{"the outcomes of a batch are of other sales", []edit{
		{inAPI, "for n, i := range places {\n\t\tproblems[i] = refused[n]", "for n := range places {\n\t\tproblems[n] = refused[n]"},
	}},
	{"admins see what was withdrawn as earned", []edit{
		{inAPI, "Earned: a.amount(b.Earned), Withdrawn: a.amount(b.Withdrawn),\n\t\tFrozen:", "Earned: a.amount(b.Withdrawn), Withdrawn: a.amount(b.Withdrawn),\n\t\tFrozen:"},
	}},
	{"a balance is adjusted up alone", []edit{
		{inAPI, `req.Amount = in.signedAmount("amount")`, `req.Amount = max(in.signedAmount("amount"), 1)`},
	}},
	{"a mailed code may be guessed for ever", []edit{
		{inAuth, "if !found || t.Tries >= maxCodeTries {", "if !found || t.Tries >= 1000*maxCodeTries {"},
	}},
	{"a recovery code is good twice", []edit{
		{inAuth, "strings.Join(slices.Delete(left, i, i+1), \" \")", "strings.Join(slices.Delete(left, i, i), \" \")"},
	}},
	{"a changed password leaves the other sessions", []edit{
		{inAuth, "if err := s.endSessions(ctx, tx, p.UserID, p.Session, endedByPassword); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{"a refresh token that comes back late is only refused", []edit{
		{inAuth, "return owner, replayed, endCopied(ctx, tx, owner, session, now)", "return owner, replayed, nil"},
	}},
	{"two hundred guesses at a password are free", []edit{
		{inAuth, "here:    rate{20, 90 * time.Second},", "here:    rate{200, 90 * time.Second},"},
	}},
	{"a code of an app is good twice", []edit{
		{inAuth, "if at > f.Counter && subtle", "if at >= f.Counter && subtle"},
	}},
	{"a second step may wait for an hour", []edit{
		{inAuth, "!s.o.Now().Before(c.At.Add(ChallengeLife)) {\n\t\treturn c, ErrChallenge", "!s.o.Now().Before(c.At.Add(12*ChallengeLife)) {\n\t\treturn c, ErrChallenge"},
	}},
	{"a proof is good for an hour", []edit{
		{inAuth, "until = s.o.Now().Add(ProofLife)", "until = s.o.Now().Add(12 * ProofLife)"},
	}},
	{"a sign-out ends nothing", []edit{
		{inAuth, "return tx.EndSession(ctx, p.Session, endedByLogout, s.o.Now())", "return nil"},
	}},
	{"what is asked of the gateway together ends at the first that fails", []edit{
		{inAPI, "data.Results = append(data.Results, result)\n", "data.Results = append(data.Results, result)\n\t\tif !result.Success {\n\t\t\tbreak\n\t\t}\n"},
	}},
	{"a file of decisions has one page of them", []edit{
		{inAPI, "a.decisionsOf(r.Context(), req.subject, exportedDecisions)", "a.decisionsOf(r.Context(), req.subject, min(req.limit, exportedDecisions))"},
	}},
	{"an event shows its object as it is today", []edit{
		{inAPI, "about = about[:end+1]\n\tentry := about[end]", "entry := about[end]\n\tif e.Type == event.SaleRefunded {\n\t\tabout = about[:end+1]\n\t}"},
	}},
	{"a statement ends where a checkpoint left its journal behind", []edit{
		{inProof, "if journalState.Behind && left < timeout {", "if journalState.Behind && left > timeout {"},
		{inProof, "case journalState.Behind:\n\t\t\tcontinue\n", ""},
	}},
	{"the last admin is suspended", []edit{
		{inAuth, "&& to != (Access{Role: Admin}) {", "&& to.Role != Admin {"},
	}},
	{"no proof of lifting a hold is to be had", []edit{
		{inDecision, "ChangeAccess, LiftHold,\n", "ChangeAccess,\n"},
	}},
	{"deliveries of an event are listed for every endpoint", []edit{
		{inStore, "case f.Endpoint == \"\":", "case f.Endpoint == \"\" || f.Event != \"\":"},
	}},
	{"a claim is seen for two hours", []edit{
		{inInbox, "s.Store.Claims(ctx, s.Now().Add(-ClaimLasts))", "s.Store.Claims(ctx, s.Now().Add(-2*ClaimLasts))"},
	}},
	{"a mail whose worker died counts as sent", []edit{
		{inMail, "\terr = s.send(ctx, m)\n\tvar rejected", "\tif m.Tries > 1 && m.LastError == \"\" {\n\t\treturn s.end(ctx, m, Sent, \"\")\n\t}\n\terr = s.send(ctx, m)\n\tvar rejected"},
	}},
	{"a mail that was not taken is not rescheduled", []edit{
		{inMail, "tx.DeferMail(ctx, m.ID, m.Tries, s.o.Now().Add(wait)", "tx.DeferMail(ctx, m.ID, m.Tries+1, s.o.Now().Add(wait)"},
	}},
	{"an answer that was lost on an open connection counts as not sent", []edit{
		{inHTTPAPI, "GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }", "GotConn: func(i httptrace.GotConnInfo) { connected.Store(!i.Reused) }"},
	}},
	{"what came back is looked for on the first page alone", []edit{
		{inPayout, "if err != nil || page.Next == \"\" {\n\t\t\treturn rescheduled, err", "if err != nil || page.Next == \"\" || n == 0 {\n\t\t\treturn rescheduled, err"},
	}},
	{"what undoes a change of address is mailed to the new one", []edit{
		{inAuth, "mail.Mail{To: u.Email, Data: mail.EmailChanged{Request: undo", "mail.Mail{To: t.Email, Data: mail.EmailChanged{Request: undo"},
	}},
	{"payouts that failed are exported as completed", []edit{
		{inAPI, "string(stampOrNull(p.CompletedAt)), string(stampOrNull(p.EndedAt))", "string(stampOrNull(p.EndedAt)), string(stampOrNull(p.EndedAt))"},
	}},
	{"the pages of adjustments overlap", []edit{
		{inStore, "adjustmentEntries, seller, before, limit)", "adjustmentEntries, seller, max(before, before+1), limit)"},
	}},
	{"the end of a pause wakes nothing that waited", []edit{
		{inPayout, "\tif isStop(d.Action) {\n\t\treturn nil\n\t}\n\tseller := d.Owner", "\tif isStop(d.Action) || d.Action == decision.ResumePayouts {\n\t\treturn nil\n\t}\n\tseller := d.Owner"},
	}},
	{"the list of late payouts has those that are asked about soon", []edit{
		{inStore, "const stepWithin = 8 * time.Hour", "const stepWithin = 30 * time.Minute"},
	}},
	{"the net amount of an exported payout is the gross one", []edit{
		{inAPI, "c.FormatFixed(p.Fee), c.FormatFixed(p.Net())", "c.FormatFixed(p.Fee), c.FormatFixed(p.Amount)"},
	}},
	{"a statement that names no days leaves today out", []edit{
		{inProof, "limits.StartOfDay(now, 1-now.Day()), limits.StartOfDay(now, 1)", "limits.StartOfDay(now, 1-now.Day()), limits.StartOfDay(now, 0)"},
	}},
	{"an opening balance with another amount to come counts as a repeat", []edit{
		{inSale, " || isSold && sold.Fingerprint != pending.Fingerprint {", " {"},
	}},
	{"a former address is given to the next who asks", []edit{
		{inStore, "if t.Purpose == auth.UndoEmailChange {", "if t.Purpose == \"\" {"},
	}},
	{"a leaked key makes links after its rotation", []edit{
		{inAuth, "if err == nil && !isAccepted {", "if err == nil && !isAccepted && stored.ID != key.ID {"},
	}},
	{"a session that was ended leaves its link to another address", []edit{
		{inAuth, "if err := tx.DeleteMailTokens(ctx, p.UserID, confirmEmail); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{"the first factor leaves a link to another address", []edit{
		{inAuth, "if err := tx.DeleteMailTokens(ctx, user.ID, confirmEmail); err != nil { // from now on", "if err := error(nil); err != nil { // from now on"},
	}},
	{"recovery codes stay when the last factor goes", []edit{
		{inAuth, "if f.ID == factor || len(left) == 0 &&", "if f.ID == factor || len(left) < 0 &&"},
	}},
	{"recovery codes go with the first of two factors", []edit{
		{inAuth, "if f.ID == factor || len(left) == 0 &&", "if f.ID == factor || len(left) >= 0 &&"},
	}},
	{"who undoes a change of address leaves a link about a factor", []edit{
		{inAuth, "if err := tx.DeleteMailTokensSince(ctx, u.ID, UndoFactor, since); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{"a deleted account keeps its way in through a provider", []edit{
		{inAuth, "func() error { return tx.RemoveIdentities(ctx, user.ID) },", "func() error { return nil },"},
	}},
	{"a deleted account keeps its website", []edit{
		{inAuth, "ProfileChange{Name: &name, Avatar: &none, Bio: &none, Website: &none}", "ProfileChange{Name: &name, Avatar: &none, Bio: &none}"},
	}},
	{"a seller whose payouts are stopped and on hold hears of the hold alone", []edit{
		{inPayout, "err = list[0].Refusal", "err = list[len(list)-1].Refusal"},
	}},
	{"no answer says since when less than a payout is available", []edit{
		{inPayout, "return v.BelowSince(ctx, seller, s.o.Minimum)", "return time.Time{}, nil"},
	}},
	{"a hold is said to begin with a stop", []edit{
		{inPayout, "ledger.PayoutsOnHold)\n\tcase BlockedInReview", "ledger.PayoutsFrozen)\n\tcase BlockedInReview"},
	}},
	{"a user is suspended since the last word on it", []edit{
		{inAuth, "\t\tsince = e.At\n", "\t\treturn e.At, nil\n"},
	}},
	{"a user is suspended since the first time ever", []edit{
		{inAuth, "if !decidesSuspended(said.Note) {\n\t\t\tbreak", "if !decidesSuspended(said.Note) {\n\t\t\tcontinue"},
	}},
	{"the figures of seven days are of eight", []edit{
		{inPayout, "{FiguresDays - 7, FiguresDays}", "{FiguresDays - 8, FiguresDays}"},
	}},
	{"guesses at an account from many places are free", []edit{
		{inAuth, "\tadd(l.others, \"account\", t.account)\n", ""},
	}},
	{"a service key is used on the first day alone", []edit{
		{inAuth, "if k.UsedOn >= today {", "if k.UsedOn != \"\" {"},
	}},
	{"a refund of a part, sent again as all that is left, is a repeat", []edit{
		{inSale, "if first.Fingerprint != fingerprint {\n\t\t\treturn Sale{}, Refund{}, false, ErrRefundConflict", "if first.Fingerprint != fingerprint && n.Amount != 0 {\n\t\t\treturn Sale{}, Refund{}, false, ErrRefundConflict"},
	}},
	{"who lifts a hold ends a freeze", []edit{
		{inLedger, "case PayoutsHoldLifted:\n\t\tb.HoldUntil = 0", "case PayoutsHoldLifted:\n\t\tb.HoldUntil, b.Frozen = 0, false"},
	}},
	{"a statement ends with the last checkpoint that knows its seller", []edit{
		{inProof, "journalState.Checkpointed.Number >= journalState.Now.Number", "journalState.Checkpointed.Number >= 1"},
	}},
	{"who asks for another address again leaves the first link", []edit{
		{inStore, "if !t.Another() && !t.Undoes() {", "if !t.Another() && !t.Undoes() && t.Purpose != \"confirm_email\" {"},
	}},
	{"who undoes a change of address leaves a factor that was begun before", []edit{
		{inAuth, "f.Confirmed() && f.ConfirmedAt.Before(since) }", "f.Confirmed() && f.CreatedAt.Before(since) }"},
	}},
	{"admins see a hold that is over", []edit{
		{inAPI, "HoldUntil: stampOrNull(b.Hold(a.o.Now())),", "HoldUntil: stampOrNull(b.Hold(a.o.Now().AddDate(0, -1, 0))),"},
	}},
	{"a statement's file is named after the day behind its last", []edit{
		{inProof, "s.To.Add(-time.Microsecond).In(s.zone)", "s.To.In(s.zone)"},
	}},
	{"a statement of a period before all entries has the first", []edit{
		{inStore, "return first, max(next, first) - 1, err", "return first, max(next-1, first), err"},
	}},
	{"a statement ends with the last entry of its time, after one of a later time", []edit{
		{inStore, "COALESCE(MIN(CASE WHEN at >= $4 THEN number END), MAX(number) + 1, 1)", "COALESCE(MAX(CASE WHEN at < $4 THEN number END) + 1, 1)"},
	}},
	{"an account that follows a rejected one does not wait, though an earlier one is verified", []edit{
		{inStore, "isVerified = isVerified || !judged[subject] && verdict == ledger.BankAccountVerified", "isVerified = isVerified || len(judged) == 0 && verdict == ledger.BankAccountVerified"},
	}},
	{"a copied session leaves the change of the address that it asked for", []edit{
		{inAuth, "return tx.DeleteMailTokens(ctx, userID, confirmEmail)", "return nil"},
	}},
	{"an endpoint that answered 410 waits for no admin", []edit{
		{inWebhook, "e.Status == Disabled && e.Reason != ByHand", "e.Status == Disabled && e.Reason == Failing"},
	}},
	{"a provider that was unlinked stays linked", []edit{
		{inAuth, "if err := tx.RemoveIdentitiesOf(ctx, user.ID, issuer); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{"a provider that was unlinked is linked again by the address", []edit{
		{inAuth, "if err := s.mayLink(ctx, tx, user, presented, fresh.CreatedAt); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{"a proof by password is good beside a second factor", []edit{
		{inAuth, "hasFactor(all) && !given.ByCode || given.User", "given.User"},
	}},
	{"a mail to an address that was never confirmed names the next one", []edit{
		{inAuth, "mail.EmailChanged{Request: request, HoldUntil: until}", "mail.EmailChanged{Request: request, Now: t.Email, HoldUntil: until}"},
	}},
	{"four digits find no account", []edit{
		{inSearch, "if len(query) == 4 && allDigits(query) {", "if len(query) == 5 && allDigits(query) {"},
	}},
	{"a service that never compared a day begins with yesterday", []edit{
		{inReconcile, "case err != nil, sent.IsZero(), sent.After(dayBefore):", "case true:"},
	}},
	{"an instance knows only of the unmatched transfers that it has listed", []edit{
		{inPayout, "return len(s.lost.of[seller]) > 0 || s.lost.named[seller]", "return len(s.lost.of[seller]) > 0"},
	}},
	{"who undoes a change of address ends the links of earlier ones", []edit{
		{inAuth, "tx.DeleteMailTokensSince(ctx, u.ID, UndoEmailChange, t.CreatedAt)", "tx.DeleteMailTokens(ctx, u.ID, UndoEmailChange)"},
	}},
	{"that a returned payout is paid again is late for ever", []edit{
		{inPayout, "return isReversed && now.Sub(p.EndedAt) <= lateOfReversals", "return p.State == Returned || isReversed && now.Sub(p.EndedAt) <= lateOfReversals"},
	}},
	{"a freeze ends while a returned payout has a discrepancy", []edit{
		{inStore, "state IN ('failed', 'cancelled', 'returned') ORDER BY id LIMIT 1", "state IN ('failed', 'cancelled') ORDER BY id LIMIT 1"},
	}},
	{"an account whose payouts are frozen can be deleted", []edit{
		{inAuth, "if left, err = tx.HasOpenCase(ctx, user.ID); err == nil && left {", "if left, err = tx.HasOpenCase(ctx, user.ID); false {"},
	}},
	{"that a transfer failed and that it is paid are one discrepancy", []edit{
		{inPayout, "(freezesAlways || p.endedUnpaid() && !saysUnpaid(p.Progress))", "(freezesAlways || p.endedUnpaid())"},
	}},
	{"nobody learns that what was paid after the end of a payout came back", []edit{
		{inPayout, "case p.endedUnpaid() && p.Progress == gateway.Paid && saysUnpaid(r.Progress):", "case p.endedUnpaid() && p.Progress == gateway.Paid && p.State == \"\":"},
	}},
	{"that nothing of another transfer left is forgotten", []edit{
		{inPayout, "if p.endedUnpaid() {\n\t\tp.Progress = r.Progress", "if p.isRefundedOf(r) {\n\t\tp.Progress = r.Progress"},
	}},
	{"a password that a thief may know signs in after the undo", []edit{
		{inAuth, "if _, err := tx.SetPasswordHash(ctx, u.ID, u.PasswordHash, \"\"); err != nil {\n\t\treturn err\n\t}\n\ttext", "text"},
	}},
	{"a session that has ended requests payouts", []edit{
		{inPayout, "if call.confirm != nil {", "if call.confirm != nil && call.key != \"\" {"},
	}},
	{"who has no session any more learns what is wrong with a request", []edit{
		{inAPI, "if _, refused := who.confirm(); refused != nil {", "if _, refused := who.confirm(); refused != nil && err == nil {"},
	}},
}
