package simulate_test

// furtherBugs were planted by somebody who did not know the list of bugs, and were not found at first.
var furtherBugs = []planted{
	{"a sending that did not happen forgets the one before", []edit{
		{inPayout, "p.SentAt = seen.SentAt", "p.SentAt = time.Time{}"},
	}},
	{"a refunded payout is not polled again", []edit{
		{inPayout, "You can request it again.\"\n\t\ts.finish(p, Failed)", "You can request it again.\"\n\t\tp.endAs(Failed, s.o.Now())"},
	}},
	{"what the gateway does not know is looked at once", []edit{
		{inPayout, "due := s.nextPollAt(*p, now)\n\t\tif notOffered", "due := time.Time{}\n\t\tif notOffered"},
	}},
	{"what has failed is not looked at again", []edit{
		{inPayout, "case !p.endedUnpaid() || !p.mayBeAtGateway()", "case p.State != Cancelled || !p.mayBeAtGateway()"},
	}},
	{"what is paid is looked at once", []edit{
		{inPayout, "\t\tnext := now.Add(s.o.Jitter(waitAfter(waits, p.Tries)))\n", "\t\tnext := now.Add(30 * 24 * time.Hour)\n\t\t_ = waits\n\t\treturn time.Time{}\n"},
	}},
	{"a payout in review is not polled again", []edit{
		{inPayout, "\t\t\tp.setNextPoll(seen, now.Add(s.o.Jitter(reviewPollWait)))\n\t\t\treturn nil\n", "\t\t\tp.DueAt = time.Time{}\n\t\t\treturn nil\n"},
	}},
	{"the amount before the fee is accepted", []edit{
		{inPayout, "case r.Amount != p.Net():\n\t\treturn fmt.Errorf(\"it has a transfer of %s %s, ordered were %s\", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))", "case r.Amount != p.Net() && r.Amount != p.Amount:\n\t\treturn fmt.Errorf(\"it has a transfer of %s %s, ordered were %s\", c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))"},
	}},
	{"what was paid twice is not found", []edit{
		{inReconcile, "case debits-credits > 1:", "case debits-credits > 2:"},
	}},
	{"a payout without a line is not found", []edit{
		{inReconcile, "case debits == 0:\n\t\treturn PayoutWithoutLine", "case debits == 0 && credits > 0:\n\t\treturn PayoutWithoutLine"},
	}},
	{"a return on the statement alone is not found", []edit{
		{inReconcile, "case d.p.State == payout.Completed && credits >= debits:", "case d.p.State == payout.Completed && credits > debits:"},
	}},
	{"a return without a line is not found", []edit{
		{inReconcile, "case d.p.State == payout.Returned && credits < debits:", "case d.p.State == payout.Returned && credits < debits-1:"},
	}},
	{"a payout that was paid and refunded is not found", []edit{
		{inReconcile, "if debits > credits && d.isReadSince(d.p.EndedAt) {", "if debits > credits+1 && d.isReadSince(d.p.EndedAt) {"},
	}},
	{"a fee that nobody told is not found", []edit{
		{inReconcile, "case !right:", "case !right && moved == 0:"},
	}},
	{"a line in another currency is not found", []edit{
		{inReconcile, "case l.Currency != d.currency.Code() && (l.Gateway == d.gateway || !d.elsewhere()):\n\t\t\tdiffers", "case l.Currency == \"\":\n\t\t\tdiffers"},
	}},
	{"a line that names no payout of ours is not found", []edit{
		{inReconcile, "if isOne && !d.fresh && !d.isExplained() {", "if isOne && !d.fresh && d.resolved {"},
	}},
	{"a changed statement line is not found", []edit{
		{inStore, "s.linesAfter(ctx, ` AND (first_reported <> last_reported OR missing = 1)`", "s.linesAfter(ctx, ` AND missing = 1`"},
	}},
	{"the first version of a statement line is lost", []edit{
		{inStore, "\tlast_reported = excluded.last_reported, missing = 0,", "\tfirst_reported = excluded.first_reported, last_reported = excluded.last_reported, missing = 0,"},
	}},
	{"a difference that was resolved stays resolved", []edit{
		{inStore, "resolved_at = CASE WHEN differences.detail = excluded.detail THEN differences.resolved_at END`", "resolved_at = differences.resolved_at`"},
	}},
	{"a difference that is gone stays open", []edit{
		{inReconcile, "\t\tdefault:\n\t\t\tgone = append(gone, d)", "\t\tdefault:\n\t\t\t_ = append(gone, d)"},
	}},
	{"a return on the statement is not asked about", []edit{
		{inReconcile, "[]Kind{ReturnedAtGateway, RefundedButPaid, ReturnWithoutLine}", "[]Kind{RefundedButPaid}"},
	}},
	{"lines that are gone are summed up", []edit{
		{inStore, "AND currency = $3 AND missing = 0`, []any", "AND currency = $3`, []any"},
	}},
	{"a line belongs to whom its notes name", []edit{
		{inReconcile, "if id, isKnown := byTransfer[TransferKey{l.Gateway, l.Transfer}]; isKnown {", `if id, isKnown := byTransfer[TransferKey{l.Gateway, l.Transfer}]; isKnown && l.Payout != "" {`},
	}},
	{"why it was not paid is not kept", []edit{
		{inPayout, "\tdefault:\n\t\tp.ReasonCode, p.Reason = r.ReasonCode, r.Reason\n", "\tdefault:\n"},
	}},
	{"when the gateway took it on moves with each look", []edit{
		{inPayout, "if p.ProcessedAt.IsZero() {", "if !now.IsZero() {"},
	}},
	{"a notification counts only when it comes again", []edit{
		{inPayout, "if err != nil || !isNew {\n\t\t\treturn err\n\t\t}\n\t\t_, err = tx.ReschedulePayout", "if err != nil || isNew {\n\t\t\treturn err\n\t\t}\n\t\t_, err = tx.ReschedulePayout"},
	}},
	{"events of one kind about a payout are one", []edit{
		{inRazorpayx, "notification.EventID = header.Get(EventIDHeader)", ""},
		{inRazorpayx, "notification.Reference = p.Entity.reference()", "notification.Reference, notification.EventID = p.Entity.reference(), e.Event+p.Entity.reference()"},
	}},
	{"how the gateway has it is not kept", []edit{
		{inPayout, "\t\tp.Progress = r.Progress\n\t}\n\tp.clearNoGateway()", "\t}\n\tp.clearNoGateway()"},
	}},
	{"what is queued is taken for under way", []edit{
		{inRazorpayx, "StatusQueued:     gateway.Queued,", "StatusQueued:     gateway.InProgress,"},
	}},
	{"a quote takes the fee off twice", []edit{
		{inPayout, "Fee: p.Fee, Net: p.Net(), Rail: p.Rail", "Fee: p.Fee, Net: p.Net() - p.Fee, Rail: p.Rail"},
	}},
	{"an honest answer clears a discrepancy", []edit{
		{inPayout, "if intact && p.IsTampered() { // it was repaired", "if intact { // it was repaired"},
	}},
	{"a refund is answered with the sale as it was", []edit{
		{inSale, "\tsale.Refunded += refund.Amount\n", ""},
	}},
	{"what is written in a group is not in the feed", []edit{
		{inStore, "queuedEventTable.inserts(d, eventsOf(w.entries))", "queuedEventTable.inserts(d, nil)"},
	}},
	{"of what is numbered at once, the last is dropped", []edit{
		{inStore, "events := make([]event.Event, len(waiting))", "waiting = waiting[:max(1, len(waiting)-1)]\n\tevents := make([]event.Event, len(waiting))"},
	}},
	{"the feed tells a journal backwards", []edit{
		{inStore, "return cmp.Compare(a.place, b.place)", "return cmp.Compare(b.place, a.place)"},
	}},
	{"a page of the feed begins with the last event of the one before", []edit{
		{inStore, "selectEvents + ` WHERE e.number > $1", "selectEvents + ` WHERE e.number >= $1"},
	}},
	{"every entry below zero is an event", []edit{
		{inEvent, "e.After.Available < 0 && before >= 0", "e.After.Available < 0 || before < 0"},
	}},
	{"a receiver's error counts as a delivery", []edit{
		{inWebhook, "a.Status >= 200 && a.Status < 300", "a.Status >= 200 && a.Status != 410"},
	}},
	{"a delivery without an answer counts as taken", []edit{
		{inWebhook, "return Answer{}, failure.Error(), nil", "return Answer{Status: 204}, \"\", nil"},
	}},
	{"a delivery is given up after its second attempt", []edit{
		{inWebhook, "case d.Attempt > int64(len(waits)):", "case d.Attempt > 1:"},
	}},
	{"a delivery that failed is not tried again", []edit{
		{inWebhook, "d.DueAt = now.Add(max(s.o.Jitter(waits[max(d.Attempt-1, 0)]), t.retryAfter))", "d.DueAt = now.Add(365 * 24 * time.Hour)"},
	}},
	{"a delivery that a crash cut short is not tried again", []edit{
		{inWebhook, "taken, err = tx.TakeDeliveries(ctx, e.ID, now, now.Add(lease), limit)", "taken, err = tx.TakeDeliveries(ctx, e.ID, now, now.Add(1000*time.Hour), limit)"},
	}},
	{"an endpoint gets deliveries of all types", []edit{
		{inStore, "if endpoints[i].Wants(e.Type) {", "if endpoints[i].Wants(e.Type) || e.Number%2 == 0 {"},
	}},
	{"only the first endpoint gets deliveries", []edit{
		{inStore, "if endpoints[i].Wants(e.Type) {", "if endpoints[i].Wants(e.Type) && i == 0 {"},
	}},
	{"a delivery is signed without its time", []edit{
		{inWebhook, `mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))`, `mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix()/1000, 10) + "."))`},
	}},
	{"deliveries to a disabled endpoint go on", []edit{
		{inWebhook, "if err != nil || !found || e.Status != Enabled {", "if err != nil || !found {"},
		{inStore, "e.status = 'enabled' AND (e.leased_until <= $1", "(e.leased_until <= $1"},
	}},
	{"a decision about a bank account is in the platform's journal", []edit{
		{inBank, "made := decision.New(by, action, seen.Seller, string(id), s.o.Now())", "made := decision.New(by, action, \"\", string(id), s.o.Now())"},
	}},
	{"a balance that falls below zero from nothing is no event", []edit{
		{inEvent, "e.After.Available < 0 && before >= 0", "e.After.Available < 0 && before > 0"},
	}},
	{"a pause that was hidden in the database is over", []edit{
		{inStore, "if err == nil && newest != head.Number {\n\t\terr = ledger.ErrTampered.Because(fmt.Errorf(\"the balance of %s is that after entry %d, and there are entries up to %d\"", "if err == nil && newest < head.Number {\n\t\terr = ledger.ErrTampered.Because(fmt.Errorf(\"the balance of %s is that after entry %d, and there are entries up to %d\""},
	}},
	{"each night reads its own day alone", []edit{
		{inReconcile, "s.reconcile(ctx, day, true, true)", "s.reconcile(ctx, day, false, true)"},
	}},
	{"a webhook's old secret does not sign", []edit{
		{inWebhook, "if !now.Before(e.OldUntil) {", "if now.Before(e.OldUntil) {"},
	}},
	{"admins adjust their own balances", []edit{
		{inSale, "if n.Seller == n.By.Admin {", "if n.Seller == \"\" {"},
	}},
	{"an adjustment needs no reason", []edit{
		{inSale, "return n.By.RequireNote()", "return n.By.CheckNote()"},
	}},
	{"a hold is lifted without a reason", []edit{
		{inPayout, "func (s *Service) LiftHold(ctx context.Context, by decision.By, seller string, seen time.Time) error {\n\tif err := by.RequireNote(); err != nil {", "func (s *Service) LiftHold(ctx context.Context, by decision.By, seller string, seen time.Time) error {\n\tif err := by.CheckNote(); err != nil {"},
	}},
	{"the limit for proofs is for what is left after the fee", []edit{
		{inPayout, "return r.Session != \"\" && s.NeedsProof(r.Amount) }", "return r.Session != \"\" && s.NeedsProof(r.Amount-s.o.Fee.Of(r.Amount)) }"},
	}},
	{"a refund is taken from what should have been released", []edit{
		{inSale, "ledger.RefundSale(r.Amount, sale.Released())", "ledger.RefundSale(r.Amount, !r.At.Before(sale.AvailableAt))"},
	}},
	{"a verification that failed is not tried again", []edit{
		{inBank, "a.DueAt = now.Add(s.o.Jitter(backoff(a.Tries)))\n\t\treturn a", "a.DueAt = time.Time{}\n\t\treturn a"},
	}},
	{"banks are given two days to return a payout", []edit{
		{inPayout, "return a.at(a.workingDay(completedAt, 3), 24*60)", "return a.at(a.workingDay(completedAt, 2), 24*60)"},
	}},
	{"a replaced bank account outlives a takeover", []edit{
		{
			inStore, "`SELECT id FROM bank_accounts WHERE seller_id = $1 UNION\n\t\t\tSELECT subject FROM entries WHERE owner = $1 AND type = 'bank_account.added' ORDER BY 1`",
			"`SELECT id FROM bank_accounts WHERE seller_id = $1 AND is_current = 1`",
		},
	}},
	{"what waited while all payouts were paused is not due when they are resumed", []edit{
		{inPayout, "if seller == decision.Platform {\n\t\tseller = \"\"\n\t}\n", ""},
	}},
	{"a gap in the statement is gone before its day is read again", []edit{
		{inReconcile, "case d.Kind == StatementHasGap && !r.looked[d.Subject]:\n", ""},
	}},
	{"just the least amount is said to be too little", []edit{
		{inPayout, "case balance.Available < s.o.Minimum:", "case balance.Available <= s.o.Minimum:"},
	}},
	{"a journal that was found whole may lack entries about a payout", []edit{
		{inStore, "if !slices.Equal(tail.entries[subject], numbers) {", "if subject == \"\" && !slices.Equal(tail.entries[subject], numbers) {"},
	}},
	{"of a seller's sales that are released at once, one journal check is enough", []edit{
		{inSale, "known && checked <= from {", "known && checked > 0 {"},
	}},
	{"a repair adds up earnings without the refunds", []edit{
		{inStore, "SELECT seller_id, month, SUM(amount - refunded) FROM sales WHERE seller_id = $1", "SELECT seller_id, month, SUM(amount) FROM sales WHERE seller_id = $1"},
	}},
	{"a repaired bank account leaves its payouts' discrepancies", []edit{
		{inPayout, "if row.IsTampered() || ofAccount && row.DiffersInAccount() {", "if row.IsTampered() {"},
	}},
	{"a sale that was made due by hand is released", []edit{
		{inSale, "if now.Before(sale.AvailableAt) {", "if now.Before(sale.OccurredAt) {"},
	}},
	{"a refund that only its table has lost is made again", []edit{
		{inSale, "if recorded != stored {", "if stored.Amount > 0 && recorded != stored {"},
	}},
	{"a delivery that was taken and not begun counts as tried", []edit{
		{inWebhook, "t.Attempt, t.DueAt = t.Attempt-1, s.now()", "t.DueAt = s.now()"},
	}},
	{"a balance is opened for a seller who has withdrawn all", []edit{
		{inSale, "if (balance != ledger.Balance{HoldUntil: balance.HoldUntil, Frozen: balance.Frozen}) {", "if balance.Available != 0 || balance.Pending != 0 || balance.InTransit != 0 {"},
	}},
	{"final checks of a failed payout end when its discrepancy is resolved", []edit{
		{inPayout, "p.Tries = max(p.Tries, len(finalChecks))\n\t\t\tif now := s.o.Now(); p.DueAt.IsZero() || p.DueAt.After(now) { // else a notification is yet to be followed\n\t\t\t\tp.DueAt = s.nextPollAt(*p, now)\n\t\t\t}", "p.Tries = max(p.Tries, len(finalChecks))"},
	}},
	{"the sales of a batch do not name who recorded them", []edit{
		{inSale, "earn(ctx, tx, drafts[i], group[i].Actor, now)", "earn(ctx, tx, drafts[i], \"\", now)"},
	}},
}
