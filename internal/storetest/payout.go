package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/payout"
	"bursar/internal/store"
)

func testMoves(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	p := b.ask("pyt_1", seller, 600, 10)
	stored, err := b.db.Payout(b.ctx(), p.ID)
	b.must(err)
	if stored != p {
		b.Errorf("read back\n%+v, want\n%+v", stored, p)
	}
	p.State, p.Tries, p.OrderBody, p.SentAt, p.DueAt = payout.Submitting, 3, "{}", b.now, b.now.Add(time.Minute)
	p.GatewayID, p.Progress, p.UTR, p.ReasonCode, p.Reason = "pout_1", gateway.Queued, "U", "code", "sentence"
	p.Discrepancy = "can't be"
	p.ProcessedAt, p.CompletedAt, p.EndedAt = b.now, b.now, b.now
	for i, want := range []bool{true, false} { // the second finds it moved
		b.update(func(tx *store.Tx) error {
			moved, err := tx.UpdatePayout(b.ctx(), payout.Waiting, p)
			if moved != want {
				b.Errorf("move %d: %t, want %t", i, moved, want)
			}
			return err
		})
	}
	stored, err = b.db.Payout(b.ctx(), p.ID)
	b.must(err)
	if stored != p {
		b.Errorf("after the move\n%+v, want\n%+v", stored, p)
	}
	b.nameAtGateway(p.BankAccountID, "fa_1", true)
	stored, err = b.db.Payout(b.ctx(), p.ID)
	if err != nil || stored.Beneficiary != "fa_1" {
		b.Errorf("its account is %q at the gateway, %v", stored.Beneficiary, err)
	}
	if _, err := b.db.Payout(b.ctx(), "pyt_none"); !errors.Is(err, payout.ErrNotFound) {
		b.Errorf("a payout that is not there: %v", err)
	}
}

func testLeases(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 100_000)
	for i := range 50 {
		b.ask(payout.ID(fmt.Sprintf("pyt_%02d", i)), seller, 100, 0)
	}
	b.leasesOnce(50, func(tx *store.Tx, now, until time.Time, limit int) ([]string, error) {
		ids, err := tx.LeaseDuePayouts(b.ctx(), now, until, limit)
		return texts(ids), err
	})
}

// leasesOnce lets eight workers take all that is due, and again after the leases ran out: each time
// every row goes to one of them.
func (b *bench) leasesOnce(due int, take func(tx *store.Tx, now, until time.Time, limit int) ([]string, error)) {
	b.Helper()
	for range 2 {
		var mu sync.Mutex
		taken := map[string]int{}
		b.atOnce(8, func(int) error {
			for range due { // more often than can be needed
				var ids []string
				err := b.db.Update(b.ctx(), func(tx *store.Tx) (err error) {
					ids, err = take(tx, b.now, b.now.Add(time.Minute), 4)
					return err
				})
				if err != nil || len(ids) == 0 {
					return err
				}
				mu.Lock()
				for _, id := range ids {
					taken[id]++
				}
				mu.Unlock()
			}
			return nil
		})
		if len(taken) != due {
			b.Errorf("%d were taken, want %d", len(taken), due)
		}
		for id, n := range taken {
			if n != 1 {
				b.Errorf("%s was taken %d times", id, n)
			}
		}
		b.now = b.now.Add(time.Minute)
	}
}

func texts[T ~string](ids []T) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

func testReschedule(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	p := b.ask("pyt_1", seller, 600, 0)
	later := b.now.Add(time.Hour)
	for _, tt := range []struct {
		to   payout.State
		want bool
	}{{payout.Waiting, false}, {payout.Submitting, false}, {payout.Unknown, true}, {payout.Submitted, true}, {payout.Completed, true}} {
		p.DueAt = later
		if tt.to == payout.Completed {
			p.DueAt = time.Time{}
		}
		p = b.move(p, tt.to)
		b.update(func(tx *store.Tx) error {
			rescheduled, err := tx.ReschedulePayout(b.ctx(), p.ID, b.now)
			if rescheduled != tt.want {
				b.Errorf("hint about a payout that is %s: %t, want %t", tt.to, rescheduled, tt.want)
			}
			return err
		})
	}
	sentAhead, turnedAway := b.ask("pyt_9", seller, 100, 0), b.ask("pyt_2", seller, 100, 0)
	sentAhead.DueAt = later.Add(time.Microsecond)
	turnedAway.SentAt, turnedAway.DueAt = b.now, later
	for what, p := range map[string]payout.Payout{
		"is being sent by a clock that was ahead": b.move(sentAhead, payout.Submitting),
		"waits after it was turned away":          b.move(turnedAway, payout.Waiting),
	} {
		b.update(func(tx *store.Tx) error {
			rescheduled, err := tx.ReschedulePayout(b.ctx(), p.ID, b.now)
			if !rescheduled {
				b.Errorf("a hint about a payout that %s changes nothing", what)
			}
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		for i, want := range []bool{true, false} {
			isNew, err := tx.SaveEvent(b.ctx(), atGateway, "event", b.now)
			if err != nil || isNew != want {
				b.Errorf("event, time %d: new %t, %v; want %t", i, isNew, err, want)
			}
		}
		return nil
	})
}

func testAllowRun(_ *testing.T, b *bench) {
	const every = 5 * time.Minute
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  bool
	}{
		{"returns", 0, true},
		{"returns", 0, false},
		{"other", 0, true},
		{"returns", every - time.Second, false},
		{"returns", every, true},
		{"returns", every + time.Second, false},
		{"returns", 2 * every, true},
		{"returns", 10 * every, true},
		{"returns", 10*every + time.Second, false},
	} {
		b.update(func(tx *store.Tx) error {
			mine, err := tx.AllowRun(b.ctx(), tt.name, b.now.Add(tt.after), every)
			if mine != tt.want {
				b.Errorf("a run of %s after %s: %t, want %t", tt.name, tt.after, mine, tt.want)
			}
			return err
		})
	}
}

func testKeys(_ *testing.T, b *bench) {
	want := payout.Idempotency{Fingerprint: "f", Payout: "pyt_1"}
	for i, isNew := range []bool{true, false} {
		b.update(func(tx *store.Tx) error {
			saved, err := tx.SaveIdempotency(b.ctx(), "usr_a", "k", want, b.now)
			if saved != isNew {
				b.Errorf("remember, time %d: %t, want %t", i, saved, isNew)
			}
			return err
		})
	}
	b.update(func(tx *store.Tx) error {
		if err := tx.SaveIdempotencyRefusal(b.ctx(), "usr_a", "k", "{}"); err != nil {
			return err
		}
		want.Refusal = "{}"
		got, err := tx.Idempotency(b.ctx(), "usr_a", "k")
		if got != want {
			b.Errorf("remembered %+v, want %+v", got, want)
		}
		if theirs, err := tx.Idempotency(b.ctx(), "usr_b", "k"); theirs != (payout.Idempotency{}) || err != nil {
			b.Errorf("another user's key was found: %+v, %v", theirs, err)
		}
		return err
	})
	b.update(func(tx *store.Tx) error {
		_, err := tx.SaveEvent(b.ctx(), atGateway, "event", b.now)
		return err
	})
	for _, tt := range []struct {
		before time.Time
		want   int64
	}{{b.now, 0}, {b.now.Add(time.Second), 2}, {b.now.Add(time.Second), 0}} {
		b.update(func(tx *store.Tx) error {
			n, err := tx.Forget(b.ctx(), tt.before, tt.before, 10)
			if n != tt.want {
				b.Errorf("forgot %d rows from before %s, want %d", n, tt.before, tt.want)
			}
			return err
		})
	}
}

func testHistory(_ *testing.T, b *bench) {
	a, other := b.seller("usr_a"), b.seller("usr_b")
	b.fund(a, 100_000)
	b.fund(other, 100_000)
	var all, completed []payout.ID
	for i := range 12 {
		id := payout.ID(fmt.Sprintf("pyt_%02d", i))
		p := b.ask(id, a, 100, 0)
		if i%3 == 0 {
			b.complete(p)
			completed = append(completed, id)
		}
		all = append(all, id)
	}
	theirs := b.ask("pyt_05b", other, 100, 0)
	slices.Reverse(all)
	slices.Reverse(completed)
	everyone := slices.Insert(slices.Clone(all), slices.Index(all, "pyt_05"), theirs.ID)
	tests := []struct {
		name      string
		filter    payout.Filter
		want      []payout.ID
		wantTotal int64
	}{
		{"first page", payout.Filter{Seller: a, Limit: 5}, all[:5], 12},
		{"second page", payout.Filter{Seller: a, Limit: 5, Offset: 5}, all[5:10], 12},
		{"last page", payout.Filter{Seller: a, Limit: 5, Offset: 10}, all[10:], 12},
		{"past the end", payout.Filter{Seller: a, Limit: 5, Offset: 15}, nil, 12},
		{"one status", payout.Filter{Seller: a, Status: payout.StatusCompleted, Limit: 3}, completed[:3], 4},
		{"one status, rest", payout.Filter{Seller: a, Status: payout.StatusCompleted, Limit: 3, Offset: 3}, completed[3:], 4},
		{"a status that none has", payout.Filter{Seller: a, Status: payout.StatusFailed, Limit: 3}, nil, 0},
		{"everyone", payout.Filter{Limit: 50}, everyone, 13},
		{"everyone's completed", payout.Filter{Status: payout.StatusCompleted, Limit: 50}, completed, 4},
		{"a seller without a journal", payout.Filter{Seller: "usr_nobody", Limit: 5}, nil, 0},
	}
	for _, tt := range tests {
		list, total, err := b.db.ListPayouts(b.ctx(), tt.filter)
		b.must(err)
		var got []payout.ID
		for _, p := range list {
			got = append(got, p.ID)
		}
		if !slices.Equal(got, tt.want) || total != tt.wantTotal {
			b.Errorf("%s: %v of %d, want %v of %d", tt.name, got, total, tt.want, tt.wantTotal)
		}
	}
	changed := b.engine.Tamper(b.T, b.db, `UPDATE journals SET processing = 9223372036854775807, completed = 9223372036854775807`)
	for _, f := range []payout.Filter{{Seller: a, Limit: 50}, {Seller: a, Limit: 5, Offset: 5}, {Limit: 50}} {
		if _, _, err := changed.ListPayouts(b.ctx(), f); err != nil {
			b.Errorf("the list of %+v, whose counters were changed in the database: %v", f, err)
		}
	}
}

// testOrder tells bytes from a language's order, which puts "a" before "B".
func testOrder(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	for _, id := range []payout.ID{"pyt_a", "pyt_B", "pyt_C"} {
		b.ask(id, seller, 100, 0)
	}
	for _, f := range []payout.Filter{{Limit: 3}, {Seller: seller, Limit: 3}, {Seller: seller, Status: payout.StatusProcessing, Limit: 3}} {
		list, _, err := b.db.ListPayouts(b.ctx(), f)
		b.must(err)
		if len(list) != 3 || list[0].ID != "pyt_a" || list[1].ID != "pyt_C" || list[2].ID != "pyt_B" {
			b.Errorf("%+v lists %+v, want pyt_a, pyt_C, pyt_B", f, list)
		}
	}
}

func testSummary(_ *testing.T, b *bench) {
	seller := b.seller("usr_a")
	b.fund(seller, 1000)
	b.update(func(tx *store.Tx) error { return tx.AddEarnings(b.ctx(), seller, "2026-10", 40) })
	b.ask("pyt_1", seller, 600, 0)
	got, err := b.db.Summary(b.ctx(), seller, "2026-11", "2026-10")
	b.must(err)
	want := payout.Summary{
		Available: 400, InTransit: 600, Earned: 1000, Sales: 1, ThisMonth: 1000, LastMonth: 40,
		Account: bank.Account{Last4: "1234", IFSC: "HDFC0000053", Status: bank.StatusVerified},
	}
	if got != want {
		b.Errorf("summary\n%+v, want\n%+v", got, want)
	}
	none, err := b.db.Summary(b.ctx(), "usr_nobody", "2026-11", "2026-10")
	b.must(err)
	if none != (payout.Summary{}) {
		b.Errorf("summary of nobody: %+v", none)
	}
}
