package keyset

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"strings"
)

// encryptionFormat is how encrypted values begin: AES-256-GCM with a random nonce, whose additional data is the
// value's context.
const encryptionFormat = "v1"

var errDecrypt = errors.New("a value can't be decrypted: it was changed, moved, or encrypted with a key that is not in this key set")

// encrypter is one encryption key.
type encrypter struct {
	kid  string
	aead cipher.AEAD
	// macs authenticate journal entries and service keys.
	macs *macs
}

func newEncrypter(kid string, key []byte) (encrypter, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return encrypter{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return encrypter{kid, aead, newMACs(macKeyOf(key))}, err
}

// Encrypt encrypts plaintext with the newest key, for that context alone.
func (s *Set) Encrypt(plaintext, context string) (string, error) {
	k := s.fresh()
	encrypter := k.encrypters[k.encryption]
	encrypted := encrypter.aead.Seal(nil, nil, []byte(plaintext), []byte(context))
	return encryptionFormat + "." + encrypter.kid + "." + base64.RawURLEncoding.EncodeToString(encrypted), nil
}

// Decrypt decrypts what Encrypt made for the same context, with whichever key it was made.
func (s *Set) Decrypt(encrypted, context string) (string, error) {
	format, rest, _ := strings.Cut(encrypted, ".")
	kid, body, _ := strings.Cut(rest, ".")
	encrypter, ok := s.keys.Load().encrypters[kid]
	if !ok {
		encrypter, ok = s.search(func(k *keys) bool { return k.encrypters[kid].aead != nil }).encrypters[kid]
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if format != encryptionFormat || !ok || err != nil {
		return "", errDecrypt
	}
	plaintext, err := encrypter.aead.Open(nil, nil, raw, []byte(context))
	if err != nil {
		return "", errDecrypt
	}
	return string(plaintext), nil
}
