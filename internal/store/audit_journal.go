package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/sale"
)

// What a row of selectJournals is.
const (
	anEntry = iota
	aCheckpoint
	aJournal
)

// selectJournals is each owner's entries with, behind the last one that it covers, where each checkpoint and the row of
// totals have the journal.
var selectJournals = `SELECT ` + entryColumns + `, 0 AS what FROM entries
	UNION ALL SELECT seller_id, number, checkpoint, '', '', '', '', 0, 0, 0, 0, 0, 0, hash, '', totals, 1 FROM checkpoint_journals WHERE hash <> ''
	UNION ALL SELECT owner, number, 0, '', '', '', '', 0, 0, 0, 0, 0, 0, hash, mac, pending || ' ' || available || ' ' || in_transit || ' ' || earned || ' ' || withdrawn
		|| ' ' || sales || ' ' || processing || ' ' || completed || ' ' || failed || ' ' || cancelled
		|| CASE WHEN hold_until = 0 AND frozen = 0 THEN '' ELSE ' ' || hold_until END || CASE frozen WHEN 0 THEN '' ELSE ' ' || frozen END, 2 FROM journals
	ORDER BY 1, 2, 17`

// journals follows each journal from its first entry, and holds it against the row of totals and the checkpoints. After a
// break it goes on with what is there, so that each break is reported once.
func (a *auditor) journals() []ledger.Finding {
	f := ledger.Finding{
		Name:    "journals-are-whole",
		Promise: "Each journal's entries are numbered without a gap, follow on each other in hash and totals, were written by the service, and lead to the owner's balance and to what checkpoints hold.",
	}
	accounts := ledger.Finding{
		Name:    "payouts-go-to-current-accounts",
		Promise: "Each payout was requested to the bank account that was its seller's current one then.",
	}
	w := journalWalk{a: a, f: &f, accounts: &accounts, ended: true}
	begun := false // an entry that was inserted may have no owner
	a.all(selectJournals, func(r *row) {
		var what int
		e, tampered := scanEntry(r, &what)
		if !begun || e.Owner != w.at.Owner {
			w.begin(e.Owner)
			begun = true
		}
		if tampered != nil {
			w.brokenBy(tampered)
		}
		switch what {
		case anEntry:
			w.entry(e)
		case aCheckpoint:
			switch {
			case e.Number == w.at.Number && e.Hash == w.at.Hash && e.After == w.at.Balance:
			case a.checkpointsChanged:
				a.found.rewritten = append(a.found.rewritten, e.Owner)
				note(&f, ledger.Violation{Seller: e.Owner, Problem: fmt.Sprintf(
					"after entry %d the journal is not what is kept of it with checkpoint %d, and that was changed", e.Number, e.At.UnixMicro())}, restoreCheckpoints)
			default:
				a.found.rewritten = append(a.found.rewritten, e.Owner)
				w.broken(restoreJournal, "after entry %d the journal is not what checkpoint %d has of it", e.Number, e.At.UnixMicro())
			}
		case aJournal:
			w.totals(ledger.Head{Owner: e.Owner, Number: e.Number, Hash: e.Hash, Balance: e.After, MAC: e.MAC})
		}
	})
	w.begin("")
	a.all(selectWithoutEntries, func(r *row) {
		r.Scan(&w.at.Owner)
		w.broken(restoreJournal, "there are payouts, sales or bank accounts, and no entries")
	})
	return []ledger.Finding{f, accounts}
}

// journalWalk follows one journal after another.
type journalWalk struct {
	a  *auditor
	f  *ledger.Finding
	at ledger.Head // where the journal stands so far
	// account is the seller's current bank account so far, and accounts the finding about it. unsent are the payouts that were
	// requested to another one, as long as they are neither sent nor over.
	account  string
	accounts *ledger.Finding
	unsent   []ledger.Violation
	once     ledger.OncePerSubject
	// ended says that the row of totals was seen, and noted that the first entry behind it was reported, so that the others are not.
	ended, noted bool
	// torn says that the journal is not whole, so that it can't tell what the totals should be. closed says that it was whole up
	// to the row of totals, so that a repair removes what the service did not write behind it.
	torn, closed bool
}

// begin ends the walk of one journal, and begins that of another.
func (w *journalWalk) begin(owner string) {
	if !w.ended && !w.noted {
		advice := w.advice()
		if advice == runRepair {
			advice += unlessRowsDiffer
		}
		w.broken(advice, "there are entries up to number %d, and the row of the balance is missing", w.at.Number)
	}
	for _, v := range w.unsent {
		note(w.accounts, v, lookForPayout)
	}
	*w = journalWalk{a: w.a, f: w.f, accounts: w.accounts, at: ledger.NewHead(owner), once: ledger.OncePerSubject{}}
}

func (w *journalWalk) advice() string {
	if w.torn {
		return restoreJournal
	}
	return runRepair
}

func (w *journalWalk) broken(next, format string, args ...any) {
	note(w.f, ledger.Violation{Seller: w.at.Owner, Problem: fmt.Sprintf(format, args...)}, next)
	w.torn = w.torn || next == restoreJournal
	w.a.found.journals = append(w.a.found.journals, w.at.Owner)
}

// brokenBy notes what an error says of the journal.
func (w *journalWalk) brokenBy(err error) { w.broken(restoreJournal, "%s", w.a.words.problem("", err)) }

func (w *journalWalk) entry(e ledger.Entry) {
	next, err := w.at.Follow(w.a.keys, e)
	isForged := err != nil && w.a.keys != nil && !e.IsOurs(w.a.keys)
	if isForged {
		w.a.found.forged[entryPlace{e.Owner, e.Number}] = true
	}
	switch {
	case isForged && w.closed:
		w.broken(runRepair, "%s", w.a.words.problem("", err))
	case err != nil:
		w.brokenBy(err)
	}
	if !isForged {
		if err := w.once.Add(e); err != nil {
			w.brokenBy(err)
		}
	}
	if w.ended && !w.noted {
		w.broken(w.advice(), "entry %d is behind the end of the journal", e.Number)
		w.noted = true
	}
	w.at = next
	w.bankAccount(e)
}

// bankAccount notes which bank account is the current one after an entry, and a payout that was requested to another one: an attacker
// put back the row of a former account for that moment. One that ended before it was sent has done no harm.
func (w *journalWalk) bankAccount(e ledger.Entry) {
	isPayout := e.Type == ledger.PayoutRequested
	switch {
	case e.Type == ledger.PayoutSubmitting:
		for _, v := range w.endsWaiting(e.Subject) {
			note(w.accounts, v, lookForPayout)
		}
		return
	case e.Type == ledger.PayoutCancelled || e.Type == ledger.PayoutFailed:
		w.endsWaiting(e.Subject)
		return
	case !isPayout && !strings.HasPrefix(e.Subject, bank.IDPrefix):
		return
	}
	var says struct {
		Current *bool  `json:"current"`
		Account string `json:"bankAccount"`
	}
	if json.Unmarshal([]byte(e.Data), &says) != nil { // that the entry was changed is another finding
		return
	}
	switch {
	case isPayout && says.Account != w.account && !w.torn:
		w.unsent = append(w.unsent, ledger.Violation{Seller: e.Owner, Subject: e.Subject, Problem: fmt.Sprintf(
			"entry %d requested it to bank account %s, which was not the current one", e.Number, says.Account)})
	case isPayout || says.Current == nil:
	case *says.Current:
		w.account = e.Subject
	case e.Subject == w.account:
		w.account = ""
	}
}

// endsWaiting takes a payout off those that are not sent yet, and returns what is said of it.
func (w *journalWalk) endsWaiting(id string) (said []ledger.Violation) {
	w.unsent = slices.DeleteFunc(w.unsent, func(v ledger.Violation) bool {
		if v.Subject != id {
			return false
		}
		said = append(said, v)
		return true
	})
	return said
}

// totals holds the row of totals against the journal.
func (w *journalWalk) totals(row ledger.Head) {
	w.ended = true
	w.torn = w.torn || row.Number > w.at.Number // the last entries are missing
	w.closed = row == w.at && !w.torn
	if row != w.at {
		w.broken(w.advice(), "%s", w.a.words.balance(row, w.at))
	}
}

// selectWithoutEntries finds sellers whose journal is gone.
const selectWithoutEntries = `SELECT seller_id FROM (SELECT seller_id FROM sales UNION SELECT seller_id FROM payouts UNION SELECT seller_id FROM bank_accounts) AS sellers
	WHERE NOT EXISTS (SELECT 1 FROM entries WHERE owner = seller_id) ORDER BY seller_id`

// auditPage bounds how many rows are folded at once.
const auditPage = 500

// fold holds every row of a kind against what the entries about it fold to, a page of rows at a time. The subjects of
// the kind begin with prefix. rows lists a page of rows after a subject, and tells the last one's; check compares each
// with its entries and returns the subjects that there are rows for.
func (a *auditor) fold(prefix string, page func(after string, entries func(upTo string) map[string][]ledger.Entry) (last string, n int)) {
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1) // behind all subjects of the kind
	for after := prefix; a.err == nil; {
		last, n := page(after, func(upTo string) map[string][]ledger.Entry {
			if upTo == "" {
				upTo = end
			}
			about := map[string][]ledger.Entry{}
			a.all(`SELECT `+entryColumns+` FROM entries WHERE subject > $1 AND subject <= $2 ORDER BY subject, owner, number`, func(r *row) {
				e, _ := scanEntry(r) // the finding about its journal names one that was tampered with
				if !a.found.forged[entryPlace{e.Owner, e.Number}] {
					about[e.Subject] = append(about[e.Subject], e)
				}
			}, after, upTo)
			return about
		})
		if n < auditPage {
			return
		}
		after = last
	}
}

// compare notes what is wrong with one row, or with entries that have no row.
func (a *auditor) compare(f *ledger.Finding, about map[string][]ledger.Entry, subject, owner string, check func([]ledger.Entry) error) {
	var own []ledger.Entry
	for _, e := range about[subject] {
		if e.Owner == owner {
			own = append(own, e)
			continue
		}
		note(f, ledger.Violation{Seller: owner, Subject: subject, Problem: fmt.Sprintf("entry %d of seller %s is about it too", e.Number, e.Owner)}, runRepair)
	}
	delete(about, subject)
	if err := check(own); err != nil {
		a.mismatched(owner, subject)
		note(f, ledger.Violation{Seller: owner, Subject: subject, Problem: a.words.problem(subject, err)}, runRepair)
	}
}

// mismatched notes for "bursar repair" that a row is not what its entries fold to.
func (a *auditor) mismatched(owner, subject string) {
	a.found.rows = append(a.found.rows, subject)
	a.found.sellers[owner] = true
}

func (a *auditor) withoutRow(f *ledger.Finding, about map[string][]ledger.Entry) {
	for _, subject := range slices.Sorted(maps.Keys(about)) {
		e := about[subject][0]
		a.mismatched(e.Owner, subject)
		note(f, ledger.Violation{Seller: e.Owner, Subject: subject, Problem: fmt.Sprintf("entry %d is about it, and its row is missing", e.Number)}, runRepair)
	}
}

// payouts holds every payout against the journal.
func (a *auditor) payouts() ledger.Finding {
	f := ledger.Finding{Name: "payouts-match-journal", Promise: "Each payout is what its entries fold to, and each step moved the money that it stands for."}
	a.fold(payout.IDPrefix, func(after string, entries func(string) map[string][]ledger.Entry) (last string, n int) {
		var page []payout.Payout
		a.all(selectPayouts+`WHERE p.id > $1 ORDER BY p.id LIMIT $2 + 0`, collect(&page, payoutDest), after, auditPage)
		if len(page) == auditPage {
			last = string(page[len(page)-1].ID)
		}
		about := entries(last)
		for _, p := range page {
			a.compare(&f, about, string(p.ID), p.Seller, func(own []ledger.Entry) error { return payout.CheckEntries(p, own) })
		}
		a.withoutRow(&f, about)
		return last, len(page)
	})
	return f
}

// sales holds every sale and its refunds against the journal.
func (a *auditor) sales() ledger.Finding {
	f := ledger.Finding{Name: "sales-match-journal", Promise: "Each sale and each refund is what its entries fold to, and each step moved the money that it stands for."}
	a.fold(sale.SubjectPrefix, func(after string, entries func(string) map[string][]ledger.Entry) (last string, n int) {
		var page []sale.Sale
		first := after[len(sale.SubjectPrefix):]
		a.all(selectSales+`WHERE id > $1 ORDER BY id LIMIT $2 + 0`, collect(&page, saleFields.dest), first, auditPage)
		upTo := ""
		if len(page) == auditPage {
			upTo = page[len(page)-1].ID
			last = sale.SubjectPrefix + upTo
		}
		refunds := map[string][]sale.Refund{}
		a.all(selectRefunds+` WHERE sale_id > $1 AND ($2 = '' OR sale_id <= $2)`, func(r *row) {
			var refund sale.Refund
			r.Scan(refundDest(&refund)...)
			refunds[refund.Sale] = append(refunds[refund.Sale], refund)
		}, first, upTo)
		about := entries(last)
		for _, s := range page {
			a.compare(&f, about, sale.SubjectPrefix+s.ID, s.Seller, func(own []ledger.Entry) error {
				return cmp.Or(sale.CheckEntries(s, own), sale.CheckRefunds(s, refunds[s.ID], own))
			})
		}
		a.withoutRow(&f, about)
		return last, len(page)
	})
	return f
}

// bankAccounts holds every bank account against the journal, and opens its number.
func (a *auditor) bankAccounts() []ledger.Finding {
	f := ledger.Finding{Name: "bank-accounts-match-journal", Promise: "Each bank account is what its entries fold to."}
	numbers := ledger.Finding{Name: "account-numbers-are-encrypted", Promise: "Each bank account's number was encrypted with a key of the key set, for that account, and ends as it is shown."}
	a.fold(bank.IDPrefix, func(after string, entries func(string) map[string][]ledger.Entry) (last string, n int) {
		var page []storedAccount
		a.all(selectStoredAccounts+`WHERE id > $1 ORDER BY id LIMIT $2 + 0`, collect(&page, storedAccountFields.dest), after, auditPage)
		if len(page) == auditPage {
			last = string(page[len(page)-1].ID)
		}
		about := entries(last)
		for _, account := range page {
			a.compare(&f, about, string(account.ID), account.Seller, func(own []ledger.Entry) error {
				err := bank.CheckEntries(account.Account, own)
				if err == nil && a.keys != nil {
					err = account.check(a.keys)
				}
				return err
			})
			if a.keys != nil {
				if err := account.CheckNumber(a.keys); err != nil {
					a.found.rows = append(a.found.rows, string(account.ID))
					note(&numbers, ledger.Violation{Seller: account.Seller, Subject: string(account.ID), Problem: a.words.problem(string(account.ID), err)}, runRepair)
				}
			}
		}
		a.withoutRow(&f, about)
		return last, len(page)
	})
	return []ledger.Finding{f, numbers}
}

// checkpoints holds the published checkpoints against each other and against what is kept with them. Whose keys signed
// them is for those to say who have the keys.
func (a *auditor) checkpoints() []ledger.Finding {
	chain := ledger.Finding{Name: "checkpoints-are-signed", Promise: "Each checkpoint is signed, and names the one before it; each key that is published signed one."}
	journals := ledger.Finding{Name: "journals-match-checkpoint", Promise: "The newest checkpoint was made of the journals that are stored with it."}
	var last proof.Checkpoint
	a.all(`SELECT `+checkpointColumns+` ORDER BY c.number`, func(r *row) {
		c, key := scanCheckpoint(r)
		for _, err := range []error{c.SignedBy(key), c.Follows(last)} {
			if err != nil {
				note(&chain, ledger.Violation{Subject: fmt.Sprint("checkpoint ", c.Number), Problem: err.Error()}, restoreCheckpoints)
			}
		}
		last = c
	})
	a.each(`SELECT k.kid FROM checkpoint_keys k WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.kid = k.kid) ORDER BY k.kid`, func(r *row) {
		var kid string
		r.Scan(&kid)
		note(&chain, ledger.Violation{Subject: "key " + kid, Problem: "it is published, and signed no checkpoint"}, restoreCheckpoints)
	})
	var root proof.Root
	a.all(`SELECT seller_id, number, hash, behind FROM checkpoint_journals s
		WHERE checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_journals WHERE seller_id = s.seller_id
			AND checkpoint <= (SELECT MAX(number) FROM checkpoints)) AND hash <> '' ORDER BY seller_id`, func(r *row) {
		var seller string
		var c ledger.Head
		var behind bool
		r.Scan(&seller, &c.Number, &c.Hash, flagged{&behind})
		root.Add(seller, c, behind)
	})
	if last.Number > 0 && (root.String() != last.Root || root.Journals() != last.Journals) {
		a.checkpointsChanged = true
		note(&journals, ledger.Violation{Subject: fmt.Sprint("checkpoint ", last.Number), Problem: fmt.Sprintf(
			"it is about %d journals with the root %s, and %d are kept, with the root %s", last.Journals, last.Root, root.Journals(), root.String())}, restoreCheckpoints)
	}
	return []ledger.Finding{chain, journals}
}
