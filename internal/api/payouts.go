package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/telemetry"
)

type balanceJSON struct {
	AvailableBalance json.Number        `json:"availableBalance"`
	PendingBalance   json.Number        `json:"pendingBalance"`
	TotalEarnings    json.Number        `json:"totalEarnings"`
	TotalWithdrawn   json.Number        `json:"totalWithdrawn"`
	Currency         string             `json:"currency"`
	MinimumPayout    json.Number        `json:"minimumPayout"`
	Earnings         earningsJSON       `json:"earnings"`
	BankAccount      balanceAccountJSON `json:"bankAccount"`
}

type earningsJSON struct {
	ThisMonth  json.Number `json:"thisMonth"`
	LastMonth  json.Number `json:"lastMonth"`
	TotalSales int64       `json:"totalSales"`
}

type balanceAccountJSON struct {
	IsVerified    bool      `json:"isVerified"`
	AccountNumber string    `json:"accountNumber"`
	IFSC          bank.IFSC `json:"ifsc"`
}

func (a *api) balance(ctx context.Context, who caller, _ none) (reply[balanceJSON], error) {
	balance, err := a.balanceOf(ctx, who.UserID)
	return answer(balance, err)
}

func (a *api) balanceOf(ctx context.Context, seller string) (balanceJSON, error) {
	s, err := a.o.Payouts.Summary(ctx, seller)
	if err != nil {
		return balanceJSON{}, err
	}
	return balanceJSON{
		AvailableBalance: a.amount(s.Available),
		PendingBalance:   a.amount(s.Pending),
		TotalEarnings:    a.amount(s.Earned),
		TotalWithdrawn:   a.amount(s.Withdrawn),
		Currency:         a.o.Currency.Code(),
		MinimumPayout:    a.amount(a.o.Payouts.Minimum()),
		Earnings:         earningsJSON{a.amount(s.ThisMonth), a.amount(s.LastMonth), s.Sales},
		BankAccount:      balanceAccountJSON{s.Account.Status == bank.StatusVerified, s.Account.Masked(), s.Account.IFSC},
	}, nil
}

type payoutRequest struct {
	amount money.Amount
	notes  string
	key    string
}

func (req *payoutRequest) read(in *input) {
	req.amount = in.amount("amount")
	req.notes = in.optionalText("notes", payout.CheckNotes)
	req.key = in.idempotencyKey()
	// With a key and no other problem, package payout compares the amount, once it has looked for the first answer under the key: that may be
	// from when the minimum was lower.
	least, mayRepeat := in.api.o.Payouts.Minimum(), req.key != "" && in.fieldProblem() == nil
	if req.amount > 0 && req.amount < least && !mayRepeat {
		in.noteInvalid("amount", "must be at least "+in.api.o.Currency.Format(least))
	}
}

type requestedJSON struct {
	PayoutID         payout.ID     `json:"payoutId"`
	Amount           json.Number   `json:"amount"`
	Status           payout.Status `json:"status"`
	EstimatedArrival string        `json:"estimatedArrival"`
	AccountNumber    string        `json:"accountNumber"`
	RequestedAt      string        `json:"requestedAt"`
}

func (a *api) requestPayout(ctx context.Context, who caller, req payoutRequest) (reply[requestedJSON], error) {
	made, err := a.requestPayoutOf(ctx, who, req)
	if errors.Is(err, auth.ErrUnconfirmed) { // nothing was done
		if who, err = who.confirm(); err != nil {
			return reply[requestedJSON]{}, err
		}
		return a.requestPayoutOf(ctx, who, req)
	}
	telemetry.SetUser(ctx, who.UserID)
	return made, err
}

func (a *api) requestPayoutOf(ctx context.Context, who caller, req payoutRequest) (reply[requestedJSON], error) {
	if !who.isUnconfirmed() {
		if err := a.o.Auth.CheckMayRequestPayout(who.Principal); err != nil {
			return reply[requestedJSON]{}, err
		}
	}
	p, replayed, err := a.o.Payouts.Request(ctx, payout.Request{
		Seller: who.UserID, Amount: req.amount, Notes: req.notes, Key: req.key,
		Session: who.Session, Proof: who.Proof, ConfirmSession: who.isUnconfirmed(), IssuerActor: who.IssuerActor(),
	})
	if who.Issuer != "" && errors.Is(err, payout.ErrSellerProof) {
		err = errProofHere
	}
	if err != nil {
		return reply[requestedJSON]{replayed: replayed}, err
	}
	return reply[requestedJSON]{status: http.StatusCreated, message: "Your payout was requested, and its amount is reserved.", data: a.requestedOf(p), replayed: replayed}, nil
}

// errProofHere is for a seller with a token of another issuer, which no proof can come with.
var errProofHere = payout.ErrSellerProof.WithMessage("You have to confirm this, which needs a sign-in at Bursar. Sign in on its pages, and do it there.")

func (a *api) requestedOf(p payout.Payout) requestedJSON {
	return requestedJSON{
		PayoutID: p.ID,
		Amount:   a.amount(p.Amount),
		// Every payout begins so, and a repeat gets the first answer whatever became of it since.
		Status:           payout.StatusProcessing,
		EstimatedArrival: stamp(p.ArriveAt),
		AccountNumber:    bank.Mask(p.AccountLast4),
		RequestedAt:      stamp(p.RequestedAt),
	}
}

type historyRequest struct {
	page   int
	filter payout.Filter
}

// Pages of history. The last page bounds what a request can make the store skip.
const (
	defaultPageSize = 10
	maxPageSize     = 50
	maxPage         = 10_000_000
)

func (req *historyRequest) read(in *input) {
	req.page = in.number("page", 1, maxPage)
	req.filter.Limit = in.number("limit", defaultPageSize, maxPageSize)
	req.filter.Offset = (req.page - 1) * req.filter.Limit
	if s, given := in.parameter("status"); given && s != "all" {
		req.filter.Status = payout.Status(s)
		if !slices.Contains(payout.Statuses(), req.filter.Status) {
			in.noteInvalid("status", "must be all, processing, completed, failed or cancelled")
		}
	}
	if s, given := in.parameter("sellerId"); given {
		req.filter.Seller = s
		if !id.Valid(auth.UserIDPrefix, s) {
			in.noteInvalid("sellerId", "must be a user's id, such as registration returns")
		}
	}
}

type historyJSON struct {
	Payouts    []historyItemJSON `json:"payouts"`
	Pagination paginationJSON    `json:"pagination"`
}

type historyItemJSON struct {
	ID     payout.ID `json:"id"`
	Seller string    `json:"sellerId,omitempty"`

	Amount           json.Number   `json:"amount"`
	Status           payout.Status `json:"status"`
	AccountNumber    string        `json:"accountNumber"`
	RequestedAt      string        `json:"requestedAt"`
	CompletedAt      string        `json:"completedAt,omitempty"`
	UTR              *orNull       `json:"utr,omitempty"`
	EstimatedArrival string        `json:"estimatedArrival,omitempty"`
}

type paginationJSON struct {
	CurrentPage  int   `json:"currentPage"`
	TotalPages   int64 `json:"totalPages"`
	TotalItems   int64 `json:"totalItems"`
	ItemsPerPage int   `json:"itemsPerPage"`
}

func (a *api) history(ctx context.Context, who caller, req historyRequest) (reply[historyJSON], error) {
	payouts, total, err := a.o.Payouts.History(ctx, who.onPayouts(), req.filter)
	items := mapped(payouts, func(p payout.Payout) historyItemJSON {
		item := a.historyItem(p)
		if who.Role == auth.Admin {
			item.Seller = p.Seller
		}
		return item
	})
	return answer(historyJSON{Payouts: items, Pagination: paginationOf(req.page, req.filter.Limit, total)}, err)
}

func paginationOf(page, limit int, total int64) paginationJSON {
	perPage := int64(limit)
	return paginationJSON{page, (total + perPage - 1) / perPage, total, limit}
}

func (a *api) historyItem(p payout.Payout) historyItemJSON {
	item := historyItemJSON{
		ID:            p.ID,
		Amount:        a.amount(p.Amount),
		Status:        p.Status(),
		AccountNumber: bank.Mask(p.AccountLast4),
		RequestedAt:   stamp(p.RequestedAt),
	}
	switch item.Status {
	case payout.StatusProcessing:
		item.EstimatedArrival = stamp(p.ArriveAt)
	case payout.StatusCompleted:
		utr := orNull(p.UTR) // the bank may give it later
		item.CompletedAt, item.UTR = stamp(p.CompletedAt), &utr
	case payout.StatusFailed, payout.StatusCancelled:
	}
	return item
}

type payoutIDRequest struct{ id payout.ID }

func (req *payoutIDRequest) read(in *input) { req.id = in.payoutID() }

func (in *input) payoutID() payout.ID {
	id, err := payout.ParseID(in.r.PathValue("payoutId"))
	in.noteError(err)
	return id
}

type payoutJSON struct {
	ID              payout.ID         `json:"id"`
	SellerID        string            `json:"sellerId"`
	Amount          json.Number       `json:"amount"`
	Fee             json.Number       `json:"fee"`
	NetAmount       json.Number       `json:"netAmount"`
	Status          payout.Status     `json:"status"`
	BankAccount     payoutAccountJSON `json:"bankAccount"`
	RequestedAt     string            `json:"requestedAt"`
	ProcessedAt     orNull            `json:"processedAt"`
	CompletedAt     orNull            `json:"completedAt"`
	UTR             orNull            `json:"utr"`
	Notes           orNull            `json:"notes"`
	GatewayPayoutID orNull            `json:"gatewayPayoutId"`
	FailureReason   orNull            `json:"failureReason"`
	Source          string            `json:"source"`
}

type payoutAccountJSON struct {
	AccountNumber string `json:"accountNumber"`
	IFSC          string `json:"ifsc"`
	AccountHolder string `json:"accountHolder"`
}

func (a *api) payout(ctx context.Context, who caller, req payoutIDRequest) (reply[payoutJSON], error) {
	p, err := a.o.Payouts.Payout(ctx, who.onPayouts(), req.id)
	return answer(a.payoutOf(p), err)
}

func (a *api) payoutOf(p payout.Payout) payoutJSON {
	detail := payoutJSON{
		ID:              p.ID,
		SellerID:        p.Seller,
		Amount:          a.amount(p.Amount),
		Fee:             a.amount(p.Fee),
		NetAmount:       a.amount(p.Net()),
		Status:          p.Status(),
		BankAccount:     payoutAccountJSON{bank.Mask(p.AccountLast4), p.AccountIFSC, p.AccountHolder},
		RequestedAt:     stamp(p.RequestedAt),
		ProcessedAt:     stampOrNull(p.ProcessedAt),
		CompletedAt:     stampOrNull(p.CompletedAt),
		Notes:           orNull(p.Notes),
		Source:          cmp.Or(string(p.Source), "seller"),
		GatewayPayoutID: orNull(p.GatewayID),
	}
	if !p.CompletedAt.IsZero() {
		detail.UTR = orNull(p.UTR)
	}
	if detail.Status == payout.StatusFailed {
		detail.FailureReason = orNull(p.Reason)
	}
	return detail
}

type eventsJSON struct {
	Events []eventJSON `json:"events"`
}

type eventJSON struct {
	At     string       `json:"at"`
	From   orNull       `json:"from"`
	To     payout.State `json:"to"`
	Reason orNull       `json:"reason"`
}

func (a *api) payoutEvents(ctx context.Context, who caller, req payoutIDRequest) (reply[eventsJSON], error) {
	events, err := a.o.Payouts.Events(ctx, who.onPayouts(), req.id)
	return answer(eventsJSON{timelineOf(events)}, err)
}

func timelineOf(events []payout.StateChange) []eventJSON {
	return mapped(events, func(e payout.StateChange) eventJSON {
		return eventJSON{stamp(e.At), orNull(e.From), e.To, orNull(e.Reason)}
	})
}

type cancelRequest struct {
	id  payout.ID
	key string
}

func (req *cancelRequest) read(in *input) {
	req.key = in.idempotencyKey()
	req.id = in.payoutID()
}

type cancelledJSON struct {
	PayoutID       payout.ID     `json:"payoutId"`
	Status         payout.Status `json:"status"`
	RefundedAmount json.Number   `json:"refundedAmount"`
}

// proveCancel uses up the proof of an admin who cancels another user's payout, unless the answer to it is known.
func (a *api) proveCancel(ctx context.Context, who caller, req cancelRequest) error {
	if who.Role != auth.Admin {
		return nil
	}
	answered, err := a.o.Payouts.Answered(ctx, who.UserID, req.key)
	if err != nil || answered {
		return err
	}
	p, err := a.o.Payouts.Payout(ctx, who.onPayouts(), req.id)
	if err != nil || p.Seller == who.UserID {
		return err
	}
	return a.o.Auth.ProveDecision(ctx, who.Principal, decision.CancelPayout, string(req.id))
}

func (a *api) cancelPayout(ctx context.Context, who caller, req cancelRequest) (reply[cancelledJSON], error) {
	if err := a.proveCancel(ctx, who, req); err != nil {
		return reply[cancelledJSON]{}, err
	}
	p, replayed, err := a.o.Payouts.Cancel(ctx, who.onPayouts(), req.id, req.key)
	if err != nil {
		return reply[cancelledJSON]{replayed: replayed}, err
	}
	return reply[cancelledJSON]{
		message:  "The payout is cancelled. Its amount is back in your balance.",
		data:     cancelledJSON{p.ID, payout.StatusCancelled, a.amount(p.Amount)},
		replayed: replayed,
	}, nil
}
