package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"completion", shell}, nil, stdio{strings.NewReader(""), &out, &problems}); code != exitDone {
		t.Fatalf("completion %s: exit code %d: %s", shell, code, &problems)
	}
	return out.String()
}

// TestCompletion_InBash has bash complete some lines.
func TestCompletion_InBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script := completionScript(t, "bash")
	for line, want := range map[string]string{
		"bursar us":                         "user",
		"bursar user set-":                  "set-password set-role",
		"bursar user import users.nd --dry": "--dry-run",
		"bursar user import --by ada --n":   "--note",
		"bursar import bal":                 "balances",
		"bursar nothing x":                  "",
	} {
		words := strings.Fields(line)
		complete := script + "\nCOMP_WORDS=(" + strings.Join(words, " ") + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _bursar; echo ${COMPREPLY[@]}\n"
		out, err := exec.CommandContext(t.Context(), bash, "--norc", "-c", complete).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q is completed with %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestCompletion_NamesAllShells(t *testing.T) {
	if script := completionScript(t, "zsh"); !strings.HasPrefix(script, "autoload") || !strings.Contains(script, "complete -o default -F _bursar bursar") {
		t.Errorf("for zsh:\n%s", script)
	}
	script := completionScript(t, "fish")
	for _, want := range []string{
		`complete -c bursar -n "__bursar_at 'user'" -f -a import -d 'Import users of another system, with their passwords.'`,
		`complete -c bursar -n "__bursar_at 'user import'" -l dry-run -d `,
	} {
		if !strings.Contains(script, want) {
			t.Errorf("for fish, %s is missing", want)
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"completion", "powershell"}, nil, stdio{strings.NewReader(""), &out, &out}); code != exitUsage {
		t.Errorf("for another shell: exit code %d: %s", code, &out)
	}
}
