package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// payoutFields are those of a payout's row.
var payoutFields = fields[payout.Payout]{
	asText("id", primaryKey, func(p *payout.Payout) *payout.ID { return &p.ID }),
	asText("seller_id", insertOnly, func(p *payout.Payout) *string { return &p.Seller }),
	asText("bank_account_id", insertOnly, func(p *payout.Payout) *bank.ID { return &p.BankAccountID }),
	asNumber("amount", insertOnly, func(p *payout.Payout) *money.Amount { return &p.Amount }),
	asNumber("fee", insertOnly, func(p *payout.Payout) *money.Amount { return &p.Fee }),
	asText("notes", insertOnly, func(p *payout.Payout) *string { return &p.Notes }),
	asText("rail", insertOnly, func(p *payout.Payout) *gateway.RailName { return &p.Rail }),
	asText("gateway", insertOnly, func(p *payout.Payout) *gateway.Name { return &p.Gateway }),
	asTime("requested_at", insertOnly, func(p *payout.Payout) *time.Time { return &p.RequestedAt }),
	asTime("arrive_at", insertOnly, func(p *payout.Payout) *time.Time { return &p.ArriveAt }),
	asText("state", mutable, func(p *payout.Payout) *payout.State { return &p.State }),
	{name: "status", isText: true, value: func(p *payout.Payout) any { return string(p.Status()) }},
	rare(orNull("sent_at", mutable, func(p *payout.Payout) *time.Time { return &p.SentAt })),
	rare(orNull("processed_at", mutable, func(p *payout.Payout) *time.Time { return &p.ProcessedAt })),
	rare(orNull("completed_at", mutable, func(p *payout.Payout) *time.Time { return &p.CompletedAt })),
	rare(orNull("ended_at", mutable, func(p *payout.Payout) *time.Time { return &p.EndedAt })),
	orNull("due_at", mutable, func(p *payout.Payout) *time.Time { return &p.DueAt }),
	rare(asNumber("tries", mutable, func(p *payout.Payout) *int { return &p.Tries })),
	rare(asText("order_body", mutable, func(p *payout.Payout) *string { return &p.OrderBody })),
	rare(asText("gateway_id", mutable, func(p *payout.Payout) *string { return &p.GatewayID })),
	rare(asText("progress", mutable, func(p *payout.Payout) *gateway.Progress { return &p.Progress })),
	rare(asText("utr", mutable, func(p *payout.Payout) *string { return &p.UTR })),
	rare(asText("reason_code", mutable, func(p *payout.Payout) *string { return &p.ReasonCode })),
	rare(asText("reason", mutable, func(p *payout.Payout) *string { return &p.Reason })),
	rare(asText("source", insertOnly, func(p *payout.Payout) *payout.Source { return &p.Source })),
	rare(asText("discrepancy", mutable, func(p *payout.Payout) *string { return &p.Discrepancy })),
}

var payoutTable = &table[payoutUpdate]{
	name: "payouts", texts: &sync.Map{},
	columns: within(func(p *payoutUpdate) *payout.Payout { return &p.Payout }, payoutFields,
		asText("state", expected, func(p *payoutUpdate) *payout.State { return &p.from })),
}

// payoutColumns are a payout with what is shown of its bank account.
var payoutColumns = payoutFields.names("p.") + `, CASE WHEN b.gateway = p.gateway THEN b.beneficiary ELSE '' END, b.holder, b.last4, b.ifsc`

const (
	// listColumns are what a list shows of it: every column of every row costs.
	listColumns = `p.id, p.amount, p.state, p.requested_at, p.arrive_at, p.completed_at, p.utr, b.last4`
	payoutFrom  = ` FROM payouts p JOIN bank_accounts b ON b.id = p.bank_account_id `
)

// payoutDest lists where payoutColumns are scanned to, and what more the query selects.
func payoutDest(p *payout.Payout, more ...any) []any {
	return append(payoutFields.dest(p, &p.Beneficiary, &p.AccountHolder, &p.AccountLast4, &p.AccountIFSC), more...)
}

var (
	selectPayouts = `SELECT ` + payoutColumns + payoutFrom
	payoutByID    = selectPayouts + `WHERE p.id = $1`
)

var idempotencyTable = &table[idempotencyRow]{
	name: "idempotency_keys", texts: &sync.Map{},
	columns: []column[idempotencyRow]{
		asText("user_id", primaryKey, func(k *idempotencyRow) *string { return &k.user }),
		asText("key", primaryKey, func(k *idempotencyRow) *string { return &k.key }),
		asText("fingerprint", insertOnly, func(k *idempotencyRow) *string { return &k.Fingerprint }),
		asText("payout_id", insertOnly, func(k *idempotencyRow) *payout.ID { return &k.Payout }),
		rare(asText("refusal", insertOnly, func(k *idempotencyRow) *string { return &k.Refusal })),
		asTime("created_at", insertOnly, func(k *idempotencyRow) *time.Time { return &k.at }),
	},
}

// AccountToPay finds the seller's current bank account with what a payout needs of it.
func (tx *Tx) AccountToPay(ctx context.Context, seller string) (bank.Account, error) {
	a := storedAccount{Account: bank.Account{Seller: seller, Current: true}}
	ok, err := tx.one(ctx, `SELECT id, holder, ifsc, last4, status, mac FROM bank_accounts WHERE seller_id = $1 AND is_current = 1`,
		[]any{seller}, &a.ID, &a.Holder, &a.IFSC, &a.Last4, &a.Status, &a.mac)
	if err == nil && !ok {
		err = bank.ErrNone
	}
	if err != nil {
		return a.Account, err
	}
	keys, err := tx.signer.get()
	if err == nil {
		err = a.check(keys)
	}
	return a.Account, err
}

// InsertPayout adds a payout that has just been asked for. It fails with [ledger.ErrTampered] if its id, which has just been
// made, is taken: an attacker inserted a row.
func (tx *Tx) InsertPayout(ctx context.Context, p payout.Payout) error {
	added, err := tx.ImportPayout(ctx, p)
	if err == nil && !added {
		err = tx.fail(ledger.ErrTampered.Because(fmt.Errorf("there is a payout %s already, which the service did not make", p.ID)))
	}
	return err
}

// ImportPayout adds a payout unless there is one with its id.
func (tx *Tx) ImportPayout(ctx context.Context, p payout.Payout) (bool, error) {
	return tx.write(ctx, payoutTable.insertsMissing(tx.dialect, []payoutUpdate{{Payout: p}}))
}

// DeleteUnrecordedPayout deletes the row of a payout that no journal knows: it is no projection of anything.
func (tx *Tx) DeleteUnrecordedPayout(ctx context.Context, id payout.ID) error {
	_, err := tx.exec(ctx, `DELETE FROM payouts WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM entries WHERE subject = $1)`, string(id))
	return err
}

// PayoutForUpdate finds a payout and keeps others from changing it until the transaction ends.
func (tx *Tx) PayoutForUpdate(ctx context.Context, id payout.ID) (payout.Payout, error) {
	return tx.payout(ctx, tx.dialect.forUpdate("p"), id)
}

func (tx *Tx) payout(ctx context.Context, lock string, id payout.ID) (payout.Payout, error) {
	var p payout.Payout
	ok, err := tx.one(ctx, payoutByID+lock, []any{string(id)}, payoutDest(&p)...)
	if err == nil && !ok {
		err = payout.ErrNotFound
	}
	return p, err
}

// Payout finds a payout as it is now.
func (tx *Tx) Payout(ctx context.Context, id payout.ID) (payout.Payout, error) {
	return tx.payout(ctx, "", id)
}

// UpdatePayout saves p if the stored state is still from.
func (tx *Tx) UpdatePayout(ctx context.Context, from payout.State, p payout.Payout) (bool, error) {
	return tx.write(ctx, payoutTable.updates(tx.dialect, []payoutUpdate{{p, from}}))
}

// LeaseDuePayouts leases payouts whose step is due, the longest due first. It fails with [SchemaError] while a trigger could undo what
// is written of them.
func (tx *Tx) LeaseDuePayouts(ctx context.Context, now, until time.Time, limit int) ([]payout.ID, error) {
	if err := tx.CheckTriggers(ctx); err != nil {
		return nil, err
	}
	return readAll(ctx, tx.each, `WITH due AS MATERIALIZED (
			SELECT id FROM payouts WHERE due_at <= $1 ORDER BY due_at LIMIT $3 + 0`+tx.dialect.skipLocked+`)
		UPDATE payouts SET due_at = $2 WHERE id IN (SELECT id FROM due) RETURNING id`,
		[]any{micros(now), micros(until), limit}, itself[payout.ID])
}

// ReschedulePayout makes the next step of a payout due now, unless it was never sent or is being sent.
func (tx *Tx) ReschedulePayout(ctx context.Context, id payout.ID, now time.Time) (bool, error) {
	return tx.execOne(ctx, `UPDATE payouts SET due_at = $2 WHERE id = $1 AND (state <> 'submitting' OR due_at > $3) AND (state <> 'waiting' OR sent_at IS NOT NULL)
		AND (due_at IS NULL OR due_at > $2)`, string(id), micros(now), micros(now.Add(longestLease)))
}

// longestLease is longer than a payout is being sent, even by a clock that is ahead. One that is due later was being sent by a clock that was wrong.
const longestLease = time.Hour

// RescheduleInFlight makes the next step of a gateway's payouts under way due now, but for those being sent or never sent. One that
// is being sent, or unknown and sent again, has a lease: the unknown one is due before leased.
func (tx *Tx) RescheduleInFlight(ctx context.Context, at gateway.Name, now, leased time.Time) (int64, error) {
	return tx.exec(ctx, `UPDATE payouts SET due_at = $2 WHERE due_at > $2 AND gateway = $1 AND state IN ('submitting', 'unknown', 'manual_review', 'submitted')
		AND (state NOT IN ('submitting', 'unknown') OR state = 'unknown' AND due_at > $3 OR due_at > $4)`,
		string(at), micros(now), micros(leased), micros(now.Add(longestLease)))
}

// AllowRun reports whether the caller may run the job with that name, which runs once in every period. It is a
// bucket that holds one attempt.
func (tx *Tx) AllowRun(ctx context.Context, name string, now time.Time, every time.Duration) (bool, error) {
	_, mine, err := tx.TakeThrottle(ctx, "lease:"+name, now, every, every)
	return mine, err
}

// SaveEvent notes the id of a gateway's event and reports whether it is new.
func (tx *Tx) SaveEvent(ctx context.Context, at gateway.Name, eventID string, now time.Time) (bool, error) {
	return tx.execOne(ctx, `INSERT INTO gateway_events (gateway, id, received_at) VALUES ($1, $2, $3) ON CONFLICT (gateway, id) DO NOTHING`,
		string(at), eventID, micros(now))
}

// Idempotency finds what an idempotency key stands for. The lock makes the COMMIT of a transaction that
// repeats an answer wait for the standby, which the first may not have reached.
func (tx *Tx) Idempotency(ctx context.Context, user, key string) (payout.Idempotency, error) {
	var m payout.Idempotency
	_, err := tx.one(ctx, `SELECT fingerprint, payout_id, refusal FROM idempotency_keys WHERE user_id = $1 AND key = $2`+
		tx.dialect.forUpdate("idempotency_keys"), []any{user, key}, &m.Fingerprint, &m.Payout, &m.Refusal)
	return m, err
}

// SaveIdempotency keeps what an idempotency key stands for unless it stands for something already.
func (tx *Tx) SaveIdempotency(ctx context.Context, user, key string, m payout.Idempotency, now time.Time) (bool, error) {
	return tx.write(ctx, idempotencyTable.insertsMissing(tx.dialect, []idempotencyRow{{ownedKey{user, key}, m, now}}))
}

// SaveIdempotencyRefusal adds why the request was refused to a key that this transaction saved.
func (tx *Tx) SaveIdempotencyRefusal(ctx context.Context, user, key, refusal string) error {
	_, err := tx.exec(ctx, `UPDATE idempotency_keys SET refusal = $3 WHERE user_id = $1 AND key = $2`, user, key, refusal)
	return err
}

// Forget deletes idempotency keys and gateway events from before the given instants, a batch at most.
func (tx *Tx) Forget(ctx context.Context, keysBefore, eventsBefore time.Time, limit int) (int64, error) {
	keys, err := tx.exec(ctx, `DELETE FROM idempotency_keys WHERE (user_id, key) IN (
		SELECT user_id, key FROM idempotency_keys WHERE created_at < $1 LIMIT $2 + 0`+tx.dialect.skipLocked+`)`, micros(keysBefore), limit)
	if err != nil {
		return 0, err
	}
	events, err := tx.exec(ctx, `DELETE FROM gateway_events WHERE (gateway, id) IN (
		SELECT gateway, id FROM gateway_events WHERE received_at < $1 LIMIT $2 + 0`+tx.dialect.skipLocked+`)`, micros(eventsBefore), limit)
	return keys + events, err
}

// Payout finds one.
func (db *DB) Payout(ctx context.Context, id payout.ID) (payout.Payout, error) {
	var p payout.Payout
	ok, err := found(db.queryRow(ctx, payoutByID, string(id)).Scan(payoutDest(&p)...))
	if err == nil && !ok {
		err = payout.ErrNotFound
	}
	return p, err
}

// ListPayouts lists those that f selects, newest first, and how many f selects in all. The total comes
// from counters, so that it costs the same however long the history is.
func (db *DB) ListPayouts(ctx context.Context, f payout.Filter) ([]payout.Payout, int64, error) {
	list := make([]payout.Payout, 0, f.Limit)
	page, args := db.dialect.pageOf(f)
	if f.Seller != "" && f.Offset == 0 { // it is read most, so the statement counts too
		var total int64
		err := db.query(ctx, page, args, scanListed(&list, &payout.Payout{Seller: f.Seller}, &total))
		return list, total, err
	}
	total, err := db.countPayouts(ctx, f)
	if err != nil || int64(f.Offset) >= total {
		return nil, total, err
	}
	var p payout.Payout
	err = db.query(ctx, page, args, scanListed(&list, &p, &p.Seller))
	return list, total, err
}

// scanListed scans each row of listColumns to p, what the row has beside them to more, and adds p to list.
func scanListed(list *[]payout.Payout, p *payout.Payout, more ...any) func(*row) {
	dest := append([]any{
		&p.ID, &p.Amount, &p.State,
		instant{&p.RequestedAt},
		instant{&p.ArriveAt},
		instant{&p.CompletedAt},
		&p.UTR, &p.AccountLast4,
	}, more...)
	return func(r *row) {
		r.Scan(dest...)
		*list = append(*list, *p)
	}
}

const payoutsInTransit = `SELECT ` + listColumns + payoutFrom + `WHERE p.seller_id = $1 AND p.status = 'processing' ORDER BY p.id DESC LIMIT $2 + 0`

// PayoutsInTransit lists a seller's payouts under way, newest first, with what a list shows of each, up to limit.
func (tx *Tx) PayoutsInTransit(ctx context.Context, seller string, limit int) ([]payout.Payout, error) {
	var list []payout.Payout
	err := tx.each(ctx, payoutsInTransit, []any{seller, limit}, scanListed(&list, &payout.Payout{Seller: seller}))
	return list, err
}

// pageOf reads a page. A seller's is read from the newest ends of the one history index, one end per status, which spares
// every request a second index.
func (d dialect) pageOf(f payout.Filter) (string, []any) {
	shape := pageShape{f.Seller != "", f.Offset == 0, d.historyOrder, f.Status}
	text, known := pageTexts.Load(shape)
	if !known {
		text = d.pageText(shape)
		pageTexts.Store(shape, text)
	}
	switch {
	case !shape.ofSeller:
		return text.(string), []any{f.Limit, f.Offset}
	case shape.first:
		return text.(string), []any{f.Limit, f.Seller}
	default:
		return text.(string), []any{f.Limit, f.Seller, f.Offset, f.Limit + f.Offset}
	}
}

// pageShape is what the text of a statement that reads a page depends on.
type pageShape struct {
	ofSeller, first bool
	historyOrder    string
	status          payout.Status
}

var pageTexts sync.Map // pageShape → text

// pageText writes the statement. Statuses are written out: a parameter would hide from the planner which index serves it.
// A seller's first page has the total beside each payout, and any other page the seller.
func (d dialect) pageText(s pageShape) string {
	const byIDs = `SELECT ` + listColumns + `, p.seller_id` + payoutFrom + `WHERE p.id IN (`
	const inOrder = `) ORDER BY p.id DESC`
	if !s.ofSeller {
		where := ""
		if s.status != "" {
			where = `WHERE status = ` + literal(s.status)
		}
		return byIDs + `SELECT id FROM payouts ` + where + ` ORDER BY id DESC LIMIT $1 + 0 OFFSET $2` + inOrder
	}
	statuses := payout.Statuses()
	if s.status != "" {
		statuses = []payout.Status{s.status}
	}
	if s.first { // a later page would read the columns of all rows before it
		return d.firstPage(d, statuses)
	}
	return byIDs + `SELECT id FROM (` + d.ends(`id`, statuses, `$4`) + `) AS ends ORDER BY ` + d.historyOrder + ` DESC LIMIT $1 + 0 OFFSET $3` + inOrder
}

// ends reads the columns of the newest payouts of a seller, $2, so many of each status.
func (d dialect) ends(columns string, statuses []payout.Status, limit string) string {
	ends := make([]string, len(statuses))
	for i, status := range statuses {
		ends[i] = `SELECT ` + columns + ` FROM (SELECT ` + columns + ` FROM payouts WHERE seller_id = $2 AND status = ` + literal(status) + `
			ORDER BY ` + d.historyOrder + ` DESC LIMIT ` + limit + ` + 0) AS end` + strconv.Itoa(i)
	}
	return strings.Join(ends, ` UNION ALL `)
}

// counted reads how many payouts of those statuses a seller, $2, has.
func counted(statuses []payout.Status) string {
	counters := []string{`0`}
	for _, status := range statuses {
		if slices.Contains(payout.Statuses(), status) {
			counters = append(counters, believable(string(status))) // as the counter of each is named
		}
	}
	return `COALESCE((SELECT ` + strings.Join(counters, ` + `) + ` FROM journals WHERE owner = $2), 0)`
}

// believable reads a counter of payouts as 0 if it is below that, or more than anyone ever requests. It was changed in the database
// then, and a sum with it may become too large to count, which would take the whole list away.
func believable(counter string) string {
	return `CASE WHEN ` + counter + ` BETWEEN 0 AND 1000000000000 THEN ` + counter + ` ELSE 0 END`
}

// literal quotes one of the four statuses; anything else becomes a status that no payout has.
func literal(status payout.Status) string {
	if !slices.Contains(payout.Statuses(), status) {
		return `''`
	}
	return `'` + string(status) + `'`
}

var (
	countersOf = `SELECT ` + eachCounter(believable) + `, owner FROM journals WHERE owner `
	allCounted = `SELECT ` + eachCounter(func(counter string) string { return `COALESCE(SUM(` + believable(counter) + `), 0)` }) + ` FROM journals`
)

// eachCounter lists what a function makes of each counter of payouts.
func eachCounter(read func(counter string) string) string {
	counters := texts(payout.Statuses())
	for i, counter := range counters {
		counters[i] = read(counter)
	}
	return strings.Join(counters, `, `)
}

// countPayouts reads the seller's counters, or sums all sellers' for an admin.
func (db *DB) countPayouts(ctx context.Context, f payout.Filter) (int64, error) {
	counters := []any{new(int64), new(int64), new(int64), new(int64)}
	var err error
	if f.Seller == "" {
		err = db.queryOne(ctx, allCounted, nil, counters...)
	} else {
		_, err = found(db.rowOf(ctx, countersOf, f.Seller).Scan(append(counters, &f.Seller)...))
	}
	total := int64(0)
	for i, status := range payout.Statuses() {
		if f.Status == "" || f.Status == status {
			total += *counters[i].(*int64)
		}
	}
	return total, err
}

// summaryOf reads what a seller's overview shows, with the whole row of the totals, so that its MAC can be checked. Every other column costs, so
// there are no more.
var summaryOf = `SELECT COALESCE(s.owner, ''), COALESCE(s.number, 0), COALESCE(s.hash, ''), COALESCE(s.mac, ''), COALESCE(` +
	strings.ReplaceAll(balanceFields.names("s."), ", ", ", 0), COALESCE(") + `, 0),
	COALESCE((SELECT amount FROM earnings WHERE seller_id = u.id AND month = $2), 0),
	COALESCE((SELECT amount FROM earnings WHERE seller_id = u.id AND month = $3), 0),
	COALESCE(a.last4, ''), COALESCE(a.ifsc, ''), COALESCE(a.status, '')
	FROM users u LEFT JOIN journals s ON s.owner = u.id
	LEFT JOIN bank_accounts a ON a.seller_id = u.id AND a.is_current = 1
	WHERE u.id = $1`

// Summary is what a seller's overview shows, in one read. It fails with [ledger.ErrTampered] if the row of the seller's totals is missing, or
// the service did not write it.
func (db *DB) Summary(ctx context.Context, seller, thisMonth, lastMonth string) (payout.Summary, error) {
	var s payout.Summary
	var head ledger.Head
	exists, err := found(db.queryRow(ctx, summaryOf, seller, thisMonth, lastMonth).Scan(
		headFields.dest(&head, &s.ThisMonth, &s.LastMonth, &s.Account.Last4, &s.Account.IFSC, &s.Account.Status)...))
	if err == nil && exists {
		err = db.checkTotals(ctx, seller, head.Owner != "", head)
	}
	if err != nil {
		return payout.Summary{}, err
	}
	b := head.Balance
	s.Pending, s.Available, s.InTransit, s.Earned, s.Withdrawn, s.Sales = b.Pending, b.Available, b.InTransit, b.Earned, b.Withdrawn, b.Counts.Sales
	if b.HoldUntil != 0 {
		s.HoldUntil = time.UnixMicro(b.HoldUntil).UTC()
	}
	return s, nil
}
