package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"bursar/internal/ledger"
)

// Kept is a checkpoint that was kept where nobody who writes to the database can reach it: by itself, or with a
// statement, which also says where the checkpoint has a seller's journal.
type Kept struct {
	Checkpoint Checkpoint
	// Journal is that of a statement: its owner, number and hash. Without a statement it has no owner.
	Journal ledger.Head
}

// ReadKept reads a statement, or checkpoints as "bursar checkpoint" prints them, one below the other. What
// does not prove itself is refused, because it says nothing about any journal.
func ReadKept(r io.Reader) ([]Kept, error) {
	text, err := readAll(r)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte(checkpointFormat)) {
		return readCheckpoints(string(text))
	}
	v, err := Verify(bytes.NewReader(text), nil)
	switch {
	case err != nil:
		return nil, err
	case len(v.Problems) > 0:
		return nil, fmt.Errorf("the statement is not proven: %s", strings.Join(v.Problems, " "))
	}
	return []Kept{{v.Checkpoint, v.Journal}}, nil
}

func readCheckpoints(text string) (all []Kept, err error) {
	blocks := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), checkpointFormat+"\n")
	if blocks[0] != "" {
		return nil, fmt.Errorf("the first line of the file is not %q and nothing else, as it was printed", checkpointFormat)
	}
	for _, block := range blocks[1:] {
		c, err := parseCheckpoint(block)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %d of the file: %w", len(all)+1, err)
		}
		all = append(all, Kept{Checkpoint: c})
	}
	return all, nil
}

// parseCheckpoint reads what is below a checkpoint's first line: its text, and its signature.
func parseCheckpoint(block string) (c Checkpoint, err error) {
	values := map[string]string{}
	for line := range strings.Lines(block) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		values[name] = value
	}
	number := func(name string) int64 {
		n, parseErr := strconv.ParseInt(values[name], 10, 64)
		if err == nil && parseErr != nil {
			err = fmt.Errorf("%q is no %s", values[name], name)
		}
		return n
	}
	c = Checkpoint{
		Number: number("number"), At: time.UnixMicro(number("at")).UTC(), Currency: values["currency"], Journals: number("journals"), Root: values["root"],
		Previous: ledger.Hash(values["previous"]), KeyID: values["key"], Signature: values["signature"],
	}
	if c.Previous == "none" {
		c.Previous = ""
	}
	if err == nil && c.Text()+"signature "+c.Signature+"\n" != checkpointFormat+"\n"+strings.TrimRight(block, "\n")+"\n" {
		err = errors.New("it is not as it was printed")
	}
	return c, err
}

// Mismatches says, in a sentence each, where the journals are not those that the checkpoint was made of. It fails
// where the checkpoint is not signed by us: then it says nothing about our journals.
func (s *Service) Mismatches(ctx context.Context, k Kept) (mismatches []string, err error) {
	if err := s.signedByUs(ctx, k); err != nil {
		return nil, err
	}
	stored, err := s.o.Store.Checkpoint(ctx, k.Checkpoint.Number)
	if err != nil {
		return nil, err
	}
	switch {
	case stored.Number == 0:
		mismatches = append(mismatches, fmt.Sprintf(
			"checkpoint %d of %s is not in the database, which was put back to an older state, or from which it was dropped",
			k.Checkpoint.Number, stamp(k.Checkpoint.At)))
	case stored.Hash() != k.Checkpoint.Hash():
		mismatches = append(mismatches, fmt.Sprintf("checkpoint %d of %s is another one than the database has, which is of %s",
			k.Checkpoint.Number, stamp(k.Checkpoint.At), stamp(stored.At)))
	}
	if k.Journal.Owner == "" {
		return mismatches, nil
	}
	leads, err := s.leadsTo(ctx, k.Journal)
	if err != nil {
		return nil, err
	}
	if !leads {
		mismatches = append(mismatches, fmt.Sprintf("%s's first %d entries are not those that the statement proves", k.Journal.Owner, k.Journal.Number))
	}
	return mismatches, nil
}

// leadsTo reports whether the stored entries of a journal lead to a number and a hash.
func (s *Service) leadsTo(ctx context.Context, want ledger.Head) (bool, error) {
	at := ledger.NewHead(want.Owner)
	for at.Number < want.Number {
		entries, err := s.o.Store.EntriesAfter(ctx, want.Owner, at.Number, int(min(entriesPage, want.Number-at.Number)))
		if err != nil {
			return false, err
		}
		if len(entries) == 0 {
			return false, nil
		}
		for _, e := range entries {
			if at, err = at.Follow(s.o.Keys, e); errors.Is(err, ledger.ErrTampered) {
				return false, nil
			} else if err != nil {
				return false, err
			}
		}
	}
	return at.Number == want.Number && at.Hash == want.Hash, nil
}

// signedByUs reports, as an error, why a checkpoint is none of ours: it has to be signed with a key of the key
// set, or with one that is known to have signed checkpoints before.
func (s *Service) signedByUs(ctx context.Context, k Kept) error {
	c := k.Checkpoint
	if public, ours := s.o.Signer.VerificationKey(c.KeyID); ours {
		return c.SignedBy(NewKey(public))
	}
	known, err := s.o.Store.CheckpointKeys(ctx)
	if err != nil {
		return err
	}
	for _, key := range known {
		if key.ID == c.KeyID {
			return c.SignedBy(key)
		}
	}
	return fmt.Errorf("checkpoint %d is signed with key %s, which is not ours as far as we know", c.Number, c.KeyID)
}
