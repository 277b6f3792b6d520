package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"bursar/internal/bank"
	"bursar/internal/payout"
)

// The plans are those of our own connections. One seller with all payouts tempts a planner most to walk through the
// primary key.
func TestPages_ReadFromIndex(t *testing.T) {
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
	insert := func(ids, seller string, payouts int) {
		t.Helper()
		do(fmt.Sprintf(`INSERT INTO payouts (`+filledColumns+`) SELECT '%s' || lpad(i::text, 16, '0'), %s, 'bka_asha', 500, 0, 'rent', 'IMPS', 'completed', 'completed',
			1, 2, 3, 4, 5, 6, NULL, 0, '', '', 'paid', '', '', '', '', 'razorpayx' FROM generate_series(1, %d) AS i`, ids, seller, payouts))
		do(`ANALYZE`)
	}
	insert("pyt_", "'asha'", 20000)
	checkPages(t, line, "one seller has all payouts")
	do(`DELETE FROM payouts`)
	insert("pyt_", "'seller' || i % 2000", 20000) // few of each, which a planner would rather read all and sort
	insert("pyt_a", "'asha'", 30)
	checkPages(t, line, "many sellers have a few")
}

// checkPages looks at the plans of pages.
func checkPages(t *testing.T, line *postgresLine, among string) {
	t.Helper()
	for name, test := range map[string]struct {
		filter         payout.Filter
		arguments      string
		index, instead string
	}{
		"a seller's page":            {payout.Filter{Seller: "asha"}, `10, 'asha'`, "payouts_history", "Backward using payouts_pkey"},
		"a seller's page of a state": {payout.Filter{Seller: "asha", Status: payout.StatusCompleted}, `10, 'asha'`, "payouts_history", "Backward using payouts_pkey"},
		"a seller's later page":      {payout.Filter{Seller: "asha", Offset: 10}, `10, 'asha', 10, 20`, "payouts_history", "Backward using payouts_pkey"},
		"everybody's page":           {payout.Filter{}, `10, 0`, "Backward using payouts_pkey", "Seq Scan"},
		"everybody's rare ones":      {payout.Filter{Status: payout.StatusFailed}, `10, 0`, "payouts_ended", "Backward using payouts_pkey"},
	} {
		page, _ := postgresDialect.pageOf(test.filter)
		p := planOf(t, line, page, test.arguments)
		// A bitmap is made of all that an index has, and has no order.
		if !strings.Contains(p, test.index) || strings.Contains(p, test.instead) || strings.Contains(p, "Seq Scan") || strings.Contains(p, "Bitmap") {
			t.Errorf("where %s, %s is not read from %s:\n%s", among, name, test.index, p)
		}
	}
}

// TestRowsAreReadByKey_InANewDatabase asks for the plans that a connection makes while its tables are empty. It keeps
// them until PostgreSQL analyses the tables, and by then there may be thousands of rows.
func TestRowsAreReadByKey_InANewDatabase(t *testing.T) {
	c := newCrowd(t, 1)
	line := &postgresLine{config: c.handles[0].units.config}
	if err := line.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.hangUp)
	in, _ := postgresDialect.oneOf(nil, []string{"x"})
	for name, test := range map[string]struct{ statement, arguments, index, condition string }{
		"a session":     {sessionOf + in, `'{x}'`, "sessions_pkey", "(id = ANY ($1))"},
		"its user":      {sessionOf + in, `'{x}'`, "users_pkey", "(id = s.user_id)"},
		"a user":        {userWithStatsOf + in, `'{x}'`, "users_pkey", "(id = ANY ($1))"},
		"their journal": {userWithStatsOf + in, `'{x}'`, "journals_pkey", "(owner = u.id)"},
	} {
		p := planOf(t, line, test.statement, test.arguments)
		read := regexp.MustCompile(regexp.QuoteMeta(test.index) + `\b.*\n\s*(Recheck Cond.*\n\s*)?Index Cond: ` + regexp.QuoteMeta(test.condition))
		if !read.MatchString(p) {
			t.Errorf("%s is not read by its key:\n%s", name, p)
		}
	}
}

// planOf is the plan that a connection makes for a statement once, whatever its arguments.
func planOf(t *testing.T, line *postgresLine, statement, arguments string) string {
	t.Helper()
	if _, err := line.conn.Exec(t.Context(), `PREPARE explained AS `+statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	rows, err := line.conn.Query(t.Context(), `EXPLAIN EXECUTE explained (`+arguments+`)`)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := line.conn.Exec(t.Context(), `DEALLOCATE explained`); err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}
