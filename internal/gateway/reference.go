package gateway

import "bursar/internal/id"

// ReferencePrefix begins every reference that we give a transfer: the payout's id.
const ReferencePrefix = "pyt_"

// IsReference reports whether s can be a reference of ours. Others pay from the same account.
func IsReference(s string) bool { return id.Valid(ReferencePrefix, s) }
