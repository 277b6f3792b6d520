//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bursar/internal/keyset"
	"bursar/internal/store"
)

// remains are the files of a service that was killed under load.
type remains struct {
	*load
	dice     *rand.Rand
	keys     *keyset.Set
	database []byte
	log      []byte
	// acked was acknowledged when the log was so long; what was acknowledged later is in what follows.
	acked acknowledged
	safe  int
}

func newRemains(t *testing.T) *remains {
	t.Helper()
	_, seed, _ := crashPlan(t)
	path := filepath.Join(t.TempDir(), "bursar.db")
	f := newFleet(t, "sqlite:"+path, 1, "BURSAR_CANCEL_WINDOW=200ms")
	r := &remains{load: newLoad(f, 4), dice: rand.New(rand.NewPCG(seed, 2))}
	r.begin()
	time.Sleep(time.Second)
	r.acked = r.acknowledgedNow()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	r.safe = int(info.Size())
	time.Sleep(700 * time.Millisecond)
	f.instances[0].Kill(t)
	r.database, r.log = readFile(t, path), readFile(t, path+"-wal")
	f.instances[0].Start(t)
	r.end()
	keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(f.instances[0].DataDir(), "keys.json")))
	if err != nil {
		t.Fatal(err)
	}
	r.keys = keys
	t.Logf("seed %d; the log has %d bytes, in whose first %d are %d payouts", seed, len(r.log), r.safe, len(r.acked.payouts))
	if len(r.log) <= r.safe+100_000 {
		t.Fatal("the log has too little to tear")
	}
	return r
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// lay puts the files back, with the given log, and returns where the database is.
func (r *remains) lay(t *testing.T, log []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bursar.db")
	for file, content := range map[string][]byte{path: r.database, path + "-wal": log} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// audit opens a database and audits it with the keys that it was written with.
func (r *remains) audit(t *testing.T, path string) (told string, err error) {
	t.Helper()
	db, err := store.OpenSQLite(t.Context(), path)
	if err != nil {
		return "", err
	}
	defer db.Close()
	report, err := db.Audit(t.Context(), r.keys)
	if err == nil && !report.Clean() {
		return fmt.Sprint(report.Findings), nil
	}
	return "", err
}

// tears are what may become of a log's tail.
func (r *remains) tears() map[string]func() []byte {
	tail := func() int { return r.safe + r.dice.IntN(len(r.log)-r.safe) }
	garbage := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.dice.Uint32())
		}
		return b
	}
	return map[string]func() []byte{
		"cut":              func() []byte { return slices.Clone(r.log[:tail()]) },
		"cut, garbage":     func() []byte { return append(slices.Clone(r.log[:tail()]), garbage(1+r.dice.IntN(20_000))...) },
		"garbage appended": func() []byte { return append(slices.Clone(r.log), garbage(1+r.dice.IntN(20_000))...) },
		"a bit flipped": func() []byte {
			log := slices.Clone(r.log)
			log[tail()] ^= 1 << r.dice.IntN(8)
			return log
		},
		"zeroes to the end": func() []byte {
			log := slices.Clone(r.log)
			clear(log[tail():])
			return log
		},
		"the beginning again": func() []byte {
			at := tail()
			return append(slices.Clone(r.log[:at]), r.log[:min(at, 50_000)]...)
		},
	}
}

var cutCommand = regexp.MustCompile(`truncate -s (\d+) `)

// TestTornAndDamagedFiles damages the files of a service that was killed under load.
func TestTornAndDamagedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	_, _, long := crashPlan(t)
	besides(t, long)
	r := newRemains(t)
	more := 1
	if long {
		more = 30
	}
	t.Run("ATornTail", func(t *testing.T) { r.tearTail(t, 2*more) })
	t.Run("TheLog", func(t *testing.T) { r.damageLog(t, 12*more) })
	t.Run("TheDatabase", func(t *testing.T) { r.damageDatabase(t, 35*more) })
}

// tearTail tears the log anywhere after what was acknowledged at some moment: that is there when the database is
// opened. Where whole commits follow the damage it is not opened, but can be after what the error says was done.
func (r *remains) tearTail(t *testing.T, rounds int) {
	t.Helper()
	refused := 0
	for name, tear := range maps.All(r.tears()) {
		for n := range rounds {
			t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), n), func(t *testing.T) {
				path := r.lay(t, tear())
				told, err := r.audit(t, path)
				if err != nil {
					refused++
					found := cutCommand.FindStringSubmatch(err.Error())
					if found == nil {
						t.Fatalf("it is not opened: %v", err)
					}
					if at, _ := strconv.Atoi(found[1]); at < r.safe {
						t.Fatalf("%v, but it is whole up to byte %d", err, r.safe)
					} else if err := os.Truncate(path+"-wal", int64(at)); err != nil {
						t.Fatal(err)
					}
					told, err = r.audit(t, path)
				}
				if err != nil || told != "" {
					t.Fatalf("audit: %v\n%s", err, told)
				}
				database := &fleet{t: t, url: "sqlite:" + path}
				database.checkHolds(acknowledged{maps.Clone(r.acked.payouts), maps.Clone(r.acked.sales)})
			})
		}
	}
	t.Logf("%d torn, of which %d were refused", rounds*len(r.tears()), refused)
}

// damageLog flips bits of what was acknowledged and is in the log alone, which has to be found. SQLite would go on
// without it, and without all that came later.
func (r *remains) damageLog(t *testing.T, rounds int) {
	t.Helper()
	for n := range rounds {
		log, at := slices.Clone(r.log), r.dice.IntN(r.safe)
		if n < 8 {
			at = 4 * n // in its header
		}
		log[at] ^= 1 << r.dice.IntN(8)
		_, err := r.audit(t, r.lay(t, log))
		if err == nil || !strings.Contains(err.Error(), "is damaged after byte") {
			t.Errorf("a bit of byte %d is flipped, and the database is opened: %v", at, err)
		}
	}
}

// damageDatabase flips bits of the database itself. Either that is told, or nothing that matters has changed.
func (r *remains) damageDatabase(t *testing.T, rounds int) {
	t.Helper()
	whole := r.lay(t, r.log)
	if told, err := r.audit(t, whole); err != nil || told != "" { // which also writes the log into the database
		t.Fatalf("audit: %v\n%s", err, told)
	}
	r.database = readFile(t, whole)
	before := dump(t, whole)
	refused, broken := 0, 0
	for range rounds {
		at, bit := r.dice.IntN(len(r.database)), byte(1)<<r.dice.IntN(8)
		r.database[at] ^= bit
		path := r.lay(t, nil)
		told, err := r.audit(t, path)
		switch {
		case err != nil:
			refused++
			if !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "migration") { // which was "changed"
				t.Errorf("byte %d: the error does not say that it is damaged: %v", at, err)
			}
		case told != "":
			broken++
		case dump(t, path) != before:
			t.Errorf("a bit of byte %d is flipped, which changes the ledger, and the audit finds nothing", at)
		}
		r.database[at] ^= bit
	}
	t.Logf("of %d flipped bits in %d bytes %d were refused and %d found by the audit", rounds, len(r.database), refused, broken)
}

// dump is all that balances are made of.
func dump(t *testing.T, path string) string {
	t.Helper()
	var text strings.Builder
	database := &fleet{t: t, url: "sqlite:" + path}
	for _, query := range []string{
		`SELECT owner || ' ' || number || ' ' || hash || mac || ' ' || pending || ' ' || available || ' ' || in_transit || ' ' || earned || ' ' || withdrawn
			|| ' ' || sales || ' ' || processing || ' ' || completed || ' ' || failed || ' ' || cancelled FROM journals ORDER BY owner`,
		`SELECT id || seller_id || ' ' || amount || ' ' || fee || state || status FROM payouts ORDER BY id`,
		`SELECT id || seller_id || ' ' || amount || ' ' || refunded FROM sales ORDER BY id`,
		`SELECT owner || ' ' || number || ' ' || at || type || subject || actor || data || ' ' || pending || ' ' || available || ' ' || in_transit || ' ' || sales
			|| ' ' || gateway || ' ' || fees || ' ' || after || hash || mac FROM entries ORDER BY owner, number`,
	} {
		database.sql(query, func(r row) error {
			var line string
			err := r.Scan(&line)
			text.WriteString(line + "\n")
			return err
		})
	}
	return text.String()
}
