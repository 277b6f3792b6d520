package api

import (
	_ "embed"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"sync"

	"github.com/goccy/go-yaml"

	"bursar/internal/apidocs"
)

// description is the API in OpenAPI 3.1, written by hand.
//
//go:embed openapi.yaml
var description []byte

// documents are the description as it is served.
type documents struct {
	json []byte
	// pages by the last part of their address.
	pages map[string][]byte
}

// lazyDocuments converts the description when it is first asked for.
func lazyDocuments(base *url.URL) func() (documents, error) {
	return sync.OnceValues(func() (documents, error) {
		text, err := yaml.YAMLToJSON(description)
		if err != nil {
			return documents{}, fmt.Errorf("read openapi.yaml: %w", err)
		}
		pages, err := apidocs.Render(description, base)
		return documents{json: text, pages: pages}, err
	})
}

func (a *api) openAPI(w http.ResponseWriter, r *http.Request) {
	docs, err := a.docs()
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	writeBytes(w, http.StatusOK, "application/json", docs.json)
}

// docsPage serves the pages of the documentation, their style and their script.
func (a *api) docsPage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("page")
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	if text, err := apidocs.Assets.ReadFile("assets/" + name); err == nil {
		writeBytes(w, http.StatusOK, mime.TypeByExtension(path.Ext(name)), text)
		return
	}
	docs, err := a.docs()
	if err != nil {
		a.fail(w, r, err)
		return
	}
	page, exists := docs.pages[name]
	if !exists {
		a.fail(w, r, errNoRoute)
		return
	}
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	writeBytes(w, http.StatusOK, "text/html; charset=utf-8", page)
}
