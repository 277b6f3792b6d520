package api

import (
	"context"
	"errors"
	"net/http"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// What a server of the marketplace reads and does for one seller. The rules are those of the seller's own routes; who asked is
// the service key, in the journal.

// sellerIDsJSON is a seller's ids, which answers to the marketplace have beside what the seller would see.
type sellerIDsJSON struct {
	SellerID   string `json:"sellerId"`
	ExternalID orNull `json:"externalId"`
}

func sellerIDsOf(u auth.User) sellerIDsJSON { return sellerIDsJSON{u.ID, orNull(u.ExternalID)} }

// sellerNamed finds a seller for a service key. An admin, who may have money too, is none of the marketplace's.
func (a *api) sellerNamed(ctx context.Context, name sellerName) (auth.User, error) {
	user, err := a.o.Auth.Seller(ctx, string(name))
	if err == nil && user.Role != auth.Seller {
		err = auth.ErrSellerNotFound
	}
	if err != nil {
		return auth.User{}, err
	}
	return user, nil
}

// sellerToActFor finds a seller on whose behalf something may be done.
func (a *api) sellerToActFor(ctx context.Context, name sellerName) (auth.User, error) {
	user, err := a.sellerNamed(ctx, name)
	if err == nil && user.Suspended {
		return auth.User{}, auth.ErrSellerSuspended
	}
	return user, err
}

type sellerBalanceJSON struct {
	sellerIDsJSON
	balanceJSON
}

func (a *api) sellerBalance(ctx context.Context, _ caller, name sellerName) (reply[sellerBalanceJSON], error) {
	user, err := a.sellerNamed(ctx, name)
	if err != nil {
		return reply[sellerBalanceJSON]{}, err
	}
	balance, err := a.balanceOf(ctx, user.ID)
	return answer(sellerBalanceJSON{sellerIDsOf(user), balance}, err)
}

type sellerPayoutsRequest struct {
	historyRequest
	seller sellerName
}

func (req *sellerPayoutsRequest) read(in *input) {
	req.seller.read(in)
	req.historyRequest.read(in)
}

type sellerPayoutsJSON struct {
	sellerIDsJSON
	historyJSON
}

func (a *api) sellerPayouts(ctx context.Context, _ caller, req sellerPayoutsRequest) (reply[sellerPayoutsJSON], error) {
	user, err := a.sellerNamed(ctx, req.seller)
	if err != nil {
		return reply[sellerPayoutsJSON]{}, err
	}
	req.filter.Seller = user.ID
	page, err := a.history(ctx, caller{Principal: auth.Principal{UserID: user.ID, Role: auth.Seller}}, req.historyRequest)
	return answer(sellerPayoutsJSON{sellerIDsOf(user), page.data}, err)
}

type sellerSalesRequest struct {
	seller      sellerName
	page, limit int
}

func (req *sellerSalesRequest) read(in *input) {
	req.seller.read(in)
	req.page = in.number("page", 1, maxPage)
	req.limit = in.number("limit", defaultPageSize, maxPageSize)
}

type sellerSalesJSON struct {
	sellerIDsJSON
	Sales      []saleJSON     `json:"sales"`
	Pagination paginationJSON `json:"pagination"`
}

func (a *api) sellerSales(ctx context.Context, _ caller, req sellerSalesRequest) (reply[sellerSalesJSON], error) {
	user, err := a.sellerNamed(ctx, req.seller)
	if err != nil {
		return reply[sellerSalesJSON]{}, err
	}
	list, total, err := a.o.Sales.List(ctx, user.ID, (req.page-1)*req.limit, req.limit)
	sales := mapped(list, func(s sale.Sale) saleJSON {
		shown := a.saleOf(s)
		shown.ExternalID = user.ExternalID
		return shown
	})
	return answer(sellerSalesJSON{sellerIDsOf(user), sales, paginationOf(req.page, req.limit, total)}, err)
}

type sellerBankAccountRequest struct {
	bankAccountRequest
	seller sellerName
}

func (req *sellerBankAccountRequest) read(in *input) {
	req.seller.read(in)
	req.bankAccountRequest.read(in)
}

type sellerBankAccountJSON struct {
	sellerIDsJSON
	bankAccountJSON
}

func (a *api) registerSellerBankAccount(ctx context.Context, c caller, req sellerBankAccountRequest) (reply[sellerBankAccountJSON], error) {
	user, err := a.sellerToActFor(ctx, req.seller)
	if err != nil {
		return reply[sellerBankAccountJSON]{}, err
	}
	account, err := a.o.Bank.Register(ctx, bank.Registration{
		Seller: user.ID, Actor: c.service.Actor(), Holder: req.holder, Number: req.number, IFSC: req.ifsc,
	})
	if errors.Is(err, auth.ErrStepUp) { // which the seller alone can give
		err = payout.ErrSellerProof
	}
	return reply[sellerBankAccountJSON]{
		message: "The bank account is registered. The seller can be paid to it once it is verified.",
		data:    sellerBankAccountJSON{sellerIDsOf(user), a.bankAccountOf(account)},
	}, err
}

type sellerPayoutRequest struct {
	payoutRequest
	seller sellerName
}

func (req *sellerPayoutRequest) read(in *input) {
	req.seller.read(in)
	req.payoutRequest.read(in)
}

type sellerRequestedJSON struct {
	sellerIDsJSON
	requestedJSON
	Source payout.Source `json:"source"`
}

func (a *api) requestSellerPayout(ctx context.Context, c caller, req sellerPayoutRequest) (reply[sellerRequestedJSON], error) {
	user, err := a.sellerToActFor(ctx, req.seller)
	if err == nil {
		err = a.o.Auth.CheckMayRequestPayout(auth.Principal{Verified: user.Verified})
	}
	if err != nil {
		return reply[sellerRequestedJSON]{}, err
	}
	p, replayed, err := a.o.Payouts.Request(ctx, payout.Request{
		Seller: user.ID, KeyActor: c.service.Actor(), Amount: req.amount, Notes: req.notes, Key: req.key,
	})
	if err != nil {
		return reply[sellerRequestedJSON]{replayed: replayed}, err
	}
	return reply[sellerRequestedJSON]{
		status: http.StatusCreated, message: "The payout was requested, and its amount is reserved.",
		data: sellerRequestedJSON{sellerIDsOf(user), a.requestedOf(p), p.Source}, replayed: replayed,
	}, nil
}
