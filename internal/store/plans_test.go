package store

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
	"bursar/internal/reconcile"
	"bursar/internal/webhook"
)

// plan is a statement, the arguments that PostgreSQL is to explain it with, and the indexes that it must
// be read from: on SQLite by the names given here, on PostgreSQL those of primary keys have other names.
type plan struct {
	name, statement, arguments string
	sqlite, postgres           []string
}

// filledColumns are those of payouts that a test fills.
const filledColumns = `id, seller_id, bank_account_id, amount, fee, notes, rail, state, status, requested_at, arrive_at, sent_at,
	processed_at, completed_at, ended_at, due_at, tries, order_body, gateway_id, progress, utr, reason_code, reason, discrepancy, gateway`

// homePlans are the statements whose cost must not grow with the ledger.
var homePlans = []plan{
	{"unclear payouts", unclearIDs + oldestWanted, `100`, []string{"payouts_unclear"}, []string{"payouts_unclear"}},
	{"payouts with a discrepancy", discrepancyIDs + oldestWanted, `100`, []string{"payouts_with_discrepancy"}, []string{"payouts_with_discrepancy"}},
	{"a seller's unpaid payout with a discrepancy", unpaidWithDiscrepancy, `'asha'`, []string{"payouts_with_discrepancy"}, []string{"payouts_with_discrepancy"}},
	{"late payouts", latePayouts, `1000, 2000, 100`, []string{"payouts_due (due_at<?)"}, []string{"payouts_due"}},
	{"how many payouts are late", watchLate, `1000, 2000`, []string{"payouts_due (due_at<?)"}, []string{"payouts_due"}},
	{"payouts without a gateway", withoutGatewayIDs + oldestWanted, `100`, []string{"payouts_without_gateway"}, []string{"payouts_without_gateway"}},
	{
		"payouts by reference", referredIDs + newestWanted, `10, 'x'`,
		[]string{"PRIMARY KEY (id=?)", "payouts_by_gateway_id (gateway_id=?)", "payouts_by_utr (utr=?)"},
		[]string{"payouts_pkey", "payouts_by_gateway_id", "payouts_by_utr"},
	},
	{"what banks were paid", paidByBank, `1, 2`, []string{"entries_of_gateway (at>? AND at<?)", "PRIMARY KEY (id=?)"}, []string{"entries_of_gateway", "payouts_pkey"}},
	{"what failed", failedSince, `1`, []string{"payouts_ended (status=?"}, []string{"payouts_ended"}},
	{"the oldest payout under way", oldestOpen, `1000`, []string{"payouts_due (due_at<?)"}, []string{"payouts_due"}},
	{"unmatched transfers", openUnmatchedTransfers, `100`, []string{"unmatched_transfers_open"}, []string{"unmatched_transfers_open"}},
	{"the newest payouts sent through a gateway", newestSent, `'razorpayx', 20`, []string{"payouts_sent (gateway=?)"}, []string{"payouts_sent"}},
	{"whom unmatched transfers name", unmatchedSellers, `100`, []string{"unmatched_transfers"}, []string{"unmatched_transfers"}},
	{"the oldest unmatched transfer of a gateway", oldestUnmatched, `'razorpayx', 'x'`, []string{"PRIMARY KEY (gateway=?)"}, []string{"unmatched_transfers_"}},
	{"the first payout sent through a gateway", firstSent, `'razorpayx'`, []string{"payouts_sent (gateway=?)"}, []string{"payouts_sent"}},
	{"accounts in review", accountsInReview, `100`, []string{"bank_accounts_in_review"}, []string{"bank_accounts_in_review"}},
	{"a seller's sales", salesPage, `'asha', 20, 0`, []string{"sales_of_seller (seller_id=?)"}, []string{"Index Scan Backward using sales_of_seller"}},
	{
		"a seller's pending sales", pendingByDay(3), `'asha', 0, 1, 2, 3`,
		[]string{"COVERING INDEX sales_pending (seller_id=? AND available_at>? AND available_at<?)"},
		[]string{"sales_pending"},
	},
	{"a seller's entries", entriesPage, `'asha', 100, 20`, []string{"sqlite_autoindex_entries_1 (owner=? AND number<?)"}, []string{"Index Scan Backward using entries_pkey"}},
	{"the feed", eventsAfter, `100, 20`, []string{"e USING INTEGER PRIMARY KEY (rowid>?)"}, []string{"Index Scan using events_pkey"}},
	{"due webhooks", dueDeliveries, `'whe_1', 1000, 20`, []string{"webhook_deliveries_due (endpoint_id=? AND due_at<?)"}, []string{"webhook_deliveries_due"}},
	{"webhooks of an event", deliveriesOf(webhook.Filter{Event: "evt_1"}), `100, 'evt_1'`, []string{"webhook_deliveries_of_event"}, []string{"webhook_deliveries_of_event"}},
	{"webhooks of an endpoint", deliveriesOf(webhook.Filter{Endpoint: "whe_1"}), `100, 'whe_1'`, []string{"webhook_deliveries_of_endpoint (endpoint_id=?)"}, []string{"webhook_deliveries_of_endpoint"}},
	{"endpoints with something due", strings.NewReplacer("$3", "$2", "$4", "$3").Replace(leaseEndpoints), `1000, 20, 2000`, []string{"SCAN e\n", "webhook_deliveries_due (endpoint_id=? AND due_at<?)"}, []string{"webhook_deliveries_due"}},
	{"an event's webhooks to an endpoint", deliveriesOf(webhook.Filter{Event: "evt_1", Endpoint: "whe_1"}), `100, 'evt_1', 'whe_1'`, []string{"webhook_deliveries_of_event"}, []string{"webhook_deliveries_of_event"}},
	{
		"a later page of an endpoint's webhooks", deliveriesOf(webhook.Filter{Endpoint: "whe_1", Before: "whd_1"}), `100, 'whd_1', 'whe_1'`,
		[]string{"webhook_deliveries_of_endpoint (endpoint_id=? AND id<?)"},
		[]string{"webhook_deliveries_"}, // by its key, where an endpoint has many
	},
	{
		"delivered webhooks of an endpoint", deliveriesOf(webhook.Filter{Endpoint: "whe_1", Status: webhook.Delivered}), `100, 'whe_1', 'delivered'`,
		[]string{"webhook_deliveries_of_endpoint (endpoint_id=?)"},
		[]string{"webhook_deliveries_of_endpoint"},
	},
	{
		"failed webhooks of an endpoint", deliveriesOf(webhook.Filter{Endpoint: "whe_1", Status: webhook.Failed}), `100, 'whe_1', 'failed'`,
		[]string{"webhook_deliveries_not_delivered"},
		[]string{"webhook_deliveries_not_delivered"},
	},
	{"failed webhooks", deliveriesOf(webhook.Filter{Status: webhook.Failed}), `100, 'failed'`, []string{"webhook_deliveries_not_delivered"}, []string{"webhook_deliveries_not_delivered"}},
	{"a seller's adjustments", adjustmentEntries, `'asha', 100, 20`, []string{"entries_adjusted (owner=? AND number<?)"}, []string{"Index Scan Backward using entries_adjusted"}},
	{"a seller's entries from one on", entriesFrom, `'asha', 100, 20`, []string{"sqlite_autoindex_entries_1 (owner=? AND number>?)"}, []string{"Index Scan using entries_pkey"}},
	{
		"the entries about a payout", entriesAbout, `'pyt_1', 'asha'`,
		[]string{"entries_about (subject=? AND owner>? AND owner<?)", "sqlite_autoindex_entries_1 (owner=? AND number=?)"},
		[]string{"entries_about", "entries_pkey"},
	},
	{"when payouts were frozen", newestOfType, `'usr_1', 'usr_1', 'payouts.frozen'`, []string{"entries_about (subject=? AND owner>? AND owner<?)"}, []string{"entries_about"}},
	{"a user, as decided last", selectUser + `WHERE u.id = $1`, `'usr_1'`, []string{"entries_decided_about (subject=? AND owner=?)"}, []string{"Index Scan Backward using entries_decided_about"}},
	{"a user's identities", identitiesOf, `'usr_1'`, []string{"identities_of_user (user_id=?)"}, []string{"identities_of_user"}},
	{"a user's identities at one issuer", removeIdentitiesOf, `'usr_1', 'https://id.example'`, []string{"identities_of_user (user_id=? AND issuer=?)"}, []string{"identities_of_user"}},
	{
		"a user's events", entriesAboutPage, `'usr_1', 'usr_1', 100, 20`,
		[]string{"entries_about (subject=? AND owner>? AND owner<?)", "sqlite_autoindex_entries_1 (owner=? AND number=?)"},
		[]string{"entries_about", "entries_pkey"},
	},
}

// deliveriesOf is the statement of a filter.
func deliveriesOf(f webhook.Filter) string {
	query, _ := deliveriesQuery(f)
	return query
}

// ranPlan is the plan of a statement that a method runs.
type ranPlan struct {
	plan
	part string // of the statement, to tell it from others of the method
	run  func(ctx context.Context, db *DB) error
}

// ranPlans are the statements of methods that have no names. Each is recorded as its method runs it.
var ranPlans = []ranPlan{
	{
		plan{"due sales", "", `1000, 50`, []string{"sales_due (due_at<?)"}, []string{"sales_due"}},
		"FROM sales WHERE due_at",
		func(ctx context.Context, db *DB) error {
			return db.Update(ctx, func(tx *Tx) error {
				_, err := tx.DueSales(ctx, noon, 50)
				return err
			})
		},
	},
	{
		plan{"a journal's row", "", `'asha'`, []string{"PRIMARY KEY (owner=?)"}, []string{"journals_pkey"}},
		"frozen FROM journals WHERE owner", func(ctx context.Context, db *DB) error { return db.CheckNewest(ctx, "asha", 0) },
	},
	{
		plan{
			"what knows a cut-off end", "", `'{asha}', '{asha}', '{asha}'`,
			[]string{"events_of_debits (owner=?", "payouts_history (seller_id=? AND status=?)", "entries_about (subject=? AND owner>? AND owner<?)"},
			[]string{"events_of_debits", "payouts_history", "entries_about"},
		},
		"a checkpoint has entry",
		inTx(func(ctx context.Context, tx *Tx) error {
			query, args := entriesKnownElsewhere(tx.dialect, []string{"asha"})
			return tx.each(ctx, query, args, func(*row) {})
		}),
	},
	{
		plan{"a seller's unsent payouts", "", `'asha'`, []string{"payouts_history (seller_id=? AND status=?)"}, []string{"Scan using payouts_history"}},
		"'waiting', 'submitting', 'unknown'",
		func(ctx context.Context, db *DB) error {
			return db.Update(ctx, func(tx *Tx) error {
				_, err := tx.UnsentPayouts(ctx, "asha")
				return err
			})
		},
	},
	{
		plan{
			"payouts of a statement's lines", "", `'{pyt_1,pyt_2}'`,
			[]string{"entries_about (subject=?)", "sqlite_autoindex_entries_1 (owner=? AND number=?)"},
			[]string{"entries_about", "entries_pkey"},
		},
		"ORDER BY e.subject, e.owner",
		func(ctx context.Context, db *DB) error {
			_, err := db.Reconciling("gw").PayoutsByID(ctx, []payout.ID{"pyt_1", "pyt_2"})
			return err
		},
	},
	{
		plan{"entries of a period", "", `'asha', 100, 1, 2`, []string{"sqlite_autoindex_entries_1 (owner=? AND number<?)"}, []string{"entries_pkey"}},
		"MIN(CASE",
		func(ctx context.Context, db *DB) error {
			_, _, err := db.Period(ctx, "asha", 100, noon, noon)
			return err
		},
	},
	{
		plan{"decisions", "", `20`, []string{"entries_decided"}, []string{"entries_decided"}},
		"'balance.adjusted') ORDER BY",
		func(ctx context.Context, db *DB) error {
			_, err := db.Decisions(ctx, "", 20)
			return err
		},
	},
	{
		plan{"decisions about one", "", `20, 'pyt_1'`, []string{"USING INDEX entries_"}, []string{"entries_"}},
		"'balance.adjusted') AND subject = $2",
		func(ctx context.Context, db *DB) error {
			_, err := db.Decisions(ctx, "pyt_1", 20)
			return err
		},
	},
	{
		plan{"entries of the gateway's account", "", `1, 'asha', 0, 1000, 20`, []string{"entries_of_gateway"}, []string{"entries_of_gateway"}},
		"(at, owner, number) >",
		func(ctx context.Context, db *DB) error {
			_, err := db.Reconciling("razorpayx").Entries(ctx, noon, noon, reconcile.Entry{}, 20)
			return err
		},
	},
	{
		plan{"the sum of the gateway's account", "", `1, 1000`, []string{"entries_of_gateway"}, []string{"entries_of_gateway"}},
		"SUM(CASE WHEN gateway > 0",
		func(ctx context.Context, db *DB) error {
			_, _, err := db.Reconciling("razorpayx").SumOfEntries(ctx, noon, noon)
			return err
		},
	},
	{
		plan{"an event's pending webhook", "", `'whe_1', 'evt_1', 1`, []string{"webhook_deliveries_of_event (event_id=?)"}, []string{"webhook_deliveries_of_event"}},
		"WHERE event_id = $2 AND endpoint_id",
		inTx(func(ctx context.Context, tx *Tx) error {
			_, err := tx.RescheduleDelivery(ctx, "whe_1", "evt_1", noon)
			return err
		}),
	},
	{
		plan{"webhooks of long ago", "", `'whd_1', 500`, []string{"PRIMARY KEY (id<?)"}, []string{"webhook_deliveries_pkey"}},
		"DELETE FROM webhook_deliveries",
		inTx(func(ctx context.Context, tx *Tx) error {
			_, err := tx.SweepDeliveries(ctx, noon, 500)
			return err
		}),
	},
	{
		plan{"the oldest webhook", "", ``, []string{"webhook_deliveries_pending (endpoint_id=?)"}, []string{"webhook_deliveries_pending", "Seq Scan"}},
		"FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending'",
		func(ctx context.Context, db *DB) error {
			_, err := db.Watch(ctx, noon)
			return err
		},
	},
	selected("a seller's payouts", payout.Selection{Seller: "asha"}, "status = 'cancelled' ORDER BY",
		[]string{"payouts_history (seller_id=? AND status=?)"}, []string{"Scan Backward using payouts_history"}),
	selected("payouts in review", payout.Selection{State: payout.ManualReview}, "'manual_review') LIMIT", []string{"payouts_unclear"}, []string{"payouts_unclear"}),
	selected("disputed payouts", payout.Selection{Discrepancy: true}, "WHERE discrepancy <> '' LIMIT", []string{"payouts_with_discrepancy"}, []string{"payouts_with_discrepancy"}),
	selected("payouts that are late", payout.Selection{LateAt: noon}, "arrive_at < $6 LIMIT", []string{"payouts_due (due_at<?)"}, []string{"payouts_due"}),
	selected("failed payouts", payout.Selection{State: payout.Failed}, "WITH wanted AS MATERIALIZED (SELECT id FROM payouts WHERE status IN", []string{"payouts_ended (status=?"}, []string{"payouts_ended"}),
	selected("payouts that were completed", payout.Selection{Date: payout.DateCompleted, From: noon}, "WITH wanted AS MATERIALIZED (SELECT subject", []string{"entries_of_gateway (at>? AND at<?)"}, []string{"entries_of_gateway"}),
	selected("payouts that ended", payout.Selection{Date: payout.DateEnded, From: noon}, "AS paid UNION",
		[]string{"entries_of_gateway (at>? AND at<?)", "payouts_ended (status=?"}, []string{"entries_of_gateway", "payouts_ended"}),
	{
		plan{"journals and where a checkpoint has them", "", `1, 'usr_', 20`, []string{"PRIMARY KEY (owner>?)"}, []string{"journals_pkey"}},
		"b.owner > $2",
		func(ctx context.Context, db *DB) error {
			_, err := db.Journals(ctx, 1, "usr_", 20)
			return err
		},
	},
	{
		plan{"journals without their totals", "", `1, 'usr_', 'usr_z'`, []string{"checkpoint_journals USING PRIMARY KEY (seller_id>?)"}, []string{"checkpoint_journals_pkey"}},
		"RECURSIVE kept",
		func(ctx context.Context, db *DB) error {
			_, err := db.Journals(ctx, 1, "usr_", 20)
			return err
		},
	},
}

// inTx runs a method of a transaction.
func inTx(run func(ctx context.Context, tx *Tx) error) func(context.Context, *DB) error {
	return func(ctx context.Context, db *DB) error {
		return db.Update(ctx, func(tx *Tx) error { return run(ctx, tx) })
	}
}

// selected is the plan of the sum of what an operator selects, which the rows of a page are found by too.
func selected(name string, sel payout.Selection, part string, sqlite, postgres []string) ranPlan {
	const arguments = `'', '~', 'asha', '', '', 1, 2, 0, 0, 1000, '', '', 1, 2, 1, 2`
	return ranPlan{plan{name, "", arguments, sqlite, postgres}, part, func(ctx context.Context, db *DB) error {
		_, err := db.SumPayouts(ctx, sel)
		return err
	}}
}

// allPlans are all statements whose cost must not grow with the datastore, those without a name as db runs them.
func allPlans(t *testing.T, recorder *Recorder, db *DB) []plan {
	t.Helper()
	db.UseKeys(testKeys(t))
	plans := slices.Clone(homePlans)
	for _, ran := range ranPlans {
		if err := ran.run(t.Context(), db); err != nil && !errors.Is(err, ledger.ErrTampered) {
			t.Fatalf("%s: %v", ran.name, err)
		}
		for statement := range recorder.statements {
			if strings.Contains(statement, ran.part) {
				ran.statement = statement
			}
		}
		if ran.statement == "" {
			t.Fatalf("%s: no statement with %s was run", ran.name, ran.part)
		}
		plans = append(plans, ran.plan)
	}
	return plans
}

// fillDatastore adds much of what is looked through, nearly nothing of which is looked for. A statement makes
// so many numbers i.
func fillDatastore(numbers string) []string {
	return []string{
		`INSERT INTO users SELECT 'usr_' || i, '', '', 'e' || i, '', 'seller', 0, 0, '', '', '', 0, 1, '', NULL, '' FROM ` + numbers,
		`INSERT INTO identities SELECT 'https://id.example', 's' || i, 'usr_' || i, '', 1, '' FROM ` + numbers,
		`INSERT INTO payouts (` + filledColumns + `) SELECT 'pyt_' || i, 'asha', 'bka_asha', 500, 0, 'rent', 'IMPS', 'completed', 'completed',
			1, 2, 3, 4, 5, 6, NULL, 0, '', 'pout_' || i, 'paid', 'utr' || i, '', '', '', 'razorpayx' FROM ` + numbers,
		`INSERT INTO journals SELECT 'usr_' || i, 1, '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM ` + numbers,
		`INSERT INTO entries SELECT 'usr_' || (i % 4 + 1), i, i, 'payout.requested', 'pyt_' || (i / 4), 'system', '{}', 0, 0, 0, 0, 0, 0, '', '', '' FROM ` + numbers, //nolint:dupword // zeros
		`INSERT INTO sales SELECT 'sale_' || i, 'usr_' || (i % 100 + 1), 500, 0, '2026-11', i, i + 1, NULL, 1, '', CASE WHEN i % 100 = 0 THEN i END FROM ` + numbers,
		`INSERT INTO unmatched_transfers SELECT 'sandbox', 'pout_' || i, 'pyt_' || i, '', 500, 'INR', 'paid', '', NULL, 1, '', 1 FROM ` + numbers,
		`INSERT INTO bank_accounts SELECT 'bka_' || i, 'usr_' || i, 1, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, NULL, 1, 1, '' FROM ` + numbers,
		`INSERT INTO webhook_deliveries SELECT 'whd_p' || i, 'evt_' || i, 'whe_4', 'pending', 1, 500, '', '', i, i + 1, 1000000 + i FROM ` + numbers + ` WHERE i % 10 = 0`,
		`INSERT INTO webhook_deliveries SELECT 'whd_' || i, 'evt_' || i, 'whe_' || (i % 3 + 1), 'delivered', 1, 200, '', '', i, i + 1, NULL FROM ` + numbers,
	}
}

// check wants a plan to name the indexes, and to walk through nothing else.
func (p plan) check(t *testing.T, plan string, indexes []string, walks ...string) {
	t.Helper()
	for _, index := range indexes {
		if !strings.Contains(plan, index) {
			t.Errorf("%s are not read from %s:\n%s", p.name, index, plan)
		}
	}
	for _, walk := range walks {
		if strings.Contains(plan, walk) && !slices.Contains(indexes, walk) {
			t.Errorf("%s are looked for in a whole table:\n%s", p.name, plan)
		}
	}
}

// The rule is at the head of the package; breaking it costs only time, so no other test notices.
func TestLimit_IsNotParameterAlone(t *testing.T) {
	alone := regexp.MustCompile(`LIMIT \$\d+(?: \+ 0)?`)
	found := 0
	for _, file := range sources(t, token.NewFileSet(), "postgres") {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				for _, limit := range alone.FindAllString(literal.Value, -1) {
					if found++; !strings.HasSuffix(limit, "+ 0") {
						t.Errorf("SQLite plans this statement anew each time; write %s + 0: %s", limit, literal.Value)
					}
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("%d limits were found; the test looks in the wrong place", found)
	}
}

func openRecorded(t *testing.T, open func(*Recorder, context.Context, string) (*DB, error), at string) (*DB, *Recorder) {
	t.Helper()
	recorder := &Recorder{}
	db, err := open(recorder, t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, recorder
}

func TestAdminHome_ReadsFromIndexesOnSQLite(t *testing.T) {
	db, recorder := openRecorded(t, (*Recorder).OpenSQLite, filepath.Join(t.TempDir(), "bursar.db"))
	plans := allPlans(t, recorder, db)
	err := db.Update(t.Context(), func(tx *Tx) error {
		statements := append([]string{
			`INSERT INTO users VALUES ('asha', '', '', 'e', '', 'seller', 0, 0, '', '', '', 0, 1, '', NULL, '')`,
			`INSERT INTO journals VALUES ('asha', 1, '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`,
			`INSERT INTO bank_accounts VALUES ('bka_asha', 'asha', 1, '', '', '', '', 'verified', '', '', 0, '', '', '', 0, NULL, 1, 1, '')`,
		}, fillDatastore(`(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i FROM n)`)...)
		for _, statement := range statements {
			if _, err := tx.exec(t.Context(), statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkSQLitePlans(t, db, plans) // without statistics, because the service makes none
	if err := db.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.exec(t.Context(), `ANALYZE`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	checkSQLitePlans(t, db, plans) // with those that an operator made
}

func checkSQLitePlans(t *testing.T, db *DB, plans []plan) {
	t.Helper()
	for _, p := range plans {
		var steps strings.Builder
		rows, err := db.reader.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+p.statement, make([]any, len(strings.FieldsFunc(p.arguments, func(c rune) bool { return c == ',' })))...)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		err = eachRow(rows, func(r *row) {
			var id, parent, unused int
			var step string
			r.Scan(&id, &parent, &unused, &step)
			steps.WriteString(step + "\n")
		})
		if err != nil {
			t.Fatal(err)
		}
		p.check(t, steps.String(), p.sqlite, "SCAN p\n", "SCAN payouts\n", "SCAN sales\n", "SCAN s\n", "SCAN unmatched_transfers\n", "SCAN bank_accounts\n", "SCAN b\n",
			"SCAN e\n", "SCAN entries\n", "SCAN journals\n", "SCAN webhook_deliveries\n")
	}
}

func TestAdminHome_ReadsFromIndexesOnPostgres(t *testing.T) {
	url := pgtest.New(t)
	db, recorder := openRecorded(t, (*Recorder).OpenPostgres, url)
	plans := allPlans(t, recorder, db)
	c := newCrowdAt(t, url, 1)
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
	for _, statement := range fillDatastore(`generate_series(1, 20000) AS i`) {
		do(statement)
	}
	do(`ANALYZE`) // which PostgreSQL does by itself
	for _, p := range plans {
		do(`PREPARE page AS ` + p.statement)
		rows, err := line.conn.Query(t.Context(), strings.TrimSuffix(`EXPLAIN EXECUTE page (`+p.arguments+`)`, ` ()`))
		if err != nil {
			t.Fatal(err)
		}
		var steps strings.Builder
		for rows.Next() {
			var step string
			if err := rows.Scan(&step); err != nil {
				t.Fatal(err)
			}
			steps.WriteString(step + "\n")
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		p.check(t, steps.String(), p.postgres, "Seq Scan", "Backward using payouts_pkey", "Scan using payouts_history")
		do(`DEALLOCATE page`)
	}
}
