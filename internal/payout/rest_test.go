package payout_test

import (
	"testing"
	"time"

	"bursar/internal/payout"
)

// The gateway can't be reached for an hour, and thirty payouts wait. Each order that is begun costs two entries, so only a few are begun. Once the
// gateway is there again, all are sent within some minutes.
func TestSubmit_GatewayUnreachable_FewOrdersAreBegun(t *testing.T) {
	s := newStory(t)
	ids := []payout.ID{s.id}
	for range 29 {
		ids = append(ids, s.request("usr_b", 50_000).ID)
	}
	s.gateway.mood = unreachable
	s.later(windowOver)
	for range 60 {
		s.later(time.Minute)
	}
	count := func() (begun int) {
		for _, id := range ids {
			begun += len(s.entriesAbout(id)) - 1
		}
		return begun
	}
	if n := count(); n > 2*70 {
		t.Errorf("%d entries were made of orders that never left", n)
	}
	s.gateway.mood = fair
	for range 12 {
		s.later(time.Minute)
	}
	if n := len(s.gateway.transfers); n != 30 {
		t.Errorf("the gateway is there again for twelve minutes, and has %d transfers", n)
	}
}
