package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/mail"
	"bursar/internal/payout"
)

// checkEmailChange has a thief move a seller's account to another address, set a password by a link that is mailed there and register a bank account, and
// its owner undo the move by the mail to the former address and register one. Payouts are on hold from each of them on. Each transaction is undone once, and run again.
func (m *market) checkEmailChange() {
	on := m.anyInstance()
	at := slices.IndexFunc(m.sellers, func(s *seller) bool { return s.password != "" })
	if on == nil || at < 0 {
		return
	}
	s := m.sellers[at]
	m.undoing = true
	defer func() { m.undoing = false }()
	err := on.users.ForgotPassword(m.ctx, emailOf(s.id), auth.Device{})
	_, err2 := on.users.AnswerMailRequest(m.ctx)
	before, _ := mailTo[mail.ResetPassword](m, s.id)
	if !m.assert(answersAreKnown, err == nil && err2 == nil, s.id, "%s can't ask for a link that sets the password: %v, %v", s.id, err, err2) {
		return
	}
	changed, err := m.moveAddress(on, s)
	if !m.assert(answersAreKnown, err == nil, s.id, "%s can't change the e-mail address: %v", s.id, err) {
		return
	}
	m.wasPutOnHold(on, s, "the e-mail address was changed", changed.HoldUntil)
	_, err = m.login(on, s, s.password)
	m.assert(takeoversEndAccess, errors.Is(err, auth.ErrCredentials), s.id, "%s has another address, and a sign-in with the former one was answered with %v", s.id, err)
	err = on.users.SetForgottenPassword(m.ctx, before.Token, newPassword, auth.Device{})
	m.assert(takeoversEndAccess, before.Token != "" && errors.Is(err, auth.ErrMailToken), s.id,
		"%s has another address, and a link that was mailed to the former one sets the password: %v", s.id, err)
	err = m.setForgotten(on, s.id, movedTo(s), thiefsPassword)
	thief, err2 := on.users.Login(m.ctx, auth.Credentials{Email: movedTo(s), Password: thiefsPassword})
	if !m.assert(answersAreKnown, err == nil && err2 == nil, s.id, "%s can't set a password and sign in with the other address: %v, %v", s.id, err, err2) {
		return
	}
	m.wasPutOnHold(on, s, "a password was set by a link to the other address")
	m.undoing = false
	_, err = on.users.Register(m.ctx, auth.Registration{Name: "Mallory", Email: emailOf(s.id), Password: newPassword})
	m.assert(takeoversEndAccess, errors.Is(err, auth.ErrEmailReserved), s.id,
		"%s can undo the change of the address, and an attacker who registers with the former one is answered with %v", s.id, err)
	m.spawn(0, "thief", func() { m.registerNumber(s, fmt.Sprintf("59%08d2001", at)) })
	m.pass(m.now + mail.UndoLife - time.Hour)
	if m.violation != nil {
		return
	}
	m.undoing = true
	err = on.users.UndoEmailChange(m.ctx, changed.Token, auth.Device{})
	link, _ := mailTo[mail.ResetPassword](m, s.id)
	if !m.assert(answersAreKnown, err == nil, s.id, "%s can't undo that the e-mail address was changed: %v", s.id, err) {
		return
	}
	m.rejectedSince(s, changed.At.Add(-time.Minute))
	m.wasPutOnHold(on, s, "the change of the e-mail address was undone")
	_, err = on.users.Authenticate(m.ctx, thief.Token)
	_, err2 = on.users.Login(m.ctx, auth.Credentials{Email: movedTo(s), Password: thiefsPassword})
	err3 := on.users.UndoEmailChange(m.ctx, changed.Token, auth.Device{})
	m.assert(takeoversEndAccess, errors.Is(err, auth.ErrToken) && errors.Is(err2, auth.ErrCredentials) && errors.Is(err3, auth.ErrMailToken), s.id,
		"the change of the address of %s was undone, and a session of before was answered with %v, the other address with %v, and the link again with %v", s.id, err, err2, err3)
	_, err = m.login(on, s, thiefsPassword)
	m.assert(takeoversEndAccess, errors.Is(err, auth.ErrCredentials), s.id, "%s has the former address again, and the password that was set meanwhile is answered with %v", s.id, err)
	err = on.users.SetForgottenPassword(m.ctx, link.Token, s.password, auth.Device{})
	m.wasPutOnHold(on, s, "a password was set again")
	_, err2 = m.login(on, s, s.password)
	m.assert(takeoversEndAccess, err == nil && err2 == nil, s.id, "%s has the former address again, and can't set a password and sign in: %v, %v", s.id, err, err2)
	m.undoing = false
	m.spawn(0, "seller "+s.name, func() { m.registerNumber(s, fmt.Sprintf("59%08d2002", at)) }) // which waits if the account before the thief's is verified
	m.pass(m.now + time.Hour)
	m.follow(on, s.id)
	m.checkLiftedWhileFrozen(s)
}

// rejectedSince notes that the bank accounts are rejected that a seller registered at an instant or later.
func (m *market) rejectedSince(s *seller, since time.Time) {
	h := m.model.sellers[s.id]
	for id, a := range m.model.accounts {
		if a.seller != s.id || a.folded.CreatedAt.Before(since) {
			continue
		}
		a.status, a.due = bank.StatusRejected, 0
		if h.current == id {
			h.former, h.current = id, ""
		}
	}
}

// checkLiftedWhileFrozen has an admin lift the hold of a seller whose payouts are frozen as well. They stay frozen.
func (m *market) checkLiftedWhileFrozen(s *seller) {
	for _, decide := range []func() error{
		func() error { return m.decideStop(s.id, true) },
		func() error {
			return m.decide(s.id, false, func(on *instance) error { return on.payouts.LiftHold(m.ctx, m.by(), s.id, time.Time{}) })
		},
	} {
		m.spawn(0, admin, func() {
			err := decide()
			m.assert(answersAreKnown, err == nil, s.id, "payouts of %s are frozen, and their hold is lifted: %v", s.id, err)
		})
		m.pass(m.now + time.Second)
	}
	on := m.anyInstance()
	e, err := on.payouts.Explain(m.ctx, s.id)
	isFrozen := slices.ContainsFunc(e.Blockers, func(b payout.Blocker) bool { return b.Code == payout.BlockedFrozen })
	m.assert(holdsKept, m.violation != nil || err == nil && isFrozen && e.Frozen, s.id, "payouts of %s were frozen, their hold was lifted, and they are blocked by %+v: %v", s.id, e.Blockers, err)
	m.spawn(0, admin, func() { m.resume(s.id) })
	m.pass(m.now + time.Hour)
}

const thiefsPassword = "the-thiefs-password-66"

// movedTo is the address that a seller's account is moved to.
func movedTo(s *seller) string { return "moved-" + emailOf(s.id) }

// moveAddress changes the address of a seller's account by the link that is mailed, and returns the mail to the former address.
func (m *market) moveAddress(on *instance, s *seller) (changed mail.EmailChanged, err error) {
	signIn, err := m.login(on, s, s.password)
	p, err2 := on.users.Authenticate(m.ctx, signIn.Token)
	err3 := on.users.ChangeEmail(m.ctx, p, movedTo(s), auth.Device{})
	confirm, _ := mailTo[mail.ConfirmEmail](m, s.id)
	err4 := on.users.ConfirmEmailChange(m.ctx, confirm.Token, auth.Device{})
	changed, isTold := mailTo[mail.EmailChanged](m, "") // the address is no user's any more
	m.assert(sellersTold, err4 != nil || isTold && changed.Now == movedTo(s) && changed.Token != "", s.id, "the address of %s was changed, and the mail about that is %+v (there: %t)", s.id, changed, isTold)
	toFormer := slices.ContainsFunc(m.mailed, func(of mail.Mail) bool {
		_, is := of.Data.(mail.EmailChanged)
		return is && of.To == emailOf(s.id)
	})
	m.assert(takeoversEndAccess, err4 != nil || toFormer, s.id, "the address of %s was changed, and what undoes that was not mailed to the former one", s.id)
	return changed, errors.Join(err, err2, err3, err4)
}

// wasPutOnHold wants a seller's payouts to be on hold for a whole cool-down from now on, and what was mailed about that to say so.
func (m *market) wasPutOnHold(on *instance, s *seller, why string, told ...time.Time) {
	h := m.model.sellers[s.id]
	h.holdUntil = max(h.holdUntil, on.now().Add(coolDown).UnixMicro())
	m.follow(on, s.id)
	m.compareRows(on, []string{s.id})
	m.assert(holdsKept, m.model.row(s.id).HoldUntil == h.holdUntil, s.id, "%s: %s, and payouts are on hold until %d, want %d", s.id, why, m.model.row(s.id).HoldUntil, h.holdUntil)
	for _, until := range told {
		m.assert(sellersTold, microsOf(until) == h.holdUntil, s.id, "%s: %s, payouts are on hold until %d, and the mail says %s", s.id, why, h.holdUntil, until)
	}
	if m.violation == nil {
		m.readOverview(on, s)
	}
}
