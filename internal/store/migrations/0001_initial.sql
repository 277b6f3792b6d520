-- Portable DDL: package store turns BIGINT into SQLite's INTEGER and "clustered" into WITHOUT ROWID.
-- Instants are microseconds since 1970 UTC, amounts are minor units, booleans are 0 or 1, and ids are
-- made by the service and begin with their time, so that tables grow at their right edge.

-- Facts about the whole book that must not change under it, such as its currency.
CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) /* clustered */;

CREATE TABLE users (
  id              TEXT PRIMARY KEY,
  name            TEXT NOT NULL,
  email           TEXT NOT NULL,
  email_key       TEXT NOT NULL UNIQUE,
  password_hash   TEXT NOT NULL, -- empty for those who only sign in through a provider
  role            TEXT NOT NULL CHECK (role IN ('buyer', 'seller', 'admin')),
  verified        BIGINT NOT NULL CHECK (verified IN (0, 1)),
  suspended       BIGINT NOT NULL CHECK (suspended IN (0, 1)),
  avatar          TEXT NOT NULL,
  bio             TEXT NOT NULL,
  website         TEXT NOT NULL,
  products_listed BIGINT NOT NULL CHECK (products_listed >= 0),
  created_at      BIGINT NOT NULL
) /* clustered */;

-- A session is one sign-in. Of refresh tokens nothing is kept but how many there were, and when the last
-- ones were used: refreshes is instants of sixteen digits each, newest first.
CREATE TABLE sessions (
  id         TEXT PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES users (id),
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  cap_at     BIGINT NOT NULL,
  counter    BIGINT NOT NULL,
  refreshes  TEXT NOT NULL,
  ended_at   BIGINT,
  end_reason TEXT NOT NULL
) /* clustered */;

CREATE INDEX sessions_of_user ON sessions (user_id) WHERE ended_at IS NULL;
-- By the end that never moves: an index on expires_at would cost every refresh.
CREATE INDEX sessions_old ON sessions (cap_at);

CREATE TABLE service_keys (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
) /* clustered */;

-- A bucket's virtual time (GCRA): how far its attempts have used up the time ahead.
CREATE TABLE throttles (
  bucket     TEXT PRIMARY KEY,
  virtual_at BIGINT NOT NULL
) /* clustered */;

CREATE INDEX throttles_empty ON throttles (virtual_at);

CREATE TABLE known_devices (
  user_id TEXT NOT NULL REFERENCES users (id),
  device  TEXT NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, device)
) /* clustered */;

CREATE INDEX known_devices_old ON known_devices (seen_at);

-- One row of totals per seller, moved only by ledger postings.
CREATE TABLE seller_balances (
  seller_id  TEXT PRIMARY KEY REFERENCES users (id),
  pending    BIGINT NOT NULL CHECK (pending >= 0),
  available  BIGINT NOT NULL, -- below zero after a refund of money already withdrawn
  in_transit BIGINT NOT NULL CHECK (in_transit >= 0),
  earned     BIGINT NOT NULL,
  withdrawn  BIGINT NOT NULL,
  transfers  BIGINT NOT NULL,
  sales      BIGINT NOT NULL,
  processing BIGINT NOT NULL CHECK (processing >= 0),
  completed  BIGINT NOT NULL CHECK (completed >= 0),
  failed     BIGINT NOT NULL CHECK (failed >= 0),
  cancelled  BIGINT NOT NULL CHECK (cancelled >= 0)
) /* clustered */;

-- Rows are only ever inserted. A seller's transfers are numbered 1, 2, 3 … without a gap.
CREATE TABLE transfers (
  seller_id TEXT NOT NULL REFERENCES seller_balances (seller_id),
  number    BIGINT NOT NULL,
  at        BIGINT NOT NULL,
  kind      TEXT NOT NULL,
  debit     TEXT NOT NULL,
  credit    TEXT NOT NULL,
  amount    BIGINT NOT NULL CHECK (amount > 0),
  ref       TEXT NOT NULL,
  PRIMARY KEY (seller_id, number)
) /* clustered */;

-- Earnings by the month in which the sale occurred, refunds taken off.
CREATE TABLE earnings (
  seller_id TEXT NOT NULL REFERENCES seller_balances (seller_id),
  month     TEXT NOT NULL,
  amount    BIGINT NOT NULL,
  PRIMARY KEY (seller_id, month)
) /* clustered */;

CREATE TABLE sales (
  id           TEXT PRIMARY KEY, -- the marketplace's
  seller_id    TEXT NOT NULL REFERENCES seller_balances (seller_id),
  amount       BIGINT NOT NULL CHECK (amount > 0),
  refunded     BIGINT NOT NULL CHECK (refunded >= 0 AND refunded <= amount),
  month        TEXT NOT NULL,
  occurred_at  BIGINT NOT NULL,
  available_at BIGINT NOT NULL,
  released_at  BIGINT,
  created_at   BIGINT NOT NULL,
  fingerprint  TEXT NOT NULL
) /* clustered */;

CREATE INDEX sales_due ON sales (available_at) WHERE released_at IS NULL;

CREATE TABLE sale_refunds (
  sale_id     TEXT NOT NULL REFERENCES sales (id),
  id          TEXT NOT NULL, -- the marketplace's
  amount      BIGINT NOT NULL CHECK (amount > 0),
  at          BIGINT NOT NULL,
  fingerprint TEXT NOT NULL,
  PRIMARY KEY (sale_id, id)
) /* clustered */;

-- Accounts are added, never changed; the newest is the current one.
CREATE TABLE bank_accounts (
  id              TEXT PRIMARY KEY,
  seller_id       TEXT NOT NULL REFERENCES users (id),
  is_current      BIGINT NOT NULL CHECK (is_current IN (0, 1)),
  holder          TEXT NOT NULL,
  ifsc            TEXT NOT NULL,
  last4           TEXT NOT NULL,
  sealed_number   TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('unverified', 'verified', 'rejected', 'review')),
  reason          TEXT NOT NULL,
  registered_name TEXT NOT NULL,
  name_score      BIGINT NOT NULL,
  beneficiary     TEXT NOT NULL,
  verification_id TEXT NOT NULL,
  tries           BIGINT NOT NULL,
  due_at          BIGINT,
  created_at      BIGINT NOT NULL,
  verified_at     BIGINT
) /* clustered */;

CREATE UNIQUE INDEX bank_accounts_current ON bank_accounts (seller_id) WHERE is_current = 1;
CREATE INDEX bank_accounts_due ON bank_accounts (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE payouts (
  id              TEXT PRIMARY KEY,
  seller_id       TEXT NOT NULL REFERENCES seller_balances (seller_id),
  bank_account_id TEXT NOT NULL REFERENCES bank_accounts (id),
  amount          BIGINT NOT NULL CHECK (amount > 0),
  fee             BIGINT NOT NULL CHECK (fee >= 0 AND fee < amount),
  notes           TEXT NOT NULL,
  mode            TEXT NOT NULL,
  state           TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('processing', 'completed', 'failed', 'cancelled')),
  requested_at    BIGINT NOT NULL,
  arrive_at       BIGINT NOT NULL,
  sent_at         BIGINT,
  processed_at    BIGINT,
  completed_at    BIGINT,
  ended_at        BIGINT,
  due_at          BIGINT,
  tries           BIGINT NOT NULL,
  order_body      TEXT NOT NULL,
  gateway_id      TEXT NOT NULL,
  progress        TEXT NOT NULL,
  utr             TEXT NOT NULL,
  reason_code     TEXT NOT NULL,
  reason          TEXT NOT NULL,
  contradiction   TEXT NOT NULL -- what the gateway said that can't be true; a person has to look
) /* clustered */;

-- The one index that every request pays for: each page of a seller's history is read from its ends.
CREATE INDEX payouts_history ON payouts (seller_id, status, id);
CREATE INDEX payouts_due ON payouts (due_at) WHERE due_at IS NOT NULL;
-- For an admin's look at what is rare; processing and completed are found quickly from the newest end.
CREATE INDEX payouts_ended ON payouts (status, id) WHERE status IN ('failed', 'cancelled');

-- Changes of state after the request, which the payout itself tells.
CREATE TABLE payout_events (
  payout_id  TEXT NOT NULL REFERENCES payouts (id),
  number     BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  from_state TEXT NOT NULL,
  to_state   TEXT NOT NULL,
  reason     TEXT NOT NULL,
  PRIMARY KEY (payout_id, number)
) /* clustered */;

CREATE TABLE idempotency_keys (
  user_id     TEXT NOT NULL,
  key         TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  payout_id   TEXT NOT NULL,
  refusal     TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (user_id, key)
) /* clustered */;

CREATE INDEX idempotency_keys_old ON idempotency_keys (created_at);

CREATE TABLE gateway_events (
  id          TEXT PRIMARY KEY,
  received_at BIGINT NOT NULL
) /* clustered */;

CREATE INDEX gateway_events_old ON gateway_events (received_at);
