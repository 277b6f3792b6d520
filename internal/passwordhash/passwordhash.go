// Package passwordhash checks passwords against the hashes that other systems made, so that their users can sign in
// with the password that they have.
//
// It reads the text form that each system stores, refuses what would cost too much to check, and makes no hashes:
// package auth makes one of its own at the first sign-in.
package passwordhash

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of what a hash may make us spend.
const (
	maxEncodedBytes = 1024
	maxMemoryKiB    = 64 << 10
	// maxDjangoMemoryKiB is what Django's argon2 takes unless it was configured.
	maxDjangoMemoryKiB = 100 << 10
	// maxArgon2Work is memory in KiB times passes, and maxScryptWork memory in KiB times parallelism.
	maxArgon2Work  = 1 << 20
	maxScryptWork  = 512 << 10
	maxBcryptCost  = 14
	maxIterations  = 2_000_000 // of PBKDF2, times the blocks of the key
	maxCryptRounds = 1_000_000 // of SHA-crypt
)

// Limits of a password that is checked. A longer one is wrong, after the same work: the cost of SHA-crypt grows with
// the password's length in each of its rounds.
const (
	maxPasswordBytes      = 1024
	maxCryptPasswordBytes = 256
)

// Hash is a hash that can be checked. Its zero value matches no password.
type Hash struct {
	// Format is the name that people know it by, such as "bcrypt" or "Django pbkdf2_sha256".
	Format string
	// Work is about how long a check takes on one processor. It is good for a comparison, and not for a clock.
	Work time.Duration
	// Decoy is a hash that no password is known for and that costs as much to check. It says nothing of this one's
	// salt or key.
	Decoy string

	maxPassword int
	matches     func(password []byte) bool
}

// Matches reports whether the password is the one that the hash was made of. The password counts exactly as it was
// received. A password that is too long costs as much as any other, and does not match.
func (h Hash) Matches(password string) bool {
	if h.matches == nil {
		return false
	}
	tooLong := len(password) > h.maxPassword
	if tooLong {
		password = password[:h.maxPassword]
	}
	return h.matches([]byte(password)) && !tooLong
}

// parsers are tried in this order: the first whose prefix the text has reads it.
var parsers = []struct {
	prefix string
	parse  func(rest string) (Hash, error)
}{
	{"$2a$", parseBcrypt},
	{"$2b$", parseBcrypt},
	{"$2y$", parseBcrypt},
	{"$argon2id$", argon2Parser("argon2id", maxMemoryKiB)},
	{"$argon2i$", argon2Parser("argon2i", maxMemoryKiB)},
	{"$argon2d$", argon2Parser("argon2d", maxMemoryKiB)},
	{"$scrypt$", parseScrypt},
	{"$pbkdf2-sha1$", pbkdf2Parser("sha1")},
	{"$pbkdf2-sha256$", pbkdf2Parser("sha256")},
	{"$pbkdf2-sha512$", pbkdf2Parser("sha512")},
	{"$pbkdf2$", pbkdf2Parser("sha1")}, // as passlib writes it
	{"$5$", shaCryptParser("5", "sha256")},
	{"$6$", shaCryptParser("6", "sha512")},
	{"$fbscrypt$", parseFirebase},
	{"$firescrypt$", parseKratosFirebase},
	{"pbkdf2_sha1$", djangoPBKDF2Parser("sha1")},
	{"pbkdf2_sha256$", djangoPBKDF2Parser("sha256")},
	{"argon2$", parseDjangoArgon2},
	{"bcrypt_sha256$", parseDjangoBcryptSHA256},
	{"bcrypt$", parseDjangoBcrypt},
	{"scrypt$", parseDjangoScrypt},
}

var (
	errUnknown = errors.New("is no hash of a known format: bcrypt ($2a$, $2b$, $2y$), argon2 ($argon2id$, $argon2i$, $argon2d$), scrypt ($scrypt$), " +
		"pbkdf2 ($pbkdf2-sha256$ and the like), SHA-crypt ($5$, $6$), Django's or Firebase's ($fbscrypt$)")
	errUnusable = errors.New("is Django's mark for a user without a password; leave the field out")
	errTooLong  = fmt.Errorf("must be at most %d bytes", maxEncodedBytes)
)

// Parse reads a hash. Its error says what is wrong with the text, to be read after the name of the field, and repeats
// no salt and no key.
func Parse(encoded string) (Hash, error) {
	switch {
	case len(encoded) > maxEncodedBytes:
		return Hash{}, errTooLong
	case strings.HasPrefix(encoded, "!"):
		return Hash{}, errUnusable
	}
	for _, p := range parsers {
		if rest, found := strings.CutPrefix(encoded, p.prefix); found {
			h, err := p.parse(rest)
			if err != nil {
				return Hash{}, err
			}
			if h.maxPassword == 0 {
				h.maxPassword = maxPasswordBytes
			}
			return h, nil
		}
	}
	return Hash{}, errUnknown
}
