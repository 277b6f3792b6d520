package sale

import (
	"time"

	"bursar/internal/money"
)

// Month is what a seller earned in one month, refunds taken off.
type Month struct {
	Month  string // such as "2026-11", in the marketplace's zone
	Earned money.Amount
}

// Release is what becomes withdrawable on one day.
type Release struct {
	Day    time.Time // its first instant, in the marketplace's zone
	Amount money.Amount
	Sales  int64
}
