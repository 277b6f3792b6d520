package auth

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// decoyStore has a decoy and nothing else.
type decoyStore struct {
	Store
	decoy string
	err   error
	reads int
}

func (d *decoyStore) PasswordDecoy(context.Context) (string, error) {
	d.reads++
	return d.decoy, d.err
}

const cheapDecoy = "$2b$04$....................................................."

// A refusal takes as long as a check of the costliest imported hash and a quarter more, however long it took itself.
func TestEvenOut_RefusalsTakeTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 40 * time.Millisecond // that each look at the clock takes, and so each check
		looks := 0
		kept := &decoyStore{}
		s := &Service{passwords: newHasher(cheapCost), o: Options{Store: kept, Now: func() time.Time {
			looks++
			return time.Now().Add(time.Duration(looks) * step)
		}}}
		waited := func(took time.Duration) time.Duration {
			began := time.Now()
			s.evenOut(t.Context(), s.o.Now().Add(-took))
			return time.Since(began)
		}
		if d := waited(0); d != 0 {
			t.Errorf("waited %v where no hash was imported", d)
		}
		kept.decoy = cheapDecoy
		if d := waited(0); d != 0 || kept.reads != 1 {
			t.Errorf("waited %v and looked %d times within a minute", d, kept.reads)
		}
		time.Sleep(decoyEvery)
		waited(0)
		const floor = step + step/4
		if s.even.takes() != floor {
			t.Fatalf("a refusal takes %v, want %v", s.even.takes(), floor)
		}
		// Two looks of the clock are part of each refusal.
		s.even.floor = 10 * step
		for _, took := range []time.Duration{0, step, 3 * step} {
			if d := waited(took) + took; d != 8*step {
				t.Errorf("a refusal that took %v took %v in the end, want %v", took, d, 8*step)
			}
		}
		if d := waited(20 * step); d != 0 {
			t.Errorf("a slow refusal waited %v", d)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		began := time.Now()
		s.evenOut(ended, s.o.Now())
		if d := time.Since(began); d != 0 {
			t.Errorf("waited %v for a caller who left", d)
		}
		// A later measurement only makes it shorter, and what can't be read changes nothing.
		time.Sleep(measureEvery)
		s.even.floor = step
		waited(0)
		if s.even.takes() != step {
			t.Errorf("measured again, a refusal takes %v, want %v", s.even.takes(), step)
		}
		time.Sleep(measureEvery)
		kept.err = errors.New("no database")
		waited(0)
		if s.even.takes() != step {
			t.Errorf("without a database, a refusal takes %v, want %v", s.even.takes(), step)
		}
	})
}

// Only a few imported hashes are checked at once, so that processors stay free for our own.
func TestHasher_ImportedChecksAreBounded(t *testing.T) {
	h := newHasher(cheapCost)
	h.imported = newImportedChecks(2)
	if n := cap(h.imported.running); n != 1 {
		t.Errorf("%d at once on two processors, want 1", n)
	}
	if n := cap(newImportedChecks(1).running); n != 1 {
		t.Errorf("%d at once on one processor, want 1", n)
	}
	if n := cap(newImportedChecks(64).running); n != maxImportedRunning {
		t.Errorf("%d at once on 64 processors, want %d", n, maxImportedRunning)
	}
	for range cap(h.imported.places) {
		h.imported.places <- struct{}{}
	}
	if _, _, err := h.verify(t.Context(), cheapDecoy, "password"); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	own, err := h.hash(t.Context(), "password")
	if err != nil {
		t.Fatal(err)
	}
	if right, stale, err := h.verify(t.Context(), own, "password"); !right || stale || err != nil {
		t.Errorf("meanwhile, one of ours: %v, %v, %v", right, stale, err)
	}
	<-h.imported.places
	if right, stale, err := h.verify(t.Context(), cheapDecoy, "password"); right || !stale || err != nil {
		t.Errorf("once there is a place: %v, %v, %v", right, stale, err)
	}
	h.imported.running <- struct{}{}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := h.verify(ended, cheapDecoy, "password"); !errors.Is(err, ErrBusy) {
		t.Errorf("for a caller who left: %v", err)
	}
	if n := len(h.imported.places); n != cap(h.imported.places)-1 {
		t.Errorf("%d places are taken, want %d", n, cap(h.imported.places)-1)
	}
}
