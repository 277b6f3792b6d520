package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// IDPrefix begins a bank account's id.
const IDPrefix = "bka_"

// Registration asks for an account to become the seller's current one.
type Registration struct {
	Seller string
	// Actor is who asks without a session of the seller's, as the journal names them: a service key or an operator in the seller's
	// name, or the seller with a token of another issuer. It is empty where a session asks.
	Actor string
	// Session is the seller's that asks: if it has ended meanwhile, nothing is registered. It is empty where
	// nobody signed in to ask.
	Session string
	// Proof is a fresh proof of who the seller is, bound to this account; it may be empty.
	Proof  string
	Holder string
	Number Number
	IFSC   IFSC
	// imported says that the account is of another system, and so not newer than the one that is here.
	imported bool
	// dryRun undoes the registration, so that nothing is changed.
	dryRun bool
}

// Each verification costs money, so a seller may register so many accounts at once, and then one
// more each time that a day's share has passed.
const (
	registrationsADay = 10
	registrationCost  = 24 * time.Hour / registrationsADay
)

// ErrTooMany asks the seller to wait before registering another account.
var ErrTooMany = fault.New(fault.TooMany, "too_many_bank_accounts",
	"Too many bank accounts were registered lately. Try again later.")

// Register makes an account the seller's current one, unverified, with its verification due at once.
// The current account again is returned as it is, unless it was rejected. It fails with a fault of
// kind Invalid that names the fields at fault, with [ErrSessionEnded], [ErrSellerGone] or [ErrTooMany].
func (s *Service) Register(ctx context.Context, r Registration) (Account, error) {
	account, _, err := s.register(ctx, r)
	return account, err
}

// errHasAccount keeps an import from replacing an account: the seller may have registered it since the import ran first.
var errHasAccount = fault.Field("sellerId", "has another bank account here, which an import does not replace")

// Import is [Service.Register] for an account of another system, and reports whether the account is new. It replaces no account but one
// that was rejected. The same again changes nothing, also after it was rejected.
func (s *Service) Import(ctx context.Context, r Registration) (bool, error) {
	r.imported = true
	_, created, err := s.register(ctx, r)
	return created, err
}

// WouldImport is what [Service.Import] would do, and changes nothing.
func (s *Service) WouldImport(ctx context.Context, r Registration) (bool, error) {
	r.dryRun = true
	return s.Import(ctx, r)
}

func (s *Service) register(ctx context.Context, r Registration) (Account, bool, error) {
	r.Holder = strings.Join(strings.Fields(r.Holder), " ")
	if err := r.check(); err != nil {
		return Account{}, false, err
	}
	draft, err := s.draft(r)
	if err != nil {
		return Account{}, false, err
	}
	var account Account
	inTx := s.o.Store.InTx
	if r.dryRun {
		inTx = ledger.DryRun(inTx)
	}
	err = inTx(ctx, func(tx Tx) (err error) {
		if err := r.mayStill(ctx, tx); err != nil {
			return err
		}
		account, err = s.replace(ctx, tx, r, draft)
		return err
	})
	if f := fault.From(err); f != nil && f.Kind == fault.Unauthenticated && !r.dryRun && !errors.Is(err, ErrSessionEnded) {
		err = errors.Join(err, s.recordMissingProof(ctx, r, draft.CreatedAt))
	}
	return account, account.ID == draft.ID, err
}

// Refused replacements are recorded so often at once, and then one more each time that a day's share has passed.
const (
	proofsMissingADay = 10
	proofMissingCost  = 24 * time.Hour / proofsMissingADay
)

// recordMissingProof puts it on record that another account was refused, so that its seller learns of each attempt.
func (s *Service) recordMissingProof(ctx context.Context, r Registration, now time.Time) error {
	data, err := ledger.Facts("last4", r.Number.Last4())
	if err != nil {
		return err
	}
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		_, counted, err := tx.TakeThrottle(ctx, "proof_missing|"+r.Seller, now, proofMissingCost, proofsMissingADay*proofMissingCost)
		if err != nil || !counted {
			return err
		}
		_, err = tx.Append(ctx, ledger.Posting{Owner: r.Seller, At: now, Type: ledger.AccountProofMissing, Subject: r.Seller, Actor: r.by(), Data: data})
		if err != nil {
			return err
		}
		_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: r.Seller, Data: mail.BankAccountRefused{At: now, Now: r.Number.Last4()}})
		return err
	})
}

// ErrSessionEnded keeps a user who is being signed out from changing the bank account.
var ErrSessionEnded = fault.New(fault.Unauthenticated, "invalid_token", "Your session has ended. Sign in again.")

// ErrSellerGone keeps the number of a user who deleted the account meanwhile out of the database.
var ErrSellerGone = fault.New(fault.NotFound, "seller_not_found", "This seller is not here any more, so the bank account was not registered.")

// mayStill fails if the session that asks has ended: the user may have another owner by now. Where no session asks, the
// seller has to be there.
func (r Registration) mayStill(ctx context.Context, tx Tx) error {
	if r.Session == "" {
		exists, err := tx.SellerExists(ctx, r.Seller)
		if err == nil && !exists {
			err = ErrSellerGone
		}
		return err
	}
	lives, err := tx.SessionLives(ctx, r.Session, r.Seller)
	if err == nil && !lives {
		err = ErrSessionEnded
	}
	return err
}

// by is who asks, as the journal names them.
func (r Registration) by() string { return cmp.Or(r.Actor, ledger.ActorUser+r.Seller) }

// check names every field that breaks a rule.
func (r Registration) check() error {
	problems := map[string]string{}
	if problem := CheckHolder(r.Holder); problem != "" {
		problems["accountHolder"] = problem
	}
	_, numberErr := ParseNumber(r.Number.Reveal())
	_, ifscErr := ParseIFSC(string(r.IFSC))
	for _, err := range []error{numberErr, ifscErr} {
		if f := fault.From(err); f != nil {
			maps.Copy(problems, f.Details)
		}
	}
	if len(problems) > 0 {
		return fault.Fields(fault.Invalid, problems)
	}
	return nil
}

// CheckHolder returns what is wrong with an account holder's name, or "".
func CheckHolder(name string) string {
	if n := utf8.RuneCountInString(name); n < 3 || n > 120 || !isName(name) {
		return "must be the holder's name as the bank has it, 3 to 120 printable characters"
	}
	return ""
}

func isName(s string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return utf8.ValidString(s) && strings.ContainsFunc(s, unicode.IsLetter) && !strings.ContainsFunc(s, unprintable)
}

// draft is an account as it begins.
func (s *Service) draft(r Registration) (Account, error) {
	// Stored instants are microseconds, so what is answered now and read later are the same.
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	a := Account{
		ID:        ID(s.o.IDs.New(IDPrefix, now)),
		Seller:    r.Seller,
		Holder:    r.Holder,
		IFSC:      r.IFSC,
		Last4:     r.Number.Last4(),
		Current:   true,
		Status:    StatusUnverified,
		NameScore: noScore,
		DueAt:     now,
		CreatedAt: now,
	}
	return a, a.encryptNumber(s.o.Keys, r.Number)
}

// replace puts the draft in the place of the current account, or returns that one if it is the same.
// The throttle comes first because it makes two registrations of one seller wait for each other.
func (s *Service) replace(ctx context.Context, tx Tx, r Registration, draft Account) (Account, error) {
	bucket := "bank_account|" + r.Seller
	busyUntil, counted, err := tx.TakeThrottle(ctx, bucket, draft.CreatedAt, registrationCost, registrationsADay*registrationCost)
	if err != nil {
		return Account{}, err
	}
	current, err := tx.CurrentBankAccount(ctx, r.Seller)
	if err != nil && !errors.Is(err, ErrNone) {
		return Account{}, err
	}
	same, tampered, err := s.same(ctx, tx, current, r)
	switch {
	case err != nil:
		return Account{}, err
	case same && counted:
		return current, tx.RefundThrottle(ctx, bucket, registrationCost)
	case same:
		return current, nil
	case r.imported && current.ID != "" && current.Status != StatusRejected:
		return Account{}, errHasAccount
	case !counted:
		free := busyUntil.Add(-(registrationsADay - 1) * registrationCost)
		return Account{}, ErrTooMany.After(free.Sub(draft.CreatedAt))
	}
	balance, err := tx.Balance(ctx, r.Seller)
	if err != nil {
		return Account{}, err
	}
	// A thief would replace the account that money goes to, which is not the current one any more if that was rejected. During a hold each
	// replacement counts, so that the last account has waited as long as the first one.
	onHold := balance.Hold(draft.CreatedAt)
	diverts := current.Status == StatusVerified || tampered || !onHold.IsZero()
	if !diverts { // an entry that says that the account is verified may be missing, or the account's row
		err := tx.CheckNewest(ctx, r.Seller)
		if err == nil {
			diverts, err = tx.HasVerifiedAccount(ctx, r.Seller)
		}
		if diverts = diverts || errors.Is(err, ledger.ErrTampered); err != nil && !diverts {
			return Account{}, err
		}
	}
	// A seller with a second factor proves each new account, the first one too: a thief would add the account that is missing. A
	// service key has no proof, so it registers none for such a seller.
	if s.o.Proofs != nil && (r.Session != "" || r.Actor != "") {
		if err := s.o.Proofs.RequireProof(ctx, tx, r); err != nil {
			return Account{}, err
		}
	}
	if isNew, err := tx.InsertBankAccount(ctx, draft); err != nil {
		return Account{}, err
	} else if !isNew {
		return Account{}, ledger.ErrTampered.Because(fmt.Errorf("there is a bank account %s already", draft.ID))
	}
	by := r.by()
	if err := s.endCurrent(ctx, tx, draft, by); err != nil {
		return Account{}, err
	}
	if diverts { // the hold goes into the journal before the account, so that nobody can cut off the hold alone
		if onHold, err = s.hold(ctx, tx, draft, by, onHold); err != nil {
			return Account{}, err
		}
	}
	if err := record(ctx, tx, Account{ID: draft.ID}, draft, by, draft.CreatedAt); err != nil {
		return Account{}, err
	}
	if current.ID == "" && !diverts {
		return draft, nil
	}
	// It may not have been the seller who replaced it.
	_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: draft.Seller, Data: mail.BankAccountReplaced{
		At: draft.CreatedAt, Was: current.Last4, Now: draft.Last4, HoldUntil: onHold,
	}})
	return draft, err
}

// maxFormer bounds how many accounts are looked through for the current one: a seller may have registered ten a day for years.
const maxFormer = 100

// endCurrent records that the account that the seller's journal has as the current one is not any more, whether or not its row says so:
// an attacker may have hidden the row for the moment, to put it back later. It fails with [ledger.ErrTampered] if the journal does not
// tell which account that is.
func (s *Service) endCurrent(ctx context.Context, tx Tx, draft Account, by string) error {
	added, err := tx.AccountsAdded(ctx, draft.Seller, maxFormer)
	if err != nil {
		return err
	}
	for _, e := range added {
		entries, err := tx.EntriesAbout(ctx, draft.Seller, e.Subject)
		if err != nil {
			return err
		}
		was, err := Fold(ID(e.Subject), entries)
		if err != nil {
			return err
		}
		former := was
		former.Current = false
		if err := record(ctx, tx, was, former, by, draft.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

// hold puts the seller's payouts on hold, and returns until when. stands is until when they are.
func (s *Service) hold(ctx context.Context, tx Tx, is Account, by string, stands time.Time) (time.Time, error) {
	if s.o.CoolDown == 0 {
		return stands, nil
	}
	now := is.CreatedAt
	until := now.Add(s.o.CoolDown)
	p, err := ledger.HoldPosting(is.Seller, by, ledger.HoldBankAccountReplaced, now, until)
	if err != nil {
		return time.Time{}, err
	}
	e, err := tx.Append(ctx, p)
	return e.After.Hold(now), err
}

// same reports whether a registration is of the account that is there. A rejected account is given
// another chance, unless it is imported again, and so is one that was tampered with. tampered says that the row is not what the
// journal says.
func (s *Service) same(ctx context.Context, tx Tx, current Account, r Registration) (same, tampered bool, err error) {
	if current.ID == "" {
		return false, false, nil
	}
	_, err = check(ctx, tx, current)
	switch {
	case errors.Is(err, ledger.ErrTampered):
		return false, true, nil
	case err != nil:
		return false, false, err
	case current.Status == StatusRejected && !r.imported || current.Holder != r.Holder || current.IFSC != r.IFSC || current.Last4 != r.Number.Last4():
		return false, false, nil
	}
	number, err := current.open(s.o.Keys)
	return err == nil && number == r.Number, false, err
}
