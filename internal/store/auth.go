package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/event"
	"bursar/internal/ledger"
)

const userColumns = `u.id, u.name, u.email, u.role, u.verified, u.suspended, u.password_hash,
	u.avatar, u.bio, u.website, u.created_at, COALESCE(u.external_id, ''), u.email_key, u.mac`

// accessDecided is what was decided last about a user's role and suspension; empty where nobody decided. An old copy of a user's
// row has the MAC of its time, and differs from what was decided since.
const accessDecided = `COALESCE((SELECT d.data FROM entries d WHERE d.subject = u.id AND d.owner = u.id AND d.type = 'admin.decided'
	AND d.data LIKE '%` + changesAccess + `%' ORDER BY d.number DESC LIMIT 1), '')`

// changesAccess is what the entry of such a decision holds.
const changesAccess = `"action":"change_access"`

const selectUser = `SELECT ` + userColumns + `, ` + accessDecided + ` FROM users u `

// dest lists where userColumns are scanned to.
func (u *storedUser) dest() []any {
	return []any{
		&u.ID, &u.Name, &u.Email, &u.Role,
		flagged{&u.Verified},
		flagged{&u.Suspended},
		&u.PasswordHash,
		&u.Profile.Avatar, &u.Profile.Bio, &u.Profile.Website,
		instant{&u.CreatedAt},
		&u.ExternalID, &u.emailKey, &u.mac,
	}
}

// UserByEmail finds a user by the key of an e-mail address, if there is one. It fails with [auth.ErrTampered] if the row
// is not what the service wrote, and returns the user all the same.
func (db *DB) UserByEmail(ctx context.Context, emailKey string) (auth.User, bool, error) {
	return db.userBy(ctx, "email_key", emailKey)
}

const userWithStatsOf = `SELECT ` + userColumns + `, COALESCE(b.sales, 0), COALESCE(b.earned, 0), u.products_listed, u.id
	FROM users u LEFT JOIN journals b ON b.owner = u.id WHERE u.id `

// UserWithStats finds a user and the figures to show with it; zeros for one who never sold.
func (db *DB) UserWithStats(ctx context.Context, id string) (auth.User, auth.Stats, bool, error) {
	var u storedUser
	var s auth.Stats
	ok, err := found(db.rowOf(ctx, userWithStatsOf, id).Scan(append(u.dest(), &s.TotalSales, &s.TotalEarnings, &s.ProductsListed, &id)...))
	return u.User, s, ok, err
}

// FindUsers lists users whose e-mail address begins so, by the keys of addresses, up to limit.
func (db *DB) FindUsers(ctx context.Context, emailPrefix string, limit int) ([]auth.User, error) {
	return db.users(ctx, `SELECT `+userColumns+` FROM users u WHERE u.email_key >= $1 AND u.email_key < $2 ORDER BY u.email_key LIMIT $3 + 0`,
		emailPrefix, emailPrefix+afterASCII, limit)
}

// users reads the userColumns, and checks no MAC.
func (db *DB) users(ctx context.Context, query string, args ...any) ([]auth.User, error) {
	var all []auth.User
	err := db.query(ctx, query, args, func(r *row) {
		var u storedUser
		r.Scan(u.dest()...)
		all = append(all, u.User)
	})
	return all, err
}

// afterASCII sorts behind all that an e-mail address is made of.
const afterASCII = "\x7f"

// sessionOf reads what was decided of admins alone: each request pays for it.
const sessionOf = `SELECT u.id, u.email, u.email_key, u.role, u.password_hash, u.verified, COALESCE(u.external_id, ''), u.mac, s.user_id, s.created_at, s.expires_at, s.cap_at, s.methods,
	s.authenticated_at, s.mac, CASE u.role WHEN 'admin' THEN ` + accessDecided + ` ELSE '' END, s.id
	FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.ended_at IS NULL AND u.suspended = 0 AND s.id `

// checkDecided fails with [auth.ErrTampered] unless the service wrote the decision that a user's row agrees with, and the user's
// journal lacks no later entry. Without it, an old row passes once the decision against it is edited or deleted. No result is kept: the
// journal may be changed at any time. All is read at one moment, or it could be changed in between.
func (db *DB) checkDecided(ctx context.Context, u storedUser) error {
	known := db.tails.end(u.ID)
	err := db.view(ctx, func(tx *Tx) error { return tx.checkDecided(ctx, u, known) })
	if errors.Is(err, ledger.ErrTampered) {
		return auth.ErrTampered.Because(err)
	}
	return err
}

func (tx *Tx) checkDecided(ctx context.Context, u storedUser, known journalEnd) error {
	from := int64(0)
	if u.decided != "" {
		entries, err := tx.signer.checkedEntries(ctx, tx.each, entriesAboutColumns+` WHERE e.subject = $1 AND e.owner >= $1 AND e.owner <= $1 AND e.data = $2
			ORDER BY e.number DESC LIMIT 1`, u.ID, u.decided)
		if err != nil {
			return err
		}
		for _, e := range entries {
			from = e.Number
		}
	}
	head, err := tx.head(ctx, u.ID)
	if err != nil {
		return err
	}
	_, err = tx.signer.checkNewest(head, max(from, beforeReach(head)), ledger.Head{}, math.MaxInt64, pagesOf(ctx, tx.each, u.ID), func(e ledger.Entry) error {
		if e.Number > from && e.Subject == u.ID && e.Type == ledger.AdminDecided && strings.Contains(e.Data, changesAccess) {
			return ledger.ErrTampered.Because(fmt.Errorf("entry %d of %s, which changes the user's access, %w", e.Number, u.ID, ledger.ErrNotListed))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.checkEnds(ctx, head, known)
}

// LiveSession finds the user behind a session that is alive, in one read by key. It fails with [auth.ErrTampered] if the
// user is not what the service wrote, and says who it is all the same.
func (db *DB) LiveSession(ctx context.Context, session string, now time.Time) (auth.Principal, bool, error) {
	p, live, err := db.liveSession(ctx, session, now)
	if errors.Is(err, ledger.ErrNotListed) { // the access of an admin may have been changed since their row was read
		p, live, err = db.liveSession(ctx, session, now)
	}
	return p, live, err
}

func (db *DB) liveSession(ctx context.Context, session string, now time.Time) (auth.Principal, bool, error) {
	var s storedSession
	ok, err := found(db.rowOf(ctx, sessionOf, session).Scan(s.dest()...))
	if err != nil || !ok || !s.isLive(now) {
		return auth.Principal{}, false, err
	}
	keys, err := db.signer.get()
	if err == nil {
		err = s.check(keys)
	}
	if err == nil && s.user.Role == auth.Admin {
		err = db.checkDecided(ctx, s.user)
	}
	return s.principal(), true, err
}

// LiveSession finds the user behind a session as [DB.LiveSession] does, but does not ask the journal what was decided about an admin.
func (tx *Tx) LiveSession(ctx context.Context, session string, now time.Time) (auth.Principal, bool, error) {
	var s storedSession
	in, args := tx.dialect.oneOf(nil, []string{session}) // as a unit of work asks
	ok, err := tx.one(ctx, sessionOf+in, args, s.dest()...)
	if err != nil || !ok || !s.isLive(now) {
		return auth.Principal{}, false, err
	}
	keys, err := tx.signer.get()
	if err != nil {
		return auth.Principal{}, false, err
	}
	return s.principal(), true, s.check(keys)
}

// storedSession is a session that has not ended, with its user.
type storedSession struct {
	auth.Session
	methods, mac string
	user         storedUser
}

// dest is where a row of sessionOf goes.
func (s *storedSession) dest() []any {
	u := &s.user
	return []any{
		&u.ID, &u.Email, &u.emailKey, &u.Role, &u.PasswordHash,
		flagged{&u.Verified},
		&u.ExternalID, &u.mac,
		&s.UserID,
		instant{&s.CreatedAt},
		instant{&s.ExpiresAt},
		instant{&s.CapAt},
		&s.methods,
		instant{&s.AuthenticatedAt},
		&s.mac,
		&u.decided, &s.ID,
	}
}

func (s *storedSession) isLive(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Before(s.CapAt)
}

// check fails with [auth.ErrTampered] unless the service wrote the session and its user.
func (s *storedSession) check(keys ledger.Keys) error {
	s.Methods = strings.Split(s.methods, " ")
	if !ledger.CheckMAC(keys, s.mac, sessionMessage(s.Session)) {
		return auth.ErrTampered.Because(auth.ErrSessionChanged)
	}
	return s.user.check(keys)
}

func (s *storedSession) principal() auth.Principal {
	u := &s.user
	return auth.Principal{UserID: u.ID, Email: u.Email, Role: u.Role, Session: s.ID, Verified: u.Verified}
}

// InsertUser adds u, or fails with [auth.ErrEmailTaken] or [auth.ErrEmailReserved].
func (tx *Tx) InsertUser(ctx context.Context, u auth.User) error {
	inserted, err := tx.insertUser(ctx, auth.Imported{User: u}, "(email_key)")
	if err == nil && !inserted {
		err = auth.ErrEmailTaken
	}
	return err
}

// insertUser adds a user, and reports whether it did: it does not where another row has the same of what is named. It fails with
// [auth.ErrEmailReserved], and has added nothing then.
func (tx *Tx) insertUser(ctx context.Context, i auth.Imported, unique string) (bool, error) {
	u := i.User
	inserted, err := tx.execSigned(ctx, userMessage(u), `INSERT INTO users
		(id, name, email, email_key, password_hash, role, verified, suspended, avatar, bio, website, products_listed, created_at, external_id, imported_as, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $13, $14, $15) ON CONFLICT `+unique+` DO NOTHING`,
		u.ID, u.Name, u.Email, auth.EmailKey(u.Email), u.PasswordHash, string(u.Role), flag(u.Verified), flag(u.Suspended),
		u.Profile.Avatar, u.Profile.Bio, u.Profile.Website, micros(u.CreatedAt), nullText(u.ExternalID), i.Fingerprint)
	if err != nil || !inserted {
		return false, err
	}
	// Asked for after the insert, which waited for a change that gives the address up.
	err = tx.CheckReserved(ctx, u.ID, u.Email)
	if errors.Is(err, auth.ErrEmailReserved) {
		if _, failed := tx.exec(ctx, `DELETE FROM users WHERE id = $1`, u.ID); failed != nil {
			err = failed
		}
	}
	if err != nil {
		return false, err
	}
	if u.Role == auth.Seller {
		err = tx.queueEvents(ctx, sellerRegistered(u))
	}
	return true, err
}

// sellerRegistered is the event of a user who became a seller.
func sellerRegistered(u auth.User) []event.Queued {
	return []event.Queued{{Owner: u.ID, Type: event.SellerRegistered}}
}

// SetPasswordHash replaces a user's hash if it is still old, and reports whether it was.
func (tx *Tx) SetPasswordHash(ctx context.Context, userID, old, hash string) (bool, error) {
	return tx.changeUser(ctx, userID, func(u *auth.User) bool {
		unchanged := u.PasswordHash == old
		u.PasswordHash = hash
		return unchanged
	})
}

// SetProfile changes a user's name and profile, and leaves what is nil.
func (tx *Tx) SetProfile(ctx context.Context, userID string, change auth.ProfileChange) error {
	_, err := tx.exec(ctx, `UPDATE users SET name = COALESCE($2, name), avatar = COALESCE($3, avatar),
		bio = COALESCE($4, bio), website = COALESCE($5, website) WHERE id = $1`,
		userID, change.Name, change.Avatar, change.Bio, change.Website)
	return err
}

// Admins lists who is an admin and not suspended, and keeps it so until the transaction ends.
func (tx *Tx) Admins(ctx context.Context) ([]string, error) {
	return readAll(ctx, tx.each, `SELECT id FROM users WHERE role = 'admin' AND suspended = 0 ORDER BY id`+tx.dialect.forUpdate("users"), nil, itself[string])
}

// SetUserAccess changes a user's role and suspension, and reports whether there is such a user who did not delete the account.
func (tx *Tx) SetUserAccess(ctx context.Context, userID string, role auth.Role, suspended bool) (bool, error) {
	return tx.changeUser(ctx, userID, func(u *auth.User) bool {
		u.Role, u.Suspended = role, suspended
		return !u.Deleted()
	})
}

// SetProductsListed records how many products a seller has listed, and reports whether there is such a seller.
func (tx *Tx) SetProductsListed(ctx context.Context, seller string, n int64) (bool, error) {
	return tx.execOne(ctx, `UPDATE users SET products_listed = $2 WHERE id = $1 AND role IN ('seller', 'admin')`, seller, n)
}

// UserUnchanged reports whether a user still has that hash and is not suspended, and keeps it so
// until the transaction ends.
func (tx *Tx) UserUnchanged(ctx context.Context, userID, passwordHash string) (bool, error) {
	var one int
	return tx.one(ctx, `SELECT 1 FROM users WHERE id = $1 AND password_hash = $2 AND suspended = 0`+tx.dialect.forUpdate("users"),
		[]any{userID, passwordHash}, &one)
}

// InsertSession adds s.
func (tx *Tx) InsertSession(ctx context.Context, s auth.Session) error {
	_, err := tx.execSigned(ctx, sessionMessage(s), `INSERT INTO sessions
		(id, user_id, created_at, expires_at, cap_at, counter, refreshes, ended_at, end_reason, agent, address, methods, authenticated_at, mac)
		VALUES ($1, $2, $3, $4, $5, 0, '', NULL, '', $6, $7, $8, $9, $10)`,
		s.ID, s.UserID, micros(s.CreatedAt), micros(s.ExpiresAt), micros(s.CapAt), s.Agent, s.Address, strings.Join(s.Methods, " "),
		micros(s.AuthenticatedAt))
	return err
}

// LiveSessions lists a user's sessions that have not ended or expired by now, newest first, up to limit.
func (db *DB) LiveSessions(ctx context.Context, userID string, now time.Time, limit int) ([]auth.SessionInfo, error) {
	var all []auth.SessionInfo
	err := db.query(ctx, `SELECT id, created_at, refreshes, agent, address, methods FROM sessions
		WHERE user_id = $1 AND ended_at IS NULL AND expires_at > $2 ORDER BY id DESC LIMIT $3 + 0`, []any{userID, micros(now), limit}, func(r *row) {
		var s auth.SessionInfo
		var refreshes []time.Time
		var methods string
		r.Scan(&s.ID, instant{&s.CreatedAt}, refreshInstants{&refreshes}, &s.Agent, &s.Address, &methods)
		s.Methods = strings.Fields(methods)
		s.LastUsedAt = s.CreatedAt
		if len(refreshes) > 0 {
			s.LastUsedAt = refreshes[0]
		}
		all = append(all, s)
	})
	return all, err
}

// Digits of an instant among a session's refreshes, and how many refreshes are kept.
const (
	refreshDigits = 16
	refreshesKept = 32
)

// refreshInstant has a fixed width, so that texts of such instants compare as their first ones do.
func refreshInstant(t time.Time) string { return fmt.Sprintf("%0*d", refreshDigits, micros(t)) }

// refreshInstants scans a session's refreshes.
type refreshInstants struct{ at *[]time.Time }

func (r refreshInstants) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("a session's refreshes stored as %T", src)
	}
	for ; len(text) >= refreshDigits; text = text[refreshDigits:] {
		n, err := strconv.ParseInt(text[:refreshDigits], 10, 64)
		if err != nil {
			return fmt.Errorf("a session's refreshes: %w", err)
		}
		*r.at = append(*r.at, time.UnixMicro(n).UTC())
	}
	return nil
}

// AdvanceSession counts a refresh of a live session whose counter is still counter: of any number at
// once, this statement lets one through. Earlier refreshes stay on record while they follow each other
// within the grace; the one that comes after a longer pause is the first again, so that an ordinary
// session keeps one.
func (tx *Tx) AdvanceSession(
	ctx context.Context, session string, counter int64, now, expiresAt time.Time, grace time.Duration,
) (userID string, advanced bool, err error) {
	advanced, err = tx.one(ctx, advanceSession, advanceSessionArgs(session, counter, now, expiresAt, grace), &userID)
	return userID, advanced, err
}

// AdvanceSession is [Tx.AdvanceSession] by itself. On PostgreSQL many share a commit.
func (s authStore) AdvanceSession(
	ctx context.Context, session string, counter int64, now, expiresAt time.Time, grace time.Duration,
) (userID string, advanced bool, err error) {
	if s.statements == nil {
		err = s.Update(ctx, func(tx *Tx) (err error) {
			userID, advanced, err = tx.AdvanceSession(ctx, session, counter, now, expiresAt, grace)
			return err
		})
		return userID, advanced, err
	}
	advanced, err = s.statements.one(ctx, session, advanceSession, advanceSessionArgs(session, counter, now, expiresAt, grace), &userID)
	return userID, advanced, err
}

const advanceSession = `UPDATE sessions SET counter = counter + 1,
	refreshes = CASE WHEN refreshes > $5 THEN substr($6 || refreshes, 1, $7) ELSE $6 END,
	expires_at = CASE WHEN cap_at < $4 THEN cap_at ELSE $4 END
	WHERE id = $1 AND counter = $2 AND ended_at IS NULL AND expires_at > $3
	AND EXISTS (SELECT 1 FROM users u WHERE u.id = sessions.user_id AND u.suspended = 0)
	RETURNING user_id`

func advanceSessionArgs(session string, counter int64, now, expiresAt time.Time, grace time.Duration) []any {
	return []any{
		session, counter, micros(now), micros(expiresAt),
		refreshInstant(now.Add(-grace)), refreshInstant(now), refreshDigits * refreshesKept,
	}
}

// Session finds a session, if it is there. It fails with [auth.ErrTampered] if the service did not write who signed in, when or how. The
// lock is for the same reason as that of [Tx.Idempotency].
func (tx *Tx) Session(ctx context.Context, id string) (auth.Session, bool, error) {
	s := auth.Session{ID: id}
	var methods, mac string
	ok, err := tx.one(ctx, `SELECT user_id, methods, mac, created_at, authenticated_at, expires_at, cap_at, counter, refreshes, ended_at, end_reason
		FROM sessions WHERE id = $1`+tx.dialect.forUpdate("sessions"), []any{id},
		&s.UserID, &methods, &mac, instant{&s.CreatedAt}, instant{&s.AuthenticatedAt}, instant{&s.ExpiresAt}, instant{&s.CapAt}, &s.Counter, refreshInstants{&s.Refreshes},
		instant{&s.EndedAt}, &s.EndReason)
	if s.Methods = strings.Split(methods, " "); err == nil && ok {
		err = tx.signer.checkRow(mac, sessionMessage(s))
	}
	return s, ok, err
}

// EndSession ends a session that has not ended.
func (tx *Tx) EndSession(ctx context.Context, id, reason string, now time.Time) error {
	_, err := tx.exec(ctx, `UPDATE sessions SET ended_at = $3, end_reason = $2 WHERE id = $1 AND ended_at IS NULL`, id, reason, micros(now))
	return err
}

// EndSessionOf ends a session that has not ended if it is the user's, and reports whether it did.
func (tx *Tx) EndSessionOf(ctx context.Context, userID, id, reason string, now time.Time) (bool, error) {
	return tx.execOne(ctx, `UPDATE sessions SET ended_at = $4, end_reason = $3 WHERE id = $2 AND user_id = $1 AND ended_at IS NULL`,
		userID, id, reason, micros(now))
}

// EndUserSessions ends all sessions of a user that have not ended, but for the one to keep, if any.
func (tx *Tx) EndUserSessions(ctx context.Context, userID, keep, reason string, now time.Time) error {
	_, err := tx.exec(ctx, `UPDATE sessions SET ended_at = $4, end_reason = $3 WHERE user_id = $1 AND id <> $2 AND ended_at IS NULL`,
		userID, keep, reason, micros(now))
	return err
}

// EndUnprovenSessions ends a user's sessions in which the user never proved who they are.
func (tx *Tx) EndUnprovenSessions(ctx context.Context, userID, reason string, now time.Time) error {
	_, err := tx.exec(ctx, `UPDATE sessions SET ended_at = $3, end_reason = $2 WHERE user_id = $1 AND authenticated_at = 0 AND ended_at IS NULL`,
		userID, reason, micros(now))
	return err
}

// TakeThrottle counts one attempt against a bucket in the statement that checks it, so that no number of attempts at once gets through
// on one place. A bucket that is more than twice as far ahead as it can be, and ten minutes, is of an instance whose clock was wrong. It would be full for
// as long, so it counts as empty. An instance whose clock is a little behind empties none.
func (tx *Tx) TakeThrottle(ctx context.Context, bucket string, now time.Time, cost, burst time.Duration) (time.Time, bool, error) {
	var virtual time.Time
	counted, err := tx.one(ctx, `INSERT INTO throttles (bucket, virtual_at) VALUES ($1, $3)
		ON CONFLICT (bucket) DO UPDATE SET
		virtual_at = CASE WHEN throttles.virtual_at > $2 AND throttles.virtual_at <= $5 THEN throttles.virtual_at + $4 ELSE $3 END
		WHERE throttles.virtual_at <= $5 OR throttles.virtual_at > $6
		RETURNING virtual_at`, []any{
		bucket, micros(now), micros(now.Add(cost)), cost.Microseconds(), micros(now.Add(burst - cost)), micros(now.Add(2*burst + maxClockDifference)),
	}, instant{&virtual})
	if err != nil || counted {
		return virtual, counted, err
	}
	_, err = tx.one(ctx, `SELECT virtual_at FROM throttles WHERE bucket = $1`, []any{bucket}, instant{&virtual})
	return virtual, false, err
}

// ThrottledAt is the virtual times of those buckets that have one, by their names.
func (db *DB) ThrottledAt(ctx context.Context, buckets []string) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	in, args := db.dialect.oneOf(nil, buckets)
	err := db.query(ctx, `SELECT bucket, virtual_at FROM throttles WHERE bucket `+in, args, func(r *row) {
		var bucket string
		var virtual time.Time
		r.Scan(&bucket, instant{&virtual})
		all[bucket] = virtual
	})
	return all, err
}

// RefundThrottle takes one attempt back.
func (tx *Tx) RefundThrottle(ctx context.Context, bucket string, cost time.Duration) error {
	_, err := tx.exec(ctx, `UPDATE throttles SET virtual_at = virtual_at - $2 WHERE bucket = $1`, bucket, cost.Microseconds())
	return err
}

// ForgetThrottle empties a bucket.
func (tx *Tx) ForgetThrottle(ctx context.Context, bucket string) error {
	_, err := tx.exec(ctx, `DELETE FROM throttles WHERE bucket = $1`, bucket)
	return err
}

// Sweep deletes up to limit rows each of what no longer matters, and returns how many.
func (tx *Tx) Sweep(ctx context.Context, now, sessionsBefore, linksBefore time.Time, limit int) (swept int64, err error) {
	for _, s := range []struct {
		before time.Time
		rows   string
	}{
		{sessionsBefore, `sessions WHERE id IN (SELECT id FROM sessions WHERE cap_at < $1 ORDER BY cap_at`},
		{now, `throttles WHERE virtual_at < $1 AND bucket IN (SELECT bucket FROM throttles WHERE virtual_at < $1 ORDER BY virtual_at`},
		{now, `used_sign_ins WHERE state IN (SELECT state FROM used_sign_ins WHERE expires_at < $1 ORDER BY expires_at`},
		{now, `mail_tokens WHERE hash IN (SELECT hash FROM mail_tokens WHERE expires_at < $1 ORDER BY expires_at`},
		{linksBefore, `session_links WHERE hash IN (SELECT hash FROM session_links WHERE expires_at < $1 ORDER BY expires_at`},
	} {
		n, err := tx.exec(ctx, `DELETE FROM `+s.rows+` LIMIT $2 + 0`+tx.dialect.skipLocked+`)`, micros(s.before), limit)
		if err != nil {
			return 0, err
		}
		swept += n
	}
	return swept, nil
}
