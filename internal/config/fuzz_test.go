package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"bursar/internal/config"
)

// FuzzFile reads any file of settings: what is wrong is told as problems with names, none of which shows a
// secret, and what is right can be used.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "settings")
	f.Fuzz(func(t *testing.T, lines string) {
		for _, names := range []string{"_FILE", "CONFIG"} { // they name other files
			if strings.Contains(lines, names) {
				t.Skip("reads other files")
			}
		}
		const secret = "hush-hush-hush"
		lines = strings.ReplaceAll(lines, "SECRET_HERE", secret)
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		var s config.Settings
		sources := config.NewSources([]string{"BURSAR_CONFIG=" + path})
		parser, err := kong.New(&s, kong.Resolvers(sources))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(nil); err != nil {
			return // a value of the wrong kind, of which kong tells
		}
		c, err := s.Parse(sources)
		var problems config.Problems
		switch {
		case err == nil && (c.Currency.Code() == "" || c.Zone == nil || c.MinimumPayout <= 0 || c.Database.SQLite == "" && c.Database.Postgres == ""):
			t.Errorf("used as %+v", c)
		case err != nil && (!errors.As(err, &problems) || len(problems) == 0):
			t.Errorf("%v is no list of problems", err)
		}
		for _, p := range problems {
			if p.Variable == "" || p.Message == "" {
				t.Errorf("problem %+v", p)
			}
		}
		for line := range strings.SplitSeq(lines, "\n") { // passwords are in addresses, secrets have values of their own
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			isSecret := strings.Contains(name, "SECRET") || strings.Contains(name, "DATABASE_URL")
			if isSecret && strings.Contains(value, secret) && strings.Contains(fmt.Sprintf("%v %+v", err, c), secret) && strings.Count(lines, secret) == 1 {
				if !strings.Contains(name, "DATABASE_URL") || hidesIn(strings.Trim(value, `"'`), secret) {
					t.Errorf("a secret is told: %v", err)
				}
			}
		}
	})
}

// hidesIn reports whether a part of a PostgreSQL address that may be a password holds the secret: its host is none.
func hidesIn(address, secret string) bool {
	if !strings.HasPrefix(address, "postgres") {
		return false
	}
	user, settings := strings.LastIndex(address, "@"), strings.Index(address, "?")
	return user >= 0 && strings.Contains(address[:user], secret) || settings >= 0 && strings.Contains(address[settings:], secret)
}
