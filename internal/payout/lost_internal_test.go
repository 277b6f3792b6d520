package payout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"bursar/internal/gateway"
)

// TestLostTransfers_Due has a seller with more lost transfers than are tried at once. Each is tried in its turn, and so is another seller's.
func TestLostTransfers_Due(t *testing.T) {
	const many = 3*lostAtOnce + 1
	now := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	l := lostTransfers{of: map[string][]lostTransfer{}}
	add := func(seller string, n int) {
		for i := range n {
			l.of[seller] = append(l.of[seller], lostTransfer{id: ID(fmt.Sprint(seller, i)), transfer: gateway.Transfer{Order: gateway.Order{Seller: seller}}})
			l.count++
		}
	}
	add("asha", many)
	add("bela", 1)
	tried := map[ID]int{}
	for range 6 {
		now = now.Add(lostWait)
		some := l.due(now)
		if len(some) > lostAtOnce {
			t.Errorf("%d are tried at once, want at most %d", len(some), lostAtOnce)
		}
		for _, lost := range some {
			tried[lost.id]++
		}
		if again := l.due(now.Add(lostWait - 1)); len(again) > 0 {
			t.Errorf("%d are tried again before the wait is over", len(again))
		}
	}
	if len(tried) != many+1 {
		t.Errorf("%d of %d lost transfers were tried", len(tried), many+1)
	}
}

// TestStopWhile_InAnother has a report that can't be written, while the freeze that it asks for can: the seller stays stopped for the report.
func TestStopWhile_InAnother(t *testing.T) {
	now := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	s := &Service{o: Options{Now: func() time.Time { return now }}}
	p := Payout{ID: "pyt_1", Seller: "asha"}
	isStopped := func() bool { return s.lost.unwritten[p.Seller][p.ID].After(now) }
	unreachable := errors.New("the database can't be reached")
	err := s.stopWhile(p, func() error {
		if err := s.stopWhile(p, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		return unreachable
	})
	if !errors.Is(err, unreachable) || !isStopped() {
		t.Errorf("%v, and the seller is stopped: %t", err, isStopped())
	}
	if err := s.stopWhile(p, func() error { return nil }); err != nil || isStopped() {
		t.Errorf("written (%v), and the seller is stopped: %t", err, isStopped())
	}
}
