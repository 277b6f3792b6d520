package payout

import (
	"context"
	"fmt"
	"time"

	"bursar/internal/fault"
	"bursar/internal/seal"
)

// words are what the seal of a payout is of: all that it was made with, and all that happened to it. What is left out is
// when to look next, and what the service writes without reading: why one that is under way waits.
func (p Payout) words() string {
	made := fmt.Sprintf("%q %q %q %d %d %q %q %d %d", p.ID, p.Seller, p.BankAccountID, p.Amount, p.Fee, p.Notes, p.Mode,
		p.RequestedAt.UnixMicro(), p.ArriveAt.UnixMicro())
	stands := fmt.Sprintf("%q %q %q %d %d %d %d %q %q", p.State, p.History, p.OrderBody, p.SentAt.UnixMicro(), p.ProcessedAt.UnixMicro(),
		p.CompletedAt.UnixMicro(), p.EndedAt.UnixMicro(), p.GatewayID, p.UTR)
	why, said := "", ""
	if p.Status() != StatusProcessing {
		why = fmt.Sprintf("%q %q", p.ReasonCode, p.Reason)
	}
	if !p.Altered() { // which is written down on rows that can't be sealed
		said = p.Contradiction
	}
	return fmt.Sprintf("payouts|seal|%s %s %q %q", made, stands, why, said)
}

// sealIn seals the payout as it is now.
func (p *Payout) sealIn(s seal.Seals) (err error) {
	p.Seal, err = s.Make(p.words())
	return err
}

// CheckSeal fails with [seal.ErrBroken] if the payout is not what the service wrote.
func (p Payout) CheckSeal(s seal.Seals) error {
	if err := s.Check(p.Seal, p.ID.requestedAt(), p.words()); err != nil {
		return fmt.Errorf("payout %s: %w", p.ID, err)
	}
	return nil
}

// ErrAltered keeps money where it is that somebody else than the service put down for a payout.
var ErrAltered = fault.New(fault.Refused, "payout_altered",
	"This payout is not as it was requested, so it is neither sent nor cancelled nor given back. Our team has to look into it.")

// altered is what is written down on such a payout, in place of the gateway's word.
const altered = "this payout or its bank account is not what was asked for: somebody changed it in the database, so nothing of it is sent or given back"

// Altered reports whether what is written down on the payout is that it was changed by hand, and not what the gateway said.
func (p Payout) Altered() bool { return p.Contradiction == altered }

// Vouch seals a payout as it is now, because a person has made sure that it is right, and returns it. It is for what a
// version wrote that seals nothing, or what was put right by hand. It fails with [ErrNotFound].
func Vouch(ctx context.Context, store Store, s seal.Seals, id ID, now time.Time) (Payout, error) {
	var p Payout
	err := store.InTx(ctx, func(tx Tx) (err error) {
		if p, err = tx.PayoutForUpdate(ctx, id); err != nil {
			return err
		}
		events, err := store.Events(ctx, id) // nobody adds one: the payout is locked
		if err != nil {
			return err
		}
		p.History = headOf(id, events)
		if err := p.sealIn(s); err != nil {
			return err
		}
		_, err = tx.MovePayout(ctx, p.State, p, now)
		return err
	})
	return p, err
}
