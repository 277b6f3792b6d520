package razorpayx

import (
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
)

// DefaultName is what the gateway is called unless it is given another name.
const DefaultName gateway.Name = "razorpayx"

// Modes that RazorpayX offers for bank accounts.
const (
	imps gateway.RailName = "IMPS"
	neft gateway.RailName = "NEFT"
	rtgs gateway.RailName = "RTGS"
)

// keyLifetime is how long RazorpayX honours an idempotency key (docs: api/x/payout-idempotency).
const keyLifetime = 7 * 24 * time.Hour

// Limits and windows as RazorpayX documents them, the narrowest of its partner banks' where they differ (docs: x/payouts).
const (
	impsMax = money.Amount(5_00_000_00) // ₹5 lakh
	rtgsMin = money.Amount(2_00_000_00) // ₹2 lakh
)

// Capabilities are what RazorpayX documents. Verification is offered on Lite accounts alone.
func Capabilities(c money.Currency) gateway.Capabilities {
	return gateway.Capabilities{
		Currency: c.Code(), Rails: rails(c), Least: MinAmount,
		KeyLifetime: keyLifetime,
		Lookup:      true, List: true, Metadata: true, Cancel: true, Verification: true, Statement: true,
	}
}

// rails are the modes, the fastest first. Only India's are documented; the sandbox takes other currencies too.
func rails(c money.Currency) []gateway.Rail {
	if c.Code() != "INR" {
		return []gateway.Rail{{Name: neft}}
	}
	return []gateway.Rail{
		{Name: imps, Max: impsMax, Takes: 5 * time.Minute},
		{Name: rtgs, Min: rtgsMin, Opens: 9 * 60, Closes: 17*60 + 30, Takes: 30 * time.Minute},
		{Name: neft, Opens: 2 * 60, Closes: 18 * 60, Takes: 2 * time.Hour},
	}
}

// Name is what the gateway is called here.
func (c *Client) Name() gateway.Name { return c.o.Name }

// Capabilities are what the account offers.
func (c *Client) Capabilities() gateway.Capabilities { return c.capabilities }
