package payout

import (
	"context"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
)

// Quote is what a payout would cost and when it would arrive, if it were asked for now.
type Quote struct {
	Amount   money.Amount
	Fee      money.Amount
	Net      money.Amount
	Rail     gateway.RailName
	ArriveAt time.Time
	// CancelUntil is until when it can surely be cancelled.
	CancelUntil time.Time
}

// Attention is what waits for a person, oldest first, up to a hundred of each kind.
type Attention struct {
	// Unclear are the payouts whose outcome is not known: unknown or in review.
	Unclear []Payout
	// Discrepancies are the payouts with a discrepancy.
	Discrepancies []Payout
	// WithoutGateway are the payouts that wait because their gateway is not configured.
	WithoutGateway []Payout
	// Late are the payouts under way that should have arrived. Of the others, only unknown ones may be among them.
	Late []Payout
	// UnmatchedTransfers are the transfers that match no payout and that no admin has resolved.
	UnmatchedTransfers []UnmatchedTransfer
}

// attentionShown bounds each list of what waits for a person. An operator with more of them has one problem that caused them all.
const attentionShown = 100

// Attention is what waits for a person now.
func (s *Service) Attention(ctx context.Context) (a Attention, err error) {
	if a.Unclear, err = s.o.Store.UnresolvedPayouts(ctx, attentionShown); err != nil {
		return Attention{}, err
	}
	if a.Discrepancies, err = s.o.Store.PayoutsWithDiscrepancy(ctx, attentionShown); err != nil {
		return Attention{}, err
	}
	if a.WithoutGateway, err = s.o.Store.PayoutsWithoutGateway(ctx, attentionShown); err != nil {
		return Attention{}, err
	}
	if a.Late, err = s.o.Store.LatePayouts(ctx, s.o.Now(), attentionShown); err != nil {
		return Attention{}, err
	}
	a.UnmatchedTransfers, err = s.o.Store.OpenUnmatchedTransfers(ctx, attentionShown)
	return a, err
}

// UnmatchedTransfers lists the transfers that match no payout and that no admin has resolved, the first found first, up to a
// hundred.
func (s *Service) UnmatchedTransfers(ctx context.Context) ([]UnmatchedTransfer, error) {
	return s.o.Store.OpenUnmatchedTransfers(ctx, attentionShown)
}

// UnmatchedTransfer finds an unmatched transfer by its id. It fails with [ErrUnmatchedTransferResolved] if there is none, or an admin
// has resolved it.
func (s *Service) UnmatchedTransfer(ctx context.Context, id string) (UnmatchedTransfer, error) {
	at, gatewayID, ok := parseUnmatchedID(id)
	if !ok {
		return UnmatchedTransfer{}, ErrUnmatchedTransferResolved
	}
	open, found, err := s.o.Store.OpenUnmatchedTransfer(ctx, at, gatewayID)
	if err == nil && !found {
		err = ErrUnmatchedTransferResolved
	}
	return open, err
}
