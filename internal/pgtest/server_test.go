//go:build linux || darwin

package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// needPrograms skips a test of our own servers where there are none to be had.
func needPrograms(t *testing.T) {
	t.Helper()
	if _, err := findPrograms(); err != nil {
		refuse(t, err)
	}
}

func TestRunServer_Concurrent_OneServer(t *testing.T) {
	needPrograms(t)
	urls := make([]string, 8)
	var askers sync.WaitGroup
	for i := range urls {
		askers.Go(func() {
			var err error
			if urls[i], err = runServer(); err != nil {
				t.Error(err)
			}
		})
	}
	askers.Wait()
	for _, url := range urls {
		if url != urls[0] {
			t.Errorf("one was given %s, another %s", urls[0], url)
		}
	}
}

func TestServer_OwnerEnds_StopsAndCleansUp(t *testing.T) {
	needPrograms(t)
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	owner, err := lookUp(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	var s *server
	err = locked(tempDir(), func(base string) (err error) {
		if dir, err = home(base, owner); err != nil {
			return err
		}
		s, err = newServer(filepath.Join(dir, "data"), nil)
		return err
	})
	if err == nil {
		err = s.startAnywhere()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = sleeper.Wait() // it was killed
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		t.Fatal("the server outlived its owner")
	}
	for range 600 {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(pause)
	}
	t.Error("the home outlived its owner")
}

func TestHome_RemovesDeadOwnersFiles(t *testing.T) {
	self, err := lookUp(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	began := self
	began.began += "0" // another process that had our number
	err = locked(tempDir(), func(base string) error {
		left := filepath.Join(base, began.name(), "run")
		if err := os.MkdirAll(left, 0o700); err != nil {
			return err
		}
		ours, err := home(base, self)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Dir(left)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what a dead process left is still there: %v", err)
		}
		again, err := home(base, self)
		if _, statErr := os.Stat(ours); again != ours || statErr != nil {
			t.Errorf("the home moved from %s to %s, %v", ours, again, statErr)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestServer_Killed_KeepsCommits(t *testing.T) {
	s := StartServer(t, Options{Settings: map[string]string{"max_connections": "20"}})
	if got := ask[string](t, s.URL("postgres"), "SHOW max_connections"); got != "20" {
		t.Errorf("max_connections is %s, want 20", got)
	}
	run(t, s.URL("postgres"), "CREATE TABLE a (n INT)")
	s.Kill()
	if conn, err := pgx.Connect(t.Context(), s.URL("postgres")); err == nil {
		t.Error("a killed server answers")
		_ = conn.Close(t.Context())
	}
	s.Start()
	if n := ask[int](t, s.URL("postgres"), tables); n != 1 {
		t.Errorf("%d tables survived, want 1", n)
	}
	s.Stop()
	s.Start()
	if n := ask[int](t, s.URL("postgres"), tables); n != 1 {
		t.Errorf("%d tables survived, want 1", n)
	}
}

func TestStandby_Promoted_TakesWrites(t *testing.T) {
	primary := StartServer(t, Options{})
	standby := primary.Standby()
	both := primary.URL("postgres", standby)
	run(t, both, "CREATE TABLE a (n INT)")
	primary.Kill()
	if conn, err := pgx.Connect(t.Context(), both); err == nil {
		t.Error("a standby takes writes")
		_ = conn.Close(t.Context())
	}
	standby.Promote()
	run(t, both, "INSERT INTO a VALUES (1)")
	if n := ask[int](t, standby.URL("postgres"), "SELECT COUNT(*) FROM a"); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
	primary.Rejoin(standby)
	run(t, both, "INSERT INTO a VALUES (2)")
	standby.Hang()
	primary.Promote()
	if n := ask[int](t, primary.URL("postgres"), "SELECT COUNT(*) FROM a"); n != 2 {
		t.Errorf("%d rows after the return, want 2", n)
	}
	run(t, primary.URL("postgres"), "INSERT INTO a VALUES (3)")
	standby.Resume()
	if n := ask[int](t, standby.URL("postgres"), "SELECT COUNT(*) FROM a"); n != 2 {
		t.Errorf("%d rows where it hung, want 2", n)
	}
}
