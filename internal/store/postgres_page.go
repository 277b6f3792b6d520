package store

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// requestPage is what a group of requests works on: the rows that its transaction has locked, as they
// will be once it is written, and what is to be written.
type requestPage struct {
	sellers map[string]*requestSeller
	keys    map[ownedKey]payout.Remembered
	payouts map[payout.ID]payout.Payout
	writes  requestWrites
}

// requestSeller is a seller with the current bank account, if there is one, and the balance, if there is
// a book.
type requestSeller struct {
	account   *bank.Account
	hasBook   bool
	balance   ledger.Balance
	transfers int64
	chained   int64
	head      ledger.Hash
}

type ownedKey struct{ user, key string }

func newRequestPage(group []*requestJob) *requestPage {
	p := &requestPage{
		sellers: make(map[string]*requestSeller, len(group)),
		keys:    map[ownedKey]payout.Remembered{},
		payouts: map[payout.ID]payout.Payout{},
		writes:  requestWrites{changes: map[string]requestChange{}},
	}
	for _, j := range group {
		p.sellers[j.caller.Seller] = &requestSeller{}
	}
	return p
}

func (p *requestPage) scanBalances(rows pgx.Rows) error {
	for rows.Next() {
		var id string
		s := requestSeller{hasBook: true}
		if err := rows.Scan(&id, &s.balance.Pending, &s.balance.Available, &s.balance.InTransit, &s.transfers, &s.chained, &s.head); err != nil {
			return err
		}
		*p.sellers[id] = s
	}
	return rows.Err()
}

func (p *requestPage) scanAccounts(rows pgx.Rows) error {
	for rows.Next() {
		var a bank.Account
		if err := rows.Scan(&a.Seller, &a.ID, &a.Holder, &a.IFSC, &a.Last4, &a.Status); err != nil {
			return err
		}
		p.sellers[a.Seller].account = &a
	}
	return rows.Err()
}

func (p *requestPage) scanKeys(rows pgx.Rows) error {
	for rows.Next() {
		var k ownedKey
		var m payout.Remembered
		if err := rows.Scan(&k.user, &k.key, &m.Fingerprint, &m.Payout, &m.Refusal); err != nil {
			return err
		}
		p.keys[k] = m
	}
	return rows.Err()
}

func (p *requestPage) scanPayouts(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var found payout.Payout
		if err := scanPayout(rows, &found); err != nil {
			return err
		}
		p.payouts[found.ID] = found
	}
	return rows.Err()
}

// repeats lists the payouts that the group's keys stand for already.
func (p *requestPage) repeats() []string {
	var ids []string
	for _, m := range p.keys {
		ids = append(ids, string(m.Payout))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// serve runs one request's closure. What it did is kept only if it succeeds, so that a closure that
// fails, or panics, takes nobody else's request with it.
func (p *requestPage) serve(j *requestJob) (err error) {
	if err := j.ctx.Err(); err != nil {
		return errNotBegun.Because(err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	tx := &requestTx{page: p, caller: j.caller}
	if s := p.sellers[j.caller.Seller]; s != nil {
		tx.seller = *s
	}
	if err := j.fn(tx); err != nil {
		return err
	}
	tx.keep()
	return nil
}

// requestTx is the page as one request sees and changes it. Nothing in it can wait or fail, so it needs
// no contexts.
type requestTx struct {
	page   *requestPage
	caller payout.RequestCaller
	seller requestSeller

	change     ledger.Change
	transfers  []transferRow
	payout     *payout.Payout
	remembered *rememberedKey
}

type transferRow struct {
	seller string
	number int64
	at     time.Time
	ledger.Transfer
}

type rememberedKey struct {
	ownedKey
	payout.Remembered
	at time.Time
}

// keep makes the request's changes part of the page.
func (tx *requestTx) keep() {
	w := &tx.page.writes
	if tx.change.Transfers > 0 {
		w.changes[tx.caller.Seller] = requestChange{w.changes[tx.caller.Seller].Plus(tx.change), tx.seller.chained, tx.seller.head}
		*tx.page.sellers[tx.caller.Seller] = tx.seller
	}
	w.transfers = append(w.transfers, tx.transfers...)
	if tx.payout != nil {
		w.payouts = append(w.payouts, *tx.payout)
		tx.page.payouts[tx.payout.ID] = *tx.payout
	}
	if k := tx.remembered; k != nil {
		w.keys = append(w.keys, *k)
		tx.page.keys[k.ownedKey] = k.Remembered
	}
}

// own refuses what belongs to somebody else: it was neither locked nor read.
func (tx *requestTx) own(seller string) error {
	if seller != tx.caller.Seller {
		return fmt.Errorf("a request of %s touches what belongs to %s", tx.caller.Seller, seller)
	}
	return nil
}

func (tx *requestTx) MoveBalance(_ context.Context, seller string, ch ledger.Change, links []ledger.Link, mayOverdraw bool) (int64, error) {
	if err := tx.own(seller); err != nil {
		return 0, err
	}
	holds := ledger.Change{Transfers: ch.Transfers}
	holds.Available, holds.InTransit, holds.Counts.Processing = ch.Available, ch.InTransit, ch.Counts.Processing
	if ch != holds {
		return 0, fmt.Errorf("a request of %s does more than to hold an amount", seller)
	}
	b := &tx.seller.balance
	if !tx.seller.hasBook || !b.Allows(ch, mayOverdraw) {
		return 0, ledger.ErrInsufficient
	}
	if tx.seller.chained == tx.seller.transfers { // else it is behind
		chain := ledger.Chain{Number: tx.seller.transfers, Standing: b.Standing(), Head: tx.seller.head}.Extend(links...)
		tx.seller.chained, tx.seller.head = chain.Number, chain.Head
	}
	b.Available += ch.Available
	b.InTransit += ch.InTransit
	tx.seller.transfers += ch.Transfers
	tx.change = tx.change.Plus(ch)
	return tx.seller.transfers, nil
}

func (tx *requestTx) InsertTransfers(_ context.Context, seller string, at time.Time, first int64, transfers []ledger.Transfer) error {
	for i, t := range transfers {
		tx.transfers = append(tx.transfers, transferRow{seller, first + int64(i), at, t})
	}
	return tx.own(seller)
}

func (tx *requestTx) AccountToPay(_ context.Context, seller string) (bank.Account, error) {
	if err := tx.own(seller); err != nil {
		return bank.Account{}, err
	}
	if tx.seller.account == nil {
		return bank.Account{}, bank.ErrNone
	}
	return *tx.seller.account, nil
}

func (tx *requestTx) Available(_ context.Context, seller string) (money.Amount, error) {
	return tx.seller.balance.Available, tx.own(seller)
}

func (tx *requestTx) InsertPayout(_ context.Context, p payout.Payout) error {
	if tx.payout != nil || p.DueAt.IsZero() {
		return fmt.Errorf("payout %s is the second of its request, or never due", p.ID)
	}
	tx.payout = &p
	return tx.own(p.Seller)
}

func (tx *requestTx) Payout(_ context.Context, id payout.ID) (payout.Payout, error) {
	p, found := tx.page.payouts[id]
	if !found {
		return payout.Payout{}, payout.ErrNotFound
	}
	return p, nil
}

func (tx *requestTx) Remember(_ context.Context, user, key string, m payout.Remembered, now time.Time) (bool, error) {
	if err := tx.ownKey(user, key); err != nil {
		return false, err
	}
	k := ownedKey{user, key}
	if _, taken := tx.page.keys[k]; taken {
		return false, nil
	}
	tx.remembered = &rememberedKey{k, m, now}
	return true, nil
}

func (tx *requestTx) RememberRefusal(_ context.Context, user, key, refusal string) error {
	if tx.remembered == nil || tx.remembered.ownedKey != (ownedKey{user, key}) {
		return fmt.Errorf("a refusal for a key of %s that was not remembered", user)
	}
	tx.remembered.Refusal = refusal
	return nil
}

func (tx *requestTx) Remembered(_ context.Context, user, key string) (payout.Remembered, error) {
	return tx.page.keys[ownedKey{user, key}], tx.ownKey(user, key)
}

func (tx *requestTx) ownKey(user, key string) error {
	if key != tx.caller.Key {
		return fmt.Errorf("a request of %s uses a key that it did not name", user)
	}
	return tx.own(user)
}

// requestWrites is what a group writes.
type requestWrites struct {
	changes   map[string]requestChange
	transfers []transferRow
	payouts   []payout.Payout
	keys      []rememberedKey
}

// requestChange is what becomes of a seller's row: by how much it moves, and where its chain then is.
type requestChange struct {
	ledger.Change
	chained int64
	head    ledger.Hash
}

// queue adds a statement for each table that changes, and none for those that don't.
func (w *requestWrites) queue(b *pgx.Batch) {
	if len(w.keys) > 0 {
		w.queueKeys(b)
	}
	if len(w.changes) > 0 {
		w.queueChanges(b)
	}
	if len(w.transfers) > 0 {
		w.queueTransfers(b)
	}
	if len(w.payouts) > 0 {
		w.queuePayouts(b)
	}
}

// exactly fails unless a statement changed as many rows as the numbered parameter says.
const exactly = ` SELECT 1 / (CASE COUNT(*) WHEN $%d THEN 1 ELSE 0 END) FROM changed`

// queueKeys inserts keys in one order: those of a seller without a book are under no lock yet.
func (w *requestWrites) queueKeys(b *pgx.Batch) {
	slices.SortFunc(w.keys, func(a, b rememberedKey) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.key, b.key))
	})
	rows := columns(w.keys,
		func(k rememberedKey) string { return k.user },
		func(k rememberedKey) string { return k.key },
		func(k rememberedKey) string { return k.Fingerprint },
		func(k rememberedKey) string { return string(k.Payout) },
		func(k rememberedKey) string { return k.Refusal })
	rows = append(rows, column(w.keys, func(k rememberedKey) int64 { return micros(k.at) }), len(w.keys))
	b.Queue(`WITH changed AS (INSERT INTO idempotency_keys (user_id, key, fingerprint, payout_id, refusal, created_at)
		SELECT user_id, key, fingerprint, payout_id, refusal, created_at
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
			AS k (user_id, key, fingerprint, payout_id, refusal, created_at)
		ON CONFLICT (user_id, key) DO NOTHING RETURNING 1)`+fmt.Sprintf(exactly, 7), rows...)
}

// queueChanges moves the balances, and checks their floors once more where they are kept.
func (w *requestWrites) queueChanges(b *pgx.Batch) {
	type change struct {
		seller string
		requestChange
	}
	var all []change
	for seller, ch := range w.changes {
		all = append(all, change{seller, ch})
	}
	number := func(of func(change) int64) []int64 { return column(all, of) }
	b.Queue(`WITH changed AS (UPDATE seller_balances b SET available = b.available + ch.available,
			in_transit = b.in_transit + ch.in_transit, processing = b.processing + ch.processing, transfers = b.transfers + ch.transfers,
			chained = ch.chained, head = ch.head
		FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
			AS ch (seller_id, available, in_transit, processing, transfers, chained, head)
		WHERE b.seller_id = ch.seller_id AND b.in_transit + ch.in_transit >= 0
			AND (ch.available >= 0 OR b.available + ch.available >= 0) RETURNING 1)`+fmt.Sprintf(exactly, 8),
		column(all, func(c change) string { return c.seller }),
		number(func(c change) int64 { return int64(c.Available) }),
		number(func(c change) int64 { return int64(c.InTransit) }),
		number(func(c change) int64 { return c.Counts.Processing }),
		number(func(c change) int64 { return c.Transfers }),
		number(func(c change) int64 { return c.chained }),
		column(all, func(c change) string { return string(c.head) }),
		len(all))
}

func (w *requestWrites) queueTransfers(b *pgx.Batch) {
	rows := columns(w.transfers,
		func(t transferRow) string { return t.seller },
		func(t transferRow) string { return string(t.Kind) },
		func(t transferRow) string { return string(t.Debit) },
		func(t transferRow) string { return string(t.Credit) },
		func(t transferRow) string { return t.Ref })
	rows = append(rows, columns(w.transfers,
		func(t transferRow) int64 { return t.number },
		func(t transferRow) int64 { return micros(t.at) },
		func(t transferRow) int64 { return int64(t.Amount) })...)
	b.Queue(`INSERT INTO transfers (seller_id, kind, debit, credit, ref, number, at, amount)
		SELECT seller_id, kind, debit, credit, ref, number, at, amount
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
			AS t (seller_id, kind, debit, credit, ref, number, at, amount)`, rows...)
}

func (w *requestWrites) queuePayouts(b *pgx.Batch) {
	rows := columns(w.payouts,
		func(p payout.Payout) string { return string(p.ID) },
		func(p payout.Payout) string { return p.Seller },
		func(p payout.Payout) string { return string(p.BankAccountID) },
		func(p payout.Payout) string { return p.Notes },
		func(p payout.Payout) string { return string(p.Mode) },
		func(p payout.Payout) string { return string(p.State) },
		func(p payout.Payout) string { return string(p.Status()) },
		func(p payout.Payout) string { return p.Seal })
	rows = append(rows, columns(w.payouts,
		func(p payout.Payout) int64 { return int64(p.Amount) },
		func(p payout.Payout) int64 { return int64(p.Fee) },
		func(p payout.Payout) int64 { return micros(p.RequestedAt) },
		func(p payout.Payout) int64 { return micros(p.ArriveAt) },
		func(p payout.Payout) int64 { return micros(p.DueAt) })...)
	b.Queue(`INSERT INTO payouts (id, seller_id, bank_account_id, notes, mode, state, status, seal, amount, fee, requested_at, arrive_at, due_at,
			tries, order_body, gateway_id, progress, utr, reason_code, reason, contradiction)
		SELECT id, seller_id, bank_account_id, notes, mode, state, status, seal, amount, fee, requested_at, arrive_at, due_at,
			0, '', '', '', '', '', '', ''
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
			$9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])
			AS p (id, seller_id, bank_account_id, notes, mode, state, status, seal, amount, fee, requested_at, arrive_at, due_at)`, rows...)
}

// column is one value of each row.
func column[R, V any](rows []R, of func(R) V) []V {
	values := make([]V, len(rows))
	for i, r := range rows {
		values[i] = of(r)
	}
	return values
}

// columns is several of the same type, as the parameters of a statement.
func columns[R, V any](rows []R, of ...func(R) V) []any {
	values := make([]any, len(of))
	for i, f := range of {
		values[i] = column(rows, f)
	}
	return values
}
