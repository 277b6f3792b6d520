-- Transfers that the gateway made under references of ours, and that no payout in the book could be made
-- of. A person has to look at each, and says so with settled = 1.
CREATE TABLE strays (
  gateway_id TEXT PRIMARY KEY,
  reference  TEXT NOT NULL, -- the payout's id
  seller_id  TEXT NOT NULL, -- as the gateway tells it; empty where it does not
  amount     BIGINT NOT NULL, -- that the bank was sent
  progress   TEXT NOT NULL, -- when it was found
  made_at    BIGINT,
  found_at   BIGINT NOT NULL,
  why        TEXT NOT NULL,
  settled    BIGINT NOT NULL CHECK (settled IN (0, 1))
) /* clustered */;
