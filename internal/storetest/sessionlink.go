package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/store"
)

func testSessionLinks(_ *testing.T, b *bench) {
	seller, other := b.seller("usr_a"), b.seller("usr_b")
	key := b.serviceKey(serviceKeyID("1"))
	link := auth.SessionLink{Hash: "hash", UserID: seller, KeyID: key.ID, ExpiresAt: b.now.Add(time.Minute)}
	b.update(func(tx *store.Tx) error {
		return errors.Join(b.insertKey(tx, key.ID), tx.InsertSessionLink(b.ctx(), link))
	})
	use := func(session string, at time.Time, want bool) {
		b.Helper()
		b.update(func(tx *store.Tx) error {
			if used, err := tx.UseSessionLink(b.ctx(), link.Hash, session, at); used != want || err != nil {
				return fmt.Errorf("used for %s: %t, %w", session, used, err)
			}
			return nil
		})
	}
	use("ses_late", link.ExpiresAt, false)
	use("ses_1", b.now, true)
	use("ses_2", b.now, false)
	link.Session = "ses_1"
	b.update(func(tx *store.Tx) error {
		if got, found, err := tx.SessionLink(b.ctx(), link.Hash); got != link || !found || err != nil {
			return fmt.Errorf("the link is %+v, %t, %w", got, found, err)
		}
		if _, found, err := tx.SessionLink(b.ctx(), "other"); found || err != nil {
			return fmt.Errorf("a link that is not there was found: %w", err)
		}
		sessions, err := tx.SessionsOfKey(b.ctx(), key.ID)
		if !slices.Equal(sessions, []string{"ses_1"}) || err != nil {
			return fmt.Errorf("the key's sessions are %v, %w", sessions, err)
		}
		return nil
	})
	unused := auth.SessionLink{Hash: "unused", UserID: seller, KeyID: key.ID, ExpiresAt: b.now.Add(time.Minute)}
	b.update(func(tx *store.Tx) error {
		if err := errors.Join(tx.InsertSessionLink(b.ctx(), unused), tx.DeleteUnusedSessionLinks(b.ctx(), other)); err != nil {
			return err
		}
		if _, found, err := tx.SessionLink(b.ctx(), unused.Hash); !found || err != nil {
			return fmt.Errorf("another user's link is %t, %w", found, err)
		}
		if err := tx.DeleteUnusedSessionLinks(b.ctx(), seller); err != nil {
			return err
		}
		_, unusedFound, err := tx.SessionLink(b.ctx(), unused.Hash)
		_, usedFound, err2 := tx.SessionLink(b.ctx(), link.Hash)
		if unusedFound || !usedFound {
			return fmt.Errorf("the unused link is %t, the used one %t, %w", unusedFound, usedFound, errors.Join(err, err2))
		}
		return nil
	})
	b.update(func(tx *store.Tx) error {
		err := errors.Join(tx.InsertSessionLink(b.ctx(), unused), tx.DeleteUnusedLinksOfKey(b.ctx(), "key_other"))
		_, isKept, err2 := tx.SessionLink(b.ctx(), unused.Hash)
		err3 := tx.DeleteUnusedLinksOfKey(b.ctx(), key.ID)
		_, unusedFound, err4 := tx.SessionLink(b.ctx(), unused.Hash)
		_, usedFound, err5 := tx.SessionLink(b.ctx(), link.Hash)
		if err := errors.Join(err, err2, err3, err4, err5); !isKept || unusedFound || !usedFound || err != nil {
			return fmt.Errorf("the unused link is %t after another key's are deleted, %t after its own, and the used one %t, %w", isKept, unusedFound, usedFound, err)
		}
		return nil
	})
	b.engine.Hands(b.T, b.db)(`UPDATE session_links SET user_id = '` + other + `'`)
	b.update(func(tx *store.Tx) error {
		if _, _, err := tx.SessionLink(b.ctx(), link.Hash); !errors.Is(err, auth.ErrTampered) {
			return fmt.Errorf("a link of another user: %w", err)
		}
		for want, before := range []time.Time{link.ExpiresAt, link.ExpiresAt.Add(time.Microsecond)} {
			if n, err := tx.Sweep(b.ctx(), b.now, b.now, before, 10); n != int64(want) || err != nil {
				return fmt.Errorf("swept %d, %w; want %d", n, err, want)
			}
		}
		return nil
	})
}
