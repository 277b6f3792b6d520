package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/store"
)

// testSchemaIsOurs has a trigger put into the database, then other changes, and then a key that is not unique any more.
func testSchemaIsOurs(_ *testing.T, b *bench) {
	byHand := b.engine.Hands(b.T, b.db)
	lease := func() error {
		return b.db.Update(b.ctx(), func(tx *store.Tx) error {
			_, err := tx.LeaseDuePayouts(b.ctx(), b.now, b.now.Add(time.Minute), 10)
			return err
		})
	}
	repair := func() error {
		_, err := b.db.Repair(b.ctx(), b.keys, "asha", b.now, false)
		return err
	}
	audited := func() string {
		report, err := b.db.Audit(b.ctx(), b.keys)
		b.must(err)
		at := slices.IndexFunc(report.Findings, func(f ledger.Finding) bool { return f.Name == "schema-is-ours" })
		var problems []string
		for _, v := range report.Findings[at].Violations {
			problems = append(problems, v.Problem)
		}
		return strings.Join(problems, "; ")
	}
	want := func(change string, refusals ...func() error) {
		b.Helper()
		for i, refuse := range refusals {
			changed, isChanged := errors.AsType[store.SchemaError](refuse())
			if !isChanged || len(changed.Changes) == 0 || !strings.Contains(changed.Error(), change) {
				b.Errorf("refusal %d says %q, and the change is that %s", i, changed, change)
			}
		}
		if found := audited(); !strings.Contains(found, change) {
			b.Errorf("the audit finds %q, want %s", found, change)
		}
	}
	check := func() error { return b.db.CheckSchema(b.ctx()) }
	byHand(b.engine.Trigger)
	want("the trigger undoing on payouts", lease, repair, check)
	byHand(b.engine.NoTrigger)
	b.must(errors.Join(lease(), repair(), check()))
	if found := audited(); found != "" {
		b.Errorf("the audit finds %s, and the trigger is gone", found)
	}
	for _, a := range b.engine.SchemaChanges {
		byHand(a.Change)
		want(a.Said, repair, check)
		if err := lease(); errors.As(err, new(store.SchemaError)) != a.Acts {
			b.Errorf("a lease says %v, and the change is that %s", err, a.Said)
		}
		byHand(a.Undo)
		b.must(errors.Join(repair(), check()))
	}
	byHand(`DROP INDEX bank_accounts_current`)
	want("the index bank_accounts_current is missing", repair, check)
	byHand(`DROP TABLE earnings`)
	want("the table earnings is missing", repair, check)
}
