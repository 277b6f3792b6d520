package api

import "net/http"

// ParseObject is what fuzzing is for.
var ParseObject = parseObject

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
