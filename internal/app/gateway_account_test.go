package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bursar/internal/config"
	"bursar/internal/gateway"
	"bursar/internal/keyset"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/store"
	"bursar/internal/storetest"
)

// TestKeySetOfADatabase changes and deletes the record of which key set a database was written with.
func TestKeySetOfADatabase(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.json")
	open := func() error {
		datastore, err := OpenDatastore(t.Context(), config.Config{
			Currency: inr, DataDir: dir, BaseURL: "https://pay.example", Database: config.Database{SQLite: filepath.Join(dir, "bursar.db")}, KeysFile: keys,
		})
		if err != nil {
			return err
		}
		err = datastore.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Append(t.Context(), ledger.Posting{Owner: "usr_1", At: time.Now(), Type: ledger.SaleRecorded, Subject: "sale:1", Actor: ledger.ActorSystem, Data: "{}", Moved: ledger.Sale(100)})
			return err
		})
		return errors.Join(err, datastore.Close())
	}
	want := func(name, problem string) {
		t.Helper()
		if err := open(); err == nil && problem != "" || err != nil && (problem == "" || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", name, err, problem)
		}
	}
	place := storetest.Place{Path: filepath.Join(dir, "bursar.db")}
	want("a new database", "")
	place.ByHand(t, `UPDATE settings SET value = 'mine' WHERE name = 'key_set'`)
	want("another fingerprint", "that row was changed outside Bursar; delete the row")
	place.ByHand(t, `DELETE FROM settings WHERE name = 'key_set'`)
	own := keys
	keys = filepath.Join(dir, "nowhere.json")
	want("no fingerprint, and no key set", "there is no key set at")
	if _, err := os.Stat(keys); err == nil {
		t.Error("a key set was made")
	}
	if _, err := keyset.Open(t.Context(), keyset.File(keys)); err != nil {
		t.Fatal(err)
	}
	want("no fingerprint, and another key set", "is not the one that the database")
	keys = own
	want("no fingerprint, and its own key set", "")
	keys = filepath.Join(dir, "nowhere.json")
	want("another key set", "is not the one that the database")
}

// TestCheckGatewayAccount changes the account that a gateway pays from, after it may have taken a payout and before.
func TestCheckGatewayAccount(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	datastore, err := OpenDatastore(t.Context(), config.Config{
		Currency: inr, DataDir: dir, BaseURL: "https://pay.example", Database: config.Database{SQLite: filepath.Join(dir, "bursar.db")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer datastore.Close()
	check := func(account string) error {
		return datastore.checkGatewayAccount(t.Context(), "razorpayx", account, true)
	}
	const before, after = "7878780080316316", "7878780080311111"
	for _, account := range []string{"", before, before} {
		if err := check(account); err != nil {
			t.Errorf("with %q: %v", account, err)
		}
	}
	if kept, _, err := datastore.db.Pinned(t.Context(), "account_of_gateway_razorpayx"); err != nil || kept == "" || strings.Contains(kept, before) {
		t.Errorf("kept is %q, %v; want the number encrypted", kept, err)
	}
	place := storetest.Place{Path: filepath.Join(dir, "bursar.db")}
	if err := datastore.checkGatewayAccount(t.Context(), "razorpayx-first", before, true); err != nil { // it is renamed before it pays
		t.Error(err)
	}
	place.ByHand(t, `PRAGMA foreign_keys = OFF; INSERT INTO payouts (id, seller_id, bank_account_id, amount, fee, notes, rail, gateway, requested_at, arrive_at, state, status, sent_at)
		VALUES ('pyt_1', 'usr_1', 'bka_1', 100, 0, '', 'IMPS', 'razorpayx', 1, 1, 'unknown', 'processing', 1)`)
	err = check(after)
	if err == nil || !strings.Contains(err.Error(), "6316") || !strings.Contains(err.Error(), "1111") || strings.Contains(err.Error(), before) {
		t.Errorf("changed while a payout is under way: %v", err)
	}
	if err := check(before); err != nil {
		t.Errorf("put back: %v", err)
	}
	for _, name := range []gateway.Name{"razorpayx-2", "razorpayx-first"} {
		for _, mayChange := range []bool{true, false} {
			err := datastore.checkGatewayAccount(t.Context(), name, before, mayChange)
			if err == nil || !strings.Contains(err.Error(), "from which gateway razorpayx has paid") {
				t.Errorf("the same account under the name %s: %v", name, err)
			}
		}
	}
	place.ByHand(t, `UPDATE payouts SET state = 'waiting'`)
	if err := datastore.checkGatewayAccount(t.Context(), "razorpayx", after, false); err == nil || !strings.Contains(err.Error(), "the account before keeps its name") {
		t.Errorf("changed beside a former gateway: %v", err)
	}
	for account, want := range map[string]bool{before: true, after: false, "": true} {
		if err := datastore.sameGatewayAccount(t.Context(), "razorpayx", account); (err == nil) != want {
			t.Errorf("a command with account %q: %v", account, err)
		}
	}
	if err := datastore.sameGatewayAccount(t.Context(), "another", after); err != nil {
		t.Errorf("a gateway that never paid: %v", err)
	}
	for _, account := range []string{after, after} {
		if err := check(account); err != nil {
			t.Errorf("changed when only one was sent, which was turned away: %v", err)
		}
	}
	place.ByHand(t, `UPDATE settings SET value = 'mine' WHERE name = 'account_of_gateway_razorpayx'`)
	if err := check(after); err == nil || !strings.Contains(err.Error(), "was changed outside Bursar") {
		t.Errorf("a setting that was changed by hand: %v", err)
	}
}
