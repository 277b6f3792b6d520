package keyset

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/pgtest"
	"bursar/internal/store"
)

// onEverySource runs a test on each kind of place that a key set may be kept in. Each call of the
// function that it is given opens the set anew, as another process does.
func onEverySource(t *testing.T, test func(t *testing.T, open func() (*Set, error))) {
	t.Helper()
	t.Run("File", func(t *testing.T) {
		file := File(pathIn(t))
		test(t, func() (*Set, error) { return Open(t.Context(), file) })
	})
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bursar.db")
		test(t, func() (*Set, error) {
			return openIn(t, func() (*store.DB, error) { return store.OpenSQLite(t.Context(), path) })
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.New(t)
		test(t, func() (*Set, error) {
			return openIn(t, func() (*store.DB, error) { return store.OpenPostgres(t.Context(), url) })
		})
	})
}

func openIn(t *testing.T, open func() (*store.DB, error)) (*Set, error) {
	t.Helper()
	db, err := open()
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = db.Close() })
	return Open(t.Context(), db.KeySet())
}

func TestOpen_Concurrent_SameKeys(t *testing.T) {
	onEverySource(t, func(t *testing.T, open func() (*Set, error)) {
		t.Helper()
		const processes = 8
		sets := make([]*Set, processes)
		errs := make([]error, processes)
		var wg sync.WaitGroup
		for i := range processes {
			wg.Go(func() { sets[i], errs[i] = open() })
		}
		wg.Wait()
		for i, set := range sets {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if set.Fingerprint() != sets[0].Fingerprint() || !bytes.Equal(set.JWKS(), sets[0].JWKS()) {
				t.Errorf("process %d has other keys", i)
			}
		}
	})
}

func TestRotationSignsNobodyOut(t *testing.T) {
	onEverySource(t, func(t *testing.T, open func() (*Set, error)) {
		t.Helper()
		operator, running := mustOpen(t, open), mustOpen(t, open)
		clock := time.Now()
		running.now, running.readAt = func() time.Time { return clock }, clock
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		first, _ := running.SigningKey()
		fingerprint := running.Fingerprint()
		rotate(t, operator, now)
		second, secondKey := operator.SigningKey()
		if second == first {
			t.Fatal("rotation did not change the signing key")
		}
		// The other process meets a token with the new key, a moment after it last read the set.
		if got, ok := running.VerificationKey(second); !ok || !got.Equal(secondKey.Public()) {
			t.Error("a running process does not know the new key")
		}
		if kid, _ := running.SigningKey(); kid != second {
			t.Error("a running process still signs with the old key")
		}
		if _, ok := running.VerificationKey(first); !ok {
			t.Error("the old key was dropped while its tokens live")
		}
		if running.Fingerprint() != fingerprint {
			t.Error("rotation changed the fingerprint")
		}

		// One rotation later, at the end of the last token that the first key signed, it goes.
		rotate(t, operator, now.Add(Retention-time.Second))
		if _, ok := operator.VerificationKey(first); !ok {
			t.Error("a key was dropped before its last token expired")
		}
		rotate(t, operator, now.Add(Retention))
		if _, ok := operator.VerificationKey(first); ok {
			t.Error("a key was kept after its last token expired")
		}
		running.SigningKey()
		if _, ok := running.VerificationKey(first); !ok {
			t.Error("a running process read the set again within a moment, unasked")
		}
		clock = clock.Add(readEvery)
		running.SigningKey()
		if _, ok := running.VerificationKey(first); ok {
			t.Error("a running process kept a key that was removed")
		}
	})
}

func TestRotate_Concurrent_NoneLost(t *testing.T) {
	url := pgtest.New(t)
	open := func() (*Set, error) {
		return openIn(t, func() (*store.DB, error) { return store.OpenPostgres(t.Context(), url) })
	}
	const rotations = 3
	var all sync.WaitGroup
	for range rotations {
		operator := mustOpen(t, open)
		all.Go(func() {
			if err := operator.Rotate(t.Context(), time.Now(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var published struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal(mustOpen(t, open).JWKS(), &published); err != nil {
		t.Fatal(err)
	}
	if len(published.Keys) != 1+rotations {
		t.Errorf("after %d rotations at once %d keys are published, want one more", rotations, len(published.Keys))
	}
}

// counted counts the reads of a source.
type counted struct {
	Source
	reads int
}

func (c *counted) Read(ctx context.Context) ([]byte, error) {
	c.reads++
	return c.Source.Read(ctx)
}

func TestVerificationKey_UnknownKeys_LimitReads(t *testing.T) {
	source := &counted{Source: File(pathIn(t))}
	s, err := Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.now = func() time.Time { return now }
	source.reads = 0
	for range 100 {
		if _, ok := s.VerificationKey("made-up"); ok {
			t.Fatal("a made-up key was found")
		}
	}
	if source.reads != firstReads {
		t.Errorf("%d reads for made-up keys, want %d", source.reads, firstReads)
	}
	now = now.Add(readEvery)
	s.VerificationKey("made-up")
	s.VerificationKey("made-up")
	if source.reads != firstReads+1 {
		t.Errorf("%d reads after a while, want one more than %d", source.reads, firstReads)
	}
}

func TestCovers(t *testing.T) {
	now := time.Now()
	stored := newDocument(now)
	newer := stored.rotated(now, 0)
	other := newDocument(now)
	otherRefresh, otherEncryption := stored, stored
	otherRefresh.RefreshSecret = newSecret()
	otherEncryption.Encryption = other.Encryption
	old := stored
	old.Signing = append([]signingKey{}, stored.Signing...)
	old.Signing[0].RetiredAt = now.Add(-Retention)
	old.Signing = append(old.Signing, newSigningKey(now))
	current := old
	current.Signing = old.Signing[1:]
	for _, tt := range []struct {
		name       string
		set, other document
		want       string
	}{
		{"the same", stored, stored, ""},
		{"an older one", newer, stored, ""},
		{"a newer one", stored, newer, "lacks the signing key"},
		{"one with a key out of use", current, old, ""},
		{"another encryption key", stored, otherEncryption, "lacks the encryption key"},
		{"another refresh secret", stored, otherRefresh, "another refresh secret"},
		{"another set", stored, other, "lacks the signing key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := setOf(t, tt.set).Covers(setOf(t, tt.other).Document())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Covers = %v, want %q", err, tt.want)
			}
		})
	}
}

func mustOpen(t *testing.T, open func() (*Set, error)) *Set {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rotate(t *testing.T, s *Set, now time.Time) {
	t.Helper()
	if err := s.Rotate(t.Context(), now, 0); err != nil {
		t.Fatal(err)
	}
}

// Each machine has a key file of its own. A new key that is used after a while makes nothing before, so that there is time to copy the file:
// the machine that does not have it yet takes nothing for forged.
func TestUsedFrom_NewKeyMakesNothingBefore(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	first, second := File(pathIn(t)), File(pathIn(t))
	a := mustOpen(t, func() (*Set, error) { return Open(t.Context(), first) })
	if err := second.Create(t.Context(), a.Document()); err != nil {
		t.Fatal(err)
	}
	b := mustOpen(t, func() (*Set, error) { return Open(t.Context(), second) })
	clock := func() time.Time { return now }
	a.now, b.now = clock, clock
	oldSigner, _ := a.SigningKey()
	oldMAC, _ := a.MAC(nil)

	const after = 10 * time.Minute
	if err := a.Rotate(t.Context(), now, after); err != nil {
		t.Fatal(err)
	}
	d, err := decode(a.Document())
	if err != nil {
		t.Fatal(err)
	}
	d.Encryption = append(d.Encryption, encryptionKey{KID: "newer", CreatedAt: now, UsedFrom: now.Add(after), Key: newSecret()})
	document, err := encode(d)
	if err != nil {
		t.Fatal(err)
	}
	given, err := FromJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	given.now = clock
	if _, err := first.Replace(t.Context(), a.Document(), document); err != nil {
		t.Fatal(err)
	}
	now = now.Add(after - time.Second)
	for name, s := range map[string]*Set{"the machine with the new file": a, "the other one": b, "one that was given the keys": given} {
		if signer, _ := s.SigningKey(); signer != oldSigner {
			t.Errorf("%s signs with %s before its time", name, signer)
		}
		if kid, _ := s.MAC(nil); kid != oldMAC {
			t.Errorf("%s makes MACs with %s before its time", name, kid)
		}
	}
	if _, err := second.Replace(t.Context(), b.Document(), document); err != nil { // the copy
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	for name, s := range map[string]*Set{"the machine with the new file": a, "the other one": b, "one that was given the keys": given} {
		signer, _ := s.SigningKey()
		kid, sum := s.MAC([]byte("message"))
		if signer == oldSigner || kid != "newer" {
			t.Errorf("%s signs with %s and makes MACs with %s, and the new keys are due", name, signer, kid)
		}
		if _, known := b.VerificationKey(signer); !known || !b.CheckMAC(kid, []byte("message"), sum) {
			t.Errorf("what %s makes is taken for forged by the other one", name)
		}
	}
	if again := d.rotated(now, 0); !again.Signing[1].UsedFrom.IsZero() || !again.Encryption[1].UsedFrom.IsZero() {
		t.Errorf("rotated again, moments that have passed are still there: %+v", again)
	}
	if again := d.rotated(now, 0); again.Signing[len(again.Signing)-1].UsedFrom != (time.Time{}) || again.Signing[0].RetiredAt.Before(now.Add(-time.Minute)) {
		t.Errorf("rotated at once: %+v", again.Signing)
	}
}
