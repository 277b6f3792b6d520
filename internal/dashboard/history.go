package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// historyPage is how many entries a page of a seller's journal has.
const historyPage = 30

// accountHistory is a page of a seller's journal, the newest entry first.
type accountHistory struct {
	Rows []entryRow
	// Newest and Older are the addresses of the newest page and the next one, or "".
	Newest, Older string
	// Tampered says that an entry can't be read, because it was changed outside Bursar. The list ends before it.
	Tampered bool
	// BalanceTampered says that the row of the balance was changed outside Bursar, so that it is not shown.
	BalanceTampered bool
}

// entryRow is one entry as admins see it.
type entryRow struct {
	ledger.Entry
	// Key is the name of the service key that caused it, if one did and its name is known.
	Key string
}

// What says what happened.
func (r entryRow) What() string {
	what := wordsOr(entryWords, r.Type)
	if r.Type == ledger.BalanceAdjusted {
		if a, err := sale.AdjustmentOf(r.Entry); err == nil {
			what += ": " + a.Reason
		}
	}
	return what
}

// By says who caused it.
func (r entryRow) By() string {
	kind, name := ledger.CutActor(r.Actor)
	switch {
	case kind == ledger.ActorUser && name == r.Owner:
		return "the seller"
	case kind == ledger.ActorUser:
		return "a user"
	case kind == ledger.ActorIssuer:
		return "the seller, by a token of " + name
	case kind == ledger.ActorAdmin:
		return "an admin"
	case kind == ledger.ActorOperator:
		return "operator " + name
	case kind == ledger.ActorKey && r.Key != "":
		return "service key " + r.Key
	case kind == ledger.ActorKey:
		return "service key " + name
	case kind == ledger.ActorGateway || kind == ledger.ActorMarketplace:
		return "the " + kind
	case kind == ledger.ActorSystem:
		return "Bursar"
	default:
		return r.Actor
	}
}

// ByPath is the page of the admin who caused it, or "".
func (r entryRow) ByPath() string {
	if id, isAdmin := strings.CutPrefix(r.Actor, ledger.ActorAdmin); isAdmin {
		return personAddress(id)
	}
	return ""
}

// Moves lists what the entry moved between accounts, in words.
func (r entryRow) Moves() []accountMove {
	var moves []accountMove
	for i, amount := range r.Moved.Amounts() {
		if amount != 0 {
			moves = append(moves, accountMove{accountWords[i], amount})
		}
	}
	return moves
}

// accountMove is what one account got, or gave where it is below zero.
type accountMove struct {
	Account string
	Amount  money.Amount
}

// Ref is the id of what the entry is about, as people know it.
func (r entryRow) Ref() string {
	return strings.TrimPrefix(strings.TrimPrefix(r.Subject, sale.SubjectPrefix), sale.AdjustmentPrefix)
}

// RefPath is the page of the payout or bank account that the entry is about, or "".
func (r entryRow) RefPath() string {
	switch {
	case strings.HasPrefix(r.Subject, payout.IDPrefix):
		return adminHome + "/payouts/" + r.Subject
	case strings.HasPrefix(r.Subject, bank.IDPrefix):
		return adminHome + "/bank-accounts/" + r.Subject
	default:
		return ""
	}
}

// historyTries is how often the newest page is read while entries come in between.
const historyTries = 2

// readHistory reads a page of a seller's journal, numbered below before, and the seller's balance, which is zero where the service did not write it.
func (d *dashboard) readHistory(ctx context.Context, seller string, before int64) (b accountHistory, balance ledger.Balance, err error) {
	var entries []ledger.Entry
	for range historyTries {
		balance, err = d.o.Ledger.Balance(ctx, seller)
		if b.BalanceTampered = errors.Is(err, ledger.ErrTampered); err != nil && !b.BalanceTampered {
			return accountHistory{}, balance, err
		}
		entries, err = d.o.Ledger.Entries(ctx, seller, before, historyPage)
		if b.Tampered = errors.Is(err, ledger.ErrTampered); err != nil && !b.Tampered {
			return accountHistory{}, balance, err
		}
		if before != 0 || len(entries) == 0 || b.BalanceTampered || entries[0].After == balance { // the newest entry says what the balance is
			break
		}
	}
	if b.Tampered {
		entries = entries[:max(len(entries)-1, 0)]
	}
	if b.Rows, err = d.entryRows(ctx, entries); err != nil {
		return accountHistory{}, balance, err
	}
	if before != 0 {
		b.Newest = historyAddress(seller, 0)
	}
	if n := len(entries); n > 0 && entries[n-1].Number > 1 && !b.Tampered {
		b.Older = historyAddress(seller, entries[n-1].Number)
	}
	return b, balance, nil
}

// entryRows are entries as admins see them, with the names of the service keys that caused any.
func (d *dashboard) entryRows(ctx context.Context, entries []ledger.Entry) ([]entryRow, error) {
	names := map[string]string{}
	if slices.ContainsFunc(entries, func(e ledger.Entry) bool { return strings.HasPrefix(e.Actor, ledger.ActorKey) }) {
		keys, err := d.o.Auth.ServiceKeys(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			names[k.Actor()] = k.Name
		}
	}
	rows := make([]entryRow, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, entryRow{e, names[e.Actor]})
	}
	return rows, nil
}
