package bank_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/money"
)

// TestVerification_ThroughGateway verifies accounts through the gateway's own protocol.
func TestVerification_ThroughGateway(t *testing.T) {
	tests := []struct {
		about, number, holder string
		want                  bank.Status
	}{
		{"an account like any other", "50100123456789", "Asha Desai", bank.StatusVerified},
		{"a name that the gateway has to shorten", "50100123456790", "M/s Asha & Daughters' Textiles (Surat)", bank.StatusVerified},
		{"an account that is not there", "50100123450001", "Asha Desai", bank.StatusRejected},
	}
	h := newFixture(t)
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

// mixedUp is the gateway, which tells of one verification whichever it is asked about.
type mixedUp struct {
	*razorpayx.Client
	told string
}

func (m *mixedUp) Verification(ctx context.Context, v gateway.VerificationRequest, id string) (gateway.Verification, error) {
	if m.told != "" {
		id = m.told
	}
	return m.Client.Verification(ctx, v, id)
}

// TestStep_OtherAccountsVerification_NotApplied has the gateway answer with the confirmed verification of another account.
func TestStep_OtherAccountsVerification_NotApplied(t *testing.T) {
	h := newFixture(t)
	confused := &mixedUp{Client: newGateway(t)}
	service := h.serviceAt(confused)
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
	confused.told = h.account().VerificationID
	if err := service.Step(t.Context(), ravis.ID); err == nil || !strings.Contains(err.Error(), "tells of another beneficiary") {
		t.Errorf("the step ended with %v", err)
	}
	if got, err := service.Account(t.Context(), "usr_ravi"); err != nil || got.Status != bank.StatusUnverified || got.Tries != 1 || got.DueAt.IsZero() {
		t.Errorf("the account is %+v, %v", got, err)
	}
}

// atGateway is the service with the gateway's double.
func (h *fixture) atGateway() *bank.Service { return h.serviceAt(&mixedUp{Client: newGateway(h.t)}) }

func (h *fixture) serviceAt(client *mixedUp) *bank.Service {
	h.t.Helper()
	service, err := bank.New(bank.Options{
		Store: h.store, Keys: plainEncrypter{}, Mails: h.mailbox, Gateways: gateway.Only(client), Directory: ifsc.New(),
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
	box, err := sandbox.New(sandbox.Options{
		Path: filepath.Join(t.TempDir(), "sandbox.db"), KeyID: keyID, KeySecret: secret, AccountNumber: account,
		SettleAfter: time.Millisecond, Currency: inr, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(box)
	var running sync.WaitGroup
	running.Go(func() {
		if err := box.Run(t.Context()); err != nil {
			t.Errorf("the sandbox ended with %v", err)
		}
	})
	t.Cleanup(func() { // the test's context has ended by now
		running.Wait()
		server.Close()
		if err := box.Close(); err != nil {
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
