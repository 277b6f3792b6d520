package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// TestAudit_SchemaDamaged_SaysSo renames a column, as a flipped bit in the schema does.
func TestAudit_SchemaDamaged_SaysSo(t *testing.T) {
	place := storetest.NewPlace(t)
	db := place.Open(t)
	place.ByHand(t, `ALTER TABLE webhook_endpoints RENAME COLUMN retry_at TO retry_au`)
	report, err := db.Audit(t.Context(), storetest.Keys(t))
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Name != "schema-is-ours" {
		t.Fatalf("the audit finds %+v, %v", report.Findings, err)
	}
	violations := report.Findings[0].Violations
	if last := violations[len(violations)-1].Problem; violations[0].Problem != "the table webhook_endpoints is not as Bursar makes it" ||
		!strings.Contains(last, "nothing else could be checked: ") || !strings.Contains(last, "damaged") {
		t.Errorf("the audit finds %+v", violations)
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
	if err := db.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "the table entries is missing") {
		t.Errorf("the check says %v", err)
	}
}

// TestCheckSchema_TriggerUnderAnotherKind_IsFound writes a trigger into SQLite's schema as another kind of thing. SQLite runs it, or
// does not open the database.
func TestCheckSchema_TriggerUnderAnotherKind_IsFound(t *testing.T) {
	for _, kind := range []string{"TRIGGER", "Trigger", "view", "VIEW", "x"} {
		t.Run(kind, func(t *testing.T) {
			place := storetest.NewPlace(t)
			place.ByHand(t, `PRAGMA writable_schema = 1; INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)
				VALUES ('`+kind+`', 'hidden', 'entries', 0, 'CREATE TRIGGER hidden AFTER INSERT ON entries BEGIN SELECT 1; END')`)
			db, err := store.OpenSQLite(t.Context(), place.Path)
			want := "malformed"
			if err == nil {
				defer db.Close()
				err, want = db.CheckSchema(t.Context()), "the trigger hidden on entries"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("opening and checking it says %v", err)
			}
		})
	}
}

// TestCheckSchema_NewerMigration_IsLetBe goes back to this version after one that made a column. Missing indexes and triggers are found all the same.
func TestCheckSchema_NewerMigration_IsLetBe(t *testing.T) {
	place := storetest.NewPlace(t)
	db := place.Open(t)
	place.ByHand(t, `ALTER TABLE users ADD COLUMN later TEXT NOT NULL DEFAULT ''`)
	if err := db.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "the table users is not as Bursar makes it") {
		t.Errorf("without a migration the check says %v", err)
	}
	place.ByHand(t, `INSERT INTO schema_migrations (name, checksum, applied_at) VALUES ('9999_later.sql', 'x', 1)`)
	if err := db.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	report, err := db.Audit(t.Context(), storetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(report.Findings, func(f ledger.Finding) bool { return f.Name == "schema-is-ours" })
	if found := report.Findings[at].Violations; len(found) != 0 {
		t.Errorf("the audit finds %v", found)
	}
	place.ByHand(t, `DROP INDEX payouts_due`)
	if err := db.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "the index payouts_due is missing") {
		t.Errorf("without an index the check says %v", err)
	}
	place.ByHand(t, `CREATE TRIGGER sly AFTER INSERT ON entries BEGIN SELECT 1; END`)
	if err := db.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "the trigger sly on entries is not Bursar's") {
		t.Errorf("with a trigger the check says %v", err)
	}
}
