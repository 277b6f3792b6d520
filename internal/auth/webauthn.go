package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"
)

// relyingParty checks what passkeys sign for one address. All that is known of the library that does it is in this file.
type relyingParty struct{ lib *webauthn.WebAuthn }

// passkeyParameters are the signatures that a passkey may make, the best first. Every authenticator can make one of them.
var passkeyParameters = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// newRelyingParty makes the one of a public address. It returns nil for an address where browsers offer no passkeys. They know
// this machine only as localhost.
func newRelyingParty(address string) (*relyingParty, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("auth: the public address: %w", err)
	}
	host := strings.ToLower(at.Hostname())
	ip, err := netip.ParseAddr(host)
	isIP := err == nil
	switch {
	case host == "localhost" || isIP && ip.Unmap().IsLoopback():
		host = "localhost"
	case isIP || at.Scheme != "https":
		return nil, nil //nolint:nilnil // there is none, and that is no failure
	}
	origin := at.Scheme + "://" + host
	if port := at.Port(); port != "" {
		origin += ":" + port
	}
	lib, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "Bursar", RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		// Password managers answer extensions that were not asked for. None is used here.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil, fmt.Errorf("auth: passkeys of %s: %w", origin, err)
	}
	return &relyingParty{lib}, nil
}

// passkeyKey is what is kept of a passkey, encrypted.
type passkeyKey struct {
	ID         []byte   `json:"id"`
	PublicKey  []byte   `json:"key"` // COSE
	Transports []string `json:"transports,omitempty"`
}

// maxPublicKeyBytes has room for RSA keys of 8192 bits.
const maxPublicKeyBytes = 1200

// passkeyOwner is a user as the library wants one. The user's id is the handle that a passkey keeps and returns.
type passkeyOwner struct {
	user User
	keys []webauthn.Credential
}

func (o passkeyOwner) WebAuthnID() []byte                         { return []byte(o.user.ID) }
func (o passkeyOwner) WebAuthnName() string                       { return o.user.Email }
func (o passkeyOwner) WebAuthnDisplayName() string                { return o.user.Name }
func (o passkeyOwner) WebAuthnCredentials() []webauthn.Credential { return o.keys }

func descriptors(keys []passkeyKey) []protocol.CredentialDescriptor {
	all := make([]protocol.CredentialDescriptor, len(keys))
	for i, k := range keys {
		all[i] = protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: k.ID}
		for _, t := range k.Transports {
			all[i].Transport = append(all[i].Transport, protocol.AuthenticatorTransport(t))
		}
	}
	return all
}

// creationOptions is what navigator.credentials.create takes, for a passkey that alone proves who the user is: it is found
// without a name, and verifies its user.
func (rp *relyingParty) creationOptions(challenge []byte, user User, registered []passkeyKey) (json.RawMessage, error) {
	creation, _, err := rp.lib.BeginRegistration(passkeyOwner{user: user},
		webauthn.WithExclusions(descriptors(registered)),
		webauthn.WithCredentialParameters(passkeyParameters),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{UserVerification: protocol.VerificationRequired}),
		webauthn.WithResidentKeyRequirement(protocol.ResidentKeyRequirementRequired),
		func(o *protocol.PublicKeyCredentialCreationOptions) error {
			o.Challenge, o.Timeout = challenge, int(ChallengeLife.Milliseconds())
			return nil
		},
	)
	if err != nil {
		return nil, fmt.Errorf("options for a new passkey: %w", err)
	}
	return json.Marshal(creation.Response)
}

// requestOptions is what navigator.credentials.get takes. Without keys any passkey may answer.
func (rp *relyingParty) requestOptions(challenge []byte, allowed []passkeyKey) (json.RawMessage, error) {
	request, _, err := rp.lib.BeginDiscoverableLogin(
		webauthn.WithChallenge(challenge),
		webauthn.WithAllowedCredentials(descriptors(allowed)),
		webauthn.WithUserVerification(protocol.VerificationRequired),
		func(o *protocol.PublicKeyCredentialRequestOptions) error {
			o.Timeout = int(ChallengeLife.Milliseconds())
			return nil
		},
	)
	if err != nil {
		return nil, fmt.Errorf("options for a passkey: %w", err)
	}
	return json.Marshal(request.Response)
}

// attestation is what navigator.credentials.create answered.
type attestation struct {
	parsed *protocol.ParsedCredentialCreationData
	// challenge is the one that it says it answers, not checked yet.
	challenge string
}

func parseAttestation(text []byte) (attestation, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(text)
	if err != nil {
		return attestation{}, because(err)
	}
	return attestation{parsed, parsed.Response.CollectedClientData.Challenge}, nil
}

// register checks an attestation whose challenge is ours, and returns the passkey and its signature counter.
func (rp *relyingParty) register(a attestation, user User) (passkeyKey, int64, error) {
	made, err := rp.lib.CreateCredential(passkeyOwner{user: user}, webauthn.SessionData{
		Challenge: a.challenge, UserID: []byte(user.ID),
		UserVerification: protocol.VerificationRequired, CredParams: passkeyParameters,
	}, a.parsed)
	if err != nil {
		return passkeyKey{}, 0, because(err)
	}
	if len(made.PublicKey) > maxPublicKeyBytes {
		return passkeyKey{}, 0, fmt.Errorf("its public key has %d bytes", len(made.PublicKey))
	}
	k := passkeyKey{ID: made.ID, PublicKey: made.PublicKey}
	for _, t := range []protocol.AuthenticatorTransport{protocol.USB, protocol.NFC, protocol.BLE, protocol.SmartCard, protocol.Hybrid, protocol.Internal} {
		if slices.Contains(made.Transport, t) { // others are of no use to a browser
			k.Transports = append(k.Transports, string(t))
		}
	}
	return k, int64(made.Authenticator.SignCount), nil
}

// assertion is what navigator.credentials.get answered.
type assertion struct {
	parsed *protocol.ParsedCredentialAssertionData
	// challenge, key and user are those that it says it is about, not checked yet. The user may be empty.
	challenge string
	key       []byte
	user      string
}

func parseAssertion(text []byte) (assertion, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(text)
	if err != nil {
		return assertion{}, because(err)
	}
	return assertion{parsed, parsed.Response.CollectedClientData.Challenge, parsed.RawID, string(parsed.Response.UserHandle)}, nil
}

// verify checks an assertion whose challenge is ours by a key of the user's with its counter. It returns the new counter; cloned
// says that it did not grow, so that another device may have the same key.
func (rp *relyingParty) verify(a assertion, user User, k passkeyKey, counter int64) (next int64, cloned bool, err error) {
	stored := webauthn.Credential{ID: k.ID, PublicKey: k.PublicKey, Authenticator: webauthn.Authenticator{SignCount: uint32(counter)}}
	// Authenticators are known to change this flag, which by the standard they may not. No rule here depends on it.
	stored.Flags.BackupEligible = a.parsed.Response.AuthenticatorData.Flags.HasBackupEligible()
	found, err := rp.lib.ValidateLogin(passkeyOwner{user, []webauthn.Credential{stored}}, webauthn.SessionData{
		Challenge: a.challenge, UserID: []byte(user.ID), AllowedCredentialIDs: [][]byte{k.ID}, UserVerification: protocol.VerificationRequired,
	}, a.parsed)
	if err != nil {
		return 0, false, because(err)
	}
	return int64(found.Authenticator.SignCount), found.Authenticator.CloneWarning, nil
}

func (k passkeyKey) is(id []byte) bool { return bytes.Equal(k.ID, id) }

// because adds to an error of the library what it says to developers.
func because(err error) error {
	var detailed *protocol.Error
	if errors.As(err, &detailed) && detailed.DevInfo != "" {
		return fmt.Errorf("%w: %s", err, detailed.DevInfo)
	}
	return err
}
