package pgtest

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// ask scans the one value that a query has.
func ask[T any](t *testing.T, at, query string, args ...any) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var answer T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

const tables = `SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'`

func TestNew_DroppedAfterTest(t *testing.T) {
	ServerURL(t) // or skip
	var first, second string
	t.Run("two databases", func(t *testing.T) {
		first, second = New(t), New(t)
		run(t, first, "CREATE TABLE a (n INT)")
		if in, beside := ask[int](t, first, tables), ask[int](t, second, tables); in != 1 || beside != 0 {
			t.Errorf("%d tables in the one, %d in the other; want 1 and 0", in, beside)
		}
	})
	for _, gone := range []string{first, second} {
		if conn, err := pgx.Connect(t.Context(), gone); err == nil {
			t.Error("a database outlived its test")
			_ = conn.Close(t.Context())
		}
	}
}

func TestCopy_KeepsTablesOfOriginal(t *testing.T) {
	original := New(t)
	run(t, original, "CREATE TABLE a (n INT)")
	user, err := pgx.Connect(t.Context(), original) // whose connection is in the way
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close(t.Context())
	copied := Copy(t, original)
	run(t, copied, "CREATE TABLE b (n INT)")
	if in, beside := ask[int](t, copied, tables), ask[int](t, original, tables); in != 2 || beside != 1 {
		t.Errorf("%d tables in the copy, %d in the original; want 2 and 1", in, beside)
	}
}

func TestNew_Concurrent(t *testing.T) {
	ServerURL(t) // or skip
	var askers sync.WaitGroup
	for range 8 {
		askers.Go(func() { New(t) })
	}
	askers.Wait()
}

// verdict is a test that records how it was ended.
type verdict struct {
	testing.TB
	said string
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(args ...any) {
	v.said = "skipped: " + args[0].(error).Error()
	runtime.Goexit()
}

func (v *verdict) Fatal(args ...any) {
	v.said = "failed: " + args[0].(error).Error()
	runtime.Goexit()
}

func TestRefuse_FailsOnlyUnderCI(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped", "0": "skipped", "false": "skipped", "true": "failed", "1": "failed"} {
		t.Setenv("CI", ci)
		v := &verdict{TB: t}
		var asker sync.WaitGroup
		asker.Go(func() { refuse(v, errMissing) })
		asker.Wait()
		if !strings.HasPrefix(v.said, want) || !strings.Contains(v.said, Variable) {
			t.Errorf("with CI=%q the test %s; want it %s, with what to do about it", ci, v.said, want)
		}
	}
}
