package razorpayx

// reasons tells a seller what a status_details.reason means and what to do about it
// (docs: errors/x/payout-status-details).
var reasons = map[string]string{
	// The beneficiary's bank refused.
	"bank_account_closed":                   "The bank account is closed. Register another bank account.",
	"bank_account_frozen":                   "The bank account is frozen. Ask your bank, or register another bank account.",
	"bank_account_invalid":                  "The bank does not know this account. Check the account number and IFSC and register them again.",
	"beneficiary_account_dormant":           "The bank account is dormant. Ask your bank to reactivate it, or register another bank account.",
	"beneficiary_bank_rejected":             "Your bank refused the transfer. Ask your bank, or register another bank account.",
	"transaction_limit_exceeded":            "The account can't receive this much. Ask your bank about its limits, or request a smaller amount.",
	"beneficiary_bank_failure":              "Your bank could not take the transfer. Request it again later.",
	"beneficiary_bank_offline":              "Your bank was not reachable. Request the payout again later.",
	"beneficiary_bank_technical_error":      "Your bank had a technical problem. Request the payout again later.",
	"beneficiary_psp_offline":               "Your bank's payment provider was not reachable. Request the payout again later.",
	"npci_beneficiary_timeout":              "Your bank did not answer in time. Request the payout again later.",
	"imps_not_allowed":                      "The account takes no instant transfers. Ask your bank, or register another bank account.",
	"invalid_ifsc_code":                     "The IFSC is not valid. Check it and register the bank account again.",
	"beneficiary_bank_confirmation_pending": "Your bank has yet to confirm the transfer.",

	// Our account, or the request.
	"beneficiary_account_invalid": "The bank account can't be paid to. Check the account number and IFSC and register them again.",
	"invalid_beneficiary":         "The bank account can't be paid to. Check the account number and IFSC and register them again.",
	"beneficiary_vpa_invalid":     "The payment address can't be paid to. Register another bank account.",
	"insufficient_funds":          "The marketplace's account could not cover the payout. Request it again later.",
	"amount_limit_exhausted_neft": "The bank's limit for transfers of this kind is used up. Request the payout again later.",
	"payout_approval_not_allowed": "The payout was not approved. Ask the marketplace about it.",
	"input_validation_failed":     "The payment gateway did not accept the payout's details.",

	// The gateway and the banks between.
	"gateway_down":            "The payment gateway was not available. Request the payout again later.",
	"gateway_technical_error": "The payment gateway had a technical problem. Request the payout again later.",
	"gateway_timeout":         "The bank did not answer the payment gateway in time. Request the payout again later.",
	"server_error":            "The payment gateway had a technical problem. Request the payout again later.",
	"server_error_temporary":  "The payment gateway had a technical problem. Request the payout again later.",

	// Still under way.
	"bank_window_closed":     "The transfer goes out when the bank opens its next window.",
	"payout_bank_processing": "The bank is working on the transfer.",
	"amount_limit_exhausted": "The bank's limit is used up for now; the transfer goes out when it is renewed.",
	"partner_bank_pending":   "The bank is working on the transfer.",
	"pending_approval":       "The payout waits for an approval.",
	"gateway_degraded":       "The bank network is slow; the transfer goes out when it recovers.",
	"beneficiary_bank_down":  "Your bank is not reachable; the transfer goes out when it is back.",
	"low_balance":            "The marketplace's account is being topped up; the transfer goes out then.",
	"syncing_balance":        "The marketplace's balance is being checked; the transfer goes out then.",
	"fee_recovery_pending":   "The marketplace's account is being settled; the transfer goes out then.",
}

// endings tells a seller about an end whose reason is missing or new.
var endings = map[string]string{
	StatusReversed:  "The bank returned the transfer. Check your bank account's details, then request the payout again.",
	StatusFailed:    "The transfer failed. Check your bank account's details, then request the payout again.",
	StatusRejected:  "The payout was not approved. Ask the marketplace about it.",
	StatusCancelled: "The payout was cancelled.",
}

// explain is a sentence for the seller, or "" where there is nothing to explain.
func explain(status, reason string) string {
	if sentence, ok := reasons[reason]; ok {
		return sentence
	}
	return endings[status]
}

// explainRefusal is a sentence for the seller about a payout that the gateway did not take.
func explainRefusal(p Problem) string {
	sentence, ok := reasons[string(p.Reason)]
	if !ok {
		sentence = reasons["input_validation_failed"]
	}
	return sentence + " It said: " + p.Description
}
