package web

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Methods are the handlers of paths, by path and method.
type Methods map[string]map[string]http.HandlerFunc

// Add adds one method of a path. GET answers HEAD too.
func (m Methods) Add(method, path string, handler http.HandlerFunc) {
	if m[path] == nil {
		m[path] = map[string]http.HandlerFunc{}
	}
	m[path][method] = handler
	if method == http.MethodGet {
		m[path][http.MethodHead] = handler
	}
}

// Mux gives each path one handler that knows all its methods, so that a method that it does not have never falls through to a
// path that is less specific. notAllowed answers it with 405; allow is the methods that there are.
func (m Methods) Mux(notAllowed func(w http.ResponseWriter, r *http.Request, allow string)) *http.ServeMux {
	mux := http.NewServeMux()
	for path, handlers := range m {
		allow := strings.Join(slices.Sorted(maps.Keys(handlers)), ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			handler, ok := handlers[r.Method]
			if !ok {
				notAllowed(w, r, allow)
				return
			}
			handler(w, r)
		})
	}
	return mux
}
