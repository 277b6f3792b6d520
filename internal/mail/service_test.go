package mail_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/keyset"
	"bursar/internal/mail"
	"bursar/internal/mail/mailtest"
	"bursar/internal/mail/message"
	"bursar/internal/mail/transport"
	"bursar/internal/store"
	"bursar/internal/storetest"
	"bursar/internal/work"
)

func TestOnPostgres(t *testing.T) { storetest.OnPostgres(t) }

const asha = "asha@example.net"

// post is a mail service on a real store that sends to a real mail server, with a clock that stands still.
type post struct {
	*mail.Service
	t      *testing.T
	server *mailtest.Server
	place  storetest.Place
	db     *store.DB
	keys   *keyset.Set
	log    bytes.Buffer
	logger *slog.Logger

	mu       sync.Mutex
	now      time.Time
	outcomes map[string]int
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{
		t: t, server: mailtest.New(t, mailtest.Setup{}), place: storetest.NewPlace(t), keys: storetest.Keys(t),
		now: time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC), outcomes: map[string]int{},
	}
	p.logger = slog.New(slog.NewTextHandler(&p.log, nil))
	p.db = p.place.Open(t)
	for _, user := range []string{"usr_asha", "usr_ravi"} {
		err := p.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
			address := strings.TrimPrefix(user, "usr_") + "@example.net"
			return tx.InsertUser(t.Context(), auth.User{ID: user, Name: "Somebody", Email: address, Role: auth.Seller, CreatedAt: p.now})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.Service = p.instance(p.db, transport.SMTP{
		Host: p.server.Host, Port: p.server.Port, User: mailtest.User, Password: mailtest.Password, Hello: "example.com", Roots: p.server.Roots,
	})
	return p
}

// instance is a service with a transport of its own.
func (p *post) instance(db *store.DB, to mail.Transport) *mail.Service {
	p.t.Helper()
	templates, err := message.Load("")
	if err != nil {
		p.t.Fatal(err)
	}
	composer, err := message.NewComposer(&netmail.Address{Address: "payouts@example.com"}, "https://pay.example", time.UTC, templates)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := mail.New(mail.Options{
		Store: db.Mails(), Keys: p.keys, Composer: composer, Transport: to, Now: p.clock,
		Logger: p.logger, Counted: p.counted,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *post) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *post) later(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

func (p *post) counted(outcome string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcomes[outcome]++
}

// queue writes a notice to a user, and reports whether one was queued.
func (p *post) queue(user string) bool {
	p.t.Helper()
	queued := false
	err := p.db.Auth().InTx(p.t.Context(), func(tx auth.Tx) (err error) {
		queued, err = p.Queue(p.t.Context(), tx, mail.Mail{User: user, Data: mail.PasswordChanged{Origin: mail.Origin{At: p.clock(), Agent: "Firefox"}}})
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return queued
}

// deliver takes what is due and returns the errors of the steps.
func (p *post) deliver() (failures []error) {
	p.t.Helper()
	ids, err := p.LeaseDue(p.t.Context(), 100)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, id := range ids {
		if err := p.Step(p.t.Context(), id); err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

// only is the one mail that there is.
func (p *post) only() mail.Row {
	p.t.Helper()
	rows, err := p.Latest(p.t.Context(), 10)
	if err != nil || len(rows) != 1 {
		p.t.Fatalf("%d mails, %v", len(rows), err)
	}
	row, _, err := p.db.Mail(p.t.Context(), rows[0].ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return row
}

func TestMailIsSentAndErased(t *testing.T) {
	p := newPost(t)
	p.queue("usr_asha")
	row := p.only()
	if row.Masked != "a…@example.net" || row.Content == "" || strings.Contains(row.Content, asha) {
		t.Errorf("queued: %+v", row)
	}
	if failures := p.deliver(); failures != nil {
		t.Fatal(failures)
	}
	took := p.server.Took()
	if len(took) != 1 || took[0].To != asha || !strings.Contains(took[0].Raw, "Message-ID: <"+row.ID+"@example.com>") {
		t.Fatalf("the server took %+v", took)
	}
	if row := p.only(); row.State != mail.Sent || row.Content != "" || row.Tries != 1 || !row.EndedAt.Equal(p.now) {
		t.Errorf("sent: %+v", row)
	}
	p.later(time.Hour)
	if p.deliver(); len(p.server.Took()) != 1 {
		t.Error("it was sent again")
	}
}

func TestQueue_TransactionFails_NothingQueued(t *testing.T) {
	p := newPost(t)
	undone := errors.New("undone")
	err := p.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		if _, err := p.Queue(t.Context(), tx, mail.Mail{User: "usr_asha", Data: mail.PasswordChanged{}}); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if rows, err := p.Latest(t.Context(), 10); err != nil || len(rows) != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestGreylisting(t *testing.T) {
	p := newPost(t)
	until := p.now.Add(5 * time.Minute)
	p.server.Answer(func(stage mailtest.Stage, to string) error {
		if stage == mailtest.Recipient && to == asha && p.clock().Before(until) {
			return mailtest.Answer(450, [3]int{4, 7, 1}, "greylisted")
		}
		return nil
	})
	p.queue("usr_asha")
	p.queue("usr_ravi")
	if failures := p.deliver(); len(failures) != 1 || !strings.Contains(failures[0].Error(), "450 4.7.1") {
		t.Fatalf("failures: %v", failures)
	}
	if took := p.server.Took(); len(took) != 1 || took[0].To != "ravi@example.net" {
		t.Fatalf("another mail was delayed: %+v", took)
	}
	waits := 0
	for len(p.server.Took()) < 2 {
		if waits++; waits > 100 {
			t.Fatal("it is never sent")
		}
		p.later(30 * time.Second)
		p.deliver()
	}
	if waits < 10 {
		t.Errorf("it was sent after %d waits", waits)
	}
	if p.outcomes[mail.OutcomeDeferred] < 2 || p.outcomes[mail.OutcomeDeferred] > 8 || p.outcomes[mail.OutcomeSent] != 2 {
		t.Errorf("outcomes %v; the back-off has to grow", p.outcomes)
	}
}

func TestStep_UnknownMailbox_GivesUp(t *testing.T) {
	p := newPost(t)
	p.server.Answer(func(stage mailtest.Stage, _ string) error {
		if stage == mailtest.Recipient {
			return mailtest.Answer(550, [3]int{5, 1, 1}, "no such mailbox "+asha)
		}
		return nil
	})
	p.queue("usr_asha")
	if failures := p.deliver(); failures != nil {
		t.Fatal(failures)
	}
	row := p.only()
	if row.State != mail.Failed || row.LastError != "recipient: the mail server answered 550 5.1.1" || row.Content != "" {
		t.Errorf("given up: %+v", row)
	}
	if log := p.log.String(); strings.Contains(log, asha) || strings.Count(log, "mail given up") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// The server takes the message and the connection ends before it answers, so the mail is sent again, as the same
// message.
func TestStep_AnswerLost_RepeatsSameMessage(t *testing.T) {
	p := newPost(t)
	p.server.Answer(func(stage mailtest.Stage, _ string) error {
		if stage == mailtest.Taken && len(p.server.Took()) == 1 {
			return mailtest.ErrCut
		}
		return nil
	})
	p.queue("usr_asha")
	if failures := p.deliver(); len(failures) != 1 {
		t.Fatalf("failures: %v", failures)
	}
	p.later(time.Minute)
	if failures := p.deliver(); failures != nil {
		t.Fatal(failures)
	}
	took := p.server.Took()
	if len(took) != 2 || p.only().State != mail.Sent {
		t.Fatalf("the server took %d, and the mail is %s", len(took), p.only().State)
	}
	id := "Message-ID: <" + p.only().ID
	if !strings.Contains(took[0].Raw, id) || !strings.Contains(took[1].Raw, id) {
		t.Error("a receiver can't tell the repeat")
	}
}

// crashing ends the process, as far as the mail is concerned, when the server has taken the message.
type crashing struct{ mail.Transport }

func (c crashing) Send(ctx context.Context, m mail.Message) error {
	if err := c.Transport.Send(ctx, m); err != nil {
		return err
	}
	panic("killed")
}

func TestStep_CrashAfterSending_SendsAgain(t *testing.T) {
	p := newPost(t)
	p.queue("usr_asha")
	dying := p.instance(p.db, crashing{transport.SMTP{
		Host: p.server.Host, Port: p.server.Port, User: mailtest.User, Password: mailtest.Password, Hello: "example.com", Roots: p.server.Roots,
	}})
	ids, err := dying.LeaseDue(t.Context(), 10)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = dying.Step(t.Context(), ids[0])
	}()
	if p.deliver(); len(p.server.Took()) != 1 {
		t.Fatal("it was taken up while the lease held")
	}
	p.later(2 * time.Minute)
	p.deliver()
	if took := p.server.Took(); len(took) != 2 || p.only().State != mail.Sent || p.only().Tries != 2 {
		t.Errorf("the server took %d, and the mail is %+v", len(took), p.only())
	}
}

// The first worker learns that the server is busy after its lease expired, and must not undo what the second one did.
func TestStep_LeaseExpired_ChangesNothing(t *testing.T) {
	p := newPost(t)
	p.queue("usr_asha")
	slow := make(chan struct{})
	var first sync.Once
	p.server.Answer(func(stage mailtest.Stage, _ string) (err error) {
		if stage == mailtest.Recipient {
			first.Do(func() {
				<-slow
				err = mailtest.Answer(421, [3]int{4, 3, 2}, "busy")
			})
		}
		return err
	})
	ids, err := p.LeaseDue(t.Context(), 1)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	late := make(chan error)
	go func() { late <- p.Step(t.Context(), ids[0]) }()
	mailtest.Eventually(t, "the first worker is at the server", func() bool { return p.server.SignedIn() == 1 })
	p.later(2 * time.Minute)
	again, err := p.LeaseDue(t.Context(), 1)
	if err != nil || len(again) != 1 {
		t.Fatal(again, err)
	}
	close(slow)
	if err := <-late; err == nil {
		t.Fatal("the first worker was not refused")
	}
	if row := p.only(); row.Tries != 2 || !row.DueAt.Equal(p.now.Add(90*time.Second)) {
		t.Errorf("the lease of the second worker is gone: %+v", row)
	}
	if err := p.Step(t.Context(), again[0]); err != nil || p.only().State != mail.Sent {
		t.Errorf("%v, %+v", err, p.only())
	}
}

func TestStep_ServerHangs_RetriesLater(t *testing.T) {
	p := newPost(t)
	host, port := mailtest.Hanging(t)
	hanging := p.instance(p.db, impatient{transport.SMTP{Host: host, Port: port, Hello: "example.com"}})
	p.queue("usr_asha")
	ids, err := hanging.LeaseDue(t.Context(), 1)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	if err := hanging.Step(t.Context(), ids[0]); err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("error = %v", err)
	}
	if row := p.only(); row.State != mail.Queued || !row.DueAt.After(p.now) || row.LastError == "" {
		t.Errorf("the failure is not on record: %+v", row)
	}
}

// impatient waits less than the service does.
type impatient struct{ mail.Transport }

func (i impatient) Send(ctx context.Context, m mail.Message) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("the service sends without a limit of time")
	}
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	return i.Transport.Send(ctx, m)
}

func TestStep_AlwaysDeferred_GivesUp(t *testing.T) {
	p := newPost(t)
	p.server.Answer(func(mailtest.Stage, string) error { return mailtest.Answer(421, [3]int{4, 3, 2}, "closed") })
	p.queue("usr_asha")
	began := p.now
	tries := 0
	for p.only().State == mail.Queued {
		p.later(p.only().DueAt.Sub(p.now))
		if tries += len(p.deliver()); tries > 100 {
			t.Fatal("it is tried for ever")
		}
	}
	row := p.only()
	if row.State != mail.Failed || row.Content != "" || !strings.HasPrefix(row.LastError, "too old; last error: sender: the mail server answered 421 4.3.2") {
		t.Errorf("given up: %+v", row)
	}
	if age := p.now.Sub(began); age < 48*time.Hour || age > 52*time.Hour || tries < 20 || tries > 40 {
		t.Errorf("given up after %s and %d tries", age, tries)
	}
}

func TestStep_FortyExpiredLeases_GivesUp(t *testing.T) {
	p := newPost(t)
	p.queue("usr_asha")
	for range 41 { // leases that nobody comes back from
		if ids, err := p.LeaseDue(t.Context(), 1); err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
		p.later(2 * time.Minute)
	}
	if failures := p.deliver(); failures != nil {
		t.Fatal(failures)
	}
	if row := p.only(); row.State != mail.Failed || !strings.HasPrefix(row.LastError, "not taken in 40 tries") || len(p.server.Took()) > 0 {
		t.Errorf("given up: %+v", row)
	}
}

func TestLeaseDue_TwoInstances_EachMailOnce(t *testing.T) {
	p := newPost(t)
	const mails = 15
	for range mails {
		p.queue("usr_asha")
	}
	other := p.instance(p.place.Open(t), transport.SMTP{
		Host: p.server.Host, Port: p.server.Port, User: mailtest.User, Password: mailtest.Password, Hello: "example.com", Roots: p.server.Roots,
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i, s := range []*mail.Service{p.Service, other} {
		loop := &work.Loop{
			Name: fmt.Sprintf("mails of %d", i), Every: 5 * time.Millisecond, Workers: 4, StepTimeout: mail.StepTimeout,
			Take: work.Each(s.LeaseDue, s.Step), Done: func(string, time.Duration, error) {}, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		}
		running.Go(func() { _ = loop.Run(ctx) })
	}
	mailtest.Eventually(t, "all mails are sent", func() bool {
		rows, err := p.Latest(t.Context(), 100)
		for _, row := range rows {
			if row.State != mail.Sent {
				return false
			}
		}
		return err == nil
	})
	stop()
	running.Wait()
	seen := map[string]bool{}
	for _, m := range p.server.Took() {
		seen[m.Raw[strings.Index(m.Raw, "Message-ID"):][:60]] = true
	}
	if took := len(p.server.Took()); took != mails || len(seen) != mails {
		t.Errorf("%d messages were sent, %d of them different; want %d", took, len(seen), mails)
	}
}

// TestQueue_AddressTampered writes no mail to an address that the service did not write, and does not fail what the mail is
// about.
func TestQueue_AddressTampered(t *testing.T) {
	p := newPost(t)
	p.place.ByHand(t, `UPDATE users SET email = 'mallory@example.net' WHERE id = 'usr_asha'`)
	if p.queue("usr_asha") || p.outcomes[mail.OutcomeSuppressed] != 1 || !strings.Contains(p.log.String(), "changed outside the service") {
		t.Errorf("outcomes %v, log %s; want the mail suppressed", p.outcomes, p.log.String())
	}
	if !p.queue("usr_ravi") {
		t.Error("another user's mail was suppressed")
	}
}

// TestQueue_AccountDeleted writes no mail to somebody who has left.
func TestQueue_AccountDeleted(t *testing.T) {
	p := newPost(t)
	gone := auth.User{ID: "usr_gone", Email: "deleted usr_gone", Role: auth.Buyer, CreatedAt: p.now}
	if err := p.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { return tx.InsertUser(t.Context(), gone) }); err != nil {
		t.Fatal(err)
	}
	for n, user := range []string{"usr_gone", "usr_never"} {
		if p.queue(user) || p.outcomes[mail.OutcomeSuppressed] != n+1 || !strings.Contains(p.log.String(), "has no address") {
			t.Errorf("outcomes %v, log %s; want the mail to %s suppressed", p.outcomes, p.log.String(), user)
		}
	}
}

// TestLimits_Asked has mails that anybody can ask for keep to limits of their own, and keep no notice back.
func TestLimits_Asked(t *testing.T) {
	p := newPost(t)
	ask := func(d mail.Data, first bool) bool {
		t.Helper()
		queued := false
		err := p.db.Auth().InTx(t.Context(), func(tx auth.Tx) (err error) {
			queued, err = p.Queue(t.Context(), tx, mail.Mail{User: "usr_asha", To: "Asha@Example.net", Data: d, First: first})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return queued
	}
	if !ask(mail.VerifyEmail{}, true) || !ask(mail.VerifyEmail{}, false) {
		t.Error("the first mail keeps back the one that is asked for")
	}
	if ask(mail.VerifyEmail{}, false) || !ask(mail.ResetPassword{}, false) {
		t.Error("not each kind is limited to one a minute")
	}
	if !ask(mail.VerifyEmail{Request: mail.Request{Origin: mail.Origin{Address: "203.0.113.7"}}}, false) {
		t.Error("a stranger's mail keeps back one that another address asks for")
	}
	p.later(time.Minute)
	if !ask(mail.VerifyEmail{}, false) {
		t.Error("a minute later there is no mail")
	}
	sent := 0
	for range 10 {
		p.later(time.Minute)
		if ask(mail.ResetPassword{}, false) {
			sent++
		}
	}
	if sent != 4 { // of five an hour
		t.Errorf("%d more within the hour, want 4", sent)
	}
	sent = 5
	for range 12 {
		p.later(2 * time.Hour)
		for range 5 {
			p.later(time.Minute)
			if ask(mail.ResetPassword{}, false) {
				sent++
			}
		}
	}
	if sent < 15 || sent > 20 { // ten at once, and ten a day
		t.Errorf("%d in a day and an hour", sent)
	}
	if !p.queue("usr_asha") {
		t.Error("a notice is kept back")
	}
}

// TestLimits_KeepNoOtherPersonsMailBack uses the limits up that a squatter or a thief can reach. What the owner waits for comes.
func TestLimits_KeepNoOtherPersonsMailBack(t *testing.T) {
	p := newPost(t)
	queue := func(d mail.Data) bool {
		t.Helper()
		queued := false
		err := p.db.Auth().InTx(t.Context(), func(tx auth.Tx) (err error) {
			queued, err = p.Queue(t.Context(), tx, mail.Mail{User: "usr_asha", To: "asha@example.net", Data: d})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return queued
	}
	for _, test := range []struct {
		flood []mail.Data
		owns  mail.Data
	}{
		{[]mail.Data{mail.RegisteredAgain{}, mail.AccountExists{}, mail.VerifyEmail{}, mail.ConfirmEmail{}}, mail.ResetPassword{}},
		{[]mail.Data{mail.PasswordChanged{}, mail.FactorChanged{}, mail.IdentityChanged{}, mail.BankAccountReplaced{}, mail.EmailChanged{}}, mail.FirstFactor{}},
		{[]mail.Data{mail.PasswordChanged{}, mail.FactorChanged{}, mail.IdentityChanged{}, mail.BankAccountReplaced{}, mail.FirstFactor{}}, mail.EmailChanged{}},
	} {
		for range 30 {
			p.later(time.Minute)
			for _, d := range test.flood {
				queue(d)
			}
		}
		if last := test.flood[0]; queue(last) {
			t.Errorf("%s has no limit", last.Kind())
		}
		if !queue(test.owns) {
			t.Errorf("%s is kept back", test.owns.Kind())
		}
	}
}

func TestLimits(t *testing.T) {
	p := newPost(t)
	const perHour, perDay = 20, 60
	sent := 0
	for range perHour + 5 {
		if p.queue("usr_asha") {
			sent++
		}
	}
	if sent != perHour || p.outcomes[mail.OutcomeSuppressed] != 5 || strings.Count(p.log.String(), "mail suppressed") != 5 {
		t.Errorf("%d of %d were queued, outcomes %v; want %d", sent, perHour+5, p.outcomes, perHour)
	}
	if !p.queue("usr_ravi") {
		t.Error("another user's mail was suppressed")
	}
	for range 23 {
		p.later(time.Hour)
		for range perHour {
			if p.queue("usr_asha") {
				sent++
			}
		}
	}
	if sent > 2*perDay || sent < perDay {
		t.Errorf("%d mails in a day; want up to %d, and as many more as the day gives back", sent, perDay)
	}
	// What was refused by the day's limit was not counted against the hour's.
	p.later(24 * time.Hour)
	for i := range perHour {
		if !p.queue("usr_asha") {
			t.Errorf("mail %d of another day was suppressed", i)
		}
	}
	reopened := p.instance(p.place.Open(t), transport.Folder{Path: t.TempDir()})
	err := p.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		queued, err := reopened.Queue(t.Context(), tx, mail.Mail{User: "usr_asha", Data: mail.PasswordChanged{}})
		if queued {
			t.Error("a restart forgives")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	p := newPost(t)
	p.queue("usr_asha")
	p.deliver()
	for _, age := range []time.Duration{0, 30 * 24 * time.Hour} {
		p.later(age)
		if n, err := p.Sweep(t.Context()); err != nil || n != 0 {
			t.Errorf("swept %d, %v", n, err)
		}
	}
	p.later(time.Second)
	if n, err := p.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("swept %d, %v; want the mail that ended a month ago", n, err)
	}
}

func TestMask(t *testing.T) {
	for address, want := range map[string]string{
		"asha@example.net": "a…@example.net", "a@b.example": "a…@b.example", "": "…", "@b.example": "…", "asha": "…", "ā@b.example": "ā…@b.example",
	} {
		if got := mail.Mask(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
