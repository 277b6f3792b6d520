package auth_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/mail"
	"bursar/internal/sale"
)

func (w *fixture) createSeller(externalID string) auth.User {
	w.t.Helper()
	u, created, err := w.CreateSeller(w.t.Context(), auth.NewSeller{ExternalID: externalID, Name: "Asha Rao", Email: email}, "key:key_1")
	if err != nil || !created {
		w.t.Fatal(created, err)
	}
	return u
}

func TestCreateSeller_AtOnce(t *testing.T) {
	w := newFixture(t)
	var all sync.WaitGroup
	made := make(chan auth.User, 8)
	for range cap(made) {
		all.Go(func() {
			u, created, err := w.CreateSeller(t.Context(), auth.NewSeller{ExternalID: "17", Name: "Asha Rao", Email: email}, "key:key_1")
			if err != nil {
				t.Error(err)
			}
			if created {
				made <- u
			}
		})
	}
	all.Wait()
	if close(made); len(made) != 1 {
		t.Errorf("one seller was made %d times", len(made))
	}
}

// A seller who was imported with more than the marketplace says now is the same.
func TestCreateSeller_Imported(t *testing.T) {
	w := newFixture(t)
	w.add(auth.ImportOptions{}, auth.ImportLine{Number: 1, ExternalID: "17", Name: "Asha Rao", Email: email, Role: auth.Seller, Verified: true},
		auth.ImportLine{Number: 2, ExternalID: "18", Name: "Bo Ray", Email: "bo@example.com", Role: auth.Buyer})
	_, created, err := w.CreateSeller(t.Context(), auth.NewSeller{ExternalID: "17", Name: "Asha Rao", Email: email}, "key:key_1")
	if err != nil || created {
		t.Errorf("an imported seller: %t, %v", created, err)
	}
	_, _, err = w.CreateSeller(t.Context(), auth.NewSeller{ExternalID: "18", Name: "Bo Ray", Email: "bo@example.com"}, "key:key_1")
	wantErr(t, err, auth.ErrSellerConflict)
}

// TestCreatedSeller_Claimed has the owner of the address come to the account that the marketplace made, in each way there
// is. The role and the bank account stay, and money that is there waits.
func TestCreatedSeller_Claimed(t *testing.T) {
	for name, claim := range map[string]func(*street){
		"by a mailed link": func(s *street) {
			wantErr(s.t, s.SetForgottenPassword(s.t.Context(), s.forgot(1), nextPassword, home), nil)
			_, err := s.login(email, nextPassword, home)
			wantErr(s.t, err, nil)
		},
		"through a provider": func(s *street) { s.mustArrive(asha()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
			u := s.createSeller("17")
			sales, err := sale.New(sale.Options{Store: s.db.Sales(), Now: s.clock.Now, Zone: time.UTC})
			wantErr(t, err, nil)
			_, _, err = sales.Record(t.Context(), sale.NewSale{ID: "s1", Seller: u.ID, Amount: 5000})
			wantErr(t, err, nil)
			_, err = s.login(email, "", home)
			wantErr(t, err, auth.ErrCredentials)
			s.addBankAccount(bank.Account{
				ID: "bka_hers", Seller: u.ID, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234", Status: bank.StatusVerified, Current: true,
				NameScore: -1, CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
			})
			claim(s)
			got, err := s.Seller(t.Context(), "ext:17")
			if err != nil || got.ID != u.ID || got.Role != auth.Seller || !got.Verified || got.Name != u.Name {
				t.Errorf("the seller is %+v, %v", got, err)
			}
			if a, err := s.db.BankAccount(t.Context(), u.ID); err != nil || a.Status != bank.StatusVerified {
				t.Errorf("the bank account is %+v, %v", a, err)
			}
			now := s.clock.Now()
			if balance, err := s.db.Balance(t.Context(), u.ID); err != nil || balance.Hold(now).Before(now.Add(71*time.Hour)) {
				t.Errorf("payouts are on hold until %v, %v", balance.Hold(now), err)
			}
			entries, err := s.db.Entries(t.Context(), u.ID, 0, 50)
			wasTakenOver := func(e ledger.Entry) bool {
				return e.Type == ledger.PayoutsOnHold && strings.Contains(e.Data, string(ledger.HoldTakenOver))
			}
			if err != nil || !slices.ContainsFunc(entries, wasTakenOver) {
				t.Errorf("the journal does not say that payouts are on hold because of it: %+v, %v", entries, err)
			}
		})
	}
}

// TestCreatedSeller_RegisteredAgain: whoever registers the address later gets nothing, and no mail has a link for it.
func TestCreatedSeller_RegisteredAgain(t *testing.T) {
	s := newStreet(t)
	u := s.createSeller("17")
	_, err := s.Register(t.Context(), auth.Registration{Name: "Mallory", Email: email, Password: password, Role: auth.Buyer, Device: den})
	wantErr(t, err, auth.ErrEmailTaken)
	lastMailed[mail.AccountExists](s.fixture, 1)
	got, err := s.Seller(t.Context(), u.ID)
	if err != nil || got.Verified || got.PasswordHash != "" {
		t.Errorf("the seller is %+v, %v", got, err)
	}
}
