package gateway

import "bursar/internal/id"

// ReferencePrefix begins every reference that we give a transfer: the payout's id.
const ReferencePrefix = "pyt_"

// LongestID is how long an id at a gateway, a reference or a bank's reference may be.
const LongestID = 64

// IsID reports whether s can be an id at a gateway, or a reference, and be kept in every database: they take no such text as "\x00"
// or broken UTF-8.
func IsID(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= LongestID
}

// IsReference reports whether s can be a reference of ours. Others pay from the same account.
func IsReference(s string) bool { return id.Valid(ReferencePrefix, s) }
