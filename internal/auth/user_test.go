package auth_test

import (
	"strings"
	"testing"

	"bursar/internal/auth"
)

func TestCheckName(t *testing.T) {
	const (
		length    = "must be 2 to 50 characters"
		control   = "must not contain control characters"
		invisible = "must contain visible characters"
	)
	tests := map[string]struct{ name, want string }{
		"two letters":                 {"Jo", ""},
		"one letter":                  {"J", length},
		"one letter and a space":      {"J ", length},
		"fifty letters":               {strings.Repeat("é", 50), ""},
		"fifty-one letters":           {strings.Repeat("é", 51), length},
		"spaces":                      {"   ", length},
		"a line break":                {"Asha\nRao", control},
		"a right-to-left override":    {"Asha\u202eoaR", control},
		"an isolate":                  {"\u2066Asha\u2069", control},
		"a right-to-left mark":        {"Asha\u200f", control},
		"an Arabic letter mark":       {"Asha\u061c", control},
		"a name in Hebrew":            {"שרה לוי", ""},
		"a name in Devanagari":        {"आशा राव", ""},
		"a joiner inside a name":      {"क्\u200dष्मा", ""},
		"a non-joiner inside a name":  {"ശ്രീ\u200cമതി", ""},
		"nothing but joiners":         {"\u200d\u200c\u200d", invisible},
		"zero-width spaces":           {"\u200b\u200b", invisible},
		"byte order marks":            {"\ufeff\ufeff", invisible},
		"soft hyphens":                {"\u00ad\u00ad", invisible},
		"Hangul fillers":              {"\u3164\u3164", invisible},
		"blank Braille":               {"\u2800\u2800", invisible},
		"variation selectors":         {"\ufe0f\ufe0f", invisible},
		"a blank between two fillers": {"\u3164 \u3164", invisible},
		"signs":                       {"✿✿", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := auth.CheckName(test.name); got != test.want {
				t.Errorf("CheckName(%q) = %q, want %q", test.name, got, test.want)
			}
		})
	}
}

func TestCheckFactorName(t *testing.T) {
	for name, ok := range map[string]bool{"": true, "Asha's phone": true, "a\tb": false, "phone\u202e": false, strings.Repeat("é", 50): true, strings.Repeat("é", 51): false} {
		if problem := auth.CheckFactorName(name); (problem == "") != ok {
			t.Errorf("%q: %q", name, problem)
		}
	}
}

func TestCheckEmail_EveryLetterAndDigitOfADomain(t *testing.T) {
	for _, domain := range []string{"163.com", "azAZ.example", "a-0.example", "mail9.example"} {
		if problem := auth.CheckEmail("asha@" + domain); problem != "" {
			t.Errorf("%s: %s", domain, problem)
		}
	}
	for _, domain := range []string{"a/b.example", "a:b.example", "a`b.example", "a{b.example", "a_b.example", "-a.example", "a-.example"} {
		if auth.CheckEmail("asha@"+domain) == "" {
			t.Errorf("%s is accepted", domain)
		}
	}
}
