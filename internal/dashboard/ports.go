package dashboard

import (
	"context"
	"encoding/json"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/health"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// Auth knows who is asking, and what they may change about themselves.
type Auth interface {
	Register(context.Context, auth.Registration) (auth.SignIn, error)
	Login(context.Context, auth.Credentials) (auth.SignIn, error)
	Logout(context.Context, auth.Principal) error
	// Authenticate fails with [auth.ErrToken] unless the token and its session are alive.
	Authenticate(ctx context.Context, token string) (auth.Principal, error)
	// Renew makes a new access token for a session that is alive.
	Renew(auth.Principal) (string, error)
	Me(context.Context, auth.Principal) (auth.User, auth.Stats, error)
	// SignInButtons are the providers that are set up.
	SignInButtons() []auth.SignInButton

	// PendingRegistration finds the registration that a mailed token belongs to, or fails with [auth.ErrMailToken].
	PendingRegistration(ctx context.Context, token string) (auth.Pending, error)
	// VerifyEmail confirms the registration that a mailed token belongs to, or fails with [auth.ErrMailToken].
	VerifyEmail(ctx context.Context, token string) error
	// VerifyEmailByCode confirms the user's own registration, or fails with [auth.ErrCode].
	VerifyEmailByCode(ctx context.Context, p auth.Principal, code string) error
	ResendVerification(ctx context.Context, p auth.Principal, from auth.Device) error
	// ForgotPassword has a link mailed. Its answer does not tell whether there is such a user.
	ForgotPassword(ctx context.Context, email string, from auth.Device) error
	// CheckResetToken fails with [auth.ErrMailToken] unless a mailed token permits to set a password.
	CheckResetToken(ctx context.Context, token string) error
	// SetForgottenPassword sets the password of the user that a mailed token belongs to, or fails with [auth.ErrMailToken].
	SetForgottenPassword(ctx context.Context, token, password string, from auth.Device) error

	// CheckMayRequestPayout fails with [auth.ErrEmailNotVerified].
	CheckMayRequestPayout(p auth.Principal) error
	// DeleteAccount removes who the user is; the proof for it is the principal's.
	DeleteAccount(ctx context.Context, p auth.Principal, password string, from auth.Device) error
	// SetProfile changes a user's name and profile; a fault names the fields at fault.
	SetProfile(ctx context.Context, p auth.Principal, change auth.ProfileChange, from auth.Device) error
	// ChangePassword replaces the password, ends all other sessions and returns the token by which the account
	// knows this device from now on. A user without a password sets the first; current is then ignored.
	ChangePassword(ctx context.Context, p auth.Principal, current, next string, from auth.Device) (deviceToken string, err error)
	Sessions(context.Context, auth.Principal) ([]auth.SessionInfo, error)
	// EndSession ends one session of the user's own, or fails with [auth.ErrNoSession].
	EndSession(ctx context.Context, p auth.Principal, session string, from auth.Device) error
	// EndOtherSessions ends all of the user's sessions but the one that asks.
	EndOtherSessions(ctx context.Context, p auth.Principal, from auth.Device) error
	// Identities lists a user's ways to sign in through a provider, and UnlinkIdentity ends those through one; the proof for it is the
	// principal's.
	Identities(ctx context.Context, userID string) ([]auth.LinkedIdentity, error)
	UnlinkIdentity(ctx context.Context, p auth.Principal, provider auth.ProviderID, password string, from auth.Device) error
	// AddNote adds an admin's note about a user, and Notes lists them, newest first.
	AddNote(ctx context.Context, by decision.By, userID string) (auth.Note, bool, error)
	Notes(ctx context.Context, userID string) ([]auth.Note, error)
	// ChangeEmail mails a link to a new address; [auth.Service.ConfirmEmailChange] makes it the account's.
	ChangeEmail(ctx context.Context, p auth.Principal, email string, from auth.Device) error
	ConfirmEmailChange(ctx context.Context, token string, from auth.Device) error
	// CheckUndoFactor fails with [auth.ErrMailToken] unless a token removes a user's factors; UndoFactors removes them.
	CheckUndoFactor(ctx context.Context, token string) error
	UndoFactors(ctx context.Context, token string, from auth.Device) error
	// UndoEmailChange gives the account its former address back.
	UndoEmailChange(ctx context.Context, token string, from auth.Device) error
	// CheckEmailToken fails with [auth.ErrMailToken] unless a token confirms or undoes a change. It returns the address that
	// the account would get.
	CheckEmailToken(ctx context.Context, token string, undo bool) (email string, err error)
	// LoginFactor ends a sign-in in two steps.
	LoginFactor(context.Context, auth.SecondStep) (auth.SignIn, error)
	// SecondStepMethods says what can answer a challenge: a code of an app, and the passkeys that its options name, if any.
	SecondStepMethods(ctx context.Context, challenge string) (byApp bool, options json.RawMessage, err error)
	// OffersPasskeys reports whether browsers have passkeys for the service.
	OffersPasskeys() bool
	// PasskeyOptions are what a browser needs to sign in with a passkey alone, whose answer LoginPasskey takes.
	PasskeyOptions() (json.RawMessage, error)
	LoginPasskey(ctx context.Context, answer []byte, from auth.Device) (auth.SignIn, error)
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
	// SecurityEvents lists a user's security events numbered below before, newest first.
	SecurityEvents(ctx context.Context, userID string, before int64, limit int) ([]auth.SecurityEvent, error)

	// For admins.
	ServiceKeys(ctx context.Context) ([]auth.ServiceKey, error)
	CreateServiceKey(ctx context.Context, n auth.NewServiceKey, actor string) (string, auth.ServiceKey, error)
	RotateServiceKey(ctx context.Context, idOrName string, grace time.Duration, actor string) (string, auth.ServiceKey, error)
	RevokeServiceKey(ctx context.Context, idOrName, actor string) (auth.ServiceKey, error)
	User(ctx context.Context, id string) (auth.User, auth.Stats, error)
	// FindUsers lists the user whose id is the query, or those whose e-mail begins with it, up to limit.
	FindUsers(ctx context.Context, query string, limit int) ([]auth.User, error)
	ReplaceAccess(ctx context.Context, by decision.By, userID string, seen, to auth.Access) error
}

// Payouts takes money to the bank.
type Payouts interface {
	Minimum() money.Amount
	Summary(ctx context.Context, seller string) (payout.Summary, error)
	Quote(amount money.Amount) payout.Quote
	// NeedsProof reports whether a seller proves again who they are to withdraw that much.
	NeedsProof(amount money.Amount) bool
	Request(context.Context, payout.Request) (payout.Payout, bool, error)
	// Requested finds the payout that a seller requested under a key, if there is one.
	Requested(ctx context.Context, seller, key string) (payout.Payout, bool, error)
	Cancel(ctx context.Context, c payout.Caller, id payout.ID, key string) (payout.Payout, bool, error)
	// Cancellable reports whether a cancellation may still succeed.
	Cancellable(payout.Payout) bool
	Payout(context.Context, payout.Caller, payout.ID) (payout.Payout, error)
	History(context.Context, payout.Caller, payout.Filter) ([]payout.Payout, int64, error)
	Events(context.Context, payout.Caller, payout.ID) ([]payout.StateChange, error)
	StartupReconciled() bool

	// For admins.

	Attention(ctx context.Context) (payout.Attention, error)
	// ParseSelection reads which payouts an admin wants; a fault names what is wrong. Find lists a page of them, with the totals of all.
	ParseSelection(get func(name string) string) (payout.Selection, error)
	Find(ctx context.Context, sel payout.Selection) (payout.Found, error)
	// Figures are what was paid and failed in the last days, and what is under way.
	Figures(ctx context.Context) (payout.Figures, error)
	// AskGateway looks a payout up at the gateway now, takes in what it says, and returns the payout as it then is.
	AskGateway(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error)
	// SendToReview stops sending an unclear payout again, and moves it to manual review.
	SendToReview(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error)
	// MatchTransfer takes a payout in review for a transfer that the gateway has, once the gateway confirms it.
	MatchTransfer(ctx context.Context, by decision.By, id payout.ID, gatewayID string) (payout.Payout, error)
	// Options lists what an admin may decide about a payout as it is now.
	Options(ctx context.Context, p payout.Payout) ([]payout.Option, error)
	// RefundToBalance ends a payout in review that was never made, once the gateway says that it knows none.
	RefundToBalance(ctx context.Context, by decision.By, id payout.ID) (payout.Payout, error)
	// ResolveDiscrepancy takes off what the gateway said, if it is still what was seen.
	ResolveDiscrepancy(ctx context.Context, by decision.By, id payout.ID, seen string) error
	// UnmatchedTransfer finds one that no admin has resolved, or fails with [payout.ErrUnmatchedTransferResolved].
	UnmatchedTransfer(ctx context.Context, id string) (payout.UnmatchedTransfer, error)
	ResolveUnmatchedTransfer(ctx context.Context, by decision.By, id string) error
	// LiftHold ends the hold on a seller's payouts before its time.
	LiftHold(ctx context.Context, by decision.By, seller string, seen time.Time) error
	// Freeze stops a seller's payouts until Unfreeze, and Pause those of all sellers until Resume, by an admin's decision.
	Freeze(ctx context.Context, by decision.By, seller string) error
	Unfreeze(ctx context.Context, by decision.By, seller string) error
	Pause(ctx context.Context, by decision.By) error
	Resume(ctx context.Context, by decision.By) error
	// Paused reports whether the payouts of all sellers are paused.
	Paused(ctx context.Context) (bool, error)
	// WhyStopped says to a seller why none of their payouts may be requested or sent now; "" if they may.
	WhyStopped(ctx context.Context, seller string) (string, error)
}

// Statements makes files of a seller's transfers, which the API hands out.
type Statements interface {
	// Period reads the two ends of a period, days or times; a fault names the one that is wrong.
	Period(from, to string) (first, end time.Time, err error)
}

// Ledger is the ledger as auditors see it.
type Ledger interface {
	Balance(ctx context.Context, seller string) (ledger.Balance, error)
	// Entries lists a seller's journal entries numbered below before, newest first, up to limit.
	Entries(ctx context.Context, seller string, before int64, limit int) ([]ledger.Entry, error)
	// CheckedEntries is Entries with each entry checked: it fails with [ledger.ErrTampered] at the first that the service did
	// not write, which is the last of the list.
	CheckedEntries(ctx context.Context, seller string, before int64, limit int) ([]ledger.Entry, error)
	// Period finds an owner's entries of a period among the first so many: from the first one that is not before it, to the one
	// before the first that is after it. Without any, last is first - 1.
	Period(ctx context.Context, owner string, among int64, from, to time.Time) (first, last int64, err error)
	// EntriesAbout lists what a seller's journal says of a subject, oldest first. With [ledger.ErrTampered] it tells
	// what is there all the same.
	EntriesAbout(ctx context.Context, seller, subject string) ([]ledger.Entry, error)
	// Decisions lists what was decided about a subject, or about everything where it is "", newest first.
	Decisions(ctx context.Context, subject string, limit int) ([]decision.Decision, error)
}

// Mails is what becomes of mails.
type Mails interface {
	// Latest lists mails, newest first, without what they say.
	Latest(ctx context.Context, limit int) ([]mail.Row, error)
	// ShowsBodies reports whether the mails themselves may be read: those that were written to files on a developer's
	// machine. Body finds one.
	ShowsBodies() bool
	Body(id string) (string, bool, error)
}

// Health is how the service's work goes.
type Health interface {
	Instance() health.Instance
	Loops() []health.Loop
	Backlog(context.Context) (health.Backlog, error)
}
