package proof

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// A statement as CSV is its lines, for a spreadsheet, and below them rows with the rest of the statement, whose first
// cell is one of these.
const (
	rowStatement  = "#statement"
	rowOpening    = "#opening"
	rowClosing    = "#closing"
	rowStart      = "#start"
	rowBefore     = "#before"
	rowAfter      = "#after"
	rowLater      = "#later"
	rowJournal    = "#journal"
	rowPath       = "#path"
	rowCheckpoint = "#checkpoint"
	rowKey        = "#key"
)

// The columns of a line: what it says, the amounts that move, the totals after it, and the chain's hash.
var csvHeading = []string{
	"number", "at", "what", "type", "subject", "actor", "digest",
	"moved_pending", "moved_available", "moved_in_transit", "moved_sales", "moved_gateway", "moved_fees",
	"pending", "available", "in_transit", "earned", "withdrawn",
	"count_sales", "count_processing", "count_completed", "count_failed", "count_cancelled",
	"hold_until", "frozen", "hash",
}

// Where the parts of a line begin.
const (
	firstMoved  = 7
	firstTotal  = firstMoved + 6
	firstCount  = firstTotal + 5
	holdColumn  = firstCount + 5
	frozenAt    = holdColumn + 1
	hashColumn  = frozenAt + 1
	lineColumns = hashColumn + 1
)

// csvWriter writes a statement as CSV.
type csvWriter struct {
	w        *csv.Writer
	currency money.Currency
	summary  Summary
}

func newCSVWriter(w io.Writer, c money.Currency) *csvWriter {
	return &csvWriter{w: csv.NewWriter(w), currency: c}
}

func (c *csvWriter) begin(s Summary) error {
	c.summary = s
	return c.w.Write(csvHeading)
}

func (c *csvWriter) line(e ledger.Entry) error { return c.w.Write(c.lineRow(e)) }

func (c *csvWriter) proof(s start, before, after *ledger.Entry) error {
	sum := c.summary
	rows := [][]string{
		{rowStatement, statementFormat, CSVCell(sum.Seller), sum.Currency.Code(), stamp(sum.From), stamp(sum.To), number(sum.Entries)},
		append([]string{rowOpening}, c.balances(sum.Opening)...),
		append([]string{rowClosing}, c.balances(sum.Closing)...),
		{rowStart, number(s.Number), string(s.Hash)},
	}
	if before != nil {
		rows = append(rows, append([]string{rowBefore}, c.lineRow(*before)...))
	}
	if after != nil {
		rows = append(rows, append([]string{rowAfter}, c.lineRow(*after)...))
	}
	for _, row := range rows {
		if err := c.w.Write(row); err != nil {
			return err
		}
	}
	return nil
}

func (c *csvWriter) later(entry ledger.Hash) error {
	return c.w.Write([]string{rowLater, string(entry)})
}

func (c *csvWriter) end(s inclusion) error {
	rows := [][]string{{rowJournal, number(s.Number), string(s.Hash), number(s.Index)}}
	for _, other := range s.Path {
		rows = append(rows, []string{rowPath, other})
	}
	p := s.Checkpoint
	rows = append(rows,
		[]string{rowCheckpoint, number(p.Number), stamp(p.At), p.Currency, number(p.Journals), p.Root, string(p.Previous), CSVCell(p.KeyID), CSVCell(p.Signature)},
		[]string{rowKey, CSVCell(s.Key.Text())})
	for _, row := range rows {
		if err := c.w.Write(row); err != nil {
			return err
		}
	}
	c.w.Flush()
	return c.w.Error()
}

func (c *csvWriter) balances(s ledger.Balances) []string {
	return c.amounts(s.Pending, s.Available, s.InTransit)
}

func (c *csvWriter) amounts(amounts ...money.Amount) []string {
	cells := make([]string, len(amounts))
	for i, a := range amounts {
		cells[i] = c.currency.FormatFixed(a)
	}
	return cells
}

func (c *csvWriter) lineRow(e ledger.Entry) []string {
	row := make([]string, 0, lineColumns)
	row = append(row, number(e.Number), stamp(e.At), CSVCell(inWords(e)), CSVCell(string(e.Type)), CSVCell(e.Subject), CSVCell(e.Actor), string(e.Digest()))
	row = append(row, c.amounts(e.Moved.Amounts()...)...)
	row = append(row, c.amounts(e.After.Pending, e.After.Available, e.After.InTransit, e.After.Earned, e.After.Withdrawn)...)
	counts, frozen := e.After.Counts, ""
	if e.After.Frozen {
		frozen = isFrozen
	}
	return append(row, number(counts.Sales), number(counts.Processing), number(counts.Completed), number(counts.Failed), number(counts.Cancelled),
		holdStamp(e.After.HoldUntil), frozen, string(e.Hash))
}

// isFrozen is the cell of an entry after which payouts are frozen. Else it is empty.
const isFrozen = "frozen"

func number(n int64) string { return strconv.FormatInt(n, 10) }

// CSVCell keeps a spreadsheet from taking a text for a formula, and unguarded undoes that.
func CSVCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r'", rune(text[0])) {
		return "'" + text
	}
	return text
}

func unguarded(text string) string { return strings.TrimPrefix(text, "'") }
