package api_test

import (
	"net/url"
	"slices"
	"strconv"
	"testing"

	"bursar/internal/api"
	"bursar/internal/fault"
)

// FuzzPaging asks for any page: it is refused with the names of the parameters, or read as it was written.
func FuzzPaging(f *testing.F) {
	f.Fuzz(func(t *testing.T, query string) {
		page, limit, err := api.Paging(query)
		values, unreadable := url.ParseQuery(query)
		if err != nil {
			no := fault.From(err)
			if no == nil || unreadable != nil != (no.Kind == fault.Malformed) || unreadable == nil && (no.Kind != fault.Invalid || len(no.Details) == 0) {
				t.Fatalf("%q: %v", query, err)
			}
			for name := range no.Details {
				if !slices.Contains([]string{"page", "limit"}, name) {
					t.Errorf("%q: %s is named", query, name)
				}
			}
			return
		}
		if unreadable != nil || page < 1 || page > api.MaxPage || limit < 1 || limit > api.MaxPageSize {
			t.Errorf("%q asks for page %d of %d (%v)", query, page, limit, unreadable)
		}
		for name, got := range map[string]int{"page": page, "limit": limit} {
			if given := values[name]; len(given) > 1 || len(given) == 1 && mustAtoi(given[0]) != got {
				t.Errorf("%q is read as %s=%d", query, name, got)
			}
		}
	})
}

func mustAtoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
