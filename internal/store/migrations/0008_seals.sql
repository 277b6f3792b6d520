-- A seal is made with a key that is not in the database: of what a payout was made with and what happened to it, and
-- of whether, where and why a bank account is paid. Empty where a binary wrote the row that knows nothing of seals.
ALTER TABLE payouts ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE bank_accounts ADD COLUMN seal TEXT NOT NULL DEFAULT '';

-- The head of the hash chain of a payout's events, which its seal is of. Empty before the first.
ALTER TABLE payouts ADD COLUMN history TEXT NOT NULL DEFAULT '';
