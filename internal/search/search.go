// Package search finds whatever an operator has in hand: a name, an address, an id, a reference or an amount.
package search

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

const (
	// Shown is how many of each kind are found at most.
	Shown = 20
	// maxBytes is as long as the longest that can be found, an e-mail address.
	maxBytes = 254
	// leastPart is how much of a payout's id finds it.
	leastPart = 6
)

// Store is where things are looked for.
type Store interface {
	// MatchUsers lists users who have an id, or an external id, that is the text, an e-mail address whose key begins with a prefix
	// ("" for none), or a name that holds one of three texts, with the case of ASCII letters ignored.
	MatchUsers(ctx context.Context, text, emailPrefix string, inName [3]string, limit int) ([]auth.User, error)
	// UserNames finds the names of users by their ids.
	UserNames(ctx context.Context, ids []string) (map[string]string, error)
	// SearchPayouts lists payouts whose id, gateway's id or UTR is the text, newest first.
	SearchPayouts(ctx context.Context, text string, limit int) ([]payout.Payout, error)
	// PayoutsWithPart lists payouts whose id holds the text, whatever its case, among the newest [payout.LookedThrough], and those
	// of any age whose id begins with it.
	PayoutsWithPart(ctx context.Context, part string, limit int) ([]payout.Payout, error)
	SumPayouts(ctx context.Context, sel payout.Selection) (payout.Totals, error)
	SelectPayouts(ctx context.Context, sel payout.Selection) ([]payout.Selected, error)
	// AccountsEndingIn lists bank accounts by the last four digits of their numbers, newest first.
	AccountsEndingIn(ctx context.Context, last4 string, limit int) ([]bank.Account, error)
	// SaleByID finds a sale, and reports whether there is one.
	SaleByID(ctx context.Context, id string) (sale.Sale, bool, error)
}

// Service searches.
type Service struct {
	Store    Store
	Currency money.Currency
}

// Results are what was found, by kind.
type Results struct {
	Users    []auth.User
	Payouts  []payout.Payout
	Accounts []bank.Account
	Sales    []sale.Sale
	// Names are those of the sellers of all these, by their ids.
	Names map[string]string
}

// Len is how many things were found.
func (r Results) Len() int { return len(r.Users) + len(r.Payouts) + len(r.Accounts) + len(r.Sales) }

// ErrQuery refuses what nothing can be found by.
var ErrQuery = fault.Field("q", "must be 1 to 254 characters, none of them control characters")

// Find looks for whatever a query may mean.
func (s Service) Find(ctx context.Context, query string) (r Results, err error) {
	query = strings.TrimSpace(query)
	if query == "" || len(query) > maxBytes || !utf8.ValidString(query) || strings.ContainsFunc(query, unicode.IsControl) {
		return Results{}, ErrQuery
	}
	prefix := ""
	if isASCII(query) {
		prefix = auth.EmailKey(query)
	}
	if r.Users, err = s.Store.MatchUsers(ctx, query, prefix, spellings(query), Shown); err != nil {
		return Results{}, err
	}
	if r.Payouts, err = s.payouts(ctx, query); err != nil {
		return Results{}, err
	}
	if len(query) == 4 && allDigits(query) {
		if r.Accounts, err = s.Store.AccountsEndingIn(ctx, query, Shown); err != nil {
			return Results{}, err
		}
	}
	found, ok, err := s.Store.SaleByID(ctx, query)
	if err != nil {
		return Results{}, err
	}
	if ok {
		r.Sales = append(r.Sales, found)
	}
	r.Names, err = s.Store.UserNames(ctx, sellersOf(r))
	return r, err
}

// payouts finds payouts by a reference, a part of their id, or their amount.
func (s Service) payouts(ctx context.Context, query string) ([]payout.Payout, error) {
	var all []payout.Payout
	if isASCII(query) && !strings.Contains(query, " ") {
		found, err := s.Store.SearchPayouts(ctx, query, Shown)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	if part := strings.TrimPrefix(query, payout.IDPrefix); len(part) >= leastPart && isBase62(part) {
		found, err := s.Store.PayoutsWithPart(ctx, query, Shown)
		if err != nil {
			return nil, err
		}
		all = found
	}
	if amount, ok := s.amount(query); ok {
		sel := payout.Selection{Date: payout.DateRequested, Sort: payout.NewestFirst, MinAmount: amount, MaxAmount: amount, Limit: Shown}
		totals, err := s.Store.SumPayouts(ctx, sel)
		if err != nil {
			return nil, err
		}
		sel.Floor = totals.Floor
		found, err := s.Store.SelectPayouts(ctx, sel)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			all = append(all, p.Payout)
		}
	}
	return all[:min(len(all), Shown)], nil
}

// amount reads an amount as people write it, with the currency's sign and commas.
func (s Service) amount(query string) (money.Amount, bool) {
	digits := strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(query, s.Currency.Symbol())), ",", "")
	amount, err := s.Currency.Parse(digits)
	return amount, err == nil && amount > 0
}

// spellings are the query in the cases that a name may be written in, because databases know the case of ASCII letters alone.
func spellings(query string) [3]string {
	lower := strings.ToLower(query)
	first, size := utf8.DecodeRuneInString(lower)
	return [3]string{query, lower, string(unicode.ToTitle(first)) + lower[size:]}
}

func sellersOf(r Results) (ids []string) {
	for _, p := range r.Payouts {
		ids = append(ids, p.Seller)
	}
	for _, a := range r.Accounts {
		ids = append(ids, a.Seller)
	}
	for _, s := range r.Sales {
		ids = append(ids, s.Seller)
	}
	return ids
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c > '~' }) }

func allDigits(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
}

func isBase62(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') })
}
