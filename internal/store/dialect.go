package store

import (
	"context"
	"database/sql"
)

// dialect is all that engines do differently within the shared statements.
type dialect struct {
	// ddl turns a migration's portable DDL into the engine's.
	ddl func(string) string
	// begin is the statements that begin a migration's transaction under a lock that lets one in.
	begin []string
	// forUpdate ends a SELECT whose rows of the named table must not change until the transaction ends.
	forUpdate func(table string) string
	// skipLocked ends a SELECT of rows to lease, passing over those that another instance is taking.
	skipLocked string
	// historyOrder is what a seller's history is ordered by, in the terms of the index payouts_history.
	historyOrder string
	// moves is the statements that move a balance and its chain.
	moves moves
	// snapshot is the isolation under which all reads of a transaction see the same moment.
	snapshot sql.IsolationLevel
	// readAll prepares a transaction for reading whole tables.
	readAll []string
	// unsound finds what is wrong with the database's file, where it is ours to look after: each row says so
	// in one text column.
	unsound string
	// shortRead fits the context of a read by key to the driver. The function ends the read.
	shortRead func(context.Context) (context.Context, context.CancelFunc)
	// lost says that a statement failed because its connection was gone.
	lost func(error) bool
	// unreadable marks the errors of a read that a later try may not meet.
	unreadable func(error) error
	// overflowed says that a statement failed because a number in it became too large.
	overflowed func(error) bool
}
