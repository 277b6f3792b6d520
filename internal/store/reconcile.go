package store

import (
	"context"
	"encoding/json"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

// Reconciling is the database as package reconcile sees it, with one gateway's statement.
func (db *DB) Reconciling(at gateway.Name) reconcile.Store { return reconcileStore{db, string(at)} }

type reconcileStore struct {
	*DB
	gateway string
}

func (s reconcileStore) InTx(ctx context.Context, fn func(reconcile.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

// keepLine adds a line or updates it to its newest version; its first version stays.
const keepLine = `INSERT INTO statement_lines (id, at, debit, credit, balance, currency, kind, source_id, transfer_id, payout_id, amount,
	fees, tax, utr, first_reported, last_reported, seen_at, gateway, raw_kind, missing)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $16, $17, $18, 0)
	ON CONFLICT (gateway, id) DO UPDATE SET at = excluded.at, debit = excluded.debit, credit = excluded.credit, balance = excluded.balance,
	currency = excluded.currency, kind = excluded.kind, raw_kind = excluded.raw_kind, source_id = excluded.source_id, transfer_id = excluded.transfer_id,
	payout_id = excluded.payout_id, amount = excluded.amount, fees = excluded.fees, tax = excluded.tax, utr = excluded.utr,
	last_reported = excluded.last_reported, missing = 0,
	seen_at = CASE WHEN excluded.seen_at > statement_lines.seen_at THEN excluded.seen_at ELSE statement_lines.seen_at END`

// KeepLines adds lines that a reading found.
func (s reconcileStore) KeepLines(ctx context.Context, lines []reconcile.Line, readAt time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		for _, l := range lines {
			balance := any(nil)
			if l.HasBalance {
				balance = int64(l.Balance)
			}
			_, err := tx.exec(ctx, keepLine, l.ID, micros(l.At), int64(l.Debit), int64(l.Credit), balance, l.Currency, string(l.Kind), l.SourceID,
				l.Transfer, string(l.Payout), int64(l.Amount), int64(l.Fees), int64(l.Tax), l.UTR, l.LastReported, micros(readAt), s.gateway, l.RawKind)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// MissLines notes the lines of a period that a reading did not find.
func (s reconcileStore) MissLines(ctx context.Context, from, to, readAt time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `UPDATE statement_lines SET missing = 1 WHERE gateway = $4 AND at >= $1 AND at < $2 AND seen_at < $3 AND missing = 0`,
			micros(from), micros(to), micros(readAt), s.gateway)
		return err
	})
}

// KeepDay adds a day that was read whole, or its newer reading.
func (s reconcileStore) KeepDay(ctx context.Context, d reconcile.Day) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `INSERT INTO statement_days (starts_at, ends_at, read_at, gateway) VALUES ($1, $2, $3, $4)
			ON CONFLICT (gateway, starts_at) DO UPDATE SET ends_at = excluded.ends_at, read_at = excluded.read_at, lines = NULL, opening = NULL, closing = NULL`,
			micros(d.From), micros(d.To), micros(d.ReadAt), s.gateway)
		return err
	})
}

// KeepBalances notes how many lines a day has that was read whole, and its balances.
func (s reconcileStore) KeepBalances(ctx context.Context, d reconcile.Day) error {
	opening, closing := any(nil), any(nil)
	if d.HasBalances {
		opening, closing = int64(d.Opening), int64(d.Closing)
	}
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `UPDATE statement_days SET lines = $2, opening = $3, closing = $4 WHERE starts_at = $1 AND gateway = $5`,
			micros(d.From), d.Lines, opening, closing, s.gateway)
		return err
	})
}

// Days lists the days that were read whole within a time.
func (s reconcileStore) Days(ctx context.Context, from, to time.Time) ([]reconcile.Day, error) {
	return readAll(ctx, s.query, `SELECT starts_at, ends_at, read_at, COALESCE(lines, -1), COALESCE(opening, 0), COALESCE(closing, 0), opening IS NOT NULL
		FROM statement_days WHERE gateway = $3 AND ends_at > $1 AND starts_at < $2 ORDER BY starts_at`, []any{micros(from), micros(to), s.gateway},
		func(d *reconcile.Day, _ ...any) []any {
			return []any{instant{&d.From}, instant{&d.To}, instant{&d.ReadAt}, &d.Lines, &d.Opening, &d.Closing, &d.HasBalances}
		})
}

const lineColumns = `SELECT id, at, debit, credit, COALESCE(balance, 0), balance IS NOT NULL, currency, kind, source_id, transfer_id, payout_id,
	amount, fees, tax, utr, first_reported, last_reported, missing, gateway, raw_kind FROM statement_lines `

func (s reconcileStore) lines(ctx context.Context, where string, args ...any) ([]reconcile.Line, error) {
	return readAll(ctx, s.query, lineColumns+where, args, func(l *reconcile.Line, _ ...any) []any {
		return []any{
			&l.ID,
			instant{&l.At},
			&l.Debit, &l.Credit, &l.Balance, &l.HasBalance, &l.Currency, &l.Kind, &l.SourceID, &l.Transfer,
			&l.Payout, &l.Amount, &l.Fees, &l.Tax, &l.UTR, &l.FirstReported, &l.LastReported,
			flagged{&l.Missing},
			&l.Gateway, &l.RawKind,
		}
	})
}

// LinesBetween lists lines of a period after one of them.
func (s reconcileStore) LinesBetween(ctx context.Context, from, to time.Time, after reconcile.Line, limit int) ([]reconcile.Line, error) {
	return s.linesAfter(ctx, "", from, to, after, limit)
}

// ChangedLines lists those lines of a period, after one of them, that changed or disappeared later.
func (s reconcileStore) ChangedLines(ctx context.Context, from, to time.Time, after reconcile.Line, limit int) ([]reconcile.Line, error) {
	return s.linesAfter(ctx, ` AND (first_reported <> last_reported OR missing = 1)`, from, to, after, limit)
}

// linesAfter lists a page of the lines of a period that meet a condition.
func (s reconcileStore) linesAfter(ctx context.Context, condition string, from, to time.Time, after reconcile.Line, limit int) ([]reconcile.Line, error) {
	if after.ID == "" {
		after.At = from
	}
	return s.lines(ctx, `WHERE gateway = $5 AND (at, id) > ($1, $2) AND at < $3`+condition+` ORDER BY at, id LIMIT $4 + 0`,
		micros(after.At), after.ID, micros(to), limit, s.gateway)
}

// LinesAbout lists all lines that name one of the payouts.
func (s reconcileStore) LinesAbout(ctx context.Context, payouts []payout.ID, transfers []string) ([]reconcile.Line, error) {
	ofPayouts, args := s.dialect.oneOf(nil, texts(payouts))
	ofTransfers, args := s.dialect.oneOf(args, transfers)
	return s.lines(ctx, `WHERE (gateway, id) IN (SELECT gateway, id FROM statement_lines WHERE payout_id <> '' AND payout_id `+ofPayouts+`
		UNION SELECT gateway, id FROM statement_lines WHERE transfer_id <> '' AND transfer_id `+ofTransfers+`) ORDER BY at, id`, args...)
}

const takenByStatement = `SELECT CAST(COALESCE(SUM(CASE WHEN amount > 0 AND amount < debit THEN amount ELSE debit END
	- CASE WHEN amount > 0 AND amount < credit THEN amount ELSE credit END), 0) AS BIGINT) FROM statement_lines
	WHERE gateway = $1 AND missing = 0 AND id IN (SELECT id FROM statement_lines WHERE gateway = $1 AND payout_id <> '' AND payout_id = $2
		UNION SELECT id FROM statement_lines WHERE gateway = $1 AND transfer_id <> '' AND transfer_id = $3)`

// TakenByStatement is what the lines that name a payout took from our account at its gateway without fees, less what they put back.
func (db *DB) TakenByStatement(ctx context.Context, p payout.Payout) (taken money.Amount, err error) {
	err = db.queryOne(ctx, takenByStatement, []any{string(p.Gateway), string(p.ID), p.GatewayID}, &taken)
	return taken, err
}

// LinesByID finds those of ids that there are.
func (s reconcileStore) LinesByID(ctx context.Context, ids []string) ([]reconcile.Line, error) {
	named, args := s.dialect.oneOf(nil, ids)
	return s.lines(ctx, `WHERE id `+named+` ORDER BY at, id`, args...)
}

// SumOfLines adds up what the lines of a period took, less what they put in.
func (s reconcileStore) SumOfLines(ctx context.Context, from, to time.Time, currency string) (taken money.Amount, err error) {
	err = s.queryOne(ctx, `SELECT CAST(COALESCE(SUM(debit - credit), 0) AS BIGINT) FROM statement_lines
		WHERE gateway = $4 AND at >= $1 AND at < $2 AND currency = $3 AND missing = 0`, []any{micros(from), micros(to), currency, s.gateway}, &taken)
	return taken, err
}

// ofGateway are the entries that moved money to or from the gateway's account, or ended a payout without, in the words of their index.
const ofGateway = ` FROM entries WHERE (gateway <> 0 OR type IN ('payout.failed', 'payout.cancelled')) AND `

// Entries lists those of a period after one of them.
func (s reconcileStore) Entries(ctx context.Context, from, to time.Time, after reconcile.Entry, limit int) ([]reconcile.Entry, error) {
	if after.Seller == "" {
		after.At = from
	}
	return readAll(ctx, s.query, `SELECT at, subject, gateway, owner, number`+ofGateway+`
		(at, owner, number) > ($1, $2, $3) AND at < $4 ORDER BY at, owner, number LIMIT $5 + 0`, []any{micros(after.At), after.Seller, after.Number, micros(to), limit},
		func(e *reconcile.Entry, _ ...any) []any {
			return []any{instant{&e.At}, &e.Payout, &e.Paid, &e.Seller, &e.Number}
		})
}

// SumOfEntries adds up what was paid, and what was returned.
func (s reconcileStore) SumOfEntries(ctx context.Context, from, to time.Time) (paid, returned money.Amount, err error) {
	err = s.queryOne(ctx, `SELECT CAST(COALESCE(SUM(CASE WHEN gateway > 0 THEN gateway ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN gateway < 0 THEN -gateway ELSE 0 END), 0) AS BIGINT)`+ofGateway+`at >= $1 AND at < $2`,
		[]any{micros(from), micros(to)}, &paid, &returned)
	return paid, returned, err
}

// PayoutsByID folds what the service wrote about payouts. Their rows, and other entries, may be an attacker's who can write to the database.
func (s reconcileStore) PayoutsByID(ctx context.Context, ids []payout.ID) (map[payout.ID]payout.Payout, error) {
	found := make(map[payout.ID]payout.Payout, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	keys, err := s.signer.get()
	if err != nil {
		return nil, err
	}
	in, args := s.dialect.oneOf(nil, texts(ids))
	err = s.query(ctx, entriesAboutColumns+` WHERE e.subject `+in+` ORDER BY e.subject, e.owner, e.number`, args, func(r *row) {
		e, broken := scanCheckedEntry(r, keys)
		p := payout.Payout{ID: payout.ID(e.Subject)}
		if before, isThere := found[p.ID]; isThere {
			p = before
		}
		if broken == nil && ledger.ApplyEntry(e, &p) == nil && p.Seller == e.Owner {
			found[p.ID] = p
		}
	})
	return found, err
}

// PayoutsByTransfer finds the payouts that have these ids at any gateway, of those that a journal knows.
func (s reconcileStore) PayoutsByTransfer(ctx context.Context, transfers []string) (map[reconcile.TransferKey]payout.ID, error) {
	named, args := s.dialect.oneOf(nil, transfers)
	found := map[reconcile.TransferKey]payout.ID{}
	err := s.query(ctx, `SELECT p.gateway, p.gateway_id, MIN(p.id) FROM payouts p WHERE p.gateway_id <> '' AND p.gateway_id `+named+isRecorded+` GROUP BY p.gateway, p.gateway_id`,
		args, func(r *row) {
			var transfer reconcile.TransferKey
			var id payout.ID
			r.Scan(&transfer.Gateway, &transfer.ID, &id)
			found[transfer] = id
		})
	return found, err
}

// ResolvedUnmatchedTransfers finds those of a gateway's transfers that an admin has resolved as unmatched.
func (s reconcileStore) ResolvedUnmatchedTransfers(ctx context.Context, at gateway.Name, transfers []string) (map[string]bool, error) {
	named, args := s.dialect.oneOf([]any{string(at)}, transfers)
	resolved := map[string]bool{}
	err := s.query(ctx, `SELECT gateway_id FROM unmatched_transfers WHERE resolved = 1 AND gateway = $1 AND gateway_id `+named, args, func(r *row) {
		var transfer string
		r.Scan(&transfer)
		resolved[transfer] = true
	})
	return resolved, err
}

const (
	differenceColumns = `SELECT id, kind, gateway, subject, payout_id, detail, at, at_gateway, in_ledger, first_seen, last_seen, gone_at, resolved_at FROM differences `

	openDifferences = differenceColumns + `WHERE gone_at IS NULL AND resolved_at IS NULL AND (first_seen, id) > ($1, $2)
		ORDER BY first_seen, id LIMIT $3 + 0`
)

func (s reconcileStore) differences(ctx context.Context, query string, args ...any) ([]reconcile.Difference, error) {
	return readAll(ctx, s.query, query, args, func(d *reconcile.Difference, _ ...any) []any {
		return []any{
			&d.ID, &d.Kind, &d.Gateway, &d.Subject, &d.Payout, &d.Detail,
			instant{&d.At},
			&d.AtGateway, &d.InLedger,
			instant{&d.FirstSeen},
			instant{&d.LastSeen},
			instant{&d.GoneAt},
			instant{&d.ResolvedAt},
		}
	})
}

// Difference finds one.
func (s reconcileStore) Difference(ctx context.Context, id string) (reconcile.Difference, error) {
	all, err := s.Differences(ctx, []string{id})
	if err != nil {
		return reconcile.Difference{}, err
	}
	if len(all) == 0 {
		return reconcile.Difference{}, reconcile.ErrNotFound
	}
	return all[0], nil
}

// Differences finds those of ids that there are, the first found first.
func (s reconcileStore) Differences(ctx context.Context, ids []string) ([]reconcile.Difference, error) {
	named, args := s.dialect.oneOf(nil, ids)
	return s.differences(ctx, differenceColumns+`WHERE id `+named+` ORDER BY first_seen, id`, args...)
}

// OpenDifferences lists those that wait for a person, after one of them.
func (s reconcileStore) OpenDifferences(ctx context.Context, after reconcile.Difference, limit int) ([]reconcile.Difference, error) {
	return s.differences(ctx, openDifferences, micros(after.FirstSeen), after.ID, limit)
}

// OpenKinds counts the differences that wait for a person, by kind.
func (db *DB) OpenKinds(ctx context.Context) (map[reconcile.Kind]int64, error) {
	counts := make(map[reconcile.Kind]int64)
	err := db.query(ctx, `SELECT kind, COUNT(*) FROM differences WHERE gone_at IS NULL AND resolved_at IS NULL GROUP BY kind`, nil, func(r *row) {
		var kind reconcile.Kind
		var n int64
		r.Scan(&kind, &n)
		counts[kind] = n
	})
	return counts, err
}

// Found notes differences that were found, and that others are gone.
func (s reconcileStore) Found(ctx context.Context, found, gone []reconcile.Difference, at time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		for _, d := range found {
			_, err := tx.exec(ctx, `INSERT INTO differences (id, kind, subject, payout_id, detail, at, at_gateway, in_ledger, first_seen, last_seen, gateway)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10) ON CONFLICT (id) DO UPDATE SET payout_id = excluded.payout_id, detail = excluded.detail,
				at = excluded.at, at_gateway = excluded.at_gateway, in_ledger = excluded.in_ledger, gone_at = NULL,
				last_seen = CASE WHEN excluded.last_seen > differences.last_seen THEN excluded.last_seen ELSE differences.last_seen END,
				resolved_at = CASE WHEN differences.detail = excluded.detail THEN differences.resolved_at END`,
				d.ID, string(d.Kind), d.Subject, string(d.Payout), d.Detail, micros(d.At), int64(d.AtGateway), int64(d.InLedger), micros(at), string(d.Gateway))
			if err != nil {
				return err
			}
		}
		for _, d := range gone {
			_, err := tx.exec(ctx, `UPDATE differences SET gone_at = $2 WHERE id = $1 AND gone_at IS NULL AND last_seen <= $3`,
				d.ID, micros(at), micros(d.LastSeen))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ResolveDifference notes that a person has explained an open difference that says detail.
func (tx *Tx) ResolveDifference(ctx context.Context, id, detail string, at time.Time) (bool, error) {
	return tx.execOne(ctx, `UPDATE differences SET resolved_at = $3 WHERE id = $1 AND detail = $2 AND gone_at IS NULL AND resolved_at IS NULL`,
		id, detail, micros(at))
}

// KeepRun adds a comparison to the record.
func (s reconcileStore) KeepRun(ctx context.Context, r reconcile.Run) error {
	result, err := json.Marshal(r.Result)
	if err != nil {
		return err
	}
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `INSERT INTO reconciliations (id, gateway, starts_at, ends_at, daily, ended_at, result) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			r.ID, string(r.Gateway), micros(r.Period.From), micros(r.Period.To), flag(r.Daily), micros(r.EndedAt), string(result))
		return err
	})
}

// LastRuns lists the newest comparisons, the newest first, without those whose result can't be read.
func (s reconcileStore) LastRuns(ctx context.Context, limit int) ([]reconcile.Run, error) {
	var runs []reconcile.Run
	err := s.query(ctx, `SELECT id, gateway, starts_at, ends_at, daily, ended_at, result FROM reconciliations ORDER BY ended_at DESC, ends_at DESC LIMIT $1 + 0`, []any{limit},
		func(row *row) {
			var r reconcile.Run
			var result string
			row.Scan(&r.ID, &r.Gateway, instant{&r.Period.From}, instant{&r.Period.To}, flagged{&r.Daily}, instant{&r.EndedAt}, &result)
			if json.Unmarshal([]byte(result), &r.Result) == nil { // one that an attacker wrote takes no other away
				runs = append(runs, r)
			}
		})
	return runs, err
}

// firstSent looks among the oldest payouts that were sent, which the index finds: the first that was asked for may have waited for days.
const firstSent = `SELECT MIN(sent_at) FROM (SELECT sent_at FROM payouts WHERE gateway = $1 AND sent_at IS NOT NULL ORDER BY id LIMIT 1000) oldest`

// FirstSent is when this gateway was first sent a payout; zero for never.
func (s reconcileStore) FirstSent(ctx context.Context) (at time.Time, err error) {
	err = s.queryRow(ctx, firstSent, s.gateway).Scan(instant{&at})
	return at, err
}

// Reached is the end of the last day that the service had reconciled by itself at a time, with this gateway's statement.
func (s reconcileStore) Reached(ctx context.Context, at time.Time) (reached time.Time, err error) {
	err = s.queryOne(ctx, `SELECT ends_at FROM reconciliations WHERE gateway = $1 AND daily = 1 AND ended_at <= $2 AND ends_at <= $2 ORDER BY ends_at DESC LIMIT 1`,
		[]any{s.gateway, micros(at)}, instant{&reached})
	return reached, err
}

// AcquireLease leases reconciliation to one holder until a time.
func (s reconcileStore) AcquireLease(ctx context.Context, holder string, now, until time.Time) (bool, error) {
	return s.lease(ctx, "reconcile_lease", holder, now, until)
}

// ReleaseLease ends the lease.
func (s reconcileStore) ReleaseLease(ctx context.Context, holder string) error {
	return s.release(ctx, "reconcile_lease", holder)
}

// Pace is how the daily work goes.
func (s reconcileStore) Pace(ctx context.Context) (p reconcile.Pace, err error) {
	err = s.queryOne(ctx, `SELECT failures, due_at, looked_at FROM reconcile_pace WHERE gateway = $1`, []any{s.gateway}, &p.Failures, instant{&p.DueAt}, instant{&p.LookedAt})
	return p, err
}

// SetPace notes how the daily work goes.
func (s reconcileStore) SetPace(ctx context.Context, p reconcile.Pace) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `INSERT INTO reconcile_pace (gateway, failures, due_at, looked_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (gateway) DO UPDATE SET failures = excluded.failures, due_at = excluded.due_at, looked_at = excluded.looked_at`,
			s.gateway, p.Failures, micros(p.DueAt), micros(p.LookedAt))
		return err
	})
}
