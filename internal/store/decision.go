package store

import (
	"context"

	"bursar/internal/decision"
)

// RecordDecision adds d to the record of what admins decided.
func (tx *Tx) RecordDecision(ctx context.Context, d decision.Decision) error {
	_, err := tx.exec(ctx, `INSERT INTO decisions (id, at, admin_id, action, subject, note) VALUES ($1, $2, $3, $4, $5, $6)`,
		d.ID, micros(d.At), d.Admin, string(d.Action), d.Subject, d.Note)
	return err
}

// Decisions lists what was decided about a subject, or about everything where it is "", newest first.
func (db *DB) Decisions(ctx context.Context, subject string, limit int) ([]decision.Decision, error) {
	query, args := `SELECT id, at, admin_id, action, subject, note FROM decisions ORDER BY id DESC LIMIT $1 + 0`, []any{limit}
	if subject != "" {
		query = `SELECT id, at, admin_id, action, subject, note FROM decisions WHERE subject = $2 ORDER BY id DESC LIMIT $1 + 0`
		args = append(args, subject)
	}
	var all []decision.Decision
	err := db.query(ctx, query, func(r row) error {
		var d decision.Decision
		err := r.Scan(&d.ID, instant{&d.At}, &d.Admin, &d.Action, &d.Subject, &d.Note)
		all = append(all, d)
		return err
	}, args...)
	return all, err
}
