-- The gateway's statement of our account, line by line, as it was last told. A line that was told differently
-- before, or is told no more, is itself a difference.
CREATE TABLE statement_lines (
  id          TEXT PRIMARY KEY, -- the gateway's
  at          BIGINT NOT NULL,
  debit       BIGINT NOT NULL CHECK (debit >= 0),
  credit      BIGINT NOT NULL CHECK (credit >= 0),
  balance     BIGINT, -- after it; NULL where the gateway does not tell
  currency    TEXT NOT NULL,
  kind        TEXT NOT NULL, -- of what it came from, in the gateway's word
  source_id   TEXT NOT NULL,
  transfer_id TEXT NOT NULL, -- the payout's id at the gateway, empty for none
  payout_id   TEXT NOT NULL, -- the payout's id in its notes, empty for none
  amount      BIGINT NOT NULL, -- of what it came from, without fees
  fees        BIGINT NOT NULL, -- this and the next two may come late
  tax         BIGINT NOT NULL,
  utr         TEXT NOT NULL,
  first_told  TEXT NOT NULL, -- what may not change of it, when it was first read
  last_told   TEXT NOT NULL, -- and when it was last read
  seen_at     BIGINT NOT NULL, -- when the last reading that found it began
  missing     BIGINT NOT NULL CHECK (missing IN (0, 1)) -- a later reading did not find it any more
) /* clustered */;

CREATE INDEX statement_lines_at ON statement_lines (at, id);
CREATE INDEX statement_lines_of_transfer ON statement_lines (transfer_id) WHERE transfer_id <> '';
CREATE INDEX statement_lines_of_payout ON statement_lines (payout_id) WHERE payout_id <> '';
CREATE INDEX statement_lines_changed ON statement_lines (at) WHERE first_told <> last_told OR missing = 1;

-- Days that were read to their end, after they had ended.
CREATE TABLE statement_days (
  starts_at BIGINT PRIMARY KEY,
  ends_at   BIGINT NOT NULL,
  read_at   BIGINT NOT NULL, -- when the reading began
  lines     BIGINT, -- NULL before they were compared
  opening   BIGINT, -- the balances before the first line and after the last one; NULL where none are told
  closing   BIGINT
) /* clustered */;

-- Where the statement and the book do not agree. One that is gone was not found again; one that is settled
-- was explained by a person, and opens again if it comes to say something else.
CREATE TABLE differences (
  id         TEXT PRIMARY KEY, -- made of kind and subject
  kind       TEXT NOT NULL,
  subject    TEXT NOT NULL, -- a payout, a transfer of the gateway, a line, or a day
  payout_id  TEXT NOT NULL, -- empty for none
  detail     TEXT NOT NULL,
  at         BIGINT NOT NULL, -- when it happened
  at_gateway BIGINT NOT NULL, -- what the gateway took, less what it gave back
  in_book    BIGINT NOT NULL,
  first_seen BIGINT NOT NULL,
  last_seen  BIGINT NOT NULL,
  gone_at    BIGINT,
  settled_at BIGINT
) /* clustered */;

CREATE INDEX differences_open ON differences (first_seen, id, kind) WHERE gone_at IS NULL AND settled_at IS NULL;

-- Each comparison of a period, with its sums.
CREATE TABLE reconciliations (
  id        TEXT PRIMARY KEY,
  starts_at BIGINT NOT NULL,
  ends_at   BIGINT NOT NULL,
  daily     BIGINT NOT NULL CHECK (daily IN (0, 1)), -- the service did it by itself
  ended_at  BIGINT NOT NULL,
  result    TEXT NOT NULL
) /* clustered */;

CREATE INDEX reconciliations_daily ON reconciliations (ends_at) WHERE daily = 1;

-- Whose turn it is to reconcile, and when it is to be tried again after failures.
CREATE TABLE reconcile_turn (
  id        BIGINT PRIMARY KEY CHECK (id = 1),
  holder    TEXT NOT NULL,
  until     BIGINT NOT NULL,
  failures  BIGINT NOT NULL,
  due_at    BIGINT NOT NULL,
  looked_at BIGINT NOT NULL -- when the open differences were last looked at again
) /* clustered */;

INSERT INTO reconcile_turn (id, holder, until, failures, due_at, looked_at) VALUES (1, '', 0, 0, 0, 0);

-- The clearing account by time: what the book says went out through the gateway, and came back.
CREATE INDEX transfers_of_gateway ON transfers (at, seller_id, number) WHERE kind IN ('payout_paid', 'payout_return');
