package auth

import (
	"context"
	"crypto/ed25519"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/mail"
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

// Encrypter encrypts and authenticates what is handed out and must come back as it was. The context binds
// an encrypted value to its purpose.
type Encrypter interface {
	Encrypt(plaintext, context string) (string, error)
	Decrypt(encrypted, context string) (string, error)
}

// Store keeps users, sessions, service keys and throttle counters.
type Store interface {
	// UserByEmail finds a user by [EmailKey], if there is one. It fails with [ErrTampered] if the service did not write
	// the user, and returns them all the same. So do all methods that find a user for a sign-in.
	UserByEmail(ctx context.Context, emailKey string) (User, bool, error)
	// LiveSession finds the user behind a session that has not ended or expired by now and whose user
	// is not suspended, in one read. It is asked on every request. It fails with [ErrTampered] too.
	LiveSession(ctx context.Context, session string, now time.Time) (Principal, bool, error)
	// UserWithStats finds a user and the figures to show with it, in one read.
	UserWithStats(ctx context.Context, id string) (User, Stats, bool, error)
	// LiveSessions lists a user's sessions that have not ended or expired by now, newest first, up to limit.
	LiveSessions(ctx context.Context, userID string, now time.Time, limit int) ([]SessionInfo, error)
	// Identities lists a user's ways to sign in through a provider, the oldest first.
	Identities(ctx context.Context, userID string) ([]LinkedIdentity, error)
	// FindUsers lists users whose [EmailKey] begins so, in its order, up to limit.
	FindUsers(ctx context.Context, emailPrefix string, limit int) ([]User, error)
	// ServiceKey finds a service key by its hash, if there is one, or by one that it had before a rotation and that is
	// accepted after now. It says whether the service wrote it.
	ServiceKey(ctx context.Context, hash string, now time.Time) (ServiceKey, bool, error)
	// ServiceKeys lists all service keys, the oldest first.
	ServiceKeys(ctx context.Context) ([]ServiceKey, error)
	// AdvanceSession is [Tx.AdvanceSession] in a transaction that may serve many.
	AdvanceSession(ctx context.Context, session string, counter int64, now, expiresAt time.Time, grace time.Duration) (userID string, advanced bool, err error)
	// ThrottledAt is the virtual times of those buckets that have one, by their names.
	ThrottledAt(ctx context.Context, buckets []string) (map[string]time.Time, error)
	// FactorsOf lists a user's second factors, the oldest first. It fails with [ErrTampered] unless the service wrote them.
	FactorsOf(ctx context.Context, userID string) ([]Factor, error)
	// EntriesAboutBefore lists what the owner's journal says of a subject, numbered below before, newest first, up to limit;
	// before 0 begins at the newest. It fails with [ledger.ErrTampered] unless the service wrote all of it.
	EntriesAboutBefore(ctx context.Context, owner, subject string, before int64, limit int) ([]ledger.Entry, error)
	// MailToken finds a token that has not expired by now, by its hash. It fails with [ErrTampered] if the service did
	// not write it.
	MailToken(ctx context.Context, hash string, purpose MailPurpose, now time.Time) (MailToken, bool, error)
	InTx(ctx context.Context, fn func(Tx) error) error
	UserStore
}

// Tx is what auth asks of a store transaction. The closure that uses it may run more than once.
type Tx interface {
	ProofTx
	mail.Tx
	ledger.Appender
	ledger.EntriesReader
	// InsertUser adds u, or fails with [ErrEmailTaken] or [ErrEmailReserved].
	InsertUser(ctx context.Context, u User) error
	// SetPasswordHash replaces a user's hash if it is still old, and reports whether it was.
	SetPasswordHash(ctx context.Context, userID, old, hash string) (bool, error)
	// SetProfile changes a user's name and profile, and leaves what is nil.
	SetProfile(ctx context.Context, userID string, change ProfileChange) error
	// SetUserAccess changes a user's role and suspension, and reports whether there is such a user who did not delete the account. It fails with
	// [ErrTampered], as [Tx.SetPasswordHash] does.
	SetUserAccess(ctx context.Context, userID string, role Role, suspended bool) (bool, error)
	// ResetUser replaces all that the MAC of a user covers, whatever it was, or fails with [ErrUserNotFound] or
	// [ErrEmailTaken].
	ResetUser(ctx context.Context, u User) error
	// Admins lists who is an admin and not suspended, and keeps it so until the transaction ends.
	Admins(ctx context.Context) ([]string, error)
	// UserUnchanged reports whether a user still has that password hash and is not suspended, and
	// keeps it so until the transaction ends.
	UserUnchanged(ctx context.Context, userID, passwordHash string) (bool, error)
	InsertSession(ctx context.Context, s Session) error
	InsertFactor(ctx context.Context, f Factor) error
	// SaveFactor replaces what changes of a factor, if it is still as it was, and reports whether it did.
	SaveFactor(ctx context.Context, was, f Factor) (bool, error)
	DeleteFactor(ctx context.Context, f Factor) error
	// ClearFactors removes all second factors of a user, whatever they are, and reports whether there were any.
	ClearFactors(ctx context.Context, userID string) (bool, error)
	// AdvanceSession counts a refresh: if the live session's counter is still counter, it becomes one
	// more, the session's expiry is extended to expiresAt (never past its cap), and now is put before
	// its Refreshes. It returns the user, and false when nothing matched.
	AdvanceSession(ctx context.Context, session string, counter int64, now, expiresAt time.Time, grace time.Duration) (userID string, advanced bool, err error)
	// Session finds a session, if it is there.
	Session(ctx context.Context, id string) (Session, bool, error)
	// EndSession ends a session that has not ended.
	EndSession(ctx context.Context, id, reason string, now time.Time) error
	// EndSessionOf ends a session that has not ended if it is the user's, and reports whether it did.
	EndSessionOf(ctx context.Context, userID, id, reason string, now time.Time) (bool, error)
	// EndUserSessions ends all sessions of a user that have not ended, but for the one to keep, if any.
	EndUserSessions(ctx context.Context, userID, keep, reason string, now time.Time) error
	// EndUnprovenSessions ends those in which the user never proved who they are: that a link of the marketplace opened.
	EndUnprovenSessions(ctx context.Context, userID, reason string, now time.Time) error

	// VerifyUser records that a user's address is theirs.
	VerifyUser(ctx context.Context, userID string) error
	// SetEmail replaces a user's address by one that is known to be theirs, or fails with [ErrEmailTaken] or [ErrEmailReserved].
	SetEmail(ctx context.Context, userID, email string) error
	// Identities is [Store.Identities] of a user who was locked before.
	Identities(ctx context.Context, userID string) ([]LinkedIdentity, error)
	// HasIdentity reports whether a user can sign in through a provider.
	HasIdentity(ctx context.Context, userID string) (bool, error)

	// InsertMailToken adds a token. Of the registration that made the account, each purpose has one token: the newest.
	InsertMailToken(ctx context.Context, t MailToken) error
	// CodeToken finds the token with a code of the registration that made the account, if it has not expired by now. It
	// fails with [ErrTampered].
	CodeToken(ctx context.Context, userID string, now time.Time) (MailToken, bool, error)
	// CountWrongCode counts a wrong code against a token.
	CountWrongCode(ctx context.Context, hash string) error
	// UseMailToken deletes a token that has not expired by now, and reports whether it was there.
	UseMailToken(ctx context.Context, hash string, now time.Time) (bool, error)
	// DeleteMailTokens deletes the tokens of a user, who was locked before: those of one purpose, or all for "".
	DeleteMailTokens(ctx context.Context, userID string, purpose MailPurpose) error
	// RemoveIdentitiesSince unlinks the identities of a user that were linked at an instant or later.
	RemoveIdentitiesSince(ctx context.Context, userID string, since time.Time) error
	// DeleteMailTokensSince deletes the tokens of a purpose that were made at an instant or later.
	DeleteMailTokensSince(ctx context.Context, userID string, purpose MailPurpose, since time.Time) error
	// MailTokens lists the tokens of a purpose that the service wrote, the oldest first, those too that have expired.
	MailTokens(ctx context.Context, userID string, purpose MailPurpose) ([]MailToken, error)
	InsertMailRequest(ctx context.Context, r MailRequest) error
	// TakeMailRequest takes out the oldest request that no other transaction is taking, if there is one.
	TakeMailRequest(ctx context.Context) (MailRequest, bool, error)

	// UserByIdentity finds the user that an identity is linked to, if it is linked, and keeps both so
	// until the transaction ends.
	UserByIdentity(ctx context.Context, issuer, subject string) (User, bool, error)
	// UserByEmail finds a user by [EmailKey], if there is one, and keeps it as it is until the
	// transaction ends.
	UserByEmail(ctx context.Context, emailKey string) (User, bool, error)
	// AddIdentity links an identity to a user, and reports whether it was linked to nobody before.
	AddIdentity(ctx context.Context, userID string, i Identity, now time.Time) (bool, error)
	// RemoveIdentities unlinks all identities of a user, who was locked before.
	RemoveIdentities(ctx context.Context, userID string) error
	// RemoveIdentitiesOf unlinks the identities at one issuer of a user, who was locked before.
	RemoveIdentitiesOf(ctx context.Context, userID, issuer string) error
	// TakeUserOver makes a user verified, with another role and password hash; "" for no password.
	TakeUserOver(ctx context.Context, userID string, role Role, passwordHash string) error
	// RejectBankAccounts makes all bank accounts of a user, former ones too, unfit to be paid to; a
	// verification under way does not undo that.
	RejectBankAccounts(ctx context.Context, userID, reason string, now time.Time) error
	// NewestOfType is when the newest entry of a type about a subject was made; zero if there is none.
	NewestOfType(ctx context.Context, owner, subject string, t ledger.Type) (time.Time, error)
	// RejectBankAccountsSince is RejectBankAccounts of those that were registered at an instant or later.
	RejectBankAccountsSince(ctx context.Context, userID, reason string, since, now time.Time) error

	// InsertServiceKey adds a key unless its name is taken, records who made it, and reports whether it did.
	InsertServiceKey(ctx context.Context, k ServiceKey, actor string) (bool, error)
	// ServiceKeyForUpdate finds a service key by its id or name, if there is one, and keeps it so until the transaction ends.
	ServiceKeyForUpdate(ctx context.Context, idOrName string) (ServiceKey, bool, error)
	// RotatedServiceKeys lists what a key was before it was rotated. It fails with [ErrTampered] unless the service wrote it.
	RotatedServiceKeys(ctx context.Context, k ServiceKey) ([]RotatedServiceKey, error)
	// RotateServiceKey stores the key's new hash, and all that it was before and that is still accepted, and records who did it.
	RotateServiceKey(ctx context.Context, k ServiceKey, before []RotatedServiceKey, now time.Time, actor string) error
	// RevokeServiceKey stores that a key was revoked at its RevokedAt, and records who did it.
	RevokeServiceKey(ctx context.Context, k ServiceKey, actor string) error
	InsertSessionLink(ctx context.Context, l SessionLink) error
	// SessionLink finds a link by its hash. It fails with [ErrTampered] if the service did not write it.
	SessionLink(ctx context.Context, hash string) (SessionLink, bool, error)
	// UseSessionLink notes the session that a link opens, and reports whether the link was unused and has not expired.
	UseSessionLink(ctx context.Context, hash, session string, now time.Time) (bool, error)
	// DeleteUnusedSessionLinks deletes a user's links that opened nothing yet.
	DeleteUnusedSessionLinks(ctx context.Context, userID string) error
	// DeleteUnusedLinksOfKey deletes a service key's links that opened nothing yet.
	DeleteUnusedLinksOfKey(ctx context.Context, keyID string) error
	// SessionsOfKey lists the sessions that links of a service key opened.
	SessionsOfKey(ctx context.Context, keyID string) ([]string, error)
	// MarkServiceKeyUsed stores the day of a key's last use, unless a later one is stored.
	MarkServiceKeyUsed(ctx context.Context, keyID, day string) error
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
	// Sweep deletes sessions whose cap was before sessionsBefore, throttle buckets that are empty by now, notes of sign-ins
	// kept until now, mailed tokens that have expired by now, and links that expired before linksBefore: up to limit rows of
	// each. It returns how many.
	Sweep(ctx context.Context, now, sessionsBefore, linksBefore time.Time, limit int) (int64, error)
	ImportTx
	EraseTx
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
	// Agent and Address are for the user to tell sessions apart by, and are only written here.
	Agent, Address string
	// Methods are how the user proved who they are, such as [MethodPassword], and AuthenticatedAt is when. A refresh
	// changes neither.
	Methods         []string
	AuthenticatedAt time.Time
}
