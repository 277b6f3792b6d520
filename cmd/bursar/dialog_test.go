package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
)

// person sits at a terminal: they type an answer once its question stands there.
type person struct {
	t        *testing.T
	terminal *os.File // what a person has in hand
	program  *os.File // what the program has in its place

	mu   sync.Mutex
	more *sync.Cond
	seen bytes.Buffer
	gone bool
}

func sitDown(t *testing.T) *person {
	t.Helper()
	terminal, program, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	p := &person{t: t, terminal: terminal, program: program}
	p.more = sync.NewCond(&p.mu)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			p.mu.Lock()
			p.seen.Write(buffer[:n])
			p.gone = err != nil
			p.more.Broadcast()
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		program.Close()
		terminal.Close()
	})
	return p
}

// answers types each answer after its question.
func (p *person) answers(pairs ...string) {
	at := 0
	for i := 0; i < len(pairs); i += 2 {
		p.mu.Lock()
		for !strings.Contains(p.seen.String()[at:], pairs[i]) && !p.gone {
			p.more.Wait()
		}
		at += strings.Index(p.seen.String()[at:], pairs[i]) + len(pairs[i])
		p.mu.Unlock()
		if _, err := p.terminal.WriteString(pairs[i+1]); err != nil {
			p.t.Error(err)
		}
	}
}

// sees waits for a text.
func (p *person) sees(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.seen.String(), text) && !p.gone {
		p.more.Wait()
	}
	return p.seen.String()
}

// runs has the program ask the person, who answers.
func (p *person) runs(dir string, args []string, answers ...string) int {
	done := make(chan int, 1)
	go func() {
		done <- run(context.Background(), args, []string{"BURSAR_DATA_DIR=" + dir}, stdio{p.program, p.program, p.program})
	}()
	p.answers(answers...)
	return <-done
}

func TestUserCreate_OnATerminal(t *testing.T) {
	const secret = "monsoon-market"
	args := []string{"user", "create", "--role", "admin"}
	dir := t.TempDir()
	p := sitDown(t)
	code := p.runs(dir, args, "Name: ", "Asha Rao\r", "E-mail address: ", "asha@example.com\r", "Password: ", secret+"\r", "Password again: ", secret+"\r")
	said := p.sees("is made, as admin.")
	if code != exitDone || !strings.Contains(said, "asha@example.com (usr_") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if strings.Contains(said, secret) {
		t.Errorf("the password stands on the terminal: %q", said)
	}

	t.Run("two different passwords", func(t *testing.T) {
		p := sitDown(t)
		code := p.runs(dir, []string{"user", "set-password", "asha@example.com"}, "Password: ", secret+"\r", "Password again: ", "monsoon-marke\r")
		if said := p.sees("are not the same"); code != exitUsage {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
	t.Run("ctrl-c", func(t *testing.T) {
		p := sitDown(t)
		code := p.runs(dir, []string{"user", "set-password", "asha@example.com"}, "Password: ", "mons\x03")
		if said := p.sees("nothing was done"); code != exitFailed {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
	t.Run("a kill", func(t *testing.T) {
		p := sitDown(t)
		ctx, kill := context.WithCancel(t.Context())
		done := make(chan int, 1)
		go func() {
			done <- run(ctx, []string{"user", "set-password", "asha@example.com"}, []string{"BURSAR_DATA_DIR=" + dir}, stdio{p.program, p.program, p.program})
		}()
		p.sees("Password: ")
		kill()
		if code := <-done; code != exitFailed {
			t.Errorf("exit code %d: %s", code, p.sees(""))
		}
	})
}
