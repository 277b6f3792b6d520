package bank_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// noProof finds no proof with any registration.
type noProof struct{}

func (noProof) RequireProof(context.Context, bank.Tx, bank.Registration) error { return auth.ErrStepUp }

// TestRegister_ProofMissing_RecordedTenTimesADay refuses one account after another for want of a proof. The seller learns of ten
// at once, and of one more each time that a tenth of a day has passed.
func TestRegister_ProofMissing_RecordedTenTimesADay(t *testing.T) {
	h := newFixture(t)
	service, err := bank.New(bank.Options{
		Store: h.store, Keys: h.keys, Mails: h.mailbox, Gateways: h.gateways(), Directory: ifsc.New(), Proofs: noProof{},
		Now: func() time.Time { return h.now }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := h.ashas()
	session := auth.Session{ID: "ses_asha", UserID: r.Seller, CreatedAt: h.now, ExpiresAt: h.now.Add(time.Hour), CapAt: h.now.Add(time.Hour)}
	if err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error { return tx.InsertSession(t.Context(), session) }); err != nil {
		t.Fatal(err)
	}
	r.Session = session.ID
	if _, err := service.Register(t.Context(), r); !errors.Is(err, auth.ErrStepUp) {
		t.Fatalf("in a session: %v", err)
	}
	r.Session, r.Actor = "", "key:shop"
	refused := func(times, want int) {
		t.Helper()
		for range times {
			if _, err := service.Register(t.Context(), r); !errors.Is(err, auth.ErrStepUp) {
				t.Fatal(err)
			}
		}
		entries, err := h.db.EntriesAbout(t.Context(), r.Seller, r.Seller)
		if err != nil {
			t.Fatal(err)
		}
		mails := 0
		for _, d := range h.mailbox.To(r.Seller + "@example.com") {
			if _, is := d.(mail.BankAccountRefused); is {
				mails++
			}
		}
		recorded := 0
		for _, e := range entries {
			if e.Type == ledger.AccountProofMissing {
				recorded++
			}
		}
		if recorded != want || mails != want {
			t.Errorf("%d attempts are recorded and %d mailed, want %d", recorded, mails, want)
		}
	}
	const share = 2*time.Hour + 24*time.Minute
	refused(10, 10)
	h.now = h.now.Add(share - time.Second)
	refused(1, 10)
	h.now = h.now.Add(time.Second)
	refused(2, 11)
}
