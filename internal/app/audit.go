package app

import (
	"context"
	"fmt"

	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/store"
)

// Audit checks the books, and what is signed or sealed unless the key set was not opened.
func (b *Datastore) Audit(ctx context.Context) (ledger.Report, error) {
	if b.keys == nil {
		return b.db.Audit(ctx)
	}
	return auditedBooks{b.db, b.keys}.Audit(ctx)
}

// auditedBooks are the books as auditors see them who have the key set: the database by itself can't tell what was
// signed or sealed with it.
type auditedBooks struct {
	*store.DB
	keys *keyset.Set
}

// Audit checks the books, and what is signed or sealed.
func (b auditedBooks) Audit(ctx context.Context) (ledger.Report, error) {
	r, err := b.DB.Audit(ctx)
	if err != nil {
		return r, err
	}
	last, _, err := b.LastCheckpoint(ctx)
	if err != nil {
		return r, err
	}
	ours := ledger.Finding{Name: "checkpoints-are-ours", Promise: "The newest checkpoint, which names all before it, is signed with a key of the key set."}
	if _, isOurs := b.keys.VerificationKey(last.KeyID); !isOurs && last.Number > 0 {
		ours.Violations = []string{fmt.Sprintf("checkpoint %d is signed with key %s", last.Number, last.KeyID)}
	}
	seals, _, err := openSeals(ctx, b.DB, b.keys)
	if err != nil {
		return r, err
	}
	sealed, err := b.AuditSeals(ctx, seals)
	r.Findings = append(append(r.Findings, ours), sealed...)
	return r, err
}
