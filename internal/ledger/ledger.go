// Package ledger is the book of what sellers are owed, and the one way to move money in it.
//
// A [Transfer] takes an amount from one account and gives it to another, so the whole book always
// sums to zero. Transfers are only ever added. Each seller's three accounts are also kept as one row
// of running totals ([Balance]), which the statement that checks them moves: a balance is never read
// and then written. The platform's own accounts have no such row, because every payout would wait
// for its lock; they are summed from the transfers when somebody asks.
package ledger

import (
	"context"
	"fmt"
	"time"

	"bursar/internal/fault"
	"bursar/internal/money"
)

// Account names one side of a transfer. Seller accounts belong to the posting's seller.
type Account string

// The chart of accounts.
const (
	// Pending is earned and not yet withdrawable.
	Pending Account = "seller:pending"
	// Available is withdrawable. Refunds may take it below zero.
	Available Account = "seller:available"
	// InTransit is held for payouts that have not ended.
	InTransit Account = "seller:in_transit"

	// Sales is where earnings come from: what buyers paid the marketplace.
	Sales Account = "platform:sales"
	// Gateway is money that left through the payment gateway.
	Gateway Account = "platform:gateway"
	// Fees is what the platform keeps of payouts.
	Fees Account = "platform:fees"
)

// Kind says which recipe a transfer comes from.
type Kind string

// The kinds; each is made by one function of recipes.go.
const (
	KindSale          Kind = "sale"
	KindSaleRelease   Kind = "sale_release"
	KindSaleRefund    Kind = "sale_refund"
	KindPayoutHold    Kind = "payout_hold"
	KindPayoutRelease Kind = "payout_release"
	KindPayoutPaid    Kind = "payout_paid"
	KindPayoutFee     Kind = "payout_fee"
	KindPayoutReturn  Kind = "payout_return"
	KindFeeReturn     Kind = "fee_return"
)

// Transfer moves Amount, which is above zero, from Debit to Credit. Ref is the sale or payout that it is for.
type Transfer struct {
	Kind   Kind
	Debit  Account
	Credit Account
	Amount money.Amount
	Ref    string
}

// MaxTransfers bounds the transfers of one posting.
const MaxTransfers = 4

// Posting is the transfers of one event in one seller's book, applied whole or not at all.
type Posting struct {
	Seller    string
	At        time.Time
	Transfers []Transfer
	// Counts moves the seller's counters along with the money.
	Counts Counts
	// MayOverdraw lets available fall below zero: a refund is due even if the money has left.
	MayOverdraw bool
}

// Balance is one seller's totals.
type Balance struct {
	Pending   money.Amount
	Available money.Amount
	InTransit money.Amount
	// Earned is all sales less their refunds.
	Earned money.Amount
	// Withdrawn is completed payouts, fees included, less those that the bank returned.
	Withdrawn money.Amount
	Counts    Counts
}

// Counts is one seller's counters: sales recorded, and payouts by the status that the seller sees.
type Counts struct {
	Sales      int64
	Processing int64
	Completed  int64
	Failed     int64
	Cancelled  int64
}

// Payouts is how many payouts the seller ever asked for.
func (c Counts) Payouts() int64 { return c.Processing + c.Completed + c.Failed + c.Cancelled }

// ErrInsufficient means that an account would fall below its floor; nothing was changed.
var ErrInsufficient = fault.New(fault.Refused, "insufficient_balance", "The available balance is too low.")

// Tx is what posting asks of a store transaction.
type Tx interface {
	// MoveBalance adds change to the seller's row if no account falls below its floor: zero, or for
	// available nothing at all when mayOverdraw. It adds the links, one for each transfer, to the
	// seller's chain. It returns how many transfers the seller's book now has, or [ErrInsufficient].
	MoveBalance(ctx context.Context, seller string, change Change, links []Link, mayOverdraw bool) (int64, error)
	// InsertTransfers adds to the seller's book; the first is number first, the others follow.
	InsertTransfers(ctx context.Context, seller string, at time.Time, first int64, transfers []Transfer) error
}

// Change is what a posting adds to a seller's row.
type Change struct {
	Balance
	Transfers int64
}

// Allows reports whether a change would leave every account at or above its floor: zero, or for
// available nothing at all when mayOverdraw or when the change does not lower it.
func (b Balance) Allows(ch Change, mayOverdraw bool) bool {
	return b.Pending+ch.Pending >= 0 && b.InTransit+ch.InTransit >= 0 &&
		(mayOverdraw || ch.Available >= 0 || b.Available+ch.Available >= 0)
}

// Plus is one change after another.
func (ch Change) Plus(next Change) Change {
	ch.Pending += next.Pending
	ch.Available += next.Available
	ch.InTransit += next.InTransit
	ch.Earned += next.Earned
	ch.Withdrawn += next.Withdrawn
	ch.Counts.Sales += next.Counts.Sales
	ch.Counts.Processing += next.Counts.Processing
	ch.Counts.Completed += next.Counts.Completed
	ch.Counts.Failed += next.Counts.Failed
	ch.Counts.Cancelled += next.Counts.Cancelled
	ch.Transfers += next.Transfers
	return ch
}

// Post applies p. It fails with [ErrInsufficient] when the posting would take an account below its
// floor, and with a plain error when p is malformed, which is a bug.
func Post(ctx context.Context, tx Tx, p Posting) error {
	change, err := p.change()
	if err != nil {
		return fmt.Errorf("ledger: malformed posting for %s: %w", p.Seller, err)
	}
	last, err := tx.MoveBalance(ctx, p.Seller, change, Links(p.At, p.Transfers), p.MayOverdraw)
	if err != nil {
		return err
	}
	return tx.InsertTransfers(ctx, p.Seller, p.At, last-change.Transfers+1, p.Transfers)
}

// change sums what the transfers do to the seller's row, and refuses what no recipe makes.
func (p Posting) change() (Change, error) {
	c := Change{Balance: Balance{Counts: p.Counts}, Transfers: int64(len(p.Transfers))}
	if p.Seller == "" || len(p.Transfers) == 0 || len(p.Transfers) > MaxTransfers {
		return c, fmt.Errorf("a posting needs a seller and one to %d transfers", MaxTransfers)
	}
	for _, t := range p.Transfers {
		if !t.FitsRecipe() {
			return c, fmt.Errorf("%s of %d from %s to %s for %q fits no recipe", t.Kind, t.Amount, t.Debit, t.Credit, t.Ref)
		}
		c.take(t)
		c.Earned += t.Amount * recipes[t.Kind].earned
		c.Withdrawn += t.Amount * recipes[t.Kind].withdrawn
	}
	return c, nil
}

// take moves what a transfer moves of the seller's accounts.
func (b *Balance) take(t Transfer) {
	if from := b.account(t.Debit); from != nil {
		*from -= t.Amount
	}
	if to := b.account(t.Credit); to != nil {
		*to += t.Amount
	}
}

// account is the total that a seller's account is kept in; nil for the platform's.
func (b *Balance) account(a Account) *money.Amount {
	switch a {
	case Pending:
		return &b.Pending
	case Available:
		return &b.Available
	case InTransit:
		return &b.InTransit
	default:
		return nil
	}
}
