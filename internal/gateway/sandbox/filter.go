package sandbox

import (
	"fmt"
	"net/http"
	"strings"
)

// filter gathers the conditions of a list.
type filter struct {
	conditions []string
	args       []any
}

func (f *filter) where(condition string, arg any) {
	f.args = append(f.args, arg)
	f.conditions = append(f.conditions, fmt.Sprintf(condition, len(f.args)))
}

// equal selects by a column, unless the value is absent.
func (f *filter) equal(column, value string) {
	if value != "" {
		f.where(column+" = $%d", value)
	}
}

// equalID selects by a column that refers to a row, unless the id is absent.
func (f *filter) equalID(column, prefix, id string) {
	if id != "" {
		f.where(column+" = $%d", parseID(prefix, id))
	}
}

// query is newest first.
func (f *filter) query(columns, table string, p page) (string, []any) {
	where := ""
	if len(f.conditions) > 0 {
		where = " WHERE " + strings.Join(f.conditions, " AND ")
	}
	n := len(f.args)
	query := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY seq DESC LIMIT $%d + 0 OFFSET $%d + 0", columns, table, where, n+1, n+2)
	return query, append(f.args, p.count, p.skip)
}

// between selects by the seconds from and to, where they are given.
func (f *filter) between(r *http.Request) error {
	const never = -1
	from, err := readInt(r, "from", never, 0, maxSeconds)
	if err != nil {
		return err
	}
	to, err := readInt(r, "to", never, 0, maxSeconds)
	if err != nil {
		return err
	}
	if from != never {
		f.where("created_at >= $%d", from*1e6)
	}
	if to != never {
		f.where("created_at < $%d", (to+1)*1e6)
	}
	return nil
}

// maxSeconds is an instant so late that its microseconds still fit.
const maxSeconds = 1 << 42
