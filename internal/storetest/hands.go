package storetest

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// What nothing in the database can tell from what was there before, and why. docs/statements.md says so too.
const (
	shownOnly  = "is shown, and moves no money"
	schedules  = "says when to look next, and no more"
	gatewayHas = "only the gateway has another record of it"
	byKeys     = "is sealed under a key that is not in the database: bursar audit opens it with the key set"
	tellsApart = "tells rows apart, and no more"
	forgets    = "expires anyway: a repeat under it is a new request"
	speedsUp   = "is one of several that lead to a head, and the newer ones still do"
	bySeal     = "is sealed with a key that is not in the database: bursar audit holds it against the key set"
	decides    = "decides about the next payout, and nothing else tells it"
)

// hands are what changing each column by hand is found by: the name of a finding, or one of the reasons above
// why it is found by nothing. set is how it is changed, unless that is obvious.
var hands = map[string]struct {
	row     string
	dropped string // what dropping the row is found by
	columns map[string]hand
}{
	"transfers": {"seller_id = 'usr_a' AND number = 3", "chains-are-whole", map[string]hand{
		"seller_id": {"chains-are-whole", "'usr_empty'"}, "number": {"chains-are-whole", "number + 1000"}, "at": {"chains-are-whole", ""},
		"kind": {"chains-are-whole", ""}, "debit": {"chains-are-whole", ""}, "credit": {"chains-are-whole", ""},
		"amount": {"chains-are-whole", ""}, "ref": {"chains-are-whole", ""},
	}},
	"seller_balances": {"seller_id = 'usr_a'", "owners-are-there", map[string]hand{
		"seller_id": {"owners-are-there", ""}, "pending": {"balances-match-transfers", ""}, "available": {"balances-match-transfers", ""},
		"in_transit": {"balances-match-transfers", ""}, "earned": {"totals-match-transfers", ""}, "withdrawn": {"totals-match-transfers", ""},
		"transfers": {"transfers-are-complete", ""}, "sales": {"counters-match-rows", ""}, "processing": {"counters-match-rows", ""},
		"completed": {"counters-match-rows", ""}, "failed": {"counters-match-rows", ""}, "cancelled": {"counters-match-rows", ""},
		"head": {"chains-are-whole", ""}, "chained": {"chains-are-whole", "-1"},
	}},
	"earnings": {"seller_id = 'usr_a'", "earned-matches-sales", map[string]hand{
		"seller_id": {"months-match-sales", "'usr_empty'"}, "month": {"months-match-sales", "'2020-01'"}, "amount": {"months-match-sales", ""},
	}},
	"sales": {"id = 'sale for usr_a'", "transfers-have-a-cause", map[string]hand{
		"id": {"sales-match-transfers", ""}, "seller_id": {"sales-match-transfers", "'usr_b'"}, "amount": {"sales-match-transfers", ""},
		"refunded": {"sales-match-transfers", ""}, "month": {"months-match-sales", ""}, "occurred_at": {"sales-match-requests", ""},
		"available_at": {"sales-match-requests", ""}, "released_at": {"times-match-transfers", ""}, "created_at": {"times-match-transfers", ""},
		"fingerprint": {"sales-match-requests", ""},
	}},
	"sale_refunds": {"id = 'refund'", "refunds-match-transfers", map[string]hand{
		"sale_id": {"refunds-match-transfers", ""}, "id": {tellsApart, ""}, "amount": {"refunds-match-transfers", ""},
		"at": {"refunds-match-transfers", ""}, "fingerprint": {"sales-match-requests", ""},
	}},
	"payouts": {"id = 'pyt_completed'", "transfers-have-a-cause", map[string]hand{
		"id": {"payouts-match-transfers", ""}, "seller_id": {"payouts-match-transfers", "'usr_b'"}, "bank_account_id": {"owners-are-there", "'bka_usr_b'"},
		"amount": {"payouts-match-transfers", ""}, "fee": {"payouts-match-transfers", ""}, "notes": {bySeal, ""}, "mode": {"payouts-match-records", ""},
		"state": {"history-is-unbroken", "'returned'"}, "status": {"status-follows-state", "'failed'"},
		"requested_at": {"times-match-transfers", ""}, "arrive_at": {bySeal, ""}, "sent_at": {"times-match-transfers", "COALESCE(sent_at, 0) + 70000000"},
		"processed_at": {bySeal, ""}, "completed_at": {"times-match-transfers", "completed_at + 70000000"}, "ended_at": {"times-match-transfers", "ended_at + 70000000"},
		"due_at": {schedules, ""}, "tries": {schedules, ""}, "order_body": {"orders-match-payouts", ""}, "gateway_id": {"payouts-match-records", ""},
		"progress": {shownOnly, ""}, "utr": {"payouts-match-records", ""}, "reason_code": {bySeal, ""}, "reason": {bySeal, ""},
		"contradiction": {"gateway-agrees", ""}, "record": {"payouts-match-records", ""}, "history": {bySeal, ""}, "seal": {bySeal, ""},
	}},
	"payout_events": {"payout_id = 'pyt_completed' AND number = 2", "history-is-unbroken", map[string]hand{
		"payout_id": {"history-is-unbroken", ""}, "number": {"history-is-unbroken", "number + 1"}, "at": {"times-match-transfers", "at + 70000000"},
		"from_state": {"history-is-unbroken", ""}, "to_state": {"history-is-unbroken", ""}, "reason": {bySeal, ""},
	}},
	"bank_accounts": {"id = 'bka_usr_a'", "owners-are-there", map[string]hand{
		"id": {"owners-are-there", ""}, "seller_id": {"owners-are-there", "'usr_c'"}, "is_current": {decides, "0"}, "holder": {bySeal, ""},
		"ifsc": {bySeal, ""}, "last4": {bySeal, ""}, "sealed_number": {byKeys, ""}, "seal": {bySeal, ""}, "status": {bySeal, "'rejected'"}, "reason": {bySeal, ""},
		"registered_name": {bySeal, ""}, "name_score": {bySeal, ""}, "beneficiary": {"orders-match-payouts", ""},
		"verification_id": {"decisions-are-on-record", "''"}, "tries": {schedules, ""}, "due_at": {schedules, ""}, "created_at": {bySeal, ""}, "verified_at": {bySeal, ""},
	}},
	"idempotency_keys": {"user_id = 'usr_b'", forgets, map[string]hand{
		"user_id": {"keys-match-payouts", ""}, "key": {tellsApart, ""}, "fingerprint": {"keys-match-payouts", ""},
		"payout_id": {"keys-match-payouts", ""}, "refusal": {"keys-match-payouts", ""}, "created_at": {tellsApart, ""},
	}},
	"strays": {"gateway_id = 'pout_stray'", gatewayHas, map[string]hand{
		"gateway_id": {"decisions-are-on-record", ""}, "reference": {gatewayHas, ""}, "seller_id": {gatewayHas, ""}, "amount": {gatewayHas, ""},
		"progress": {gatewayHas, ""}, "made_at": {gatewayHas, ""}, "found_at": {shownOnly, ""}, "why": {shownOnly, ""}, "settled": {"strays-are-settled", "0"},
	}},
	"checkpoints": {"number = 1", "checkpoints-are-signed", map[string]hand{
		"number": {"checkpoints-are-signed", "number + 1000"}, "at": {"checkpoints-are-signed", ""}, "currency": {"checkpoints-are-signed", ""},
		"books": {"checkpoints-are-signed", ""}, "root": {"checkpoints-are-signed", ""}, "previous": {"checkpoints-are-signed", ""},
		"kid": {"checkpoints-are-signed", ""}, "signature": {"checkpoints-are-signed", ""},
	}},
	"checkpoint_books": {"seller_id = 'usr_a' AND checkpoint = 1", speedsUp, map[string]hand{
		"seller_id": {"chains-are-whole", ""}, "checkpoint": {tellsApart, "checkpoint + 1000"}, "transfers": {"chains-are-whole", ""},
		"pending": {"chains-are-whole", ""}, "available": {"chains-are-whole", ""}, "in_transit": {"chains-are-whole", ""}, "head": {"chains-are-whole", ""},
	}},
	"checkpoint_keys": {"1 = 1", "checkpoints-are-signed", map[string]hand{
		"kid": {"checkpoints-are-signed", ""}, "public_key": {"checkpoints-are-signed", ""},
	}},
	"decisions": {"subject = 'pyt_given'", "decisions-are-on-record", map[string]hand{
		"id": {tellsApart, ""}, "at": {shownOnly, ""}, "admin_id": {shownOnly, ""}, "action": {"decisions-are-on-record", ""},
		"subject": {"decisions-are-on-record", ""}, "note": {shownOnly, ""},
	}},
}

type hand struct{ finding, set string }

// world is a database with something in each table that bears on money, and two checkpoints.
func (b *bench) world() {
	b.Helper()
	b.now = b.now.AddDate(10, 0, 0) // after decisions began to be recorded
	b.books()
	seller := b.seller("usr_b")
	b.fund(seller, 5000)
	refund := sale.Refund{ID: "refund", Sale: "sale for usr_b", Amount: 500, At: b.now, Fingerprint: "500"}
	b.update(func(tx *store.Tx) error {
		if _, err := tx.AddRefunded(b.ctx(), refund.Sale, refund.Amount); err != nil {
			return err
		}
		if err := tx.InsertRefund(b.ctx(), refund); err != nil {
			return err
		}
		if err := ledger.Post(b.ctx(), tx, ledger.Posting{Seller: seller, At: b.now, Transfers: ledger.RefundSale(refund.Sale, 500, true)}); err != nil {
			return err
		}
		return tx.AddEarnings(b.ctx(), seller, "2026-11", -500)
	})
	_, err := b.request(seller, "key", "pyt_keyed", 600)
	b.must(err)
	for _, seller := range []string{"usr_a", "usr_b"} {
		b.nameAtGateway(bank.ID("bka_"+seller), "", "fa_"+seller, true)
	}
	sending := b.ask("pyt_sending", "usr_a", 800, 10)
	sending.OrderBody, sending.SentAt = "790 to fa_usr_a, bka_usr_a of usr_a, of 800", b.now
	b.move(sending, payout.Submitting)
	b.decided()
	b.checkpoint()
}

// decided adds what an admin decided: a payout that was given back, a stray that was settled, a role.
func (b *bench) decided() {
	b.Helper()
	given := b.move(b.ask("pyt_given", "usr_a", 500, 0), payout.Submitting)
	given = b.move(b.move(given, payout.Unknown), payout.Held)
	given.ReasonCode, given.EndedAt, given.DueAt = "given_back", b.now, time.Time{}
	b.move(given, payout.Failed, ledger.Posting{
		Transfers: ledger.ReleasePayout("pyt_given", 500), Counts: ledger.Counts{Processing: -1, Failed: 1},
	})
	by := decision.By{Admin: "usr_admin", Note: "Now seller. As agreed."}
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), auth.User{ID: "usr_admin", Email: "admin", Role: auth.Admin, CreatedAt: b.now}); err != nil {
			return err
		}
		stray := payout.Stray{Transfer: payout.Transfer{Report: payout.Report{GatewayID: "pout_stray", Reference: "pyt_lost", Amount: 100}}, FoundAt: b.now, Why: "lost"}
		if _, err := tx.RecordStray(b.ctx(), stray); err != nil {
			return err
		}
		if _, err := tx.SettleStray(b.ctx(), "pout_stray"); err != nil {
			return err
		}
		for subject, action := range map[string]decision.Action{
			"pyt_given": decision.GivePayoutBack, "pout_stray": decision.SettleStray, "usr_b": decision.ChangeAccess,
		} {
			if err := tx.RecordDecision(b.ctx(), decision.New(by, action, subject, b.now)); err != nil {
				return err
			}
		}
		return nil
	})
}

// tampered is a copy of a database that is changed by hand and put right again, over and over.
type tampered struct {
	*bench
	hands func(statement string)
}

// tables are all that the hunt changes, and those that have to be put right again with them.
func (b *bench) tampered() *tampered {
	b.Helper()
	var keep []string
	for _, table := range tables() {
		keep = append(keep, fmt.Sprintf("CREATE TABLE kept_%[1]s AS SELECT * FROM %[1]s", table)) //nolint:unqueryvet // all of it
	}
	copied := b.with(b.engine.Tamper(b.T, b.db, "UPDATE users SET name = name"))
	t := &tampered{copied, b.engine.Hands(b.T, copied.db)}
	t.hands(strings.Join(keep, "; "))
	return t
}

func tables() []string { return append(slices.Sorted(maps.Keys(hands)), "users") }

func (t *tampered) restore() {
	t.Helper()
	var undo []string
	for _, table := range tables() {
		undo = append(undo, fmt.Sprintf("DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM kept_%[1]s", table)) //nolint:unqueryvet // all of it
	}
	t.hands(strings.Join(undo, "; "))
}

// found is what the audit finds after a change, by name; the change is undone then.
func (t *tampered) found(change string) map[string]string {
	t.Helper()
	t.hands(change)
	defer t.restore()
	return t.broken()
}

func (t *tampered) broken() map[string]string {
	t.Helper()
	report, err := t.db.Audit(t.ctx())
	t.must(err)
	found := map[string]string{}
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			found[f.Name] = strings.Join(f.Violations, "; ")
		}
	}
	return found
}

// testHands changes each column of each table that bears on money, and drops, doubles and adds rows; each is
// found by the audit, or is on the list of what is not, with a reason.
func testHands(t *testing.T, b *bench) {
	t.Helper()
	b.world()
	b.wantCleanAudit()
	b.wantUnsealed(3, 7, 5)
	promises := map[string]bool{}
	report, err := b.db.Audit(b.ctx())
	b.must(err)
	for _, f := range report.Findings {
		promises[f.Name] = true
	}
	copied := b.tampered()
	check := func(change, want string) {
		t.Helper()
		found := copied.found(change)
		if promises[want] && found[want] == "" {
			t.Errorf("%s breaks %v, want %s among them", change, found, want)
		}
		if !promises[want] && len(found) > 0 {
			t.Errorf("%s breaks %v, and is said to break nothing, because it %s", change, found, want)
		}
	}
	for _, table := range slices.Sorted(maps.Keys(hands)) {
		rows := hands[table]
		check(fmt.Sprintf("DELETE FROM %s WHERE %s", table, rows.row), rows.dropped)
		for _, column := range b.engine.Columns(t, copied.db, table) {
			h, known := rows.columns[column.Name]
			if !known {
				t.Errorf("nobody has said what changing %s.%s is found by", table, column.Name)
				continue
			}
			set := h.set
			switch {
			case set == "" && column.IsNumber:
				set = "COALESCE(" + column.Name + ", 0) + 1"
			case set == "":
				set = column.Name + " || 'x'"
			}
			check(fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", table, column.Name, set, rows.row), h.finding)
		}
	}
	if left := copied.broken(); len(left) > 0 {
		t.Errorf("what was put right is still broken: %v", left)
	}
}

// forged is what somebody has who knows how all of this is made, and lacks the key.
type forged struct{ *tampered }

// rechain computes a seller's chain anew from the transfers as they are now, and puts it in place of what is kept.
func (f forged) rechain(seller string) {
	f.Helper()
	f.hands(fmt.Sprintf(`UPDATE seller_balances SET head = '%s' WHERE seller_id = '%s'`, f.rebuilt(seller).Head, seller))
}

// reseal does the same with all that the checkpoints have of it.
func (f forged) reseal(seller string) {
	f.Helper()
	f.rechain(seller)
	chain := ledger.NewChain(seller)
	entries, err := f.db.EntriesAfter(f.ctx(), seller, 0, 1000)
	f.must(err)
	for _, e := range entries {
		chain = chain.Add(e.At, e.Transfer)
		f.hands(fmt.Sprintf(`UPDATE checkpoint_books SET pending = %d, available = %d, in_transit = %d, head = '%s' WHERE seller_id = '%s' AND transfers = %d`,
			chain.Pending, chain.Available, chain.InTransit, chain.Head, seller, chain.Number))
	}
}

// root puts the newest checkpoint's root right.
func (f forged) root() {
	f.Helper()
	last, _, err := f.db.LastCheckpoint(f.ctx())
	f.must(err)
	books, err := f.db.Books(f.ctx(), last.Number, "", 1000)
	f.must(err)
	var root proof.Root
	for _, b := range books {
		if b.Sealed.Head != "" {
			root.Add(b.Seller, b.Sealed)
		}
	}
	f.hands(fmt.Sprintf(`UPDATE checkpoints SET root = '%s', books = %d WHERE number = %d`, root.String(), root.Books(), last.Number))
}

// start lets all checkpoints be forgotten, and makes a first one with somebody's key.
func (f forged) start(key signer) {
	f.Helper()
	f.hands(`DELETE FROM checkpoints; DELETE FROM checkpoint_keys; DELETE FROM checkpoint_books`)
	s, err := proof.New(proof.Options{
		Store: f.db.Proofs(), Signer: key, Currency: rupees(f.bench), Every: time.Hour, Zone: time.UTC,
		Now: func() time.Time { return f.now }, Logger: slog.New(slog.DiscardHandler),
	})
	f.must(err)
	_, err = s.Make(f.ctx(), proof.Trust{})
	f.must(err)
}

// Somebody's clever changes, each in so many steps as it takes to have every sum right again.
const (
	// moreSold makes one of usr_a's sales worth 100 more, from the request to the balance.
	moreSold = `UPDATE sales SET amount = amount + 100, fingerprint = 'usr_a ' || (amount + 100) || ' - -' WHERE id = 'sale for usr_a';
		UPDATE transfers SET amount = amount + 100 WHERE ref = 'sale for usr_a' AND seller_id = 'usr_a';
		UPDATE earnings SET amount = amount + 100 WHERE seller_id = 'usr_a';
		UPDATE seller_balances SET available = available + 100, earned = earned + 100 WHERE seller_id = 'usr_a'`
	// lessPaid makes a completed payout one of 100 less, with all its transfers.
	lessPaid = `UPDATE payouts SET amount = amount - 100 WHERE id = 'pyt_completed';
		UPDATE transfers SET amount = amount - 100 WHERE ref = 'pyt_completed' AND kind IN ('payout_hold', 'payout_paid');
		UPDATE seller_balances SET available = available + 100, withdrawn = withdrawn - 100 WHERE seller_id = 'usr_a'`
	// lastUndone drops a seller's last payout, as if it had never been asked for.
	lastUndone = `DELETE FROM transfers WHERE ref = 'pyt_keyed'; DELETE FROM payouts WHERE id = 'pyt_keyed'; DELETE FROM idempotency_keys;
		UPDATE seller_balances SET available = available + 600, in_transit = in_transit - 600, processing = processing - 1,
			transfers = transfers - 1, chained = chained - 1 WHERE seller_id = 'usr_b'`
	// madeUp adds a sale that never was, and that can be withdrawn at once.
	madeUp = `INSERT INTO sales SELECT 'made up', seller_id, amount, 0, month, occurred_at, available_at, released_at, created_at, fingerprint FROM sales WHERE id = 'sale for usr_a';
		INSERT INTO transfers SELECT seller_id, number + 17, at, kind, debit, credit, amount, 'made up' FROM transfers WHERE seller_id = 'usr_a' AND number IN (1, 2);
		UPDATE earnings SET amount = amount + 10000 WHERE seller_id = 'usr_a';
		UPDATE seller_balances SET available = available + 10000, earned = earned + 10000, sales = sales + 1, transfers = transfers + 2 WHERE seller_id = 'usr_a'`
)

// testForgeries changes the books so that every sum is right again, and goes further and further in hiding it.
func testForgeries(t *testing.T, b *bench) {
	t.Helper()
	b.world()
	kept := []proof.Kept{b.statement("usr_a"), b.statement("usr_b"), {Checkpoint: b.checkpoint()}}
	f := forged{b.tampered()}
	gone := func(seller string) func() {
		return func() {
			for _, table := range []string{"transfers", "sales", "earnings", "payouts", "bank_accounts", "checkpoint_books", "seller_balances"} {
				f.hands(fmt.Sprintf("DELETE FROM %s WHERE seller_id = '%s'", table, seller))
			}
			f.hands(fmt.Sprintf("DELETE FROM users WHERE id = '%s'; DELETE FROM idempotency_keys WHERE user_id = '%[1]s'; DELETE FROM sale_refunds", seller))
			f.hands("DELETE FROM payout_events WHERE payout_id NOT IN (SELECT id FROM payouts); DELETE FROM decisions WHERE subject = '" + seller + "'")
		}
	}
	swap := `UPDATE transfers SET number = 7 - number + 100 WHERE seller_id = 'usr_a' AND number IN (3, 4); UPDATE transfers SET number = number - 100 WHERE number > 100`
	for _, tt := range []struct {
		name  string
		sql   string
		hide  func()
		found string // by the audit alone; "" where it takes what was kept
	}{
		{"a sale's amount", moreSold, nil, "chains-are-whole"},
		{"a sale's amount, chained", moreSold, func() { f.rechain("usr_a") }, "chains-are-whole"},
		{"a sale's amount, chained and sealed", moreSold, func() { f.reseal("usr_a") }, "books-match-checkpoint"},
		{"a sale's amount, and the root", moreSold, func() { f.reseal("usr_a"); f.root() }, "checkpoints-are-signed"},
		{"a sale's amount, with no checkpoint from before", moreSold, func() { f.rechain("usr_a"); f.start(newSigner(1)) }, ""},
		{"a payout's amount", lessPaid, nil, "chains-are-whole"},
		{"a payout's amount, chained and sealed", lessPaid, func() { f.reseal("usr_a") }, "books-match-checkpoint"},
		{"a payout undone", lastUndone, nil, "chains-are-whole"},
		{"a payout undone, chained", lastUndone, func() { f.rechain("usr_b") }, "chains-are-whole"},
		{"a payout undone, as if never chained", lastUndone + `; UPDATE seller_balances SET chained = -1, head = ''`, nil, "chains-are-whole"},
		{"a sale made up", madeUp, nil, "chains-are-whole"},
		{"a sale made up, in a book that was never chained", madeUp + `; UPDATE seller_balances SET chained = -1, head = ''`, nil, "chains-are-whole"},
		{"two transfers swapped, chained", swap, func() { f.rechain("usr_a") }, "chains-are-whole"},
		{"a seller gone", "", gone("usr_b"), "books-match-checkpoint"},
		{"a seller gone, and the root", "", func() { gone("usr_b")(); f.root() }, "checkpoints-are-signed"},
		{"the newest checkpoint gone", `DELETE FROM checkpoints WHERE number = 3; DELETE FROM checkpoint_books WHERE checkpoint = 3`, nil, ""},
		{"another signer", moreSold, func() { f.rechain("usr_a"); f.start(newSigner(2)) }, ""},
	} {
		f.hands(tt.sql)
		if tt.hide != nil {
			tt.hide()
		}
		found := f.broken()
		contradicted := f.contradicted(kept)
		f.restore()
		if tt.found != "" && found[tt.found] == "" || tt.found == "" && len(found) > 0 {
			t.Errorf("%s: the audit finds %v, want %q", tt.name, found, tt.found)
		}
		if tt.found == "" && contradicted == "" {
			t.Errorf("%s: nothing that was kept contradicts it", tt.name)
		}
	}
	if left, contradicted := f.broken(), f.contradicted(kept); len(left) > 0 || contradicted != "" {
		t.Errorf("what was put right is still broken: %v; %s", left, contradicted)
	}
}

// contradicted is what those say who kept something.
func (b *bench) contradicted(kept []proof.Kept) string {
	b.Helper()
	var all []string
	for _, k := range kept {
		said, err := b.proofs(b.db).Contradicts(b.ctx(), k)
		b.must(err)
		all = append(all, said...)
	}
	return strings.Join(all, "; ")
}

// statement is what a seller has who downloaded one now.
func (b *bench) statement(seller string) proof.Kept {
	b.Helper()
	s, err := b.proofs(b.db).Statement(b.ctx(), seller, b.now.AddDate(-1, 0, 0), b.now.AddDate(1, 0, 0))
	b.must(err)
	var file bytes.Buffer
	b.must(s.Write(&file, proof.CSV))
	kept, err := proof.ReadKept(&file)
	b.must(err)
	return kept[0]
}

// testMadeUp adds transfers without a chain, long after binaries without chains have gone.
func testMadeUp(t *testing.T, b *bench) {
	t.Helper()
	b.world()
	f := b.with(b.engine.Tamper(b.T, b.db, madeUp))
	before := f.book("usr_a").Sealed
	f.checkpoint()
	if book := f.book("usr_a"); book.Sealed != before || book.Chain.Number != before.Number {
		t.Errorf("what was made up is sealed by itself: %+v", book)
	}
	if _, err := f.proofs(f.db).Make(b.ctx(), proof.Trust{Unchained: true}); err != nil {
		t.Fatal(err)
	}
	if book := f.book("usr_a"); book.Sealed.Number != before.Number+2 {
		t.Errorf("somebody vouched for it, and it is not sealed: %+v", book)
	}
}
