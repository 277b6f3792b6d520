package dashboard

import (
	"cmp"
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

// wordsOr is what a name means, or the name itself.
func wordsOr[K ~string](words map[K]string, name K) string { return cmp.Or(words[name], string(name)) }

// progressWords are the gateway's last word about a transfer.
var progressWords = map[gateway.Progress]string{
	gateway.InProgress:   "in progress",
	gateway.Queued:       "queued; can still be cancelled",
	gateway.Paid:         "paid",
	gateway.Reversed:     "reversed: the money came back",
	gateway.Failed:       "failed",
	gateway.Cancelled:    "cancelled",
	gateway.Unrecognised: "a status that Bursar does not know",
}

// entryWords say what happened, for an entry of the journal.
var entryWords = map[ledger.Type]string{ //nolint:exhaustive // the others are shown by their names
	ledger.SaleRecorded:        "Sale",
	ledger.SaleReleased:        "Sale released",
	ledger.SaleRefunded:        "Refund",
	ledger.BalanceAdjusted:     "Balance adjusted",
	ledger.PayoutRequested:     "Payout requested: amount reserved",
	ledger.PayoutImported:      "Payout found at the gateway: amount reserved",
	ledger.PayoutRequeued:      "Payout waits to be sent again",
	ledger.PayoutSubmitting:    "Payout being sent",
	ledger.PayoutSubmitted:     "Payout accepted by the gateway",
	ledger.PayoutUnknown:       "Payout unclear: the gateway's answer is missing",
	ledger.PayoutReview:        "Payout in review",
	ledger.PayoutUpdated:       "Payout updated by the gateway",
	ledger.PayoutCompleted:     "Payout paid to the bank",
	ledger.PayoutFailed:        "Payout failed: amount available again",
	ledger.PayoutCancelled:     "Payout cancelled: amount available again",
	ledger.PayoutReturned:      "Payout returned by the bank",
	ledger.BankAccountAdded:    "Bank account added",
	ledger.BankAccountReplaced: "Bank account replaced",
	ledger.BankAccountVerified: "Bank account verified",
	ledger.BankAccountRejected: "Bank account rejected",
	ledger.BankAccountReview:   "Bank account in review",
	ledger.BankAccountUpdated:  "Bank account updated",
	ledger.DiscrepancyFound:    "Discrepancy found",
	ledger.DiscrepancyResolved: "Discrepancy resolved",
	ledger.PayoutsFrozen:       "Payouts frozen",
	ledger.PayoutsUnfrozen:     "Payouts resumed",
	ledger.AdminDecided:        "Decision of an admin",
	ledger.Repaired:            "Record repaired by an operator",
	ledger.ServiceKeyCreated:   "Service key created",
	ledger.ServiceKeyRotated:   "Service key rotated",
	ledger.ServiceKeyRevoked:   "Service key revoked",
}

// accountWords names the accounts in the order of [ledger.Accounts].
var accountWords = [...]string{"pending", "available", "in transit", "sales", "gateway", "fees"}

// actionWords say what was decided.
var actionWords = map[decision.Action]string{ //nolint:exhaustive // the others are shown by their names
	decision.CancelPayout:             "Cancelled a payout",
	decision.ReviewPayout:             "Sent a payout to review",
	decision.AskGateway:               "Asked the gateway",
	decision.MatchTransfer:            "Matched a transfer",
	decision.RefundPayout:             "Refunded a payout to the balance",
	decision.ResolveDiscrepancy:       "Resolved a discrepancy",
	decision.ResolveUnmatchedTransfer: "Resolved an unmatched transfer",
	decision.AcceptBankAccount:        "Accepted a bank account",
	decision.RejectBankAccount:        "Rejected a bank account",
	decision.LiftHold:                 "Hold on payouts lifted",
	decision.FreezePayouts:            "Froze payouts",
	decision.UnfreezePayouts:          "Resumed payouts",
	decision.PausePayouts:             "Paused all payouts",
	decision.ResumePayouts:            "Resumed all payouts",
	decision.AdjustBalance:            "Adjusted a balance",
	decision.NoteUser:                 "Added a note",
	decision.ResolveDifference:        "Resolved a difference",
	decision.ChangeAccess:             "Changed access",
	decision.SetPassword:              "Set a password",
	decision.ImportUsers:              "Imported users",
	decision.AddWebhook:               "Added a webhook endpoint",
	decision.ChangeWebhook:            "Changed a webhook endpoint",
	decision.RotateWebhook:            "Replaced a webhook secret",
	decision.RemoveWebhook:            "Removed a webhook endpoint",
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
