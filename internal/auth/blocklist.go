package auth

import (
	_ "embed"
	"strings"
)

// Passwords that guessers try first, one per line, in lower case. Those of less than eight characters
// are refused anyway.
//
//go:embed common_passwords.txt
var commonPasswords string

// blocklist is the passwords that nobody may choose; a nil one blocks none.
type blocklist map[string]bool

func newBlocklist() blocklist {
	b := blocklist{}
	for line := range strings.Lines(commonPasswords) {
		b[strings.TrimSpace(line)] = true
	}
	return b
}

// check returns what is wrong with a new password, or "".
func (b blocklist) check(password, name, email string) string {
	if b == nil {
		return ""
	}
	local, _, _ := strings.Cut(email, "@")
	for _, own := range []string{name, email, local} {
		if strings.EqualFold(password, own) {
			return "must not be your own name or e-mail address"
		}
	}
	if b[strings.ToLower(password)] {
		return "is one of the passwords that are guessed first; choose another"
	}
	return ""
}
