package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
	"bursar/internal/webhook"
)

// posting is an entry that tells nothing but the money that it moves.
func (b *bench) posting(owner string, t ledger.Type, moved ledger.Moved) ledger.Posting {
	return ledger.Posting{Owner: owner, At: b.now, Type: t, Subject: "s", Actor: "system", Data: "{}", Moved: moved}
}

// append appends entries in one transaction.
func (b *bench) append(postings ...ledger.Posting) error {
	return b.db.Update(b.ctx(), func(tx *store.Tx) error {
		for _, p := range postings {
			if _, err := tx.Append(b.ctx(), p); err != nil {
				return err
			}
		}
		return nil
	})
}

func testPostings(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.must(b.append(
		b.posting(seller, ledger.SaleRecorded, ledger.Sale(70)),
		b.posting(seller, ledger.SaleRefunded, ledger.RefundSale(30, true)),
		b.posting(seller, ledger.PayoutRequested, ledger.ReservePayout(20)),
		b.posting(seller, ledger.PayoutFailed, ledger.ReleasePayout(20)),
	))
	want := ledger.Balance{Pending: 70, Available: 970, Earned: 1040, Counts: ledger.Counts{Sales: 2, Failed: 1}}
	stored, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	if stored != want {
		b.Errorf("stored %+v, want %+v", stored, want)
	}
	b.update(func(tx *store.Tx) error {
		for id, want := range map[string]money.Amount{seller: 970, "usr_nobody": 0} {
			balance, err := tx.Balance(b.ctx(), id)
			if err != nil || balance.Available != want {
				b.Errorf("%s has %d available, %v; want %d", id, balance.Available, err, want)
			}
		}
		return nil
	})
	none, err := b.db.Balance(b.ctx(), "usr_nobody")
	b.must(err)
	if none != (ledger.Balance{}) {
		b.Errorf("a seller without a journal has %+v, want zeros", none)
	}
}

// testLargeAmounts goes up to the largest total, and not beyond it, in a transaction and in a request.
func testLargeAmounts(_ *testing.T, b *bench) {
	for _, seller := range []string{"usr_a", "usr_b", "usr_c"} {
		b.fund(b.seller(seller), ledger.MaxTotal)
		b.complete(b.ask(payout.ID("pyt_"+seller), seller, ledger.MaxTotal-1, ledger.MaxTotal-2))
		got, err := b.db.Balance(b.ctx(), seller)
		b.must(err)
		if got.Available != 1 || got.Earned != ledger.MaxTotal || got.Withdrawn != ledger.MaxTotal-1 {
			b.Errorf("%s has %+v", seller, got)
		}
	}
	before := b.state()
	for _, tt := range []struct {
		name  string
		t     ledger.Type
		moved ledger.Moved
	}{
		{"a sale of one more", ledger.SaleRecorded, ledger.Sale(1)},
		{"the largest sale again", ledger.SaleRecorded, ledger.Sale(ledger.MaxTotal)},
		{"a sale larger than any total", ledger.SaleRecorded, ledger.Sale(ledger.MaxTotal + 1)},
		{"the largest number", ledger.SaleRecorded, ledger.Sale(1<<63 - 1)},
		{"a payout of the largest number", ledger.PayoutRequested, ledger.ReservePayout(1<<63 - 1)},
	} {
		if err := b.append(b.posting("usr_a", tt.t, tt.moved)); !errors.Is(err, ledger.ErrTooLarge) {
			b.Errorf("%s: %v, want %v", tt.name, err, ledger.ErrTooLarge)
		}
	}
	if err := requests("usr_a", 1<<63-1)(b); !errors.Is(err, ledger.ErrTooLarge) {
		b.Errorf("a request of the largest number: %v, want %v", err, ledger.ErrTooLarge)
	}
	if after := b.state(); after != before {
		b.Errorf("totals that are too large wrote something: %s", cmp.Diff(before, after))
	}
	b.wantCleanAudit()
}

func testFloors(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	before, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	tests := []struct {
		name  string
		t     ledger.Type
		moved ledger.Moved
		want  error
	}{
		{"available, one too much", ledger.PayoutRequested, ledger.ReservePayout(1001), ledger.ErrInsufficient},
		{"pending below zero", ledger.SaleRefunded, ledger.RefundSale(1, false), ledger.ErrBelowZero},
		{"in transit below zero", ledger.PayoutCancelled, ledger.ReleasePayout(1), ledger.ErrBelowZero},
		{"all that is available", ledger.PayoutRequested, ledger.ReservePayout(1000), nil},
		{"a refund beyond it", ledger.SaleRefunded, ledger.RefundSale(500, true), nil},
		{"more while below zero", ledger.PayoutRequested, ledger.ReservePayout(1), ledger.ErrInsufficient},
		{"what the gateway has paid, while below zero", ledger.PayoutImported, ledger.ReservePayout(1), nil},
		{"a release while below zero", ledger.PayoutFailed, ledger.ReleasePayout(1000), nil},
	}
	for _, tt := range tests {
		if err := b.append(b.posting(seller, tt.t, tt.moved)); !errors.Is(err, tt.want) {
			b.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
	after, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	counts := before.Counts
	counts.Processing, counts.Failed = counts.Processing+1, counts.Failed+1
	if want := (ledger.Balance{Available: 499, InTransit: 1, Earned: before.Earned - 500, Counts: counts}); after != want {
		b.Errorf("in the end %+v, want %+v", after, want)
	}
	good := b.posting(seller, ledger.SaleRecorded, ledger.Sale(5))
	unchanged := b.state()
	for name, change := range map[string]func(*ledger.Posting){
		"no owner":      func(p *ledger.Posting) { p.Owner = "" },
		"nothing moved": func(p *ledger.Posting) { p.Moved = ledger.Moved{} },
		"backwards":     func(p *ledger.Posting) { p.Moved = ledger.Sale(-5) },
		"no subject":    func(p *ledger.Posting) { p.Subject = "" },
		"no actor":      func(p *ledger.Posting) { p.Actor = "" },
		"no data":       func(p *ledger.Posting) { p.Data = "" },
		"no such rule":  func(p *ledger.Posting) { p.Moved = ledger.Moved{Gateway: -5, Available: 5} },
		"unbalanced":    func(p *ledger.Posting) { p.Moved = ledger.Moved{Pending: 5} },
	} {
		p := good
		change(&p)
		if b.append(p) == nil {
			b.Errorf("a posting with %s was taken", name)
		}
	}
	if now := b.state(); now != unchanged {
		b.Errorf("what was refused wrote something: %s", cmp.Diff(unchanged, now))
	}
}

func testOverspending(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 7*100)
	var callers sync.WaitGroup
	var reserved atomic.Int64
	for range 24 {
		callers.Go(func() {
			switch err := b.append(b.posting(seller, ledger.PayoutRequested, ledger.ReservePayout(100))); {
			case err == nil:
				reserved.Add(1)
			case !errors.Is(err, ledger.ErrInsufficient):
				b.Error(err)
			}
		})
	}
	callers.Wait()
	got, err := b.db.Balance(b.ctx(), seller)
	b.must(err)
	if reserved.Load() != 7 || got.Available != 0 || got.InTransit != money.Amount(700) {
		b.Errorf("of a balance for 7, %d were reserved, leaving %d available and %d in transit", reserved.Load(), got.Available, got.InTransit)
	}
	b.follow(seller)
}

func testEntries(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.now = b.now.Add(time.Hour)
	b.ask("pyt_1", seller, 600, 10)
	b.fund(b.seller("usr_b"), 70)
	for _, tt := range []struct {
		seller string
		before int64
		limit  int
		want   []int64
	}{
		{seller, 0, 10, []int64{4, 3, 2, 1}},
		{seller, 0, 2, []int64{4, 3}},
		{seller, 3, 2, []int64{2, 1}},
		{seller, 2, 2, []int64{1}},
		{seller, 1, 2, nil},
		{"usr_nobody", 0, 2, nil},
	} {
		got, err := b.db.Entries(b.ctx(), tt.seller, tt.before, tt.limit)
		b.must(err)
		var numbers []int64
		for _, e := range got {
			numbers = append(numbers, e.Number)
		}
		if !slices.Equal(numbers, tt.want) {
			b.Errorf("%d of %s before %d: %v, want %v", tt.limit, tt.seller, tt.before, numbers, tt.want)
		}
		checked, err := b.db.CheckedEntries(b.ctx(), tt.seller, tt.before, tt.limit)
		b.must(err)
		if !slices.EqualFunc(checked, got, func(a, b ledger.Entry) bool {
			return a.Posting == b.Posting && a.Number == b.Number && a.After == b.After
		}) {
			b.Errorf("checked are %+v, want %+v", checked, got)
		}
	}
	got, err := b.db.Entries(b.ctx(), seller, 0, 1)
	b.must(err)
	newest := got[0]
	if want := (ledger.Posting{
		Owner: seller, At: b.now, Type: ledger.PayoutRequested, Subject: "pyt_1", Actor: "system", Data: newest.Data, Moved: ledger.ReservePayout(600),
	}); newest.Posting != want || newest.After != (ledger.Balance{Available: 400, InTransit: 600, Earned: 1000, Counts: ledger.Counts{Sales: 1, Processing: 1}}) {
		b.Errorf("the newest entry is\n%+v, want\n%+v", newest, want)
	}
	b.engine.Hands(b.T, b.db)(`UPDATE entries SET after = 'much' WHERE owner = '` + seller + `' AND number = 1`)
	for name, read := range map[string]func() ([]ledger.Entry, error){
		"Entries":      func() ([]ledger.Entry, error) { return b.db.Entries(b.ctx(), seller, 0, 100) },
		"EntriesAfter": func() ([]ledger.Entry, error) { return b.db.EntriesAfter(b.ctx(), seller, 0, 100) },
	} {
		if _, err := read(); !errors.Is(err, ledger.ErrTampered) {
			b.Errorf("%s with an entry that can't be read: %v, want %v", name, err, ledger.ErrTampered)
		}
	}
}

// head is the row of totals as it is stored.
func (b *bench) head(owner string) ledger.Head {
	b.Helper()
	journalState, err := b.db.JournalState(b.ctx(), 0, owner)
	b.must(err)
	if journalState.Seller == "" {
		return ledger.NewHead(owner)
	}
	return journalState.Now
}

// follow walks a journal from its first entry, and wants it to lead to the row of totals.
func (b *bench) follow(owner string) (numbers int64) {
	b.Helper()
	at := ledger.NewHead(owner)
	for {
		entries, err := b.db.EntriesAfter(b.ctx(), owner, at.Number, 5)
		b.must(err)
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			at, err = at.Follow(b.keys, e)
			b.must(err)
		}
	}
	if now := b.head(owner); now != at {
		b.Errorf("the row of totals of %s is\n%+v, its journal leads to\n%+v", owner, now, at)
	}
	return at.Number
}

func testJournals(_ *testing.T, b *bench) {
	b.fill()
	b.seller("usr_many")
	b.must(b.append(b.posting("usr_many", ledger.SaleRecorded, ledger.Sale(12)), b.posting("usr_many", ledger.SaleReleased, ledger.ReleaseSale(12))))
	b.must(b.db.Payouts().InGroup(b.ctx(), ledger.Scope{Owner: "usr_many"}, func(tx payout.ChangeTx) error {
		for i := range 2 {
			e, err := tx.Append(b.ctx(), b.posting("usr_many", ledger.PayoutRequested, ledger.ReservePayout(3)))
			if err != nil {
				return err
			}
			if e.Number != int64(4+i) || e.After.Available != money.Amount(9-3*i) {
				b.Errorf("entry %d of a request leaves %d", e.Number, e.After.Available)
			}
		}
		return nil
	}))
	for owner, want := range map[string]int64{"usr_a": 15, "usr_empty": 1, "usr_many": 5, "usr_nobody": 0} {
		if got := b.follow(owner); got != want {
			b.Errorf("the journal of %s has %d entries, want %d", owner, got, want)
		}
	}
	for _, tt := range []struct {
		among       int64
		from, to    time.Duration
		first, last int64
	}{
		{10, -time.Hour, time.Hour, 1, 10},
		{100, 0, time.Hour, 1, 15},
		{10, time.Hour, 2 * time.Hour, 11, 10},
		{10, -2 * time.Hour, -time.Hour, 1, 0},
		{100, time.Hour, 2 * time.Hour, 16, 15},
		{100, time.Hour, -time.Hour, 16, 15},
	} {
		first, last, err := b.db.Period(b.ctx(), "usr_a", tt.among, b.now.Add(tt.from), b.now.Add(tt.to))
		if err != nil || first != tt.first || last != tt.last {
			b.Errorf("among %d, the entries of the period are %d to %d, %v; want %d to %d", tt.among, first, last, err, tt.first, tt.last)
		}
	}
	for _, after := range []time.Duration{2 * time.Hour, time.Hour} { // two instances' clocks
		p := b.posting("usr_many", ledger.SaleRecorded, ledger.Sale(1))
		p.At = b.now.Add(after)
		b.must(b.append(p))
	}
	const split = 90 * time.Minute
	_, before, err := b.db.Period(b.ctx(), "usr_many", 100, b.now, b.now.Add(split))
	b.must(err)
	first, last, err := b.db.Period(b.ctx(), "usr_many", 100, b.now.Add(split), b.now.Add(24*time.Hour))
	if err != nil || before != 5 || first != 6 || last != 7 {
		b.Errorf("one period ends with entry %d, and the next has %d to %d, %v; want 5, and 6 to 7", before, first, last, err)
	}
}

// testEntriesAbout reads what a journal says of a subject, and checks journals that nobody has changed.
func testEntriesAbout(_ *testing.T, b *bench) {
	b.fill()
	var about []ledger.Entry
	b.update(func(tx *store.Tx) (err error) {
		about, err = tx.EntriesAbout(b.ctx(), "usr_a", "pyt_returned")
		if err != nil {
			return err
		}
		for _, from := range []int64{1, 7, 15} {
			if err := tx.CheckJournal(b.ctx(), "usr_a", from); err != nil {
				b.Errorf("the journal from entry %d on: %v", from, err)
			}
		}
		for owner, from := range map[string]int64{"usr_a": 17, "usr_nobody": 1} { // beyond the end of the journal
			if err := tx.CheckJournal(b.ctx(), owner, from); !errors.Is(err, ledger.ErrTampered) {
				b.Errorf("the journal of %s from entry %d on: %v", owner, from, err)
			}
		}
		return nil
	})
	whole, seen, err := b.db.Sales().CheckJournalFrom(b.ctx(), "usr_a", 1, []string{"pyt_returned", "pyt_none"})
	b.must(err)
	if got := seen["pyt_returned"]; len(seen) != 2 || len(got) != len(about) || got[0].Number != about[0].Number || len(seen["pyt_none"]) > 0 {
		b.Errorf("the entries about a payout that were read are %+v, want %+v", seen, about)
	}
	b.update(func(tx *store.Tx) error {
		_, err := tx.Append(b.ctx(), b.posting("usr_a", ledger.AccountProofMissing, ledger.Moved{}))
		return err
	})
	if _, _, err := b.db.Sales().CheckJournalFrom(b.ctx(), "usr_nobody", 1, nil); !errors.Is(err, ledger.ErrTampered) {
		b.Errorf("the journal of nobody: %v", err)
	}
	b.update(func(tx *store.Tx) error {
		end, err := tx.JournalEnd(b.ctx(), "usr_a")
		if end <= whole.Number {
			b.Errorf("the journal ends with entry %d, and was found whole up to %d before it grew", end, whole.Number)
		}
		older := whole
		older.Hash = "other"
		if err := tx.CheckJournalAfter(b.ctx(), "usr_a", older); !errors.Is(err, ledger.ErrTampered) {
			b.Errorf("the journal after an entry that it does not have: %v", err)
		}
		return errors.Join(err, tx.CheckJournalAfter(b.ctx(), "usr_a", whole))
	})
	for range 2 { // what was found whole is not read again
		b.must(b.db.CheckNewest(b.ctx(), "usr_a", 7, ledger.Listing{Numbers: []int64{7}}))
		if err := b.db.CheckNewest(b.ctx(), "usr_nobody", 1, ledger.Listing{Numbers: []int64{1}}); !errors.Is(err, ledger.ErrTampered) {
			b.Errorf("outside of a transaction, the journal of nobody: %v", err)
		}
	}
	b.must(b.append(b.posting("usr_a", ledger.SaleRecorded, ledger.Sale(100))))
	b.must(b.db.CheckNewest(b.ctx(), "usr_a", 7, ledger.Listing{Numbers: []int64{7}}))
	outside, err := b.db.EntriesAbout(b.ctx(), "usr_a", "pyt_returned")
	if err != nil || !slices.Equal(outside, about) {
		b.Errorf("outside of a transaction there are %+v, %v", outside, err)
	}
	newest, err := b.db.Auth().EntriesAboutBefore(b.ctx(), "usr_a", "pyt_returned", 0, 1)
	b.must(err)
	rest, err := b.db.Auth().EntriesAboutBefore(b.ctx(), "usr_a", "pyt_returned", newest[0].Number, 10)
	b.must(err)
	paged := slices.Concat(newest, rest)
	slices.Reverse(paged)
	if !slices.Equal(paged, about) {
		b.Errorf("in pages there are %+v", paged)
	}
	var types []string
	for _, e := range about {
		types = append(types, string(e.Type))
	}
	if got, want := strings.Join(types, " "), "payout.requested payout.submitting payout.completed payout.returned"; got != want {
		b.Errorf("the journal says of the payout %q, want %q", got, want)
	}
	returned, err := b.db.Payout(b.ctx(), "pyt_returned")
	b.must(err)
	b.must(payout.CheckEntries(returned, about))
	for owner, subject := range map[string]string{"usr_empty": "pyt_returned", "usr_a": "pyt_none", "usr_nobody": "pyt_returned"} {
		if none, err := b.db.EntriesAbout(b.ctx(), owner, subject); err != nil || len(none) > 0 {
			b.Errorf("the journal of %s says of %s %+v, %v", owner, subject, none, err)
		}
	}
}

// testRestoredJournal puts a journal back under a service that has found it whole, and continues it otherwise. What the
// service remembers of it holds no longer, and it is read from the beginning again.
func testRestoredJournal(t *testing.T, b *bench) {
	t.Helper()
	b.fill()
	hands := b.engine.Hands(t, b.db)
	var keep, back []string
	for _, table := range []string{"entries", "journals"} {
		keep = append(keep, fmt.Sprintf("CREATE TABLE backup_%[1]s AS SELECT * FROM %[1]s", table))                //nolint:unqueryvet // all of it
		back = append(back, fmt.Sprintf("DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM backup_%[1]s", table)) //nolint:unqueryvet // all of it
	}
	hands(strings.Join(keep, "; "))
	sell := func(times int, amount money.Amount) {
		for i := range times {
			p := b.posting("usr_a", ledger.SaleRecorded, ledger.Sale(amount))
			p.Subject = fmt.Sprint("sale:", amount, "-", i)
			b.must(b.append(p))
		}
	}
	sell(2, 100)
	b.must(b.db.CheckNewest(b.ctx(), "usr_a", 7, ledger.Listing{Numbers: []int64{7}}))
	for _, more := range []int{2, 3} { // as long as it was remembered, and longer
		hands(strings.Join(back, "; "))
		sell(more, 100+money.Amount(more))
		b.must(b.db.CheckNewest(b.ctx(), "usr_a", 7, ledger.Listing{Numbers: []int64{7}}))
	}
	hands(`DELETE FROM entries WHERE owner = 'usr_a' AND number = 9`)
	hands(`UPDATE entries SET at = at + 1 WHERE owner = 'usr_a' AND number = (SELECT MAX(number) FROM entries WHERE owner = 'usr_a')`)
	if err := b.db.CheckNewest(b.ctx(), "usr_a", 8, ledger.Listing{Numbers: []int64{8}}); !errors.Is(err, ledger.ErrTampered) {
		b.Errorf("a journal with a gap: %v", err)
	}
}

// testWithoutKeys uses a datastore before its keys are set. It can be read, and nothing is appended or trusted.
func testWithoutKeys(t *testing.T, b *bench) {
	t.Helper()
	b.fill()
	b.update(func(tx *store.Tx) error { return b.insertKey(tx, "key_1") })
	before := b.state()
	locked := b.with(b.engine.Tamper(t, b.db, `UPDATE users SET name = name`))
	locked.db.UseKeys(noKeys{}) // as good as none: it makes no MAC and knows none
	fresh := b.engine.Open(t)
	for name, db := range map[string]*store.DB{"no keys": fresh, "other keys": locked.db} {
		at := &bench{T: t, engine: b.engine, keys: b.keys, db: db, now: b.now}
		p := at.posting("usr_a", ledger.PayoutRequested, ledger.ReservePayout(1))
		inRequest := func(tx payout.ChangeTx) error {
			_, err := tx.Append(at.ctx(), p)
			return err
		}
		for what, err := range map[string]error{
			"append":              at.append(p),
			"append in a request": db.Payouts().InGroup(at.ctx(), ledger.Scope{Owner: "usr_a"}, inRequest),
			"check a journal":     db.Update(at.ctx(), func(tx *store.Tx) error { return tx.CheckJournal(at.ctx(), "usr_a", 1) }),
			"read about a payout": second(db.EntriesAbout(at.ctx(), "usr_a", "pyt_waiting")),
			"read a checked page": second(db.CheckedEntries(at.ctx(), "usr_a", 0, 10)),
		} {
			if err == nil {
				t.Errorf("with %s: %s went well", name, what)
			}
		}
	}
	unset := &bench{T: t, engine: b.engine, db: b.engine.Tamper(t, b.db, `UPDATE users SET name = name`), now: b.now}
	for what, insert := range map[string]func(tx *store.Tx) error{
		"insert a user":          func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser("usr_new")) },
		"insert a session":       func(tx *store.Tx) error { return tx.InsertSession(b.ctx(), newSession("ses_1", "usr_a")) },
		"insert a second factor": func(tx *store.Tx) error { return tx.InsertFactor(b.ctx(), newFactor("fac_1", "usr_a")) },
		"insert an identity":     func(tx *store.Tx) error { return second(tx.AddIdentity(b.ctx(), "usr_a", newIdentity("1"), b.now)) },
		"insert a session link": func(tx *store.Tx) error {
			return tx.InsertSessionLink(b.ctx(), auth.SessionLink{Hash: "hash", UserID: "usr_a", KeyID: "key_1", ExpiresAt: b.now.Add(time.Minute)})
		},
		"insert a mail token": func(tx *store.Tx) error {
			token := b.mailToken("hash", toReset)
			token.UserID = "usr_a"
			return tx.InsertMailToken(b.ctx(), token)
		},
		"save a verification": func(tx *store.Tx) error {
			verified := bank.Account{ID: "bka_1", Current: true, Status: bank.StatusVerified}
			return second(tx.SaveVerification(b.ctx(), verified, verified))
		},
		"insert a webhook endpoint": func(tx *store.Tx) error {
			return second(tx.InsertEndpoint(b.ctx(), webhook.Endpoint{ID: "whe_1", URL: "https://shop.example/hooks", Status: webhook.Enabled, CreatedAt: b.now}))
		},
	} {
		if err := unset.db.Update(b.ctx(), insert); err == nil {
			t.Errorf("with no keys: %s went well", what)
		}
	}
	if after := unset.state(); after != before {
		t.Errorf("with no keys a row was inserted: %s", cmp.Diff(before, after))
	}
	if after := locked.state(); after != before {
		t.Errorf("without keys something was written: %s", cmp.Diff(before, after))
	}
	locked.db.UseKeys(b.keys)
	locked.wantCleanAudit()
	if _, err := fresh.Audit(context.WithoutCancel(b.ctx()), nil); err != nil {
		t.Errorf("an audit without keys: %v", err)
	}
}

func second[V any](_ V, err error) error { return err }

// noKeys knows no key.
type noKeys struct{}

func (noKeys) MAC([]byte) (string, []byte)          { return "", nil }
func (noKeys) CheckMAC(string, []byte, []byte) bool { return false }
