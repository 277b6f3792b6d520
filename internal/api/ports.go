package api

import (
	"context"
	"encoding/json"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/health"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// Auth knows who is asking.
type Auth interface {
	Register(context.Context, auth.Registration) (auth.SignIn, error)
	Login(context.Context, auth.Credentials) (auth.SignIn, error)
	Refresh(ctx context.Context, refreshToken string) (auth.SignIn, error)
	Logout(context.Context, auth.Principal) error
	// Authenticate fails with [auth.ErrToken] unless the token and its session are alive.
	Authenticate(ctx context.Context, token string) (auth.Principal, error)
	// ReadToken reads the token alone.
	ReadToken(token string) (auth.Principal, error)
	// IsOfTrustedIssuer reports whether a token says that it is of the trusted issuer. It may be forged.
	IsOfTrustedIssuer(token string) bool
	// AuthenticateTrusted finds the seller who holds a token of the trusted issuer, who has no session.
	AuthenticateTrusted(ctx context.Context, token string) (auth.Principal, error)
	// AuthenticateService finds a service key, or fails with [auth.ErrServiceKey] unless it is accepted.
	AuthenticateService(ctx context.Context, key string) (auth.ServiceKey, error)
	// ServiceKeys lists all service keys. The others make, rotate and revoke one, as actor asked.
	ServiceKeys(ctx context.Context) ([]auth.ServiceKey, error)
	CreateServiceKey(ctx context.Context, n auth.NewServiceKey, actor string) (string, auth.ServiceKey, error)
	RotateServiceKey(ctx context.Context, idOrName string, grace time.Duration, actor string) (string, auth.ServiceKey, error)
	RevokeServiceKey(ctx context.Context, idOrName, actor string) (auth.ServiceKey, error)
	Me(context.Context, auth.Principal) (auth.User, auth.Stats, error)
	// User finds a user, or fails with [auth.ErrUserNotFound].
	User(ctx context.Context, id string) (auth.User, auth.Stats, error)
	// SetProfile changes a user's name and profile; a fault names the fields at fault.
	SetProfile(ctx context.Context, p auth.Principal, change auth.ProfileChange, from auth.Device) error
	Sessions(context.Context, auth.Principal) ([]auth.SessionInfo, error)
	// EndSession ends one session of the user's own, or fails with [auth.ErrNoSession].
	EndSession(ctx context.Context, p auth.Principal, session string, from auth.Device) error
	// EndOtherSessions ends all of the user's sessions but the one that asks.
	EndOtherSessions(ctx context.Context, p auth.Principal, from auth.Device) error
	// ChangePassword returns the token by which the account knows this device from now on.
	ChangePassword(ctx context.Context, p auth.Principal, current, next string, from auth.Device) (deviceToken string, err error)
	// DeleteAccount removes who the user is; the journal stays.
	DeleteAccount(ctx context.Context, p auth.Principal, password string, from auth.Device) error
	// Identities lists a user's ways to sign in through a provider, and UnlinkIdentity ends those through one.
	Identities(ctx context.Context, userID string) ([]auth.LinkedIdentity, error)
	UnlinkIdentity(ctx context.Context, p auth.Principal, provider auth.ProviderID, password string, from auth.Device) error
	// ChangeEmail mails a link to a new address; [auth.Service.ConfirmEmailChange] makes it the account's.
	ChangeEmail(ctx context.Context, p auth.Principal, email string, from auth.Device) error
	ConfirmEmailChange(ctx context.Context, token string, from auth.Device) error
	// LoginFactor ends a sign-in in two steps.
	LoginFactor(context.Context, auth.SecondStep) (auth.SignIn, error)
	// Factors lists a user's second factors without their secrets, and how many recovery codes are left.
	Factors(context.Context, auth.Principal) ([]auth.Factor, int, error)
	AddFactor(ctx context.Context, p auth.Principal, name string) (auth.NewFactor, error)
	AddPasskey(ctx context.Context, p auth.Principal, name string) (auth.NewPasskey, error)
	// ConfirmFactor and ConfirmPasskey return recovery codes with a user's first factor.
	ConfirmFactor(ctx context.Context, p auth.Principal, factor, code string, from auth.Device) ([]string, error)
	ConfirmPasskey(ctx context.Context, p auth.Principal, factor string, answer []byte, from auth.Device) ([]string, error)
	RemoveFactor(ctx context.Context, p auth.Principal, factor string, from auth.Device) error
	// CheckAdmin fails if the user is an admin who needs a second factor and has none.
	CheckAdmin(context.Context, auth.Principal) error
	// ProveDecision uses up the proof of an admin with a second factor, before a decision is carried out.
	ProveDecision(ctx context.Context, p auth.Principal, a decision.Action, subject string) error
	// StepUp makes a proof that permits one action once.
	StepUp(context.Context, auth.Principal, auth.StepUp) (proof string, until time.Time, err error)
	// PasskeyOptions are what a browser needs to sign in with a passkey alone, whose answer LoginPasskey takes.
	PasskeyOptions() (json.RawMessage, error)
	LoginPasskey(ctx context.Context, answer []byte, from auth.Device) (auth.SignIn, error)
	// SecurityEvents lists a user's security events numbered below before, newest first.
	SecurityEvents(ctx context.Context, userID string, before int64, limit int) ([]auth.SecurityEvent, error)
	// HasProvider reports whether an identity provider is set up.
	HasProvider(auth.ProviderID) bool
	BeginSignIn(context.Context, auth.ProviderStart) (auth.BegunSignIn, error)
	// FinishSignIn also returns the redirect of the start, as far as it is known, even when it fails.
	FinishSignIn(context.Context, auth.ProviderReturn) (auth.SignIn, string, error)
	// VerifyEmail confirms the registration that a mailed token belongs to, or fails with [auth.ErrMailToken].
	VerifyEmail(ctx context.Context, token string) error
	// VerifyEmailByCode confirms the user's own registration, or fails with [auth.ErrCode].
	VerifyEmailByCode(ctx context.Context, p auth.Principal, code string) error
	ResendVerification(ctx context.Context, p auth.Principal, from auth.Device) error
	// ForgotPassword has a link mailed. Its answer does not tell whether there is such a user.
	ForgotPassword(ctx context.Context, email string, from auth.Device) error
	// SetForgottenPassword sets the password of the user that a mailed token belongs to, or fails with [auth.ErrMailToken].
	SetForgottenPassword(ctx context.Context, token, password string, from auth.Device) error
	// FindUser finds any user by id, or fails with [auth.ErrUserNotFound] or [auth.ErrTampered].
	FindUser(ctx context.Context, name string) (auth.User, error)
	// CheckMayRequestPayout fails with [auth.ErrEmailNotVerified].
	CheckMayRequestPayout(p auth.Principal) error
	// SuspendedSince is when a user who is suspended was suspended; zero where that is not known.
	SuspendedSince(ctx context.Context, userID string) (time.Time, error)
	// Seller finds a user who may be paid, by id or by "ext:" and the external id, or fails with [auth.ErrSellerNotFound].
	Seller(ctx context.Context, name string) (auth.User, error)
	// Sellers lists sellers after the one with that id, in the order of ids, up to limit.
	Sellers(ctx context.Context, after string, limit int) ([]auth.ListedUser, error)
	// CreateSeller makes a user of a seller of the marketplace, and reports whether they are new.
	CreateSeller(ctx context.Context, n auth.NewSeller, actor string) (auth.User, bool, error)
	// CreateSessionLink makes a token that signs a seller in once, as a service key asked. OpenSessionLink uses it, or fails with
	// [auth.ErrLink].
	CreateSessionLink(ctx context.Context, key auth.ServiceKey, sellerID string) (token string, expiresAt time.Time, err error)
	OpenSessionLink(ctx context.Context, token, presented string, from auth.Device) (auth.SignIn, error)
	SetProductsListed(ctx context.Context, seller string, n int64) error
	// AddNote adds an admin's note about a user, and reports whether it is new; Notes lists them, newest first.
	AddNote(ctx context.Context, by decision.By, userID string) (auth.Note, bool, error)
	Notes(ctx context.Context, userID string) ([]auth.Note, error)
	SetAccess(ctx context.Context, by decision.By, userID string, role auth.Role, suspended bool) error
	// FindUsers lists the user whose id is the query, or those whose e-mail begins with it, up to limit.
	FindUsers(ctx context.Context, query string, limit int) ([]auth.User, error)
	// JWKS is the public keys as a JSON document.
	JWKS() []byte
}

// Payouts takes money to the bank.
type Payouts interface {
	Minimum() money.Amount
	Summary(ctx context.Context, seller string) (payout.Summary, error)
	// Explanation is what a seller is owed, and what keeps them from a payout now.
	Explain(ctx context.Context, seller string) (payout.Explanation, error)
	Request(context.Context, payout.Request) (payout.Payout, bool, error)
	Cancel(ctx context.Context, c payout.Caller, id payout.ID, key string) (payout.Payout, bool, error)
	Payout(context.Context, payout.Caller, payout.ID) (payout.Payout, error)
	History(context.Context, payout.Caller, payout.Filter) ([]payout.Payout, int64, error)
	Events(context.Context, payout.Caller, payout.ID) ([]payout.StateChange, error)
	Notify(ctx context.Context, at gateway.Name, eventID string, id payout.ID) error
	// Answered reports whether a user's idempotency key has an answer.
	Answered(ctx context.Context, user, key string) (bool, error)
	// ParseSelection reads which payouts an operator wants; a fault names what is wrong. Find lists a page of them with the totals
	// of all, and Export hands each to a function, where CheckExport has nothing against it.
	ParseSelection(get func(name string) string) (payout.Selection, error)
	Find(ctx context.Context, sel payout.Selection) (payout.Found, error)
	// Figures are what was paid and failed in the last days, and what is under way.
	Figures(ctx context.Context) (payout.Figures, error)
	CheckExport(ctx context.Context, sel payout.Selection) error
	Export(ctx context.Context, sel payout.Selection, each func(payout.Selected) error) error
	// AskGateway looks a payout up at the gateway now, takes in what it says, and returns the payout as it then is.
	AskGateway(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error)
	// Options lists what an admin may decide about a payout as it is now. The following five decide.
	Options(ctx context.Context, p payout.Payout) ([]payout.Option, error)
	SendToReview(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error)
	MatchTransfer(ctx context.Context, by decision.By, id payout.ID, gatewayID string) (payout.Payout, error)
	ResolveDiscrepancy(ctx context.Context, by decision.By, id payout.ID, seen string) error
	RefundToBalance(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error)
	ResolveUnmatchedTransfer(ctx context.Context, by decision.By, id string) error
	// UnmatchedTransfers lists those that no admin has resolved; UnmatchedTransfer finds one of them, or fails with
	// [payout.ErrUnmatchedTransferResolved].
	UnmatchedTransfers(ctx context.Context) ([]payout.UnmatchedTransfer, error)
	UnmatchedTransfer(ctx context.Context, id string) (payout.UnmatchedTransfer, error)
	// LiftHold ends the hold on a seller's payouts before its time, by an admin's decision.
	LiftHold(ctx context.Context, by decision.By, seller string, seen time.Time) error
	// Freeze stops a seller's payouts until Unfreeze, and Pause those of all sellers until Resume, by an admin's decision.
	Freeze(ctx context.Context, by decision.By, seller string) error
	Unfreeze(ctx context.Context, by decision.By, seller string) error
	Pause(ctx context.Context, by decision.By) error
	Resume(ctx context.Context, by decision.By) error
	// PauseState says whether the payouts of all sellers are paused, since when and why.
	PauseState(ctx context.Context) (payout.PauseState, error)
	// StartupReconciled reports whether payouts are sent: startup reconciliation listed transfers.
	StartupReconciled() bool
}

// Decisions is the record of what admins decided.
type Decisions interface {
	// Decisions lists what was decided about a subject, or about everything where it is "", newest first.
	Decisions(ctx context.Context, subject string, limit int) ([]decision.Decision, error)
	UserNames(ctx context.Context, ids []string) (map[string]string, error)
}

// Ledger is what sellers have.
type Ledger interface {
	Balance(ctx context.Context, seller string) (ledger.Balance, error)
}

// Mails is what becomes of mails.
type Mails interface {
	// Latest lists mails, newest first, and Mail finds one, without what they say.
	Latest(ctx context.Context, limit int) ([]mail.Row, error)
	Mail(ctx context.Context, id string) (mail.Row, bool, error)
	// Body is the whole message of a mail that was written to a file on a developer's machine.
	Body(id string) (string, bool, error)
}

// Health is how the service's work goes.
type Health interface {
	Instance() health.Instance
	Loops() []health.Loop
	Backlog(context.Context) (health.Backlog, error)
}
