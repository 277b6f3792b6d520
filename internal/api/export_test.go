package api

import (
	"net/http"
	"net/url"
)

// Routes lists "METHOD /path" of all routes behind a handler that New made.
func Routes(h http.Handler) []string {
	a, _ := h.(*api)
	var all []string
	for _, r := range a.routes() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// Panics makes a handler that New made panic at the path, after saying it had written something or not.
func Panics(h http.Handler, path string, afterWriting bool) {
	a, _ := h.(*api)
	a.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		if afterWriting {
			_, _ = w.Write([]byte("half an ans"))
		}
		panic("a secret that nobody must see")
	})
}

// Paging reads which page of a list a query asks for.
func Paging(query string) (page, limit int, err error) {
	in := &input{r: &http.Request{URL: &url.URL{RawQuery: query}}}
	page, limit = in.number("page", 1, maxPage), in.number("limit", defaultPageSize, maxPageSize)
	return page, limit, in.problem()
}

// Limits of paging.
const (
	MaxPage     = maxPage
	MaxPageSize = maxPageSize
)
