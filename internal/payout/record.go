package payout

import (
	"fmt"

	"bursar/internal/ledger"
)

// Record is a hash of what a payout says, once the bank has paid it under a reference, and no transfer tells:
// the account that it went to, and what the gateway and the bank call it. It is "" before. Nobody changes these
// afterwards, so the audit finds who does so by hand.
func (p Payout) Record() string {
	if p.CompletedAt.IsZero() || p.UTR == "" {
		return ""
	}
	return string(ledger.HashOf(fmt.Sprintf("bursar payout v1 %q %q %q %q %q %q %d", p.ID, p.Seller, p.BankAccountID, p.Mode, p.GatewayID, p.UTR, p.CompletedAt.UnixMicro())))
}
