package bank_test

import (
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/money"
	"bursar/internal/razorpayx"
	"bursar/internal/razorpayx/sandbox"
	"bursar/internal/seal"
)

// The whole way through the gateway's own protocol.
func TestVerificationAtTheGateway(t *testing.T) {
	tests := []struct {
		about, number, holder string
		want                  bank.Status
	}{
		{"an account like any other", "50100123456789", "Asha Desai", bank.StatusVerified},
		{"a name that the gateway has to shorten", "50100123456790", "M/s Asha & Daughters' Textiles (Surat)", bank.StatusVerified},
		{"an account that is not there", "50100123450001", "Asha Desai", bank.StatusRejected},
	}
	h := newHouse(t)
	service := h.atGateway()
	for _, tt := range tests {
		a, err := service.Register(t.Context(), bank.Registration{
			Seller: "usr_asha", Holder: tt.holder, Number: mustNumber(t, tt.number), IFSC: "HDFC0000053",
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 500 { // far more than it takes
			if err := service.Step(t.Context(), a.ID); err != nil {
				t.Fatal(err)
			}
			if a = h.account(); a.Status != bank.StatusUnverified {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if a.Status != tt.want {
			t.Errorf("%s is %s (%s), want %s", tt.about, a.Status, a.Reason, tt.want)
		}
		if !strings.HasPrefix(a.Beneficiary, "fa_") || !strings.HasPrefix(a.VerificationID, "fav_") {
			t.Errorf("%s is %q and its verification %q at the gateway", tt.about, a.Beneficiary, a.VerificationID)
		}
	}
}

// TestAnAccountIsNotVerifiedByAnothersVerification though the gateway confirmed that one, and it is named by hand.
func TestAnAccountIsNotVerifiedByAnothersVerification(t *testing.T) {
	h := newHouse(t)
	service := h.atGateway()
	begin := func(seller, number string) bank.Account {
		a, err := service.Register(t.Context(), bank.Registration{Seller: seller, Holder: "Asha Desai", Number: mustNumber(t, number), IFSC: "HDFC0000053"})
		if err != nil {
			t.Fatal(err)
		}
		if err := service.Step(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		return a
	}
	begin("usr_asha", "50100123456789")
	ravis := begin("usr_ravi", "50100123450001") // there is no such account
	h.place.ByHand(t, `UPDATE bank_accounts SET verification_id = '`+h.account().VerificationID+`' WHERE id = '`+string(ravis.ID)+`'`)
	if err := service.Step(t.Context(), ravis.ID); err == nil || !strings.Contains(err.Error(), "tells of another beneficiary") {
		t.Errorf("the step ended with %v", err)
	}
	if got, err := service.Account(t.Context(), "usr_ravi"); err != nil || got.Status != bank.StatusUnverified || got.Tries != 1 || got.DueAt.IsZero() {
		t.Errorf("the account is %+v, %v", got, err)
	}
}

// atGateway is the service with the gateway's double.
func (h *house) atGateway() *bank.Service {
	h.t.Helper()
	client := newGateway(h.t)
	service, err := bank.New(bank.Options{
		Store: h.store, Seals: seal.Seals{Keys: plainSealer{}}, Registrar: client, Verifier: client, Directory: ifsc.New(),
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return service
}

// newGateway runs the gateway's double, and returns a client of it.
func newGateway(t *testing.T) *razorpayx.Client {
	t.Helper()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	const keyID, secret, account = "rzp_test_bank", "secret", "7878780080316316"
	gateway, err := sandbox.New(sandbox.Options{
		Path: filepath.Join(t.TempDir(), "sandbox.db"), KeyID: keyID, KeySecret: secret, AccountNumber: account,
		SettleAfter: time.Millisecond, Currency: inr, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gateway)
	var running sync.WaitGroup
	running.Go(func() {
		if err := gateway.Run(t.Context()); err != nil {
			t.Errorf("the sandbox ended with %v", err)
		}
	})
	t.Cleanup(func() { // the test's context has ended by now
		running.Wait()
		server.Close()
		if err := gateway.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := razorpayx.New(razorpayx.Options{
		BaseURL: server.URL + "/v1", KeyID: keyID, KeySecret: secret, AccountNumber: account, Currency: inr, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
