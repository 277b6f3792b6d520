package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// proveAbove is the most that a seller who signed in may withdraw without a fresh proof of who they are.
const proveAbove = 4 * minimum

// proven is a fresh proof that a seller got: for which payout, until when, and which it has made.
type proven struct {
	session string
	amount  money.Amount
	account bank.ID
	until   time.Time
	made    payout.ID
}

// requestProofs has auth check the proofs that come with requests, as serve does.
type requestProofs struct{ on *instance }

func (p requestProofs) ConfirmSeller(ctx context.Context, tx payout.RequestTx, r payout.Request) error {
	var inside any = tx
	switch seen := tx.(type) {
	case changeTx:
		inside = seen.ChangeTx
	case payoutTx:
		inside = seen.Tx
	}
	sessions, ok := inside.(auth.SessionTx)
	if !ok {
		return errors.New("this store keeps no sessions")
	}
	return p.on.users.ConfirmSeller(ctx, sessions, principalOf(r))
}

func (p requestProofs) LockSession(ctx context.Context, tx payout.RequestTx, r payout.Request) error {
	inside, err := withUsers(tx)
	if err != nil {
		return err
	}
	return p.on.users.LockSession(ctx, inside, principalOf(r))
}

func (p requestProofs) UseProof(ctx context.Context, tx payout.RequestTx, r payout.Request, to []string) error {
	inside, err := withUsers(tx)
	if err != nil {
		return err
	}
	return p.on.users.UseProof(ctx, inside, principalOf(r), auth.ActionRequestPayout, to...)
}

// accountProofs has auth check the proofs that come with bank accounts, as serve does.
type accountProofs struct{ on *instance }

func (p accountProofs) RequireProof(ctx context.Context, tx bank.Tx, r bank.Registration) error {
	seen, ok := tx.(bankTx)
	inside, keeps := seen.Tx.(auth.ProofTx)
	if !ok || !keeps {
		return errors.New("this store keeps no proofs")
	}
	who := auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
	return p.on.users.RequireProof(ctx, inside, who, auth.ActionReplaceAccount, r.Number.Reveal(), string(r.IFSC))
}

// withUsers is the transaction of a request that uses a proof, as one that also has users.
func withUsers(tx payout.RequestTx) (auth.Tx, error) {
	seen, ok := tx.(payoutTx)
	if !ok {
		return nil, errors.New("a proof is used in a transaction that is shared")
	}
	inside, ok := seen.Tx.(auth.Tx)
	if !ok {
		return nil, errors.New("this store keeps no proofs")
	}
	return inside, nil
}

func principalOf(r payout.Request) auth.Principal {
	return auth.Principal{UserID: r.Seller, Session: r.Session, Proof: r.Proof}
}

// sessionLife is how long a session lasts.
const sessionLife = 30 * 24 * time.Hour

// signIn gives a seller a session, as a provider's answer does.
func (m *market) signIn(on *instance, s *seller) error {
	now := on.now()
	session := auth.Session{
		ID: m.ids.New("ses_", m.clock()), UserID: s.id, CreatedAt: now, AuthenticatedAt: now, Methods: []string{auth.MethodProvider},
		ExpiresAt: now.Add(sessionLife), CapAt: now.Add(sessionLife),
	}
	err := on.db.Auth().InTx(m.ctx, func(tx auth.Tx) error { return tx.InsertSession(m.ctx, session) })
	if err == nil {
		s.session = session.ID
		m.sessionEnds[session.ID] = session.ExpiresAt
	}
	return err
}

// checkEnded holds the answer that a session has ended against the model.
func (m *market) checkEnded(on *instance, a *ask) {
	ends, signedIn := m.sessionEnds[a.session]
	m.assert(refusalsAreTrue, signedIn && (m.tally.restores > 0 || !on.now().Before(ends)), a.seller,
		"%s got the answer that session %q has ended, which lasts until %s", a.seller, a.session, ends.Format(time.RFC3339))
}

// prove has a seller sign in and get a proof for a request, which is asked for in that session then.
func (m *market) prove(s *seller, a *ask) {
	account := m.model.sellers[s.id].current
	on := m.anyInstance()
	if on == nil || account == "" {
		return
	}
	_ = m.call(on, func() error {
		if err := m.signIn(on, s); err != nil {
			return err
		}
		proof, until, err := on.users.StepUp(m.ctx, auth.Principal{UserID: s.id, Session: s.session}, auth.StepUp{Action: auth.ActionRequestPayout, Bound: payout.ProofBinding(a.amount, account)})
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, s.id, "a proof was answered with %v", err)
		if err == nil {
			m.proofs[proof] = &proven{session: s.session, amount: a.amount, account: account, until: until}
			a.session, a.proof, s.proof = s.session, proof, proof
		}
		return err
	})
}

// steal has a thief with a seller's session ask for more than goes without a proof: with none, or with the seller's last one.
func (m *market) steal(s *seller) {
	available := m.model.row(s.id).Available
	if s.session == "" || available <= proveAbove {
		return
	}
	a := &ask{seller: s.id, amount: proveAbove + 1 + money.Amount(m.dice.Int64N(int64(available-proveAbove))), notes: "stolen", session: s.session}
	if m.chance(200) { // as little as needs one
		a.amount = proveAbove + 1
	}
	if last := m.proofs[s.proof]; last != nil && m.chance(700) {
		if a.proof = s.proof; m.chance(500) && last.amount <= available {
			a.amount = last.amount
		}
	}
	if m.chance(100) { // as much as goes without one
		a.amount, a.proof = proveAbove, ""
	}
	m.send(a)
}

// moveAfterProof has a seller register another account after the proof of a request was given, and an admin lift the hold at once, so that the request goes to an
// account that the proof is not for.
func (m *market) moveAfterProof(s *seller) {
	m.registerNumber(s, fmt.Sprintf("5%09d%04d", m.dice.IntN(1e9), 1000+m.dice.IntN(9000)))
	m.pause(m.between(0, time.Second))
	m.spawn(0, admin, func() { m.liftHold(s.id) })
	m.pause(m.between(20*time.Second, 2*time.Minute))
}

// checkProof holds a payout that was requested in a session against the proof that came with it.
func (m *market) checkProof(a *ask, p payout.Payout) {
	if a == nil || a.session == "" || p.Amount <= proveAbove {
		return
	}
	m.tally.proven++
	proof := m.proofs[a.proof]
	m.assert(proofsKept, proof != nil && proof.made == "" && proof.session == a.session && proof.amount == p.Amount && proof.account == p.BankAccountID && p.RequestedAt.Before(proof.until), p.Seller,
		"%s asked in session %s at %s for %s of %d to %s, and the proof was for %+v", p.Seller, a.session, p.RequestedAt, p.ID, p.Amount, p.BankAccountID, proof)
	if proof != nil {
		proof.made = p.ID
	}
}

// checkUnproven holds the answer that a proof is missing against the request.
func (m *market) checkUnproven(a *ask) {
	m.tally.unproven++
	m.assert(refusalsAreTrue, a.session != "" && a.amount > proveAbove, a.seller, "a proof was asked for %d, in session %q", a.amount, a.session)
	m.assert(oneAnswerPerKey, a.key == "" || a.made == "" && a.refused == "", a.seller,
		"a request that made %q and was refused with %q is answered with a proof that is missing", a.made, a.refused)
}

// forgetProofs says that the datastore has forgotten which proofs were used.
func (m *market) forgetProofs() {
	for _, proof := range m.proofs {
		proof.made = ""
	}
}
