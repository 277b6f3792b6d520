package main

import (
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"bursar/internal/config"
)

// TestReadme_NamesEverySetting checks that the README names the variable of each setting.
func TestReadme_NamesEverySetting(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var s config.Settings
	parser, err := kong.New(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range parser.Model.Flags {
		if variable := config.Variable(flag.Name); flag.Name != "help" && !strings.Contains(string(readme), "`"+variable+"`") {
			t.Errorf("README.md does not name %s", variable)
		}
	}
}
