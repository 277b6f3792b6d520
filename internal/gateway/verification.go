package gateway

// VerificationRequest says which account is to be verified.
type VerificationRequest struct {
	// Account is our id of the bank account.
	Account string
	// Beneficiary is what the gateway calls it.
	Beneficiary string
}

// Verification is a report on an account.
type Verification struct {
	ID      string
	Outcome Outcome
	// RegisteredName is the holder's name at the bank, and NameScore its likeness to the one given, 0 to 100; -1 where
	// the gateway gives none.
	RegisteredName string
	NameScore      int
	// Reason is a sentence for the seller where the outcome is not OutcomeValid.
	Reason string
}

// Outcome is what a verification found.
type Outcome string

// Outcomes. A technical fault says nothing about the account, so it is tried again.
const (
	OutcomePending Outcome = "pending"
	OutcomeValid   Outcome = "valid"
	OutcomeInvalid Outcome = "invalid"
	OutcomeFault   Outcome = "fault"
	// OutcomeReview means that a person has to decide.
	OutcomeReview Outcome = "review"
)
