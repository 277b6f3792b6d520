package payout_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/storetest"
)

// In these tests somebody changes the database by hand, who has no keys.

// wantRow checks whether the audit has it that the payout's row is what its entries fold to.
func (s *story) wantRow(want bool) {
	s.Helper()
	s.wantFinding("payouts-match-journal", string(s.id), want)
}

// wantJournal checks whether the audit has it that the seller's journal is whole.
func (s *story) wantJournal(want bool) {
	s.Helper()
	s.wantFinding("journals-are-whole", "usr_a", want)
}

func (s *story) wantFinding(name, about string, whole bool) {
	s.Helper()
	report, err := s.db.Audit(s.Context(), s.keys)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range report.Findings {
		if broken := strings.Contains(strings.Join(f.Lines(), " "), about); f.Name == name && broken == whole {
			s.Errorf("%s finds %q, want it to find %s: %t", name, f.Violations, about, !whole)
		}
	}
}

// entriesAbout are a payout's entries, of which nobody has changed any.
func (s *story) entriesAbout(id payout.ID) []ledger.Entry {
	s.Helper()
	entries, err := s.db.EntriesAbout(s.Context(), s.stored(s, id).Seller, string(id))
	if err != nil {
		s.Fatal(err)
	}
	return entries
}

// wantDiscrepancy checks that the payout's entries say that a discrepancy was found, and whether it is resolved.
func (s *story) wantDiscrepancy(p payout.Payout, resolved bool) {
	s.Helper()
	entries := s.entriesAbout(s.id)
	tell := func(want ledger.Type) bool {
		return slices.ContainsFunc(entries, func(e ledger.Entry) bool { return e.Type == want })
	}
	if p.IsTampered() == resolved || !tell(ledger.DiscrepancyFound) || tell(ledger.DiscrepancyResolved) != resolved {
		s.Errorf("it says %q, and its entries are %+v; want a discrepancy that is resolved: %t", p.Discrepancy, entries, resolved)
	}
}

// keep copies the tables that a test changes, so that it can put back what was there.
func (s *story) keep(tables ...string) {
	s.Helper()
	for _, table := range tables {
		s.place.ByHand(s, `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table)
	}
}

// repair has the rows rebuilt from the journal.
func (s *story) repair() {
	s.Helper()
	repairs, err := s.db.Repair(s.Context(), s.keys, "tests", s.now, true)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range repairs {
		if r.Impossible != "" {
			s.Errorf("%s can't be repaired: %s", r.Subject, r.Impossible)
		}
	}
}

func TestTamperedBalance_StopsTheSeller(t *testing.T) {
	for name, change := range map[string]string{
		"more available":  `available = available + 10000000`,
		"less available":  `available = available - 1`,
		"more in transit": `in_transit = in_transit + 1`,
		"less pending":    `pending = pending + 1`,
		"more earned":     `earned = earned + 1`,
		"more withdrawn":  `withdrawn = withdrawn + 1`,
		"a counter":       `completed = completed + 1`,
		"another number":  `number = number + 1`,
		"another hash":    `hash = 'x'`,
		"another mac":     `mac = 'x'`,
		"no mac":          `mac = ''`,
		"another's row": `(number, hash, mac, pending, available, in_transit, earned, withdrawn, sales, processing, completed, failed, cancelled)
			= (SELECT number, hash, mac, pending, available, in_transit, earned, withdrawn, sales, processing, completed, failed, cancelled FROM journals WHERE owner = 'usr_b')`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.place.ByHand(t, `UPDATE journals SET `+change+` WHERE owner = 'usr_a'`)
			s.wantJournal(false)
			for _, key := range []string{"", "a key"} {
				if p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 50_000, Key: key}); !errors.Is(err, ledger.ErrTampered) {
					t.Errorf("requested with key %q: %+v, %v", key, p, err)
				}
			}
			_, _, err := s.sales.Record(t.Context(), sale.NewSale{ID: "another", Seller: "usr_a", Amount: 100})
			if !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("recorded a sale: %v", err)
			}
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("cancelled: %v", err)
			}
			s.later(windowOver)
			if s.wantState(payout.Waiting); s.gateway.sent > 0 {
				t.Error("a payout was sent of a balance that was changed by hand")
			}
			s.request("usr_b", 50_000) // who is not stopped by it

			s.repair()
			s.request("usr_a", 50_000)
			s.later(time.Hour)
			s.wantState(payout.Submitted)
			s.wantAvailable(afterReserve - 50_000)
			s.wantViolated()
		})
	}
}

// TestTamperedBalance_OlderRow puts back a balance that the service has written, from before a payout.
func TestTamperedBalance_OlderRow(t *testing.T) {
	s := newStory(t)
	s.keep("journals")
	s.request("usr_a", 1_000_000)
	s.place.ByHand(t, `DELETE FROM journals WHERE owner = 'usr_a'`)
	s.place.ByHand(t, `INSERT INTO journals SELECT * FROM kept_journals WHERE owner = 'usr_a'`)
	s.wantJournal(false)
	if p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 1_500_000}); err == nil {
		t.Errorf("the same money was asked for twice: %+v", p)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, ledger.ErrTampered) || errors.Is(err, payout.ErrPayoutTampered) {
		t.Errorf("cancelled a payout that is as the service wrote it: %v", err)
	}
	s.later(windowOver)
	if s.gateway.sent > 0 {
		t.Error("a payout was sent though its seller's balance is older than the journal")
	}
}

// TestTamperedBalance_DeletedRow has the row of totals gone, so that the journal seems to begin again.
func TestTamperedBalance_DeletedRow(t *testing.T) {
	s := newStory(t)
	s.place.ByHand(t, `DELETE FROM journals WHERE owner = 'usr_a'`)
	s.wantJournal(false)
	if p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: 50_000}); err == nil {
		t.Errorf("requested of nothing: %+v", p)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err == nil {
		t.Error("cancelled into an empty journal")
	}
	s.later(windowOver)
	if s.wantState(payout.Waiting); s.gateway.sent > 0 {
		t.Error("a payout was sent whose seller has no balance")
	}
}

// TestTamperedPayout_IsNotSent changes each of the columns that a payout was made with.
func TestTamperedPayout_IsNotSent(t *testing.T) {
	for column, to := range map[string]string{
		"seller_id": "'usr_b'", "bank_account_id": "'bka_usr_b'", "amount": "amount + 100", "fee": "fee - 100", "notes": "'gift'", "rail": "'RTGS'",
		"requested_at": "requested_at + 1", "arrive_at": "arrive_at - 1", "gateway_id": "'pout_other'", "reason": "'Asked by phone.'",
	} {
		t.Run(column, func(t *testing.T) {
			s := newStory(t)
			s.wantRow(true)
			s.place.ByHand(t, `UPDATE payouts SET `+column+` = `+to)
			s.wantRow(false)
			for range 3 {
				s.later(windowOver)
			}
			if p := s.wantState(payout.Waiting); !p.IsTampered() || !p.SentAt.IsZero() || len(s.gateway.transfers) > 0 {
				t.Errorf("%+v; the gateway has %d transfers", p, len(s.gateway.transfers))
			}
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{Admin: true, User: "usr_admin"}, s.id, ""); !errors.Is(err, payout.ErrPayoutTampered) {
				t.Errorf("cancelled with %v", err)
			}
			s.wantAvailable(afterReserve)

			s.repair()
			s.wantRow(true)
			if column != "seller_id" { // no journal knows it as that seller's, so that none tells of it
				s.wantDiscrepancy(s.payout(), true)
			}
			s.later(time.Hour)
			if p := s.wantState(payout.Submitted); p.Discrepancy != "" {
				t.Errorf("it is still said that %s", p.Discrepancy)
			}
			s.wantAvailable(afterReserve)
			s.wantViolated()
		})
	}
}

// TestTamperedPayout_PutBackThenSent clears the discrepancy when the payout is sent. It doesn't wait for the answer.
func TestTamperedPayout_PutBackThenSent(t *testing.T) {
	s := newStory(t)
	s.place.ByHand(t, `UPDATE payouts SET notes = 'gift'`)
	s.later(windowOver)
	if p := s.wantState(payout.Waiting); !p.IsTampered() {
		t.Fatalf("it says %q", p.Discrepancy)
	}
	s.place.ByHand(t, `UPDATE payouts SET notes = 'rent'`)
	s.gateway.mood = lostAnswers
	s.later(time.Hour)
	if p := s.wantState(payout.Unknown); p.Discrepancy != "" {
		t.Errorf("it is still said that %s", p.Discrepancy)
	}
}

// TestTamperedAccount_IsNotPaid has the real service of bank accounts say which account is paid. The payout is what was
// asked for, so that it can be cancelled.
func TestTamperedAccount_IsNotPaid(t *testing.T) {
	reject := func(s *story) {
		err := s.db.Auth().InTx(s.Context(), func(tx auth.Tx) error {
			return tx.RejectBankAccounts(s.Context(), "usr_a", "It was taken over.", s.now)
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		before func(*story)
		change string
	}{
		"another beneficiary":             {func(*story) {}, `UPDATE bank_accounts SET beneficiary = 'fa_mallory' WHERE id = 'bka_usr_a'`},
		"another holder":                  {func(*story) {}, `UPDATE bank_accounts SET holder = 'Mallory' WHERE id = 'bka_usr_a'`},
		"rejected, put back to verified":  {reject, `UPDATE bank_accounts SET status = 'verified', is_current = 1 WHERE id = 'bka_usr_a'`},
		"verified later than it was":      {func(*story) {}, `UPDATE bank_accounts SET verified_at = verified_at + 1 WHERE id = 'bka_usr_a'`},
		"its entries gone":                {func(*story) {}, `DELETE FROM entries WHERE subject = 'bka_usr_a'`},
		"another account's, entries too":  {func(*story) {}, `UPDATE bank_accounts SET seller_id = 'usr_b', is_current = 0 WHERE id = 'bka_usr_a'; UPDATE entries SET owner = 'usr_b', number = 99 WHERE subject = 'bka_usr_a'`},
		"an entry that says it otherwise": {func(*story) {}, `UPDATE entries SET data = REPLACE(data, 'fa_usr_a', 'fa_mallory') WHERE subject = 'bka_usr_a'; UPDATE bank_accounts SET beneficiary = 'fa_mallory' WHERE id = 'bka_usr_a'`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.useBank(t)
			tt.before(s)
			s.place.ByHand(t, tt.change)
			s.later(windowOver)
			if p := s.wantState(payout.Waiting); !p.IsTampered() || p.Tries != 1 || s.gateway.sent > 0 {
				t.Errorf("%+v; it was sent %d times", p, s.gateway.sent)
			}
			s.wantDiscrepancy(s.payout(), false)
			if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, s.payout().Discrepancy); err != nil {
				t.Fatal(err)
			}
			decisions, err := s.db.Decisions(t.Context(), string(s.id), 10)
			if err != nil || len(decisions) != 1 || !strings.Contains(decisions[0].Note, "Found: this payout") {
				t.Errorf("on record is %+v, %v", decisions, err)
			}
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				t.Error(err)
			}
			s.wantAvailable(opening)
		})
	}
}

// TestTakenOver_HiddenByHand has an attacker hide the account from the takeover, or its rejection from a resend.
func TestTakenOver_HiddenByHand(t *testing.T) {
	const hide, show = `UPDATE bank_accounts SET `, ` WHERE id = 'bka_usr_a'`
	const forget = `DELETE FROM entries WHERE owner = 'usr_a' AND type = 'bank_account.rejected'; `
	for name, tt := range map[string]struct {
		before, after string
		// isSending says that the takeover comes while the order is being sent, so that the payout's next entry is behind it, and
		// another one between the two.
		isSending bool
	}{
		"the row put back":              {"", hide + `status = 'verified', verified_at = created_at, is_current = 1` + show, false},
		"a row rejected by hand before": {hide + `status = 'rejected', is_current = 0` + show, hide + `status = 'verified', verified_at = created_at, is_current = 1` + show, false},
		"a row lent before":             {hide + `seller_id = 'usr_b', is_current = 0` + show, hide + `seller_id = 'usr_a', status = 'verified', verified_at = created_at, is_current = 1` + show, false},
		"its last entry deleted":        {"", forget + hide + `status = 'verified', verified_at = created_at, is_current = 1` + show, false},
		"an earlier entry deleted":      {"", forget + hide + `status = 'verified', verified_at = created_at, is_current = 1` + show, true},
		"an entry changed before":       {`UPDATE entries SET at = at + 1 WHERE type = 'bank_account.added' AND owner = 'usr_a'`, `UPDATE entries SET at = at - 1 WHERE type = 'bank_account.added' AND owner = 'usr_a'; ` + hide + `status = 'verified', is_current = 1` + show, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.useBank(t)
			takeOver := func() {
				if tt.before != "" {
					s.place.ByHand(t, tt.before)
				}
				err := s.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
					return tx.RejectBankAccounts(t.Context(), "usr_a", "It was taken over.", s.now)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			s.gateway.mood = lostRequests
			if tt.isSending {
				s.gateway.whenSent = func() {
					takeOver()
					if err := errors.Join(s.payouts.Freeze(t.Context(), ada, "usr_a"), s.payouts.Unfreeze(t.Context(), ada, "usr_a")); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.later(windowOver)
			s.wantState(payout.Unknown)
			if s.gateway.whenSent = nil; !tt.isSending {
				takeOver()
			}
			s.place.ByHand(t, tt.after)
			sent := s.gateway.sent
			s.gateway.mood = fair
			for range 8 {
				s.later(time.Hour)
			}
			if s.gateway.sent != sent {
				t.Errorf("it was sent %d times after that, and is %s", s.gateway.sent-sent, s.payout().State)
			}
			s.wantAvailable(afterReserve)
		})
	}
}

// TestFormerAccount_PutBackForARequest_IsNotPaid has the row of a replaced account put back while its seller requests a payout, or
// hidden while it is replaced.
func TestFormerAccount_PutBackForARequest_IsNotPaid(t *testing.T) {
	const (
		former  = `UPDATE bank_accounts SET is_current = 0, mac = '' WHERE id <> 'bka_usr_a' AND seller_id = 'usr_a'; UPDATE bank_accounts SET is_current = 1, mac = (SELECT mac FROM kept_bank_accounts WHERE id = 'bka_usr_a') WHERE id = 'bka_usr_a'`
		current = `UPDATE bank_accounts SET is_current = 0, mac = '' WHERE id = 'bka_usr_a'; UPDATE bank_accounts SET is_current = 1 WHERE id <> 'bka_usr_a' AND seller_id = 'usr_a'`
	)
	for name, tt := range map[string]struct{ hide, show string }{
		"put back, and undone":      {"", current},
		"put back":                  {"", ""},
		"hidden while it was ended": {`UPDATE bank_accounts SET is_current = 0 WHERE id = 'bka_usr_a'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.useBank(t)
			s.keep("bank_accounts")
			if tt.hide != "" {
				s.place.ByHand(t, tt.hide)
			}
			number, err := bank.ParseNumber("50100234567777")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.gateway.bank.Register(t.Context(), bank.Registration{Seller: "usr_a", Holder: "Asha Rao", Number: number, IFSC: "HDFC0000053"}); err != nil {
				t.Fatal(err)
			}
			s.place.ByHand(t, former)
			asked := s.request("usr_a", 70_000)
			if tt.show != "" {
				s.place.ByHand(t, tt.show)
			}
			s.later(windowOver)
			if tt.show == "" { // what a repair does
				s.place.ByHand(t, current)
				for _, id := range []payout.ID{s.id, asked.ID} {
					if err := s.payouts.ResolveDiscrepancy(t.Context(), ada, id, payout.TamperedNote); err != nil {
						t.Fatal(err)
					}
				}
				s.later(time.Hour)
			}
			s.wantState(payout.Submitted) // that was requested before
			p, err := s.db.Payout(t.Context(), asked.ID)
			if err != nil || p.State != payout.Waiting || !p.IsTampered() || s.gateway.transfers[string(asked.ID)] != nil {
				t.Errorf("the payout is %+v, %v", p, err)
			}
			s.wantViolated("payouts-go-to-current-accounts", "gateway-agrees")
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, asked.ID, ""); err != nil {
				t.Error(err)
			}
			s.wantAvailable(afterReserve)
			s.wantViolated("gateway-agrees") // until an admin has looked at it; it was not sent, and never will be
		})
	}
}

// TestFormerAccount_NewerOneHidden_IsNotPaid puts back a former account for a request, and hides from the index that another one took its place.
func TestFormerAccount_NewerOneHidden_IsNotPaid(t *testing.T) {
	s := newStory(t)
	s.useBank(t)
	s.keep("bank_accounts")
	number, err := bank.ParseNumber("50100234567777")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.gateway.bank.Register(t.Context(), bank.Registration{Seller: "usr_a", Holder: "Asha Rao", Number: number, IFSC: "HDFC0000053"}); err != nil {
		t.Fatal(err)
	}
	s.place.HideFromIndex(t, `owner = 'usr_a' AND subject <> 'bka_usr_a' AND type = 'bank_account.added' OR type = 'bank_account.replaced'`)
	s.place.ByHand(t, `UPDATE bank_accounts SET is_current = 0, mac = '' WHERE id <> 'bka_usr_a' AND seller_id = 'usr_a';
		UPDATE bank_accounts SET is_current = 1, mac = (SELECT mac FROM kept_bank_accounts WHERE id = 'bka_usr_a') WHERE id = 'bka_usr_a'`)
	asked := s.request("usr_a", 70_000)
	s.later(windowOver)
	if p, err := s.db.Payout(t.Context(), asked.ID); err != nil || p.State != payout.Waiting || !p.IsTampered() || s.gateway.transfers[string(asked.ID)] != nil {
		t.Errorf("the payout is %+v, %v", p, err)
	}
}

// TestTakenOver_IsNotPaid has another person take the seller over while the service tells the gateway of the bank account, or once the
// answer to the order is lost. The account was the current one until then, or had been replaced.
func TestTakenOver_IsNotPaid(t *testing.T) {
	takeOver := func(s *story) {
		err := s.db.Auth().InTx(s.Context(), func(tx auth.Tx) error {
			return tx.RejectBankAccounts(s.Context(), "usr_a", "It was taken over.", s.now)
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	for name, replaced := range map[string]bool{"the current account": false, "a replaced account": true} {
		t.Run(name, func(t *testing.T) {
			ready := func() *story {
				s := newStory(t)
				s.useBank(t)
				if replaced {
					number, err := bank.ParseNumber("50100234567777")
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.gateway.bank.Register(t.Context(), bank.Registration{Seller: "usr_a", Holder: "Asha Rao", Number: number, IFSC: "HDFC0000053"}); err != nil {
						t.Fatal(err)
					}
				}
				return s
			}
			s := ready()
			s.gateway.whenAnswered = func() { takeOver(s) }
			s.later(windowOver)
			if p := s.wantState(payout.Failed); p.ReasonCode != bank.ErrNotAccepted.Code || s.gateway.sent > 0 {
				t.Errorf("it failed with %q and was sent %d times", p.ReasonCode, s.gateway.sent)
			}
			s.wantAvailable(opening)

			s = ready()
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.wantState(payout.Unknown)
			takeOver(s)
			sent := s.gateway.sent
			s.gateway.mood = fair
			for range 8 {
				s.later(time.Hour)
			}
			s.wantState(payout.Unknown)
			if s.gateway.sent != sent {
				t.Errorf("it was sent %d times after that", s.gateway.sent-sent)
			}
			s.wantAvailable(afterReserve)
		})
	}
}

// useBank has the accounts that are paid checked by the service for bank accounts.
func (s *story) useBank(t *testing.T) {
	t.Helper()
	var err error
	s.gateway.bank, err = bank.New(bank.Options{
		Store: s.db.Bank(), Keys: s.keys, Mails: storetest.NewMailbox(t, s.db, s.keys, func() time.Time { return s.now }), Gateways: s.gateways(), Directory: ifsc.New(),
		Now: func() time.Time { return s.now }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTamperedSale_RecordedAgainIsNotPaid hides a sale that was paid out, so that the marketplace's repeat records it again. Its
// money does not leave, also when its entries are put back before they are looked at.
func TestTamperedSale_RecordedAgainIsNotPaid(t *testing.T) {
	const (
		hide   = `UPDATE entries SET subject = 'hidden' || subject WHERE subject = 'sale:opening of usr_a' AND number < 5`
		unhide = `UPDATE entries SET subject = 'sale:opening of usr_a' WHERE subject LIKE 'hidden%'`
		old    = `DELETE FROM journals WHERE owner = 'usr_a'; INSERT INTO journals SELECT * FROM kept_journals WHERE owner = 'usr_a'`
	)
	for name, unhideBefore := range map[string]string{
		"hidden": "", "hidden until it is released": "request", "hidden until the payout is sent": "send",
		"an old balance while it is looked at": "request",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.useBank(t)
			s.later(windowOver)
			s.wantState(payout.Submitted) // its journal was found whole
			opened := sale.NewSale{ID: "opening of usr_a", Seller: "usr_a", Amount: 2_000_000, OccurredAt: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), AvailableAt: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
			s.keep("journals")
			s.place.ByHand(t, `DELETE FROM sales WHERE seller_id = 'usr_a'; `+hide)
			if _, created, err := s.sales.Record(t.Context(), opened); err != nil || !created {
				t.Fatalf("the attack fails already when the sale is repeated: %t, %v", created, err)
			}
			s.release(t)
			s.wantAvailable(2*opening - 100_000)
			unhideFor := func(what string) {
				if unhideBefore == what {
					s.place.ByHand(t, unhide)
				}
			}
			unhideFor("request")
			p, _, err := s.payouts.Request(t.Context(), payout.Request{Seller: "usr_a", Amount: opening})
			if err != nil {
				t.Fatal(err)
			}
			unhideFor("send")
			if strings.HasPrefix(name, "an old balance") {
				s.place.ByHand(t, `CREATE TABLE new_journals AS SELECT * FROM journals`)
				s.gateway.whenAsked = func() { s.place.ByHand(t, old) }
				s.gateway.whenAnswered = func() { s.place.ByHand(t, strings.ReplaceAll(old, "kept_", "new_")) }
			}
			sent := s.gateway.sent
			for range 2 {
				s.later(time.Hour)
			}
			if p = s.stored(t, p.ID); p.State != payout.Waiting || !p.IsTampered() || s.gateway.sent != sent {
				t.Errorf("the payout is %s, %q; %d orders were sent", p.State, p.Discrepancy, s.gateway.sent-sent)
			}
			s.wantJournal(false)
		})
	}
}

// TestTamperedPayout_IsNotRefunded raises a payout by hand after it was sent, and its fee by as much, so that what the bank
// is sent stays the same. Or it changes an entry.
func TestTamperedPayout_IsNotRefunded(t *testing.T) {
	raised := `UPDATE payouts SET amount = amount + 400000, fee = fee + 400000 WHERE id = `
	sendToReview := func(s *story) error {
		_, err := s.payouts.SendToReview(t.Context(), ada, s.id)
		s.now = s.now.Add(time.Hour)
		return err
	}
	refundToBalance := func(s *story) error {
		_, err := s.payouts.RefundToBalance(t.Context(), ada, s.id)
		return err
	}
	for name, tt := range map[string]struct {
		mood   mood
		before func(*story) error
		sql    string
		refund func(*story) error
	}{
		"by the gateway's word": {queueing, nil, raised, func(s *story) error {
			_, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, "")
			return err
		}},
		"sent to review":                      {lostRequests, nil, raised, sendToReview},
		"by an admin's":                       {lostRequests, sendToReview, raised, refundToBalance},
		"by an admin's, with a changed entry": {lostRequests, sendToReview, `UPDATE entries SET actor = 'user:usr_b' WHERE subject = `, refundToBalance},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.request("usr_a", 500_000)
			s.gateway.mood = tt.mood
			s.later(windowOver)
			s.gateway.mood = fair
			if tt.before != nil {
				if err := tt.before(s); err != nil {
					t.Fatal(err)
				}
			}
			s.place.ByHand(t, tt.sql+`'`+string(s.id)+`'`)
			if err := tt.refund(s); !errors.Is(err, payout.ErrPayoutTampered) {
				t.Errorf("given back with %v", err)
			}
			s.wantAvailable(afterReserve - 500_000)
		})
	}
}

// TestTamperedOrder_IsNotSentAgain has an order's answer missing, or makes it out to be.
func TestTamperedOrder_IsNotSentAgain(t *testing.T) {
	for name, change := range map[string]string{
		"another order":      `UPDATE payouts SET order_body = order_body || ' '`,
		"a longer time":      `UPDATE payouts SET sent_at = sent_at + 1`,
		"another account":    `UPDATE payouts SET bank_account_id = 'bka_usr_b'`,
		"one that was never": `UPDATE payouts SET state = 'unknown', tries = 1, sent_at = requested_at, order_body = 'all to fa_mallory'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = lostRequests
			s.later(windowOver)
			s.wantState(payout.Unknown)
			s.wantRow(true)
			s.gateway.mood = fair
			s.keep("payouts")
			s.place.ByHand(t, change)
			s.wantRow(false)
			for range 2 { // it is looked up, and then it would be sent again
				s.later(time.Hour)
			}
			if p := s.wantState(payout.Unknown); !p.IsTampered() {
				t.Errorf("when it would be sent again, it says %q", p.Discrepancy)
			}
			for range 3 {
				s.later(time.Hour)
			}
			if p := s.wantState(payout.Unknown); !p.IsTampered() || s.gateway.sent != 1 {
				t.Errorf("%+v; it was sent %d times, want once before it was changed", p, s.gateway.sent)
			}
			s.wantDiscrepancy(s.payout(), false)
			s.wantAvailable(afterReserve)

			s.place.ByHand(t, `UPDATE payouts SET order_body = kept.order_body, sent_at = kept.sent_at, bank_account_id = kept.bank_account_id
				FROM kept_payouts AS kept`)
			s.wantRow(true)
			s.later(time.Hour)
			s.later(time.Hour)
			if p := s.wantState(payout.Submitted); p.Discrepancy != "" || s.gateway.sent != 2 {
				t.Errorf("%+v; it was sent %d times, want once more", p, s.gateway.sent)
			}
			s.wantViolated()
		})
	}
}

// TestTamperedState_NeverSentPayout makes a payout out to be under way that waits, with an order of somebody else's.
func TestTamperedState_NeverSentPayout(t *testing.T) {
	for _, state := range []payout.State{payout.Submitting, payout.Unknown} {
		t.Run(string(state), func(t *testing.T) {
			s := newStory(t)
			s.place.ByHand(t, `UPDATE payouts SET state = '`+string(state)+`', tries = 1, sent_at = requested_at, order_body = 'all to fa_mallory'`)
			s.wantRow(false)
			for range 5 {
				s.later(time.Hour)
			}
			if p := s.payout(); !p.IsTampered() || s.gateway.sent > 0 {
				t.Errorf("%+v; it was sent %d times", p, s.gateway.sent)
			}
			s.wantAvailable(afterReserve)
		})
	}
}

// TestTamperedState_EndedPayout has somebody say in the database that a payout waits which has ended.
func TestTamperedState_EndedPayout(t *testing.T) {
	for name, end := range map[string]func(*story){
		"cancelled": func(s *story) {
			if _, _, err := s.payouts.Cancel(s.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				s.Fatal(err)
			}
		},
		"completed": func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Minute)
			s.wantState(payout.Completed)
			delete(s.gateway.transfers, string(s.id)) // nobody can ask any more
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			end(s)
			sent, available := s.gateway.sent, s.available()
			s.wantRow(true)
			s.place.ByHand(t, `UPDATE payouts SET state = 'waiting', status = 'processing', sent_at = NULL, processed_at = NULL, completed_at = NULL,
				ended_at = NULL, gateway_id = '', progress = '', utr = '', due_at = requested_at`)
			s.wantRow(false)
			s.later(windowOver)
			if p := s.wantState(payout.Waiting); !p.IsTampered() || s.gateway.sent != sent {
				t.Errorf("%+v; it was sent %d times more", p, s.gateway.sent-sent)
			}
			if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, payout.ErrPayoutTampered) {
				t.Errorf("cancelled once more: %v", err)
			}
			s.wantDiscrepancy(s.payout(), false)
			s.wantAvailable(available)

			s.repair()
			s.wantDiscrepancy(s.payout(), true)
			s.wantViolated()
			s.later(windowOver)
			if p := s.payout(); p.State == payout.Waiting || p.Discrepancy != "" || s.gateway.sent != sent {
				t.Errorf("%+v; it was sent %d times more", p, s.gateway.sent-sent)
			}
			s.wantAvailable(available)
		})
	}
}

// TestTamperedPayout_DecisionsOfAnotherSellers gives a payout's row to another seller. What an admin decides about it is refused, and the other
// seller's journal says nothing of it.
func TestTamperedPayout_DecisionsOfAnotherSellers(t *testing.T) {
	s := newStory(t)
	s.place.ByHand(t, `UPDATE payouts SET seller_id = 'usr_b'`)
	s.later(windowOver)
	seen := s.payout()
	if !seen.IsTampered() {
		t.Errorf("the payout is %+v", seen)
	}
	_, err := s.payouts.AskGateway(t.Context(), ada, s.id)
	for what, err := range map[string]error{"asked": err, "resolved": s.payouts.ResolveDiscrepancy(t.Context(), ada, s.id, seen.Discrepancy)} {
		if !errors.Is(err, payout.ErrPayoutTampered) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.repair()
	s.wantViolated()
}

// TestTamperedState_EndHidden hides from the index that a payout was cancelled, and has its row say that it waits.
func TestTamperedState_EndHidden(t *testing.T) {
	s := newStory(t)
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
		t.Fatal(err)
	}
	available := s.available()
	s.place.HideFromIndex(t, `type = 'payout.cancelled'`)
	s.place.ByHand(t, `UPDATE payouts SET state = 'waiting', status = 'processing', ended_at = NULL, due_at = requested_at`)
	for range 2 {
		s.later(windowOver)
		s.wantState(payout.Waiting)
	}
	if s.gateway.sent != 0 {
		t.Errorf("it was sent %d times", s.gateway.sent)
	}
	if _, _, err := s.payouts.Cancel(t.Context(), payout.Caller{User: "usr_a"}, s.id, ""); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("cancelled once more: %v", err)
	}
	s.wantAvailable(available)
}

// TestReconcileStartup_EndHidden hides from the index all that came of a payout, and says in the database that it waits. The start finds its
// transfer at the gateway, and does not take it for one that the database has lost.
func TestReconcileStartup_EndHidden(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.gateway.transfers[string(s.id)].advance(1)
	s.later(time.Minute)
	s.wantState(payout.Completed)
	available := s.available()
	s.place.HideFromIndex(t, `type IN ('payout.submitting', 'payout.submitted', 'payout.updated', 'payout.completed')`)
	s.place.ByHand(t, `UPDATE payouts SET state = 'waiting', status = 'processing', sent_at = NULL, processed_at = NULL, completed_at = NULL, ended_at = NULL,
		order_body = '', gateway_id = '', progress = '', utr = '', reason_code = '', reason = '', tries = 0`)
	s.wantRow(false)
	s.payouts = s.newPayouts(t)
	_ = s.payouts.ReconcileStartup(t.Context()) // the others go on, or the start is tried again
	s.later(time.Hour)
	s.wantState(payout.Waiting)
	s.wantAvailable(available)
}

// TestRepair_OfPayoutUnderWay has the gateway's report disagree with what somebody wrote. After the repair nothing is left
// of that, and the payout goes on.
func TestRepair_OfPayoutUnderWay(t *testing.T) {
	for name, change := range map[string]string{
		"another amount":  `UPDATE payouts SET amount = amount + 100`,
		"another account": `UPDATE bank_accounts SET beneficiary = 'fa_mallory' WHERE id = 'bka_usr_a'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			s.wantState(payout.Submitted)
			s.place.ByHand(t, change)
			s.later(time.Hour)
			if p := s.wantState(payout.Submitted); p.Discrepancy == "" || strings.Contains(name, "amount") && !p.IsTampered() {
				t.Errorf("%+v", p)
			}
			s.repair()
			s.wantViolated()
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(24 * time.Hour)
			s.wantState(payout.Completed)
			s.wantViolated()
		})
	}
}

// A bank account's row is changed while the gateway is asked about a payout to it, and is put back by hand. Nothing is left of that, and the gateway is
// not blamed.
func TestTamperedAccount_PutBack_NothingIsLeft(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.place.ByHand(t, `UPDATE bank_accounts SET beneficiary = 'fa_mallory' WHERE id = 'bka_usr_a'`)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); !p.IsTampered() {
		t.Errorf("the discrepancy is %q", p.Discrepancy)
	}
	s.place.ByHand(t, `UPDATE bank_accounts SET beneficiary = 'fa_usr_a' WHERE id = 'bka_usr_a'`)
	s.later(time.Hour)
	s.wantViolated()
	if p := s.wantState(payout.Submitted); p.Discrepancy != "" {
		t.Errorf("the discrepancy is %q", p.Discrepancy)
	}
}

// TestRepair_OfLostOrder leaves the payout to an admin, because nothing has the order that may be on its way.
func TestRepair_OfLostOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		state  payout.State
	}{
		"another order": {`UPDATE payouts SET order_body = order_body || ' '`, payout.Unknown},
		"its hash":      {`UPDATE payouts SET order_body = 'sha256:' || order_body`, payout.Unknown},
		"no order":      {`UPDATE payouts SET order_body = ''`, payout.Unknown},
		"no row":        {`DELETE FROM payouts`, payout.Unknown},
		"being sent":    {`UPDATE payouts SET order_body = 'another'`, payout.Submitting},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.gateway.mood = lostRequests
			if tt.state == payout.Submitting {
				s.gateway.mood = diesBefore
			}
			s.later(windowOver)
			s.wantState(tt.state)
			sent := s.gateway.sent
			s.place.ByHand(t, tt.change)
			s.repair()
			s.wantViolated()
			s.gateway.mood = fair
			for range 5 {
				s.later(time.Hour)
			}
			if s.wantState(payout.ManualReview); s.gateway.sent != sent {
				t.Errorf("it was sent %d times more", s.gateway.sent-sent)
			}
			if _, err := s.payouts.RefundToBalance(t.Context(), ada, s.id); err != nil {
				t.Error(err)
			}
			s.wantAvailable(opening)
			s.wantViolated()
		})
	}
}

// TestTamperedOrder_TheHashOfAnOrder is stored in the place of the order that has it.
func TestTamperedOrder_TheHashOfAnOrder(t *testing.T) {
	s := newStory(t)
	s.gateway.mood = lostRequests
	s.later(windowOver)
	s.wantState(payout.Unknown)
	s.gateway.mood = fair
	s.place.ByHand(t, `UPDATE payouts SET order_body = 'sha256:`+string(ledger.HashOf(s.payout().OrderBody))+`'`)
	s.wantRow(false)
	for range 5 {
		s.later(time.Hour)
	}
	if p := s.wantState(payout.Unknown); !p.IsTampered() || s.gateway.sent != 1 {
		t.Errorf("%+v; it was sent %d times, want once before it was changed", p, s.gateway.sent)
	}
}

func (s *story) available() int64 {
	s.Helper()
	b, err := s.db.Balance(s.Context(), "usr_a")
	if err != nil {
		s.Fatal(err)
	}
	return int64(b.Available)
}

// TestTamperedJournal_PayoutIsNotSentAgain drops what happened to a payout since it was asked for, and puts its row back
// to what it was then. All that is left was written by the service, but not all that it wrote is left.
func TestTamperedJournal_PayoutIsNotSentAgain(t *testing.T) {
	for name, after := range map[string]func(*story){
		"submitted": func(s *story) { s.later(windowOver); s.wantState(payout.Submitted) },
		"completed": func(s *story) {
			s.later(windowOver)
			s.gateway.transfers[string(s.id)].advance(1)
			s.later(time.Minute)
			s.wantState(payout.Completed)
		},
		"cancelled": func(s *story) {
			if _, _, err := s.payouts.Cancel(s.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				s.Fatal(err)
			}
		},
		"cancelled, and a sale after it": func(s *story) {
			if _, _, err := s.payouts.Cancel(s.Context(), payout.Caller{User: "usr_a"}, s.id, ""); err != nil {
				s.Fatal(err)
			}
			s.record(s, sale.NewSale{ID: "later", Seller: "usr_a", Amount: 100})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.keep("payouts")
			after(s)
			sent, available := s.gateway.sent, s.available()
			s.gateway.transfers = map[string]*transfer{} // nobody can ask any more
			s.place.ByHand(t, `UPDATE entries SET subject = 'pyt_other' WHERE subject = '`+string(s.id)+`' AND type <> 'payout.requested'`)
			s.place.ByHand(t, `DELETE FROM payouts`)
			s.place.ByHand(t, `INSERT INTO payouts SELECT * FROM kept_payouts`)
			s.wantRow(true)
			for range 3 {
				s.later(windowOver)
			}
			if p := s.wantState(payout.Waiting); !p.IsTampered() || s.gateway.sent != sent {
				t.Errorf("%+v; it was sent %d times more", p, s.gateway.sent-sent)
			}
			s.wantAvailable(available)
		})
		t.Run(name+", dropped", func(t *testing.T) {
			s := newStory(t)
			s.keep("payouts", "entries")
			after(s)
			sent, available := s.gateway.sent, s.available()
			s.gateway.transfers = map[string]*transfer{} // nobody can ask any more
			s.place.ByHand(t, `CREATE TABLE dropped AS SELECT * FROM entries WHERE subject = '`+string(s.id)+`' AND type <> 'payout.requested'`)
			s.place.ByHand(t, `DELETE FROM entries WHERE subject = '`+string(s.id)+`' AND type <> 'payout.requested'`)
			s.place.ByHand(t, `DELETE FROM payouts`)
			s.place.ByHand(t, `INSERT INTO payouts SELECT * FROM kept_payouts`)
			s.wantRow(true) // each is what the service wrote
			s.wantJournal(false)
			for range 3 {
				s.later(windowOver)
			}
			if p := s.wantState(payout.Waiting); !p.IsTampered() || s.gateway.sent != sent {
				t.Errorf("%+v; it was sent %d times more", p, s.gateway.sent-sent)
			}
			s.wantAvailable(available)
		})
	}
}

// TestTamperedPayout_ReportMovesNoMoney until the payout is put right. Then nothing is told of it any more.
func TestTamperedPayout_ReportMovesNoMoney(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	s.wantState(payout.Submitted)
	s.place.ByHand(t, `UPDATE payouts SET amount = amount + 400000, fee = fee + 400000`)
	s.gateway.transfers[string(s.id)].progress = gateway.Failed
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); !p.IsTampered() {
		t.Errorf("%+v", p)
	}
	s.wantDiscrepancy(s.payout(), false)
	s.wantAvailable(afterReserve)
	s.place.ByHand(t, `UPDATE payouts SET amount = amount - 400000, fee = fee - 400000`)
	s.later(24 * time.Hour)
	if p := s.wantState(payout.Failed); p.Discrepancy != "" {
		t.Errorf("%+v", p)
	}
	s.wantAvailable(opening)
	s.wantViolated()
}

// TestTamperedPast_IsFound changes what is said of a payout's past, once it is completed.
func TestTamperedPast_IsFound(t *testing.T) {
	const putBack = `DELETE FROM payouts; INSERT INTO payouts SELECT * FROM kept_payouts`
	for name, tt := range map[string]struct {
		change       string
		row, journal bool // which are still whole
	}{
		"what it was":      {`UPDATE payouts SET state = 'returned', status = 'failed'`, false, true},
		"sent":             {`UPDATE payouts SET sent_at = sent_at + 1`, false, true},
		"taken on":         {`UPDATE payouts SET processed_at = processed_at + 1`, false, true},
		"completed":        {`UPDATE payouts SET completed_at = completed_at + 1`, false, true},
		"over":             {`UPDATE payouts SET ended_at = ended_at + 1`, false, true},
		"the transfer":     {`UPDATE payouts SET gateway_id = 'pout_other'`, false, true},
		"its progress":     {`UPDATE payouts SET progress = 'reversed'`, false, true},
		"the reference":    {`UPDATE payouts SET utr = 'HDFCN00000000002'`, false, true},
		"a reason":         {`UPDATE payouts SET reason_code = 'bank_rejected'`, false, true},
		"what it says why": {`UPDATE payouts SET reason = 'No such account.'`, false, true},
		"a discrepancy":    {`UPDATE payouts SET discrepancy = 'another amount'`, false, true},
		"a time":           {`UPDATE entries SET at = at + 1 WHERE type = 'payout.submitted'`, true, false},
		"who did it":       {`UPDATE entries SET actor = 'admin:usr_ada' WHERE type = 'payout.submitted'`, true, false},
		"what it says":     {`UPDATE entries SET data = REPLACE(data, 'pout_', 'pouy_') WHERE type = 'payout.submitted'`, false, false},
		"what moved":       {`UPDATE entries SET gateway = gateway - 1, fees = fees + 1 WHERE type = 'payout.completed'`, false, false},
		"an entry dropped": {`DELETE FROM entries WHERE type = 'payout.submitted'`, false, false},
		"the last dropped": {`DELETE FROM entries WHERE type = 'payout.completed'`, false, false},
		"all dropped":      {`DELETE FROM entries WHERE subject LIKE 'pyt_%'`, false, false},
		"one added": {`INSERT INTO entries SELECT owner, number + 1, at, 'payout.updated', subject, actor, data, 0, 0, 0, 0, 0, 0, after, hash, mac
			FROM entries WHERE type = 'payout.completed'`, true, false},
		"the row from before, whole":  {putBack, false, true},
		"and the entries that it had": {putBack + `; DELETE FROM entries WHERE type = 'payout.completed'`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.later(windowOver)
			s.wantState(payout.Submitted)
			s.keep("payouts")
			made := s.gateway.transfers[string(s.id)]
			made.progress, made.paid = gateway.Paid, 1
			s.later(time.Minute)
			s.wantState(payout.Completed)
			s.wantRow(true)
			s.wantJournal(true)
			s.place.ByHand(t, tt.change)
			s.wantRow(tt.row)
			s.wantJournal(tt.journal)
		})
	}
}

// TestTamperedPayout_KeepsTheGatewaysWord records a discrepancy before the row is tampered with. Who looks into
// it has not seen the end of the first matter.
func TestTamperedPayout_KeepsTheGatewaysWord(t *testing.T) {
	s := newStory(t)
	s.later(windowOver)
	made := s.gateway.transfers[string(s.id)]
	made.amount += 100
	s.later(time.Minute)
	said := s.wantState(payout.Submitted).Discrepancy
	made.amount, made.progress = made.amount-100, gateway.Failed
	s.place.ByHand(t, `UPDATE payouts SET notes = 'gift'`)
	s.later(time.Hour)
	if p := s.wantState(payout.Submitted); said == "" || p.Discrepancy != said {
		t.Errorf("the gateway had said %q, and what is kept is %q", said, p.Discrepancy)
	}
	s.place.ByHand(t, `UPDATE payouts SET notes = 'rent'`)
	s.wantRow(true)
}
