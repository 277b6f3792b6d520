package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bursar/internal/fault"
)

func TestParsePasswordHash_RefusesMalformedOrExcessive(t *testing.T) {
	const salt, key = "c2FsdHNhbHRzYWx0c2FsdA", "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V"
	good := newHasher(cheapCost)
	stored, err := good.hash(t.Context(), "password")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsePasswordHash(stored); err != nil {
		t.Fatalf("our own hash: %v", err)
	}
	if _, err := parsePasswordHash("$argon2id$v=19$m=65536,t=3,p=4$" + salt + "$" + "a2V5a2V5a2V5a2V5a2V5aw"); err != nil {
		t.Fatalf("a costlier hash: %v", err)
	}
	hash := func(params string) string { return "$argon2id$v=19$" + params + "$" + salt + "$a2V5a2V5a2V5a2V5a2V5aw" }
	tests := map[string]string{
		"empty":              "",
		"bcrypt":             "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
		"argon2i":            strings.Replace(stored, "argon2id", "argon2i", 1),
		"another version":    strings.Replace(stored, "v=19", "v=16", 1),
		"no version":         strings.Replace(stored, "$v=19", "", 1),
		"a terabyte":         hash("m=1073741824,t=2,p=1"),
		"just too much":      hash("m=65537,t=2,p=1"),
		"too many passes":    hash("m=8,t=11,p=1"),
		"too many threads":   hash("m=4096,t=1,p=9"),
		"no memory":          hash("m=0,t=2,p=1"),
		"no passes":          hash("m=8,t=0,p=1"),
		"no threads":         hash("m=8,t=1,p=0"),
		"negative":           hash("m=-8,t=1,p=1"),
		"threads overflow":   hash("m=8,t=1,p=257"),
		"padded number":      hash("m=08,t=1,p=1"),
		"more parameters":    hash("m=8,t=1,p=1,x=1"),
		"another order":      hash("t=1,m=8,p=1"),
		"short salt":         "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$a2V5a2V5a2V5a2V5a2V5aw",
		"short key":          "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$a2V5",
		"no key":             "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$",
		"long key":           "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + strings.Repeat("a2V5", 30),
		"salt not canonical": "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdB$a2V5a2V5a2V5a2V5a2V5aw",
		"key not base64":     "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$%%%%",
		"trailing part":      stored + "$",
		"trailing newline":   stored + "\n",
		"not canonical":      "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + key,
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parsePasswordHash(s)
			if err == nil {
				t.Fatal("it was taken")
			}
			if s != "" && strings.Contains(err.Error(), s) {
				t.Error("the error tells the hash")
			}
		})
	}
}

func FuzzStoredHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$a2V5a2V5a2V5a2V5a2V5aw")
	f.Add("$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$")
	f.Add("$$$$$")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parsePasswordHash(s)
		if err == nil && (h.String() != s || !h.cost.affordable()) {
			t.Errorf("%q was read as %q", s, h)
		}
	})
}

func TestHasher_UnknownUser_CostsTheSame(t *testing.T) {
	h := newHasher(standardCost)
	if h.nobodys.cost != h.cost || len(h.nobodys.key) != keyBytes || len(h.nobodys.salt) != saltBytes {
		t.Errorf("the hash checked for nobody is not like a user's: %+v", h.nobodys.cost)
	}
	right, _, err := h.verify(t.Context(), "", "")
	if err != nil || right {
		t.Errorf("verify without a hash = %v, %v; want false", right, err)
	}
}

func TestHasher_EqualPasswords_HashesDiffer(t *testing.T) {
	h := newHasher(cheapCost)
	first, err := h.hash(t.Context(), "password")
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.hash(t.Context(), "password")
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Error("two hashes of one password are equal")
	}
}

func TestHasher_AllBusy_WaitsForProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheapCost)
		for range cap(h.running) {
			h.running <- struct{}{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := h.hash(ctx, "password")
			done <- err
		}()
		synctest.Wait() // until the hash waits for a processor
		cancel()
		if err := <-done; !errors.Is(err, ErrBusy) || !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want %v because the caller left", err, ErrBusy)
		}
		<-h.running
		if _, err := h.hash(t.Context(), "password"); err != nil {
			t.Errorf("with a processor free: %v", err)
		}
		if _, err := h.hash(ctx, "password"); !errors.Is(err, ErrBusy) {
			t.Errorf("a caller who left before: %v", err)
		}
	})
}

func TestWaitsAreInPlainUnits(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Microsecond:    "1 second.",
		time.Second:         "1 second.",
		time.Second + 1:     "2 seconds.",
		119 * time.Second:   "119 seconds.",
		119*time.Second + 1: "2 minutes.",
		2 * time.Minute:     "2 minutes.",
		2*time.Minute + 1:   "3 minutes.",
		20 * time.Minute:    "20 minutes.",
	} {
		f := fault.From(throttled(wait))
		if !strings.HasSuffix(f.Message, " in "+want) || f.RetryAfter != wait {
			t.Errorf("%v: %q and %v, want %q", wait, f.Message, f.RetryAfter, want)
		}
	}
}

func TestHasher_ReleasesMemoryWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheapCost)
		given := 0
		h.releaseMemory = func() { given++ }
		wantGiven := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if given != want {
				t.Errorf("given back %d times, want %d", given, want)
			}
		}
		hash := func() {
			t.Helper()
			if _, err := h.hash(t.Context(), "password"); err != nil {
				t.Fatal(err)
			}
		}
		wantGiven(time.Hour, 0) // nobody hashed
		hash()
		wantGiven(quietAfter-1, 0)
		hash()
		wantGiven(quietAfter-1, 0)
		h.running <- struct{}{} // somebody hashes just then
		wantGiven(1, 0)
		<-h.running
		hash()
		wantGiven(quietAfter, 1)
		wantGiven(time.Hour, 1)
	})
}

func TestBlocklist_EntriesCanMatch(t *testing.T) {
	list := newBlocklist()
	if len(list) < 400 {
		t.Fatalf("%d entries", len(list))
	}
	for entry := range list {
		if CheckPassword(entry) != "" || entry != strings.ToLower(entry) {
			t.Errorf("%q can never match", entry)
		}
	}
}

func TestTokenCache_IsBounded(t *testing.T) {
	c := newTokenCache()
	hash := func(i int) tokenHash { return sha256.Sum256([]byte(fmt.Sprint(i))) }
	for i := range 3 * maxGeneration {
		c.put(hash(i), verifiedToken{session: fmt.Sprint(i)})
		if v, ok := c.get(hash(0)); ok != true || v.session != "0" {
			t.Fatalf("what is used all the time was forgotten after %d others", i)
		}
	}
	if n := len(c.young) + len(c.old); n > 2*maxGeneration {
		t.Errorf("%d entries, want at most %d", n, 2*maxGeneration)
	}
	if _, ok := c.get(hash(1)); ok {
		t.Error("what was not used for two generations is still there")
	}
}

func TestTokenCache_ConcurrentUse(t *testing.T) {
	c := newTokenCache()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				hash := sha256.Sum256([]byte{byte(g), byte(i), byte(i >> 8)})
				c.put(hash, verifiedToken{expiresAt: int64(i)})
				if v, ok := c.get(hash); !ok || v.expiresAt != int64(i) {
					t.Error("an entry is not what was put")
				}
			}
		})
	}
	wg.Wait()
}

func TestNew_RefusesEmptyOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a service of nothing was made")
	}
}
