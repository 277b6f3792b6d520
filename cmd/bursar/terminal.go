package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"bursar/internal/config"
	"bursar/internal/telemetry"
)

// isTerminal reports whether w is a terminal, not a file or a pipe.
func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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
