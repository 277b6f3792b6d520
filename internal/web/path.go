package web

import (
	"net/url"
	"strings"
)

// maxPathBytes bounds a path to go to after signing in.
const maxPathBytes = 512

// LocalPath reports whether s is a path of ours that a browser may be sent to, with or without a query,
// and that neither a browser nor a proxy can read as anything else. It refuses more than it must: a
// second slash or a dot-dot anywhere, and every encoding that stands for a slash, a backslash, a dot, a
// percent sign or a control character. What is below /api is no page.
func LocalPath(s string) bool {
	if len(s) > maxPathBytes || !strings.HasPrefix(s, "/") || strings.Contains(s, "//") || strings.Contains(s, "..") {
		return false
	}
	for i := range len(s) {
		switch {
		case s[i] == '%':
			if !harmlessEscape(s[i:]) {
				return false
			}
		case !plainInPath(s[i]):
			return false
		}
	}
	u, err := url.Parse(s)
	if err != nil || strings.Contains(u.Path+"/", "/./") {
		return false
	}
	return u.Path != "/api" && !strings.HasPrefix(u.Path, "/api/")
}

// plainInPath reports whether a byte may stand in a path or query as it is (RFC 3986 §3.3, §3.4).
func plainInPath(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("-._~!$&'()*+,;=:@/?", c) >= 0
}

// harmlessEscape reports whether s begins with an encoded byte that changes nothing of a path's shape.
func harmlessEscape(s string) bool {
	if len(s) < 3 {
		return false
	}
	decoded, err := url.PathUnescape(s[:3])
	return err == nil && len(decoded) == 1 && decoded[0] >= ' ' && decoded[0] != 0x7f && !strings.Contains(`/\.%`, decoded)
}
