package razorpayx

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/gateway/httpapi"
)

// Webhooks reads the gateway's webhooks. It is safe for concurrent use.
type Webhooks struct {
	secrets []string
}

// NewWebhooks makes a reader for webhooks that are signed with one of the secrets. Events from before
// a change of the secret keep the old one, so both are given for a while.
func NewWebhooks(secrets ...string) (*Webhooks, error) {
	if len(secrets) == 0 || slices.Contains(secrets, "") {
		return nil, errors.New("razorpayx: webhooks need a secret, and none that is empty")
	}
	return &Webhooks{slices.Clone(secrets)}, nil
}

// What may be wrong with a webhook.
var (
	ErrSignature  = fault.New(fault.Unauthenticated, "invalid_signature", "The signature does not match the body.")
	ErrUnreadable = fault.New(fault.Malformed, "invalid_event", "The body is not an event.")
)

// Read checks a webhook's signature and reads what it is about. It fails with [ErrSignature] or
// [ErrUnreadable].
func (w *Webhooks) Read(header http.Header, body []byte) (gateway.Notification, error) {
	if !w.signed(header.Get(SignatureHeader), body) {
		return gateway.Notification{}, ErrSignature
	}
	notification, err := parseEvent(body)
	if err != nil {
		return gateway.Notification{}, err
	}
	notification.EventID = header.Get(EventIDHeader)
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if notification.EventID == "" || len(notification.EventID) > maxEventID || strings.ContainsFunc(notification.EventID, unprintable) {
		sum := sha256.Sum256(body)
		notification.EventID = "sha256_" + hex.EncodeToString(sum[:])
	}
	return notification, nil
}

const maxEventID = 128

func (w *Webhooks) signed(signature string, body []byte) bool {
	match := false
	for _, secret := range w.secrets {
		match = hmac.Equal([]byte(signature), []byte(Sign(secret, body))) || match
	}
	return match
}

// Sign makes a webhook's signature: the lower-case hexadecimal HMAC-SHA256 of the raw body.
func Sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// parseEvent reads an event's body. One about something else than a payout or a validation, such as a
// bank's downtime, is an event all the same.
func parseEvent(body []byte) (gateway.Notification, error) {
	var e Event
	if !json.Valid(body) || httpapi.Decode(body, &e) != nil || e.Event == "" {
		return gateway.Notification{}, ErrUnreadable
	}
	var notification gateway.Notification
	if p := e.Payload.Payout; p != nil {
		notification.Reference = p.Entity.reference()
	}
	if v := e.Payload.Validation; v != nil {
		notification.VerificationID = v.Entity.ID
	}
	return notification, nil
}
