-- A row's seq is the number behind its id. Instants are microseconds since 1970; due_at is when the
-- next thing happens by itself, NULL for never.

CREATE TABLE IF NOT EXISTS contacts (
  seq          INTEGER PRIMARY KEY,
  name         TEXT NOT NULL,
  email        TEXT NOT NULL,
  phone        TEXT NOT NULL,
  type         TEXT NOT NULL,
  reference_id TEXT NOT NULL,
  notes        TEXT NOT NULL,
  active       INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  UNIQUE (name, reference_id, email, phone, type)
) STRICT;

CREATE TABLE IF NOT EXISTS fund_accounts (
  seq           INTEGER PRIMARY KEY,
  contact       INTEGER NOT NULL REFERENCES contacts (seq),
  name          TEXT NOT NULL,
  ifsc          TEXT NOT NULL,
  number        TEXT NOT NULL,
  last4         TEXT NOT NULL,
  active        INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  UNIQUE (contact, number, ifsc, name)
) STRICT;

CREATE TABLE IF NOT EXISTS validations (
  seq             INTEGER PRIMARY KEY,
  fund_account    INTEGER NOT NULL REFERENCES fund_accounts (seq),
  composite       INTEGER NOT NULL,
  amount          INTEGER NOT NULL,
  reference_id    TEXT NOT NULL,
  notes           TEXT NOT NULL,
  status          TEXT NOT NULL,
  account_status  TEXT NOT NULL,
  registered_name TEXT NOT NULL,
  utr             TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  due_at          INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS validations_due ON validations (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS payouts (
  seq             INTEGER PRIMARY KEY,
  idempotency_key TEXT NOT NULL, -- of at most one payout while the key is honoured
  body_hash       BLOB NOT NULL,
  fund_account    INTEGER NOT NULL REFERENCES fund_accounts (seq),
  last4           TEXT NOT NULL, -- of the fund account; chooses the story
  amount          INTEGER NOT NULL,
  mode            TEXT NOT NULL,
  purpose         TEXT NOT NULL,
  reference_id    TEXT NOT NULL,
  narration       TEXT NOT NULL,
  notes           TEXT NOT NULL,
  status          TEXT NOT NULL,
  reason          TEXT NOT NULL,
  utr             TEXT NOT NULL,
  step            INTEGER NOT NULL, -- of the story, how many were taken
  debited         INTEGER NOT NULL,
  credited        INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  due_at          INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS payouts_key ON payouts (idempotency_key);
CREATE INDEX IF NOT EXISTS payouts_reference ON payouts (reference_id);
CREATE INDEX IF NOT EXISTS payouts_due ON payouts (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS payouts_queued ON payouts (seq) WHERE status = 'queued';

CREATE TABLE IF NOT EXISTS transactions (
  seq        INTEGER PRIMARY KEY,
  payout     INTEGER REFERENCES payouts (seq), -- NULL for money that was put into the account, or taken out
  credit     INTEGER NOT NULL,
  debit      INTEGER NOT NULL,
  balance    INTEGER NOT NULL, -- after it
  created_at INTEGER NOT NULL
) STRICT;

-- A false version of the transaction, set through the control API. NULL is the true one.
CREATE TABLE IF NOT EXISTS misstatements (
  seq      INTEGER PRIMARY KEY REFERENCES transactions (seq),
  hidden   INTEGER NOT NULL,
  credit   INTEGER,
  debit    INTEGER,
  fees     INTEGER,
  currency TEXT,
  entity   TEXT, -- of the source; empty for the transaction's own
  about    TEXT NOT NULL -- the payout that such a source names; empty for none
) STRICT;

-- An event is kept with what it says of its subject, which may have moved on before it is delivered.
CREATE TABLE IF NOT EXISTS events (
  seq          INTEGER PRIMARY KEY,
  name         TEXT NOT NULL,
  payout       INTEGER REFERENCES payouts (seq),
  validation   INTEGER REFERENCES validations (seq),
  status       TEXT NOT NULL,
  reason       TEXT NOT NULL,
  utr          TEXT NOT NULL,
  copies       INTEGER NOT NULL, -- how many times it is delivered
  attempts     INTEGER NOT NULL,
  last_status  INTEGER NOT NULL, -- of the receiver's answer, 0 for none
  created_at   INTEGER NOT NULL,
  delivered_at INTEGER,
  due_at       INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS events_due ON events (due_at) WHERE due_at IS NOT NULL;
