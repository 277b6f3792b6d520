package payout

import (
	"fmt"

	"bursar/internal/fault"
	"bursar/internal/seal"
)

// words are what the seal of a payout is of: all that it was made with, which nobody changes afterwards.
func (p Payout) words() string {
	return fmt.Sprintf("payouts|seal|%q %q %q %d %d %q %q %d %d", p.ID, p.Seller, p.BankAccountID, p.Amount, p.Fee, p.Notes, p.Mode,
		p.RequestedAt.UnixMicro(), p.ArriveAt.UnixMicro())
}

// sealIn seals a payout that is about to be added.
func (p *Payout) sealIn(s seal.Seals) (err error) {
	p.Seal, err = s.Make(p.words())
	return err
}

// CheckSeal fails with [seal.ErrBroken] if the payout is not what the service added.
func (p Payout) CheckSeal(s seal.Seals) error {
	if err := s.Check(p.Seal, p.ID.requestedAt(), p.words()); err != nil {
		return fmt.Errorf("payout %s: %w", p.ID, err)
	}
	return nil
}

// ErrAltered keeps money where it is that somebody else than the service put down for a payout.
var ErrAltered = fault.New(fault.Refused, "payout_altered",
	"This payout is not as it was requested, so it is neither sent nor cancelled nor given back. Our team has to look into it.")

// alteredBeforeSending is what is written down on a payout that is not sent, in place of the gateway's word.
const alteredBeforeSending = "this payout or its bank account is not what was asked for: somebody changed it in the database, so it is not sent"

// Altered reports whether what is written down on the payout is that it was changed by hand, and not what the gateway said.
func (p Payout) Altered() bool { return p.Contradiction == alteredBeforeSending }
