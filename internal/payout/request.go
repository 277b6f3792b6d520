package payout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/money"
)

// MaxNotes bounds a payout's notes, in characters.
const MaxNotes = 1000

// CheckNotes returns what is wrong with a payout's notes, or "".
func CheckNotes(notes string) string {
	return limits.Prose(notes, MaxNotes)
}

// Request asks for a withdrawal.
type Request struct {
	// Session is the session that the seller asks in, or "". Proof is a fresh proof of who the seller is, or "". With a session, an
	// amount above the limit needs a proof. With KeyActor or IssuerActor, such an amount is refused with [ErrSellerProof].
	Session, Proof string
	// ConfirmSession says that only the token was read: Proofs.ConfirmSeller has to confirm the session in the transaction of the request.
	ConfirmSession bool

	// KeyActor is the service key with which the marketplace asks for the seller, as the journal names it ("key:ID"); empty
	// where the seller asks.
	KeyActor string

	// IssuerActor is the identity provider whose token a seller without a session asks with, as the journal names it
	// ("issuer:URL"). No proof can come with it.
	IssuerActor string

	Seller string
	Amount money.Amount
	Notes  string
	// Key is the caller's idempotency key, or "".
	Key string
	// Account is the bank account that the seller was shown, or "" for whichever is current.
	Account bank.ID
}

func (r Request) source() Source {
	if r.KeyActor == "" {
		return ""
	}
	return FromMarketplace
}

// key keeps the idempotency keys of a service key apart from the seller's own, which contain no line break.
func (r Request) key() string {
	if r.KeyActor == "" || r.Key == "" {
		return r.Key
	}
	return r.KeyActor + "\n" + r.Key
}

// Request reserves the amount and records the payout, durably, before it returns. It reports whether
// the answer is that of an earlier request under the same key, which needs no new proof. It fails with the first of
// what Proofs.ConfirmSeller fails with, [ErrKeyReused], what Proofs.LockSession fails with, [ErrSellerProof], [ErrOnHold], [ErrBankUnverified] or
// [ErrAccountChanged], what Proofs.UseProof fails with, and [ledger.ErrInsufficient] with the available amount in its
// message; or with [ledger.ErrTampered] where the service did not write what it read.
func (s *Service) Request(ctx context.Context, r Request) (Payout, bool, error) {
	draft := s.draft(r)
	call := repeatable{
		user: r.Seller, key: r.key(), fingerprint: fmt.Sprintf(FingerprintRequest+"%d %s", r.Amount, r.Notes), payout: draft.ID,
		made:  func(p Payout) bool { return p.Seller == r.Seller && p.Source == r.source() },
		ownTx: s.mustProve(r),
	}
	scope := ledger.Scope{ReadsPause: true}
	if r.ConfirmSession {
		scope.Session = r.Session
		call.confirm = func(tx ChangeTx) error { return s.o.Proofs.ConfirmSeller(ctx, tx, r) }
	}
	p, replayed, err := s.idempotent(ctx, scope, draft.RequestedAt, call, func(tx ChangeTx) (Payout, error) {
		return s.reserve(ctx, tx, r, draft)
	})
	if err == nil && !replayed {
		s.o.StateChanged("", p.State)
	}
	return p, replayed, err
}

// Requested finds the payout that a seller's key stands for, and changes nothing. It reports false for a
// key that is new, forgotten or was refused.
func (s *Service) Requested(ctx context.Context, seller, key string) (p Payout, found bool, err error) {
	err = s.o.Store.InGroup(ctx, ledger.Scope{Owner: seller, Key: key}, func(tx ChangeTx) error {
		p, found = Payout{}, false
		first, err := tx.Idempotency(ctx, seller, key)
		if err != nil || first.Payout == "" || first.Refusal != "" {
			return err
		}
		p, err = tx.Payout(ctx, first.Payout)
		found = err == nil && p.Seller == seller
		return err
	})
	return p, found, err
}

// Answered reports whether a user's key has an answer, of whichever call.
func (s *Service) Answered(ctx context.Context, user, key string) (answered bool, err error) {
	if key == "" {
		return false, nil
	}
	err = s.o.Store.InGroup(ctx, ledger.Scope{Owner: user, Key: key}, func(tx ChangeTx) error {
		first, err := tx.Idempotency(ctx, user, key)
		answered = err == nil && first.Fingerprint != ""
		return err
	})
	return answered, err
}

// Quote is what a payout of amount would be like if it were asked for now.
func (s *Service) Quote(amount money.Amount) Quote {
	p := s.draft(Request{Amount: amount})
	return Quote{Amount: p.Amount, Fee: p.Fee, Net: p.Net(), Rail: p.Rail, ArriveAt: p.ArriveAt, CancelUntil: p.DueAt}
}

// draft is a payout as it begins.
func (s *Service) draft(r Request) Payout {
	// Stored instants are microseconds, so the answer to a repeat is exactly the first one.
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	submitAt := now.Add(s.o.CancelWindow)
	chosen := s.o.Gateways.Current()
	p := Payout{
		ID:     ID(s.o.IDs.New(IDPrefix, now)),
		Seller: r.Seller,
		Amount: r.Amount,
		Fee:    s.o.Fee.Of(r.Amount),
		Notes:  r.Notes,
		State:  Waiting,
		Source: r.source(),

		Gateway:       chosen.Name(),
		BankAccountID: r.Account,

		RequestedAt: now,
		DueAt:       submitAt,
	}
	p.Rail, p.ArriveAt = s.o.Arrival.Estimate(chosen.Capabilities().Rails, p.Net(), submitAt)
	p.ArriveAt = p.ArriveAt.UTC().Truncate(time.Microsecond)
	return p
}

// NeedsProof reports whether a seller who is signed in has to prove again who they are to withdraw an amount.
func (s *Service) NeedsProof(amount money.Amount) bool {
	return s.o.ProveAbove > 0 && amount > s.o.ProveAbove
}

func (s *Service) mustProve(r Request) bool { return r.Session != "" && s.NeedsProof(r.Amount) }

// ProofBinding is what the proof of a request is bound to.
func ProofBinding(amount money.Amount, account bank.ID) []string {
	return []string{strconv.FormatInt(int64(amount), 10), string(account)}
}

// reserve makes the checks of the interface in their order, then reserves the amount and stores the payout.
func (s *Service) reserve(ctx context.Context, tx RequestTx, r Request, p Payout) (Payout, error) {
	if r.Amount < s.o.Minimum { // not before: a repeat gets the first answer, whatever the minimum is now
		return Payout{}, fault.Field("amount", "must be at least "+s.o.Currency.Format(s.o.Minimum))
	}
	if s.mustProve(r) { // first: users are locked before journals
		if err := s.o.Proofs.LockSession(ctx, tx, r); err != nil {
			return Payout{}, err
		}
	}
	if (r.KeyActor != "" || r.IssuerActor != "") && s.NeedsProof(r.Amount) {
		return Payout{}, ErrSellerProof
	}
	if err := s.mayRequest(ctx, tx, p.Seller, p.RequestedAt); err != nil {
		return Payout{}, err
	}
	account, err := tx.AccountToPay(ctx, p.Seller)
	if err := payable(account, err); err != nil {
		return Payout{}, err
	}
	if p.BankAccountID != "" && p.BankAccountID != account.ID {
		return Payout{}, ErrAccountChanged
	}
	if s.mustProve(r) {
		if err := s.o.Proofs.UseProof(ctx, tx, r, ProofBinding(r.Amount, account.ID)); err != nil {
			return Payout{}, err
		}
	}
	p.BankAccountID = account.ID
	p.AccountHolder, p.AccountLast4, p.AccountIFSC = account.Holder, account.Last4, string(account.IFSC)

	data, err := ledger.Patch(Payout{ID: p.ID}, p)
	if err != nil {
		return Payout{}, err
	}
	_, err = tx.Append(ctx, ledger.Posting{
		Owner: p.Seller, At: p.RequestedAt, Type: ledger.PayoutRequested, Subject: string(p.ID), Actor: cmp.Or(r.KeyActor, r.IssuerActor, ledger.ActorUser+p.Seller),
		Data: data, Moved: ledger.ReservePayout(p.Amount),
	})
	if errors.Is(err, ledger.ErrInsufficient) {
		return Payout{}, s.insufficient(ctx, tx, p.Seller)
	}
	if err != nil {
		return Payout{}, err
	}
	return p, tx.InsertPayout(ctx, p)
}

func (s *Service) insufficient(ctx context.Context, tx RequestTx, seller string) error {
	balance, err := tx.Balance(ctx, seller)
	if err != nil {
		return err
	}
	return ledger.ErrInsufficient.WithMessage("The amount exceeds the available balance of %s %s.",
		s.o.Currency.FormatFixed(balance.Available), s.o.Currency)
}
