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
		case flag.Tag.Has("secret"):
			line = "# " + Variable(flag.Name) + " is set, and not shown"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
