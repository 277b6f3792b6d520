package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bursar/internal/payout"
)

// strayView is a transfer of ours at the gateway that belongs to no payout in the book.
type strayView struct {
	GatewayID string
	// Stray is nil once it is settled.
	Stray      *payout.Stray
	SellerName string
	Form       *form
	Decisions  []decisionRow
}

// Said is what the gateway says of it.
func (s strayView) Said() string { return progressWords(s.Stray.Transfer.Progress) }

// SellerPath is its seller's page, or "" for one whom the book does not know.
func (s strayView) SellerPath() string {
	if s.SellerName == "" {
		return ""
	}
	return personAddress(s.Stray.Transfer.Order.Seller)
}

var errNoStray = payout.ErrStraySettled.WithMessage("There is no open stray transfer with this id.")

// stray finds the transfer that the address names among the open ones, or what was decided about it.
func (d *dashboard) stray(ctx context.Context, v *visit) (*strayView, error) {
	shown := &strayView{GatewayID: v.r.PathValue("id")}
	odd := func(c rune) bool { return c <= ' ' || c > '~' } // which no reference holds, and not every database takes
	if strings.ContainsFunc(shown.GatewayID, odd) {
		return nil, errNoStray
	}
	attention, err := d.o.Payouts.Attention(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(attention.Strays, func(s payout.Stray) bool { return s.Transfer.GatewayID == shown.GatewayID })
	if i >= 0 {
		shown.Stray = &attention.Strays[i]
		seller := shown.Stray.Transfer.Order.Seller
		names, err := d.people(ctx, seller)
		if err != nil {
			return nil, err
		}
		shown.SellerName = names[seller]
		shown.Form = &form{Action: strayAddress(shown.GatewayID), Submit: "It is settled", Fields: []field{noteField(false)}}
	}
	if shown.Decisions, err = d.decisionsAbout(ctx, shown.GatewayID); err != nil {
		return nil, err
	}
	if shown.Stray == nil && len(shown.Decisions) == 0 {
		return nil, errNoStray
	}
	return shown, nil
}

func showStray(s *strayView) page { return show("admin-stray", "Stray transfer", s) }

// adminStray shows a stray transfer, and asks how it was settled.
func (d *dashboard) adminStray(ctx context.Context, v *visit) (page, error) {
	shown, err := d.stray(ctx, v)
	if err != nil {
		return page{}, err
	}
	return showStray(shown), nil
}

// adminSettle takes note that a stray transfer is settled.
func (d *dashboard) adminSettle(ctx context.Context, v *visit) (page, error) {
	shown, err := d.stray(ctx, v)
	if err != nil {
		return page{}, err
	}
	by := byOf(v)
	if err = by.RequireNote(); err == nil {
		err = d.o.Payouts.SettleStray(ctx, by, shown.GatewayID)
	}
	switch {
	case err == nil:
		return goTo(strayAddress(shown.GatewayID)).saying("stray-settled"), nil
	case shown.Form == nil || errors.Is(err, payout.ErrStraySettled):
		return goTo(strayAddress(shown.GatewayID)).saying("no-longer-fits"), nil
	default:
		return d.again(ctx, showStray(shown), shown.Form.fill(v.form), err)
	}
}
