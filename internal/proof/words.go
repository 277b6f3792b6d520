package proof

import (
	"fmt"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/limits"
)

// words describes each type of entry as its seller would.
var words = map[ledger.Type]string{
	ledger.SaleRecorded: "Sale %s",
	ledger.SaleReleased: "Sale %s is available for payout",
	ledger.SaleRefunded: "Sale %s refunded",

	ledger.BalanceAdjusted: "Balance adjusted (%s)",

	ledger.PayoutRequested:  "Payout %s requested",
	ledger.PayoutImported:   "Payout %s added from the payment gateway's records",
	ledger.PayoutRequeued:   "Payout %s is waiting to be sent again",
	ledger.PayoutSubmitting: "Payout %s is being sent",
	ledger.PayoutSubmitted:  "Payout %s sent to the payment gateway",
	ledger.PayoutUnknown:    "Payout %s is waiting for the payment gateway's answer",
	ledger.PayoutReview:     "Payout %s is in review",
	ledger.PayoutUpdated:    "Payout %s updated",
	ledger.PayoutCompleted:  "Payout %s completed",
	ledger.PayoutFailed:     "Payout %s failed and is available again",
	ledger.PayoutCancelled:  "Payout %s cancelled and available again",
	ledger.PayoutReturned:   "Payout %s returned by the bank and available again",

	ledger.BankAccountAdded:    "Bank account %s added",
	ledger.BankAccountReplaced: "Bank account %s replaced",
	ledger.BankAccountVerified: "Bank account %s verified",
	ledger.BankAccountRejected: "Bank account %s rejected",
	ledger.BankAccountReview:   "Bank account %s is in review",
	ledger.BankAccountUpdated:  "Bank account %s updated",

	ledger.PayoutsOnHold:     "Payouts of %s are on hold",
	ledger.PayoutsHoldLifted: "Hold on payouts of %s is lifted",
	ledger.PayoutsFrozen:     "Payouts of %s are stopped",
	ledger.PayoutsUnfrozen:   "Payouts of %s are resumed",

	ledger.AccountPasswordChanged:   "Password of %s changed",
	ledger.AccountIdentityLinked:    "Sign-in through a provider added for %s",
	ledger.AccountIdentityUnlinked:  "Sign-in through a provider removed for %s",
	ledger.AccountEmailVerified:     "E-mail address of %s confirmed",
	ledger.AccountPasswordReset:     "Password of %s set by a mailed link",
	ledger.AccountEmailChanged:      "E-mail address of %s changed",
	ledger.AccountEmailChangeUndone: "Change of the e-mail address of %s undone",
	ledger.AccountProofMissing:      "Another bank account of %s refused, because no proof came with it",
	ledger.AccountTakenOver:         "Account %s given to the owner of its e-mail address",
	ledger.AccountFactorsCleared:    "All second factors of %s removed",
	ledger.AccountFactorAdded:       "Second factor added for %s",
	ledger.AccountFactorRemoved:     "Second factor removed for %s",
	ledger.AccountRecoveryCodeUsed:  "Recovery code of %s used",
	ledger.AccountCodeRefused:       "Wrong code entered for %s",
	ledger.AccountPasskeyRefused:    "Passkey refused for %s",
	ledger.AccountPasskeyCloned:     "Passkey of %s refused, because it may have been copied",
	ledger.AccountProfileChanged:    "Profile of %s changed",
	ledger.AccountSessionsEnded:     "Sessions of %s ended from another one",
	ledger.AccountDeleted:           "Account %s deleted by its user",

	ledger.DiscrepancyFound:    "Discrepancy found in %s, which is in review",
	ledger.DiscrepancyResolved: "Discrepancy in %s resolved",
	ledger.AdminDecided:        "Our team decided about %s",
	ledger.Repaired:            "Records of %s restored from the journal",

	ledger.ServiceKeyCreated: "Service key %s created",
	ledger.ServiceKeyRotated: "Service key %s rotated",
	ledger.ServiceKeyRevoked: "Service key %s revoked",
}

// inWords describes an entry in plain words.
func inWords(e ledger.Entry) string {
	text, known := words[e.Type]
	if !known {
		return string(e.Type) + " " + e.Subject
	}
	return fmt.Sprintf(text, strings.TrimPrefix(strings.TrimPrefix(e.Subject, "sale:"), "adjustment:")) // which tell them from our own ids
}

// Period reads the two ends of a period. Times include the first and exclude the second; days include both. Without
// from the period begins with the month, and without to it ends today.
func (s *Service) Period(from, to string) (first, end time.Time, err error) {
	zone := s.o.Zone
	now := s.o.Now().In(zone)
	first, end = limits.StartOfDay(now, 1-now.Day()), limits.StartOfDay(now, 1)
	problems := map[string]string{}
	if from != "" {
		first = parseEnd("from", from, 0, zone, problems)
	}
	if to != "" {
		end = parseEnd("to", to, 1, zone, problems)
	}
	switch {
	case len(problems) > 0 || first.Before(end):
	case to == "": // the end is this day's
		problems["from"] = "must not be in the future"
	default:
		problems["to"] = "must be after the start of the period"
	}
	if len(problems) > 0 {
		return first, end, fault.Fields(fault.Invalid, problems)
	}
	return first.UTC().Truncate(time.Microsecond), end.UTC().Truncate(time.Microsecond), nil
}

func parseEnd(name, text string, days int, zone *time.Location, problems map[string]string) time.Time {
	if day, err := limits.Day(text, days, zone); err == nil {
		return bounded(name, day, problems)
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		problems[name] = "must be a day such as 2026-11-20, or a time such as 2026-11-20T09:30:00Z"
	}
	return bounded(name, at, problems)
}

// bounded adds a problem for times that must be a mistake.
func bounded(name string, at time.Time, problems map[string]string) time.Time {
	if problem := limits.Year(at); problem != "" && problems[name] == "" {
		problems[name] = problem
	}
	return at
}
