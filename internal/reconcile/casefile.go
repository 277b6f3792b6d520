package reconcile

import (
	"fmt"
	"slices"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// caseFile is a payout of the ledger with every line that names it.
type caseFile struct {
	p payout.Payout
	// gateway is the one whose statement is compared. The lines are of all statements that were ever read.
	gateway gateway.Name
	lines   []Line
	// read is what of the statement was read, so that what is not in it can be said to be missing.
	read coverage
	// after is the moment after which a movement is too fresh for the ledger to know of.
	after time.Time
	// grace is how much later than the ledger the statement may have a movement: clocks differ.
	grace    time.Duration
	currency money.Currency

	debits, credits []Line
	taken, given    money.Amount
}

// judge compares a payout with its lines, and returns what differs. It reports whether it could: a movement
// of this minute may be new to the ledger, and what was not read can't be missed.
func (d caseFile) judge() (found []Difference, judged bool) {
	for _, l := range d.lines {
		switch {
		case l.Missing:
		case l.Currency != d.currency.Code() && (l.Gateway == d.gateway || !d.elsewhere()):
			differs := d.differs(CurrencyDiffers, "Line %s is in %s, and the ledger counts %s.", l.ID, l.Currency, d.currency.Code())
			differs.At = l.At // the payout itself may have no time yet at which money moved
			return []Difference{differs}, true
		case l.Debit > 0:
			d.debits = append(d.debits, l)
			d.taken += l.Debit
		default:
			d.credits = append(d.credits, l)
			d.given += l.Credit
		}
	}
	if d.elsewhere() {
		return d.judgeElsewhere()
	}
	if kind, detail, judged := d.movements(); kind != "" || !judged {
		if kind == "" {
			return nil, false
		}
		return []Difference{d.differs(kind, "%s", detail)}, true
	}
	return d.amounts(), true
}

// elsewhere reports whether the payout goes through another gateway than the one whose statement is compared.
func (d caseFile) elsewhere() bool { return d.p.Gateway != d.gateway }

// judgeElsewhere judges a payout that this statement should have no line of. Its own gateway's statement says the rest.
func (d caseFile) judgeElsewhere() (found []Difference, judged bool) {
	for _, l := range d.debits {
		if l.Gateway == d.gateway {
			return []Difference{d.differs(LineBeforeOrder, "The payout goes through gateway %s, and line %s of gateway %s takes money for it.",
				d.p.Gateway, l.ID, l.Gateway)}, true
		}
	}
	return nil, false
}

// movements compares how often money moved with what the payout's state asks for.
func (d caseFile) movements() (kind Kind, detail string, judged bool) {
	debits, credits := len(d.debits), len(d.credits)
	switch {
	case debits-credits > 1:
		return PaidTwice, fmt.Sprintf("The statement has %s and %s for it.", count(debits, "debit"), count(credits, "credit")), true
	case d.newest().After(d.after) && !d.agrees():
		return "", "", false
	}
	switch d.p.State {
	case payout.Completed, payout.Returned:
		return d.paidInLedger()
	case payout.Failed, payout.Cancelled:
		if debits > credits && d.isReadSince(d.p.EndedAt) {
			return RefundedButPaid, fmt.Sprintf("The payout is %s here, and the statement has %s and %s for it.",
				d.p.State, count(debits, "debit"), count(credits, "credit")), true
		}
		// What took the money may be of a day before those that were read.
		if (credits > debits || debits == 0 && !d.endedUnsent()) && !d.isRead(d.p.EndedAt) {
			return "", "", false
		}
		return "", "", debits <= credits
	case payout.Waiting:
		if debits > credits {
			return LineBeforeOrder, "The payout waits here to be sent, and the statement has a debit for it.", true
		}
	default:
		if debits > 0 && credits >= debits {
			return ReturnedAtGateway, fmt.Sprintf("The payout is %s here, and the statement has the money taken and returned.", d.p.State), true
		}
	}
	return "", "", true
}

// paidInLedger compares a payout that was paid, and perhaps returned later.
func (d caseFile) paidInLedger() (kind Kind, detail string, judged bool) {
	debits, credits := len(d.debits), len(d.credits)
	switch {
	case debits == 0 && !d.isRead(d.p.CompletedAt):
		return "", "", false
	case debits == 0:
		return PayoutWithoutLine, fmt.Sprintf("The payout was completed here on %s, and no line up to then takes money for it.",
			d.p.CompletedAt.UTC().Format("2 January 2006 15:04 MST")), true
	case d.p.State == payout.Completed && credits >= debits:
		return ReturnedAtGateway, "The payout is completed here, and the statement has the money taken and returned.", true
	case d.p.State == payout.Returned && credits < debits && !d.isReadSince(d.p.EndedAt):
		return "", "", false
	case d.p.State == payout.Returned && credits < debits:
		return ReturnWithoutLine, fmt.Sprintf("The payout was returned here on %s, and no line up to then returns the money.",
			d.p.EndedAt.UTC().Format("2 January 2006 15:04 MST")), true
	default:
		return "", "", true
	}
}

// amounts compares what moved with the payout's amount, and with the fees that the lines tell.
func (d caseFile) amounts() []Difference {
	net, show := d.p.Net(), d.currency.FormatFixed
	for _, l := range slices.Concat(d.debits, d.credits) {
		moved := l.Debit + l.Credit
		word := "takes"
		if l.Credit > 0 {
			word = "returns"
		}
		_, right := d.feeOf(l)
		switch {
		case l.Amount != 0 && l.Amount != net:
			return []Difference{d.differs(AmountDiffers, "Line %s %s %s for a transfer of %s; the payout sends %s.",
				l.ID, word, show(moved), show(l.Amount), show(net))}
		case moved < net:
			return []Difference{d.differs(AmountDiffers, "Line %s %s %s; the payout sends %s.", l.ID, word, show(moved), show(net))}
		case !right:
			return []Difference{d.differs(FeeDiffers, "Line %s %s %s, which is %s beside the payout's %s; the fee that it tells is %s.",
				l.ID, word, show(moved), show(moved-net), show(net), show(l.Fees))}
		}
	}
	switch {
	case len(d.credits) > len(d.debits):
		return []Difference{d.differs(AmountDiffers, "The statement returns %s for it, and takes %s.", show(d.given), show(d.taken))}
	case len(d.credits) == len(d.debits) && d.given != d.taken:
		return []Difference{d.differs(FeeDiffers, "The statement takes %s for it and returns %s: the fee did not come back.", show(d.taken), show(d.given))}
	default:
		return nil
	}
}

// feeOf is what a line moves beside the payout's amount, and whether it may: nothing, or the fee that the
// line tells. The line that returns money may leave out the fee, which the line that took it has.
func (d caseFile) feeOf(l Line) (fee money.Amount, right bool) {
	beyond := l.Debit + l.Credit - d.p.Net()
	if beyond == 0 || beyond == l.Fees {
		return beyond, true
	}
	if l.Credit > 0 && slices.ContainsFunc(d.lines, func(o Line) bool { return o.Debit > 0 && o.Fees == beyond }) {
		return beyond, true
	}
	return 0, false
}

// agrees reports whether the lines are what the state asks for, so that there is nothing to wait for.
func (d caseFile) agrees() bool {
	debits, credits := len(d.debits), len(d.credits)
	switch d.p.State {
	case payout.Completed:
		return debits-credits == 1
	case payout.Returned, payout.Failed, payout.Cancelled:
		return debits == credits
	case payout.Waiting:
		return debits+credits == 0
	default:
		return debits == 1 && credits == 0
	}
}

// isTaken reports whether a line takes money for the payout.
func (d caseFile) isTaken() bool {
	return slices.ContainsFunc(d.lines, func(l Line) bool { return l.Debit > 0 && !l.Missing })
}

// endedUnsent reports whether the payout failed or was cancelled before the gateway could have taken money for it.
func (d caseFile) endedUnsent() bool {
	hasEnded := d.p.State == payout.Failed || d.p.State == payout.Cancelled
	return hasEnded && d.p.SentAt.IsZero() && d.p.ProcessedAt.IsZero()
}

// isRead reports whether the statement was read from when the payout was ordered to where it must have what
// the ledger has at t.
func (d caseFile) isRead(t time.Time) bool { return d.read.holds(begun(d.p), t.Add(d.grace)) }

// isReadSince reports whether the statement was read from the last movement to where it must have what the ledger
// has at t.
func (d caseFile) isReadSince(t time.Time) bool {
	newest := d.newest()
	if t.Before(newest) {
		t = newest
	}
	return d.read.holds(newest, t.Add(d.grace))
}

// begun is when the gateway can first have taken money for a payout.
func begun(p payout.Payout) time.Time {
	at := p.RequestedAt
	switch {
	case !p.SentAt.IsZero() && (p.ProcessedAt.IsZero() || p.SentAt.Before(p.ProcessedAt)):
		at = p.SentAt
	case !p.ProcessedAt.IsZero():
		at = p.ProcessedAt
	}
	return at.Add(-payout.ClocksApart)
}

// newest is when money moved last, or zero if none did.
func (d caseFile) newest() time.Time {
	var at time.Time
	for _, l := range slices.Concat(d.debits, d.credits) {
		if l.At.After(at) {
			at = l.At
		}
	}
	return at
}

// inLedger is what the ledger has of the payout.
func (d caseFile) inLedger() money.Amount {
	if d.p.State == payout.Completed {
		return d.p.Net()
	}
	return 0
}

func (d caseFile) differs(k Kind, detail string, args ...any) Difference {
	at := d.newest()
	if at.IsZero() {
		at = d.p.CompletedAt
	}
	return Difference{
		Kind: k, Subject: string(d.p.ID), Payout: d.p.ID, Detail: fmt.Sprintf(detail, args...), At: at,
		AtGateway: d.taken - d.given, InLedger: d.inLedger(),
	}
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "one " + what
	default:
		return fmt.Sprintf("%d %ss", n, what)
	}
}

// coverage is the parts of the statement that were read, in order and apart.
type coverage []Period

// add adds a part that does not begin before those that are there.
func (c coverage) add(p Period) coverage {
	if n := len(c); n > 0 && !p.From.After(c[n-1].To) {
		if p.To.After(c[n-1].To) {
			c[n-1].To = p.To
		}
		return c
	}
	return append(c, p)
}

// holds reports whether all between two times was read.
func (c coverage) holds(from, to time.Time) bool {
	return slices.ContainsFunc(c, func(p Period) bool { return !p.From.After(from) && !p.To.Before(to) })
}
