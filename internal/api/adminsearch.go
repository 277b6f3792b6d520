package api

import (
	"context"
	"encoding/json"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
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
	if err != nil {
		return reply[foundJSON]{}, err
	}
	return reply[foundJSON]{data: a.found(r)}, nil
}

func (a *api) found(r search.Results) foundJSON {
	data := foundJSON{[]foundUserJSON{}, []foundPayoutJSON{}, []foundAccountJSON{}, []foundSaleJSON{}}
	of := func(seller string) foundSellerJSON { return foundSellerJSON{seller, r.Names[seller]} }
	for _, u := range r.Users {
		data.Users = append(data.Users, foundUserJSON{u.ID, u.Name, u.Email, u.Role, u.Suspended, orNull(u.ExternalID)})
	}
	for _, p := range r.Payouts {
		data.Payouts = append(data.Payouts, foundPayoutJSON{
			of(p.Seller), p.ID, a.amount(p.Amount), p.Status(), p.State, bank.Mask(p.AccountLast4), stamp(p.RequestedAt), orNull(p.UTR), orNull(p.GatewayID),
		})
	}
	for _, b := range r.Accounts {
		data.BankAccounts = append(data.BankAccounts, foundAccountJSON{of(b.Seller), b.ID, b.Masked(), b.IFSC, b.Status, b.Current})
	}
	for _, s := range r.Sales {
		data.Sales = append(data.Sales, foundSaleJSON{of(s.Seller), s.ID, a.amount(s.Amount), a.amount(s.Refunded), stamp(s.OccurredAt)})
	}
	return data
}
