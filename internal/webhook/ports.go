package webhook

import (
	"context"
	"time"

	"bursar/internal/event"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// Encrypter encrypts and authenticates texts. The context binds a text to its purpose.
type Encrypter interface {
	Encrypt(plaintext, context string) (string, error)
	Decrypt(encrypted, context string) (string, error)
}

// Sender posts a message once. An error means that there was no answer, and holds neither a secret nor the address. It
// returns within [SendTimeout].
type Sender interface {
	Send(ctx context.Context, m Message) (Answer, error)
}

// Bodies writes an event as it is delivered.
type Bodies func(ctx context.Context, e event.Event) ([]byte, error)

// Store keeps endpoints and deliveries.
type Store interface {
	// Endpoints lists all, the oldest first. One that the service did not write is marked.
	Endpoints(ctx context.Context) ([]Endpoint, error)
	// Endpoint finds one by its id, marked if the service did not write it.
	Endpoint(ctx context.Context, id string) (Endpoint, bool, error)
	// Deliveries lists those that a filter selects, newest first.
	Deliveries(ctx context.Context, f Filter) ([]Delivery, error)
	// Event finds an event of the feed by its id, and Events lists those numbered above a number.
	Event(ctx context.Context, id string) (event.Event, bool, error)
	Events(ctx context.Context, after int64, limit int) ([]event.Event, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is a transaction.
type Tx interface {
	// EndpointForUpdate finds an endpoint and keeps it so until the transaction ends.
	EndpointForUpdate(ctx context.Context, id string) (Endpoint, bool, error)
	// InsertEndpoint adds an endpoint unless its address is taken, and reports whether it did. It fails with [ErrTooMany] if
	// there are [MaxEndpoints].
	InsertEndpoint(ctx context.Context, e Endpoint) (bool, error)
	// SaveEndpoint stores all but the health of an endpoint. It reports whether no other endpoint has its address.
	SaveEndpoint(ctx context.Context, e Endpoint) (bool, error)
	// SaveHealth stores how deliveries go.
	SaveHealth(ctx context.Context, id string, h Health) error
	// DeleteEndpoint removes an endpoint. Its deliveries stay on record until they are swept.
	DeleteEndpoint(ctx context.Context, id string) error
	// Admins lists the ids of all who are admins and not suspended.
	Admins(ctx context.Context) ([]string, error)
	ledger.Appender
	mail.Tx

	// LeaseEndpoints leases up to limit enabled endpoints with deliveries that are due, first those that were leased longest ago.
	LeaseEndpoints(ctx context.Context, now, until time.Time, limit int) ([]Lease, error)
	// EndLease ends a lease, unless it has run out and another was taken.
	EndLease(ctx context.Context, l Lease, now time.Time) error
	// TakeDeliveries counts an attempt of up to limit deliveries of an endpoint that are due, the longest due first, and makes
	// them due again at until.
	TakeDeliveries(ctx context.Context, endpoint string, now, until time.Time, limit int) ([]Delivery, error)
	// SaveAttempt stores how the attempt at a delivery ended, unless a later one was taken or the delivery has ended. If the
	// delivery was made due after it was taken, it stays due unless it was delivered.
	SaveAttempt(ctx context.Context, taken, ended Delivery) error
	// RescheduleDelivery makes a pending delivery due, and reports whether there is one.
	RescheduleDelivery(ctx context.Context, endpoint, eventID string, now time.Time) (bool, error)
	InsertDeliveries(ctx context.Context, all []Delivery) error
	// SweepDeliveries deletes up to limit deliveries made before a time, and returns how many. It keeps what an enabled endpoint
	// has yet to take.
	SweepDeliveries(ctx context.Context, before time.Time, limit int) (int64, error)
}
