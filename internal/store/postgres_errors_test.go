package store

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestIsLost_WithoutAnAnswer has errors of a connection that PostgreSQL did not send.
func TestIsLost_WithoutAnAnswer(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		err  error
		lost bool
	}{
		{refused, true},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), true},
		{driver.ErrBadConn, true},
		{net.ErrClosed, true},
		{&pgconn.PgError{Severity: "FATAL", Code: "57P01"}, true},
		{&pgconn.PgError{Severity: "ERROR", Code: "23505"}, false},
		{errStorage.Because(refused), false}, // what a caller answered, as after a gateway's lost connection
		{errors.New("prepare: no such thing"), false},
	} {
		if got := isLost(tt.err); got != tt.lost {
			t.Errorf("%v: lost is %t, want %t", tt.err, got, tt.lost)
		}
	}
	if err := postgresUnavailable(refused); !errors.Is(err, errStorage) {
		t.Errorf("a server that can't be reached: %v", err)
	}
}
