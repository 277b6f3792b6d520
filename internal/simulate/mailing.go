package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/mail"
	"bursar/internal/mail/message"
)

// mailServer is the mail server that the service sends to. It keeps what it was handed, and answers as the scene says.
type mailServer struct {
	answer func(to string) error // nil takes every mail
	handed []mail.Message
}

// Send takes a mail, or answers otherwise.
func (s *mailServer) Send(_ context.Context, m mail.Message) error {
	s.handed = append(s.handed, m)
	if s.answer == nil {
		return nil
	}
	return s.answer(m.To)
}

// of lists what the server was handed of a mail.
func (s *mailServer) of(id string) (all []mail.Message) {
	for _, m := range s.handed {
		if m.ID == id {
			all = append(all, m)
		}
	}
	return all
}

var errNotTaken = errors.New("the mail server answered 451")

// mailing is an instance's job that sends mails, with a clock that runs ahead.
type mailing struct {
	*mail.Service
	m      *market
	on     *instance
	server *mailServer
	ahead  time.Duration
}

func (g *mailing) now() time.Time { return g.on.now().Add(g.ahead) }

func (m *market) openMailing(on *instance) (*mailing, error) {
	templates, err := message.Load("")
	if err != nil {
		return nil, err
	}
	composer, err := message.NewComposer(&netmail.Address{Address: "payouts@bursar.simulated"}, "http://bursar.simulated", indianTime, templates)
	if err != nil {
		return nil, err
	}
	g := &mailing{m: m, on: on, server: &mailServer{}}
	g.Service, err = mail.New(mail.Options{
		Store: on.db.Mails(), Keys: m.keys, Composer: composer, Transport: g.server, Now: g.now, Logger: m.logger(on.name), Jitter: m.jitter,
	})
	return g, err
}

// checkMailing sends what was queued, and then mails that the server takes at once, late, never, or without an answer. Time passes for the
// mails alone.
func (m *market) checkMailing() {
	on := m.anyInstance()
	if on == nil {
		return
	}
	g, err := m.openMailing(on)
	if !m.assert(mailsSent, err == nil, "", "open the job that sends mails: %v", err) {
		return
	}
	for _, part := range []func(){g.sendQueued, g.checkCourses, g.checkLeases, g.checkLimits, g.checkAsked, g.checkSwept} {
		if m.violation == nil {
			part()
		}
	}
}

// rows lists the latest mails.
func (g *mailing) rows(limit int) []mail.Row {
	rows, err := g.on.db.LatestMails(g.m.ctx, limit)
	g.m.assert(datastoreReadable, err == nil, "", "list the mails: %v", err)
	return rows
}

// allMails is more than a run has, and lately more than are queued within a moment here.
const allMails, lately = 1_000_000, 50

// row finds a mail; one that is not there is a broken promise.
func (g *mailing) row(id string) mail.Row {
	row, found, err := g.on.db.Mail(g.m.ctx, id)
	g.m.assert(mailsSent, err == nil && found, "", "mail %s is not there: %v", id, err)
	return row
}

// take leases what is due and tries to send it, and returns what it leased.
func (g *mailing) take(limit int) []string {
	ids, err := g.LeaseDue(g.m.ctx, limit)
	g.m.assert(mailsSent, err == nil, "", "lease mails: %v", err)
	for _, id := range ids {
		_ = g.Step(g.m.ctx, id) // why the server did not take it
	}
	return ids
}

// sendQueued sends what has been queued since the beginning, the longest due first. What is too old is given up unsent.
func (g *mailing) sendQueued() {
	m := g.m
	queued := g.rows(allMails)
	last := time.Time{}
	for rounds := 0; m.violation == nil; rounds++ {
		due := map[string]time.Time{}
		for _, row := range g.rows(allMails) {
			if row.State == mail.Queued {
				due[row.ID] = row.DueAt
			}
		}
		leased := g.take(max(workers, len(queued)/50))
		if len(leased) == 0 {
			break
		}
		next := last
		for _, id := range leased {
			m.assert(mailsSent, !due[id].Before(last), "", "mail %s, due at %s, was taken after one that was due at %s", id, due[id], last)
			if next.Before(due[id]) {
				next = due[id]
			}
		}
		last = next
		m.assert(nothingSpins, rounds <= len(queued), "", "%d mails were not sent in %d rounds", len(queued), rounds)
	}
	for _, was := range queued {
		if m.violation != nil {
			return
		}
		handed := g.server.of(was.ID)
		if isTooOld := !g.now().Before(was.GiveUpAt); isTooOld || was.State != mail.Queued {
			m.assert(mailsSent, len(handed) == 0 && g.row(was.ID).State == mail.Failed, "", "mail %s was worth sending until %s, and it is %s and was sent %d times", was.ID, was.GiveUpAt, now(g.row(was.ID)), len(handed))
			continue
		}
		m.assert(mailsSent, len(handed) == 1 && mail.Mask(handed[0].To) == was.Masked && g.row(was.ID).State == mail.Sent, "", "mail %s to %s is %s, and the server got %d", was.ID, was.Masked, now(g.row(was.ID)), len(handed))
		g.checkEnded(was.ID)
	}
}

// now is how a mail stands, for people.
func now(row mail.Row) string {
	return fmt.Sprintf("%s after %d tries (%s)", row.State, row.Tries, row.LastError)
}

// checkEnded wants a mail that has ended to keep neither its text nor its address, and never to be taken up again.
func (g *mailing) checkEnded(id string) {
	row := g.row(id)
	g.m.assert(mailsSent, row.Content == "" && row.DueAt.IsZero() && !row.EndedAt.IsZero(), "", "mail %s has ended, and is %+v", id, row)
}

// queue queues a mail to a seller as the service does, and returns its id; "" if there is none.
func (g *mailing) queue(s *seller, data mail.Data) string {
	m, before := g.m, map[string]bool{}
	for _, row := range g.rows(lately) {
		before[row.ID] = true
	}
	queued := false
	err := g.on.db.Auth().InTx(m.ctx, func(tx auth.Tx) (err error) {
		queued, err = g.Queue(m.ctx, tx, mail.Mail{User: s.id, Data: data})
		return err
	})
	m.assert(mailsSent, err == nil, s.id, "queue a mail to %s: %v", s.id, err)
	rows := slices.DeleteFunc(g.rows(lately), func(row mail.Row) bool { return before[row.ID] })
	m.assert(mailsSent, len(rows) == btoi(queued), s.id, "a mail to %s was queued: %t, and there are %d more", s.id, queued, len(rows))
	if len(rows) == 0 {
		return ""
	}
	return rows[0].ID
}

// notice is a mail that nobody can ask for, and is worth sending for two days.
func (g *mailing) notice() mail.Data { return mail.PayoutsFrozen{At: g.now()} }

// course is how the mail server answers the tries of one mail.
type course struct {
	name    string
	answers []error // of each try; the last one of all that follow
	want    mail.State
	tries   int // that end it; 0 for as many as fit in two days
}

// checkCourses plays how the server may answer.
func (g *mailing) checkCourses() {
	rejected := &mail.Rejected{Reason: "550"}
	for _, c := range []course{
		{"taken at once", []error{nil}, mail.Sent, 1},
		{"taken late", []error{errNotTaken, errNotTaken, errNotTaken, nil}, mail.Sent, 4},
		{"taken, and the answer lost", []error{context.DeadlineExceeded, nil}, mail.Sent, 2},
		{"rejected", []error{rejected}, mail.Failed, 1},
		{"rejected at last", []error{errNotTaken, rejected}, mail.Failed, 2},
		{"never taken", []error{errNotTaken}, mail.Failed, 0},
	} {
		if s := g.receiver(); s != nil && g.m.violation == nil {
			g.ahead += 48 * time.Hour // the limits have room again
			g.play(s, c)
		}
	}
}

// receiver finds a seller who still has an address.
func (g *mailing) receiver() *seller {
	for _, s := range g.m.sellers {
		u, _, err := g.on.users.User(g.m.ctx, s.id)
		if err == nil && mail.CheckAddress(u.Email) == "" {
			return s
		}
	}
	return nil
}

// play has the server answer one mail's tries, and holds the waits between them and what was sent against what is documented.
func (g *mailing) play(s *seller, c course) {
	m := g.m
	id := g.queue(s, g.notice())
	if !m.assert(mailsSent, id != "", s.id, "no mail to %s was queued", s.id) {
		return
	}
	created, n := g.now(), 0
	g.server.answer = func(string) error {
		n++
		return c.answers[min(n, len(c.answers))-1]
	}
	defer func() { g.server.answer = nil }()
	wait := 15 * time.Second
	for m.violation == nil {
		tries, began := n, g.now()
		leased := g.take(workers)
		row := g.row(id)
		if row.State != mail.Queued {
			break
		}
		m.assert(mailsSent, slices.Contains(leased, id) && n == tries+1, s.id, "mail %s (%s) was due at %s, and was not tried then", id, c.name, began)
		least, most := wait-wait/5, wait+wait/5+time.Second
		until := row.DueAt.Sub(began)
		m.assert(mailsSent, least-time.Second <= until && until <= most, s.id, "mail %s (%s) was not taken at try %d, and is tried again after %s; it is to be %s, more or less", id, c.name, n, until, wait)
		wait = min(2*wait, 2*time.Hour)
		g.ahead += until - time.Second
		m.assert(mailsSent, !slices.Contains(g.take(workers), id), s.id, "mail %s (%s) was tried again before it was due", id, c.name)
		g.ahead += time.Second
		m.assert(nothingSpins, n < 100, s.id, "mail %s (%s) was tried %d times", id, c.name, n)
	}
	if m.violation != nil {
		return
	}
	row, handed := g.row(id), g.server.of(id)
	m.assert(mailsSent, row.State == c.want && (c.tries == 0 || len(handed) == c.tries), s.id, "mail %s (%s) is %s, and the server was handed it %d times", id, c.name, now(row), len(handed))
	if c.tries == 0 {
		age := g.now().Sub(created)
		m.assert(mailsSent, len(handed) > 20 && 48*time.Hour <= age && age <= 51*time.Hour, s.id, "mail %s (%s) was given up after %s and %d tries", id, c.name, age, len(handed))
	}
	for _, again := range handed {
		m.assert(mailsSent, again.To == handed[0].To && messageID(again) == messageID(handed[0]), s.id, "mail %s was sent to %s as %s, and then to %s as %s", id, handed[0].To, messageID(handed[0]), again.To, messageID(again))
	}
	g.checkEnded(id)
	g.ahead += 72 * time.Hour
	g.take(workers)
	m.assert(mailsSent, len(g.server.of(id)) == len(handed), s.id, "mail %s had ended, and was sent again", id)
}

// messageID is the Message-ID of a message.
func messageID(m mail.Message) string {
	read, err := netmail.ReadMessage(bytes.NewReader(m.Raw))
	if err != nil {
		return err.Error()
	}
	return read.Header.Get("Message-ID")
}

// checkLeases has a worker die that has leased a mail: no other worker gets it for a minute, and one does within two.
func (g *mailing) checkLeases() {
	m, s := g.m, g.receiver()
	if s == nil {
		return
	}
	id := g.queue(s, g.notice())
	ids, err := g.LeaseDue(m.ctx, workers)
	m.assert(mailsSent, err == nil && slices.Equal(ids, []string{id}), s.id, "mail %s is due, and %v were leased: %v", id, ids, err)
	g.ahead += time.Minute
	m.assert(leasesHold, !slices.Contains(g.take(workers), id), s.id, "mail %s was leased a minute ago, and another worker got it", id)
	g.ahead += time.Minute
	g.take(workers)
	m.assert(mailsSent, g.row(id).State == mail.Sent && len(g.server.of(id)) == 1, s.id, "a worker died that had leased mail %s, and two minutes later it is %s", id, now(g.row(id)))
}

// checkLimits queues more notices than a seller may get in an hour, and in a day.
func (g *mailing) checkLimits() {
	s := g.receiver()
	if s == nil {
		return
	}
	g.ahead += 48 * time.Hour
	g.m.assert(mailsSent, g.queueMany(s, 25) == 20, s.id, "of 25 notices within an hour not 20 were queued")
	n := 20
	for range 4 {
		g.ahead += time.Hour + time.Minute
		n += g.queueMany(s, 25)
	}
	// A day's allowance refills while it is used: 60 at once, and one more each 24 minutes.
	g.m.assert(mailsSent, 60 <= n && n <= 73, s.id, "within five hours %d notices were queued", n)
	g.take(1000)
}

func (g *mailing) queueMany(s *seller, n int) (queued int) {
	for range n {
		queued += btoi(g.queue(s, g.notice()) != "")
	}
	return queued
}

// checkAsked queues links that anybody can ask for: one a minute, five an hour. One that is as old as its link is never sent.
func (g *mailing) checkAsked() {
	m, s := g.m, g.receiver()
	if s == nil {
		return
	}
	g.ahead += 48 * time.Hour
	link := func() string {
		return g.queue(s, mail.ResetPassword{Request: mail.Request{Origin: mail.Origin{At: g.now(), Address: "203.0.113.9"}}, Token: "not-a-link"})
	}
	first := link()
	m.assert(mailsSent, first != "" && link() == "", s.id, "two links within a minute, asked for by the same caller: the first was mailed as %q, and the second one too, or neither", first)
	n := 1
	for range 8 {
		g.ahead += 61 * time.Second
		n += btoi(link() != "")
	}
	m.assert(mailsSent, n == 5, s.id, "of 9 links within ten minutes %d were mailed, and at most five an hour are", n)
	g.ahead += time.Hour
	n = len(g.server.handed)
	g.take(workers)
	m.assert(mailsSent, len(g.server.handed) == n && g.row(first).State == mail.Failed, s.id, "a link that is over was mailed, or is still to be: %s", now(g.row(first)))
	m.assert(mailsSent, link() != "", s.id, "five links were asked for more than an hour ago, and no other is mailed")
	g.take(workers)
}

// checkSwept wants what became of mails to be kept for thirty days, and what is queued for as long as it is.
func (g *mailing) checkSwept() {
	m, s := g.m, g.receiver()
	if s == nil {
		return
	}
	kept := g.queue(s, g.notice())
	g.take(workers)
	waits := g.queue(s, g.notice())
	sweep := func() {
		for n := int64(1); n > 0; {
			var err error
			n, err = g.Sweep(m.ctx)
			m.assert(mailsSent, err == nil, "", "sweep the mails: %v", err)
		}
	}
	g.ahead += 29 * 24 * time.Hour
	sweep()
	m.assert(mailsSent, g.row(kept).State == mail.Sent, s.id, "mail %s was sent 29 days ago, and is %s", kept, now(g.row(kept)))
	g.ahead += 2 * 24 * time.Hour
	sweep()
	_, found, err := g.on.db.Mail(m.ctx, kept)
	m.assert(mailsSent, err == nil && !found, s.id, "mail %s was sent 31 days ago, and is still there: %v", kept, err)
	m.assert(mailsSent, g.row(waits).State == mail.Queued, s.id, "mail %s was not sent yet, and is %s after a sweep", waits, now(g.row(waits)))
}
