// Package seal tells what the service wrote from what somebody else wrote into its database. A seal is made of a
// row's words with a key that is not in there, so that who changes the words by hand can't make the seal fit.
package seal

import (
	"errors"
	"fmt"
	"time"
)

// Keys encrypt what must not be readable in a stolen database, and seal what must not be changed in it. The context
// binds a value to its place, so that it can't be moved to another row.
type Keys interface {
	Seal(plaintext, context string) (string, error)
	Open(sealed, context string) (string, error)
}

// ErrBroken means that a row is not what the service wrote.
var ErrBroken = errors.New("it was changed in the database by somebody else than the service")

// Seals makes and checks seals.
type Seals struct {
	Keys Keys
	// Since is when everything began to be sealed; zero for a database that was born so. What is older is taken as
	// it is: an earlier version wrote it, or changed it since.
	Since time.Time
}

// Make seals words, which name their row.
func (s Seals) Make(words string) (string, error) {
	made, err := s.Keys.Seal("", words)
	if err != nil {
		return "", fmt.Errorf("seal a row: %w", err)
	}
	return made, nil
}

// Check fails with [ErrBroken] if the seal of a row, which was made at that time, is not of its words.
func (s Seals) Check(seal string, madeAt time.Time, words string) error {
	if madeAt.Before(s.Since) {
		return nil
	}
	if inside, err := s.Keys.Open(seal, words); err != nil || inside != "" {
		return ErrBroken
	}
	return nil
}
