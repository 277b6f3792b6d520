-- A hash of what a paid payout says and no transfer tells: the account it went to, and what the gateway and
-- the bank call it. Empty before that is known, and where a binary wrote it that knows nothing of records.
ALTER TABLE payouts ADD COLUMN record TEXT NOT NULL DEFAULT '';
