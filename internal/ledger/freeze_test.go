package ledger_test

import (
	"errors"
	"testing"
	"time"

	"bursar/internal/ledger"
)

// TestAfter_Frozen freezes and unfreezes beside a hold, which neither ends the other, and goes on through other entries.
func TestAfter_Frozen(t *testing.T) {
	until := time.UnixMicro(1793610063000004)
	at := ledger.NewHead("usr_a")
	for i, tt := range []struct {
		typ    ledger.Type
		frozen bool
		hold   int64
		text   string
	}{
		{ledger.PayoutsFrozen, true, 0, "0 0 0 0 0 0 0 0 0 0 0 1"},
		{ledger.PayoutsOnHold, true, until.UnixMicro(), "0 0 0 0 0 0 0 0 0 0 1793610063000004 1"},
		{ledger.AdminDecided, true, until.UnixMicro(), "0 0 0 0 0 0 0 0 0 0 1793610063000004 1"},
		{ledger.PayoutsUnfrozen, false, until.UnixMicro(), "0 0 0 0 0 0 0 0 0 0 1793610063000004"},
		{ledger.PayoutsFrozen, true, until.UnixMicro(), "0 0 0 0 0 0 0 0 0 0 1793610063000004 1"},
		{ledger.PayoutsHoldLifted, true, 0, "0 0 0 0 0 0 0 0 0 0 0 1"},
		{ledger.PayoutsUnfrozen, false, 0, "0 0 0 0 0 0 0 0 0 0"},
	} {
		p := ledger.Posting{Owner: "usr_a", At: time.UnixMicro(1), Type: tt.typ, Subject: "usr_a", Actor: "admin:usr_b", Data: "{}"}
		if tt.typ == ledger.PayoutsOnHold {
			p.HoldUntil = until
		}
		before := at
		after, e, err := at.Post(ours, p)
		if err != nil {
			t.Fatal(err)
		}
		if at = after; at.Frozen != tt.frozen || at.HoldUntil != tt.hold || at.Text() != tt.text {
			t.Errorf("after entry %d, %s, the totals are %s", i+1, tt.typ, at.Text())
		}
		if !e.HoldUntil.IsZero() { // it is not stored
			t.Errorf("entry %d, %s, has a hold until %s beside its totals", i+1, tt.typ, e.HoldUntil)
		}
		if read, err := before.Follow(ours, e); err != nil || read != at {
			t.Errorf("entry %d, %s, is read back as %+v, %v", i+1, tt.typ, read, err)
		}
	}
}

// When a hold ends, its entry alone says. One that says that a hold ends earlier than it did does not follow on the entries before it.
func TestFollow_HoldEndsEarlier_IsTampered(t *testing.T) {
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	hold := func(at ledger.Head) (ledger.Head, ledger.Entry) {
		t.Helper()
		p, err := ledger.HoldPosting("usr_a", ledger.ActorSystem, ledger.HoldBankAccountReplaced, now, now.Add(72*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		next, e, err := at.Post(ours, p)
		if err != nil {
			t.Fatal(err)
		}
		return next, e
	}
	first, _ := hold(ledger.NewHead("usr_a"))
	_, second := hold(first)
	for by, whole := range map[time.Duration]bool{-time.Hour: false, -time.Microsecond: false, 0: true, time.Hour: true} {
		e := second
		e.After.HoldUntil += by.Microseconds()
		e.Hash = e.Before.Next(e.Own())
		if _, err := first.Follow(nil, e); (err == nil) != whole || err != nil && !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("the hold ends %s later: %v; want the entry to follow %t", by, err, whole)
		}
	}
}

// A hold ends at its instant, not after it.
func TestBalance_Hold(t *testing.T) {
	until := time.Date(2026, 11, 5, 9, 0, 0, 0, time.UTC)
	b := ledger.Balance{HoldUntil: until.UnixMicro()}
	for now, want := range map[time.Time]time.Time{until.Add(-time.Microsecond): until, until: {}, until.Add(time.Microsecond): {}} {
		if got := b.Hold(now); !got.Equal(want) {
			t.Errorf("at %s the hold ends at %s, want %s", now, got, want)
		}
	}
}
