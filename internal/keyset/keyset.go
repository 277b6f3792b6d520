// Package keyset keeps the keys of an installation in one document: those that sign access tokens, the
// one behind refresh tokens, and those that encrypt bank account numbers.
//
// The document is made on first use, and is only ever replaced whole, so that a reader finds the old
// keys or the new ones. A running service notices when it changes. An operator who loses it can't read the
// encrypted numbers any more, and signs everybody out: it belongs in the backup, apart from the database.
// No error of this package tells anything of a key.
package keyset

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"
)

// Retention is how long a key still verifies once it has stopped signing: an access token's life and
// a day, so that nobody is signed out by a rotation.
const Retention = 8 * 24 * time.Hour

// A document is read once a second at most, and beside that at once for keys that are not known: as
// often again, because anybody may make such a key's id up, but for the first few.
const (
	readEvery  = time.Second
	firstReads = 5
)

// Source is the place of a document, which any number of processes share.
type Source interface {
	// Read returns the document as it is now, or an error that is fs.ErrNotExist.
	Read(ctx context.Context) ([]byte, error)
	// Create stores a first document. That another process was faster is no error.
	Create(ctx context.Context, document []byte) error
	// Replace stores next in the place of last, and reports whether last was still there.
	Replace(ctx context.Context, last, next []byte) (bool, error)
	// String names the place.
	fmt.Stringer
}

// Set is the keys in use. It is safe for concurrent use.
type Set struct {
	source Source // nil for keys that came from elsewhere
	now    func() time.Time
	keys   atomic.Pointer[keys]

	mu      sync.Mutex
	readAt  time.Time
	trouble func(error)   // is called when reading the source begins to fail
	failing bool          // whether the last read failed
	unknown *rate.Limiter // of reads for keys that are not known
}

// keys is one state of a set. It never changes.
type keys struct {
	document    []byte
	signing     ed25519.PrivateKey
	kid         string
	verifying   map[string]ed25519.PublicKey
	jwks        []byte
	refresh     []byte
	encrypters  map[string]encrypter
	encryption  string // the kid that encrypts
	fingerprint string
	// next is when another key of the document comes into use; zero for never.
	next time.Time
}

// Open reads the keys at a source. If there is no document, it makes one with new keys; of any number
// of processes that start at once, all get the same. It refuses a document that is broken.
func Open(ctx context.Context, source Source) (*Set, error) {
	s, err := OpenExisting(ctx, source)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s = newSet()
	s.source = source
	document, err := s.create(ctx)
	if err != nil {
		return nil, err
	}
	return s, s.use(document)
}

// OpenExisting reads the keys at a source as Open does, and makes none: its error is [fs.ErrNotExist] if there is no
// document.
func OpenExisting(ctx context.Context, source Source) (*Set, error) {
	s := newSet()
	s.source = source
	document, err := source.Read(ctx)
	if err != nil {
		return nil, err
	}
	return s, s.use(document)
}

// FromJSON takes a document from somewhere else, such as an environment variable. Its keys are rotated
// there.
func FromJSON(document []byte) (*Set, error) {
	s := newSet()
	k, err := parse(document, s.now())
	if err != nil {
		return nil, fmt.Errorf("the key set given: %w", err)
	}
	s.keys.Store(k)
	return s, nil
}

func newSet() *Set {
	return &Set{now: time.Now, unknown: rate.NewLimiter(rate.Every(readEvery), firstReads)}
}

// create makes a first document, and reads the one that is there then.
func (s *Set) create(ctx context.Context) ([]byte, error) {
	document, err := encode(newDocument(s.now()))
	if err != nil {
		return nil, err
	}
	if err := s.source.Create(ctx, document); err != nil {
		return nil, err
	}
	return s.source.Read(ctx)
}

// use makes a document that was just read the keys in use.
func (s *Set) use(document []byte) error {
	k, err := parse(document, s.now())
	if err != nil {
		return fmt.Errorf("the key set %s can't be used: %w", s.source, err)
	}
	s.keys.Store(k)
	s.readAt = s.now()
	return nil
}

// SigningKey is the key that signs now, and its id.
func (s *Set) SigningKey() (kid string, key ed25519.PrivateKey) {
	k := s.fresh()
	return k.kid, k.signing
}

// VerificationKey finds a key whose tokens may still be alive. An unknown id is looked for at the source.
func (s *Set) VerificationKey(kid string) (ed25519.PublicKey, bool) {
	if key, ok := s.keys.Load().verifying[kid]; ok {
		return key, true
	}
	key, ok := s.search(func(k *keys) bool { return k.verifying[kid] != nil }).verifying[kid]
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

// Fingerprint tells installations apart by what their data is encrypted with, and no rotation changes it.
// A database that was encrypted under another fingerprint can't be read with these keys.
func (s *Set) Fingerprint() string { return s.keys.Load().fingerprint }

// Document is the whole set, as Open and FromJSON read it: a secret.
func (s *Set) Document() []byte { return bytes.Clone(s.keys.Load().document) }

// Covers reports what of another document is not in this set and still needed, as an error.
func (s *Set) Covers(document []byte) error {
	own, err := decode(s.keys.Load().document)
	if err != nil {
		return err
	}
	other, err := decode(document)
	if err != nil {
		return err
	}
	return own.lacks(other, s.now())
}

// Source names the place where the keys are kept; it is nil for keys that came from elsewhere.
func (s *Set) Source() Source { return s.source }

// maxTries bounds how often a change is tried that others were faster than.
const maxTries = 8

// Rotate adds a signing key, which is published from now on, and used after a while. Once it is, the one before verifies for
// [Retention]; older ones are dropped. Services that run on the same source notice by themselves.
func (s *Set) Rotate(ctx context.Context, now time.Time, after time.Duration) error {
	if s.source == nil {
		return errors.New("these keys were given in the configuration; rotate them where they are kept")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for range maxTries {
		last, err := s.source.Read(ctx)
		if err != nil {
			return err
		}
		next, err := rotated(last, now, after)
		if err != nil {
			return fmt.Errorf("the key set %s can't be rotated: %w", s.source, err)
		}
		replaced, err := s.source.Replace(ctx, last, next)
		if err != nil {
			return err
		}
		if replaced {
			return s.use(next)
		}
	}
	return errors.New("others change the key set at the same time; try again")
}

// fresh returns the keys at the source as it is now.
func (s *Set) fresh() *keys {
	if k := s.keys.Load(); s.source == nil && (k.next.IsZero() || s.now().Before(k.next)) {
		return k
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.source != nil && now.Sub(s.readAt) >= readEvery {
		s.read()
	}
	if k := s.keys.Load(); !k.next.IsZero() && !now.Before(k.next) {
		if next, err := parse(k.document, now); err == nil { // as it was before
			s.keys.Store(next)
		}
	}
	return s.keys.Load()
}

// search returns keys that hold the wanted one, unless there are none or there was too much to search.
func (s *Set) search(holds func(*keys) bool) *keys {
	if s.source == nil {
		return s.keys.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !holds(s.keys.Load()) && s.unknown.AllowN(s.now(), 1) { // else another has just found it
		s.read()
	}
	return s.keys.Load()
}

// read takes up what is at the source now. A document that is gone, broken or of another installation changes
// nothing: a running service keeps the keys that it has.
func (s *Set) read() {
	document, err := s.source.Read(context.Background())
	s.readAt = s.now() // the end of a read that may take its time, so that not everybody reads in turn
	if now := s.keys.Load(); err == nil && !bytes.Equal(document, now.document) {
		var next *keys
		switch next, err = parse(document, s.readAt); {
		case err != nil:
		case next.fingerprint != now.fingerprint:
			err = errors.New("it is that of another installation")
		default:
			s.keys.Store(next)
		}
	}
	if err != nil && !s.failing && s.trouble != nil {
		s.trouble(fmt.Errorf("the key set %s can't be used, and the keys that were read before stay in use: %w", s.source, err))
	}
	s.failing = err != nil
}

// OnTrouble has f called when the source can't be used while the service runs: once, until it can be used again.
func (s *Set) OnTrouble(f func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = f
}

// parse makes keys of a document, as they are used at a moment.
func parse(data []byte, at time.Time) (*keys, error) {
	d, err := decode(data)
	if err != nil {
		return nil, err
	}
	k := &keys{
		document:   data,
		verifying:  map[string]ed25519.PublicKey{},
		refresh:    d.RefreshSecret,
		encrypters: map[string]encrypter{},
	}
	var public jose.JSONWebKeySet
	var from []time.Time
	for _, entry := range d.Signing {
		key := ed25519.NewKeyFromSeed(entry.Seed)
		k.verifying[entry.KID] = ed25519.PublicKey(key[ed25519.SeedSize:])
		public.Keys = append(public.Keys, publicJWK(key.Public()))
		from = append(from, entry.UsedFrom)
	}
	signs, nextSigns := usedAt(at, from)
	k.signing, k.kid = ed25519.NewKeyFromSeed(d.Signing[signs].Seed), d.Signing[signs].KID
	from = nil
	for _, entry := range d.Encryption {
		encrypter, err := newEncrypter(entry.KID, entry.Key)
		if err != nil {
			return nil, err
		}
		k.encrypters[entry.KID] = encrypter
		from = append(from, entry.UsedFrom)
	}
	encrypts, nextEncrypts := usedAt(at, from)
	k.encryption = d.Encryption[encrypts].KID
	if k.next = nextSigns; k.next.IsZero() || !nextEncrypts.IsZero() && nextEncrypts.Before(k.next) {
		k.next = nextEncrypts
	}
	k.jwks, err = json.Marshal(public)
	if err != nil {
		return nil, fmt.Errorf("encode the public keys: %w", err)
	}
	mac := hmac.New(sha256.New, d.Encryption[0].Key)
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
