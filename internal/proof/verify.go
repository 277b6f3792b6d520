package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"bursar/internal/ledger"
)

// Verified is the result of a check.
type Verified struct {
	Summary
	// First and Last are the numbers of the first and last line, where there are lines.
	First, Last int64
	// IsNewest says that the checkpoint holds nothing after the last line.
	IsNewest bool
	// Journal is where the checkpoint has the seller's journal: its owner, number and hash.
	Journal    ledger.Head
	Checkpoint Checkpoint
	// Trusted says that the key is one of those given.
	Trusted bool
	// Problems is all that does not fit, up to maxProblems; without any, everything in the file is proven.
	Problems []string
}

const maxProblems = 20

// Verify reads a statement and checks all of it. It fails where there is no whole statement to check.
// Where keys are given, the checkpoint must be signed by one of them; without them, by the key that the statement
// itself brings. A key of which only the id is known may have no public part.
func Verify(r io.Reader, keys Keys) (Verified, error) {
	d, err := read(r)
	if err != nil {
		return Verified{}, err
	}
	v := &Verified{
		Summary: d.Summary, Checkpoint: d.inclusion.Checkpoint, IsNewest: d.after == nil,
		Journal: ledger.Head{Owner: d.Seller, Number: d.inclusion.Number, Hash: d.inclusion.Hash},
	}
	if len(d.lines) > 0 {
		v.First, v.Last = d.lines[0].Number, d.lines[len(d.lines)-1].Number
	}
	v.chain(d)
	v.period(d)
	v.included(d)
	v.signed(d, keys)
	for _, problem := range d.misdescribed {
		v.problem("%s", problem)
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

// entries are all those in the file, in order.
func (d *document) entries() []ledger.Entry {
	var entries []ledger.Entry
	if d.before != nil {
		entries = append(entries, *d.before)
	}
	entries = append(entries, d.lines...)
	if d.after != nil {
		entries = append(entries, *d.after)
	}
	return entries
}

// chain walks from the start to the hash that the checkpoint holds.
func (v *Verified) chain(d *document) {
	at := ledger.Head{Owner: d.Seller, Number: d.start.Number, Hash: d.start.Hash}
	known := d.before == nil // whether the totals there are known
	if known && at != ledger.NewHead(d.Seller) {
		v.problem("The lines do not begin with the seller's first entry, and the one before them is not told.")
	}
	for _, e := range d.entries() {
		if e.Number != at.Number+1 {
			v.problem("Number %d follows number %d: something was dropped, added or moved.", e.Number, at.Number)
		}
		switch after, err := at.AfterEntry(e); {
		case !known:
		case err != nil:
			v.problem("Number %d moves money in a way that no entry of its type can.", e.Number)
		case e.After != after:
			v.problem("Number %d leaves other totals than those before it and its amounts make.", e.Number)
		}
		if at.Hash.Next(e.Own()) != e.Hash {
			v.problem("Number %d is not what was recorded: it, or one since the last hash that fits, was changed, dropped, added or moved.", e.Number)
		}
		at, known = headAfter(e), true
	}
	for _, entry := range d.later {
		at.Number++
		at.Hash = at.Hash.Next(entry)
	}
	if at.Number != v.Journal.Number {
		v.problem("The checkpoint holds %d entries of this journal, and the statement accounts for %d.", v.Journal.Number, at.Number)
	}
	if at.Hash != v.Journal.Hash {
		v.problem("The entries do not lead to the hash that the checkpoint holds: one of them was changed, dropped, added or moved.")
	}
}

// period holds the lines against what is said of them at the top.
func (v *Verified) period(d *document) {
	var opening ledger.Balances
	if d.before != nil {
		opening = d.before.After.Balances()
	}
	closing := opening
	if n := len(d.lines); n > 0 {
		closing = d.lines[n-1].After.Balances()
		if d.lines[0].At.Before(d.From) || !d.lines[n-1].At.Before(d.To) { // others may lie between, where clocks differ
			v.problem("The lines are not all of the period.")
		}
	}
	switch {
	case !d.From.Before(d.To):
		v.problem("The period ends before it begins.")
	case d.before != nil && !d.before.At.Before(d.From), d.after != nil && d.after.At.Before(d.To):
		v.problem("The period has more lines than the statement says.")
	case d.after == nil && len(d.later) > 0:
		v.problem("There are entries after the lines, and the first of them is not told.")
	}
	if d.Opening != opening {
		v.problem("The opening balance is not the one before the first line.")
	}
	if d.Closing != closing {
		v.problem("The closing balance is not the one after the last line.")
	}
	if d.Entries != int64(len(d.lines)) {
		v.problem("The statement is said to have %d lines, and has %d.", d.Entries, len(d.lines))
	}
}

// included checks the path from the journal to the root of the checkpoint's tree.
func (v *Verified) included(d *document) {
	s := d.inclusion
	path := make([]sum, len(s.Path))
	for i, text := range s.Path {
		var err error
		if path[i], err = parseSum(text); err != nil {
			v.problem("The path to the checkpoint: %q %v.", text, err)
			return
		}
	}
	root, err := rootFrom(leafOf(d.Seller, v.Journal, false), s.Index, s.Checkpoint.Journals, path)
	if err != nil || root.String() != s.Checkpoint.Root {
		v.problem("The checkpoint holds no such journal of %s: the seller's id, or the path from the journal to the checkpoint, was changed.", d.Seller)
	}
	if s.Checkpoint.Currency != d.Currency.Code() {
		v.problem("The checkpoint counts %s, and the statement %s.", s.Checkpoint.Currency, d.Currency)
	}
}

// signed checks who signed.
func (v *Verified) signed(d *document, keys Keys) {
	key, trusted := keys[d.inclusion.Checkpoint.KeyID]
	if len(key.Public) == 0 {
		key = d.inclusion.Key
	}
	if d.inclusion.Key.ID != d.inclusion.Checkpoint.KeyID {
		v.problem("The key that the statement brings is not the one that its checkpoint names.")
	}
	v.Trusted = trusted
	if keys != nil && !trusted {
		v.problem("The checkpoint is signed with key %s, which is none of the given keys: another party signed it, or the given keys are older.", d.inclusion.Checkpoint.KeyID)
	}
	if err := d.inclusion.Checkpoint.SignedBy(key); err != nil {
		v.problem("The checkpoint was changed, or was never signed: %v.", err)
	}
}

// asWritten compares the file with the statement written again: but for white space of JSON and quotes of CSV, they must
// be the same. So the file holds nothing that was not checked.
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
	for _, entry := range d.later {
		if err := w.later(entry); err != nil {
			return err
		}
	}
	return w.end(d.inclusion)
}
