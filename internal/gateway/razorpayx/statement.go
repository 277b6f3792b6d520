package razorpayx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/httpapi"
	"bursar/internal/money"
)

// listedTransaction is a line as it is read: the vendor documents no form for a reversal's source, and whether
// a balance is given makes a difference.
type listedTransaction struct {
	Transaction
	Balance *int64          `json:"balance"`
	Source  json.RawMessage `json:"source"`
}

// Lines lists a page of our account's statement, from one second up to and with another.
func (c *Client) Lines(ctx context.Context, from, to time.Time, after gateway.Cursor) (gateway.LinePage, error) {
	if !c.capabilities.Statement {
		return gateway.LinePage{}, gateway.ErrNotOffered
	}
	at, err := parseCursor(after)
	if err != nil {
		return gateway.LinePage{}, err
	}
	listed, err := call[Collection[listedTransaction]](ctx, c, httpapi.Request{Method: http.MethodGet, Path: "/transactions", Query: url.Values{
		"account_number": {c.o.AccountNumber},
		"from":           {secondsOf(from)},
		"to":             {secondsOf(to)},
		"count":          {strconv.Itoa(MaxPage)},
		"skip":           {strconv.Itoa(at.skip)},
	}})
	if err != nil {
		return gateway.LinePage{}, err
	}
	items, err := listed.list()
	if err != nil || len(items) == 0 {
		return gateway.LinePage{}, err
	}
	page := gateway.LinePage{Lines: make([]gateway.Line, len(items)), Next: listPosition{skip: at.skip + len(items)}.cursor()}
	for i, t := range items {
		if page.Lines[i], err = c.line(t); err != nil {
			return gateway.LinePage{}, err
		}
	}
	return page, nil
}

// line reads a line of the statement.
func (c *Client) line(t listedTransaction) (gateway.Line, error) {
	l := gateway.Line{
		ID: t.ID, Debit: money.Amount(t.Debit), Credit: money.Amount(t.Credit), Currency: shortText(t.Currency),
	}
	switch {
	case !strings.HasPrefix(t.ID, "txn_"):
		return l, errors.New("the gateway's list holds what is no line of a statement")
	case t.AccountNumber != "" && t.AccountNumber != c.o.AccountNumber:
		return l, fmt.Errorf("line %s is of another account: the gateway's list is not of ours", t.ID)
	case max(t.Debit, t.Credit) > int64(money.Max):
		return l, fmt.Errorf("line %s is of more than can be counted", t.ID)
	}
	if t.CreatedAt > 0 {
		l.At = time.Unix(t.CreatedAt, 0).UTC()
	}
	if t.Balance != nil {
		l.Balance, l.HasBalance = money.Amount(*t.Balance), true
	}
	var source TransactionSource
	if len(t.Source) > 0 {
		if err := httpapi.Decode(t.Source, &source); err != nil {
			return l, err
		}
	}
	l.RawKind, l.SourceID = shortText(source.Entity), shortText(source.ID)
	l.Amount, l.Fees, l.Tax = money.Amount(source.Amount), money.Amount(source.Fees), money.Amount(source.Tax)
	if source.UTR != nil {
		l.UTR = shortText(string(*source.UTR))
	}
	l.Transfer, l.Reference = namedBy(t.Source, source)
	l.Kind = kindOf(l)
	return l, nil
}

// kindOf classifies a line. The shape of a reversal is not documented, so its name is enough.
func kindOf(l gateway.Line) gateway.LineKind {
	switch {
	case strings.Contains(l.RawKind, "revers"):
		return gateway.LineReversal
	case l.Transfer != "" || l.Reference != "" || l.RawKind == "payout":
		return gateway.LinePayout
	case strings.HasPrefix(l.SourceID, "fav_") || strings.Contains(l.RawKind, "validation"):
		return gateway.LineVerification
	default:
		return gateway.LineOther
	}
}

// namedBy is the payout that a line's source names: by its id at the gateway and by ours. The source of a
// payout's own line is the payout. That of a reversal is not documented, so whatever in it names one payout
// will do.
func namedBy(raw json.RawMessage, source TransactionSource) (transfer, id string) {
	if isTransferID(source.ID) {
		transfer = source.ID
	}
	if source.Notes != nil {
		if note := (*source.Notes)[notePayout]; gateway.IsReference(note) {
			id = note
		}
	}
	if transfer != "" && id != "" {
		return transfer, id
	}
	var transfers, ids []string
	for _, text := range textsOf(raw) {
		if isTransferID(text) {
			transfers = append(transfers, text)
		}
		if gateway.IsReference(text) {
			ids = append(ids, text)
		}
	}
	if only, isOne := onlyOne(transfers); isOne && transfer == "" {
		transfer = only
	}
	if only, isOne := onlyOne(ids); isOne && id == "" {
		id = only
	}
	return transfer, id
}

func isTransferID(s string) bool {
	return strings.HasPrefix(s, "pout_") && shortText(s) == s && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// onlyOne is the text that all of a list are.
func onlyOne(list []string) (string, bool) {
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) != 1 {
		return "", false
	}
	return list[0], true
}

// textsOf lists the texts in a JSON value, however deep.
func textsOf(raw json.RawMessage) []string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	var texts []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(value)
	return texts
}

// shortText keeps a word of the gateway's as short as one is.
func shortText(s string) string {
	const longest = 64
	return strings.ToValidUTF8(s[:min(len(s), longest)], "")
}
