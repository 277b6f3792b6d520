package dashboard

import (
	"context"
	"time"

	"bursar/internal/health"
	"bursar/internal/ledger"
)

// auditView is how the last audit of this instance went.
type auditView struct{ health.AuditState }

// Took is how long the last one took.
func (b auditView) Took() string {
	if d := b.Last.Ended.Sub(b.Last.Began); d < time.Minute {
		return d.Round(10 * time.Millisecond).String()
	}
	return span(b.Last.Ended.Sub(b.Last.Began))
}

// Label says how the ledger is, as far as is known.
func (b auditView) Label() label {
	switch {
	case b.Running:
		return label{"Audit running", busy}
	case b.Last == nil:
		return label{"Not audited yet", neutral}
	case b.Last.Failed:
		return label{"Audit failed", bad}
	case !b.Last.Clean():
		return label{"Not balanced", bad}
	default:
		return label{"Balanced", good}
	}
}

// checked is how a check of the audit ended.
func checked(f ledger.Finding) label {
	if len(f.Violations) > 0 {
		return label{"Failed", bad}
	}
	return label{"Passed", good}
}

// adminLedger shows how the last audit went.
func (d *dashboard) adminLedger(context.Context, *pageRequest) (page, error) {
	shown := auditView{d.o.Audits.State()}
	p := show("admin-ledger", "Ledger", shown)
	p.live = shown.Running
	return p, nil
}

// adminAudit begins an audit, or joins the one that runs.
func (d *dashboard) adminAudit(context.Context, *pageRequest) (page, error) {
	d.o.Audits.Begin()
	return goTo(adminHome + "/ledger"), nil
}
