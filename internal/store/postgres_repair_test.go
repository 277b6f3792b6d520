package store_test

import (
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/pgtest"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// A transaction locks a sale after its seller's journal, as few may, and a repair the other way around. PostgreSQL undoes one of
// them, which is tried again.
func TestRepair_Deadlock_Retried(t *testing.T) {
	url := pgtest.New(t)
	db, err := store.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.UseKeys(storetest.Keys(t))
	m := &meeting{T: t, db: db, url: url}
	s := sale.Sale{ID: "s1", Seller: "usr_a", Amount: 1000, Month: "2026-11", OccurredAt: morning, AvailableAt: morning, CreatedAt: morning}
	post := func(tx *store.Tx, typ ledger.Type, subject, data string, moved ledger.Moved) error {
		_, err := tx.Append(t.Context(), ledger.Posting{Owner: s.Seller, At: morning, Type: typ, Subject: subject, Actor: "system", Data: data, Moved: moved})
		return err
	}
	m.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(t.Context(), auth.User{ID: s.Seller, Name: "Asha", Email: "a@example.com", Role: auth.Seller, CreatedAt: morning}); err != nil {
			return err
		}
		data, err := ledger.Patch(sale.Sale{ID: s.ID}, s)
		if err != nil {
			return err
		}
		if _, err := tx.InsertSale(t.Context(), s); err != nil {
			return err
		}
		if err := post(tx, ledger.SaleRecorded, sale.SubjectPrefix+s.ID, data, ledger.Sale(s.Amount)); err != nil {
			return err
		}
		return tx.AddEarnings(t.Context(), s.Seller, s.Month, s.Amount)
	})
	m.update(func(tx *store.Tx) error { return tx.PostponeRelease(t.Context(), s.ID, morning.Add(time.Hour)) })

	var repairs []store.Repair
	var failed error
	ended := make(chan struct{})
	tries := 0
	m.update(func(tx *store.Tx) error {
		if err := post(tx, ledger.Repaired, "s", "{}", ledger.Moved{}); err != nil {
			return err
		}
		if tries++; tries == 1 {
			go func() {
				defer close(ended)
				repairs, failed = db.Repair(t.Context(), storetest.Keys(t), "asha", morning, true)
			}()
			m.waitForLock()
		}
		_, err := tx.SaleForUpdate(t.Context(), s.ID)
		return err
	})
	<-ended
	if failed != nil || len(repairs) != 1 || repairs[0].Subject != "sale:s1" || repairs[0].Impossible != "" {
		t.Errorf("repaired are %+v, %v; want the sale", repairs, failed)
	}
}
