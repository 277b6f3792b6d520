package passwordhash

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strings"
	"time"

	xargon2 "github.com/go-crypt/x/argon2"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// How long a unit of work takes, about. Measured on one core of 2024; only the proportions matter.
const (
	timeOfArgon2KiB  = 600 * time.Nanosecond // times passes
	timeOfScryptKiB  = 2800 * time.Nanosecond
	timeOfBcryptStep = 55 * time.Microsecond // of 2^cost
)

// keyed is a hash that is checked by deriving its key again.
func keyed(format string, work time.Duration, decoy string, key []byte, derive func(password []byte) []byte) Hash {
	return Hash{Format: format, Work: work, Decoy: decoy, matches: func(password []byte) bool {
		return subtle.ConstantTimeCompare(derive(password), key) == 1
	}}
}

const bcryptAlphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// parseBcrypt reads cost$salt-and-key. The variants 2a, 2b and 2y differ only in bugs that were mended long ago; 2x
// marks hashes that were made with such a bug, and is not read. bcrypt looks at the first 72 bytes of a password.
func parseBcrypt(rest string) (Hash, error) {
	const saltAndKey = 53
	text, digits, _ := strings.Cut(rest, "$")
	cost, err := number("cost", text)
	switch {
	case err != nil || len(text) != 2 || len(digits) != saltAndKey || strings.Trim(digits, bcryptAlphabet) != "" || cost < bcrypt.MinCost:
		return Hash{}, malformed("bcrypt")
	case cost > maxBcryptCost:
		return Hash{}, tooMuch("bcrypt", "cost", cost, maxBcryptCost)
	}
	encoded := []byte("$2b$" + rest)
	decoy := "$2b$" + text + "$" + strings.Repeat(".", saltAndKey)
	return Hash{Format: "bcrypt", Work: timeOfBcryptStep << cost, Decoy: decoy, matches: func(password []byte) bool {
		return bcrypt.CompareHashAndPassword(encoded, password) == nil
	}}, nil
}

// argon2Parser reads v=19$m=…,t=…,p=…$salt$key, the PHC string format, of a memory of at most so many KiB.
func argon2Parser(variant string, maxMemory int) func(string) (Hash, error) {
	return func(rest string) (Hash, error) {
		parts := strings.Split(rest, "$")
		if len(parts) != 4 {
			return Hash{}, malformed(variant)
		}
		if parts[0] != "v=19" {
			return Hash{}, fmt.Errorf("is %s of a version other than 1.3 (v=19)", variant)
		}
		p, err := parameters(parts[1], "m", "t", "p")
		if err != nil {
			return Hash{}, malformed(variant)
		}
		memory, passes, threads := p[0], p[1], p[2]
		salt, key, err := saltAndKey(parts[2], parts[3])
		switch {
		case err != nil || passes < 1 || threads < 1 || memory < 8*threads:
			return Hash{}, malformed(variant)
		case memory > maxMemory:
			return Hash{}, tooMuch(variant, "memory in KiB", memory, maxMemory)
		case memory*passes > maxArgon2Work:
			return Hash{}, tooMuch(variant, "memory in KiB times passes", memory*passes, maxArgon2Work)
		case threads > 16:
			return Hash{}, tooMuch(variant, "parallelism", threads, 16)
		}
		decoy := fmt.Sprintf("$%s$v=19$%s$%s$%s", variant, parts[1], zeros(len(salt)), zeros(len(key)))
		return keyed(variant, timeOfArgon2KiB*time.Duration(memory*passes), decoy, key, func(password []byte) []byte {
			switch m, t, n := uint32(memory), uint32(passes), uint32(len(key)); variant {
			case "argon2id":
				return argon2.IDKey(password, salt, t, m, uint8(threads), n)
			case "argon2i":
				return argon2.Key(password, salt, t, m, uint8(threads), n)
			default:
				return xargon2.DKey(password, salt, t, m, uint32(threads), n)
			}
		}), nil
	}
}

// scryptCost is N as a power of two, r and p.
type scryptCost struct{ log2N, r, p int }

func (c scryptCost) check(format string) error {
	if c.log2N < 1 || c.r < 1 || c.p < 1 {
		return malformed(format)
	}
	if c.log2N > 20 || c.r > 64 || c.p > 64 { // before they are multiplied
		return fmt.Errorf("is %s with parameters beyond the limit (N 2^20, r 64, p 64)", format)
	}
	if memory := c.memoryKiB(); memory > maxMemoryKiB {
		return tooMuch(format, "memory in KiB (N × r ÷ 8)", memory, maxMemoryKiB)
	}
	if work := c.memoryKiB() * c.p; work > maxScryptWork {
		return tooMuch(format, "memory in KiB times parallelism", work, maxScryptWork)
	}
	return nil
}

func (c scryptCost) memoryKiB() int { return c.r << c.log2N >> 3 }

func (c scryptCost) work() time.Duration { return timeOfScryptKiB * time.Duration(c.memoryKiB()*c.p) }

func (c scryptCost) decoy() string {
	return fmt.Sprintf("$scrypt$ln=%d,r=%d,p=%d$%s$%s", c.log2N, c.r, c.p, zeros(minKeyBytes), zeros(minKeyBytes))
}

// key derives n bytes. The parameters were checked, so it does not fail.
func (c scryptCost) key(password, salt []byte, n int) []byte {
	key, err := scrypt.Key(password, salt, 1<<c.log2N, c.r, c.p, n)
	if err != nil {
		return nil // equals no key
	}
	return key
}

func scryptHash(format string, c scryptCost, salt, key []byte) (Hash, error) {
	if err := c.check(format); err != nil {
		return Hash{}, err
	}
	return keyed(format, c.work(), c.decoy(), key, func(password []byte) []byte { return c.key(password, salt, len(key)) }), nil
}

// parseScrypt reads ln=…,r=…,p=…$salt$key. Most systems write the logarithm of N; Kratos writes N, which no logarithm
// is as large as.
func parseScrypt(rest string) (Hash, error) {
	const format = "scrypt"
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return Hash{}, malformed(format)
	}
	p, err := parameters(parts[0], "ln", "r", "p")
	if err != nil {
		return Hash{}, malformed(format)
	}
	log2N := p[0]
	if log2N >= 64 {
		log2N = log2(log2N)
	}
	salt, key, err := saltAndKey(parts[1], parts[2])
	if err != nil {
		return Hash{}, malformed(format)
	}
	return scryptHash(format, scryptCost{log2N, p[1], p[2]}, salt, key)
}

// parseDjangoScrypt reads N$salt$r$p$key. The salt is text.
func parseDjangoScrypt(rest string) (Hash, error) {
	const format = "Django scrypt"
	parts := strings.Split(rest, "$")
	if len(parts) != 5 {
		return Hash{}, malformed(format)
	}
	n, err := number("N", parts[0])
	if err != nil {
		return Hash{}, malformed(format)
	}
	p, err := parameters("r="+parts[2]+",p="+parts[3], "r", "p")
	if err != nil {
		return Hash{}, malformed(format)
	}
	key, err := keyBytes(parts[4])
	if err != nil || !isSalt([]byte(parts[1])) {
		return Hash{}, malformed(format)
	}
	return scryptHash(format, scryptCost{log2(n), p[0], p[1]}, []byte(parts[1]), key)
}

// log2 is the logarithm of a power of two, and 0 for what is none.
func log2(n int) int {
	if bits.OnesCount(uint(n)) != 1 {
		return 0
	}
	return bits.TrailingZeros(uint(n))
}

// parseDjangoArgon2 reads a PHC string, whose dollar sign Django has cut off with its own name.
func parseDjangoArgon2(rest string) (Hash, error) {
	for _, variant := range []string{"argon2id", "argon2i", "argon2d"} {
		if phc, found := strings.CutPrefix(rest, variant+"$"); found {
			h, err := argon2Parser(variant, maxDjangoMemoryKiB)(phc)
			h.Format = "Django argon2"
			if h.Decoy != "" {
				h.Decoy = "argon2" + h.Decoy
			}
			return h, err
		}
	}
	return Hash{}, malformed("Django argon2")
}

func parseDjangoBcrypt(rest string) (Hash, error) { return djangoBcrypt("Django bcrypt", rest) }

// parseDjangoBcryptSHA256 reads a bcrypt hash of the password's SHA-256 in hexadecimal digits.
func parseDjangoBcryptSHA256(rest string) (Hash, error) {
	h, err := djangoBcrypt("Django bcrypt_sha256", rest)
	if err != nil {
		return Hash{}, err
	}
	plain := h.matches
	h.matches = func(password []byte) bool {
		sum := sha256.Sum256(password)
		return plain([]byte(hex.EncodeToString(sum[:])))
	}
	return h, nil
}

func djangoBcrypt(format, rest string) (Hash, error) {
	for _, variant := range []string{"$2b$", "$2a$", "$2y$"} {
		if encoded, found := strings.CutPrefix(rest, variant); found {
			h, err := parseBcrypt(encoded)
			h.Format = format
			return h, err
		}
	}
	return Hash{}, malformed(format)
}
