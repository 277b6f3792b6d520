package payout

import (
	"strings"
	"time"

	"bursar/internal/ledger"
)

// OrderLost reports whether the row that was found lacks the order that was sent, of which p, which was folded from its
// entries, has the hash.
func (p Payout) OrderLost(found Payout) bool {
	_, differs := ledger.Compare(Payout{OrderBody: p.OrderBody}, Payout{OrderBody: found.OrderBody})
	return differs && p.OrderBody != ""
}

// Rebuilt is the row of a payout that was folded from its entries, and the entries that have to follow. What entries do
// not tell is taken from the row that was found. A discrepancy that was noted because the row was tampered with is
// resolved; so is one about the bank account if that was tampered with. The gateway is asked again, so what it has against
// the payout itself is noted again. An order that is lost can't be sent again, so its payout goes to manual review.
func (p Payout) Rebuilt(found Payout, ofAccount bool, actor string, now time.Time) (row Payout, then []ledger.Posting, err error) {
	row = p
	row.Tries, row.DueAt = found.Tries, found.DueAt
	if row.DueAt.IsZero() {
		row.DueAt = now // the service works out the next step
	}
	step := func(change func(*Payout)) {
		was := row
		change(&row)
		data, failed := ledger.Patch(was, row)
		if failed != nil {
			err = failed
		}
		then = append(then, ledger.Posting{Owner: p.Seller, At: now, Type: entryType(was, row), Subject: string(p.ID), Actor: actor, Data: data})
	}
	switch {
	case p.OrderBody == "": // it has none to lose
	case !p.OrderLost(found):
		row.OrderBody = found.OrderBody
	default:
		if row.State == Submitting {
			step(func(p *Payout) { p.State = Unknown })
		}
		step(func(p *Payout) {
			p.review()
			p.OrderBody, p.Tries = "", 0
		})
	}
	if row.IsTampered() || ofAccount && row.DiffersInAccount() {
		step(func(p *Payout) { p.Discrepancy = "" })
	}
	return row, then, err
}

// otherAccount begins what is noted where the gateway paid another account than the payout's.
const otherAccount = "it has a transfer to "

// DiffersInAccount reports whether what is written down on the payout is that the gateway paid another account.
func (p Payout) DiffersInAccount() bool { return differsInAccount(p.Discrepancy) }

func differsInAccount(discrepancy string) bool { return strings.HasPrefix(discrepancy, otherAccount) }
