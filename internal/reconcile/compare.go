package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// How much is read at once.
const (
	linesPage   = 500
	entriesPage = 500
	caseFiles   = 200
)

// comparison is a period that is being compared.
type comparison struct {
	s    *Service
	p    Period
	read coverage

	result Result
	found  []Difference
	// recorded is what the ledger has of each payout in the period. Every payout that a line of the period
	// names is in it too.
	recorded map[payout.ID]money.Amount
	// unmatched are lines of the period that no payout of the ledger explains, by what they name.
	unmatched map[string]bool
	balances  balances
}

// compare compares what was read with the ledger.
func (s *Service) compare(ctx context.Context, p Period, read coverage) (*comparison, error) {
	c := &comparison{
		s: s, p: p, read: read, result: Result{Period: p},
		recorded: map[payout.ID]money.Amount{}, unmatched: map[string]bool{},
	}
	for _, part := range []func(context.Context) error{
		c.beginBalances, c.takeLines, c.endBalances, c.takeEntries, c.takeChanges, c.judgePayouts, c.judgeUnmatched, c.sum,
	} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// takeLines goes through the lines of the period, in their order.
func (c *comparison) takeLines(ctx context.Context) error {
	var last Line
	for {
		if err := c.s.keepLease(ctx, errLeaseLost); err != nil {
			return err
		}
		page, err := c.s.o.Store.LinesBetween(ctx, c.p.From, c.p.To, last, linesPage)
		if err != nil || len(page) == 0 {
			return err
		}
		owners, err := c.s.owners(ctx, page)
		if err != nil {
			return err
		}
		for _, l := range page {
			if l.Missing {
				continue
			}
			if err := c.balances.take(ctx, c, l); err != nil {
				return err
			}
			c.takeLine(l, owners[l.key()])
		}
		last = page[len(page)-1]
	}
}

func (c *comparison) takeLine(l Line, owner payout.ID) {
	c.result.Lines++
	sums := &c.result.Sums
	foreign := l.Currency != c.s.o.Currency.Code()
	switch {
	case foreign && owner == "":
		c.found = append(c.found, aboutLine(CurrencyDiffers, l, "It %s, and the ledger counts %s.", l.FirstReported, c.s.o.Currency))
	case foreign:
		c.recorded[owner] += 0
	case owner != "":
		c.recorded[owner] += 0
		sums.Debits += l.Debit
		sums.Credits += l.Credit
	case l.ofPayout():
		c.unmatched[l.names()] = true
		sums.Debits += l.Debit
		sums.Credits += l.Credit
	case l.Credit > 0:
		sums.PutIn += l.Credit
	case l.Kind == gateway.LineVerification:
		sums.Checks += l.Debit
	case l.Kind == gateway.LineFee:
		sums.Fees += l.Debit
	default:
		sums.Other += l.Debit
		c.found = append(c.found, aboutLine(UnexplainedDebit, l, "It %s; the gateway calls that %s.", l.FirstReported, l.RawKind))
	}
}

// names is what a line says it is for.
func (l Line) names() string {
	switch {
	case l.Transfer != "":
		return l.Transfer
	case l.Payout != "":
		return string(l.Payout)
	default:
		return l.ID
	}
}

func aboutLine(k Kind, l Line, detail string, args ...any) Difference {
	return Difference{Kind: k, Subject: l.ID, Detail: fmt.Sprintf(detail, args...), At: l.At, AtGateway: l.Taken()}
}

// TransferKey names a transfer, and lineKey a line: two gateways may give the same id.
type (
	TransferKey struct {
		Gateway gateway.Name
		ID      string
	}
	lineKey TransferKey
)

func (l Line) key() lineKey { return lineKey{l.Gateway, l.ID} }

// owners finds the payouts that lines belong to: that which has the line's transfer, or else the one that
// its notes name. Lines of nobody are left out.
func (s *Service) owners(ctx context.Context, lines []Line) (map[lineKey]payout.ID, error) {
	var transfers []string
	var ids []payout.ID
	for _, l := range lines {
		if l.Transfer != "" {
			transfers = append(transfers, l.Transfer)
		}
		if l.Payout != "" {
			ids = append(ids, l.Payout)
		}
	}
	byTransfer, err := s.o.Store.PayoutsByTransfer(ctx, unique(transfers))
	if err != nil {
		return nil, err
	}
	byID, err := s.o.Store.PayoutsByID(ctx, unique(ids))
	if err != nil {
		return nil, err
	}
	owners := make(map[lineKey]payout.ID, len(lines))
	for _, l := range lines {
		if id, isKnown := byTransfer[TransferKey{l.Gateway, l.Transfer}]; isKnown {
			owners[l.key()] = id
		} else if _, isKnown := byID[l.Payout]; isKnown {
			owners[l.key()] = l.Payout
		}
	}
	return owners, nil
}

func unique[T ~string](all []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// takeEntries goes through what the ledger has of the period.
func (c *comparison) takeEntries(ctx context.Context) error {
	var last Entry
	for {
		if err := c.s.keepLease(ctx, errLeaseLost); err != nil {
			return err
		}
		page, err := c.s.o.Store.Entries(ctx, c.p.From, c.p.To, last, entriesPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			c.recorded[e.Payout] += e.Paid
		}
		last = page[len(page)-1]
	}
}

// takeChanges finds the lines that changed or disappeared.
func (c *comparison) takeChanges(ctx context.Context) error {
	var last Line
	for {
		page, err := c.s.o.Store.ChangedLines(ctx, c.p.From, c.p.To, last, linesPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, l := range page {
			c.found = append(c.found, l.change())
		}
		last = page[len(page)-1]
	}
}

// change says how a line changed.
func (l Line) change() Difference {
	if l.Missing {
		return aboutLine(LineChanged, l, "The statement does not have it any more. It was: %s.", l.FirstReported)
	}
	return aboutLine(LineChanged, l, "It was: %s. Now it is: %s.", l.FirstReported, l.LastReported)
}

// judgePayouts judges each payout that the period touches, and accounts for what went out for it.
func (c *comparison) judgePayouts(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(c.recorded))
	for batch := range slices.Chunk(ids, caseFiles) {
		if err := c.s.keepLease(ctx, errLeaseLost); err != nil {
			return err
		}
		all, err := c.s.caseFiles(ctx, batch, c.read)
		if err != nil {
			return err
		}
		for _, d := range all {
			found, judged := d.judge()
			if !judged && !d.elsewhere() {
				c.result.Unjudged++
			}
			c.found = append(c.found, found...)
			c.account(d, len(found) > 0)
		}
		c.result.Payouts += len(all)
		c.s.o.Progress(c.p.From, c.result.Lines)
	}
	return nil
}

// account accounts for what the statement and the ledger have of a payout in the period.
func (c *comparison) account(d caseFile, differs bool) {
	sums := &c.result.Sums
	rest := -c.recorded[d.p.ID]
	for _, l := range d.lines {
		if l.Missing || l.Gateway != d.gateway || l.Currency != d.currency.Code() || !c.p.holds(l.At) {
			continue
		}
		fee, _ := d.feeOf(l)
		if l.Credit > 0 {
			fee = -fee
		}
		sums.Fees += fee
		rest += l.Taken() - fee
	}
	switch {
	case differs:
		sums.Differing += rest
	case d.elsewhere():
		sums.OtherGateway += rest
	case d.p.Status() == payout.StatusProcessing:
		sums.UnderWay += rest
	default:
		sums.OtherPeriod += rest
	}
}

// caseFiles gathers payouts with all lines that belong to them, in the order of their ids.
func (s *Service) caseFiles(ctx context.Context, ids []payout.ID, read coverage) ([]caseFile, error) {
	known, err := s.o.Store.PayoutsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	var transfers []string
	for _, p := range known {
		if p.GatewayID != "" {
			transfers = append(transfers, p.GatewayID)
		}
	}
	lines, err := s.o.Store.LinesAbout(ctx, ids, unique(transfers))
	if err != nil {
		return nil, err
	}
	owners, err := s.owners(ctx, lines)
	if err != nil {
		return nil, err
	}
	byOwner := map[payout.ID][]Line{}
	for _, l := range lines {
		byOwner[owners[l.key()]] = append(byOwner[owners[l.key()]], l)
	}
	all := make([]caseFile, 0, len(known))
	for _, id := range slices.Sorted(maps.Keys(known)) {
		all = append(all, caseFile{p: known[id], gateway: s.at(), lines: byOwner[id], read: read, after: s.o.Now().Add(-s.o.GracePeriod), grace: s.o.GracePeriod, currency: s.o.Currency})
	}
	return all, nil
}

// judgeUnmatched finds what no payout of the ledger explains. A transfer that an admin has resolved as unmatched
// was explained.
func (c *comparison) judgeUnmatched(ctx context.Context) error {
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(c.unmatched)), caseFiles) {
		if err := c.s.keepLease(ctx, errLeaseLost); err != nil {
			return err
		}
		all, err := c.s.unmatched(ctx, c.s.at(), batch)
		if err != nil {
			return err
		}
		for _, name := range batch {
			d, isOne := all[name]
			for _, l := range d.lines {
				if c.p.holds(l.At) && !l.Missing {
					c.result.Sums.Differing += l.Taken()
				}
			}
			if isOne && !d.fresh && !d.isExplained() {
				c.found = append(c.found, d.Difference)
			}
		}
	}
	return nil
}

// unmatchedLines is what no payout of the ledger explains.
type unmatchedLines struct {
	Difference
	lines []Line
	// resolved says that an admin explained it as an unmatched transfer, and fresh that the ledger may learn of it yet.
	resolved, fresh bool
}

// unmatched gathers those of names on a gateway's statement that are no payout's of the ledger.
func (s *Service) unmatched(ctx context.Context, at gateway.Name, names []string) (map[string]unmatchedLines, error) {
	var ids []payout.ID
	for _, name := range names {
		if id, err := payout.ParseID(name); err == nil {
			ids = append(ids, id)
		}
	}
	lines, err := s.o.Store.LinesAbout(ctx, ids, names)
	if err != nil {
		return nil, err
	}
	single, err := s.o.Store.LinesByID(ctx, names)
	if err != nil {
		return nil, err
	}
	lines = append(lines, single...)
	owners, err := s.owners(ctx, lines)
	if err != nil {
		return nil, err
	}
	resolved, err := s.o.Store.ResolvedUnmatchedTransfers(ctx, at, names)
	if err != nil {
		return nil, err
	}
	all := map[string]unmatchedLines{}
	for _, l := range lines {
		if l.Gateway == at && owners[l.key()] == "" && !l.Missing && l.Currency == s.o.Currency.Code() {
			one := all[l.names()]
			one.resolved = resolved[l.names()]
			one.take(l, s.o.Now().Add(-s.o.GracePeriod))
			all[l.names()] = one
		}
	}
	for name, one := range all {
		one.describe(name, s.o.Currency)
		all[name] = one
	}
	return all, nil
}

func (d *unmatchedLines) take(l Line, after time.Time) {
	d.lines = append(d.lines, l)
	d.AtGateway += l.Taken()
	if l.At.After(d.At) {
		d.At = l.At
	}
	d.fresh = d.fresh || l.At.After(after)
}

// isExplained reports whether an admin explained all of it. They explained one transfer, whose money may have come back.
func (d *unmatchedLines) isExplained() bool {
	kept := 0
	for _, l := range d.lines {
		if l.Debit > 0 {
			kept++
		} else {
			kept--
		}
	}
	return d.resolved && kept <= 1
}

// describe says what is known of it.
func (d *unmatchedLines) describe(name string, c money.Currency) {
	reported := make([]string, len(d.lines))
	for i, l := range d.lines {
		reported[i] = "line " + l.ID + " " + l.FirstReported
	}
	slices.Sort(reported)
	d.Kind, d.Subject = LineWithoutPayout, name
	d.Detail = fmt.Sprintf("No payout here is %s: %s. It keeps %s.", name, strings.Join(reported, "; "), c.FormatFixed(d.AtGateway))
}

// sum has the database add up both sides.
func (c *comparison) sum(ctx context.Context) (err error) {
	sums := &c.result.Sums
	if sums.Taken, err = c.s.o.Store.SumOfLines(ctx, c.p.From, c.p.To, c.s.o.Currency.Code()); err != nil {
		return err
	}
	sums.Paid, sums.Returned, err = c.s.o.Store.SumOfEntries(ctx, c.p.From, c.p.To)
	return err
}
