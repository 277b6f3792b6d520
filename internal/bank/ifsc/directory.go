// Package ifsc knows India's banks and their branch codes, offline.
//
// The data is embedded as sorted text and searched where it lies: it costs nothing at start, and on
// first use an index of 50 KB. It holds no names of branches, and it ages: what it does not know may
// still exist.
package ifsc

import (
	_ "embed" // the data
	"slices"
	"strconv"
	"strings"
	"sync"

	"bursar/internal/bank"
)

// data is lines of "key TAB bank's name TAB branch codes", sorted by key. A key is a bank's four
// letters, or a longer beginning of codes that one bank has lent to another. Branch codes are as in
// "1-3 7 0000SC": numbers and runs of them, then those with letters. Command gen writes it.
//
//go:embed directory.txt
var data string

// Directory finds banks by IFSC. It implements [bank.Directory].
type Directory struct{ lines func() []string }

// New makes a directory.
func New() Directory {
	return Directory{sync.OnceValue(func() []string { return strings.Split(strings.TrimSpace(data), "\n") })}
}

// Branch names the bank that uses a code, and says whether the branch is listed. It does not know
// every bank.
func (d Directory) Branch(code bank.IFSC) (bank.Branch, bool) {
	const length, bankLetters, branchAt = 11, 4, 5
	if len(code) != length {
		return bank.Branch{}, false
	}
	_, branches, _ := d.find(string(code[:bankLetters]))
	for end := length; end >= bankLetters; end-- {
		if name, _, ok := d.find(string(code[:end])); ok {
			return bank.Branch{Bank: name, Listed: listed(branches, string(code[branchAt:]))}, true
		}
	}
	return bank.Branch{}, false
}

// find looks up the line with a key.
func (d Directory) find(key string) (name, branches string, ok bool) {
	lines := d.lines()
	at, ok := slices.BinarySearchFunc(lines, key, func(line, key string) int {
		got, _, _ := strings.Cut(line, "\t")
		return strings.Compare(got, key)
	})
	if !ok {
		return "", "", false
	}
	_, rest, _ := strings.Cut(lines[at], "\t")
	name, branches, _ = strings.Cut(rest, "\t")
	return name, branches, true
}

// listed reports whether a branch code is among those of a line.
func listed(branches, code string) bool {
	low, high := 0, len(branches) // each at the beginning of an entry, or at the end
	for low < high {
		start := strings.LastIndexByte(branches[:low+(high-low)/2], ' ') + 1
		entry, _, _ := strings.Cut(branches[start:], " ")
		switch order := compare(entry, code); {
		case order == 0:
			return true
		case order < 0:
			low = start + len(entry) + 1
		default:
			high = start
		}
	}
	return false
}

// compare tells whether an entry comes before a branch code (below zero), holds it (zero), or comes
// after it. Numbers come before codes with letters.
func compare(entry, code string) int {
	first, last, isRun := strings.Cut(entry, "-")
	if !isRun {
		last = first
	}
	from, entryErr := strconv.Atoi(first)
	to, _ := strconv.Atoi(last)
	number, codeErr := strconv.Atoi(code)
	switch {
	case entryErr != nil && codeErr != nil:
		return strings.Compare(entry, code)
	case entryErr != nil || (codeErr == nil && number < from):
		return +1
	case codeErr != nil || number > to:
		return -1
	default:
		return 0
	}
}
