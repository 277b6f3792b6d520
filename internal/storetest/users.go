package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/store"
)

func testImportedUsers(_ *testing.T, b *bench) {
	asha, bela, kabir := newUser("usr_a"), newUser("usr_b"), newUser("usr_c")
	asha.ExternalID, bela.ExternalID = "17", "18"
	insert := func(u auth.User) (inserted bool) {
		b.Helper()
		b.update(func(tx *store.Tx) (err error) {
			inserted, err = tx.InsertImported(b.ctx(), auth.Imported{User: u, Fingerprint: "as " + u.ID})
			return err
		})
		return inserted
	}
	for _, u := range []auth.User{asha, bela, kabir} {
		if !insert(u) {
			b.Errorf("%s was not inserted", u.ID)
		}
	}
	registered := newUser("usr_d")
	b.update(func(tx *store.Tx) error { return tx.InsertUser(b.ctx(), registered) })
	sameEmail, sameID := newUser("usr_e"), newUser("usr_f")
	sameEmail.Email = "USR_D@example.com"
	sameID.ExternalID = "17"
	if insert(sameEmail) || insert(sameID) {
		b.Error("two users have one e-mail address or one external id")
	}

	found := map[string]string{}
	b.update(func(tx *store.Tx) error {
		clear(found)
		all, err := tx.ImportedUsers(b.ctx(), []string{"17", "99"}, []string{"usr_c@example.com", "usr_d@example.com", "usr_e@example.com"})
		for _, i := range all {
			found[i.User.ID] = i.Fingerprint
		}
		return err
	})
	if diff := cmp.Diff(map[string]string{"usr_a": "as usr_a", "usr_c": "as usr_c", "usr_d": ""}, found); diff != "" {
		b.Error(diff)
	}
	got, exists, err := b.db.UserByExternalID(b.ctx(), "18")
	if diff := cmp.Diff(bela, got); diff != "" || !exists || err != nil {
		b.Error(exists, err, diff)
	}
	if _, exists, err := b.db.UserByExternalID(b.ctx(), ""); exists || err != nil {
		b.Errorf("a user was found by no external id: %v, %v", exists, err)
	}
	got, exists, err = b.db.UserByID(b.ctx(), "usr_c")
	if diff := cmp.Diff(kabir, got); diff != "" || !exists || err != nil {
		b.Error(exists, err, diff)
	}
	b.update(func(tx *store.Tx) error {
		got, exists, err := tx.UserForUpdate(b.ctx(), "usr_a")
		if diff := cmp.Diff(asha, got); diff != "" || !exists {
			b.Error(exists, diff)
		}
		return err
	})
}

func testListedUsers(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error {
		for _, u := range []struct {
			id        string
			role      auth.Role
			suspended bool
		}{{"usr_1", auth.Buyer, false}, {"usr_2", auth.Seller, true}, {"usr_3", auth.Seller, false}, {"usr_4", auth.Admin, true}} {
			user := newUser(u.id)
			user.Role, user.Suspended = u.role, u.suspended
			if err := tx.InsertUser(b.ctx(), user); err != nil {
				return err
			}
		}
		return nil
	})
	for _, test := range []struct {
		filter auth.UserFilter
		after  string
		limit  int
		want   []string
	}{
		{auth.UserFilter{}, "", 10, []string{"usr_1", "usr_2", "usr_3", "usr_4"}},
		{auth.UserFilter{}, "usr_1", 2, []string{"usr_2", "usr_3"}},
		{auth.UserFilter{Role: auth.Seller}, "", 10, []string{"usr_2", "usr_3"}},
		{auth.UserFilter{Suspended: true}, "", 10, []string{"usr_2", "usr_4"}},
		{auth.UserFilter{Role: auth.Seller, Suspended: true}, "usr_2", 10, nil},
	} {
		users, err := b.db.Users(b.ctx(), test.filter, test.after, test.limit)
		b.must(err)
		var ids []string
		for _, u := range users {
			ids = append(ids, u.ID)
		}
		if !slices.Equal(ids, test.want) {
			b.Errorf("%+v after %q, %d of them: %v, want %v", test.filter, test.after, test.limit, ids, test.want)
		}
	}
}

// A user who was changed in the database is refused, and is listed as what they are.
func testTamperedUsers(_ *testing.T, b *bench) {
	b.update(func(tx *store.Tx) error {
		_, err := tx.InsertImported(b.ctx(), auth.Imported{User: func() auth.User { u := newUser("usr_a"); u.ExternalID = "17"; return u }()})
		return errors.Join(err, tx.InsertUser(b.ctx(), newUser("usr_b")))
	})
	b.engine.Hands(b.T, b.db)(`UPDATE users SET external_id = '18' WHERE id = 'usr_a'`)
	if _, found, err := b.db.UserByExternalID(b.ctx(), "18"); !found || !errors.Is(err, auth.ErrTampered) {
		b.Errorf("found by the external id of another: %v, %v", found, err)
	}
	if _, found, err := b.db.UserByID(b.ctx(), "usr_a"); !found || !errors.Is(err, auth.ErrTampered) {
		b.Errorf("found by id: %v, %v", found, err)
	}
	err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
		_, _, err := tx.UserForUpdate(b.ctx(), "usr_a")
		return err
	})
	if !errors.Is(err, auth.ErrTampered) {
		b.Errorf("locked: %v", err)
	}
	users, err := b.db.Users(b.ctx(), auth.UserFilter{}, "", 10)
	b.must(err)
	if len(users) != 2 || !users[0].Tampered || users[1].Tampered {
		b.Errorf("listed as %+v", users)
	}
}

func testPasswordDecoy(_ *testing.T, b *bench) {
	for _, decoy := range []string{"", "$2b$04$decoy", "$2b$12$decoy"} {
		if decoy != "" {
			b.update(func(tx *store.Tx) error { return tx.SetPasswordDecoy(b.ctx(), decoy) })
		}
		got, err := b.db.PasswordDecoy(b.ctx())
		if err != nil || got != decoy {
			b.Errorf("decoy %q, %v; want %q", got, err, decoy)
		}
		b.update(func(tx *store.Tx) error {
			got, err := tx.PasswordDecoy(b.ctx())
			if got != decoy {
				b.Errorf("decoy in a transaction %q, want %q", got, decoy)
			}
			return err
		})
	}
}
