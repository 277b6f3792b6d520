package auth

import (
	"context"
	"crypto/ed25519"
	"time"
)

// Keys are what tokens are signed and checked with. They may change while the service runs.
type Keys interface {
	// SigningKey is the newest key, and the id that its tokens carry.
	SigningKey() (kid string, key ed25519.PrivateKey)
	// VerificationKey finds a key whose tokens may still be alive. It is asked on every request.
	VerificationKey(kid string) (ed25519.PublicKey, bool)
	// RefreshMAC authenticates a message as part of a refresh token.
	RefreshMAC(message []byte) []byte
	// JWKS is the public keys as a JSON Web Key Set.
	JWKS() []byte
}

// Sealer encrypts and authenticates what is handed out and must come back as it was. The context binds
// a sealed value to its purpose.
type Sealer interface {
	Seal(plaintext, context string) (string, error)
	Open(sealed, context string) (string, error)
}

// Store keeps users, sessions, service keys and throttle counters.
type Store interface {
	// UserByEmail finds a user by [EmailKey], if there is one.
	UserByEmail(ctx context.Context, emailKey string) (User, bool, error)
	// LiveSession finds the user behind a session that has not ended or expired by now and whose user
	// is not suspended, in one read. It is asked on every request.
	LiveSession(ctx context.Context, session string, now time.Time) (Principal, bool, error)
	// UserWithStats finds a user and the figures to show with it, in one read.
	UserWithStats(ctx context.Context, id string) (User, Stats, bool, error)
	// ServiceKeyExists reports whether a key with that hash was made and not revoked.
	ServiceKeyExists(ctx context.Context, hash string) (bool, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what auth asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	// InsertUser adds u, or fails with [ErrEmailTaken].
	InsertUser(ctx context.Context, u User) error
	// SetPasswordHash replaces a user's hash if it is still old.
	SetPasswordHash(ctx context.Context, userID, old, hash string) error
	// SetUserAccess changes a user's role and suspension, and reports whether there is such a user.
	SetUserAccess(ctx context.Context, userID string, role Role, suspended bool) (bool, error)
	// UserUnchanged reports whether a user still has that password hash and is not suspended, and
	// keeps it so until the transaction ends.
	UserUnchanged(ctx context.Context, userID, passwordHash string) (bool, error)
	InsertSession(ctx context.Context, s Session) error
	// AdvanceSession counts a refresh: if the live session's counter is still counter, it becomes one
	// more, the session's expiry is extended to expiresAt (never past its cap), and now is put before
	// its Refreshes. It returns the user, and false when nothing matched.
	AdvanceSession(ctx context.Context, session string, counter int64, now, expiresAt time.Time, grace time.Duration) (Principal, bool, error)
	// Session finds a session with its user, if it is there.
	Session(ctx context.Context, id string) (Session, Principal, bool, error)
	// EndSession ends a session that has not ended.
	EndSession(ctx context.Context, id, reason string, now time.Time) error
	// EndUserSessions ends all sessions of a user that have not ended.
	EndUserSessions(ctx context.Context, userID, reason string, now time.Time) error
	InsertServiceKey(ctx context.Context, id, name, hash string, now time.Time) error
	// SetProductsListed records how many products a seller has listed, and reports whether there is such a seller.
	SetProductsListed(ctx context.Context, seller string, n int64) (bool, error)

	// TakeThrottle counts one attempt against a bucket: its virtual time advances by cost from now or
	// from where it is, whichever is later, if that leaves it no further than now+burst. It returns the
	// bucket's virtual time, and whether the attempt was counted.
	TakeThrottle(ctx context.Context, bucket string, now time.Time, cost, burst time.Duration) (time.Time, bool, error)
	// ForgetThrottle empties a bucket.
	ForgetThrottle(ctx context.Context, bucket string) error
	// RefundThrottle takes one attempt back.
	RefundThrottle(ctx context.Context, bucket string, cost time.Duration) error
	// KnownDevice reports whether the user signed in from there before; AddKnownDevice records it.
	KnownDevice(ctx context.Context, userID, device string) (bool, error)
	AddKnownDevice(ctx context.Context, userID, device string, now time.Time) error
	// Sweep deletes sessions whose cap was before sessionsBefore, throttle buckets that are empty by
	// now, and devices not seen since devicesBefore: up to limit rows of each. It returns how many.
	Sweep(ctx context.Context, now, sessionsBefore, devicesBefore time.Time, limit int) (int64, error)
}

// Session is one sign-in and all tokens that came of it.
type Session struct {
	ID        string // prefix "ses_"
	UserID    string
	CreatedAt time.Time
	// ExpiresAt slides with each refresh; CapAt is where it stops.
	ExpiresAt time.Time
	CapAt     time.Time
	// Counter is the number of refreshes. Refreshes are the last ones' times, newest first: at least
	// all that came within the grace, up to 32 of them.
	Counter   int64
	Refreshes []time.Time
	EndedAt   time.Time
	EndReason string
}
