package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// passwordFlag is for commands that read a password.
type passwordFlag struct {
	PasswordStdin bool `help:"Read the password from standard input, one line. On a terminal it is asked for otherwise."`
}

// password asks for a password twice on a terminal, and else reads one line of standard input.
func (f passwordFlag) password(ctx context.Context, e *env) (string, error) {
	if f.PasswordStdin || !isTerminalInput(e.in) {
		return readLine(e.in)
	}
	d, err := openDialog(ctx, e)
	if err != nil {
		return "", err
	}
	defer d.close()
	return d.newPassword()
}

// isTerminalInput tells whether there is a person to ask.
func isTerminalInput(r io.Reader) bool {
	file, isFile := r.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// dialog asks questions on a terminal. While it is open the terminal is raw, so that nothing typed is shown but by it.
type dialog struct {
	ctx    context.Context //nolint:containedctx // it ends with the command
	term   *term.Terminal
	before *term.State
	fd     int
}

func openDialog(ctx context.Context, e *env) (*dialog, error) {
	file, _ := e.in.(*os.File)
	d := &dialog{ctx: ctx, fd: int(file.Fd())}
	var err error
	if d.before, err = term.MakeRaw(d.fd); err != nil {
		return nil, fmt.Errorf("ask on the terminal: %w", err)
	}
	d.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.in, e.err}, "")
	return d, nil
}

func (d *dialog) close() { _ = term.Restore(d.fd, d.before) } // nothing is left to do about a terminal that is gone

var errDialogEnded = errors.New("nothing was done: the input was ended")

// wait returns what read does, or fails when the command is to end: a raw terminal sends no signals, but a kill may come.
func (d *dialog) wait(read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := read()
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		if errors.Is(a.err, io.EOF) { // Ctrl-C and Ctrl-D
			return "", errDialogEnded
		}
		return a.text, a.err
	case <-d.ctx.Done():
		return "", errDialogEnded
	}
}

// ask asks for a line that is shown as it is typed.
func (d *dialog) ask(question string) (string, error) {
	d.term.SetPrompt(question + ": ")
	text, err := d.wait(d.term.ReadLine)
	return strings.TrimSpace(text), err
}

// newPassword asks twice, and shows neither.
func (d *dialog) newPassword() (string, error) {
	secret := func(question string) (string, error) {
		return d.wait(func() (string, error) { return d.term.ReadPassword(question + ": ") })
	}
	first, err := secret("Password")
	if err != nil {
		return "", err
	}
	second, err := secret("Password again")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", usageError{errors.New("the two passwords are not the same; nothing was done")}
	}
	return first, nil
}

// readLine reads one line, without its end.
func readLine(r io.Reader) (string, error) {
	const most = 4096 // more than any password may have
	line, err := bufio.NewReader(io.LimitReader(r, most)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if line == "" {
		return "", usageError{errors.New("standard input holds no password; give it as one line, or run the command on a terminal")}
	}
	return line, nil
}
