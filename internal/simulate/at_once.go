package simulate

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/sale"
)

// checkToldAtOnce has the marketplace record a sale without saying when it was, and record it again hours later, alone and in a batch.
func (m *market) checkToldAtOnce() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil {
		return
	}
	m.spawn(0, "marketplace", func() {
		_ = m.call(on, func() error {
			for _, n := range []sale.NewSale{
				{ID: "at-once-1", Seller: s.id, Amount: minimum},
				{ID: "at-once-2", Seller: s.id, Amount: minimum, AvailableAt: on.now().Add(4 * time.Hour).Truncate(time.Second)},
			} {
				before := on.now()
				made, isNew, err := on.sales.Record(m.ctx, n)
				until := made.OccurredAt.Add(usualHoldingPeriod)
				if !n.AvailableAt.IsZero() {
					until = n.AvailableAt
				}
				isNow := made.OccurredAt.Sub(before).Abs() < time.Second && made.AvailableAt.Equal(until)
				m.assert(answersAreTrue, err == nil && isNew && isNow, s.id, "a sale that was told at %s without a time was answered with %+v (new: %t, %v)", before, made, isNew, err)
				m.pause(2 * time.Hour)
				again, isNew, err := on.sales.Record(m.ctx, n)
				isSame := stored(again.OccurredAt).Equal(stored(made.OccurredAt)) && stored(again.AvailableAt).Equal(stored(made.AvailableAt))
				m.assert(oncePerID, err == nil && !isNew && isSame, s.id, "a sale without a time was %+v, and told again it is %+v (new: %t, %v)", made, again, isNew, err)
				outcomes, err := on.sales.RecordAll(m.ctx, []sale.NewSale{n})
				m.assert(oncePerID, err == nil && len(outcomes) == 1 && outcomes[0] == nil, s.id, "a sale without a time, told again in a batch, is answered with %v (%v)", outcomes, err)
			}
			return nil
		})
	})
	m.pass(m.now + 5*time.Hour)
	m.follow(on, s.id)
	m.checkRefundsTold(on, s)
}

// checkRefundsTold has the marketplace tell of a refund once as a part and once as the rest, each of which is refused under the other's id. What was
// recorded just before a statement is on it.
func (m *market) checkRefundsTold(on *instance, s *seller) {
	const part = minimum / 4
	n := sale.NewSale{ID: "told-otherwise", Seller: s.id, Amount: minimum, OccurredAt: m.clock()}
	m.spawn(0, "marketplace", func() {
		_ = m.call(on, func() error {
			_, _, err := on.sales.Record(m.ctx, n)
			m.assert(answersAreKnown, err == nil, s.id, "record a sale: %v", err)
			for _, told := range []struct{ first, again money.Amount }{{part, 0}, {0, part}} {
				r := sale.NewRefund{Sale: n.ID, ID: fmt.Sprint("told-", told.first), Amount: told.first}
				_, _, isNew, err := on.sales.Refund(m.ctx, r)
				m.assert(oncePerID, err == nil && isNew, s.id, "refund %+v is answered with %v (new: %t)", r, err, isNew)
				_, _, isNew, err = on.sales.Refund(m.ctx, r)
				m.assert(oncePerID, err == nil && !isNew, s.id, "refund %+v, told again, is answered with %v (new: %t)", r, err, isNew)
				r.Amount = told.again
				_, _, _, err = on.sales.Refund(m.ctx, r)
				m.assert(oncePerID, errors.Is(err, sale.ErrRefundConflict), s.id, "a refund of %d (0 for all that is left), told again as %+v, is answered with %v", told.first, r, err)
			}
			return nil
		})
	})
	m.pass(m.now + time.Second)
	m.follow(on, s.id)
	if keys := m.publicKeys(on); m.violation == nil {
		m.checkStatement(on, s, keys, proof.JSON)
	}
}

// checkKeyAsksForSuspended has the marketplace's key ask for a payout of a seller who is suspended. None is made.
func (f front) checkKeyAsksForSuspended(on *instance, s *seller) {
	m := f.m
	shop, err := f.openShop(on, "payouts by key", auth.AllScopes(), time.Time{})
	if !m.assert(answersAreKnown, err == nil, s.id, "add a service key: %v", err) {
		return
	}
	f = shop
	become := func(suspended bool) {
		m.spawn(0, admin, func() {
			err := on.users.SetAccess(m.ctx, m.by(), s.id, auth.Seller, suspended)
			m.assert(answersAreKnown, err == nil, s.id, "suspend a seller, or let them in again: %v", err)
			m.follow(on, s.id)
		})
		m.pass(m.now + time.Second)
	}
	become(true)
	a := &ask{seller: s.id, amount: minimum, notes: "by key", key: "By-Key-1"}
	m.spawn(0, "marketplace", func() {
		m.current.ask = a
		defer func() { m.current.ask = nil }()
		var got struct{}
		status, _ := f.call(http.MethodPost, "/api/marketplace/sellers/"+s.id+"/payouts", a.key, `{"amount":`+rupees().FormatFixed(minimum)+`,"notes":"by key"}`, &got)
		m.assert(takeoversEndAccess, status == http.StatusConflict, s.id, "%s is suspended, and a payout that the marketplace's key asked for was answered with %d", s.id, status)
	})
	m.pass(m.now + time.Minute)
	m.assert(takeoversEndAccess, m.violation != nil || a.made == "", s.id, "%s is suspended, and the marketplace's key made payout %s", s.id, a.made)
	become(false)
	m.pass(m.now + time.Hour)
	become(true)
	since := m.model.journal(s.id).newest[aboutType{s.id, ledger.AdminDecided}]
	m.pass(m.now + time.Hour)
	become(true) // said again, which begins nothing
	if m.violation == nil {
		f.checkSuspendedSince(s, since)
	}
	become(false)
	m.pass(m.now + 24*time.Hour)
	if m.violation == nil {
		f.checkUsedOn(on)
	}
}

// checkUsedOn wants the list of service keys to say on which day a key was used last.
func (f front) checkUsedOn(on *instance) {
	f.read("/api/marketplace/sellers", new(any))
	keys, err := on.users.ServiceKeys(f.m.ctx)
	i := slices.IndexFunc(keys, func(k auth.ServiceKey) bool { return k.ID == f.key.ID })
	today := on.now().UTC().Format(time.DateOnly)
	f.m.assert(readsAgree, err == nil && i >= 0 && keys[i].UsedOn == today, f.key.ID, "service key %s was used on %s, and the list of keys is %+v, %v", f.key.ID, today, keys, err)
}

// checkSuspendedSince wants what blocks a suspended seller's payouts to say since when.
func (f front) checkSuspendedSince(s *seller, since time.Time) {
	var got struct {
		Blockers []struct{ Code, Since string }
	}
	f.read("/api/marketplace/sellers/"+s.id+"/explain", &got)
	told := ""
	for _, b := range got.Blockers {
		if b.Code == payout.BlockedSuspended {
			told = b.Since
		}
	}
	want := since.UTC().Format("2006-01-02T15:04:05.000Z")
	f.m.assert(readsAgree, told == want, s.id, "%s is suspended since %s, and is said to be since %q", s.id, want, told)
}
