// Package decision is the record of what admins decided, and why: who, when, what, about what. It also has what the service
// did by itself and only an admin undoes.
//
// A decision is stored in the transaction that carries it out, so that there is neither one without
// the other. It is never changed.
package decision

import (
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/limits"
)

// By is who decides, and why.
type By struct {
	Admin string // a user's id
	// Operator is who ran a command, by the name that they gave, where it was no admin.
	Operator string
	// User is the id of a user who decided about their own account.
	User string
	// Key is the id of a service key that the marketplace's server used.
	Key  string
	Note string
}

// Decision is one entry of the record.
type Decision struct {
	ID string // prefix "dec_"
	At time.Time
	// Admin, Operator, User or Key decided; the others are empty. All are where the service froze payouts by itself.
	Admin    string
	Operator string
	User     string
	Key      string
	Action   Action
	// Owner is whose journal it belongs to: the seller, or [Platform] where no seller owns it.
	Owner string
	// Subject is the id of what it is about: a payout, a bank account, a user, a transfer of the gateway.
	Subject string
	Note    string
}

// Action names what was decided.
type Action string

// Actions.
const (
	CancelPayout             Action = "cancel_payout"
	ReviewPayout             Action = "review_payout"
	AskGateway               Action = "ask_gateway"
	MatchTransfer            Action = "match_transfer"
	RefundPayout             Action = "refund_payout"
	ResolveDiscrepancy       Action = "resolve_discrepancy"
	ResolveUnmatchedTransfer Action = "resolve_unmatched_transfer"
	AcceptBankAccount        Action = "accept_bank_account"
	RejectBankAccount        Action = "reject_bank_account"
	ChangeAccess             Action = "change_access"
	SetPassword              Action = "set_password"
	ImportUsers              Action = "import_users"
	LiftHold                 Action = "lift_hold"
	ResolveDifference        Action = "resolve_difference"
	FreezePayouts            Action = "freeze_payouts"
	UnfreezePayouts          Action = "unfreeze_payouts"
	PausePayouts             Action = "pause_payouts" // everyone's
	ResumePayouts            Action = "resume_payouts"
	AdjustBalance            Action = "adjust_balance"
	NoteUser                 Action = "note_user"
	CreateServiceKey         Action = "create_key"
	RotateServiceKey         Action = "rotate_key"
	RevokeServiceKey         Action = "revoke_key"
	AddWebhook               Action = "add_webhook"
	ChangeWebhook            Action = "change_webhook"
	RotateWebhook            Action = "rotate_webhook"
	RemoveWebhook            Action = "remove_webhook"
)

// Guarded reports whether an action moves money or access, so that an admin with a second factor proves again who they are.
func (a Action) Guarded() bool {
	switch a {
	case CancelPayout, MatchTransfer, RefundPayout, ResolveUnmatchedTransfer, AcceptBankAccount, RejectBankAccount, ChangeAccess, LiftHold,
		FreezePayouts, UnfreezePayouts, PausePayouts, ResumePayouts, AdjustBalance,
		CreateServiceKey, RotateServiceKey, RevokeServiceKey,
		AddWebhook, ChangeWebhook, RotateWebhook, RemoveWebhook:
		return true
	default:
		return false
	}
}

// ErrOwn is what an admin is answered who decides in their own favour.
var ErrOwn = fault.New(fault.Forbidden, "own_account", "This is about your own money. Another admin has to decide it.")

// CheckNotOwn fails with [ErrOwn] if an admin lets their own money go, or takes what stops it off the list. An attacker with an admin's account would start here.
func (d Decision) CheckNotOwn() error {
	switch d.Action {
	case AcceptBankAccount, LiftHold, RefundPayout, ResolveDiscrepancy, UnfreezePayouts:
		if d.Admin != "" && d.Admin == d.Owner {
			return ErrOwn
		}
	default:
	}
	return nil
}

// MaxNote bounds a note, in characters; it is for a sentence or two and a reference.
const MaxNote = 1000

// New makes a decision, to be stored with what it does.
func New(by By, action Action, owner, subject string, now time.Time) Decision {
	return Decision{ID: id.New("dec_", now), At: now, Admin: by.Admin, Operator: by.Operator, User: by.User, Key: by.Key, Action: action, Owner: owner, Subject: subject, Note: by.Note}
}

// Platform owns the journal of what belongs to no user.
const Platform = "platform"

// RequireNote fails with a fault that names the field unless there is a note that says something.
func (by By) RequireNote() error {
	if strings.TrimSpace(by.Note) == "" {
		return fault.Field("note", "must say why: what you saw, and where")
	}
	return by.CheckNote()
}

// CheckNote fails with a fault that names the field if there is a note that can't be kept.
func (by By) CheckNote() error {
	if problem := limits.Prose(by.Note, MaxNote); problem != "" {
		return fault.Field("note", problem)
	}
	return nil
}
