package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"bursar/internal/config"
)

// TestHelp_FitsAScreen holds that the help of each command is short and has examples, and that a group of commands lists
// them.
func TestHelp_FitsAScreen(t *testing.T) {
	const most = 40
	parser, err := kong.New(new(commands), kong.Groups(config.Groups()), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		command, isNode := node.(*kong.Node)
		if !isNode || command.Type != kong.CommandNode || command.Hidden {
			return next(nil)
		}
		seen++
		args := strings.Fields(command.Path())
		var out bytes.Buffer
		if code := run(t.Context(), append(args, "--help"), nil, stdio{strings.NewReader(""), &out, &out}); code != exitDone {
			t.Errorf("%v: exit code %d", args, code)
		}
		text := out.String()
		if lines := strings.Count(text, "\n"); lines > most {
			t.Errorf("the help of %v has %d lines, more than %d:\n%s", args, lines, most, text)
		}
		if len(command.Children) == 0 && !strings.Contains(text, "Examples:") {
			t.Errorf("the help of %v has no examples", args)
		}
		for _, child := range command.Children {
			if !strings.Contains(text, child.Name) {
				t.Errorf("the help of %v lacks %s", args, child.Name)
			}
		}
		return next(nil)
	})
	if err != nil || seen < 20 {
		t.Errorf("%d commands, %v", seen, err)
	}
}
