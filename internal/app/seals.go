package app

import (
	"context"
	"strconv"
	"strings"
	"time"

	"bursar/internal/keyset"
	"bursar/internal/seal"
	"bursar/internal/store"
)

const pinnedSealedSince = "sealed_since"

// pinSeals opens the seals of a database, and pins since when it has them, under a seal of its own: whoever can write
// to it could say otherwise that everything is older.
func pinSeals(ctx context.Context, db *store.DB, keys *keyset.Set) (seal.Seals, error) {
	s, isPinned, err := openSeals(ctx, db, keys)
	if err != nil || isPinned {
		return s, err
	}
	since := strconv.FormatInt(microsOf(s.Since), 10)
	own, err := s.Make(wordsOfSince(since))
	if err != nil {
		return s, err
	}
	if _, err := db.Pin(ctx, pinnedSealedSince, since+" "+own); err != nil {
		return s, err
	}
	s, _, err = openSeals(ctx, db, keys)
	return s, err
}

// openSeals opens the seals of a database, and reports whether it is pinned since when it has them, or should be.
// Everything must be sealed where that was changed by hand.
func openSeals(ctx context.Context, db *store.DB, keys *keyset.Set) (s seal.Seals, isPinned bool, err error) {
	s.Keys = keys
	hasSeals, err := db.HasSeals(ctx) // before it is looked for, so that another instance can't have made both between
	if err != nil {
		return s, false, err
	}
	pinned, isPinned, err := db.Pinned(ctx, pinnedSealedSince)
	switch {
	case err != nil:
		return s, false, err
	case !isPinned && hasSeals:
		return s, true, nil
	case !isPinned:
		s.Since, err = db.SealedSince(ctx)
		return s, false, err
	}
	since, own, _ := strings.Cut(pinned, " ")
	micros, err := strconv.ParseInt(since, 10, 64)
	if err == nil && micros > 0 && s.Check(own, time.Now(), wordsOfSince(since)) == nil {
		s.Since = time.UnixMicro(micros)
	}
	return s, true, nil
}

func wordsOfSince(since string) string { return "settings|" + pinnedSealedSince + "|" + since }

// microsOf is zero for no time at all.
func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
