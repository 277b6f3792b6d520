//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"bursar/internal/money"
	"bursar/test/harness"
)

// settle lets every payout come to its end, without its waits.
func (l *load) settle() {
	l.t.Helper()
	open := `(status = 'processing' OR state = 'completed' AND seller_id IN (` + l.returning() + `))`
	left, before := 0, 0
	for range 600 {
		l.makeDue("payouts", open)
		l.sql(`SELECT COUNT(*) FROM payouts WHERE due_at IS NOT NULL AND `+open, func(r row) error { return r.Scan(&left) })
		if left == 0 {
			return
		}
		if left/500 != before/500 {
			l.say("%d payouts are still on their way", left)
		}
		before = left
		time.Sleep(500 * time.Millisecond)
	}
	l.t.Fatalf("%d payouts never came to their end", left)
}

// returning lists, for SQL, the sellers whose banks send back what they are paid.
func (l *load) returning() string {
	ids := []string{"''"}
	for _, s := range l.sellers {
		if s.ending == transferReturns {
			ids = append(ids, "'"+s.id+"'")
		}
	}
	return strings.Join(ids, ", ")
}

// acknowledged is a copy of what was acknowledged up to a moment.
type acknowledged struct {
	payouts map[string]ackedPayout
	sales   map[string]ackedSale
}

func (l *load) acknowledgedNow() acknowledged {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := acknowledged{map[string]ackedPayout{}, map[string]ackedSale{}}
	for id, p := range l.payouts {
		a.payouts[id] = *p
	}
	for id, s := range l.sales {
		a.sales[id] = *s
	}
	return a
}

// checkKept finds everything in the ledger that was acknowledged up to now, while the load goes on, and
// returns how much that was.
func (l *load) checkKept() int {
	l.t.Helper()
	a := l.acknowledgedNow()
	n := len(a.payouts) + len(a.sales)
	l.checkHolds(a)
	return n
}

// checkHolds finds in the ledger what was acknowledged.
func (f *fleet) checkHolds(a acknowledged) {
	f.t.Helper()
	f.sql(`SELECT id, seller_id, amount, status FROM payouts`, func(r row) error {
		var id, seller, status string
		var amount money.Amount
		err := r.Scan(&id, &seller, &amount, &status)
		if p, acked := a.payouts[id]; acked && (p.seller.id != seller || p.amount != amount || p.cancelled && status != "cancelled") {
			f.t.Errorf("payout %s: %s of %s is %s; acknowledged was %s of %s, cancelled: %t", id, inRupees(amount), seller, status, inRupees(p.amount), p.seller.id, p.cancelled)
		}
		delete(a.payouts, id)
		return err
	})
	f.sql(`SELECT id, seller_id, amount, refunded FROM sales`, func(r row) error {
		var id, seller string
		var amount, refunded money.Amount
		err := r.Scan(&id, &seller, &amount, &refunded)
		if s, acked := a.sales[id]; acked && (s.seller.id != seller || s.amount != amount || refunded < s.refunded) {
			f.t.Errorf("sale %s of %s: %s with %s refunded; acknowledged was %s with %s", id, seller, inRupees(amount), inRupees(refunded), inRupees(s.amount), inRupees(s.refunded))
		}
		delete(a.sales, id)
		return err
	})
	for id := range a.payouts {
		f.t.Errorf("payout %s was acknowledged and is gone", id)
	}
	for id := range a.sales {
		f.t.Errorf("sale %s was acknowledged and is gone", id)
	}
}

// checkPayouts compares the payouts in the ledger with those that were acknowledged: there is each of
// them, as it was asked for, and no other but those that were asked for once, without a key, and not answered.
func (l *load) checkPayouts() {
	l.t.Helper()
	found := 0
	l.sql(`SELECT id, seller_id, amount, status FROM payouts`, func(r row) error {
		var id, seller, status string
		var amount money.Amount
		if err := r.Scan(&id, &seller, &amount, &status); err != nil {
			return err
		}
		p := l.payouts[id]
		if p == nil {
			p = l.importTransfer(id, seller, amount)
		}
		switch {
		case p == nil:
			l.t.Errorf("payout %s of %s is in the ledger, and nobody was told", id, inRupees(amount))
		case p.seller.id != seller || p.amount != amount || status != p.end():
			l.t.Errorf("payout %s: %s of %s is %s, want %s of %s %s", id, inRupees(amount), seller, status, inRupees(p.amount), p.seller.id, p.end())
		}
		found++
		return nil
	})
	if found != len(l.payouts) {
		l.t.Errorf("%d payouts are in the ledger, %d were acknowledged", found, len(l.payouts))
	}
}

// importTransfer takes in a payout that was asked for without a key and whose answer was lost: the amount tells it.
func (l *load) importTransfer(id, seller string, amount money.Amount) *ackedPayout {
	asked := keyless{seller, amount}
	s := l.lost[asked]
	if s == nil {
		return nil
	}
	delete(l.lost, asked) // it was asked for once
	l.payouts[id] = &ackedPayout{seller: s, amount: amount}
	l.imported++
	return l.payouts[id]
}

// end is the status that the payout must come to.
func (p *ackedPayout) end() string {
	switch {
	case p.cancelled:
		return "cancelled"
	case p.seller.isPaid():
		return "completed"
	default:
		return "failed"
	}
}

// isPaid says whether the bank got and kept the payout's amount.
func (p *ackedPayout) isPaid() bool { return p.end() == "completed" }

// checkMoves compares the money that moved at the gateway with what was asked for.
func (l *load) checkMoves() {
	l.t.Helper()
	response, err := l.client.Get(l.gateway.API + "/control/moves")
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	var moves []struct {
		Reference string       `json:"reference_id"`
		Net       money.Amount `json:"net"`
		Count     int          `json:"count"`
	}
	if err := json.NewDecoder(response.Body).Decode(&moves); err != nil {
		l.t.Fatal(err)
	}
	paid := 0
	for _, m := range moves {
		p := l.payouts[m.Reference]
		switch {
		case p == nil || m.Count > 1:
			l.t.Errorf("the gateway paid %s %d times, %s in all", m.Reference, m.Count, inRupees(m.Net))
		case p.isPaid() && m.Net != p.amount, !p.isPaid() && m.Net != 0:
			l.t.Errorf("the gateway paid %s for %s, which is %s and %s", inRupees(m.Net), m.Reference, inRupees(p.amount), p.end())
		case p.isPaid():
			paid++
		}
	}
	if want := l.count(func(p *ackedPayout) bool { return p.isPaid() }); paid != want {
		l.t.Errorf("the gateway paid %d payouts, want %d", paid, want)
	}
}

func (l *load) count(of func(*ackedPayout) bool) (n int) {
	for _, p := range l.payouts {
		if of(p) {
			n++
		}
	}
	return n
}

func (l *load) cancelled() int { return l.count(func(p *ackedPayout) bool { return p.cancelled }) }

func (l *load) checkSales() {
	l.t.Helper()
	found := 0
	l.sql(`SELECT id, seller_id, amount, refunded FROM sales`, func(r row) error {
		var id, seller string
		var amount, refunded money.Amount
		if err := r.Scan(&id, &seller, &amount, &refunded); err != nil {
			return err
		}
		s := l.sales[id]
		if s == nil || s.seller.id != seller || s.amount != amount || s.refunded != refunded {
			l.t.Errorf("sale %s is of %s, %s refunded, want %+v", id, inRupees(amount), inRupees(refunded), s)
		}
		found++
		return nil
	})
	if found != len(l.sales) {
		l.t.Errorf("%d sales are in the ledger, %d were acknowledged", found, len(l.sales))
	}
}

// checkBalances works out what each seller must have, to the paisa.
func (l *load) checkBalances() {
	l.t.Helper()
	earned, withdrawn := map[*seller]money.Amount{}, map[*seller]money.Amount{}
	for _, s := range l.sales {
		earned[s.seller] += s.amount - s.refunded
	}
	for _, p := range l.payouts {
		if p.isPaid() {
			withdrawn[p.seller] += p.amount
		}
	}
	for _, s := range l.sellers {
		want := []money.Amount{earned[s] - withdrawn[s], 0, earned[s], withdrawn[s]}
		harness.Until(l.t, "sales are released", func() bool { return rupees(l.t, l.balance(s).PendingBalance) == 0 })
		b := l.balance(s)
		for i, got := range []json.Number{b.AvailableBalance, b.PendingBalance, b.TotalEarnings, b.TotalWithdrawn} {
			if rupees(l.t, got) != want[i] {
				l.t.Errorf("%s has %+v, want %d", s.email, b, want)
			}
		}
	}
}

// checkAccounts finds the bank account that each seller registered last.
func (l *load) checkAccounts() {
	l.t.Helper()
	for s, number := range l.accounts {
		want := fmt.Sprintf("****%s", s.ending)
		var current struct {
			ID, AccountNumber, AccountHolder string
		}
		a := l.once(call{method: http.MethodGet, path: "/api/bank-account", token: s.token})
		if err := a.read(&current); err != nil || current.AccountNumber != want || current.AccountHolder != holderOf(number) {
			l.t.Errorf("%s is paid to %+v (%v), want %s of %s", s.email, current, err, want, holderOf(number))
		}
	}
}
