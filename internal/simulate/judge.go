package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/event"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// audit runs the service's own audit of the ledger, and compares all rows with the model.
func (m *market) audit(on *instance) {
	m.tally.audits++
	report, err := on.db.Audit(m.ctx, m.keys)
	m.assert(datastoreReadable, err == nil, "", "audit: %v", err)
	for _, f := range report.Findings {
		if f.Name == ledger.GatewayAgrees { // it lies, and what it said waits for an admin
			m.checkDiscrepancies(f.Violations)
			continue
		}
		if f.Name == "unmatched-transfers-are-resolved" {
			m.assert(unmatchedListed, len(f.Violations) == min(m.model.openUnmatched(), ledger.MaxViolations), "", "the audit reports %d unmatched transfers, and %d are listed:\n  %s",
				len(f.Violations), m.model.openUnmatched(), strings.Join(f.Lines(), "\n  "))
			continue
		}
		m.assert(Check{f.Name, f.Promise}, len(f.Violations) == 0, subjectOf(f.Violations...), "%s", strings.Join(f.Lines(), "\n  "))
	}
	sums := m.model.sums()
	for _, s := range m.sellers {
		m.compareRows(on, []string{s.id})
		m.assert(entriesAreTrue, m.model.row(s.id) == sums[s.id], s.id, "%s has\n  %+v, and what happened makes it\n  %+v", s.id, m.model.row(s.id), sums[s.id])
		m.readSales(on, s)
		m.readAdjustments(on, s.id)
		m.readEntries(on, s.id)
	}
	m.follow(on, decision.Platform)
	m.readEntries(on, decision.Platform)
	m.comparePayouts(on)
}

// checkDiscrepancies holds the audit's word on discrepancies against the gateway's lies.
func (m *market) checkDiscrepancies(violations []ledger.Violation) {
	for _, v := range violations {
		id := subjectOf(v)
		m.assert(discrepanciesKept, m.gateways.lies[payout.ID(id)] != nil, id, "%s; the gateway has told no lie", v)
	}
	n := 0
	for _, w := range m.model.payouts {
		n += btoi(w.last.Discrepancy != "")
	}
	m.assert(discrepanciesKept, len(violations) == min(n, ledger.MaxViolations), "", "the audit reports %d discrepancies, and there are %d", len(violations), n)
}

// subjectOf finds the payout or seller that violations name.
func subjectOf(violations ...ledger.Violation) string {
	for _, v := range violations {
		if strings.HasPrefix(v.Subject, "pyt_") {
			return v.Subject
		}
		if v.Seller != "" {
			return v.Seller
		}
	}
	return ""
}

// comparePayouts holds all payouts in the ledger against the model.
func (m *market) comparePayouts(on *instance) {
	const page = 1000
	n := 0
	for {
		list, total, err := on.db.ListPayouts(m.ctx, payout.Filter{Limit: page, Offset: n})
		if !m.assert(datastoreReadable, err == nil, "", "list the payouts: %v", err) {
			return
		}
		for _, p := range list {
			w := m.model.payouts[p.ID]
			m.assert(answersAreTrue, w != nil && w.seller == p.Seller && w.amount == p.Amount && w.state == p.State, string(p.ID),
				"the ledger has %s of %s: %d, %s; the model has %+v", p.ID, p.Seller, p.Amount, p.State, w)
		}
		if n += len(list); int64(n) >= total || len(list) == 0 {
			break
		}
	}
	m.assert(answersAreTrue, n == len(m.model.payouts), "", "the ledger has %d payouts, %d were acknowledged", n, len(m.model.payouts))
}

// checkAllImported holds the gateway's record of what moved against the model.
func (m *market) checkAllImported() []move {
	moves, err := m.gateways.moves()
	m.assert(datastoreReadable, err == nil, "", "%v", err)
	at := map[string]*gateway{}
	for _, move := range moves {
		if m.gateways.isUnmatchable(move.ReferenceID) {
			continue
		}
		w := m.model.payouts[payout.ID(move.ReferenceID)]
		m.assert(paidOnce, at[move.ReferenceID] == nil, move.ReferenceID, "payout %s has a transfer at %s and at %s", move.ReferenceID, nameOfGateway(at[move.ReferenceID]), move.at.name)
		at[move.ReferenceID] = move.at
		m.assert(paidOnce, move.Count == 1 && move.Net <= move.Debit, move.ReferenceID, "the gateway paid payout %s %d times", move.ReferenceID, move.Count)
		m.assert(allImported, w != nil, move.ReferenceID, "the gateway has a transfer of payout %s, and the ledger has no such payout", move.ReferenceID)
		if w != nil {
			m.assert(ownGateway, w.at == move.at.name, move.ReferenceID, "payout %s is at gateway %s, and was paid by %s", move.ReferenceID, w.at, move.at.name)
			m.assert(paidExactly, money.Amount(move.Debit) == w.net(), move.ReferenceID, "payout %s of %d net was paid %d", move.ReferenceID, w.net(), move.Debit)
			a := m.model.accounts[w.account] // of one that was lost with the ledger, nobody knows more than the gateway
			m.assert(onlyRightAccount, a == nil || a.last4 == move.AccountLast4, move.ReferenceID, "payout %s was paid to the account ending in %s", move.ReferenceID, move.AccountLast4)
		}
	}
	return moves
}

// judge holds everything against everything once all is quiet.
func (m *market) judge() {
	on := m.anyInstance()
	if !m.assert(datastoreReadable, on != nil, "", "no instance came up again") {
		return
	}
	m.audit(on)
	m.judgeUnmatched(on)
	m.checkStatements(on)
	m.checkSelections(on)
	m.checkFigures(on)
	m.checkEvidence(on)
	m.checkOptions(on, func(payout.State) bool { return true })
	m.checkFeed(on)
	m.checkFeedOf(on, event.PayoutFailed)
	m.checkFeedOf(on, event.SaleRefunded)
	m.checkDeliveries(on)
	m.checkDeliveryLists(on)
	m.checkPursued()
	net := map[payout.ID]money.Amount{}
	for _, move := range m.checkAllImported() {
		if w := m.model.payouts[payout.ID(move.ReferenceID)]; w != nil && w.state == payout.Completed {
			m.assert(referencesKept, w.last.UTR == move.UTR && w.last.GatewayID == move.PayoutID, move.ReferenceID,
				"payout %s has the references %q and %q, and at the gateway %q and %q", move.ReferenceID, w.last.GatewayID, w.last.UTR, move.PayoutID, move.UTR)
		}
		net[payout.ID(move.ReferenceID)] = money.Amount(move.Net)
		m.print("%s %d %d %s %s\n", move.ReferenceID, move.Debit, move.Credit, move.PayoutID, move.Status)
	}
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		m.judgePayout(id, w, net[id])
	}
	inReview := map[string]money.Amount{}
	for _, w := range m.model.payouts {
		if w.state == payout.ManualReview {
			inReview[w.seller] += w.amount
		}
	}
	for id, e := range m.model.sales {
		m.assert(releasedWhenDue, e.released, e.seller, "sale %s, which was due at %s, is not released", id, e.availableAt)
	}
	for _, s := range m.sellers {
		h := m.model.sellers[s.id]
		row := m.model.row(s.id)
		m.assert(releasedWhenDue, row.Pending == 0, s.id, "%s has %d pending, and all holds are over", s.id, row.Pending)
		lowered := m.model.lowered(s.id)
		m.assert(nobodyOverpaid, row.Available >= -h.refunded-lowered-inReview[s.id], s.id,
			"%s has %d; refunds of %d, adjustments of %d and payouts in review of %d explain less", s.id, row.Available, h.refunded, lowered, inReview[s.id])
	}
}

func (m *market) judgePayout(id payout.ID, w *withdrawal, net money.Amount) {
	m.assert(entriesAreTrue, w.gateway == net || w.state == payout.ManualReview, string(id), "by its entries, %d of payout %s left through the gateway, by whose record it is %d", w.gateway, id, net)
	switch {
	case w.state == payout.ManualReview:
		m.assert(allEnd, w.sentToReview || m.tally.restores > 0 || m.clock().Sub(w.sentAt) >= m.gateways.named(w.at).runsOut()-maxOff, string(id),
			"payout %s is in review, sent at %s", id, w.sentAt)
	case kindOf(w.state) == underWay:
		m.assert(allEnd, false, string(id), "payout %s is %s for ever, due at %s; %s stayed with the bank", id, w.state, time.UnixMicro(w.due).UTC(), fmt.Sprint(net))
	case w.state == payout.Completed:
		m.assert(endsAsAtGateway, net == w.net(), string(id), "payout %s is completed, and %d of %d stayed with the bank", id, net, w.net())
	default:
		m.assert(endsAsAtGateway, net == 0, string(id), "payout %s is %s, and %d stayed with the bank", id, w.state, net)
	}
}
