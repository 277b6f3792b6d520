package store

import (
	"database/sql"
	"errors"
	"testing"

	"bursar/internal/bank"
)

// TestRowsOf_ManyKeys asks for rows of several keys at once, for one of them twice, for keys without a row, and for another
// query's row among them. Each read gets its own.
func TestRowsOf_ManyKeys(t *testing.T) {
	c := newCrowd(t, 1)
	c.seller("asha", 1000, bank.StatusVerified)
	c.seller("bela", 2000, bank.StatusVerified)
	rows := c.handles[0].rows
	line := &rowLine{postgresLine{config: c.handles[0].units.config}, func(error) {}}
	t.Cleanup(line.hangUp)

	var group []*rowRead
	ask := func(r row, dest ...any) {
		read := r.(*rowRead)
		read.dest = dest
		group = append(group, read)
	}
	keys := []string{"asha", "nobody", "bela", "", "asha"}
	available, owners := make([]int64, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		ask(rows.rowOf(t.Context(), `SELECT available, owner FROM journals WHERE owner `, key), &available[i], &owners[i])
	}
	var two int64
	ask(rows.row(t.Context(), `SELECT $1 + 1`, []any{1}), &two)
	byKey := append([]*rowRead(nil), group...) // serving a group orders it

	line.serve(group)
	for i, key := range keys {
		err := <-byKey[i].answer
		want, found := map[string]int64{"asha": 1000, "bela": 2000}[key]
		if found && (err != nil || owners[i] != key || available[i] != want) || !found && !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("read %d of %q got %d of %q, %v", i, key, available[i], owners[i], err)
		}
	}
	if err := <-byKey[len(keys)].answer; err != nil || two != 2 {
		t.Errorf("the other query got %d, %v", two, err)
	}
}
