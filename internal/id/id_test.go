package id_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/id"
)

func TestIDsSortByTime(t *testing.T) {
	var ids []string
	for _, at := range []time.Time{
		time.Unix(0, 0), time.UnixMilli(61), time.UnixMilli(62), time.UnixMilli(62 * 62),
		time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), time.Date(2081, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		ids = append(ids, id.New("pyt_", at))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("%v do not sort by time", ids)
	}
}

func TestFirst_SortsBetween(t *testing.T) {
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	first := id.First("pyt_", at)
	if before, from := id.New("pyt_", at.Add(-time.Millisecond)), id.New("pyt_", at); before >= first || first >= from {
		t.Errorf("%s is not between %s and %s", first, before, from)
	}
}

func TestTime_ReturnsCreationTime(t *testing.T) {
	for _, at := range []time.Time{
		time.UnixMilli(0), time.UnixMilli(61), time.UnixMilli(62), time.Date(2026, 11, 20, 9, 30, 0, 123e6, time.UTC),
	} {
		if got := id.Time("pyt_", id.New("pyt_", at.Add(999*time.Microsecond))); !got.Equal(at) {
			t.Errorf("made at %s, and tells %s", at, got)
		}
	}
}

func TestIDsAreUniqueAndValid(t *testing.T) {
	seen := map[string]bool{}
	now := time.Now()
	for range 10_000 {
		s := id.New("pyt_", now)
		if seen[s] || !id.Valid("pyt_", s) {
			t.Fatalf("%s: seen before %t, valid %t", s, seen[s], id.Valid("pyt_", s))
		}
		seen[s] = true
	}
}

func TestValid_InvalidID_IsFalse(t *testing.T) {
	good := id.New("pyt_", time.Now())
	for _, s := range []string{
		"", "pyt_", good[:len(good)-1], good + "0", "usr_" + good[4:], good[:10] + "-" + good[11:],
		good[:10] + "é" + good[12:], strings.ToUpper(good[:4]) + good[4:], good[:27] + "\x00",
	} {
		if id.Valid("pyt_", s) {
			t.Errorf("%q was taken for an id", s)
		}
	}
}

// TestDigitsAreDrawnEvenly would fail if bytes were reduced modulo 62: the first eight digits of the
// alphabet would then come a quarter more often than the others.
func TestDigitsAreDrawnEvenly(t *testing.T) {
	counts := map[rune]int{}
	const drawn = 620_000
	for _, c := range id.Random(drawn) {
		counts[c]++
	}
	for c, n := range counts {
		if n < drawn/62*93/100 || n > drawn/62*107/100 {
			t.Errorf("%c came %d times, want about %d", c, n, drawn/62)
		}
	}
	if len(counts) != 62 {
		t.Errorf("%d different digits, want 62", len(counts))
	}
}
