-- What operators keep an eye on is rare, so that these indexes hold next to nothing.
CREATE INDEX payouts_unclear ON payouts (state) WHERE state IN ('unknown', 'held');
CREATE INDEX payouts_contradicted ON payouts (id) WHERE contradiction <> '';
