package config

import (
	"fmt"
	"io"
	"reflect"

	"github.com/alecthomas/kong"
)

// Print writes all settings as a file of settings: those that are not set, and secrets, as comments.
func Print(w io.Writer, app *kong.Application) error {
	for _, flag := range app.Flags {
		value, isText := reflect.TypeAssert[string](flag.Target)
		if !isText || flag.Name == "config" {
			continue
		}
		line := Variable(flag.Name) + "=" + value
		switch {
		case value == "":
			line = "# " + line
		case hidden(flag):
			line = "# " + Variable(flag.Name) + " is set, and not shown"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// hidden reports whether the value may hold a secret: a database's address may hold a password.
func hidden(flag *kong.Flag) bool { return flag.Tag.Has("secret") || flag.Name == "database-url" }
