package web_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"bursar/internal/web"
)

var localPaths = []string{
	"/", "/dashboard", "/dashboard/", "/payouts/pyt_0TMv3kQx8hPq2Zb7Lr4Wd9Yc", "/payouts?page=2&status=failed", "/payouts?q=a+b&c=%C3%A9",
	"/a-b_c~d!$&'()*+,;=:@e", "/@evil.example", "/login?redirect=/dashboard", "/apiary", "/.well-known/x", "/a?b?c", "/%20", "/a%3Fb",
	"/" + strings.Repeat("a", 511),
}

var otherPaths = map[string]string{
	"nothing":                    "",
	"no path":                    "dashboard",
	"a dot":                      "./dashboard",
	"another host":               "//evil.example",
	"another host, three":        "///evil.example",
	"another host, further":      "/dashboard//evil.example",
	"a backslash":                `/\evil.example`,
	"a backslash first":          `\/evil.example`,
	"two backslashes":            `\\evil.example`,
	"a backslash later":          `/a\b`,
	"a scheme":                   "https:evil.example",
	"a scheme and a host":        "https://evil.example/",
	"our own host":               "http://127.0.0.1:8080/dashboard",
	"a suffix of our host":       "http://127.0.0.1:8080.evil.example/",
	"an address as a number":     "//2130706433/",
	"an address of version 6":    "//[::1]/",
	"a user":                     "//127.0.0.1:8080@evil.example",
	"a script":                   "javascript:alert(1)",
	"a script after a slash":     "/javascript://%0aalert(1)",
	"data":                       "data:text/html,x",
	"encoded slashes":            "/%2f%2fevil.example",
	"an encoded slash":           "/%2Fevil.example",
	"an encoded slash and dots":  "/%2f..",
	"an encoded backslash":       "/%5cevil.example",
	"encoded twice":              "/%252fevil.example",
	"dots":                       "/..",
	"dots within":                "/dashboard/../api/auth/logout",
	"encoded dots":               "/%2e%2e/api/auth/logout",
	"a dot within":               "/./api/auth/logout",
	"a dot at the end":           "/dashboard/.",
	"a line break":               "/dashboard\r\nSet-Cookie: bursar=x",
	"an encoded line break":      "/dashboard%0d%0aSet-Cookie:%20bursar=x",
	"a tab":                      "/\t/evil.example",
	"an encoded tab":             "/%09/evil.example",
	"NUL":                        "/\x00",
	"an encoded NUL":             "/%00",
	"an encoded DEL":             "/%7f",
	"a blank":                    "/a b",
	"a blank first":              " /dashboard",
	"half an escape":             "/a%2",
	"no escape":                  "/a%zz",
	"a fragment":                 "/dashboard#x",
	"another script":             "/über",
	"a wide slash":               "/／evil.example",
	"markup":                     `/"><script>`,
	"the API":                    "/api",
	"of the API":                 "/api/auth/provider-a",
	"the API with a query":       "/api?x",
	"the API, encoded":           "/%61pi/auth/provider-a",
	"the API, encoded otherwise": "/ap%69",
	"too long":                   "/" + strings.Repeat("a", 512),
}

func TestLocalPath(t *testing.T) {
	for _, s := range localPaths {
		if !web.LocalPath(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for name, s := range otherPaths {
		if web.LocalPath(s) {
			t.Errorf("%s: %q is taken for a path of ours", name, s)
		}
	}
}

// FuzzLocalPath follows what is accepted as a browser does, and as one does that forgives more: it must
// stay here, outside of the API, and be what it was.
func FuzzLocalPath(f *testing.F) {
	for _, s := range localPaths {
		f.Add(s)
	}
	for _, s := range otherPaths {
		f.Add(s)
	}
	here := &url.URL{Scheme: "https", Host: "pay.example", Path: "/api/auth/provider-a/callback"}
	forgiving := strings.NewReplacer(`\`, "/", "\t", "", "\r", "", "\n", "")
	f.Fuzz(func(t *testing.T, s string) {
		if !web.LocalPath(s) {
			return
		}
		for _, read := range []string{s, strings.TrimSpace(forgiving.Replace(s))} {
			u, err := url.Parse(read)
			if err != nil {
				t.Fatalf("%q is no address: %v", read, err)
			}
			to := here.ResolveReference(u)
			if to.Scheme != here.Scheme || to.Host != here.Host || to.User != nil || to.Opaque != "" || to.Fragment != "" {
				t.Errorf("%q leads to %s", read, to)
			}
			if clean := path.Clean(to.Path); clean == "/api" || strings.HasPrefix(clean, "/api/") || strings.ContainsAny(to.Path, "\\\x00\r\n") {
				t.Errorf("%q leads to %s", read, to)
			}
			if again, err := url.PathUnescape(to.Path); err != nil || again != to.Path {
				t.Errorf("%q means something else when it is decoded twice", read)
			}
			if to.RequestURI() != s {
				t.Errorf("%q is asked for as %q", s, to.RequestURI())
			}
		}
	})
}
