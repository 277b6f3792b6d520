package dashboard

// noticeCookie carries what is to be said on the next page: a code of ours, never a text, so that
// nobody can make a page say something else.
const noticeCookie = "bursar-notice"

// noticeAge is how long a notice waits for its page, in seconds.
const noticeAge = 60

// notice names a sentence.
type notice string

// notices are said once, on the page after something was done.
var notices = map[notice]string{
	"registered": "Welcome. Your account is ready. We mailed you a link to confirm your e-mail address.",
	"signed-out": "You are signed out.",

	"email-confirmed": "Your e-mail address is confirmed.",
	"code-mailed":     "A new link and code are on their way to you.",
	"reset-mailed":    "If there is an account with this e-mail address, a link is on its way to it.",
	"password-reset":  "Your password is set. Sign in with it.",

	"requested":      "Payout requested.",
	"cancelled":      "The payout is cancelled. Its amount is back in your balance.",
	"not-cancelled":  "This payout can no longer be cancelled: the bank is working on it, or it has ended.",
	"cancel-unclear": "This payout could not be cancelled just now. Look here again in a moment, and try again if it is still processing.",

	"bank-account-registered": "Bank account saved.",

	"profile-saved":     "Your profile is saved.",
	"password-changed":  "Your password is set. All other sessions are signed out.",
	"session-ended":     "That session is signed out.",
	"email-link-mailed": "If no other account has this address, a link is on its way to it.",
	"email-changed":     "Your e-mail address is changed.",
	"email-undone":      "The change is undone, and all sessions ended. A password is not good any more, because another person may know it: we mailed you a link that sets another one.",
	"factors-undone":    "Your account has no second factor now, and all sessions ended. Set a new password: another person may know the old one.",
	"admin-factor":      "Admins need a second factor here. Add an app or a passkey, then the pages for admins open.",
	"provider-unlinked": "The provider is unlinked. All other sessions are signed out.",
	"account-deleted":   "Your account is deleted.",
	"factor-removed":    "The second factor is removed. Payouts are on hold for a while, so that you would notice if it was not you.",
	"sign-in-again":     "That took too long, or was done already. Sign in again.",
	"sessions-ended":    "All other sessions are signed out.",

	// For admins.
	"asked":                "The gateway was asked, and its answer is applied.",
	"asked-none":           "The gateway was asked, and knows no transfer of this payout.",
	"in-review":            "The payout is in review. Nothing of it is sent again.",
	"matched":              "The gateway confirmed the transfer, and the payout goes on from there.",
	"refunded":             "The payout failed. Its amount is back in the seller's balance.",
	"discrepancy-resolved": "The discrepancy is marked as resolved.",
	"payout-cancelled":     "The payout is cancelled. Its amount is back in the seller's balance.",
	"account-accept":       "The bank account is accepted. Payouts may go there.",
	"account-reject":       "The bank account is rejected. The seller sees why.",
	"unmatched-resolved":   "The unmatched transfer is marked as resolved.",
	"difference-resolved":  "The difference is marked as resolved.",
	"hold-lifted":          "The hold is lifted. The seller can request payouts again.",
	"balance-adjusted":     "The balance is adjusted. The seller sees the amount and the reason.",
	"note-added":           "The note is added.",
	"webhook-enabled":      "The endpoint is enabled.",
	"webhook-disabled":     "The endpoint is disabled. Nothing is delivered there.",
	"webhook-removed":      "The endpoint is removed.",
	"webhook-replayed":     "The event is sent again.",
	"webhook-tested-often": "The endpoint was tested often just now. Try again in a minute.",
	"payouts-frozen":       "The seller's payouts are frozen.",
	"payouts-unfrozen":     "The seller's payouts are resumed. Those that waited are sent.",
	"payouts-paused":       "All payouts are paused.",
	"payouts-resumed":      "Payouts are resumed. Those that waited are sent.",
	"access-frozen":        "The change applies from the user's next request, and their payouts are frozen.",
	"access-changed":       "The change applies from the user's next request.",
	"no-longer-fits":       "Nothing was changed, because its state changed meanwhile. This page shows the current state.",
	"key-revoked":          "The key is revoked. It is refused from the next request on.",
	"claimed":              "You are on it for an hour. Other admins see that.",
	"released":             "Released. Other admins can take it on.",
	"claimed-by-other":     "Another admin took it on first. The list says who.",
	"not-claimed":          "It was not yours any more. Nothing was changed.",
}

// takeNotice is what is to be said now, or "". It is said once.
func (d *dashboard) takeNotice(v *pageRequest) string {
	cookie, err := v.r.Cookie(d.cookies.Named(noticeCookie))
	if err != nil {
		return ""
	}
	v.cookies = append(v.cookies, d.cookies.Make(d.cookies.Named(noticeCookie), "", -1))
	return notices[notice(cookie.Value)]
}
