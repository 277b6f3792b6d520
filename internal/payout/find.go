package payout

import (
	"context"
	"slices"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/limits"
	"bursar/internal/money"
)

// Selection says which payouts an operator wants. The zero value of a field selects all.
type Selection struct {
	Seller string
	Status Status
	State  State
	// LateAt selects payouts under way that should have arrived before it, and Discrepancy those with a discrepancy.
	LateAt      time.Time
	Discrepancy bool
	// MinAmount and MaxAmount bound the amount. A MaxAmount of zero is no bound.
	MinAmount, MaxAmount money.Amount
	// Bank is the first four letters of the IFSC of the account that is paid.
	Bank string
	// Reason is the code of why a payout failed, was returned or waits.
	Reason string
	// From and To bound the moment that Date names: from From on, and before To.
	Date     DateOf
	From, To time.Time

	Sort Order
	// After is the last payout of the page before.
	After ID
	Limit int
	// Floor is what [Totals] found: no payout up to it is looked at.
	Floor ID
}

// DateOf names one of a payout's moments.
type DateOf string

// Moments that a selection may bound.
const (
	DateRequested DateOf = "requested"
	DateCompleted DateOf = "completed"
	DateEnded     DateOf = "ended"
)

// Order is how selected payouts are sorted.
type Order string

// Orders. Largest first is by amount.
const (
	NewestFirst  Order = "newest"
	OldestFirst  Order = "oldest"
	LargestFirst Order = "amount"
)

// Words that stand beside the states where payouts are selected by state.
const (
	LateState        = "late"
	DiscrepancyState = "discrepancy"
)

// LookedThrough is how many payouts a selection is looked for among at most: the newest of its dates.
const LookedThrough = 100_000

// Selected is a payout with its seller's name.
type Selected struct {
	Payout
	SellerName string
}

// Totals sum up what a selection selects, whatever its page.
type Totals struct {
	Count  int64
	Amount money.Amount
	Fee    money.Amount
	// Cut says that there are more payouts than are looked through.
	Cut bool
	// Floor is the newest payout that is not looked at; empty where all are.
	Floor ID
}

// Found is a page of what a selection selects, and the totals of all of it.
type Found struct {
	Payouts []Selected
	Totals  Totals
	// Next is where the page after this one begins; empty for none.
	Next ID
}

// Find lists a page of what a selection selects.
func (s *Service) Find(ctx context.Context, sel Selection) (f Found, err error) {
	if f.Totals, err = s.o.Store.SumPayouts(ctx, sel); err != nil || f.Totals.Count == 0 {
		return f, err
	}
	limit := sel.Limit
	sel.Floor, sel.Limit = f.Totals.Floor, limit+1
	f.Payouts, err = s.o.Store.SelectPayouts(ctx, sel)
	if len(f.Payouts) > limit {
		f.Payouts = f.Payouts[:limit]
		f.Next = f.Payouts[limit-1].ID
	}
	return f, err
}

// ErrTooMany refuses to export a selection that is looked for among more than [LookedThrough] payouts.
var ErrTooMany = fault.Field("from", "must be later: an export looks through at most 100,000 payouts")

// exportPage is how many payouts an export reads at once.
const exportPage = 5000

// Export hands all that a selection selects to each, in its order. It reads them page by page, so that what changes meanwhile may
// show as it was or as it is.
func (s *Service) Export(ctx context.Context, sel Selection, each func(Selected) error) error {
	sel.After, sel.Limit = "", exportPage
	for {
		list, err := s.o.Store.SelectPayouts(ctx, sel)
		if err != nil {
			return err
		}
		for _, p := range list {
			if err := each(p); err != nil {
				return err
			}
		}
		if len(list) < exportPage {
			return nil
		}
		sel.After = list[len(list)-1].ID
	}
}

// CheckExport fails with [ErrTooMany] if there are too many payouts to look through for a selection.
func (s *Service) CheckExport(ctx context.Context, sel Selection) error {
	totals, err := s.o.Store.SumPayouts(ctx, sel)
	if err == nil && totals.Cut {
		err = ErrTooMany
	}
	return err
}

// ParseSelection reads a selection from parameters; get returns "" for one that was not given. Its fault names each that is
// wrong. Days are those of the service's zone.
func (s *Service) ParseSelection(get func(name string) string) (Selection, error) {
	sel, wrong := Selection{Date: DateRequested, Sort: NewestFirst}, map[string]string{}
	if sel.Seller = get("sellerId"); sel.Seller != "" && !id.Valid("usr_", sel.Seller) {
		wrong["sellerId"] = "must be a user's id, such as registration returns"
	}
	if status := get("status"); status != "" && status != "all" {
		sel.Status = Status(status)
		if !slices.Contains(Statuses(), sel.Status) {
			wrong["status"] = "must be all, processing, completed, failed or cancelled"
		}
	}
	switch state := get("state"); {
	case state == "":
	case state == LateState:
		sel.LateAt = s.o.Now()
	case state == DiscrepancyState:
		sel.Discrepancy = true
	case slices.Contains(States(), State(state)):
		sel.State = State(state)
	default:
		wrong["state"] = "must be a state such as manual_review, or late, or discrepancy"
	}
	sel.MinAmount, sel.MaxAmount = s.parseBound("minAmount", get, wrong), s.parseBound("maxAmount", get, wrong)
	if sel.MaxAmount != 0 && sel.MaxAmount < sel.MinAmount {
		wrong["maxAmount"] = "must not be less than minAmount"
	}
	if sel.Bank = strings.ToUpper(get("bank")); sel.Bank != "" && !isBankCode(sel.Bank) {
		wrong["bank"] = "must be the first four letters of an IFSC, such as HDFC"
	}
	if sel.Reason = get("reason"); sel.Reason != "" && !gateway.IsID(sel.Reason) {
		wrong["reason"] = "must be the code of a reason, such as bank_rejected"
	}
	if date := DateOf(get("date")); date != "" {
		sel.Date = date
		if date != DateRequested && date != DateCompleted && date != DateEnded {
			wrong["date"] = "must be requested, completed or ended"
		}
	}
	sel.From, sel.To = s.parseDay("from", 0, get, wrong), s.parseDay("to", 1, get, wrong)
	if !sel.To.IsZero() && !sel.From.Before(sel.To) {
		wrong["to"] = "must not be before from"
	}
	if order := Order(get("sort")); order != "" {
		sel.Sort = order
		if order != NewestFirst && order != OldestFirst && order != LargestFirst {
			wrong["sort"] = "must be newest, oldest or amount"
		}
	}
	if after := get("after"); after != "" {
		var err error
		if sel.After, err = ParseID(after); err != nil {
			wrong["after"] = "must be the next of the page before"
		}
	}
	if len(wrong) > 0 {
		return Selection{}, fault.Fields(fault.Invalid, wrong)
	}
	return sel, nil
}

func (s *Service) parseBound(name string, get func(string) string, wrong map[string]string) money.Amount {
	text := get(name)
	if text == "" {
		return 0
	}
	amount, err := s.o.Currency.Parse(text)
	if err != nil || amount <= 0 {
		wrong[name] = "must be an amount above zero, such as 1250.50"
		return 0
	}
	return amount
}

// parseDay reads the beginning of a day, or that of another day so many days later.
func (s *Service) parseDay(name string, later int, get func(string) string, wrong map[string]string) time.Time {
	text := get(name)
	if text == "" {
		return time.Time{}
	}
	day, err := limits.Day(text, 0, s.o.Zone)
	if err != nil || limits.Year(day) != "" {
		wrong[name] = "must be a day such as 2026-11-20"
		return time.Time{}
	}
	return limits.StartOfDay(day, later)
}

// isBankCode reports whether s can be the beginning of an IFSC, which names the bank.
func isBankCode(s string) bool {
	return len(s) == 4 && !strings.ContainsFunc(s, func(c rune) bool { return c < 'A' || c > 'Z' })
}
