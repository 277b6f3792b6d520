// Package onpostgres_test runs the tests of package payout on PostgreSQL. They are many, and go test stops the tests of a package after ten minutes.
package onpostgres_test

import (
	"testing"

	"bursar/internal/storetest"
)

func TestPayoutsOnPostgres(t *testing.T) { storetest.OnPostgresOf(t, "..") }
