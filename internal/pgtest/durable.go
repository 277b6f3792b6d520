//go:build linux || darwin

package pgtest

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options of a server of a test's own.
type Options struct {
	// Settings are added to the server's configuration, as in postgresql.conf.
	Settings map[string]string
}

// Server is a PostgreSQL server of a test's own, on 127.0.0.1. What it has acknowledged survives its death.
type Server struct {
	Port int

	t      testing.TB
	server *server
}

// StartServer starts a server with a superuser's URL. It ends with the test, even if the test is killed.
func StartServer(t testing.TB, options Options) *Server {
	t.Helper()
	s, err := newServer(ownData(t), options.Settings)
	if err != nil {
		refuse(t, err)
	}
	return begin(t, s)
}

// ownData is a fresh place for the data of a server that this process owns.
func ownData(t testing.TB) string {
	t.Helper()
	data := ""
	err := locked(tempDir(), func(base string) error {
		owner, err := lookUp(os.Getpid())
		if err != nil {
			return err
		}
		dir, err := home(base, owner)
		data = filepath.Join(dir, rand.Text()[:8])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// begin starts a server whose data is there, for as long as the test runs.
func begin(t testing.TB, s *server) *Server {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server on port %d said:\n%s", s.port, s.lastWords())
		}
		if !s.runs() {
			_ = s.start() // a killed server left shared memory behind, which it takes away itself
		}
		s.end(syscall.SIGQUIT)
		_ = os.RemoveAll(s.data) // what is left goes with the owner's home
	})
	if err := s.startAnywhere(); err != nil {
		t.Fatal(err)
	}
	return &Server{Port: s.port, t: t, server: s}
}

// URL is the address of a database on s. With others it names all of them, and means the one that
// takes writes.
func (s *Server) URL(database string, others ...*Server) string {
	u := s.server.url(database)
	for _, other := range others {
		u.Host += "," + other.server.host()
		u.RawQuery = "sslmode=disable&target_session_attrs=read-write"
	}
	return u.String()
}

// Database returns the URL of a fresh, empty database that is dropped when the test ends.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return create(t, s.URL("postgres"), "template0")
}

// Kill ends the server without a word, as a power cut does.
func (s *Server) Kill() { s.server.end(syscall.SIGKILL) }

// Stop ends the server as an administrator does: it tells those who are connected, and tidies up.
func (s *Server) Stop() { s.server.end(syscall.SIGINT) }

// Hang stops the server in its tracks, as a failing disk or hypervisor does: the kernel still takes
// connections for it, and nothing is answered.
func (s *Server) Hang() { s.server.signalAll(syscall.SIGSTOP) }

// Resume lets a server that hangs go on.
func (s *Server) Resume() { s.server.signalAll(syscall.SIGCONT) }

// Start starts a server that was ended, on the same port, and returns once it takes connections.
func (s *Server) Start() {
	s.t.Helper()
	var err error
	for range 10 { // what a killed server leaves behind may take a moment to go
		if err = s.server.start(); err == nil {
			return
		}
		time.Sleep(pause)
	}
	s.t.Fatal(err)
}

// Standby starts a synchronous standby of s: from now on s acknowledges only what the standby has on
// its disk too.
func (s *Server) Standby() *Server {
	s.t.Helper()
	standby := &server{programs: s.server.programs, data: ownData(s.t), password: s.server.password}
	s.copyTo(standby)
	started := begin(s.t, standby)
	s.relyOn(standby)
	return started
}

// Rejoin makes s, which was ended, a synchronous standby of another server: a fresh copy of that one,
// on the port that s had.
func (s *Server) Rejoin(primary *Server) {
	s.t.Helper()
	if err := os.RemoveAll(s.server.data); err != nil {
		s.t.Fatal(err)
	}
	primary.copyTo(s.server)
	s.Start()
	primary.relyOn(s.server)
}

// copyTo copies s while it runs to the data of a server that is to follow it.
func (s *Server) copyTo(standby *server) {
	s.t.Helper()
	conninfo := "host=127.0.0.1 user=" + superuser + " application_name=" + filepath.Base(standby.data)
	err := standby.run("pg_basebackup", "--pgdata="+standby.data, "--dbname="+conninfo, "--port="+strconv.Itoa(s.Port),
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast")
	if err != nil {
		s.t.Fatal(err)
	}
}

// relyOn makes s wait for the standby before it acknowledges anything.
func (s *Server) relyOn(standby *server) {
	s.t.Helper()
	run(s.t, s.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = '"`+filepath.Base(standby.data)+`"'`)
	run(s.t, s.URL("postgres"), `SELECT pg_reload_conf()`)
	s.await(`SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`)
}

// Promote makes a standby take writes, and returns once it does. It waits for no standby of its own,
// because it has none yet.
func (s *Server) Promote() {
	s.t.Helper()
	run(s.t, s.URL("postgres"), `ALTER SYSTEM RESET synchronous_standby_names`)
	s.await(`SELECT pg_promote()`)
	s.await(`SELECT NOT pg_is_in_recovery()`)
}

// await asks the server a question until the answer is yes.
func (s *Server) await(question string) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for range 600 {
		yes := false
		if err := conn.QueryRow(ctx, question).Scan(&yes); err != nil {
			s.t.Fatalf("%s: %v", question, err)
		}
		if yes {
			return
		}
		time.Sleep(pause)
	}
	s.t.Fatalf("%s: the answer stays no", question)
}
