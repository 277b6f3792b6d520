package storetest

import (
	"context"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
)

// Proofs has auth check the proofs that come with bank accounts and requests for payouts, as the program does. Auth is the service of the moment.
type Proofs struct{ Auth func() *auth.Service }

// RequireProof is as [bank.Proofs] say.
func (p Proofs) RequireProof(ctx context.Context, tx bank.Tx, r bank.Registration) error {
	who := auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
	return p.Auth().RequireProof(ctx, tx.(auth.ProofTx), who, auth.ActionReplaceAccount, r.Number.Reveal(), string(r.IFSC)) //nolint:forcetypeassert // the store's has it
}

// ConfirmSeller is as [payout.Proofs] say.
func (p Proofs) ConfirmSeller(ctx context.Context, tx payout.RequestTx, r payout.Request) error {
	return p.Auth().ConfirmSeller(ctx, tx.(auth.SessionTx), auth.Principal{UserID: r.Seller, Session: r.Session}) //nolint:forcetypeassert // the store's has it
}

// LockSession is as [payout.Proofs] say.
func (p Proofs) LockSession(ctx context.Context, tx payout.RequestTx, r payout.Request) error {
	return p.Auth().LockSession(ctx, tx.(auth.Tx), auth.Principal{UserID: r.Seller, Session: r.Session}) //nolint:forcetypeassert // the store's has it
}

// UseProof is as [payout.Proofs] say.
func (p Proofs) UseProof(ctx context.Context, tx payout.RequestTx, r payout.Request, to []string) error {
	who := auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
	return p.Auth().UseProof(ctx, tx.(auth.Tx), who, auth.ActionRequestPayout, to...) //nolint:forcetypeassert // the store's has it
}
