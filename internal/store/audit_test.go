package store

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What an invariant finds is told even where its query can't tell it; any other trouble ends the audit.
func TestAnInvariantThatCantBeTold(t *testing.T) {
	db, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "bursar.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.reader.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	for query, want := range map[string]struct {
		found []string
		ends  bool
	}{
		`SELECT 'a payout' UNION ALL SELECT NULL`:                                                       {found: []string{"a payout", nameless}},
		`SELECT 'a payout' || SUM(n) FROM (SELECT 9223372036854775807 AS n UNION ALL SELECT 1) AS most`: {found: []string{tooLarge}},
		`SELECT 'a payout' WHERE 1 = 0`:                                                                 {},
		`SELECT 'a payout' FROM thin_air`:                                                               {ends: true},
		`SELECT 'a payout' WHERE json('{')`:                                                             {ends: true},
	} {
		a := auditor{ctx: t.Context(), tx: tx, unreadable: db.dialect.unreadable, overflowed: db.dialect.overflowed}
		found := a.hold(invariant{query: query}).Violations
		if diff := cmp.Diff(want.found, found); diff != "" || (a.err != nil) != want.ends {
			t.Errorf("%s ends with %v (-want +got):\n%s", query, a.err, diff)
		}
	}
}
