package api

import (
	"context"

	"bursar/internal/auth"
	"bursar/internal/id"
)

// marketplaceSellerJSON is a seller as the marketplace's server sees them.
type marketplaceSellerJSON struct {
	SellerID   string `json:"sellerId"`
	ExternalID orNull `json:"externalId"`
	Name       string `json:"name"`
	Email      string `json:"email"`
	IsVerified bool   `json:"isVerified"`
	Suspended  bool   `json:"suspended"`
	CreatedAt  string `json:"createdAt"`
}

func marketplaceSellerOf(u auth.User) marketplaceSellerJSON {
	return marketplaceSellerJSON{u.ID, orNull(u.ExternalID), u.Name, u.Email, u.Verified, u.Suspended, stamp(u.CreatedAt)}
}

type createSellerRequest struct{ auth.NewSeller }

func (req *createSellerRequest) read(in *input) {
	req.ExternalID = in.text("externalId", auth.CheckExternalID)
	req.Name = in.text("name", auth.CheckName)
	req.Email = in.text("email", auth.CheckEmail)
}

func (a *api) createSeller(ctx context.Context, c caller, req createSellerRequest) (reply[marketplaceSellerJSON], error) {
	user, created, err := a.o.Auth.CreateSeller(ctx, req.NewSeller, c.service.Actor())
	return reply[marketplaceSellerJSON]{status: createdOr200(created), data: marketplaceSellerOf(user)}, err
}

// sellerName is how the marketplace names a seller in a path: an id of ours, or "ext:" and its own.
type sellerName string

func (name *sellerName) read(in *input) {
	*name = sellerName(in.r.PathValue("sellerId"))
	if auth.CheckSellerName(string(*name)) != "" {
		in.refuse(auth.ErrSellerNotFound)
	}
}

func (a *api) seller(ctx context.Context, _ caller, name sellerName) (reply[marketplaceSellerJSON], error) {
	user, err := a.sellerNamed(ctx, name)
	return answer(marketplaceSellerOf(user), err)
}

type sellersRequest struct {
	after string
	limit int
}

// maxSellers bounds a page of sellers.
const maxSellers = 100

func (req *sellersRequest) read(in *input) {
	after, given := in.parameter("after")
	if given && !id.Valid(auth.UserIDPrefix, after) {
		in.noteInvalid("after", "must be the next of the page before")
	}
	req.after, req.limit = after, in.number("limit", maxSellers, maxSellers)
}

type sellersJSON struct {
	Sellers []marketplaceSellerJSON `json:"sellers"`
	// Next is for the parameter after of the next page; left out on the last.
	Next string `json:"next,omitempty"`
}

func (a *api) sellers(ctx context.Context, _ caller, req sellersRequest) (reply[sellersJSON], error) {
	list, err := a.o.Auth.Sellers(ctx, req.after, req.limit+1)
	if err != nil {
		return reply[sellersJSON]{}, err
	}
	page := sellersJSON{Sellers: []marketplaceSellerJSON{}}
	if len(list) > req.limit {
		list = list[:req.limit]
		page.Next = list[req.limit-1].ID
	}
	for _, u := range list {
		if !u.Tampered { // its ids may be another seller's
			page.Sellers = append(page.Sellers, marketplaceSellerOf(u.User))
		}
	}
	return reply[sellersJSON]{data: page}, nil
}

type sellerRequest struct {
	seller         sellerName
	productsListed int64
}

func (req *sellerRequest) read(in *input) {
	req.seller.read(in)
	req.productsListed = in.count("productsListed")
}

type sellerJSON struct {
	SellerID       string `json:"sellerId"`
	ExternalID     orNull `json:"externalId"`
	ProductsListed int64  `json:"productsListed"`
}

func (a *api) setSeller(ctx context.Context, _ caller, req sellerRequest) (reply[sellerJSON], error) {
	user, err := a.sellerNamed(ctx, req.seller)
	if err == nil {
		err = a.o.Auth.SetProductsListed(ctx, user.ID, req.productsListed)
	}
	return answer(sellerJSON{user.ID, orNull(user.ExternalID), req.productsListed}, err)
}

// resolveSeller is the id of the seller that a body names, with the external id if that is the name.
func (a *api) resolveSeller(ctx context.Context, name string) (sellerID, externalID string, err error) {
	if !auth.IsExternalID(name) { // who sells is checked where the sale is recorded
		return name, "", nil
	}
	user, err := a.o.Auth.Seller(ctx, name)
	return user.ID, user.ExternalID, err
}
