package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/term"

	"bursar/internal/config"
	"bursar/internal/telemetry"
)

// isTerminal reports whether w is a terminal, not a file or a pipe.
func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	return term.IsTerminal(int(file.Fd()))
}

// progressOn shows the progress on one line, if w is a terminal.
func progressOn(w io.Writer) func(format string, args ...any) {
	if !isTerminal(w) {
		return func(string, ...any) {}
	}
	return func(format string, args ...any) {
		const eraseLine = "\r\x1b[K"
		fmt.Fprintf(w, eraseLine+format, args...)
	}
}

// whoRuns is who runs a command, for the record: the name that they gave, or else that of the system's user.
func whoRuns(by string) (string, error) {
	if by == "" {
		if u, err := user.Current(); err == nil {
			by = u.Username
		}
	}
	const maxBytes = 100
	if by == "" || len(by) > maxBytes || printable(by) != by {
		return "", usageError{errors.New("say who runs this with --by NAME, in 1 to 100 visible characters")}
	}
	return by, nil
}

// printable is a text from a file or a database as it can be shown on one line of a table: what a terminal would obey
// becomes a question mark.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
}

// table writes rows: in columns on a terminal, and else separated by tabs, for programs.
type table struct {
	w     io.Writer
	align *tabwriter.Writer // nil for programs
}

func newTable(w io.Writer, header ...string) *table {
	t := &table{w: w}
	if isTerminal(w) {
		t.align = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		t.w = t.align
		t.row(header...)
	}
	return t
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// Flush writes what waits to be aligned.
func (t *table) Flush() error {
	if t.align == nil {
		return nil
	}
	return t.align.Flush()
}

// newLogger makes the log of a command, as text on a terminal, unless the settings say otherwise.
func newLogger(cfg config.Config, w io.Writer) (*slog.Logger, error) {
	format := telemetry.Format(cfg.LogFormat)
	if format == "" {
		format = telemetry.JSON
		if isTerminal(w) {
			format = telemetry.Text
		}
	}
	return telemetry.NewLogger(w, cfg.LogLevel, format)
}

// quiet is the log of commands that tell what they did themselves.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// writeJSON writes what programs read.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
