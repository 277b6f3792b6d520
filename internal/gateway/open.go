package gateway

import (
	"context"
	"net/http"
	"time"

	"bursar/internal/money"
)

// Open makes an adapter's gateway of the operator's settings. Each adapter's package has one.
type Open func(Setup) (Opened, error)

// Setup is what an adapter is opened with.
type Setup struct {
	// Name is what the gateway is called here.
	Name     Name
	Currency money.Currency
	// Settings are the operator's, by the adapter's own names. They hold secrets.
	Settings map[string]string
	// Turn waits until the next request may be made, or fails with [ErrRateLimited]; nil is no limit.
	Turn func(context.Context) error
	// Timeout bounds one request.
	Timeout time.Duration
	Now     func() time.Time
	// Capabilities are what this account offers; nil is all that its gateway documents.
	Capabilities *Capabilities
}

// Opened is a gateway, with what reads its webhooks: nil for a gateway that sends none.
type Opened struct {
	Gateway     Gateway
	ReadWebhook ReadWebhook
	// Account is the number of the account that the gateway pays from; empty where it can't be another one.
	Account string
}

// ReadWebhook checks a message's signature over the raw body and reads what it is about. It fails with a fault of kind
// Unauthenticated on a signature that is not the gateway's.
type ReadWebhook func(header http.Header, body []byte) (Notification, error)

// Notification is what a message is about. It says that something happened, never what: the truth is fetched from the gateway.
// An empty part means that the message is about no such thing.
type Notification struct {
	// Gateway is the one that the message came from. The adapter leaves it empty: package app sets it.
	Gateway Name
	// EventID is the same on every delivery of an event.
	EventID string
	// Reference is ours of the transfer, if it is one of ours.
	Reference      string
	VerificationID string
}
