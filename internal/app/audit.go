package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"bursar/internal/health"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/proof"
	"bursar/internal/store"
)

// Audit checks the ledger, and what is authenticated with the key set unless the key set was not opened.
func (b *Datastore) Audit(ctx context.Context) (ledger.Report, error) {
	return auditedLedger{b.db, b.keys}.Audit(ctx)
}

// auditedLedger is the ledger as an auditor sees it who has the key set: the database by itself can't tell what was
// authenticated with it. keys is nil for an audit without the key set.
type auditedLedger struct {
	*store.DB
	keys *keyset.Set
}

// Audit checks the ledger, and what is authenticated with the key set.
func (b auditedLedger) Audit(ctx context.Context) (ledger.Report, error) {
	var keys store.AuditKeys
	if b.keys != nil {
		keys = b.keys
	}
	r, err := b.DB.Audit(ctx, keys)
	if err != nil {
		return r, err
	}
	last, _, err := b.LastCheckpoint(ctx)
	if err != nil {
		return r, err
	}
	currency, isKept, err := b.Pinned(ctx, store.CurrencySetting)
	if err != nil {
		return r, err
	}
	r.Findings = append(r.Findings, checkCurrencyKept(currency, isKept, last))
	if b.keys == nil {
		return r, nil
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

// checkCurrencyKept compares the record of the currency with the newest checkpoint, because it has no MAC of its own.
func checkCurrencyKept(currency string, isKept bool, last proof.Checkpoint) ledger.Finding {
	f := ledger.Finding{Name: "currency-is-kept", Promise: "The database records the currency that it counts, and the newest checkpoint counts the same."}
	switch {
	case !isKept && last.Number == 0:
		f.Violations = []ledger.Violation{{
			Problem: "the record of the currency is missing",
			Next:    "Start the service with the BURSAR_CURRENCY that it always had, which records it again, and find out who deleted it",
		}}
	case !isKept:
		f.Violations = []ledger.Violation{{
			Problem: fmt.Sprintf("the record of the currency is missing, and checkpoint %d counts %s", last.Number, last.Currency),
			Next:    "Start the service with BURSAR_CURRENCY=" + last.Currency + ", which records it again, and find out who deleted it",
		}}
	case last.Number > 0 && last.Currency != currency:
		f.Violations = []ledger.Violation{{
			Problem: fmt.Sprintf("the database counts %s, and checkpoint %d counts %s", currency, last.Number, last.Currency),
			Next:    "Find out who changed it, and " + restoreCurrency,
		}}
	}
	return f
}

// newAudits makes the audits that admins begin, and the stage that ends one that runs.
func newAudits(b *Datastore, logger *slog.Logger) (*health.Audits, stage) {
	background, run := newBackground()
	return &health.Audits{Run: auditedLedger{b.db, b.keys}.Audit, Background: background, Now: time.Now, Logger: logger}, run
}

// Repair is one row that was rebuilt from the journal, or would be.
type Repair = store.Repair

// Repair rebuilds the rows that are not what the journal says, and lists them. It changes nothing unless apply is set. If it fails, those
// that it lists beside the error were repaired.
func (b *Datastore) Repair(ctx context.Context, by string, now time.Time, apply bool) ([]Repair, error) {
	return b.db.Repair(ctx, b.keys, by, now, apply)
}
