package storetest

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testPins lets many callers pin a fact at once: the first value stays, and all callers get it.
func testPins(_ *testing.T, b *bench) {
	if kept, isPinned, err := b.db.Pinned(b.ctx(), "currency"); err != nil || isPinned {
		b.Errorf("an empty database has pinned %q (%v)", kept, err)
	}
	wantEmpty := func(want bool) {
		b.Helper()
		if isEmpty, err := b.db.IsEmpty(b.ctx()); err != nil || isEmpty != want {
			b.Errorf("the database is empty: %t (%v), want %t", isEmpty, err, want)
		}
	}
	wantEmpty(true)
	defer wantEmpty(false)
	wantRecords := func(want bool) {
		b.Helper()
		holds, err := b.db.HoldsRecords(b.ctx())
		written, hasJournals, err2 := b.db.WrittenWith(b.ctx(), b.keys)
		if err := errors.Join(err, err2); err != nil || holds != want || written != want || hasJournals != want {
			b.Errorf("the database holds records: %t, has journals: %t, written with the keys: %t (%v), want %t", holds, hasJournals, written, err, want)
		}
	}
	wantRecords(false)
	defer func() { // settings are none
		b.seller("usr_a")
		wantRecords(true)
		others, err := newKeys(b.T)
		b.must(err)
		if written, hasJournals, err := b.db.WrittenWith(b.ctx(), others); err != nil || written || !hasJournals {
			b.Errorf("written with other keys: %t, %v", written, err)
		}
	}()
	const callers = 8
	kept := make([]string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var err error
			if kept[i], err = b.db.Pin(b.ctx(), "currency", fmt.Sprintf("value %d", i)); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	pinned, isPinned, err := b.db.Pinned(b.ctx(), "currency")
	b.must(err)
	for i, got := range kept {
		if !isPinned || got != pinned {
			b.Errorf("caller %d got %q, and %q is pinned", i, got, pinned)
		}
	}
}

// testRepin changes a fact for a caller who knows the present one.
func testRepin(_ *testing.T, b *bench) {
	if done, err := b.db.Repin(b.ctx(), "account", "", "none was kept"); done || err != nil {
		b.Errorf("a fact that is not kept was changed: %t, %v", done, err)
	}
	for _, step := range []struct{ before, value, want string }{{"first", "second", "second"}, {"first", "third", "second"}} {
		_, err := b.db.Pin(b.ctx(), "account", "first")
		b.must(err)
		done, err := b.db.Repin(b.ctx(), "account", step.before, step.value)
		if done != (step.value == step.want) || err != nil {
			b.Errorf("changed from %s to %s: %t, %v", step.before, step.value, done, err)
		}
		if kept, _, err := b.db.Pinned(b.ctx(), "account"); kept != step.want || err != nil {
			b.Errorf("kept is %q, %v; want %q", kept, err, step.want)
		}
	}
}

// testPinnedUnder reads facts by the beginning of their names.
func testPinnedUnder(_ *testing.T, b *bench) {
	for _, name := range []string{"account_of_a", "account_of_z-9", "account_o", "accounts"} {
		_, err := b.db.Pin(b.ctx(), name, name)
		b.must(err)
	}
	kept, err := b.db.PinnedUnder(b.ctx(), "account_of_")
	b.must(err)
	if diff := cmp.Diff(map[string]string{"a": "account_of_a", "z-9": "account_of_z-9"}, kept); diff != "" {
		b.Error(diff)
	}
}

// testKeySet takes the key set's document through its life in the database.
func testKeySet(_ *testing.T, b *bench) {
	keys := b.db.KeySet()
	if _, err := keys.Read(b.ctx()); !errors.Is(err, fs.ErrNotExist) {
		b.Errorf("read of none: %v, want that there is none", err)
	}
	holds := func(want string) {
		b.Helper()
		if got, err := keys.Read(b.ctx()); err != nil || string(got) != want {
			b.Errorf("the document is %q (%v), want %q", got, err, want)
		}
	}
	b.must(keys.Create(b.ctx(), []byte("first")))
	b.must(keys.Create(b.ctx(), []byte("another")))
	holds("first")

	replaced, err := keys.Replace(b.ctx(), []byte("another"), []byte("lost"))
	b.must(err)
	if replaced {
		b.Error("what was not there was replaced")
	}
	replaced, err = keys.Replace(b.ctx(), []byte("first"), []byte("second"))
	b.must(err)
	if !replaced {
		b.Error("what was there was not replaced")
	}
	holds("second")

	if _, isPinned, err := keys.PinnedFingerprint(b.ctx()); err != nil || isPinned {
		b.Errorf("a fingerprint is pinned (%v)", err)
	}
	for _, fingerprint := range []string{"f", "g"} {
		if kept, err := keys.PinFingerprint(b.ctx(), fingerprint); err != nil || kept != "f" {
			b.Errorf("the fingerprint is %q (%v), want f", kept, err)
		}
	}
	for last, want := range map[string]bool{"first": false, "second": true} {
		if forgotten, err := keys.Forget(b.ctx(), []byte(last)); err != nil || forgotten != want {
			b.Errorf("forget %s: %t (%v), want %t", last, forgotten, err, want)
		}
	}
	// Now its keys are kept elsewhere, and others in their place would open nothing.
	b.must(keys.Create(b.ctx(), []byte("third")))
	if _, err := keys.Read(b.ctx()); !errors.Is(err, fs.ErrNotExist) {
		b.Errorf("read of a document that was forgotten: %v", err)
	}
	if kept, isPinned, err := keys.PinnedFingerprint(b.ctx()); err != nil || !isPinned || kept != "f" {
		b.Errorf("the fingerprint is %q (%v), want f", kept, err)
	}
}
