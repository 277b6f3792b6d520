package main

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // for the command that breaks the books
)

// TestMain lets scripts, and the tests that start servers, run the program as "bursar".
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bursar": main})
}

// TestScripts runs the stories in testdata/script. Beside testscript's own commands they have:
//
//	call METHOD PATH [BODY]          a request of the service at $ADDR, with $TOKEN where it is set; the
//	                                 answer's body is on stdout, and a status from 400 on is a failure
//	until METHOD PATH REGEXP [BODY]  the same again and again until the answer matches
//	take VARIABLE REGEXP [FILE]      sets a variable to what the group matches in the last answer, or in a file
//	breakbooks FILE                  adds 1 to a seller's available balance, past the ledger
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			addr, err := freeAddress()
			if err != nil {
				return err
			}
			env.Setenv("ADDR", addr)
			env.Setenv("BURSAR_ADDR", addr)
			env.Setenv("BURSAR_METRICS_ADDR", "127.0.0.1:0")
			env.Setenv("BURSAR_SANDBOX_ADDR", "127.0.0.1:0")
			env.Setenv("BURSAR_CANCEL_WINDOW", "100ms")
			env.Setenv("BURSAR_SANDBOX_SETTLE_AFTER", "100ms")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"call": callCommand, "until": untilCommand, "take": takeCommand, "breakbooks": breakBooksCommand,
		},
		RequireExplicitExec: true,
	})
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

const lastAnswer = "last-answer.json"

func callCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: call METHOD PATH [BODY]")
	}
	status, body, err := send(ts, args)
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
	for range 300 {
		var err error
		if _, body, err = send(ts, args); err == nil && want.Match(body) {
			fmt.Fprintf(ts.Stdout(), "%s", body)
			ts.Check(os.WriteFile(ts.MkAbs(lastAnswer), body, 0o600))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s never answered with %s; the last answer was: %s", args[1], want, body)
}

func send(ts *testscript.TestScript, args []string) (int, []byte, error) {
	body := ""
	if len(args) == 3 {
		body = args[2]
	}
	request, err := http.NewRequest(args[0], "http://"+ts.Getenv("ADDR")+args[1], strings.NewReader(body))
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

func breakBooksCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: breakbooks FILE")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	result, err := db.Exec(`UPDATE seller_balances SET available = available + 1`)
	ts.Check(err)
	if n, _ := result.RowsAffected(); n == 0 {
		ts.Fatalf("there is no balance to break")
	}
}
