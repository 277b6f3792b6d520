package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/id"
	"bursar/internal/retry"
)

const (
	idPrefix = "mai_"
	// A mail that is not taken is tried again after firstWait, then after twice as long each time up to longestWait.
	firstWait   = 15 * time.Second
	longestWait = 2 * time.Hour
	// maxTries bounds a mail beside its age: about two days of back-off.
	maxTries = 40
	// sendTimeout bounds one try. The lease is longer than the step around it.
	sendTimeout = 40 * time.Second
	lease       = 90 * time.Second
	// endedKept is how long it can be seen what became of a mail.
	endedKept  = 30 * 24 * time.Hour
	sweepBatch = 500
)

// StepTimeout bounds a step of the job: a try, and the record of how it went.
const StepTimeout = 60 * time.Second

// Outcomes of what is done with a mail, for metrics.
const (
	OutcomeSent       = "sent"
	OutcomeDeferred   = "deferred"
	OutcomeFailed     = "failed"
	OutcomeSuppressed = "suppressed"
)

// Outcomes lists them all.
func Outcomes() []string {
	return []string{OutcomeSent, OutcomeDeferred, OutcomeFailed, OutcomeSuppressed}
}

// Options are what a service is made of.
type Options struct {
	Store Store
	Keys  Encrypter
	// Composer and Transport are for the job that sends. Commands that only queue leave them nil.
	Composer  Composer
	Transport Transport
	Now       func() time.Time
	Logger    *slog.Logger
	// Counted is called with each outcome. It is optional.
	Counted func(outcome string)
	// Jitter spreads the waits between tries. It is optional.
	Jitter func(time.Duration) time.Duration
}

// Service queues mails in the transactions of domains, and sends them. It is safe for concurrent use.
type Service struct{ o Options }

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Keys == nil || o.Now == nil || o.Logger == nil {
		return nil, errors.New("mail: a service needs a store, keys, a clock and a logger")
	}
	if (o.Composer == nil) != (o.Transport == nil) {
		return nil, errors.New("mail: a service that sends needs a composer and a transport")
	}
	if o.Counted == nil {
		o.Counted = func(string) {}
	}
	if o.Jitter == nil {
		o.Jitter = retry.Jitter
	}
	return &Service{o}, nil
}

// Queue adds a mail to the transaction, and reports whether it did: over a limit, to an address that was tampered with, or to a user
// whose account was deleted, there is no mail, and no error, so that the caller's answer tells nothing of the limit. The closure of
// the transaction may run more than once.
func (s *Service) Queue(ctx context.Context, tx Tx, m Mail) (bool, error) {
	r, known := rules[m.Data.Kind()]
	if !known {
		return false, fmt.Errorf("mail: kind %q has no rule", m.Data.Kind())
	}
	if m.To == "" {
		to, found, err := tx.AddressOf(ctx, m.User)
		if errors.Is(err, ErrAddressTampered) { // what the mail is about goes on
			s.suppress(ctx, m, "address was changed outside the service")
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !found || CheckAddress(to) != "" { // the account was deleted
			s.suppress(ctx, m, "the user has no address")
			return false, nil
		}
		m.To = to
	}
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	within, err := take(ctx, tx, now, limitsOf(m, r))
	if err != nil {
		return false, err
	}
	if !within {
		s.suppress(ctx, m, "limit reached")
		return false, nil
	}
	row := Row{
		ID: id.New(idPrefix, now), Kind: m.Data.Kind(), User: m.User, Masked: Mask(m.To),
		State: Queued, CreatedAt: now, GiveUpAt: now.Add(r.maxAge), DueAt: now,
	}
	text, err := encode(m.To, m.Data)
	if err != nil {
		return false, err
	}
	if row.Content, err = s.o.Keys.Encrypt(text, contextOf(row.ID)); err != nil {
		return false, err
	}
	return true, tx.InsertMail(ctx, row)
}

// ErrAddressTampered keeps a mail from an address that the service did not write.
var ErrAddressTampered = errors.New("mail: the user's address was changed outside the service")

func (s *Service) suppress(ctx context.Context, m Mail, reason string) {
	s.o.Counted(OutcomeSuppressed)
	s.o.Logger.WarnContext(ctx, "mail suppressed", slog.String("kind", string(m.Data.Kind())),
		slog.String("user", m.User), slog.String("reason", reason))
}

// contextOf binds an encrypted content to its mail.
func contextOf(id string) string { return "mails|content|" + id }

// LeaseDue leases mails that are due.
func (s *Service) LeaseDue(ctx context.Context, limit int) (ids []string, err error) {
	now := s.o.Now()
	err = s.o.Store.InTx(ctx, func(tx JobTx) error {
		ids, err = tx.LeaseDueMails(ctx, now, now.Add(lease), limit)
		return err
	})
	return ids, err
}

// Step tries once to send a mail that was leased, and records how that went. A crash between the two sends the mail
// again once the lease has run out, under the same Message-ID.
func (s *Service) Step(ctx context.Context, id string) error {
	m, found, err := s.o.Store.Mail(ctx, id)
	if err != nil || !found || m.State != Queued {
		return err
	}
	if problem := s.overdue(m); problem != "" {
		return s.end(ctx, m, Failed, problem)
	}
	err = s.send(ctx, m)
	var rejected *Rejected
	switch {
	case err == nil:
		return s.end(ctx, m, Sent, "")
	case errors.As(err, &rejected):
		return s.end(ctx, m, Failed, rejected.Reason)
	default:
		return s.later(ctx, m, err)
	}
}

// overdue says why a mail is not worth another try, or "".
func (s *Service) overdue(m Row) string {
	var reason string
	switch {
	case !s.o.Now().Before(m.GiveUpAt):
		reason = "too old"
	case m.Tries > maxTries:
		reason = fmt.Sprintf("not taken in %d tries", maxTries)
	default:
		return ""
	}
	if m.LastError != "" {
		reason += "; last error: " + m.LastError
	}
	return reason
}

func (s *Service) send(ctx context.Context, m Row) error {
	text, err := s.o.Keys.Decrypt(m.Content, contextOf(m.ID))
	if err != nil {
		return err
	}
	to, data, err := read(m.Kind, text)
	if err != nil {
		return err
	}
	message, err := s.o.Composer.Compose(m.ID, to, m.CreatedAt, data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return s.o.Transport.Send(ctx, message)
}

// end records that a mail was sent or is given up.
func (s *Service) end(ctx context.Context, m Row, to State, reason string) error {
	ended := false
	err := s.o.Store.InTx(ctx, func(tx JobTx) (err error) {
		ended, err = tx.EndMail(ctx, m.ID, to, reason, s.o.Now())
		return err
	})
	if err != nil || !ended {
		return err
	}
	about := []any{slog.String("mail", m.ID), slog.String("kind", string(m.Kind)), slog.String("user", m.User), slog.Int64("tries", m.Tries)}
	if to == Sent {
		s.o.Counted(OutcomeSent)
		s.o.Logger.InfoContext(ctx, "mail sent", about...)
		return nil
	}
	s.o.Counted(OutcomeFailed)
	s.o.Logger.WarnContext(ctx, "mail given up", append(about, slog.String("reason", reason))...)
	return nil
}

// later makes a mail due again after a while, and returns the failure for the log of the job.
func (s *Service) later(ctx context.Context, m Row, failure error) error {
	wait := s.o.Jitter(retry.Backoff(m.Tries, firstWait, longestWait))
	err := s.o.Store.InTx(ctx, func(tx JobTx) error {
		_, err := tx.DeferMail(ctx, m.ID, m.Tries, s.o.Now().Add(wait), failure.Error())
		return err
	})
	s.o.Counted(OutcomeDeferred)
	return errors.Join(fmt.Errorf("mail %s: %w", m.ID, failure), err)
}

// Latest lists mails, newest first, without what they say.
func (s *Service) Latest(ctx context.Context, limit int) ([]Row, error) {
	return s.o.Store.LatestMails(ctx, limit)
}

// Mail finds a mail by its id, without what it says, and reports whether there is one.
func (s *Service) Mail(ctx context.Context, id string) (Row, bool, error) {
	m, found, err := s.o.Store.Mail(ctx, id)
	m.Content = ""
	return m, found, err
}

// Sweep deletes what became of mails that ended long ago, a batch at most, and returns how many.
func (s *Service) Sweep(ctx context.Context) (n int64, err error) {
	err = s.o.Store.InTx(ctx, func(tx JobTx) error {
		n, err = tx.SweepMails(ctx, s.o.Now().Add(-endedKept), sweepBatch)
		return err
	})
	return n, err
}
