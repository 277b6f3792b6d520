package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/store"
)

// Purposes, as they are stored.
const (
	toVerify auth.MailPurpose = "verify_email"
	toReset  auth.MailPurpose = "reset_password"
	toChange auth.MailPurpose = "confirm_email"
)

func (b *bench) mailToken(hash string, purpose auth.MailPurpose) auth.MailToken {
	return auth.MailToken{
		Hash: hash, Purpose: purpose, UserID: "usr_1", From: auth.Device{Address: "203.0.113.7", Agent: "Firefox"},
		CreatedAt: b.now, ExpiresAt: b.now.Add(time.Hour),
	}
}

// keepToken adds a token, and its user where there is none.
func (b *bench) keepToken(t auth.MailToken) {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		if _, found, err := tx.UserForUpdate(b.ctx(), t.UserID); err != nil || !found {
			u := newUser(t.UserID)
			u.Verified = false
			if err := errors.Join(err, tx.InsertUser(b.ctx(), u)); err != nil {
				return err
			}
		}
		return tx.InsertMailToken(b.ctx(), t)
	})
}

// hasToken reports whether a token permits something at a time.
func (b *bench) hasToken(hash string, purpose auth.MailPurpose, at time.Time) bool {
	b.Helper()
	_, found, err := b.db.MailToken(b.ctx(), hash, purpose, at)
	b.must(err)
	return found
}

func testMailTokens(t *testing.T, b *bench) {
	t.Helper()
	own := b.mailToken("own", toVerify)
	own.Code = "encrypted"
	again := b.mailToken("again", toVerify)
	again.Name, again.Role, again.PasswordHash = "Asha", auth.Buyer, "hash"
	for _, token := range []auth.MailToken{own, again} {
		b.keepToken(token)
		got, _, err := b.db.MailToken(b.ctx(), token.Hash, toVerify, b.now)
		b.must(err)
		if diff := cmp.Diff(token, got); diff != "" {
			t.Error(diff)
		}
	}
	if b.hasToken("own", toReset, b.now) || b.hasToken("own", toVerify, own.ExpiresAt) || b.hasToken("none", toVerify, b.now) {
		t.Error("a token permits another purpose, or after its time")
	}
	code := func() (auth.MailToken, bool) {
		var token auth.MailToken
		var found bool
		b.update(func(tx *store.Tx) (err error) {
			token, found, err = tx.CodeToken(b.ctx(), "usr_1", b.now)
			return err
		})
		return token, found
	}
	b.update(func(tx *store.Tx) error { return tx.CountWrongCode(b.ctx(), "own") })
	if token, found := code(); !found || token.Hash != "own" || token.Tries != 1 {
		t.Errorf("the code's token is %+v, %t", token, found)
	}

	b.keepToken(b.mailToken("reset", toReset))
	newer := own
	newer.Hash = "newer"
	b.keepToken(newer) // in place of the user's own, and of no other
	for hash, purpose := range map[string]auth.MailPurpose{"newer": toVerify, "again": toVerify, "reset": toReset} {
		if !b.hasToken(hash, purpose, b.now) {
			t.Errorf("%s ended", hash)
		}
	}
	if token, _ := code(); b.hasToken("own", toVerify, b.now) || token.Hash != "newer" || token.Tries != 0 {
		t.Error("the older token works beside the newer one")
	}
	b.update(func(tx *store.Tx) error { return tx.DeleteMailTokens(b.ctx(), "usr_1", toVerify) })
	if _, found := code(); found || b.hasToken("again", toVerify, b.now) || !b.hasToken("reset", toReset, b.now) {
		t.Error("not the tokens of one purpose were deleted")
	}
	b.update(func(tx *store.Tx) error { return tx.DeleteMailTokens(b.ctx(), "usr_1", "") })
	if b.hasToken("reset", toReset, b.now) {
		t.Error("not all tokens were deleted")
	}
	b.update(func(tx *store.Tx) error {
		if err := tx.VerifyUser(b.ctx(), "usr_1"); err != nil {
			return err
		}
		u, _, err := tx.UserForUpdate(b.ctx(), "usr_1")
		if !u.Verified {
			t.Error("the user is not verified")
		}
		linked, e1 := tx.HasIdentity(b.ctx(), "usr_1")
		_, e2 := tx.AddIdentity(b.ctx(), "usr_1", newIdentity("7"), b.now)
		linkedNow, e3 := tx.HasIdentity(b.ctx(), "usr_1")
		if linked || !linkedNow {
			t.Errorf("has an identity: %t, then %t", linked, linkedNow)
		}
		return errors.Join(err, e1, e2, e3)
	})
}

func testMailTokenAtOnce(t *testing.T, b *bench) {
	t.Helper()
	b.keepToken(b.mailToken("one", toReset))
	var used atomic.Int64
	b.atOnce(10, func(int) error {
		return b.db.Update(b.ctx(), func(tx *store.Tx) error {
			won, err := tx.UseMailToken(b.ctx(), "one", b.now)
			if won && err == nil {
				used.Add(1)
			}
			return err
		})
	})
	if used.Load() != 1 {
		t.Errorf("%d uses of a token succeeded", used.Load())
	}
}

// testReservedAddress has a user who can get a former address back. No other user gets it, however they come by an address.
func testReservedAddress(t *testing.T, b *bench) {
	t.Helper()
	undo := b.mailToken("undo", auth.UndoEmailChange)
	undo.Email = "Former@example.com"
	b.keepToken(undo)
	other := newUser("usr_2")
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), other) })
	taker := newUser("usr_3")
	taker.Email, taker.ExternalID = "FORMER@example.com", "17"
	for name, take := range map[string]func(tx *store.Tx) error{
		"insert": func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), taker) },
		"import": func(tx *store.Tx) error {
			_, err := tx.InsertImported(b.ctx(), auth.Imported{User: taker})
			return err
		},
		"set":   func(tx *store.Tx) error { return tx.SetEmail(b.ctx(), other.ID, taker.Email) },
		"reset": func(tx *store.Tx) error { u := other; u.Email = taker.Email; return tx.ResetUser(b.ctx(), u) },
	} {
		b.update(func(tx *store.Tx) error { // which goes on, as that of an import does
			if err := take(tx); !errors.Is(err, auth.ErrEmailReserved) {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		})
		if _, found, err := b.db.UserByEmail(b.ctx(), auth.EmailKey(taker.Email)); err != nil || found {
			t.Errorf("%s: a user has the address: %t, %v", name, found, err)
		}
	}
	b.update(func(tx *store.Tx) error { return tx.SetEmail(b.ctx(), undo.UserID, undo.Email) })
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.SetEmail(b.ctx(), undo.UserID, "usr_1@example.com"), tx.DeleteMailTokens(b.ctx(), undo.UserID, undo.Purpose))
	})
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), taker) })
}

// testForgedMailTokens puts tokens into the database that the service did not write.
func testForgedMailTokens(t *testing.T, b *bench) {
	t.Helper()
	own := b.mailToken("own", toVerify)
	own.Code = "encrypted"
	b.keepToken(own)
	moves := b.mailToken("moves", auth.UndoEmailChange)
	moves.Email = "usr_1@example.org"
	b.keepToken(moves)
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), newUser("usr_2")) })
	for name, change := range map[string]string{
		"another hash":       `hash = 'forged'`,
		"another purpose":    `purpose = 'reset_password'`,
		"another user":       `user_id = 'usr_2'`,
		"an e-mail address":  `email = 'mallory@example.com'`, // that the account would get
		"another code":       `code = 'forged'`,
		"a password":         `password_hash = 'forged', role = 'seller', name = 'Mallory'`,
		"another role":       `role = 'admin'`,
		"another name":       `name = 'Mallory'`,
		"another address":    `address = '127.0.0.1'`,
		"another program":    `agent = 'Mallory'`,
		"made at another":    `created_at = created_at + 1`,
		"expires later":      `expires_at = expires_at + 1`,
		"without a MAC":      `mac = ''`,
		"a code not its own": `hash = 'forged', mac = ''`,
	} {
		t.Run(name, func(t *testing.T) {
			copied := b.tampered()
			copied.hands(`UPDATE mail_tokens SET ` + change + ` WHERE hash = 'own'`)
			hashes := []string{"own", "forged"}
			if !strings.HasPrefix(change, "hash = ") {
				copied.hands(`UPDATE mail_tokens SET ` + change + ` WHERE hash = 'moves'`)
				hashes = append(hashes, "moves")
			}
			for _, hash := range hashes {
				for _, purpose := range []auth.MailPurpose{toVerify, toReset, auth.UndoEmailChange} {
					if _, found, err := copied.db.MailToken(copied.ctx(), hash, purpose, b.now); found && !errors.Is(err, auth.ErrTampered) {
						t.Errorf("%s for %s is accepted: %v", hash, purpose, err)
					}
				}
			}
			copied.update(func(tx *store.Tx) error {
				for _, user := range []string{"usr_1", "usr_2"} {
					if _, found, err := tx.CodeToken(copied.ctx(), user, b.now); found && !errors.Is(err, auth.ErrTampered) {
						t.Errorf("the code of %s is accepted: %v", user, err)
					}
				}
				return nil
			})
		})
	}
}

func testSweptMailTokens(t *testing.T, b *bench) {
	t.Helper()
	for i, purpose := range []auth.MailPurpose{toVerify, toReset} {
		token := b.mailToken(fmt.Sprint(i), purpose)
		token.ExpiresAt = b.now.Add(time.Duration(i) * time.Hour)
		b.keepToken(token)
	}
	sweep := func(at time.Time, want int64) {
		t.Helper()
		b.update(func(tx *store.Tx) error {
			n, err := tx.Sweep(b.ctx(), at, b.now, b.now, 1)
			if n != want {
				t.Errorf("swept %d, want %d", n, want)
			}
			return err
		})
	}
	sweep(b.now, 0)
	sweep(b.now.Add(time.Second), 1)
	sweep(b.now.Add(time.Second), 0)
	if !b.hasToken("1", toReset, b.now) {
		t.Error("a token that had time left was swept")
	}
	sweep(b.now.Add(2*time.Hour), 1)
}

func testMailRequests(t *testing.T, b *bench) {
	t.Helper()
	const requests = 20
	for i := range requests {
		r := auth.MailRequest{ID: fmt.Sprintf("mrq_%02d", i), Email: "encrypted", From: auth.Device{Address: "203.0.113.7", Agent: "Firefox"}, At: b.now}
		b.update(func(tx *store.Tx) error { return tx.InsertMailRequest(b.ctx(), r) })
		if i > 0 {
			continue
		}
		b.update(func(tx *store.Tx) error {
			got, _, err := tx.TakeMailRequest(b.ctx())
			if diff := cmp.Diff(r, got); diff != "" {
				t.Error(diff)
			}
			return errors.Join(err, tx.InsertMailRequest(b.ctx(), r))
		})
	}
	var taken atomic.Int64
	b.atOnce(8, func(int) error {
		for {
			var found bool
			err := b.db.Update(b.ctx(), func(tx *store.Tx) (err error) {
				_, found, err = tx.TakeMailRequest(b.ctx())
				return err
			})
			if err != nil || !found {
				return err
			}
			taken.Add(1)
		}
	})
	if taken.Load() != requests {
		t.Errorf("%d takes of %d requests", taken.Load(), requests)
	}
}

func testEmailChange(t *testing.T, b *bench) {
	t.Helper()
	change := b.mailToken("change", toChange)
	change.Email = "new@example.com"
	b.keepToken(change)
	got, _, err := b.db.MailToken(b.ctx(), "change", toChange, b.now)
	b.must(err)
	if diff := cmp.Diff(change, got); diff != "" {
		t.Error(diff)
	}
	var undos []auth.MailToken
	for i, hash := range []string{"undo 1", "undo 2"} { // each change can be undone
		undo := b.mailToken(hash, auth.UndoEmailChange)
		undo.Email, undo.CreatedAt = hash+"@example.com", undo.CreatedAt.Add(time.Duration(i)*time.Second)
		undos = append(undos, undo)
		b.keepToken(undo)
	}
	if !b.hasToken("undo 1", auth.UndoEmailChange, b.now) || !b.hasToken("undo 2", auth.UndoEmailChange, b.now) {
		t.Error("a later change ends what undoes an earlier one")
	}
	b.update(func(tx *store.Tx) error {
		for purpose, want := range map[auth.MailPurpose][]auth.MailToken{auth.UndoEmailChange: undos, auth.UndoFactor: nil} {
			tokens, err := tx.MailTokens(b.ctx(), "usr_1", purpose)
			b.must(err)
			if diff := cmp.Diff(want, tokens); diff != "" {
				t.Errorf("tokens for %s: %s", purpose, diff)
			}
		}
		return nil
	})
	b.keepToken(b.mailToken("factor 1", auth.UndoFactor))
	b.keepToken(b.mailToken("factor 2", auth.UndoFactor))
	if !b.hasToken("factor 1", auth.UndoFactor, b.now) || !b.hasToken("factor 2", auth.UndoFactor, b.now) {
		t.Error("a later first factor ends what removes an earlier one")
	}
	b.update(func(tx *store.Tx) error {
		return tx.DeleteMailTokensSince(b.ctx(), "usr_1", auth.UndoFactor, b.now.Add(time.Second))
	})
	if !b.hasToken("factor 1", auth.UndoFactor, b.now) {
		t.Error("a token from before is deleted")
	}
	b.update(func(tx *store.Tx) error {
		return tx.DeleteMailTokensSince(b.ctx(), "usr_1", auth.UndoFactor, b.now.Add(-time.Second))
	})
	if b.hasToken("factor 1", auth.UndoFactor, b.now) || b.hasToken("factor 2", auth.UndoFactor, b.now) || !b.hasToken("undo 1", auth.UndoEmailChange, b.now) {
		t.Error("not the later tokens of the purpose alone are deleted")
	}
	b.update(func(tx *store.Tx) error {
		return errors.Join(tx.InsertUser(b.ctx(), newUser("usr_2")), tx.SetEmail(b.ctx(), "usr_1", "New@example.com"))
	})
	u, found, err := b.db.UserByEmail(b.ctx(), "new@example.com")
	if err != nil || !found || u.ID != "usr_1" || u.Email != "New@example.com" || !u.Verified {
		t.Errorf("found by the new address is %+v, %v, %v", u, found, err)
	}
	err = b.db.Update(b.ctx(), func(tx *store.Tx) error { return tx.SetEmail(b.ctx(), "usr_2", "NEW@example.com") })
	if !errors.Is(err, auth.ErrEmailTaken) {
		t.Errorf("two users with one address: %v", err)
	}
}
