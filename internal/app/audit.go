package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/health"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/store"
)

// Audit checks the ledger, and what is authenticated with the key set unless the key set was not opened.
func (b *Datastore) Audit(ctx context.Context) (ledger.Report, error) {
	if b.keys == nil {
		return b.db.Audit(ctx, nil)
	}
	return auditedLedger{b.db, b.keys}.Audit(ctx)
}

// auditedLedger are the ledger as auditors see them who have the key set: the database by itself can't tell what was
// authenticated with it.
type auditedLedger struct {
	*store.DB
	keys *keyset.Set
}

// Audit checks the ledger, and what is authenticated with the key set.
func (b auditedLedger) Audit(ctx context.Context) (ledger.Report, error) {
	r, err := b.DB.Audit(ctx, b.keys)
	if err != nil {
		return r, err
	}
	last, _, err := b.LastCheckpoint(ctx)
	if err != nil {
		return r, err
	}
	ours := ledger.Finding{Name: "checkpoints-are-ours", Promise: "The newest checkpoint, which names all before it, is signed with a key of the key set."}
	if _, isOurs := b.keys.VerificationKey(last.KeyID); !isOurs && last.Number > 0 {
		ours.Violations = []ledger.Violation{{
			Subject: fmt.Sprint("checkpoint ", last.Number), Problem: "it is signed with key " + last.KeyID + ", which is not in the key set",
			Next: "Bring back the key set that belongs to the database, or restore the database from a backup",
		}}
	}
	r.Findings = append(r.Findings, ours)
	return r, nil
}

// newAudits makes the audits that admins begin, and the stage that ends one that runs.
func newAudits(b *Datastore, logger *slog.Logger) (*health.Audits, stage) {
	background, run := newBackground()
	return &health.Audits{Run: auditedLedger{b.db, b.keys}.Audit, Background: background, Now: time.Now, Logger: logger}, run
}

// Repair is one row that was rebuilt from the journal, or would be.
type Repair = store.Repair

// Repair rebuilds the rows that are not what the journal says, and lists them. It changes nothing unless apply is set.
func (b *Datastore) Repair(ctx context.Context, by string, now time.Time, apply bool) ([]Repair, error) {
	return b.db.Repair(ctx, b.keys, by, now, apply)
}
