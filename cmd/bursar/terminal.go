package main

import (
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
