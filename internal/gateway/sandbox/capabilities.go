package sandbox

import (
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
)

// Capabilities are what a client of a sandbox with this profile may ask of it.
func (p Profile) Capabilities(currency money.Currency) gateway.Capabilities {
	c := razorpayx.Capabilities(currency)
	if p == Limited {
		c.KeyLifetime = LimitedKeyLifetime
		c.List, c.Metadata, c.Cancel, c.Verification, c.Statement = false, false, false, false, false
	}
	return c
}
