package simulate

import (
	"errors"
	"maps"
	"slices"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// probes are conditional writes, whose conditions do not hold.
type probes struct {
	m *market
	n int
}

// refused wants a conditional write to have changed nothing.
func (p *probes) refused(what, subject string, changed bool, err error) {
	p.n++
	p.m.assert(conditionsHold, err == nil && !changed, subject, "%s of %s is done, and must not be (error %v)", what, subject, err)
}

// checkConditions writes what the services write under a condition, where it does not hold. On SQLite a transaction that has read a row is the only one to
// change it, so no schedule of faults shows that a condition is missing. On PostgreSQL it keeps money from being moved twice. All of it is undone.
func (m *market) checkConditions() {
	on := m.anyInstance()
	if on == nil {
		return
	}
	p := &probes{m: m}
	err := on.db.Payouts().InTx(m.ctx, func(tx payout.Tx) error { return orUndo(p.payouts(on, tx), errUndone) })
	err2 := on.db.Sales().InTx(m.ctx, func(tx sale.Tx) error { return orUndo(p.sales(tx), errUndone) })
	err3 := on.db.Bank().InTx(m.ctx, func(tx bank.Tx) error { return orUndo(p.accounts(on, tx), errUndone) })
	err4 := on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error { return orUndo(p.sessions(on, tx), errUndone) })
	for _, err := range []error{err, err2, err3, err4} {
		m.assert(conditionsHold, errors.Is(err, errUndone), "", "writes whose conditions do not hold: %v", err)
	}
}

// payouts moves one payout in each state from all other states.
func (p *probes) payouts(on *instance, tx payout.Tx) error {
	m, seen := p.m, make(map[payout.State]bool)
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		if seen[w.state] {
			continue
		}
		seen[w.state] = true
		is, err := tx.Payout(m.ctx, id)
		if err != nil {
			return err
		}
		for _, from := range payout.States() {
			if from != w.state {
				moved, err := tx.UpdatePayout(m.ctx, from, is)
				p.refused("a change from "+string(from), string(id), moved, err)
			}
		}
		imported, err := tx.ImportPayout(m.ctx, is)
		p.refused("an import", string(id), imported, err)
		if w.sentAt.IsZero() && w.state == payout.Waiting {
			rescheduled, err := tx.ReschedulePayout(m.ctx, id, on.now())
			p.refused("making due", string(id), rescheduled, err)
		}
	}
	first, err := tx.AllowRun(m.ctx, "simulated", on.now(), tickEvery)
	if !first {
		return errors.Join(err, errors.New("a job that never ran may not run"))
	}
	again, err := tx.AllowRun(m.ctx, "simulated", on.now(), tickEvery)
	p.refused("a second run of a job", "", again, err)
	return nil
}

// sales releases what is released, refunds more than is left and records what is recorded.
func (p *probes) sales(tx sale.Tx) error {
	m := p.m
	for _, id := range slices.Sorted(maps.Keys(m.model.sales)) {
		e := m.model.sales[id]
		if !e.released || e.refunded == 0 {
			continue
		}
		released, err := tx.MarkReleased(m.ctx, id, m.clock())
		p.refused("a second release", id, released, err)
		within, err := tx.AddRefunded(m.ctx, id, e.left()+1)
		p.refused("a refund of more than is left", id, within, err)
		is, err := tx.SaleForUpdate(m.ctx, id)
		if err != nil {
			return err
		}
		inserted, err := tx.InsertSale(m.ctx, is)
		p.refused("a second record", id, inserted, err)
		return nil
	}
	return nil
}

// accounts decides about bank accounts that are not as they were seen, or not current any more.
func (p *probes) accounts(on *instance, tx bank.Tx) error {
	m, hasFormer, hasCurrent := p.m, false, false
	for _, id := range slices.Sorted(maps.Keys(m.model.accounts)) {
		isCurrent := m.model.sellers[m.model.accounts[id].seller].current == id
		if isCurrent && hasCurrent || !isCurrent && hasFormer {
			continue
		}
		is, err := on.db.BankAccountByID(m.ctx, id)
		if err != nil {
			return err
		}
		if is.Beneficiary == "" {
			continue
		}
		seen := is
		if !isCurrent {
			hasFormer = true
			saved, err := tx.SaveVerification(m.ctx, seen, is)
			p.refused("a decision about a former account", string(id), saved, err)
			continue
		}
		hasCurrent = true
		for _, change := range []func(a *bank.Account){
			func(a *bank.Account) { a.Status = "another" },
			func(a *bank.Account) { a.Reason += " " },
			func(a *bank.Account) { a.RegisteredName += " " },
			func(a *bank.Account) { a.NameScore++ },
			func(a *bank.Account) { a.VerificationID += "x" },
			func(a *bank.Account) { a.Beneficiary += "x" },
			func(a *bank.Account) { a.Gateway += "x" },
		} {
			seen = is
			change(&seen)
			saved, err := tx.SaveVerification(m.ctx, seen, is)
			p.refused("a decision about an account that is not as it was seen", string(id), saved, err)
		}
		for _, change := range []func(a *bank.Account){
			func(a *bank.Account) { a.Status = "another" },
			func(a *bank.Account) { a.VerificationID += "x" },
			func(a *bank.Account) { a.Beneficiary = "" },
			func(a *bank.Account) { a.Gateway = "" },
		} {
			seen = is
			change(&seen)
			named, err := tx.SetBeneficiary(m.ctx, seen, is)
			p.refused("a second beneficiary", string(id), named, err)
		}
	}
	return nil
}

// sessions ends and refreshes a session as one that it is not, and replaces a password that is another.
func (p *probes) sessions(on *instance, tx auth.Tx) error {
	m := p.m
	now := on.now()
	s := auth.Session{ID: m.ids.New("ses_", m.clock()), UserID: m.sellers[0].id, CreatedAt: now, ExpiresAt: now.Add(sessionLife), CapAt: now.Add(sessionLife), AuthenticatedAt: now}
	if err := tx.InsertSession(m.ctx, s); err != nil {
		return err
	}
	ended, err := tx.EndSessionOf(m.ctx, m.admin, s.ID, "probe", now)
	p.refused("the end by another user", s.ID, ended, err)
	_, advanced, err := tx.AdvanceSession(m.ctx, s.ID, 1, now, s.ExpiresAt, 0)
	p.refused("a refresh out of turn", s.ID, advanced, err)
	if err := tx.EndSession(m.ctx, s.ID, "probe", now); err != nil {
		return err
	}
	_, advanced, err = tx.AdvanceSession(m.ctx, s.ID, 0, now, s.ExpiresAt, 0)
	p.refused("a refresh after the end", s.ID, advanced, err)
	replaced, err := tx.SetPasswordHash(m.ctx, m.admin, "another", formerHash)
	p.refused("another password in the place of one that is not there", m.admin, replaced, err)
	used, err := tx.UseMailToken(m.ctx, "none", now)
	p.refused("a mailed token that is not there", "", used, err)
	return nil
}
