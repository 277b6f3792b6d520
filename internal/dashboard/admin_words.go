package dashboard

import (
	"fmt"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// stateLabel is where a payout stands, in the words of those who look after it.
func stateLabel(p payout.Payout) label {
	if isFrozen(p) {
		return label{"Frozen", bad}
	}
	switch p.State {
	case payout.Waiting:
		return label{"Waiting", busy}
	case payout.Submitting:
		return label{"Being sent", busy}
	case payout.Unknown:
		return label{"Unknown", busy}
	case payout.ManualReview:
		return label{"In review", bad}
	case payout.Submitted:
		return label{"At the gateway", busy}
	case payout.Completed:
		return label{"Completed", good}
	case payout.Failed:
		return label{"Failed", bad}
	case payout.Returned:
		return label{"Returned", bad}
	case payout.Cancelled:
		return label{"Cancelled", neutral}
	default:
		return label{string(p.State), neutral}
	}
}

// meaningOf says what a state means for the money, and what happens by itself.
func meaningOf(p payout.Payout) string {
	if isFrozen(p) {
		return "It was changed outside Bursar, so it is neither sent nor cancelled nor refunded. The seller reads that it is in review. " +
			`"bursar repair" shows what was changed, and makes it what the journal says; then it goes on by itself.`
	}
	switch p.State {
	case payout.Waiting:
		if p.IsStopped() {
			return "Not sent, because payouts are frozen for this seller or paused for all, or an unmatched transfer names the seller. It is sent when they are resumed, or an admin has resolved that transfer. The seller can cancel it."
		}
		if p.Tries > 0 {
			return "Not sent. The gateway turned it away, or could not be asked first. It is tried again by itself."
		}
		return "Not sent yet. It goes to the gateway when its cancel window is over."
	case payout.Submitting:
		return "It is being sent, so it may have been paid. If its sender is gone, it is looked up by itself."
	case payout.Unknown:
		return "It was sent and the answer is missing, so it may have been paid. Bursar goes on looking it up, and sends the same order " +
			"again under the same key while the gateway honours the key. There is nothing to do unless you know more than the gateway says."
	case payout.ManualReview:
		return "Bursar can't learn whether it was paid. It is never sent again, and it is looked up a few times a day. An admin has to resolve it."
	case payout.Submitted:
		return "The gateway has it. Bursar goes on asking until it ends."
	case payout.Completed:
		if p.DueAt.IsZero() {
			return "The bank was paid."
		}
		return "The bank was paid. It is polled for some days, because banks may return money."
	case payout.Failed:
		return "It was not paid. Its amount is back in the seller's balance."
	case payout.Returned:
		return "The bank returned the money. Its amount is back in the seller's balance."
	case payout.Cancelled:
		return "It was cancelled before it was paid. Its amount is back in the seller's balance."
	default:
		return ""
	}
}

// progressWords is the gateway's last word about a transfer.
func progressWords(p gateway.Progress) string {
	switch p {
	case gateway.InProgress:
		return "in progress"
	case gateway.Queued:
		return "queued; can still be cancelled"
	case gateway.Paid:
		return "paid"
	case gateway.Reversed:
		return "reversed: the money came back"
	case gateway.Failed:
		return "failed"
	case gateway.Cancelled:
		return "cancelled"
	case gateway.Unrecognised:
		return "a status that Bursar does not know"
	default:
		return string(p)
	}
}

// entryWords says what happened, for an entry of the journal.
func entryWords(t ledger.Type) string {
	switch t {
	case ledger.SaleRecorded:
		return "Sale"
	case ledger.SaleReleased:
		return "Sale released"
	case ledger.SaleRefunded:
		return "Refund"
	case ledger.BalanceAdjusted:
		return "Balance adjusted"
	case ledger.PayoutRequested:
		return "Payout requested: amount reserved"
	case ledger.PayoutImported:
		return "Payout found at the gateway: amount reserved"
	case ledger.PayoutRequeued:
		return "Payout waits to be sent again"
	case ledger.PayoutSubmitting:
		return "Payout being sent"
	case ledger.PayoutSubmitted:
		return "Payout accepted by the gateway"
	case ledger.PayoutUnknown:
		return "Payout unclear: the gateway's answer is missing"
	case ledger.PayoutReview:
		return "Payout in review"
	case ledger.PayoutUpdated:
		return "Payout updated by the gateway"
	case ledger.PayoutCompleted:
		return "Payout paid to the bank"
	case ledger.PayoutFailed:
		return "Payout failed: amount available again"
	case ledger.PayoutCancelled:
		return "Payout cancelled: amount available again"
	case ledger.PayoutReturned:
		return "Payout returned by the bank"
	case ledger.BankAccountAdded:
		return "Bank account added"
	case ledger.BankAccountReplaced:
		return "Bank account replaced"
	case ledger.BankAccountVerified:
		return "Bank account verified"
	case ledger.BankAccountRejected:
		return "Bank account rejected"
	case ledger.BankAccountReview:
		return "Bank account in review"
	case ledger.BankAccountUpdated:
		return "Bank account updated"
	case ledger.DiscrepancyFound:
		return "Discrepancy found"
	case ledger.DiscrepancyResolved:
		return "Discrepancy resolved"
	case ledger.PayoutsFrozen:
		return "Payouts frozen"
	case ledger.PayoutsUnfrozen:
		return "Payouts resumed"
	case ledger.AdminDecided:
		return "Decision of an admin"
	case ledger.Repaired:
		return "Record repaired by an operator"
	case ledger.ServiceKeyCreated:
		return "Service key created"
	case ledger.ServiceKeyRotated:
		return "Service key rotated"
	case ledger.ServiceKeyRevoked:
		return "Service key revoked"
	default:
		return string(t)
	}
}

// accountWords names the accounts in the order of [ledger.Accounts].
var accountWords = [...]string{"pending", "available", "in transit", "sales", "gateway", "fees"}

// actionWords says what was decided.
func actionWords(a decision.Action) string {
	switch a {
	case decision.CancelPayout:
		return "Cancelled a payout"
	case decision.ReviewPayout:
		return "Sent a payout to review"
	case decision.AskGateway:
		return "Asked the gateway"
	case decision.MatchTransfer:
		return "Matched a transfer"
	case decision.RefundPayout:
		return "Refunded a payout to the balance"
	case decision.ResolveDiscrepancy:
		return "Resolved a discrepancy"
	case decision.ResolveUnmatchedTransfer:
		return "Resolved an unmatched transfer"
	case decision.AcceptBankAccount:
		return "Accepted a bank account"
	case decision.RejectBankAccount:
		return "Rejected a bank account"
	case decision.LiftHold:
		return "Hold on payouts lifted"
	case decision.FreezePayouts:
		return "Froze payouts"
	case decision.UnfreezePayouts:
		return "Resumed payouts"
	case decision.PausePayouts:
		return "Paused all payouts"
	case decision.ResumePayouts:
		return "Resumed all payouts"
	case decision.AdjustBalance:
		return "Adjusted a balance"
	case decision.NoteUser:
		return "Added a note"
	case decision.ResolveDifference:
		return "Resolved a difference"
	case decision.ChangeAccess:
		return "Changed access"
	case decision.SetPassword:
		return "Set a password"
	case decision.ImportUsers:
		return "Imported users"
	case decision.AddWebhook:
		return "Added a webhook endpoint"
	case decision.ChangeWebhook:
		return "Changed a webhook endpoint"
	case decision.RotateWebhook:
		return "Replaced a webhook secret"
	case decision.RemoveWebhook:
		return "Removed a webhook endpoint"
	default:
		return string(a)
	}
}

// likenessWords puts a score of two names, 0 to 100, into words.
func likenessWords(score int) string {
	switch {
	case score < 0:
		return "not compared"
	case score == 100:
		return "the same"
	case score >= 85:
		return fmt.Sprintf("nearly the same (%d of 100)", score)
	case score >= 60:
		return fmt.Sprintf("similar, and may be two people's (%d of 100)", score)
	default:
		return fmt.Sprintf("different (%d of 100)", score)
	}
}

// span is a length of time in at most two units.
func span(d time.Duration) string {
	d = d.Abs()
	hours, minutes := int(d.Hours()), int(d.Minutes())
	two := func(most int, unit string, rest int, small string) string {
		if rest == 0 {
			return fmt.Sprintf("%d %s", most, unit)
		}
		return fmt.Sprintf("%d %s %d %s", most, unit, rest, small)
	}
	switch {
	case minutes < 1:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case hours < 1:
		return fmt.Sprintf("%d min", minutes)
	case hours < 48:
		return two(hours, "h", minutes%60, "min")
	default:
		return two(hours/24, "days", hours%24, "h")
	}
}

// with is a part of a page's data beside the view that it is drawn in.
type with struct {
	View view
	Of   any
}

// With hands the view on to a template for a part of the data.
func (v view) With(of any) with { return with{v, of} }

// record is a list of decisions; About says that each tells what it is about.
type record struct {
	View  view
	Rows  []decisionRow
	About bool
}

// Record hands the view on to the template for decisions.
func (v view) Record(rows []decisionRow, about bool) record { return record{v, rows, about} }

// Ago is how long ago a moment was, or how far ahead it is.
func (v view) Ago(t time.Time) string { return span(v.now.Sub(t)) }

// Past reports whether a moment is over.
func (v view) Past(t time.Time) bool { return !t.After(v.now) }
