//go:build unix

package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bursar/internal/app"
	"bursar/internal/money"
	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// fleet is the service as a marketplace runs it: instances that share nothing but a PostgreSQL database, or one
// on SQLite, and a gateway that is a process of its own.
type fleet struct {
	t         *testing.T
	url       string
	gateway   *harness.Instance
	instances []*harness.Instance
	client    *http.Client
	// endings are the last digits of the sellers' account numbers, in turn: they choose what the gateway does.
	// Without any, it pays.
	endings []string
	// serviceKey is the marketplace's own.
	serviceKey string
	// receivers take its webhooks, if there are any.
	receivers *receivers
}

// newPair starts a primary and its synchronous standby, both of which keep their word.
func newPair(t *testing.T) (primary, standby *pgtest.Server) {
	t.Helper()
	primary = pgtest.StartServer(t, pgtest.Options{})
	return primary, primary.Standby()
}

// onEachDatabase runs a test with the URL of an empty database of each engine.
func onEachDatabase(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for name, url := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "bursar.db"), "PostgreSQL": pgtest.New(t)} {
		t.Run(name, func(t *testing.T) { test(t, url) })
	}
}

// newFleet starts instances on the database at a URL, with the given settings beside those of all.
func newFleet(t *testing.T, url string, instances int, settings ...string) *fleet {
	t.Helper()
	f := prepareFleet(t, url, instances, settings...)
	f.start()
	return f
}

// prepareFleet is newFleet that starts nothing.
func prepareFleet(t *testing.T, url string, instances int, settings ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, url: url, client: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
	account := []string{
		"BURSAR_RAZORPAYX_KEY_ID=" + app.SandboxKeyID, "BURSAR_RAZORPAYX_KEY_SECRET=" + sandboxSecret,
		"BURSAR_RAZORPAYX_ACCOUNT_NUMBER=" + app.SandboxAccountNumber, "BURSAR_LOG_LEVEL=warn", "BURSAR_LOG_FORMAT=json",
	}
	f.gateway = harness.NewInstance(t, append(account, "BURSAR_SANDBOX_SETTLE_AFTER=200ms")...)
	settings = slices.Concat(account, []string{
		"BURSAR_DATABASE_URL=" + url, "BURSAR_LOGIN_THROTTLE=off",
		"BURSAR_REFRESH_REUSE_GRACE=5m", // so that a refresh whose answer was lost in an outage may come again
		"BURSAR_GATEWAY=razorpayx", "BURSAR_GATEWAY_RATE=none", "BURSAR_RAZORPAYX_BASE_URL=" + f.gateway.API + "/v1",
		"BURSAR_RAZORPAYX_WEBHOOK_SECRETS=" + sandboxSecret,
	}, settings)
	for range instances {
		metrics, err := harness.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		own := []string{"BURSAR_DATA_DIR=" + t.TempDir(), "BURSAR_METRICS_ADDR=" + metrics}
		f.instances = append(f.instances, harness.NewInstance(t, slices.Concat(settings, own)...))
	}
	f.gateway.Program = []string{
		"sandbox", "--file", filepath.Join(f.gateway.Dir, "sandbox.db"), "--webhook-secret", sandboxSecret,
		"--webhook-url", f.instances[0].API + "/api/gateway/webhooks/razorpayx",
	} // where the first instance listens
	f.gateway.Health = "/control/health"
	return f
}

func (f *fleet) start() {
	f.t.Helper()
	for _, i := range append(slices.Clone(f.instances), f.gateway) {
		i.Start(f.t)
	}
	f.serviceKey = strings.TrimSpace(f.command("apikey", "create", "--name", "shop"))
}

const sandboxSecret = "secret-of-the-sandbox"

// command runs one of the program's commands on the fleet's database.
func (f *fleet) command(args ...string) string {
	f.t.Helper()
	cmd := f.instances[0].Command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("bursar %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// sql runs a statement behind the service's back, where writes are taken, and hands each row to scan, if there
// is one. It keeps no connection: SQLite recovers its log when nobody has the file open.
func (f *fleet) sql(statement string, scan func(row) error) {
	f.t.Helper()
	driver, source := "pgx", f.url
	if path, found := strings.CutPrefix(f.url, "sqlite:"); found {
		driver, source = "sqlite", sqliteSource(path)
	}
	database, err := sql.Open(driver, source)
	if err != nil {
		f.t.Fatal(err)
	}
	defer database.Close()
	rows, err := database.QueryContext(f.t.Context(), statement)
	if err != nil {
		f.t.Fatalf("%s: %v", statement, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		f.t.Fatalf("%s: %v", statement, err)
	}
}

// makeDue lets what waits in a table, and fits the condition, wait no longer.
func (f *fleet) makeDue(table, condition string) {
	f.t.Helper()
	f.sql(makeDue(!strings.HasPrefix(f.url, "sqlite:"), table, condition), nil)
}

// row is one row of an answer.
type row interface{ Scan(dest ...any) error }

// seller is one who sells on the marketplace, signed in.
type seller struct {
	id, email, token string
	// ending is how the number of the seller's account ends.
	ending string
}

// isPaid says whether the bank keeps what it is paid.
func (s *seller) isPaid() bool { return s.ending != transferFails && s.ending != transferReturns }

// Endings of account numbers that the sandbox treats in their own way.
const (
	transferFails   = "0002"
	transferReturns = "0003"
	answerIsLost    = "0005"
	eventsComeFirst = "0006"
	eventsComeTwice = "0007"
	eventsNeverCome = "0008"
	referenceIsLate = "0009"
	nothingSpecial  = "1000"
)

const sellersPassword = "monsoon-market"

// newSellers registers sellers with verified accounts, each with earnings to withdraw.
func (f *fleet) newSellers(n int, earned money.Amount) []*seller {
	f.t.Helper()
	sellers := f.registerSellers(n, earned)
	for _, s := range sellers {
		harness.Until(f.t, "a seller can withdraw", func() bool {
			b := f.balance(s)
			return b.BankAccount.IsVerified && rupees(f.t, b.AvailableBalance) == earned
		})
	}
	return sellers
}

// registerSellers is newSellers before their accounts are verified.
func (f *fleet) registerSellers(n int, earned money.Amount) []*seller {
	f.t.Helper()
	sellers := make([]*seller, n)
	for i := range sellers {
		s := &seller{email: fmt.Sprintf("seller%d@example.com", i), ending: nothingSpecial}
		if len(f.endings) > 0 {
			s.ending = f.endings[i%len(f.endings)]
		}
		var registered struct {
			User  struct{ ID string }
			Token string
		}
		f.must(call{method: "POST", path: "/api/auth/register", body: fmt.Sprintf(
			`{"name":"Seller %d","email":%q,"password":%q,"role":"seller"}`, i, s.email, sellersPassword)}, &registered)
		s.id, s.token = registered.User.ID, registered.Token
		f.must(s.bankAccount(i), nil)
		f.must(f.sale(fmt.Sprintf("first-%d", i), s, earned), nil)
		sellers[i] = s
	}
	return sellers
}

// bankAccount is the call that registers an account of the seller's.
func (s *seller) bankAccount(number int) call {
	return call{method: "PUT", path: "/api/bank-account", token: s.token, body: fmt.Sprintf(
		`{"accountHolder":%q,"accountNumber":"501%07d%s","ifsc":"HDFC0000053"}`, holderOf(number), number, s.ending)}
}

// holderOf is the name that an account is registered with, which tells accounts apart that end alike.
func holderOf(number int) string { return fmt.Sprintf("Seller %d", number) }

// sale is the call that records one whose holding period is over.
func (f *fleet) sale(id string, s *seller, amount money.Amount) call {
	return call{method: "POST", path: "/api/marketplace/sales", token: f.serviceKey, body: fmt.Sprintf(
		`{"saleId":%q,"sellerId":%q,"amount":%s,"occurredAt":"2026-01-05T10:00:00Z","availableAt":"2026-01-05T10:00:00Z"}`, id, s.id, inRupees(amount))}
}

// balance is what a seller is told of it.
type balance struct {
	AvailableBalance, PendingBalance, TotalEarnings, TotalWithdrawn json.Number
	BankAccount                                                     struct{ IsVerified bool }
}

func (f *fleet) balance(s *seller) (b balance) {
	f.t.Helper()
	f.must(call{method: "GET", path: "/api/payouts/balance", token: s.token}, &b)
	return b
}

// call is a request to the service. A repeat of it is the same to the letter.
type call struct {
	method, path, token, body, key string
}

// answer is what came back.
type answer struct {
	status     int
	retryAfter string
	Code       string
	Error      string
	Data       json.RawMessage
}

// maxWaits bounds how often a call waits because an answer asks for it.
const maxWaits = 60

// wait is for how long the answer asks the caller to wait.
func (a answer) wait(t *testing.T) time.Duration {
	t.Helper()
	seconds, err := strconv.Atoi(a.retryAfter)
	if err != nil || seconds < 1 || seconds > 60 {
		t.Errorf("an answer %d %s asks to wait for %q seconds: %v", a.status, a.Code, a.retryAfter, err)
		return time.Second
	}
	return time.Duration(seconds) * time.Second
}

func (a answer) read(data any) error {
	if data == nil {
		return nil
	}
	return json.Unmarshal(a.Data, data)
}

// send makes a call of an instance, once.
func (f *fleet) send(i *harness.Instance, c call) (answer, error) {
	request, err := http.NewRequestWithContext(f.t.Context(), c.method, i.API+c.path, strings.NewReader(c.body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.key != "" {
		request.Header.Set("Idempotency-Key", c.key)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After")}
	return a, json.Unmarshal(body, &a)
}

// must makes a call of the first instance that has to succeed.
func (f *fleet) must(c call, data any) {
	f.t.Helper()
	a := f.once(c)
	if a.status >= http.StatusMultipleChoices {
		f.t.Fatalf("%s %s was answered with %d %s: %s", c.method, c.path, a.status, a.Code, a.Error)
	}
	if err := a.read(data); err != nil {
		f.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
}

// once makes a call of the first instance that has to be answered.
func (f *fleet) once(c call) answer {
	f.t.Helper()
	a, err := f.send(f.instances[0], c)
	if err != nil {
		f.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return a
}

// gauge reads a number from an instance's metrics.
func (f *fleet) gauge(i *harness.Instance, name string) int {
	f.t.Helper()
	response, err := f.client.Get("http://" + i.Setting("BURSAR_METRICS_ADDR") + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(body), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(line, 64)
	if err != nil {
		f.t.Fatalf("%s: %v", name, err)
	}
	return int(n)
}

// inr is what all amounts of these tests are in.
var inr = func() money.Currency {
	c, err := money.ParseCurrency("INR")
	if err != nil {
		panic(err)
	}
	return c
}()

func inRupees(a money.Amount) string { return inr.Format(a) }

func rupees(t *testing.T, n json.Number) money.Amount {
	t.Helper()
	a, err := inr.Parse(n.String())
	if err != nil {
		t.Fatalf("%q is no amount: %v", n, err)
	}
	return a
}

// busiestSecond is the most lines that an instance logged in one second, but for those about a request,
// which come as often as requests do.
func busiestSecond(t *testing.T, i *harness.Instance) (most int) {
	t.Helper()
	seconds := map[time.Time]int{}
	for line := range strings.Lines(i.Output(t, "stderr")) {
		var entry struct {
			Time time.Time
			Msg  string
		}
		if json.Unmarshal([]byte(line), &entry) == nil && (entry.Msg == "request" || entry.Msg == "request refused") {
			continue
		}
		second := entry.Time.Truncate(time.Second)
		seconds[second]++
		most = max(most, seconds[second])
	}
	return most
}
