package store

import (
	"context"
	"strings"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// matchedUsers looks at all names, and for the rest by index. Both engines' lower() changes ASCII letters alone.
const matchedUsers = `WITH wanted AS MATERIALIZED (
		SELECT id FROM users WHERE id = $1
		UNION SELECT id FROM users WHERE external_id = $1
		UNION SELECT id FROM (SELECT id FROM users WHERE email_key >= $2 AND email_key < $3 ORDER BY email_key LIMIT $4 + 0) AS addressed
		UNION SELECT id FROM (SELECT id FROM users WHERE lower(name) LIKE $5 ESCAPE '\' OR lower(name) LIKE $6 ESCAPE '\' OR lower(name) LIKE $7 ESCAPE '\'
			ORDER BY id DESC LIMIT $4 + 0) AS named)
	SELECT ` + userColumns + ` FROM users u WHERE u.id IN (SELECT id FROM wanted) ORDER BY u.email_key LIMIT $4 + 0`

// MatchUsers lists users who have an id, or an external id, that is the text, an e-mail address whose key begins with a prefix, or
// a name that holds one of three texts.
func (db *DB) MatchUsers(ctx context.Context, text, emailPrefix string, inName [3]string, limit int) ([]auth.User, error) {
	end := emailPrefix + afterASCII
	if emailPrefix == "" {
		end = ""
	}
	return db.users(ctx, matchedUsers, text, emailPrefix, end, limit, holding(inName[0]), holding(inName[1]), holding(inName[2]))
}

var likeEscaper = strings.NewReplacer("\\", "\\\\", "%", "\\%", "_", "\\_")

// holding is the pattern of what holds a text, with ASCII letters in lower case.
func holding(text string) string {
	lower := strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c - 'A' + 'a'
		}
		return c
	}, text)
	return "%" + likeEscaper.Replace(lower) + "%"
}

// UserNames finds the names of users by their ids.
func (db *DB) UserNames(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	if len(ids) == 0 {
		return names, nil
	}
	in, args := db.dialect.oneOf(nil, ids)
	err := db.query(ctx, `SELECT id, name FROM users WHERE id `+in, args, func(r *row) {
		var id, name string
		r.Scan(&id, &name)
		names[id] = name
	})
	return names, err
}

// payoutsWithPart are found among the newest, and by the beginning of the id among all.
var payoutsWithPart = `WITH wanted AS MATERIALIZED (
		SELECT id FROM (SELECT id FROM payouts WHERE id >= $2 AND id < $3 ORDER BY id DESC LIMIT $1 + 0) AS beginning
		UNION SELECT id FROM (SELECT id FROM payouts WHERE id > $4 AND lower(id) LIKE $5 ESCAPE '\' ORDER BY id DESC LIMIT $1 + 0) AS holding) ` + newestWanted

// PayoutsWithPart lists payouts whose id holds the text, whatever its case, among the newest, and those of any age whose id begins
// with it.
func (db *DB) PayoutsWithPart(ctx context.Context, part string, limit int) ([]payout.Payout, error) {
	floor := ""
	if err := db.queryOne(ctx, notLookedAt, []any{beforeIDs, behindIDs, payout.LookedThrough}, &floor); err != nil {
		return nil, err
	}
	beginning := payout.IDPrefix + strings.TrimPrefix(part, payout.IDPrefix)
	return db.payouts(ctx, payoutsWithPart, limit, beginning, beginning+afterASCII, floor, holding(part))
}

var accountsEndingIn = selectBankAccounts + `WHERE last4 = $1 ORDER BY id DESC LIMIT $2 + 0`

// AccountsEndingIn lists bank accounts by the last four digits of their numbers, newest first.
func (db *DB) AccountsEndingIn(ctx context.Context, last4 string, limit int) ([]bank.Account, error) {
	return readAll(ctx, db.query, accountsEndingIn, []any{last4, limit}, bankAccountFields.dest)
}

// SaleByID finds a sale, and reports whether there is one.
func (db *DB) SaleByID(ctx context.Context, id string) (sale.Sale, bool, error) {
	var s sale.Sale
	ok, err := found(db.queryRow(ctx, selectSales+`WHERE id = $1`, id).Scan(saleFields.dest(&s)...))
	return s, ok, err
}
