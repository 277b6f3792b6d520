package store

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
)

// bankAccountFields are those of a bank account's row but for its MAC.
var bankAccountFields = fields[bank.Account]{
	asText("id", primaryKey, func(a *bank.Account) *bank.ID { return &a.ID }),
	asText("seller_id", insertOnly, func(a *bank.Account) *string { return &a.Seller }),
	asFlag("is_current", insertOnly, func(a *bank.Account) *bool { return &a.Current }),
	asText("holder", insertOnly, func(a *bank.Account) *string { return &a.Holder }),
	asText("ifsc", insertOnly, func(a *bank.Account) *bank.IFSC { return &a.IFSC }),
	asText("last4", insertOnly, func(a *bank.Account) *string { return &a.Last4 }),
	asText("encrypted_number", insertOnly, func(a *bank.Account) *string { return &a.EncryptedNumber }),
	asText("status", insertOnly, func(a *bank.Account) *bank.Status { return &a.Status }),
	asText("reason", insertOnly, func(a *bank.Account) *string { return &a.Reason }),
	asText("registered_name", insertOnly, func(a *bank.Account) *string { return &a.RegisteredName }),
	asNumber("name_score", insertOnly, func(a *bank.Account) *int { return &a.NameScore }),
	asText("beneficiary", insertOnly, func(a *bank.Account) *string { return &a.Beneficiary }),
	asText("gateway", insertOnly, func(a *bank.Account) *gateway.Name { return &a.Gateway }),
	asText("verification_id", insertOnly, func(a *bank.Account) *string { return &a.VerificationID }),
	asNumber("tries", insertOnly, func(a *bank.Account) *int { return &a.Tries }),
	orNull("due_at", insertOnly, func(a *bank.Account) *time.Time { return &a.DueAt }),
	asTime("created_at", insertOnly, func(a *bank.Account) *time.Time { return &a.CreatedAt }),
	orNull("verified_at", insertOnly, func(a *bank.Account) *time.Time { return &a.VerifiedAt }),
}

// storedAccountFields are with the row's MAC.
var storedAccountFields = within(func(a *storedAccount) *bank.Account { return &a.Account }, bankAccountFields,
	asText("mac", insertOnly, func(a *storedAccount) *string { return &a.mac }))

var bankAccountTable = &table[storedAccount]{
	name: "bank_accounts", texts: &sync.Map{},
	columns: storedAccountFields,
}

var (
	selectBankAccounts   = `SELECT ` + bankAccountFields.names("") + ` FROM bank_accounts `
	selectStoredAccounts = `SELECT ` + storedAccountFields.names("") + ` FROM bank_accounts `
)

// BankAccount finds the seller's current account.
func (db *DB) BankAccount(ctx context.Context, seller string) (bank.Account, error) {
	return db.bankAccount(ctx, `WHERE seller_id = $1 AND is_current = 1`, seller)
}

// BankAccountByID finds any account ever registered.
func (db *DB) BankAccountByID(ctx context.Context, id bank.ID) (bank.Account, error) {
	return db.bankAccount(ctx, `WHERE id = $1`, string(id))
}

func (db *DB) bankAccount(ctx context.Context, where, key string) (bank.Account, error) {
	var a bank.Account
	ok, err := found(db.queryRow(ctx, selectBankAccounts+where, key).Scan(bankAccountFields.dest(&a)...))
	if err == nil && !ok {
		err = bank.ErrNone
	}
	return a, err
}

var accountsInReview = selectBankAccounts + `WHERE status = 'review' AND is_current = 1 ORDER BY id LIMIT $1 + 0`

// AccountsInReview lists current accounts that wait for a person, oldest first.
func (db *DB) AccountsInReview(ctx context.Context, limit int) ([]bank.Account, error) {
	return readAll(ctx, db.query, accountsInReview, []any{limit}, bankAccountFields.dest)
}

// CurrentBankAccount finds the seller's current account, which stays as it is until the transaction ends.
func (tx *Tx) CurrentBankAccount(ctx context.Context, seller string) (bank.Account, error) {
	var a bank.Account
	ok, err := tx.one(ctx, selectBankAccounts+`WHERE seller_id = $1 AND is_current = 1`+tx.dialect.forUpdate("bank_accounts"), []any{seller}, bankAccountFields.dest(&a)...)
	if err == nil && !ok {
		err = bank.ErrNone
	}
	return a, err
}

// InsertBankAccount adds an account unless there is one with its id. The current one before it is left as it is, but for
// its verification, which nobody waits for any more.
func (tx *Tx) InsertBankAccount(ctx context.Context, a bank.Account) (bool, error) {
	if a.Current {
		_, err := tx.exec(ctx, `UPDATE bank_accounts SET mac = '', is_current = 0, due_at = NULL WHERE seller_id = $1 AND is_current = 1`, a.Seller)
		if err != nil {
			return false, err
		}
	}
	mac, err := tx.signer.accountMAC(a)
	if err != nil {
		return false, err
	}
	return tx.write(ctx, bankAccountTable.insertsMissing(tx.dialect, []storedAccount{{a, mac}}))
}

// LeaseDueVerifications leases accounts whose verification is due, the longest due first.
func (tx *Tx) LeaseDueVerifications(ctx context.Context, now, until time.Time, limit int) ([]bank.ID, error) {
	return readAll(ctx, tx.each, `WITH due AS MATERIALIZED (
			SELECT id FROM bank_accounts WHERE due_at <= $1 ORDER BY due_at LIMIT $3 + 0`+tx.dialect.skipLocked+`)
		UPDATE bank_accounts SET due_at = $2 WHERE id IN (SELECT id FROM due) RETURNING id`,
		[]any{micros(now), micros(until), limit}, itself[bank.ID])
}

// SaveVerification records progress from seen to a. The account must be as it was seen in all that the journal records,
// because the entry tells what differs from that. A notification that came since seen was read is kept: its due time is the earlier one.
func (tx *Tx) SaveVerification(ctx context.Context, seen, a bank.Account) (bool, error) {
	mac, err := tx.signer.accountMAC(a)
	if err != nil {
		return false, err
	}
	return tx.execOne(ctx, `UPDATE bank_accounts SET mac = $17, status = $3, reason = $4, registered_name = $5, name_score = $6,
		verification_id = $7, tries = $8, verified_at = $9,
		due_at = CASE WHEN CAST($10 AS BIGINT) IS NOT NULL AND due_at < $11 THEN due_at ELSE CAST($10 AS BIGINT) END
		WHERE id = $1 AND status = $2 AND beneficiary = $12 AND is_current = 1
		AND gateway = $18 AND reason = $13 AND registered_name = $14 AND name_score = $15 AND verification_id = $16`,
		string(a.ID), string(seen.Status), string(a.Status), a.Reason, a.RegisteredName, a.NameScore,
		a.VerificationID, a.Tries, nullMicros(a.VerifiedAt), nullMicros(a.DueAt), nullMicros(seen.DueAt),
		seen.Beneficiary, seen.Reason, seen.RegisteredName, seen.NameScore, seen.VerificationID, mac, string(seen.Gateway))
}

// RescheduleVerification makes the next step of a verification due now, if it is under way.
func (tx *Tx) RescheduleVerification(ctx context.Context, verificationID string, now time.Time) (bool, error) {
	// due_at > 0 keeps to the index of what is under way, which is little.
	return tx.execOne(ctx, `UPDATE bank_accounts SET due_at = $2
		WHERE due_at > 0 AND verification_id = $1 AND verification_id <> ''`, verificationID, micros(now))
}

// maxVerdicts bounds how many verdicts about a seller's accounts are read, the newest ones.
const maxVerdicts = 1000

// HasVerifiedAccount reports whether the journal says of an account of the seller, the current one or a former one, that it was verified and
// not rejected since. It fails with [ledger.ErrTampered] if the transaction has read another verdict in the journal.
func (tx *Tx) HasVerifiedAccount(ctx context.Context, seller string) (bool, error) {
	isVerified := false
	judged := map[string]bool{}
	var verified, rejected []int64 // the numbers of the entries
	err := tx.each(ctx, `SELECT v.subject, v.type, v.number FROM entries a JOIN entries v ON v.subject = a.subject AND v.owner = a.owner
		WHERE a.owner = $1 AND a.type = 'bank_account.added' AND v.type IN ('bank_account.verified', 'bank_account.rejected')
		ORDER BY v.number DESC LIMIT $2 + 0`, []any{seller, maxVerdicts}, func(r *row) {
		var subject string
		var verdict ledger.Type
		var number int64
		r.Scan(&subject, &verdict, &number)
		isVerified = isVerified || !judged[subject] && verdict == ledger.BankAccountVerified
		judged[subject] = true
		if verdict == ledger.BankAccountVerified {
			verified = append(verified, number)
		} else {
			rejected = append(rejected, number)
		}
	})
	slices.Sort(verified)
	slices.Sort(rejected)
	isCut := len(verified)+len(rejected) >= maxVerdicts
	for _, l := range []ledger.Listing{
		{Type: ledger.BankAccountVerified, Numbers: verified, Cut: isCut}, {Type: ledger.BankAccountRejected, Numbers: rejected, Cut: isCut},
	} {
		if err == nil {
			err = tx.reads.list(seller, journalListing{l, math.MaxInt64})
		}
	}
	return isVerified, err
}

// SetBeneficiary records what a gateway calls the account, if its name, gateway, verification and status are as they were seen.
func (tx *Tx) SetBeneficiary(ctx context.Context, seen, a bank.Account) (bool, error) {
	return tx.execOne(ctx, `UPDATE bank_accounts SET beneficiary = $2, gateway = $3, verification_id = $4
		WHERE id = $1 AND beneficiary = $5 AND gateway = $6 AND verification_id = $7 AND status = $8`,
		string(a.ID), a.Beneficiary, string(a.Gateway), a.VerificationID, seen.Beneficiary, string(seen.Gateway), seen.VerificationID, string(seen.Status))
}
