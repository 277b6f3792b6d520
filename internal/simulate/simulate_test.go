package simulate_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"bursar/internal/simulate"
)

// run runs a simulation, and fails the test if a promise was broken.
func run(t *testing.T, o simulate.Options, faults string) simulate.Report {
	t.Helper()
	var err error
	if o.Faults, err = simulate.ParseFaults(faults); err != nil {
		t.Fatal(err)
	}
	r, err := simulate.Run(t.Context(), o, func(simulate.Stand) {})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Violation; v != nil {
		t.Errorf("seed %d, %d days, %d sellers, faults %s: %s is broken: %s\n%s", o.Seed, o.Days, v.Sellers, o.Faults, v.Name, v.Promise, v.Detail)
		for _, e := range v.Events {
			t.Log(e)
		}
		t.FailNow()
	}
	return r
}

// A few seeds run here; `bursar simulate` runs as many as one likes.
func TestRun_AllFaults_ChecksHold(t *testing.T) {
	seeds, o := uint64(4), simulate.Options{Days: 3, Sellers: 6}
	if testing.Short() {
		seeds, o = 1, simulate.Options{Days: 1, Sellers: 5}
	}
	struck := map[string]int64{}
	for seed := range seeds {
		o.Seed = seed + 1
		r := run(t, o, "all")
		for name, n := range r.Faulted {
			struck[name] += n
		}
		if r.Asked == 0 || r.Ends["completed"] == 0 {
			t.Errorf("seed %d did nothing: %+v", seed+1, r)
		}
	}
	if testing.Short() {
		return
	}
	for _, name := range simulate.FaultNames() {
		if struck[name] == 0 && name != "rival" { // which is there all the time
			t.Errorf("%s never struck", name)
		}
	}
}

// A few seeds run at a gateway that lacks most of what the other one offers.
func TestRun_LimitedGateway(t *testing.T) {
	seeds, o := uint64(3), simulate.Options{Days: 3, Sellers: 6, Limited: true}
	if testing.Short() {
		seeds, o.Days = 1, 1
	}
	for seed := range seeds {
		o.Seed = seed + 1
		if r := run(t, o, "all"); r.Asked == 0 || r.Ends["completed"] == 0 || r.Restores > 0 {
			t.Errorf("seed %d did nothing, or put a backup back: %+v", seed+1, r)
		}
	}
}

func TestRun_NoFaults_NothingFails(t *testing.T) {
	r := run(t, simulate.Options{Seed: 1, Days: 1, Sellers: 4}, "none")
	for name, n := range r.Faulted {
		if n > 0 {
			t.Errorf("%s struck %d times", name, n)
		}
	}
	if r.Unknown > 0 || r.Crashes > 0 || r.Ends["failed"] > 0 {
		t.Errorf("something went wrong on a fair day: %+v", r)
	}
}

// Two runs are compared down to the last id.
func TestRun_SameSeed_SameRun(t *testing.T) {
	o := simulate.Options{Seed: 6, Days: 1, Sellers: 5} // which has two gateways
	var prints, hashes [3]string
	for i := range prints {
		o.Dir = t.TempDir()
		if i == 2 {
			o.Seed++
		}
		prints[i] = run(t, o, "all").Fingerprint
		hashes[i] = hashOf(t, o.Dir)
	}
	if prints[0] != prints[1] || hashes[0] != hashes[1] {
		t.Errorf("two runs of one seed differ: %s and %s, ledgers and moves %s and %s", prints[0], prints[1], hashes[0], hashes[1])
	}
	if prints[0] == prints[2] || hashes[0] == hashes[2] {
		t.Error("another seed gave the same run")
	}
}

// hashOf reads all entries of sellers and the platform but their data, which is salted, all payouts, and the moves of the gateway. Who registers by
// API has an id by chance.
func hashOf(t *testing.T, dir string) string {
	t.Helper()
	hash := sha256.New()
	rows := 0
	for _, q := range []struct{ file, query string }{
		{"bursar.db", `SELECT owner || number || at || type || subject || actor || pending || available || in_transit || sales || gateway || fees || after
			FROM entries WHERE owner = 'platform' OR owner IN (SELECT id FROM users WHERE role = 'seller') ORDER BY owner, number`},
		{"bursar.db", `SELECT id || seller_id || bank_account_id || amount || state || gateway_id || utr || requested_at || COALESCE(ended_at, '') FROM payouts ORDER BY id`},
		{"gateway.db", `SELECT seq || reference_id || amount || status || debited || credited || utr || created_at FROM payouts ORDER BY seq`},
	} {
		rows += readInto(t, hash, filepath.Join(dir, "market-1", q.file), q.query)
	}
	if rows < 100 {
		t.Fatalf("there are %d rows to compare; the test looks in the wrong place", rows)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func readInto(t *testing.T, w io.Writer, file, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(w, line)
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParseFaults(t *testing.T) {
	for in, want := range map[string]string{
		"all": "all", "none": "none", "crash": "crash", " restore, crash": "crash,restore", "crash,crash": "crash",
		"crash,-crash": "none", "all,none,rival": "rival",
	} {
		set, err := simulate.ParseFaults(in)
		if err != nil || set.String() != want {
			t.Errorf("%q was read as %s, error %v; want %s", in, set, err, want)
		}
	}
	for _, in := range []string{"", "crashes", "crash,", "-all", "ALL"} {
		if set, err := simulate.ParseFaults(in); err == nil {
			t.Errorf("%q was read as %s", in, set)
		}
	}
}

// TestPages_TellOfEverything holds the pages about the simulator against the code.
func TestPages_TellOfEverything(t *testing.T) {
	const faultsPage, checksPage = "../../docs/simulator.md", "../../docs/simulator-checks.md"
	rows := map[string][]string{}
	for _, name := range simulate.FaultNames() {
		rows[faultsPage] = append(rows[faultsPage], fmt.Sprintf("| `%s` | %s |\n", name, simulate.DescribeFault(name)))
	}
	for _, c := range simulate.Checks() {
		rows[checksPage] = append(rows[checksPage], fmt.Sprintf("| `%s` | %s |\n", c.Name, c.Promise))
	}
	for _, page := range []string{faultsPage, checksPage} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[page] {
			if !strings.Contains(string(text), row) {
				t.Errorf("%s lacks this row: %s", page, row)
			}
		}
	}
}

func TestRun_InvalidOptions_Refused(t *testing.T) {
	for _, o := range []simulate.Options{
		{}, {Days: 1}, {Sellers: 1}, {Days: -1, Sellers: 1}, {Days: simulate.MostDays + 1, Sellers: 1}, {Days: 1, Sellers: simulate.MostSellers + 1},
	} {
		if _, err := simulate.Run(t.Context(), o, func(simulate.Stand) {}); err == nil {
			t.Errorf("%+v was run", o)
		}
	}
}
