package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	_ "modernc.org/sqlite"             // the other driver

	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// Sellers ask for payouts of a few hundred at a time, and can't run out of what they earned.
const (
	shopEarned   = 1_000_000
	shopRequests = 200 // of each caller, at most
)

// shop is a marketplace that withdraws all the time, from whichever instance it meets. It keeps what it
// was answered, to compare with what became of it.
type shop struct {
	instances []*harness.Instance
	// database is the database, behind the service's back. It is PostgreSQL or SQLite.
	database *sql.DB
	postgres bool
	sellers  []*shopSeller
	opened   int // of the sellers
	admins   int
	fee      int64 // of each payout, in major units

	callers    sync.WaitGroup
	named      int           // of the callers
	over       chan struct{} // closed when nothing more is asked for
	unanswered atomic.Int64  // requests, which were repeated

	mu       sync.Mutex
	answered map[string]shopPayout // by id
}

type shopSeller struct {
	account string
	// paid says whether payouts to the account succeed.
	paid  bool
	id    string
	token string
	// earnedSince is what was earned after the opening.
	earnedSince int64
}

type shopPayout struct {
	seller *shopSeller
	amount int64 // major units
}

// newShop prepares instances on the same database. Settings are added to those of each.
func newShop(t *testing.T, instances int, database string, direct *sql.DB, settings ...string) *shop {
	t.Helper()
	s := &shop{
		database: direct, postgres: !strings.HasPrefix(database, "sqlite:"), over: make(chan struct{}), answered: map[string]shopPayout{},
		sellers: []*shopSeller{
			{account: "50100234567812", paid: true},
			{account: "50100234560002", paid: false}, // the transfer fails
			{account: "50100234560005", paid: true},  // the answer to the call is lost
			{account: "50100234560007", paid: true},  // webhooks come twice and out of order
		},
	}
	settings = append([]string{
		"BURSAR_DATABASE_URL=" + database, "BURSAR_METRICS_ADDR=off", "BURSAR_CANCEL_WINDOW=200ms",
		"BURSAR_SANDBOX_SETTLE_AFTER=200ms", "BURSAR_LOGIN_THROTTLE=off", "BURSAR_LOG_LEVEL=error",
	}, settings...)
	for range instances {
		s.instances = append(s.instances, harness.NewInstance(t, append(settings, "BURSAR_DATA_DIR="+t.TempDir())...))
	}
	return s
}

// shopOnSQLite has one instance, as SQLite has.
func shopOnSQLite(t *testing.T, settings ...string) *shop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bursar.db")
	address, err := harness.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return newShop(t, 1, "sqlite:"+path, openSQLiteDatabase(t, path), append(settings, "BURSAR_SANDBOX_ADDR="+address)...)
}

func openSQLiteDatabase(t *testing.T, path string) *sql.DB {
	t.Helper()
	return openDatabase(t, "sqlite", sqliteSource(path))
}

func sqliteSource(path string) string {
	return "file:" + filepath.ToSlash(path) + "?_pragma=busy_timeout(5000)"
}

func openPostgresDatabase(t *testing.T, url string) *sql.DB {
	t.Helper()
	return openDatabase(t, "pgx", url)
}

func openDatabase(t *testing.T, driver, where string) *sql.DB {
	t.Helper()
	database, err := sql.Open(driver, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	return database
}

// shopOnPostgres has several instances that know nothing of each other but the database.
func shopOnPostgres(t *testing.T, instances int, settings ...string) *shop {
	t.Helper()
	url := pgtest.New(t)
	return newShop(t, instances, withParameter(url, "pool_max_conns=8"), openPostgresDatabase(t, url), settings...)
}

func withParameter(url, parameter string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameter
	}
	return url + "?" + parameter
}

func (s *shop) start(t *testing.T) {
	t.Helper()
	for _, i := range s.instances {
		i.Start(t)
	}
}

// any is an instance by chance, as a load balancer picks one.
func (s *shop) any() *harness.Instance { return s.instances[rand.IntN(len(s.instances))] }

// open registers the sellers with verified accounts and earnings to withdraw.
func (s *shop) open(t *testing.T) {
	t.Helper()
	key, err := s.any().Command("apikey", "create", "--name", fmt.Sprintf("shop-%d", s.opened)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for n, seller := range s.sellers {
		i := s.opened + n
		var registered struct {
			User  struct{ ID string }
			Token string
		}
		s.any().Call(t, "POST", "/api/auth/register", "", fmt.Sprintf(
			`{"name":"Seller %d","email":"seller%d@example.com","password":"monsoon-market","role":"seller"}`, i, i), &registered)
		seller.id, seller.token = registered.User.ID, registered.Token
		s.any().Call(t, "PUT", "/api/bank-account", seller.token, fmt.Sprintf(
			`{"accountHolder":"Seller %d","accountNumber":%q,"ifsc":"HDFC0000053"}`, i, seller.account), nil)
		s.any().Call(t, "POST", "/api/marketplace/sales", strings.TrimSpace(string(key)), fmt.Sprintf(
			`{"saleId":"order-%d","sellerId":%q,"amount":%d,"occurredAt":"2026-01-05T10:00:00Z","availableAt":"2026-01-05T10:00:00Z"}`, i, seller.id, shopEarned), nil)
	}
	for _, seller := range s.sellers {
		harness.Until(t, "the seller can withdraw", func() bool {
			b := s.balance(t, seller)
			return b.BankAccount.IsVerified && b.AvailableBalance == shopEarned
		})
	}
}

// ask lets so many callers ask for payouts, one after another, until close is called.
func (s *shop) ask(t *testing.T, callers int, where func() string) {
	t.Helper()
	for range callers {
		seller, name := s.sellers[s.named%len(s.sellers)], fmt.Sprintf("caller-%d", s.named)
		s.named++
		s.callers.Go(func() { s.askAll(t, seller, name, where) })
	}
}

// close ends the asking, and waits for the last answers.
func (s *shop) close(t *testing.T) {
	t.Helper()
	close(s.over)
	s.callers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func (s *shop) askAll(t *testing.T, seller *shopSeller, name string, where func() string) {
	t.Helper()
	for i := range shopRequests {
		amount := int64(500 + rand.IntN(400))
		id, ok := s.askOnce(t, seller, fmt.Sprintf("%s-%d", name, i), amount, where)
		if !ok {
			return
		}
		s.mu.Lock()
		s.answered[id] = shopPayout{seller, amount}
		s.mu.Unlock()
		select {
		case <-s.over:
			return
		case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
		}
	}
}

// askOnce asks for a payout. What is not answered is asked for again under the same key.
func (s *shop) askOnce(t *testing.T, seller *shopSeller, key string, amount int64, where func() string) (id string, ok bool) {
	t.Helper()
	for range 600 {
		status, answer, err := harness.Send("POST", where()+"/api/payouts/request", seller.token, fmt.Sprintf(`{"amount":%d}`, amount),
			http.Header{"Idempotency-Key": {key}})
		switch {
		case err == nil && status == http.StatusCreated:
			var made struct{ PayoutID string }
			if err := harness.ReadData(answer, &made); err == nil {
				return made.PayoutID, true
			}
		case err == nil && status < http.StatusInternalServerError:
			t.Errorf("%s was answered with %d: %s", key, status, answer)
			return "", false
		}
		s.unanswered.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s was never answered", key)
	return "", false
}

// endWaits lets leases and back-off run out at once: what was under way when an instance was killed
// would otherwise be taken up much later.
func (s *shop) endWaits(t *testing.T, states ...string) {
	t.Helper()
	statement := makeDue(s.postgres, "payouts", `state IN ('`+strings.Join(states, "', '")+`')`)
	if _, err := s.database.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// makeDue is the statement by which the rows of a table that wait, and fit the condition, become due. What is due already keeps its
// place: a caller that repeats this would otherwise have the service take the first rows again and again, and never the last.
// On PostgreSQL it passes over rows that the service has locked: an update of many rows that waits for some while it
// holds others would deadlock with the service.
func makeDue(postgres bool, table, condition string) string {
	now := time.Now().UnixMicro()
	chosen := fmt.Sprintf(`SELECT id FROM %s WHERE due_at > %d AND %s`, table, now, condition)
	if postgres {
		chosen += ` FOR UPDATE SKIP LOCKED`
	}
	return fmt.Sprintf(`UPDATE %s SET due_at = %d WHERE id IN (%s)`, table, now, chosen)
}

// settle waits until every payout has come to its end.
func (s *shop) settle(t *testing.T) {
	t.Helper()
	for _, seller := range s.sellers {
		harness.Until(t, "payouts are settled", func() bool {
			s.endWaits(t, "unknown")
			return s.count(t, seller, "processing") == 0
		})
	}
}

// check finds that each payout that was asked for is there and has come to its end, that money moved
// once for it, and that the ledger is right.
func (s *shop) check(t *testing.T) {
	t.Helper()
	s.checkPayouts(t)
	s.checkMoves(t)
	if out, err := s.any().Command("audit").CombinedOutput(); err != nil {
		t.Errorf("audit: %v\n%s", err, out)
	}
}

// checkPayouts looks for each payout that was answered, and for the balances that they leave.
func (s *shop) checkPayouts(t *testing.T) {
	t.Helper()
	asked, withdrawn := map[*shopSeller]int{}, map[*shopSeller]int64{}
	for id, p := range s.answered {
		var detail struct {
			Amount int64
			Status string
		}
		s.any().Call(t, "GET", "/api/payouts/"+id, p.seller.token, "", &detail)
		want := "failed"
		if p.seller.paid {
			want = "completed"
			withdrawn[p.seller] += p.amount
		}
		if detail.Amount != p.amount || detail.Status != want {
			t.Errorf("payout %s of %d is %s over %d, want %s", id, p.amount, detail.Status, detail.Amount, want)
		}
		asked[p.seller]++
	}
	t.Logf("%d payouts", len(s.answered))
	for _, seller := range s.sellers {
		if all := s.count(t, seller, "all"); all != asked[seller] {
			t.Errorf("account %s: %d payouts are there, %d were asked for", seller.account, all, asked[seller])
		}
		b := s.balance(t, seller)
		if left := shopEarned + seller.earnedSince - withdrawn[seller]; b.TotalWithdrawn != withdrawn[seller] || b.AvailableBalance != left {
			t.Errorf("account %s: %d withdrawn and %d available, want %d and %d",
				seller.account, b.TotalWithdrawn, b.AvailableBalance, withdrawn[seller], left)
		}
	}
}

// checkMoves compares the money that moved at the sandbox with what was asked for.
func (s *shop) checkMoves(t *testing.T) {
	t.Helper()
	moves := s.moves(t)
	if len(moves) != len(s.answered) {
		t.Errorf("the sandbox moved money under %d references, want %d", len(moves), len(s.answered))
	}
	for _, m := range moves {
		p, known := s.answered[m.Reference]
		want := int64(0)
		if known && p.seller.paid {
			want = 100 * (p.amount - s.fee)
		}
		if !known || m.Count != 1 || m.Net != want {
			t.Errorf("the sandbox paid %s %d times, %d in all; want once, %d", m.Reference, m.Count, m.Net, want)
		}
	}
}

// shopMove is all money that moved under one of our references.
type shopMove struct {
	Reference string `json:"reference_id"`
	Net       int64  `json:"net"`
	Count     int    `json:"count"`
}

func (s *shop) moves(t *testing.T) []shopMove {
	t.Helper()
	_, body, err := harness.Send("GET", sandboxAddress(t, s.instances[0])+"/control/moves", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var moves []shopMove
	if err := json.Unmarshal(body, &moves); err != nil {
		t.Fatal(err)
	}
	return moves
}

// sandboxAddress is the address that the instance told.
func sandboxAddress(t *testing.T, i *harness.Instance) string {
	t.Helper()
	found := regexp.MustCompile(`Sandbox +(http://\S+)/control/moves`).FindStringSubmatch(i.Output(t, "stdout"))
	if found == nil {
		t.Fatalf("%s names no sandbox", i.API)
	}
	return found[1]
}

type shopBalance struct {
	AvailableBalance, TotalWithdrawn int64
	BankAccount                      struct{ IsVerified bool }
}

func (s *shop) balance(t *testing.T, seller *shopSeller) shopBalance {
	t.Helper()
	var b shopBalance
	s.any().Call(t, "GET", "/api/payouts/balance", seller.token, "", &b)
	return b
}

func (s *shop) count(t *testing.T, seller *shopSeller, status string) int {
	t.Helper()
	var history struct{ Pagination struct{ TotalItems int } }
	s.any().Call(t, "GET", "/api/payouts/history?limit=1&status="+status, seller.token, "", &history)
	return history.Pagination.TotalItems
}
