package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Seller is a seller as the marketplace sees them.
type Seller struct {
	SellerID string `json:"sellerId"`
	// ExternalID is the marketplace's own id; empty for a seller whom it did not make.
	ExternalID string `json:"externalId"`
	Name       string `json:"name"`
	Email      string `json:"email"`
	// IsVerified says that the seller has proven that the address is theirs.
	IsVerified bool      `json:"isVerified"`
	Suspended  bool      `json:"suspended"`
	CreatedAt  time.Time `json:"createdAt"`
}

// NewSeller is a seller whom the marketplace knows.
type NewSeller struct {
	// ExternalID is the marketplace's own id: 1 to 200 bytes of visible characters, without spaces.
	ExternalID string `json:"externalId"`
	Name       string `json:"name"`
	Email      string `json:"email"`
}

// CreateSeller makes a seller. The same again changes nothing; other values under the same external id fail with
// seller_conflict, an address that a user has already with email_taken. Scope: sellers:write.
func (c *Client) CreateSeller(ctx context.Context, s NewSeller) (Seller, error) {
	var seller Seller
	return seller, c.do(ctx, call{method: http.MethodPost, path: []string{"marketplace", "sellers"}, body: s, repeatable: true}, &seller)
}

// Seller reads a seller by Bursar's id or by [ExternalID], as every method does that takes a seller. An unknown one fails with
// seller_not_found. Scope: sellers:read.
func (c *Client) Seller(ctx context.Context, id string) (Seller, error) {
	var seller Seller
	return seller, c.do(ctx, onSeller(http.MethodGet, id), &seller)
}

// Sellers reads all sellers, in the order of their ids, until the first error. Scope: sellers:read.
func (c *Client) Sellers(ctx context.Context) iter.Seq2[Seller, error] {
	return byCursor(func(after string) ([]Seller, string, error) {
		var page struct {
			Sellers []Seller `json:"sellers"`
			Next    string   `json:"next"`
		}
		r := call{method: http.MethodGet, path: []string{"marketplace", "sellers"}, query: url.Values{}, repeatable: true}
		if after != "" {
			r.query.Set("after", after)
		}
		err := c.do(ctx, r, &page)
		return page.Sellers, page.Next, err
	})
}

// SetProductsListed says how many products a seller has listed; the seller's profile shows it. Scope: sellers:write.
func (c *Client) SetProductsListed(ctx context.Context, sellerID string, products int64) error {
	r := onSeller(http.MethodPut, sellerID)
	r.body = struct {
		ProductsListed int64 `json:"productsListed"`
	}{products}
	return c.do(ctx, r, nil)
}

// NewAdjustment corrects a seller's available balance.
type NewAdjustment struct {
	// AdjustmentID is the marketplace's own id of it: 1 to 128 characters, unique for the seller.
	AdjustmentID string `json:"adjustmentId"`
	// Amount is added to the balance, or taken from it where it is below zero.
	Amount Amount `json:"amount"`
	// Reason is one line for the seller. Note is for the marketplace's admins, and the seller never sees it.
	Reason string `json:"reason"`
	Note   string `json:"note"`
}

// MadeAdjustment is a correction as admins see it.
type MadeAdjustment struct {
	AdjustmentID     string `json:"adjustmentId"`
	SellerID         string `json:"sellerId"`
	Amount           Amount `json:"amount"`
	Reason           string `json:"reason"`
	Note             string `json:"note"`
	AvailableBalance Amount `json:"availableBalance"`
	// CreatedBy is "key:" and the service key's id, or the id of the admin who made it.
	CreatedBy string    `json:"createdBy"`
	CreatedAt time.Time `json:"createdAt"`
}

// AdjustBalance corrects a seller's balance, which may fall below zero by it. The same again changes nothing; other values under
// the same AdjustmentID fail with adjustment_conflict. Scope: sellers:write.
func (c *Client) AdjustBalance(ctx context.Context, sellerID string, a NewAdjustment) (MadeAdjustment, error) {
	var made MadeAdjustment
	r := call{method: http.MethodPost, path: []string{"admin", "sellers", sellerID, "adjustments"}, body: a, repeatable: true}
	return made, c.do(ctx, r, &made)
}

// onSeller is a repeatable request about a seller.
func onSeller(method, id string, rest ...string) call {
	return call{method: method, path: append([]string{"marketplace", "sellers", id}, rest...), repeatable: true}
}

// Balance is what a seller earned and has.
type Balance struct {
	SellerID   string `json:"sellerId"`
	ExternalID string `json:"externalId"`
	// AvailableBalance may be withdrawn. It is below zero after a refund of money that was withdrawn already.
	AvailableBalance Amount `json:"availableBalance"`
	PendingBalance   Amount `json:"pendingBalance"`
	TotalEarnings    Amount `json:"totalEarnings"`
	TotalWithdrawn   Amount `json:"totalWithdrawn"`
	Currency         string `json:"currency"`
	MinimumPayout    Amount `json:"minimumPayout"`
	Earnings         struct {
		ThisMonth  Amount `json:"thisMonth"`
		LastMonth  Amount `json:"lastMonth"`
		TotalSales int64  `json:"totalSales"`
	} `json:"earnings"`
	BankAccount struct {
		IsVerified bool `json:"isVerified"`
		// AccountNumber is masked: four asterisks and the last four digits. It is empty without an account.
		AccountNumber string `json:"accountNumber"`
		IFSC          string `json:"ifsc"`
	} `json:"bankAccount"`
}

// Balance reads a seller's balance. Scope: balances:read.
func (c *Client) Balance(ctx context.Context, sellerID string) (Balance, error) {
	var b Balance
	return b, c.do(ctx, onSeller(http.MethodGet, sellerID, "balance"), &b)
}

// Explanation is where a seller's money is, and why no payout can be requested, if so.
type Explanation struct {
	SellerID   string `json:"sellerId"`
	ExternalID string `json:"externalId"`
	// Buckets: Available, all of Pending and all of InTransit add up to Owed.
	Buckets struct {
		Available Amount `json:"available"`
		Pending   []struct {
			Amount Amount `json:"amount"`
			// ReleaseAt is the beginning of the day; zero for all that is released after the next 31 days.
			ReleaseAt time.Time `json:"releaseAt"`
		} `json:"pending"`
		InTransit []struct {
			PayoutID         string    `json:"payoutId"`
			Amount           Amount    `json:"amount"`
			RequestedAt      time.Time `json:"requestedAt"`
			EstimatedArrival time.Time `json:"estimatedArrival"`
			Late             bool      `json:"late"`
		} `json:"inTransit"`
		Owed Amount `json:"owed"`
	} `json:"buckets"`
	// Blockers is empty if a request of all that is available would succeed.
	Blockers []struct {
		// Code is a stable word for programs.
		Code    string `json:"code"`
		Message string `json:"message"`
		// Refusal is the code that a request fails with for this reason.
		Refusal string `json:"refusal"`
		// Since is when it began; zero where that is not known.
		Since time.Time `json:"since"`
		// Until is when it ends by itself; zero where that is not known.
		Until  time.Time `json:"until"`
		Action string    `json:"action"`
	} `json:"blockers"`
}

// Explain says where a seller's money is and what blocks a payout. Scope: balances:read.
func (c *Client) Explain(ctx context.Context, sellerID string) (Explanation, error) {
	var e Explanation
	return e, c.do(ctx, onSeller(http.MethodGet, sellerID, "explain"), &e)
}

// BankAccount is where a seller is paid to.
type BankAccount struct {
	SellerID      string `json:"sellerId"`
	ExternalID    string `json:"externalId"`
	ID            string `json:"id"`
	AccountHolder string `json:"accountHolder"`
	// AccountNumber is masked: four asterisks and the last four digits.
	AccountNumber string `json:"accountNumber"`
	IFSC          string `json:"ifsc"`
	BankName      string `json:"bankName"`
	Branch        string `json:"branch"`
	IsVerified    bool   `json:"isVerified"`
	// Status is unverified, verified, rejected or review.
	Status string `json:"status"`
	// Reason is why it is not verified, and what to do.
	Reason     string    `json:"reason"`
	CreatedAt  time.Time `json:"createdAt"`
	VerifiedAt time.Time `json:"verifiedAt"` // zero while it is not
}

// NewBankAccount is a bank account as the seller's bank has it.
type NewBankAccount struct {
	AccountHolder string `json:"accountHolder"`
	AccountNumber string `json:"accountNumber"`
	IFSC          string `json:"ifsc"`
}

// RegisterBankAccount adds a bank account for a seller, in place of an earlier one, and starts its verification. If the
// answer was lost, it is not sent again: look at [Client.Balance] first. Scope: sellers:write.
func (c *Client) RegisterBankAccount(ctx context.Context, sellerID string, a NewBankAccount) (BankAccount, error) {
	var account BankAccount
	r := onSeller(http.MethodPut, sellerID, "bank-account")
	r.body, r.repeatable = a, false
	return account, c.do(ctx, r, &account)
}

// SessionLink signs a seller's browser in, once.
type SessionLink struct {
	SellerID   string `json:"sellerId"`
	ExternalID string `json:"externalId"`
	// URL is secret: keep it out of logs and mails.
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// SessionLink makes a link to the seller's pages. Redirect the seller's browser to it at once: it can be opened once, within 60
// seconds. Scope: sellers:write.
func (c *Client) SessionLink(ctx context.Context, sellerID string) (SessionLink, error) {
	var link SessionLink
	return link, c.do(ctx, onSeller(http.MethodPost, sellerID, "session"), &link)
}
