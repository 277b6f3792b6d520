-- Who somebody is at an identity provider: the issuer and its subject, never the e-mail address.
CREATE TABLE identities (
  issuer     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  user_id    TEXT NOT NULL REFERENCES users (id),
  email      TEXT NOT NULL, -- as the provider told it when it was linked
  created_at BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
) /* clustered */;

CREATE INDEX identities_of_user ON identities (user_id);

-- Sign-ins through a provider that came back. Each comes back once; what is too old is refused anyway.
CREATE TABLE used_sign_ins (
  state      TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL
) /* clustered */;

CREATE INDEX used_sign_ins_old ON used_sign_ins (expires_at);

-- What a user is shown of a session, to tell it from others.
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN address TEXT NOT NULL DEFAULT '';

-- Admins are few, and counted before one is taken away.
CREATE INDEX users_admins ON users (id) WHERE role = 'admin';

-- What admins decided, and why. Rows are only ever inserted, each in the transaction that did it.
CREATE TABLE decisions (
  id       TEXT PRIMARY KEY,
  at       BIGINT NOT NULL,
  admin_id TEXT NOT NULL REFERENCES users (id),
  action   TEXT NOT NULL,
  subject  TEXT NOT NULL, -- the id of what it is about
  note     TEXT NOT NULL
) /* clustered */;

CREATE INDEX decisions_about ON decisions (subject, id);

CREATE INDEX sales_of_seller ON sales (seller_id, occurred_at, id);
-- With all that is asked about pending sales, so that they are summed without a look at each.
CREATE INDEX sales_pending ON sales (seller_id, available_at, released_at, amount, refunded) WHERE released_at IS NULL;

-- What an operator has in hand when somebody asks about a payout.
CREATE INDEX payouts_by_gateway_id ON payouts (gateway_id) WHERE gateway_id <> '';
CREATE INDEX payouts_by_utr ON payouts (utr) WHERE utr <> '';

-- What waits for a person is rare.
CREATE INDEX bank_accounts_in_review ON bank_accounts (id) WHERE status = 'review' AND is_current = 1;
CREATE INDEX strays_open ON strays (gateway_id) WHERE settled = 0;
