package event

import (
	"context"
	"errors"
	"slices"
	"time"

	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// Store keeps the feed.
type Store interface {
	// NumberEvents numbers up to limit queued events, in one transaction with their deliveries to webhook endpoints, and returns
	// them. Others who number wait. With each event that is mailed it calls mailer, in that transaction.
	NumberEvents(ctx context.Context, limit int, now time.Time, newID func(prefix string) string, mailer Mailer) ([]Event, error)
	// Events lists events numbered above a number, in order, up to limit.
	Events(ctx context.Context, after int64, limit int) ([]Event, error)
	// LastEvent is the number of the newest event; 0 before the first.
	LastEvent(ctx context.Context) (int64, error)
	// EntriesAbout lists what an owner's journal says of a subject, oldest first. It fails with [ledger.ErrTampered] if the
	// service did not write all of it.
	EntriesAbout(ctx context.Context, owner, subject string) ([]ledger.Entry, error)
}

// Options are what a Service is made of.
type Options struct {
	Store Store
	Now   func() time.Time
	IDs   id.Source
	// Mailer queues the mails about events; none are if it is nil.
	Mailer Mailer
}

// Mailer queues the mail about an event, in the transaction that numbers it.
type Mailer func(ctx context.Context, tx MailTx, e Event) error

// MailTx queues a mail, and reads what a journal says of what the mail is about.
type MailTx interface {
	mail.Tx
	// EntriesAbout is as in [Store].
	EntriesAbout(ctx context.Context, owner, subject string) ([]ledger.Entry, error)
}

// Service numbers and lists events.
type Service struct{ o Options }

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Now == nil {
		return nil, errors.New("event: a store and a clock are needed")
	}
	return &Service{o}, nil
}

// numberedAtOnce bounds a transaction that numbers: payouts wait for it on SQLite.
const numberedAtOnce = 500

// Number numbers what was committed since, and returns how many events that were, up to a bound.
func (s *Service) Number(ctx context.Context) (int, error) {
	now := s.o.Now()
	newID := func(prefix string) string { return s.o.IDs.New(prefix, now) }
	events, err := s.o.Store.NumberEvents(ctx, numberedAtOnce, now, newID, s.o.Mailer)
	return len(events), err
}

// MaxPage is how many events a page may have.
const MaxPage = 100

// scannedAtOnce bounds how many events are read for a page of certain types, which may be rare.
const scannedAtOnce = 10_000

// After lists events numbered above a number, in order, of certain types or of all where types is empty, up to limit. next is
// where to go on: behind the last that was read, whatever its type. It is after itself where nothing is behind it. After fails
// with [ErrAhead] where the feed ends before.
func (s *Service) After(ctx context.Context, after int64, types []Type, limit int) (found []Event, next int64, err error) {
	limit = min(limit, MaxPage)
	next = after
	for read := 0; read < scannedAtOnce; {
		page, err := s.o.Store.Events(ctx, next, MaxPage)
		if err != nil {
			return nil, after, err
		}
		for _, e := range page {
			next = e.Number
			if len(types) == 0 || slices.Contains(types, e.Type) {
				found = append(found, e)
			}
			if len(found) == limit {
				return found, next, nil
			}
		}
		if read += len(page); len(page) < MaxPage {
			break
		}
	}
	if next == after && after > 0 {
		last, err := s.o.Store.LastEvent(ctx)
		if err == nil && after > last {
			err = ErrAhead
		}
		return nil, after, err
	}
	return found, next, nil
}

// ErrAhead means that a consumer has read events that are not in the feed: the datastore was restored from a backup.
var ErrAhead = fault.New(fault.Conflict, "cursor_ahead",
	"The feed ends before this number, so the database was restored from a backup. Read the feed from 0 again, and compare.")

// EntriesAbout lists what a seller's journal says of a subject, oldest first. It fails with [ledger.ErrTampered] if the
// service did not write all of it.
func (s *Service) EntriesAbout(ctx context.Context, owner, subject string) ([]ledger.Entry, error) {
	return s.o.Store.EntriesAbout(ctx, owner, subject)
}
