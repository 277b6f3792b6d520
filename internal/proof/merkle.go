package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/bits"
)

// sum is a hash of the tree.
type sum [sha256.Size]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// parseSum reads lower-case hexadecimal, and nothing else: a hash has one way to be written.
func parseSum(text string) (s sum, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(s) || hex.EncodeToString(b) != text {
		return s, errors.New("is no SHA-256 in lower-case hexadecimal")
	}
	return sum(b), nil
}

// The tree is that of RFC 6962: what is hashed for a leaf and for a node begins differently, so that
// neither can be taken for the other.
const (
	leafPrefix = 0x00
	nodePrefix = 0x01
)

func leafSum(data string) sum {
	return sha256.Sum256(append([]byte{leafPrefix}, data...))
}

func nodeSum(left, right sum) sum {
	b := make([]byte, 0, 1+2*sha256.Size)
	b = append(append(append(b, nodePrefix), left[:]...), right[:]...)
	return sha256.Sum256(b)
}

// tree adds leaves up, and keeps no more than a hash for each of its levels.
type tree struct {
	n int64
	// whole are the roots of the full subtrees so far, the largest first; n tells their sizes.
	whole []sum
}

func (t *tree) add(leaf sum) {
	for n := t.n; n&1 == 1; n >>= 1 {
		leaf = nodeSum(t.whole[len(t.whole)-1], leaf)
		t.whole = t.whole[:len(t.whole)-1]
	}
	t.whole = append(t.whole, leaf)
	t.n++
}

// root is that of all leaves so far.
func (t *tree) root() sum {
	if t.n == 0 {
		return sha256.Sum256(nil)
	}
	root := t.whole[len(t.whole)-1]
	for i := len(t.whole) - 2; i >= 0; i-- {
		root = nodeSum(t.whole[i], root)
	}
	return root
}

func rootOf(leaves []sum) sum {
	var t tree
	for _, leaf := range leaves {
		t.add(leaf)
	}
	return t.root()
}

// pathOf is what leads from a leaf to the root: the subtrees that it is not in, the smallest first.
func pathOf(leaves []sum, index int64) []sum {
	n := int64(len(leaves))
	if n <= 1 {
		return nil
	}
	half := int64(1) << (bits.Len64(uint64(n-1)) - 1) // the largest power of two below n
	if index < half {
		return append(pathOf(leaves[:half], index), rootOf(leaves[half:]))
	}
	return append(pathOf(leaves[half:], index-half), rootOf(leaves[:half]))
}

var errPath = errors.New("the path does not fit its place in the tree")

// rootFrom is the root of a tree of size leaves that has the leaf at index, and the path (RFC 9162, 2.1.3.2).
func rootFrom(leaf sum, index, size int64, path []sum) (sum, error) {
	if index < 0 || index >= size {
		return sum{}, errPath
	}
	last := size - 1
	for _, other := range path {
		if last == 0 {
			return sum{}, errPath
		}
		if index&1 == 1 || index == last {
			leaf = nodeSum(other, leaf)
			for index&1 == 0 && index != 0 {
				index, last = index>>1, last>>1
			}
		} else {
			leaf = nodeSum(leaf, other)
		}
		index, last = index>>1, last>>1
	}
	if last != 0 {
		return sum{}, errPath
	}
	return leaf, nil
}
