package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"bursar/internal/money"
)

// Hash is a SHA-256 in hexadecimal. Hashes are text everywhere, so that sha256sum can check them.
type Hash string

// HashOf is the hash of a text.
func HashOf(text string) Hash { return hashOf([]byte(text)) }

func hashOf(text []byte) Hash {
	sum := sha256.Sum256(text)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return Hash(digits[:])
}

// Standing is what is in a seller's three accounts.
type Standing struct {
	Pending   money.Amount
	Available money.Amount
	InTransit money.Amount
}

// Standing is what is in the accounts.
func (b Balance) Standing() Standing { return Standing{b.Pending, b.Available, b.InTransit} }

// After is the standing after one more transfer.
func (s Standing) After(t Transfer) Standing {
	b := Balance{Pending: s.Pending, Available: s.Available, InTransit: s.InTransit}
	b.take(t)
	return b.Standing()
}

// Plus adds what another standing holds.
func (s Standing) Plus(more Standing) Standing {
	return Standing{s.Pending + more.Pending, s.Available + more.Available, s.InTransit + more.InTransit}
}

// Chain is where the chain of a seller's transfers stands. Each head is the hash of the head before it
// and of one entry, and an entry tells its number, what it left in the accounts, and the transfer. So a head
// stands for everything up to it, and none of that can change without changing the head. The texts that are
// hashed are specified in docs/statements.md.
type Chain struct {
	// Number is that of the last transfer; 0 before the first.
	Number int64
	Standing
	Head Hash
}

// NewChain is the chain of a seller who has no transfers yet.
func NewChain(seller string) Chain { return Chain{Head: HashOf("bursar book v1\n" + seller)} }

// Link is what a transfer adds to a chain whose standing is not known where the transfer is made.
type Link struct {
	// Moved is what its posting had added to the accounts by then.
	Moved Standing
	// Line tells the transfer.
	Line string
}

// Links are those of a posting's transfers.
func Links(at time.Time, transfers []Transfer) []Link {
	links := make([]Link, len(transfers))
	var moved Standing
	for i, t := range transfers {
		moved = moved.After(t)
		links[i] = Link{moved, t.line(at)}
	}
	return links
}

// Extend is the chain after one posting.
func (c Chain) Extend(links ...Link) Chain {
	before := c.Standing
	for _, l := range links {
		c.Number++
		c.Standing = before.Plus(l.Moved)
		c.Head = c.Head.Next(EntryHash(c.Number, c.Standing, l.Line))
	}
	return c
}

// Add is the chain after one transfer.
func (c Chain) Add(at time.Time, t Transfer) Chain {
	c.Number++
	c.Standing = c.After(t)
	c.Head = c.Head.Next(EntryHash(c.Number, c.Standing, t.line(at)))
	return c
}

// Next is the head after an entry of this hash.
func (h Hash) Next(entry Hash) Hash {
	var buffer [4 * sha256.Size]byte
	return hashOf(append(append(buffer[:0], h...), entry...))
}

// EntryHash is that of "NUMBER PENDING AVAILABLE IN_TRANSIT LINE", where the amounts are those after the transfer.
func EntryHash(number int64, after Standing, line string) Hash {
	var buffer [256]byte
	b := strconv.AppendInt(buffer[:0], number, 10)
	for _, amount := range []money.Amount{after.Pending, after.Available, after.InTransit} {
		b = strconv.AppendInt(append(b, ' '), int64(amount), 10)
	}
	return hashOf(append(append(b, ' '), line...))
}

// EntryHash is that of the chain's last entry, which is this transfer.
func (c Chain) EntryHash(at time.Time, t Transfer) Hash {
	return EntryHash(c.Number, c.Standing, t.line(at))
}

// line is "AT AMOUNT KIND DEBIT CREDIT REF": microseconds since 1970, minor units, and each text led by how
// many bytes it has, so that no two transfers have the same line.
func (t Transfer) line(at time.Time) string {
	var buffer [192]byte
	b := strconv.AppendInt(buffer[:0], at.UnixMicro(), 10)
	b = strconv.AppendInt(append(b, ' '), int64(t.Amount), 10)
	for _, text := range []string{string(t.Kind), string(t.Debit), string(t.Credit), t.Ref} {
		b = strconv.AppendInt(append(b, ' '), int64(len(text)), 10)
		b = append(append(b, ':'), text...)
	}
	return string(b)
}
