package proof

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bursar/internal/ledger"
)

// Checkpoint says where all journals stood, in one hash.
type Checkpoint struct {
	// Number counts checkpoints: 1, 2, 3 … without a gap.
	Number   int64
	At       time.Time
	Currency string
	// Journals is how many journals there are in the tree, and Root its root.
	Journals int64
	Root     string
	// Previous is the hash of the checkpoint before; empty for the first.
	Previous ledger.Hash
	// KeyID names the key that signed.
	KeyID string
	// Signature is Ed25519's, in base64 for URLs.
	Signature string
}

// checkpointFormat is the first line of what is signed.
const checkpointFormat = "bursar checkpoint v2"

// Text is what is signed. No token of ours can be taken for it, nor it for a token: those are one line of
// base64.
func (c Checkpoint) Text() string {
	previous := string(c.Previous)
	if c.Number == 1 {
		previous = "none"
	}
	return strings.Join([]string{
		checkpointFormat,
		"number " + strconv.FormatInt(c.Number, 10),
		"at " + strconv.FormatInt(c.At.UnixMicro(), 10),
		"currency " + c.Currency,
		"journals " + strconv.FormatInt(c.Journals, 10),
		"root " + c.Root,
		"previous " + previous,
		"key " + c.KeyID,
		"",
	}, "\n")
}

// Hash is what the next checkpoint names this one by.
func (c Checkpoint) Hash() ledger.Hash { return ledger.HashOf(c.Text()) }

// sign fills in the key's id and the signature.
func (c Checkpoint) sign(private ed25519.PrivateKey) (Checkpoint, Key) {
	public, _ := private.Public().(ed25519.PublicKey) // it always is one
	key := NewKey(public)
	c.KeyID = key.ID
	c.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(c.Text())))
	return c, key
}

var errSignature = errors.New("the signature is not that of its key")

// SignedBy reports, as an error, why this is not a checkpoint that the key signed.
func (c Checkpoint) SignedBy(key Key) error {
	signature, err := decodeText(c.Signature, ed25519.SignatureSize)
	if err != nil {
		return fmt.Errorf("the signature %w", err)
	}
	if len(key.Public) != ed25519.PublicKeySize || c.KeyID != key.ID || !ed25519.Verify(key.Public, []byte(c.Text()), signature) {
		return errSignature
	}
	return nil
}

// Follows reports, as an error, why this is not the checkpoint after another one. The one before the first is the zero one.
func (c Checkpoint) Follows(before Checkpoint) error {
	previous := ledger.Hash("")
	if before.Number > 0 {
		previous = before.Hash()
	}
	switch {
	case c.Number != before.Number+1:
		return fmt.Errorf("checkpoint %d follows checkpoint %d", c.Number, before.Number)
	case c.Previous != previous:
		return fmt.Errorf("checkpoint %d names another checkpoint %d than there is", c.Number, before.Number)
	case before.Number > 0 && c.Currency != before.Currency:
		return fmt.Errorf("checkpoint %d counts another currency than checkpoint %d", c.Number, before.Number)
	default:
		return nil
	}
}

// Root adds up the journals of a checkpoint, which come in the order of their sellers' ids.
type Root struct{ t tree }

// Add adds the next journal, which may have been left behind.
func (r *Root) Add(seller string, at ledger.Head, behind bool) { r.t.add(leafOf(seller, at, behind)) }

// Journals is how many were added.
func (r *Root) Journals() int64 { return r.t.n }

// String is the root in hexadecimal.
func (r *Root) String() string { return r.t.root().String() }

// leafOf is a journal as a leaf of the tree: "NUMBER HASH SELLER". The hash stands for the entries. Before that, "behind " says that it did not
// end there: no statement proves what was left out.
func leafOf(seller string, at ledger.Head, behind bool) sum {
	text := strconv.FormatInt(at.Number, 10) + " " + string(at.Hash) + " " + seller
	if behind {
		text = "behind " + text
	}
	return leafSum(text)
}
