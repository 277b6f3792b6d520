package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/mail"
	"bursar/internal/store"
)

func (b *bench) queued(id string, due time.Time) mail.Row {
	b.Helper()
	m := mail.Row{
		ID: id, Kind: mail.KindPasswordChanged, User: "usr_a", Masked: "a…@example.com", Content: "encrypted", State: mail.Queued,
		CreatedAt: b.now, GiveUpAt: b.now.Add(48 * time.Hour), DueAt: due,
	}
	b.update(func(tx *store.Tx) error { return tx.InsertMail(b.ctx(), m) })
	return m
}

func (b *bench) mail(id string) mail.Row {
	b.Helper()
	m, found, err := b.db.Mail(b.ctx(), id)
	b.must(err)
	if !found {
		b.Fatalf("%s is not there", id)
	}
	return m
}

func testMails(t *testing.T, b *bench) {
	t.Helper()
	want := b.queued("mai_1", b.now)
	if diff := cmp.Diff(want, b.mail("mai_1")); diff != "" {
		t.Error(diff)
	}
	if _, found, err := b.db.Mail(b.ctx(), "mai_none"); found || err != nil {
		t.Errorf("a mail that was never queued: %t, %v", found, err)
	}
	b.queued("mai_2", b.now.Add(time.Minute))
	if w := b.watch(); !w.MailDue.Equal(b.now) || !w.MailQueued.Equal(b.now) {
		t.Errorf("the watch sees a mail due at %v, queued at %v", w.MailDue, w.MailQueued)
	}
	b.seller("usr_a")
	b.seller("usr_b")
	b.engine.Hands(t, b.db)(`UPDATE users SET email = 'mallory@example.com' WHERE id = 'usr_b'`)
	b.update(func(tx *store.Tx) error {
		if got, _, err := tx.AddressOf(b.ctx(), "usr_b"); !errors.Is(err, mail.ErrAddressTampered) || got != "" {
			t.Errorf("an address that was tampered with: %q, %v", got, err)
		}
		for user, address := range map[string]string{"usr_a": "usr_a@example.com", "usr_none": ""} {
			got, found, err := tx.AddressOf(b.ctx(), user)
			if err != nil || got != address || found != (address != "") {
				t.Errorf("address of %s: %q, %t, %v", user, got, found, err)
			}
		}
		if ended, err := tx.EndMail(b.ctx(), "mai_2", mail.Failed, "550 5.1.1", b.now); err != nil || !ended {
			t.Error(ended, err)
		}
		ended, err := tx.EndMail(b.ctx(), "mai_2", mail.Sent, "", b.now)
		if ended {
			t.Error("a mail ended twice")
		}
		return err
	})
	got := b.mail("mai_2")
	if got.State != mail.Failed || got.Content != "" || got.LastError != "550 5.1.1" || !got.DueAt.IsZero() || !got.EndedAt.Equal(b.now) {
		t.Errorf("given up: %+v", got)
	}
	latest, err := b.db.LatestMails(b.ctx(), 10)
	b.must(err)
	if len(latest) != 2 || latest[0].ID != "mai_2" || latest[1].ID != "mai_1" || latest[1].Content != "" {
		t.Errorf("latest: %+v", latest)
	}
	b.update(func(tx *store.Tx) error {
		if n, err := tx.SweepMails(b.ctx(), b.now, 10); err != nil || n != 0 {
			t.Errorf("swept %d, %v; nothing ended before", n, err)
		}
		n, err := tx.SweepMails(b.ctx(), b.now.Add(time.Second), 10)
		if n != 1 {
			t.Errorf("swept %d, want the one that ended", n)
		}
		return err
	})
}

func testMailLeases(t *testing.T, b *bench) {
	t.Helper()
	const mails = 20
	for i := range mails {
		b.queued(fmt.Sprintf("mai_%02d", i), b.now)
	}
	b.queued("mai_later", b.now.Add(time.Hour))
	until := b.now.Add(time.Minute)
	var taken atomic.Int64
	b.atOnce(8, func(int) error {
		var ids []string
		err := b.db.Update(b.ctx(), func(tx *store.Tx) (err error) {
			ids, err = tx.LeaseDueMails(b.ctx(), b.now, until, 5)
			return err
		})
		taken.Add(int64(len(ids)))
		return err
	})
	if taken.Load() != mails {
		t.Errorf("%d leases of %d mails", taken.Load(), mails)
	}
	if m := b.mail("mai_03"); m.Tries != 1 || !m.DueAt.Equal(until) {
		t.Errorf("leased: %+v", m)
	}
	b.update(func(tx *store.Tx) error {
		for tries, want := range map[int64]bool{0: false, 1: true} {
			deferred, err := tx.DeferMail(b.ctx(), "mai_03", tries, b.now.Add(time.Duration(tries)*time.Hour), "421")
			if err != nil || deferred != want {
				t.Errorf("deferred after %d tries: %t, %v; want %t", tries, deferred, err, want)
			}
		}
		return nil
	})
	if m := b.mail("mai_03"); m.LastError != "421" || !m.DueAt.Equal(b.now.Add(time.Hour)) {
		t.Errorf("deferred: %+v", m)
	}
}
