package simulate_test

// gatewayBugs are about several gateways, of which one takes another's place.
var gatewayBugs = []planted{
	{"an order goes to the gateway of today", []edit{
		{inPayout, "s.sendClaimed(ctx, g, p.ID, body", "s.sendClaimed(ctx, s.o.Gateways.Current(), p.ID, body"},
	}},
	{"an order is sent again to the gateway of today", []edit{
		{inPayout, "s.sendClaimed(ctx, g, sent.ID", "s.sendClaimed(ctx, s.o.Gateways.Current(), sent.ID"},
	}},
	{"a beneficiary of one gateway is used at another", []edit{
		{inBank, "if a.Beneficiary != \"\" && a.Gateway == g.Name() {\n\t\treturn a.Beneficiary, nil", "if a.Beneficiary != \"\" {\n\t\treturn a.Beneficiary, nil"},
	}},
	{"what has ended is given up while its gateway is not configured", []edit{
		{inPayout, "!now.Before(until.AddDate(0, 0, 7))", "!now.Before(until.AddDate(0, 0, -7))"},
	}},
	{"an event that two gateways number alike is one", []edit{
		{inStore, "ON CONFLICT (gateway, id) DO NOTHING`,\n\t\tstring(at), eventID", "ON CONFLICT (gateway, id) DO NOTHING`,\n\t\tstring(at[:0]), eventID"},
	}},
	{"a start asks the gateway of today alone", []edit{
		{inPayout, "for _, g := range s.o.Gateways.All() {\n\t\tif slices.Contains(s.progress.done, g.Name()) {", "for _, g := range s.o.Gateways.All() {\n\t\tif g.Name() != s.o.Gateways.Current().Name() || slices.Contains(s.progress.done, g.Name()) {"},
	}},
	{"a start makes due what any gateway has", []edit{
		{inStore, "WHERE due_at > $2 AND gateway = $1 AND state IN", "WHERE due_at > $2 AND $1 <> '' AND state IN"},
	}},
	{"what is open of another gateway's statement is judged by this one", []edit{
		{inReconcile, "open = slices.DeleteFunc(open, func(d Difference) bool { return d.Gateway != s.at() })", ""},
	}},
}
