package auth_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/sale"
)

// Somebody may register with an address that is not theirs, and wait for its owner. In these stories the
// owner comes, through a provider that vouches for the address.

var den = auth.Device{Address: "198.51.100.66", Agent: "Attacker/1.0"}

// squat registers asha's address from the den.
func (s *street) squat() auth.SignIn {
	s.t.Helper()
	in, err := s.Register(s.t.Context(), auth.Registration{Name: "Asha", Email: email, Password: password, Role: auth.Seller, Device: den})
	if err != nil {
		s.t.Fatal(err)
	}
	return in
}

// addBankAccount adds an account as if its seller had registered it.
func (w *fixture) addBankAccount(a bank.Account) {
	w.t.Helper()
	err := w.db.Bank().InTx(w.t.Context(), func(tx bank.Tx) error {
		if _, err := tx.InsertBankAccount(w.t.Context(), a); err != nil {
			return err
		}
		added, err := bank.Recorded(bank.Account{ID: a.ID}, a, "user:"+a.Seller, a.CreatedAt)
		if err == nil {
			_, err = tx.Append(w.t.Context(), added)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestTakeover_EndsEarlierPassword(t *testing.T) {
	s := newStreet(t)
	squatter := s.squat()
	owner := s.mustArrive(asha())
	if owner.User.ID != squatter.User.ID || !owner.User.Verified {
		t.Errorf("the owner got %+v", owner.User)
	}
	_, err := s.login(email, password, den)
	wantErr(t, err, auth.ErrCredentials)
	_, err = s.login(email, "", den)
	wantErr(t, err, auth.ErrCredentials)
	s.wantAlive(owner)
	// The account does not know the den any more, which wrong passwords from there lock out.
	s.fail(email, den)
	_, err = s.login(email, "a-guess-at-it", known(squatter, den))
	wantThrottled(t, err)
	if _, err := s.ChangePassword(t.Context(), s.principal(owner), "", nextPassword, home); err != nil {
		t.Fatal(err)
	}
	if _, err := s.login(email, nextPassword, home); err != nil {
		t.Errorf("the owner's password: %v", err)
	}
}

func TestTakeover_ClearsEarlierProfile(t *testing.T) {
	s := newStreet(t)
	mallorys := auth.ProfileChange{Name: new("Mallory"), Bio: new("Pay me at"), Website: new("https://evil.example")}
	wantErr(t, s.SetProfile(t.Context(), s.principal(s.squat()), mallorys, den), nil)
	s.mustArrive(asha())
	if u := s.user(); u.Name != asha().Name || u.Profile != (auth.Profile{}) {
		t.Errorf("the owner's profile is the squatter's: %+v", u)
	}
}

func TestTakeover_EndsEarlierSessions(t *testing.T) {
	s := newStreet(t)
	squatter := s.squat()
	for range 3 { // kept alive
		s.clock.advance(20 * 24 * time.Hour)
		squatter = s.refresh(squatter.RefreshToken)
	}
	p := s.principal(squatter)
	owner := s.principal(s.mustArrive(asha()))
	s.wantDead(squatter)
	if sessions, err := s.Sessions(t.Context(), p); err != nil || len(sessions) != 1 || sessions[0].ID != owner.Session {
		t.Errorf("sessions %+v, %v; want the owner's alone", sessions, err)
	}
}

// A link that the marketplace made for the squatter, and that nobody has opened yet, signs in to nothing.
func TestTakeover_EndsEarlierSessionLinks(t *testing.T) {
	s := newStreet(t)
	_, key := s.serviceKey("shop")
	token, _, err := s.CreateSessionLink(t.Context(), key, s.squat().User.ID)
	wantErr(t, err, nil)
	owner := s.mustArrive(asha())
	_, err = s.OpenSessionLink(t.Context(), token, "", den)
	wantErr(t, err, auth.ErrLink)
	sessions, err := s.Sessions(t.Context(), s.principal(owner))
	if err != nil || len(sessions) != 1 {
		t.Errorf("sessions %+v, %v; want the owner's alone", sessions, err)
	}
}

func TestTakeover_EndsEarlierIdentities(t *testing.T) {
	s := newStreet(t)
	trojan := auth.Identity{Issuer: "https://careless.example", Subject: "666", Email: email} // which it vouches not for
	squatter := s.mustArrive(trojan)
	if squatter.User.Verified {
		t.Fatal("an address that nobody vouched for is verified")
	}
	owner := s.mustArrive(asha())
	if owner.User.ID != squatter.User.ID {
		t.Fatal("the owner got another account")
	}
	s.wantDead(squatter)
	_, err := s.arrive(trojan)
	wantErr(t, err, auth.ErrEmailUnverified)
	identities, err := s.Identities(t.Context(), owner.User.ID)
	if err != nil || len(identities) != 1 || identities[0].Issuer != "https://a.example" {
		t.Errorf("identities %+v, %v", identities, err)
	}
	if again := s.mustArrive(asha()); again.User.ID != owner.User.ID {
		t.Error("the owner came back to another account")
	}
}

func TestTakeover_EndsBankAccountTrust(t *testing.T) {
	for _, status := range []bank.Status{bank.StatusUnverified, bank.StatusVerified, bank.StatusReview} {
		t.Run(string(status), func(t *testing.T) {
			s := newStreet(t)
			squatter := s.squat()
			account := bank.Account{
				ID: "bka_theirs", Seller: squatter.User.ID, Holder: "Mallory", IFSC: "HDFC0000053", Last4: "6666", Status: status, Current: true,
				NameScore: -1, VerificationID: "fav_1", DueAt: s.clock.Now(), CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
			}
			s.addBankAccount(account)
			s.mustArrive(asha())
			err := s.db.Bank().InTx(t.Context(), func(tx bank.Tx) error { // the verification that was under way
				verified := account
				verified.Status = bank.StatusVerified
				saved, err := tx.SaveVerification(t.Context(), account, verified)
				if saved {
					t.Error("the verification undid it")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if a, err := s.db.BankAccount(t.Context(), squatter.User.ID); !errors.Is(err, bank.ErrNone) {
				t.Errorf("the current account is %+v, %v", a, err)
			}
			got, err := s.db.BankAccountByID(t.Context(), account.ID)
			if err != nil || got.Status != bank.StatusRejected || got.Reason == "" || !got.DueAt.IsZero() {
				t.Errorf("account %+v, %v", got, err)
			}
			entries, err := s.db.EntriesAbout(t.Context(), squatter.User.ID, string(account.ID))
			if err := errors.Join(err, bank.CheckEntries(got, entries)); err != nil || entries[len(entries)-1].Type != ledger.BankAccountRejected {
				t.Errorf("the journal tells %+v, %v", entries, err)
			}
		})
	}
}

// Who takes an account over as a buyer may be made a seller again. Money that is there is on hold.
func TestTakeover_AsBuyer_HoldsMoney(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	u := s.squat().User
	sales, err := sale.New(sale.Options{Store: s.db.Sales(), Now: s.clock.Now, Zone: time.UTC})
	wantErr(t, err, nil)
	_, _, err = sales.Record(t.Context(), sale.NewSale{ID: "s1", Seller: u.ID, Amount: 5000})
	wantErr(t, err, nil)
	_, err = s.Register(t.Context(), auth.Registration{Name: "Asha", Email: email, Password: nextPassword, Role: auth.Buyer, Device: home})
	wantErr(t, err, auth.ErrEmailTaken)
	wantErr(t, s.VerifyEmail(t.Context(), lastMailed[mail.RegisteredAgain](s.fixture, 1).Token), nil)
	if b, err := s.db.Balance(t.Context(), u.ID); err != nil || !b.Hold(s.clock.Now()).Equal(s.clock.Now().Add(72*time.Hour)) {
		t.Errorf("payouts are on hold until %s, %v", b.Hold(s.clock.Now()), err)
	}
}

func TestTakeover_VerifiedAccount_IsOnlyLinked(t *testing.T) {
	s := newStreet(t)
	in := s.register()
	s.verify(in.User)
	s.addBankAccount(bank.Account{
		ID: "bka_hers", Seller: in.User.ID, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234", Status: bank.StatusVerified, Current: true,
		NameScore: -1, CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
	})
	if linked := s.mustArrive(asha()); linked.User.ID != in.User.ID {
		t.Error("she got another account")
	}
	s.wantAlive(in)
	if _, err := s.login(email, password, home); err != nil {
		t.Errorf("her password: %v", err)
	}
	if a, err := s.db.BankAccount(t.Context(), in.User.ID); err != nil || a.Status != bank.StatusVerified {
		t.Errorf("her bank account %+v, %v", a, err)
	}
}

// TestTakeover_RequestsUnderWay_Refused begins a request of the squatter before the owner signs in, and ends it after.
func TestTakeover_RequestsUnderWay_Refused(t *testing.T) {
	trojan := auth.Identity{Issuer: "https://careless.example", Subject: "666", Email: email}
	tests := map[string]struct {
		squat func(*street) auth.SignIn
		do    func(*street, *auth.Service, auth.Principal, auth.ProviderReturn) error
		want  error
	}{
		"a sign-in": {
			(*street).squat,
			func(s *street, slow *auth.Service, _ auth.Principal, _ auth.ProviderReturn) error {
				_, err := slow.Login(s.t.Context(), auth.Credentials{Email: email, Password: password, Device: den})
				return err
			}, auth.ErrCredentials,
		},
		"a new password": {
			(*street).squat,
			func(s *street, slow *auth.Service, p auth.Principal, _ auth.ProviderReturn) error {
				_, err := slow.ChangePassword(s.t.Context(), p, password, nextPassword, den)
				return err
			}, auth.ErrToken,
		},
		"a first password": {
			func(s *street) auth.SignIn { return s.mustArrive(trojan) },
			func(s *street, slow *auth.Service, p auth.Principal, _ auth.ProviderReturn) error {
				_, err := slow.ChangePassword(s.t.Context(), p, "", nextPassword, den)
				return err
			}, auth.ErrToken,
		},
		"a sign-in through their provider": {
			func(s *street) auth.SignIn { return s.mustArrive(trojan) },
			func(s *street, slow *auth.Service, _ auth.Principal, r auth.ProviderReturn) error {
				s.b.answer(trojan, nil)
				_, _, err := slow.FinishSignIn(s.t.Context(), r)
				return err
			}, auth.ErrEmailUnverified,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t, func(o *auth.Options) { o.Throttle = false })
			p := s.principal(test.squat(s))
			r := s.begin(auth.ProviderB, auth.Seller)
			var owner auth.SignIn
			slow := s.again(func(o *auth.Options) {
				o.Store = meanwhile{o.Store, func() {
					if owner.Token == "" {
						owner = s.mustArrive(asha())
					}
				}}
			})
			wantErr(t, test.do(s, slow, p, r), test.want)
			sessions, err := s.Sessions(t.Context(), p)
			if err != nil || len(sessions) != 1 || s.principal(owner).Session != sessions[0].ID {
				t.Errorf("sessions %+v, %v; want the owner's alone", sessions, err)
			}
			for _, word := range []string{password, nextPassword} {
				if _, err := s.login(email, word, den); err == nil {
					t.Error("who waited has a password that works")
				}
			}
		})
	}
}

func TestChangePassword_FirstNeedsRecentSignIn(t *testing.T) {
	s := newStreet(t)
	first := s.mustArrive(asha())
	s.clock.advance(15 * time.Minute)
	first = s.refresh(first.RefreshToken) // which proves nothing
	p := s.principal(first)
	if sessions, err := s.Sessions(t.Context(), p); err != nil || len(sessions) != 1 || !slices.Equal(sessions[0].Methods, []string{"provider"}) {
		t.Errorf("sessions %+v, %v; want one by a provider", sessions, err)
	}
	_, err := s.ChangePassword(t.Context(), p, "", nextPassword, home)
	wantErr(t, err, auth.ErrStaleSignIn)
	if f := changeFault(s.ChangePassword(t.Context(), p, "", "short", home)); f == nil || f.Details["newPassword"] == "" {
		t.Errorf("a short one: %v", f)
	}
	_, err = s.login(email, nextPassword, home)
	wantErr(t, err, auth.ErrCredentials)

	again := s.mustArrive(asha())
	s.clock.advance(15*time.Minute - time.Microsecond)
	if _, err := s.ChangePassword(t.Context(), s.principal(again), "ignored", nextPassword, home); err != nil {
		t.Fatal(err)
	}
	s.wantDead(first)
	s.wantAlive(again)
	if _, err := s.login(email, nextPassword, home); err != nil {
		t.Errorf("the first password: %v", err)
	}
	if f := changeFault(s.ChangePassword(t.Context(), s.principal(again), "ignored", "another-password", home)); f == nil || f.Details["currentPassword"] == "" {
		t.Errorf("the second without the first: %v", f)
	}
}

func TestAdminsAreMadeByAdmins(t *testing.T) {
	s := newStreet(t)
	in := s.mustArrive(asha())
	by := s.admin("Ada")
	if err := s.SetAccess(t.Context(), decision.By{Admin: by.Admin}, in.User.ID, auth.Admin, false); err != nil {
		t.Fatal(err)
	}
	work := asha()
	work.Subject = "8"
	_, err := s.arrive(work) // no further identity is linked to an admin by an address
	wantErr(t, err, auth.ErrAdminByPassword)
	if again := s.mustArrive(asha()); again.User.Role != auth.Admin { // the identity was theirs before
		t.Errorf("%+v", again.User)
	}
}
