package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"bursar/internal/fault"
	"bursar/internal/id"
)

const (
	serviceKeyPrefix = "bsk_"
	serviceKeyDigits = 40
	maxKeyNameBytes  = 100
)

// CreateServiceKey makes a key for a service of the marketplace. It is shown once: what is stored is
// its hash. It has 238 random bits, so a plain hash is as good as a slow one.
func (s *Service) CreateServiceKey(ctx context.Context, name string) (string, error) {
	if name == "" || len(name) > maxKeyNameBytes {
		return "", fault.Field("name", "must say what the key is for, in 1 to 100 bytes")
	}
	now := s.o.Now()
	key := serviceKeyPrefix + id.Random(serviceKeyDigits)
	keyID := id.New("key_", now)
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		return tx.InsertServiceKey(ctx, keyID, name, hashServiceKey(key), now)
	})
	if err != nil {
		return "", err
	}
	return key, nil
}

// AuthenticateService fails with [ErrServiceKey] unless key is one of ours.
func (s *Service) AuthenticateService(ctx context.Context, key string) error {
	if len(key) != len(serviceKeyPrefix)+serviceKeyDigits || !strings.HasPrefix(key, serviceKeyPrefix) {
		return ErrServiceKey
	}
	exists, err := s.o.Store.ServiceKeyExists(ctx, hashServiceKey(key))
	if err == nil && !exists {
		err = ErrServiceKey
	}
	return err
}

func hashServiceKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
