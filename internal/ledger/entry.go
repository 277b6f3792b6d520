package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
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

// Next is the hash of a chain after an entry whose own hash is entry.
func (h Hash) Next(entry Hash) Hash {
	var buffer [4 * sha256.Size]byte
	return hashOf(append(append(buffer[:0], h...), entry...))
}

// FirstHash is the hash of an owner's chain before the first entry.
func FirstHash(owner string) Hash { return HashOf("bursar journal v1\n" + owner) }

// Posting is an entry to be appended to an owner's journal.
type Posting struct {
	Owner string
	At    time.Time
	Type  Type
	// Subject is the id of the sale, payout, bank account or other thing that the entry is about.
	Subject string
	// Actor is who caused it, such as [ActorSystem], or [ActorUser] with an id.
	Actor string
	// Data is what the entry says of its subject: a JSON object, never with a full account number.
	Data  string
	Moved Moved
	// HoldUntil is for [PayoutsOnHold] alone: until then the owner may ask for no payout. It is not stored but in the totals
	// after the entry.
	HoldUntil time.Time
}

// Entry is one line of an owner's journal. It is never changed.
type Entry struct {
	Posting
	// DataDigest is the hash of the data where that is not at hand, as in a statement. An entry that was read from a database has none:
	// nobody could tell what it stands for.
	DataDigest Hash
	// Number counts the owner's entries: 1, 2, 3 … without a gap.
	Number int64
	// After is the owner's totals after it.
	After Balance
	// Before is the chain's hash before this entry, and Hash the one after it.
	Before, Hash Hash
	// MAC proves that the service wrote the entry. It names its key.
	MAC string
}

// Own is the hash of the entry itself. The chain's hash is [Hash.Next] of the one before and of this. The text that
// is hashed is specified in docs/statements.md.
func (e Entry) Own() Hash {
	var buffer [512]byte
	return hashOf(e.appendText(buffer[:0]))
}

// appendText writes "NUMBER AT TYPE SUBJECT ACTOR DATA MOVED AFTER": microseconds since 1970, texts led by how many
// bytes they have, the SHA-256 of the data in its place, and amounts in minor units.
func (e Entry) appendText(b []byte) []byte {
	b = strconv.AppendInt(b, e.Number, 10)
	b = strconv.AppendInt(append(b, ' '), e.At.UnixMicro(), 10)
	for _, text := range []string{string(e.Type), e.Subject, e.Actor} {
		b = strconv.AppendInt(append(b, ' '), int64(len(text)), 10)
		b = append(append(b, ':'), text...)
	}
	b = append(append(b, ' '), e.Digest()...)
	for _, amount := range [...]money.Amount{e.Moved.Pending, e.Moved.Available, e.Moved.InTransit, e.Moved.Sales, e.Moved.Gateway, e.Moved.Fees} {
		b = strconv.AppendInt(append(b, ' '), int64(amount), 10)
	}
	b = append(b, ' ')
	return e.After.AppendText(b)
}

// Digest is the hash of the data.
func (e Entry) Digest() Hash {
	if e.DataDigest != "" {
		return e.DataDigest
	}
	return HashOf(e.Data)
}

// AppendText writes the totals in a fixed order, apart by spaces. Last comes the end of a hold, if there is one, and a 1 if
// payouts are frozen, which always follows the end of a hold, or 0.
func (b Balance) AppendText(to []byte) []byte {
	for i, n := range [...]int64{
		int64(b.Pending), int64(b.Available), int64(b.InTransit), int64(b.Earned), int64(b.Withdrawn),
		b.Counts.Sales, b.Counts.Processing, b.Counts.Completed, b.Counts.Failed, b.Counts.Cancelled,
	} {
		if i > 0 {
			to = append(to, ' ')
		}
		to = strconv.AppendInt(to, n, 10)
	}
	if b.HoldUntil != 0 || b.Frozen {
		to = strconv.AppendInt(append(to, ' '), b.HoldUntil, 10)
	}
	if b.Frozen {
		to = append(to, ' ', '1')
	}
	return to
}

// Text is the totals as entries tell and store them.
func (b Balance) Text() string { return string(b.AppendText(make([]byte, 0, 96))) }

// ParseBalance reads what [Balance.Text] writes, and nothing else.
func ParseBalance(text string) (b Balance, err error) {
	parts := strings.Split(text, " ")
	var n [12]int64
	if len(parts) > len(n) || len(parts) < len(n)-2 {
		return b, fmt.Errorf("totals of %d numbers, where there are %d, and up to two more with a hold", len(parts), len(n)-2)
	}
	for i, part := range parts {
		if n[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return b, fmt.Errorf("totals with %q: %w", part, err)
		}
	}
	b = Balance{
		Pending: money.Amount(n[0]), Available: money.Amount(n[1]), InTransit: money.Amount(n[2]),
		Earned: money.Amount(n[3]), Withdrawn: money.Amount(n[4]),
		Counts: Counts{n[5], n[6], n[7], n[8], n[9]}, HoldUntil: n[10], Frozen: n[11] == 1,
	}
	if b.Text() != text {
		return b, fmt.Errorf("totals written as %q", text)
	}
	return b, nil
}

// Keys make and check MACs. A key's id is kept with each MAC, so that keys can be rotated.
type Keys interface {
	// MAC authenticates a message with the newest key, and names that key.
	MAC(message []byte) (kid string, sum []byte)
	// CheckMAC reports whether the key of that id made the sum for the message.
	CheckMAC(kid string, message, sum []byte) bool
}

// macText is what a MAC covers: the place in the journal, the chain's hash there, and the totals after it.
func macText(owner string, number int64, hash Hash, after Balance) []byte {
	b := make([]byte, 0, 256)
	b = append(b, "bursar entry mac v1\n"...)
	b = strconv.AppendInt(b, int64(len(owner)), 10)
	b = append(append(b, ':'), owner...)
	b = strconv.AppendInt(append(b, ' '), number, 10)
	b = append(append(b, ' '), hash...)
	return after.AppendText(append(b, ' '))
}

// MAC authenticates a message, which begins with a line that says what it is about. The result names the key.
func MAC(keys Keys, message []byte) string {
	kid, sum := keys.MAC(message)
	return kid + "." + base64.RawURLEncoding.EncodeToString(sum)
}

// CheckMAC reports whether [MAC] made mac for the message, with any key that is known.
func CheckMAC(keys Keys, mac string, message []byte) bool {
	kid, text, _ := strings.Cut(mac, ".")
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && !strings.ContainsAny(text, "\r\n") && keys.CheckMAC(kid, message, sum)
}

// Check fails with [ErrTampered] unless the service wrote the entry at this place of its owner's journal, after a
// chain whose hash was Before.
func (e Entry) Check(keys Keys) error {
	switch {
	case e.Before.Next(e.Own()) != e.Hash:
		return ErrTampered.Because(fmt.Errorf("entry %d of %s does not have its hash", e.Number, e.Owner))
	case !CheckMAC(keys, e.MAC, macText(e.Owner, e.Number, e.Hash, e.After)):
		return ErrTampered.Because(fmt.Errorf("entry %d of %s was not written by the service", e.Number, e.Owner))
	default:
		return nil
	}
}

// IsOurs reports whether the service wrote an entry with this hash and these totals at this place. Whether the entry itself
// is that one is for [Entry.Check] to say.
func (e Entry) IsOurs(keys Keys) bool {
	return e.head().Check(keys) == nil
}

// Head is where an owner's journal stands: the last entry's number, hash and MAC, and the totals after it. It
// verifies itself, without a look at the entries.
type Head struct {
	Owner  string
	Number int64
	Hash   Hash
	Balance
	MAC string
}

// NewHead is an owner's head before the first entry.
func NewHead(owner string) Head { return Head{Owner: owner, Hash: FirstHash(owner)} }

// Check fails with [ErrTampered] unless the head is one that the service wrote.
func (h Head) Check(keys Keys) error {
	if h.Number == 0 && h == NewHead(h.Owner) { // the number comes first because a new head takes a hash to make
		return nil
	}
	if !CheckMAC(keys, h.MAC, macText(h.Owner, h.Number, h.Hash, h.Balance)) {
		return ErrTampered.Because(fmt.Errorf("the balance of %s was not written by the service", h.Owner))
	}
	return nil
}

// CheckNewest fails with [ErrTampered] unless the service wrote the head, and its newest entries, oldest first, are all
// there: none was changed, taken away or put in since the entry with the number from, which the caller has checked, or since
// the first where from is 0: then there may be none. It also fails if two of them record or release the same sale, or make the same adjustment.
// known is how the journal stood when it was last found whole up to there; it may be zero. It returns how the journal was found
// to stand.
func (h Head) CheckNewest(keys Keys, from int64, known Head, newest iter.Seq[Entry]) (Head, error) {
	if err := h.Check(keys); err != nil {
		return known, err
	}
	at := known
	if at.Number == 0 && from < 1 {
		at = NewHead(h.Owner)
	}
	once := OncePerSubject{}
	for e := range newest {
		var err error
		switch {
		case at.Number == 0 && e.Owner == h.Owner && e.Number <= from:
			at = e.head()
		default:
			at, err = at.Follow(nil, e)
		}
		if err == nil {
			err = once.Add(e)
		}
		if err != nil {
			return at, err
		}
	}
	if at.Number != h.Number || at.Hash != h.Hash {
		return at, ErrTampered.Because(fmt.Errorf("the journal of %s can be followed from entry %d to %d, and its balance is that after entry %d",
			h.Owner, from, at.Number, h.Number))
	}
	return at, nil
}

// OncePerSubject are the events that a journal may have once for each subject, as far as it was read. A second one means that the first was hidden by
// hand.
type OncePerSubject map[saidOnce]bool

type saidOnce struct {
	said    Type
	subject string
}

// Add fails with [ErrTampered] if the entry records or releases a sale, or makes an adjustment, as an older one has done.
func (o OncePerSubject) Add(e Entry) error {
	if e.Type != SaleRecorded && e.Type != SaleReleased && e.Type != BalanceAdjusted {
		return nil
	}
	said := saidOnce{e.Type, e.Subject}
	if o[said] {
		return ErrTampered.Because(fmt.Errorf("entry %d of %s is the second %s of %s", e.Number, e.Owner, e.Type, SubjectName(e.Subject)))
	}
	o[said] = true
	return nil
}

// Listing is what an index of the database lists of a journal: all entries about a subject, or all of a type.
// An attacker may hide an entry from an index, or change it for the moment in which it is looked for. Only the journal itself, read entry by
// entry, tells whether one is left out.
type Listing struct {
	Subject string
	Type    Type
	// Numbers are those of the entries, in order. If it is Cut, older ones than the first are not listed.
	Numbers []int64
	Cut     bool
}

// ErrNotListed is why an entry that a listing leaves out is [ErrTampered].
var ErrNotListed = errors.New("was missing when the entries about it were looked for")

// ListingAbout is the listing of the entries about a subject.
func ListingAbout(subject string, entries []Entry) Listing {
	return Listing{Subject: subject, Numbers: numbersOf(entries)}
}

// ListingOf is the listing of the newest entries of a type, up to limit.
func ListingOf(t Type, entries []Entry, limit int) Listing {
	return Listing{Type: t, Numbers: numbersOf(entries), Cut: len(entries) >= limit}
}

func numbersOf(entries []Entry) []int64 {
	numbers := make([]int64, len(entries))
	for i, e := range entries {
		numbers[i] = e.Number
	}
	slices.Sort(numbers)
	return numbers
}

// Check fails with [ErrTampered] if the listing leaves out an entry of its journal.
func (l Listing) Check(e Entry) error { return l.CheckKey(e.Owner, e.IndexKey()) }

// CheckKey is Check of the entry with such a key in an owner's journal.
func (l Listing) CheckKey(owner string, k IndexKey) error {
	if !l.covers(k) {
		return nil
	}
	at, listed := slices.BinarySearch(l.Numbers, k.Number)
	if listed || l.Cut && at == 0 {
		return nil
	}
	return ErrTampered.Because(fmt.Errorf("entry %d of %s (%s of %s) %w", k.Number, owner, k.Type, SubjectName(k.Subject), ErrNotListed))
}

func (l Listing) covers(k IndexKey) bool {
	if l.Type != "" {
		return k.Type == l.Type
	}
	return k.Subject == l.Subject
}

// Append adds an entry that was made since, if it belongs in the listing.
func (l *Listing) Append(e Entry) {
	if l.covers(e.IndexKey()) {
		l.Numbers = append(l.Numbers, e.Number)
	}
}

// IndexKey is what indexes find an entry of a journal by.
type IndexKey struct {
	Number  int64
	Type    Type
	Subject string
}

// IndexKey is what indexes find the entry by.
func (e Entry) IndexKey() IndexKey { return IndexKey{e.Number, e.Type, e.Subject} }

// head is where the journal stood after an entry.
func (e Entry) head() Head {
	return Head{Owner: e.Owner, Number: e.Number, Hash: e.Hash, Balance: e.After, MAC: e.MAC}
}

// Post appends p to the head's journal. It returns the head as it then is and the entry to be stored. It fails
// with [ErrTampered] when the service did not write the head, and like [Balance.After].
func (h Head) Post(keys Keys, p Posting) (Head, Entry, error) {
	if p.Owner == "" || p.Owner != h.Owner || p.Type == "" || p.Subject == "" || p.Actor == "" || p.Data == "" {
		return h, Entry{}, fmt.Errorf("ledger: an entry of type %q about %q for %q in the journal of %q lacks something", p.Type, p.Subject, p.Owner, h.Owner)
	}
	if err := h.Check(keys); err != nil {
		return h, Entry{}, err
	}
	after, err := h.After(p.Type, p.Moved)
	if err != nil {
		return h, Entry{}, err
	}
	if p.Type == PayoutsOnHold {
		after.HoldUntil = max(after.HoldUntil, p.HoldUntil.UnixMicro())
	}
	p.HoldUntil = time.Time{}
	p.At = p.At.UTC().Truncate(time.Microsecond)
	e := Entry{Posting: p, Number: h.Number + 1, After: after, Before: h.Hash}
	e.Hash = e.Before.Next(e.Own())
	e.MAC = MAC(keys, macText(e.Owner, e.Number, e.Hash, e.After))
	return e.head(), e, nil
}

// Follow is the head after an entry that is read back. It fails with [ErrTampered] unless the entry follows on the
// head in number, hash and totals, and the service wrote it. Without keys it checks all but the MAC.
func (h Head) Follow(keys Keys, e Entry) (Head, error) {
	after, err := h.AfterEntry(e)
	switch {
	case e.Owner != h.Owner || e.Number != h.Number+1:
		err = fmt.Errorf("entry %d of %s follows on entry %d of %s", e.Number, e.Owner, h.Number, h.Owner)
	case err != nil:
		err = fmt.Errorf("entry %d of %s: %w", e.Number, h.Owner, err)
	case e.After != after:
		err = fmt.Errorf("entry %d of %s says other totals than it leads to", e.Number, h.Owner)
	}
	next := e.head()
	if err != nil {
		return next, ErrTampered.Because(err)
	}
	e.Before = h.Hash
	if keys == nil {
		if e.Before.Next(e.Own()) != e.Hash {
			err = ErrTampered.Because(fmt.Errorf("entry %d of %s does not have its hash", e.Number, e.Owner))
		}
		return next, err
	}
	return next, e.Check(keys)
}
