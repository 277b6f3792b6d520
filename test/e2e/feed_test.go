//go:build unix

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"bursar/internal/money"
	"bursar/test/harness"
)

// follower is a marketplace's server that knows of its sellers' money what the feed of events tells, and nothing else.
type follower struct {
	next     int64
	balances map[string]*followed
	payouts  map[string]string // status by id
	// events are those so far by id, and ids are those in order.
	events map[string]fedEvent
	ids    []string
}

// fedEvent is what a delivery of an event has to be.
type fedEvent struct {
	kind   string
	digest [sha256.Size]byte
}

// followed is what a seller has by the events so far, and the entry that the last one was.
type followed struct {
	available, pending, inTransit money.Amount
	entry                         int64
}

type feedPage struct {
	Next   int64
	Events []json.RawMessage
}

type feedEvent struct {
	ID, Type string
	Number   int64
	Data     struct {
		SellerID, ID, Status   string
		Amount, RefundedAmount json.Number
		Refund                 struct{ Amount json.Number }
		Entry                  int64
		Balance                struct{ Available, Pending, InTransit json.Number }
	}
}

// follow lets a consumer follow the feed from its first event while the load runs.
func (l *load) follow() {
	l.feed = &follower{balances: map[string]*followed{}, payouts: map[string]string{}, events: map[string]fedEvent{}}
	l.repeat("follower", func(at int, _ string) bool {
		_, ok := l.followPage(at)
		return ok
	})
}

// followPage applies a page of the feed that any instance has, and reports whether there may be more.
func (l *load) followPage(at int) (more, ok bool) {
	var page feedPage
	path := fmt.Sprintf("/api/events?after=%d", l.feed.next)
	if _, ok := l.expect(at, call{method: http.MethodGet, path: path, token: l.serviceKey}, &page, http.StatusOK); !ok {
		return false, false
	}
	for _, written := range page.Events {
		var e feedEvent
		if err := json.Unmarshal(written, &e); err != nil {
			l.t.Error(err)
			return false, false
		}
		if _, again := l.feed.events[e.ID]; again || e.Number != l.feed.next+1 {
			l.t.Errorf("event %d (%s) follows on event %d; it was there before: %t", e.Number, e.ID, l.feed.next, again)
			return false, false
		}
		l.feed.next = e.Number
		l.feed.events[e.ID], l.feed.ids = fedEvent{e.Type, eventDigest(written)}, append(l.feed.ids, e.ID)
		s := l.feed.balances[e.Data.SellerID]
		if s == nil {
			s = &followed{}
			l.feed.balances[e.Data.SellerID] = s
		}
		paise := func(n json.Number) money.Amount {
			if n == "" {
				return 0
			}
			return rupees(l.t, n)
		}
		amount, left := paise(e.Data.Amount), paise(e.Data.Amount)-paise(e.Data.RefundedAmount)
		switch e.Type {
		case "sale.recorded":
			s.pending += amount
		case "sale.released":
			s.pending, s.available = s.pending-left, s.available+left
		case "sale.refunded":
			if e.Data.Status == "released" {
				s.available -= paise(e.Data.Refund.Amount)
			} else {
				s.pending -= paise(e.Data.Refund.Amount)
			}
		case "payout.requested":
			s.available, s.inTransit = s.available-amount, s.inTransit+amount
		case "payout.completed":
			s.inTransit -= amount
		case "payout.failed", "payout.cancelled":
			s.available, s.inTransit = s.available+amount, s.inTransit-amount
		case "payout.returned":
			s.available += amount
		}
		if strings.HasPrefix(e.Type, "payout.") {
			l.feed.payouts[e.Data.ID] = e.Data.Status
		}
		if e.Type == "seller.registered" {
			continue
		}
		told := followed{paise(e.Data.Balance.Available), paise(e.Data.Balance.Pending), paise(e.Data.Balance.InTransit), e.Data.Entry}
		inOrder := e.Data.Entry > s.entry || e.Type == "balance.negative" && e.Data.Entry == s.entry
		if s.entry = e.Data.Entry; !inOrder || *s != told {
			l.t.Errorf("event %d (%s) says %+v of %s, and the events make it %+v (in order: %t)", e.Number, e.Type, told, e.Data.SellerID, *s, inOrder)
			return false, false
		}
	}
	return len(page.Events) > 0, true
}

func (l *load) followToEnd() {
	for more, ok := true, true; more && ok; {
		more, ok = l.followPage(0)
	}
}

// checkFeed reads the feed to its end, and compares what it makes with all that the ledger has.
func (l *load) checkFeed() {
	l.t.Helper()
	harness.Until(l.t, "all events are numbered", func() bool {
		waiting := 0
		l.sql(`SELECT COUNT(*) FROM queued_events`, func(r row) error { return r.Scan(&waiting) })
		return waiting == 0
	})
	l.followToEnd()
	for _, s := range l.sellers {
		b, fed := l.balance(s), l.feed.balances[s.id]
		if fed == nil || fed.available != rupees(l.t, b.AvailableBalance) || fed.pending != rupees(l.t, b.PendingBalance) {
			l.t.Errorf("%s has %+v, and the feed makes it %+v", s.email, b, fed)
		}
	}
	payouts := map[string]string{}
	l.sql(`SELECT id, status FROM payouts`, func(r row) error {
		var id, status string
		err := r.Scan(&id, &status)
		payouts[id] = status
		return err
	})
	for _, id := range slices.Sorted(maps.Keys(payouts)) {
		if l.feed.payouts[id] != payouts[id] {
			l.t.Errorf("payout %s is %s, and %q by the feed", id, payouts[id], l.feed.payouts[id])
		}
	}
	if len(l.feed.payouts) != len(payouts) {
		l.t.Errorf("the feed has %d payouts, and there are %d", len(l.feed.payouts), len(payouts))
	}
	l.say("%d events make the %d payouts and all balances again", l.feed.next, len(payouts))
}
