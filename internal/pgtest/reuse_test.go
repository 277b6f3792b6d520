package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestReused gives one database to a test after the other: with the template's rows, unless its schema was changed.
func TestReused(t *testing.T) {
	original := New(t)
	run(t, original, `CREATE TABLE owners (id INT PRIMARY KEY)`)
	run(t, original, `CREATE TABLE pets (owner INT REFERENCES owners, place BIGINT GENERATED ALWAYS AS IDENTITY, note TEXT)`)
	run(t, original, `INSERT INTO owners VALUES (1)`)
	run(t, original, `INSERT INTO pets (owner, note) OVERRIDING SYSTEM VALUE VALUES (1, 'it''s')`)
	t.Cleanup(func() { DropReused(t, original) })

	const state = `SELECT concat_ws(' ', (SELECT array_agg(id) FROM owners), (SELECT array_agg((owner, place, note)) FROM pets))`
	former, want := "", ask[string](t, original, state)
	for _, tt := range []struct {
		name, change string
		isKept       bool
	}{
		{"rows deleted", `DELETE FROM pets; DELETE FROM owners`, true},
		{"rows added", `INSERT INTO owners VALUES (2); INSERT INTO pets (owner) VALUES (2)`, true},
		{"a table that is gone again", `CREATE TABLE kept AS SELECT * FROM pets; DROP TABLE kept`, true},
		{"a table more", `CREATE TABLE kept AS SELECT * FROM pets`, false},
		{"a column more", `ALTER TABLE pets ADD age INT`, false},
		{"another default", `ALTER TABLE pets ALTER note SET DEFAULT 'none'`, false},
		{"a key less", `ALTER TABLE pets DROP CONSTRAINT pets_owner_fkey`, false},
		{"an index more", `CREATE INDEX ON pets (note)`, false},
		{"a function", `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`, false},
		{"a trigger turned off", `ALTER TABLE pets DISABLE TRIGGER ALL`, false},
		{"a rule", `CREATE RULE r AS ON DELETE TO pets DO INSTEAD NOTHING`, false},
		{"a row level policy", `ALTER TABLE pets ENABLE ROW LEVEL SECURITY`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Run("first", func(t *testing.T) {
				former = Reused(t, original)
				run(t, former, tt.change)
			})
			now := Reused(t, original)
			if got := ask[string](t, now, state); got != want {
				t.Errorf("rows %s, want %s", got, want)
			}
			if (now == former) != tt.isKept {
				t.Errorf("the same database: %v, want %v", now == former, tt.isKept)
			}
		})
	}
}

// TestReused_StillConnected sends away who stayed in the database, and with them what they had begun to write.
func TestReused_StillConnected(t *testing.T) {
	original := New(t)
	run(t, original, `CREATE TABLE owners (id INT PRIMARY KEY)`)
	t.Cleanup(func() { DropReused(t, original) })
	former := ""
	var stays *pgx.Conn
	t.Run("first", func(t *testing.T) {
		former = Reused(t, original)
		var err error
		if stays, err = pgx.Connect(t.Context(), former); err != nil {
			t.Fatal(err)
		}
		if _, err := stays.Exec(t.Context(), `BEGIN; INSERT INTO owners VALUES (1)`); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := stays.Exec(t.Context(), `COMMIT`); err == nil {
		t.Error("a connection outlived the test")
	}
	if now := Reused(t, original); now != former || ask[int](t, now, `SELECT count(*) FROM owners`) != 0 {
		t.Errorf("another database, or with rows")
	}
}

// TestDropReused leaves none behind.
func TestDropReused(t *testing.T) {
	original := New(t)
	t.Run("used", func(t *testing.T) { Reused(t, original) })
	const count = `SELECT count(*) FROM pg_database WHERE starts_with(datname, current_database() || '_')`
	if before := ask[int](t, original, count); before != 1 {
		t.Errorf("%d databases wait for the next test, want 1", before)
	}
	DropReused(t, original)
	if after := ask[int](t, original, count); after != 0 {
		t.Errorf("%d databases were left", after)
	}
}
