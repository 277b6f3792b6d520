package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// recording is a sale or a refund that the marketplace has recorded, and records again after a restore.
type recording struct {
	sale   sale.NewSale
	refund sale.NewRefund // without an id, it is about the sale
}

// sell records a sale with a holding period, and perhaps takes it back later.
func (m *market) sell(s *seller, assert time.Duration) {
	s.sold++
	n := sale.NewSale{
		ID: fmt.Sprintf("order-%s-%d", s.id, s.sold), Seller: s.id,
		Amount: money.Amount(50_000 + m.dice.Int64N(3_000_000)), OccurredAt: m.clock(),
	}
	if s.sold%3 != 0 {
		n.Actor = serviceKey(s.sold)
	}
	if m.chance(40) { // more than travels at all hours
		n.Amount *= 30
	}
	if m.chance(100) { // told late
		n.OccurredAt = n.OccurredAt.Add(-m.between(0, 40*24*time.Hour))
		if s.sold%2 == 0 { // or on the edge of a month
			n.OccurredAt = monthsEdge(n.OccurredAt)
		}
	}
	if !m.chance(50) { // else the usual holding period applies
		n.AvailableAt = n.OccurredAt.Add(assert)
	}
	if s.sold%7 == 5 && !n.AvailableAt.IsZero() { // some marketplaces release by the day
		n.AvailableAt = midnight(n.AvailableAt).AddDate(0, 0, 1)
	}
	if m.chance(50) { // a refund of it comes first
		m.refundTooEarly(n)
	}
	m.recordSale(n)
	if m.chance(100) {
		m.recordInvalidSale(n)
	}
	if m.chance(100) { // the marketplace is not sure whether it did
		m.pause(m.between(0, time.Hour))
		m.recordSale(n)
	}
	if e := m.model.sales[n.ID]; e != nil && m.chance(60) { // a refund comes at the moment at which the holding period is over
		m.pause(max(e.availableAt.Sub(m.clock()), 0) + m.between(0, 5*time.Millisecond))
		if m.closing {
			return
		}
		m.takeBack(n)
	}
	for range 2 {
		if m.chance(s.refunds) {
			m.pause(m.around(3 * 24 * time.Hour))
			if m.closing {
				return
			}
			m.takeBack(n)
		}
	}
}

// serviceKey names one of three service keys of the marketplace, as the journal does.
func serviceKey(n int) string { return fmt.Sprintf("%skey_%d", ledger.ActorKey, n%3) }

// refundKey tells refunds apart, whose ids are their sale's own.
func refundKey(saleID, id string) string { return saleID + " " + id }

// recorderOf is who must have caused an entry of a sale or a refund: who asked for it.
func (m *market) recorderOf(e ledger.Entry) string {
	key := strings.TrimPrefix(e.Subject, sale.SubjectPrefix)
	if of := m.model.sales[key]; e.Type == ledger.SaleRefunded && of != nil {
		key = refundKey(key, of.newestID)
	}
	return cmp.Or(m.recorders[key], ledger.ActorMarketplace)
}

// monthsEdge is soon after the month of t began in India, where it was the one before in most of the world, if that is not after t.
func monthsEdge(t time.Time) time.Time {
	local := t.In(indianTime)
	edge := time.Date(local.Year(), local.Month(), 1, 1, 0, 0, 0, indianTime)
	if edge.After(t) {
		return t
	}
	return edge.UTC()
}

func (m *market) recordSale(n sale.NewSale) {
	m.recorders[n.ID] = n.Actor
	if m.chance(150) {
		m.recordBatch(n)
		return
	}
	m.recordings = append(m.recordings, recording{sale: n})
	err := m.persist(time.Minute, func(on *instance) error {
		known := m.model.sales[n.ID]
		s, created, err := on.sales.Record(m.ctx, n)
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "a sale was answered with %v", err)
		until := n.AvailableAt
		if until.IsZero() {
			until = n.OccurredAt.Add(usualHoldingPeriod)
		}
		m.assert(answersAreTrue, err != nil || (s.Amount == n.Amount && s.Seller == n.Seller && microsOf(s.AvailableAt) == microsOf(until)), n.Seller,
			"sale %+v was answered with %+v", n, s)
		m.assert(oncePerID, err != nil || known == nil || !created, n.Seller, "sale %s was made again", n.ID)
		return err
	})
	if !errors.Is(err, errNowhere) {
		e := m.model.sales[n.ID]
		m.assert(answersAreTrue, err == nil && e != nil && e.amount == n.Amount, n.Seller, "sale %s was answered with %v, and the ledger has %+v", n.ID, err, e)
	}
}

// recordBatch records a sale in one call with a sale of nobody's, one that was recorded before, the same sale twice more, and another under its id.
func (m *market) recordBatch(n sale.NewSale) {
	nobodys := n
	nobodys.ID, nobodys.Seller = n.ID+"-nobodys", m.ids.New("usr_", m.clock())
	batch := []sale.NewSale{nobodys, n}
	if before := m.dice.IntN(len(m.recordings) + 1); before < len(m.recordings) && m.recordings[before].refund.ID == "" {
		batch = append(batch, m.recordings[before].sale)
	}
	other := n
	other.Amount++
	batch = append(batch, n, n, other)
	m.recordings = append(m.recordings, recording{sale: n})
	err := m.persist(time.Minute, func(on *instance) error {
		refused, err := on.sales.RecordAll(m.ctx, batch)
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "a batch of sales was answered with %v", err)
		m.assert(answersAreTrue, err != nil || len(refused) == len(batch), n.Seller, "a batch of %d sales was answered with %d outcomes", len(batch), len(refused))
		for i, outcome := range refused {
			right := outcome == nil
			switch i {
			case 0:
				right = errors.Is(outcome, sale.ErrSellerNotFound)
			case len(batch) - 1:
				right = errors.Is(outcome, sale.ErrConflict)
			}
			m.assert(oncePerID, right, n.Seller, "sale %+v, number %d of a batch, was answered with %v", batch[i], i, outcome)
		}
		return err
	})
	if !errors.Is(err, errNowhere) {
		e := m.model.sales[n.ID]
		m.assert(answersAreTrue, err == nil && e != nil && e.amount == n.Amount, n.Seller, "sale %s was answered with %v, and the ledger has %+v", n.ID, err, e)
	}
}

// takeBack refunds a part of a sale, or all that is left.
func (m *market) takeBack(n sale.NewSale) {
	e := m.model.sales[n.ID]
	if e == nil || e.left() == 0 {
		return
	}
	r := sale.NewRefund{Sale: n.ID, ID: fmt.Sprintf("refund-%d", len(e.refunds)+1)} // ids are the sale's own
	if m.chance(200) {
		m.refusedRefund(sale.NewRefund{Sale: n.ID, ID: r.ID, Amount: e.left() + 1}, sale.ErrRefundTooLarge)
	}
	if n := int(e.amount) + len(e.refunds); n%2 == 0 { // the same key when the ledger was lost and the refund is recorded again
		r.Actor = serviceKey(n)
	}
	if m.chance(600) {
		r.Amount = 1 + money.Amount(m.dice.Int64N(int64(e.left())))
	}
	m.recordRefund(r)
	if m.chance(200) {
		m.pause(m.between(0, time.Hour))
		m.recordRefund(r)
		m.refusedRefund(sale.NewRefund{Sale: n.ID, ID: r.ID, Amount: r.Amount + 1}, sale.ErrRefundConflict)
		if e := m.model.sales[n.ID]; e != nil {
			m.refusedRefund(sale.NewRefund{Sale: n.ID, ID: r.ID + "-more", Amount: e.left() + 1}, sale.ErrRefundTooLarge)
		}
	}
}

// refundTooEarly reports a refund of a sale that is yet to be reported.
func (m *market) refundTooEarly(n sale.NewSale) {
	m.refusedRefund(sale.NewRefund{Sale: n.ID, ID: "refund-0", Amount: 1}, sale.ErrNotFound)
}

// refusedRefund tells a refund that must be refused.
func (m *market) refusedRefund(r sale.NewRefund, want error) {
	if on := m.anyInstance(); on != nil {
		_ = m.call(on, func() error {
			e := m.model.sales[r.Sale]
			if (e == nil) != errors.Is(want, sale.ErrNotFound) { // the ledger was put back meanwhile
				return nil
			}
			if e != nil {
				if _, recorded := e.refunds[r.ID]; recorded != errors.Is(want, sale.ErrRefundConflict) || r.Amount <= e.left() && !recorded {
					return nil
				}
			}
			_, _, _, err := on.sales.Refund(m.ctx, r)
			m.assert(refundsAreDue, errors.Is(err, want) || isUnavailable(err), "", "refund %+v was answered with %v, want %v", r, err, want)
			return err
		})
	}
}

// recordInvalidSale records what is no sale, or another sale under an id that was used.
func (m *market) recordInvalidSale(n sale.NewSale) {
	other, nobodys, early := m.another(n), n, n
	nobodys.ID, nobodys.Seller = n.ID+"-nobodys", m.ids.New("usr_", m.clock())
	early.ID, early.AvailableAt = n.ID+"-early", n.OccurredAt.Add(-time.Second)
	for _, wrong := range []struct {
		sale sale.NewSale
		is   func(error) bool
	}{
		{other, func(err error) bool { return errors.Is(err, sale.ErrConflict) }},
		{nobodys, func(err error) bool { return errors.Is(err, sale.ErrSellerNotFound) }},
		{early, func(err error) bool { return fault.From(err) != nil && fault.From(err).Details["availableAt"] != "" }},
	} {
		if on := m.anyInstance(); on != nil {
			_ = m.call(on, func() error {
				if m.model.sales[n.ID] == nil {
					return nil
				}
				_, _, err := on.sales.Record(m.ctx, wrong.sale)
				m.assert(oncePerID, wrong.is(err) || isUnavailable(err), n.Seller, "sale %+v was answered with %v", wrong.sale, err)
				return err
			})
		}
	}
}

// another is a sale that differs in one thing.
func (m *market) another(n sale.NewSale) sale.NewSale {
	switch of := len(m.recordings) % 4; {
	case of == 1 && len(m.sellers) > 1:
		at := slices.IndexFunc(m.sellers, func(s *seller) bool { return s.id != n.Seller })
		n.Seller = m.sellers[at].id
	case of == 2:
		n.OccurredAt = n.OccurredAt.Add(-time.Second)
	case of == 3 && !n.AvailableAt.IsZero():
		n.AvailableAt = n.AvailableAt.Add(time.Second)
	default:
		n.Amount++
	}
	return n
}

func (m *market) recordRefund(r sale.NewRefund) {
	m.recorders[refundKey(r.Sale, r.ID)] = r.Actor
	m.recordings = append(m.recordings, recording{refund: r})
	_ = m.persist(time.Minute, func(on *instance) error {
		before := m.refundedOf(r.Sale)
		left, made, created, err := on.sales.Refund(m.ctx, r)
		e := m.model.sales[r.Sale]
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, "", "a refund was answered with %v", err)
		m.assert(answersAreTrue, err != nil || left.Refunded <= e.refunded && (!created || left.Refunded >= before+made.Amount), left.Seller,
			"refund %+v was answered with %+v and %+v; refunded were %d, and are %d", r, left, made, before, m.refundedOf(r.Sale))
		if err == nil {
			_, recorded := e.refunds[r.ID]
			m.assert(answersAreTrue, recorded, e.seller, "refund %s was answered, and is not in the ledger", r.ID)
		} else if e != nil {
			m.assert(refundsAreDue, isUnavailable(err) || errors.Is(err, sale.ErrRefundTooLarge) && (r.Amount > e.left() || e.left() == 0) || errors.Is(err, sale.ErrRefundConflict) && m.recordedOtherwise(r),
				e.seller, "refund %+v of a sale of which %d is left was answered with %v", r, e.left(), err)
		}
		return err
	})
}

// refundedOf is how much of a sale was refunded.
func (m *market) refundedOf(id string) money.Amount {
	if e := m.model.sales[id]; e != nil {
		return e.refunded
	}
	return 0
}

// recordedOtherwise reports whether another refund was reported under the same id: ids repeat after a restore.
func (m *market) recordedOtherwise(r sale.NewRefund) bool {
	return slices.ContainsFunc(m.recordings, func(t recording) bool {
		return t.refund.Sale == r.Sale && t.refund.ID == r.ID && t.refund.Amount != r.Amount
	})
}

// recordAgain has the marketplace record all that the ledger does not have, in the order in which it happened.
func (m *market) recordAgain() {
	for _, t := range m.recordings {
		if t.refund.ID == "" {
			if m.model.sales[t.sale.ID] == nil {
				m.recordSaleAgain(t.sale)
			}
			continue
		}
		e := m.model.sales[t.refund.Sale]
		if e == nil {
			continue
		}
		if _, recorded := e.refunds[t.refund.ID]; !recorded {
			refund := t.refund
			_ = m.persist(time.Minute, func(on *instance) error {
				_, _, _, err := on.sales.Refund(m.ctx, refund)
				return err
			})
		}
	}
}

func (m *market) recordSaleAgain(n sale.NewSale) {
	_ = m.persist(time.Minute, func(on *instance) error {
		_, _, err := on.sales.Record(m.ctx, n)
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, n.Seller, "a sale was answered with %v", err)
		return err
	})
}
