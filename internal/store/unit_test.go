package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// scanned is a row that gives nothing, or fails.
type scanned struct{ err error }

func (s scanned) Scan(...any) error { return s.err }

// TestUnitTail_Scan keeps an entry whose totals can't be read, so that it stops its owner alone.
func TestUnitTail_Scan(t *testing.T) {
	tail, r := &unitTail{}, &row{from: scanned{}}
	if tail.scan(r); r.err != nil || len(tail.entries) != 1 {
		t.Errorf("an entry that can't be read: %v, kept %d; want it kept", r.err, len(tail.entries))
	}
}

// TestCheckedEntries_Unreadable does not take a failed read for tampering: the caller would act on that.
func TestCheckedEntries_Unreadable(t *testing.T) {
	keys := &signer{}
	var ours ledger.Keys = testKeys(t)
	keys.keys.Store(&ours)
	lost := errors.New("the connection is lost")
	_, err := keys.checkedEntries(t.Context(), func(_ context.Context, _ string, _ []any, scan func(*row)) error {
		return scanRows(&oneRow{scanned: scanned{lost}}, scan)
	}, "")
	if !errors.Is(err, lost) || errors.Is(err, ledger.ErrTampered) {
		t.Errorf("entries that can't be read: %v, want %v", err, lost)
	}
}

// TestUnit_KeysInOrder writes idempotency keys in one order, so that two units that share some don't wait for each other.
func TestUnit_KeysInOrder(t *testing.T) {
	u := newUnit(nil, &tailCache{}, 3)
	for _, k := range []ownedKey{{"usr_b", "1"}, {"usr_a", "2"}, {"usr_a", "1"}} {
		u.writes.idempotency = append(u.writes.idempotency, idempotencyRow{ownedKey: k})
	}
	u.writeStatements(postgresDialect)
	var got []ownedKey
	for _, k := range u.writes.idempotency {
		got = append(got, k.ownedKey)
	}
	if want := []ownedKey{{"usr_a", "1"}, {"usr_a", "2"}, {"usr_b", "1"}}; !slices.Equal(got, want) {
		t.Errorf("written in the order %v, want %v", got, want)
	}
}

// TestUnit_KeyOfTheSameGroup_IsTaken has two requests under one key in a group. The second finds the first's.
func TestUnit_KeyOfTheSameGroup_IsTaken(t *testing.T) {
	u := newUnit(nil, &tailCache{}, 2)
	saved := map[payout.ID]bool{}
	var found payout.Idempotency
	for _, id := range []payout.ID{"pyt_1", "pyt_2"} {
		j := &unitJob{scope: ledger.Scope{Owner: "usr_a", Key: "key"}}
		j.ctx, j.fn = t.Context(), func(tx payout.ChangeTx) (err error) {
			if saved[id], err = tx.SaveIdempotency(t.Context(), "usr_a", "key", payout.Idempotency{Payout: id}, time.Time{}); err != nil {
				return err
			}
			found, err = tx.Idempotency(t.Context(), "usr_a", "key")
			return err
		}
		if err := u.serve(j); err != nil {
			t.Fatal(err)
		}
	}
	if !saved["pyt_1"] || saved["pyt_2"] || found.Payout != "pyt_1" {
		t.Errorf("saved are %v, and the second finds %+v; want the first alone", saved, found)
	}
}

// TestUnit_PayoutOfTheSameGroup_IsAsChanged has two changes of a payout in a group. The second finds the first's entry, or it would take
// the payout for one that was changed by hand.
func TestUnit_PayoutOfTheSameGroup_IsAsChanged(t *testing.T) {
	u := newUnit(testKeys(t), &tailCache{}, 2)
	const id = "pyt_1"
	group := make([]*unitJob, 2)
	var states []payout.State
	var entries []int
	for i, to := range []payout.State{payout.Submitting, payout.Submitted} {
		group[i] = &unitJob{scope: ledger.Scope{Payout: id}}
		group[i].ctx, group[i].fn = t.Context(), func(tx payout.ChangeTx) error {
			p, err := tx.PayoutForUpdate(t.Context(), id)
			if err != nil {
				return err
			}
			about, err := tx.EntriesAbout(t.Context(), p.Seller, id)
			if err != nil {
				return err
			}
			states, entries = append(states, p.State), append(entries, len(about))
			from := p.State
			p.State = to
			if _, err := tx.UpdatePayout(t.Context(), from, p); err != nil {
				return err
			}
			_, err = tx.Append(t.Context(), ledger.Posting{Owner: p.Seller, At: noon, Type: ledger.PayoutSubmitted, Subject: id, Actor: ledger.ActorSystem, Data: "{}"})
			return err
		}
	}
	u.loads(sqliteDialect, group)
	u.payouts[id] = &payout.Payout{ID: id, Seller: "usr_a", State: payout.Waiting}
	for _, j := range group {
		if err := u.serve(j); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(states, []payout.State{payout.Waiting, payout.Submitting}) || !slices.Equal(entries, []int{0, 1}) {
		t.Errorf("the changes find the states %v, and %v entries; want each to find what the one before it left", states, entries)
	}
	if move := u.writes.changed[id]; move.from != payout.Waiting || move.State != payout.Submitted {
		t.Errorf("written from %s to %s", move.from, move.State)
	}
}

// TestUnit_NothingDecided_WritesNothing has no statement for a table to which nothing is written: each costs.
func TestUnit_NothingDecided_WritesNothing(t *testing.T) {
	for name, d := range map[string]dialect{"PostgreSQL": postgresDialect, "SQLite": sqliteDialect} {
		if writes := newUnit(nil, &tailCache{}, 1).writeStatements(d); len(writes) > 0 {
			t.Errorf("%s: a unit in which nothing was decided writes %+v", name, writes)
		}
	}
}

// TestUnit_RefusalWithoutKey fails: the refusal would be answered to nobody.
func TestUnit_RefusalWithoutKey(t *testing.T) {
	tx := &unitTx{u: newUnit(nil, &tailCache{}, 1)}
	if err := tx.SaveIdempotencyRefusal(t.Context(), "usr_a", "key", "no"); err == nil {
		t.Error("a refusal was stored for a key that was not")
	}
	tx.saved = &idempotencyRow{ownedKey: ownedKey{"usr_a", "another"}, Idempotency: payout.Idempotency{Payout: "pyt_1"}}
	if err := tx.SaveIdempotencyRefusal(t.Context(), "usr_a", "key", "no"); err == nil || tx.saved.Refusal != "" {
		t.Errorf("a refusal was stored for another key: %v", err)
	}
}

// TestUnit_KeyOutsideScope fails: a key that the unit did not load would look like one that is free, or, when it is saved, like one
// that is taken.
func TestUnit_KeyOutsideScope(t *testing.T) {
	for name, own := range map[string]ledger.Scope{
		"another key":    {Owner: "usr_a", Key: "another"},
		"another seller": {Owner: "usr_b", Key: "key"},
		"no key":         {Owner: "usr_a"},
	} {
		u := newUnit(nil, &tailCache{}, 1)
		tx := &unitTx{u: u, scope: own}
		if saved, err := tx.SaveIdempotency(t.Context(), "usr_a", "key", payout.Idempotency{Payout: "pyt_1"}, noon); err == nil || saved || tx.saved != nil {
			t.Errorf("%s: a key outside the scope of the change is saved: %t, %v", name, saved, err)
		}
		if _, err := tx.Idempotency(t.Context(), "usr_a", "key"); err == nil {
			t.Errorf("%s: a key outside the scope of the change is read", name)
		}
	}
}

// TestUnit_SessionOutsideScope fails: a session that the unit did not load would look like one that has ended.
func TestUnit_SessionOutsideScope(t *testing.T) {
	tx := &unitTx{u: newUnit(nil, &tailCache{}, 1), scope: ledger.Scope{Owner: "usr_a", Session: "ses_a"}}
	if _, live, err := tx.LiveSession(t.Context(), "ses_b", noon); err == nil || live || tx.outside == nil {
		t.Errorf("a session outside the scope of the change: %t, %v", live, err)
	}
}

// TestUnit_ErrorOfKeyOutsideScopeDropped_KeepsNothing has a change go on although it was refused a key, and save its own.
func TestUnit_ErrorOfKeyOutsideScopeDropped_KeepsNothing(t *testing.T) {
	for name, drop := range map[string]bool{"it asks for its own key alone": false, "it asks for another's key first": true} {
		u := newUnit(nil, &tailCache{}, 1)
		j := &unitJob{scope: ledger.Scope{Owner: "usr_a", Key: "key"}}
		j.ctx, j.fn = t.Context(), func(tx payout.ChangeTx) error {
			if drop {
				_, _ = tx.Idempotency(t.Context(), "usr_b", "key")
			}
			_, err := tx.SaveIdempotency(t.Context(), "usr_a", "key", payout.Idempotency{Payout: "pyt_1"}, noon)
			return err
		}
		if err := u.serve(j); (err != nil) != drop || (len(u.writes.idempotency) == 0) != drop {
			t.Errorf("%s: %v, and %d keys are written", name, err, len(u.writes.idempotency))
		}
	}
}

// TestUnit_SharesPause locks the pause of payouts only where a change that asks for it names a payout, and the engine has the lock.
func TestUnit_SharesPause(t *testing.T) {
	for name, tt := range map[string]struct {
		scope  ledger.Scope
		shares bool
	}{
		"no payout":    {ledger.Scope{Owner: "usr_a", ReadsPause: true}, false},
		"a payout":     {ledger.Scope{Payout: "pyt_1", ReadsPause: true}, true},
		"does not ask": {ledger.Scope{Payout: "pyt_1"}, false},
	} {
		for engine, d := range map[string]dialect{"PostgreSQL": postgresDialect, "SQLite": sqliteDialect} {
			loads := newUnit(nil, &tailCache{}, 1).loadPaused(d, []*unitJob{{scope: tt.scope}})
			shares := slices.ContainsFunc(loads, func(l load) bool { return l.sql == d.sharePause })
			if want := tt.shares && engine == "PostgreSQL"; shares != want {
				t.Errorf("%s, on %s: the pause is locked: %t, want %t", name, engine, shares, want)
			}
		}
	}
}

// TestUnit_Loads reads what a group names, and nothing else: each statement costs.
func TestUnit_Loads(t *testing.T) {
	for name, tt := range map[string]struct {
		scope ledger.Scope
		want  int
	}{
		"a seller":               {ledger.Scope{Owner: "usr_a"}, 2},                    // the journal and the bank account
		"a seller and a key":     {ledger.Scope{Owner: "usr_a", Key: "k"}, 3},          // the key too
		"a payout":               {ledger.Scope{Payout: "pyt_1"}, 3},                   // the payout, the journal, and the payout's entries
		"a payout and the pause": {ledger.Scope{Payout: "pyt_1", ReadsPause: true}, 5}, // the bank account's status and the platform's journal too
	} {
		if loads := newUnit(nil, &tailCache{}, 1).loads(sqliteDialect, []*unitJob{{scope: tt.scope}}); len(loads) != tt.want {
			t.Errorf("%s takes %d statements, want %d: %+v", name, len(loads), tt.want, loads)
		}
	}
}

// TestUnit_FollowUps reads what depends on what was loaded, and nothing else: each statement costs.
func TestUnit_FollowUps(t *testing.T) {
	for name, tt := range map[string]struct {
		scope  ledger.Scope
		loaded func(*unit)
		want   int
	}{
		"a seller who has a journal": {
			ledger.Scope{Owner: "usr_a"}, func(u *unit) { u.journals["usr_a"] = &unitJournal{} }, 0,
		},
		"a seller who has none":  {ledger.Scope{Owner: "usr_a"}, func(*unit) {}, 1}, // whether they have entries all the same
		"a payout, and no owner": {ledger.Scope{Payout: "pyt_1"}, func(*unit) {}, 0},
		"a key that stands for a payout": {
			ledger.Scope{}, func(u *unit) { u.idempotency[ownedKey{"usr_a", "k"}] = payout.Idempotency{Payout: "pyt_1"} }, 1,
		},
		"a key that stands for a payout that was loaded": {
			ledger.Scope{}, func(u *unit) {
				u.idempotency[ownedKey{"usr_a", "k"}] = payout.Idempotency{Payout: "pyt_1"}
				u.payouts["pyt_1"] = &payout.Payout{ID: "pyt_1"}
			}, 0,
		},
		"a key that stands for a refusal": {
			ledger.Scope{}, func(u *unit) { u.idempotency[ownedKey{"usr_a", "k"}] = payout.Idempotency{Refusal: "{}"} }, 0,
		},
	} {
		u := newUnit(nil, &tailCache{}, 1)
		tt.loaded(u)
		if followUps := u.followUps(sqliteDialect, []*unitJob{{scope: tt.scope}}); len(followUps) != tt.want {
			t.Errorf("%s takes %d more statements, want %d: %+v", name, len(followUps), tt.want, followUps)
		}
	}
}
