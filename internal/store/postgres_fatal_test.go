package store

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
)

// lastWords is a proxy to a PostgreSQL server. When it is armed, it ends the next connection that
// commits, as a server does that is stopped: the COMMIT is done, and then comes a fatal error in the
// server's own language.
type lastWords struct {
	armed atomic.Bool
	words []byte
}

func (l *lastWords) between(t *testing.T, server string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client, server)
		}
	}()
	return listener.Addr().String()
}

func (l *lastWords) serve(client net.Conn, server string) {
	defer client.Close()
	backend, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer backend.Close()
	go func() {
		_, _ = io.Copy(backend, client)
		_ = backend.Close()
	}()
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(backend, head); err != nil {
			return
		}
		body := make([]byte, int(head[1])<<24|int(head[2])<<16|int(head[3])<<8|int(head[4])-4)
		if _, err := io.ReadFull(backend, body); err != nil {
			return
		}
		if _, err := client.Write(slices.Concat(head, body)); err != nil {
			return
		}
		if head[0] == 'C' && string(body) == "COMMIT\x00" && l.armed.CompareAndSwap(true, false) {
			_, _ = client.Write(l.words)
			return
		}
	}
}

func TestCommit_FatalAfterwards_DoneOnce(t *testing.T) {
	for language, fatal := range map[string]string{"English": "FATAL", "Russian": "ВАЖНО"} {
		t.Run(language, func(t *testing.T) {
			words, err := (&pgproto3.ErrorResponse{
				Severity: fatal, SeverityUnlocalized: "FATAL", Code: "57P01", Message: "terminating connection",
			}).Encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			proxy := &lastWords{words: words}
			at, err := url.Parse(pgtest.New(t))
			if err != nil {
				t.Fatal(err)
			}
			at.Host = proxy.between(t, at.Host)
			c := newCrowdAt(t, at.String(), 1)
			c.seller("asha", 1000, bank.StatusVerified)
			if _, err := c.ask(t.Context(), c.handles[0], "asha", "", 100); err != nil {
				t.Fatal(err)
			}
			proxy.armed.Store(true)
			if _, err := c.ask(t.Context(), c.handles[0], "asha", "", 100); err != nil && !errors.Is(err, errOutcomeUnknown) {
				t.Errorf("a request that was committed was answered with %v", err)
			}
			c.wantAvailable("asha", 800)
			proxy.armed.Store(true)
			runs := 0
			err = c.handles[0].Update(t.Context(), func(tx *Tx) error {
				runs++
				_, err := tx.SaveIdempotency(t.Context(), "asha", "key", payout.Idempotency{Refusal: "{}"}, noon)
				return err
			})
			if runs != 1 || (err != nil && !errors.Is(err, errOutcomeUnknown)) {
				t.Errorf("a closure that was committed ran %d times, and was answered with %v", runs, err)
			}
			c.wantCleanLedger()
		})
	}
}

// Another connection keeps one seller's balance locked.
func TestInGroup_LockedBalance_DelaysItsSellerOnly(t *testing.T) {
	url := pgtest.New(t)
	c := newCrowdAt(t, url, 1)
	c.seller("asha", 1000, bank.StatusVerified)
	c.seller("bina", 1000, bank.StatusVerified)
	holder, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(t.Context())
	if _, err := holder.Exec(t.Context(), `BEGIN; SELECT FROM journals WHERE owner = 'asha' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	c.inOneGroup(func() {}, func() { // which waits for both requests to be queued, and not for the answer to this one
		held.Go(func() {
			if _, err := c.ask(t.Context(), c.handles[0], "asha", "", 100); err != nil {
				t.Errorf("the seller whose balance was held: %v", err)
			}
		})
	}, func() {
		if _, err := c.ask(t.Context(), c.handles[0], "bina", "", 100); err != nil {
			t.Errorf("a seller whose balance nobody held: %v", err)
		}
	})
	if _, err := holder.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	held.Wait()
	c.wantAvailable("asha", 900)
	c.wantAvailable("bina", 900)
	c.wantCleanLedger()
}

// TestStatements_LockedRow_DelaysItsOwnOnly has another connection keep one row locked. The statement on it waits for as long as the address
// says; one that comes behind it does not.
func TestStatements_LockedRow_DelaysItsOwnOnly(t *testing.T) {
	url := pgtest.New(t)
	c := newCrowdAt(t, url+"&lock_timeout=60s", 1)
	holder, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(t.Context())
	if _, err := holder.Exec(t.Context(), `INSERT INTO settings (name, value) VALUES ('held', ''), ('free', '')`); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `BEGIN; SELECT FROM settings WHERE name = 'held' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	change := func(name string) error {
		var changed string
		found, err := c.handles[0].statements.one(t.Context(), name, `UPDATE settings SET value = 'changed' WHERE name = $1 RETURNING name`, []any{name}, &changed)
		if err == nil && (!found || changed != name) {
			err = fmt.Errorf("it changed %q, %t", changed, found)
		}
		return err
	}
	held := make(chan error, 1)
	go func() { held <- change("held") }()
	for waits := false; !waits; { // it is in a transaction of its own, behind the holder
		if err := c.handles[0].queryOne(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`, nil, &waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := change("free"); err != nil {
		t.Errorf("the row that nobody held: %v", err)
	}
	select {
	case err := <-held:
		t.Fatalf("the row that was held was changed before it was let go, or its statement failed: %v", err)
	default:
	}
	if _, err := holder.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Errorf("the row that was held: %v", err)
	}
}
