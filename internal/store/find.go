package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// An operator's selection is looked for where the fewest payouts can be: each source lists the ids that may be selected by an
// index, and selects says of each payout whether it is. A source that holds nothing is "": the ids themselves are in the order
// of the requests, so a range of them is a period. MATERIALIZED keeps a planner from another way.
//
// Their parameters are $1 and $2, between which ids are; $3 seller; $4 status; $5 state; $6 late at and $7 the latest next step
// of a late payout; $8 whether a discrepancy is wanted; $9 and $10 the least and the most amount; $11 bank; $12 reason; $13 and
// $14 when it was completed; $15 and $16 when it ended. Zero and "" select all.
const (
	ofDiscrepancy = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE discrepancy <> '' LIMIT 100001) `
	ofLate        = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE due_at <= $7 AND status = 'processing' AND arrive_at < $6 LIMIT 100001) `
	unpaid        = `SELECT id FROM payouts WHERE status IN ('failed', 'cancelled') AND id > $1 AND id < $2 ORDER BY id DESC LIMIT 100001`
	ofUnpaid      = `WITH wanted AS MATERIALIZED (` + unpaid + `) `
	// A payout is completed in the transaction of its entry, but the clock is read twice.
	completed = `SELECT subject AS id FROM entries WHERE gateway <> 0 AND type = 'payout.completed'
		AND at >= CAST($13 AS BIGINT) - 60000000 AND at <= CAST($14 AS BIGINT) + 60000000 ORDER BY at DESC LIMIT 100001`
	ofCompleted = `WITH wanted AS MATERIALIZED (` + completed + `) `

	selects = ` p.id > $1 AND p.id < $2
		AND (CAST($3 AS TEXT) = '' OR p.seller_id = $3) AND (CAST($4 AS TEXT) = '' OR p.status = $4) AND (CAST($5 AS TEXT) = '' OR p.state = $5)
		AND (CAST($6 AS BIGINT) = 0 OR p.status = 'processing' AND p.arrive_at < $6 AND p.due_at <= CAST($7 AS BIGINT))
		AND (CAST($8 AS BIGINT) = 0 OR p.discrepancy <> '') AND p.amount >= $9 AND p.amount <= $10
		AND (CAST($11 AS TEXT) = '' OR EXISTS (SELECT 1 FROM bank_accounts a WHERE a.id = p.bank_account_id AND substr(a.ifsc, 1, 4) = $11))
		AND (CAST($12 AS TEXT) = '' OR p.reason_code = $12)
		AND (CAST($13 AS BIGINT) = 0 OR p.completed_at >= $13 AND p.completed_at < CAST($14 AS BIGINT))
		AND (CAST($15 AS BIGINT) = 0 OR p.ended_at >= $15 AND p.ended_at < CAST($16 AS BIGINT))`

	fromWanted = ` FROM wanted JOIN payouts p ON p.id = wanted.id WHERE`
	fromAll    = ` FROM payouts p WHERE`
	// sums are in two parts each, billions and what is left: amounts that were changed outside the service may be too large to add up.
	sums = `COALESCE(SUM(p.amount / 1000000000), 0), COALESCE(SUM(p.amount % 1000000000), 0),
		COALESCE(SUM(p.fee / 1000000000), 0), COALESCE(SUM(p.fee % 1000000000), 0)`
	sumsWanted = `SELECT COUNT(*), ` + sums + `, (SELECT COUNT(*) FROM wanted)` + fromWanted + selects
	sumsAll    = `SELECT COUNT(*), ` + sums + `, 0` + fromAll + selects

	newestFirst  = ` AND p.id < $17 ORDER BY p.id DESC LIMIT $18 + 0) ORDER BY p.id DESC`
	oldestFirst  = ` AND p.id > $17 ORDER BY p.id LIMIT $18 + 0) ORDER BY p.id`
	largestFirst = ` AND (CAST($17 AS TEXT) = '' OR (p.amount, p.id) < ((SELECT amount FROM payouts WHERE id = $17), $17))
		ORDER BY p.amount DESC, p.id DESC LIMIT $18 + 0) ORDER BY p.amount DESC, p.id DESC`

	// notLookedAt is the newest payout between $1 and $2 behind the first $3.
	notLookedAt = `SELECT id FROM payouts WHERE id > $1 AND id < $2 ORDER BY id DESC LIMIT 1 OFFSET $3`
)

var ofUnclear = `WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE state IN (` + unclear + `) LIMIT 100001) `

var selectedRows = `SELECT ` + payoutColumns + `, COALESCE(u.name, '')` + payoutFrom + `LEFT JOIN users u ON u.id = p.seller_id WHERE p.id IN (SELECT p.id`

// ofEnded lists those that were completed or ended otherwise.
var ofEnded = `WITH wanted AS MATERIALIZED (SELECT id FROM (` + strings.NewReplacer("$13", "$15", "$14", "$16").Replace(completed) + `) AS paid
	UNION SELECT id FROM (` + unpaid + `) AS unpaid) `

// ofSeller lists the newest payouts of a seller from the ends of the index of histories, one end per status.
func (d dialect) ofSeller() string {
	ends := make([]string, len(payout.Statuses()))
	for i, status := range payout.Statuses() {
		ends[i] = fmt.Sprintf(`SELECT id FROM (SELECT id FROM payouts WHERE seller_id = $3 AND status = %s ORDER BY %s DESC LIMIT 100001) AS end%d`,
			literal(status), d.historyOrder, i)
	}
	return `WITH wanted AS MATERIALIZED (` + strings.Join(ends, ` UNION ALL `) + `) `
}

// sourceOf is where a selection is looked for.
func (d dialect) sourceOf(sel payout.Selection) string {
	switch {
	case sel.Discrepancy:
		return ofDiscrepancy
	case slices.Contains(payout.UnresolvedStates, sel.State):
		return ofUnclear
	case sel.Seller != "":
		return d.ofSeller()
	case !sel.LateAt.IsZero():
		return ofLate
	case sel.Status == payout.StatusFailed || sel.Status == payout.StatusCancelled ||
		sel.State.Status() == payout.StatusFailed || sel.State.Status() == payout.StatusCancelled:
		return ofUnpaid
	case hasDate(sel, payout.DateCompleted):
		return ofCompleted
	case hasDate(sel, payout.DateEnded):
		return ofEnded
	default:
		return ""
	}
}

func hasDate(sel payout.Selection, date payout.DateOf) bool {
	return sel.Date == date && (!sel.From.IsZero() || !sel.To.IsZero())
}

// Ids that sort before and behind those of all payouts.
const beforeIDs, behindIDs = "", "~"

// endOfTime is behind every moment that is stored.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// bounds are the ids between which a selection's payouts are.
func bounds(sel payout.Selection) (low, high string) {
	low, high = beforeIDs, behindIDs
	if sel.Date == payout.DateRequested {
		if !sel.From.IsZero() {
			low = id.First(payout.IDPrefix, sel.From)
		}
		if !sel.To.IsZero() {
			high = id.First(payout.IDPrefix, sel.To)
		}
	}
	return max(low, string(sel.Floor)), high
}

// arguments are $1 to $16.
func arguments(sel payout.Selection) []any {
	low, high := bounds(sel)
	most := sel.MaxAmount
	if most == 0 {
		most = 1<<63 - 1
	}
	var late, step int64
	if !sel.LateAt.IsZero() {
		late, step = sel.LateAt.UnixMicro(), sel.LateAt.Add(stepWithin).UnixMicro()
	}
	args := []any{
		low, high, sel.Seller, string(sel.Status), string(sel.State), late, step, flag(sel.Discrepancy),
		int64(sel.MinAmount), int64(most), sel.Bank, sel.Reason,
	}
	for _, date := range []payout.DateOf{payout.DateCompleted, payout.DateEnded} {
		from, to := int64(0), int64(0)
		if hasDate(sel, date) {
			from, to = 1, endOfTime.UnixMicro()
			if !sel.From.IsZero() {
				from = sel.From.UnixMicro()
			}
			if !sel.To.IsZero() {
				to = sel.To.UnixMicro()
			}
		}
		args = append(args, from, to)
	}
	return args
}

// addUp puts a sum together. One that is too large to count is the largest that can be.
func addUp(billions, rest int64) money.Amount {
	const billion, most = 1_000_000_000, int64(ledger.MaxTotal) / 1_000_000_000
	return money.Amount(min(max(billions, -most), most)*billion + rest)
}

// SumPayouts sums up what a selection selects, among the newest payouts of its dates. A sum that is too large to count is near [ledger.MaxTotal].
func (db *DB) SumPayouts(ctx context.Context, sel payout.Selection) (payout.Totals, error) {
	var t payout.Totals
	source := db.dialect.sourceOf(sel)
	if source == "" {
		low, high := bounds(sel)
		err := db.queryOne(ctx, notLookedAt, []any{low, high, payout.LookedThrough}, &t.Floor)
		if err != nil {
			return t, err
		}
		sel.Floor = t.Floor
	}
	var wanted, amounts, amount, fees, fee int64
	query := source + sumsWanted
	if source == "" {
		query = sumsAll
	}
	err := db.queryOne(ctx, query, arguments(sel), &t.Count, &amounts, &amount, &fees, &fee, &wanted)
	t.Amount, t.Fee = addUp(amounts, amount), addUp(fees, fee)
	t.Cut = t.Floor != "" || wanted > payout.LookedThrough
	return t, err
}

// SelectPayouts lists a page of what a selection selects.
func (db *DB) SelectPayouts(ctx context.Context, sel payout.Selection) ([]payout.Selected, error) {
	source, from := db.dialect.sourceOf(sel), fromWanted
	if source == "" {
		from = fromAll
	}
	after, order := string(sel.After), newestFirst
	switch sel.Sort {
	case payout.OldestFirst:
		order = oldestFirst
	case payout.LargestFirst:
		order = largestFirst
	default:
		if after == "" {
			after = behindIDs
		}
	}
	return readAll(ctx, db.query, source+selectedRows+from+selects+order, append(arguments(sel), after, sel.Limit),
		func(p *payout.Selected, _ ...any) []any { return payoutDest(&p.Payout, &p.SellerName) })
}
