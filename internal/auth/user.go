// Package auth knows who is asking: users, passwords, sessions and the tokens that stand for them.
//
// An access token is a signed JWT that lasts seven days, and every request checks the session that it
// belongs to, so it is long and revocable at once. A refresh token is a session, a counter and a MAC
// over both: nothing about it is stored but the counter, and its successor is always the same one.
package auth

import (
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bursar/internal/fault"
	"bursar/internal/limits"
	"bursar/internal/money"
)

// Role is what a user may do.
type Role string

// Roles. Admin is given by the operator alone.
const (
	Buyer  Role = "buyer"
	Seller Role = "seller"
	Admin  Role = "admin"
)

// CanUsePayouts reports whether the payout endpoints are open to r.
func (r Role) CanUsePayouts() bool { return r == Seller || r == Admin }

// User is a person with an account.
type User struct {
	ID   string // prefix [UserIDPrefix]
	Name string
	// Email is as the user wrote it; EmailKey is what is compared.
	Email        string
	Role         Role
	Verified     bool
	Suspended    bool
	PasswordHash string
	Profile      Profile
	CreatedAt    time.Time
	// ExternalID is what the system that the user came from calls them; empty for none.
	ExternalID string
}

// Profile is what a user may show to others.
type Profile struct {
	Avatar  string
	Bio     string
	Website string
}

// ProfileChange is what to change of a user's name and profile. What is nil stays as it is.
type ProfileChange struct{ Name, Avatar, Bio, Website *string }

// Stats is a user's figures as a seller.
type Stats struct {
	TotalSales     int64
	TotalEarnings  money.Amount
	ProductsListed int64
}

// Principal is who is asking: the user behind a live session.
type Principal struct {
	UserID  string
	Email   string
	Role    Role
	Session string
	// Verified is whether the address is known to be the user's. Only [Service.Authenticate] says so.
	Verified bool
	// Issuer is who made the token, where it is not ours and so has no session.
	Issuer string
	// Proof is a fresh proof of who they are, from [Service.StepUp], that came with the request; it may be empty.
	Proof string
}

// Limits of the interface, §8, and ours.
const (
	UserIDPrefix     = "usr_" // begins a user's id
	minNameRunes     = 2
	maxNameRunes     = 50
	maxEmailBytes    = 254 // RFC 5321 §4.5.3.1.3, less the angle brackets
	minPasswordRunes = 8
	maxPasswordBytes = 1024
)

// CheckName returns what is wrong with a name, or "".
func CheckName(name string) string {
	n := utf8.RuneCountInString(strings.TrimSpace(name))
	if n < minNameRunes || utf8.RuneCountInString(name) > maxNameRunes {
		return "must be 2 to 50 characters"
	}
	if strings.ContainsFunc(name, limits.IsControl) {
		return "must not contain control characters"
	}
	if !strings.ContainsFunc(name, isVisible) {
		return "must contain visible characters"
	}
	return ""
}

// isVisible is about what makes a name: joiners, fillers and blanks may be in one, but do not make it.
func isVisible(c rune) bool {
	const brailleBlank = '\u2800'
	invisible := unicode.IsSpace(c) || c == brailleBlank ||
		unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	return unicode.IsGraphic(c) && !invisible
}

// CheckEmail returns what is wrong with an e-mail address, or "". Only a mail that arrives proves an
// address; this refuses what no mail could reach, and what hides who it is (display names, comments,
// look-alike scripts).
func CheckEmail(email string) string {
	const help = "must be an e-mail address such as name@example.com"
	if len(email) > maxEmailBytes {
		return "must be at most 254 characters"
	}
	for _, c := range []byte(email) {
		if c <= ' ' || c >= 0x7f {
			return help + ", in plain ASCII"
		}
	}
	address, err := mail.ParseAddress(email)
	if err != nil || address.Address != email {
		return help
	}
	local, domain, _ := strings.Cut(email, "@")
	if len(local) > 64 || strings.ContainsAny(email, `"<>()[]\,;:`) || !validDomain(domain) {
		return help
	}
	return ""
}

func validDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !(c == '-' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
				return false
			}
		}
	}
	return len(labels) >= 2
}

// EmailKey is what e-mail addresses are compared by.
func EmailKey(email string) string { return strings.ToLower(email) }

// CheckPassword returns what is wrong with a new password, or "". Length is all that the interface asks.
func CheckPassword(password string) string {
	if utf8.RuneCountInString(password) < minPasswordRunes {
		return "must be at least 8 characters"
	}
	if len(password) > maxPasswordBytes {
		return "must be at most 1024 bytes"
	}
	return ""
}

// ParseRole reads a role that a user may choose; none is buyer.
func ParseRole(s string) (Role, bool) {
	switch Role(s) {
	case "", Buyer:
		return Buyer, true
	case Seller:
		return Seller, true
	default:
		return "", false
	}
}

// Failures that a caller may see.
var (
	ErrEmailTaken = fault.New(fault.Refused, "email_taken", "This e-mail address is already registered. Sign in, or use another address.")
	// ErrEmailReserved is for an address that an account had until a mailed link that is still alive can undo the change. Who can take the
	// account by a stolen session must not take the way back to it by registering the address.
	ErrEmailReserved  = fault.New(fault.Refused, "email_reserved", "An account had this e-mail address a few days ago, and can get it back. If the account is yours, use the link in the mail about the change. Otherwise use another address.")
	ErrCredentials    = fault.New(fault.Unauthenticated, "invalid_credentials", "The e-mail address or the password is wrong.")
	ErrWrongPassword  = fault.New(fault.Refused, "wrong_password", "The current password is wrong.")
	ErrToken          = fault.New(fault.Unauthenticated, "invalid_token", "The access token is missing, invalid or expired. Sign in again.")
	ErrRefresh        = fault.New(fault.Unauthenticated, "invalid_refresh_token", "The refresh token is invalid, expired or already used. Sign in again.")
	ErrStaleSignIn    = fault.New(fault.Refused, "sign_in_again", "Your sign-in is more than 15 minutes old. Sign out, sign in again through the provider, and then try once more.")
	ErrRole           = fault.New(fault.Forbidden, "forbidden", "Your role does not allow this. Payouts are for sellers and admins.")
	ErrThrottled      = fault.New(fault.TooMany, "too_many_attempts", "Too many attempts. Wait and try again.")
	ErrBusy           = fault.New(fault.Unavailable, "busy", "Too many sign-ins at once. Try again in a moment.")
	ErrNoSession      = fault.New(fault.NotFound, "session_not_found", "You have no session with this id. It may have ended already.")
	ErrUserNotFound   = fault.New(fault.NotFound, "user_not_found", "No user has this id.")
	ErrAccessMoved    = fault.New(fault.Refused, "access_moved", "Another admin changed this user's access meanwhile. Look at what it is now, and choose again.")
	ErrLastAdmin      = fault.New(fault.Refused, "last_admin", "This is the last admin who is not suspended. Make another user an admin first.")
	ErrSellerNotFound = fault.New(fault.NotFound, "seller_not_found", "No seller has this sellerId. It is the id that registration returned, or ext: and the marketplace's own id.")
	ErrTampered       = fault.New(fault.Conflict, "records_tampered",
		"This account was changed outside Bursar, so nobody can sign in to it and its access can't be changed. Find out who changed the database, then run: bursar user reset")
	ErrKeyNameTaken = fault.New(fault.Conflict, "key_name_taken", "A service key with this name was made before. Names are never used again: choose another one.")
	ErrKeyNotFound  = fault.New(fault.NotFound, "key_not_found", "No service key has this id or name. \"bursar apikey list\" shows all.")
	ErrKeyNotActive = fault.New(fault.Conflict, "key_not_active", "This key is not accepted any more, so it can't be rotated. Create another one.")
	ErrKeyRotations = fault.New(fault.Conflict, "key_rotated_too_often",
		"The last 20 that this key was are still accepted. Wait until one of them ends, or rotate with a shorter grace.")
	ErrScope      = fault.New(fault.Forbidden, "scope_missing", "This service key lacks the scope that this needs. Create one that has it.")
	ErrServiceKey = fault.New(fault.Unauthenticated, "invalid_service_key", "The service key is missing or unknown. Make one with: bursar apikey create --name NAME")
)
