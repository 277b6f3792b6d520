package store_test

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/storetest"
)

// TestAudit_SchemaDamaged_SaysSo renames a column, as a flipped bit in the schema does.
func TestAudit_SchemaDamaged_SaysSo(t *testing.T) {
	place := storetest.NewPlace(t)
	db := place.Open(t)
	place.ByHand(t, `ALTER TABLE webhook_endpoints RENAME COLUMN retry_at TO retry_au`)
	if _, err := db.Audit(t.Context(), storetest.Keys(t)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the audit says %v", err)
	}
}

// What can't be read may be what has to be repaired, so nothing is.
func TestRepair_SchemaDamaged_SaysSo(t *testing.T) {
	place := storetest.NewPlace(t)
	db := place.Open(t)
	place.ByHand(t, `ALTER TABLE sessions RENAME COLUMN methods TO method`)
	if _, err := db.Repair(t.Context(), storetest.Keys(t), "asha", time.Now(), true); err == nil || !strings.Contains(err.Error(), "the table sessions is not as Bursar makes it") {
		t.Errorf("the repair says %v", err)
	}
}

// TestCheckSchema_TableDropped_SaysSo has a table that is not there any more.
func TestCheckSchema_TableDropped_SaysSo(t *testing.T) {
	place := storetest.NewPlace(t)
	db := place.Open(t)
	place.ByHand(t, `DROP TABLE entries`)
	if err := db.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing keeps entries (owner, number) unique") {
		t.Errorf("the check says %v", err)
	}
}
