package bank_test

import (
	"errors"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
)

// imports tries an import and then carries it out. The trial has to say what the import does.
func (h *fixture) imports(r bank.Registration, wantCreated bool, wantProblem string) {
	h.t.Helper()
	before, _ := h.service.Account(h.t.Context(), r.Seller)
	created, err := h.service.WouldImport(h.t.Context(), r)
	if after, _ := h.service.Account(h.t.Context(), r.Seller); after.ID != before.ID {
		h.t.Errorf("a trial replaced %s by %s", before.ID, after.ID)
	}
	h.wantImported("trial", created, err, wantCreated, wantProblem)
	created, err = h.service.Import(h.t.Context(), r)
	h.wantImported("import", created, err, wantCreated, wantProblem)
}

func (h *fixture) wantImported(name string, created bool, err error, wantCreated bool, wantProblem string) {
	h.t.Helper()
	problem := ""
	if f := fault.From(err); f != nil {
		problem = f.Details["sellerId"]
	}
	if created != wantCreated || problem != wantProblem || (err != nil) != (wantProblem != "") {
		h.t.Errorf("%s: %t, %v; want %t, %q", name, created, err, wantCreated, wantProblem)
	}
}

// TestImport_Again has a seller and the gateway change the account between two runs of one import.
func TestImport_Again(t *testing.T) {
	h := newFixture(t, valid("ASHA DESAI", 100), valid("RAVI KUMAR", 0))
	imported := h.ashas()
	h.imports(imported, true, "")
	h.imports(imported, false, "")
	h.mustStep()
	h.imports(imported, false, "")

	own := h.ashas()
	own.Number = mustNumber(t, "50200123456789")
	registered := h.register(own)
	const kept = "has another bank account here, which an import does not replace"
	h.imports(imported, false, kept)
	h.mustStep()
	if got := h.account(); got.ID != registered.ID || got.Status != bank.StatusRejected {
		t.Fatalf("the account is %+v, want %s, rejected", got, registered.ID)
	}
	h.imports(own, false, "") // a rejected account is not verified once more by each run
	h.imports(imported, true, "")
}

// TestRegister_SellerGone has the seller delete the account after a server or an import found them, and before it writes.
func TestRegister_SellerGone(t *testing.T) {
	h := newFixture(t)
	err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.ResetUser(t.Context(), auth.User{ID: "usr_asha", Email: "deleted usr_asha", Role: auth.Buyer})
	})
	if err != nil {
		t.Fatal(err)
	}
	r := h.ashas()
	r.Actor = "key:key_1"
	if _, err := h.service.Register(t.Context(), r); !errors.Is(err, bank.ErrSellerGone) {
		t.Errorf("err = %v, want ErrSellerGone", err)
	}
	if _, err := h.service.Account(t.Context(), "usr_asha"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("an account was registered: %v", err)
	}
}
