package sale

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/money"
)

// Adjustment is a correction of what a seller earned, which an admin decided, or the marketplace's server. It is one entry of the seller's journal, and no
// row beside it.
type Adjustment struct {
	// ID is the caller's own, unique among the seller's adjustments: the seller's journal is locked while it is made, and no
	// lock spans all journals.
	ID     string
	Seller string
	// Amount is added to the available balance, or taken from it where it is below zero.
	Amount money.Amount
	// Reason is for the seller. Note is for the record of decisions, and the seller never sees it.
	Reason, Note string
	// Admin is the user's id who decided it, Operator the name of who ran the import, or Key the id of the service key that was
	// used; the others are empty. At is when.
	Admin, Operator, Key string
	At                   time.Time
	// Available is the seller's available balance after it.
	Available money.Amount
	// Entry is the number of its entry in the seller's journal.
	Entry int64
}

// NewAdjustment asks for a balance to be adjusted. The admin and the note are those of the decision.
type NewAdjustment struct {
	ID, Seller, Reason string
	Amount             money.Amount
	By                 decision.By
}

// AdjustmentPrefix begins the name of an adjustment in the journal. Callers choose its ids, so they are kept apart from ours.
const AdjustmentPrefix = "adjustment:"

// MaxReason is how long the reason of an adjustment may be, in characters. It is one line of the seller's statement.
const MaxReason = 200

// ErrAdjustmentConflict means that the seller has another adjustment under the same id.
var ErrAdjustmentConflict = fault.New(fault.Conflict, "adjustment_conflict",
	"This adjustmentId was used for this seller with other values. A repeat must be identical; a new adjustment needs a new adjustmentId.")

// CheckReason returns what is wrong with what the seller is to read about an adjustment, or "".
func CheckReason(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "must tell the seller why"
	case !utf8.ValidString(s) || utf8.RuneCountInString(s) > MaxReason || strings.ContainsFunc(s, limits.IsControl):
		return fmt.Sprintf("must be one line of at most %d characters", MaxReason)
	default:
		return ""
	}
}

func (n NewAdjustment) check() error {
	if problem := CheckReason(n.Reason); problem != "" {
		return fault.Field("reason", problem)
	}
	if n.ID == openingID {
		return fault.Field("adjustmentId", "must not be "+openingID+", which names the opening balance")
	}
	if n.Seller == n.By.Admin {
		return fault.Field("sellerId", "is your own: another admin has to adjust your balance")
	}
	if n.Amount == 0 || n.Amount > money.Max || n.Amount < -money.Max {
		return fault.Field("amount", "must be an amount above or below zero")
	}
	return n.By.RequireNote()
}

// Adjust corrects a seller's available balance, which may go below zero as it may by a refund, and reports whether the
// adjustment is new. The same again returns what was done; another one under the same id is [ErrAdjustmentConflict]. It
// fails with [ErrSellerNotFound], [ledger.ErrTooLarge], [ledger.ErrTampered] or a fault that names a field.
func (s *Service) Adjust(ctx context.Context, n NewAdjustment) (Adjustment, bool, error) {
	if err := n.check(); err != nil {
		return Adjustment{}, false, err
	}
	made := decision.New(n.By, decision.AdjustBalance, n.Seller, AdjustmentPrefix+n.ID, s.o.Now())
	var (
		adjustment Adjustment
		created    bool
	)
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		adjustment, created, err = adjust(ctx, tx, n, made)
		return err
	})
	return adjustment, created, err
}

func adjust(ctx context.Context, tx Tx, n NewAdjustment, made decision.Decision) (Adjustment, bool, error) {
	sells, err := tx.SellerExists(ctx, n.Seller)
	if err != nil {
		return Adjustment{}, false, err
	}
	// A repeat finds the entry. It may not have been taken away, and a repeat beside this one waits for the journal.
	if err := tx.CheckNewest(ctx, n.Seller); err != nil {
		return Adjustment{}, false, err
	}
	entries, err := tx.EntriesAbout(ctx, n.Seller, made.Subject)
	if err != nil {
		return Adjustment{}, false, err
	}
	if len(entries) > 0 {
		first, err := AdjustmentOf(entries[0])
		if err == nil && (first.Amount != n.Amount || first.Reason != n.Reason || first.Note != n.By.Note) {
			err = ErrAdjustmentConflict
		}
		return first, false, err
	}
	if !sells {
		return Adjustment{}, false, ErrSellerNotFound
	}
	adjustment, err := appendAdjustment(ctx, tx, made, n.Reason, n.Amount)
	return adjustment, err == nil, err
}

// appendAdjustment adds the entry of an adjustment that was decided.
func appendAdjustment(ctx context.Context, tx Tx, made decision.Decision, reason string, amount money.Amount) (Adjustment, error) {
	data, err := ledger.Facts("id", made.ID, "action", made.Action, "note", made.Note, "reason", reason, "amount", amount)
	if err != nil {
		return Adjustment{}, err
	}
	e, err := tx.Append(ctx, ledger.Posting{
		Owner: made.Owner, At: made.At, Type: ledger.BalanceAdjusted, Subject: made.Subject, Actor: ledger.DecidedBy(made), Data: data,
		Moved: ledger.AdjustBalance(amount),
	})
	if err != nil {
		return Adjustment{}, err
	}
	return AdjustmentOf(e)
}

// Actor is who made it, as the journal names them.
func (a Adjustment) Actor() string {
	return ledger.DecidedBy(decision.Decision{Admin: a.Admin, Operator: a.Operator, Key: a.Key})
}

// AdjustmentOf is what an entry says of an adjustment. It fails with [ledger.ErrTampered] unless the entry moved the amount
// that it tells of.
func AdjustmentOf(e ledger.Entry) (Adjustment, error) {
	var data struct {
		Note   string       `json:"note"`
		Reason string       `json:"reason"`
		Amount money.Amount `json:"amount"`
	}
	err := json.Unmarshal([]byte(e.Data), &data)
	id, isAdjustment := strings.CutPrefix(e.Subject, AdjustmentPrefix)
	by := ledger.Decider(e.Actor)
	a := Adjustment{
		ID: id, Seller: e.Owner, Amount: data.Amount, Reason: data.Reason, Note: data.Note, At: e.At, Available: e.After.Available, Entry: e.Number,
		Admin: by.Admin, Operator: by.Operator, Key: by.Key,
	}
	if err != nil || !isAdjustment || by.Admin+by.Operator+by.Key == "" || e.Type != ledger.BalanceAdjusted || e.Moved != ledger.AdjustBalance(data.Amount) {
		return Adjustment{}, ledger.ErrTampered.Because(fmt.Errorf(
			"entry %d of %s is no adjustment by an admin, an operator or a service key that moves the amount it tells of", e.Number, e.Owner))
	}
	return a, nil
}

// Adjustments lists a seller's adjustments whose entries are numbered below before, newest first, up to limit; before 0 begins
// at the newest.
func (s *Service) Adjustments(ctx context.Context, seller string, before int64, limit int) ([]Adjustment, error) {
	entries, err := s.o.Store.AdjustmentEntries(ctx, seller, before, limit)
	if err != nil {
		return nil, err
	}
	list := make([]Adjustment, 0, len(entries))
	for _, e := range entries {
		a, err := AdjustmentOf(e)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
