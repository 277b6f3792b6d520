package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// A unit of work serves a group of changes in one transaction. It loads and locks all that they name, with one
// statement per table; each change then decides in memory what package payout decides; and what was decided is written
// with one statement per table again. One transaction each would cost seven round trips on PostgreSQL and five
// statements on SQLite, and one seller's changes would wait for each other's commits. The measurements are in
// docs/adr/0010-grouped-requests.md.
//
// The writers of both engines (postgres_units.go, sqlite.go) take a unit through five stages: loads locks and reads, followUps
// reads what depends on that, checkTails checks the ends of journals (tail.go), serve runs each change, and writeStatements
// returns the statements that write the result (made by table.go). Once they are committed, keepTails caches the ends of journals.
type unit struct {
	macKeys  ledger.Keys
	journals map[string]*unitJournal
	// orphaned are owners whose row of totals is missing, although they have entries.
	orphaned     map[string]bool
	bankAccounts map[string]storedAccount // that sellers are paid to
	idempotency  map[ownedKey]payout.Idempotency
	sessions     map[string]*storedSession
	payouts      map[payout.ID]*payout.Payout
	// entries are those about the payouts that the group names, and about the bank accounts of those that are about to be sent.
	// Those to be written are included.
	entries      map[entriesOf]subjectEntries
	namesPayouts bool
	// tails are the ends of the journals, by owner, on which the payouts of the group rely.
	tails map[string]*unitTail
	// cached are the tails that units before this one found whole.
	cached *tailCache
	// paused says whether payouts are paused for everyone, or pausedErr why that can't be told.
	paused    bool
	pausedErr error

	writes unitWrites
}

// unitJournal is where a journal stood when it was loaded, and where it will stand once the unit is written.
type unitJournal struct{ loaded, now ledger.Head }

type ownedKey struct{ user, key string }

// entriesOf says what entries are about, and whose they are.
type entriesOf struct{ owner, subject string }

// subjectEntries are what is stored about a payout, or why they can't be believed.
type subjectEntries struct {
	list []ledger.Entry
	err  error
}

// unitWrites is what a unit writes.
type unitWrites struct {
	idempotency []idempotencyRow
	entries     []ledger.Entry
	added       []payoutUpdate
	// changed are payouts as they will be, and the states in which they were found.
	changed map[payout.ID]payoutUpdate
}

type idempotencyRow struct {
	ownedKey
	payout.Idempotency
	at time.Time
}

type payoutUpdate struct {
	payout.Payout
	from payout.State
}

// headUpdate takes the row of a journal from the entry with number from to a later head.
type headUpdate struct {
	ledger.Head
	from int64
}

// unitJob is a change that waits for its unit.
type unitJob struct {
	job[payout.ChangeTx]
	scope ledger.Scope
	// isRepeat says that the change was served before, and the end of its journal was read since.
	isRepeat bool
}

// newUnit makes a unit for a group of that many changes.
func newUnit(macKeys ledger.Keys, cached *tailCache, size int) *unit {
	return &unit{
		macKeys: macKeys, journals: make(map[string]*unitJournal, size), orphaned: map[string]bool{}, bankAccounts: make(map[string]storedAccount, size),
		idempotency: make(map[ownedKey]payout.Idempotency, size), payouts: make(map[payout.ID]*payout.Payout, size), sessions: make(map[string]*storedSession, size),
		entries: map[entriesOf]subjectEntries{}, tails: map[string]*unitTail{}, cached: cached,
		writes: unitWrites{entries: make([]ledger.Entry, 0, size), changed: map[payout.ID]payoutUpdate{}},
	}
}

// load is a statement that reads rows into the unit.
type load struct {
	sql  string
	args []any
	scan func(*row)
}

// quoted writes constants as a list of SQL's.
func quoted[T ~string](list []T) string { return "'" + strings.Join(texts(list), "', '") + "'" }

// loads are the statements that lock and read what a group of changes names. Payouts are locked before journals, and
// each in the order of their ids, as everywhere. On PostgreSQL each statement sees what was committed before it began,
// so what is read after the locks is what their last holders left.
func (u *unit) loads(d dialect, group []*unitJob) []load {
	var owners, payouts, sessions []string
	var users, keys []string
	for _, j := range group {
		s := j.scope
		if s.Owner != "" {
			owners = append(owners, s.Owner)
		}
		if s.Payout != "" {
			payouts = append(payouts, s.Payout)
		}
		if s.Session != "" {
			sessions = append(sessions, s.Session)
		}
		if s.Key != "" {
			users, keys = append(users, s.Owner), append(keys, s.Key)
		}
	}
	owners, payouts = distinct(owners), distinct(payouts)
	u.namesPayouts = len(payouts) > 0
	var all []load
	if len(payouts) > 0 {
		in, args := d.oneOf(nil, payouts)
		all = append(all, load{selectPayouts + `WHERE p.id ` + in + ` ORDER BY p.id` + d.forUpdate("p"), args, u.scanPayout})
	}
	all = append(all, u.loadHeads(d, owners, payouts))
	if len(owners) > 0 {
		in, args := d.oneOf(nil, owners)
		all = append(all, load{`SELECT seller_id, id, holder, ifsc, last4, status, mac FROM bank_accounts
			WHERE seller_id ` + in + ` AND is_current = 1`, args, u.scanBankAccount})
	}
	if len(keys) > 0 {
		from, args := d.pairs(users, keys)
		all = append(all, load{`SELECT k.user_id, k.key, k.fingerprint, k.payout_id, k.refusal FROM ` + from + `
			JOIN idempotency_keys k ON k.user_id = asked.c0 AND k.key = asked.c1`, args, u.scanIdempotency})
	}
	if len(sessions) > 0 {
		in, args := d.oneOf(nil, distinct(sessions))
		all = append(all, load{sessionOf + in, args, u.scanSession})
	}
	if len(payouts) > 0 {
		in, args := d.oneOf(nil, payouts)
		all = append(all, load{entriesAboutColumns + ` WHERE e.subject ` + in + ` ORDER BY e.subject, e.owner, e.number`, args, u.scanEntry})
	}
	return append(all, u.loadPaused(d, group)...)
}

// loadPaused reads whether payouts are paused, if a change asks. If that change names a payout, none pauses them until the unit
// has ended, and the entries about its bank account are read too: after its seller's journal was locked, because what rejects an
// account locks it too.
func (u *unit) loadPaused(d dialect, group []*unitJob) []load {
	asks := false
	var sent []string
	for _, j := range group {
		asks = asks || j.scope.ReadsPause
		if j.scope.ReadsPause && j.scope.Payout != "" {
			sent = append(sent, j.scope.Payout)
		}
	}
	var all []load
	if len(sent) > 0 {
		in, args := d.oneOf(nil, distinct(sent))
		all = append(all, load{entriesAboutColumns + ` WHERE e.subject IN (SELECT bank_account_id FROM payouts WHERE id ` + in + `)
			ORDER BY e.subject, e.owner, e.number`, args, u.scanEntry})
	}
	if len(sent) > 0 && d.sharePause != "" {
		all = append(all, load{d.sharePause, nil, func(*row) {}})
	}
	if asks {
		known := u.cached.end(decision.Platform)
		all = append(all, load{platformHead, []any{known.number}, func(r *row) {
			head, err := paused(u.macKeys, known, r)
			if u.paused, u.pausedErr = head.Frozen, err; err == nil && r.err == nil {
				u.cached.whole(head) // nothing that the unit writes is of the platform, and nothing is written yet
			}
		}})
	}
	return all
}

// loadHeads locks the journals of owners, and of those whose payouts are named.
func (u *unit) loadHeads(d dialect, owners, payouts []string) load {
	in, args := "IN ('')", []any(nil)
	if len(owners) > 0 {
		in, args = d.oneOf(args, owners)
	}
	if len(payouts) > 0 {
		whose, more := d.oneOf(args, payouts)
		in, args = `IN (SELECT owner FROM journals WHERE owner `+in+` UNION SELECT seller_id FROM payouts WHERE id `+whose+`)`, more
	}
	return load{`SELECT ` + headColumns + ` FROM journals WHERE owner ` + in + ` ORDER BY owner` + d.forUpdate("journals"), args, u.scanHead}
}

// followUps are the statements that depend on what was loaded: the payouts that the group's keys stand for already, the
// ends of journals, and whether owners without a row of totals have entries.
func (u *unit) followUps(d dialect, group []*unitJob) []load {
	var owners []string
	for _, j := range group {
		if owner := j.scope.Owner; owner != "" && u.journals[owner] == nil {
			owners = append(owners, owner)
		}
	}
	all := append(u.loadTails(d, group), u.repeats(d)...)
	if len(owners) > 0 {
		in, args := d.oneOf(nil, distinct(owners))
		// In one statement, or a first entry that is committed since the loads would look like one without its row.
		all = append(all, load{`SELECT DISTINCT owner FROM entries WHERE owner ` + in + `
			AND NOT EXISTS (SELECT 1 FROM journals WHERE journals.owner = entries.owner)`, args, u.scanOrphaned})
	}
	return all
}

func (u *unit) scanOrphaned(r *row) {
	var owner string
	r.Scan(&owner)
	u.orphaned[owner] = true
}

// repeats are the statements that read the payouts that the group's keys stand for already.
func (u *unit) repeats(d dialect) []load {
	var ids []string
	for _, m := range u.idempotency {
		if _, known := u.payouts[m.Payout]; !known && m.Payout != "" {
			ids = append(ids, string(m.Payout))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	in, args := d.oneOf(nil, distinct(ids))
	return []load{{selectPayouts + `WHERE p.id ` + in, args, u.scanPayout}}
}

func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

func (u *unit) scanPayout(r *row) {
	p := &payout.Payout{}
	r.Scan(payoutDest(p)...)
	u.payouts[p.ID] = p
}

func (u *unit) scanHead(r *row) {
	j := &unitJournal{}
	r.Scan(headFields.dest(&j.loaded)...)
	j.now = j.loaded
	u.journals[j.now.Owner] = j
}

func (u *unit) scanBankAccount(r *row) {
	a := storedAccount{Account: bank.Account{Current: true}}
	r.Scan(&a.Seller, &a.ID, &a.Holder, &a.IFSC, &a.Last4, &a.Status, &a.mac)
	u.bankAccounts[a.Seller] = a
}

func (u *unit) scanSession(r *row) {
	s := &storedSession{}
	r.Scan(s.dest()...)
	u.sessions[s.ID] = s
}

func (u *unit) scanIdempotency(r *row) {
	var k ownedKey
	var m payout.Idempotency
	r.Scan(&k.user, &k.key, &m.Fingerprint, &m.Payout, &m.Refusal)
	u.idempotency[k] = m
}

func (u *unit) scanEntry(r *row) {
	e, tampered := scanCheckedEntry(r, u.macKeys)
	at := entriesOf{e.Owner, e.Subject} // by owner: an entry that was copied to another journal must not count
	about := u.entries[at]
	about.list = append(about.list, e)
	about.err = errors.Join(about.err, tampered)
	u.entries[at] = about
}

// serve runs one change. What it did is kept only if it succeeds, so that a change that fails, or panics, takes nobody
// else's with it.
func (u *unit) serve(j *unitJob) (err error) {
	if err := j.ctx.Err(); err != nil {
		return errNotBegun.Because(err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	tx := &unitTx{u: u, scope: j.scope}
	if err := j.fn(tx); err != nil {
		return err
	}
	if tx.outside != nil {
		return tx.outside
	}
	tx.keep()
	return nil
}

// writeStatements are the statements that write what was decided, one per table.
func (u *unit) writeStatements(d dialect) []write {
	w := &u.writes
	// In one order: those of a seller without a journal are under no lock yet.
	slices.SortFunc(w.idempotency, func(a, b idempotencyRow) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.key, b.key))
	})
	var updates, first []headUpdate
	for _, j := range u.journals {
		switch update := (headUpdate{j.now, j.loaded.Number}); {
		case update.Number == update.from:
		case update.from == 0:
			first = append(first, update)
		default:
			updates = append(updates, update)
		}
	}
	byOwner := func(a, b headUpdate) int { return strings.Compare(a.Owner, b.Owner) }
	slices.SortFunc(first, byOwner)
	slices.SortFunc(updates, byOwner)
	changed := slices.SortedFunc(maps.Values(w.changed), func(a, b payoutUpdate) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return slices.Concat(
		idempotencyTable.inserts(d, w.idempotency), journalTable.inserts(d, first), journalTable.updates(d, updates), entryTable.inserts(d, w.entries),
		queuedEventTable.inserts(d, eventsOf(w.entries)), payoutTable.inserts(d, w.added), payoutTable.updates(d, changed),
	)
}

// unitTx is the unit as one change sees it. It works in memory alone, so it ignores contexts.
type unitTx struct {
	u     *unit
	scope ledger.Scope

	// heads are where the journals that the change appended to then stand.
	heads   []ledger.Head
	entries []ledger.Entry
	added   *payout.Payout
	changed *payoutUpdate
	saved   *idempotencyRow
	// outside says that the change asked for what it did not name, and must not be kept.
	outside error
}

// keep makes the change part of the unit.
func (tx *unitTx) keep() {
	u, w := tx.u, &tx.u.writes
	for _, head := range tx.heads {
		j := u.journals[head.Owner]
		if j == nil {
			j = &unitJournal{}
			u.journals[head.Owner] = j
		}
		j.now = head
	}
	w.entries = append(w.entries, tx.entries...)
	for _, e := range tx.entries {
		if !u.namesPayouts {
			continue
		}
		about := u.entries[entriesOf{e.Owner, e.Subject}]
		about.list = append(slices.Clone(about.list), e)
		u.entries[entriesOf{e.Owner, e.Subject}] = about
	}
	if tx.added != nil {
		w.added = append(w.added, payoutUpdate{Payout: *tx.added})
		u.payouts[tx.added.ID] = tx.added
	}
	if m := tx.changed; m != nil {
		if first, again := w.changed[m.ID]; again {
			m.from = first.from
		}
		w.changed[m.ID] = *m
		u.payouts[m.ID] = &m.Payout
	}
	if k := tx.saved; k != nil {
		w.idempotency = append(w.idempotency, *k)
		u.idempotency[k.ownedKey] = k.Idempotency
	}
}

// outsideScope refuses what was neither locked nor read.
func (tx *unitTx) outsideScope(what string) error {
	tx.outside = fmt.Errorf("a change of %s%s touches %s, which it did not name", tx.scope.Owner, tx.scope.Payout, what)
	return tx.outside
}

// head is where a journal stands that the change may append to. One without entries is not stored yet.
func (tx *unitTx) head(owner string) (head ledger.Head, known bool) {
	for _, own := range slices.Backward(tx.heads) {
		if own.Owner == owner {
			return own, true
		}
	}
	if owner != tx.scope.Owner && owner != tx.seller() {
		return head, false
	}
	if j := tx.u.journals[owner]; j != nil {
		return j.now, true
	}
	return ledger.NewHead(owner), true
}

// seller is whose payout the change names, or "".
func (tx *unitTx) seller() string {
	if p := tx.u.payouts[payout.ID(tx.scope.Payout)]; p != nil {
		return p.Seller
	}
	return ""
}

// bankAccount is the one that the payout goes to which the change names, or "".
func (tx *unitTx) bankAccount() string {
	if p := tx.u.payouts[payout.ID(tx.scope.Payout)]; p != nil {
		return string(p.BankAccountID)
	}
	return ""
}

func (tx *unitTx) Append(_ context.Context, p ledger.Posting) (ledger.Entry, error) {
	head, known := tx.head(p.Owner)
	if !known {
		return ledger.Entry{}, tx.outsideScope("the journal of " + p.Owner)
	}
	if tx.u.orphaned[p.Owner] {
		return ledger.Entry{}, errOrphaned
	}
	after, e, err := head.Post(tx.u.macKeys, p)
	if err != nil {
		return ledger.Entry{}, err
	}
	tx.heads = append(tx.heads, after)
	tx.entries = append(tx.entries, e)
	return e, nil
}

// errOrphaned refuses to begin a journal that has entries.
var errOrphaned = ledger.ErrTampered.Because(errors.New("there are entries, and the row of the balance is missing"))

func (tx *unitTx) EntriesAbout(_ context.Context, seller, id string) ([]ledger.Entry, error) {
	if id != tx.scope.Payout && (!tx.scope.ReadsPause || id != tx.bankAccount()) {
		return nil, tx.outsideScope("the entries about " + id)
	}
	about := tx.u.entries[entriesOf{seller, id}]
	var own []ledger.Entry
	for _, e := range slices.Concat(about.list, tx.entries) {
		if e.Owner == seller && e.Subject == id {
			own = append(own, e)
		}
	}
	return own, about.err
}

func (tx *unitTx) CheckJournal(_ context.Context, owner string, _ int64) error {
	if owner != tx.seller() {
		return tx.outsideScope("the journal's end of " + owner)
	}
	if tail := tx.u.tails[owner]; tail != nil {
		return tail.err
	}
	return ledger.ErrTampered.Because(fmt.Errorf("the journal of %s does not tell how payout %s came to its state", owner, tx.scope.Payout))
}

func (tx *unitTx) AccountToPay(_ context.Context, seller string) (bank.Account, error) {
	if seller != tx.scope.Owner {
		return bank.Account{}, tx.outsideScope("the bank account of " + seller)
	}
	a, found := tx.u.bankAccounts[seller]
	if !found {
		return bank.Account{}, bank.ErrNone
	}
	return a.Account, a.check(tx.u.macKeys)
}

// LiveSession is as [Tx.LiveSession], for the session that the change names.
func (tx *unitTx) LiveSession(_ context.Context, session string, now time.Time) (auth.Principal, bool, error) {
	if session != tx.scope.Session {
		return auth.Principal{}, false, tx.outsideScope("session " + session)
	}
	s := tx.u.sessions[session]
	if s == nil || !s.isLive(now) {
		return auth.Principal{}, false, nil
	}
	return s.principal(), true, s.check(tx.u.macKeys)
}

func (tx *unitTx) Balance(_ context.Context, seller string) (ledger.Balance, error) {
	head, known := tx.head(seller)
	if !known {
		return ledger.Balance{}, tx.outsideScope("the balance of " + seller)
	}
	return head.Balance, nil
}

func (tx *unitTx) PayoutsPaused(context.Context) (bool, error) {
	if !tx.scope.ReadsPause {
		return false, tx.outsideScope("whether payouts are paused")
	}
	return tx.u.paused, tx.u.pausedErr
}

func (tx *unitTx) InsertPayout(_ context.Context, p payout.Payout) error {
	if tx.added != nil || p.Seller != tx.scope.Owner {
		return tx.outsideScope("a payout of " + p.Seller)
	}
	tx.added = &p
	return nil
}

func (tx *unitTx) Payout(_ context.Context, id payout.ID) (payout.Payout, error) {
	if tx.changed != nil && tx.changed.ID == id {
		return tx.changed.Payout, nil
	}
	p, found := tx.u.payouts[id]
	if !found {
		return payout.Payout{}, payout.ErrNotFound
	}
	return *p, nil
}

func (tx *unitTx) PayoutForUpdate(ctx context.Context, id payout.ID) (payout.Payout, error) {
	if string(id) != tx.scope.Payout {
		return payout.Payout{}, tx.outsideScope("payout " + string(id))
	}
	return tx.Payout(ctx, id)
}

func (tx *unitTx) UpdatePayout(ctx context.Context, from payout.State, p payout.Payout) (bool, error) {
	now, err := tx.PayoutForUpdate(ctx, p.ID)
	if err != nil || now.State != from {
		return false, err
	}
	if tx.changed != nil {
		from = tx.changed.from
	}
	tx.changed = &payoutUpdate{p, from}
	return true, nil
}

func (tx *unitTx) SaveIdempotency(_ context.Context, user, key string, m payout.Idempotency, now time.Time) (bool, error) {
	k := ownedKey{user, key}
	if err := tx.ownKey(k); err != nil {
		return false, err
	}
	if _, taken := tx.u.idempotency[k]; taken {
		return false, nil
	}
	tx.saved = &idempotencyRow{k, m, now}
	return true, nil
}

func (tx *unitTx) SaveIdempotencyRefusal(_ context.Context, user, key, refusal string) error {
	if tx.saved == nil || tx.saved.ownedKey != (ownedKey{user, key}) {
		return fmt.Errorf("a refusal for a key of %s that was not stored", user)
	}
	tx.saved.Refusal = refusal
	return nil
}

func (tx *unitTx) Idempotency(_ context.Context, user, key string) (payout.Idempotency, error) {
	k := ownedKey{user, key}
	return tx.u.idempotency[k], tx.ownKey(k)
}

func (tx *unitTx) ownKey(k ownedKey) error {
	if k != (ownedKey{tx.scope.Owner, tx.scope.Key}) {
		return tx.outsideScope("an idempotency key of " + k.user)
	}
	return nil
}
