package config

import (
	"fmt"
	"strings"
)

// Problem is one setting that needs correcting.
type Problem struct {
	// Variable is the setting's name, or the file and line.
	Variable string
	// Value is what it is set to: empty where it is not set, or is a secret.
	Value string
	// Message says what is wrong and what to write.
	Message string
}

func (p Problem) String() string {
	if p.Value == "" {
		return p.Variable + " " + p.Message
	}
	return fmt.Sprintf("%s=%s %s", p.Variable, p.Value, p.Message)
}

// Problems is an error that lists every setting that needs correcting.
type Problems []Problem

func (p *Problems) add(variable, value, message string) {
	*p = append(*p, Problem{variable, value, message})
}

func (p Problems) Error() string {
	var b strings.Builder
	noun := "settings need"
	if len(p) == 1 {
		noun = "setting needs"
	}
	fmt.Fprintf(&b, "%d %s correcting:", len(p), noun)
	for _, problem := range p {
		fmt.Fprintf(&b, "\n  %s", problem)
	}
	return b.String()
}
