package storetest

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/proof"
	"bursar/internal/store"
)

// signer signs with one key.
type signer struct{ key ed25519.PrivateKey }

func newSigner(seed byte) signer {
	return signer{ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))}
}

func (s signer) public() proof.Key {
	public, _ := s.key.Public().(ed25519.PublicKey)
	return proof.NewKey(public)
}

func (s signer) SigningKey() (string, ed25519.PrivateKey) { return s.public().ID, s.key }

func (s signer) VerificationKey(kid string) (ed25519.PublicKey, bool) {
	return s.public().Public, kid == s.public().ID
}

// proofs is the service that makes checkpoints of a database.
func (b *bench) proofs(db *store.DB) *proof.Service {
	b.Helper()
	s, err := proof.New(proof.Options{
		Store: db.Proofs(), Signer: newSigner(1), Keys: b.keys, Currency: rupees(b), Every: time.Hour, Zone: time.UTC,
		Now: func() time.Time { return b.now }, Logger: slog.New(slog.DiscardHandler),
	})
	b.must(err)
	return s
}

func (b *bench) checkpoint() proof.Checkpoint {
	b.Helper()
	c, err := b.proofs(b.db).Make(b.ctx(), proof.Trust{})
	b.must(err)
	return c
}

// journalState is a seller's journal as it stands, beside what the newest checkpoint has of it.
func (b *bench) journalState(seller string) proof.JournalState {
	b.Helper()
	last, _, err := b.db.LastCheckpoint(b.ctx())
	b.must(err)
	journalState, err := b.db.JournalState(b.ctx(), last.Number, seller)
	b.must(err)
	return journalState
}

// with is the bench on another database.
func (b *bench) with(db *store.DB) *bench {
	db.UseKeys(b.keys)
	return &bench{T: b.T, engine: b.engine, keys: b.keys, db: db, now: b.now}
}

func testCheckpoints(_ *testing.T, b *bench) {
	if c, _, err := b.db.LastCheckpoint(b.ctx()); err != nil || c.Number != 0 {
		b.Errorf("an empty database has the checkpoint %+v, %v", c, err)
	}
	b.fill()
	first, key, err := b.db.LastCheckpoint(b.ctx())
	b.must(err)
	b.must(first.SignedBy(key))
	if first.Number != 1 || first.Journals != 2 || !first.At.Equal(b.now) || first.Currency != "INR" || first.Previous != "" || key.ID != newSigner(1).public().ID {
		b.Errorf("the first checkpoint is %+v", first)
	}
	b.sell("another", "usr_a", 10)
	second := b.checkpoint()
	b.must(second.Follows(first))
	if second.Root == first.Root {
		b.Error("a sale does not change the next checkpoint's root")
	}
	third := b.checkpoint()
	b.must(third.Follows(second))
	if third.Root != second.Root {
		b.Error("nothing happened, and the root is another one")
	}
	for checkpoint, want := range map[int64]int64{0: 0, 1: 15, 2: 16, 3: 16} {
		journalState, err := b.db.JournalState(b.ctx(), checkpoint, "usr_a")
		b.must(err)
		if journalState.Checkpointed.Number != want {
			b.Errorf("checkpoint %d has %d entries of usr_a, want %d", checkpoint, journalState.Checkpointed.Number, want)
		}
	}
	between, err := b.db.CheckpointedBetween(b.ctx(), 3, "usr_a", 14, 16)
	b.must(err)
	if len(between) != 2 || between[0].Number != 15 || between[1].Number != 16 || between[1].Hash != b.head("usr_a").Hash || between[1].Earned != 10_710 {
		b.Errorf("checkpoints have the journal of usr_a at %+v", between)
	}
	for above, upTo := range map[int64]int64{0: 14, 15: 15, 16: 99} {
		if none, err := b.db.CheckpointedBetween(b.ctx(), 3, "usr_a", above, upTo); err != nil || len(none) > 0 {
			b.Errorf("between entries %d and %d checkpoints have the journal at %+v, %v", above, upTo, none, err)
		}
	}
	if early, err := b.db.CheckpointedBetween(b.ctx(), 1, "usr_a", 0, 99); err != nil || len(early) != 1 {
		b.Errorf("the first checkpoint has the journal at %+v, %v", early, err)
	}
	if stored, err := b.db.Checkpoint(b.ctx(), 2); err != nil || stored != second {
		b.Errorf("checkpoint 2 is stored as %+v, %v", stored, err)
	}
	if none, err := b.db.Checkpoint(b.ctx(), 9); err != nil || none.Number != 0 {
		b.Errorf("checkpoint 9 is %+v, %v", none, err)
	}
	keys, err := b.db.CheckpointKeys(b.ctx())
	b.must(err)
	if len(keys) != 1 || keys[0].ID != key.ID {
		b.Errorf("the keys of checkpoints are %v", keys)
	}
	b.wantCleanAudit()
}

// testCheckpointWithoutTotals deletes a seller's row of totals. The next checkpoint leaves that journal where the last one has it, and goes on with the
// others'.
func testCheckpointWithoutTotals(t *testing.T, b *bench) {
	t.Helper()
	b.fill()
	b.seller("usr_z")
	b.sell("theirs", "usr_z", 10)
	first := b.checkpoint()
	for _, owner := range []string{"usr_a", "usr_z"} {
		of := b.with(b.engine.Tamper(t, b.db, `DELETE FROM journals WHERE owner = '`+owner+`'`))
		other := map[string]string{"usr_a": "usr_z", "usr_z": "usr_a"}[owner]
		of.sell("another", other, 10)
		next := of.checkpoint()
		of.must(next.Follows(first))
		if next.Journals != first.Journals || next.Root == first.Root {
			t.Errorf("without the totals of %s the next checkpoint is %+v", owner, next)
		}
		all := map[string]proof.JournalState{}
		for after := ""; ; {
			page, err := of.db.Journals(of.ctx(), next.Number, after, 1)
			of.must(err)
			if len(page) == 0 {
				break
			}
			for _, journal := range page {
				if _, isThere := all[journal.Seller]; isThere || journal.Seller <= after {
					t.Fatalf("the journal of %s is listed after that of %q", journal.Seller, after)
				}
				all[journal.Seller] = journal
				after = journal.Seller
			}
		}
		if left := all[owner]; !left.Behind || left.Now.Number != 0 || left.Checkpointed.Number == 0 {
			t.Errorf("the journal without its totals is %+v", left)
		}
		if is := all[other]; is.Behind || is.Now.Number != is.Checkpointed.Number {
			t.Errorf("the other journal is %+v", is)
		}
	}
}

func testCheckpointLease(_ *testing.T, b *bench) {
	b.seller("usr_a")
	take := func(holder string, now time.Time) bool {
		b.Helper()
		mine, err := b.db.Proofs().AcquireLease(b.ctx(), holder, now, now.Add(time.Minute))
		b.must(err)
		return mine
	}
	if !take("a", b.now) || take("b", b.now) || !take("b", b.now.Add(2*time.Minute)) {
		b.Error("a lease is not exclusive")
	}
	c := proof.Checkpoint{Number: 1, At: b.now, Currency: "INR"}
	journals := []proof.Checkpointed{{Seller: "usr_a", Head: b.head("usr_a")}}
	if err := b.db.SaveJournals(b.ctx(), "a", b.now, 1, journals); !errors.Is(err, proof.ErrLeaseLost) {
		b.Errorf("a holder that lost the lease saves journals: %v", err)
	}
	if err := b.db.Publish(b.ctx(), "a", c, newSigner(1).public()); !errors.Is(err, proof.ErrLeaseLost) {
		b.Errorf("a holder that lost the lease publishes: %v", err)
	}
	b.must(b.db.SaveJournals(b.ctx(), "b", b.now.Add(time.Hour), 1, journals))
	b.must(b.db.SaveJournals(b.ctx(), "b", b.now.Add(time.Hour), 1, journals))
	b.must(b.append(b.posting("usr_a", ledger.SaleRecorded, ledger.Sale(1)))) // what was saved is no longer where the journal is
	b.must(b.db.Proofs().ReleaseLease(b.ctx(), "b"))
	if !take("a", b.now) {
		b.Error("a released lease is not free")
	}
	b.must(b.db.Proofs().ReleaseLease(b.ctx(), "a"))
	made := make(chan int64, 8)
	b.atOnce(8, func(int) error {
		switch c, err := b.proofs(b.db).Make(b.ctx(), proof.Trust{}); {
		case err == nil:
			made <- c.Number
			return nil
		case strings.Contains(err.Error(), "moment"): // another instance makes it
			return nil
		default:
			return err
		}
	})
	close(made)
	last, _, err := b.db.LastCheckpoint(b.ctx())
	b.must(err)
	if n := int64(len(made)); n == 0 || last.Number != n {
		b.Errorf("%d were made, and the last one is number %d", n, last.Number)
	}
	b.wantCleanAuditOf("checkpoints-are-signed", "journals-match-checkpoint")
}

func (b *bench) wantCleanAuditOf(names ...string) {
	b.Helper()
	report, err := b.db.Audit(b.ctx(), b.keys)
	b.must(err)
	for _, f := range report.Findings {
		if slices.Contains(names, f.Name) && len(f.Violations) > 0 {
			b.Errorf("%s: %v", f.Name, f.Violations)
		}
	}
}

// testNothingBrokenIsCheckpointed rewrites the past as an attacker would who has the database and not the keys. No later
// checkpoint may hold it.
func testNothingBrokenIsCheckpointed(_ *testing.T, b *bench) {
	b.fill()
	b.seller("usr_b")
	f := b.forge()
	f.hands(`UPDATE entries SET data = '{}' WHERE owner = 'usr_a' AND number = 3`)
	f.rechain("usr_a")
	f.fund("usr_b", 10)
	f.checkpoint()
	if journalState := f.journalState("usr_a"); journalState.Checkpointed.Hash != b.head("usr_a").Hash {
		b.Error("a checkpoint took up a rewritten journal")
	}
	if journalState := f.journalState("usr_b"); journalState.Checkpointed.Hash != journalState.Now.Hash {
		b.Error("one seller's broken journal held up another's")
	}
	f.wantCleanAuditOf("checkpoints-are-signed", "journals-match-checkpoint")

	// One that no checkpoint has yet is left where the last one has it.
	b.sell("not in a checkpoint yet", "usr_a", 10)
	early := b.with(b.engine.Tamper(b.T, b.db, `UPDATE entries SET pending = 9, sales = -9 WHERE subject = 'sale:not in a checkpoint yet'`))
	early.checkpoint()
	if journalState := early.journalState("usr_a"); journalState.Checkpointed.Number != 15 {
		b.Errorf("an entry that was changed before its checkpoint is in it: %+v", journalState.Checkpointed)
	}

	f.hands(fmt.Sprintf(`UPDATE checkpoint_journals SET hash = '%s' WHERE seller_id = 'usr_a'`, f.head("usr_a").Hash))
	if c, err := f.proofs(f.db).Make(b.ctx(), proof.Trust{}); err == nil {
		b.Errorf("checkpoint %d was made after one that was rewritten", c.Number)
	}

	// Where they sign it with a key of their own, it is signed, and not by us.
	c, err := proof.New(proof.Options{
		Store: b.db.Proofs(), Signer: newSigner(2), Keys: b.keys, Currency: rupees(b), Every: time.Hour, Zone: time.UTC,
		Now: func() time.Time { return b.now }, Logger: slog.New(slog.DiscardHandler),
	})
	b.must(err)
	if made, err := c.Make(b.ctx(), proof.Trust{}); err == nil {
		b.Errorf("another installation continued our checkpoints with %d", made.Number)
	}
	if _, err := c.Make(b.ctx(), proof.Trust{Key: newSigner(1).public().ID}); err != nil {
		b.Errorf("a key that is trusted by its id is not: %v", err)
	}
}

func rupees(b *bench) money.Currency {
	inr, err := money.ParseCurrency("INR")
	b.must(err)
	return inr
}

// testMadeUp adds a sale with entries of its own, which lack the MAC that only the service can make.
func testMadeUp(t *testing.T, b *bench) {
	t.Helper()
	b.fillAll()
	before := b.journalState("usr_a").Checkpointed
	f := b.forge()
	f.hands(madeUp)
	f.rechain("usr_a")
	f.checkpoint()
	if journalState := f.journalState("usr_a"); journalState.Checkpointed != before || journalState.Now.Number != before.Number+2 {
		t.Errorf("what was made up is in a checkpoint: %+v", journalState)
	}
}

// testTampering changes every column of an entry, drops, adds and swaps some. The audit names the seller and the entry,
// with keys and without, by the totals, the hashes and the checkpoints.
func testTampering(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.seller("usr_b")
	for i := range 4 {
		b.now = b.now.Add(time.Second)
		b.sell(fmt.Sprintf("sale %d", i), seller, 100)
		b.release(fmt.Sprintf("sale %d", i))
		b.checkpoint()
	}
	b.wantCleanAudit()
	const third = ` WHERE owner = 'usr_a' AND number = 3`
	copied := b.tampered()
	for change, want := range map[string]string{
		`UPDATE entries SET owner = 'usr_b'` + third:                                    "entry 4 of usr_a follows on entry 2",
		`UPDATE entries SET number = 99` + third:                                        "entry 4 of usr_a follows on entry 2",
		`UPDATE entries SET at = at - 1` + third:                                        "entry 3 of usr_a does not have its hash",
		`UPDATE entries SET type = 'sale.recorded'` + third:                             "entry 3 of usr_a: ",
		`UPDATE entries SET type = 'payout.failed'` + third:                             "entry 3 of usr_a: ",
		`UPDATE entries SET subject = 'sale:sale 1'` + third:                            "entry 3 of usr_a does not have its hash",
		`UPDATE entries SET actor = 'admin:usr_b'` + third:                              "entry 3 of usr_a does not have its hash",
		`UPDATE entries SET data = '{}'` + third:                                        "entry 3 of usr_a does not have its hash",
		`UPDATE entries SET pending = -99, available = 99` + third:                      "entry 3 of usr_a says other totals than it leads to",
		`UPDATE entries SET after = '0 100 0 100 1 1 0 0 0 0'` + third:                  "entry 3 of usr_a says other totals than it leads to",
		`UPDATE entries SET after = 'a lot'` + third:                                    "entry 3 of usr_a: totals of 2 numbers",
		`UPDATE entries SET hash = 'x'` + third:                                         "entry 3 of usr_a does not have its hash",
		`DELETE FROM entries` + third:                                                   "entry 4 of usr_a follows on entry 2",
		`DELETE FROM entries WHERE owner = 'usr_a' AND number = 9`:                      "the balance is that after entry 9, and the journal ends with entry 8",
		`DELETE FROM journals WHERE owner = 'usr_a'`:                                    "seller usr_a: there are entries up to number 9, and the row of the balance is missing",
		`UPDATE journals SET hash = 'x' WHERE owner = 'usr_a'`:                          "seller usr_a: the balance does not have the hash and the MAC",
		`UPDATE journals SET owner = 'usr_c' WHERE owner = 'usr_b'`:                     "seller usr_b: there are entries up to number 1, and the row of the balance is missing",
		`UPDATE checkpoint_journals SET number = 4 WHERE number = 3 AND checkpoint = 1`: "after entry 4 the journal is not what checkpoint 1 has of it",
		`INSERT INTO entries SELECT owner, -number, at, type, subject, actor, data, pending, available, in_transit, sales, gateway, fees, after, hash, mac
			FROM entries` + third: "entry -3 of usr_a follows on entry 0",
		`UPDATE entries SET number = 7 - number + 100 WHERE owner = 'usr_a' AND number IN (3, 4); UPDATE entries SET number = number - 100 WHERE number > 100`: "entry 3 of usr_a",
	} {
		copied.hands(change)
		for _, with := range []store.AuditKeys{b.keys, nil} {
			if found := copied.brokenTo(with)["journals-are-whole"]; !strings.Contains(found, want) {
				b.Errorf("after %s the audit with keys %v says %q, want %q", change, with != nil, found, want)
			}
		}
		copied.restore()
	}
	// Only the keys tell whose a MAC is.
	copied.hands(`UPDATE entries SET mac = 'x'` + third)
	if found := copied.broken()["journals-are-whole"]; !strings.Contains(found, "entry 3 of usr_a was not written by the service") {
		b.Errorf("of a MAC that was changed the audit says %q", found)
	}
	copied.restore()
}
