package reconcile

import "testing"

func TestLineChange_Detail(t *testing.T) {
	for want, l := range map[string]Line{
		"It was: a debit of 5. Now it is: a debit of 6.":                 {FirstReported: "a debit of 5", LastReported: "a debit of 6"},
		"The statement does not have it any more. It was: a debit of 5.": {FirstReported: "a debit of 5", LastReported: "a debit of 5", Missing: true},
	} {
		if d := l.change(); d.Kind != LineChanged || d.Detail != want {
			t.Errorf("%+v is reported as %s: %q, want %q", l, d.Kind, d.Detail, want)
		}
	}
}
