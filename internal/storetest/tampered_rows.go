package storetest

import (
	"bytes"
	"errors"
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
	"bursar/internal/event"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/proof"
	"bursar/internal/store"
)

// What nothing in the database can tell from what was there before, and why. docs/statements.md says so too.
const (
	shownOnly      = "is shown, and moves no money"
	schedules      = "says when to look next, and no more"
	gatewayHas     = "only the gateway has another record of it"
	onlyIdentifies = "tells rows apart, and no more"
	forgets        = "expires anyway: a repeat under it is a new request"
	refuses        = "ends what it gave access to"
	speedsUp       = "is one of several that lead to a hash, and the newer ones still do"
)

// hands are what changing each column by hand is found by: the name of a finding, or one of the reasons above
// why it is found by nothing. set is how it is changed, unless that is obvious.
var hands = map[string]struct {
	row     string
	dropped string // what dropping the row is found by
	columns map[string]tamperedCell
}{
	"entries": {"owner = 'usr_a' AND number = 3", inJournal, all(inJournal, map[string]tamperedCell{
		"owner": {inJournal, "'usr_empty'"}, "number": {inJournal, "number + 1000"},
		// The sum of the amounts has to stay zero.
		"pending": {inJournal, "pending + 1, sales = sales - 1"}, "available": {inJournal, "available + 1, fees = fees - 1"},
		"in_transit": {inJournal, "in_transit + 1, gateway = gateway - 1"}, "sales": {inJournal, "sales + 1, fees = fees - 1"},
		"gateway": {inJournal, "gateway + 1, fees = fees - 1"}, "fees": {inJournal, "fees + 1, sales = sales - 1"},
	}, "at", "type", "subject", "actor", "data", "after", "hash", "mac")},
	"journals": {"owner = 'usr_a'", inJournal, all(inJournal, map[string]tamperedCell{"owner": {"owners-are-there", ""}, "frozen": {inJournal, "1 - frozen"}},
		"number", "hash", "mac", "pending", "available", "in_transit", "earned", "withdrawn", "sales", "processing", "completed", "failed", "cancelled", "hold_until")},
	"events": {"number = 2", inFeed, all(inFeed, map[string]tamperedCell{
		"number": {inFeed, "number + 1000"}, "id": {onlyIdentifies, ""}, "owner": {inFeed, "'usr_c'"},
	}, "entry", "type")},
	"queued_events": {"type = 'payout.failed'", inFeed, all(inFeed, map[string]tamperedCell{"place": {onlyIdentifies, "place + 1000"}, "owner": {inFeed, "'usr_c'"}}, "entry", "type")},
	"event_feed":    {"1 = 1", inFeed, map[string]tamperedCell{"id": {onlyIdentifies, "1"}, "last": {inFeed, ""}}},
	"earnings": {"seller_id = 'usr_a'", "earnings-match-sales", all("earnings-match-sales", map[string]tamperedCell{
		"seller_id": {"earnings-match-sales", "'usr_empty'"}, "month": {"earnings-match-sales", "'2020-01'"},
	}, "amount")},
	"sales": {"id = 'sale for usr_a'", "sales-match-journal", all("sales-match-journal", map[string]tamperedCell{
		"seller_id": {"sales-match-journal", "'usr_b'"}, "due_at": {"nothing-is-stuck", ""},
	}, "id", "amount", "refunded", "month", "occurred_at", "available_at", "released_at", "created_at", "fingerprint")},
	"sale_refunds": {"id = 'refund'", "sales-match-journal", all("sales-match-journal", map[string]tamperedCell{
		"sale_id": {"sales-match-journal", "'sale for usr_a'"},
	}, "id", "amount", "at", "fingerprint")},
	"payouts": {"id = 'pyt_completed'", "payouts-match-journal", all("payouts-match-journal", map[string]tamperedCell{
		"seller_id": {"payouts-match-journal", "'usr_b'"}, "bank_account_id": {"payouts-match-journal", "'bka_usr_b'"},
		"state": {"payouts-match-journal", "'returned'"}, "status": {"status-follows-state", "'failed'"},
		"due_at": {schedules, ""}, "tries": {schedules, ""},
	}, "id", "amount", "fee", "notes", "rail", "requested_at", "arrive_at", "sent_at", "processed_at", "completed_at", "ended_at", "order_body",
		"gateway_id", "progress", "utr", "reason_code", "reason", "discrepancy", "gateway", "source")},
	"bank_accounts": {"id = 'bka_usr_a'", "bank-accounts-match-journal", all("bank-accounts-match-journal", map[string]tamperedCell{
		"seller_id": {"bank-accounts-match-journal", "'usr_c'"}, "is_current": {"bank-accounts-match-journal", "0"},
		"status": {"bank-accounts-match-journal", "'rejected'"}, "encrypted_number": {"account-numbers-are-encrypted", ""},
		"tries": {schedules, ""}, "due_at": {schedules, ""},
	}, "id", "holder", "ifsc", "last4", "reason", "registered_name", "name_score", "beneficiary", "gateway", "verification_id", "created_at", "verified_at", "mac")},
	"idempotency_keys": {"user_id = 'usr_b'", forgets, map[string]tamperedCell{
		"user_id": {"keys-match-payouts", ""}, "key": {onlyIdentifies, ""}, "fingerprint": {"keys-match-payouts", ""},
		"payout_id": {"keys-match-payouts", ""}, "refusal": {"keys-match-payouts", ""}, "created_at": {onlyIdentifies, ""},
	}},
	"unmatched_transfers": {"gateway_id = 'pout_unmatched'", gatewayHas, map[string]tamperedCell{
		"gateway": {"decisions-are-on-record", ""}, "gateway_id": {"decisions-are-on-record", ""}, "reference": {gatewayHas, ""}, "seller_id": {gatewayHas, ""}, "amount": {gatewayHas, ""}, "currency": {gatewayHas, ""},
		"progress": {gatewayHas, ""}, "utr": {gatewayHas, ""}, "made_at": {gatewayHas, ""}, "found_at": {shownOnly, ""}, "why": {shownOnly, ""}, "resolved": {"unmatched-transfers-are-resolved", "0"},
	}},
	"users": {"id = 'usr_b'", "owners-are-there", all("users-are-ours", map[string]tamperedCell{
		"role": {"users-are-ours", "'admin'"}, "verified": {"users-are-ours", "1"}, "suspended": {"users-are-ours", "1"},
		"name": {shownOnly, ""}, "avatar": {shownOnly, ""}, "bio": {shownOnly, ""}, "website": {shownOnly, ""},
		"products_listed": {shownOnly, ""}, "created_at": {shownOnly, ""}, "imported_as": {onlyIdentifies, ""},
		"external_id": {"users-are-ours", "'made up'"},
	}, "id", "email", "email_key", "password_hash", "mac")},
	"sessions": {"id = 'ses_b'", refuses, all("sessions-are-ours", map[string]tamperedCell{
		"user_id": {"sessions-are-ours", "'usr_a'"}, "expires_at": {"sessions-are-ours", "cap_at + 1"},
		"counter": {refuses, ""}, "refreshes": {refuses, ""}, "ended_at": {refuses, ""}, "end_reason": {shownOnly, ""},
		"agent": {shownOnly, ""}, "address": {shownOnly, ""},
	}, "id", "created_at", "cap_at", "methods", "authenticated_at", "mac")},
	"factors": {"id = 'fac_totp'", "factors-are-ours", all("factors-are-ours", map[string]tamperedCell{
		"user_id": {"factors-are-ours", "'usr_a'"}, "kind": {"factors-are-ours", "'recovery'"}, "confirmed_at": {"factors-are-ours", "NULL"},
	}, "id", "name", "secret", "counter", "created_at", "mac")},
	"identities": {"1 = 1", refuses, all("users-are-ours", map[string]tamperedCell{"user_id": {"users-are-ours", "'usr_a'"}, "email": {shownOnly, ""}, "created_at": {shownOnly, ""}},
		"issuer", "subject", "mac")},
	"service_keys": {"id = 'key_2'", refuses, all("service-keys-are-ours", map[string]tamperedCell{"used_on": {shownOnly, ""}},
		"id", "name", "hash", "scopes", "created_at", "expires_at", "revoked_at", "rotations", "mac")},
	"rotated_service_keys": {"1 = 1", refuses, all("service-keys-are-ours", map[string]tamperedCell{"key_id": {"service-keys-are-ours", "'key_2'"}},
		"hash", "until", "mac")},
	"webhook_endpoints": {"id = 'whe_1'", refuses, all("webhook-endpoints-are-ours", map[string]tamperedCell{
		"status":   {"webhook-endpoints-are-ours", "'disabled'"},
		"failures": {schedules, ""}, "failing_since": {schedules, ""}, "retry_at": {schedules, ""}, "last_delivered_at": {shownOnly, ""}, "leased_until": {schedules, ""},
	}, "id", "url", "types", "description", "reason", "secret", "old_secrets", "old_until", "created_at", "mac")},
	"checkpoints": {"number = 1", "checkpoints-are-signed", all("checkpoints-are-signed", map[string]tamperedCell{"number": {"checkpoints-are-signed", "number + 1000"}},
		"at", "currency", "journals", "root", "previous", "kid", "signature")},
	"checkpoint_journals": {"seller_id = 'usr_a' AND checkpoint = 1", speedsUp, all(inJournal, map[string]tamperedCell{"checkpoint": {onlyIdentifies, "checkpoint + 1000"}, "behind": {shownOnly, ""}}, // a later checkpoint has the journal too
		"seller_id", "number", "totals", "hash")},
	"checkpoint_keys": {"1 = 1", "checkpoints-are-signed", all("checkpoints-are-signed", nil, "kid", "public_key")},
}

// inJournal is the finding of a journal that is not whole, and inFeed that of a feed that differs from the journals.
const (
	inJournal = "journals-are-whole"
	inFeed    = "events-match-journal"
)

// all adds columns whose every change is found by the same finding.
func all(finding string, others map[string]tamperedCell, columns ...string) map[string]tamperedCell {
	found := map[string]tamperedCell{}
	maps.Copy(found, others)
	for _, column := range columns {
		found[column] = tamperedCell{finding, ""}
	}
	return found
}

type tamperedCell struct{ finding, set string }

// fillAll is a database with something in each table that bears on money, and two checkpoints.
func (b *bench) fillAll() {
	b.Helper()
	b.fill()
	b.numberEvents()
	seller := b.seller("usr_b")
	b.fund(seller, 5000)
	b.refund("sale for usr_b", "refund", 500)
	_, err := b.request(seller, "key", "pyt_keyed", 600)
	b.must(err)
	for _, seller := range []string{"usr_a", "usr_b"} {
		b.nameAtGateway(bank.ID("bka_"+seller), "fa_"+seller, true)
	}
	sending := b.ask("pyt_sending", "usr_a", 800, 10)
	sending.OrderBody, sending.SentAt = "790 to fa_usr_a, bka_usr_a of usr_a, of 800", b.now
	b.move(sending, payout.Submitting)
	b.decided()
	b.update(func(tx *store.Tx) error {
		_, err := tx.AddIdentity(b.ctx(), "usr_b", auth.Identity{Issuer: "https://a.example", Subject: "1"}, b.now)
		return errors.Join(err, b.insertKey(tx, "key_1"), b.insertKey(tx, "key_2"), tx.InsertSession(b.ctx(), newSession("ses_b", "usr_b")), tx.InsertFactor(b.ctx(), newFactor("fac_totp", "usr_admin")))
	})
	rotated := b.serviceKey("key_1")
	b.rotateServiceKey(&rotated)
	b.addEndpoint("whe_1", "https://shop.example/hooks")
	b.must(b.append(ledger.Posting{Owner: "usr_admin", At: b.now, Type: ledger.AccountFactorAdded, Subject: "usr_admin", Actor: "user:usr_admin", Data: `{"factor":"fac_totp"}`}))
	b.checkpoint()
}

// decided adds what an admin decided: a payout that was refunded to the balance, an unmatched transfer that was
// resolved, a role.
func (b *bench) decided() {
	b.Helper()
	given := b.move(b.ask("pyt_given", "usr_a", 500, 0), payout.Submitting)
	given = b.move(b.move(given, payout.Unknown), payout.ManualReview)
	given.ReasonCode, given.EndedAt, given.DueAt = "refunded", b.now, time.Time{}
	b.move(given, payout.Failed)
	b.must(b.append(b.adjustment("usr_a", "fee", -75)))
	by := decision.By{Admin: "usr_admin", Note: "Now seller. As agreed."}
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), auth.User{ID: "usr_admin", Email: "admin", Role: auth.Admin, CreatedAt: b.now}); err != nil {
			return err
		}
		unmatchedTransfer := payout.UnmatchedTransfer{Gateway: "sandbox", Transfer: gateway.Transfer{Report: gateway.Report{GatewayID: "pout_unmatched", Reference: "pyt_lost", Amount: 100}}, FoundAt: b.now, Why: "lost"}
		if _, err := tx.RecordUnmatchedTransfer(b.ctx(), unmatchedTransfer); err != nil {
			return err
		}
		if _, err := tx.ResolveUnmatchedTransfer(b.ctx(), "sandbox", "pout_unmatched"); err != nil {
			return err
		}
		for _, d := range []decision.Decision{
			decision.New(by, decision.RefundPayout, "usr_a", "pyt_given", b.now),
			decision.New(by, decision.ResolveUnmatchedTransfer, "", "sandbox:pout_unmatched", b.now), // which no seller owns
			decision.New(by, decision.ChangeAccess, "usr_b", "usr_b", b.now),
		} {
			if err := ledger.RecordDecision(b.ctx(), tx, d); err != nil {
				return err
			}
		}
		return nil
	})
}

// tampered is a copy of a database that is changed by hand and restored, over and over.
type tampered struct {
	*bench
	hands func(statement string)
}

// tables are all that the hunt changes, and those that have to be restored with them.
func (b *bench) tampered() *tampered {
	b.Helper()
	var keep []string
	for _, table := range tables() {
		keep = append(keep, fmt.Sprintf("CREATE TABLE kept_%[1]s AS SELECT * FROM %[1]s", table)) //nolint:unqueryvet // all of it
	}
	copied := b.with(b.engine.Tamper(b.T, b.db, `UPDATE users SET name = name`))
	t := &tampered{copied, b.engine.Hands(b.T, copied.db)}
	t.hands(strings.Join(keep, "; "))
	return t
}

// state is all that is stored of what bears on money, as text.
func (b *bench) state() string {
	b.Helper()
	var text strings.Builder
	for _, table := range tables() {
		rows := b.engine.Rows(b.T, b.db, `SELECT * FROM `+table) //nolint:unqueryvet // all of it
		slices.Sort(rows)
		fmt.Fprintf(&text, "%s\n%s\n", table, strings.Join(rows, "\n"))
	}
	return text.String()
}

func tables() []string { return slices.Sorted(maps.Keys(hands)) }

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
	return t.brokenTo(t.keys)
}

// brokenTo is what an audit with other keys finds, or with none.
func (t *tampered) brokenTo(keys store.AuditKeys) map[string]string {
	t.Helper()
	report, err := t.db.Audit(t.ctx(), keys)
	t.must(err)
	found := map[string]string{}
	for _, f := range report.Findings {
		if len(f.Violations) > 0 {
			found[f.Name] = strings.Join(f.Lines(), "; ")
		}
	}
	return found
}

// testTamperedRows changes each column of each table that bears on money, and drops, doubles and adds rows; each is
// found by the audit, or is on the list of what is not, with a reason.
func testTamperedRows(t *testing.T, b *bench) {
	t.Helper()
	b.fillAll()
	b.wantCleanAudit()
	promises := map[string]bool{}
	report, err := b.db.Audit(b.ctx(), b.keys)
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
		t.Errorf("what was repaired is still broken: %v", left)
	}
}

// forged is what an attacker has who knows how all of this is made, and lacks the keys.
type forged struct{ *tampered }

func (b *bench) forge() forged {
	b.Helper()
	return forged{b.tampered()}
}

// rechain recomputes totals and hashes of a journal from the entries as they are now, and puts them in place of what
// is stored. Only the MACs can't be computed.
func (f forged) rechain(owner string) {
	f.Helper()
	at := ledger.NewHead(owner)
	entries, err := f.db.EntriesAfter(f.ctx(), owner, 0, 1000)
	f.must(err)
	var all []string
	for _, e := range entries {
		if e.After, err = at.AfterEntry(e); err != nil {
			f.Fatalf("entry %d of %s: %v", e.Number, owner, err)
		}
		e.Hash = at.Hash.Next(e.Own())
		all = append(all, fmt.Sprintf(`UPDATE entries SET after = '%s', hash = '%s' WHERE owner = '%s' AND number = %d`, e.After.Text(), e.Hash, owner, e.Number))
		at = ledger.Head{Owner: owner, Number: e.Number, Hash: e.Hash, Balance: e.After}
	}
	b, c, frozen := at.Balance, at.Counts, 0
	if b.Frozen {
		frozen = 1
	}
	all = append(all, fmt.Sprintf(`UPDATE journals SET number = %d, hash = '%s', pending = %d, available = %d, in_transit = %d, earned = %d, withdrawn = %d,
		sales = %d, processing = %d, completed = %d, failed = %d, cancelled = %d, hold_until = %d, frozen = %d,
		mac = (SELECT mac FROM entries WHERE owner = '%s' AND number = %[1]d) WHERE owner = '%[15]s'`, at.Number, at.Hash,
		b.Pending, b.Available, b.InTransit, b.Earned, b.Withdrawn, c.Sales, c.Processing, c.Completed, c.Failed, c.Cancelled, b.HoldUntil, frozen, owner))
	// The feed follows.
	all = append(all, fmt.Sprintf(`DELETE FROM queued_events WHERE owner = '%s' AND entry > %d`, owner, at.Number))
	for _, e := range entries {
		for _, q := range event.Of(e) {
			all = append(all, fmt.Sprintf(`INSERT INTO queued_events (owner, entry, type) SELECT '%[1]s', %[2]d, '%[3]s' WHERE NOT EXISTS (
				SELECT 1 FROM (SELECT owner, entry, type FROM events UNION ALL SELECT owner, entry, type FROM queued_events) AS f WHERE owner = '%[1]s' AND entry = %[2]d AND type = '%[3]s')`,
				q.Owner, q.Entry, q.Type))
		}
	}
	f.hands(strings.Join(all, "; "))
}

// recheckpoint does the same with all that the checkpoints have of it.
func (f forged) recheckpoint(owner string) {
	f.Helper()
	f.rechain(owner)
	entries, err := f.db.EntriesAfter(f.ctx(), owner, 0, 1000)
	f.must(err)
	for _, e := range entries {
		f.hands(fmt.Sprintf(`UPDATE checkpoint_journals SET totals = '%s', hash = '%s' WHERE seller_id = '%s' AND number = %d`, e.After.Text(), e.Hash, owner, e.Number))
	}
}

// root puts the newest checkpoint's root right.
func (f forged) root() {
	f.Helper()
	last, _, err := f.db.LastCheckpoint(f.ctx())
	f.must(err)
	journals, err := f.db.Journals(f.ctx(), last.Number, "", 1000)
	f.must(err)
	var root proof.Root
	for _, b := range journals {
		if b.Checkpointed.Hash != "" {
			root.Add(b.Seller, b.Checkpointed, b.Behind)
		}
	}
	f.hands(fmt.Sprintf(`UPDATE checkpoints SET root = '%s', journals = %d WHERE number = %d`, root.String(), root.Journals(), last.Number))
}

// start lets all checkpoints be forgotten, and makes a first one with a key of the caller's. The journals that the
// service wrote are in it.
func (f forged) start(key signer) {
	f.Helper()
	f.hands(`DELETE FROM checkpoints; DELETE FROM checkpoint_keys; DELETE FROM checkpoint_journals`)
	s, err := proof.New(proof.Options{
		Store: f.db.Proofs(), Signer: key, Keys: f.keys, Currency: rupees(f.bench), Every: time.Hour, Zone: time.UTC,
		Now: func() time.Time { return f.now }, Logger: slog.New(slog.DiscardHandler),
	})
	f.must(err)
	_, err = s.Make(f.ctx(), proof.Trust{})
	f.must(err)
}

// An attacker's changes, each in so many steps as it takes to have every sum right again.
const (
	// moreSold makes one of usr_a's sales worth 100 more, from the request to the balance.
	moreSold = `UPDATE sales SET amount = amount + 100, fingerprint = 'usr_a ' || (amount + 100) || ' - -' WHERE id = 'sale for usr_a';
		UPDATE entries SET data = REPLACE(REPLACE(data, '"amount":10000', '"amount":10100'), 'usr_a 10000', 'usr_a 10100'), pending = pending + 100, sales = sales - 100
			WHERE subject = 'sale:sale for usr_a' AND type = 'sale.recorded';
		UPDATE entries SET pending = pending - 100, available = available + 100 WHERE subject = 'sale:sale for usr_a' AND type = 'sale.released';
		UPDATE earnings SET amount = amount + 100 WHERE seller_id = 'usr_a'`
	// lessPaid makes a completed payout one of 100 less, with all its entries.
	lessPaid = `UPDATE payouts SET amount = amount - 100 WHERE id = 'pyt_completed';
		UPDATE entries SET data = REPLACE(data, '"amount":1000', '"amount":900'), available = available + 100, in_transit = in_transit - 100
			WHERE subject = 'pyt_completed' AND type = 'payout.requested';
		UPDATE entries SET in_transit = in_transit + 100, gateway = gateway - 100 WHERE subject = 'pyt_completed' AND type = 'payout.completed'`
	// lastUndone drops a seller's last payout, as if it had never been asked for, and all entries since.
	lastUndone = `DELETE FROM entries WHERE owner = 'usr_b' AND number >= 5; DELETE FROM payouts WHERE id = 'pyt_keyed'; DELETE FROM idempotency_keys;
		UPDATE bank_accounts SET beneficiary = '', gateway = '' WHERE id = 'bka_usr_b'`
	// madeUp adds a sale that never was, and that can be withdrawn at once.
	madeUp = `INSERT INTO sales (id, seller_id, amount, refunded, month, occurred_at, available_at, released_at, created_at, fingerprint)
			SELECT 'made up', seller_id, amount, 0, month, occurred_at, available_at, released_at, created_at, fingerprint FROM sales WHERE id = 'sale for usr_a';
		INSERT INTO entries SELECT owner, number - 2 + (SELECT number FROM journals WHERE owner = 'usr_a') + 1, at, type, 'sale:made up', actor, data,
			pending, available, in_transit, sales, gateway, fees, after, hash, mac FROM entries WHERE owner = 'usr_a' AND number IN (2, 3);
		UPDATE earnings SET amount = amount + 10000 WHERE seller_id = 'usr_a'`
)

// dropped are the statements that take all that is stored of a seller.
func dropped(seller string) string {
	statements := []string{
		"DELETE FROM sale_refunds WHERE sale_id IN (SELECT id FROM sales WHERE seller_id = '%[1]s')", "DELETE FROM entries WHERE owner = '%[1]s'",
		"DELETE FROM journals WHERE owner = '%[1]s'", "DELETE FROM idempotency_keys WHERE user_id = '%[1]s'",
	}
	for _, table := range []string{"payouts", "sales", "earnings", "bank_accounts", "checkpoint_journals"} {
		statements = append(statements, "DELETE FROM "+table+" WHERE seller_id = '%[1]s'")
	}
	return fmt.Sprintf(strings.Join(statements, "; ")+"; DELETE FROM users WHERE id = '%[1]s'", seller)
}

// testForgeries changes journals so that every sum is right again, and goes further and further in hiding it. What the
// service did not write is found by its MAC. What it wrote and an attacker restored is found by a checkpoint, or by what
// was kept elsewhere.
func testForgeries(t *testing.T, b *bench) {
	t.Helper()
	b.fillAll()
	kept := []proof.Kept{b.statement("usr_a"), b.statement("usr_b"), {Checkpoint: b.checkpoint()}}
	f := b.forge()
	swap := `UPDATE entries SET number = 7 - number + 100 WHERE owner = 'usr_a' AND number IN (3, 4); UPDATE entries SET number = number - 100 WHERE number > 100`
	for _, tt := range []struct {
		name string
		sql  string
		hide func()
		// found is by the audit with keys, and keyless without; "" where only what was kept tells.
		found, keyless string
	}{
		{"a sale's amount", moreSold, nil, inJournal, inJournal},
		{"a sale's amount, chained", moreSold, func() { f.rechain("usr_a") }, inJournal, inJournal},
		{"a sale's amount, chained and in a checkpoint", moreSold, func() { f.recheckpoint("usr_a") }, inJournal, "journals-match-checkpoint"},
		{"a sale's amount, and the root", moreSold, func() { f.recheckpoint("usr_a"); f.root() }, inJournal, "checkpoints-are-signed"},
		{"a sale's amount, with no checkpoint from before", moreSold, func() { f.rechain("usr_a"); f.start(newSigner(1)) }, inJournal, ""},
		{"a payout's amount, chained", lessPaid, func() { f.rechain("usr_a") }, inJournal, inJournal},
		{"a payout's amount, chained and in a checkpoint", lessPaid, func() { f.recheckpoint("usr_a") }, inJournal, "journals-match-checkpoint"},
		{"a sale made up", madeUp, nil, inJournal, inJournal},
		{"a sale made up, chained", madeUp, func() { f.rechain("usr_a") }, inJournal, ""},
		{"two entries swapped", swap, nil, inJournal, inJournal},
		{"a payout undone", lastUndone, nil, inJournal, inJournal},
		{"a payout undone, put back to where its journal was", lastUndone, func() { f.rechain("usr_b") }, inJournal, inJournal},
		{"a payout undone, with no checkpoint from before", lastUndone, func() { f.rechain("usr_b"); f.start(newSigner(1)) }, "", ""},
		{"a seller gone", dropped("usr_b"), nil, "journals-match-checkpoint", "journals-match-checkpoint"},
		{"a seller gone, and the root", dropped("usr_b"), f.root, "checkpoints-are-signed", "checkpoints-are-signed"},
		{"the newest checkpoint gone", `DELETE FROM checkpoints WHERE number = 3; DELETE FROM checkpoint_journals WHERE checkpoint = 3`, nil, "", ""},
		{"another signer", moreSold, func() { f.rechain("usr_a"); f.start(newSigner(2)) }, inJournal, ""},
	} {
		f.hands(tt.sql)
		if tt.hide != nil {
			tt.hide()
		}
		found, keyless := f.broken(), f.brokenTo(nil)
		mismatched := f.mismatched(kept)
		f.restore()
		for with, finds := range map[string]struct {
			found map[string]string
			want  string
		}{"keys": {found, tt.found}, "no keys": {keyless, tt.keyless}} {
			if finds.want != "" && finds.found[finds.want] == "" || finds.want == "" && len(finds.found) > 0 {
				t.Errorf("%s: with %s the audit finds %v, want %q", tt.name, with, finds.found, finds.want)
			}
		}
		if (tt.found == "" || tt.keyless == "") && tt.name != "a sale made up, chained" && mismatched == "" {
			t.Errorf("%s: nothing that was kept disagrees with it", tt.name)
		}
	}
	if left, mismatched := f.broken(), f.mismatched(kept); len(left) > 0 || mismatched != "" {
		t.Errorf("what was repaired is still broken: %v; %s", left, mismatched)
	}
}

// mismatched is what those say who kept something.
func (b *bench) mismatched(kept []proof.Kept) string {
	b.Helper()
	var all []string
	for _, k := range kept {
		said, err := b.proofs(b.db).Mismatches(b.ctx(), k)
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
