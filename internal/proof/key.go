package proof

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// Key is a public key that signs checkpoints. Its id is its thumbprint (RFC 7638), so a reader who knows the id
// knows the key.
type Key struct {
	ID     string
	Public ed25519.PublicKey
}

// NewKey is a public key with its id.
func NewKey(public ed25519.PublicKey) Key {
	thumbprint := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return Key{base64.RawURLEncoding.EncodeToString(thumbprint[:]), public}
}

// Text is the public key as a JSON Web Key has it, under "x".
func (k Key) Text() string { return base64.RawURLEncoding.EncodeToString(k.Public) }

// ParseKey reads what [Key.Text] writes.
func ParseKey(text string) (Key, error) {
	public, err := decodeText(text, ed25519.PublicKeySize)
	if err != nil {
		return Key{}, fmt.Errorf("a public key: %w", err)
	}
	return NewKey(public), nil
}

// decodeText reads base64 for URLs of so many bytes, which has one way to be written.
func decodeText(text string, size int) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != size || base64.RawURLEncoding.EncodeToString(b) != text {
		return nil, fmt.Errorf("must be %d bytes in base64 for URLs", size)
	}
	return b, nil
}

// Keys are the trusted keys, by id.
type Keys map[string]Key

// ParseKeys reads a JSON Web Key Set, such as the service publishes, and takes the Ed25519 keys in it.
func ParseKeys(jwks []byte) (Keys, error) {
	var set struct {
		Keys []struct {
			Type  string `json:"kty"`
			Curve string `json:"crv"`
			X     string `json:"x"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, errors.New("it is no JSON Web Key Set, such as /.well-known/jwks.json")
	}
	keys := Keys{}
	for _, entry := range set.Keys {
		if entry.Type != "OKP" || entry.Curve != "Ed25519" {
			continue
		}
		key, err := ParseKey(entry.X)
		if err != nil {
			return nil, err
		}
		keys[key.ID] = key
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no Ed25519 key in it")
	}
	return keys, nil
}

// publish writes keys as a JSON Web Key Set.
func publish(keys []Key) ([]byte, error) {
	type jwk struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		Alg   string `json:"alg"`
		Use   string `json:"use"`
		KeyID string `json:"kid"`
		X     string `json:"x"`
	}
	set := struct {
		Keys []jwk `json:"keys"`
	}{[]jwk{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, jwk{"OKP", "Ed25519", "EdDSA", "sig", k.ID, k.Text()})
	}
	return json.Marshal(set)
}
