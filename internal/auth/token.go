package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bursar/internal/id"
)

const (
	tokenLife = 7 * 24 * time.Hour
	// maxTokenBytes bounds what is looked at; ours have less than 900.
	maxTokenBytes = 2048
	// clockSkew is how far the clocks of instances may differ.
	clockSkew = time.Minute
	tokenType = "JWT"
)

// claims are what an access token says. Only session, user and times are ever believed: e-mail and
// role are there for clients to read, and the database says what they are now.
type claims struct {
	UserID    string `json:"userId"`
	Email     string `json:"email"`
	Role      Role   `json:"role"`
	IssuedAt  int64  `json:"iat"`
	ExpiresAt int64  `json:"exp"`
	NotBefore int64  `json:"nbf,omitempty"`
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	ID        string `json:"jti"`
	Session   string `json:"sid"`
}

// tokens signs access tokens and checks them.
type tokens struct {
	keys     Keys
	issuer   string
	audience string
	verified *tokenCache
	kept     atomic.Pointer[keptSigner]
}

func newTokens(keys Keys, issuer string) *tokens {
	return &tokens{keys: keys, issuer: issuer, audience: strings.TrimSuffix(issuer, "/") + "/api", verified: newTokenCache()}
}

// sign makes an access token for p.
func (t *tokens) sign(p Principal, now time.Time) (string, error) {
	c := claims{
		UserID: p.UserID, Email: p.Email, Role: p.Role,
		IssuedAt: now.Unix(), ExpiresAt: now.Add(tokenLife).Unix(),
		Issuer: t.issuer, Audience: t.audience,
		ID: id.Random(22), Session: p.Session,
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	kid, signer, err := t.signer()
	if err != nil {
		return "", fmt.Errorf("sign an access token: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign an access token: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err == nil { // it is about to be used here, and its signer need not check the signature
		t.verified.put(sha256.Sum256([]byte(token)), c.verified(kid))
	}
	return token, err
}

// signer makes tokens with the key of the moment; it is kept until the key changes.
func (t *tokens) signer() (string, jose.Signer, error) {
	kid, key := t.keys.SigningKey()
	if kept := t.kept.Load(); kept != nil && kept.kid == kid {
		return kid, kept.signer, nil
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: kid}},
		(&jose.SignerOptions{}).WithType(tokenType))
	if err != nil {
		return "", nil, err
	}
	t.kept.Store(&keptSigner{kid, signer})
	return kid, signer, nil
}

type keptSigner struct {
	kid    string
	signer jose.Signer
}

// check returns what a token says if it is ours and its time is now. It says nothing about the
// session, which may have ended. All that is wrong with a token is [ErrToken], and why, for the log.
func (t *tokens) check(token string, now time.Time) (verifiedToken, error) {
	if token == "" || len(token) > maxTokenBytes {
		return verifiedToken{}, ErrToken
	}
	hash := sha256.Sum256([]byte(token))
	v, cached := t.verified.get(hash)
	if !cached {
		var err error
		v, err = t.verify(token)
		if err != nil {
			return verifiedToken{}, err
		}
	}
	if _, known := t.keys.VerificationKey(v.kid); !known {
		return verifiedToken{}, ErrToken.Because(errors.New("its key was removed"))
	}
	if at := now.Unix(); at >= v.expiresAt || at < v.notBefore {
		return verifiedToken{}, ErrToken.Because(errors.New("it is not valid at this time"))
	}
	if !cached {
		t.verified.put(hash, v)
	}
	return v, nil
}

// verify checks everything about a token but its time.
func (t *tokens) verify(token string) (verifiedToken, error) {
	if !canonical(token) {
		return verifiedToken{}, ErrToken
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return verifiedToken{}, ErrToken.Because(err)
	}
	header := signed.Signatures[0].Protected
	if header.ExtraHeaders[jose.HeaderType] != tokenType || len(header.ExtraHeaders) != 1 ||
		header.JSONWebKey != nil || header.Nonce != "" {
		return verifiedToken{}, ErrToken.Because(errors.New("its header is not one of ours"))
	}
	key, known := t.keys.VerificationKey(header.KeyID)
	if !known {
		return verifiedToken{}, ErrToken.Because(errors.New("its key is not one of ours"))
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return verifiedToken{}, ErrToken.Because(err)
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return verifiedToken{}, ErrToken.Because(err)
	}
	if c.Issuer != t.issuer || c.Audience != t.audience {
		return verifiedToken{}, ErrToken.Because(errors.New("it was made by or for another service"))
	}
	return c.verified(header.KeyID), nil
}

// verified is what remains of claims whose signature, by the key named kid, was checked.
func (c claims) verified(kid string) verifiedToken {
	return verifiedToken{
		session: c.Session, user: c.UserID, kid: kid,
		notBefore: max(c.IssuedAt, c.NotBefore) - int64(clockSkew.Seconds()),
		expiresAt: c.ExpiresAt, // zero, and so in the past, where there is none
	}
}

// canonical reports whether a token is spelt as we spell it. Base64 has several spellings of most
// values, and a token must not have: one changed character makes it another token.
func canonical(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	for _, part := range parts {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || len(raw) == 0 || base64.RawURLEncoding.EncodeToString(raw) != part {
			return false
		}
	}
	return true
}
