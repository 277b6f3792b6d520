package main

import (
	"fmt"
	"io"
	"os"
)

// isTerminal reports whether somebody is looking: w is a terminal, not a file or a pipe.
func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressOn shows on one line how far things are, where somebody is looking.
func progressOn(w io.Writer) func(format string, args ...any) {
	if !isTerminal(w) {
		return func(string, ...any) {}
	}
	return func(format string, args ...any) {
		const eraseLine = "\r\x1b[K"
		fmt.Fprintf(w, eraseLine+format, args...)
	}
}
