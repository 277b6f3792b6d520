package simulate

import (
	"errors"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/mail"
	"bursar/internal/sale"
)

const newPassword = "a-new-password-44"

// checkReset has a seller with a confirmed address set a forgotten password by a mailed link. A thief may have read the mail, so payouts are
// then on hold for the cool-down, and another mail tells its end.
func (m *market) checkReset() {
	on := m.anyInstance()
	at := slices.IndexFunc(m.sellers, func(s *seller) bool { return s.password != "" })
	if on == nil || at < 0 {
		return
	}
	s := m.sellers[at]
	told, isTold, err := m.resetPassword(on, s)
	if !m.assert(answersAreKnown, err == nil, s.id, "%s can't set a forgotten password: %v", s.id, err) {
		return
	}
	m.wasPutOnHold(on, s, "a forgotten password was set", told.HoldUntil)
	m.assert(sellersTold, isTold && told.Reset, s.id, "%s has set a forgotten password, and the mail about that is %+v (there: %t)", s.id, told, isTold)
	a := &ask{seller: s.id, amount: minimum, notes: s.temper.name}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + coolDown)
	m.assert(holdsKept, m.violation != nil || a.made == "", s.id, "%s asked for %s after a forgotten password was set, and payouts were on hold", s.id, a.made)
	m.resetWithoutMoney(on, s)
}

// resetWithoutMoney has a seller with nothing in the balance set a forgotten password: what they earn within the cool-down waits as well.
func (m *market) resetWithoutMoney(on *instance, s *seller) {
	available := m.model.row(s.id).Available
	if m.violation != nil || available <= 0 {
		return
	}
	m.adjusting[correctionID(s.id, "drained")] = -available
	m.spawn(0, admin, func() {
		_, _, err := on.sales.Adjust(m.ctx, sale.NewAdjustment{ID: "drained", Seller: s.id, Amount: -available, Reason: "The marketplace paid it.", By: m.by()})
		m.assert(answersAreKnown, err == nil, s.id, "take what is available: %v", err)
	})
	m.pass(m.now + time.Hour)
	told, _, err := m.resetPassword(on, s)
	if m.assert(answersAreKnown, m.violation != nil || err == nil, s.id, "%s can't set a forgotten password: %v", s.id, err) && m.violation == nil {
		m.wasPutOnHold(on, s, "a forgotten password was set while nothing was available", told.HoldUntil)
	}
}

// resetPassword has a seller set another password by a mailed link, and returns the mail about it. Each transaction is undone once, and run again.
func (m *market) resetPassword(on *instance, s *seller) (told mail.PasswordChanged, isTold bool, err error) {
	m.undoing = true
	defer func() { m.undoing = false }()
	if err := m.setForgotten(on, s.id, emailOf(s.id), newPassword); err != nil {
		return told, false, err
	}
	s.password = newPassword
	told, isTold = mailTo[mail.PasswordChanged](m, s.id)
	return told, isTold, nil
}

// setForgotten has a link mailed to an address of a user's account, and sets a password by it.
func (m *market) setForgotten(on *instance, id, address, password string) error {
	if err := on.users.ForgotPassword(m.ctx, address, auth.Device{}); err != nil {
		return err
	}
	_, err := on.users.AnswerMailRequest(m.ctx)
	link, _ := mailTo[mail.ResetPassword](m, id)
	return errors.Join(err, on.users.SetForgottenPassword(m.ctx, link.Token, password, auth.Device{}))
}
