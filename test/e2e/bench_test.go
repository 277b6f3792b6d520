//go:build unix

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/crypto/argon2"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/config"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// The benchmarks measure the service over HTTP on loopback, each beside its floor in the same run:
// a bare net/http handler that does the least the same answer could cost. Client and server share the
// machine, so compare a benchmark with its floor, never with another machine's figure.

// scale sets benchmarks beside a floor: each reports what part of the floor's speed it has.
type scale map[string]time.Duration // per call

func (s scale) floor(b *testing.B, name string, run func(*testing.B)) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		run(b)
		s[name] = b.Elapsed() / time.Duration(b.N)
	})
}

func (s scale) beside(b *testing.B, floor, name string, run func(*testing.B)) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		run(b)
		if least, measured := s[floor]; measured {
			b.ReportMetric(least.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-floor")
		}
	})
}

// BenchmarkPayoutRequest asks for payouts. Its floor is a bare handler over the same grouped
// transactions: the same statements, without asking who calls or what for.
func BenchmarkPayoutRequest(b *testing.B) {
	onEachEngine(b, func(b *testing.B, on engine) {
		for _, spread := range []struct {
			name                 string
			sellers, connections int
		}{
			{"many sellers on 64 connections", 128, 64},
			{"one seller on 64 connections", 1, 64},
			{"many sellers on 16 connections", 128, 16},
			{"one seller on 16 connections", 1, 16},
		} {
			b.Run(spread.name, func(b *testing.B) {
				h, s, n := newHall(b, on, spread.sellers), scale{}, spread.connections
				s.floor(b, "floor", func(b *testing.B) { h.load(b, n, h.floor.URL+"/request", h.requestBody) })
				s.beside(b, "floor", "service", func(b *testing.B) { h.requests(b, n) })
				s.floor(b, "floor with keys", func(b *testing.B) { h.load(b, n, h.floor.URL+"/request?key=1", h.requestBody) })
				s.beside(b, "floor with keys", "service with keys", func(b *testing.B) {
					h.load(b, n, h.service.URL+"/api/payouts/request", func(r *http.Request) {
						h.requestBody(r)
						r.Header.Set("Idempotency-Key", id.Random(20))
					})
				})
				if h.database.Postgres != "" {
					b.Run("pgbench, a transaction each", func(b *testing.B) { h.pgbench(b, n) })
				}
			})
		}
	})
}

// BenchmarkPayoutRequestOnALongHistory asks for payouts where there are none yet, and where 500,000
// are there already; the former is the floor.
func BenchmarkPayoutRequestOnALongHistory(b *testing.B) {
	const sellers = 128
	onEachEngine(b, func(b *testing.B, on engine) {
		s := scale{}
		empty := newHall(b, on, sellers)
		s.floor(b, "after 0 payouts", func(b *testing.B) { empty.requests(b, 64) })
		long := newHall(b, on, sellers)
		long.fillHistory(b, 500_000)
		s.beside(b, "after 0 payouts", "after 500000 payouts", func(b *testing.B) { long.requests(b, 64) })
	})
}

// BenchmarkReads asks who one is and what one has on 16 connections. The floor answers as many bytes
// after one indexed read.
func BenchmarkReads(b *testing.B) {
	onEachEngine(b, func(b *testing.B, on engine) {
		h, s := newHall(b, on, 128), scale{}
		s.floor(b, "floor", h.reads(h.floor.URL+"/read"))
		if h.database.Postgres != "" {
			s.beside(b, "floor", "floor with a pool of the driver's", h.reads(h.pooled(b)))
		}
		s.beside(b, "floor", "me", h.reads(h.service.URL+"/api/auth/me"))
		s.beside(b, "floor", "balance", h.reads(h.service.URL+"/api/payouts/balance"))
	})
}

// BenchmarkReadsOnALongHistory reads the balance and the first page of history of a seller who has
// ten payouts, the floor, and of one who has a million.
func BenchmarkReadsOnALongHistory(b *testing.B) {
	onEachEngine(b, func(b *testing.B, on engine) {
		few, many, s := newHall(b, on, 1), newHall(b, on, 1), scale{}
		few.fillHistory(b, 10)
		many.fillHistory(b, 1_000_000)
		for name, path := range map[string]string{
			"balance":                     "/api/payouts/balance",
			"history page 1":              "/api/payouts/history",
			"history page 1 of completed": "/api/payouts/history?status=completed",
		} {
			floor := name + " after 10 payouts"
			s.floor(b, floor, few.reads(few.service.URL+path))
			s.beside(b, floor, name+" after 1000000 payouts", many.reads(many.service.URL+path))
		}
	})
}

// BenchmarkPasswords registers and signs in beside bare argon2id with the same parameters.
func BenchmarkPasswords(b *testing.B) {
	const connections = 16
	h, s := newHall(b, onSQLite, 1), scale{}
	s.floor(b, "floor", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			salt := make([]byte, 16)
			for pb.Next() {
				_, _ = rand.Read(salt)
				argon2.IDKey([]byte("correct horse"), salt, 2, 19456, 1, 32)
			}
		})
	})
	s.beside(b, "floor", "register", func(b *testing.B) {
		h.load(b, connections, h.service.URL+"/api/auth/register", func(r *http.Request) {
			setBody(r, fmt.Sprintf(`{"name":"Asha Rao","email":"%s@example.com","password":"correct horse"}`, id.Random(16)))
		})
	})
	s.beside(b, "floor", "login", func(b *testing.B) {
		h.load(b, connections, h.service.URL+"/api/auth/login", func(r *http.Request) {
			setBody(r, `{"email":"seller0@example.com","password":"correct horse"}`)
		})
	})
}

// BenchmarkSessions refreshes and signs out. The floor makes the one grouped write that a refresh
// makes, and answers.
func BenchmarkSessions(b *testing.B) {
	const connections = 16
	onEachEngine(b, func(b *testing.B, on engine) {
		h, s := newHall(b, on, 1), scale{}
		s.floor(b, "floor", func(b *testing.B) {
			sessions := h.sessions(b, connections)
			var next atomic.Int64
			h.load(b, connections, h.floor.URL+"/refresh", func(r *http.Request) {
				session, _, _ := strings.Cut(strings.TrimPrefix(sessions[next.Add(1)%connections].RefreshToken, "brt_"), ".")
				setBody(r, `{"session":"ses_`+session+`"}`)
			})
		})
		s.beside(b, "floor", "refresh", func(b *testing.B) { h.refreshes(b, connections) })
		s.beside(b, "floor", "logout", func(b *testing.B) {
			signedIn := h.sessions(b, b.N)
			var next atomic.Int64
			h.load(b, connections, h.service.URL+"/api/auth/logout", func(r *http.Request) {
				setBody(r, "")
				r.Header.Set("Authorization", "Bearer "+signedIn[next.Add(1)-1].Token)
			})
		})
	})
}

// hall is the service and its floor, over one database, with sellers who can withdraw without end.
type hall struct {
	database config.Database
	db       *store.DB
	services app.Services
	// cheap signs in to the same sessions without the cost of password hashes.
	cheap    *auth.Service
	accounts map[string]bank.ID
	service  *httptest.Server
	floor    *httptest.Server
	client   *http.Client
	sellers  []auth.SignIn
	next     atomic.Int64
}

func newHall(b *testing.B, on engine, sellers int) *hall {
	b.Helper()
	cfg := benchConfig(b, on)
	logger := slog.New(slog.DiscardHandler)
	service, err := app.NewService(b.Context(), cfg, logger, "bench")
	if err != nil {
		b.Fatal(err)
	}
	opened := service.Datastore()
	cheap, err := auth.New(auth.Options{
		Store: opened.DB().Auth(), Keys: opened.Keys(), Sealer: opened.Keys(), Now: time.Now, Logger: logger, Issuer: opened.Issuer(), CheapHashes: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	h := &hall{
		database: cfg.Database, db: opened.DB(), services: service.Services(), cheap: cheap, accounts: map[string]bank.ID{},
		service: httptest.NewServer(service.Handler()),
	}
	h.floor = httptest.NewServer(h.bareHandlers())
	h.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	b.Cleanup(func() {
		h.service.Close()
		h.floor.Close()
		h.client.CloseIdleConnections()
		_ = service.Close()
	})
	h.addSellers(b, sellers)
	return h
}

func benchConfig(b *testing.B, on engine) config.Config {
	b.Helper()
	dir := b.TempDir()
	sources := config.NewSources([]string{
		"BURSAR_DATA_DIR=" + dir, "BURSAR_LOGIN_THROTTLE=off", "BURSAR_CANCEL_WINDOW=10h", "BURSAR_ADDR=127.0.0.1:0", "BURSAR_METRICS_ADDR=off",
		"BURSAR_DATABASE_URL=" + on.database(b),
		"BURSAR_GATEWAY=razorpayx", "BURSAR_RAZORPAYX_KEY_ID=rzp_test_1", "BURSAR_RAZORPAYX_KEY_SECRET=secret",
		"BURSAR_RAZORPAYX_ACCOUNT_NUMBER=7878780080316316", "BURSAR_RAZORPAYX_WEBHOOK_SECRETS=secret-of-webhooks",
	})
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

func (h *hall) addSellers(b *testing.B, n int) {
	b.Helper()
	ctx, past := b.Context(), time.Now().Add(-time.Hour)
	for i := range n {
		s, err := h.cheap.Register(ctx, auth.Registration{
			Name: "Asha Rao", Email: fmt.Sprintf("seller%d@example.com", i), Password: "correct horse", Role: auth.Seller,
		})
		if err != nil {
			b.Fatal(err)
		}
		h.sellers = append(h.sellers, s)
		h.accounts[s.User.ID] = bank.ID(id.New("bka_", past))
		err = h.db.Bank().InTx(ctx, func(tx bank.Tx) error {
			return tx.ReplaceBankAccount(ctx, bank.Account{
				ID: h.accounts[s.User.ID], Seller: s.User.ID, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234",
				Status: bank.StatusVerified, NameScore: -1, CreatedAt: past, VerifiedAt: past,
			})
		})
		if err != nil {
			b.Fatal(err)
		}
		_, _, err = h.services.Sales.Record(ctx, sale.NewSale{
			ID: "sale of " + s.User.ID, Seller: s.User.ID, Amount: money.Max, OccurredAt: past, AvailableAt: past,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for released := 1; released > 0; {
		var err error
		if released, err = h.services.Sales.ReleaseDue(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// fillHistory writes completed payouts of the past straight into the tables, shared out among all sellers.
func (h *hall) fillHistory(b *testing.B, payouts int) {
	b.Helper()
	per := payouts / len(h.sellers)
	driver, address := "pgx", h.database.Postgres
	if address == "" {
		driver, address = "sqlite", "file:"+h.database.SQLite+"?_pragma=busy_timeout(5000)"
	}
	raw, err := sql.Open(driver, address)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	const (
		numbers = `WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) `
		anID    = `'pyt_0000' || substr(CAST(100000000 + i AS TEXT), 2) || substr(CAST($1 AS TEXT), length(CAST($1 AS TEXT)) - 11)`
	)
	for _, s := range h.sellers {
		if per == 0 {
			break
		}
		for _, statement := range []string{
			numbers + `INSERT INTO payouts (id, seller_id, bank_account_id, amount, fee, notes, mode, state, requested_at, status,
				arrive_at, processed_at, completed_at, tries, order_body, gateway_id, progress, utr, reason_code, reason, contradiction)
				SELECT ` + anID + `, $1, CAST($3 AS TEXT), 50000, 0, 'rent', 'IMPS', state, i, state, i, i + 0, i,
				0, '', 'pout_00000000000001', 'paid', 'HDFCN00000000001', '', '', '' FROM n, (SELECT 'completed' AS state) AS s`,
			numbers + `INSERT INTO transfers (seller_id, number, at, kind, debit, credit, amount, ref)
				SELECT $1, i + 10, i, 'payout_hold', 'seller:available', 'seller:in_transit', 50000, ` + anID + ` FROM n WHERE CAST($3 AS TEXT) <> ''`,
			`UPDATE seller_balances SET completed = CAST($2 AS BIGINT), transfers = CAST($2 AS BIGINT) + 10 WHERE seller_id = $1 AND CAST($3 AS TEXT) <> ''`,
		} {
			if _, err := raw.ExecContext(b.Context(), statement, s.User.ID, per, string(h.accounts[s.User.ID])); err != nil {
				b.Fatal(err)
			}
		}
	}
	tidy := `PRAGMA wal_checkpoint(TRUNCATE)` // the next commit is not to write back what was filled in
	if h.database.Postgres != "" {
		tidy = `ANALYZE`
	}
	if _, err := raw.ExecContext(b.Context(), tidy); err != nil {
		b.Fatal(err)
	}
}

// load calls a URL b.N times on a number of connections, as one seller after another.
func (h *hall) load(b *testing.B, connections int, url string, prepare func(*http.Request)) {
	b.Helper()
	h.each(b, connections, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+h.sellers[h.next.Add(1)%int64(len(h.sellers))].Token)
		prepare(r)
		_, err = h.do(r)
		return err
	})
}

// each calls fn b.N times from as many goroutines as there are connections.
func (h *hall) each(b *testing.B, connections int, fn func(context.Context) error) {
	b.Helper()
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var workers sync.WaitGroup
	b.ResetTimer()
	for range connections {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				if err := fn(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

func (h *hall) do(r *http.Request) ([]byte, error) {
	answer, err := h.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		err = errors.Join(err, fmt.Errorf("%s: %s", answer.Status, body))
	}
	return body, err
}

// requests asks the service for payouts.
func (h *hall) requests(b *testing.B, connections int) {
	h.load(b, connections, h.service.URL+"/api/payouts/request", h.requestBody)
}

// reads gets a URL on 16 connections.
func (h *hall) reads(url string) func(*testing.B) {
	return func(b *testing.B) { h.load(b, 16, url, func(*http.Request) {}) }
}

func (h *hall) requestBody(r *http.Request) { setBody(r, `{"amount":500,"notes":"rent"}`) }

func setBody(r *http.Request, body string) {
	r.Method = http.MethodPost
	r.Body = io.NopCloser(strings.NewReader(body))
	r.ContentLength = int64(len(body))
}

// sessions makes signed-in sessions without the cost of their passwords, and refreshes each, so that
// its token is the service's own.
func (h *hall) sessions(b *testing.B, n int) []auth.SignIn {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	all := make([]auth.SignIn, n)
	for i := range all {
		s, err := h.cheap.Login(b.Context(), auth.Credentials{Email: "seller0@example.com", Password: "correct horse"})
		if err != nil {
			b.Fatal(err)
		}
		if all[i], err = h.services.Auth.Refresh(b.Context(), s.RefreshToken); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

// refreshes rotates one session per connection.
func (h *hall) refreshes(b *testing.B, connections int) {
	b.Helper()
	tokens := make(chan string, connections)
	for _, s := range h.sessions(b, connections) {
		tokens <- s.RefreshToken
	}
	h.each(b, connections, func(ctx context.Context) error {
		token := <-tokens
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.service.URL+"/api/auth/refresh", nil)
		if err != nil {
			return err
		}
		setBody(r, `{"refreshToken":"`+token+`"}`)
		body, err := h.do(r)
		if err != nil {
			return err
		}
		_, rest, _ := bytes.Cut(body, []byte(`"refreshToken":"`))
		next, _, found := bytes.Cut(rest, []byte(`"`))
		if !found {
			return fmt.Errorf("no refresh token in %s", body)
		}
		tokens <- string(next)
		return nil
	})
}

// bareHandlers are the floors.
func (h *hall) bareHandlers() http.Handler {
	db := h.db
	answer := bytes.Repeat([]byte("x"), 205)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := db.Balance(r.Context(), h.sellers[0].User.ID); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(answer)
	})
	mux.HandleFunc("POST /refresh", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Session string }
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			err = h.advance(r.Context(), body.Session)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(answer)
	})
	mux.HandleFunc("POST /request", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Amount money.Amount
			Notes  string
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			err = h.hold(r.Context(), h.sellers[h.next.Add(1)%int64(len(h.sellers))].User.ID, body.Amount*100, r.URL.RawQuery != "")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(answer)
	})
	return mux
}

// advance writes what a refresh must write, whatever the session's counter is.
func (h *hall) advance(ctx context.Context, session string) error {
	now := time.Now()
	return h.db.Update(ctx, func(tx *store.Tx) error {
		stored, _, _, err := tx.Session(ctx, session)
		if err != nil {
			return err
		}
		_, _, err = tx.AdvanceSession(ctx, session, stored.Counter, now, now.Add(time.Hour), time.Second)
		return err
	})
}

// hold runs the statements of a payout's request, and nothing else.
func (h *hall) hold(ctx context.Context, seller string, amount money.Amount, withKey bool) error {
	now := time.Now()
	p := payout.Payout{
		ID: payout.ID(id.New("pyt_", now)), Seller: seller, Amount: amount,
		State: payout.Waiting, Mode: payout.IMPS, RequestedAt: now, ArriveAt: now, DueAt: now.Add(10 * time.Hour), Notes: "rent",
	}
	change := ledger.Change{
		Balance:   ledger.Balance{Available: -amount, InTransit: amount, Counts: ledger.Counts{Processing: 1}},
		Transfers: 1,
	}
	key := ""
	if withKey {
		key = id.Random(20)
	}
	return h.db.Payouts().InRequest(ctx, payout.RequestCaller{Seller: seller, Key: key}, func(tx payout.RequestTx) error {
		if withKey {
			if _, err := tx.Remember(ctx, seller, key, payout.Remembered{Fingerprint: "f", Payout: p.ID}, now); err != nil {
				return err
			}
		}
		account, err := tx.AccountToPay(ctx, seller)
		if err != nil {
			return err
		}
		p.BankAccountID = account.ID
		transfers := ledger.HoldPayout(string(p.ID), amount)
		last, err := tx.MoveBalance(ctx, seller, change, ledger.Links(now, transfers), false)
		if err != nil {
			return err
		}
		if err := tx.InsertTransfers(ctx, seller, now, last, transfers); err != nil {
			return err
		}
		return tx.InsertPayout(ctx, p)
	})
}
