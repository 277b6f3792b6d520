package storetest

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// pause pauses or resumes the payouts of all sellers.
func (b *bench) pause(pauses bool) {
	b.Helper()
	action := decision.ResumePayouts
	if pauses {
		action = decision.PausePayouts
	}
	b.update(func(tx *store.Tx) error { return b.recordPause(tx, action) })
}

func (b *bench) recordPause(tx *store.Tx, action decision.Action) error {
	if err := tx.LockPause(b.ctx()); err != nil {
		return err
	}
	return ledger.RecordDecision(b.ctx(), tx, decision.New(decision.By{Admin: "usr_admin", Note: "Seen."}, action, decision.Platform, decision.Platform, b.now))
}

// wantPaused asks in each way whether payouts are paused.
func (b *bench) wantPaused(want bool) {
	b.Helper()
	check := func(by string, got bool, err error) {
		b.Helper()
		if got != want || err != nil {
			b.Errorf("by %s payouts are paused: %t, %v", by, got, err)
		}
	}
	paused, err := b.db.PayoutsPaused(b.ctx())
	check("a read", paused, err)
	b.update(func(tx *store.Tx) (err error) {
		paused, err = tx.PayoutsPaused(b.ctx())
		return err
	})
	check("a transaction", paused, err)
	for _, scope := range []ledger.Scope{{Owner: "usr_a", ReadsPause: true}, {Payout: "pyt_1", ReadsPause: true}} {
		b.must(b.db.Payouts().InGroup(b.ctx(), scope, func(tx payout.ChangeTx) (err error) {
			paused, err = tx.PayoutsPaused(b.ctx())
			return err
		}))
		check("a change", paused, err)
	}
}

// testPause pauses and resumes all payouts, and makes those due that waited for it.
func testPause(t *testing.T, b *bench) {
	t.Helper()
	for _, seller := range []string{"usr_a", "usr_b"} {
		b.fund(b.seller(seller), 1000)
	}
	stopped := func(id payout.ID, seller string) {
		p := b.ask(id, seller, 100, 0)
		p.ReasonCode, p.DueAt = "payouts_stopped", b.now.Add(time.Hour)
		b.move(p, payout.Waiting)
	}
	stopped("pyt_1", "usr_a")
	stopped("pyt_2", "usr_b")
	p := b.ask("pyt_3", "usr_a", 100, 0)
	p.DueAt = b.now.Add(time.Hour)
	b.move(p, payout.Waiting)

	b.wantPaused(false)
	b.pause(true)
	b.wantPaused(true)
	if decided, err := b.db.Decisions(b.ctx(), decision.Platform, 10); err != nil || len(decided) != 1 || decided[0].Action != decision.PausePayouts || decided[0].Note != "Seen." {
		t.Errorf("decided was %+v, %v", decided, err)
	}
	b.wantCleanAudit()
	b.pause(false)
	b.wantPaused(false)

	undone := errors.New("undone") // the transaction read a pause that never was: nothing may go on from it
	err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
		err := b.recordPause(tx, decision.PausePayouts)
		paused, read := tx.PayoutsPaused(b.ctx())
		if err := errors.Join(err, read); err != nil || !paused {
			t.Errorf("in the transaction that pauses payouts they are paused: %t, %v", paused, err)
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Errorf("the transaction ended with %v", err)
	}
	b.wantPaused(false)

	wantDue := func(seller string, want map[payout.ID]time.Time) {
		t.Helper()
		b.update(func(tx *store.Tx) error {
			n, err := tx.RescheduleStopped(b.ctx(), seller, b.now)
			if n != 1 {
				t.Errorf("%d payouts were made due", n)
			}
			return err
		})
		for id, at := range want {
			p, err := b.db.Payout(b.ctx(), id)
			if b.must(err); !p.DueAt.Equal(at) {
				t.Errorf("payout %s is due at %s, want %s", id, p.DueAt, at)
			}
		}
	}
	later := b.now.Add(time.Hour)
	wantDue("usr_b", map[payout.ID]time.Time{"pyt_1": later, "pyt_2": b.now, "pyt_3": later})
	wantDue("", map[payout.ID]time.Time{"pyt_1": b.now, "pyt_2": b.now, "pyt_3": later})
	b.wantUnpaidWithDiscrepancy("usr_a", "")
	note := func(discrepancy string) {
		for id, to := range map[payout.ID]payout.State{"pyt_1": payout.Waiting, "pyt_2": payout.Failed, "pyt_3": payout.Cancelled} {
			p, err := b.db.Payout(b.ctx(), id)
			b.must(err)
			p.Discrepancy = discrepancy
			b.move(p, to)
		}
	}
	note("it is paid")
	b.wantUnpaidWithDiscrepancy("usr_a", "pyt_3") // pyt_1 waits
	b.wantUnpaidWithDiscrepancy("usr_b", "pyt_2")
	b.wantUnpaidWithDiscrepancy("usr_c", "")
	note("")
	b.wantUnpaidWithDiscrepancy("usr_a", "")
	for _, to := range []payout.State{payout.Submitted, payout.Completed, payout.Returned} {
		p, err := b.db.Payout(b.ctx(), "pyt_1")
		b.must(err)
		p.GatewayID, p.SentAt, p.CompletedAt, p.Discrepancy = "pout_9", b.now, b.now, "it is paid"
		b.move(p, to)
		b.wantUnpaidWithDiscrepancy("usr_a", map[payout.State]payout.ID{payout.Returned: "pyt_1"}[to])
	}
	returned, err := b.db.Payout(b.ctx(), "pyt_1")
	b.must(err)
	returned.Discrepancy = ""
	b.move(returned, payout.Returned)
	b.wantCleanAudit()
}

func (b *bench) wantUnpaidWithDiscrepancy(seller string, want payout.ID) {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		id, err := tx.UnpaidWithDiscrepancy(b.ctx(), seller)
		if id != want {
			b.Errorf("the unpaid payout of %s with a discrepancy is %q, want %q", seller, id, want)
		}
		return err
	})
}
