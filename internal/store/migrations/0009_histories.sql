-- The head of the hash chain of a payout's events, which the payout's seal is of. Empty before the first, and where a
-- binary wrote them that knows nothing of it.
ALTER TABLE payouts ADD COLUMN history TEXT NOT NULL DEFAULT '';
