package bank_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// ada decides.
var ada = decision.By{Admin: "usr_ada", Note: "seen on a cancelled cheque"}

func TestResolve(t *testing.T) {
	tests := []struct {
		about      string
		found      answer
		verified   bool
		reason     string
		wantStatus bank.Status
		wantErr    error
	}{
		{"a review is verified", valid("A DESAI", 70), true, "", bank.StatusVerified, nil},
		{"a review is rejected", valid("A DESAI", 70), false, "This is your sister's.", bank.StatusRejected, nil},
		{"a rejection is overruled", valid("RAVI KUMAR", 0), true, "", bank.StatusVerified, nil},
		{"a rejection is explained", valid("RAVI KUMAR", 0), false, "A firm's account.", bank.StatusRejected, nil},
		{"a rejection is explained at length", valid("RAVI KUMAR", 0), false, strings.Repeat("é", 500), bank.StatusRejected, nil},
		{"one under way is verified", pending(), true, "", bank.StatusVerified, nil},
		{"a verified one stays", valid("ASHA DESAI", 100), false, "Too late.", bank.StatusVerified, bank.ErrDecided},
		{"a verified one is not verified again", valid("ASHA DESAI", 100), true, "", bank.StatusVerified, bank.ErrDecided},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			h := newFixture(t, tt.found)
			a := h.register(h.ashas())
			h.mustStep()
			if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: tt.verified, Reason: tt.reason, Seen: h.account().Status}); !errors.Is(err, tt.wantErr) {
				t.Errorf("err = %v, want %v", err, tt.wantErr)
			}
			got := h.account()
			if got.Status != tt.wantStatus || !got.DueAt.IsZero() || got.VerifiedAt.IsZero() == (tt.wantStatus == bank.StatusVerified) {
				t.Errorf("afterwards: %+v", got)
			}
			if tt.wantErr == nil && got.Reason != tt.reason {
				t.Errorf("the reason is %q, want %q", got.Reason, tt.reason)
			}
			h.wantDecision(a.ID, tt.verified, tt.wantErr == nil)
		})
	}
}

// wantDecision wants what ada decided about an account on record, or nothing.
func (h *fixture) wantDecision(id bank.ID, verified, made bool) {
	h.t.Helper()
	got, err := h.db.Decisions(h.t.Context(), string(id), 10)
	if err != nil {
		h.t.Fatal(err)
	}
	if !made {
		if len(got) != 0 {
			h.t.Errorf("on record is %+v, want nothing", got)
		}
		return
	}
	want := decision.New(ada, decision.RejectBankAccount, "usr_asha", string(id), h.now)
	if verified {
		want.Action = decision.AcceptBankAccount
	}
	if len(got) == 1 {
		want.ID = got[0].ID
	}
	if diff := cmp.Diff([]decision.Decision{want}, got); diff != "" {
		h.t.Errorf("on record (-want +got):\n%s", diff)
	}
}

func TestResolveRefuses(t *testing.T) {
	h := newFixture(t, pending())
	a := h.register(h.ashas())
	for _, reason := range []string{"", "  ", strings.Repeat("x", 501)} {
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Reason: reason}); fault.From(err) == nil || fault.From(err).Details["reason"] == "" {
			t.Errorf("rejected for %q: err = %v, want one about the reason", reason, err)
		}
	}
	long := decision.By{Admin: ada.Admin, Note: strings.Repeat("x", 1001)}
	if _, err := h.service.Resolve(t.Context(), long, a.ID, bank.Verdict{Verified: true}); fault.From(err) == nil || fault.From(err).Details["note"] == "" {
		t.Errorf("with a note too long: err = %v, want one about the note", err)
	}
	own := decision.By{Admin: a.Seller, Note: "It is mine."}
	if _, err := h.service.Resolve(t.Context(), own, a.ID, bank.Verdict{Verified: true}); !errors.Is(err, decision.ErrOwn) {
		t.Errorf("of the admin's own account: err = %v, want ErrOwn", err)
	}
	if _, err := h.service.Resolve(t.Context(), ada, "bka_nobody", bank.Verdict{Verified: true}); !errors.Is(err, bank.ErrNone) {
		t.Errorf("of no account: err = %v, want ErrNone", err)
	}
	other := h.ashas()
	other.IFSC = "SBIN0000001"
	h.register(other)
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); !errors.Is(err, bank.ErrDecided) {
		t.Errorf("of a replaced account: err = %v, want ErrDecided", err)
	}
	if got, err := h.store.BankAccountByID(t.Context(), a.ID); err != nil || got.Status != bank.StatusUnverified {
		t.Errorf("the replaced account: %+v, %v", got, err)
	}
	h.wantDecision(a.ID, true, false)
}

// An admin's decision wins over the result of a verification that is under way.
func TestResolve_DuringStep_DecisionHolds(t *testing.T) {
	h := newFixture(t, valid("RAVI KUMAR", 0))
	a := h.register(h.ashas())
	h.gateway.meanwhile = func() {
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
			t.Error(err)
		}
	}
	h.mustStep()
	if got := h.account(); got.Status != bank.StatusVerified || got.Reason != "" {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestResolve_Rejected lets nobody accept an account who has not seen that it was rejected.
func TestResolve_Rejected(t *testing.T) {
	h := newFixture(t, valid("A DESAI", 70))
	a := h.register(h.ashas())
	h.mustStep()
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Reason: "It was stolen."}); err != nil {
		t.Fatal(err)
	}
	for _, seen := range []bank.Status{"", bank.StatusReview} {
		if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true, Seen: seen}); !errors.Is(err, bank.ErrRejected) {
			t.Errorf("accepted by who saw it %q: err = %v, want ErrRejected", seen, err)
		}
	}
	if got := h.account(); got.Status != bank.StatusRejected {
		t.Errorf("the rejected account is %s", got.Status)
	}
	h.wantDecision(a.ID, false, true)
}

// An admin's decision wins over a verification that ends after the admin's request has read the account, unless it ends with a rejection.
func TestResolve_VerificationEndsMeanwhile_DecisionHolds(t *testing.T) {
	h := newFixture(t, valid("A DESAI", 70))
	a := h.register(h.ashas())
	overtaken := &overtakenStore{Store: h.store, overtake: func() {
		if err := h.service.Step(t.Context(), a.ID); err != nil {
			t.Error(err)
		}
	}}
	person, err := bank.New(bank.Options{
		Store: overtaken, Keys: h.keys, Mails: h.mailbox, Gateways: h.gateways(), Directory: ifsc.New(),
		Now: func() time.Time { return h.now }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := person.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true})
	if err != nil || got.Status != bank.StatusVerified {
		t.Errorf("Resolve = %+v, %v; want it verified", got, err)
	}
	if diff := cmp.Diff(h.account(), got); diff != "" {
		t.Errorf("what is stored and what was answered differ (-stored +answered):\n%s", diff)
	}
	h.wantDecision(a.ID, true, true)
}

// Those that wait for a person are listed: neither one that was replaced nor one that was decided on.
func TestInReview(t *testing.T) {
	h := newFixture(t, valid("A DESAI", 70), valid("A DESAI", 70), valid("R KUMAR", 70))
	replaced := h.register(h.ashas())
	h.mustStep()
	other := h.ashas()
	other.IFSC = "SBIN0000001"
	asha := h.register(other)
	h.mustStep()
	h.now = h.now.Add(time.Minute)
	ravi := h.register(bank.Registration{Seller: "usr_ravi", Holder: "Ravi Kumar", Number: mustNumber(t, "123456789"), IFSC: "HDFC0000053"})
	if err := h.service.Step(t.Context(), ravi.ID); err != nil {
		t.Fatal(err)
	}
	list := func(limit int) (ids []bank.ID) {
		accounts, err := h.service.InReview(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accounts {
			ids = append(ids, a.ID)
		}
		return ids
	}
	if diff := cmp.Diff([]bank.ID{asha.ID, ravi.ID}, list(10)); diff != "" {
		t.Errorf("in review, of which %s was replaced (-want +got):\n%s", replaced.ID, diff)
	}
	if got := list(1); len(got) != 1 {
		t.Errorf("%d of at most 1", len(got))
	}
	if _, err := h.service.Resolve(t.Context(), ada, asha.ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bank.ID{ravi.ID}, list(10)); diff != "" {
		t.Errorf("after one was verified (-want +got):\n%s", diff)
	}
}

// overtakenStore is a store in which something happens right after the first look at an account.
type overtakenStore struct {
	bank.Store
	overtake func()
}

func (s *overtakenStore) BankAccountByID(ctx context.Context, id bank.ID) (bank.Account, error) {
	a, err := s.Store.BankAccountByID(ctx, id)
	if overtake := s.overtake; overtake != nil {
		s.overtake = nil
		overtake()
	}
	return a, err
}

// TestResolve_OnRecord names the admin in the journal, and not the gateway.
func TestResolve_OnRecord(t *testing.T) {
	h := newFixture(t)
	a := h.register(h.ashas())
	if _, err := h.service.Resolve(t.Context(), ada, a.ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	entries, err := h.db.EntriesAbout(t.Context(), "usr_asha", string(a.ID))
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	verified := false
	for _, e := range entries {
		if e.Type == ledger.BankAccountVerified {
			verified = true
			if e.Actor != ledger.ActorAdmin+ada.Admin {
				t.Errorf("it was verified by %q", e.Actor)
			}
		}
	}
	if !verified {
		t.Errorf("its entries are %+v", entries)
	}
}
