package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/store"
)

func testDecisions(_ *testing.T, b *bench) {
	var all []decision.Decision // newest first
	b.update(func(tx *store.Tx) error {
		all = nil
		if err := tx.InsertUser(b.ctx(), newUser("usr_admin")); err != nil {
			return err
		}
		owners := []string{"usr_1", "usr_1", "usr_1", decision.Platform}
		for i, subject := range []string{"pyt_1", "usr_1", "pyt_1", "pyt_10"} {
			by := decision.By{Admin: "usr_admin", Note: "Seen in the bank's own list."}
			d := decision.New(by, decision.ReviewPayout, owners[i], subject, signedInAt.Add(time.Duration(i)*time.Second))
			all = append([]decision.Decision{d}, all...)
			if err := ledger.RecordDecision(b.ctx(), tx, d); err != nil {
				return err
			}
		}
		return nil
	})
	tests := map[string]struct {
		subject string
		limit   int
		want    []decision.Decision
	}{
		"all":                {"", 10, all},
		"the newest":         {"", 2, all[:2]},
		"about one":          {"pyt_1", 10, []decision.Decision{all[1], all[3]}},
		"the newest of one":  {"pyt_1", 1, []decision.Decision{all[1]}},
		"about nothing":      {"pyt_2", 10, nil},
		"an injected phrase": {"' OR 1=1 --", 10, nil},
	}
	for name, test := range tests {
		b.Run(name, func(t *testing.T) {
			got, err := b.db.Decisions(b.ctx(), test.subject, test.limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
