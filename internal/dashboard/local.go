package dashboard

import "strings"

// localPath reports whether s is a path of this service that a browser takes for nothing else.
func localPath(s string) bool {
	odd := func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '\\' }
	return strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//") && len(s) <= 512 && !strings.ContainsFunc(s, odd)
}

// isSignInProblem reports whether a sentence is one that a sign-in through a provider ends with.
func isSignInProblem(string) bool { return false }
