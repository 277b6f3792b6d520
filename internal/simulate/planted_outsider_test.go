package simulate_test

// outsiderBugs were planted by an engineer who had not read the simulator, and it missed them then.
var outsiderBugs = []planted{
	{"an admin cancels what was sent to a gateway that is gone", []edit{
		{inPayout, "c.decidesAbout(asked) && asked.SentAt.IsZero() && !s.o.Restored", "c.decidesAbout(asked) && !s.o.Restored"},
	}},
	{"an order is sent long after its lease ran out", []edit{
		{inPayout, "s.o.Now().Round(0).Sub(claimedAt.Round(0)) >= s.o.Lease", "s.o.Now().Round(0).Sub(claimedAt.Round(0)) >= 60*s.o.Lease"},
	}},
	{"admins do not see who resumed payouts", []edit{
		{inStore, "type IN ('admin.decided', 'payouts.frozen', 'payouts.unfrozen', 'balance.adjusted')", "type IN ('admin.decided', 'payouts.frozen', 'balance.adjusted')"},
	}},
	{"an admin accepts their own bank account", []edit{
		{inBank, "if err := made.CheckNotOwn(); err != nil {", "if err := made.CheckNotOwn(); err != nil && by.Admin == \"\" {"},
	}},
	{"an endpoint is said to have taken its last event when it took the first", []edit{
		{inStore, "retry_at = $4, last_delivered_at = $5 WHERE id = $1", "retry_at = $4, last_delivered_at = COALESCE(last_delivered_at, $5) WHERE id = $1"},
	}},
	{"the nights are said to fail after they have succeeded", []edit{
		{inReconcile, "pace = Pace{LookedAt: s.o.Now()}", "pace.LookedAt = s.o.Now()"},
	}},
}
