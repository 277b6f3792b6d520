package dashboard

import (
	"context"
	"errors"

	"bursar/internal/ledger"
	"bursar/internal/sale"
)

// salesView is a page of what the seller earned.
type salesView struct {
	Sales []saleRow
	// Adjustments are our team's newest corrections, shown with the newest sales.
	Adjustments []sale.Adjustment
	pager
}

// Path is the sale's page.
func (s saleRow) Path() string { return saleAddress(s.ID) }

// saleRow is a sale as the list shows it.
type saleRow struct{ sale.Sale }

// Label says what became of the earning.
func (s saleRow) Label() label {
	switch {
	case s.Left() == 0:
		return label{"Refunded", neutral}
	case s.Released():
		return label{"Released", good}
	default:
		return label{"Pending", busy}
	}
}

// Pending reports whether there is something yet to be released.
func (s saleRow) Pending() bool { return !s.Released() && s.Left() > 0 }

// sales lists what the seller earned.
func (d *dashboard) sales(ctx context.Context, v *pageRequest) (page, error) {
	number := v.pageNumber()
	list, total, err := d.o.Sales.List(ctx, v.who.UserID, (number-1)*pageSize, pageSize)
	if err != nil {
		return page{}, err
	}
	rows := make([]saleRow, 0, len(list))
	for _, s := range list {
		rows = append(rows, saleRow{s})
	}
	shown := salesView{Sales: rows, pager: newPager(v, number, total)}
	if number == 1 {
		shown.Adjustments, err = d.o.Sales.Adjustments(ctx, v.who.UserID, 0, adjustmentsShown)
		if errors.Is(err, ledger.ErrTampered) { // the sales are shown all the same
			err = nil
		}
	}
	return show("sales", "Sales", shown), err
}
