package mail

import (
	"context"
	"time"
)

// Encrypter encrypts and authenticates texts. The context binds a text to its purpose.
type Encrypter interface {
	Encrypt(plaintext, context string) (string, error)
	Decrypt(encrypted, context string) (string, error)
}

// Store keeps mails.
type Store interface {
	// Mail finds a mail by its id.
	Mail(ctx context.Context, id string) (Row, bool, error)
	// LatestMails lists mails, newest first, without their content.
	LatestMails(ctx context.Context, limit int) ([]Row, error)
	InTx(ctx context.Context, fn func(JobTx) error) error
}

// Tx is what a domain's transaction needs to queue a mail in it.
type Tx interface {
	// AddressOf finds a user's e-mail address, if there is such a user. It fails with [ErrAddressTampered] if the service
	// did not write it.
	AddressOf(ctx context.Context, userID string) (string, bool, error)
	InsertMail(ctx context.Context, m Row) error
	// TakeThrottle counts one attempt against a bucket: its virtual time advances by cost from now or from where it is,
	// whichever is later, if that leaves it no further than now+burst. It reports whether the attempt was counted.
	TakeThrottle(ctx context.Context, bucket string, now time.Time, cost, burst time.Duration) (time.Time, bool, error)
	// RefundThrottle takes one attempt back.
	RefundThrottle(ctx context.Context, bucket string, cost time.Duration) error
}

// Queuer queues mails in the transactions of domains, as [Service.Queue] does.
type Queuer interface {
	// Queue reports whether it queued m: over a limit it does not.
	Queue(ctx context.Context, tx Tx, m Mail) (bool, error)
}

// JobTx is what the job that sends mails asks of a transaction.
type JobTx interface {
	// LeaseDueMails leases up to limit mails that are due by now: their due time becomes until, and each counts one more
	// try.
	LeaseDueMails(ctx context.Context, now, until time.Time, limit int) ([]string, error)
	// EndMail takes a queued mail to its end and erases its content. It reports whether the mail was queued.
	EndMail(ctx context.Context, id string, to State, lastError string, now time.Time) (bool, error)
	// DeferMail makes a queued mail due later, if it was not leased again since it had so many tries.
	DeferMail(ctx context.Context, id string, tries int64, due time.Time, lastError string) (bool, error)
	// SweepMails deletes up to limit mails that ended before a time, and returns how many.
	SweepMails(ctx context.Context, before time.Time, limit int) (int64, error)
}

// Composer makes messages of data. It must not fail for [Examples].
type Composer interface {
	Compose(id, to string, created time.Time, d Data) (Message, error)
}

// Transport sends a message. It returns before ctx ends, and fails with [*Rejected] where the mail server will never
// take the message. No error of it may hold any part of the message's body.
type Transport interface {
	Send(ctx context.Context, m Message) error
}
