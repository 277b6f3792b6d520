package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
)

func testNewestSent(_ *testing.T, b *bench) {
	want := func(why string, at time.Time, ids ...payout.ID) {
		b.Helper()
		first, err := b.db.FirstUserAt(b.ctx())
		b.must(err)
		if !first.Equal(at) {
			b.Errorf("%s the first user came at %s, want %s", why, first, at)
		}
		is := func(where string, list []payout.Payout, err error, ids ...payout.ID) {
			b.Helper()
			b.must(err)
			var got []payout.ID
			for _, p := range list {
				got = append(got, p.ID)
			}
			if !slices.Equal(got, ids) {
				b.Errorf("%s, sent through %s were %v, want %v", why, where, got, ids)
			}
		}
		list, err := b.db.NewestSent(b.ctx(), atGateway, 2)
		is("the gateway", list, err, ids...)
		list, err = b.db.NewestSent(b.ctx(), "another", 2)
		is("another gateway", list, err)
		list = nil
		last, found, err := b.db.LastSent(b.ctx())
		if found {
			list = append(list, last)
		}
		is("any gateway", list, err, ids[:min(1, len(ids))]...)
	}
	want("without anybody", time.Time{})
	seller := b.seller("usr_b")
	b.fund(seller, 10_000)
	b.now = start.Add(time.Hour)
	b.seller("usr_c")
	want("with users alone", start)
	imported := id.New(auth.UserIDPrefix, start.Add(-time.Hour))
	b.update(func(tx *store.Tx) error {
		_, err := tx.InsertImported(b.ctx(), auth.Imported{Fingerprint: "f", User: auth.User{
			ID: imported, Email: "old@example.com", Role: auth.Seller, CreatedAt: time.UnixMilli(1).UTC(), ExternalID: "1",
		}})
		return err
	})
	want("with one who registered elsewhere long before", start.Add(-time.Hour))
	b.engine.Hands(b.T, b.db)(`DELETE FROM users WHERE id = '` + imported + `'`)
	for i, id := range []payout.ID{"pyt_1", "pyt_2", "pyt_3", "pyt_4"} {
		p := b.ask(id, seller, 100, 0)
		if id != "pyt_4" { // which still waits
			p.SentAt = start.Add(time.Duration(3-i) * time.Hour) // the older ones were sent later
			b.move(p, payout.Submitting)
		}
	}
	want("with payouts", start, "pyt_3", "pyt_2")
	for at, want := range map[gateway.Name]time.Time{atGateway: start.Add(time.Hour), "another": {}} {
		if first, err := b.db.Reconciling(at).FirstSent(b.ctx()); err != nil || !first.Equal(want) {
			b.Errorf("gateway %q was first sent a payout at %s, %v; want %s", at, first, err, want)
		}
	}
	for at, want := range map[gateway.Name]bool{atGateway: true, "another": false} {
		if has, err := b.db.MayHaveTaken(b.ctx(), at); has != want || err != nil {
			b.Errorf("gateway %q may have taken a payout: %t, %v; want %t", at, has, err, want)
		}
	}
}

// testMayHaveTaken has one payout, which the gateway takes in the end.
func testMayHaveTaken(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	p := b.ask("pyt_1", seller, 100, 0)
	want := func(why string, want bool) {
		if has, err := b.db.MayHaveTaken(b.ctx(), atGateway); has != want || err != nil {
			b.Errorf("%s: the gateway may have taken it: %t, %v; want %t", why, has, err, want)
		}
	}
	want("it was not sent", false)
	p.SentAt = b.now
	p = b.move(p, payout.Submitting)
	want("it is sent", true)
	p = b.move(p, payout.Waiting)
	want("it was turned away", false)
	p = b.move(p, payout.Submitting)
	p.GatewayID = "pout_1"
	b.move(p, payout.Failed)
	want("it was taken, and failed", true)
	hand := b.engine.Hands(b.T, b.db)
	hand(`UPDATE payouts SET gateway_id = ''`)
	want("it was refused", false)
	hand(`UPDATE payouts SET reason_code = 'refunded'`)
	want("an admin refunded it, and it may turn up", true)
	hand(`UPDATE payouts SET gateway_id = 'pout_1', sent_at = NULL`)
	want("it was found after a restore", true)
}

func testPayoutsByID(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	first, second := b.ask("pyt_1", seller, 100, 1), b.ask("pyt_2", seller, 200, 0)
	b.ask("pyt_3", seller, 300, 0)
	got, err := b.db.PayoutsByID(b.ctx(), []payout.ID{"pyt_2", "pyt_none", "pyt_1", "pyt_2"})
	b.must(err)
	if len(got) != 2 || got["pyt_1"] != first || got["pyt_2"] != second {
		b.Errorf("found %+v", got)
	}
	none, err := b.db.PayoutsByID(b.ctx(), nil)
	if err != nil || len(none) != 0 {
		b.Errorf("of no ids %d were found, %v", len(none), err)
	}
	for user, want := range map[string]bool{seller: true, "usr_nobody": false} {
		if got, err := b.db.UserExists(b.ctx(), user); err != nil || got != want {
			b.Errorf("%s exists: %t, %v; want %t", user, got, err, want)
		}
	}
}

func testImport(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	p := payout.Payout{
		ID: "pyt_1", Seller: seller, BankAccountID: "bka_usr_a", Amount: 600, Fee: 10, State: payout.Waiting, Rail: "IMPS", Gateway: atGateway,
		RequestedAt: b.now, ArriveAt: b.now.Add(time.Hour), AccountHolder: "Asha Rao", AccountLast4: "1234", AccountIFSC: "HDFC0000053",
	}
	for i, want := range []bool{true, false} {
		again := p
		again.Amount += money.Amount(i)
		b.update(func(tx *store.Tx) error {
			imported, err := tx.ImportPayout(b.ctx(), again)
			if imported != want {
				b.Errorf("time %d: imported %t, want %t", i, imported, want)
			}
			return err
		})
	}
	stored, err := b.db.Payout(b.ctx(), p.ID)
	b.must(err)
	if stored != p {
		b.Errorf("read back\n%+v, want\n%+v", stored, p)
	}
	recorded := b.ask("pyt_2", seller, 100, 0)
	known, err := b.db.PayoutsByID(b.ctx(), []payout.ID{p.ID, recorded.ID})
	if _, isKnown := known[recorded.ID]; err != nil || len(known) != 1 || !isKnown {
		b.Errorf("known are %v, %v; want the one that a journal knows", known, err)
	}
	for id, want := range map[payout.ID]error{p.ID: payout.ErrNotFound, recorded.ID: nil} {
		b.update(func(tx *store.Tx) error { return tx.DeleteUnrecordedPayout(b.ctx(), id) })
		if _, err := b.db.Payout(b.ctx(), id); !errors.Is(err, want) {
			b.Errorf("payout %s: %v, want %v", id, err, want)
		}
	}
}

func testUnsent(_ *testing.T, b *bench) {
	seller, other := b.seller("usr_a"), b.seller("usr_b")
	b.fund(seller, 1000)
	b.fund(other, 1000)
	waiting := b.ask("pyt_waiting", seller, 100, 0)
	submitting := b.move(b.ask("pyt_submitting", seller, 100, 0), payout.Submitting)
	unknown := b.move(b.move(b.ask("pyt_unknown", seller, 100, 0), payout.Submitting), payout.Unknown)
	inReview := b.move(b.move(b.ask("pyt_review", seller, 100, 0), payout.Submitting), payout.Unknown)
	b.move(inReview, payout.ManualReview)
	b.move(b.move(b.ask("pyt_submitted", seller, 100, 0), payout.Submitting), payout.Submitted)
	b.complete(b.ask("pyt_completed", seller, 100, 0))
	b.move(b.ask("pyt_cancelled", seller, 100, 0), payout.Cancelled)
	b.ask("pyt_other", other, 100, 0)
	b.update(func(tx *store.Tx) error {
		unsent, err := tx.UnsentPayouts(b.ctx(), seller)
		if want := []payout.Payout{submitting, unknown, waiting}; !slices.Equal(unsent, want) {
			b.Errorf("unsent are\n%+v, want\n%+v", unsent, want)
		}
		return err
	})
}

func (b *bench) wantOldestUnmatched(at gateway.Name, want time.Time) {
	b.Helper()
	if oldest, err := b.db.OldestUnmatched(b.ctx(), at, "nobody knows"); err != nil || !oldest.Equal(want) {
		b.Errorf("the oldest unmatched transfer of %s was made at %s, %v; want %s", at, oldest, err, want)
	}
}

func testUnmatchedTransfers(_ *testing.T, b *bench) {
	t := gateway.Transfer{
		Report: gateway.Report{GatewayID: "pout_1", Reference: "pyt_1", Amount: 500, MadeAt: b.now, Progress: gateway.Paid},
		Order:  gateway.Order{Seller: "usr_gone"},
	}
	undated := t
	undated.GatewayID, undated.MadeAt = "pout_2", time.Time{}
	const other = "another" // which has a transfer with the same id
	for i, tt := range []struct {
		at       gateway.Name
		transfer gateway.Transfer
		want     bool
	}{{atGateway, t, true}, {atGateway, t, false}, {atGateway, undated, true}, {other, t, true}, {other, t, false}} {
		b.update(func(tx *store.Tx) error {
			isNew, err := tx.RecordUnmatchedTransfer(b.ctx(), payout.UnmatchedTransfer{Gateway: tt.at, Transfer: tt.transfer, FoundAt: b.now, Why: "nobody knows"})
			if isNew != tt.want {
				b.Errorf("time %d: new %t, want %t", i, isNew, tt.want)
			}
			return err
		})
	}
	for _, why := range []string{"for this reason now", "nobody knows"} {
		b.update(func(tx *store.Tx) error {
			_, err := tx.RecordUnmatchedTransfer(b.ctx(), payout.UnmatchedTransfer{Gateway: other, Transfer: t, FoundAt: b.now.Add(time.Hour), Why: why})
			return err
		})
		if open, err := b.db.OpenUnmatchedTransfers(b.ctx(), 10); err != nil || !slices.ContainsFunc(open, func(u payout.UnmatchedTransfer) bool {
			return u.Gateway == other && u.Why == why && u.FoundAt.Equal(b.now)
		}) {
			b.Errorf("unmatched are %+v, %v", open, err)
		}
	}
	old := undated
	old.GatewayID, old.MadeAt = "pout_3", b.now.Add(-time.Hour)
	b.update(func(tx *store.Tx) error {
		_, err := tx.RecordUnmatchedTransfer(b.ctx(), payout.UnmatchedTransfer{Gateway: other, Transfer: old, FoundAt: b.now, Why: "nobody knows"})
		return err
	})
	b.wantOldestUnmatched(other, old.MadeAt)
	b.wantOldestUnmatched(atGateway, b.now)
	b.wantOldestUnmatched("a third", time.Time{})
	if oldest, err := b.db.OldestUnmatched(b.ctx(), other, "another reason"); err != nil || !oldest.IsZero() {
		b.Errorf("the oldest unmatched transfer for another reason was made at %s, %v", oldest, err)
	}
	if sellers, err := b.db.UnmatchedSellers(b.ctx(), 10); err != nil || !slices.Equal(sellers, []string{"usr_gone"}) {
		b.Errorf("unmatched transfers name %v, %v", sellers, err)
	}
	b.wantOpenCase("an unmatched transfer names the user", "usr_gone", true)
	b.update(func(tx *store.Tx) error {
		_, err := tx.ResolveUnmatchedTransfer(b.ctx(), other, "pout_3")
		return err
	})
	b.wantOldestUnmatched(other, b.now)
	if n := b.watch().UnmatchedTransfers; n != 3 {
		b.Errorf("%d unmatched transfers, want 3", n)
	}
	for _, tt := range []struct {
		at        gateway.Name
		gatewayID string
		want      bool
	}{{atGateway, "pout_1", true}, {atGateway, "pout_1", false}, {atGateway, "pout_none", false}, {other, "pout_2", false}} {
		b.update(func(tx *store.Tx) error {
			resolved, err := tx.ResolveUnmatchedTransfer(b.ctx(), tt.at, tt.gatewayID)
			if resolved != tt.want {
				b.Errorf("settle %s: %t, want %t", tt.gatewayID, resolved, tt.want)
			}
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		err := tx.ForgetUnmatchedTransfer(b.ctx(), atGateway, "pout_1") // which is resolved
		if err == nil {
			err = tx.ForgetUnmatchedTransfer(b.ctx(), other, "pout_2") // of which there is none
		}
		return err
	})
	open, err := b.db.OpenUnmatchedTransfers(b.ctx(), 10)
	if n := b.watch().UnmatchedTransfers; err != nil || n != 2 || len(open) != 2 || open[0].ID() != other+":pout_1" || open[1].ID() != string(atGateway)+":pout_2" {
		b.Errorf("after one was settled %d are open: %+v, %v", n, open, err)
	}
	if resolved, err := b.db.Reconciling(atGateway).ResolvedUnmatchedTransfers(b.ctx(), atGateway, []string{"pout_1"}); err != nil || !resolved["pout_1"] {
		b.Errorf("the one that was resolved is gone: %v", err)
	}
	b.update(func(tx *store.Tx) error { return tx.ForgetUnmatchedTransfer(b.ctx(), atGateway, "pout_2") })
	if open, err := b.db.OpenUnmatchedTransfers(b.ctx(), 10); err != nil || len(open) != 1 || open[0].ID() != other+":pout_1" {
		b.Errorf("after one was forgotten there are open %+v, %v", open, err)
	}
	b.update(func(tx *store.Tx) error {
		_, err := tx.ResolveUnmatchedTransfer(b.ctx(), other, "pout_1")
		return err
	})
	if sellers, err := b.db.UnmatchedSellers(b.ctx(), 10); err != nil || len(sellers) > 0 {
		b.Errorf("after all were resolved, unmatched transfers name %v, %v", sellers, err)
	}
	b.wantOpenCase("all unmatched transfers are resolved", "usr_gone", false)
}
