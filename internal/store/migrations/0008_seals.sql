-- A seal is made with a key that is not in the database: of all that a payout was made with, and of what decides
-- whether and where a bank account is paid. Empty where a binary wrote the row that knows nothing of seals.
ALTER TABLE payouts ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE bank_accounts ADD COLUMN seal TEXT NOT NULL DEFAULT '';
