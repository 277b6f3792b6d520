package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
)

const factorsOf = `SELECT id, user_id, kind, name, secret, counter, created_at, confirmed_at, mac FROM factors WHERE user_id = $1 ORDER BY id`

// factorMessage is what the MAC of a second factor covers: all of the row.
func factorMessage(f auth.Factor) []byte {
	texts := []string{f.ID, f.UserID, string(f.Kind), f.Name, f.Secret, strconv.FormatInt(f.Counter, 10)}
	for _, at := range []time.Time{f.CreatedAt, f.ConfirmedAt} {
		texts = append(texts, fmt.Sprint(nullMicros(at)))
	}
	return rowMessage("factor", texts...)
}

// scanFactor reads a row of factorsOf, and says whether the service wrote it.
func scanFactor(r *row, keys ledger.Keys) (f auth.Factor, ours bool) {
	var mac string
	r.Scan(&f.ID, &f.UserID, &f.Kind, &f.Name, &f.Secret, &f.Counter, instant{&f.CreatedAt}, instant{&f.ConfirmedAt}, &mac)
	return f, ledger.CheckMAC(keys, mac, factorMessage(f))
}

// factors collects a user's, and fails with [auth.ErrTampered] unless the service wrote all of them.
func (s *signer) factors(ctx context.Context, read queryFunc, userID string) ([]auth.Factor, error) {
	keys, err := s.get()
	if err != nil {
		return nil, err
	}
	var all []auth.Factor
	tampered := false
	err = read(ctx, factorsOf, []any{userID}, func(r *row) {
		f, ours := scanFactor(r, keys)
		tampered = tampered || !ours
		all = append(all, f)
	})
	if err == nil && tampered {
		err = auth.ErrTampered
	}
	return all, err
}

// FactorsOf lists a user's second factors, the oldest first.
func (db *DB) FactorsOf(ctx context.Context, userID string) ([]auth.Factor, error) {
	return db.signer.factors(ctx, db.query, userID)
}

// Factors is [DB.FactorsOf] as the transaction sees it. The caller that changes factors has locked their user.
func (tx *Tx) Factors(ctx context.Context, userID string) ([]auth.Factor, error) {
	return tx.signer.factors(ctx, tx.each, userID)
}

// InsertFactor adds a factor.
func (tx *Tx) InsertFactor(ctx context.Context, f auth.Factor) error {
	_, err := tx.execSigned(ctx, factorMessage(f), `INSERT INTO factors (id, user_id, kind, name, secret, counter, created_at, confirmed_at, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		f.ID, f.UserID, string(f.Kind), f.Name, f.Secret, f.Counter, micros(f.CreatedAt), nullMicros(f.ConfirmedAt))
	return err
}

// SaveFactor replaces what changes of a factor, if it is still as it was, and reports whether it did.
func (tx *Tx) SaveFactor(ctx context.Context, was, f auth.Factor) (bool, error) {
	return tx.execSigned(ctx, factorMessage(f), `UPDATE factors SET secret = $5, counter = $6, confirmed_at = $7, mac = $8 WHERE id = $1 AND user_id = $2 AND secret = $3 AND counter = $4`,
		f.ID, f.UserID, was.Secret, was.Counter, f.Secret, f.Counter, nullMicros(f.ConfirmedAt))
}

// DeleteFactor removes a factor.
func (tx *Tx) DeleteFactor(ctx context.Context, f auth.Factor) error {
	_, err := tx.exec(ctx, `DELETE FROM factors WHERE id = $1 AND user_id = $2`, f.ID, f.UserID)
	return err
}

// ClearFactors removes all second factors of a user, and reports whether there were any.
func (tx *Tx) ClearFactors(ctx context.Context, userID string) (bool, error) {
	n, err := tx.exec(ctx, `DELETE FROM factors WHERE user_id = $1`, userID)
	return n > 0, err
}

// factors holds every second factor against its MAC, and wants each that the journals have.
func (a *auditor) factors() ledger.Finding {
	f := ledger.Finding{Name: "factors-are-ours", Promise: "Each second factor is as the service wrote it, and each that a user added and did not remove is there."}
	if a.keys == nil {
		return f
	}
	const next = "Give the account a new password with \"bursar user reset\", and ask its owner to enrol again"
	type factor struct{ user, id string }
	stored := map[factor]bool{}
	a.all(`SELECT id, user_id, kind, name, secret, counter, created_at, confirmed_at, mac FROM factors ORDER BY id`, func(r *row) {
		f1, ours := scanFactor(r, a.keys)
		if !ours {
			note(&f, ledger.Violation{Subject: "user " + f1.UserID, Problem: "the second factor " + f1.ID + " was not written by the service"}, next)
		}
		if f1.Kind != auth.FactorRecovery && f1.Confirmed() {
			stored[factor{f1.UserID, f1.ID}] = true
		}
	})
	recorded := map[factor]bool{}
	a.all(`SELECT owner, type, data FROM entries WHERE subject = owner AND type IN ('account.factor_added', 'account.factor_removed', 'account.factors_cleared')
		ORDER BY owner, number`, func(r *row) {
		var owner, data string
		var what ledger.Type
		r.Scan(&owner, &what, &data)
		var facts struct {
			Factor string `json:"factor"`
		}
		_ = json.Unmarshal([]byte(data), &facts) // the finding about its journal names an entry that can't be read
		switch what {                            //nolint:exhaustive // the query lists these
		case ledger.AccountFactorAdded:
			recorded[factor{owner, facts.Factor}] = true
		case ledger.AccountFactorRemoved:
			delete(recorded, factor{owner, facts.Factor})
		case ledger.AccountFactorsCleared:
			maps.DeleteFunc(recorded, func(f factor, _ bool) bool { return f.user == owner })
		}
	})
	for _, one := range slices.SortedFunc(maps.Keys(recorded), func(a, b factor) int { return strings.Compare(a.user+a.id, b.user+b.id) }) {
		if !stored[one] {
			note(&f, ledger.Violation{Subject: "user " + one.user, Problem: "the second factor " + one.id + ", which the user added and did not remove, is gone"}, next)
		}
	}
	for _, one := range slices.SortedFunc(maps.Keys(stored), func(a, b factor) int { return strings.Compare(a.user+a.id, b.user+b.id) }) {
		if !recorded[one] {
			note(&f, ledger.Violation{Subject: "user " + one.user, Problem: "the second factor " + one.id + " is one that the user did not add, or removed"}, next)
		}
	}
	return f
}
