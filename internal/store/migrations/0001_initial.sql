-- Portable DDL: package store turns BIGINT into SQLite's INTEGER, "clustered" into WITHOUT ROWID, "appended" into a
-- table in the order of its inserts, and "counted" into a column that counts them.
-- Instants are microseconds since 1970 UTC, amounts are minor units, booleans are 0 or 1, and ids are
-- made by the service and begin with their time, so that tables grow at their right edge.

-- Facts about the whole ledger that must not change under it, such as its currency.
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
  created_at      BIGINT NOT NULL,
  mac             TEXT NOT NULL, -- over what decides who signs in and what they may do, with a key that is not in here
  external_id     TEXT UNIQUE, -- what the system that the user came from calls them; NULL for none
  imported_as     TEXT NOT NULL DEFAULT '' -- fingerprints of the fields that the user was imported with
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
  end_reason TEXT NOT NULL,
  -- What a user is shown of a session, to tell it from others.
  agent      TEXT NOT NULL,
  address    TEXT NOT NULL,
  methods    TEXT NOT NULL, -- how the user proved who they are: pwd, provider; separated by blanks
  authenticated_at BIGINT NOT NULL, -- when they did; a refresh leaves it
  mac        TEXT NOT NULL -- over whose it is, how they proved it and how long it may last, with a key that is not in here
) /* clustered */;

CREATE INDEX sessions_of_user ON sessions (user_id); -- of all: PostgreSQL reads a partial one whole for a session that it is to find by its id
-- By the end that never moves: an index on expires_at would cost every refresh.
CREATE INDEX sessions_old ON sessions (cap_at);

-- Second factors. The recovery codes of a user are one row; of each code only its hash is kept.
CREATE TABLE factors (
  id           TEXT PRIMARY KEY,
  user_id      TEXT NOT NULL REFERENCES users (id),
  kind         TEXT NOT NULL CHECK (kind IN ('totp', 'passkey', 'recovery')),
  name         TEXT NOT NULL,
  secret       TEXT NOT NULL, -- encrypted; of recovery codes the hashes of those that are left
  counter      BIGINT NOT NULL, -- the time step of the last code that was taken, or a passkey's signature counter
  created_at   BIGINT NOT NULL,
  confirmed_at BIGINT, -- NULL until the user has shown that it works
  mac          TEXT NOT NULL -- over the whole row, with a key that is not in here
) /* clustered */;

CREATE INDEX factors_of_user ON factors (user_id);

-- Keys of the marketplace. Of a key only its hash is kept; the MAC covers the row, so that nobody adds a key here.
CREATE TABLE service_keys (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  hash       TEXT NOT NULL UNIQUE,
  scopes     TEXT NOT NULL, -- what the key may do, separated by blanks
  created_at BIGINT NOT NULL,
  expires_at BIGINT, -- NULL for never
  revoked_at BIGINT,
  rotations  BIGINT NOT NULL CHECK (rotations >= 0), -- how often the hash was replaced
  used_on    TEXT NOT NULL, -- day of the last use, in UTC, such as 2026-11-22; empty for never
  mac        TEXT NOT NULL -- with a key that is not in here
) /* clustered */;

-- What a key was before it was rotated, for as long as that is still accepted.
CREATE TABLE rotated_service_keys (
  hash   TEXT PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES service_keys (id),
  until  BIGINT NOT NULL,
  mac    TEXT NOT NULL -- over the whole row, with a key that is not in here
) /* clustered */;

CREATE INDEX rotated_service_keys_of_key ON rotated_service_keys (key_id);

-- Links that open a session of a seller once, by the hashes of their tokens. A row stays as long as its session may last.
CREATE TABLE session_links (
  hash       TEXT PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES users (id),
  key_id     TEXT NOT NULL REFERENCES service_keys (id), -- that asked for it
  expires_at BIGINT NOT NULL,
  session_id TEXT NOT NULL, -- that it opened; empty while it is unused
  mac        TEXT NOT NULL -- over all but the session, with a key that is not in here
) /* clustered */;

CREATE INDEX session_links_unused ON session_links (user_id) WHERE session_id = '';
CREATE INDEX session_links_of_key ON session_links (key_id);
CREATE INDEX session_links_old ON session_links (expires_at);

-- A bucket's virtual time (GCRA): how far its attempts have used up the time ahead.
CREATE TABLE throttles (
  bucket     TEXT PRIMARY KEY,
  virtual_at BIGINT NOT NULL
) /* clustered */;

CREATE INDEX throttles_empty ON throttles (virtual_at);

-- Where each owner's journal stands: the number, hash and MAC of the last entry, and the totals after it. An owner is
-- a user, or "platform" for what belongs to no seller. The row moves only with an entry.
CREATE TABLE journals (
  owner      TEXT PRIMARY KEY,
  number     BIGINT NOT NULL CHECK (number > 0),
  hash       TEXT NOT NULL,
  mac        TEXT NOT NULL,
  pending    BIGINT NOT NULL CHECK (pending >= 0),
  available  BIGINT NOT NULL, -- below zero after a refund of money already withdrawn
  in_transit BIGINT NOT NULL CHECK (in_transit >= 0),
  earned     BIGINT NOT NULL,
  withdrawn  BIGINT NOT NULL,
  sales      BIGINT NOT NULL,
  processing BIGINT NOT NULL CHECK (processing >= 0),
  completed  BIGINT NOT NULL CHECK (completed >= 0),
  failed     BIGINT NOT NULL CHECK (failed >= 0),
  cancelled  BIGINT NOT NULL CHECK (cancelled >= 0),
  hold_until BIGINT NOT NULL DEFAULT 0, -- until then the owner may ask for no payout; 0 without a hold
  frozen     BIGINT NOT NULL DEFAULT 0 CHECK (frozen IN (0, 1)) -- an admin has stopped the owner's payouts, and the platform's is everyone's
) /* clustered */;

-- The journal: everything that happened to an owner's money, in order. Rows are only ever inserted. All other rows
-- about money are projections of these.
CREATE TABLE entries (
  owner      TEXT NOT NULL,
  number     BIGINT NOT NULL, -- 1, 2, 3 … without a gap, per owner
  at         BIGINT NOT NULL,
  type       TEXT NOT NULL,
  subject    TEXT NOT NULL, -- id of the sale, payout, bank account or other thing that it is about
  actor      TEXT NOT NULL, -- user:…, issuer:URL, key:…, admin:…, operator:…, marketplace, system or gateway
  data       TEXT NOT NULL, -- JSON: what it says of its subject
  -- What it adds to each account; the sum is zero.
  pending    BIGINT NOT NULL DEFAULT 0,
  available  BIGINT NOT NULL,
  in_transit BIGINT NOT NULL,
  sales      BIGINT NOT NULL DEFAULT 0,
  gateway    BIGINT NOT NULL DEFAULT 0,
  fees       BIGINT NOT NULL DEFAULT 0,
  after      TEXT NOT NULL, -- the owner's totals after it
  hash       TEXT NOT NULL, -- of the chain up to it
  mac        TEXT NOT NULL, -- with a key that is not in here
  PRIMARY KEY (owner, number),
  CHECK (pending + available + in_transit + sales + gateway + fees = 0)
) /* appended */;

CREATE INDEX entries_about ON entries (subject, owner, number);
-- A seller's bank accounts, which are few.
CREATE INDEX entries_of_accounts ON entries (owner, number) WHERE type = 'bank_account.added';
-- The clearing account by time: what went out through the gateway, what came back, and which payouts ended without.
CREATE INDEX entries_of_gateway ON entries (at, owner, number) WHERE gateway <> 0 OR type IN ('payout.failed', 'payout.cancelled');
-- Decisions are rare, so that this holds next to nothing.
CREATE INDEX entries_decided ON entries (at, owner, number) WHERE type IN ('admin.decided', 'payouts.frozen', 'payouts.unfrozen', 'balance.adjusted');
-- What was decided about a subject: each sign-in asks for the user's role and suspension.
CREATE INDEX entries_decided_about ON entries (subject, owner, number) WHERE type = 'admin.decided';
-- A seller's adjustments, which are rare too.
CREATE INDEX entries_adjusted ON entries (owner, number) WHERE type = 'balance.adjusted';

-- The feed of events for the marketplace. The transaction that appends an entry queues its events here; a loop numbers those that
-- are committed, because numbers drawn before the commit would become visible out of order.
CREATE TABLE queued_events (
  place BIGINT /* counted */ PRIMARY KEY, -- in the order of the inserts
  owner TEXT NOT NULL,
  entry BIGINT NOT NULL, -- 0 for a seller who registered, which is no entry
  type  TEXT NOT NULL
) /* appended */;

CREATE TABLE events (
  number BIGINT PRIMARY KEY, -- 1, 2, 3 … without a gap
  id     TEXT NOT NULL UNIQUE,
  owner  TEXT NOT NULL,
  entry  BIGINT NOT NULL,
  type   TEXT NOT NULL
) /* appended */;

-- What takes money from a seller for good. Before a payout is sent, the newest event of it must have its entry.
CREATE INDEX events_of_debits ON events (owner, entry) WHERE type IN ('sale.refunded', 'balance.adjusted', 'payout.completed');

-- A transaction that numbers events locks this row, and takes the numbers behind the last.
CREATE TABLE event_feed (
  id   BIGINT PRIMARY KEY CHECK (id = 1),
  last BIGINT NOT NULL
) /* clustered */;
INSERT INTO event_feed (id, last) VALUES (1, 0);

-- Where events are delivered. The MAC covers all up to it, so that nobody has events delivered elsewhere by a change in here.
CREATE TABLE webhook_endpoints (
  id          TEXT PRIMARY KEY,
  url         TEXT NOT NULL UNIQUE,
  types       TEXT NOT NULL, -- those of the events, separated by blanks; empty for all
  description TEXT NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('enabled', 'disabled')),
  reason      TEXT NOT NULL, -- why it is disabled; empty while it is not
  secret      TEXT NOT NULL, -- encrypted
  old_secrets TEXT NOT NULL, -- encrypted, separated by blanks; they sign too until old_until. Empty before the first rotation
  old_until   BIGINT,
  created_at  BIGINT NOT NULL,
  mac         TEXT NOT NULL, -- with a key that is not in here
  -- How deliveries go.
  failures          BIGINT NOT NULL,
  failing_since     BIGINT,
  retry_at          BIGINT,
  last_delivered_at BIGINT,
  leased_until      BIGINT NOT NULL -- a worker delivers to it until then; in the past, it is when the last one ended
) /* clustered */;

-- Each event on its way to each endpoint.
CREATE TABLE webhook_deliveries (
  id              TEXT PRIMARY KEY,
  event_id        TEXT NOT NULL,
  endpoint_id     TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
  attempt         BIGINT NOT NULL, -- how many were begun
  response_status BIGINT NOT NULL, -- of the last answer; 0 for none
  answer          TEXT NOT NULL, -- the beginning of it
  problem         TEXT NOT NULL, -- why there was none
  created_at      BIGINT NOT NULL,
  at              BIGINT, -- when the last attempt ended
  due_at          BIGINT,
  CHECK ((status = 'pending') = (due_at IS NOT NULL))
) /* clustered */;

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id, created_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_of_event ON webhook_deliveries (event_id);
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, id);
-- What was delivered is nearly all, so that this holds next to nothing.
CREATE INDEX webhook_deliveries_not_delivered ON webhook_deliveries (id) WHERE status <> 'delivered';

-- Earnings by the month in which the sale occurred, refunds taken off.
CREATE TABLE earnings (
  seller_id TEXT NOT NULL REFERENCES users (id),
  month     TEXT NOT NULL,
  amount    BIGINT NOT NULL,
  PRIMARY KEY (seller_id, month)
) /* clustered */;

CREATE TABLE sales (
  id           TEXT PRIMARY KEY CHECK (id <> ''), -- the marketplace's
  seller_id    TEXT NOT NULL REFERENCES users (id),
  amount       BIGINT NOT NULL CHECK (amount > 0),
  refunded     BIGINT NOT NULL CHECK (refunded >= 0 AND refunded <= amount),
  month        TEXT NOT NULL,
  occurred_at  BIGINT NOT NULL,
  available_at BIGINT NOT NULL,
  released_at  BIGINT,
  created_at   BIGINT NOT NULL,
  fingerprint  TEXT NOT NULL,
  due_at       BIGINT -- when its release is due; NULL once it was released
) /* clustered */;

CREATE INDEX sales_due ON sales (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX sales_of_seller ON sales (seller_id, occurred_at, id);
-- With all that is asked about pending sales, so that they are summed without a look at each.
CREATE INDEX sales_pending ON sales (seller_id, available_at, released_at, amount, refunded) WHERE released_at IS NULL;

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
  id              TEXT PRIMARY KEY CHECK (substr(id, 1, 4) = 'bka_' AND length(id) > 4),
  seller_id       TEXT NOT NULL REFERENCES users (id),
  is_current      BIGINT NOT NULL CHECK (is_current IN (0, 1)),
  holder          TEXT NOT NULL,
  ifsc            TEXT NOT NULL,
  last4           TEXT NOT NULL,
  encrypted_number   TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('unverified', 'verified', 'rejected', 'review')),
  reason          TEXT NOT NULL,
  registered_name TEXT NOT NULL,
  name_score      BIGINT NOT NULL,
  beneficiary     TEXT NOT NULL, -- what the gateway calls it; both are empty until it was registered there
  gateway         TEXT NOT NULL,
  verification_id TEXT NOT NULL,
  tries           BIGINT NOT NULL,
  due_at          BIGINT,
  created_at      BIGINT NOT NULL,
  verified_at     BIGINT,
  mac             TEXT NOT NULL DEFAULT '' -- while new payouts go there, with a key that is not in here
) /* clustered */;

CREATE UNIQUE INDEX bank_accounts_current ON bank_accounts (seller_id) WHERE is_current = 1;
CREATE INDEX bank_accounts_due ON bank_accounts (due_at) WHERE due_at IS NOT NULL;

-- No foreign keys: the unit of work that adds a payout has read its seller's account, users and accounts are never
-- deleted, and the audit finds a payout without them. To check them again costs PostgreSQL two locked reads per payout.
CREATE TABLE payouts (
  id              TEXT PRIMARY KEY CHECK (substr(id, 1, 4) = 'pyt_' AND length(id) > 4),
  seller_id       TEXT NOT NULL,
  bank_account_id TEXT NOT NULL,
  amount          BIGINT NOT NULL CHECK (amount > 0),
  fee             BIGINT NOT NULL CHECK (fee >= 0 AND fee < amount),
  notes           TEXT NOT NULL,
  rail            TEXT NOT NULL,
  state           TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('processing', 'completed', 'failed', 'cancelled')),
  requested_at    BIGINT NOT NULL,
  arrive_at       BIGINT NOT NULL,
  sent_at         BIGINT,
  processed_at    BIGINT,
  completed_at    BIGINT,
  ended_at        BIGINT,
  due_at          BIGINT,
  tries           BIGINT NOT NULL DEFAULT 0,
  order_body      TEXT NOT NULL DEFAULT '',
  gateway_id      TEXT NOT NULL DEFAULT '',
  progress        TEXT NOT NULL DEFAULT '',
  utr             TEXT NOT NULL DEFAULT '',
  reason_code     TEXT NOT NULL DEFAULT '',
  reason          TEXT NOT NULL DEFAULT '',
  discrepancy     TEXT NOT NULL DEFAULT '', -- how a gateway report disagrees with the journal, until an admin resolves it
  gateway         TEXT NOT NULL, -- that it goes through; what is in flight stays there
  source          TEXT NOT NULL DEFAULT '' -- marketplace if its server asked for it; imported if the gateway told of it; empty for the seller
) /* clustered */;

-- The one index that every request pays for: each page of a seller's history is read from its ends.
CREATE INDEX payouts_history ON payouts (seller_id, status, id);
CREATE INDEX payouts_due ON payouts (due_at) WHERE due_at IS NOT NULL;
-- For an admin's look at what is rare; processing and completed are found quickly from the newest end.
CREATE INDEX payouts_ended ON payouts (status, id) WHERE status IN ('failed', 'cancelled');

-- For a start, which asks each gateway what it has made since the last payout that was sent through it.
CREATE INDEX payouts_sent ON payouts (gateway, id) WHERE sent_at IS NOT NULL;

-- What operators keep an eye on is rare, so that these indexes hold next to nothing.
CREATE INDEX payouts_unclear ON payouts (state) WHERE state IN ('unknown', 'manual_review');
CREATE INDEX payouts_with_discrepancy ON payouts (id) WHERE discrepancy <> '';
-- What an operator searches by when a seller asks about a payout.
CREATE INDEX payouts_by_gateway_id ON payouts (gateway_id) WHERE gateway_id <> '';
CREATE INDEX payouts_by_utr ON payouts (utr) WHERE utr <> '';

CREATE TABLE idempotency_keys (
  user_id     TEXT NOT NULL,
  key         TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  payout_id   TEXT NOT NULL,
  refusal     TEXT NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (user_id, key)
) /* clustered */;

CREATE INDEX idempotency_keys_old ON idempotency_keys (created_at);

-- Payouts that wait because their gateway is not configured, or because payouts are frozen, are rare.
CREATE INDEX payouts_without_gateway ON payouts (id) WHERE reason_code = 'gateway_not_configured';
CREATE INDEX payouts_stopped ON payouts (seller_id) WHERE reason_code = 'payouts_stopped';

CREATE TABLE gateway_events (
  gateway     TEXT NOT NULL,
  id          TEXT NOT NULL,
  received_at BIGINT NOT NULL,
  PRIMARY KEY (gateway, id)
) /* clustered */;

CREATE INDEX gateway_events_old ON gateway_events (received_at);

-- Admins are few, and counted before one is taken away.
CREATE INDEX users_admins ON users (id) WHERE role = 'admin';

-- A user at an identity provider: the issuer and its subject, never the e-mail address.
CREATE TABLE identities (
  issuer     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  user_id    TEXT NOT NULL REFERENCES users (id),
  email      TEXT NOT NULL, -- as the provider told it when it was linked
  created_at BIGINT NOT NULL,
  mac        TEXT NOT NULL, -- over whose it is, with a key that is not in here
  PRIMARY KEY (issuer, subject)
) /* clustered */;

CREATE INDEX identities_of_user ON identities (user_id);

-- Sign-ins through a provider that came back. Each comes back once; what is too old is refused anyway.
CREATE TABLE used_sign_ins (
  state      TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL
) /* clustered */;

CREATE INDEX used_sign_ins_old ON used_sign_ins (expires_at);

-- Transfers that the gateway made under references of ours, and that no payout in the ledger could be made
-- of. A person has to look at each, and says so with resolved = 1.
CREATE TABLE unmatched_transfers (
  gateway    TEXT NOT NULL,
  gateway_id TEXT NOT NULL, -- its id of the transfer; two gateways may use the same
  reference  TEXT NOT NULL, -- the payout's id
  seller_id  TEXT NOT NULL, -- as the gateway tells it, or else the seller of the payout; empty for a transfer of no known seller
  amount     BIGINT NOT NULL, -- that the bank was sent
  currency   TEXT NOT NULL DEFAULT '', -- as the gateway tells it; empty where it does not
  progress   TEXT NOT NULL, -- when it was found
  utr        TEXT NOT NULL DEFAULT '', -- the bank's reference then; empty where there was none
  made_at    BIGINT,
  found_at   BIGINT NOT NULL,
  why        TEXT NOT NULL,
  resolved   BIGINT NOT NULL CHECK (resolved IN (0, 1)),
  PRIMARY KEY (gateway, gateway_id)
) /* clustered */;
CREATE INDEX bank_accounts_in_review ON bank_accounts (id) WHERE status = 'review' AND is_current = 1;
CREATE INDEX unmatched_transfers_open ON unmatched_transfers (gateway, gateway_id) WHERE resolved = 0;

-- Which admin is on what waits in the inbox. A claim expires, and decides nothing.
CREATE TABLE claims (
  subject  TEXT PRIMARY KEY, -- the id of the payout, bank account, difference or unmatched transfer
  admin_id TEXT NOT NULL,
  at       BIGINT NOT NULL
) /* clustered */;

-- Checkpoints tell, under the service's signature, where all journals stood. Rows are only ever inserted.
CREATE TABLE checkpoints (
  number    BIGINT PRIMARY KEY, -- 1, 2, 3 … without a gap
  at        BIGINT NOT NULL,
  currency  TEXT NOT NULL,
  journals     BIGINT NOT NULL,
  root      TEXT NOT NULL, -- of the Merkle tree over all journals
  previous  TEXT NOT NULL, -- the hash of the checkpoint before
  kid       TEXT NOT NULL,
  signature TEXT NOT NULL
) /* clustered */;

-- The public keys of the checkpoints' signatures, which are kept for good.
CREATE TABLE checkpoint_keys (
  kid        TEXT PRIMARY KEY,
  public_key TEXT NOT NULL
) /* clustered */;

-- Where a journal stood at the first checkpoint that found it there, or that left it behind there. Those of the checkpoint that is being
-- made are written ahead of it.
CREATE TABLE checkpoint_journals (
  seller_id  TEXT NOT NULL,
  checkpoint BIGINT NOT NULL,
  number     BIGINT NOT NULL, -- of the last entry that it holds
  totals     TEXT NOT NULL, -- after that entry
  hash       TEXT NOT NULL,
  behind     BIGINT NOT NULL DEFAULT 0 CHECK (behind IN (0, 1)), -- the checkpoint left it there: what came later did not lead on
  PRIMARY KEY (seller_id, checkpoint)
) /* clustered */;

-- The lease of the instance that makes one.
CREATE TABLE checkpoint_lease (
  id     BIGINT PRIMARY KEY CHECK (id = 1),
  holder TEXT NOT NULL,
  until  BIGINT NOT NULL
) /* clustered */;

INSERT INTO checkpoint_lease (id, holder, until) VALUES (1, '', 0);

-- The gateway's statement of our account, line by line, as it was last read. A line that read differently
-- before, or is gone, is itself a difference.
CREATE TABLE statement_lines (
  gateway     TEXT NOT NULL,
  id          TEXT NOT NULL, -- the gateway's
  at          BIGINT NOT NULL,
  debit       BIGINT NOT NULL CHECK (debit >= 0),
  credit      BIGINT NOT NULL CHECK (credit >= 0),
  balance     BIGINT, -- after it; NULL where the gateway does not tell
  currency    TEXT NOT NULL,
  kind        TEXT NOT NULL, -- payout, reversal, fee, verification or other
  raw_kind    TEXT NOT NULL, -- of what it came from, in the gateway's word
  source_id   TEXT NOT NULL,
  transfer_id TEXT NOT NULL, -- the payout's id at the gateway, empty for none
  payout_id   TEXT NOT NULL, -- the payout's id in its notes, empty for none
  amount      BIGINT NOT NULL, -- of what it came from, without fees
  fees        BIGINT NOT NULL, -- this and the next two may come late
  tax         BIGINT NOT NULL,
  utr         TEXT NOT NULL,
  first_reported  TEXT NOT NULL, -- what may not change of it, when it was first read
  last_reported   TEXT NOT NULL, -- and when it was last read
  seen_at     BIGINT NOT NULL, -- when the last reading that found it began
  missing     BIGINT NOT NULL CHECK (missing IN (0, 1)), -- a later reading did not find it any more
  PRIMARY KEY (gateway, id)
) /* clustered */;

CREATE INDEX statement_lines_at ON statement_lines (gateway, at, id);
CREATE INDEX statement_lines_by_id ON statement_lines (id);
CREATE INDEX statement_lines_of_transfer ON statement_lines (transfer_id) WHERE transfer_id <> '';
CREATE INDEX statement_lines_of_payout ON statement_lines (payout_id) WHERE payout_id <> '';
CREATE INDEX statement_lines_changed ON statement_lines (gateway, at) WHERE first_reported <> last_reported OR missing = 1;

-- Days of a gateway's statement that were read to their end, after they had ended.
CREATE TABLE statement_days (
  gateway   TEXT NOT NULL,
  starts_at BIGINT NOT NULL,
  ends_at   BIGINT NOT NULL,
  read_at   BIGINT NOT NULL, -- when the reading began
  lines     BIGINT, -- NULL before they were compared
  opening   BIGINT, -- the balances before the first line and after the last one; NULL where none are given
  closing   BIGINT,
  PRIMARY KEY (gateway, starts_at)
) /* clustered */;

-- Where the statement and the ledger do not agree. One that is gone was not found again; one that is settled
-- was explained by a person, and opens again if it comes to say something else.
CREATE TABLE differences (
  id         TEXT PRIMARY KEY, -- made of kind, gateway and subject
  kind       TEXT NOT NULL,
  gateway    TEXT NOT NULL, -- the one whose statement differs
  subject    TEXT NOT NULL, -- a payout, a transfer of the gateway, a line, or a day
  payout_id  TEXT NOT NULL, -- empty for none
  detail     TEXT NOT NULL,
  at         BIGINT NOT NULL, -- when it happened
  at_gateway BIGINT NOT NULL, -- what the gateway took, less what it returned
  in_ledger    BIGINT NOT NULL,
  first_seen BIGINT NOT NULL,
  last_seen  BIGINT NOT NULL,
  gone_at    BIGINT,
  resolved_at BIGINT
) /* clustered */;

CREATE INDEX differences_open ON differences (first_seen, id, kind) WHERE gone_at IS NULL AND resolved_at IS NULL;

-- Each comparison of a period, with its sums.
CREATE TABLE reconciliations (
  id        TEXT PRIMARY KEY,
  gateway   TEXT NOT NULL, -- the one whose statement was compared
  starts_at BIGINT NOT NULL,
  ends_at   BIGINT NOT NULL,
  daily     BIGINT NOT NULL CHECK (daily IN (0, 1)), -- the service did it by itself
  ended_at  BIGINT NOT NULL,
  result    TEXT NOT NULL
) /* clustered */;

CREATE INDEX reconciliations_daily ON reconciliations (gateway, ends_at) WHERE daily = 1;

-- The lease of the instance that reconciles.
CREATE TABLE reconcile_lease (
  id     BIGINT PRIMARY KEY CHECK (id = 1),
  holder TEXT NOT NULL,
  until  BIGINT NOT NULL
) /* clustered */;

INSERT INTO reconcile_lease (id, holder, until) VALUES (1, '', 0);

-- How the daily work with each gateway's statement goes.
CREATE TABLE reconcile_pace (
  gateway   TEXT PRIMARY KEY,
  failures  BIGINT NOT NULL, -- since the last success
  due_at    BIGINT NOT NULL, -- nothing is tried before
  looked_at BIGINT NOT NULL -- when the open differences were last looked at again
) /* clustered */;

-- Mails to send, and what became of those of the last weeks.
CREATE TABLE mails (
  id         TEXT PRIMARY KEY,
  kind       TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  masked     TEXT NOT NULL, -- the address as people may see it
  content    TEXT NOT NULL, -- the address and the data, encrypted; empty once the mail has ended
  state      TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'failed')),
  tries      BIGINT NOT NULL,
  last_error TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  give_up_at BIGINT NOT NULL,
  due_at     BIGINT,
  ended_at   BIGINT,
  CHECK ((state = 'queued') = (due_at IS NOT NULL)),
  CHECK (state = 'queued' OR content = '')
) /* clustered */;

CREATE INDEX mails_due ON mails (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX mails_unsent ON mails (created_at) WHERE due_at IS NOT NULL;
CREATE INDEX mails_old ON mails (ended_at) WHERE ended_at IS NOT NULL;

-- Tokens that were mailed, by their hashes. Each is used once: using it deletes it.
CREATE TABLE mail_tokens (
  hash          TEXT PRIMARY KEY,
  purpose       TEXT NOT NULL CHECK (purpose IN ('verify_email', 'reset_password', 'confirm_email', 'undo_email', 'undo_factor')),
  email         TEXT NOT NULL, -- that the account gets with a change of its address, or back with its undoing; empty for other purposes
  user_id       TEXT NOT NULL REFERENCES users (id),
  code          TEXT NOT NULL, -- that may be entered in place of the token, encrypted; empty for none
  tries         BIGINT NOT NULL, -- wrong codes
  -- Another registration with the address of an account that was never verified: what confirming it makes of the
  -- account. Empty for the registration that made the account.
  name          TEXT NOT NULL,
  role          TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  address       TEXT NOT NULL, -- that asked for the token
  agent         TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  expires_at    BIGINT NOT NULL,
  mac           TEXT NOT NULL,
  reserves      TEXT -- the key of an address that no other account gets while the token can give it back; NULL for other purposes
) /* clustered */;

CREATE INDEX mail_tokens_of_user ON mail_tokens (user_id);
CREATE INDEX mail_tokens_reserved ON mail_tokens (reserves) WHERE reserves IS NOT NULL;
CREATE INDEX mail_tokens_old ON mail_tokens (expires_at);

-- Requests for a link to reset a password. A job answers them, so that a request takes as long for an address that no
-- user has.
CREATE TABLE mail_requests (
  id      TEXT PRIMARY KEY,
  email   TEXT NOT NULL, -- encrypted
  address TEXT NOT NULL,
  agent   TEXT NOT NULL,
  at      BIGINT NOT NULL
) /* clustered */;
