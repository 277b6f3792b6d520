package simulate

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// checkTampering plays an attacker who can write to the database and has no key, once all else is over. While a row or an
// entry is not what the service wrote, no money moves because of it, and the audit reports it. When it is repaired, what
// waited goes on.
func (m *market) checkTampering() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil || !m.anyFaults() {
		return
	}
	raw, err := sql.Open("sqlite", "file:"+m.datastoreFile()+"?_pragma=busy_timeout(10000)")
	if !m.assert(datastoreReadable, err == nil, "", "open the ledger beside the service: %v", err) {
		return
	}
	defer raw.Close()
	t := &tamperer{m: m, on: on, raw: raw, s: s}
	for _, act := range []func(){
		t.raiseSale, t.raiseBalance, t.raisePayout, t.forgeEntry, t.dropEntry, t.hideSale, t.hideRelease, t.redirectAccount, t.raisePayoutUnderWay, t.hidePause, t.rewindPayout,
		t.dropRefund, t.loseStep, t.raiseEarnings, t.rescheduleSale, t.repeatRefund, t.dropEvent, t.repeatEvent, t.loseFeed, t.countAhead, t.leaveCheckpoint,
		t.addRefund, t.hurryPayout,
	} {
		if m.violation == nil && (!m.isLong() || m.chance(250)) { // a long run has a large ledger to audit twice for each, and often other marketplaces
			act()
		}
	}
	if m.violation == nil {
		m.audit(on)
	}
}

// tamperer writes to the ledger beside the service.
type tamperer struct {
	m   *market
	on  *instance
	raw *sql.DB
	s   *seller
}

// write changes rows, and returns what puts them right.
func (t *tamperer) write(table, set, where string, args ...any) (putRight func()) {
	m := t.m
	column, _, _ := strings.Cut(set, " ")
	rows := t.rows(table, where)
	m.assert(datastoreReadable, len(rows) == 1, "", "%d rows are to be tampered with (%s, %s)", len(rows), table, where)
	t.do(`UPDATE `+table+` SET `+set+` WHERE `+where, args...)
	return func() { t.do(`UPDATE `+table+` SET `+column+` = ? WHERE `+where, rows[0][column]) }
}

func (t *tamperer) do(statement string, args ...any) {
	if _, err := t.raw.ExecContext(t.m.ctx, statement, args...); err != nil {
		t.m.broken(datastoreReadable, "", "tamper with the ledger: "+err.Error())
	}
}

// rows reads rows of a table, by the names of their columns.
func (t *tamperer) rows(table, where string) (list []map[string]any) {
	rows, err := t.raw.QueryContext(t.m.ctx, `SELECT * FROM `+table+` WHERE `+where) //nolint:gosec // both are written here
	if err != nil {
		t.m.broken(datastoreReadable, "", "read the ledger beside the service: "+err.Error())
		return nil
	}
	defer rows.Close()
	columns, err := rows.Columns()
	for rows.Next() {
		values, into, row := make([]any, len(columns)), make([]any, len(columns)), map[string]any{}
		for i := range values {
			into[i] = &values[i]
		}
		err = errors.Join(err, rows.Scan(into...))
		for i, column := range columns {
			row[column] = values[i]
		}
		list = append(list, row)
	}
	if err := errors.Join(err, rows.Err()); err != nil {
		t.m.broken(datastoreReadable, "", "read the ledger beside the service: "+err.Error())
	}
	return list
}

// whileTampered lets time pass, wants the audit to find what was tampered with, and puts it right.
func (t *tamperer) whileTampered(subject, finding string, lasts time.Duration, putRight ...func()) {
	m := t.m
	m.tampered = subject
	m.note(subject, t.s.id, "tampered with in the database:")
	m.pass(m.now + lasts)
	report, err := t.on.db.Audit(m.ctx, m.keys)
	at := slices.IndexFunc(report.Findings, func(f ledger.Finding) bool { return f.Name == finding && len(f.Violations) > 0 })
	m.assert(tamperingFound, m.violation != nil || err == nil && at >= 0, subject, "%s was tampered with, and the audit does not find it under %s (error %v)", subject, finding, err)
	for _, right := range putRight {
		right()
	}
	m.tampered = ""
	m.note(subject, t.s.id, "tampering undone:")
}

// repair has an operator rebuild a row from the journal, or now and then puts it right by hand.
func (t *tamperer) repair(subject string, putRight func()) func() {
	m := t.m
	if m.chance(200) {
		return putRight
	}
	return func() { t.rebuild(subject) }
}

// rebuild has an operator rebuild a row from the journal.
func (t *tamperer) rebuild(subject string) {
	m := t.m
	done, err := t.on.db.Repair(m.ctx, m.keys, "simulated", m.clock(), true)
	isDone := slices.ContainsFunc(done, func(r store.Repair) bool { return r.Subject == subject && r.Impossible == "" })
	m.assert(tamperingFound, err == nil && isDone, t.s.id, "%s was tampered with, and a repair does %+v (error %v)", subject, done, err)
	m.follow(t.on, t.s.id)
	for _, r := range done {
		id := payout.ID(r.Subject)
		if w := m.model.payouts[id]; w != nil {
			w.last, err = t.on.db.Payout(m.ctx, id)
			m.assert(tamperingFound, err == nil && w.last.Amount == w.amount && w.last.State == w.state, r.Subject, "payout %s was repaired, and is %+v (error %v)", id, w.last, err)
			m.payoutDue(id, w, w.last.DueAt)
		}
	}
}

// sale is one that is to be recorded.
func (t *tamperer) sale(amount money.Amount, assert time.Duration) sale.NewSale {
	m, s := t.m, t.s
	s.sold++
	return sale.NewSale{ID: fmt.Sprintf("order-%s-%d", s.id, s.sold), Seller: s.id, Amount: amount, OccurredAt: m.clock(), AvailableAt: m.clock().Add(assert)}
}

// earn records a sale and returns its id.
func (t *tamperer) earn(amount money.Amount, assert time.Duration) string {
	m, s, n := t.m, t.s, t.sale(amount, assert)
	m.spawn(0, "marketplace", func() { m.recordSale(n) })
	m.pass(m.now + 5*time.Second)
	m.assert(answersAreTrue, m.violation != nil || m.model.sales[n.ID] != nil, s.id, "sale %s was not recorded", n.ID)
	return n.ID
}

// request asks for a payout that there is enough for, and stops before it is sent.
func (t *tamperer) request() payout.ID {
	m, s := t.m, t.s
	if available := m.model.row(s.id).Available; available < 2*minimum {
		t.earn(2*minimum-min(available, 0), 0)
		m.pass(m.now + time.Minute)
	}
	a := &ask{seller: s.id, amount: minimum + 100, notes: s.temper.name}
	m.spawn(0, "seller "+s.name, func() { m.send(a) })
	m.pass(m.now + cancelWindow/2)
	m.assert(answersAreTrue, m.violation != nil || a.made != "", s.id, "%s has enough for a payout, and it was refused", s.id)
	return a.made
}

// requestOfAnother has another seller ask for a payout, which is to be sent whatever was tampered with of the first. It returns "" where nobody can.
func (t *tamperer) requestOfAnother() payout.ID {
	m := t.m
	for _, s := range m.sellers {
		h := m.model.sellers[s.id]
		a := m.model.accounts[h.current]
		if s == t.s || a == nil || a.status != bank.StatusVerified || m.model.row(s.id).Available < minimum || h.holdUntil > m.clock().Add(-time.Hour).UnixMicro() || m.model.stopped(s.id) {
			continue
		}
		other := &ask{seller: s.id, amount: minimum, notes: s.temper.name}
		m.spawn(0, "seller "+s.name, func() { m.send(other) })
		m.pass(m.now + time.Second)
		m.assert(answersAreTrue, m.violation != nil || other.made != "", s.id, "%s has enough for a payout, and it was refused", s.id)
		return other.made
	}
	return ""
}

// try makes a call, and wants it to be refused because of the tampering.
func (t *tamperer) try(what string, call func() error) {
	m := t.m
	m.spawn(0, "tamperer", func() {
		err := errLost
		_ = m.call(t.on, func() error { err = call(); return err })
		m.assert(tamperingFound, errors.Is(err, ledger.ErrTampered) || errors.Is(err, payout.ErrPayoutTampered), t.s.id, "%s was answered with %v", what, err)
	})
	m.pass(m.now + time.Second)
}

// wantPaid wants a repaired payout to be paid.
func (t *tamperer) wantPaid(id payout.ID) {
	m := t.m
	m.pass(m.now + 4*time.Hour)
	w := m.model.payouts[id]
	m.assert(tamperingFound, m.violation != nil || w.state == payout.Completed && w.last.Discrepancy == "", string(id),
		"payout %s was repaired, and is %s with the discrepancy %q", id, w.state, w.last.Discrepancy)
}

// wantUnsent wants a payout that was tampered with not to be sent, and a discrepancy.
func (t *tamperer) wantUnsent(id payout.ID) {
	w := t.m.model.payouts[id]
	t.m.assert(tamperingFound, t.m.violation != nil || w.state == payout.Waiting && !t.m.gateways.has(id) && w.last.IsTampered(), string(id),
		"payout %s was tampered with before it was sent; it is %s with the discrepancy %q, and the gateway has a transfer: %t",
		id, w.state, w.last.Discrepancy, t.m.gateways.has(id))
}

// raiseSale makes a pending sale ten times as large.
func (t *tamperer) raiseSale() {
	m := t.m
	id := t.earn(2*minimum, time.Hour)
	putRight := t.write("sales", "amount = amount * 10", quote("id", id))
	m.tampered = id
	t.try("a refund of a sale that was tampered with", func() error {
		_, _, _, err := t.on.sales.Refund(m.ctx, sale.NewRefund{Sale: id, ID: "refund-tampered", Amount: 100})
		return err
	})
	t.whileTampered(id, "sales-match-journal", 2*time.Hour, t.repair(sale.SubjectPrefix+id, putRight))
	m.assert(tamperingFound, m.violation != nil || !m.model.sales[id].released, t.s.id, "sale %s was tampered with, and is released", id)
	m.pass(m.now + 3*time.Hour)
	m.assert(tamperingFound, m.violation != nil || m.model.sales[id].released, t.s.id, "sale %s was repaired, and is not released", id)
}

// raiseBalance adds to what a seller has, and asks for it.
func (t *tamperer) raiseBalance() {
	m := t.m
	const more = 1_000_000_00
	asks := max(m.model.row(t.s.id).Available, 0) + more/2
	putRight := t.write("journals", fmt.Sprintf("available = available + %d", more), quote("owner", t.s.id))
	t.try("a request for what was written into the balance", func() error {
		_, _, err := t.on.payouts.Request(m.ctx, payout.Request{Seller: t.s.id, Amount: asks})
		return err
	})
	t.whileTampered(t.s.id, "journals-are-whole", time.Minute, t.repair(t.s.id, putRight))
	m.compareRows(t.on, []string{t.s.id})
}

// raisePayout makes a payout three times as large, and tries to cancel it.
func (t *tamperer) raisePayout() {
	m, id := t.m, t.request()
	putRight := t.write("payouts", "amount = amount * 3", quote("id", string(id)))
	others := t.requestOfAnother()
	m.tampered = string(id)
	t.try("the cancellation of a payout that was tampered with", func() error {
		_, _, err := t.on.payouts.Cancel(m.ctx, payout.Caller{User: t.s.id}, id, "")
		return err
	})
	t.whileTampered(string(id), "payouts-match-journal", 15*time.Minute, func() { t.wantUnsent(id) }, t.repair(string(id), putRight))
	m.assert(tamperingFound, m.violation != nil || others == "" || m.gateways.has(others), string(others), "a payout of %s was tampered with, and payout %s of another seller is not sent", t.s.id, others)
	t.wantPaid(id)
}

// forgeEntry rewrites the entry of a payout's request to another bank account, with all that needs no key.
func (t *tamperer) forgeEntry() {
	m, id, other := t.m, t.request(), t.otherAccount()
	t.earn(minimum, time.Hour) // an entry behind it
	entries, err := t.on.db.EntriesAbout(m.ctx, t.s.id, string(id))
	if other == "" || !m.assert(datastoreReadable, err == nil && len(entries) > 0, string(id), "the entries of payout %s: %v", id, err) {
		return
	}
	e := entries[0]
	e.Data = strings.Replace(e.Data, string(m.model.payouts[id].account), string(other), 1)
	e.Hash = e.Before.Next(e.Own())
	where := fmt.Sprintf("%s AND number = %d", quote("owner", e.Owner), e.Number)
	t.whileTampered(string(id), "journals-are-whole", 15*time.Minute,
		t.write("payouts", "bank_account_id = ?", quote("id", string(id)), string(other)),
		t.write("entries", "data = ?", where, e.Data), t.write("entries", "hash = ?", where, string(e.Hash)))
	t.wantUnsent(id)
	t.wantPaid(id)
}

// otherAccount is another seller's bank account that the gateway knows, or "".
func (t *tamperer) otherAccount() bank.ID {
	for _, s := range t.m.sellers {
		current := t.m.model.sellers[s.id].current
		if a := t.m.model.accounts[current]; a != nil && a.beneficiary != "" && s != t.s {
			return current
		}
	}
	return ""
}

// rewindPayout deletes the entries that tell that a payout was sent and paid, once the journal was found whole with them, and puts its row
// back to what it was before. Then its seller cancels it.
func (t *tamperer) rewindPayout() {
	m, id := t.m, t.request()
	where := quote("id", string(id))
	before := t.rows("payouts", where)
	t.wantPaid(id)
	paid := t.rows("payouts", where)
	behind := fmt.Sprintf("%s AND %s AND type <> 'payout.requested'", quote("owner", t.s.id), quote("subject", string(id)))
	entries := t.rows("entries", behind)
	if m.violation != nil || !m.assert(datastoreReadable, len(before) == 1 && len(paid) == 1 && len(entries) > 0, string(id), "payout %s has %d rows and %d entries", id, len(paid), len(entries)) {
		return
	}
	before[0]["due_at"] = nil // or it would be found to be tampered with by its own step
	t.do(`DELETE FROM entries WHERE ` + behind)
	t.put("payouts", where, before[0])
	m.tampered = string(id)
	t.try("the cancellation of a payout that was paid, and whose entries were deleted", func() error {
		_, _, err := t.on.payouts.Cancel(m.ctx, payout.Caller{User: t.s.id}, id, "")
		return err
	})
	t.whileTampered(string(id), "journals-are-whole", time.Minute, func() { t.insert("entries", entries) }, func() { t.put("payouts", where, paid[0]) })
}

// dropRefund deletes the entry of a refund, and all else that tells of it, before the sale is released. A sale that is newer is released with it.
func (t *tamperer) dropRefund() {
	m, n := t.m, t.sale(2*minimum, time.Hour)
	n.ID = "refunded-" + n.ID // which is looked at after the newer one
	refund := sale.NewRefund{Sale: n.ID, ID: "refund-dropped", Amount: minimum}
	m.spawn(0, "marketplace", func() {
		m.recordSale(n)
		m.recordRefund(refund)
	})
	m.pass(m.now + 5*time.Second)
	t.earn(minimum, 4*time.Hour) // an entry between them
	newer := t.sale(minimum, time.Hour)
	newer.AvailableAt = n.AvailableAt
	m.spawn(0, "marketplace", func() { m.recordSale(newer) })
	m.pass(m.now + 5*time.Second)
	e := m.model.sales[n.ID]
	if m.violation != nil || !m.assert(answersAreTrue, e != nil && e.refunded == minimum && m.model.sales[newer.ID] != nil, t.s.id, "sale %s and its refund were not recorded", n.ID) {
		return
	}
	ofEntry := fmt.Sprintf("%s AND %s AND type = 'sale.refunded'", quote("owner", t.s.id), quote("subject", sale.SubjectPrefix+n.ID))
	ofRefund := quote("sale_id", n.ID)
	entries, refunds := t.rows("entries", ofEntry), t.rows("sale_refunds", ofRefund)
	putRight := t.write("sales", "refunded = 0", quote("id", n.ID))
	t.do(`DELETE FROM entries WHERE ` + ofEntry)
	t.do(`DELETE FROM sale_refunds WHERE ` + ofRefund)
	t.whileTampered(n.ID, "journals-are-whole", 2*time.Hour, putRight, func() { t.insert("entries", entries) }, func() { t.insert("sale_refunds", refunds) })
	m.assert(tamperingFound, m.violation != nil || !e.released, t.s.id, "the refund of sale %s was deleted, and the sale is released", n.ID)
	m.pass(m.now + 3*time.Hour)
	m.assert(tamperingFound, m.violation != nil || e.released, t.s.id, "the refund of sale %s is there again, and the sale is not released", n.ID)
}

// raiseEarnings adds to what a seller earned in a month of which a part was refunded.
func (t *tamperer) raiseEarnings() {
	m := t.m
	id := t.earn(2*minimum, 0)
	m.spawn(0, "marketplace", func() { m.recordRefund(sale.NewRefund{Sale: id, ID: "refund-1", Amount: minimum}) })
	m.pass(m.now + 5*time.Second)
	where := quote("seller_id", t.s.id) + " AND " + quote("month", t.on.now().In(indianTime).Format("2006-01"))
	putRight := t.write("earnings", "amount = amount + 1000", where)
	t.whileTampered(t.s.id, "earnings-match-sales", time.Minute, t.repair(t.s.id, putRight))
	if m.violation == nil {
		m.readOverview(t.on, t.s)
	}
}

// rescheduleSale has a sale looked at before its holding period is over, and then has that period end now.
func (t *tamperer) rescheduleSale() {
	m := t.m
	id := t.earn(2*minimum, 4*time.Hour)
	where := quote("id", id)
	dueAt := t.write("sales", "due_at = ?", where, m.clock().UnixMicro())
	m.tampered = id
	m.pollNow(sales)
	m.pass(m.now + time.Minute)
	m.assert(tamperingFound, m.violation != nil || !m.model.sales[id].released, t.s.id, "sale %s was made due in the database, and is released", id)
	availableAt := t.write("sales", "available_at = ?", where, m.clock().UnixMicro())
	t.write("sales", "due_at = ?", where, m.clock().UnixMicro())
	m.pollNow(sales)
	t.whileTampered(id, "sales-match-journal", 30*time.Minute, availableAt, dueAt)
	m.assert(tamperingFound, m.violation != nil || !m.model.sales[id].released, t.s.id, "the holding period of sale %s was ended in the database, and the sale is released", id)
	m.pass(m.now + 4*time.Hour)
	m.assert(tamperingFound, m.violation != nil || m.model.sales[id].released, t.s.id, "sale %s was repaired, its holding period is over, and it is not released", id)
}

// repeatRefund deletes what tells that a refund was recorded, and records it again.
func (t *tamperer) repeatRefund() {
	m := t.m
	refund, rows := t.refund("refund-repeated")
	where := quote("sale_id", refund.Sale)
	t.do(`DELETE FROM sale_refunds WHERE ` + where)
	m.tampered = refund.Sale
	t.try("a refund that is in the journal and not in its table", func() error {
		_, _, _, err := t.on.sales.Refund(m.ctx, refund)
		return err
	})
	t.whileTampered(refund.Sale, "sales-match-journal", time.Minute, t.repair(sale.SubjectPrefix+refund.Sale, func() { t.insert("sale_refunds", rows) }))
}

// refund refunds a part of a new sale, and returns the refund and its row.
func (t *tamperer) refund(id string) (sale.NewRefund, []map[string]any) {
	m, refund := t.m, sale.NewRefund{ID: id, Sale: t.earn(3*minimum, 0), Amount: minimum}
	m.spawn(0, "marketplace", func() { m.recordRefund(refund) })
	m.pass(m.now + 5*time.Second)
	return refund, t.rows("sale_refunds", quote("sale_id", refund.Sale))
}

// addRefund adds a refund to its table that nobody made.
func (t *tamperer) addRefund() {
	refund, rows := t.refund("refund-made")
	for _, row := range rows {
		row["id"] = "refund-added"
	}
	t.insert("sale_refunds", rows)
	t.whileTampered(refund.Sale, "sales-match-journal", time.Minute, t.repair(sale.SubjectPrefix+refund.Sale, func() {
		t.do(`DELETE FROM sale_refunds WHERE ` + quote("id", "refund-added"))
	}))
}

// insert adds rows.
func (t *tamperer) insert(table string, rows []map[string]any) {
	for _, row := range rows {
		columns := slices.Sorted(maps.Keys(row))
		values := make([]any, len(columns))
		for i, column := range columns {
			values[i] = row[column]
		}
		t.do(`INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) VALUES (`+strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ")+`)`, values...)
	}
}

// dropEvent takes the newest event out of the feed, as if the service had never queued it.
func (t *tamperer) dropEvent() {
	m := t.m
	t.earn(minimum, time.Hour)
	m.pass(m.now + time.Minute)
	const newest = `number = (SELECT MAX(number) FROM events)`
	rows := t.rows("events", newest)
	if !m.assert(datastoreReadable, m.violation != nil || len(rows) == 1, t.s.id, "there are %d newest events", len(rows)) || len(rows) == 0 {
		return
	}
	t.do(`DELETE FROM events WHERE ` + newest)
	t.do(`UPDATE event_feed SET last = last - 1`)
	t.whileTampered(t.s.id, "events-match-journal", 0, func() { t.insert("events", rows) }, func() { t.do(`UPDATE event_feed SET last = last + 1`) })
}

// repeatEvent has the feed tell of the newest event twice.
func (t *tamperer) repeatEvent() {
	t.do(`INSERT INTO events (number, id, owner, entry, type) SELECT number + 1, id || '2', owner, entry, type FROM events WHERE number = (SELECT MAX(number) FROM events)`)
	t.do(`UPDATE event_feed SET last = last + 1`)
	t.whileTampered(t.s.id, "events-match-journal", 0, func() {
		t.do(`DELETE FROM events WHERE number = (SELECT MAX(number) FROM events)`)
		t.do(`UPDATE event_feed SET last = last - 1`)
	})
}

// loseFeed deletes the row that counts the events, so that new ones get no numbers until a repair.
func (t *tamperer) loseFeed() {
	t.do(`DELETE FROM event_feed`)
	t.whileTampered(t.s.id, "events-match-journal", 0, func() { t.rebuild("event feed") })
	t.earn(minimum, time.Hour)
}

// countAhead has the feed count more events than there are. The marketplace may have read those, so a repair gives their numbers to no others.
func (t *tamperer) countAhead() {
	m := t.m
	t.do(`UPDATE event_feed SET last = last + 3`)
	t.whileTampered(t.s.id, "events-match-journal", 0, func() {
		done, err := t.on.db.Repair(m.ctx, m.keys, "simulated", m.clock(), true)
		isDone := slices.ContainsFunc(done, func(r store.Repair) bool { return r.Subject == "event feed" })
		m.assert(tamperingFound, err == nil && !isDone, t.s.id, "the feed counts more events than there are, and a repair does %+v (error %v)", done, err)
		t.do(`UPDATE event_feed SET last = last - 3`)
	})
}

// leaveCheckpoint leaves what a checkpoint that was never finished would have of the seller's journal. The next one has the journal as it is
// then, which the audit compares.
func (t *tamperer) leaveCheckpoint() {
	m := t.m
	t.do(`INSERT INTO checkpoint_journals (seller_id, checkpoint, number, totals, hash) SELECT seller_id, (SELECT MAX(number) + 1 FROM checkpoints), number, totals, hash
		FROM checkpoint_journals WHERE seller_id = ? ORDER BY checkpoint DESC LIMIT 1`, t.s.id)
	t.earn(minimum, time.Hour)
	m.spawn(0, "operator", func() {
		m.try(t.on, "checkpoint", func() error { _, err := t.on.proofs.Make(m.ctx, proof.Trust{}); return err })
	})
	m.pass(m.now + time.Minute)
	m.audit(t.on)
}

// dropEntry deletes an entry of the seller behind a payout's request.
func (t *tamperer) dropEntry() {
	m, id := t.m, t.request()
	t.earn(minimum, time.Hour)
	where := fmt.Sprintf("%s AND number = %d", quote("owner", t.s.id), m.model.journal(t.s.id).Number)
	rows := t.rows("entries", where)
	if !m.assert(datastoreReadable, len(rows) == 1, t.s.id, "%s has %d entries with one number", t.s.id, len(rows)) {
		return
	}
	t.do(`DELETE FROM entries WHERE ` + where)
	t.wantNoStatement()
	t.whileTampered(string(id), "journals-are-whole", 15*time.Minute, func() { t.insert("entries", rows) })
	t.wantUnsent(id)
	t.wantPaid(id)
}

// wantNoStatement has a checkpoint made, and asks for a statement of the seller, whose newest entry is gone: it would prove that nothing came after.
func (t *tamperer) wantNoStatement() {
	m := t.m
	_, err := t.on.proofs.Make(m.ctx, proof.Trust{})
	m.assert(checkpointsMade, err == nil, "", "make a checkpoint: %v", err)
	_, err = t.on.proofs.Statement(m.ctx, t.s.id, m.start, m.clock().Add(time.Hour))
	m.assert(statementsProve, err != nil, t.s.id, "the newest entry of %s was deleted, and a statement is made all the same", t.s.id)
}

// hideSale makes the entry of a sale one about something else, once the journal was found whole with it. The marketplace could
// record the sale again now; here it records another one.
func (t *tamperer) hideSale() {
	m, hidden := t.m, t.earn(2*minimum, 0)
	m.pass(m.now + time.Minute)
	t.wantPaid(t.request())
	m.tampered = t.s.id
	entries, err := t.on.db.EntriesAbout(m.ctx, t.s.id, sale.SubjectPrefix+hidden)
	if !m.assert(datastoreReadable, err == nil && len(entries) > 0, t.s.id, "the entries of sale %s: %v", hidden, err) {
		return
	}
	where := fmt.Sprintf("%s AND number = %d", quote("owner", t.s.id), entries[0].Number)
	putRight := t.write("entries", "subject = ?", where, "hidden")
	t.earn(2*minimum, 0)
	m.pass(m.now + time.Minute)
	id := t.request()
	t.whileTampered(t.s.id, "journals-are-whole", 15*time.Minute, putRight)
	t.wantUnsent(id)
	t.wantPaid(id)
}

// hideRelease takes the release of a sale out of the index by which it is looked for, and says in the sale's row that it is due. The definition
// of the index says nothing of it.
func (t *tamperer) hideRelease() {
	m, id := t.m, t.earn(2*minimum, 0)
	m.pass(m.now + time.Minute)
	if m.violation != nil || !m.assert(releasedWhenDue, m.model.sales[id].released, t.s.id, "sale %s is due, and not released", id) {
		return
	}
	const index = "CREATE INDEX entries_about ON entries (subject, owner, number)"
	release := fmt.Sprintf("type = 'sale.released' AND %s", quote("subject", sale.SubjectPrefix+id))
	m.tampered = id
	t.do(`BEGIN IMMEDIATE; DROP INDEX entries_about; ` + index + ` WHERE NOT (` + release + `); PRAGMA writable_schema = ON;
		UPDATE sqlite_master SET sql = '` + index + `' WHERE name = 'entries_about'; COMMIT; PRAGMA writable_schema = RESET`)
	where := quote("id", id)
	putRight := []func(){t.write("sales", "released_at = NULL", where), t.write("sales", "due_at = ?", where, m.clock().UnixMicro()), func() { t.do(`REINDEX entries_about`) }}
	m.pollNow(sales)
	t.whileTampered(id, "file-is-sound", 2*time.Hour, putRight...)
	releases := t.rows("entries", release)
	m.assert(tamperingFound, m.violation != nil || len(releases) == 1, t.s.id, "the release of sale %s was hidden from an index, and it is released %d times", id, len(releases))
}

// redirectAccount has the gateway pay a seller's bank account to another person's, while one payout to it is under way and another one waits.
func (t *tamperer) redirectAccount() {
	m, other := t.m, t.otherAccount()
	if other == "" {
		return
	}
	sent := t.request()
	m.gateways.settle(20 * time.Minute)
	m.pass(m.now + cancelWindow)
	id := t.request()
	account := m.model.payouts[id].account
	t.write("bank_accounts", "beneficiary = ?", quote("id", string(account)), m.model.accounts[other].beneficiary)
	t.whileTampered(string(id), "bank-accounts-match-journal", 15*time.Minute, func() { t.wantUnsent(id) }, func() { t.rebuild(string(account)) })
	m.gateways.settle(usualSettling)
	for _, earlier := range slices.Sorted(maps.Keys(m.model.payouts)) { // what the gateway said of them was held against another account
		w := m.model.payouts[earlier]
		m.assert(tamperingFound, m.violation != nil || w.account != account || !w.last.DiffersInAccount(), string(earlier), "bank account %s was repaired, and payout %s has the discrepancy %q", account, earlier, w.last.Discrepancy)
	}
	t.wantPaid(id)
	t.wantPaid(sent)
}

// raisePayoutUnderWay has more come from a payout than was reserved, when the gateway has paid it.
func (t *tamperer) raisePayoutUnderWay() {
	m, id := t.m, t.request()
	m.gateways.settle(20 * time.Minute)
	m.pass(m.now + 5*time.Minute)
	where := quote("id", string(id))
	m.assert(answersAreTrue, m.violation != nil || m.model.payouts[id].state == payout.Submitted, string(id), "payout %s is %s and should be under way", id, m.model.payouts[id].state)
	t.whileTampered(string(id), "payouts-match-journal", time.Hour,
		t.write("payouts", "amount = amount + 5000", where), t.write("payouts", "fee = fee + 5000", where))
	m.gateways.settle(usualSettling)
	w := m.model.payouts[id]
	m.assert(tamperingFound, m.violation != nil || w.state == payout.Submitted && w.last.IsTampered(), string(id),
		"payout %s was tampered with before it was paid, and is %s with the discrepancy %q", id, w.state, w.last.Discrepancy)
	t.wantPaid(id)
}

// loseStep takes the next step of a payout that waits away. A repair gives it one.
func (t *tamperer) loseStep() {
	id := t.request()
	t.write("payouts", "due_at = NULL", quote("id", string(id)))
	t.whileTampered(string(id), "nothing-is-stuck", time.Hour, func() { t.rebuild(string(id)) })
	t.wantPaid(id)
}

// hurryPayout makes a payout due that can still be cancelled. It is not sent before its time: who cancels it does not ask the gateway.
func (t *tamperer) hurryPayout() {
	m, id := t.m, t.request()
	w, now := m.model.payouts[id], m.clock()
	t.write("payouts", "due_at = ?", quote("id", string(id)), now.UnixMicro())
	m.payoutDue(id, w, now)
	m.pass(m.now + cancelWindow/3)
	m.assert(windowIsKept, m.violation != nil || w.state == payout.Waiting && w.takes > 0, string(id), "payout %s was made due in the database, was taken up %d times, and is %s", id, w.takes, w.state)
	t.wantPaid(id)
}

// hidePause puts the platform's balance back to what it was before an admin paused payouts. The service wrote both.
func (t *tamperer) hidePause() {
	m, id := t.m, t.request()
	where := quote("owner", decision.Platform)
	before := t.rows("journals", where)
	m.stopping[decision.Platform] = true // or it would be resumed as forgotten
	m.spawn(0, admin, func() { _ = m.decideStop(decision.Platform, true) })
	m.pass(m.now + 5*time.Second)
	paused := t.rows("journals", where)
	if !m.assert(stopsKept, m.violation != nil || m.model.paused.stopped && len(before) == 1 && len(paused) == 1, "", "payouts are to be paused, and are not") {
		return
	}
	t.put("journals", where, before[0])
	t.whileTampered(decision.Platform, "journals-are-whole", 15*time.Minute, func() { t.put("journals", where, paused[0]) })
	w := m.model.payouts[id]
	m.assert(tamperingFound, m.violation != nil || w.state == payout.Waiting && !m.gateways.has(id) && w.last.Discrepancy == "", string(id),
		"payouts were paused, and that was hidden in the database; payout %s is %s with the discrepancy %q, and the gateway has a transfer: %t", id, w.state, w.last.Discrepancy, m.gateways.has(id))
	m.spawn(0, admin, func() { m.resume(decision.Platform) })
	m.pass(m.now + time.Minute)
	delete(m.stopping, decision.Platform)
	t.wantPaid(id)
}

// put writes all columns of a row.
func (t *tamperer) put(table, where string, row map[string]any) {
	for _, column := range slices.Sorted(maps.Keys(row)) {
		t.do(`UPDATE `+table+` SET `+column+` = ? WHERE `+where, row[column])
	}
}

// quote is a condition on a text, of which none here has a quote in it.
func quote(column, is string) string { return column + " = '" + is + "'" }

// verified finds a seller who can be paid, to an account that the gateway treats like any other.
func (m *market) verified() *seller {
	for _, s := range m.sellers {
		if a := m.model.accounts[m.model.sellers[s.id].current]; a != nil && a.status == bank.StatusVerified && a.beneficiary != "" && a.last4 >= "1000" {
			return s
		}
	}
	return nil
}
