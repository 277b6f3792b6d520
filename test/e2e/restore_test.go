package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// drillFee is what each payout of a drill costs, in major units: what the bank is sent and what the
// seller gave are told apart.
const drillFee = 7

// drillLost is how many payouts, at least, the backup lacks that the gateway made.
const drillLost = 20

// The ledger is restored to a moment before many payouts were requested, sent, cancelled and returned, as an operator
// would, and the service starts again.
func TestRestore_OlderBackup_PaysOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	for name, whileSending := range map[string]bool{"InBetween": false, "WhileSending": true} {
		t.Run(name+"OnSQLite", func(t *testing.T) {
			t.Parallel() // most of a drill waits
			drillOnSQLite(t).run(t, whileSending)
		})
		t.Run(name+"OnPostgreSQL", func(t *testing.T) {
			t.Parallel()
			drillOnPostgres(t, 3).run(t, whileSending)
		})
	}
}

// drill is a shop whose database are put back.
type drill struct {
	*shop
	// putBack puts a backup in the database's place while no instance runs.
	putBack func(t *testing.T, backup string)
	key     string // of the marketplace
	sales   []string
}

var drillSettings = []string{fmt.Sprintf("BURSAR_PAYOUT_FEE=%d", drillFee), "BURSAR_CANCEL_WINDOW=1s"}

func drillOnSQLite(t *testing.T) *drill {
	t.Helper()
	d := newDrill(shopOnSQLite(t, drillSettings...))
	d.putBack = func(t *testing.T, backup string) {
		t.Helper()
		path, _ := strings.CutPrefix(d.any().Setting("BURSAR_DATABASE_URL"), "sqlite:")
		content, err := os.ReadFile(backup)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.database.Close(); err != nil {
			t.Fatal(err)
		}
		for _, beside := range []string{"-wal", "-shm"} {
			if err := os.RemoveAll(path + beside); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		d.database = openSQLiteDatabase(t, path)
	}
	return d
}

func drillOnPostgres(t *testing.T, instances int) *drill {
	t.Helper()
	d := newDrill(shopOnPostgres(t, instances, drillSettings...))
	d.putBack = func(t *testing.T, backup string) {
		t.Helper()
		url := pgtest.New(t)
		if out, err := exec.Command("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+url, backup).CombinedOutput(); err != nil {
			t.Fatalf("pg_restore: %v\n%s", err, out)
		}
		if err := d.database.Close(); err != nil {
			t.Fatal(err)
		}
		d.database = openPostgresDatabase(t, url)
		for _, i := range d.instances {
			i.Environ = append(i.Environ, "BURSAR_DATABASE_URL="+withParameter(url, "pool_max_conns=8"))
		}
	}
	return d
}

func newDrill(s *shop) *drill {
	s.fee = drillFee
	s.sellers = append(s.sellers, &shopSeller{account: "50100234560003", paid: false}) // the bank returns what it paid
	return &drill{shop: s}
}

// run makes the backup in the middle of business, and of sending if so asked.
func (d *drill) run(t *testing.T, whileSending bool) {
	t.Helper()
	d.start(t)
	d.open(t)
	out, err := d.any().Command("apikey", "create", "--name", "drill").Output()
	if err != nil {
		t.Fatal(err)
	}
	d.key = strings.TrimSpace(string(out))
	d.ask(t, 2*len(d.sellers), func() string { return d.any().API })
	harness.Until(t, "some are paid", func() bool { return d.count(t, d.sellers[0], "completed") > 2 })

	if whileSending {
		d.awaitSending(t)
	}
	waiting := d.request(t, d.sellers[0], 700)
	backup := d.backUp(t)
	d.cancel(t, d.sellers[0], waiting)
	d.cancel(t, d.sellers[0], d.request(t, d.sellers[0], 800))
	d.sellMore(t)
	asked := d.asked()
	harness.Until(t, "some are sent that were asked for after the backup", func() bool { return len(d.moves(t)) > asked+drillLost })
	d.close(t)
	for _, i := range d.instances {
		i.Kill(t)
	}

	d.putBack(t, backup)
	inBackup := d.ids(t)
	d.endWaits(t, "waiting", "submitting", "submitted", "unknown")
	d.startReconciled(t)
	d.tellSales(t)
	found := d.forget(t, inBackup)
	d.settle(t)
	d.awaitReturns(t)
	d.check(t)
	t.Logf("%d payouts were in the backup, and %d that it lacked were found at the gateway", len(inBackup), found)
	if found < drillLost {
		t.Error("the drill has too little to show")
	}
	for _, i := range d.instances {
		i.Stop(t)
	}
}

// asked is how many payouts were asked for.
func (d *drill) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.answered)
}

// startReconciled starts all instances, and waits until each has asked the gateway.
func (d *drill) startReconciled(t *testing.T) {
	t.Helper()
	d.start(t)
	for _, i := range d.instances {
		harness.Until(t, i.API+" has asked the gateway", func() bool {
			_, answer, err := harness.Send("GET", i.API+"/readyz", "", "", nil)
			return err == nil && strings.Contains(string(answer), `"message":"ready"`)
		})
	}
}

// awaitReturns waits until the bank has sent back what it does.
func (d *drill) awaitReturns(t *testing.T) {
	t.Helper()
	for _, s := range d.sellers {
		if !s.paid {
			harness.Until(t, "nothing is paid to "+s.account, func() bool {
				d.endWaits(t, "completed")
				return d.count(t, s, "completed") == 0
			})
		}
	}
}

// awaitSending makes the gateway slow, and waits until payouts are being sent while others wait.
func (d *drill) awaitSending(t *testing.T) {
	t.Helper()
	fault := `{"method":"POST","path":"/v1/payouts","when":"before","delay":"2s","times":12}`
	if status, answer, err := harness.Send("POST", sandboxAddress(t, d.instances[0])+"/control/faults", "", fault, nil); err != nil || status != http.StatusOK {
		t.Fatalf("faults: %d, %v: %s", status, err, answer)
	}
	harness.Until(t, "payouts are being sent while others wait", func() bool {
		var sending, waiting int
		err := d.database.QueryRow(`SELECT COUNT(CASE state WHEN 'submitting' THEN 1 END), COUNT(CASE state WHEN 'waiting' THEN 1 END) FROM payouts`).
			Scan(&sending, &waiting)
		if err != nil {
			t.Fatal(err)
		}
		return sending > 2 && waiting > 2
	})
}

// backUp makes a backup with the command, while the service runs.
func (d *drill) backUp(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if out, err := d.any().Command("backup", file).CombinedOutput(); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	return file
}

// request asks for a payout, and keeps the answer.
func (d *drill) request(t *testing.T, s *shopSeller, amount int64) string {
	t.Helper()
	var made struct{ PayoutID string }
	d.any().Call(t, "POST", "/api/payouts/request", s.token, fmt.Sprintf(`{"amount":%d}`, amount), &made)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answered[made.PayoutID] = shopPayout{s, amount}
	return made.PayoutID
}

// cancel may come too late, on a busy machine.
func (d *drill) cancel(t *testing.T, s *shopSeller, id string) {
	t.Helper()
	status, answer, err := harness.Send("POST", d.any().API+"/api/payouts/"+id+"/cancel", s.token, "", nil)
	if err != nil || (status != http.StatusOK && status != http.StatusBadRequest) {
		t.Errorf("cancel was answered with %d, %v: %s", status, err, answer)
	}
}

// sellMore records sales that the backup lacks, of which a part is asked for.
func (d *drill) sellMore(t *testing.T) {
	t.Helper()
	for i, s := range d.sellers {
		s.earnedSince = 5_000
		d.sales = append(d.sales, fmt.Sprintf(
			`{"saleId":"later-%d","sellerId":%q,"amount":%d,"occurredAt":"2026-01-06T10:00:00Z","availableAt":"2026-01-06T10:00:00Z"}`,
			i, s.id, s.earnedSince))
	}
	d.tellSales(t)
}

// tellSales has the marketplace tell the sales of late, be it again.
func (d *drill) tellSales(t *testing.T) {
	t.Helper()
	for _, sale := range d.sales {
		d.any().Call(t, "POST", "/api/marketplace/sales", d.key, sale, nil)
	}
	for _, s := range d.sellers {
		harness.Until(t, "the sales are released", func() bool {
			var released bool
			err := d.database.QueryRow(`SELECT COUNT(*) = 2 FROM sales WHERE seller_id = $1 AND released_at IS NOT NULL`, s.id).Scan(&released)
			return err == nil && released
		})
	}
}

// ids lists the payouts in the ledger.
func (d *drill) ids(t *testing.T) []string {
	t.Helper()
	rows, err := d.database.Query(`SELECT id FROM payouts`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// forget leaves of what was answered only what the backup or the gateway knows, which nothing else
// can bring back, and returns how much the gateway alone does.
func (d *drill) forget(t *testing.T, inBackup []string) int {
	t.Helper()
	found := 0
	moved := d.moves(t)
	for id := range d.answered {
		switch {
		case slices.Contains(inBackup, id):
		case slices.ContainsFunc(moved, func(m shopMove) bool { return m.Reference == id }):
			found++
		default:
			delete(d.answered, id)
		}
	}
	return found
}

// After the backup, a seller changed the bank account, and another seller joined. The payout to the new account is in
// the ledger again, with that account; of the new seller nothing is left, so the audit and the log name the payout for
// the operator.
func TestRestore_AccountFound_LostSellerReported(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { lostAndFound(t, drillOnSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { lostAndFound(t, drillOnPostgres(t, 1)) })
}

func lostAndFound(t *testing.T, d *drill) {
	t.Helper()
	seller := d.sellers[0]
	d.sellers = d.sellers[:1]
	d.start(t)
	d.open(t)
	backup := d.backUp(t)
	service := d.any()

	seller.account = "60200234560008"
	service.Call(t, "PUT", "/api/bank-account", seller.token, fmt.Sprintf(
		`{"accountHolder":"Asha Rao","accountNumber":%q,"ifsc":"SBIN0000300"}`, seller.account), nil)
	harness.Until(t, "the new account is verified", func() bool { return d.balance(t, seller).BankAccount.IsVerified })
	toNewAccount := d.request(t, seller, 900)
	old, newcomer := d.sellers, &shopSeller{account: "50100234567999", paid: true}
	d.sellers = []*shopSeller{newcomer}
	d.opened = 1
	d.open(t)
	lost := d.request(t, newcomer, 600)
	harness.Until(t, "both are paid", func() bool {
		return d.count(t, seller, "completed")+d.count(t, newcomer, "completed") == 2
	})
	service.Stop(t)

	d.putBack(t, backup)
	d.sellers = old
	d.startReconciled(t)
	var detail struct {
		Amount      int64
		BankAccount struct{ AccountNumber, IFSC, AccountHolder string }
	}
	service.Call(t, "GET", "/api/payouts/"+toNewAccount, seller.token, "", &detail)
	if a := detail.BankAccount; detail.Amount != 900 || a.AccountNumber != "****0008" || a.IFSC != "SBIN0000300" || a.AccountHolder != "Asha Rao" {
		t.Errorf("the payout to the lost account is %+v", detail)
	}
	var current struct{ AccountNumber string }
	service.Call(t, "GET", "/api/bank-account", seller.token, "", &current)
	if current.AccountNumber != "****7812" {
		t.Errorf("the current account is %s, want that of the backup", current.AccountNumber)
	}

	out, err := service.Command("audit").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "payout "+lost+": ") || strings.Count(string(out), "FAILED") != 1 {
		t.Errorf("audit: %v\n%s\nwant it to name payout %s and nothing else", err, out, lost)
	}
	if said := service.Output(t, "stderr"); !strings.Contains(said, lost) {
		t.Errorf("the log does not name payout %s:\n%s", lost, said)
	}
	d.resolveUnmatched(t, service, lost)
	if out, err := service.Command("audit").CombinedOutput(); err != nil {
		t.Errorf("audit, after it was settled: %v\n%s", err, out)
	}
	service.Stop(t)
}

// resolveUnmatched has an admin note on the dashboard that they dealt with a payout's transfer.
func (d *drill) resolveUnmatched(t *testing.T, service *harness.Instance, payout string) {
	t.Helper()
	const email, password = "priya@example.com", "monsoon-market"
	admin := service.Command("user", "create", "--name", "Priya Menon", "--email", email, "--role", "admin", "--password-stdin")
	admin.Stdin = strings.NewReader(password + "\n")
	if out, err := admin.CombinedOutput(); err != nil {
		t.Fatalf("user create: %v\n%s", err, out)
	}
	var transfer string
	if err := d.database.QueryRow(`SELECT gateway || ':' || gateway_id FROM unmatched_transfers WHERE reference = $1`, payout).Scan(&transfer); err != nil {
		t.Fatal(err)
	}
	visitor := harness.NewVisitor(t)
	visitor.Do(http.MethodPost, service.API+"/login", url.Values{"email": {email}, "password": {password}}.Encode())
	page := service.API + "/dashboard/admin/unmatched-transfers/" + transfer
	if p := visitor.Do(http.MethodPost, page, url.Values{"note": {"Paid back."}}.Encode()); p.LeadsTo() != page {
		t.Fatalf("the decision was answered with %d: %s", p.Status, p.Body)
	}
}
