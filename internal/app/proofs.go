package app

import (
	"context"
	"errors"

	"bursar/internal/auth"
	"bursar/internal/bank"
)

// freshProofs has auth check the proofs that come with bank accounts.
type freshProofs struct{ auth *auth.Service }

func (f freshProofs) RequireProof(ctx context.Context, tx bank.Tx, r bank.Registration) error {
	ptx, ok := tx.(auth.ProofTx)
	if !ok {
		return errors.New("app: this store keeps no proofs")
	}
	who := auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
	return f.auth.RequireProof(ctx, ptx, who, auth.ActionReplaceAccount, r.Number.Reveal(), string(r.IFSC))
}
