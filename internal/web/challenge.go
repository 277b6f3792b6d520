package web

// A sign-in in two steps begins at the API for a provider's users, and on the pages for others. Both carry it to the same page.
const (
	// ChallengeCookie carries a sign-in from its first proof to its second.
	ChallengeCookie = "bursar-challenge"
	// FactorPath is the page that asks for the second proof.
	FactorPath = "/login/factor"
)
