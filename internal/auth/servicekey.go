package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
)

// ServiceKey is a key of a service of the marketplace, as it is stored: without the key itself.
type ServiceKey struct {
	ID string // prefix [ServiceKeyPrefix]
	// Name says what the key is for. No two keys ever have the same one.
	Name string
	// Hash is the SHA-256 of the key. A key has 238 random bits, so a plain hash is as good as a slow one.
	Hash      string
	CreatedAt time.Time
	// RevokedAt is zero while the key is accepted.
	RevokedAt time.Time
	// UsedOn is the day of the last use, in UTC, such as "2026-11-22"; empty for never.
	UsedOn string
	// Tampered says why the stored key is not what the service wrote, so that it is not accepted. It is empty otherwise.
	Tampered string
}

// Actor names the key in the journal.
func (k ServiceKey) Actor() string { return "key:" + k.ID }

// ServiceKeyPrefix begins the id of a service key.
const ServiceKeyPrefix = "key_"

const (
	serviceKeySecret = "bsk_"
	serviceKeyDigits = 40
	maxKeyNameBytes  = 100
)

// CreateServiceKey makes a key for a service of the marketplace, as actor asked. The key is shown once: only its hash is
// stored. It fails with a fault that names the field at fault, or with [ErrKeyNameTaken].
func (s *Service) CreateServiceKey(ctx context.Context, name, actor string) (string, error) {
	if problem := checkKeyName(name); problem != "" {
		return "", fault.Field("name", problem)
	}
	now := s.o.Now()
	key := serviceKeySecret + id.Random(serviceKeyDigits)
	stored := ServiceKey{
		ID: id.New(ServiceKeyPrefix, now), Name: name, Hash: hashServiceKey(key), CreatedAt: now.UTC().Truncate(time.Microsecond),
	}
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		inserted, err := tx.InsertServiceKey(ctx, stored, actor)
		if err == nil && !inserted {
			err = ErrKeyNameTaken
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return key, nil
}

// checkKeyName returns what is wrong with the name of a key, or "".
func checkKeyName(name string) string {
	switch {
	case name == "" || len(name) > maxKeyNameBytes:
		return "must say what the key is for, in 1 to 100 bytes"
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, isControl):
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

// RevokeServiceKey ends the key with that id or name, as actor asked. It holds from the next request on, on every
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
		key.RevokedAt, key.Tampered = now, ""
		return tx.RevokeServiceKey(ctx, key, actor)
	})
	return key, err
}

// AuthenticateService finds the service key that is presented, or fails with [ErrServiceKey]. It reads the key each
// time, so that a revocation holds from the next request on.
func (s *Service) AuthenticateService(ctx context.Context, key string) (ServiceKey, error) {
	if len(key) != len(serviceKeySecret)+serviceKeyDigits || !strings.HasPrefix(key, serviceKeySecret) {
		return ServiceKey{}, ErrServiceKey
	}
	stored, found, err := s.o.Store.ServiceKey(ctx, hashServiceKey(key))
	if err != nil {
		return ServiceKey{}, err
	}
	if found && stored.Tampered != "" {
		s.tampered(ctx, tamperedServiceKey, slog.String("key_id", stored.ID), slog.String("name", stored.Name), slog.String("problem", stored.Tampered))
	}
	if !found || stored.Tampered != "" || !stored.RevokedAt.IsZero() {
		return ServiceKey{}, ErrServiceKey
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
