package razorpayx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/httpapi"
	"bursar/internal/money"
)

var (
	keyPattern    = regexp.MustCompile(`^[A-Za-z0-9\-_ ]{4,36}$`)
	notNarratable = regexp.MustCompile(`[^A-Za-z0-9 ]+`)
)

// ValidKey reports whether s can be an idempotency key.
func ValidKey(s string) bool { return keyPattern.MatchString(s) }

// Prepare writes the body that asks for the transfer. The same order gives the same bytes.
func (c *Client) Prepare(o gateway.Order) (string, error) {
	switch {
	case !ValidKey(o.Reference) || len(o.Reference) > MaxReference:
		return "", fmt.Errorf("razorpayx: %q can't be a reference and an idempotency key", o.Reference)
	case !strings.HasPrefix(o.Beneficiary, "fa_"):
		return "", fmt.Errorf("razorpayx: %q is no fund account", o.Beneficiary)
	case o.Currency != c.o.Currency.Code():
		return "", fmt.Errorf("razorpayx: the account pays %s, not %s", c.o.Currency, o.Currency)
	case o.Amount < MinAmount:
		return "", fmt.Errorf("razorpayx: a payout of %d is below the least of %d", o.Amount, MinAmount)
	case o.Rail != imps && o.Rail != neft && o.Rail != rtgs:
		return "", fmt.Errorf("razorpayx: no mode %q for bank accounts", o.Rail)
	case o.Seller == "" || o.Account == "" || o.Gross < o.Amount || max(len(o.Seller), len(o.Account)) > MaxNote:
		return "", errors.New("razorpayx: an order tells whose it is, from which account of theirs, and what it was with its fee")
	}
	body, err := json.Marshal(PayoutRequest{
		AccountNumber:     c.o.AccountNumber,
		FundAccountID:     o.Beneficiary,
		Amount:            int64(o.Amount),
		Currency:          o.Currency,
		Mode:              string(o.Rail),
		Purpose:           "payout",
		QueueIfLowBalance: true,
		ReferenceID:       o.Reference,
		Narration:         narration(o.Reference),
		Notes: Notes{
			notePayout: o.Reference, noteSeller: o.Seller, noteAccount: o.Account, noteGross: strconv.FormatInt(int64(o.Gross), 10),
		},
	})
	return string(body), err
}

// Notes that tell which payout a transfer was, should our records be lost. They hold nothing personal.
const (
	notePayout  = "payout_id"
	noteSeller  = "seller_id"
	noteAccount = "bank_account_id"
	noteGross   = "amount_with_fee"
)

// narration is what the seller reads on the bank's statement: the payout's id as far as it may be written.
func narration(reference string) string {
	text := notNarratable.ReplaceAllString(reference, "")
	return text[:min(len(text), MaxNarration)]
}

// Submit sends a prepared body under its key and sorts what comes of it.
func (c *Client) Submit(ctx context.Context, key, body string) gateway.Submission {
	res, lost := c.api.Do(ctx, httpapi.Request{
		Method: http.MethodPost, Path: "/payouts", Header: map[string]string{IdempotencyHeader: key}, Body: []byte(body),
	})
	if lost != nil {
		return lost.Submission()
	}
	switch {
	case res.OK():
		return accepted(res)
	case res.Status == http.StatusUnauthorized:
		return gateway.Submission{Outcome: gateway.NotTaken, ReasonCode: "authentication_failed", Reason: "The gateway does not accept the API key."}
	case res.Status == http.StatusForbidden:
		return gateway.Submission{Outcome: gateway.NotTaken, ReasonCode: "forbidden", Reason: "The gateway does not let us in: " + describe(res)}
	case res.Status == http.StatusTooManyRequests:
		return gateway.Submission{
			Outcome: gateway.NotTaken, ReasonCode: "throttled", Reason: "The gateway asks to slow down.",
			RetryAfter: res.RetryAfter(c.o.Now()),
		}
	case res.Status == http.StatusBadRequest, res.Status == http.StatusNotFound, res.Status == http.StatusUnprocessableEntity:
		return refused(res)
	case res.Status == http.StatusConflict:
		return gateway.Submission{ReasonCode: "in_flight", Reason: "The gateway is at work on the same key."}
	default:
		return gateway.Submission{ReasonCode: "gateway_error", Reason: fmt.Sprintf("The gateway answered %d: %s", res.Status, describe(res))}
	}
}

// accepted reads a success. One without a payout in it may have made a payout all the same.
func accepted(res httpapi.Response) gateway.Submission {
	var p Payout
	if err := httpapi.Decode(res.Body, &p); err != nil || !p.whole() {
		return gateway.Submission{ReasonCode: "unreadable_answer", Reason: "The gateway's answer holds no payout."}
	}
	return gateway.Submission{Outcome: gateway.Accepted, Report: report(p)}
}

// refused reads a 4xx about the request itself. Without a readable body it is not even certain who
// sent it.
func refused(res httpapi.Response) gateway.Submission {
	problem, readable := readProblem(res.Body)
	if !readable {
		return gateway.Submission{ReasonCode: "unreadable_answer", Reason: fmt.Sprintf("The gateway answered %d without saying why.", res.Status)}
	}
	for _, special := range notRefusals {
		if special.matches(problem) {
			return gateway.Submission{Outcome: special.outcome, ReasonCode: special.code, Reason: problem.Description}
		}
	}
	code := string(problem.Reason)
	if code == "" {
		code = "refused"
	}
	return gateway.Submission{Outcome: gateway.Refused, ReasonCode: code, Reason: explainRefusal(problem)}
}

func describe(res httpapi.Response) string {
	if problem, ok := readProblem(res.Body); ok {
		return problem.Description
	}
	return "no reason given"
}

// notRefusal is a problem that says nothing against the payout itself.
type notRefusal struct {
	// text is found in the description, in any case; the others are the problem's own. What is empty
	// matches anything.
	text, problemCode, reason, field string

	outcome gateway.SubmitOutcome
	code    string
}

// notRefusals are 4xx answers about our account or the moment, so the payout waits, or that are no answer to
// this request at all. A key that was used with another body means that an earlier request under it
// was taken.
var notRefusals = []notRefusal{
	{text: "different request body", outcome: gateway.Unclear, code: "key_reused"},
	{problemCode: CodeServerError, outcome: gateway.Unclear, code: "gateway_error"},
	{problemCode: "GATEWAY_ERROR", outcome: gateway.Unclear, code: "gateway_error"},
	{reason: "server_error", outcome: gateway.Unclear, code: "gateway_error"},
	{text: "transactions from this ip are not allowed", outcome: gateway.NotTaken, code: "address_not_allowed"},
	{text: "authentication failed", outcome: gateway.NotTaken, code: "authentication_failed"},
	{text: "requested url was not found", outcome: gateway.NotTaken, code: "wrong_base_address"},
	{text: "razorpayx account number is invalid", outcome: gateway.NotTaken, code: "debit_account_invalid"},
	{field: "account_number", outcome: gateway.NotTaken, code: "debit_account_invalid"},
	{reason: "insufficient_funds", outcome: gateway.NotTaken, code: "insufficient_funds"},
}

func (n notRefusal) matches(p Problem) bool {
	return strings.Contains(strings.ToLower(p.Description), n.text) &&
		(n.problemCode == "" || n.problemCode == p.Code) &&
		(n.reason == "" || n.reason == string(p.Reason)) &&
		(n.field == "" || n.field == string(p.Field))
}

// Fetch asks for a payout by its id at the gateway.
func (c *Client) Fetch(ctx context.Context, gatewayID string) (gateway.Report, error) {
	r, err := c.readPayout(ctx, httpapi.Request{Method: http.MethodGet, Path: payoutPath(gatewayID)})
	if isUnknownID(err) {
		return gateway.Report{}, gateway.ErrUnknownTransfer
	}
	return r, err
}

// Cancel cancels a queued payout, which is the only kind that the gateway lets go of by its API. A
// refusal is followed by a look at the payout, so that the answer is its state.
func (c *Client) Cancel(ctx context.Context, gatewayID string) (gateway.Report, error) {
	if !c.capabilities.Cancel {
		return gateway.Report{}, gateway.ErrNotOffered
	}
	r, err := c.readPayout(ctx, httpapi.Request{Method: http.MethodPost, Path: payoutPath(gatewayID) + "/cancel"})
	var no *RefusedError
	if errors.As(err, &no) && no.Status == http.StatusBadRequest {
		return c.Fetch(ctx, gatewayID)
	}
	return r, err
}

func payoutPath(gatewayID string) string { return "/payouts/" + url.PathEscape(gatewayID) }

func (c *Client) readPayout(ctx context.Context, r httpapi.Request) (gateway.Report, error) {
	p, err := call[Payout](ctx, c, r)
	if err != nil {
		return gateway.Report{}, err
	}
	if !p.whole() {
		return gateway.Report{}, errors.New("the gateway's answer holds no payout")
	}
	return report(p), nil
}

// isUnknownID reports whether the gateway says that the id in the path names nothing. A path that is
// not found is something else: a wrong base address.
func isUnknownID(err error) bool {
	var no *RefusedError
	return errors.As(err, &no) && (no.Status == http.StatusBadRequest || no.Status == http.StatusNotFound) &&
		strings.Contains(strings.ToLower(no.Problem.Description), "id provided does not exist")
}

// Find looks a payout up by our reference. A list that holds others too was not filtered, so it is read to
// its end: that ours is not on the first page proves nothing then.
func (c *Client) Find(ctx context.Context, reference string) (gateway.Report, error) {
	if !c.capabilities.Lookup {
		return gateway.Report{}, gateway.ErrNotOffered
	}
	found, others := map[string]Payout{}, map[string]bool{}
	for range maxPages {
		known := len(found) + len(others)
		filter := url.Values{"reference_id": {reference}}
		if known > 0 {
			filter.Set("skip", strconv.Itoa(known))
		}
		items, err := c.listPayouts(ctx, filter)
		if err != nil {
			return gateway.Report{}, err
		}
		for _, p := range items {
			if reference == p.reference() {
				found[p.ID] = p
			} else {
				others[p.ID] = true
			}
		}
		isChanged := len(found)+len(others) > known
		switch {
		case len(others) == 0, !isChanged && len(items) < MaxPage:
			return theOne(found)
		case !isChanged:
			return gateway.Report{}, errors.New("the gateway's list is not about the reference")
		}
	}
	return gateway.Report{}, errors.New("the gateway's list is not about the reference, and too long")
}

// maxPages bounds how much is read of a list that should have one entry.
const maxPages = 50

// theOne is the payout that was found.
func theOne(found map[string]Payout) (gateway.Report, error) {
	if len(found) > 1 {
		return gateway.Report{}, fmt.Errorf("%w: %s", gateway.ErrManyTransfers, strings.Join(slices.Sorted(maps.Keys(found)), ", "))
	}
	for _, p := range found {
		if !p.whole() {
			return gateway.Report{}, errors.New("the gateway's list holds what is no payout")
		}
		return report(p), nil
	}
	return gateway.Report{}, gateway.ErrUnknownTransfer
}

// listPayouts asks for the first page that a filter selects.
func (c *Client) listPayouts(ctx context.Context, filter url.Values) ([]Payout, error) {
	filter.Set("account_number", c.o.AccountNumber)
	filter.Set("count", strconv.Itoa(MaxPage))
	page, err := call[Collection[Payout]](ctx, c, httpapi.Request{Method: http.MethodGet, Path: "/payouts", Query: filter})
	if err != nil {
		return nil, err
	}
	return page.list()
}

// list are the items, where the answer is a list.
func (c Collection[T]) list() ([]T, error) {
	if (c.Entity != "collection" && c.Entity != "") || c.Items == nil {
		return nil, errors.New("the gateway's answer holds no list")
	}
	return c.Items, nil
}

// whole reports whether p has what a report can't do without.
func (p Payout) whole() bool { return strings.HasPrefix(p.ID, "pout_") && p.Status != "" }

// reference is ours. Where a list leaves it out, the notes have it.
func (p Payout) reference() string { return cmp.Or(string(p.ReferenceID), p.Notes[notePayout]) }

// progress maps the gateway's statuses to ours. Pending waits for an approval, scheduled for its
// time: neither can be cancelled by the API.
var progress = map[string]gateway.Progress{
	StatusPending:    gateway.InProgress,
	StatusScheduled:  gateway.InProgress,
	StatusProcessing: gateway.InProgress,
	StatusQueued:     gateway.Queued,
	StatusProcessed:  gateway.Paid,
	StatusReversed:   gateway.Reversed,
	StatusFailed:     gateway.Failed,
	StatusRejected:   gateway.Failed,
	StatusCancelled:  gateway.Cancelled,
}

func report(p Payout) gateway.Report {
	r := gateway.Report{
		GatewayID: p.ID,
		Reference: p.reference(),
		Amount:    money.Amount(p.Amount),
		Progress:  gateway.Unrecognised,
		RawStatus: p.Status,
		UTR:       string(p.UTR),
		// This text is shown as it is: what is no account and no currency differs from ours.
		Beneficiary: shortText(p.FundAccountID),
		Currency:    shortText(strings.ToUpper(p.Currency)),
	}
	if p.CreatedAt > 0 {
		r.MadeAt = time.Unix(p.CreatedAt, 0).UTC()
	}
	if known, ok := progress[strings.ToLower(strings.TrimSpace(p.Status))]; ok {
		r.Progress = known
	}
	if p.StatusDetails != nil {
		r.ReasonCode = string(p.StatusDetails.Reason)
	}
	r.Reason = explain(p.Status, r.ReasonCode)
	return r
}

// transfer is a report with the order that the payout's notes tell of.
func transfer(p Payout) gateway.Transfer {
	gross, _ := strconv.ParseInt(p.Notes[noteGross], 10, 64) // zero where they don't
	return gateway.Transfer{Report: report(p), Order: gateway.Order{
		Reference:   p.reference(),
		Beneficiary: p.FundAccountID,
		Amount:      money.Amount(p.Amount),
		Currency:    p.Currency,
		Rail:        gateway.RailName(p.Mode),
		Seller:      p.Notes[noteSeller],
		Account:     p.Notes[noteAccount],
		Gross:       money.Amount(gross),
	}}
}
