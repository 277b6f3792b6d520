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
	"bursar/internal/payout"
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
		Store: db.Proofs(), Signer: newSigner(1), Currency: rupees(b), Every: time.Hour, Zone: time.UTC,
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

// book is a seller's book as it stands, beside what the newest checkpoint has of it.
func (b *bench) book(seller string) proof.Book {
	b.Helper()
	last, _, err := b.db.LastCheckpoint(b.ctx())
	b.must(err)
	book, err := b.db.Book(b.ctx(), last.Number, seller)
	b.must(err)
	return book
}

// rebuilt is a seller's chain as the transfers make it.
func (b *bench) rebuilt(seller string) ledger.Chain {
	b.Helper()
	chain := ledger.NewChain(seller)
	for {
		entries, err := b.db.EntriesAfter(b.ctx(), seller, chain.Number, 5)
		b.must(err)
		if len(entries) == 0 {
			return chain
		}
		for _, e := range entries {
			chain = chain.Add(e.At, e.Transfer)
		}
	}
}

func testChains(_ *testing.T, b *bench) {
	b.books()
	b.seller("usr_many")
	b.update(func(tx *store.Tx) error { // as many transfers as a posting may have
		transfers := slices.Concat(ledger.Sale("a", 5), ledger.Sale("b", 7), ledger.ReleaseSale("a", 5), ledger.ReleaseSale("b", 7))
		return ledger.Post(b.ctx(), tx, ledger.Posting{Seller: "usr_many", At: b.now, Transfers: transfers})
	})
	b.must(b.db.Payouts().InRequest(b.ctx(), payout.RequestCaller{Seller: "usr_many"}, func(tx payout.RequestTx) error {
		for range 2 {
			hold := ledger.Posting{Seller: "usr_many", At: b.now, Transfers: ledger.HoldPayout("pyt_many", 3)}
			if err := ledger.Post(b.ctx(), tx, hold); err != nil {
				return err
			}
		}
		return nil
	}))
	for seller, transfers := range map[string]int64{"usr_a": 14, "usr_empty": 0, "usr_many": 6} {
		book, want := b.book(seller), b.rebuilt(seller)
		balance, err := b.db.Balance(b.ctx(), seller)
		b.must(err)
		if book.Transfers != transfers || want.Number != transfers || book.Chain.Number != transfers || book.Chain.Head != want.Head {
			b.Errorf("the book of %s has %d transfers and the chain %+v; want %d and %+v", seller, book.Transfers, book.Chain, transfers, want)
		}
		if balance.Standing() != want.Standing {
			b.Errorf("%s has %+v, and the chain ends with %+v", seller, balance, want.Standing)
		}
	}
	first, last, err := b.db.Period(b.ctx(), "usr_a", 10, b.now.Add(-time.Hour), b.now.Add(time.Hour))
	b.must(err)
	if first != 1 || last != 10 {
		b.Errorf("among ten transfers, those of the period are %d to %d", first, last)
	}
}

// testCatchUp has an older binary, which knows of no chains, make transfers before and between.
func testCatchUp(_ *testing.T, b *bench) {
	b.books()
	whole := b.book("usr_a").Chain
	for name, behind := range map[string]string{
		"never chained":        `UPDATE seller_balances SET chained = -1, head = '' WHERE seller_id = 'usr_a'`,
		"chained up to number": `UPDATE seller_balances SET chained = 9, head = '` + string(b.headAt("usr_a", 9)) + `' WHERE seller_id = 'usr_a'`,
	} {
		old := b.with(b.engine.Tamper(b.T, b.db, `DELETE FROM checkpoints; DELETE FROM checkpoint_keys; DELETE FROM checkpoint_books; `+
			fmt.Sprintf("UPDATE schema_migrations SET applied_at = %d; ", b.now.UnixMicro())+behind))
		old.sell("sale "+name, "usr_a", 10) // does not extend a chain that is behind
		if book := old.book("usr_a"); book.Chain.Number >= whole.Number || book.Transfers != whole.Number+1 {
			b.Errorf("%s: the chain has %d of %d transfers", name, book.Chain.Number, book.Transfers)
		}
		before := old.book("usr_a").Chain
		b.must(old.db.Payouts().InRequest(b.ctx(), payout.RequestCaller{Seller: "usr_a"}, func(tx payout.RequestTx) error {
			hold := ledger.HoldPayout("pyt_"+name, 1)
			return ledger.Post(b.ctx(), tx, ledger.Posting{Seller: "usr_a", At: b.now, Transfers: hold})
		}))
		if after := old.book("usr_a"); after.Chain != before || after.Transfers != whole.Number+2 {
			b.Errorf("%s: a request leaves the chain %+v of %d transfers, want %+v", name, after.Chain, after.Transfers, before)
		}
		old.wantCleanAuditOf("chains-are-whole", "books-match-checkpoint")
		old.checkpoint()
		if book, want := old.book("usr_a"), old.rebuilt("usr_a"); book.Chain.Head != want.Head || book.Sealed != want || want.Number != whole.Number+2 {
			b.Errorf("%s: the chain caught up to %+v, sealed as %+v; want %+v", name, book.Chain, book.Sealed, want)
		}
		old.release("sale "+name, "usr_a", 10) // and does again
		if book, want := old.book("usr_a"), old.rebuilt("usr_a"); book.Chain.Head != want.Head || want.Number != whole.Number+3 {
			b.Errorf("%s: then the chain is %+v, want %+v", name, book.Chain, want)
		}
		old.wantCleanAuditOf("chains-are-whole", "books-match-checkpoint")
	}
	lost := b.engine.Tamper(b.T, b.db, `UPDATE seller_balances SET transfers = transfers + 1 WHERE seller_id = 'usr_a'`)
	if _, err := lost.CatchUp(b.ctx(), "usr_a"); !errors.Is(err, proof.ErrBroken) {
		b.Errorf("a chain caught up with a transfer that is not there: %v", err)
	}
}

// with is the bench on another database.
func (b *bench) with(db *store.DB) *bench { return &bench{b.T, b.engine, db, b.now} }

func (b *bench) headAt(seller string, number int64) ledger.Hash {
	b.Helper()
	entries, err := b.db.EntriesAfter(b.ctx(), seller, 0, int(number))
	b.must(err)
	chain := ledger.NewChain(seller)
	for _, e := range entries {
		chain = chain.Add(e.At, e.Transfer)
	}
	return chain.Head
}

func testCheckpoints(_ *testing.T, b *bench) {
	if c, _, err := b.db.LastCheckpoint(b.ctx()); err != nil || c.Number != 0 {
		b.Errorf("an empty database has the checkpoint %+v, %v", c, err)
	}
	b.books()
	first, key, err := b.db.LastCheckpoint(b.ctx())
	b.must(err)
	b.must(first.SignedBy(key))
	if first.Number != 1 || first.Books != 2 || !first.At.Equal(b.now) || first.Currency != "INR" || first.Previous != "" || key.ID != newSigner(1).public().ID {
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
	for checkpoint, want := range map[int64]int64{0: 0, 1: 14, 2: 15, 3: 15} {
		book, err := b.db.Book(b.ctx(), checkpoint, "usr_a")
		b.must(err)
		if book.Sealed.Number != want {
			b.Errorf("checkpoint %d has %d transfers of usr_a, want %d", checkpoint, book.Sealed.Number, want)
		}
	}
	at14, isSealed, err := b.db.SealedUpTo(b.ctx(), 3, "usr_a", 14)
	b.must(err)
	between, err := b.db.SealedBetween(b.ctx(), 3, "usr_a", 13, 15)
	b.must(err)
	if !isSealed || at14.Number != 14 || len(between) != 2 || between[0] != at14 || between[1].Number != 15 {
		b.Errorf("the sealed chains of usr_a are %+v and %+v", at14, between)
	}
	keys, err := b.db.CheckpointKeys(b.ctx())
	b.must(err)
	if len(keys) != 1 || keys[0].ID != key.ID {
		b.Errorf("the keys of checkpoints are %v", keys)
	}
	b.wantCleanAudit()
}

func testTurns(_ *testing.T, b *bench) {
	b.seller("usr_a")
	take := func(holder string, now time.Time) bool {
		b.Helper()
		mine, err := b.db.TakeTurn(b.ctx(), holder, now, now.Add(time.Minute))
		b.must(err)
		return mine
	}
	if !take("a", b.now) || take("b", b.now) || !take("b", b.now.Add(2*time.Minute)) {
		b.Error("a turn is not one holder's until it is over")
	}
	c := proof.Checkpoint{Number: 1, At: b.now, Currency: "INR"}
	seal := []proof.Sealed{{Seller: "usr_a", Chain: ledger.NewChain("usr_a")}}
	if err := b.db.Seal(b.ctx(), "a", b.now, 1, seal); !errors.Is(err, proof.ErrTurnLost) {
		b.Errorf("who lost the turn seals books: %v", err)
	}
	if err := b.db.Publish(b.ctx(), "a", c, newSigner(1).public()); !errors.Is(err, proof.ErrTurnLost) {
		b.Errorf("who lost the turn publishes: %v", err)
	}
	b.must(b.db.Seal(b.ctx(), "b", b.now.Add(time.Hour), 1, seal))
	b.must(b.db.Seal(b.ctx(), "b", b.now.Add(time.Hour), 1, seal))
	b.must(b.db.EndTurn(b.ctx(), "b"))
	if !take("a", b.now) {
		b.Error("a turn that was given back is not free")
	}
	b.must(b.db.EndTurn(b.ctx(), "a"))
	made := make(chan int64, 8)
	b.atOnce(8, func(int) error {
		switch c, err := b.proofs(b.db).Make(b.ctx(), proof.Trust{}); {
		case err == nil:
			made <- c.Number
			return nil
		case strings.Contains(err.Error(), "moment"): // somebody else makes it
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
	b.wantCleanAuditOf("checkpoints-are-signed", "books-match-checkpoint")
}

func (b *bench) wantCleanAuditOf(names ...string) {
	b.Helper()
	report, err := b.db.Audit(b.ctx())
	b.must(err)
	for _, f := range report.Findings {
		if slices.Contains(names, f.Name) && len(f.Violations) > 0 {
			b.Errorf("%s: %v", f.Name, f.Violations)
		}
	}
}

// testNothingBrokenIsSealed rewrites the past as somebody would who knows all of this but not the key, and
// wants no later checkpoint to hold it.
func testNothingBrokenIsSealed(_ *testing.T, b *bench) {
	b.books()
	b.seller("usr_b")
	forged := b.with(b.engine.Tamper(b.T, b.db, `UPDATE transfers SET at = at + 1 WHERE seller_id = 'usr_a' AND number = 3`))
	head := forged.rebuilt("usr_a").Head

	balance := b.with(b.engine.Tamper(b.T, forged.db, `UPDATE seller_balances SET head = '`+string(head)+`' WHERE seller_id = 'usr_a'`))
	balance.fund("usr_b", 10)
	balance.checkpoint()
	if book := balance.book("usr_a"); book.Sealed.Head != b.book("usr_a").Chain.Head {
		b.Error("a checkpoint took up a rewritten chain")
	}
	if book := balance.book("usr_b"); book.Sealed.Head != book.Chain.Head {
		b.Error("one seller's broken book held up another's")
	}
	balance.wantCleanAuditOf("checkpoints-are-signed", "books-match-checkpoint")

	b.sell("not sealed yet", "usr_a", 10)
	early := b.with(b.engine.Tamper(b.T, b.db, `UPDATE transfers SET amount = 9 WHERE ref = 'not sealed yet'`))
	early.checkpoint()
	if book := early.book("usr_a"); book.Sealed.Number != 14 {
		b.Errorf("a transfer that was changed before it was sealed is sealed: %+v", book.Sealed)
	}

	sealed := b.with(b.engine.Tamper(b.T, balance.db, `UPDATE checkpoint_books SET head = '`+string(head)+`' WHERE seller_id = 'usr_a'`))
	if c, err := sealed.proofs(sealed.db).Make(b.ctx(), proof.Trust{}); err == nil {
		b.Errorf("checkpoint %d was made after one that was rewritten", c.Number)
	}

	// Where they sign it with a key of their own, it is signed, and not by us.
	mallory := newSigner(2)
	c, err := proof.New(proof.Options{
		Store:  b.engine.Tamper(b.T, forged.db, `UPDATE seller_balances SET head = '`+string(head)+`' WHERE seller_id = 'usr_a'`).Proofs(),
		Signer: mallory, Currency: rupees(b), Every: time.Hour, Zone: time.UTC, Now: func() time.Time { return b.now }, Logger: slog.New(slog.DiscardHandler),
	})
	b.must(err)
	if made, err := c.Make(b.ctx(), proof.Trust{}); err == nil {
		b.Errorf("a stranger continued our checkpoints with %d", made.Number)
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

// testTampering changes every column of a transfer, drops, adds and swaps some, and wants the audit to name
// the seller and the transfers that the checkpoints leave in doubt.
func testTampering(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.seller("usr_b")
	for i := range 4 {
		b.now = b.now.Add(time.Second)
		b.sell(fmt.Sprintf("sale %d", i), seller, 100)
		b.release(fmt.Sprintf("sale %d", i), seller, 100)
		b.checkpoint()
	}
	b.wantCleanAudit()
	const third = ` WHERE seller_id = 'usr_a' AND number = 3`
	for _, change := range []string{
		`UPDATE transfers SET seller_id = 'usr_b'` + third,
		`UPDATE transfers SET number = 99` + third,
		`UPDATE transfers SET at = at - 1` + third,
		`UPDATE transfers SET kind = 'sale_release'` + third,
		`UPDATE transfers SET debit = 'platform:fees'` + third,
		`UPDATE transfers SET credit = 'seller:available'` + third,
		`UPDATE transfers SET amount = amount + 1` + third,
		`UPDATE transfers SET ref = 'sale 2'` + third,
		`DELETE FROM transfers` + third,
		`INSERT INTO transfers SELECT seller_id, -number, at, kind, debit, credit, amount, ref FROM transfers` + third,
		`UPDATE transfers SET number = 7 - number + 100 WHERE seller_id = 'usr_a' AND number IN (3, 4); UPDATE transfers SET number = number - 100 WHERE number > 100`,
	} {
		report, err := b.engine.Tamper(b.T, b.db, change).Audit(b.ctx())
		b.must(err)
		i := slices.IndexFunc(report.Findings, func(f ledger.Finding) bool { return f.Name == "chains-are-whole" })
		found := strings.Join(report.Findings[i].Violations, "; ")
		want := "usr_a's transfers 3 to 4 are not those that checkpoint 2 holds"
		if strings.HasPrefix(change, "INSERT") {
			want = "usr_a's transfers 1 to 2 are not those that checkpoint 1 holds"
		}
		if !strings.Contains(found, want) {
			b.Errorf("after %s the audit says %q, want %q", change, found, want)
		}
	}
}
