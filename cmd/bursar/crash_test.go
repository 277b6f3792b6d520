package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The size of the crash: a few kills while payouts are asked for and paid, some hundreds in all.
const (
	crashKills    = 4
	crashCallers  = 8
	crashRequests = 200 // of each caller, at most
	crashEarned   = 1_000_000
)

// TestNothingIsLostOrPaidTwiceThroughCrashes asks for payouts from many callers at once, who repeat
// what was not answered, while the server is killed at random moments. In the end every payout that was
// asked for is there, has come to its end, and moved money once.
func TestNothingIsLostOrPaidTwiceThroughCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	c := newCrash(t)
	c.start(t)
	c.openShop(t)

	var callers sync.WaitGroup
	c.over = make(chan struct{})
	for i := range crashCallers {
		callers.Go(func() { c.ask(t, c.sellers[i%len(c.sellers)], fmt.Sprintf("caller-%d", i)) })
	}
	for range crashKills {
		time.Sleep(time.Duration(300+rand.IntN(1200)) * time.Millisecond)
		c.kill(t)
		c.start(t)
	}
	close(c.over)
	callers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	c.kill(t)
	c.endWaits(t, "waiting", "submitting", "submitted", "unknown")
	c.start(t)
	c.settle(t)

	c.checkPayouts(t)
	c.checkMoves(t)
	if out, err := c.command("audit").CombinedOutput(); err != nil {
		t.Errorf("audit: %v\n%s", err, out)
	}
	c.stop(t)
}

// crash is a server that is killed and started again on the same data.
type crash struct {
	environ  []string
	dir      string
	api      string
	sandbox  string
	server   *exec.Cmd
	stderr   *bytes.Buffer
	sellers  []*crashSeller
	over     chan struct{} // closed after the last kill but one
	mu       sync.Mutex
	answered map[string]crashPayout // by id
}

type crashSeller struct {
	account string
	// paid says whether payouts to the account succeed.
	paid  bool
	id    string
	token string
}

type crashPayout struct {
	seller *crashSeller
	amount int64 // major units
}

func newCrash(t *testing.T) *crash {
	t.Helper()
	addr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	sandboxAddr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &crash{
		dir: dir, api: "http://" + addr, sandbox: "http://" + sandboxAddr, answered: map[string]crashPayout{},
		environ: append(os.Environ(), "BURSAR_DATA_DIR="+dir, "BURSAR_ADDR="+addr, "BURSAR_SANDBOX_ADDR="+sandboxAddr,
			"BURSAR_METRICS_ADDR=off", "BURSAR_CANCEL_WINDOW=200ms", "BURSAR_SANDBOX_SETTLE_AFTER=200ms",
			"BURSAR_LOGIN_THROTTLE=off", "BURSAR_LOG_LEVEL=error", "PORT="),
		sellers: []*crashSeller{
			{account: "50100234567812", paid: true},
			{account: "50100234560002", paid: false}, // the transfer fails
			{account: "50100234560005", paid: true},  // the answer to the call is lost
			{account: "50100234560007", paid: true},  // webhooks come twice and out of order
		},
	}
	t.Cleanup(func() {
		if c.server != nil {
			_ = c.server.Process.Kill()
			_ = c.server.Wait()
		}
	})
	return c
}

func (c *crash) command(args ...string) *exec.Cmd {
	cmd := exec.Command("bursar", args...)
	cmd.Env = c.environ
	return cmd
}

func (c *crash) start(t *testing.T) {
	t.Helper()
	c.server, c.stderr = c.command("serve"), &bytes.Buffer{}
	c.server.Stderr = c.stderr
	if err := c.server.Start(); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		if status, _, err := c.send("GET", c.api+"/readyz", "", "", nil); err == nil && status == http.StatusOK {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("the server did not get ready:\n%s", c.stderr)
}

func (c *crash) kill(t *testing.T) {
	t.Helper()
	if err := c.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.server.Wait() // it was killed, and says so
	c.server = nil
}

// stop asks the server to stop, as an operator does.
func (c *crash) stop(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" { // has no signal to ask with
		c.kill(t)
		return
	}
	if err := c.server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.server.Wait(); err != nil {
		t.Errorf("it did not stop cleanly: %v\n%s", err, c.stderr)
	}
	c.server = nil
}

// openShop registers the sellers with verified accounts and earnings to withdraw.
func (c *crash) openShop(t *testing.T) {
	t.Helper()
	key, err := c.command("apikey", "create", "--name", "shop").Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range c.sellers {
		var registered struct {
			User  struct{ ID string }
			Token string
		}
		c.call(t, "POST", "/api/auth/register", "", fmt.Sprintf(
			`{"name":"Seller %d","email":"seller%d@example.com","password":"monsoon-market","role":"seller"}`, i, i), &registered)
		s.id, s.token = registered.User.ID, registered.Token
		c.call(t, "PUT", "/api/bank-account", s.token, fmt.Sprintf(
			`{"accountHolder":"Seller %d","accountNumber":%q,"ifsc":"HDFC0000053"}`, i, s.account), nil)
		c.call(t, "POST", "/api/marketplace/sales", strings.TrimSpace(string(key)), fmt.Sprintf(
			`{"saleId":"order-%d","sellerId":%q,"amount":%d,"occurredAt":"2026-01-05T10:00:00Z","availableAt":"2026-01-05T10:00:00Z"}`, i, s.id, crashEarned), nil)
	}
	for _, s := range c.sellers {
		c.until(t, "the seller can withdraw", func() bool {
			b := c.balance(t, s)
			return b.BankAccount.IsVerified && b.AvailableBalance == crashEarned
		})
	}
}

// ask asks for payouts one after another until the kills are over. What is not answered is asked for again under the same key.
func (c *crash) ask(t *testing.T, s *crashSeller, name string) {
	t.Helper()
	for i := range crashRequests {
		amount := int64(500 + rand.IntN(400))
		key, body := fmt.Sprintf("%s-%d", name, i), fmt.Sprintf(`{"amount":%d}`, amount)
		var made struct{ PayoutID string }
		done := false
		for try := 0; try < 600 && !done; try++ {
			status, answer, err := c.send("POST", c.api+"/api/payouts/request", s.token, body, http.Header{"Idempotency-Key": {key}})
			switch {
			case err == nil && status == http.StatusCreated:
				done = readData(answer, &made) == nil
			case err == nil && status < http.StatusInternalServerError:
				t.Errorf("%s was answered with %d: %s", key, status, answer)
				return
			default:
				time.Sleep(50 * time.Millisecond)
			}
		}
		if !done {
			t.Errorf("%s was never answered", key)
			return
		}
		c.mu.Lock()
		c.answered[made.PayoutID] = crashPayout{s, amount}
		c.mu.Unlock()
		select {
		case <-c.over:
			return
		case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
		}
	}
}

// endWaits lets leases and back-off run out at once: what was under way when the server was killed
// would otherwise be taken up minutes later.
func (c *crash) endWaits(t *testing.T, states ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(c.dir, "bursar.db"))+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, state := range states {
		if _, err := db.Exec(`UPDATE payouts SET due_at = 0 WHERE state = $1 AND due_at IS NOT NULL`, state); err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until every payout has come to its end.
func (c *crash) settle(t *testing.T) {
	t.Helper()
	for _, s := range c.sellers {
		c.until(t, "payouts are settled", func() bool {
			c.endWaits(t, "unknown")
			return c.count(t, s, "processing") == 0
		})
	}
}

// checkPayouts looks for each payout that was answered, and for the balances that they leave.
func (c *crash) checkPayouts(t *testing.T) {
	t.Helper()
	asked, withdrawn := map[*crashSeller]int{}, map[*crashSeller]int64{}
	for id, p := range c.answered {
		var detail struct {
			Amount int64
			Status string
		}
		c.call(t, "GET", "/api/payouts/"+id, p.seller.token, "", &detail)
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
	t.Logf("%d payouts through %d kills", len(c.answered), crashKills+1)
	for _, s := range c.sellers {
		if all := c.count(t, s, "all"); all != asked[s] {
			t.Errorf("account %s: %d payouts are there, %d were asked for", s.account, all, asked[s])
		}
		b := c.balance(t, s)
		if b.TotalWithdrawn != withdrawn[s] || b.AvailableBalance != crashEarned-withdrawn[s] {
			t.Errorf("account %s: %d withdrawn and %d available, want %d and %d",
				s.account, b.TotalWithdrawn, b.AvailableBalance, withdrawn[s], crashEarned-withdrawn[s])
		}
	}
}

// checkMoves compares the money that moved at the sandbox with what was asked for.
func (c *crash) checkMoves(t *testing.T) {
	t.Helper()
	_, body, err := c.send("GET", c.sandbox+"/control/moves", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var moves []struct {
		Reference string `json:"reference_id"`
		Net       int64  `json:"net"`
		Count     int    `json:"count"`
	}
	if err := json.Unmarshal(body, &moves); err != nil {
		t.Fatal(err)
	}
	if len(moves) != len(c.answered) {
		t.Errorf("the sandbox moved money under %d references, want %d", len(moves), len(c.answered))
	}
	for _, m := range moves {
		p, known := c.answered[m.Reference]
		want := int64(0)
		if known && p.seller.paid {
			want = 100 * p.amount
		}
		if !known || m.Count != 1 || m.Net != want {
			t.Errorf("the sandbox paid %s %d times, %d in all; want once, %d", m.Reference, m.Count, m.Net, want)
		}
	}
}

type crashBalance struct {
	AvailableBalance, TotalWithdrawn int64
	BankAccount                      struct{ IsVerified bool }
}

func (c *crash) balance(t *testing.T, s *crashSeller) crashBalance {
	t.Helper()
	var b crashBalance
	c.call(t, "GET", "/api/payouts/balance", s.token, "", &b)
	return b
}

func (c *crash) count(t *testing.T, s *crashSeller, status string) int {
	t.Helper()
	var history struct{ Pagination struct{ TotalItems int } }
	c.call(t, "GET", "/api/payouts/history?limit=1&status="+status, s.token, "", &history)
	return history.Pagination.TotalItems
}

func (c *crash) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 300 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("waited in vain until %s\n%s", what, c.stderr)
}

// call makes a call that must succeed.
func (c *crash) call(t *testing.T, method, path, token, body string, data any) {
	t.Helper()
	status, answer, err := c.send(method, c.api+path, token, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status >= 300 {
		t.Fatalf("%s %s was answered with %d: %s", method, path, status, answer)
	}
	if err := readData(answer, data); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

func readData(answer []byte, data any) error {
	envelope := struct{ Data any }{data}
	return json.Unmarshal(answer, &envelope)
}

func (c *crash) send(method, url, token, body string, header http.Header) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	maps.Copy(request.Header, header)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
