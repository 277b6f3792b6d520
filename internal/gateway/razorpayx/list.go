package razorpayx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bursar/internal/gateway"
)

// Transfers lists a page of the payouts made since a moment, by any client.
func (c *Client) Transfers(ctx context.Context, since time.Time, after gateway.Cursor) (gateway.TransferPage, error) {
	return c.pageSince(ctx, since, after, "")
}

// Reversed lists a page of the payouts made since a moment that the bank did not pay or sent back.
func (c *Client) Reversed(ctx context.Context, since time.Time, after gateway.Cursor) (gateway.TransferPage, error) {
	return c.pageSince(ctx, since, after, StatusReversed)
}

// beyond is more than any list holds: RazorpayX passes over as many items as it is asked to.
const beyond = 10_000_000

// pageSince reads the page at a place. The vendor documents no end of a list but an empty page. A page that comes again
// was pushed on by what was made meanwhile, or the gateway ignores skip; then what lies far beyond its list is the same.
// Then a short page is the end of the list. A full one is an error, because nobody can tell what follows.
func (c *Client) pageSince(ctx context.Context, since time.Time, after gateway.Cursor, status string) (gateway.TransferPage, error) {
	if !c.capabilities.List {
		return gateway.TransferPage{}, gateway.ErrNotOffered
	}
	at, err := parseCursor(after)
	if err != nil {
		return gateway.TransferPage{}, err
	}
	read := func(skip int) ([]gateway.Transfer, error) { return c.listSince(ctx, since, skip, status) }
	transfers, err := read(at.skip)
	if err != nil || len(transfers) == 0 {
		return gateway.TransferPage{}, err
	}
	digest := digestOf(transfers)
	if digest == at.last {
		far, err := read(beyond)
		switch {
		case err != nil:
			return gateway.TransferPage{}, fmt.Errorf("list what should be past the end: %w", err)
		case digestOf(far) == digest && len(transfers) >= MaxPage:
			return gateway.TransferPage{}, errors.New("the gateway lists the same page again and again")
		case digestOf(far) == digest:
			return gateway.TransferPage{}, nil
		}
	}
	return gateway.TransferPage{Transfers: transfers, Next: listPosition{at.skip + len(transfers), digest}.cursor()}, nil
}

// secondsOf is a time as RazorpayX takes it in a list. It refuses one before the year 2000.
func secondsOf(t time.Time) string {
	const earliest = 946_684_800
	return strconv.FormatInt(max(t.Unix(), earliest), 10)
}

func (c *Client) listSince(ctx context.Context, since time.Time, skip int, status string) ([]gateway.Transfer, error) {
	filter := url.Values{"from": {secondsOf(since)}, "skip": {strconv.Itoa(skip)}}
	if status != "" {
		filter.Set("status", status)
	}
	items, err := c.listPayouts(ctx, filter)
	if err != nil {
		return nil, err
	}
	transfers := make([]gateway.Transfer, len(items))
	for i, p := range items {
		if !p.whole() {
			return nil, errors.New("the gateway's list holds what is no payout")
		}
		transfers[i] = transfer(p)
	}
	return transfers, nil
}

// listPosition is where a page of a list begins: how many items are before it, and which ones the page before it held.
type listPosition struct {
	skip int
	last string
}

func (p listPosition) cursor() gateway.Cursor {
	return gateway.Cursor(strconv.Itoa(p.skip) + "." + p.last)
}

func parseCursor(c gateway.Cursor) (listPosition, error) {
	if c == "" {
		return listPosition{}, nil
	}
	skip, last, ok := strings.Cut(string(c), ".")
	n, err := strconv.Atoi(skip)
	if err != nil || !ok || n < 0 {
		return listPosition{}, errors.New("razorpayx: this cursor is none of ours")
	}
	return listPosition{n, last}, nil
}

// digestOf tells one page of transfers from another.
func digestOf(page []gateway.Transfer) string {
	ids := make([]string, len(page))
	for i, t := range page {
		ids[i] = t.GatewayID
	}
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:8])
}
