package proof_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// macKey makes MACs with one key.
type macKey string

func (k macKey) MAC(message []byte) (string, []byte) {
	mac := hmac.New(sha256.New, []byte(k))
	mac.Write(message)
	return "k", mac.Sum(nil)
}

func (k macKey) CheckMAC(kid string, message, sum []byte) bool {
	_, want := k.MAC(message)
	return kid == "k" && hmac.Equal(sum, want)
}

// journal is a seller's entries, the row of totals, and where each checkpoint that changed has it.
type journal struct {
	entries      []ledger.Entry
	now          ledger.Head
	checkpointed map[int64]ledger.Head
	behind       map[int64]bool
}

// memory keeps journals and checkpoints in maps, so that a test can change any of it as an attacker would. Both engines
// of the datastore pass package storetest.
type memory struct {
	mu          sync.Mutex
	journals    map[string]*journal
	checkpoints []proof.Checkpoint
	keys        []proof.Key
	holder      string
	until       time.Time
	// failIn makes a call fail: the first one for 1.
	failIn int
}

var errStore = errors.New("the store is not there")

func (m *memory) fails() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failIn--; m.failIn == 0 {
		return errStore
	}
	return nil
}

func (m *memory) open(seller string) {
	m.journals[seller] = &journal{now: ledger.NewHead(seller), checkpointed: map[int64]ledger.Head{}, behind: map[int64]bool{}}
}

func (m *memory) post(keys ledger.Keys, p ledger.Posting) error {
	j := m.journals[p.Owner]
	now, e, err := j.now.Post(keys, p)
	if err == nil {
		j.now, j.entries = now, append(j.entries, e)
	}
	return err
}

func (m *memory) LastCheckpoint(context.Context) (proof.Checkpoint, proof.Key, error) {
	if err := m.fails(); err != nil {
		return proof.Checkpoint{}, proof.Key{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.checkpoints) == 0 {
		return proof.Checkpoint{}, proof.Key{}, nil
	}
	return m.checkpoints[len(m.checkpoints)-1], m.keys[len(m.keys)-1], nil
}

func (m *memory) Checkpoint(_ context.Context, number int64) (proof.Checkpoint, error) {
	if err := m.fails(); err != nil {
		return proof.Checkpoint{}, err
	}
	for _, c := range m.checkpoints {
		if c.Number == number {
			return c, nil
		}
	}
	return proof.Checkpoint{}, nil
}

func (m *memory) CheckpointKeys(context.Context) ([]proof.Key, error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	return slices.CompactFunc(slices.Clone(m.keys), func(a, b proof.Key) bool { return a.ID == b.ID }), nil
}

func (m *memory) Journals(_ context.Context, checkpoint int64, after string, limit int) (journalStates []proof.JournalState, err error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	for _, seller := range slices.Sorted(maps.Keys(m.journals)) {
		if seller > after && len(journalStates) < limit {
			journalStates = append(journalStates, m.journalState(checkpoint, seller))
		}
	}
	return journalStates, nil
}

func (m *memory) JournalState(_ context.Context, checkpoint int64, seller string) (proof.JournalState, error) {
	if err := m.fails(); err != nil {
		return proof.JournalState{}, err
	}
	return m.journalState(checkpoint, seller), nil
}

func (m *memory) journalState(checkpoint int64, seller string) proof.JournalState {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.journals[seller]
	if j == nil {
		return proof.JournalState{}
	}
	b := proof.JournalState{Seller: seller, Now: j.now}
	for _, number := range slices.Sorted(maps.Keys(j.checkpointed)) {
		if number <= checkpoint {
			b.Checkpointed, b.Behind = j.checkpointed[number], j.behind[number]
		}
	}
	return b
}

func (m *memory) EntriesAfter(_ context.Context, seller string, number int64, limit int) (entries []ledger.Entry, err error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	for _, e := range m.journals[seller].entries {
		if e.Number > number && len(entries) < limit {
			e.Before = ""
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func (m *memory) Period(_ context.Context, seller string, among int64, from, to time.Time) (first, last int64, err error) {
	if err := m.fails(); err != nil {
		return 0, 0, err
	}
	notBefore := func(at time.Time) (number int64) {
		for _, e := range m.journals[seller].entries {
			if e.Number > among {
				break
			}
			if number = e.Number; !e.At.Before(at) {
				return number
			}
		}
		return number + 1
	}
	first = notBefore(from)
	return first, max(notBefore(to), first) - 1, nil
}

func (m *memory) CheckpointedBetween(_ context.Context, checkpoint int64, seller string, above, upTo int64) (checkpointed []ledger.Head, err error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	for number, at := range m.journals[seller].checkpointed {
		if number <= checkpoint && at.Number > above && at.Number <= upTo {
			checkpointed = append(checkpointed, at)
		}
	}
	slices.SortFunc(checkpointed, func(a, b ledger.Head) int { return cmp.Compare(a.Number, b.Number) })
	return checkpointed, nil
}

func (m *memory) AcquireLease(_ context.Context, holder string, now, until time.Time) (bool, error) {
	if err := m.fails(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder != holder && m.until.After(now) {
		return false, nil
	}
	m.holder, m.until = holder, until
	return true, nil
}

func (m *memory) ReleaseLease(_ context.Context, holder string) error {
	if err := m.fails(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder == holder {
		m.until = time.Time{}
	}
	return nil
}

func (m *memory) SaveJournals(_ context.Context, holder string, until time.Time, number int64, journalStates []proof.Checkpointed) error {
	if err := m.fails(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder != holder || int64(len(m.checkpoints)) >= number {
		return proof.ErrLeaseLost
	}
	m.until = until
	for _, b := range journalStates {
		b.Head.MAC = "" // a checkpoint needs none
		m.journals[b.Seller].checkpointed[number], m.journals[b.Seller].behind[number] = b.Head, b.Behind
	}
	return nil
}

func (m *memory) Publish(_ context.Context, holder string, c proof.Checkpoint, key proof.Key) error {
	if err := m.fails(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder != holder {
		return proof.ErrLeaseLost
	}
	m.checkpoints, m.keys = append(m.checkpoints, c), append(m.keys, key)
	return nil
}
