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

// booksAsOf is the journals, each beside what a checkpoint, whose number is $1, has of it.
const booksAsOf = `SELECT b.owner, b.number, b.hash, b.mac, b.pending, b.available, b.in_transit, b.earned, b.withdrawn, b.sales, b.processing, b.completed, b.failed, b.cancelled,
	COALESCE(s.number, 0), COALESCE(s.totals, ''), COALESCE(s.hash, '') FROM journals b
	LEFT JOIN checkpoint_books s ON s.seller_id = b.owner AND s.checkpoint = (SELECT MAX(checkpoint) FROM checkpoint_books
		WHERE seller_id = b.owner AND checkpoint <= $1)`

func scanBook(r row) (b proof.Book, err error) {
	var totals string
	err = r.Scan(append(accountDest(&b.Now), &b.Sealed.Number, &totals, &b.Sealed.Hash)...)
	b.Seller, b.Sealed.Owner = b.Now.Owner, b.Now.Owner
	if totals != "" { // what can't be read is no totals of the journal's, which is told when it is followed
		b.Sealed.Balance, _ = ledger.ParseBalance(totals)
	}
	return b, err
}

// Books lists journals in the order of their owners' ids from after one on, up to limit, each beside what a
// checkpoint has of it.
func (db *DB) Books(ctx context.Context, checkpoint int64, after string, limit int) ([]proof.Book, error) {
	var books []proof.Book
	err := db.query(ctx, booksAsOf+` WHERE b.owner > $2 ORDER BY b.owner LIMIT $3 + 0`, func(r row) error {
		b, err := scanBook(r)
		books = append(books, b)
		return err
	}, checkpoint, after, limit)
	return books, err
}

// Book is one of them, or one without a seller where there is none.
func (db *DB) Book(ctx context.Context, checkpoint int64, seller string) (b proof.Book, err error) {
	err = db.query(ctx, booksAsOf+` WHERE b.owner = $2`, func(r row) (err error) {
		b, err = scanBook(r)
		return err
	}, checkpoint, seller)
	return b, err
}

// SealedBetween lists where the first checkpoints have a journal, above one entry and up to another.
func (db *DB) SealedBetween(ctx context.Context, checkpoint int64, seller string, above, upTo int64) ([]ledger.Account, error) {
	var accounts []ledger.Account
	err := db.query(ctx, `SELECT number, totals, hash FROM checkpoint_books WHERE seller_id = $1 AND checkpoint <= $2 AND hash <> ''
		AND number > $3 AND number <= $4 ORDER BY checkpoint`, func(r row) error {
		a := ledger.Account{Owner: seller}
		var totals string
		err := r.Scan(&a.Number, &totals, &a.Hash)
		if err == nil {
			a.Balance, err = ledger.ParseBalance(totals)
		}
		accounts = append(accounts, a)
		return err
	}, seller, checkpoint, above, upTo)
	return accounts, err
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
			_, err := tx.exec(ctx, `INSERT INTO checkpoint_books (seller_id, checkpoint, number, totals, hash)
				VALUES ($1, $2, $3, $4, $5) ON CONFLICT (seller_id, checkpoint) DO UPDATE SET number = excluded.number,
				totals = excluded.totals, hash = excluded.hash`,
				b.Seller, number, b.Account.Number, b.Account.Text(), string(b.Account.Hash))
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
