package pgtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestKeepWarm has one client after another leave something with a connection. The next has the same process of the server, and finds nothing.
func TestKeepWarm(t *testing.T) {
	database, w, err := keepWarm(New(t))
	if err != nil {
		t.Fatal(err)
	}
	if w == nil {
		t.Skip("the server is on another machine")
	}
	name := nameIn(t, database)
	t.Cleanup(func() { w.drop(name) })
	// visit returns the server's process, and what a client finds there.
	visit := func(statements ...string) (pid int32, found string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		err = conn.QueryRow(t.Context(), `SELECT pg_backend_pid(), concat_ws(' ', current_setting('lock_timeout'),
			(SELECT string_agg(name, ' ') FROM pg_prepared_statements WHERE from_sql), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
			(SELECT string_agg(c, ' ') FROM pg_listening_channels() AS c), to_regclass('notes'))`).Scan(&pid, &found)
		for _, statement := range statements {
			if err == nil {
				_, err = conn.Exec(t.Context(), statement)
			}
		}
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		w.settle(name, 5000)
		return pid, found
	}
	const nothing = "0 0"
	first, found := visit("SET lock_timeout = '7s'", "PREPARE mine AS SELECT 1", "SELECT pg_advisory_lock(7)", "LISTEN news", "CREATE TEMPORARY TABLE notes (n int)")
	if found != nothing {
		t.Errorf("at first there is %q", found)
	}
	if pid, found := visit("BEGIN"); pid != first || found != nothing {
		t.Errorf("process %d after %d, and there is %q", pid, first, found)
	}
	second, _ := visit()
	if second == first {
		t.Error("a connection was kept in a transaction")
	}
	if !slices.Equal(w.kept(name), []int32{second}) {
		t.Errorf("kept are %v, want %d", w.kept(name), second)
	}
	run(t, ServerURL(t), fmt.Sprintf("SELECT pg_terminate_backend(%d, 5000)", second))
	if pid, _ := visit(); pid == second {
		t.Error("it is the connection that the server had ended")
	}
	w.drop(name)
	if kept := w.kept(name); len(kept) > 0 {
		t.Errorf("after all were dropped there are %v", kept)
	}
}
