package sandbox

import (
	"strings"
	"unicode/utf8"

	"bursar/internal/gateway/razorpayx"
)

// story is how the sandbox treats a beneficiary's account.
type story struct {
	// invalid means that a validation calls the account invalid.
	invalid bool
	// holder changes the name that a validation finds to another one.
	holder func(name string) string
	// queued leaves a new payout in the gateway's queue, where it can still be cancelled.
	queued bool
	// steps happen to a payout one after another, the settling time apart, once it is processing.
	steps []step
	// orderLost cuts the connection before a new payout is made, each time that it is ordered.
	orderLost bool
	// answerLost cuts the connection in place of the answer that a new payout was made.
	answerLost bool
	// eventsFirst takes the first step, and delivers all events, before a new payout is answered.
	eventsFirst bool
	// eventsMixed delivers each event twice, and that of the beginning last.
	eventsMixed bool
	// eventsNever delivers none.
	eventsNever bool
}

// step is a change of a payout. One that does not change the status brings the bank's reference.
type step struct {
	status string
	reason string
	utr    bool
}

var (
	begun    = step{razorpayx.StatusProcessing, "payout_bank_processing", false}
	waits    = step{razorpayx.StatusQueued, "low_balance", false}
	bankDown = step{razorpayx.StatusQueued, "beneficiary_bank_down", false}
	paid     = step{razorpayx.StatusProcessed, "payout_processed", true}
	paidBare = step{razorpayx.StatusProcessed, "payout_processed", false}
	failed   = step{razorpayx.StatusReversed, "bank_account_closed", false}
	returned = step{razorpayx.StatusReversed, "beneficiary_bank_rejected", false}

	usual = story{steps: []step{paid}}
)

// stories by the last four digits of the beneficiary's account number.
var stories = map[string]story{
	"0001": {invalid: true, steps: []step{paid}},
	"0002": {steps: []step{failed}},
	"0003": {steps: []step{paid, returned}},
	"0004": {},
	"0005": {steps: []step{paid}, answerLost: true},
	"0006": {steps: []step{paid}, eventsFirst: true},
	"0007": {steps: []step{paid}, eventsMixed: true},
	"0008": {steps: []step{paid}, eventsNever: true},
	"0009": {steps: []step{paidBare, paid}},
	"0010": {holder: givenInitial, steps: []step{paid}},
	"0011": {holder: func(string) string { return "Bharat Traders" }, steps: []step{paid}},
	"0012": {queued: true, steps: []step{paid}},
	"0013": {orderLost: true},
}

// givenInitial is a name with the initial in place of the given name, which may be that of a relative.
func givenInitial(name string) string {
	given, rest, _ := strings.Cut(name, " ")
	initial, _ := utf8.DecodeRuneInString(given)
	return string(initial) + " " + rest
}

func storyOf(last4 string) story {
	if s, ok := stories[last4]; ok {
		return s
	}
	return usual
}
