package storetest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/inbox"
)

// testClaims has admins claim the same, at once too, and lets claims expire.
func testClaims(_ *testing.T, b *bench) {
	s := b.db.Inbox()
	claim := func(subject, admin string, at time.Time) string {
		b.Helper()
		is, err := s.Claim(b.ctx(), inbox.Claim{Subject: subject, Admin: admin, At: at}, at.Add(-inbox.ClaimLasts))
		b.must(err)
		if is.Admin == admin && !is.At.Equal(at) {
			b.Errorf("%s is claimed at %s, want %s", subject, is.At, at)
		}
		return is.Admin
	}
	later := b.now.Add(inbox.ClaimLasts - time.Microsecond)
	for i, tt := range []struct {
		subject, admin string
		at             time.Time
		want           string
	}{
		{"pyt_1", "usr_a", b.now, "usr_a"},
		{"pyt_1", "usr_b", later, "usr_a"},
		{"pyt_2", "usr_b", later, "usr_b"},
		{"pyt_1", "usr_a", later, "usr_a"}, // for another hour
		{"pyt_1", "usr_b", b.now.Add(inbox.ClaimLasts), "usr_a"},
		{"pyt_1", "usr_b", later.Add(inbox.ClaimLasts), "usr_b"},
	} {
		if got := claim(tt.subject, tt.admin, tt.at); got != tt.want {
			b.Errorf("%d: %s has %s, want %s", i, got, tt.subject, tt.want)
		}
	}
	all, err := s.Claims(b.ctx(), later)
	if want := (inbox.Claim{Subject: "pyt_1", Admin: "usr_b", At: later.Add(inbox.ClaimLasts)}); err != nil || !slices.Equal(all, []inbox.Claim{want}) {
		b.Errorf("the claims are %v, %v; want %v", all, err, want)
	}
	for admin, want := range map[string]bool{"usr_a": false, "usr_b": true} {
		if released, err := s.Release(b.ctx(), "pyt_1", admin); err != nil || released != want {
			b.Errorf("%s releases: %t, %v; want %t", admin, released, err, want)
		}
	}
	var won atomic.Int32
	b.atOnce(8, func(i int) error {
		admin := string(rune('a' + i))
		is, err := s.Claim(b.ctx(), inbox.Claim{Subject: "pyt_3", Admin: admin, At: b.now}, b.now.Add(-inbox.ClaimLasts))
		if is.Admin == admin {
			won.Add(1)
		}
		return err
	})
	if won.Load() != 1 {
		b.Errorf("%d admins claimed the same", won.Load())
	}
}
