package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// leftBehind is the database and its log as a killed process leaves them, and how long the log was after each
// commit. The last one made x/9.
func leftBehind(t *testing.T) (database, log []byte, commits []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bursar.db")
	db, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range 10 {
		if err := db.Update(t.Context(), put(t.Context(), "x/"+string(rune('0'+n)), "y")); err != nil {
			t.Fatal(err)
		}
		commits = append(commits, len(read(t, path+"-wal")))
	}
	return read(t, path), read(t, path+"-wal"), commits
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOpenSQLite_DamagedLog_OnlyTornTailAccepted(t *testing.T) {
	database, whole, commits := leftBehind(t)
	flipped := func(at int) []byte {
		log := slices.Clone(whole)
		log[at] ^= 4
		return log
	}
	for name, test := range map[string]struct {
		log     []byte
		keeps   int // commits
		refused bool
	}{
		"whole":                         {whole, 10, false},
		"garbage behind it":             {append(slices.Clone(whole), "not of this log"...), 10, false},
		"the last commit torn":          {whole[:commits[9]-100], 9, false},
		"the last commit damaged":       {flipped(commits[9] - 100), 9, false},
		"cut at a commit":               {whole[:commits[4]], 5, false},
		"the first commit damaged":      {flipped(commits[0] - 100), 0, true},
		"one in the middle damaged":     {flipped(commits[5] - 100), 0, true},
		"the last but one damaged":      {flipped(commits[8] - 100), 0, true},
		"a frame's number of the page":  {flipped(commits[3] + 3), 0, true},
		"the header's magic":            {flipped(1), 0, true},
		"the header's size of a page":   {flipped(10), 0, true},
		"the header's salt":             {flipped(17), 0, true},
		"the header's checksum":         {flipped(30), 0, true},
		"nothing but a part of its own": {whole[:20], 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bursar.db")
			for file, content := range map[string][]byte{path: database, path + "-wal": test.log} {
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			db, err := OpenSQLite(t.Context(), path)
			if (err != nil) != test.refused {
				t.Fatalf("opened with %v", err)
			}
			if test.refused {
				if !strings.Contains(err.Error(), path+"-wal is damaged after byte") || !strings.Contains(err.Error(), "truncate -s") {
					t.Errorf("the error tells too little: %v", err)
				}
				if string(read(t, path+"-wal")) != string(test.log) {
					t.Error("what is refused was changed")
				}
				return
			}
			defer db.Close()
			if got := len(names(t, db)); got != test.keeps {
				t.Errorf("%d commits are there, want %d", got, test.keeps)
			}
		})
	}
}

func TestLasting_MovingDamage_Ignored(t *testing.T) {
	at := func(whole int64) damage { return damage{found: true, whole: whole, salt: 7} }
	another := damage{found: true, whole: 100, salt: 8}
	moving := make([]damage, 50)
	for i := range moving {
		moving[i] = at(int64(i))
	}
	for name, test := range map[string]struct {
		readings []damage
		refused  bool
	}{
		"none":                         {[]damage{{whole: 100}}, false},
		"it stays":                     {[]damage{at(100), at(100)}, true},
		"it is gone":                   {[]damage{at(100), {whole: 200}}, false},
		"it is elsewhere, and gone":    {[]damage{at(100), at(200), {whole: 300}}, false},
		"it is elsewhere, and stays":   {[]damage{at(100), at(200), at(200)}, true},
		"another log begins meanwhile": {[]damage{at(100), another, {whole: 300}}, false},
		"it never stays":               {moving, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := 0
			d, err := lasting(func() (damage, error) {
				next++
				return test.readings[next-1], nil
			})
			if err != nil || d.found != test.refused {
				t.Errorf("found %+v, %v", d, err)
			}
		})
	}
}

func TestAudit_DamagedFile_Found(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bursar.db")
	db, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(tx *Tx) error {
		for _, statement := range []string{`PRAGMA writable_schema = 1`, `DELETE FROM sqlite_master WHERE name = 'payouts_history'`} {
			if _, err := tx.exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err = OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	report, err := db.Audit(t.Context(), nil)
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Name != "file-is-sound" || report.Clean() {
		t.Errorf("the audit of a damaged file finds %+v, %v", report.Findings, err)
	}
}
