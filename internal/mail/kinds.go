package mail

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind names what a mail tells. It is the name of its templates.
type Kind string

// The kinds.
const (
	KindPasswordChanged     Kind = "password-changed"
	KindBankAccountReplaced Kind = "bank-account-replaced"
	KindBankAccountRefused  Kind = "bank-account-refused"
	KindVerifyEmail         Kind = "verify-email"
	KindRegisteredAgain     Kind = "registered-again"
	KindAccountExists       Kind = "account-exists"
	KindResetPassword       Kind = "reset-password"
	KindPasswordAtProvider  Kind = "password-at-provider"
	KindConfirmEmail        Kind = "confirm-email"
	KindEmailChanged        Kind = "email-changed"
	KindFactorChanged       Kind = "factor-changed"
	KindFirstFactor         Kind = "first-factor"
	KindIdentityChanged     Kind = "identity-changed"
	KindAccountDeleted      Kind = "account-deleted"
	KindPayoutsFrozen       Kind = "payouts-frozen"
	KindPayoutFailed        Kind = "payout-failed"
	KindWebhookDisabled     Kind = "webhook-disabled"
)

// Data is what the templates of one kind show. It is kept as JSON.
type Data interface{ Kind() Kind }

// PasswordChanged tells the owner of an account that its password was changed, that a first one was set, or that it was
// reset by a link.
type PasswordChanged struct {
	Origin
	First, Reset bool
	// HoldUntil is zero where payouts are not on hold.
	HoldUntil time.Time
}

// Kind is [KindPasswordChanged].
func (PasswordChanged) Kind() Kind { return KindPasswordChanged }

// BankAccountReplaced tells a seller that payouts go to another bank account from now on. Was and Now are the last four
// digits of the numbers. Was is empty where the row of the account is missing. HoldUntil is zero where payouts are not on hold.
type BankAccountReplaced struct {
	At        time.Time
	Was, Now  string
	HoldUntil time.Time
}

// Kind is [KindBankAccountReplaced].
func (BankAccountReplaced) Kind() Kind { return KindBankAccountReplaced }

// BankAccountRefused tells a seller that another bank account was refused, because the proof for it was missing. Now is its
// last four digits.
type BankAccountRefused struct {
	At  time.Time
	Now string
}

// Kind is [KindBankAccountRefused].
func (BankAccountRefused) Kind() Kind { return KindBankAccountRefused }

// PayoutsFrozen tells a seller that the team has stopped their payouts, or has resumed them. Why is not for the seller.
type PayoutsFrozen struct {
	At      time.Time
	Resumed bool
}

// Kind is [KindPayoutsFrozen].
func (PayoutsFrozen) Kind() Kind { return KindPayoutsFrozen }

// PayoutFailed tells a seller that a payout was not made, and its amount is in the balance again.
type PayoutFailed struct {
	Payout string // its id
	// Amount is as people read it, with its currency.
	Amount      string
	Account     string // the last four digits of the bank account's number
	RequestedAt time.Time
	At          time.Time
	// Returned says that it was sent, and the bank sent it back.
	Returned bool
	// Reason is in words for the seller; empty where the gateway gave none.
	Reason string
}

// Kind is [KindPayoutFailed].
func (PayoutFailed) Kind() Kind { return KindPayoutFailed }

// Path is the page of the payout.
func (p PayoutFailed) Path() string { return "/dashboard/payouts/" + url.PathEscape(p.Payout) }

// WebhookDisabled tells an admin that events are no longer delivered to an endpoint. Address is the endpoint's, without its query.
type WebhookDisabled struct {
	At       time.Time
	Endpoint string
	Address  string
	// Gone says that it answered 410; otherwise nothing was delivered for days.
	Gone bool
}

// Kind is [KindWebhookDisabled].
func (WebhookDisabled) Kind() Kind { return KindWebhookDisabled }

// Path is the page of the endpoint.
func (w WebhookDisabled) Path() string {
	return "/dashboard/admin/webhooks/" + url.PathEscape(w.Endpoint)
}

// Origin says when something was done, and from where, so that the reader of a mail can tell whether they did it. Address and
// Agent may be empty.
type Origin struct {
	At             time.Time
	Address, Agent string
}

// Request is when and from where a mail was asked for. Only such a mail has a source: limits by source must keep back no notice.
type Request struct{ Origin }

func (r Request) source() string { return r.Address }

// VerifyEmail asks whether the registration that made an account is the address owner's.
type VerifyEmail struct {
	Request
	RegisteredAt time.Time
	// Name is the one that was registered; empty if it is not fit for a mail.
	Name        string
	Token, Code string
}

// Kind is [KindVerifyEmail].
func (VerifyEmail) Kind() Kind { return KindVerifyEmail }

// Path is the page to confirm on.
func (v VerifyEmail) Path() string { return "/verify-email?token=" + url.QueryEscape(v.Token) }

// RegisteredAgain asks whether another registration with an address that was never verified is its owner's. Confirming it
// ends the earlier one.
type RegisteredAgain struct {
	Request
	// Name is the one that was registered; empty if it is not fit for a mail.
	Name, Token string
}

// Kind is [KindRegisteredAgain].
func (RegisteredAgain) Kind() Kind { return KindRegisteredAgain }

// Path is the page to confirm on.
func (v RegisteredAgain) Path() string { return "/verify-email?token=" + url.QueryEscape(v.Token) }

// AccountExists tells the owner of an account that its address was registered again.
type AccountExists struct{ Request }

// Kind is [KindAccountExists].
func (AccountExists) Kind() Kind { return KindAccountExists }

// Path is the page to set another password on.
func (AccountExists) Path() string { return "/forgot-password" }

// ResetPassword leads to a page to set another password on.
type ResetPassword struct {
	Request
	Token string
}

// Kind is [KindResetPassword].
func (ResetPassword) Kind() Kind { return KindResetPassword }

// Path is the page to set the password on.
func (r ResetPassword) Path() string { return "/reset-password?token=" + url.QueryEscape(r.Token) }

// PasswordAtProvider answers a request for another password of a user who signs in through a provider.
type PasswordAtProvider struct{ Request }

// Kind is [KindPasswordAtProvider].
func (PasswordAtProvider) Kind() Kind { return KindPasswordAtProvider }

// Path is the page to sign in on.
func (PasswordAtProvider) Path() string { return "/login" }

// ConfirmEmail asks the reader of a new address whether an account is to get it.
type ConfirmEmail struct {
	Request
	Token string
}

// Kind is [KindConfirmEmail].
func (ConfirmEmail) Kind() Kind { return KindConfirmEmail }

// Path is the page to confirm on.
func (c ConfirmEmail) Path() string { return "/confirm-email?token=" + url.QueryEscape(c.Token) }

// EmailChanged tells the reader of the old address that the account has another one, Now. HoldUntil is zero where payouts are
// not on hold. Now and Token are empty where the old address was never confirmed: its reader may be another person, who is to
// learn nothing of the account and can't undo the change.
type EmailChanged struct {
	Request
	Now, Token string
	HoldUntil  time.Time
}

// Kind is [KindEmailChanged].
func (EmailChanged) Kind() Kind { return KindEmailChanged }

// Path is the page to undo it on.
func (c EmailChanged) Path() string { return "/undo-email-change?token=" + url.QueryEscape(c.Token) }

// How long tokens are good. A mail is not sent after its token has expired.
const (
	VerificationLife = 24 * time.Hour
	ResetLife        = 30 * time.Minute
	ConfirmLife      = 24 * time.Hour
	UndoLife         = 7 * 24 * time.Hour
)

// FactorChanged tells a user that a second factor was added or removed. HoldUntil is zero where payouts are not on hold.
type FactorChanged struct {
	Origin
	Added bool
	// Passkey says that it is one, and no authenticator app. All says that all were removed, by the link in [FirstFactor].
	Passkey, All bool
	HoldUntil    time.Time
}

// Kind is [KindFactorChanged].
func (FactorChanged) Kind() Kind { return KindFactorChanged }

// FirstFactor tells a user that the account has its first second factor. A session that was stolen shortly after its sign-in can
// add one, and would keep the user out for ever, so Token removes it.
type FirstFactor struct {
	Request
	// Passkey says that it is one, and no authenticator app.
	Passkey bool
	Token   string
}

// Kind is [KindFirstFactor].
func (FirstFactor) Kind() Kind { return KindFirstFactor }

// Path is the page to remove it on.
func (f FirstFactor) Path() string { return "/remove-factors?token=" + url.QueryEscape(f.Token) }

// IdentityChanged tells a user that a provider was linked to the account or unlinked. Provider is what people call it.
type IdentityChanged struct {
	Origin
	Added    bool
	Provider string
}

// Kind is [KindIdentityChanged].
func (IdentityChanged) Kind() Kind { return KindIdentityChanged }

// AccountDeleted tells the former owner of an account that it was deleted.
type AccountDeleted struct{ Origin }

// Kind is [KindAccountDeleted].
func (AccountDeleted) Kind() Kind { return KindAccountDeleted }

// rule is what holds for all mails of a kind.
type rule struct {
	decode func(text string) (Data, error)
	// maxAge is how long a mail is worth sending.
	maxAge time.Duration
	// asked says that anybody can have such a mail sent to an address.
	asked bool
	// quota names the limits that the mails of some kinds share. Mails that one person can cause keep none back that another
	// waits for: registrations with an address keep back no link to reset its password, and notices no link to undo a change.
	quota   string
	example Data
}

const noticeAge = 48 * time.Hour

var rules = map[Kind]rule{
	KindPasswordChanged:     {decode[PasswordChanged], noticeAge, false, "notice", PasswordChanged{Origin: exampleOrigin}},
	KindFactorChanged:       {decode[FactorChanged], noticeAge, false, "notice", FactorChanged{Origin: exampleOrigin, HoldUntil: exampleTime.Add(72 * time.Hour)}},
	KindBankAccountReplaced: {decode[BankAccountReplaced], noticeAge, false, "notice", BankAccountReplaced{At: exampleTime, Was: "7812", Now: "4456", HoldUntil: exampleTime.Add(72 * time.Hour)}},
	KindBankAccountRefused:  {decode[BankAccountRefused], noticeAge, false, "refusal", BankAccountRefused{At: exampleTime, Now: "4456"}},
	KindWebhookDisabled:     {decode[WebhookDisabled], noticeAge, false, "notice", WebhookDisabled{At: exampleTime, Endpoint: "whe_0TMv3kQx8hPq2Zb7Lr4Wd9Wh", Address: "https://shop.example/bursar"}},
	KindPayoutsFrozen:       {decode[PayoutsFrozen], noticeAge, false, "notice", PayoutsFrozen{At: exampleTime}},
	KindPayoutFailed: {decode[PayoutFailed], noticeAge, false, "payout", PayoutFailed{
		Payout: "pyt_0TMv3kQx8hPq2Zb7Lr4Wd9Wh", Amount: "₹500.00", Account: "4456", RequestedAt: exampleTime.Add(-time.Hour), At: exampleTime,
		Reason: "The bank account does not exist.",
	}},
	KindIdentityChanged: {decode[IdentityChanged], noticeAge, false, "notice", IdentityChanged{exampleOrigin, true, "Google"}},
	KindAccountDeleted:  {decode[AccountDeleted], noticeAge, false, "notice", AccountDeleted{exampleOrigin}},
	KindVerifyEmail: {decode[VerifyEmail], VerificationLife, true, "verification", VerifyEmail{
		Request: exampleRequest, RegisteredAt: exampleTime, Name: "Asha Rao", Token: exampleToken, Code: "40718265",
	}},
	KindConfirmEmail:       {decode[ConfirmEmail], ConfirmLife, true, "change", ConfirmEmail{exampleRequest, exampleToken}},
	KindEmailChanged:       {decode[EmailChanged], noticeAge, false, "undo", EmailChanged{exampleRequest, "asha@example.org", exampleToken, exampleTime.Add(72 * time.Hour)}},
	KindFirstFactor:        {decode[FirstFactor], noticeAge, false, "factor", FirstFactor{exampleRequest, true, exampleToken}},
	KindRegisteredAgain:    {decode[RegisteredAgain], VerificationLife, true, "registration", RegisteredAgain{exampleRequest, "Asha Rao", exampleToken}},
	KindAccountExists:      {decode[AccountExists], VerificationLife, true, "registration", AccountExists{exampleRequest}},
	KindResetPassword:      {decode[ResetPassword], ResetLife, true, "reset", ResetPassword{exampleRequest, exampleToken}},
	KindPasswordAtProvider: {decode[PasswordAtProvider], VerificationLife, true, "reset", PasswordAtProvider{exampleRequest}},
}

var exampleTime = time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)

var exampleToken = strings.Repeat("example0", 4)

var (
	exampleOrigin  = Origin{At: exampleTime, Address: "203.0.113.7", Agent: "Firefox on Linux"}
	exampleRequest = Request{exampleOrigin}
)

// Examples is one mail of each kind, to try templates with.
func Examples() []Data {
	all := make([]Data, 0, len(rules))
	for _, r := range rules {
		all = append(all, r.example)
	}
	slices.SortFunc(all, func(a, b Data) int {
		if a.Kind() < b.Kind() {
			return -1
		}
		return 1
	})
	return all
}

func decode[D Data](text string) (Data, error) {
	var d D
	err := json.Unmarshal([]byte(text), &d)
	return d, err
}

// content is what is encrypted of a mail.
type content struct {
	To   string          `json:"to"`
	Data json.RawMessage `json:"data"`
}

func encode(to string, d Data) (string, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("mail: write %s: %w", d.Kind(), err)
	}
	text, err := json.Marshal(content{to, data})
	return string(text), err
}

func read(k Kind, text string) (to string, d Data, err error) {
	r, known := rules[k]
	if !known {
		return "", nil, fmt.Errorf("mail: kind %q is not known", k)
	}
	var c content
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return "", nil, fmt.Errorf("mail: read %s: %w", k, err)
	}
	d, err = r.decode(string(c.Data))
	return c.To, d, err
}
