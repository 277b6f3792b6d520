package auth

import "time"

// SessionInfo is what a user is shown of one of their live sessions.
type SessionInfo struct {
	ID        string
	CreatedAt time.Time
	// LastUsedAt is the last refresh, or else the beginning.
	LastUsedAt time.Time
	// Agent and Address are the browser or program, and where it was, at sign-in; either may be empty.
	Agent   string
	Address string
	// Methods are how the user proved who they are, such as [MethodPassword].
	Methods []string
}

// LinkedIdentity is a way to sign in to a user's account through a provider.
type LinkedIdentity struct {
	// Provider is the one at which it is, and Label what people call that; both are "" if it is not set up any more. Only [Service.Identities]
	// says so.
	Provider ProviderID
	Label    string
	Issuer   string
	Subject  string
	Email    string
	Since    time.Time
}

// SignInButton is a provider that is set up.
type SignInButton struct {
	ID    ProviderID
	Label string
}
