package store

import (
	"strings"
	"testing"

	"bursar/internal/bank"
	"bursar/internal/payout"
)

// TestPagesAreReadFromTheirIndex has one seller with all payouts, where a planner is most tempted to
// walk through the primary key, and asks for the plans that our connections make.
func TestPagesAreReadFromTheirIndex(t *testing.T) {
	c := newCrowd(t, 1)
	c.seller("asha", 1000, bank.StatusVerified)
	line := &postgresLine{config: c.handles[0].units.config}
	if err := line.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.hangUp)
	do := func(statement string) {
		t.Helper()
		if _, err := line.conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	do(`INSERT INTO payouts SELECT 'pyt_' || lpad(i::text, 16, '0'), 'asha', 'bka_asha', 500, 0, 'rent', 'IMPS', 'completed', 'completed',
		1, 2, 3, 4, 5, 6, NULL, 0, '', '', 'paid', '', '', '', '', 'razorpayx' FROM generate_series(1, 20000) AS i`)
	do(`ANALYZE`)
	for name, test := range map[string]struct {
		filter         payout.Filter
		arguments      string
		index, instead string
	}{
		"a seller's page":            {payout.Filter{Seller: "asha"}, `10, 0, 'asha', 10`, "payouts_history", "Backward using payouts_pkey"},
		"a seller's page of a state": {payout.Filter{Seller: "asha", Status: payout.StatusCompleted}, `10, 0, 'asha', 10`, "payouts_history", "Backward using payouts_pkey"},
		"everybody's page":           {payout.Filter{}, `10, 0`, "Backward using payouts_pkey", "Seq Scan"},
		"everybody's rare ones":      {payout.Filter{Status: payout.StatusFailed}, `10, 0`, "payouts_ended", "Backward using payouts_pkey"},
	} {
		ids, _ := postgresDialect.pageOf(test.filter)
		do(`PREPARE page AS SELECT ` + listColumns + payoutFrom + `WHERE p.id IN (` + ids + `) ORDER BY p.id DESC`)
		rows, err := line.conn.Query(t.Context(), `EXPLAIN EXECUTE page (`+test.arguments+`)`)
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var step string
			if err := rows.Scan(&step); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(step + "\n")
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if p := plan.String(); !strings.Contains(p, test.index) || strings.Contains(p, test.instead) || strings.Contains(p, "Seq Scan") {
			t.Errorf("%s is not read from %s:\n%s", name, test.index, p)
		}
		do(`DEALLOCATE page`)
	}
}
