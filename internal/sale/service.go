package sale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

// Options are what a service is made of.
type Options struct {
	Store Store
	Now   func() time.Time
	// HoldingPeriod is how long a sale stays pending when the marketplace does not say.
	HoldingPeriod time.Duration
	// Zone decides in which month a sale falls.
	Zone *time.Location
}

// Service records sales. It is safe for concurrent use, and every call is safe to repeat.
type Service struct{ o Options }

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Now == nil || o.Zone == nil || o.HoldingPeriod < 0 {
		return nil, errors.New("sale: a service needs a store, a clock, a zone, and a hold that is not negative")
	}
	return &Service{o}, nil
}

// NewSale asks for a sale to be recorded. Without OccurredAt it occurred now, or at AvailableAt if
// that is earlier; without AvailableAt it becomes available after the service's holding period.
type NewSale struct {
	ID          string
	Seller      string
	Amount      money.Amount
	OccurredAt  time.Time
	AvailableAt time.Time
	// Actor is who records it, as the journal names them; "marketplace" where it is empty.
	Actor string
}

// fingerprint is what a repeat must match: what was asked for, not what the defaults made of it.
func (n NewSale) fingerprint() string {
	return fmt.Sprintf("%s %d %s %s", n.Seller, n.Amount, stamp(n.OccurredAt), stamp(n.AvailableAt))
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

// Record adds a sale to the seller's pending balance, and reports whether it is new. The same again
// returns what is there; another sale under the same id is [ErrConflict].
func (s *Service) Record(ctx context.Context, n NewSale) (Sale, bool, error) {
	return s.record(ctx, n, s.o.Store.InTx)
}

// WouldRecord is what [Service.Record] would do, and changes nothing.
func (s *Service) WouldRecord(ctx context.Context, n NewSale) (Sale, bool, error) {
	return s.record(ctx, n, ledger.DryRun(s.o.Store.InTx))
}

// inTx runs a transaction, or a trial of one.
type inTx = func(ctx context.Context, fn func(Tx) error) error

func (s *Service) record(ctx context.Context, n NewSale, run inTx) (Sale, bool, error) {
	now := s.o.Now()
	draft, err := s.draft(n, now)
	if err != nil {
		return Sale{}, false, err
	}
	var (
		sale    Sale
		created bool
	)
	err = run(ctx, func(tx Tx) (err error) {
		sale, created, err = record(ctx, tx, draft, n.Actor, now)
		return err
	})
	return sale, created, err
}

// draft is a sale as it begins, or a fault that names a field.
func (s *Service) draft(n NewSale, now time.Time) (Sale, error) {
	if strings.HasPrefix(n.ID, openingSaleID("")) {
		return Sale{}, fault.Field("saleId", "must not begin with "+openingSaleID("")+", which names opening balances")
	}
	draft := Sale{
		ID: n.ID, Seller: n.Seller, Amount: n.Amount,
		OccurredAt: n.OccurredAt, AvailableAt: n.AvailableAt,
		CreatedAt: now, Fingerprint: n.fingerprint(),
	}
	if draft.OccurredAt.IsZero() {
		draft.OccurredAt = now
		if !draft.AvailableAt.IsZero() && draft.AvailableAt.Before(now) {
			draft.OccurredAt = draft.AvailableAt
		}
	}
	if draft.AvailableAt.IsZero() {
		draft.AvailableAt = draft.OccurredAt.Add(s.o.HoldingPeriod)
	}
	if draft.AvailableAt.Before(draft.OccurredAt) {
		return Sale{}, fault.Field("availableAt", "must not be before occurredAt")
	}
	draft.Month = draft.OccurredAt.In(s.o.Zone).Format(monthLayout)
	return draft, nil
}

func record(ctx context.Context, tx Tx, sale Sale, actor string, now time.Time) (Sale, bool, error) {
	first, inserted, err := insert(ctx, tx, sale, nil)
	if err != nil || !inserted {
		return first, false, err
	}
	return sale, true, earn(ctx, tx, sale, actor, now)
}

// insert adds a sale, or returns the one that has its id, unless that was tampered with. It reports whether it added it, and
// writes nothing if it fails. added are the ids of those that this transaction has added, and will append to their journals.
func insert(ctx context.Context, tx Tx, sale Sale, added map[string]bool) (Sale, bool, error) {
	sells, err := tx.SellerExists(ctx, sale.Seller)
	if err != nil {
		return Sale{}, false, err
	}
	if !sells {
		return Sale{}, false, ErrSellerNotFound
	}
	inserted, err := tx.InsertSale(ctx, sale)
	if err != nil {
		return Sale{}, false, err
	}
	if !inserted {
		first, err := tx.SaleForUpdate(ctx, sale.ID)
		if errors.Is(err, ErrNotFound) {
			err = ledger.ErrTampered.Because(fmt.Errorf("sale %s is in a journal, and its row is gone", sale.ID))
		}
		if err == nil && !added[sale.ID] {
			_, err = check(ctx, tx, first)
		}
		if err == nil && first.Fingerprint != sale.Fingerprint {
			err = ErrConflict
		}
		return first, false, err
	}
	return sale, true, nil
}

// earn appends a sale that was added to its seller's journal.
func earn(ctx context.Context, tx Tx, sale Sale, actor string, now time.Time) error {
	if err := post(ctx, tx, ledger.SaleRecorded, actor, Sale{ID: sale.ID}, sale, now, ledger.Sale(sale.Amount)); err != nil {
		return err
	}
	return tx.AddEarnings(ctx, sale.Seller, sale.Month, sale.Amount)
}

// NewRefund asks for money to be taken back from a sale. No amount means all that is left.
type NewRefund struct {
	Sale   string
	ID     string
	Amount money.Amount
	// Actor is as in [NewSale].
	Actor string
}

// Refund takes money back: from pending before the sale's release, from available after it, which
// may go below zero. It reports whether the refund is new; another one under the same id is
// [ErrRefundConflict]. It returns the sale as it then is.
func (s *Service) Refund(ctx context.Context, n NewRefund) (Sale, Refund, bool, error) {
	var (
		sale    Sale
		refund  Refund
		created bool
	)
	err := s.inTx(ctx, func(tx Tx, j *journals) (err error) {
		sale, refund, created, err = refundSale(ctx, tx, j, n, s.o.Now())
		return err
	})
	return sale, refund, created, err
}

func refundSale(ctx context.Context, tx Tx, j *journals, n NewRefund, now time.Time) (Sale, Refund, bool, error) {
	sale, err := tx.SaleForUpdate(ctx, n.Sale)
	if err != nil {
		return Sale{}, Refund{}, false, err
	}
	first, done, err := tx.Refund(ctx, n.Sale, n.ID)
	if err != nil {
		return Sale{}, Refund{}, false, err
	}
	entries, err := check(ctx, tx, sale)
	if err == nil {
		err = checkRefund(sale, n.ID, first, entries)
	}
	if err != nil {
		return Sale{}, Refund{}, false, err
	}
	fingerprint := strconv.FormatInt(int64(n.Amount), 10)
	if done {
		if first.Fingerprint != fingerprint {
			return Sale{}, Refund{}, false, ErrRefundConflict
		}
		return sale, first, false, nil
	}
	refund := Refund{ID: n.ID, Sale: n.Sale, Amount: n.Amount, At: now, Fingerprint: fingerprint}
	if refund.Amount == 0 {
		refund.Amount = sale.Left()
	}
	if refund.Amount == 0 || refund.Amount > sale.Left() {
		return Sale{}, Refund{}, false, ErrRefundTooLarge
	}
	if err := j.check(ctx, tx, sale, entries); err != nil {
		return Sale{}, Refund{}, false, err
	}
	if err := applyRefund(ctx, tx, sale, refund, n.Actor); err != nil {
		return Sale{}, Refund{}, false, err
	}
	sale.Refunded += refund.Amount
	return sale, refund, true, nil
}

func applyRefund(ctx context.Context, tx Tx, sale Sale, r Refund, actor string) error {
	within, err := tx.AddRefunded(ctx, sale.ID, r.Amount)
	if err != nil {
		return err
	}
	if !within { // the row was locked since it was read, so this can't be
		return fmt.Errorf("sale %s changed while a refund held its lock", sale.ID)
	}
	if err := tx.InsertRefund(ctx, r); err != nil {
		return err
	}
	after := sale
	after.Refunded += r.Amount
	if err := post(ctx, tx, ledger.SaleRefunded, actor, sale, after, r.At, ledger.RefundSale(r.Amount, sale.Released()),
		"refundId", r.ID, "refund", r.Amount, "refundFingerprint", r.Fingerprint); err != nil {
		return err
	}
	return tx.AddEarnings(ctx, sale.Seller, sale.Month, -r.Amount)
}

// post appends to the seller's journal what changes of a sale, and the money that goes with it.
func post(ctx context.Context, tx Tx, t ledger.Type, actor string, was, is Sale, now time.Time, moved ledger.Moved, more ...any) error {
	data, err := ledger.Patch(was, is, more...)
	if err != nil {
		return err
	}
	p := ledger.Posting{Owner: is.Seller, At: now, Type: t, Subject: subject(is.ID), Actor: cmp.Or(actor, ledger.ActorMarketplace), Data: data, Moved: moved}
	_, err = tx.Append(ctx, p)
	return err
}

// releaseBatch and releaseTime bound how many sales one transaction releases and how long it takes, so that requests wait little for it:
// each seller's journal is read from the entry that recorded the sale on.
const (
	releaseBatch = 50
	releaseTime  = 50 * time.Millisecond
)

// ReleaseDue makes sales whose holding period is over withdrawable, a batch at most, and returns how many. A sale
// that can't be released does not hold up the others.
func (s *Service) ReleaseDue(ctx context.Context) (int, error) {
	now := s.o.Now()
	var due []string
	var tampered error
	err := s.inTx(ctx, func(tx Tx, j *journals) (err error) {
		tampered = nil
		began := s.o.Now()
		due, err = tx.DueSales(ctx, now, releaseBatch)
		if err != nil {
			return err
		}
		for i, id := range due {
			if i > 0 && s.o.Now().Sub(began) > releaseTime {
				due = due[:i] // the others are still due
				break
			}
			found, err := release(ctx, tx, j, id, now)
			if errors.Is(err, errLongJournal) && len(j.tooLong) < maxLong { // it is still due too
				continue
			}
			if errors.Is(err, errLongJournal) {
				break
			}
			if err != nil {
				return err
			}
			tampered = errors.Join(tampered, found)
		}
		if j.readAhead == nil && len(j.tooLong) > 0 { // nothing is released until these are read
			return errLongJournal
		}
		return nil
	})
	if err == nil || len(due) == 0 {
		return len(due), errors.Join(err, tampered)
	}
	return s.releaseEach(ctx, due, now)
}

// releaseEach releases each sale in a transaction of its own.
func (s *Service) releaseEach(ctx context.Context, due []string, now time.Time) (int, error) {
	released := 0
	var broken error
	for _, id := range due {
		var tampered error
		err := s.inTx(ctx, func(tx Tx, j *journals) (err error) {
			tampered, err = release(ctx, tx, j, id, now)
			return err
		})
		if err != nil {
			err = fmt.Errorf("release sale %s: %w", id, err)
		}
		if err := errors.Join(err, tampered); err != nil {
			broken = errors.Join(broken, err)
			continue
		}
		released++
	}
	return released, broken
}

// retryRelease is when a sale is tried again whose records were tampered with, so that it holds up no other.
const retryRelease = time.Hour

// release makes a sale withdrawable. One that the service did not write is postponed, and stays pending.
func release(ctx context.Context, tx Tx, j *journals, id string, now time.Time) (tampered, err error) {
	sale, err := tx.SaleForUpdate(ctx, id)
	if err != nil || sale.Released() {
		return nil, err
	}
	entries, err := check(ctx, tx, sale)
	if err == nil {
		err = j.check(ctx, tx, sale, entries)
	}
	if errors.Is(err, ledger.ErrTampered) {
		return fmt.Errorf("release sale %s: %w", id, err), tx.PostponeRelease(ctx, id, now.Add(retryRelease))
	} else if err != nil {
		return nil, err
	}
	if now.Before(sale.AvailableAt) { // it was made due in the database, where the audit is to find that
		early := ledger.ErrTampered.Because(fmt.Errorf("release sale %s: it is not available before %s", id, sale.AvailableAt.Format(time.RFC3339)))
		at := now.Add(retryRelease)
		if sale.AvailableAt.Before(at) {
			at = sale.AvailableAt
		}
		return early, tx.PostponeRelease(ctx, id, at)
	}
	if _, err := tx.MarkReleased(ctx, id, now); err != nil {
		return nil, err
	}
	after := sale
	after.ReleasedAt = now
	return nil, post(ctx, tx, ledger.SaleReleased, ledger.ActorSystem, sale, after, now, ledger.ReleaseSale(sale.Left()))
}
