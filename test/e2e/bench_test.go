//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/config"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/pgtest"
	"bursar/internal/sale"
	"bursar/internal/store"
	"bursar/internal/telemetry"
)

// The benchmarks measure the whole service over HTTP: its own listener, its background jobs, the built-in sandbox, and
// clients that keep their connections. Client, service and database share the machine, so a figure is worth something
// only beside another one of the same run. A benchmark therefore compares two sides: they take turns in short slices,
// and each round of two slices gives one ratio. An iteration is one round; `make bench` asks for ten.

// engine makes fresh databases of one kind. An acknowledged write is durable.
type engine struct {
	name     string
	database func(b *testing.B) string
}

var onSQLite = engine{"sqlite", func(b *testing.B) string {
	b.Helper()
	return "sqlite:" + filepath.Join(b.TempDir(), "bursar.db")
}}

// onPostgres starts a PostgreSQL server. It skips the benchmark where PostgreSQL is not installed.
func onPostgres(b *testing.B) engine {
	b.Helper()
	server := pgtest.StartServer(b, pgtest.Options{})
	return engine{"postgres", func(b *testing.B) string {
		b.Helper()
		return server.Database(b)
	}}
}

func onEachEngine(b *testing.B, run func(*testing.B, engine)) {
	b.Helper()
	b.Run(onSQLite.name, func(b *testing.B) { run(b, onSQLite) })
	b.Run("postgres", func(b *testing.B) { run(b, onPostgres(b)) })
}

// side is one of two that are compared.
type side struct {
	// name is the unit of its rate, as in "floor" for floor/s.
	name string
	call func(context.Context) error
}

func (s side) named(name string) side { return side{name, s.call} }

const sliceOfRound = 400 * time.Millisecond

// compare runs b.N rounds. In each round both sides are called on a number of connections, one side after the other;
// the next round begins with the other side. It reports the median rate of each side, and the median of the rounds'
// ratios as "of-" and the second side's name, with the quartiles around it. The same ratio of processor times, as
// "cpu-of-", says more on a busy machine; it leaves out PostgreSQL's own.
func compare(b *testing.B, connections int, ours, other side) {
	b.Helper()
	for _, s := range []side{ours, other} { // connect, and prepare statements
		if _, _, err := rate(b.Context(), connections, time.Millisecond, s.call); err != nil {
			b.Fatal(err)
		}
	}
	var rates, costs [2][]float64
	b.ResetTimer()
	for n := range b.N {
		for turn := range 2 {
			i := (n + turn) % 2
			used := processorTimeOfTests(b)
			perSecond, calls, err := rate(b.Context(), connections, sliceOfRound, []side{ours, other}[i].call)
			if err != nil {
				b.Fatal(err)
			}
			rates[i] = append(rates[i], perSecond)
			costs[i] = append(costs[i], (processorTimeOfTests(b)-used).Seconds()/float64(calls))
		}
	}
	ratios, cheapness := make([]float64, b.N), make([]float64, b.N)
	for n := range b.N {
		ratios[n], cheapness[n] = rates[0][n]/rates[1][n], costs[1][n]/costs[0][n]
	}
	b.ReportMetric(0, "ns/op") // of a round, which says nothing
	b.ReportMetric(quantile(rates[0], .5), ours.name+"/s")
	b.ReportMetric(quantile(rates[1], .5), other.name+"/s")
	b.ReportMetric(quantile(ratios, .5), "of-"+other.name)
	b.ReportMetric(quantile(ratios, .25), "of-"+other.name+"-q1")
	b.ReportMetric(quantile(ratios, .75), "of-"+other.name+"-q3")
	b.ReportMetric(quantile(cheapness, .5), "cpu-of-"+other.name)
}

// rate calls fn from as many goroutines as there are connections for a while.
func rate(ctx context.Context, connections int, during time.Duration, fn func(context.Context) error) (perSecond float64, calls int64, err error) {
	var done atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range connections {
		group.Go(func() error {
			for more := true; more; more = time.Since(began) < during {
				if err := fn(ctx); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), done.Load(), err
}

// processorTimeOfTests is that of this process: client, service and floor.
func processorTimeOfTests(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// quantile interpolates between values.
func quantile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := p * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// market is a running service whose sellers have verified bank accounts and more money than a benchmark withdraws.
type market struct {
	database config.Database
	services app.Services
	// users signs in to the same sessions without the cost of password hashes.
	users   *auth.Service
	url     string
	sellers []auth.SignIn
	next    atomic.Int64
	client  *http.Client
}

// earned is what each seller can withdraw, in minor units: millions of payouts, and no sum that comes near to an overflow.
const earned money.Amount = 1e12

// newMarket starts a service on a fresh database, with settings as NAME=value beside those of all benchmarks.
func newMarket(b *testing.B, on engine, sellers int, settings ...string) *market {
	b.Helper()
	app.CollectSeldom() // as the program does; the floor, in the same process, has as much of it
	cfg := benchConfig(b, on, settings...)
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	logger, err := telemetry.NewLogger(log, cfg.LogLevel, telemetry.JSON)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	service, err := app.NewService(ctx, cfg, logger, "bench")
	if err != nil {
		b.Fatal(err)
	}
	datastore := service.Datastore()
	users, err := auth.New(auth.Options{
		Store: datastore.DB().Auth(), Keys: datastore.Keys(), Encrypter: datastore.Keys(), Issuer: datastore.Issuer(),
		Mails: service.Services().Mails, Now: time.Now, Logger: logger, CheapHashes: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	m := &market{
		database: cfg.Database, services: service.Services(), users: users, url: service.URL(),
		client: newClient(b),
	}
	b.Cleanup(func() {
		m.client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if b.Failed() {
			if said, err := os.ReadFile(log.Name()); err == nil {
				b.Logf("the service logged at last:\n%s", said[max(0, len(said)-4000):])
			}
		}
		_ = log.Close()
	})
	m.open(b, sellers)
	awaitRest(b, datastore.DB())
	return m
}

// awaitRest waits until the service has no work left from opening the market, such as mails to the sellers.
func awaitRest(b *testing.B, db *store.DB) {
	b.Helper()
	for {
		w, err := db.Watch(b.Context(), time.Now())
		if err != nil {
			b.Fatal(err)
		}
		if w.PayoutDue.IsZero() && w.AccountDue.IsZero() && w.SaleDue.IsZero() && w.MailQueued.IsZero() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// newClient keeps a connection for each of its callers.
func newClient(b *testing.B) *http.Client {
	b.Helper()
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
}

func benchConfig(b *testing.B, on engine, settings ...string) config.Config {
	b.Helper()
	sources := config.NewSources(append([]string{
		"BURSAR_DATA_DIR=" + b.TempDir(), "BURSAR_DATABASE_URL=" + on.database(b), "BURSAR_LOGIN_THROTTLE=off",
		"BURSAR_ADDR=127.0.0.1:0", "BURSAR_METRICS_ADDR=off", "BURSAR_SANDBOX_ADDR=127.0.0.1:0", "BURSAR_SANDBOX_SETTLE_AFTER=0s",
		"BURSAR_CANCEL_WINDOW=10h", // longer than any benchmark: payouts that are requested only wait
	}, settings...))
	var s config.Settings
	parser, err := kong.New(&s, kong.Resolvers(sources))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		b.Fatal(err)
	}
	cfg, err := s.Parse(sources)
	if err != nil {
		b.Fatal(err)
	}
	return cfg
}

// open adds sellers, waits until their bank accounts are verified and their sales released, and has each make a request.
func (m *market) open(b *testing.B, sellers int) {
	b.Helper()
	m.sellers = make([]auth.SignIn, sellers)
	err := inParallel(b.Context(), sellers, m.addSeller)
	for released := 1; err == nil && released > 0; {
		released, err = m.services.Sales.ReleaseDue(b.Context())
	}
	if err == nil {
		err = inParallel(b.Context(), sellers, m.awaitSeller)
	}
	if err == nil {
		err = inParallel(b.Context(), sellers, m.greet)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// greet has the service verify the signature of a seller's token, which it does once for each token.
func (m *market) greet(ctx context.Context, i int) error {
	_, err := ask(ctx, m.client, http.MethodGet, m.url+"/api/auth/me", m.sellers[i].Token, "")
	return err
}

func (m *market) addSeller(ctx context.Context, i int) error {
	s, err := m.users.Register(ctx, auth.Registration{
		Name: "Asha Rao", Email: fmt.Sprintf("seller%d@example.com", i), Password: sellersPassword, Role: auth.Seller,
	})
	if err != nil {
		return err
	}
	m.sellers[i] = s
	number, err := bank.ParseNumber(fmt.Sprintf("501%07d%s", i, nothingSpecial))
	if err != nil {
		return err
	}
	account, err := m.services.Bank.Register(ctx, bank.Registration{Seller: s.User.ID, Holder: "Asha Rao", Number: number, IFSC: "HDFC0000053"})
	if err != nil {
		return err
	}
	if err := m.services.Bank.Step(ctx, account.ID); err != nil { // sooner than the background job, which has few workers
		return err
	}
	past := time.Now().Add(-time.Hour)
	_, _, err = m.services.Sales.Record(ctx, sale.NewSale{
		ID: "first-" + s.User.ID, Seller: s.User.ID, Amount: earned, OccurredAt: past, AvailableAt: past,
	})
	return err
}

func (m *market) awaitSeller(ctx context.Context, i int) error {
	for {
		s, err := m.services.Payouts.Summary(ctx, m.sellers[i].User.ID)
		if err != nil || (s.Account.Status == bank.StatusVerified && s.Available >= earned) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inParallel calls fn with each number below n, many at a time, so that the writes share commits.
func inParallel(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(64)
	for i := range n {
		group.Go(func() error { return fn(ctx, i) })
	}
	return group.Wait()
}

// seller returns one seller after another.
func (m *market) seller() auth.SignIn { return m.sellers[m.next.Add(1)%int64(len(m.sellers))] }

// withdraw requests payouts without HTTP, for a history to read.
func (m *market) withdraw(b *testing.B, payoutsOfEach int) {
	b.Helper()
	err := inParallel(b.Context(), payoutsOfEach*len(m.sellers), func(ctx context.Context, _ int) error {
		_, _, err := m.services.Payouts.Request(ctx, payout.Request{Seller: m.seller().User.ID, Amount: 500_00, Notes: "rent"})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// ask makes a request as the bearer of a token, and returns the body of an answer that says yes.
func ask(ctx context.Context, client *http.Client, method, url, token, body string, header ...string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if response.StatusCode >= 300 {
		err = errors.Join(err, fmt.Errorf("%s %s: %s: %s", method, url, response.Status, answer))
	}
	return answer, err
}

// reads returns a side that reads a path of the service, as one seller after another.
func (m *market) reads(path string) side {
	return side{"bursar", func(ctx context.Context) error {
		_, err := ask(ctx, m.client, http.MethodGet, m.url+path, m.seller().Token, "")
		return err
	}}
}
