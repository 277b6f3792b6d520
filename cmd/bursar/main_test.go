package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // for the commands that break the ledger
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // for the same on SQLite

	"bursar/internal/pgtest"
	"bursar/internal/porttest"
)

// TestMain lets scripts run the program as "bursar".
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bursar": main})
}

// TestScripts runs the stories in testdata/script. Beside testscript's own commands they have:
//
//	call METHOD PATH [BODY]          a request of the service at $ADDR, with $TOKEN where it is set; the
//	                                 answer's body is on stdout, and a status from 400 on is a failure
//	until METHOD PATH REGEXP [BODY]  the same again and again until the answer matches
//	take VARIABLE REGEXP [FILE]      sets a variable to what the group matches in the last answer, or in a file
//	breakledger [FILE]                adds 1 to a seller's available balance, past the ledger
//	tamper STATEMENT [FILE]          changes rows in any other way
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts("script", func(*testscript.Env) {}, nil))
}

// TestScriptsOnPostgres runs the stories in testdata/postgres, each on a database of its own. They have two
// more commands:
//
//	database      goes on with another empty database
//	restore FILE  restores a backup into the database
func TestScriptsOnPostgres(t *testing.T) {
	pgtest.New(t) // skips where there is no PostgreSQL
	const url = "BURSAR_DATABASE_URL"
	testscript.Run(t, scripts("postgres", func(env *testscript.Env) { env.Setenv(url, pgtest.New(t)) },
		map[string]func(*testscript.TestScript, bool, []string){
			"database": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv(url, pgtest.New(t)) },
			"restore":  restoreCommand,
		}))
}

// scripts are the stories in a directory below testdata. Each has addresses that nothing else uses.
func scripts(dir string, setup func(*testscript.Env), more map[string]func(*testscript.TestScript, bool, []string)) testscript.Params {
	commands := map[string]func(*testscript.TestScript, bool, []string){
		"call": callCommand, "until": untilCommand, "take": takeCommand, "breakledger": breakLedgerCommand, "tamper": tamperCommand,
	}
	maps.Copy(commands, more)
	return testscript.Params{
		Dir: filepath.Join("testdata", dir),
		Setup: func(env *testscript.Env) error {
			addr, err := freeAddress()
			if err != nil {
				return err
			}
			other, err := freeAddress()
			if err != nil {
				return err
			}
			program, err := exec.LookPath("bursar")
			if err != nil {
				return err
			}
			env.Setenv("BIN", filepath.Dir(program))
			env.Setenv("ADDR", addr)
			env.Setenv("OTHER", other)
			env.Setenv("BURSAR_ADDR", addr)
			env.Setenv("BURSAR_METRICS_ADDR", "127.0.0.1:0")
			env.Setenv("BURSAR_SANDBOX_ADDR", "127.0.0.1:0")
			env.Setenv("BURSAR_CANCEL_WINDOW", "100ms")
			env.Setenv("BURSAR_SANDBOX_SETTLE_AFTER", "100ms")
			setup(env)
			return nil
		},
		Cmds:                commands,
		RequireExplicitExec: true,
	}
}

const lastAnswer = "last-answer.json"

func callCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: call METHOD PATH [BODY]")
	}
	status, body, err := ask(ts, args)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s", body)
	ts.Check(os.WriteFile(ts.MkAbs(lastAnswer), body, 0o600))
	if failed := status >= 400; failed != neg {
		ts.Fatalf("%s was answered with %d: %s", strings.Join(args, " "), status, body)
	}
}

func untilCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: until METHOD PATH REGEXP [BODY]")
	}
	want := regexp.MustCompile(args[2])
	args = slices.Delete(args, 2, 3)
	var body []byte
	for range 1200 { // a minute, as long as other tests wait
		var err error
		if _, body, err = ask(ts, args); err == nil && want.Match(body) {
			fmt.Fprintf(ts.Stdout(), "%s", body)
			ts.Check(os.WriteFile(ts.MkAbs(lastAnswer), body, 0o600))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s never answered with %s; the last answer was: %s", args[1], want, body)
}

// ask sends a request with the settings of the script.
func ask(ts *testscript.TestScript, args []string) (int, []byte, error) {
	body := ""
	if len(args) == 3 {
		body = args[2]
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, args[0], "http://"+ts.Getenv("ADDR")+args[1], strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token := ts.Getenv("TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

func freeAddress() (string, error) {
	port, err := porttest.Free()
	return porttest.Address(port), err
}

func takeCommand(ts *testscript.TestScript, neg bool, args []string) {
	file := lastAnswer
	if len(args) == 3 {
		file = args[2]
	}
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: take VARIABLE REGEXP [FILE]")
	}
	text := ts.ReadFile(file)
	found := regexp.MustCompile(args[1]).FindStringSubmatch(text)
	if len(found) != 2 {
		ts.Fatalf("%s is not in %s", args[1], text)
	}
	ts.Setenv(args[0], found[1])
}

func breakLedgerCommand(ts *testscript.TestScript, neg bool, args []string) {
	tamperCommand(ts, neg, slices.Insert(args, 0, `UPDATE journals SET available = available + 1`))
}

func tamperCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: tamper STATEMENT [FILE], or breakledger [FILE]")
	}
	driver, source := "pgx", ts.Getenv("BURSAR_DATABASE_URL")
	if len(args) == 2 {
		driver, source = "sqlite", "file:"+ts.MkAbs(args[1])+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, source)
	ts.Check(err)
	defer db.Close()
	result, err := db.Exec(args[0])
	ts.Check(err)
	if n, _ := result.RowsAffected(); n == 0 {
		ts.Fatalf("there is nothing to break")
	}
}

func restoreCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: restore FILE")
	}
	ts.Check(ts.Exec("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+ts.Getenv("BURSAR_DATABASE_URL"), args[0]))
}
