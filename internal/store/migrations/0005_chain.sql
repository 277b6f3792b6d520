-- A seller's transfers form a chain of hashes: head is where it stands after the first so many of them. A
-- binary that knows nothing of it moves neither, and leaves chained behind transfers until that is made up for.
ALTER TABLE seller_balances ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE seller_balances ADD COLUMN chained BIGINT NOT NULL DEFAULT -1; -- before a first head

-- Checkpoints tell, under the service's signature, where all chains stood. Rows are only ever inserted.
CREATE TABLE checkpoints (
  number    BIGINT PRIMARY KEY, -- 1, 2, 3 … without a gap
  at        BIGINT NOT NULL,
  currency  TEXT NOT NULL,
  books     BIGINT NOT NULL,
  root      TEXT NOT NULL, -- of the Merkle tree over all books
  previous  TEXT NOT NULL, -- the hash of the checkpoint before
  kid       TEXT NOT NULL,
  signature TEXT NOT NULL
) /* clustered */;

-- The public keys of the checkpoints' signatures, which are kept for good.
CREATE TABLE checkpoint_keys (
  kid        TEXT PRIMARY KEY,
  public_key TEXT NOT NULL
) /* clustered */;

-- Where a chain stood at the first checkpoint that found it there. Those of the checkpoint that is being
-- made are written ahead of it.
CREATE TABLE checkpoint_books (
  seller_id  TEXT NOT NULL,
  checkpoint BIGINT NOT NULL,
  transfers  BIGINT NOT NULL,
  pending    BIGINT NOT NULL,
  available  BIGINT NOT NULL,
  in_transit BIGINT NOT NULL,
  head       TEXT NOT NULL,
  PRIMARY KEY (seller_id, checkpoint)
) /* clustered */;

-- Whose turn it is to make one.
CREATE TABLE checkpoint_turn (
  id     BIGINT PRIMARY KEY CHECK (id = 1),
  holder TEXT NOT NULL,
  until  BIGINT NOT NULL
) /* clustered */;

INSERT INTO checkpoint_turn (id, holder, until) VALUES (1, '', 0);
