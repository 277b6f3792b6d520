package simulate_test

// takeoverBugs were planted where money and accounts end or change hands by ways that the simulator did not play: takeovers, deletions, statements and matches.
var takeoverBugs = []planted{
	{"a takeover puts payouts on hold where there is no money", []edit{
		{inAuth, "if err == nil && money {", "if err == nil && !money {"},
	}},
	{"sessions outlive a takeover", []edit{
		{inAuth, "func() error { return tx.EndUserSessions(ctx, u.ID, \"\", reason, now) },", "func() error { _ = reason; return nil },"},
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
		{inAuth, "func() error { return tx.DeleteUnusedSessionLinks(ctx, u.ID) },", ""},
	}},
	{"a forgotten password of an account that nobody confirmed is only replaced", []edit{
		{inAuth, "if u.Verified {\n\t\tif err = s.replaceForgotten", "if u.Verified || !u.Suspended {\n\t\tif err = s.replaceForgotten"},
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
}
