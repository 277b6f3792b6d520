package api

import (
	"context"
	"encoding/json"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/search"
)

type searchRequest struct{ query string }

func (req *searchRequest) read(in *input) { req.query, _ = in.parameter("q") }

type foundJSON struct {
	Users        []foundUserJSON    `json:"users"`
	Payouts      []foundPayoutJSON  `json:"payouts"`
	BankAccounts []foundAccountJSON `json:"bankAccounts"`
	Sales        []foundSaleJSON    `json:"sales"`
}

type foundUserJSON struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Email      string    `json:"email"`
	Role       auth.Role `json:"role"`
	Suspended  bool      `json:"suspended"`
	ExternalID orNull    `json:"externalId"`
}

func foundUserOf(u auth.User) foundUserJSON {
	return foundUserJSON{u.ID, u.Name, u.Email, u.Role, u.Suspended, orNull(u.ExternalID)}
}

// foundSellerJSON says whose something is.
type foundSellerJSON struct {
	SellerID   string `json:"sellerId"`
	SellerName string `json:"sellerName"`
}

type foundPayoutJSON struct {
	foundSellerJSON
	ID            payout.ID     `json:"id"`
	Amount        json.Number   `json:"amount"`
	Status        payout.Status `json:"status"`
	State         payout.State  `json:"state"`
	AccountNumber string        `json:"accountNumber"`
	RequestedAt   string        `json:"requestedAt"`
	UTR           orNull        `json:"utr"`
	GatewayID     orNull        `json:"gatewayPayoutId"`
}

type foundAccountJSON struct {
	foundSellerJSON
	ID            bank.ID     `json:"id"`
	AccountNumber string      `json:"accountNumber"`
	IFSC          bank.IFSC   `json:"ifsc"`
	Status        bank.Status `json:"status"`
	Current       bool        `json:"current"`
}

type foundSaleJSON struct {
	foundSellerJSON
	ID         string      `json:"saleId"`
	Amount     json.Number `json:"amount"`
	Refunded   json.Number `json:"refundedAmount"`
	OccurredAt string      `json:"occurredAt"`
}

func (a *api) search(ctx context.Context, _ caller, req searchRequest) (reply[foundJSON], error) {
	r, err := a.o.Search.Find(ctx, req.query)
	return answer(a.found(r), err)
}

func (a *api) found(r search.Results) foundJSON {
	of := func(seller string) foundSellerJSON { return foundSellerJSON{seller, r.Names[seller]} }
	return foundJSON{
		mapped(r.Users, foundUserOf),
		mapped(r.Payouts, func(p payout.Payout) foundPayoutJSON {
			return foundPayoutJSON{
				of(p.Seller), p.ID, a.amount(p.Amount), p.Status(), p.State, bank.Mask(p.AccountLast4), stamp(p.RequestedAt), orNull(p.UTR), orNull(p.GatewayID),
			}
		}),
		mapped(r.Accounts, func(b bank.Account) foundAccountJSON {
			return foundAccountJSON{of(b.Seller), b.ID, b.Masked(), b.IFSC, b.Status, b.Current}
		}),
		mapped(r.Sales, func(s sale.Sale) foundSaleJSON {
			return foundSaleJSON{of(s.Seller), s.ID, a.amount(s.Amount), a.amount(s.Refunded), stamp(s.OccurredAt)}
		}),
	}
}
