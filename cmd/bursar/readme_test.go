package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"bursar/internal/config"
)

// TestReadme_HasEveryCommand checks that the README's table of commands has each command, and no other. A row writes a command
// whole or, after the first, without what it shares with the first: `bursar apikey create`, `list`.
func TestReadme_HasEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(new(commands), kong.Groups(config.Groups()), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	var known, written []string
	for _, leaf := range parser.Model.Leaves(true) {
		known = append(known, leaf.Path())
	}
	quoted, argument := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(" [A-Z]+$")
	_, table, _ := strings.Cut(string(readme), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`bursar ") {
			continue
		}
		group := ""
		for i, match := range quoted.FindAllStringSubmatch(cells[1], -1) {
			name := argument.ReplaceAllString(strings.TrimPrefix(match[1], "bursar "), "")
			if i == 0 {
				group, _, _ = strings.Cut(name, " ")
			} else if !slices.Contains(known, name) {
				name = group + " " + name
			}
			written = append(written, name)
		}
	}
	for _, name := range known {
		if !slices.Contains(written, name) {
			t.Errorf("README.md has no row for bursar %s", name)
		}
	}
	for _, name := range written {
		if !slices.Contains(known, name) {
			t.Errorf("README.md has a row for bursar %s, which is no command", name)
		}
	}
}
