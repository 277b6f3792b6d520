package proof

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// A statement as CSV is its lines, for a spreadsheet, and below them rows that begin with "#…", which tell
// what else there is to tell. The first cell of those is one of these.
const (
	rowStatement  = "#statement"
	rowOpening    = "#opening"
	rowClosing    = "#closing"
	rowStart      = "#start"
	rowBefore     = "#before"
	rowAfter      = "#after"
	rowLater      = "#later"
	rowBook       = "#book"
	rowPath       = "#path"
	rowCheckpoint = "#checkpoint"
	rowKey        = "#key"
)

var csvHeading = []string{"number", "at", "what", "kind", "from", "to", "amount", "ref", "pending", "available", "in_transit", "hash"}

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

func (c *csvWriter) line(l line) error { return c.w.Write(c.lineRow(l)) }

func (c *csvWriter) proof(s start, before, after *line) error {
	sum := c.summary
	rows := [][]string{
		{rowStatement, statementFormat, guarded(sum.Seller), sum.Currency.Code(), stamp(sum.From), stamp(sum.To), number(sum.Transfers)},
		append([]string{rowOpening}, c.standing(sum.Opening)...),
		append([]string{rowClosing}, c.standing(sum.Closing)...),
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

func (c *csvWriter) end(s seal) error {
	rows := [][]string{{rowBook, number(s.Transfers), string(s.Head), number(s.Index)}}
	for _, other := range s.Path {
		rows = append(rows, []string{rowPath, other})
	}
	p := s.Checkpoint
	rows = append(rows,
		[]string{rowCheckpoint, number(p.Number), stamp(p.At), p.Currency, number(p.Books), p.Root, string(p.Previous), guarded(p.KeyID), guarded(p.Signature)},
		[]string{rowKey, guarded(s.Key.Text())})
	for _, row := range rows {
		if err := c.w.Write(row); err != nil {
			return err
		}
	}
	c.w.Flush()
	return c.w.Error()
}

func (c *csvWriter) standing(s ledger.Standing) []string {
	return []string{c.currency.FormatFixed(s.Pending), c.currency.FormatFixed(s.Available), c.currency.FormatFixed(s.InTransit)}
}

func (c *csvWriter) lineRow(l line) []string {
	row := []string{
		number(l.Number), stamp(l.At), guarded(inWords(l.Transfer)), guarded(string(l.Kind)), guarded(string(l.Debit)), guarded(string(l.Credit)),
		c.currency.FormatFixed(l.Amount), guarded(l.Ref),
	}
	return append(append(row, c.standing(l.After)...), string(l.Hash))
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// guarded keeps a spreadsheet from taking a text for a formula, and unguarded undoes that.
func guarded(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r'", rune(text[0])) {
		return "'" + text
	}
	return text
}

func unguarded(text string) string { return strings.TrimPrefix(text, "'") }
