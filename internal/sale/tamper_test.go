package sale_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
	"bursar/internal/storetest"
)

// In these tests somebody changes the database by hand, who has no keys.

// openTamperedShop is a shop with a sale that is due, another one, and one that is not due, after a change by hand.
func openTamperedShop(t *testing.T, change string) *fixture {
	t.Helper()
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-2", Seller: "usr_seller", Amount: 300, OccurredAt: s.now, AvailableAt: s.now.Add(time.Minute)}, true)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000, OccurredAt: s.now, AvailableAt: s.now.Add(time.Second)}, true)
	s.record(sale.NewSale{ID: "far", Seller: "usr_seller", Amount: 900_000, OccurredAt: s.now, AvailableAt: s.now.AddDate(0, 1, 0)}, true)
	s.wantViolated()
	s.place.ByHand(t, change)
	s.now = s.now.Add(time.Hour)
	return s
}

// wantBalances checks the seller's pending and available amounts alone.
func (s *fixture) wantBalances(pending, available money.Amount) {
	s.Helper()
	b, err := s.db.Balance(s.Context(), "usr_seller")
	if err != nil || b.Pending != pending || b.Available != available {
		s.Errorf("pending %d, available %d, %v; want %d and %d", b.Pending, b.Available, err, pending, available)
	}
}

// wantNoRepeat records a sale that is there already, alone and among others: a row that was tampered with answers neither.
func (s *fixture) wantNoRepeat(n sale.NewSale) {
	s.Helper()
	if again, _, err := s.sales.Record(s.Context(), n); !errors.Is(err, ledger.ErrTampered) {
		s.Errorf("the repeat was answered with %+v, %v", again, err)
	}
	if errs, err := s.sales.RecordAll(s.Context(), []sale.NewSale{n}); err != nil || !errors.Is(errs[0], ledger.ErrTampered) {
		s.Errorf("the repeat in a list: %v, %v", errs, err)
	}
}

// TestTamperedSale_IsNeitherReleasedNorRefunded changes each column of a sale, or its entries. Others are released beside it.
func TestTamperedSale_IsNeitherReleasedNorRefunded(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		found  []string
		back   string // where it can be put right by hand
	}{
		"enlarged": {
			`UPDATE sales SET amount = 500000 WHERE id = 'order-1'`,
			[]string{"sales-match-journal", "earnings-match-sales", "totals-match-adjustments"},
			`UPDATE sales SET amount = 5000 WHERE id = 'order-1'`,
		},
		"refunded in part": {
			`UPDATE sales SET refunded = 1 WHERE id = 'order-1'`,
			[]string{"sales-match-journal", "earnings-match-sales", "totals-match-adjustments"},
			`UPDATE sales SET refunded = 0 WHERE id = 'order-1'`,
		},
		"another month": {
			`UPDATE sales SET month = '2026-12' WHERE id = 'order-1'`,
			[]string{"sales-match-journal", "earnings-match-sales"},
			`UPDATE sales SET month = '2026-11' WHERE id = 'order-1'`,
		},
		"dated back": {
			`UPDATE sales SET available_at = available_at - 1 WHERE id = 'order-1'`,
			[]string{"sales-match-journal", "nothing-is-stuck"},
			`UPDATE sales SET available_at = available_at + 1 WHERE id = 'order-1'`,
		},
		"occurred before": {
			`UPDATE sales SET occurred_at = occurred_at - 1 WHERE id = 'order-1'`,
			[]string{"sales-match-journal"},
			`UPDATE sales SET occurred_at = occurred_at + 1 WHERE id = 'order-1'`,
		},
		"recorded before": {
			`UPDATE sales SET created_at = created_at - 1 WHERE id = 'order-1'`,
			[]string{"sales-match-journal"},
			`UPDATE sales SET created_at = created_at + 1 WHERE id = 'order-1'`,
		},
		"another request": {
			`UPDATE sales SET fingerprint = 'x' || fingerprint WHERE id = 'order-1'`,
			[]string{"sales-match-journal"},
			`UPDATE sales SET fingerprint = SUBSTR(fingerprint, 2) WHERE id = 'order-1'`,
		},
		"its entry changed too": {
			`UPDATE sales SET amount = 500000 WHERE id = 'order-1';
			UPDATE entries SET data = REPLACE(data, '"amount":5000', '"amount":500000'), pending = 500000, sales = -500000 WHERE subject = 'sale:order-1'`,
			[]string{"journals-are-whole", "earnings-match-sales", "totals-match-adjustments"},
			"",
		},
		"its entry gone": {
			`DELETE FROM entries WHERE subject = 'sale:order-1'`,
			[]string{"journals-are-whole", "sales-match-journal", "events-match-journal"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTamperedShop(t, tt.change)
			s.wantViolated(tt.found...)
			s.wantNoRepeat(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000, OccurredAt: s.now.Add(-time.Hour), AvailableAt: s.now.Add(time.Second - time.Hour)})
			released, err := s.sales.ReleaseDue(t.Context())
			if !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("released %d, %v; want the changed one named", released, err)
			}
			pending, available := money.Amount(905_000), money.Amount(300) // the one beside it is
			if strings.HasPrefix(name, "its entry") {                      // any other could be what it told of
				pending, available = 905_300, 0
			}
			s.wantBalances(pending, available)
			for _, amount := range []money.Amount{0, 100} {
				_, r, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1", Amount: amount})
				if !errors.Is(err, ledger.ErrTampered) {
					t.Errorf("refunded %d: %v", r.Amount, err)
				}
			}
			s.wantBalances(pending, available)
			s.release() // it is put off, and holds up nobody
			s.wantBalances(pending, available)
			if tt.back == "" {
				return
			}
			s.place.ByHand(t, tt.back)
			s.now = s.now.Add(2 * time.Hour)
			s.release()
			s.wantBalance(900_000, 5300, 905_300)
			if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1", Amount: 100}); err != nil {
				t.Errorf("refunded after it was put right: %v", err)
			}
			s.wantBalance(900_000, 5200, 905_200)
		})
	}
}

// TestTamperedSale_Inserted was sold by nobody.
func TestTamperedSale_Inserted(t *testing.T) {
	s := openTamperedShop(t, `INSERT INTO sales SELECT 'order-9', seller_id, 400000, 0, month, occurred_at, available_at, NULL, created_at, fingerprint, due_at
		FROM sales WHERE id = 'order-1'`)
	s.wantViolated("sales-match-journal", "earnings-match-sales", "totals-match-adjustments")
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) || strings.Contains(err.Error(), "\n") {
		t.Errorf("released: %v; want one error", err)
	}
	s.wantBalances(900_000, 5300)
	if _, r, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-9", ID: "r1"}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("refunded %d: %v", r.Amount, err)
	}
	s.wantBalances(900_000, 5300)
}

// TestTamperedSale_InsertedWithAnEntry has an entry too, which the service did not write.
func TestTamperedSale_InsertedWithAnEntry(t *testing.T) {
	s := openTamperedShop(t, `INSERT INTO sales SELECT 'order-9', seller_id, amount, 0, month, occurred_at, available_at, NULL, created_at, fingerprint, due_at
			FROM sales WHERE id = 'order-1';
		INSERT INTO entries SELECT owner, number + 100, at, type, 'sale:order-9', actor, data, pending, available, in_transit, entries.sales, gateway, fees, after, hash, mac
			FROM entries WHERE subject = 'sale:order-1'`)
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(905_300, 0) // the journal goes on behind its end, so nothing of the seller moves
}

// TestTamperedSale_GivenToAnotherSeller is released to neither.
func TestTamperedSale_GivenToAnotherSeller(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET seller_id = 'usr_buyer' WHERE id = 'order-1'`)
	s.wantNoRepeat(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000, OccurredAt: s.now.Add(-time.Hour), AvailableAt: s.now.Add(time.Second - time.Hour)})
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(905_000, 300)
	if b, err := s.db.Balance(t.Context(), "usr_buyer"); err != nil || b != (ledger.Balance{}) {
		t.Errorf("the other one has %+v, %v", b, err)
	}
}

// TestTamperedSale_ReleasedAgain puts a released sale back to pending.
func TestTamperedSale_ReleasedAgain(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	s.wantBalance(900_000, 5300, 905_300)
	s.place.ByHand(t, `UPDATE sales SET released_at = NULL, due_at = available_at WHERE id = 'order-1'`)
	s.wantViolated("sales-match-journal")
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(900_000, 5300)
}

// TestTamperedSale_ReleaseHidden hides the release from the index, and puts the sale back to pending.
func TestTamperedSale_ReleaseHidden(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	s.place.HideFromIndex(t, `subject = 'sale:order-1' AND type = 'sale.released'`)
	s.place.ByHand(t, `UPDATE sales SET released_at = NULL, due_at = available_at WHERE id = 'order-1'`)
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1", Amount: 100}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("refunded: %v", err)
	}
	s.wantBalances(900_000, 5300)
	s.wantViolated("file-is-sound")
	if done, err := s.db.Repair(t.Context(), storetest.Keys(t), "asha", s.now, true); err == nil || !strings.Contains(err.Error(), "REINDEX") {
		t.Errorf("repaired was %+v, %v", done, err)
	}
}

// TestTamperedSale_ReleasedTwice has the service release a sale twice, as when the first release was hidden from it. The audit names both the
// journal and the sale.
func TestTamperedSale_ReleasedTwice(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	s.release()
	must(t, s.db.Sales().InTx(t.Context(), func(tx sale.Tx) error {
		is, err := tx.SaleForUpdate(t.Context(), "order-1")
		must(t, err)
		was := is
		was.ReleasedAt = time.Time{}
		data, err := ledger.Patch(was, is)
		must(t, err)
		_, err = tx.Append(t.Context(), ledger.Posting{
			Owner: "usr_seller", At: s.now, Type: ledger.SaleReleased, Subject: "sale:order-1", Actor: "system", Data: data, Moved: ledger.ReleaseSale(5000),
		})
		return err
	}))
	s.wantBalances(895_000, 10_300)
	s.wantViolated("journals-are-whole", "sales-match-journal")
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1", Amount: 100}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("refunded: %v", err)
	}
}

// TestTamperedSale_MarkedReleased is refunded from no other account than it was in.
func TestTamperedSale_MarkedReleased(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET released_at = available_at, due_at = NULL WHERE id = 'far'`)
	s.wantViolated("sales-match-journal")
	if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "far", ID: "r1"}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("refunded: %v", err)
	}
	s.wantBalances(905_300, 0)
}

// TestTamperedSale_ReleasedAndDue is released no more than once, and holds up nobody.
func TestTamperedSale_ReleasedAndDue(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET released_at = available_at WHERE id = 'order-1'`)
	s.release()
	if n, err := s.sales.ReleaseDue(t.Context()); n != 0 || err != nil {
		t.Errorf("%d more sales are due: %v", n, err)
	}
	s.wantViolated("sales-match-journal", "nothing-is-stuck")
}

// TestTamperedSale_DueEarlier is not released before its time, and the audit finds it until its time has come.
func TestTamperedSale_DueEarlier(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = 1 WHERE id = 'far'`)
	for range 2 {
		if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("released: %v", err)
		}
		s.wantBalances(900_000, 5300)
		s.wantViolated("nothing-is-stuck")
		s.release() // it holds up nobody
		s.now = s.now.Add(time.Hour)
	}
	s.now = s.now.AddDate(0, 2, 0)
	s.release() // it is released in its time all the same
	s.wantBalance(0, 905_300, 905_300)
}

// TestTamperedSale_DueSoon_ReleasedInItsTime has its next step when it is available, and not an hour later.
func TestTamperedSale_DueSoon_ReleasedInItsTime(t *testing.T) {
	s := openShop(t)
	s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000, OccurredAt: s.now, AvailableAt: s.now.Add(10 * time.Minute)}, true)
	s.place.ByHand(t, `UPDATE sales SET due_at = 1`)
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	s.wantBalances(5000, 0)
	s.now = s.now.Add(10 * time.Minute)
	s.release()
	s.wantBalance(0, 5000, 5000)
}

// TestTamperedRefund changes what is stored of a refund. No refund under its id is made again or taken for made.
func TestTamperedRefund(t *testing.T) {
	for _, tt := range []struct{ change, id string }{
		{`UPDATE sale_refunds SET amount = amount + 1`, "r1"},
		{`UPDATE sale_refunds SET at = at + 1`, "r1"},
		{`UPDATE sale_refunds SET fingerprint = ''`, "r1"},
		{`UPDATE sale_refunds SET id = 'r9'`, "r1"},
		{`DELETE FROM sale_refunds`, "r1"},
		{`INSERT INTO sale_refunds SELECT sale_id, 'r9', amount, at, fingerprint FROM sale_refunds`, "r9"},
	} {
		t.Run(tt.change, func(t *testing.T) {
			s := openShop(t)
			s.record(sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}, true)
			if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1", Amount: 100}); err != nil {
				t.Fatal(err)
			}
			s.wantViolated()
			s.place.ByHand(t, tt.change)
			s.wantViolated("sales-match-journal")
			if _, r, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: tt.id, Amount: 100}); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("refunded %+v, %t, %v", r, created, err)
			}
			s.wantBalances(4900, 0)
		})
	}
}

// TestRefund_UnreadableRefund_Refused has a journal whose entry does not say which refund it is of: it may be this one.
func TestRefund_UnreadableRefund_Refused(t *testing.T) {
	s := openTamperedShop(t, "")
	must(t, s.db.Sales().InTx(t.Context(), func(tx sale.Tx) error {
		was, err := tx.SaleForUpdate(t.Context(), "order-1")
		must(t, err)
		is := was
		is.Refunded = 100
		data, err := ledger.Patch(was, is, "refundId", 7)
		must(t, err)
		_, err = tx.AddRefunded(t.Context(), "order-1", 100)
		must(t, err)
		_, err = tx.Append(t.Context(), ledger.Posting{
			Owner: "usr_seller", At: s.now, Type: ledger.SaleRefunded, Subject: "sale:order-1", Actor: "marketplace", Data: data, Moved: ledger.RefundSale(100, false),
		})
		return err
	}))
	_, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "r1", Amount: 50})
	if !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("refunded: %v", err)
	}
	s.wantBalances(300+5000+900_000-100, 0)
}

// TestTamperedSale_DeletedAndRecordedAgain has the marketplace repeat a sale whose row somebody deleted.
func TestTamperedSale_DeletedAndRecordedAgain(t *testing.T) {
	s := openShop(t)
	n := sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}
	s.record(n, true)
	s.place.ByHand(t, `DELETE FROM sales`)
	if _, created, err := s.sales.Record(t.Context(), n); created || !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("recorded again: %t, %v", created, err)
	}
	s.wantBalances(5000, 0)
}

// TestTamperedSale_DisallowedValue gives a sale an amount that its table does not allow, with the checks of SQLite turned off. The audit names the
// sale all the same, and the repair rebuilds it.
func TestTamperedSale_DisallowedValue(t *testing.T) {
	s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
	if s.place.Path == "" {
		t.Skip("PostgreSQL checks every row")
	}
	s.place.ByHand(t, `PRAGMA ignore_check_constraints = ON; UPDATE sales SET amount = -5000 WHERE id = 'order-1'`)
	s.wantViolated("file-is-sound", "sales-match-journal", "earnings-match-sales", "totals-match-adjustments")
	if _, err := s.sales.ReleaseDue(t.Context()); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("released: %v", err)
	}
	done, err := s.db.Repair(t.Context(), storetest.Keys(t), "asha", s.now, true)
	if err != nil || len(done) != 1 || done[0].Subject != "sale:order-1" || done[0].Impossible != "" {
		t.Errorf("repaired was %+v, %v", done, err)
	}
	s.wantViolated()
}
