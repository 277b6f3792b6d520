package auth

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// What unlinking a provider fails with.
var (
	ErrIdentityNotFound = fault.New(fault.NotFound, "identity_not_found", "No such provider is linked to your account.")
	ErrLastWayIn        = fault.New(fault.Conflict, "last_way_in",
		"Without this provider you could not sign in to your account any more. Set a password first, then unlink the provider.")
)

// Identities lists a user's ways to sign in through a provider, the oldest first.
func (s *Service) Identities(ctx context.Context, userID string) ([]LinkedIdentity, error) {
	all, err := s.o.Store.Identities(ctx, userID)
	for i := range all {
		if p, label := s.providerOf(all[i].Issuer); p != "" {
			all[i].Provider, all[i].Label = p, label
		}
	}
	return all, err
}

// providerOf is the provider whose identities have an issuer, and what people call it. Of an issuer whose provider is not set up any more
// it returns "" and the issuer.
func (s *Service) providerOf(issuer string) (p ProviderID, label string) {
	for _, b := range s.SignInButtons() {
		if s.o.Providers[b.ID].Issuer() == issuer {
			return b.ID, b.Label
		}
	}
	return "", issuer
}

// UnlinkIdentity ends that a provider's account signs in to the user's, and ends all other sessions of the user: a session does not say
// which provider it began with. The session that asks goes on, because its user has just proven who they are, as [Service.DeleteAccount]
// says. It fails as that does, with a proof for identity.unlink of the provider, and with [ErrIdentityNotFound] or [ErrLastWayIn].
func (s *Service) UnlinkIdentity(ctx context.Context, p Principal, provider ProviderID, password string, from Device) error {
	linked, err := s.Identities(ctx, p.UserID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(linked, func(i LinkedIdentity) bool { return i.Provider == provider })
	if provider == "" || i < 0 { // known before a password is asked for
		return ErrIdentityNotFound
	}
	issuer := linked[i].Issuer
	err = s.changeProven(ctx, p, password, from, ActionUnlinkIdentity, []string{string(provider)}, func(tx Tx) error {
		return s.unlink(ctx, tx, p, issuer, from)
	})
	if err = s.endAnyway(ctx, p.UserID, p.Session, endedByUnlink, err); err == nil {
		s.o.Logger.InfoContext(ctx, "provider unlinked", slog.String("user_id", p.UserID), slog.String("provider", string(provider)))
	}
	return err
}

// unlink removes the identities at one issuer of a user who has proven who they are.
func (s *Service) unlink(ctx context.Context, tx Tx, p Principal, issuer string, from Device) error {
	user, err := s.userOfSession(ctx, tx, p)
	if err != nil {
		return err
	}
	linked, err := tx.Identities(ctx, user.ID)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(linked, func(i LinkedIdentity) bool { return i.Issuer == issuer }) {
		return ErrIdentityNotFound
	}
	can, err := s.canSignInWithout(ctx, tx, user, linked, issuer)
	if err != nil {
		return err
	}
	if !can {
		return ErrLastWayIn
	}
	if err := tx.RemoveIdentitiesOf(ctx, user.ID, issuer); err != nil {
		return err
	}
	if err := s.endSessions(ctx, tx, user.ID, p.Session, endedByUnlink); err != nil {
		return err
	}
	return s.notifyIdentity(ctx, tx, user.ID, ledger.AccountIdentityUnlinked, issuer, from)
}

// canSignInWithout reports whether a user can sign in without the identities at one issuer: by a password, by a passkey alone, or through
// another provider that is set up.
func (s *Service) canSignInWithout(ctx context.Context, tx Tx, user User, linked []LinkedIdentity, issuer string) (bool, error) {
	isAnother := func(i LinkedIdentity) bool { return i.Issuer != issuer && s.isSetUp(i) }
	if user.PasswordHash != "" || slices.ContainsFunc(linked, isAnother) {
		return true, nil
	}
	all, err := s.factorsOf(ctx, tx, user.ID)
	isPasskey := func(f Factor) bool { return f.Kind == FactorPasskey && f.Confirmed() }
	return s.OffersPasskeys() && slices.ContainsFunc(all, isPasskey), err
}

// isSetUp reports whether a user can sign in through the provider of an identity.
func (s *Service) isSetUp(i LinkedIdentity) bool {
	provider, _ := s.providerOf(i.Issuer)
	return provider != ""
}

// clearWaysIn removes all second factors and all identities of a user whose account an operator resets, and records each issuer.
func (s *Service) clearWaysIn(ctx context.Context, tx Tx, userID string, linked []LinkedIdentity) error {
	if err := tx.RemoveIdentities(ctx, userID); err != nil {
		return err
	}
	if err := s.clearFactors(ctx, tx, userID, Device{}); err != nil { // the journal is locked last
		return err
	}
	recorded := map[string]bool{}
	for _, i := range linked {
		if recorded[i.Issuer] {
			continue
		}
		recorded[i.Issuer] = true
		if err := s.record(ctx, tx, userID, ledger.AccountIdentityUnlinked, Device{}, "provider", i.Issuer); err != nil {
			return err
		}
	}
	return nil
}

// notifyIdentity records that a provider was linked or unlinked, and mails it.
func (s *Service) notifyIdentity(ctx context.Context, tx Tx, userID string, what ledger.Type, issuer string, from Device) error {
	if err := s.record(ctx, tx, userID, what, from, "provider", issuer); err != nil {
		return err
	}
	_, label := s.providerOf(issuer)
	_, err := s.o.Mails.Queue(ctx, tx, mail.Mail{User: userID, Data: mail.IdentityChanged{
		Origin: from.origin(s.o.Now()), Added: what == ledger.AccountIdentityLinked, Provider: label,
	}})
	return err
}

// mayLink keeps a provider that was unlinked from being linked again by the e-mail address alone: its account may be a thief's, and still
// have the address. Once a provider was unlinked, the user signs in otherwise and then, in the same browser and a short time after, through
// the provider. It fails with [ErrIdentityUnlinked].
func (s *Service) mayLink(ctx context.Context, tx Tx, user User, presented Principal, now time.Time) error {
	unlinked, err := tx.NewestOfType(ctx, user.ID, user.ID, ledger.AccountIdentityUnlinked)
	if err != nil || unlinked.IsZero() {
		return err
	}
	session, found, err := tx.Session(ctx, presented.Session)
	if err != nil {
		return err
	}
	if !found || session.UserID != user.ID || !session.live(now) || !isFresh(session.AuthenticatedAt, now) {
		return ErrIdentityUnlinked
	}
	return nil
}
