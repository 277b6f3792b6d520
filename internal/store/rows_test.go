package store

import (
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
)

func TestRowsOf_PostgreSQL(t *testing.T) {
	c := newCrowd(t, 1)
	c.seller("asha", 1000, bank.StatusVerified)
	c.seller("bela", 2000, bank.StatusVerified)
	line := &rowLine{postgresLine{config: c.handles[0].units.config}, func(error) {}}
	t.Cleanup(line.hangUp)

	reads := askForMany(t, c.handles[0].rows)
	var two int64
	other := asking(c.handles[0].rows.row(t.Context(), `SELECT $1 + 1`, []any{1}), &two)
	line.serve(append(reads.group(), other))
	reads.check(t)
	if err := <-other.answer; err != nil || two != 2 {
		t.Errorf("the other query got %d, %v", two, err)
	}
}

func TestRowsOf_SQLite(t *testing.T) {
	db := openTemp(t)
	db.UseKeys(testKeys(t))
	for owner, amount := range map[string]money.Amount{"asha": 1000, "bela": 2000} {
		err := db.Update(t.Context(), func(tx *Tx) error {
			for _, p := range []ledger.Posting{
				{Type: ledger.SaleRecorded, Moved: ledger.Sale(amount)}, {Type: ledger.SaleReleased, Moved: ledger.ReleaseSale(amount)},
			} {
				p.Owner, p.At, p.Subject, p.Actor, p.Data = owner, time.Now(), "sale of "+owner, "system", "{}"
				if _, err := tx.Append(t.Context(), p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	server := sqliteRows{db}
	reads := askForMany(t, db.keyed)
	server.serve(reads.group())
	reads.check(t)

	t.Run("fails", func(t *testing.T) {
		failed := errors.New("the disk is gone")
		db.FailBefore(func(string) error { return failed })
		reads := askForMany(t, db.keyed)
		server.serve(reads.group())
		for i, r := range reads.reads {
			if err := <-r.answer; !errors.Is(err, failed) {
				t.Errorf("read %d ended with %v", i, err)
			}
		}
	})
}

// manyReads are reads of several keys at once: of one of them twice, and of keys without a row.
type manyReads struct {
	keys      []string
	available []int64
	owners    []string
	reads     []*rowRead
}

func askForMany(t *testing.T, rows *rowReader) *manyReads {
	t.Helper()
	m := &manyReads{keys: []string{"asha", "nobody", "bela", "", "asha"}}
	m.available, m.owners = make([]int64, len(m.keys)), make([]string, len(m.keys))
	for i, key := range m.keys {
		m.reads = append(m.reads, asking(rows.rowOf(t.Context(), `SELECT available, owner FROM journals WHERE owner `, key), &m.available[i], &m.owners[i]))
	}
	return m
}

// asking is a read whose row would be scanned now.
func asking(r scanner, dest ...any) *rowRead {
	read := r.(*rowRead)
	read.dest = dest
	return read
}

// group is the reads in a list of its own: serving a group orders it.
func (m *manyReads) group() []*rowRead { return append([]*rowRead(nil), m.reads...) }

// check expects that each read got its own row.
func (m *manyReads) check(t *testing.T) {
	t.Helper()
	for i, key := range m.keys {
		err := <-m.reads[i].answer
		want, found := map[string]int64{"asha": 1000, "bela": 2000}[key]
		if found && (err != nil || m.owners[i] != key || m.available[i] != want) || !found && !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("read %d of %q got %d of %q, %v", i, key, m.available[i], m.owners[i], err)
		}
	}
}

// oneRow is a statement that found one row, or failed behind it.
type oneRow struct {
	scanned
	taken bool
	after error
}

func (o *oneRow) Next() bool {
	first := !o.taken
	o.taken = true
	return first
}

func (o *oneRow) Err() error { return o.after }

// TestScanEach_Fails answers no read, so that each is read again by itself. A row that can't be read answers its own read.
func TestScanEach_Fails(t *testing.T) {
	lost := errors.New("the connection is lost")
	for name, tt := range map[string]struct {
		rows   *oneRow
		keyErr error
		answer error // nil for none
	}{
		"key":    {&oneRow{}, lost, nil},
		"behind": {&oneRow{after: lost}, nil, nil},
		"row":    {&oneRow{scanned: scanned{lost}}, nil, lost},
	} {
		read := &rowRead{key: "asha", answer: make(chan error, 1)}
		err := scanEach(tt.rows, func() (string, error) { return "asha", tt.keyErr }, []*rowRead{read})
		if errors.Is(err, lost) != (tt.answer == nil) || len(read.answer) == 1 != (tt.answer != nil) {
			t.Errorf("%s can't be read: %v, and %d answers", name, err, len(read.answer))
		}
		if tt.answer != nil {
			if got := <-read.answer; !errors.Is(got, tt.answer) {
				t.Errorf("%s can't be read: the answer is %v", name, got)
			}
		}
	}
}

// TestScanRows_Fails ends at the first row that can't be read, whatever is said of it afterwards, and where there is no more.
func TestScanRows_Fails(t *testing.T) {
	lost, unfit := errors.New("the connection is lost"), errors.New("the row is not ours")
	for name, tt := range map[string]struct {
		rows *oneRow
		want error
	}{
		"row":    {&oneRow{scanned: scanned{lost}, after: unfit}, lost},
		"fails":  {&oneRow{}, unfit},
		"behind": {&oneRow{after: lost}, lost},
	} {
		err := scanRows(tt.rows, func(r *row) {
			var seller string
			r.Scan(&seller)
			if name != "behind" {
				r.fail(unfit)
			}
			r.fail(nil)
		})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// hungUp counts the servers that have hung up.
type hungUp struct{ servers *atomic.Int64 }

func (hungUp) serve([]*rowRead) {}
func (h hungUp) hangUp()        { h.servers.Add(1) }

// TestRowReader_Close_WaitsForItsServers returns once no connection is used any more.
func TestRowReader_Close_WaitsForItsServers(t *testing.T) {
	var servers atomic.Int64
	r := newRowReader(func() rowServer { return hungUp{&servers} })
	if err := r.Close(); err != nil || servers.Load() != rowReaders {
		t.Errorf("%d servers have hung up, %v; want %d", servers.Load(), err, rowReaders)
	}
}

func TestRowMessage(t *testing.T) {
	t.Parallel()
	one, other := rowMessage("user", "usr_1", "asha"), rowMessage("user", "usr_1 :asha")
	if string(one) == string(other) {
		t.Errorf("two rows have the message %s", one)
	}
	if got, want := string(one), "bursar user mac v1\n5:usr_1 4:asha "; got != want { // what the rows of every database were signed with
		t.Errorf("the message is %q, want %q", got, want)
	}
}
