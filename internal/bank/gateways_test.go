package bank_test

import (
	"errors"
	"strings"
	"testing"

	"bursar/internal/bank"
	"bursar/internal/gateway"
	"bursar/internal/money"
)

// TestVerification_WithoutCapability leaves the account to a person.
func TestVerification_WithoutCapability(t *testing.T) {
	h := newFixture(t)
	h.gateway.lacking = true
	h.register(h.ashas())
	h.mustStep()
	got := h.account()
	if got.Status != bank.StatusReview || !strings.Contains(got.Reason, "by hand") || len(h.gateway.started) > 0 {
		t.Errorf("%s, %q; %d verifications were begun", got.Status, got.Reason, len(h.gateway.started))
	}
	if got.Beneficiary == "" || got.Gateway != "double" {
		t.Errorf("it is %q at %q", got.Beneficiary, got.Gateway)
	}
}

// TestBeneficiary_BelongsToOneGateway never gives one gateway's name to another.
func TestBeneficiary_BelongsToOneGateway(t *testing.T) {
	h := newFixture(t, valid("Asha Desai", 100))
	a := h.register(h.ashas())
	h.mustStep()
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	other := &double{name: "another", answers: []answer{pending()}}
	if h.router, err = gateway.NewRouter(inr, "another", h.gateway, other); err != nil {
		t.Fatal(err)
	}
	h.open()
	for range 2 {
		if to, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "another", h.asked(a.Seller)); err != nil || to != "fa_"+string(a.ID) || len(other.registered) == 0 {
			t.Errorf("at another gateway it is %q, %v; that was told of %d accounts", to, err, len(other.registered))
		}
	}
	if got := h.account(); got.Gateway != "double" {
		t.Errorf("the account's name is %q's now", got.Gateway)
	}
	registered := len(h.gateway.registered)
	if _, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); err != nil || len(h.gateway.registered) != registered {
		t.Errorf("the first gateway was told again: %v", err)
	}
	if _, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "gone", h.asked(a.Seller)); !errors.Is(err, gateway.ErrNotConfigured) {
		t.Errorf("at a gateway that is not configured: %v", err)
	}
	next := h.register(bank.Registration{Seller: "usr_ravi", Holder: "Ravi Kumar", Number: mustNumber(t, "50100123456711"), IFSC: "HDFC0000053"})
	if err := h.service.Step(t.Context(), next.ID); err != nil || len(other.started) != 1 {
		t.Errorf("a new account is verified by the preferred gateway: %d, %v", len(other.started), err)
	}
}

// TestStep_NoName_TriesAgain has a gateway that takes an account and gives it no name to pay it by.
func TestStep_NoName_TriesAgain(t *testing.T) {
	h := newFixture(t, pending(), pending())
	h.gateway.nameless = true
	h.register(h.ashas())
	if _, err := h.step(); err == nil {
		t.Error("the step succeeded")
	}
	if got := h.account(); got.Status != bank.StatusUnverified || got.Reason == "" || got.Beneficiary != "" || len(h.gateway.started) > 0 {
		t.Errorf("it is %+v, and %d verifications were begun", got, len(h.gateway.started))
	}
	h.gateway.nameless = false
	h.mustStep()
	if got := h.account(); got.Status != bank.StatusUnverified || got.Reason != "" || got.Beneficiary == "" {
		t.Errorf("while it is verified, it is %+v", got)
	}
}

// TestStep_GatewayNotConfigured begins again at the current gateway, which knows nothing of the verification that was begun at
// the one that is gone.
func TestStep_GatewayNotConfigured(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	h.mustStep()
	before := h.account()
	other := &double{name: "another", answers: []answer{valid("Asha Desai", 100)}}
	h.router = gateway.Only(other)
	h.open()
	h.now = before.DueAt
	if err := h.service.Step(t.Context(), a.ID); err != nil {
		t.Errorf("the step ends with %v", err)
	}
	if got := h.account(); got.Status != bank.StatusVerified || got.Gateway != "another" || len(other.registered) != 1 || len(other.started) != 1 || len(other.asked) > 0 {
		t.Errorf("it is %+v; the other gateway was told of %d accounts, began %d verifications and was asked of %d",
			got, len(other.registered), len(other.started), len(other.asked))
	}
}

// TestBeneficiary_GatewayGone has the gateway that verified an account replaced by another one, whose name of it is stored then.
func TestBeneficiary_GatewayGone(t *testing.T) {
	h := newFixture(t, valid("Asha Desai", 100))
	a := h.register(h.ashas())
	h.mustStep()
	other := &double{name: "another"}
	h.router = gateway.Only(other)
	h.open()
	for range 2 {
		if _, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "another", h.asked(a.Seller)); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.account(); got.Gateway != "another" || got.Beneficiary == "" || got.VerificationID != "" || got.Status != bank.StatusVerified || len(other.registered) != 1 {
		t.Errorf("it is %+v, and was registered %d times", got, len(other.registered))
	}
}

// TestGateway_ChangedByHand must be seen: the name would be taken for another gateway's.
func TestGateway_ChangedByHand(t *testing.T) {
	h := newFixture(t, valid("Asha Desai", 100))
	a := h.register(h.ashas())
	h.mustStep()
	h.place.ByHand(t, `UPDATE bank_accounts SET gateway = 'another'`)
	if to, err := h.service.Beneficiary(t.Context(), a.Seller, a.ID, "double", h.asked(a.Seller)); err == nil {
		t.Errorf("it is paid to %q", to)
	}
}
