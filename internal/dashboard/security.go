package dashboard

import (
	"cmp"

	"bursar/internal/auth"
	"bursar/internal/ledger"
)

// eventsShown is how many security events the profile lists.
const eventsShown = 20

// securityRow is a security event as its user reads it.
type securityRow struct {
	auth.SecurityEvent
	What, Where string
}

// securityWords say what happened to an account.
//
//exhaustive:ignore
var securityWords = map[ledger.Type]string{
	ledger.AccountPasswordChanged:   "Password changed",
	ledger.AccountIdentityLinked:    "Sign-in through a provider added",
	ledger.AccountIdentityUnlinked:  "Sign-in through a provider removed",
	ledger.AccountEmailVerified:     "E-mail address confirmed",
	ledger.AccountPasswordReset:     "Password set by a mailed link",
	ledger.AccountEmailChanged:      "E-mail address changed",
	ledger.AccountEmailChangeUndone: "Change of the e-mail address undone",
	ledger.AccountProofMissing:      "Another bank account refused, because no code came with it",
	ledger.AccountTakenOver:         "Account given to you as the owner of its e-mail address",
	ledger.PayoutsOnHold:            "Payouts put on hold after a change",
	ledger.PayoutsHoldLifted:        "Hold on payouts lifted by our team",
	ledger.PayoutsFrozen:            "Payouts stopped by our team",
	ledger.PayoutsUnfrozen:          "Payouts resumed by our team",
	ledger.AdminDecided:             "Our team decided about your account",
	ledger.AccountFactorsCleared:    "All second factors removed",
	ledger.AccountFactorAdded:       "Second factor added",
	ledger.AccountFactorRemoved:     "Second factor removed",
	ledger.AccountRecoveryCodeUsed:  "Recovery code used",
	ledger.AccountProfileChanged:    "Profile changed",
	ledger.AccountSessionsEnded:     "Sessions signed out",
	ledger.AccountDeleted:           "Account deleted",
	ledger.AccountCodeRefused:       "Wrong code entered where one was asked for",
	ledger.AccountPasskeyRefused:    "Passkey refused where one was asked for",
	ledger.AccountPasskeyCloned:     "Passkey refused, because another device may have a copy of it",
}

func securityRows(events []auth.SecurityEvent) []securityRow {
	rows := make([]securityRow, len(events))
	for i, e := range events {
		rows[i] = securityRow{e, cmp.Or(securityWords[e.Type], string(e.Type)), ""}
		if e.Agent != "" {
			rows[i].Where = deviceName(e.Agent)
		}
	}
	return rows
}
