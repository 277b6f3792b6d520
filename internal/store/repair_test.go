package store

import "testing"

// TestRepairer_RowNotWritten_IsError undoes a repair that does not change the row that it must.
func TestRepairer_RowNotWritten_IsError(t *testing.T) {
	db := openTemp(t)
	err := db.Update(t.Context(), func(tx *Tx) error {
		r := repairer{tx: tx}
		return r.write(t.Context(), write{sql: `UPDATE settings SET value = 'x' WHERE name = 'none'`, rows: 1})
	})
	if err == nil {
		t.Error("the row is not there, and the repair succeeded")
	}
}
