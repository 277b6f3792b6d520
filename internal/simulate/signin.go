package simulate

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// former is what the person who registered an account, with an address that is not theirs, can get into it with.
type former struct {
	auth.SignIn
	session auth.Principal
	// confirm, undo and link are tokens that were mailed or made, and code was mailed with the first.
	confirm, undo, link, code string
	identity                  auth.Identity
}

const (
	formerPassword = "a-former-password-42"
	formerHash     = "$argon2id$v=19$m=8,t=1,p=1$LXp52f51f98tJVGWRBbaOg$jvcEuRwr5VtXO3gpRDiWA4x1F0i16RzeCrI4lo4cX3k" // of formerPassword
	ownerPassword  = "an-owners-password-43"
	formerBio      = "Pay me."

	simulatedIssuer = "https://login.simulated"
)

// identities answers as an identity provider does: that the next one to come back is who.
type identities struct{ who auth.Identity }

// asProviders are the providers of the service: this one alone.
func (p *identities) asProviders() map[auth.ProviderID]auth.Provider {
	all := make(map[auth.ProviderID]auth.Provider)
	all[auth.ProviderA] = p
	return all
}

func (p *identities) Label() string { return "Simulated" }

func (p *identities) Issuer() string { return simulatedIssuer }

func (p *identities) Begin(_ context.Context, r auth.ProviderRequest) (string, error) {
	return "https://login.simulated/?" + url.Values{"state": {r.State}}.Encode(), nil
}

func (p *identities) Finish(context.Context, auth.ProviderRequest, url.Values) (auth.Identity, error) {
	return p.who, nil
}

// authStore undoes each transaction at its end and runs it again, where the market says so.
type authStore struct {
	auth.Store
	on *instance
}

func (s authStore) InTx(ctx context.Context, fn func(auth.Tx) error) error {
	m := s.on.m
	if m.undoing {
		err := s.Store.InTx(ctx, func(tx auth.Tx) error {
			m.mailed = nil
			return orUndo(fn(tx), errUndone)
		})
		if !errors.Is(err, errUndone) {
			return err
		}
	}
	return s.Store.InTx(ctx, func(tx auth.Tx) error {
		m.mailed = nil
		return fn(tx)
	})
}

// emailOf is the address that a seller's account was registered with.
func emailOf(seller string) string { return seller + "@example.com" }

// comeBack signs a person in through the identity provider, in a browser that is signed in with a token, if there is one.
func (m *market) comeBack(on *instance, who auth.Identity, presented ...string) (auth.SignIn, error) {
	begun, err := on.users.BeginSignIn(m.ctx, auth.ProviderStart{Provider: auth.ProviderA, Role: auth.Seller})
	if err != nil {
		return auth.SignIn{}, err
	}
	address, err := url.Parse(begun.URL)
	if err != nil {
		return auth.SignIn{}, err
	}
	m.identities.who = who
	signIn, _, err := on.users.FinishSignIn(m.ctx, auth.ProviderReturn{Provider: auth.ProviderA, Encrypted: begun.Encrypted, Answer: address.Query(), Presented: strings.Join(presented, "")})
	return signIn, err
}

func (m *market) login(on *instance, s *seller, password string) (auth.SignIn, error) {
	return on.users.Login(m.ctx, auth.Credentials{Email: emailOf(s.id), Password: password})
}

// signInFormer gives the person who registered an account all that they can sign in with: a password, an identity, a session, a link of the
// marketplace, a second factor, and mails that they wait to be confirmed by a careless owner.
func (m *market) signInFormer(on *instance, t *takeover) error {
	s, f := t.seller, &t.former
	f.identity = auth.Identity{Issuer: "https://careless.simulated", Subject: s.id, Email: emailOf(s.id)}
	key, err := m.addServiceKey(on, "shop "+s.id, time.Time{})
	if err != nil {
		return err
	}
	err = on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
		_, err := tx.SetPasswordHash(m.ctx, s.id, "", formerHash)
		_, err2 := tx.AddIdentity(m.ctx, s.id, f.identity, on.now())
		return errors.Join(err, err2)
	})
	if err != nil {
		return err
	}
	if f.SignIn, err = m.login(on, s, formerPassword); err != nil {
		return err
	}
	if f.session, err = on.users.Authenticate(m.ctx, f.Token); err != nil {
		return err
	}
	bio := formerBio
	err = errors.Join(on.users.SetProfile(m.ctx, f.session, auth.ProfileChange{Bio: &bio}, auth.Device{}), on.users.ResendVerification(m.ctx, f.session, auth.Device{}))
	told, _ := mailTo[mail.VerifyEmail](m, s.id)
	f.confirm, f.code = told.Token, told.Code
	factor, err2 := on.users.AddFactor(m.ctx, f.session, "")
	code, err3 := totp.GenerateCode(factor.Secret, on.now())
	_, err4 := on.users.ConfirmFactor(m.ctx, f.session, factor.ID, code, auth.Device{})
	used := auth.StepUp{Action: auth.ActionDeleteAccount, SecondProof: auth.SecondProof{Code: code}}
	_, _, again := on.users.StepUp(m.ctx, f.session, used)
	m.assert(takeoversEndAccess, err4 != nil || errors.Is(again, auth.ErrFactorCode), s.id, "the code that confirmed a second factor of %s was used again, and answered with %v", s.id, again)
	added, _ := mailTo[mail.FirstFactor](m, s.id)
	f.undo = added.Token
	var err5 error
	f.link, _, err5 = on.users.CreateSessionLink(m.ctx, key, s.id)
	m.follow(on, s.id)
	return errors.Join(err, err2, err3, err4, err5)
}

// addServiceKey adds a key of the marketplace, whose secret nobody has. Its id is the same in each run of a seed.
func (m *market) addServiceKey(on *instance, name string, expires time.Time) (auth.ServiceKey, error) {
	return m.addKey(on, name, auth.AllScopes(), expires)
}

func (m *market) addKey(on *instance, name string, scopes auth.Scopes, expires time.Time) (auth.ServiceKey, error) {
	key := auth.ServiceKey{ID: m.ids.New(auth.ServiceKeyPrefix, m.clock()), Name: name, Hash: "of " + name, Scopes: scopes, CreatedAt: on.now(), ExpiresAt: expires}
	err := on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error {
		_, err := tx.InsertServiceKey(m.ctx, key, ledger.ActorAdmin+m.admin)
		return err
	})
	return key, err
}

// giveAccount gives an account to the owner of its address in one of the ways, and signs them in.
func (m *market) giveAccount(on *instance, t *takeover) (auth.SignIn, error) {
	s := t.seller
	unproven := m.ownersIdentity(s)
	unproven.Subject, unproven.EmailVerified = "thief "+s.id, false
	_, err := m.comeBack(on, unproven)
	m.assert(takeoversEndAccess, errors.Is(err, auth.ErrEmailUnverified), s.id, "an identity whose address nobody has verified signs in to the account of %s: %v", s.id, err)
	switch t.way {
	case byProvider:
		return m.comeBack(on, m.ownersIdentity(s))
	case byMail:
		_, err := on.users.Register(m.ctx, auth.Registration{Name: s.name, Email: emailOf(s.id), Password: ownerPassword, Role: auth.Seller})
		if !errors.Is(err, auth.ErrEmailTaken) {
			return auth.SignIn{}, err
		}
		told, _ := mailTo[mail.RegisteredAgain](m, s.id)
		if err := on.users.VerifyEmail(m.ctx, told.Token); err != nil {
			return auth.SignIn{}, err
		}
	default:
		err := on.users.ForgotPassword(m.ctx, emailOf(s.id), auth.Device{})
		_, err2 := on.users.AnswerMailRequest(m.ctx)
		told, _ := mailTo[mail.ResetPassword](m, s.id)
		if err := errors.Join(err, err2, on.users.SetForgottenPassword(m.ctx, told.Token, ownerPassword, auth.Device{})); err != nil {
			return auth.SignIn{}, err
		}
		err = on.users.SetForgottenPassword(m.ctx, told.Token, formerPassword, auth.Device{})
		m.assert(takeoversEndAccess, errors.Is(err, auth.ErrMailToken), s.id, "a link that set the password of %s was used again, and was answered with %v", s.id, err)
	}
	return m.login(on, s, ownerPassword)
}

func (m *market) ownersIdentity(s *seller) auth.Identity {
	return auth.Identity{Issuer: simulatedIssuer, Subject: "owner " + s.id, Email: emailOf(s.id), EmailVerified: true, Name: s.name}
}

// checkFormer wants nothing that the former had to get them into the account.
func (m *market) checkFormer(on *instance, t *takeover) {
	s, f := t.seller, t.former
	refused := func(what string, err error, want ...error) {
		isRefused := false
		for _, w := range want {
			isRefused = isRefused || errors.Is(err, w)
		}
		m.assert(takeoversEndAccess, isRefused, s.id, "%s changed hands by way %d, and %s of the former was answered with %v", s.id, t.way, what, err)
	}
	_, err := on.users.Authenticate(m.ctx, f.Token)
	refused("a token", err, auth.ErrToken)
	_, err = on.users.Refresh(m.ctx, f.RefreshToken)
	refused("a refresh token", err, auth.ErrRefresh)
	_, err = m.login(on, s, formerPassword)
	refused("the password", err, auth.ErrCredentials)
	_, err = m.comeBack(on, f.identity)
	refused("the identity", err, auth.ErrEmailUnverified)
	_, err = on.users.OpenSessionLink(m.ctx, f.link, "", auth.Device{})
	refused("a link of the marketplace", err, auth.ErrLink)
	refused("the mailed link", on.users.VerifyEmail(m.ctx, f.confirm), auth.ErrMailToken)
	refused("the mailed code", on.users.VerifyEmailByCode(m.ctx, f.session, f.code), auth.ErrToken)
	refused("the link that undoes a second factor", on.users.UndoFactors(m.ctx, f.undo, auth.Device{}), auth.ErrMailToken)

	// A request that the former began before.
	a := &ask{seller: s.id, amount: minimum, notes: "stolen", session: f.session.Session}
	m.sessionEnds[a.session] = on.now()
	m.spawn(0, "thief", func() { m.send(a) })
	m.pass(m.now + time.Second)
	m.assert(takeoversEndAccess, m.violation != nil || a.made == "", s.id, "the former of %s asked for payout %s, after the account had changed hands", s.id, a.made)
}

// refreshGrace is how long a refresh token that was used gives the same next one.
const refreshGrace = 2 * time.Second

// replay uses a refresh token again, as a second tab does, also after its successor was used. After the grace another party may have the token, so its
// session has to end.
func (m *market) replay(on *instance, s *seller, signIn auth.SignIn) {
	next, err := on.users.Refresh(m.ctx, signIn.RefreshToken)
	second, err2 := on.users.Refresh(m.ctx, signIn.RefreshToken)
	last, err3 := on.users.Refresh(m.ctx, next.RefreshToken)
	third, err4 := on.users.Refresh(m.ctx, signIn.RefreshToken)
	err = errors.Join(err, err2, err3, err4)
	m.assert(answersAreTrue, err == nil && second.RefreshToken == next.RefreshToken && third.RefreshToken == next.RefreshToken, s.id, "two tabs of %s refreshed their session at once, and were answered with %v", s.id, err)
	m.pass(m.now + refreshGrace)
	fresh, err := on.users.Refresh(m.ctx, last.RefreshToken) // the grace is that of the token, and not of the last refresh
	m.assert(answersAreTrue, m.violation != nil || err == nil, s.id, "%s refreshed the session, and was answered with %v", s.id, err)
	_, again := on.users.Refresh(m.ctx, signIn.RefreshToken)
	_, after := on.users.Authenticate(m.ctx, fresh.Token)
	m.assert(takeoversEndAccess, m.violation != nil || errors.Is(again, auth.ErrRefresh) && errors.Is(after, auth.ErrToken), s.id,
		"a refresh token of %s was used, used again later (%v), and the session after that (%v)", s.id, again, after)
}

// checkOwner wants the account to be the owner's alone, and as a new one.
func (m *market) checkOwner(on *instance, t *takeover, owner auth.SignIn) {
	s := t.seller
	p, err := on.users.Authenticate(m.ctx, owner.Token)
	u, _, err2 := on.users.Me(m.ctx, p)
	isOurs := u.Verified && u.Role == auth.Seller && u.Profile == auth.Profile{} && u.ID == s.id && (u.PasswordHash == "") == (t.way == byProvider)
	m.assert(takeoversEndAccess, err == nil && err2 == nil && isOurs, s.id, "the owner of %s has the account %+v (errors %v, %v)", s.id, u, err, err2)
	sessions, err := on.users.Sessions(m.ctx, p)
	m.assert(takeoversEndAccess, err == nil && len(sessions) == 1 && sessions[0].ID == p.Session, s.id, "%s has sessions %+v (error %v), and the owner signed in once", s.id, sessions, err)
	factors, _, err := on.users.Factors(m.ctx, p)
	m.assert(takeoversEndAccess, err == nil && len(factors) == 0, s.id, "%s has second factors of the former: %+v (error %v)", s.id, factors, err)
	m.replay(on, s, owner)
	again, err := m.comeBack(on, m.ownersIdentity(s))
	m.assert(takeoversEndAccess, err == nil && again.User.ID == s.id, s.id, "the owner of %s came back through the provider, and was answered with %v", s.id, err)
	m.follow(on, s.id)
}

// checkAccess has what lets a caller in end with what allows it: a session that a link opened with its service key and with its user's role, any
// session with a suspension, and the former secrets of a key once it is rotated without a grace.
func (m *market) checkAccess() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil {
		return
	}
	var failed error
	must := func(err error) { failed = errors.Join(failed, err) }
	open := func(key auth.ServiceKey) auth.SignIn {
		link, _, err := on.users.CreateSessionLink(m.ctx, key, s.id)
		opened, err2 := on.users.OpenSessionLink(m.ctx, link, "", auth.Device{})
		_, err3 := on.users.Authenticate(m.ctx, opened.Token)
		must(errors.Join(err, err2, err3))
		_, err = on.users.OpenSessionLink(m.ctx, link, "", auth.Device{})
		m.assert(takeoversEndAccess, failed != nil || errors.Is(err, auth.ErrLink), s.id, "a link for %s was opened again, and answered with %v", s.id, err)
		return opened
	}
	refused := func(of auth.SignIn, why string) {
		_, err := on.users.Authenticate(m.ctx, of.Token)
		m.assert(takeoversEndAccess, failed != nil || m.violation != nil || errors.Is(err, auth.ErrToken), s.id, "%s %s, and a session of before was answered with %v", s.id, why, err)
	}
	become := func(role auth.Role, suspended bool) {
		m.spawn(0, admin, func() {
			must(on.users.SetAccess(m.ctx, m.by(), s.id, role, suspended))
			m.follow(on, s.id)
		})
		m.pass(m.now + time.Second)
	}
	actor := ledger.ActorAdmin + m.admin
	brief, err := m.addServiceKey(on, "till", on.now().Add(auth.LinkSessionLife/2))
	must(err)
	lasting, err := m.addServiceKey(on, "shelf", time.Time{})
	must(err)

	ofSeller := open(lasting)
	become(auth.Admin, false)
	refused(ofSeller, "was made an admin")
	become(auth.Seller, false)
	refused(ofSeller, "is a seller again")

	suspended := open(lasting)
	become(auth.Seller, true)
	refused(suspended, "was suspended")
	become(auth.Seller, false)
	refused(suspended, "is suspended no more")

	ofBrief := open(brief)
	unopened, _, err := on.users.CreateSessionLink(m.ctx, lasting, s.id)
	must(err)
	var secrets []string
	for _, grace := range []time.Duration{0, time.Hour, 0} {
		secret, _, err := on.users.RotateServiceKey(m.ctx, lasting.ID, grace, actor)
		must(err)
		secrets = append(secrets, secret)
	}
	_, _, err = on.users.CreateSessionLink(m.ctx, lasting, s.id) // as a request that was let in before does
	m.assert(takeoversEndAccess, failed != nil || errors.Is(err, auth.ErrServiceKey), s.id, "a key was rotated without a grace, and a link that a request with it makes was answered with %v", err)
	for i, secret := range secrets {
		_, err := on.users.AuthenticateService(m.ctx, secret)
		isRight := i < 2 && errors.Is(err, auth.ErrServiceKey) || i == 2 && err == nil
		m.assert(takeoversEndAccess, failed != nil || isRight, "", "secret %d of a key that was rotated without a grace was answered with %v", i, err)
	}
	_, err = on.users.OpenSessionLink(m.ctx, unopened, "", auth.Device{})
	m.assert(takeoversEndAccess, failed != nil || errors.Is(err, auth.ErrLink), s.id, "a link was made with a secret that was replaced without a grace since, and opening it was answered with %v", err)
	m.pass(m.now + auth.LinkSessionLife/2 + time.Minute)
	refused(ofBrief, "came by a link of a service key that is no more")
	m.assert(answersAreKnown, m.violation != nil || failed == nil, s.id, "what lets %s in: %v", s.id, failed)
	m.follow(on, s.id)
	m.follow(on, decision.Platform)
}

// checkExpiry has the session of a link end with its hour, however often it is refreshed, and the former secret of a service key with its grace.
func (m *market) checkExpiry() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil {
		return
	}
	actor := ledger.ActorAdmin + m.admin
	key, err := m.addServiceKey(on, "counter", time.Time{})
	replaced, _, err2 := on.users.RotateServiceKey(m.ctx, key.ID, 0, actor)
	_, _, err3 := on.users.RotateServiceKey(m.ctx, key.ID, auth.LinkSessionLife/2, actor)
	accepted, err4 := on.users.AuthenticateService(m.ctx, replaced)
	link, _, err5 := on.users.CreateSessionLink(m.ctx, accepted, s.id)
	opened, err6 := on.users.OpenSessionLink(m.ctx, link, "", auth.Device{})
	failed := errors.Join(err, err2, err3, err4, err5, err6)
	m.pass(m.now + auth.LinkSessionLife/2 + time.Minute)
	_, former := on.users.AuthenticateService(m.ctx, replaced)
	later, err := on.users.Refresh(m.ctx, opened.RefreshToken)
	_, err2 = on.users.Authenticate(m.ctx, later.Token)
	failed = errors.Join(failed, err, err2)
	m.assert(answersAreKnown, m.violation != nil || failed == nil, s.id, "a link of the marketplace for %s, and the secrets of its key: %v", s.id, failed)
	m.assert(takeoversEndAccess, m.violation != nil || errors.Is(former, auth.ErrServiceKey), "", "a secret was replaced, its grace is over, and it was answered with %v", former)
	m.pass(m.now + auth.LinkSessionLife/2)
	_, err = on.users.Authenticate(m.ctx, later.Token)
	_, err2 = on.users.Refresh(m.ctx, later.RefreshToken)
	m.assert(takeoversEndAccess, m.violation != nil || errors.Is(err, auth.ErrToken) && errors.Is(err2, auth.ErrRefresh), s.id,
		"the hour of a link for %s is over, and its session was answered with %v, and a refresh with %v", s.id, err, err2)
	m.follow(on, s.id)
	m.follow(on, decision.Platform)
}

// checkLink opens a link of the marketplace, waits until the link is swept away, and wants its session to end with the service key all the same.
func (m *market) checkLink() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil {
		return
	}
	key, err := m.addServiceKey(on, "kiosk", time.Time{})
	open := func(presented string) (opened auth.SignIn) {
		link, _, err2 := on.users.CreateSessionLink(m.ctx, key, s.id)
		opened, err3 := on.users.OpenSessionLink(m.ctx, link, presented, auth.Device{})
		err = errors.Join(err, err2, err3)
		return opened
	}
	before := open("")
	opened := open(before.Token)
	_, after := on.users.Authenticate(m.ctx, before.Token)
	_, refreshed := on.users.Refresh(m.ctx, before.RefreshToken)
	m.assert(accountsKept, err != nil || errors.Is(after, auth.ErrToken) && errors.Is(refreshed, auth.ErrRefresh), s.id,
		"a browser with a session of %s opened a link of the marketplace, and the session of before was answered with %v and %v", s.id, after, refreshed)
	m.pass(m.now + 2*auth.LinkLife)
	_, err4 := on.users.Sweep(m.ctx)
	_, err5 := on.users.Authenticate(m.ctx, opened.Token)
	_, err6 := on.users.RevokeServiceKey(m.ctx, key.ID, ledger.ActorAdmin+m.admin)
	err = errors.Join(err, err4, err5, err6)
	m.assert(answersAreKnown, m.violation != nil || err == nil, s.id, "a link of the marketplace for %s: %v", s.id, err)
	_, after = on.users.Authenticate(m.ctx, opened.Token)
	_, refreshed = on.users.Refresh(m.ctx, opened.RefreshToken)
	m.assert(takeoversEndAccess, m.violation != nil || errors.Is(after, auth.ErrToken) && errors.Is(refreshed, auth.ErrRefresh), s.id,
		"the service key was revoked that made a link for %s, and the session of the link was answered with %v and %v", s.id, after, refreshed)
	m.follow(on, s.id)
	m.follow(on, decision.Platform)
}
