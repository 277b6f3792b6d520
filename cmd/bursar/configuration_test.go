package main

import (
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"bursar/internal/config"
)

// TestConfigurationPage_HasEverySetting checks that docs/configuration.md has the variable of each setting, with its default.
func TestConfigurationPage_HasEverySetting(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // variable → default
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for variable := range strings.SplitSeq(cells[1], ",") {
			rows[strings.Trim(variable, " `")] = cells[2]
		}
	}
	var s config.Settings
	parser, err := kong.New(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range parser.Model.Flags {
		variable := config.Variable(flag.Name)
		byDefault, listed := rows[variable]
		switch {
		case flag.Name == "help":
		case !listed:
			t.Errorf("the page has no row for %s", variable)
		case flag.Default != "" && !strings.Contains(byDefault, "`"+flag.Default+"`"):
			t.Errorf("the page says that %s is%sunless set; it is %s", variable, byDefault, flag.Default)
		}
	}
}
