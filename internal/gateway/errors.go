package gateway

import (
	"errors"

	"bursar/internal/fault"
)

var (
	// ErrNotOffered means that the gateway lacks the capability. Nothing was sent.
	ErrNotOffered = errors.New("the gateway does not offer this")
	// ErrUnknownTransfer means that the gateway answered that it knows no such transfer.
	ErrUnknownTransfer = errors.New("the gateway knows no such transfer")
	// ErrManyTransfers means that the gateway has more than one transfer under a reference of ours.
	ErrManyTransfers = errors.New("it has more than one transfer under the payout's reference")
	// ErrUnknownBeneficiary means that the gateway answered that it knows no such beneficiary, or none that we could
	// have made.
	ErrUnknownBeneficiary = errors.New("the gateway knows no such beneficiary")
	// ErrRefused means that the gateway answered, and said no. Asking the same again changes nothing.
	ErrRefused = errors.New("the gateway said no")
	// ErrRateLimited means that our own rate limit had no room for the request. Nothing was sent.
	ErrRateLimited = errors.New("rate limit of the gateway reached")
	// ErrNotConfigured means that this process has no gateway of that name.
	ErrNotConfigured = errors.New("the gateway is not configured")
)

// ErrDestinationRefused means that the gateway does not take these bank details, and never will.
var ErrDestinationRefused = fault.New(fault.Refused, "bank_account_refused",
	"The payment gateway does not accept these bank details. Check the account number and IFSC and register them again.")
