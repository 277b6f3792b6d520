package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
)

// Scope is something that a service key may do.
type Scope string

// The scopes.
const (
	ScopeSellersRead   Scope = "sellers:read"
	ScopeSellersWrite  Scope = "sellers:write"
	ScopeSalesWrite    Scope = "sales:write"
	ScopeBalancesRead  Scope = "balances:read"
	ScopePayoutsRead   Scope = "payouts:read"
	ScopePayoutsWrite  Scope = "payouts:write"
	ScopeEventsRead    Scope = "events:read"
	ScopeWebhooksWrite Scope = "webhooks:write"
	ScopeImportWrite   Scope = "import:write"
)

// Scopes is a set of scopes, in the order of [AllScopes] and separated by spaces.
type Scopes string

// AllScopes is every scope there is.
func AllScopes() Scopes {
	return scopesOf([]Scope{
		ScopeSellersRead, ScopeSellersWrite, ScopeSalesWrite, ScopeBalancesRead, ScopePayoutsRead, ScopePayoutsWrite,
		ScopeEventsRead, ScopeWebhooksWrite, ScopeImportWrite,
	})
}

// ParseScopes reads a set of scopes; none is all. It fails with a fault that names the field.
func ParseScopes(names []string) (Scopes, error) {
	if len(names) == 0 {
		return AllScopes(), nil
	}
	for _, name := range names {
		if !AllScopes().Has(Scope(name)) {
			return "", fault.Field("scopes", "must be among "+strings.Join(AllScopes().List(), ", "))
		}
	}
	var wanted []Scope
	for _, name := range AllScopes().List() {
		if slices.Contains(names, name) {
			wanted = append(wanted, Scope(name))
		}
	}
	return scopesOf(wanted), nil
}

func scopesOf(list []Scope) Scopes {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return Scopes(strings.Join(names, " "))
}

// List is the names of the scopes.
func (s Scopes) List() []string { return strings.Fields(string(s)) }

// Has reports whether scope is in the set.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s.List(), string(scope)) }

// ServiceKey is a key of a service of the marketplace, as it is stored: without the key itself.
type ServiceKey struct {
	ID string // prefix [ServiceKeyPrefix]
	// Name says what the key is for. No two keys ever have the same one.
	Name string
	// Hash is the SHA-256 of the key. A key has 238 random bits, so a plain hash is as good as a slow one.
	Hash string
	// Scopes is what the key may do.
	Scopes    Scopes
	CreatedAt time.Time
	// ExpiresAt is zero for a key that does not expire.
	ExpiresAt time.Time
	// RevokedAt is zero while the key is accepted.
	RevokedAt time.Time
	// Rotations is how often the key was replaced by a new one under the same id.
	Rotations int64
	// UsedOn is the day of the last use, in UTC, such as "2026-11-22"; empty for never.
	UsedOn string
	// RotatedUntil is until when one that it was before a rotation is accepted, too; zero for none.
	RotatedUntil time.Time
	// Tampered says why the stored key is not what the service wrote, so that it is not accepted. It is empty otherwise.
	Tampered string
}

// Status says whether a key is accepted: "active", "expired", "revoked", or "invalid" where the service did not write it.
func (k ServiceKey) Status(now time.Time) string {
	switch {
	case k.Tampered != "":
		return "invalid"
	case !k.RevokedAt.IsZero():
		return "revoked"
	case k.expired(now):
		return "expired"
	default:
		return "active"
	}
}

func (k ServiceKey) expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}

// RotatedServiceKey is what a key was before it was rotated, which is accepted until then.
type RotatedServiceKey struct {
	Hash, KeyID string
	Until       time.Time
}

// NewServiceKey says what key to make.
type NewServiceKey struct {
	Name string
	// Scopes are names; none is all.
	Scopes []string
	// ExpiresAt is zero for a key that does not expire.
	ExpiresAt time.Time
}

// Actor names the key in the journal.
func (k ServiceKey) Actor() string { return ledger.ActorKey + k.ID }

// ServiceKeyPrefix begins the id of a service key.
const ServiceKeyPrefix = "key_"

const (
	serviceKeySecret = "bsk_"
	serviceKeyDigits = 40
	maxKeyNameBytes  = 100
	// maxRotated bounds how many that a key was before are accepted at once.
	maxRotated = 20
	// MaxRotationGrace bounds for how long a key is accepted after it was rotated.
	MaxRotationGrace = 30 * 24 * time.Hour
)

// IsServiceKey reports whether a text has the form in which service keys begin.
func IsServiceKey(text string) bool { return strings.HasPrefix(text, serviceKeySecret) }

// CreateServiceKey makes a key for a service of the marketplace, as actor asked. The key is shown once: only its hash is
// stored. It fails with a fault that names the field at fault, or with [ErrKeyNameTaken].
func (s *Service) CreateServiceKey(ctx context.Context, n NewServiceKey, actor string) (string, ServiceKey, error) {
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	stored, err := newServiceKey(n, now)
	if err != nil {
		return "", ServiceKey{}, err
	}
	key := serviceKeySecret + id.Random(serviceKeyDigits)
	stored.Hash = hashServiceKey(key)
	err = s.o.Store.InTx(ctx, func(tx Tx) error {
		inserted, err := tx.InsertServiceKey(ctx, stored, actor)
		if err == nil && !inserted {
			err = ErrKeyNameTaken
		}
		return err
	})
	if err != nil {
		return "", ServiceKey{}, err
	}
	return key, stored, nil
}

func newServiceKey(n NewServiceKey, now time.Time) (ServiceKey, error) {
	problems := map[string]string{}
	if problem := CheckKeyName(n.Name); problem != "" {
		problems["name"] = problem
	}
	scopes, err := ParseScopes(n.Scopes)
	if f := fault.From(err); f != nil {
		maps.Copy(problems, f.Details)
	}
	expires := n.ExpiresAt
	if !expires.IsZero() {
		if expires = expires.UTC().Truncate(time.Microsecond); !expires.After(now) {
			problems["expiresAt"] = "must be in the future"
		}
	}
	if len(problems) > 0 {
		return ServiceKey{}, fault.Fields(fault.Invalid, problems)
	}
	return ServiceKey{ID: id.New(ServiceKeyPrefix, now), Name: n.Name, Scopes: scopes, CreatedAt: now, ExpiresAt: expires}, nil
}

// RotateServiceKey replaces the key with that id or name by a new one, as actor asked: the same id, name and scopes, and
// another secret, which is shown once. What the key was before is accepted until the grace ends, and what it was before
// that until then at the latest. It fails with [ErrKeyNotFound], [ErrKeyNotActive] or [ErrKeyRotations].
//
// An answer that is lost leaves a new key that nobody has. To rotate again is safe: the key in use has a grace of its own.
func (s *Service) RotateServiceKey(ctx context.Context, idOrName string, grace time.Duration, actor string) (string, ServiceKey, error) {
	if grace < 0 || grace > MaxRotationGrace {
		return "", ServiceKey{}, fault.Field("graceSeconds", "must be from 0 to 2592000, which is 30 days")
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	secret := serviceKeySecret + id.Random(serviceKeyDigits)
	var key ServiceKey
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		var found bool
		key, found, err = tx.ServiceKeyForUpdate(ctx, idOrName)
		if err != nil {
			return err
		}
		if !found {
			return ErrKeyNotFound
		}
		if status := key.Status(now); status != "active" {
			return ErrKeyNotActive.WithMessage("This key is %s, so it can't be rotated. Create another one.", status)
		}
		return s.rotate(ctx, tx, &key, secret, now, now.Add(grace), actor)
	})
	if err != nil {
		return "", ServiceKey{}, err
	}
	return secret, key, nil
}

// rotate stores the hash of another secret for the key, which is accepted as it was until then.
func (s *Service) rotate(ctx context.Context, tx Tx, key *ServiceKey, secret string, now, until time.Time, actor string) error {
	before, err := tx.RotatedServiceKeys(ctx, *key)
	if errors.Is(err, ErrTampered) {
		return ErrKeyNotActive.WithMessage("What this key was before a rotation was changed outside Bursar, so it can't be rotated. Revoke it and create another one.")
	}
	if err != nil {
		return err
	}
	kept := []RotatedServiceKey{{key.Hash, key.ID, until}}
	for _, r := range before {
		if r.Until.After(until) {
			r.Until = until
		}
		kept = append(kept, r)
	}
	kept = slices.DeleteFunc(kept, func(r RotatedServiceKey) bool { return !r.Until.After(now) })
	if len(kept) > maxRotated {
		return ErrKeyRotations
	}
	if !until.After(now) { // a key that leaked, as it seems
		if err := endLinksOfKey(ctx, tx, key.ID, now); err != nil {
			return err
		}
	}
	key.Hash, key.RotatedUntil = hashServiceKey(secret), time.Time{}
	key.Rotations++
	for _, r := range kept {
		if r.Until.After(key.RotatedUntil) {
			key.RotatedUntil = r.Until
		}
	}
	return tx.RotateServiceKey(ctx, *key, kept, now, actor)
}

// CheckKeyName returns what is wrong with the name of a key, or "".
func CheckKeyName(name string) string {
	switch {
	case name == "" || len(name) > maxKeyNameBytes:
		return "must say what the key is for, in 1 to 100 bytes"
	case strings.TrimSpace(name) != name || !utf8.ValidString(name) || strings.ContainsFunc(name, limits.IsControl):
		return "must not begin or end with a space, and must not contain control characters"
	case strings.HasPrefix(name, ServiceKeyPrefix):
		return "must not begin with key_, as ids do"
	default:
		return ""
	}
}

// ServiceKeys lists all keys, the oldest first, with those that were revoked.
func (s *Service) ServiceKeys(ctx context.Context) ([]ServiceKey, error) {
	return s.o.Store.ServiceKeys(ctx)
}

// RevokeServiceKey ends the key with that id or name, as actor asked, and the sessions that its links opened. It holds from the next request on, on every
// instance. To revoke a key again changes nothing. A key that the service did not store is revoked too, so that its
// row can stay as evidence. It fails with [ErrKeyNotFound].
func (s *Service) RevokeServiceKey(ctx context.Context, idOrName, actor string) (ServiceKey, error) {
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	var key ServiceKey
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		var found bool
		key, found, err = tx.ServiceKeyForUpdate(ctx, idOrName)
		if err != nil {
			return err
		}
		if !found {
			return ErrKeyNotFound
		}
		if !key.RevokedAt.IsZero() && key.Tampered == "" {
			return nil
		}
		if err := endLinksOfKey(ctx, tx, key.ID, now); err != nil {
			return err
		}
		key.RevokedAt, key.Tampered = now, ""
		return tx.RevokeServiceKey(ctx, key, actor)
	})
	return key, err
}

// RequireScope fails with [ErrScope], which names the scope, unless the key has it.
func (k ServiceKey) RequireScope(scope Scope) error {
	if k.Scopes.Has(scope) {
		return nil
	}
	f := ErrScope.WithMessage("This service key lacks the scope %s. Create one that has it.", scope)
	f.Details = map[string]string{"scope": string(scope)}
	return f
}

// AuthenticateService finds the service key that is presented, or fails with [ErrServiceKey]. It reads the key each
// time, so that a revocation holds from the next request on.
func (s *Service) AuthenticateService(ctx context.Context, key string) (ServiceKey, error) {
	if len(key) != len(serviceKeySecret)+serviceKeyDigits || !strings.HasPrefix(key, serviceKeySecret) {
		return ServiceKey{}, ErrServiceKey
	}
	now := s.o.Now()
	stored, found, err := s.o.Store.ServiceKey(ctx, hashServiceKey(key), now)
	if err != nil {
		return ServiceKey{}, err
	}
	if found && stored.Tampered != "" {
		s.tampered(ctx, tamperedServiceKey, slog.String("key_id", stored.ID), slog.String("name", stored.Name), slog.String("problem", stored.Tampered))
	}
	if !found || stored.Tampered != "" || !stored.RevokedAt.IsZero() {
		return ServiceKey{}, ErrServiceKey
	}
	if stored.expired(now) {
		return ServiceKey{}, ErrServiceKey.WithMessage("This service key expired at %s. Create another one.", stored.ExpiresAt.Format(time.RFC3339))
	}
	s.markUsed(ctx, stored)
	return stored, nil
}

// markUsed stores that a key was used today, once a day. A failure is no reason to refuse the request.
func (s *Service) markUsed(ctx context.Context, k ServiceKey) {
	today := s.o.Now().UTC().Format(time.DateOnly)
	if k.UsedOn >= today {
		return
	}
	if err := s.o.Store.InTx(ctx, func(tx Tx) error { return tx.MarkServiceKeyUsed(ctx, k.ID, today) }); err != nil {
		s.o.Logger.WarnContext(ctx, "service key's last use not stored", slog.String("key_id", k.ID), slog.Any("error", err))
	}
}

func hashServiceKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
