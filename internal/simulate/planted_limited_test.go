package simulate_test

// limitedBugs are about a gateway that lacks most of what others offer. They are looked for with --limited.
var limitedBugs = []planted{
	{"a payout whose order can't be looked up is never sent again", []edit{
		{inPayout, "notFound := errors.Is(err, gateway.ErrUnknownTransfer) || errors.Is(err, gateway.ErrNotOffered)", "notFound := errors.Is(err, gateway.ErrUnknownTransfer)"},
	}},
	{"a rejected order that can't be looked up counts as not taken", []edit{
		{inPayout, "if !g.Capabilities().Lookup && a.Outcome != gateway.Accepted {", "if !g.Capabilities().Lookup && a.Outcome == gateway.Refused {"},
	}},
	{"a payout that has ended is not found by its id at the gateway", []edit{
		{inPayout, "p.GatewayID != \"\" && (!byReference || p.State == Submitted || p.State == Completed)", "p.GatewayID != \"\" && (p.State == Submitted || p.State == Completed)"},
	}},
	{"what is paid is looked at once a day where no returns are listed", []edit{
		{inPayout, "err == nil && !g.Capabilities().List {", "err == nil && g.Capabilities().List {"},
	}},
	{"what is queued at a gateway that can't cancel is said to be cancellable", []edit{
		{inPayout, "return err == nil && g.Capabilities().Cancel", "return err == nil && g.Capabilities().Currency != \"\""},
	}},
	{"what waits after a restore is cancelled though nobody can look it up", []edit{
		{inPayout, "case errors.Is(err, gateway.ErrNotOffered) && s.o.Restored:", "case errors.Is(err, gateway.ErrNotOffered) && s.o.Restored && err == nil:"},
	}},
}
