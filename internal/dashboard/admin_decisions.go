package dashboard

import (
	"context"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/webhook"
)

const decisionsPath = adminHome + "/decisions"

// allDecisionsShown is how many decisions are listed at once.
const allDecisionsShown = 40

// decisionsView is what was decided last.
type decisionsView struct {
	Decisions []decisionRow
	Cut       bool
}

// SubjectPath is the page of what a decision is about, or "" where that is no single thing.
func (r decisionRow) SubjectPath() string {
	switch {
	case strings.HasPrefix(r.Subject, payout.IDPrefix):
		return adminPayoutAddress(payout.ID(r.Subject))
	case strings.HasPrefix(r.Subject, bank.IDPrefix):
		return accountAddress(bank.ID(r.Subject))
	case strings.HasPrefix(r.Subject, auth.UserIDPrefix):
		return personAddress(r.Subject)
	case strings.HasPrefix(r.Subject, "dif_"):
		return differenceAddress(r.Subject)
	case strings.HasPrefix(r.Subject, auth.NotePrefix):
		return personAddress(strings.TrimPrefix(r.Subject, auth.NotePrefix))
	case strings.HasPrefix(r.Subject, sale.AdjustmentPrefix):
		return personAddress(r.Owner)
	case strings.HasPrefix(r.Subject, webhook.EndpointPrefix):
		return webhookAddress(r.Subject)
	case r.Subject == decision.Platform:
		return ""
	default:
		return unmatchedAddress(r.Subject)
	}
}

// adminDecisions lists what admins decided, newest first.
func (d *dashboard) adminDecisions(ctx context.Context, _ *pageRequest) (page, error) {
	rows, err := d.decisionRows(ctx, "", allDecisionsShown)
	return show("admin-decisions", "Decisions", decisionsView{rows, len(rows) == allDecisionsShown}), err
}
