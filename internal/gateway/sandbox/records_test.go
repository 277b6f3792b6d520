package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
)

func TestRecords_SurviveRestart(t *testing.T) {
	path := inFile(t)
	in := func(o *sandbox.Options) { o.Path, o.SettleAfter = path, 300*time.Millisecond }
	w := open(t, in)
	reference, body := w.order("4321", 60050)
	begun := w.submit(reference, body)
	stuck := w.pay("0004", 500)
	before := w.balance()
	w.stop()

	w = open(t, in)
	if again := w.submit(reference, body); again.GatewayID != begun.GatewayID {
		t.Errorf("%s was paid again as %s", begun.GatewayID, again.GatewayID)
	}
	w.reaches(begun.GatewayID, gateway.Paid)
	if got := w.fetch(stuck.GatewayID); got.Progress != gateway.InProgress {
		t.Errorf("%+v", got)
	}
	if after := w.balance(); after != before {
		t.Errorf("the balance was %d and is %d", before, after)
	}
	w.eventually("an event from after the restart", func() bool { return len(w.received.about(reference)) > 0 })
	account := w.fetchWire(begun.GatewayID).FundAccountID
	var shown razorpayx.FundAccount
	w.control("GET", "/v1/fund_accounts/"+account, "", &shown)
	if shown.BankAccount.AccountNumber != "50100012344321" {
		t.Errorf("the account number is %q", shown.BankAccount.AccountNumber)
	}
}

func TestFiles_OwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes; the directory's access list rules")
	}
	path := filepath.Join(t.TempDir(), "sandbox.db") // in a directory that was there before
	open(t, func(o *sandbox.Options) { o.Path = path })
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 2 { // the database, and its log at least
		t.Fatal(files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(file), got)
		}
	}
}

// TestMain lets a test run this program again as a sandbox that it can kill.
func TestMain(m *testing.M) {
	if path := os.Getenv("SANDBOX_TO_KILL"); path != "" {
		serveUntilKilled(path)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(path string) {
	o := options()
	o.Path = path
	s, err := sandbox.New(o)
	if err != nil {
		panic(err)
	}
	fmt.Println(httptest.NewServer(s.Handler()).URL)
	_ = s.Run(context.Background())
}

func TestRecords_SurviveKill(t *testing.T) {
	path := inFile(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), "SANDBOX_TO_KILL="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, url: strings.TrimSpace(url)}
	w.client = w.clientWithTimeout(10 * time.Second)
	answered := w.payFromMany(64)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	w = open(t, func(o *sandbox.Options) { o.Path = path })
	for _, r := range answered {
		if got := w.fetch(r.GatewayID); got.Reference != r.Reference {
			t.Errorf("%s is now %s", r.Reference, got.Reference)
		}
	}
	if len(answered) != 64 {
		t.Errorf("%d answers", len(answered))
	}
}

func TestNew_DamagedRecords_NamesFileAndWhatToDo(t *testing.T) {
	path := inFile(t)
	for name, content := range map[string]string{
		"no database": strings.Repeat("no database ", 1000),
		"zeros":       "SQLite format 3\x00" + strings.Repeat("\x00", 4080),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Path = path
		_, err := sandbox.New(o)
		if err == nil || !strings.Contains(err.Error(), "the sandbox's records in "+path+" are damaged: ") || !strings.Contains(err.Error(), "move the file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := options()
	o.Path = filepath.Dir(path)
	if _, err := sandbox.New(o); err == nil || !strings.Contains(err.Error(), "open the sandbox's records in "+o.Path) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("a directory: %v", err)
	}
}

// payFromMany makes payouts at the same time, and returns those that were accepted.
func (w *fixture) payFromMany(n int) []gateway.Report {
	w.t.Helper()
	beneficiary := w.beneficiary("4321").Beneficiary
	var (
		mu       sync.Mutex
		accepted []gateway.Report
		callers  sync.WaitGroup
	)
	for i := range n {
		callers.Go(func() {
			reference := fmt.Sprintf("one-of-many-%06d", i)
			body := w.prepare(gateway.Order{Reference: reference, Beneficiary: beneficiary, Amount: 100})
			s := w.client.Submit(w.t.Context(), reference, body)
			mu.Lock()
			defer mu.Unlock()
			if s.Outcome == gateway.Accepted {
				accepted = append(accepted, s.Report)
			}
		})
	}
	callers.Wait()
	return accepted
}

func TestMoves_ListsAll(t *testing.T) {
	w := open(t, nil)
	const n = 300
	if got := len(w.payFromMany(n)); got != n {
		t.Fatalf("%d accepted", got)
	}
	var moves []sandbox.Move
	w.eventually("all to be paid", func() bool {
		moves = w.moves("")
		for _, m := range moves {
			if m.Status != "processed" {
				return false
			}
		}
		return true
	})
	if len(moves) != n {
		t.Fatalf("%d moves", len(moves))
	}
	for i, m := range moves {
		if m.ReferenceID != fmt.Sprintf("one-of-many-%06d", i) || m.Net != 100 || m.Count != 1 {
			t.Errorf("%+v", m)
		}
	}
}

func TestMoves_None_EmptyList(t *testing.T) {
	w := open(t, nil)
	if moves := w.moves(""); moves == nil || len(moves) != 0 {
		t.Errorf("%v", moves)
	}
	var health sandbox.Health
	w.control("GET", "/control/health", "", &health)
	if health.Status != "ok" {
		t.Errorf("%+v", health)
	}
}

// BenchmarkPayouts makes payouts over HTTP from many callers while they settle and their webhooks
// are delivered.
func BenchmarkPayouts(b *testing.B) {
	path := inFile(b)
	w := open(b, func(o *sandbox.Options) { o.Path, o.SettleAfter = path, time.Second })
	beneficiary := w.beneficiary("4321").Beneficiary
	var number atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			reference := fmt.Sprintf("benchmark-%012d", number.Add(1))
			body := w.prepare(gateway.Order{Reference: reference, Beneficiary: beneficiary, Amount: 100})
			if s := w.client.Submit(b.Context(), reference, body); s.Outcome != gateway.Accepted {
				b.Errorf("outcome %d, %s: %s", s.Outcome, s.ReasonCode, s.Reason)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "payouts/s")
}
