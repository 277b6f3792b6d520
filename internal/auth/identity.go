package auth

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
)

// deed is what a sign-in through a provider did to find the account.
type deed string

const (
	accountFound      deed = "found"      // by the identity
	accountRegistered deed = "registered" // a new one
	accountLinked     deed = "linked"     // the verified one with the e-mail address
	accountToLink     deed = "to_link"    // the same, once its user has taken the second step
	accountTakenOver  deed = "taken_over" // the unverified one with the e-mail address
)

// reasonRegisterAgain is for the seller whose account belonged to another person before.
const reasonRegisterAgain = "This bank account was registered before your e-mail address was verified. If it is yours, register it again."

// errMeanwhile says that another request made the same user or link just now, and that a second look will
// find it.
var errMeanwhile = errors.New("the same identity or e-mail address was signed in with at the same moment")

// maxLooks bounds how often the account is looked for. The second look finds what made the first fail.
const maxLooks = 3

// admitIdentity finds or makes the user who is who, and starts a session.
func (s *Service) admitIdentity(ctx context.Context, who Identity, f flow, r ProviderReturn) (SignIn, error) {
	if !usable(who.Issuer) || !usable(who.Subject) {
		return SignIn{}, ErrProviderAnswer.Because(errors.New("its issuer or subject is empty, too long, or not plain text"))
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	fresh := newcomer(who, f.Role, now)
	session := newSession("", now, r.Device, MethodProvider)
	presented, err := s.Authenticate(ctx, r.Presented)
	if err != nil && !errors.Is(err, ErrToken) {
		return SignIn{}, err
	}
	var user User
	var did deed
	second := false
	var factors []Factor
	err = errMeanwhile
	for look := 0; look < maxLooks && errors.Is(err, errMeanwhile); look++ {
		err = s.o.Store.InTx(ctx, func(tx Tx) (err error) {
			user, did, err = s.findOrCreate(ctx, tx, who, fresh, presented, r.Device)
			if err != nil {
				return err
			}
			factors, err = s.factorsOf(ctx, tx, user.ID)
			if second = hasFactor(factors); err != nil || second {
				return err
			}
			if presented.Session != "" {
				if err := tx.EndSession(ctx, presented.Session, endedByNewSignIn, now); err != nil {
					return err
				}
			}
			started := session
			started.UserID = user.ID
			return tx.InsertSession(ctx, started)
		})
	}
	err = s.refuseTampered(ctx, err, ErrSuspended, tamperedIdentity, slog.String("user", user.ID), slog.String("issuer", who.Issuer))
	if err != nil {
		return SignIn{}, err
	}
	if second {
		return SignIn{}, s.challenge(user, MethodProvider, factors, &who, did == accountToLink)
	}
	s.logSignIn(ctx, f.Provider, user, did, r.Device)
	signIn, err := s.signInto(user, session.ID, session.Counter, now)
	if err != nil {
		return SignIn{}, err
	}
	signIn.DeviceToken, err = s.deviceToken(user, s.recognize(user, r.Device, now), now)
	return signIn, err
}

// findOrCreate finds the user of an identity, or else gives the identity to the user of its e-mail
// address, or to a new one. Only an address that the provider verified counts for more than a name. The browser is signed in as presented.
func (s *Service) findOrCreate(ctx context.Context, tx Tx, who Identity, fresh User, presented Principal, from Device) (User, deed, error) {
	user, ok, err := tx.UserByIdentity(ctx, who.Issuer, who.Subject)
	if err != nil {
		return user, "", err
	}
	if ok {
		if user.Suspended {
			return User{}, "", ErrSuspended
		}
		return user, accountFound, nil
	}
	if problem := CheckEmail(who.Email); problem != "" {
		return User{}, "", ErrEmailMissing.Because(errors.New("the address " + problem))
	}
	user, ok, err = tx.UserByEmail(ctx, EmailKey(who.Email))
	switch {
	case err != nil:
		return user, "", err
	case !ok:
		user, err = fresh, s.registerIdentity(ctx, tx, who, fresh, from)
		return user, accountRegistered, err
	case !who.EmailVerified:
		return User{}, "", ErrEmailUnverified
	case user.Suspended:
		return User{}, "", ErrSuspended
	case user.Role == Admin:
		return User{}, "", ErrAdminByPassword
	case user.Verified:
		factors, err := s.factorsOf(ctx, tx, user.ID)
		if err != nil || hasFactor(factors) {
			return user, accountToLink, err
		}
		if err := s.mayLink(ctx, tx, user, presented, fresh.CreatedAt); err != nil {
			return user, "", err
		}
		if err := link(ctx, tx, user, who, fresh.CreatedAt); err != nil {
			return user, "", err
		}
		return user, accountLinked, s.notifyIdentity(ctx, tx, user.ID, ledger.AccountIdentityLinked, who.Issuer, from)
	default:
		if user, err = s.takeOver(ctx, tx, user, who, from, fresh.CreatedAt); err != nil {
			return user, "", err
		}
		return user, accountTakenOver, s.record(ctx, tx, user.ID, ledger.AccountTakenOver, from, "provider", who.Issuer)
	}
}

// registerIdentity makes a user of an identity.
func (s *Service) registerIdentity(ctx context.Context, tx Tx, who Identity, fresh User, from Device) error {
	if s.o.Throttle {
		wait, err := take(ctx, tx, s.o.Now(), try{action: registration, address: from.site()}.buckets())
		if err != nil {
			return err
		}
		if err := s.refuse(try{action: registration}, wait); err != nil {
			return err
		}
	}
	if err := tx.InsertUser(ctx, fresh); err != nil {
		if errors.Is(err, ErrEmailTaken) {
			err = errMeanwhile
		}
		return err
	}
	if err := link(ctx, tx, fresh, who, fresh.CreatedAt); err != nil || fresh.Verified {
		return err
	}
	return s.mailVerification(ctx, tx, fresh, from, fresh.CreatedAt, true)
}

// link lets an identity sign in to a user's account from now on.
func link(ctx context.Context, tx Tx, user User, who Identity, now time.Time) error {
	added, err := tx.AddIdentity(ctx, user.ID, who, now)
	if err == nil && !added {
		err = errMeanwhile
	}
	return err
}

// takeOver gives an account to the owner of its e-mail address, who comes through a provider.
func (s *Service) takeOver(ctx context.Context, tx Tx, user User, who Identity, from Device, now time.Time) (User, error) {
	user.Verified, user.PasswordHash, user.Name = true, "", nameOf(who)
	if err := s.giveToOwner(ctx, tx, user, from, endedByTakeOver, now); err != nil {
		return User{}, err
	}
	return user, link(ctx, tx, user, who, now)
}

// giveToOwner makes a user whose address was never verified the one of its owner: u has the owner's role, password and name. The
// registrant never proved that the address is theirs, and may wait for its owner to come. Their password, sessions, session links,
// identities, second factors and mailed tokens end. No device is known with another password. Nobody trusts their bank accounts any more, so a
// payout to one of them that was not sent yet fails.
//
// The role and the profile of a user whom the marketplace made are the marketplace's word, and stay. So do the bank accounts
// if nobody could sign in before but by the marketplace.
func (s *Service) giveToOwner(ctx context.Context, tx Tx, u User, from Device, reason string, now time.Time) error {
	was, _, err := tx.UserForUpdate(ctx, u.ID)
	if err != nil {
		return err
	}
	unclaimed, err := isUnclaimed(ctx, tx, was)
	if err != nil {
		return err
	}
	if was.ExternalID != "" {
		u.Role = was.Role
	}
	for _, end := range []func() error{
		func() error { return tx.TakeUserOver(ctx, u.ID, u.Role, u.PasswordHash) },
		func() error {
			if u.ExternalID != "" { // the marketplace wrote the profile, not a registrant
				return nil
			}
			none := ""
			return tx.SetProfile(ctx, u.ID, ProfileChange{Name: &u.Name, Avatar: &none, Bio: &none, Website: &none})
		},
		func() error { return tx.DeleteMailTokens(ctx, u.ID, allPurposes) },
		func() error { return s.endSessions(ctx, tx, u.ID, "", reason) },
		func() error { return tx.RemoveIdentities(ctx, u.ID) },
		func() error {
			if unclaimed {
				return nil
			}
			return tx.RejectBankAccounts(ctx, u.ID, reasonRegisterAgain, now)
		},
		func() error { return s.clearFactors(ctx, tx, u.ID, from) }, // journals are locked last
		func() error {
			if u.Role == was.Role {
				return nil
			}
			// The last decision on record says what role the row must have.
			by := decision.By{User: u.ID, Note: AccessNote(u.Role, was.Suspended, "The owner of the address took the account over.")}
			return ledger.RecordDecision(ctx, tx, decision.New(by, decision.ChangeAccess, u.ID, u.ID, now))
		},
		func() error {
			// Money that is there may be the registrant's, or the owner who comes now another thief. Who comes as a buyer may be made a seller again.
			money, err := tx.HasMoney(ctx, u.ID)
			if err == nil && money {
				_, err = s.holdMoney(ctx, tx, ledger.ActorUser+u.ID, u.ID, ledger.HoldTakenOver)
			}
			return err
		},
	} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// isUnclaimed reports whether the marketplace made a user, and nobody has a password or an identity to sign in with yet.
func isUnclaimed(ctx context.Context, tx Tx, u User) (bool, error) {
	if u.ExternalID == "" || u.PasswordHash != "" {
		return false, nil
	}
	linked, err := tx.HasIdentity(ctx, u.ID)
	return !linked, err
}

// usable reports whether a part of an identity can be compared and stored.
func usable(part string) bool {
	const most = 512 // OpenID Connect bounds a subject to 255
	return part != "" && len(part) <= most && utf8.ValidString(part) && !strings.ContainsFunc(part, limits.IsControl)
}

// newcomer is the user who is made of an identity that nobody has.
func newcomer(who Identity, role Role, now time.Time) User {
	user := User{
		ID: id.New(UserIDPrefix, now), Name: nameOf(who), Email: who.Email, Role: role, Verified: who.EmailVerified, CreatedAt: now,
	}
	if checkAddress(who.Avatar, "https") == "" {
		user.Profile.Avatar = who.Avatar
	}
	return user
}

// nameOf makes a name that may be shown of what a provider tells.
func nameOf(who Identity) string {
	local, _, _ := strings.Cut(who.Email, "@")
	for _, name := range []string{who.Name, local} {
		if name = fitName(name); CheckName(name) == "" {
			return name
		}
	}
	return "New user"
}

func fitName(name string) string {
	name = strings.Map(func(c rune) rune {
		if limits.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	runes := []rune(strings.Join(strings.Fields(name), " "))
	return strings.TrimSpace(string(runes[:min(len(runes), maxNameRunes)]))
}
