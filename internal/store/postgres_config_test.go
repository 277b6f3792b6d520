package store

import (
	"strings"
	"testing"
	"time"
)

// A host that accepts connections and does not answer leaves time for the next one within the timeout of the shortest
// read.
func TestPostgresConfig_TimeoutPerHost(t *testing.T) {
	for url, want := range map[string]time.Duration{
		"postgres://a/db":                                        5 * time.Second,
		"postgres://a/db?connect_timeout=2":                      2 * time.Second,
		"postgres://a,b/db?target_session_attrs=read-write":      2500 * time.Millisecond,
		"postgres://a,b/db?connect_timeout=1":                    time.Second,
		"postgres://a,b/db?connect_timeout=10":                   2500 * time.Millisecond,
		"postgres://a:1,a:2/db?sslmode=prefer":                   2500 * time.Millisecond,
		"postgres://a,b,c,d/db?connect_timeout=10&sslmode=allow": 1250 * time.Millisecond,
	} {
		config, _, err := postgresConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		if config.ConnectTimeout != want {
			t.Errorf("%s: a host has %s to answer, want %s", url, config.ConnectTimeout, want)
		}
	}
}

func TestOpenPostgres_InvalidAddress(t *testing.T) {
	db, err := OpenPostgres(t.Context(), "postgres://bursar:secret@a/db?pool_max_conns=1")
	if err == nil || !strings.Contains(err.Error(), "pool_max_conns") || strings.Contains(err.Error(), "secret") || db != nil {
		t.Errorf("it is opened as %v, %v", db, err)
	}
}
