// Package keyset keeps the keys of an installation in one file: those that sign access tokens, the one
// behind refresh tokens, and those that seal bank account numbers.
//
// The file is made on first use, can be read by its owner alone, and is only ever replaced whole, so
// that a reader finds the old keys or the new ones. A running service notices when it changes. Whoever
// loses it can't read the sealed numbers any more, and signs everybody out: it belongs in the backup,
// apart from the database. No error of this package tells anything of a key.
package keyset

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Retention is how long a key still verifies once it has stopped signing: an access token's life and
// a day, so that nobody is signed out by a rotation.
const Retention = 8 * 24 * time.Hour

// readEvery bounds how often a changed file is read.
const readEvery = time.Second

// Set is the keys in use. It is safe for concurrent use.
type Set struct {
	path string // empty for keys that came from elsewhere
	now  func() time.Time
	keys atomic.Pointer[keys]

	mu     sync.Mutex
	seen   stamp // of the file that keys were read from, or that could not be read
	readAt time.Time
}

// keys is one state of a set. It never changes.
type keys struct {
	signing     ed25519.PrivateKey
	kid         string
	verifying   map[string]ed25519.PublicKey
	jwks        []byte
	refresh     []byte
	sealers     map[string]sealer
	sealing     string // the kid that seals
	fingerprint string
}

// Open reads the keys in the file at path. If there is no such file, it makes one with new keys;
// of any number of processes that start at once, all get the same. It refuses a file that others than
// its owner may read, and one that is broken.
func Open(path string) (*Set, error) {
	s := &Set{path: path, now: time.Now}
	k, seen, err := readFile(path)
	if missing(err) {
		if err := create(path, newDocument(s.now())); err != nil {
			return nil, err
		}
		k, seen, err = readFile(path)
	}
	if err != nil {
		return nil, err
	}
	s.keys.Store(k)
	s.seen, s.readAt = seen, s.now()
	return s, nil
}

// FromJSON takes keys in the format of the file from somewhere else, such as an environment variable.
// They are rotated there.
func FromJSON(data []byte) (*Set, error) {
	k, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("the key set given: %w", err)
	}
	s := &Set{now: time.Now}
	s.keys.Store(k)
	return s, nil
}

// SigningKey is the newest key, and its id.
func (s *Set) SigningKey() (kid string, key ed25519.PrivateKey) {
	k := s.fresh()
	return k.kid, k.signing
}

// VerificationKey finds a key whose tokens may still be alive. An unknown id is looked for in the file
// if that has changed.
func (s *Set) VerificationKey(kid string) (ed25519.PublicKey, bool) {
	if key, ok := s.keys.Load().verifying[kid]; ok {
		return key, true
	}
	key, ok := s.fresh().verifying[kid]
	return key, ok
}

// JWKS is the public keys as a JSON Web Key Set.
func (s *Set) JWKS() []byte { return s.fresh().jwks }

// RefreshMAC authenticates a message as part of a refresh token.
func (s *Set) RefreshMAC(message []byte) []byte {
	mac := hmac.New(sha256.New, s.keys.Load().refresh)
	mac.Write(message)
	return mac.Sum(nil)
}

// Fingerprint tells installations apart by what their data is sealed with, and no rotation changes it.
// A database that was sealed under another fingerprint can't be read with these keys.
func (s *Set) Fingerprint() string { return s.keys.Load().fingerprint }

// Rotate adds a signing key, which is published and used from now on. The one before verifies for
// [Retention]; older ones are dropped. Services that run on the same file notice by themselves.
func (s *Set) Rotate(now time.Time) error {
	if s.path == "" {
		return errors.New("these keys were given in the configuration; rotate them where they are kept")
	}
	if err := replace(s.path, func(d document) document { return d.rotated(now) }); err != nil {
		return err
	}
	k, seen, err := readFile(s.path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.Store(k)
	s.seen, s.readAt = seen, s.now()
	return nil
}

// fresh returns the keys in the file as it is now. A file that is gone or broken changes nothing: a
// running service keeps the keys that it has.
func (s *Set) fresh() *keys {
	if s.path == "" {
		return s.keys.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if current, err := stampOf(s.path); err != nil || current == s.seen || now.Sub(s.readAt) < readEvery {
		return s.keys.Load()
	}
	k, seen, err := readFile(s.path)
	s.seen, s.readAt = seen, now
	if err == nil {
		s.keys.Store(k)
	}
	return s.keys.Load()
}

// prepare makes keys of a document that was checked.
func prepare(d document) (*keys, error) {
	k := &keys{
		verifying: map[string]ed25519.PublicKey{},
		refresh:   d.RefreshSecret,
		sealers:   map[string]sealer{},
	}
	var public jose.JSONWebKeySet
	for _, entry := range d.Signing {
		key := ed25519.NewKeyFromSeed(entry.Seed)
		jwk := publicJWK(key.Public())
		k.signing, k.kid = key, entry.KID // the last one is the newest
		k.verifying[entry.KID] = ed25519.PublicKey(key[ed25519.SeedSize:])
		public.Keys = append(public.Keys, jwk)
	}
	for _, entry := range d.Sealing {
		sealer, err := newSealer(entry.KID, entry.Key)
		if err != nil {
			return nil, err
		}
		k.sealers[entry.KID] = sealer
		k.sealing = entry.KID
	}
	var err error
	k.jwks, err = json.Marshal(public)
	if err != nil {
		return nil, fmt.Errorf("encode the public keys: %w", err)
	}
	mac := hmac.New(sha256.New, d.Sealing[0].Key)
	mac.Write([]byte("bursar key set fingerprint v1"))
	k.fingerprint = hex.EncodeToString(mac.Sum(nil)[:16])
	return k, nil
}

// publicJWK is a public key as it is published. Its id is its thumbprint (RFC 7638).
func publicJWK(key crypto.PublicKey) jose.JSONWebKey {
	jwk := jose.JSONWebKey{Key: key, Use: "sig", Algorithm: string(jose.EdDSA)}
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err == nil { // it can't fail for an Ed25519 key; an empty id would match none
		jwk.KeyID = base64.RawURLEncoding.EncodeToString(sum)
	}
	return jwk
}
