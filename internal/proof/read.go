package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// MaxFile bounds what is read as a statement, in bytes: 700,000 entries and more.
const MaxFile = 512 << 20

// document is a statement as it was read, all of it.
type document struct {
	Summary
	format Format
	text   []byte
	lines  []ledger.Entry
	start  start
	before *ledger.Entry
	after  *ledger.Entry
	// later is the own hashes of the entries behind after.
	later     []ledger.Hash
	inclusion inclusion
	// rows are those of a CSV, and misdescribed tells lines whose description is not what they are.
	rows         [][]string
	misdescribed []string
	// doubled is a field that is there twice, or "".
	doubled string
}

// readAll reads a file, of no more than its bound.
func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the statement: %w", err)
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("the file is larger than %d MiB, which no statement is; ask for several periods", MaxFile>>20)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil // some programs begin with it
}

// read reads a statement in either format.
func read(r io.Reader) (*document, error) {
	text, err := readAll(r)
	if err != nil {
		return nil, err
	}
	d := &document{format: CSV, text: text}
	switch err = alien(text); {
	case err != nil:
	case bytes.TrimSpace(text)[0] == '{':
		d.format = JSON
		err = inPlainWords(d.readJSON())
	default:
		err = d.readCSV()
	}
	if err != nil {
		return nil, fmt.Errorf("this is no whole statement of Bursar's: %w", err)
	}
	return d, nil
}

// readJSON also takes a statement within the answer that the API gives.
func (d *document) readJSON() error {
	var answer answerJSON
	if err := json.Unmarshal(d.text, &answer); err != nil {
		return err
	}
	if err := answer.otherThan(); err != nil {
		return err
	}
	d.doubled = doubled(d.text)
	if answer.Data != nil {
		if err := strictly(d.text, &wrapperJSON{}); err != nil {
			return err
		}
		d.text = answer.Data
	}
	var j documentJSON
	if err := strictly(d.text, &j); err != nil {
		return err
	}
	return d.take(j)
}

func (d *document) take(j documentJSON) error {
	if j.Format != statementFormat {
		return fmt.Errorf("its format is %q, and this program reads %q", j.Format, statementFormat)
	}
	p := parser{}
	d.Summary = p.summary(j.summaryJSON)
	for _, l := range j.Lines {
		d.lines = append(d.lines, p.line(d.Seller, l))
	}
	d.start = start{j.Proof.Start.Number, p.hash(j.Proof.Start.Hash)}
	d.before, d.after = p.neighbour(d.Seller, j.Proof.Before), p.neighbour(d.Seller, j.Proof.After)
	for _, entry := range j.Proof.Later {
		d.later = append(d.later, p.hash(entry))
	}
	d.inclusion = p.inclusion(j.Proof.inclusionJSON)
	d.misdescribed = p.misdescribed
	if p.err != nil && d.format == CSV {
		return fmt.Errorf("%w; %s", p.err, asDownloaded)
	}
	return p.err
}

// readCSV turns rows into what JSON would hold.
func (d *document) readCSV() error {
	var err error
	if d.rows, err = rowsOf(d.text); err != nil {
		return fmt.Errorf("it is cut off, or was changed: %w", err)
	}
	var j documentJSON
	rows := csvRows{j: &j, seen: map[string]bool{}}
	for i, row := range d.rows {
		if err := rows.take(row); err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	for _, name := range []string{rowStatement, rowOpening, rowClosing, rowStart, rowJournal, rowCheckpoint, rowKey} {
		if !rows.seen[name] {
			return fmt.Errorf("it has no row %s: it is cut off; download it again", name)
		}
	}
	return d.take(j)
}

// csvRows gathers the rows of a statement.
type csvRows struct {
	j    *documentJSON
	rows int
	seen map[string]bool // what rows there are, by their first cells
}

var errRow = errors.New("it does not have the cells that it should have; if it is the last one, the file is cut off")

func (c *csvRows) take(row []string) error {
	if c.rows++; c.rows == 1 {
		if strings.Join(row, ",") != strings.Join(csvHeading, ",") {
			return errors.New("it should be the heading of a statement, and is not")
		}
		return nil
	}
	c.seen[row[0]] = true
	j, p := c.j, &c.j.Proof
	cells, ok := row[1:], true
	n := func(i int) (number int64) {
		number, err := strconv.ParseInt(cells[i], 10, 64)
		ok = ok && err == nil
		return number
	}
	switch want := map[string]int{
		rowStatement: 6, rowOpening: 3, rowClosing: 3, rowStart: 2, rowBefore: lineColumns, rowAfter: lineColumns, rowLater: 1, rowJournal: 3, rowPath: 1, rowCheckpoint: 8, rowKey: 1,
	}[row[0]]; {
	case !strings.HasPrefix(row[0], "#"):
		l, isLine := csvLine(row)
		j.Lines, ok = append(j.Lines, l), isLine
	case want == 0 || len(cells) != want:
		ok = false
	case row[0] == rowStatement:
		j.Format, j.SellerID, j.Currency, j.From, j.To, j.Entries = cells[0], unguarded(cells[1]), cells[2], cells[3], cells[4], n(5)
	case row[0] == rowOpening:
		j.Opening = csvBalances(cells)
	case row[0] == rowClosing:
		j.Closing = csvBalances(cells)
	case row[0] == rowStart:
		p.Start = numberedJSON{n(0), cells[1]}
	case row[0] == rowBefore:
		l, isLine := csvLine(cells)
		p.Before, ok = &l, isLine
	case row[0] == rowAfter:
		l, isLine := csvLine(cells)
		p.After, ok = &l, isLine
	case row[0] == rowLater:
		p.Later = append(p.Later, cells[0])
	case row[0] == rowJournal:
		p.Journal = journalJSON{n(0), cells[1], n(2)}
	case row[0] == rowPath:
		p.Path = append(p.Path, cells[0])
	case row[0] == rowCheckpoint:
		p.Checkpoint = checkpointJSON{n(0), cells[1], cells[2], n(3), cells[4], cells[5], unguarded(cells[6]), unguarded(cells[7])}
	case row[0] == rowKey:
		p.Key = keyJSON{"OKP", "Ed25519", unguarded(cells[0])}
	}
	if !ok {
		return errRow
	}
	return nil
}

func csvLine(cells []string) (l lineJSON, ok bool) {
	if len(cells) != len(csvHeading) {
		return l, false
	}
	ok = true
	n := func(i int) int64 {
		number, err := strconv.ParseInt(cells[i], 10, 64)
		ok = ok && err == nil
		return number
	}
	moved, totals := cells[firstMoved:firstTotal], cells[firstTotal:firstCount]
	l = lineJSON{
		Number: n(0), At: cells[1], What: unguarded(cells[2]), Type: unguarded(cells[3]), Subject: unguarded(cells[4]), Actor: unguarded(cells[5]), Digest: cells[6],
		Moved: movedJSON{csvBalances(moved), csvAmount(moved[3]), csvAmount(moved[4]), csvAmount(moved[5])},
		After: totalsJSON{
			csvBalances(totals), csvAmount(totals[3]), csvAmount(totals[4]),
			countsJSON{n(firstCount), n(firstCount + 1), n(firstCount + 2), n(firstCount + 3), n(firstCount + 4)},
			cells[holdColumn], cells[frozenAt] == isFrozen,
		},
		Hash: cells[hashColumn],
	}
	return l, ok
}

func csvBalances(cells []string) balancesJSON {
	return balancesJSON{csvAmount(cells[0]), csvAmount(cells[1]), csvAmount(cells[2])}
}

// csvAmount is a cell as a JSON number. A cell that is no amount gives zero, and then the check that the statement is
// written the same again finds it.
func csvAmount(cell string) json.Number {
	if _, _, isAmount := cutAmount(cell); !isAmount {
		return "0"
	}
	return json.Number(cell)
}

// cutAmount splits an amount as it is written at the decimal point.
func cutAmount(text string) (whole, fraction string, ok bool) {
	whole, fraction, _ = strings.Cut(text, ".")
	digits := strings.TrimPrefix(whole, "-") + fraction
	const most = 19 // digits of an int64
	ok = digits != "" && len(digits) <= most && strings.Trim(digits, "0123456789") == "" && strings.TrimPrefix(whole, "-") != ""
	return whole, fraction, ok
}

// parser takes values from JSON's, up to the first one that is wrong.
type parser struct {
	currency     money.Currency
	err          error
	misdescribed []string
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) summary(j summaryJSON) (s Summary) {
	var err error
	if p.currency, err = money.ParseCurrency(j.Currency); err != nil {
		p.fail("its currency is %q", j.Currency)
	}
	return Summary{
		Seller: j.SellerID, Currency: p.currency, From: p.time(j.From), To: p.time(j.To),
		Opening: p.balances(j.Opening), Closing: p.balances(j.Closing), Entries: j.Entries,
	}
}

// line reads an entry. Its data is not in a statement, only the data's digest.
func (p *parser) line(seller string, j lineJSON) ledger.Entry {
	m, a, n := j.Moved, j.After, j.After.Counts
	e := ledger.Entry{
		Posting: ledger.Posting{
			Owner: seller, At: p.time(j.At), Type: ledger.Type(j.Type), Subject: j.Subject, Actor: j.Actor,
			Moved: ledger.Moved{
				Pending: p.amount(m.Pending), Available: p.amount(m.Available), InTransit: p.amount(m.InTransit),
				Sales: p.amount(m.Sales), Gateway: p.amount(m.Gateway), Fees: p.amount(m.Fees),
			},
		},
		DataDigest: p.hash(j.Digest),
		Number:     j.Number,
		After: ledger.Balance{
			Pending: p.amount(a.Pending), Available: p.amount(a.Available), InTransit: p.amount(a.InTransit),
			Earned: p.amount(a.Earned), Withdrawn: p.amount(a.Withdrawn),
			Counts:    ledger.Counts{Sales: n.Sales, Processing: n.Processing, Completed: n.Completed, Failed: n.Failed, Cancelled: n.Cancelled},
			HoldUntil: p.hold(a.HoldUntil), Frozen: a.Frozen,
		},
		Hash: p.hash(j.Hash),
	}
	if what := inWords(e); what != j.What {
		p.misdescribed = append(p.misdescribed, fmt.Sprintf("Number %d is described as %q, and is %q.", j.Number, j.What, what))
	}
	return e
}

func (p *parser) neighbour(seller string, j *lineJSON) *ledger.Entry {
	if j == nil {
		return nil
	}
	return new(p.line(seller, *j))
}

func (p *parser) inclusion(j inclusionJSON) inclusion {
	c := j.Checkpoint
	key, err := ParseKey(j.Key.X)
	if err != nil {
		p.fail("its key can't be read: %w", err)
	}
	return inclusion{
		Number: j.Journal.Number, Hash: p.hash(j.Journal.Hash), Index: j.Journal.Index, Path: j.Path, Key: key,
		Checkpoint: Checkpoint{c.Number, p.time(c.At), c.Currency, c.Journals, c.Root, ledger.Hash(c.Previous), c.KeyID, c.Signature},
	}
}

func (p *parser) balances(j balancesJSON) ledger.Balances {
	return ledger.Balances{Pending: p.amount(j.Pending), Available: p.amount(j.Available), InTransit: p.amount(j.InTransit)}
}

// amount reads what [money.Currency] formats, however large: totals may be larger than any amount from outside.
func (p *parser) amount(n json.Number) money.Amount {
	whole, fraction, ok := cutAmount(n.String())
	if !ok || len(fraction) > p.currency.Exponent() {
		p.fail("%q is no amount of %s", n, p.currency)
		return 0
	}
	minor, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", p.currency.Exponent()-len(fraction)), 10, 64)
	if err != nil {
		p.fail("%q is too large", n)
	}
	return money.Amount(minor)
}

func (p *parser) hash(text string) ledger.Hash {
	if _, err := parseSum(text); err != nil {
		p.fail("%q %w", text, err)
	}
	return ledger.Hash(text)
}

// hold reads what [holdStamp] writes.
func (p *parser) hold(text string) int64 {
	if text == "" {
		return 0
	}
	return p.time(text).UnixMicro()
}

func (p *parser) time(text string) time.Time {
	t, err := time.Parse(stampLayout, text)
	if err != nil {
		p.fail("%q is no time such as 2026-11-02T09:30:00.000000Z", text)
	}
	return t
}
