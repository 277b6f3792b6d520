package store

import (
	"context"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/payout"
)

// Watched is what operators keep an eye on, as it stands at one moment.
type Watched struct {
	// Unknown counts payouts whose outcome is being looked up, ManualReview those that an admin has to resolve.
	Unknown, ManualReview int64
	// Discrepancies counts payouts with a discrepancy.
	Discrepancies int64
	// UnmatchedTransfers counts unmatched transfers that no admin has resolved.
	UnmatchedTransfers int64
	// PayoutsStopped counts payouts that wait because payouts are frozen or paused. Paused says that those of all sellers are, as
	// the platform's row has it.
	PayoutsStopped int64
	Paused         bool
	// Late counts payouts under way that should have arrived and need attention for nothing else, and LateSince is when the first of them should have; zero for
	// none.
	Late      int64
	LateSince time.Time
	// AccountsInReview counts bank accounts that wait for a person.
	AccountsInReview int64
	// These are since when the longest waiting payout, bank account and sale have been due. They are
	// ahead where nothing is due yet, and zero where nothing will be.
	PayoutDue, AccountDue, SaleDue time.Time
	// MailDue is as those, for mails, and MailQueued is when the oldest unsent mail was written; zero for none.
	MailDue, MailQueued time.Time
	// WebhookSince is when the oldest delivery that an enabled webhook endpoint did not take was made; zero for none. The others
	// count the endpoints that only fail, and those that the service disabled.
	WebhookSince                      time.Time
	WebhooksFailing, WebhooksDisabled int64
	// CheckpointAt is when the newest checkpoint was made; zero for never.
	CheckpointAt time.Time
}

// watchLate counts what latePayouts lists.
const watchLate = `SELECT COUNT(*), MIN(arrive_at) FROM payouts WHERE ` + isLate

// Watch reads what operators keep an eye on. Each part is the end of an index that holds little, so it
// may be asked often.
func (db *DB) Watch(ctx context.Context, now time.Time) (Watched, error) {
	var w Watched
	err := db.queryOne(ctx, `SELECT
		(SELECT COUNT(*) FROM payouts WHERE state IN (`+unclear+`) AND state = 'unknown'),
		(SELECT COUNT(*) FROM payouts WHERE state IN (`+unclear+`) AND state = 'manual_review'),
		(SELECT COUNT(*) FROM payouts WHERE discrepancy <> ''),
		(SELECT COUNT(*) FROM unmatched_transfers WHERE resolved = 0),
		(SELECT COUNT(*) FROM payouts WHERE reason_code = '`+payout.CodeStopped+`'),
		COALESCE((SELECT frozen FROM journals WHERE owner = 'platform'), 0),
		(SELECT COUNT(*) FROM bank_accounts WHERE status = 'review' AND is_current = 1),
		(SELECT MIN(due_at) FROM payouts WHERE due_at IS NOT NULL),
		(SELECT MIN(due_at) FROM bank_accounts WHERE due_at IS NOT NULL),
		(SELECT CASE WHEN due_at > created_at THEN due_at ELSE created_at END
			FROM sales WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1),
		(SELECT MIN(due_at) FROM mails WHERE due_at IS NOT NULL),
		(SELECT MIN(created_at) FROM mails WHERE due_at IS NOT NULL),
		(SELECT MIN((SELECT MIN(d.created_at) FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending'))
			FROM webhook_endpoints e WHERE e.status = 'enabled'),
		(SELECT COUNT(*) FROM webhook_endpoints WHERE status = 'enabled' AND failures > 0),
		(SELECT COUNT(*) FROM webhook_endpoints WHERE status = 'disabled' AND reason <> 'disabled'),
		(SELECT at FROM checkpoints ORDER BY number DESC LIMIT 1)`, nil,
		&w.Unknown, &w.ManualReview, &w.Discrepancies, &w.UnmatchedTransfers, &w.PayoutsStopped, flagged{&w.Paused}, &w.AccountsInReview,
		instant{&w.PayoutDue}, instant{&w.AccountDue}, instant{&w.SaleDue}, instant{&w.MailDue}, instant{&w.MailQueued},
		instant{&w.WebhookSince}, &w.WebhooksFailing, &w.WebhooksDisabled, instant{&w.CheckpointAt})
	if err != nil {
		return w, err
	}
	err = db.queryOne(ctx, watchLate, []any{micros(now), micros(now.Add(stepWithin))}, &w.Late, instant{&w.LateSince})
	return w, err
}

// ReconciledAt is when the service last reconciled a day by itself with the gateways' statements: of several, the time of the gateway
// that is furthest behind. It is zero as long as one of them was never reconciled.
func (db *DB) ReconciledAt(ctx context.Context, gateways []gateway.Name, now time.Time) (furthest time.Time, err error) {
	for i, at := range gateways {
		var last time.Time
		err := db.queryOne(ctx, `SELECT ended_at FROM reconciliations WHERE gateway = $1 AND daily = 1 AND ended_at <= $2 AND ends_at <= $2 ORDER BY ends_at DESC LIMIT 1`,
			[]any{string(at), micros(now)}, instant{&last})
		if err != nil || last.IsZero() {
			return time.Time{}, err
		}
		if i == 0 || last.Before(furthest) {
			furthest = last
		}
	}
	return furthest, nil
}
