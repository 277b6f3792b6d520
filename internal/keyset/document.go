package keyset

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bursar/internal/id"
)

const (
	documentVersion = 1
	// secretSize is that of an Ed25519 seed, an AES-256 key and a MAC key alike, in bytes.
	secretSize        = 32
	encryptionKIDSize = 8
)

// document is what a source keeps, as JSON. Keys stand in the order in which they were added; of those that may be used by now, the last one is. The
// others open and check what was made with them. One that may not be used yet gives time to copy the document to every machine.
type document struct {
	Version       int             `json:"version"`
	Signing       []signingKey    `json:"signing"`
	RefreshSecret []byte          `json:"refresh_secret"`
	Encryption    []encryptionKey `json:"encryption"`
}

type signingKey struct {
	KID       string    `json:"kid"`
	CreatedAt time.Time `json:"created_at"`
	UsedFrom  time.Time `json:"used_from,omitzero"` // zero for at once
	// RetiredAt is when a newer key takes over, or took.
	RetiredAt time.Time `json:"retired_at,omitzero"`
	Seed      []byte    `json:"seed"`
}

type encryptionKey struct {
	KID       string    `json:"kid"`
	CreatedAt time.Time `json:"created_at"`
	UsedFrom  time.Time `json:"used_from,omitzero"` // zero for at once
	Key       []byte    `json:"key"`
}

func newDocument(now time.Time) document {
	return document{
		Version:       documentVersion,
		Signing:       []signingKey{newSigningKey(now)},
		RefreshSecret: newSecret(),
		Encryption:    []encryptionKey{{KID: id.Random(encryptionKIDSize), CreatedAt: now.UTC(), Key: newSecret()}},
	}
}

func newSigningKey(now time.Time) signingKey {
	seed := newSecret()
	return signingKey{KID: thumbprint(seed), CreatedAt: now.UTC(), Seed: seed}
}

func thumbprint(seed []byte) string {
	return publicJWK(ed25519.NewKeyFromSeed(seed).Public()).KeyID
}

// usedAt is the place of the key that is used at a moment, of keys that may be used from some moments on, and when the next one is: zero for never.
func usedAt(now time.Time, from []time.Time) (used int, next time.Time) {
	for i, t := range from {
		if !t.After(now) {
			used = i
		} else if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return used, next
}

// rotated is d with a new signing key that is used after a while, and without those whose last token has expired. A moment that has passed is taken
// out, so that a release from before there were any can read the document.
func (d document) rotated(now time.Time, after time.Duration) document {
	added := newSigningKey(now)
	if after > 0 {
		added.UsedFrom = now.Add(after).UTC().Truncate(time.Second)
	}
	var kept []signingKey
	for _, key := range d.Signing {
		if key.RetiredAt.IsZero() {
			key.RetiredAt = now.Add(after).UTC()
		}
		if !key.UsedFrom.After(now) {
			key.UsedFrom = time.Time{}
		}
		if now.Sub(key.RetiredAt) < Retention {
			kept = append(kept, key)
		}
	}
	d.Signing = append(kept, added)
	d.Encryption = slices.Clone(d.Encryption)
	for i := range d.Encryption {
		if key := &d.Encryption[i]; !key.UsedFrom.After(now) {
			key.UsedFrom = time.Time{}
		}
	}
	return d
}

// rotated is data with a new signing key that is used after a while.
func rotated(data []byte, now time.Time, after time.Duration) ([]byte, error) {
	d, err := decode(data)
	if err != nil {
		return nil, err
	}
	return encode(d.rotated(now, after))
}

// lacks names what of another document is neither in d nor out of use by now.
func (d document) lacks(other document, now time.Time) error {
	for _, key := range other.Signing {
		inUse := key.RetiredAt.IsZero() || now.Sub(key.RetiredAt) < Retention
		if inUse && !slices.ContainsFunc(d.Signing, func(own signingKey) bool { return bytes.Equal(own.Seed, key.Seed) }) {
			return fmt.Errorf("it lacks the signing key %s", key.KID)
		}
	}
	for _, key := range other.Encryption {
		if !slices.ContainsFunc(d.Encryption, func(own encryptionKey) bool { return own.KID == key.KID && bytes.Equal(own.Key, key.Key) }) {
			return fmt.Errorf("it lacks the encryption key %s", key.KID)
		}
	}
	if !bytes.Equal(d.RefreshSecret, other.RefreshSecret) {
		return errors.New("it has another refresh secret")
	}
	return nil
}

// check finds what is wrong with a document. What it says tells nothing of a key.
func (d document) check() error {
	switch {
	case d.Version != documentVersion:
		return fmt.Errorf("its version is %d, and this program reads %d", d.Version, documentVersion)
	case len(d.Signing) == 0 || len(d.Encryption) == 0:
		return errors.New("it lacks a signing key or an encryption key")
	case len(d.RefreshSecret) != secretSize:
		return fmt.Errorf("its refresh secret does not have %d bytes", secretSize)
	}
	seen := map[string]bool{}
	for i, key := range d.Signing {
		if len(key.Seed) != secretSize || key.KID != thumbprint(key.Seed) || seen[key.KID] {
			return fmt.Errorf("its signing key number %d is damaged or there twice", i+1)
		}
		seen[key.KID] = true
	}
	for i, key := range d.Encryption {
		if len(key.Key) != secretSize || key.KID == "" || strings.Contains(key.KID, ".") || seen[key.KID] {
			return fmt.Errorf("its encryption key number %d is damaged or there twice", i+1)
		}
		seen[key.KID] = true
	}
	return nil
}

// decode reads a document. Errors of the JSON decoder quote what they found, so they stay here.
func decode(data []byte) (document, error) {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil || decoder.More() {
		return document{}, errors.New("it is not the JSON of a key set; restore it from a backup")
	}
	return d, d.check()
}

func encode(d document) ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, errors.New("the key set can't be written as JSON")
	}
	return append(data, '\n'), nil
}

func newSecret() []byte {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}
