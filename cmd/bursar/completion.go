package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return "It prints a script that completes commands and their flags. Load it where your shell starts.\n\n" +
		examples("source <(bursar completion bash)    # in ~/.bashrc", "source <(bursar completion zsh)     # in ~/.zshrc", "bursar completion fish | source      # in ~/.config/fish/config.fish")
}

// Run prints the script. Kong has the commands; the completions that are made for it follow other versions of it.
func (c completionCmd) Run(e *env, app *kong.Kong) error {
	places := completions("", app.Model.Node, nil)
	write := writeBashCompletion
	switch c.Shell {
	case "zsh":
		if _, err := fmt.Fprintln(e.out, "autoload -U +X compinit bashcompinit && compinit && bashcompinit"); err != nil {
			return err
		}
	case "fish":
		write = writeFishCompletion
	}
	var script strings.Builder
	write(&script, places)
	_, err := fmt.Fprint(e.out, script.String())
	return err
}

// completed is what may follow a command.
type completed struct {
	path  string // such as "user import"; empty for the program
	words []completedWord
}

type completedWord struct{ word, help string }

// completions lists what may follow each command: its own commands and flags. All settings are flags of every command, and are
// left out.
func completions(path string, node *kong.Node, all []completed) []completed {
	at := completed{path: path}
	for _, child := range node.Children {
		if !child.Hidden {
			at.words = append(at.words, completedWord{child.Name, child.Help})
		}
	}
	for _, flag := range node.Flags {
		if flag.Group == nil && !flag.Hidden {
			at.words = append(at.words, completedWord{"--" + flag.Name, flag.Help})
		}
	}
	if path != "" {
		at.words = append(at.words, completedWord{"--help", "Show help."})
	}
	slices.SortFunc(at.words, func(a, b completedWord) int { return strings.Compare(a.word, b.word) })
	at.words = slices.Compact(at.words)
	all = append(all, at)
	for _, child := range node.Children {
		if !child.Hidden {
			all = completions(strings.TrimSpace(path+" "+child.Name), child, all)
		}
	}
	return all
}

func writeBashCompletion(to *strings.Builder, places []completed) {
	to.WriteString(`_bursar() {
  local at="" word words=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "${at:+$at }$word" in
`)
	for _, p := range places[1:] {
		fmt.Fprintf(to, "      %q) at=%[1]q;;\n", p.path)
	}
	to.WriteString("    esac\n  done\n  case \"$at\" in\n")
	for _, p := range places {
		var words []string
		for _, w := range p.words {
			words = append(words, w.word)
		}
		fmt.Fprintf(to, "    %q) words=%q;;\n", p.path, strings.Join(words, " "))
	}
	to.WriteString(`  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _bursar bursar
`)
}

func writeFishCompletion(to *strings.Builder, places []completed) {
	to.WriteString(`function __bursar_at
  set -l at ""
  for word in (commandline -opc)[2..-1]
    switch (string trim "$at $word")
`)
	for _, p := range places[1:] {
		fmt.Fprintf(to, "      case '%s'\n        set at '%[1]s'\n", p.path)
	}
	to.WriteString(`    end
  end; test "$at" = "$argv[1]"
end
`)
	for _, p := range places {
		for _, w := range p.words {
			kind, word := "-f -a", w.word
			if flag, isFlag := strings.CutPrefix(word, "--"); isFlag {
				kind, word = "-l", flag
			}
			fmt.Fprintf(to, "complete -c bursar -n \"__bursar_at '%s'\" %s %s -d '%s'\n", p.path, kind, word, strings.ReplaceAll(w.help, "'", `\'`))
		}
	}
}
