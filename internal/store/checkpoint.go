package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// Proofs is the database as package proof sees it.
func (db *DB) Proofs() proof.Store { return proofStore{db} }

type proofStore struct{ *DB }

const checkpointColumns = `c.number, c.at, c.currency, c.journals, c.root, c.previous, c.kid, c.signature, COALESCE(k.public_key, '')
	FROM checkpoints c LEFT JOIN checkpoint_keys k ON k.kid = c.kid`

// scanCheckpoint gives the zero key for one that can't be read, which has signed nothing.
func scanCheckpoint(r *row) (c proof.Checkpoint, key proof.Key) {
	var public string
	r.Scan(&c.Number, instant{&c.At}, &c.Currency, &c.Journals, &c.Root, &c.Previous, &c.KeyID, &c.Signature, &public)
	if known, unreadable := proof.ParseKey(public); unreadable == nil {
		key = known
	}
	return c, key
}

// LastCheckpoint is the newest one with its key, or the zero one where there is none.
func (db *DB) LastCheckpoint(ctx context.Context) (c proof.Checkpoint, key proof.Key, err error) {
	err = db.query(ctx, `SELECT `+checkpointColumns+` ORDER BY c.number DESC LIMIT 1`, nil, func(r *row) { c, key = scanCheckpoint(r) })
	return c, key, err
}

// Checkpoint is the one with a number, or the zero one where there is none.
func (db *DB) Checkpoint(ctx context.Context, number int64) (c proof.Checkpoint, err error) {
	err = db.query(ctx, `SELECT `+checkpointColumns+` WHERE c.number = $1`, []any{number}, func(r *row) { c, _ = scanCheckpoint(r) })
	return c, err
}

// CheckpointKeys are those that ever signed one.
func (db *DB) CheckpointKeys(ctx context.Context) ([]proof.Key, error) {
	var keys []proof.Key
	err := db.query(ctx, `SELECT public_key FROM checkpoint_keys ORDER BY kid`, nil, func(r *row) {
		var public string
		r.Scan(&public)
		key, err := proof.ParseKey(public)
		r.fail(err)
		keys = append(keys, key)
	})
	return keys, err
}

// journalsAsOf is the journals, each beside what a checkpoint, whose number is $1, has of it.
var journalsAsOf = `SELECT ` + headFields.names("b.") + `,
	COALESCE(s.number, 0), COALESCE(s.totals, ''), COALESCE(s.hash, ''), COALESCE(s.behind, 0) FROM journals b
	LEFT JOIN checkpoint_journals s ON s.seller_id = b.owner AND s.checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_journals
		WHERE seller_id = b.owner AND checkpoint <= $1)`

func scanJournalState(r *row) (b proof.JournalState) {
	var totals string
	r.Scan(headFields.dest(&b.Now, &b.Checkpointed.Number, &totals, &b.Checkpointed.Hash, flagged{&b.Behind})...)
	b.Seller, b.Checkpointed.Owner = b.Now.Owner, b.Now.Owner
	if totals != "" { // what can't be read is no totals of the journal's, which is reported when it is followed
		b.Checkpointed.Balance, _ = ledger.ParseBalance(totals)
	}
	return b
}

// Journals lists journals in the order of their owners' ids from after one on, each beside what a checkpoint has of it: up to limit, and
// between them those whose row of totals was deleted.
func (db *DB) Journals(ctx context.Context, checkpoint int64, after string, limit int) ([]proof.JournalState, error) {
	var journals []proof.JournalState
	err := db.query(ctx, journalsAsOf+` WHERE b.owner > $2 ORDER BY b.owner LIMIT $3 + 0`, []any{checkpoint, after, limit}, func(r *row) {
		journals = append(journals, scanJournalState(r))
	})
	if err != nil {
		return nil, err
	}
	upTo := "" // the end
	if len(journals) == limit {
		upTo = journals[limit-1].Seller
	}
	err = db.query(ctx, journalsWithoutTotals, []any{checkpoint, after, upTo}, func(r *row) {
		b := proof.JournalState{}
		var totals string
		r.Scan(&b.Seller, &b.Checkpointed.Number, &totals, &b.Checkpointed.Hash, flagged{&b.Behind})
		b.Now, b.Checkpointed.Owner = ledger.NewHead(b.Seller), b.Seller
		b.Checkpointed.Balance, _ = ledger.ParseBalance(totals) // as scanJournalState does
		journals = append(journals, b)
	})
	slices.SortFunc(journals, func(a, b proof.JournalState) int { return cmp.Compare(a.Seller, b.Seller) })
	return journals, err
}

// journalsWithoutTotals is the journals between two owners that a checkpoint has, and that have no row of totals any more. It goes from owner to owner by
// the index, because a checkpoint has each journal many times.
const journalsWithoutTotals = `WITH RECURSIVE kept(owner) AS (SELECT MIN(seller_id) FROM checkpoint_journals WHERE seller_id > $2
	UNION ALL SELECT (SELECT MIN(seller_id) FROM checkpoint_journals WHERE seller_id > kept.owner) FROM kept
		WHERE kept.owner IS NOT NULL AND ($3 = '' OR kept.owner <= $3))
	SELECT s.seller_id, s.number, s.totals, s.hash, s.behind FROM kept
	JOIN checkpoint_journals s ON s.seller_id = kept.owner AND s.checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_journals
		WHERE seller_id = kept.owner AND checkpoint <= $1)
	WHERE ($3 = '' OR kept.owner <= $3) AND NOT EXISTS (SELECT 1 FROM journals b WHERE b.owner = kept.owner) ORDER BY s.seller_id`

// JournalState is one of them, or one without a seller where there is none.
func (db *DB) JournalState(ctx context.Context, checkpoint int64, seller string) (b proof.JournalState, err error) {
	err = db.query(ctx, journalsAsOf+` WHERE b.owner = $2`, []any{checkpoint, seller}, func(r *row) { b = scanJournalState(r) })
	return b, err
}

// CheckpointedBetween lists where the first checkpoints have a journal, above one entry and up to another.
func (db *DB) CheckpointedBetween(ctx context.Context, checkpoint int64, seller string, above, upTo int64) ([]ledger.Head, error) {
	var heads []ledger.Head
	err := db.query(ctx, `SELECT number, totals, hash FROM checkpoint_journals WHERE seller_id = $1 AND checkpoint <= $2 AND hash <> ''
		AND number > $3 AND number <= $4 ORDER BY checkpoint`, []any{seller, checkpoint, above, upTo}, func(r *row) {
		h := ledger.Head{Owner: seller}
		var totals string
		r.Scan(&h.Number, &totals, &h.Hash)
		var err error
		h.Balance, err = ledger.ParseBalance(totals)
		r.fail(err)
		heads = append(heads, h)
	})
	return heads, err
}

// AcquireLease leases the making of the next checkpoint to one holder until a time.
func (s proofStore) AcquireLease(ctx context.Context, holder string, now, until time.Time) (bool, error) {
	return s.lease(ctx, "checkpoint_lease", holder, now, until)
}

// ReleaseLease ends the lease.
func (s proofStore) ReleaseLease(ctx context.Context, holder string) error {
	return s.release(ctx, "checkpoint_lease", holder)
}

// lease leases what a table of one row stands for to a holder until a time, or extends the holder's lease. A lease that ends later than
// clocks that differ can explain was written outside the service: it would stop the work for good, so it does not count.
func (db *DB) lease(ctx context.Context, table, holder string, now, until time.Time) (taken bool, err error) {
	err = db.Update(ctx, func(tx *Tx) error {
		taken, err = tx.execOne(ctx, `UPDATE `+table+` SET holder = $1, until = $3 WHERE id = 1 AND (until < $2 OR until > $4 OR holder = $1)`,
			holder, micros(now), micros(until), micros(until.Add(maxClockDifference)))
		return err
	})
	return taken, err
}

// maxClockDifference is how far the clocks of two instances may be apart.
const maxClockDifference = 10 * time.Minute

func (db *DB) release(ctx context.Context, table, holder string) error {
	return db.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `UPDATE `+table+` SET until = 0 WHERE id = 1 AND holder = $1`, holder)
		return err
	})
}

// SaveJournals writes journals of the checkpoint that is being made. What an unfinished attempt left
// is written over.
func (db *DB) SaveJournals(ctx context.Context, holder string, until time.Time, number int64, journals []proof.Checkpointed) error {
	return db.Update(ctx, func(tx *Tx) error {
		kept, err := tx.execOne(ctx, `UPDATE checkpoint_lease SET until = $2 WHERE id = 1 AND holder = $1
			AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE number >= $3)`, holder, micros(until), number)
		if err != nil {
			return err
		}
		if !kept {
			return proof.ErrLeaseLost
		}
		for _, b := range journals {
			_, err := tx.exec(ctx, `INSERT INTO checkpoint_journals (seller_id, checkpoint, number, totals, hash, behind)
				VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (seller_id, checkpoint) DO UPDATE SET number = excluded.number,
				totals = excluded.totals, hash = excluded.hash, behind = excluded.behind`,
				b.Seller, number, b.Head.Number, b.Head.Text(), string(b.Head.Hash), flag(b.Behind))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Publish adds the checkpoint whose journals were saved.
func (db *DB) Publish(ctx context.Context, holder string, c proof.Checkpoint, key proof.Key) error {
	return db.Update(ctx, func(tx *Tx) error {
		kept, err := tx.execOne(ctx, `UPDATE checkpoint_lease SET until = 0 WHERE id = 1 AND holder = $1`, holder)
		if err != nil {
			return err
		}
		if !kept {
			return proof.ErrLeaseLost
		}
		if _, err := tx.exec(ctx, `INSERT INTO checkpoint_keys (kid, public_key) VALUES ($1, $2) ON CONFLICT (kid) DO NOTHING`,
			key.ID, key.Text()); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `INSERT INTO checkpoints (number, at, currency, journals, root, previous, kid, signature)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			c.Number, micros(c.At), c.Currency, c.Journals, c.Root, string(c.Previous), c.KeyID, c.Signature)
		return err
	})
}
