package store

import (
	"context"
	"database/sql"
)

// dialect is all that engines do differently within the shared statements.
type dialect struct {
	// ddl turns a migration's portable DDL into the engine's.
	ddl func(string) string
	// forUpdate ends a SELECT whose rows must not change until the transaction ends.
	forUpdate string
	// skipLocked ends a SELECT of rows to lease, passing over those that another instance is taking.
	skipLocked string
	// snapshot is the isolation under which all reads of a transaction see the same moment.
	snapshot sql.IsolationLevel
	// shortRead fits the context of a read by key to the driver.
	shortRead func(context.Context) context.Context
}
