package app

import (
	"context"
	"errors"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
)

var errNoProofs = errors.New("app: this store keeps no proofs")

// freshProofs has auth check the proofs that come with bank accounts and with requests for payouts.
type freshProofs struct{ auth *auth.Service }

func (f freshProofs) RequireProof(ctx context.Context, tx bank.Tx, r bank.Registration) error {
	ptx, ok := tx.(auth.ProofTx)
	if !ok {
		return errNoProofs
	}
	who := auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
	return f.auth.RequireProof(ctx, ptx, who, auth.ActionReplaceAccount, r.Number.Reveal(), string(r.IFSC))
}

func (f freshProofs) ConfirmSeller(ctx context.Context, tx payout.RequestTx, r payout.Request) error {
	stx, ok := tx.(auth.SessionTx)
	if !ok {
		return errNoProofs
	}
	return f.auth.ConfirmSeller(ctx, stx, principalOf(r))
}

func (f freshProofs) LockSession(ctx context.Context, tx payout.RequestTx, r payout.Request) error {
	ptx, ok := tx.(auth.Tx)
	if !ok {
		return errNoProofs
	}
	return f.auth.LockSession(ctx, ptx, principalOf(r))
}

func (f freshProofs) UseProof(ctx context.Context, tx payout.RequestTx, r payout.Request, to []string) error {
	ptx, ok := tx.(auth.Tx)
	if !ok {
		return errNoProofs
	}
	return f.auth.UseProof(ctx, ptx, principalOf(r), auth.ActionRequestPayout, to...)
}

func principalOf(r payout.Request) auth.Principal {
	return auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
}
