package passwordhash

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // other systems made their hashes with it
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/go-crypt/x/crypt"
)

// digest is a hash function with the time of one round of PBKDF2 and of SHA-crypt, about.
type digest struct {
	new                 func() hash.Hash
	size                int
	pbkdf2Time, crypted time.Duration
}

var digests = map[string]digest{
	"sha1":   {sha1.New, sha1.Size, 250 * time.Nanosecond, 0},
	"sha256": {sha256.New, sha256.Size, 250 * time.Nanosecond, 250 * time.Nanosecond},
	"sha512": {sha512.New, sha512.Size, 900 * time.Nanosecond, 600 * time.Nanosecond},
}

// pbkdf2Parser reads iterations$salt$key as passlib writes them, or i=iterations, which l=bytes of the key may follow.
func pbkdf2Parser(digest string) func(string) (Hash, error) {
	format := "pbkdf2-" + digest
	return func(rest string) (Hash, error) {
		parts := strings.Split(rest, "$")
		if len(parts) != 3 {
			return Hash{}, malformed(format)
		}
		text := strings.TrimPrefix(parts[0], "i=")
		text, length, hasLength := strings.Cut(text, ",l=")
		iterations, err := number("iterations", text)
		if err != nil {
			return Hash{}, malformed(format)
		}
		salt, key, err := saltAndKey(parts[1], parts[2])
		if err != nil {
			return Hash{}, malformed(format)
		}
		if n, err := number("length", length); hasLength && (err != nil || n != len(key)) {
			return Hash{}, malformed(format)
		}
		return pbkdf2Hash(format, digest, iterations, salt, key)
	}
}

// djangoPBKDF2Parser reads iterations$salt$key. The salt is text.
func djangoPBKDF2Parser(digest string) func(string) (Hash, error) {
	format := "Django pbkdf2_" + digest
	return func(rest string) (Hash, error) {
		parts := strings.Split(rest, "$")
		if len(parts) != 3 {
			return Hash{}, malformed(format)
		}
		iterations, err := number("iterations", parts[0])
		if err != nil || !isSalt([]byte(parts[1])) {
			return Hash{}, malformed(format)
		}
		key, err := keyBytes(parts[2])
		if err != nil {
			return Hash{}, malformed(format)
		}
		return pbkdf2Hash(format, digest, iterations, []byte(parts[1]), key)
	}
}

func pbkdf2Hash(format, name string, iterations int, salt, key []byte) (Hash, error) {
	d := digests[name]
	blocks := (len(key) + d.size - 1) / d.size
	switch {
	case iterations < 1:
		return Hash{}, malformed(format)
	case iterations*blocks > maxIterations:
		return Hash{}, tooMuch(format, "iterations times the blocks of the key", iterations*blocks, maxIterations)
	}
	decoy := fmt.Sprintf("$pbkdf2-%s$%d$%s$%s", name, iterations, zeros(len(salt)), zeros(len(key)))
	return keyed(format, d.pbkdf2Time*time.Duration(iterations*blocks), decoy, key, func(password []byte) []byte {
		derived, err := pbkdf2.Key(d.new, string(password), salt, iterations, len(key))
		if err != nil {
			return nil // equals no key
		}
		return derived
	}), nil
}

// Limits and default of SHA-crypt's own specification.
const (
	defaultRounds  = 5000
	minRounds      = 1000
	maxSaltOfCrypt = 16
)

// shaCryptParser reads salt$key or rounds=…$salt$key.
func shaCryptParser(ident, name string) func(string) (Hash, error) {
	format := name + "-crypt"
	d := digests[name]
	keyDigits := (d.size*8 + 5) / 6
	return func(rest string) (Hash, error) {
		rounds := defaultRounds
		if text, found := strings.CutPrefix(rest, "rounds="); found {
			text, rest, _ = strings.Cut(text, "$")
			given, err := number("rounds", text)
			if err != nil || given < minRounds { // crypt(3) never writes fewer
				return Hash{}, malformed(format)
			}
			rounds = given
		}
		salt, key, _ := strings.Cut(rest, "$")
		switch {
		case salt == "" || len(salt) > maxSaltOfCrypt || !isPrintable(salt) || len(key) != keyDigits || strings.Trim(key, bcryptAlphabet) != "":
			return Hash{}, malformed(format)
		case rounds > maxCryptRounds:
			return Hash{}, tooMuch(format, "rounds", rounds, maxCryptRounds)
		}
		decoy := fmt.Sprintf("$%s$rounds=%d$%s$%s", ident, rounds, strings.Repeat(".", len(salt)), strings.Repeat(".", keyDigits))
		h := keyed(format, d.crypted*time.Duration(rounds), decoy, []byte(key), func(password []byte) []byte {
			return crypt.KeySHACrypt(d.new, password, []byte(salt), rounds)
		})
		h.maxPassword = maxCryptPasswordBytes
		return h, nil
	}
}

// parseFirebase reads v=1,n=…,r=…,p=1,ss=…,sk=…$salt$key, as Supabase writes what Firebase exports: the logarithm of
// N ("mem cost"), r ("rounds"), the salt separator and the signer key of the project, and the user's salt and hash.
func parseFirebase(rest string) (Hash, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return Hash{}, malformed(firebase)
	}
	cost, secrets, found := strings.Cut(parts[0], ",ss=")
	separator, signer, foundToo := strings.Cut(secrets, ",sk=")
	cost, isFirst := strings.CutPrefix(cost, "v=1,")
	if !found || !foundToo || !isFirst {
		return Hash{}, malformed(firebase)
	}
	p, err := parameters(cost, "n", "r", "p")
	if err != nil {
		return Hash{}, malformed(firebase)
	}
	return firebaseHash(scryptCost{p[0], p[1], p[2]}, parts[1], separator, signer, parts[2])
}

// parseKratosFirebase reads ln=…,r=…,p=…$salt$key$salt separator$signer key.
func parseKratosFirebase(rest string) (Hash, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 5 {
		return Hash{}, malformed(firebase)
	}
	p, err := parameters(parts[0], "ln", "r", "p")
	if err != nil {
		return Hash{}, malformed(firebase)
	}
	return firebaseHash(scryptCost{p[0], p[1], p[2]}, parts[1], parts[3], parts[4], parts[2])
}

const firebase = "Firebase scrypt"

// firebaseHash checks a password as Firebase does: scrypt makes a key of it, which encrypts the project's signer key.
// The result is the user's hash.
func firebaseHash(c scryptCost, saltText, separatorText, signerText, hashText string) (Hash, error) {
	if err := c.check(firebase); err != nil {
		return Hash{}, err
	}
	salt, err := decode(saltText)
	if err != nil || !isSalt(salt) {
		return Hash{}, malformed(firebase)
	}
	separator, err := decode(separatorText)
	if err != nil || len(separator) > maxSaltBytes {
		return Hash{}, malformed(firebase)
	}
	signer, err := decode(signerText)
	if err != nil {
		return Hash{}, malformed(firebase)
	}
	want, err := decode(hashText)
	if err != nil || len(want) != len(signer) || len(want) < minKeyBytes || len(want) > maxKeyBytes {
		return Hash{}, malformed(firebase)
	}
	salt = append(salt, separator...)
	return keyed(firebase, c.work(), c.decoy(), want, func(password []byte) []byte {
		const aes256 = 32
		block, err := aes.NewCipher(c.key(password, salt, aes256))
		if err != nil {
			return nil // equals no hash
		}
		got := make([]byte, len(signer))
		cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(got, signer) //nolint:gosec // Firebase's own: the key is of one password and salt
		return got
	}), nil
}
