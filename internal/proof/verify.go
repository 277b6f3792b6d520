package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"bursar/internal/ledger"
)

// Verified is what became of a check.
type Verified struct {
	Summary
	// First and Last are the numbers of the first and last line, where there are lines.
	First, Last int64
	// IsNewest says that the checkpoint holds nothing after the last line.
	IsNewest bool
	// Book is where the checkpoint has the seller's chain: its number and its head.
	Book       ledger.Chain
	Checkpoint Checkpoint
	// Trusted says that the key is one of those given.
	Trusted bool
	// Problems is all that does not fit, up to maxProblems; without any, everything in the file is proven.
	Problems []string
}

const maxProblems = 20

// Verify reads a statement and checks all of it. It fails where there is no whole statement to check.
// Where keys are given, the checkpoint must be signed by one of them; without them, by the key that the statement
// itself brings. A key that only its id is known of may have no public part.
func Verify(r io.Reader, keys Keys) (Verified, error) {
	d, err := read(r)
	if err != nil {
		return Verified{}, err
	}
	v := &Verified{
		Summary: d.Summary, Checkpoint: d.seal.Checkpoint, IsNewest: d.after == nil,
		Book: ledger.Chain{Number: d.seal.Transfers, Head: d.seal.Head},
	}
	if len(d.lines) > 0 {
		v.First, v.Last = d.lines[0].Number, d.lines[len(d.lines)-1].Number
	}
	v.chain(d)
	v.period(d)
	v.sealed(d)
	v.signed(d, keys)
	for _, told := range d.misdescribed {
		v.problem("%s", told)
	}
	if d.doubled != "" {
		v.problem("The field %q is there twice, so that programs may read one or the other.", d.doubled)
	}
	if len(v.Problems) == 0 {
		v.asWritten(d)
	}
	return *v, nil
}

func (v *Verified) problem(format string, args ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// told is all lines that are told, in order.
func (d *document) told() []line {
	var told []line
	if d.before != nil {
		told = append(told, *d.before)
	}
	told = append(told, d.lines...)
	if d.after != nil {
		told = append(told, *d.after)
	}
	return told
}

// chain walks from the start to the head that the checkpoint holds.
func (v *Verified) chain(d *document) {
	at := ledger.Chain{Number: d.start.Number, Head: d.start.Hash}
	known := d.before == nil // what is in the accounts there
	if known && at != ledger.NewChain(d.Seller) {
		v.problem("The lines do not begin with the seller's first transfer, and the one before them is not told.")
	}
	for _, l := range d.told() {
		if l.Number != at.Number+1 {
			v.problem("Number %d follows number %d: something was dropped, added or moved.", l.Number, at.Number)
		}
		if known && l.After != at.After(l.Transfer) {
			v.problem("Number %d leaves other balances than those before it and its amount make.", l.Number)
		}
		at.Number, at.Standing = l.Number, l.After
		if head := at.Head.Next(at.EntryHash(l.At, l.Transfer)); head != l.Hash {
			v.problem("Number %d is not what was booked: it, or one since the last hash that fits, was changed, dropped, added or moved.", l.Number)
		}
		at.Head, known = l.Hash, true
	}
	for _, entry := range d.entry {
		at.Number++
		at.Head = at.Head.Next(entry)
	}
	if at.Number != d.seal.Transfers {
		v.problem("The checkpoint holds %d transfers of this book, and the statement accounts for %d.", d.seal.Transfers, at.Number)
	}
	if at.Head != d.seal.Head {
		v.problem("The transfers do not lead to the hash that the checkpoint holds: one of them was changed, dropped, added or moved.")
	}
}

// period holds the lines against what is said of them at the top.
func (v *Verified) period(d *document) {
	opening := ledger.Standing{}
	if d.before != nil {
		opening = d.before.After
	}
	closing := opening
	if n := len(d.lines); n > 0 {
		closing = d.lines[n-1].After
		if d.lines[0].At.Before(d.From) || !d.lines[n-1].At.Before(d.To) {
			v.problem("The lines are not all of the period.")
		}
	}
	switch {
	case !d.From.Before(d.To):
		v.problem("The period ends before it begins.")
	case d.before != nil && !d.before.At.Before(d.From), d.after != nil && d.after.At.Before(d.To):
		v.problem("There are more lines of the period than are told.")
	case d.after == nil && len(d.entry) > 0:
		v.problem("There are transfers after the lines, and the first of them is not told.")
	}
	if d.Opening != opening {
		v.problem("The opening balance is not the one before the first line.")
	}
	if d.Closing != closing {
		v.problem("The closing balance is not the one after the last line.")
	}
	if d.Transfers != int64(len(d.lines)) {
		v.problem("The statement is said to have %d lines, and has %d.", d.Transfers, len(d.lines))
	}
}

// sealed leads from the book to the root of the checkpoint's tree.
func (v *Verified) sealed(d *document) {
	s := d.seal
	path := make([]sum, len(s.Path))
	for i, text := range s.Path {
		var err error
		if path[i], err = parseSum(text); err != nil {
			v.problem("The path to the checkpoint: %q %v.", text, err)
			return
		}
	}
	book := bookSum(d.Seller, ledger.Chain{Number: s.Transfers, Head: s.Head})
	root, err := rootFrom(book, s.Index, s.Checkpoint.Books, path)
	if err != nil || root.String() != s.Checkpoint.Root {
		v.problem("The checkpoint holds no such book of %s: the seller's id, or the way from the book to the checkpoint, was changed.", d.Seller)
	}
	if s.Checkpoint.Currency != d.Currency.Code() {
		v.problem("The checkpoint counts %s, and the statement %s.", s.Checkpoint.Currency, d.Currency)
	}
}

// signed checks who signed.
func (v *Verified) signed(d *document, keys Keys) {
	key, trusted := keys[d.seal.Checkpoint.KeyID]
	if len(key.Public) == 0 {
		key = d.seal.Key
	}
	if d.seal.Key.ID != d.seal.Checkpoint.KeyID {
		v.problem("The key that the statement brings is not the one that its checkpoint names.")
	}
	v.Trusted = trusted
	if keys != nil && !trusted {
		v.problem("The checkpoint is signed with key %s, which is none of those given: somebody else signed it, or the keys given are older.", d.seal.Checkpoint.KeyID)
	}
	if err := d.seal.Checkpoint.SignedBy(key); err != nil {
		v.problem("The checkpoint was changed, or was never signed: %v.", err)
	}
}

// asWritten holds the file against the statement as it is when it is written again: but for white space of JSON,
// and quotes of CSV, they must be the same. So there is nothing in it that was not checked.
func (v *Verified) asWritten(d *document) {
	var again bytes.Buffer
	if err := d.write(newWriter(d.format, &again, d.Currency)); err != nil {
		v.problem("The statement can't be written again: %v.", err)
		return
	}
	if d.format == CSV {
		rows, err := rowsOf(again.Bytes())
		for i := range max(len(rows), len(d.rows)) {
			if err != nil || i >= len(rows) || i >= len(d.rows) || !slices.Equal(rows[i], d.rows[i]) {
				v.problem("Row %d of the file is not as Bursar writes it, or not in its place. If nobody meant to change it, %s.", i+1, asDownloaded)
				return
			}
		}
		return
	}
	var first, second bytes.Buffer
	if json.Compact(&first, d.text) != nil || json.Compact(&second, again.Bytes()) != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		v.problem("The file is not as Bursar writes it: fields have other names or another order, or numbers are written in another way. Use it as it was downloaded.")
	}
}

func (d *document) write(w writer) error {
	if err := w.begin(d.Summary); err != nil {
		return err
	}
	for _, l := range d.lines {
		if err := w.line(l); err != nil {
			return err
		}
	}
	if err := w.proof(d.start, d.before, d.after); err != nil {
		return err
	}
	for _, entry := range d.entry {
		if err := w.later(entry); err != nil {
			return err
		}
	}
	return w.end(d.seal)
}
