package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/bits"

	"bursar/internal/payout"
)

// dialect is all that engines do differently within the shared statements.
type dialect struct {
	// ddl turns a migration's portable DDL into the engine's.
	ddl func(string) string
	// begin is the statements that begin a migration's transaction under a lock that lets one in.
	begin []string
	// forUpdate ends a SELECT whose rows of the named table must not change until the transaction ends.
	forUpdate func(table string) string
	// forShare ends a SELECT of a row that must keep its keys until the transaction ends; others may read it so too.
	forShare func(table string) string
	// arrays says that a statement takes the rows of a group as arrays, one for each column.
	arrays bool
	// skipLocked ends a SELECT of rows to lease, passing over those that another instance is taking.
	skipLocked string
	// historyOrder is what a seller's history is ordered by, in the terms of the index payouts_history.
	historyOrder string
	// firstPage writes a statement that reads the first $1 payouts of a seller, $2, of the given statuses: listColumns, and how
	// many there are in all.
	firstPage func(dialect, []payout.Status) string
	// lastNumber reads the number of the last entry of a journal, $1, that another transaction may be adding to; "" where none can.
	lastNumber string
	// sharePause keeps payouts from being paused or resumed until the transaction ends; others may do so too. lockPause waits
	// until nobody does. Each is "" where one transaction writes at a time.
	sharePause, lockPause string
	// snapshot is the isolation under which all reads of a transaction see the same moment.
	snapshot sql.IsolationLevel
	// readAll prepares a transaction for reading whole tables.
	readAll []string
	// unsound finds what is wrong with the database's file, where it is ours to look after: each row says so
	// in one text column.
	unsound string
	// onlyOwn has the rest of a transaction look up names among the engine's own, whatever was put beside them: its one text column is
	// the argument of the queries below, a line break, what usual takes to undo it, and a last line. "" where there are no others.
	onlyOwn, usual string
	// selfActing finds what changes or hides rows by itself, and changed what else could act on rows or hide them, if there is more: each
	// row names one in one text column.
	selfActing, changed string
	// definitions lists what the tables are made of: each row is one text column, with a name, a line break and the definition.
	definitions string
	// version is the engine's, in one text column.
	version string
	// makeSchema has the migrations make another schema, and lists its definitions.
	makeSchema func(context.Context, *DB) ([]string, error)
	// shortRead fits the context of a read by key to the driver. The function ends the read.
	shortRead func(context.Context) (context.Context, context.CancelFunc)
	// lost says that a statement failed because its connection was gone.
	lost func(error) bool
	// unreadable marks the errors of a read that a later try may not meet.
	unreadable func(error) error
	// overflowed says that a statement failed because a number in it became too large.
	overflowed func(error) bool
	// exists says that a statement would make a table that is there.
	exists func(error) bool
}

// withoutLocks is for transactions that only read one moment: nothing that they have read can change for them.
func (d dialect) withoutLocks() dialect {
	none := func(string) string { return "" }
	d.forUpdate, d.forShare, d.sharePause, d.lockPause, d.lastNumber = none, none, "", "", ""
	return d
}

// oneOf is a condition that a column is one of a list, with the list added to args. An empty list has nothing in it. SQLite
// takes lists of at most 16,384.
func (d dialect) oneOf(args []any, list []string) (string, []any) {
	if d.arrays {
		return fmt.Sprintf("= ANY($%d::text[])", len(args)+1), append(args, list)
	}
	if len(list) == 0 {
		return "IN (NULL)", args
	}
	n := 1 << bits.Len(uint(len(list)-1)) // so that there are few statements to prepare
	for i := range n {
		args = append(args, list[min(i, len(list)-1)])
	}
	return "IN " + parameterRows(1, n), args
}

// pairs is a list of rows c0, c1 by the name of asked.
func (d dialect) pairs(first, second []string) (string, []any) {
	if d.arrays {
		return "unnest($1::text[], $2::text[]) AS asked (c0, c1)", []any{first, second}
	}
	var args []any
	n := 1 << bits.Len(uint(len(first)-1))
	for i := range n {
		i = min(i, len(first)-1)
		args = append(args, first[i], second[i])
	}
	return "(SELECT DISTINCT column1 AS c0, column2 AS c1 FROM (VALUES " + parameterRows(n, 2) + ")) AS asked", args
}

func texts[T ~string](ids []T) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}
