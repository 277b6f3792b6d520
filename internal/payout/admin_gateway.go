package payout

import (
	"context"
	"errors"
	"log/slog"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// Failures of the gateway that an admin may see.
var (
	// ErrNoTransfer is the gateway's answer, and no proof: it may come to know an order later.
	ErrNoTransfer = fault.New(fault.Refused, "unknown_to_gateway",
		"The gateway answered that it knows no such transfer. Nothing was changed.")
	ErrGatewayUnclear = fault.New(fault.Unavailable, "gateway_unclear",
		"The gateway gave no clear answer. Nothing was changed; try again in a moment.")
	ErrNoGateway = fault.New(fault.Unavailable, "gateway_not_configured",
		"The gateway of this payout is not configured. Nothing was changed.")
	ErrNoLookup = fault.New(fault.Refused, "gateway_has_no_lookup",
		"This gateway finds no transfer by our reference. Look it up in the gateway's own records, and match it by its id there.")
	ErrOtherTransfer = fault.New(fault.Refused, "other_transfer", "This transfer is not this payout's. Nothing was changed.")
)

// AskGateway looks a payout up at the gateway now, for an admin, applies the answer, and returns the
// payout as it then is. It sends nothing, and moves the payout as its own next step would. A discrepancy with
// the ledger is recorded on it. It fails with [ErrNotFound], [ErrNoTransfer], [ErrPayoutTampered] or [ErrGatewayUnclear].
func (s *Service) AskGateway(ctx context.Context, by decision.By, id ID) (Payout, error) {
	if err := by.CheckNote(); err != nil {
		return Payout{}, err
	}
	seen, err := s.o.Store.Payout(ctx, id)
	if err != nil {
		return Payout{}, err
	}
	asked := decision.New(by, decision.AskGateway, seen.Seller, string(id), s.o.Now())
	if err := s.o.Store.InTx(ctx, func(tx Tx) error {
		if err := checkOwner(ctx, tx, seen); err != nil {
			return err
		}
		return ledger.RecordDecision(ctx, tx, asked)
	}); err != nil {
		return Payout{}, err
	}
	s.logDecision(ctx, asked)
	report, err := s.lookUp(ctx, seen)
	if err != nil {
		return seen, gatewayFault(err)
	}
	if err := s.applyLookup(ctx, seen, report); err != nil {
		return Payout{}, err
	}
	return s.o.Store.Payout(ctx, id)
}

// applyLookup applies a gateway report to a payout. A discrepancy is no error here: it
// is recorded on the payout.
func (s *Service) applyLookup(ctx context.Context, seen Payout, r gateway.Report) error {
	if seen.State == Waiting {
		_, err := s.recordTransfer(ctx, seen, r)
		return err
	}
	err := s.applyReport(ctx, seen, r)
	if _, isDiscrepancy := errors.AsType[discrepancyError](err); isDiscrepancy {
		return nil
	}
	return err
}

// gatewayFault is the fault for an answer without a transfer.
func gatewayFault(err error) error {
	switch {
	case errors.Is(err, gateway.ErrUnknownTransfer):
		return ErrNoTransfer
	case errors.Is(err, gateway.ErrNotConfigured):
		return ErrNoGateway
	case errors.Is(err, gateway.ErrNotOffered):
		return ErrNoLookup
	default:
		return ErrGatewayUnclear.Because(err)
	}
}

// MatchTransfer matches an unclear payout, or a waiting one that was sent before a restore, with a transfer whose gateway id an admin knows,
// where it is not found by our reference. The gateway is asked for that transfer, and only its answer
// counts: that the transfer has this payout's reference, amount, currency and account. Then the payout goes on from there. It
// fails with [ErrMovedOn], [ErrNoTransfer], [ErrOtherTransfer] or [ErrGatewayUnclear].
func (s *Service) MatchTransfer(ctx context.Context, by decision.By, id ID, gatewayID string) (Payout, error) {
	if err := by.RequireNote(); err != nil {
		return Payout{}, err
	}
	if !isURLSafeID(gatewayID) {
		return Payout{}, fault.Field("gatewayId", "must be the transfer's id as the gateway shows it")
	}
	seen, err := s.o.Store.Payout(ctx, id)
	if err != nil {
		return Payout{}, err
	}
	if !seen.isUnresolved() && seen.State != Waiting {
		return Payout{}, movedOn(seen)
	}
	g, err := s.gatewayOf(seen)
	if err != nil {
		return seen, gatewayFault(err)
	}
	report, err := g.Fetch(ctx, gatewayID)
	if err != nil {
		return seen, gatewayFault(err)
	}
	if err := s.isTransferOf(seen, gatewayID, report); err != nil {
		return seen, err
	}
	made := decision.New(by, decision.MatchTransfer, seen.Seller, string(id), s.o.Now())
	if seen.State == Waiting {
		var moved bool
		moved, err = s.recordTransferIf(ctx, seen, report, ledger.ActorAdmin+by.Admin, func(tx ChangeTx) error { return ledger.RecordDecision(ctx, tx, made) })
		if err == nil && !moved {
			err = ErrMovedOn
		}
	} else {
		scope := ledger.Scope{Payout: string(id)}
		_, err = s.applyReportIf(ctx, scope, seen, report, ledger.ActorAdmin+by.Admin, func(p Payout) (alsoRecord, error) {
			if !p.isUnresolved() {
				return nil, movedOn(p)
			}
			return func(tx ChangeTx, _ Payout) error { return ledger.RecordDecision(ctx, tx, made) }, nil
		})
	}
	if d, isDiscrepancy := errors.AsType[discrepancyError](err); isDiscrepancy && d.Error() == TamperedNote {
		err = ErrPayoutTampered.Because(err)
	} else if isDiscrepancy { // which is recorded: the payout is not what was read of it
		err = ErrMovedOn.Because(err)
	}
	if err != nil {
		return Payout{}, err
	}
	s.logDecision(ctx, made, slog.String("gateway_id", gatewayID))
	return s.o.Store.Payout(ctx, id)
}

// isTransferOf fails unless the gateway's word is that the transfer is the payout's.
func (s *Service) isTransferOf(p Payout, gatewayID string, r gateway.Report) error {
	switch {
	case r.GatewayID != gatewayID:
		return ErrGatewayUnclear.WithMessage("The gateway was asked for %s and told of %s. Nothing was changed.", gatewayID, r.GatewayID)
	case r.Reference != string(p.ID):
		return ErrOtherTransfer.WithMessage("This transfer is not this payout's: the gateway has it under the reference %q. Nothing was changed.", r.Reference)
	case r.Amount != p.Net():
		c := s.o.Currency
		return ErrOtherTransfer.WithMessage("This transfer is of %s %s, and the payout sends %s. Nothing was changed.",
			c.FormatFixed(r.Amount), c, c.FormatFixed(p.Net()))
	}
	if err := reportMismatch(r, p, s.o.Currency); err != nil {
		return ErrOtherTransfer.WithMessage("This transfer is not this payout's: the gateway says that %s. Nothing was changed.", err)
	}
	return nil
}

// isURLSafeID reports whether s can stand in an address of the gateway as it is. Other characters would make another address of it.
func isURLSafeID(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= gateway.LongestID
}
