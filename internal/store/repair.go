package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// Repair is one row that was rebuilt from the journal, or would be.
type Repair struct {
	// Owner is whose journal says how the row has to be; empty for a row that no journal knows.
	Owner string
	// Subject is the row: an owner for the row of totals, or "sale:ID", a payout's or a bank account's id.
	Subject string
	// Change says what is wrong with the row and what becomes of it.
	Change string
	// Impossible says why the row can't be rebuilt, and what to do; empty where it can.
	Impossible string
}

// Repair rebuilds the rows that are not what their journal says, and lists them. It changes nothing unless apply is set, and
// what is shown then is what apply does. Other instances may go on meanwhile: each row is repaired in a transaction of its
// own, which locks the row and the journal, reads both again, and leaves alone what is right by then. An error ends the
// repair. What was repaired before it is listed beside it, and a second repair does the rest. Each change has an entry
// that says who ran the repair. A journal that was damaged itself can't be rebuilt from anything here: it has to come from
// a backup.
func (db *DB) Repair(ctx context.Context, keys AuditKeys, by string, now time.Time, apply bool) ([]Repair, error) {
	if err := db.CheckSchema(ctx); err != nil { // what is rebuilt would be undone
		return nil, err
	}
	if err := db.checkSound(ctx); err != nil { // a row that an index hides would count as missing
		return nil, err
	}
	found, currency, err := db.mismatches(ctx, keys)
	if err != nil {
		return nil, err
	}
	newRepairer := func(begin transactor) *repairer {
		return &repairer{
			begin: begin, apply: apply, keys: keys, words: currency, actor: ledger.ActorOperator + by, now: now,
			progress: progress{damaged: map[string]bool{}, accounts: map[bank.ID]bool{}, followed: map[ledger.Head]int{}},
		}
	}
	if apply {
		r := newRepairer(db.writer.updateSlowly)
		err := r.repair(ctx, found)
		return r.done, err
	}
	var shown []Repair
	err = ledger.DryRun(db.writer.updateSlowly)(ctx, func(tx *Tx) error { // one transaction, because later steps read what earlier ones wrote
		r := newRepairer(func(_ context.Context, fn func(*Tx) error) error { return fn(tx) })
		err := r.repair(ctx, found)
		shown = r.done
		return err
	})
	if err != nil {
		return nil, err
	}
	return shown, nil
}

// checkSound fails if the database's file is damaged, or an index of it lacks rows.
func (db *DB) checkSound(ctx context.Context) error {
	if db.dialect.unsound == "" {
		return nil
	}
	var problems []string
	if err := db.query(ctx, db.dialect.unsound, nil, collect(&problems, itself)); err != nil {
		return err
	}
	at := slices.IndexFunc(problems, func(problem string) bool { return !isDisallowed(problem) })
	if at < 0 {
		return nil
	}
	return fmt.Errorf("the database's file is not sound: %s. Nothing was repaired: %s", problems[at], howToMend)
}

// howToMend says what to do about a file that is not sound.
const howToMend = "if only an index is wrong, run REINDEX (sqlite3 FILE REINDEX); if a value is of the wrong kind, put it back by hand; " +
	"if not, restore the database from a backup, and check the disk"

// isDisallowed reports whether a problem of the file is that a row has a value which its table does not allow. The file is whole then: a
// statement did that with the checks turned off.
func isDisallowed(problem string) bool {
	return strings.HasPrefix(problem, "CHECK constraint failed in ")
}

// mismatches finds what is not as the journal says, from one consistent view.
func (db *DB) mismatches(ctx context.Context, keys AuditKeys) (mismatches, words, error) {
	a, end, err := db.newAuditor(ctx, keys)
	if err != nil {
		return mismatches{}, words{}, err
	}
	defer end()
	a.checkpoints()
	a.journals()
	a.bankAccounts()
	a.payouts()
	a.sales()
	a.sessions()
	a.all(`SELECT id, discrepancy FROM payouts WHERE discrepancy <> ''`, func(r *row) {
		var p payout.Payout
		r.Scan(&p.ID, &p.Discrepancy)
		if p.IsTampered() {
			a.found.rows = append(a.found.rows, string(p.ID))
		}
	})
	a.all(`SELECT id FROM payouts WHERE `+wrongStatus+` OR `+stuckPayout+` UNION ALL SELECT '`+sale.SubjectPrefix+`' || id FROM sales WHERE `+wrongRelease, func(r *row) {
		var subject string
		r.Scan(&subject)
		a.found.rows = append(a.found.rows, subject)
	})
	for _, list := range []*[]string{&a.found.journals, &a.found.rows} {
		*list = distinct(*list)
	}
	return a.found, a.words, a.err
}

// transactor runs a closure in a transaction.
type transactor func(context.Context, func(*Tx) error) error

// repairer rebuilds rows, step by step.
type repairer struct {
	begin transactor
	// apply says that the steps are kept. If not, they append nothing, so that they lock no journal that is whole.
	apply bool
	keys  AuditKeys
	words words
	actor string
	now   time.Time

	// tx is the transaction of the step that runs.
	tx *Tx
	progress
	// owners are all who may have a journal, and compared is how many entries were compared with one of them.
	owners   []string
	compared int
}

// progress is what the steps so far have done and found.
type progress struct {
	done []Repair
	// damaged are the owners whose journal can't be relied on, and accounts the bank accounts that were rebuilt.
	damaged  map[string]bool
	accounts map[bank.ID]bool
	// followed are journals with entries behind their end that the service did not write there, and how many.
	followed map[ledger.Head]int
	// unknown are bank accounts that no journal knows. Payouts may name them until those are rebuilt.
	unknown []bank.ID
}

// step runs fn in a transaction of its own. A transaction may be run again, so each run begins with the progress before it.
// That is also what is left if the transaction fails.
func (r *repairer) step(ctx context.Context, fn func() error) error {
	before := r.progress
	err := r.begin(ctx, func(tx *Tx) error {
		r.tx, r.progress = tx, before
		r.damaged, r.accounts, r.followed = maps.Clone(before.damaged), maps.Clone(before.accounts), maps.Clone(before.followed)
		return fn()
	})
	if err != nil {
		r.progress = before
	}
	return err
}

// repair makes the journals right before the rows, because the rows are rebuilt from them.
func (r *repairer) repair(ctx context.Context, found mismatches) error {
	if err := r.journals(ctx, found); err != nil {
		return err
	}
	if err := r.rows(ctx, found.rows); err != nil {
		return err
	}
	for _, id := range found.sessions {
		if err := r.step(ctx, func() error { return r.session(ctx, id) }); err != nil {
			return fmt.Errorf("repair session %s: %w", id, err)
		}
	}
	if err := r.earnings(ctx); err != nil {
		return fmt.Errorf("repair the earnings: %w", err)
	}
	if err := r.step(ctx, func() error { return r.feed(ctx) }); err != nil {
		return fmt.Errorf("repair the feed: %w", err)
	}
	return nil
}

// journals makes the rows of totals what their journals lead to.
func (r *repairer) journals(ctx context.Context, found mismatches) error {
	for _, owner := range found.journals { // before anything is appended where the entries are missing
		if err := r.step(ctx, func() error { return r.moved(ctx, owner) }); err != nil {
			return fmt.Errorf("look for entries that were moved to %s: %w", owner, err)
		}
	}
	for _, owner := range found.journals {
		if r.damaged[owner] {
			continue
		}
		err := r.step(ctx, func() error {
			return r.journal(ctx, owner, slices.Contains(found.rewritten, owner), found.sellers[owner])
		})
		if err != nil {
			return fmt.Errorf("repair the balance of %s: %w", owner, err)
		}
	}
	return r.removeFollowing(ctx)
}

// rows rebuilds sales, payouts and bank accounts.
func (r *repairer) rows(ctx context.Context, subjects []string) error {
	rebuild := func(subject string) error {
		if err := r.step(ctx, func() error { return r.rebuild(ctx, subject) }); err != nil {
			return fmt.Errorf("repair %s: %w", subject, err)
		}
		return nil
	}
	for _, subject := range subjects { // in their order, bank accounts come before the payouts that name them
		if err := rebuild(subject); err != nil {
			return err
		}
	}
	blamed, err := r.blamedOnAccounts(ctx, subjects)
	if err != nil {
		return err
	}
	for _, subject := range blamed {
		if err := rebuild(subject); err != nil {
			return err
		}
	}
	for _, id := range r.unknown {
		if err := r.step(ctx, func() error { return r.unknownAccount(ctx, id) }); err != nil {
			return fmt.Errorf("repair %s: %w", id, err)
		}
	}
	return nil
}

// rebuild makes one row what its entries fold to.
func (r *repairer) rebuild(ctx context.Context, subject string) error {
	owner, entries, err := r.locked(ctx, subject)
	switch id := bank.ID(subject); {
	case err != nil:
		return err
	case r.damaged[owner] || len(entries) == 0 && len(r.damaged) > 0: // its entries may be the damaged ones
		r.cannot(owner, subject, "the row is not what the journal says", "the journal itself is damaged; restore it from a backup first")
		return nil
	case strings.HasPrefix(subject, sale.SubjectPrefix):
		return r.sale(ctx, owner, strings.TrimPrefix(subject, sale.SubjectPrefix), entries)
	case !isBankAccount(subject):
		return r.payout(ctx, owner, payout.ID(subject), entries)
	case len(entries) == 0:
		r.unknown = append(r.unknown, id)
		return nil
	default:
		return r.bankAccount(ctx, owner, id, entries)
	}
}

func isBankAccount(subject string) bool { return strings.HasPrefix(subject, bank.IDPrefix) }

// locked locks the row of a subject, then the journal that knows it, as every other writer does. It returns the entries that
// are there then: nobody can add to them until the transaction ends.
func (r *repairer) locked(ctx context.Context, subject string) (owner string, entries []ledger.Entry, err error) {
	if err := r.lockRow(ctx, subject); err != nil {
		return "", nil, err
	}
	for {
		knows, entries, err := r.authentic(ctx, subject)
		if err != nil || knows == owner {
			return owner, entries, err
		}
		owner = knows
		if isBankAccount(subject) { // the row of the current one may be written too
			if _, err := r.tx.CurrentBankAccount(ctx, owner); err != nil && !errors.Is(err, bank.ErrNone) {
				return owner, nil, err
			}
		}
		if err := r.lockJournal(ctx, owner); err != nil {
			return owner, nil, err
		}
	}
}

// lockRow keeps others from changing the row of a subject, if there is one.
func (r *repairer) lockRow(ctx context.Context, subject string) error {
	var one int
	var err error
	switch id, isSale := strings.CutPrefix(subject, sale.SubjectPrefix); {
	case isSale:
		_, err = r.tx.one(ctx, `SELECT 1 FROM sales WHERE id = $1`+r.tx.dialect.forUpdate("sales"), []any{id}, &one)
	case isBankAccount(subject):
		_, err = r.tx.one(ctx, `SELECT 1 FROM bank_accounts WHERE id = $1`+r.tx.dialect.forUpdate("bank_accounts"), []any{subject}, &one)
	default:
		_, err = r.tx.one(ctx, `SELECT 1 FROM payouts WHERE id = $1`+r.tx.dialect.forUpdate("payouts"), []any{subject}, &one)
	}
	return err
}

// lockJournal keeps others from appending to a journal that is appended to.
func (r *repairer) lockJournal(ctx context.Context, owner string) error {
	if !r.apply {
		return nil
	}
	_, err := r.tx.head(ctx, owner)
	return err
}

// can notes a change, and records in the journal who made it.
func (r *repairer) can(ctx context.Context, owner, subject, change string, then ...ledger.Posting) error {
	r.done = append(r.done, Repair{Owner: owner, Subject: subject, Change: change})
	if owner == "" || !r.apply {
		return nil
	}
	data, err := ledger.Facts("repaired", change)
	if err != nil {
		return err
	}
	posting := ledger.Posting{Owner: owner, At: r.now, Type: ledger.Repaired, Subject: subject, Actor: r.actor, Data: data}
	for _, p := range slices.Insert(then, 0, posting) {
		if _, err := r.tx.Append(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// write runs statements that have to change what they name.
func (r *repairer) write(ctx context.Context, writes ...write) error {
	written, err := r.tx.write(ctx, writes)
	if err == nil && !written {
		err = errors.New("a row was not written")
	}
	return err
}

func (r *repairer) cannot(owner, subject, change, why string) {
	r.done = append(r.done, Repair{owner, subject, change, why})
}

// follow walks a journal from its first entry. It returns the last place that it leads to, and why it can't be followed
// further, if there are more entries.
func (tx *Tx) follow(ctx context.Context, keys ledger.Keys, owner string) (at ledger.Head, damage, err error) {
	at = ledger.NewHead(owner)
	for {
		page, err := tx.entriesAfter(ctx, owner, at.Number)
		if err != nil || len(page) == 0 {
			return at, nil, err
		}
		for _, e := range page {
			next, damage := at.Follow(keys, e)
			if damage != nil {
				return at, damage, nil
			}
			at = next
		}
	}
}

// entriesAfter is a page of an owner's entries above a number. One that can't be read has no hash that fits.
func (tx *Tx) entriesAfter(ctx context.Context, owner string, number int64) (page []ledger.Entry, err error) {
	err = tx.each(ctx, entriesFrom, []any{owner, number, auditPage}, func(r *row) {
		e, _ := scanEntry(r)
		page = append(page, e)
	})
	return page, err
}

// forged counts an owner's entries above a number, unless the service wrote one of them.
func (r *repairer) forged(ctx context.Context, owner string, number int64) (n int, err error) {
	for {
		page, err := r.tx.entriesAfter(ctx, owner, number)
		if err != nil || len(page) == 0 {
			return n, err
		}
		for _, e := range page {
			if e.IsOurs(r.keys) {
				return 0, nil
			}
			n, number = n+1, e.Number
		}
	}
}

// moved looks behind the end of a journal for entries that another journal lacks. The service wrote them for the owner of that one, so they
// must not be removed as if it had not.
func (r *repairer) moved(ctx context.Context, owner string) error {
	stored, err := r.tx.head(ctx, owner)
	if err != nil {
		return err
	}
	at, damage, err := r.tx.follow(ctx, r.keys, owner)
	if err != nil || damage == nil || stored != at { // else nothing is removed
		return err
	}
	for number := at.Number; ; {
		page, err := r.tx.entriesAfter(ctx, owner, number)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			from, err := r.lacks(ctx, e)
			if err != nil {
				return err
			}
			switch {
			case r.compared > maxCompared:
				r.damaged[owner] = true
				r.cannot(owner, owner, "there are entries behind the end of the journal, and too many to find out whose they are", "restore the journals from a backup")
				return nil
			case from != "":
				r.damaged[owner], r.damaged[from] = true, true
				r.cannot(from, from, "entries of its journal were moved to that of "+owner, "name "+from+" as their owner again, or restore the journals from a backup")
				return nil
			}
			number = e.Number
		}
	}
}

// lacks finds the owner for whom the service wrote an entry, and whose journal lacks it; "" if there is none.
func (r *repairer) lacks(ctx context.Context, e ledger.Entry) (owner string, err error) {
	if r.owners == nil {
		err := r.tx.each(ctx, `SELECT id FROM users UNION SELECT owner FROM journals ORDER BY 1`, nil, collect(&r.owners, itself))
		if err != nil {
			return "", err
		}
	}
	if r.compared += len(r.owners); r.compared > maxCompared {
		return "", nil
	}
	in := e.Owner
	for _, e.Owner = range r.owners {
		if e.Owner == in || !e.IsOurs(r.keys) {
			continue
		}
		var hash ledger.Hash
		_, err := r.tx.one(ctx, `SELECT hash FROM entries WHERE owner = $1 AND number = $2`, []any{e.Owner, e.Number}, &hash)
		if err != nil || hash != e.Hash {
			return e.Owner, err
		}
	}
	return "", nil
}

// maxCompared bounds how often an entry is compared with an owner in a repair: some seconds.
const maxCompared = 5_000_000

// journal makes a row of totals what its journal leads to. rewritten says that a checkpoint has the journal otherwise, and
// rowsDiffer that payouts, sales or bank accounts of the owner are not what the entries say.
func (r *repairer) journal(ctx context.Context, owner string, rewritten, rowsDiffer bool) error {
	stored, err := r.tx.head(ctx, owner)
	if err != nil {
		return err
	}
	at, damage, err := r.tx.follow(ctx, r.keys, owner)
	forged := 0
	if err == nil && damage != nil && stored == at { // the journal ends here, whatever follows
		forged, err = r.forged(ctx, owner, at.Number)
	}
	problem := ""
	switch {
	case err != nil:
		return err
	case damage != nil && forged == 0:
		problem = "the journal can't be followed: " + r.words.problem("", damage)
	case rewritten:
		problem = "the journal is not what a checkpoint has of it"
	case rowsDiffer && at.Number == 0:
		problem = "there are payouts, sales or bank accounts, and no entries"
	case forged > 0:
		r.followed[at] = forged
		return nil
	case stored == at:
		return nil
	case stored.Number > at.Number && stored.Check(r.keys) == nil: // the service wrote it, so there were such entries
		problem = r.words.balance(stored, at)
	case rowsDiffer && (stored.Number == 0 || stored.Number > at.Number): // the rows may know of entries that are gone
		problem = fmt.Sprintf("rows are not what the entries say, and nothing shows that entry %d is the last one", at.Number)
	}
	if problem != "" {
		r.damaged[owner] = true
		r.cannot(owner, owner, problem, "entries were changed or are missing; restore the journal from a backup")
		return nil
	}
	if at.Number == 0 {
		r.done = append(r.done, Repair{Owner: owner, Subject: owner, Change: "there is a balance and no journal; the balance is removed"})
		_, err := r.tx.exec(ctx, `DELETE FROM journals WHERE owner = $1`, owner)
		return err
	}
	if err := r.write(ctx, journalTable.puts(r.tx.dialect, []headUpdate{{Head: at}})...); err != nil {
		return err
	}
	delete(r.tx.absent, at.Owner)
	return r.can(ctx, owner, owner, r.words.balance(stored, at)+"; it becomes what the journal says")
}

// removeFollowing deletes what follows the ends of journals, unless any journal is damaged: an entry that it lacks may be there, under another
// number.
func (r *repairer) removeFollowing(ctx context.Context) error {
	isDamaged := len(r.damaged) > 0
	for _, end := range slices.SortedFunc(maps.Keys(r.followed), func(a, b ledger.Head) int { return strings.Compare(a.Owner, b.Owner) }) {
		if isDamaged {
			r.damaged[end.Owner] = true
			r.cannot(end.Owner, end.Owner, fmt.Sprintf("%d entries are behind the end of the journal, and a damaged journal may lack them", r.followed[end]),
				"restore the damaged journals first, and run this again")
		} else if err := r.step(ctx, func() error { return r.removeForged(ctx, end, r.followed[end]) }); err != nil {
			return fmt.Errorf("remove what follows the journal of %s: %w", end.Owner, err)
		}
	}
	return nil
}

// removeForged deletes the entries behind the end of a journal, unless the journal has gone on meanwhile: then they may be its own.
func (r *repairer) removeForged(ctx context.Context, end ledger.Head, n int) error {
	stored, err := r.tx.head(ctx, end.Owner)
	if err != nil || stored != end {
		return err
	}
	if _, err := r.tx.exec(ctx, `DELETE FROM entries WHERE owner = $1 AND number > $2`, end.Owner, end.Number); err != nil {
		return err
	}
	change := fmt.Sprintf("%d entries are behind the end of the journal, which the service did not write; they are removed", n)
	if end.Number == 0 { // there is no journal that could say so
		r.done = append(r.done, Repair{Owner: end.Owner, Subject: end.Owner, Change: change})
		return nil
	}
	return r.can(ctx, end.Owner, end.Owner, change)
}

// authentic is the entries about a subject that the service wrote, and whose they are. Copies in another journal, and
// what the service did not write, are left out.
func (r *repairer) authentic(ctx context.Context, subject string) (owner string, entries []ledger.Entry, err error) {
	err = r.tx.each(ctx, entriesAboutColumns+` WHERE e.subject = $1 ORDER BY e.owner, e.number`, []any{subject}, func(row *row) {
		if e, tampered := scanCheckedEntry(row, r.keys); tampered == nil {
			owner, entries = e.Owner, append(entries, e)
		}
	})
	return owner, entries, err
}

// unreadable notes that the entries of a subject can't be folded.
func (r *repairer) unreadable(owner, subject string, err error) {
	r.cannot(owner, subject, "its entries can't be read: "+err.Error(), "restore the journal from a backup")
}

// describeChange says what becomes of a row, or "" if nothing has to. Where the fields are right, otherwise says what is not.
func describeChange[R any](w words, missing bool, folded, stored R, otherwise string) string {
	mismatch, differs := ledger.Compare(folded, stored)
	switch {
	case missing:
		return "the row is missing; it is added again"
	case differs:
		return w.mismatch(mismatch) + "; the row becomes what the journal says"
	default:
		return otherwise
	}
}

// remove deletes a row that no journal knows, if it is there.
func (r *repairer) remove(ctx context.Context, subject, id string, statements ...string) error {
	var removed int64
	for _, statement := range statements {
		n, err := r.tx.exec(ctx, statement, id)
		if err != nil {
			return err
		}
		removed += n
	}
	if removed == 0 {
		return nil
	}
	return r.can(ctx, "", subject, "no journal knows this row; it is removed")
}

func (r *repairer) sale(ctx context.Context, owner, id string, entries []ledger.Entry) error {
	subject := sale.SubjectPrefix + id
	if len(entries) == 0 {
		return r.remove(ctx, subject, id, `DELETE FROM sale_refunds WHERE sale_id = $1`, `DELETE FROM sales WHERE id = $1`)
	}
	folded, err := sale.Fold(id, entries)
	refunds, refundsErr := sale.RefundsOf(id, entries)
	if err := errors.Join(err, refundsErr); err != nil {
		r.unreadable(owner, subject, err)
		return nil
	}
	stored, err := r.tx.SaleForUpdate(ctx, id)
	missing := errors.Is(err, sale.ErrNotFound)
	if err != nil && !missing {
		return err
	}
	otherwise, err := r.besideSale(ctx, folded, entries)
	if err != nil {
		return err
	}
	change := describeChange(r.words, missing, folded, stored, otherwise)
	if change == "" { // another transaction has made it right
		return nil
	}
	writes := append(saleTable.puts(r.tx.dialect, []sale.Sale{folded}), write{sql: `DELETE FROM sale_refunds WHERE sale_id = $1`, args: []any{id}, rows: anyRows})
	if err := r.write(ctx, append(writes, refundTable.inserts(r.tx.dialect, refunds)...)...); err != nil {
		return err
	}
	return r.can(ctx, owner, subject, change)
}

// besideSale says what is wrong with the refunds or the release of a sale whose fields are right; "" if nothing is.
func (r *repairer) besideSale(ctx context.Context, folded sale.Sale, entries []ledger.Entry) (wrong string, err error) {
	var stored []sale.Refund
	err = r.tx.each(ctx, selectRefunds+` WHERE sale_id = $1`, []any{folded.ID}, collect(&stored, refundDest))
	if err != nil {
		return "", err
	}
	var one int
	isWrong, err := r.tx.one(ctx, `SELECT 1 FROM sales WHERE id = $1 AND `+wrongRelease, []any{folded.ID}, &one)
	if !isWrong && sale.CheckRefunds(folded, stored, entries) == nil {
		return "", err
	}
	return "its refunds or the time of its release are not what they were, or its release was rescheduled because its seller's records were changed; they become what the journal says", err
}

func (r *repairer) bankAccount(ctx context.Context, owner string, id bank.ID, entries []ledger.Entry) error {
	folded, err := bank.Fold(id, entries)
	if err != nil {
		r.unreadable(owner, string(id), err)
		return nil
	}
	var stored storedAccount
	found, err := r.tx.one(ctx, selectStoredAccounts+`WHERE id = $1`, []any{string(id)}, storedAccountFields.dest(&stored)...)
	if err != nil {
		return err
	}
	otherwise := ""
	if stored.check(r.keys) != nil {
		otherwise = "the MAC of its row was changed; it is made again"
	}
	change := describeChange(r.words, !found, folded, stored.Account, otherwise)
	switch {
	case change != "":
	case stored.CheckNumber(r.keys) == nil: // another transaction has made it right
		return nil
	default:
		r.cannot(owner, string(id), "its encrypted number can't be read with the key set", "bring back the key that it was encrypted with")
		return nil
	}
	restored, then, err := folded.Rebuilt(stored.Account, r.actor, r.now)
	if err != nil {
		return err
	}
	mac, err := r.tx.signer.accountMAC(restored)
	if err != nil {
		return err
	}
	if len(then) > 0 {
		change += "; its number is nowhere else, so the account is rejected: have the seller register it again"
	}
	if restored.Current { // there is one for each seller
		if _, err := r.tx.exec(ctx, `UPDATE bank_accounts SET is_current = 0, mac = '' WHERE seller_id = $1 AND id <> $2 AND is_current = 1`, restored.Seller, string(id)); err != nil {
			return err
		}
	}
	if err := r.write(ctx, bankAccountTable.puts(r.tx.dialect, []storedAccount{{restored, mac}})...); err != nil {
		return err
	}
	r.accounts[id] = true
	return r.can(ctx, owner, string(id), change, then...)
}

// unknownAccount removes a bank account that no journal knows.
func (r *repairer) unknownAccount(ctx context.Context, id bank.ID) error {
	if _, entries, err := r.locked(ctx, string(id)); err != nil || len(entries) > 0 {
		return err
	}
	var payouts int
	if _, err := r.tx.one(ctx, `SELECT COUNT(*) FROM payouts WHERE bank_account_id = $1`, []any{string(id)}, &payouts); err != nil {
		return err
	}
	if payouts > 0 {
		r.cannot("", string(id), "no journal knows this row", fmt.Sprintf("%d payouts name it that can't be repaired either; see there", payouts))
		return nil
	}
	return r.remove(ctx, string(id), string(id), `DELETE FROM bank_accounts WHERE id = $1`)
}

func (r *repairer) payout(ctx context.Context, owner string, id payout.ID, entries []ledger.Entry) error {
	if len(entries) == 0 { // a copy of a payout that a journal knows was not paid itself
		var transfer string
		paid, err := r.tx.one(ctx, `SELECT gateway_id FROM payouts p WHERE id = $1 AND gateway_id <> ''
			AND NOT EXISTS (SELECT 1 FROM payouts q JOIN entries e ON e.subject = q.id AND e.owner = q.seller_id
				WHERE q.gateway_id = p.gateway_id AND q.gateway = p.gateway AND q.id <> p.id)`, []any{string(id)}, &transfer)
		if paid {
			r.cannot("", string(id), "no journal knows this row, which has transfer "+transfer+" of the gateway",
				"if the gateway has made that transfer for this payout, entries are missing: restore the journal from a backup; otherwise delete the row")
		}
		if paid || err != nil {
			return err
		}
		return r.remove(ctx, string(id), string(id), `DELETE FROM payouts WHERE id = $1`)
	}
	folded, err := payout.Fold(id, entries)
	if err != nil {
		r.unreadable(owner, string(id), err)
		return nil
	}
	account, damage, err := r.accountOf(ctx, folded)
	if err != nil {
		return err
	}
	if damage != "" {
		r.cannot(owner, string(id), "it goes to bank account "+string(account.ID), damage)
		return nil
	}
	var stored payout.Payout // beside the account that it has to have: the row may name one that is gone
	found, err := r.tx.one(ctx, `SELECT `+payoutColumns+` FROM payouts p JOIN bank_accounts b ON b.id = $2 WHERE p.id = $1`,
		[]any{string(id), string(account.ID)}, payoutDest(&stored)...)
	if err != nil {
		return err
	}
	restored, then, err := folded.Rebuilt(stored, r.accounts[account.ID], r.actor, r.now)
	if err != nil {
		return err
	}
	var one int
	unscheduled, err := r.tx.one(ctx, `SELECT 1 FROM payouts WHERE id = $1 AND (`+wrongStatus+` OR `+stuckPayout+`)`, []any{string(id)}, &one)
	if err != nil {
		return err
	}
	change := describeChange(r.words, !found, folded, stored, "")
	switch {
	case change == "" && len(then) == 0 && !unscheduled: // another transaction has made it right
		return nil
	case folded.OrderLost(stored):
		change += "; the journal has only the hash of the order that was sent, so nothing of it is sent again: ask the gateway, and decide on the payout in the admin's inbox"
	case change == "" && len(then) > 0:
		change = "it is what the journal says again; the discrepancy that was found is resolved"
	case change == "":
		change = "its status or its next step was changed; they follow from the journal"
	}
	if err := r.write(ctx, payoutTable.puts(r.tx.dialect, []payoutUpdate{{Payout: restored}})...); err != nil {
		return err
	}
	return r.can(ctx, owner, string(id), change, then...)
}

// accountOf finds the bank account that a payout goes to, or says why it is not what its own journal says.
func (r *repairer) accountOf(ctx context.Context, p payout.Payout) (a bank.Account, damage string, err error) {
	a.ID = p.BankAccountID
	found, err := r.tx.one(ctx, selectBankAccounts+`WHERE id = $1`, []any{string(a.ID)}, bankAccountFields.dest(&a)...)
	if err != nil || !found {
		return a, "the account's row is missing; repair that first", err
	}
	if r.accounts[a.ID] && a.Seller == p.Seller { // it was rebuilt just now, with entries that a dry run does not have
		return a, "", nil
	}
	entries, err := r.tx.EntriesAbout(ctx, a.Seller, string(a.ID))
	if err == nil {
		err = bank.CheckEntries(a, entries)
	}
	if errors.Is(err, ledger.ErrTampered) || err == nil && a.Seller != p.Seller {
		return a, "the account is not what its journal says; repair that first", nil
	}
	return a, "", err
}

// blamedOnAccounts lists payouts about which the gateway seemed to err, because the bank account's row was wrong. Those that were rebuilt
// are left out.
func (r *repairer) blamedOnAccounts(ctx context.Context, rebuilt []string) (blamed []string, err error) {
	err = r.step(ctx, func() error {
		blamed = nil
		return r.tx.each(ctx, `SELECT id, bank_account_id, discrepancy FROM payouts WHERE discrepancy <> '' ORDER BY id`, nil, func(row *row) {
			var p payout.Payout
			row.Scan(&p.ID, &p.BankAccountID, &p.Discrepancy)
			if r.accounts[p.BankAccountID] && (p.IsTampered() || p.DiffersInAccount()) && !slices.Contains(rebuilt, string(p.ID)) {
				blamed = append(blamed, string(p.ID))
			}
		})
	})
	return blamed, err
}

// session removes a session that the service did not write.
func (r *repairer) session(ctx context.Context, id string) error {
	forged := false
	err := r.tx.each(ctx, selectSessionMACs+`WHERE id = $1`+r.tx.dialect.forUpdate("sessions"), []any{id}, func(row *row) {
		_, isOurs := scanSessionMAC(row, r.keys)
		forged = !isOurs
	})
	if err != nil || !forged {
		return err
	}
	if _, err := r.tx.exec(ctx, `DELETE FROM sessions WHERE id = $1`, id); err != nil {
		return err
	}
	r.done = append(r.done, Repair{Subject: "session " + id, Change: "the service did not write its user or its end; it is removed, and its user signs in again"})
	return nil
}

// earnings makes the months' sums what the sales make.
func (r *repairer) earnings(ctx context.Context) error {
	var wrong []string
	err := r.step(ctx, func() (err error) {
		wrong, err = r.sellersOf(ctx, wrongEarnings)
		return err
	})
	if err != nil {
		return err
	}
	for _, seller := range wrong {
		if r.damaged[seller] {
			continue
		}
		if err := r.step(ctx, func() error { return r.earningsOf(ctx, seller) }); err != nil {
			return fmt.Errorf("%s: %w", seller, err)
		}
	}
	return nil
}

// sellersOf lists the sellers of wrongEarnings.
func (r *repairer) sellersOf(ctx context.Context, query string, args ...any) (sellers []string, err error) {
	err = r.tx.each(ctx, query, args, func(row *row) {
		var seller, month string
		var earned, sold int64
		row.Scan(&seller, &month, &earned, &sold)
		sellers = append(sellers, seller)
	})
	return distinct(sellers), err
}

// earningsOf adds up the earnings of a seller again. Sales and refunds wait for the lock of the journal.
func (r *repairer) earningsOf(ctx context.Context, seller string) error {
	if err := r.lockJournal(ctx, seller); err != nil {
		return err
	}
	wrong, err := r.sellersOf(ctx, wrongEarningsOfSeller, seller)
	if err != nil || len(wrong) == 0 {
		return err
	}
	err = r.write(ctx, write{sql: `DELETE FROM earnings WHERE seller_id = $1`, args: []any{seller}, rows: anyRows}, write{sql: `INSERT INTO earnings (seller_id, month, amount)
		SELECT seller_id, month, SUM(amount - refunded) FROM sales WHERE seller_id = $1 GROUP BY seller_id, month`, args: []any{seller}, rows: anyRows})
	if err != nil {
		return err
	}
	r.done = append(r.done, Repair{Owner: seller, Subject: seller, Change: "the earnings by month are not the sales'; they are added up again"})
	return nil
}

// feed has the numbers of new events go on behind the newest one. Where the row that counts them is gone or behind, no event
// gets a number. One that is ahead stays, unless there can't have been so many events: those that it counts may be gone, and the marketplace may
// have read them under their numbers.
func (r *repairer) feed(ctx context.Context) error {
	var last, newest, most int64
	if _, err := r.tx.one(ctx, selectLastEvent+r.tx.dialect.forUpdate("event_feed"), nil, &last); err != nil { // no event gets a number meanwhile
		return err
	}
	_, err := r.tx.one(ctx, `SELECT COALESCE((SELECT last FROM event_feed WHERE id = 1), -1), (SELECT COUNT(*) FROM users) + 2 * (SELECT COUNT(*) FROM entries)`, nil, &last, &most)
	if err == nil {
		err = r.eventNumbers(ctx, most)
	}
	if err == nil {
		_, err = r.tx.one(ctx, `SELECT COALESCE(MAX(number), 0) FROM events`, nil, &newest)
	}
	if err != nil || newest <= last && last <= most {
		return err
	}
	err = r.write(ctx, write{sql: `DELETE FROM event_feed WHERE id = 1`, rows: anyRows},
		write{sql: `INSERT INTO event_feed (id, last) VALUES (1, $1)`, args: []any{newest}, rows: 1})
	r.done = append(r.done, Repair{Subject: "event feed", Change: fmt.Sprintf("new events would get no numbers, or wrong ones; they go on behind event %d", newest)})
	return err
}

// eventNumbers gives the events whose numbers can't be theirs the numbers that are free, the lowest first. An entry and a user are two events
// and one at most, so no number is above most.
func (r *repairer) eventNumbers(ctx context.Context, most int64) error {
	var wrong []int64
	err := r.tx.each(ctx, `SELECT number FROM events WHERE number < 1 OR number > $1 ORDER BY owner, entry, number`, []any{most}, collect(&wrong, itself))
	free := int64(0)
	for _, number := range wrong {
		if err == nil {
			_, err = r.tx.one(ctx, `SELECT n FROM (SELECT $1 + 0 AS n UNION ALL SELECT number FROM events WHERE number > $1 AND number <= $2) AS q
				WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.number = q.n + 1) ORDER BY n LIMIT 1`, []any{free, most}, &free)
		}
		if free++; err == nil {
			err = r.write(ctx, write{sql: `UPDATE events SET number = $2 WHERE number = $1`, args: []any{number, free}, rows: 1})
		}
	}
	if err == nil && len(wrong) > 0 {
		r.done = append(r.done, Repair{Subject: "event feed", Change: fmt.Sprintf("%d events have numbers that can't be theirs; they get those that are free, up to %d", len(wrong), free)})
	}
	return err
}
