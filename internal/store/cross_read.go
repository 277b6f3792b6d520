package store

import "bursar/internal/ledger"

// crossRead holds two reads of a transaction against each other: what an index lists about a subject, and what the journal itself has of it,
// read entry by entry. An attacker may hide an entry from the first, such as that a sale was released; see [ledger.Listing].
type crossRead struct {
	listings map[string][]ledger.Listing
	walked   map[string][]ledger.Place
}

// list adds what was listed of an owner's journal.
func (c *crossRead) list(owner string, l ledger.Listing) error {
	for _, p := range c.walked[owner] {
		if err := l.CheckPlace(owner, p); err != nil {
			return err
		}
	}
	if c.listings == nil {
		c.listings = map[string][]ledger.Listing{}
	}
	c.listings[owner] = append(c.listings[owner], l)
	return nil
}

// walk adds an entry that was read in its place.
func (c *crossRead) walk(e ledger.Entry) error {
	for _, l := range c.listings[e.Owner] {
		if err := l.Check(e); err != nil {
			return err
		}
	}
	if c.walked == nil {
		c.walked = map[string][]ledger.Place{}
	}
	c.walked[e.Owner] = append(c.walked[e.Owner], e.Place())
	return nil
}

// append adds an entry that the transaction has made itself.
func (c *crossRead) append(e ledger.Entry) {
	for i := range c.listings[e.Owner] {
		c.listings[e.Owner][i].Append(e)
	}
}
