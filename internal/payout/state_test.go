package payout_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"bursar/internal/payout"
)

var update = flag.Bool("update", false, "write golden files anew")

// diagram draws the state machine as Mermaid, from the table that the code follows.
func diagram() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> waiting\n")
	for _, from := range payout.States() {
		for _, to := range from.Next() {
			fmt.Fprintf(&b, "    %s --> %s\n", from, to)
		}
		if len(from.Next()) == 0 {
			fmt.Fprintf(&b, "    %s --> [*]\n", from)
		}
	}
	b.WriteString("```")
	return b.String()
}

// The diagram in docs/payout-states.md shows the same states and transitions as the code.
func TestStates_MatchDiagram(t *testing.T) {
	const file, begin, end = "../../docs/payout-states.md", "<!-- payout states: drawn by a test -->\n", "\n<!-- end -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	drawn, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks %q and %q", file, begin, end)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+diagram()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if drawn != diagram() {
		t.Errorf("%s shows another machine; draw it anew with: make golden\nwant:\n%s", file, diagram())
	}
}

// Every declared state is reachable from waiting, and every reachable state is declared.
func TestStates_ReachableAndDeclared(t *testing.T) {
	reached := map[payout.State]bool{payout.Waiting: true}
	queue := []payout.State{payout.Waiting}
	for len(queue) > 0 {
		for _, to := range queue[0].Next() {
			if !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
		queue = queue[1:]
	}
	for _, s := range payout.States() {
		if !reached[s] {
			t.Errorf("%s can't be reached", s)
		}
		delete(reached, s)
	}
	if len(reached) > 0 {
		t.Errorf("reached, but not listed: %v", reached)
	}
}
