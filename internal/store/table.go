package store

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"
)

// table is how a row of the database holds an R: its one list of columns serves every statement that writes it, on both
// engines.
type table[R any] struct {
	name    string
	columns []column[R]
	texts   *sync.Map // shape → statement
}

// column is one of them. Its value is a string, an int64 or nil.
type column[R any] struct {
	name   string
	isText bool
	isNull bool // of some rows
	value  func(*R) any
	// dest is where a read scans it to; nil for what follows from other columns, which no read selects.
	dest func(*R) any
	// role says what an UPDATE does with it.
	role role
	// isRare says that the column is mostly "", 0 or NULL, which is its default in the database. An INSERT of nothing
	// else leaves it out: each value that is bound costs.
	isRare bool
}

type role int

const (
	// mutable is written by inserts and updates.
	mutable role = iota
	// primaryKey finds the row that an update changes.
	primaryKey
	// insertOnly is written by inserts. Updates leave it; some are changed by statements of their own.
	insertOnly
	// expected is no column of its own: an update is made only where the column of that name still has this value.
	expected
)

func asText[R any, S ~string](name string, r role, field func(*R) *S) column[R] {
	return column[R]{
		name: name, isText: true, role: r,
		value: func(row *R) any { return string(*field(row)) },
		dest:  func(row *R) any { return field(row) },
	}
}

func asNumber[R any, N ~int | ~int64](name string, r role, field func(*R) *N) column[R] {
	return column[R]{
		name: name, role: r,
		value: func(row *R) any { return int64(*field(row)) },
		dest:  func(row *R) any { return field(row) },
	}
}

func asFlag[R any](name string, r role, field func(*R) *bool) column[R] {
	return column[R]{
		name: name, role: r,
		value: func(row *R) any { return int64(flag(*field(row))) },
		dest:  func(row *R) any { return flagged{field(row)} },
	}
}

func asTime[R any](name string, r role, field func(*R) *time.Time) column[R] {
	return column[R]{
		name: name, role: r,
		value: func(row *R) any { return micros(*field(row)) },
		dest:  func(row *R) any { return instant{field(row)} },
	}
}

// orNull is asTime with NULL for the zero time.
func orNull[R any](name string, r role, field func(*R) *time.Time) column[R] {
	c := asTime(name, r, field)
	c.isNull, c.value = true, func(row *R) any { return nullMicros(*field(row)) }
	return c
}

func (c *column[R]) isRead() bool { return c.dest != nil && c.role != expected }

// fields are the columns of what a row holds, in the order in which reads select and scan them.
type fields[R any] []column[R]

// names is what a SELECT lists.
func (f fields[R]) names(prefix string) string {
	var read []column[R]
	for i := range f {
		if f[i].isRead() {
			read = append(read, f[i])
		}
	}
	return columnNames(read, prefix)
}

// dest lists where names are scanned to, and what more the query selects.
func (f fields[R]) dest(row *R, more ...any) []any {
	list := make([]any, 0, len(f)+len(more))
	for i := range f {
		if f[i].isRead() {
			list = append(list, f[i].dest(row))
		}
	}
	return append(list, more...)
}

// within makes the fields of a part those of the whole, followed by more.
func within[R, P any](part func(*R) *P, f fields[P], more ...column[R]) fields[R] {
	all := make(fields[R], 0, len(f)+len(more))
	for _, c := range f {
		lifted := column[R]{
			name: c.name, isText: c.isText, isNull: c.isNull, role: c.role, isRare: c.isRare,
			value: func(row *R) any { return c.value(part(row)) },
		}
		if c.dest != nil {
			lifted.dest = func(row *R) any { return c.dest(part(row)) }
		}
		all = append(all, lifted)
	}
	return append(all, more...)
}

// rare marks a column of which most rows have the default.
func rare[R any](c column[R]) column[R] {
	c.isRare = true
	return c
}

// write is a statement that changes as many rows as it must, or else fails its transaction.
type write struct {
	sql  string
	args []any
	// rows is how many it must change, or anyRows.
	rows int64
	// isSure says that it changes all of them or fails by itself.
	isSure bool
}

// anyRows is for a statement that may change any number of rows.
const anyRows = -1

// inserts adds rows, with as few statements as the engine needs, and none for no rows. A row that is there already fails the transaction.
func (t *table[R]) inserts(d dialect, rows []R) []write {
	all := t.insertsOr(d, rows, "insert", func() string { return "" })
	for i := range all {
		all[i].isSure = true
	}
	return all
}

// insertsMissing adds the rows that are not there yet.
func (t *table[R]) insertsMissing(d dialect, rows []R) []write {
	return t.insertsOr(d, rows, "insert missing", func() string { return t.onConflict() + "NOTHING" })
}

// puts adds rows, and overwrites those that are there already.
func (t *table[R]) puts(d dialect, rows []R) []write {
	return t.insertsOr(d, rows, "put", func() string {
		var sets []string
		for _, c := range t.columns {
			if c.role == mutable || c.role == insertOnly {
				sets = append(sets, c.name+" = excluded."+c.name)
			}
		}
		return t.onConflict() + "UPDATE SET " + strings.Join(sets, ", ")
	})
}

// onConflict begins what an INSERT does with a row whose key is taken.
func (t *table[R]) onConflict() string {
	var keys []column[R]
	for _, c := range t.columns {
		if c.role == primaryKey {
			keys = append(keys, c)
		}
	}
	return " ON CONFLICT (" + columnNames(keys, "") + ") DO "
}

// insertsOr leaves out what is empty in all rows, but of rows that it may overwrite nothing.
func (t *table[R]) insertsOr(d dialect, rows []R, verb string, conflict func() string) []write {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]column[R], 0, len(t.columns))
	omitted := uint64(0)
	for i, c := range t.columns {
		switch {
		case c.role == expected:
		case verb != "put" && c.isRare && c.isDefault(rows):
			omitted |= 1 << i
		default:
			columns = append(columns, c)
		}
	}
	if d.arrays {
		sql := t.shape(shape{verb, 0, omitted}, func() string {
			return "INSERT INTO " + t.name + " (" + columnNames(columns, "") + ") SELECT * FROM " + unnest(columns) + conflict() //nolint:unqueryvet // all that unnest gives
		})
		return []write{{sql: sql, args: arrays(columns, rows), rows: int64(len(rows))}}
	}
	var writes []write
	for len(rows) > 0 { // powers of two, so that there are few statements to prepare
		n := min(1<<(bits.Len(uint(len(rows)))-1), maxRows)
		sql := t.shape(shape{verb, n, omitted}, func() string {
			// A failure undoes the transaction, so that SQLite keeps no copies of pages to undo the statement alone.
			return "INSERT OR ROLLBACK INTO " + t.name + " (" + columnNames(columns, "") + ") VALUES " + parameterRows(n, len(columns)) + conflict()
		})
		writes = append(writes, write{sql: sql, args: valuesOf(columns, rows[:n]), rows: int64(n)})
		rows = rows[n:]
	}
	return writes
}

// isDefault reports whether all rows have the default in the column.
func (c column[R]) isDefault(rows []R) bool {
	for i := range rows {
		if v := c.value(&rows[i]); v != "" && v != int64(0) && v != nil {
			return false
		}
	}
	return true
}

// maxRows bounds the rows of one statement; engines bound its parameters.
const maxRows = 256

// updates changes rows that are as they were seen, with no statement for no rows.
func (t *table[R]) updates(d dialect, rows []R) []write {
	if len(rows) == 0 {
		return nil
	}
	var columns []column[R]
	for _, c := range t.columns {
		if c.role != insertOnly {
			columns = append(columns, c)
		}
	}
	if d.arrays {
		sql := t.shape(shape{verb: "update"}, func() string { return t.updateFrom(columns, unnest(columns)) })
		return []write{{sql: sql, args: arrays(columns, rows), rows: int64(len(rows))}}
	}
	sql := t.shape(shape{verb: "update", rows: 1}, func() string {
		var sets, wheres []string
		for i, c := range columns {
			if c.role == mutable {
				sets = append(sets, fmt.Sprintf("%s = ?%d", c.name, i+1))
			} else {
				wheres = append(wheres, fmt.Sprintf("%s = ?%d", c.name, i+1))
			}
		}
		return "UPDATE " + t.name + " SET " + strings.Join(sets, ", ") + " WHERE " + strings.Join(wheres, " AND ")
	})
	writes := make([]write, len(rows))
	for i := range rows {
		writes[i] = write{sql: sql, args: valuesOf(columns, rows[i:i+1]), rows: 1}
	}
	return writes
}

// updateFrom changes the rows that a list of new values names.
func (t *table[R]) updateFrom(columns []column[R], from string) string {
	var sets, wheres []string
	for i, c := range columns {
		if c.role == mutable {
			sets = append(sets, fmt.Sprintf("%s = v.c%d", c.name, i))
		} else {
			wheres = append(wheres, fmt.Sprintf("t.%s = v.c%d", c.name, i))
		}
	}
	return "UPDATE " + t.name + " t SET " + strings.Join(sets, ", ") + " FROM " + from + " WHERE " + strings.Join(wheres, " AND ")
}

// shape tells apart the statements that write a table: by what they do, the number of rows, 0 where arrays give them,
// and which columns are left out.
type shape struct {
	verb    string
	rows    int
	omitted uint64
}

func (t *table[R]) shape(s shape, build func() string) string {
	if sql, known := t.texts.Load(s); known {
		return sql.(string)
	}
	sql := build()
	t.texts.Store(s, sql)
	return sql
}

func columnNames[R any](columns []column[R], prefix string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = prefix + c.name
	}
	return strings.Join(list, ", ")
}

// parameterRows writes rows of parameters. They have no numbers, because SQLite's driver looks for the name of each,
// which takes longer the more there are.
func parameterRows(rows, columns int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", columns), ", ") + ")"
	return strings.TrimSuffix(strings.Repeat(row+", ", rows), ", ")
}

func valuesOf[R any](columns []column[R], rows []R) []any {
	values := make([]any, 0, len(columns)*len(rows))
	for i := range rows {
		for _, c := range columns {
			values = append(values, c.value(&rows[i]))
		}
	}
	return values
}

// unnest is a list of rows that arrays give, one for each column.
func unnest[R any](columns []column[R]) string {
	parameters, aliases := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		parameters[i], aliases[i] = fmt.Sprintf("$%d::bigint[]", i+1), fmt.Sprintf("c%d", i)
		if c.isText {
			parameters[i] = fmt.Sprintf("$%d::text[]", i+1)
		}
	}
	return "unnest(" + strings.Join(parameters, ", ") + ") AS v (" + strings.Join(aliases, ", ") + ")"
}

func arrays[R any](columns []column[R], rows []R) []any {
	args := make([]any, len(columns))
	for i, c := range columns {
		switch {
		case c.isText:
			args[i] = arrayOf[R, string](c, rows)
		case !c.isNull:
			args[i] = arrayOf[R, int64](c, rows) // the driver is faster with these
		default:
			numbers := make([]*int64, len(rows))
			for j := range rows {
				if n, isThere := c.value(&rows[j]).(int64); isThere {
					numbers[j] = &n
				}
			}
			args[i] = numbers
		}
	}
	return args
}

func arrayOf[R, V any](c column[R], rows []R) []V {
	values := make([]V, len(rows))
	for i := range rows {
		values[i] = c.value(&rows[i]).(V)
	}
	return values
}
