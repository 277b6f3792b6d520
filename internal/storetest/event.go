package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/event"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// numberEvents numbers all that is queued, and returns it.
func (b *bench) numberEvents() []event.Event {
	b.Helper()
	var all []event.Event
	for {
		events, err := b.db.NumberEvents(b.ctx(), 3, b.now, newEventID, nil)
		b.must(err)
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
	}
}

// eventIDs counts the ids of tests, which are unique in all databases.
var eventIDs atomic.Int64

func newEventID(prefix string) string { return fmt.Sprintf("%s%024d", prefix, eventIDs.Add(1)) }

// feed is the whole feed, read in pages.
func (b *bench) feed() []event.Event {
	b.Helper()
	var all []event.Event
	for after := int64(0); ; {
		page, err := b.db.Events(b.ctx(), after, 4)
		b.must(err)
		if len(page) == 0 {
			return all
		}
		all, after = append(all, page...), page[len(page)-1].Number
	}
}

func testEvents(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.sell("s1", seller, 1000)
	b.now = b.now.Add(time.Second)
	b.release("s1")
	b.complete(b.ask("pyt_1", seller, 900, 0)) // as in a group
	b.refund("s1", "r1", 500)
	undone := errors.New("undone")
	if err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
		_, err := tx.Append(b.ctx(), b.posting(seller, ledger.SaleRecorded, ledger.Sale(5)))
		return errors.Join(err, undone)
	}); !errors.Is(err, undone) {
		b.Fatal(err)
	}
	if none := b.feed(); len(none) > 0 {
		b.Errorf("before they are numbered, the feed has %v", none)
	}
	numbered := b.numberEvents()
	feed := b.feed()
	var told []string
	for i, e := range feed {
		if e.Number != int64(i)+1 || e.ID == "" || e.At.IsZero() || e.Queued != numbered[i].Queued || e.ID != numbered[i].ID {
			b.Errorf("event %d is %+v, numbered as %+v", i+1, e, numbered[i])
		}
		told = append(told, fmt.Sprintf("%s %d %s %s", e.Type, e.Entry, e.Subject, e.At.Sub(start)))
		if same, found, err := b.db.Event(b.ctx(), e.ID); err != nil || !found || same != e {
			b.Errorf("by its id, event %d is %+v, %t, %v", e.Number, same, found, err)
		}
	}
	if diff := cmp.Diff([]string{
		"seller.registered 0 usr_a 0s", "bank_account.added 1 bka_usr_a 0s",
		"sale.recorded 2 sale:s1 0s", "sale.released 3 sale:s1 1s",
		"payout.requested 4 pyt_1 1s", "payout.completed 6 pyt_1 1s",
		"sale.refunded 7 sale:s1 1s", "balance.negative 7 sale:s1 1s",
	}, told); diff != "" {
		b.Errorf("the feed (-want +got):\n%s", diff)
	}
	if again := b.numberEvents(); len(again) > 0 {
		b.Errorf("numbered again: %v", again)
	}
	if last, err := b.db.LastEvent(b.ctx()); err != nil || last != int64(len(feed)) {
		b.Errorf("the last event is %d, %v, want %d", last, err, len(feed))
	}
	if _, found, err := b.db.Event(b.ctx(), "evt_none"); found || err != nil {
		b.Errorf("an event that is not there: %t, %v", found, err)
	}
	b.wantCleanAudit()
}

// testMailedEvents numbers the events of payouts that failed or were returned: each is mailed in the transaction that numbers it.
func testMailedEvents(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 5000)
	failed := b.move(b.ask("pyt_1", seller, 900, 0), payout.Submitting)
	failed.EndedAt, failed.DueAt = b.now, time.Time{}
	b.move(failed, payout.Failed)
	b.move(b.complete(b.ask("pyt_2", seller, 800, 0)), payout.Returned)
	interrupted := errors.New("interrupted")
	var mailed []string
	number := func(then error) ([]event.Event, error) {
		mailed = nil
		return b.db.NumberEvents(b.ctx(), 100, b.now, newEventID, func(_ context.Context, tx event.MailTx, e event.Event) error {
			mailed = append(mailed, fmt.Sprintf("%s %s %s %s", e.Type, e.Owner, e.Subject, e.At.Sub(start)))
			_, _, err := tx.TakeThrottle(b.ctx(), "mails", b.now, time.Minute, time.Hour)
			return errors.Join(err, then)
		})
	}
	if _, err := number(interrupted); !errors.Is(err, interrupted) {
		b.Errorf("numbering with a mail that fails: %v", err)
	}
	if last, err := b.db.LastEvent(b.ctx()); err != nil || last != 0 {
		b.Errorf("without its mail, event %d was numbered, %v", last, err)
	}
	for _, want := range [][]string{{"payout.failed usr_a pyt_1 0s", "payout.returned usr_a pyt_2 0s"}, nil} {
		if _, err := number(nil); err != nil || !slices.Equal(mailed, want) {
			b.Errorf("mailed is %q, %v, want %q", mailed, err, want)
		}
	}
}

// testEventsAtOnce appends to many journals while several number.
func testEventsAtOnce(_ *testing.T, b *bench) {
	const writers, each = 6, 20
	for i := range writers {
		b.seller(fmt.Sprintf("usr_%d", i))
	}
	b.atOnce(writers+2, func(i int) error {
		for n := range each {
			var err error
			if i < writers {
				err = b.append(b.posting(fmt.Sprintf("usr_%d", (i+n)%writers), ledger.SaleRecorded, ledger.Sale(1)))
			} else {
				_, err = b.db.NumberEvents(b.ctx(), 5, b.now, newEventID, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	b.numberEvents()
	feed := b.feed()
	if want := writers * (2 + each); len(feed) != want {
		b.Errorf("the feed has %d events, want %d", len(feed), want)
	}
	last := map[string]int64{}
	for i, e := range feed {
		if e.Number != int64(i)+1 {
			b.Errorf("event %d is numbered %d", i+1, e.Number)
		}
		if slices.Contains([]event.Type{event.SellerRegistered, event.BankAccountAdded}, e.Type) {
			continue
		}
		if before := max(last[e.Owner], 1); e.Entry != before+1 {
			b.Errorf("of %s, entry %d follows on entry %d", e.Owner, e.Entry, before)
		}
		last[e.Owner] = e.Entry
	}
}

// testResetToSeller makes a seller of a buyer by a reset, twice.
func testResetToSeller(_ *testing.T, b *bench) {
	buyer := newUser("usr_buyer")
	buyer.Role = auth.Buyer
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), buyer) })
	buyer.Role = auth.Seller
	for range 2 {
		b.update(func(tx *store.Tx) error { return tx.ResetUser(b.ctx(), buyer) })
		b.numberEvents()
	}
	if feed := b.feed(); len(feed) != 1 || feed[0].Type != event.SellerRegistered {
		b.Errorf("the feed has %v", feed)
	}
	b.wantCleanAudit()
}

// testDecidedToSeller makes a seller of a buyer by decisions, twice, and suspends them in between.
func testDecidedToSeller(_ *testing.T, b *bench) {
	buyer := newUser("usr_buyer")
	buyer.Role = auth.Buyer
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), buyer) })
	for _, suspended := range []bool{false, true, false} {
		b.update(func(tx *store.Tx) error {
			_, err := tx.SetUserAccess(b.ctx(), buyer.ID, auth.Seller, suspended)
			return err
		})
		b.numberEvents()
	}
	if feed := b.feed(); len(feed) != 1 || feed[0].Type != event.SellerRegistered || feed[0].Owner != buyer.ID {
		b.Errorf("the feed has %v", feed)
	}
	b.wantCleanAudit()
}
