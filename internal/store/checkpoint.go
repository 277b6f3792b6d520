package store

import (
	"context"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// Proofs is the database as package proof sees it.
func (db *DB) Proofs() proof.Store { return db }

const checkpointColumns = `c.number, c.at, c.currency, c.books, c.root, c.previous, c.kid, c.signature, COALESCE(k.public_key, '')
	FROM checkpoints c LEFT JOIN checkpoint_keys k ON k.kid = c.kid`

// scanCheckpoint gives the zero key for one that can't be read, which has signed nothing.
func scanCheckpoint(r row) (c proof.Checkpoint, key proof.Key, err error) {
	var public string
	err = r.Scan(&c.Number, instant{&c.At}, &c.Currency, &c.Books, &c.Root, &c.Previous, &c.KeyID, &c.Signature, &public)
	if known, unreadable := proof.ParseKey(public); unreadable == nil {
		key = known
	}
	return c, key, err
}

// LastCheckpoint is the newest one with its key, or the zero one where there is none.
func (db *DB) LastCheckpoint(ctx context.Context) (c proof.Checkpoint, key proof.Key, err error) {
	err = db.query(ctx, `SELECT `+checkpointColumns+` ORDER BY c.number DESC LIMIT 1`, func(r row) (err error) {
		c, key, err = scanCheckpoint(r)
		return err
	})
	return c, key, err
}

// Checkpoint is the one with a number, or the zero one where there is none.
func (db *DB) Checkpoint(ctx context.Context, number int64) (c proof.Checkpoint, err error) {
	err = db.query(ctx, `SELECT `+checkpointColumns+` WHERE c.number = $1`, func(r row) (err error) {
		c, _, err = scanCheckpoint(r)
		return err
	}, number)
	return c, err
}

// CheckpointKeys are those that ever signed one.
func (db *DB) CheckpointKeys(ctx context.Context) ([]proof.Key, error) {
	var keys []proof.Key
	err := db.query(ctx, `SELECT public_key FROM checkpoint_keys ORDER BY kid`, func(r row) error {
		var public string
		if err := r.Scan(&public); err != nil {
			return err
		}
		key, err := proof.ParseKey(public)
		keys = append(keys, key)
		return err
	})
	return keys, err
}

// booksAsOf is books, each beside what a checkpoint, whose number is $1, has of it.
const booksAsOf = `SELECT b.seller_id, b.transfers, b.chained, b.head, COALESCE(s.transfers, 0), COALESCE(s.pending, 0),
	COALESCE(s.available, 0), COALESCE(s.in_transit, 0), COALESCE(s.head, '') FROM seller_balances b
	LEFT JOIN checkpoint_books s ON s.seller_id = b.seller_id AND s.checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_books
		WHERE seller_id = b.seller_id AND checkpoint <= $1)`

func scanBook(r row) (b proof.Book, err error) {
	s := &b.Sealed
	err = r.Scan(&b.Seller, &b.Transfers, &b.Chain.Number, &b.Chain.Head, &s.Number, &s.Pending, &s.Available, &s.InTransit, &s.Head)
	return b, err
}

// Books lists books in the order of their sellers' ids from after one on, up to limit, each beside what a
// checkpoint has of it.
func (db *DB) Books(ctx context.Context, checkpoint int64, after string, limit int) ([]proof.Book, error) {
	var books []proof.Book
	err := db.query(ctx, booksAsOf+` WHERE b.seller_id > $2 ORDER BY b.seller_id LIMIT $3 + 0`, func(r row) error {
		b, err := scanBook(r)
		books = append(books, b)
		return err
	}, checkpoint, after, limit)
	return books, err
}

// Book is one of them, or one without a seller where there is none.
func (db *DB) Book(ctx context.Context, checkpoint int64, seller string) (b proof.Book, err error) {
	err = db.query(ctx, booksAsOf+` WHERE b.seller_id = $2`, func(r row) (err error) {
		b, err = scanBook(r)
		return err
	}, checkpoint, seller)
	return b, err
}

const selectSealed = `SELECT transfers, pending, available, in_transit, head FROM checkpoint_books WHERE seller_id = $1 AND checkpoint <= $2 AND head <> ''`

func scanSealed(r row) (c ledger.Chain, err error) {
	err = r.Scan(&c.Number, &c.Pending, &c.Available, &c.InTransit, &c.Head)
	return c, err
}

// SealedUpTo is the longest chain up to a number that one of the first checkpoints has, if any has one.
func (db *DB) SealedUpTo(ctx context.Context, checkpoint int64, seller string, number int64) (c ledger.Chain, isSealed bool, err error) {
	err = db.query(ctx, selectSealed+` AND transfers <= $3 ORDER BY checkpoint DESC LIMIT 1`, func(r row) (err error) {
		isSealed = true
		c, err = scanSealed(r)
		return err
	}, seller, checkpoint, number)
	return c, isSealed, err
}

// SealedBetween lists the chains above one number and up to another that the first checkpoints have.
func (db *DB) SealedBetween(ctx context.Context, checkpoint int64, seller string, above, upTo int64) ([]ledger.Chain, error) {
	var chains []ledger.Chain
	err := db.query(ctx, selectSealed+` AND transfers > $3 AND transfers <= $4 ORDER BY checkpoint`, func(r row) error {
		c, err := scanSealed(r)
		chains = append(chains, c)
		return err
	}, seller, checkpoint, above, upTo)
	return chains, err
}

// TakeTurn lets one holder make the next checkpoint, until it is over or a time has come.
func (db *DB) TakeTurn(ctx context.Context, holder string, now, until time.Time) (taken bool, err error) {
	err = db.Update(ctx, func(tx *Tx) error {
		taken, err = tx.execOne(ctx, `UPDATE checkpoint_turn SET holder = $1, until = $3 WHERE id = 1 AND (until < $2 OR holder = $1)`,
			holder, micros(now), micros(until))
		return err
	})
	return taken, err
}

// EndTurn gives the turn back.
func (db *DB) EndTurn(ctx context.Context, holder string) error {
	return db.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `UPDATE checkpoint_turn SET until = 0 WHERE id = 1 AND holder = $1`, holder)
		return err
	})
}

// Seal writes books of the checkpoint that is being made. What was left by somebody who did not finish it
// is written over.
func (db *DB) Seal(ctx context.Context, holder string, until time.Time, number int64, books []proof.Sealed) error {
	return db.Update(ctx, func(tx *Tx) error {
		kept, err := tx.execOne(ctx, `UPDATE checkpoint_turn SET until = $2 WHERE id = 1 AND holder = $1
			AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE number >= $3)`, holder, micros(until), number)
		if err != nil {
			return err
		}
		if !kept {
			return proof.ErrTurnLost
		}
		for _, b := range books {
			_, err := tx.exec(ctx, `INSERT INTO checkpoint_books (seller_id, checkpoint, transfers, pending, available, in_transit, head)
				VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (seller_id, checkpoint) DO UPDATE SET transfers = excluded.transfers,
				pending = excluded.pending, available = excluded.available, in_transit = excluded.in_transit, head = excluded.head`,
				b.Seller, number, b.Chain.Number, int64(b.Chain.Pending), int64(b.Chain.Available), int64(b.Chain.InTransit), string(b.Chain.Head))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Publish adds the checkpoint whose books were sealed.
func (db *DB) Publish(ctx context.Context, holder string, c proof.Checkpoint, key proof.Key) error {
	return db.Update(ctx, func(tx *Tx) error {
		kept, err := tx.execOne(ctx, `UPDATE checkpoint_turn SET until = 0 WHERE id = 1 AND holder = $1`, holder)
		if err != nil {
			return err
		}
		if !kept {
			return proof.ErrTurnLost
		}
		if _, err := tx.exec(ctx, `INSERT INTO checkpoint_keys (kid, public_key) VALUES ($1, $2) ON CONFLICT (kid) DO NOTHING`,
			key.ID, key.Text()); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `INSERT INTO checkpoints (number, at, currency, books, root, previous, kid, signature)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			c.Number, micros(c.At), c.Currency, c.Books, c.Root, string(c.Previous), c.KeyID, c.Signature)
		return err
	})
}
