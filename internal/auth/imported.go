package auth

import (
	"context"
	"sync"
	"time"

	"bursar/internal/passwordhash"
)

// Limits of checking hashes that other systems made. One may take up to 100 MiB and seconds of a processor, so half
// of the processors stay free for other sign-ins, and few callers wait.
const (
	maxImportedRunning = 4
	maxImportedWaiting = 32
)

// importedChecks bounds how many imported hashes are checked at once.
type importedChecks struct {
	places  chan struct{}
	running chan struct{}
}

func newImportedChecks(processors int) importedChecks {
	running := min(max(processors/2, 1), maxImportedRunning)
	return importedChecks{places: make(chan struct{}, running+maxImportedWaiting), running: make(chan struct{}, running)}
}

// verify reports whether password has the stored hash, which is of another format or cost than ours. It fails with
// [ErrBusy] where too many wait.
func (c importedChecks) verify(ctx context.Context, h *hasher, stored, password string) (right bool, err error) {
	hash, err := passwordhash.Parse(stored)
	if err != nil {
		return false, errHashFormat
	}
	err = c.run(ctx, h, func() { right = hash.Matches(password) })
	return right, err
}

// run calls fn once it may, on a processor of h.
func (c importedChecks) run(ctx context.Context, h *hasher, fn func()) error {
	select {
	case c.places <- struct{}{}:
		defer func() { <-c.places }()
	default:
		return ErrBusy.After(busyRetry)
	}
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return ErrBusy.Because(ctx.Err())
	}
	return h.run(ctx, fn)
}

// How often a service looks for a costlier imported hash, and how often it measures again how long that one takes.
const (
	decoyEvery   = time.Minute
	measureEvery = 10 * time.Minute
)

// evenness keeps the time of a refused sign-in from saying what kind of hash the user has, or that there is such a
// user. Equal work would do that too, but then each guess of a flood would be made of the costliest work there is.
// Waiting costs nothing.
type evenness struct {
	mu         sync.Mutex
	lookAt     time.Time
	measuredAt time.Time
	decoy      string
	floor      time.Duration // how long a refusal takes at least; zero where no hash was imported
}

// evenOut waits until a sign-in that is refused has taken as long as one of the user with the costliest hash.
func (s *Service) evenOut(ctx context.Context, began time.Time) {
	if s.even.isDue(s.o.Now()) {
		s.measureDecoy(ctx)
	}
	wait := s.even.takes() - s.o.Now().Sub(began)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (e *evenness) takes() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.floor
}

// isDue reports whether the caller should look for a decoy now. It says so to one caller at a time.
func (e *evenness) isDue(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	due := !now.Before(e.lookAt)
	if due {
		e.lookAt = now.Add(decoyEvery)
	}
	return due
}

// measured notes how long the check of a decoy took. What else ran makes it longer, never shorter.
func (e *evenness) measured(decoy string, took time.Duration, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if decoy == e.decoy {
		took = min(took, e.floor)
	}
	e.decoy, e.floor, e.measuredAt = decoy, took, now
}

// isFresh reports whether a decoy was measured a short time ago.
func (e *evenness) isFresh(decoy string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return decoy == e.decoy && now.Sub(e.measuredAt) < measureEvery
}

// measureDecoy measures the costliest kind of imported hash, if there is one and it was not measured lately. Where
// that fails, the last measurement holds, and a later refusal tries again.
func (s *Service) measureDecoy(ctx context.Context) {
	decoy, err := s.o.Store.PasswordDecoy(ctx)
	if err != nil || decoy == "" || s.even.isFresh(decoy, s.o.Now()) {
		return
	}
	if took, err := s.measure(ctx, decoy); err == nil {
		s.even.measured(decoy, took, s.o.Now())
	}
}

// measure finds how long the longer one of a check of the decoy and one of our own hashes takes, with a quarter on top
// for what differs from one check to the next.
func (s *Service) measure(ctx context.Context, decoy string) (time.Duration, error) {
	hash, err := passwordhash.Parse(decoy)
	if err != nil {
		return 0, err
	}
	h := s.passwords
	var longest time.Duration
	timed := func(check func()) func() {
		return func() {
			began := s.o.Now()
			check()
			longest = max(longest, s.o.Now().Sub(began))
		}
	}
	const password = "correct horse battery staple"
	if err := h.imported.run(ctx, h, timed(func() { hash.Matches(password) })); err != nil {
		return 0, err
	}
	if err := h.run(ctx, timed(func() { h.nobodys.derive(password) })); err != nil {
		return 0, err
	}
	return longest + longest/4, nil
}

// PasswordFormat names the format of a user's password hash: "argon2id" for ours, the format as people know it for an
// imported one, and "none" for a user without a password.
func PasswordFormat(u User) string {
	if u.PasswordHash == "" {
		return "none"
	}
	hash, err := passwordhash.Parse(u.PasswordHash)
	if err != nil {
		return "unreadable"
	}
	return hash.Format
}
