package keyset

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"strings"
)

// sealFormat is how sealed values begin: AES-256-GCM with a random nonce, whose additional data is the
// value's context.
const sealFormat = "v1"

var errUnseal = errors.New("a sealed value can't be opened: it was changed, moved, or sealed with a key that is not in this key set")

// sealer is one sealing key.
type sealer struct {
	kid  string
	aead cipher.AEAD
	// macs authenticate journal entries and service keys.
	macs *macs
}

func newSealer(kid string, key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{kid, aead, newMACs(macKeyOf(key))}, err
}

// Seal encrypts plaintext with the newest key, for that context alone.
func (s *Set) Seal(plaintext, context string) (string, error) {
	k := s.fresh()
	sealer := k.sealers[k.sealing]
	sealed := sealer.aead.Seal(nil, nil, []byte(plaintext), []byte(context))
	return sealFormat + "." + sealer.kid + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open decrypts what Seal made for the same context, with whichever key it was made.
func (s *Set) Open(sealed, context string) (string, error) {
	format, rest, _ := strings.Cut(sealed, ".")
	kid, body, _ := strings.Cut(rest, ".")
	sealer, ok := s.keys.Load().sealers[kid]
	if !ok {
		sealer, ok = s.search(func(k *keys) bool { return k.sealers[kid].aead != nil }).sealers[kid]
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if format != sealFormat || !ok || err != nil {
		return "", errUnseal
	}
	plaintext, err := sealer.aead.Open(nil, nil, raw, []byte(context))
	if err != nil {
		return "", errUnseal
	}
	return string(plaintext), nil
}
