package storetest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"bursar/internal/keyset"
	"bursar/internal/mail"
	"bursar/internal/store"
)

// Mailbox is the mail service over a database, whose mails come to the test.
type Mailbox struct {
	*mail.Service
	t    testing.TB
	mu   sync.Mutex
	data map[string][]mail.Data
}

// NewMailbox makes a mailbox on the clock now.
func NewMailbox(t testing.TB, db *store.DB, keys *keyset.Set, now func() time.Time) *Mailbox {
	t.Helper()
	m := &Mailbox{t: t, data: map[string][]mail.Data{}}
	var err error
	m.Service, err = mail.New(mail.Options{
		Store: db.Mails(), Keys: keys, Composer: m, Transport: m, Now: now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Compose notes what was mailed to whom.
func (m *Mailbox) Compose(id, to string, _ time.Time, d mail.Data) (mail.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data[to] = append(m.data[to], d)
	return mail.Message{ID: id, To: to}, nil
}

// Send takes every message.
func (*Mailbox) Send(context.Context, mail.Message) error { return nil }

// To sends what is due, and lists what was mailed to an address so far.
func (m *Mailbox) To(address string) []mail.Data {
	m.t.Helper()
	for {
		ids, err := m.LeaseDue(m.t.Context(), 100)
		if err != nil {
			m.t.Fatal(err)
		}
		if len(ids) == 0 {
			break
		}
		slices.Sort(ids) // they begin with their time, and PostgreSQL leases them in any order
		for _, id := range ids {
			if err := m.Step(m.t.Context(), id); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]mail.Data(nil), m.data[address]...)
}
