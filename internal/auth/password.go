package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"
)

// cost is how much work a password hash is.
type cost struct {
	memoryKiB uint32
	passes    uint32
	threads   uint8
}

// standardCost is argon2id as OWASP's password storage cheat sheet has it.
var standardCost = cost{memoryKiB: 19456, passes: 2, threads: 1}

// cheapCost is for tests alone.
var cheapCost = cost{memoryKiB: 8, passes: 1, threads: 1}

// affordable bounds what a hash read from the database may make us spend.
func (c cost) affordable() bool {
	return c.memoryKiB >= 8 && c.memoryKiB <= 65536 &&
		c.passes >= 1 && c.passes <= 10 &&
		c.threads >= 1 && c.threads <= 8
}

const (
	saltBytes = 16
	keyBytes  = 32
	// maxHashPartBytes bounds a salt or key read from the database.
	maxHashPartBytes = 64
)

// passwordHash is an argon2id hash in its parts; its string is the PHC format.
type passwordHash struct {
	cost      cost
	salt, key []byte
}

func (h passwordHash) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.memoryKiB, h.cost.passes, h.cost.threads,
		base64.RawStdEncoding.EncodeToString(h.salt), base64.RawStdEncoding.EncodeToString(h.key))
}

var errHashFormat = errors.New("a stored password hash is not argon2id in the PHC format, or costs too much to check")

// parsePasswordHash reads what String writes, and nothing else. Its error tells nothing of the hash.
func parsePasswordHash(s string) (passwordHash, error) {
	var h passwordHash
	parts := strings.Split(s, "$")
	if len(parts) != 6 {
		return h, errHashFormat
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.cost.memoryKiB, &h.cost.passes, &h.cost.threads); err != nil {
		return h, errHashFormat
	}
	var saltErr, keyErr error
	h.salt, saltErr = base64.RawStdEncoding.DecodeString(parts[4])
	h.key, keyErr = base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case saltErr != nil || keyErr != nil || h.String() != s || !h.cost.affordable():
		return h, errHashFormat
	case len(h.salt) < 8 || len(h.salt) > maxHashPartBytes || len(h.key) < 16 || len(h.key) > maxHashPartBytes:
		return h, errHashFormat
	}
	return h, nil
}

// derive is the work itself. The password counts exactly as it was received, every byte of it.
func (h passwordHash) derive(password string) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.cost.passes, h.cost.memoryKiB, h.cost.threads, uint32(len(h.key)))
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}

// quietAfter is how long after the last hash its memory is released.
const quietAfter = 5 * time.Second

// hasher makes and checks password hashes. Each one takes 19 MiB and a processor for tens of
// milliseconds, so no more run at once than there are processors. Who may wait for one is up to [places].
type hasher struct {
	cost cost
	// nobodys is a hash that no password has. Checking it takes the place of a user's hash where
	// there is none, so that the time taken does not tell who has an account.
	nobodys passwordHash
	running chan struct{}
	// imported bounds the checks of hashes of another format or cost.
	imported importedChecks
	// quiet goes off when no hash has ended for a while, and releases memory. The collector runs as
	// the heap grows, so the buffers of the last sign-ins would stay until something else fills the heap
	// as far: an idle service would hold a hundred megabytes that it does not use.
	quiet         *time.Timer
	releaseMemory func()
}

func newHasher(c cost) *hasher {
	processors := runtime.GOMAXPROCS(0)
	h := &hasher{
		cost:     c,
		nobodys:  passwordHash{cost: c, salt: random(saltBytes), key: random(keyBytes)},
		running:  make(chan struct{}, processors),
		imported: newImportedChecks(processors),

		releaseMemory: debug.FreeOSMemory,
	}
	h.quiet = time.AfterFunc(quietAfter, func() {
		if len(h.running) == 0 { // else the running hash sets the timer again
			h.releaseMemory()
		}
	})
	h.quiet.Stop()
	return h
}

// work derives a key once a processor is free, unless ctx ends first.
func (h *hasher) work(ctx context.Context, hash passwordHash, password string) (key []byte, err error) {
	err = h.run(ctx, func() { key = hash.derive(password) })
	return key, err
}

// run calls fn once a processor is free, unless ctx ends first.
func (h *hasher) run(ctx context.Context, fn func()) error {
	if err := ctx.Err(); err != nil {
		return ErrBusy.Because(err)
	}
	select {
	case h.running <- struct{}{}:
	case <-ctx.Done():
		return ErrBusy.Because(ctx.Err())
	}
	defer func() {
		<-h.running
		h.quiet.Reset(quietAfter)
	}()
	fn()
	return nil
}

// hash makes a new hash of password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	fresh := passwordHash{cost: h.cost, salt: random(saltBytes), key: make([]byte, keyBytes)}
	key, err := h.work(ctx, fresh, password)
	if err != nil {
		return "", err
	}
	fresh.key = key
	return fresh.String(), nil
}

// verify reports whether password has the stored hash, and whether it should be rehashed
// because today's cost is another. No stored hash is as much work as a wrong password.
func (h *hasher) verify(ctx context.Context, stored, password string) (right, stale bool, err error) {
	hash := h.nobodys
	if stored != "" {
		hash, err = parsePasswordHash(stored)
		if err != nil || hash.cost != h.cost {
			right, err = h.imported.verify(ctx, h, stored, password)
			return right, true, err
		}
	}
	key, err := h.work(ctx, hash, password)
	if err != nil {
		return false, false, err
	}
	right = stored != "" && subtle.ConstantTimeCompare(key, hash.key) == 1
	return right, false, nil
}
