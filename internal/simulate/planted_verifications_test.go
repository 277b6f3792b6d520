package simulate_test

// verificationBugs are in webhook endpoints, verifications of bank accounts, imports, rails and idempotency keys.
var verificationBugs = []planted{
	{"an endpoint that fails is never disabled", []edit{
		{inWebhook, "case h.Failures > 0 && now.Sub(h.FailingSince) >= disabledAfter:", "case h.Failures < 0 && now.Sub(h.FailingSince) >= disabledAfter:"},
	}},
	{"what an endpoint has yet to take is swept", []edit{
		{inStore, "WHERE e.id = d.endpoint_id AND e.status = 'enabled'))", "WHERE e.id = d.endpoint_id AND e.status = 'disabled'))"},
	}},
	{"a verification is waited for without end", []edit{
		{inBank, "v.Outcome == gateway.OutcomePending && age < timeout", "v.Outcome == gateway.OutcomePending && age < 1000*timeout"},
	}},
	{"a verification waits for a gateway that is not configured", []edit{
		{inBank, "	g := s.verifier(*a)\n", "	g := s.verifier(*a)\n	if a.Gateway != \"\" && a.Gateway != g.Name() {\n		return gateway.Verification{}, gateway.ErrNotConfigured\n	}\n"},
	}},
	{"a verification goes on at a gateway that did not begin it", []edit{
		{inBank, "a.Gateway == g.Name() && a.VerificationID != \"\" && !byHand", "a.VerificationID != \"\" && !byHand"},
	}},
	{"a verification is asked of the gateway of today", []edit{
		{inBank, "if g, err := s.o.Gateways.Named(a.Gateway); err == nil {\n\t\treturn g\n\t}", "if g, err := s.o.Gateways.Named(a.Gateway); err == nil && a.VerificationID == \"\" {\n\t\treturn g\n\t}"},
	}},
	{"what was put into the account counts as paid for payouts", []edit{
		{inReconcile, "sums.PutIn += l.Credit", "sums.Credits += l.Credit\n\t\tsums.Taken += l.Credit"},
	}},
	{"what came back counts as paid", []edit{
		{inReconcile, "case owner != \"\":\n\t\tc.recorded[owner] += 0\n\t\tsums.Debits += l.Debit\n\t\tsums.Credits += l.Credit", "case owner != \"\":\n\t\tc.recorded[owner] += 0\n\t\tsums.Debits += l.Debit + l.Credit"},
	}},
	{"the name at another gateway takes the place of the first", []edit{
		{inBank, "if _, err := s.o.Gateways.Named(a.Gateway); err == nil {\n\t\treturn beneficiary, nil", "if _, err := s.o.Gateways.Named(a.Gateway); err == nil && a.Gateway == \"\" {\n\t\treturn beneficiary, nil"},
	}},
	{"a bank account that is rejected at the moment of sending is paid", []edit{
		{inPayout, "if err == nil && account.Status != bank.StatusVerified {\n\t\terr = bank.ErrNotAccepted", "if err == nil && account.Status == \"\" {\n\t\terr = bank.ErrNotAccepted"},
	}},
	{"a payout arrives as if it were sent at once", []edit{
		{inPayout, "s.o.Arrival.Estimate(chosen.Capabilities().Rails, p.Net(), submitAt)", "s.o.Arrival.Estimate(chosen.Capabilities().Rails, p.Net(), now)"},
	}},
	{"banks rest on the first and the third Saturday", []edit{
		{inPayout, "week == 2 || week == 4", "week == 1 || week == 3"},
	}},
	{"a found transfer was taken on when it was found", []edit{
		{inPayout, "p.ProcessedAt = r.MadeAt\n", "p.ProcessedAt = now\n"},
	}},
	{"idempotency keys are never forgotten", []edit{
		{inStore, "SELECT user_id, key FROM idempotency_keys WHERE created_at < $1 LIMIT", "SELECT user_id, key FROM idempotency_keys WHERE created_at < $1 AND 1 = 0 LIMIT"},
	}},
	{"a repeated request is said to be new", []edit{
		{inPayout, "if err == nil && !replayed {\n\t\ts.o.StateChanged(\"\", p.State)\n\t}\n\treturn p, replayed, err", "if err == nil && !replayed {\n\t\ts.o.StateChanged(\"\", p.State)\n\t}\n\treturn p, false, err"},
	}},
	{"a payout is over when it was sent", []edit{
		{inPayout, "p.State, p.EndedAt = to, now", "p.State, p.EndedAt = to, p.SentAt"},
	}},
	{"a bank account is verified when it was registered", []edit{
		{inBank, "if a.Status == StatusVerified {\n\t\ta.VerifiedAt = now", "if a.Status == StatusVerified {\n\t\ta.VerifiedAt = a.CreatedAt"},
	}},
	{"an entry about a payout is of when it was requested", []edit{
		{inPayout, "Owner: p.Seller, At: now, Type: entryType(was, p)", "Owner: p.Seller, At: p.RequestedAt, Type: entryType(was, p)"},
	}},
	{"a payout is paid when the gateway took it on", []edit{
		{inPayout, "p.CompletedAt = now\n", "p.CompletedAt = p.ProcessedAt\n"},
	}},
	{"an account that an admin accepted keeps the reason of before", []edit{
		{inBank, "a.Status, a.Reason = StatusVerified, \"\"\n\ta.VerifiedAt = s.o.Now()", "a.Status = StatusVerified\n\ta.VerifiedAt = s.o.Now()"},
	}},
	{"a fee that came back counts as kept", []edit{
		{inReconcile, "if l.Credit > 0 {\n\t\t\tfee = -fee\n\t\t}\n\t\tsums.Fees += fee", "sums.Fees += fee"},
	}},
}
