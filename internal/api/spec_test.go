package api_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/goccy/go-yaml"

	"bursar/internal/api"
	"bursar/internal/npmtest"
)

// spec is the description, as a judge of requests and answers.
type spec struct {
	doc    *openapi3.T
	router routers.Router
}

// ownSpec is read once: reading it takes longer than most tests.
var ownSpec = sync.OnceValues(func() (*spec, error) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	return parseSpec(asJSON)
})

func loadSpec(t *testing.T) *spec {
	t.Helper()
	s, err := ownSpec()
	must(t, err)
	return s
}

func parseSpec(text []byte) (*spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	return &spec{doc, router}, err
}

// check fails the test unless the answer is as described, and the request too if it was accepted.
func (s *spec) check(t *testing.T, r *http.Request, body string, a answer) {
	t.Helper()
	if r.Method == http.MethodHead { // GET's answer without its body
		return
	}
	route, parameters, err := s.router.FindRoute(r)
	if err != nil {
		if a.status != 404 && a.status != 405 && !strings.HasPrefix(r.URL.Path, "/docs/") && r.URL.Path != "/" {
			t.Errorf("%s %s is not described, and was answered %d", r.Method, r.URL.Path, a.status)
		}
		return
	}
	if route.Operation.Responses.Status(a.status) == nil { // "default" is no description of a status
		t.Errorf("%s %s was answered %d, which is not described: %s", r.Method, r.URL.Path, a.status, a.body)
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true,
			ExcludeResponseBody: !strings.Contains(a.header.Get("Content-Type"), "json"),
		},
	}
	if a.status < 400 {
		if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
			t.Errorf("%s %s was accepted against the description: %v", r.Method, r.URL, err)
		}
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.status, Header: a.header,
		Body: io.NopCloser(strings.NewReader(a.body)), Options: input.Options,
	})
	if err != nil {
		t.Errorf("the answer %d to %s %s is not as described: %v\n%s", a.status, r.Method, r.URL, err, a.body)
	}
}

func TestDescriptionIsValid(t *testing.T) {
	doc := loadSpec(t).doc
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi is %s", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// TestDescription_RedoclyFindsNothing holds the description against the recommended rules of another project's linter.
func TestDescription_RedoclyFindsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "openapi.yaml")
	text, err := os.ReadFile("openapi.yaml")
	must(t, err)
	lint := func(text string) string {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		command := exec.CommandContext(t.Context(), "node", filepath.Join(npmtest.Packages(t), "@redocly", "cli", "bin", "cli.js"),
			"lint", "--extends=recommended", "--format=stylish", file)
		command.Dir = filepath.Dir(file)
		command.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "FORCE_COLOR=0")
		out, err := command.Output() // the findings; progress is on standard error
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if found := lint(string(text)); found != "" {
		t.Errorf("%s", found)
	}
	if found := lint(strings.Replace(string(text), "  license:", "  x-license:", 1)); !strings.Contains(found, "info-license") {
		t.Errorf("a description without a licence passes: %s", found)
	}
}

// A page and its files are for people, not for programs.
var undescribed = []string{"GET /{$}", "GET /docs/{page}"}

func TestDescription_MatchesRoutes(t *testing.T) {
	var described []string
	for path, item := range loadSpec(t).doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	routes := api.Routes(openFixture(t).handler)
	if len(described) == 0 || len(routes) == 0 {
		t.Fatal("nothing to compare")
	}
	for _, r := range routes {
		if !slices.Contains(described, r) && !slices.Contains(undescribed, r) {
			t.Errorf("%s is not in openapi.yaml", r)
		}
	}
	for _, d := range described {
		if !slices.Contains(routes, d) {
			t.Errorf("%s is in openapi.yaml and has no route", d)
		}
	}
}

// TestDescription_BrokenQueryIsDescribed: whatever reads its query refuses one that can't be read. A provider's callback redirects.
func TestDescription_BrokenQueryIsDescribed(t *testing.T) {
	read := 0
	for path, item := range loadSpec(t).doc.Paths.Map() {
		for method, operation := range item.Operations() {
			isQuery := func(p *openapi3.ParameterRef) bool { return p.Value.In == "query" }
			if !slices.ContainsFunc(operation.Parameters, isQuery) || strings.HasSuffix(path, "/callback") {
				continue
			}
			read++
			if operation.Responses.Status(http.StatusBadRequest) == nil {
				t.Errorf("%s %s does not describe a 400", method, path)
			}
		}
	}
	if read == 0 {
		t.Error("no operation has a query")
	}
}

// TestSpec_RejectsUndescribedResponses checks that the validation of answers, on which the other tests rely, can fail.
func TestSpec_RejectsUndescribedResponses(t *testing.T) {
	s := loadSpec(t)
	tests := map[string]struct {
		status int
		body   string
	}{
		"a status that is not described":  {418, `{"success":false,"error":"x","code":"y"}`},
		"a code that is not described":    {401, `{"success":false,"error":"x","code":"y"}`},
		"a field that is missing":         {200, `{"success":true,"data":{}}`},
		"an amount as text":               {200, strings.Replace(balanceExample, `"availableBalance":1`, `"availableBalance":"1"`, 1)},
		"a number that is not masked":     {200, strings.Replace(balanceExample, `****6789`, `123456789`, 1)},
		"success that is said to be none": {200, strings.Replace(balanceExample, `true`, `false`, 1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/payouts/balance", nil)
			route, parameters, err := s.router.FindRoute(r)
			must(t, err)
			input := &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route}
			response := &openapi3filter.ResponseValidationInput{
				RequestValidationInput: input, Status: test.status,
				Header:  http.Header{"Content-Type": {"application/json"}},
				Body:    io.NopCloser(strings.NewReader(test.body)),
				Options: &openapi3filter.Options{IncludeResponseStatus: true},
			}
			if err := openapi3filter.ValidateResponse(t.Context(), response); err == nil {
				t.Error("accepted")
			}
		})
	}
}

const balanceExample = `{"success":true,"data":{"availableBalance":1,"pendingBalance":1,"totalEarnings":1,"totalWithdrawn":1,` +
	`"currency":"INR","minimumPayout":500,"earnings":{"thisMonth":1,"lastMonth":1,"totalSales":1},` +
	`"bankAccount":{"isVerified":true,"accountNumber":"****6789","ifsc":"HDFC0000053"}}}`

func TestDescriptionIsServed(t *testing.T) {
	h := openFixture(t)
	a := h.do(call{method: "GET", path: "/openapi.json"}).want(t, 200)
	published, err := parseSpec([]byte(a.body))
	must(t, err)
	if got := published.doc.Info.Title; got != "Bursar" {
		t.Errorf("title %q", got)
	}
	if want := `{"openapi":`; !strings.HasPrefix(strings.ReplaceAll(a.body, " ", ""), want) {
		t.Errorf("the order of the file is lost: %.60s", a.body)
	}
}

func TestDocsPages(t *testing.T) {
	h := openFixture(t)
	for path, item := range h.spec.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			page := h.do(call{method: "GET", path: "/docs/" + strings.ReplaceAll(strings.ToLower(operation.Tags[0]), " ", "-")}).want(t, 200)
			if line := ">" + method + "</b> <code>" + path + "</code>"; !strings.Contains(page.body, line) {
				t.Errorf("the page lacks %s", line)
			}
		}
	}
	page := h.do(call{method: "GET", path: "/docs"}).want(t, 200)
	policy := page.header.Get("Content-Security-Policy")
	for _, loose := range []string{"unsafe", "http:", "https:", "*", "data:"} {
		if strings.Contains(policy, loose) {
			t.Errorf("policy %q allows %s", policy, loose)
		}
	}
	types := map[string]string{"style.css": "text/css", "docs.js": "text/javascript", "errors": "text/html"}
	for file, want := range types {
		got := h.do(call{method: "GET", path: "/docs/" + file}).want(t, 200).header.Get("Content-Type")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	h.do(call{method: "GET", path: "/docs/page.html.tmpl"}).wantFailure(t, 404, "not_found")
	h.do(call{method: "GET", path: "/docs/..%2Fopenapi.yaml"}).wantFailure(t, 404, "not_found")
}

// TestDescription_ErrorsHaveCodes holds that each error names the codes that it may have, as the index of codes is made
// from them.
func TestDescription_ErrorsHaveCodes(t *testing.T) {
	for path, item := range loadSpec(t).doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content.Get("application/json")
				if status < "400" || status == "default" || media == nil {
					continue
				}
				named := false
				for _, part := range media.Schema.Value.AllOf {
					if code := part.Value.Properties["code"]; code != nil && len(code.Value.Enum) > 0 {
						named = true
					}
				}
				if !named {
					t.Errorf("%s %s: %s names no codes", method, path, status)
				}
			}
		}
	}
}

func TestRootLeadsToTheDocs(t *testing.T) {
	a := openFixture(t).do(call{method: "GET", path: "/"}).want(t, 302)
	if got := a.header.Get("Location"); got != "/docs" {
		t.Errorf("leads to %q", got)
	}
}
