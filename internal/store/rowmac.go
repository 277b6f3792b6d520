package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
)

// Rows that say who may act, and that no journal folds to, carry a MAC of their own: a user, an identity and a service
// key. It covers all that decides what the row gives access to, so that a row can't be made or changed outside the service. An old
// copy of a row has the MAC of its time. Role, suspension and a key's end are therefore also compared with the journal.
//
// So does a bank account while new payouts go there, because a request does not read its entries. They are read before
// money is sent, so an old copy of the row does no more than let a payout be requested.

// rowMessage is what the MAC of a row covers. The kind keeps rows of different tables apart.
func rowMessage(kind string, texts ...string) []byte {
	b := make([]byte, 0, 512)
	b = append(append(append(b, "bursar "...), kind...), " mac v1\n"...)
	for _, text := range texts {
		b = strconv.AppendInt(b, int64(len(text)), 10)
		b = append(append(append(b, ':'), text...), ' ')
	}
	return b
}

// mac makes the MAC of a row.
func (s *signer) mac(message []byte) (string, error) {
	keys, err := s.get()
	if err != nil {
		return "", err
	}
	return ledger.MAC(keys, message), nil
}

// checkRow fails with [auth.ErrTampered] unless the service made the MAC for the message.
func (s *signer) checkRow(mac string, message []byte) error {
	keys, err := s.get()
	if err == nil && !ledger.CheckMAC(keys, mac, message) {
		err = auth.ErrTampered
	}
	return err
}

// storedUser is a user with what else the MAC of the row covers.
type storedUser struct {
	auth.User
	emailKey, mac string
	// decided is what [accessDecided] reads, or empty where it is not asked for.
	decided string
}

// check fails with [auth.ErrTampered] unless the service wrote the row, and the role and suspension are those decided last.
func (u *storedUser) check(keys ledger.Keys) error {
	if !u.isAsDecided() {
		return auth.ErrTampered.Because(fmt.Errorf("user %s has another role or suspension than was decided last", u.ID))
	}
	if !ledger.CheckMAC(keys, u.mac, u.message()) {
		return auth.ErrTampered
	}
	return nil
}

// checkUser is [storedUser.check] with the keys of the moment.
func (s *signer) checkUser(u *storedUser) error {
	keys, err := s.get()
	if err == nil {
		err = u.check(keys)
	}
	return err
}

// isAsDecided reports whether the role and suspension are those decided last. A deleted account has none.
func (u *storedUser) isAsDecided() bool {
	return u.decided == "" || u.Deleted() || strings.Contains(u.decided, "\"note\":\""+auth.AccessNote(u.Role, u.Suspended, ""))
}

func (u *storedUser) message() []byte {
	return rowMessage("user", u.ID, u.Email, u.emailKey, u.PasswordHash, string(u.Role),
		strconv.FormatBool(u.Verified), strconv.FormatBool(u.Suspended), u.ExternalID)
}

// userMessage is what the MAC of a user's row covers.
func userMessage(u auth.User) []byte {
	return (&storedUser{User: u, emailKey: auth.EmailKey(u.Email)}).message()
}

// changeUser changes what the MAC of a user covers, unless change returns false. It reports whether it did, and fails
// with [auth.ErrTampered] if the row is not what the service wrote: to write a MAC then would approve what it is.
func (tx *Tx) changeUser(ctx context.Context, id string, change func(*auth.User) bool) (bool, error) {
	u, found, err := tx.user(ctx, `WHERE u.id = $1`+tx.dialect.forUpdate("u"), id)
	role := u.Role
	if err != nil || !found || !change(&u) {
		return false, err
	}
	changed, err := tx.execSigned(ctx, userMessage(u), `UPDATE users SET password_hash = $2, role = $3, verified = $4, suspended = $5, email = $6, email_key = $7, mac = $8 WHERE id = $1`,
		id, u.PasswordHash, string(u.Role), flag(u.Verified), flag(u.Suspended), u.Email, auth.EmailKey(u.Email))
	if err == nil && changed && role != u.Role && u.Role == auth.Seller {
		err = tx.queueEvents(ctx, sellerRegistered(u))
	}
	return changed, err
}

// ResetUser replaces all that the MAC of a user covers, whatever it was.
func (tx *Tx) ResetUser(ctx context.Context, u auth.User) error {
	if err := tx.mayHaveEmail(ctx, u.ID, u.Email); err != nil {
		return err
	}
	found, err := tx.execSigned(ctx, userMessage(u), `UPDATE users SET email = $2, email_key = $3, password_hash = $4, role = $5, verified = $6, suspended = $7, external_id = $8, mac = $9, imported_as = ''
		WHERE id = $1`, u.ID, u.Email, auth.EmailKey(u.Email), u.PasswordHash, string(u.Role), flag(u.Verified), flag(u.Suspended), nullText(u.ExternalID))
	if err == nil && !found {
		err = auth.ErrUserNotFound
	}
	if err != nil || u.Role != auth.Seller {
		return err
	}
	// What the user was before can't be believed, so the feed says whether they became a seller now.
	var one int
	known, err := tx.one(ctx, `SELECT 1 FROM (SELECT owner, entry FROM events UNION ALL SELECT owner, entry FROM queued_events) AS f
		WHERE owner = $1 AND entry = 0 LIMIT 1`, []any{u.ID}, &one)
	if err == nil && !known {
		err = tx.queueEvents(ctx, sellerRegistered(u))
	}
	return err
}

// user finds a user, if there is one. The condition where must lock the row, because a second statement reads the decision about the
// user. It fails with [auth.ErrTampered] if the row is not what the service wrote, and returns the user all the same.
func (tx *Tx) user(ctx context.Context, where string, args ...any) (auth.User, bool, error) {
	var u storedUser
	found, err := tx.one(ctx, `SELECT `+userColumns+` FROM users u `+where, args, u.dest()...)
	if err != nil || !found {
		return u.User, found, err
	}
	// A statement of its own: PostgreSQL gives one that waited for the row's lock the new row beside the old decision.
	if _, err := tx.one(ctx, `SELECT `+accessDecided+` FROM users u WHERE u.id = $1`, []any{u.ID}, &u.decided); err != nil {
		return u.User, true, err
	}
	return u.User, true, tx.signer.checkUser(&u)
}

// storedAccount is a bank account with the MAC of its row.
type storedAccount struct {
	bank.Account
	mac string
}

// accountMAC is the MAC of a bank account's row: that of what a request takes from it, while new payouts go there.
func (s *signer) accountMAC(a bank.Account) (string, error) {
	if !goesTo(a) {
		return "", nil
	}
	return s.mac(accountMessage(a))
}

// goesTo reports whether new payouts go to the account.
func goesTo(a bank.Account) bool { return a.Current && a.Status == bank.StatusVerified }

func accountMessage(a bank.Account) []byte {
	return rowMessage("bank account", string(a.ID), a.Seller, a.Holder, string(a.IFSC), a.Last4)
}

// check fails with [ledger.ErrTampered] unless the row has the MAC that the service gives it.
func (a *storedAccount) check(keys ledger.Keys) error {
	if goesTo(a.Account) && !ledger.CheckMAC(keys, a.mac, accountMessage(a.Account)) || !goesTo(a.Account) && a.mac != "" {
		return ledger.ErrTampered.Because(fmt.Errorf("bank account %s: the row does not have its MAC", a.ID))
	}
	return nil
}

func identityMessage(issuer, subject, userID string) []byte {
	return rowMessage("identity", issuer, subject, userID)
}

// sessionMessage is what the MAC of a session covers. Ordinary requests do not check it: a token names its user, so a session that was
// made another user's is good for nobody. What asks for a recent sign-in does, and the audit.
func sessionMessage(s auth.Session) []byte {
	texts := []string{s.ID, s.UserID, strings.Join(s.Methods, " ")}
	for _, at := range []time.Time{s.CreatedAt, s.CapAt, s.AuthenticatedAt} {
		texts = append(texts, strconv.FormatInt(micros(at), 10))
	}
	return rowMessage("session", texts...)
}

const selectSessionMACs = `SELECT id, user_id, created_at, expires_at, cap_at, methods, authenticated_at, mac FROM sessions `

// scanSessionMAC reads selectSessionMACs, and reports whether the service wrote the session.
func scanSessionMAC(r *row, keys ledger.Keys) (id string, isOurs bool) {
	var s auth.Session
	var methods, mac string
	r.Scan(&s.ID, &s.UserID, instant{&s.CreatedAt}, instant{&s.ExpiresAt}, instant{&s.CapAt}, &methods, instant{&s.AuthenticatedAt}, &mac)
	s.Methods = strings.Split(methods, " ")
	return s.ID, ledger.CheckMAC(keys, mac, sessionMessage(s)) && !s.ExpiresAt.After(s.CapAt)
}

// sessions holds every session against its MAC.
func (a *auditor) sessions() ledger.Finding {
	f := ledger.Finding{Name: "sessions-are-ours", Promise: "Each session belongs to the user who signed in, and lasts no longer than the service lets it."}
	if a.keys == nil {
		return f
	}
	a.all(selectSessionMACs+`ORDER BY id`, func(r *row) {
		if id, isOurs := scanSessionMAC(r, a.keys); !isOurs {
			a.found.sessions = append(a.found.sessions, id)
			note(&f, ledger.Violation{Subject: "session " + id, Problem: "its user or its end was not written by the service"}, runRepair)
		}
	})
	return f
}

// people holds every user against what was decided last, and every user and identity against its MAC.
func (a *auditor) people() ledger.Finding {
	f := ledger.Finding{Name: "users-are-ours", Promise: "Each user and each way to sign in through a provider is as the service wrote it, and each user has the role that was decided last."}
	const resetUser = "Say what is right with \"bursar user reset\", and suspend the user again if they were"
	a.all(selectUser+`ORDER BY u.id`, func(r *row) {
		var u storedUser
		r.Scan(append(u.dest(), &u.decided)...)
		switch {
		case a.keys != nil && !ledger.CheckMAC(a.keys, u.mac, u.message()):
			note(&f, ledger.Violation{Subject: "user " + u.ID, Problem: "the e-mail address, password, role, verification, suspension or external id was not written by the service"}, resetUser)
		case !u.isAsDecided():
			is := string(u.Role)
			if u.Suspended {
				is += ", suspended"
			}
			note(&f, ledger.Violation{Subject: "user " + u.ID, Problem: "the user is " + is + ", and was not made so by the last decision: it may be an old copy of the row"}, resetUser)
		}
	})
	if a.keys == nil {
		return f
	}
	a.all(`SELECT issuer, subject, user_id, mac FROM identities ORDER BY issuer, subject`, func(r *row) {
		var issuer, subject, user, mac string
		r.Scan(&issuer, &subject, &user, &mac)
		if !ledger.CheckMAC(a.keys, mac, identityMessage(issuer, subject, user)) {
			note(&f, ledger.Violation{Subject: "user " + user, Problem: fmt.Sprintf("the identity %q at %s was not linked by the service", subject, issuer)}, resetUser)
		}
	})
	return f
}
