package harness

import (
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Visitor keeps cookies and submits forms as a browser does. It follows a redirect only when a test asks for it.
type Visitor struct {
	T      *testing.T
	client *http.Client
}

// NewVisitor returns a visitor without cookies.
func NewVisitor(t *testing.T) *Visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Visitor{t, &http.Client{
		Jar: jar, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Reply is the answer to a visitor.
type Reply struct {
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
}

// LeadsTo returns the address that an answer redirects to, or "".
func (p Reply) LeadsTo() string {
	to, err := p.URL.Parse(p.Header.Get("Location"))
	if p.Header.Get("Location") == "" || err != nil {
		return ""
	}
	return to.String()
}

// Get opens an address.
func (b *Visitor) Get(address string) Reply {
	b.T.Helper()
	return b.Do(http.MethodGet, address, "")
}

// Do sends a request. A body is the content of a form; "" sends none.
func (b *Visitor) Do(method, address, body string) Reply {
	b.T.Helper()
	request, err := http.NewRequestWithContext(b.T.Context(), method, address, strings.NewReader(body))
	if err != nil {
		b.T.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.T.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.T.Fatal(err)
	}
	return Reply{response.Request.URL, response.StatusCode, response.Header, string(text)}
}

// Follow follows redirects until an answer is none, or redirects to an address that begins with end. It returns that answer.
func (b *Visitor) Follow(p Reply, end string) Reply {
	b.T.Helper()
	for range 10 {
		to := p.LeadsTo()
		if to == "" || end != "" && strings.HasPrefix(to, end) {
			return p
		}
		p = b.Get(to)
	}
	b.T.Fatal("sent around without end")
	return p
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	inputs     = regexp.MustCompile(`<input[^>]*>`)
	attribute  = regexp.MustCompile(` (name|value)="([^"]*)"`)
)

// Submit submits the first form of a page, with the typed values over those of its inputs.
func (b *Visitor) Submit(p Reply, typed url.Values) Reply {
	b.T.Helper()
	form := formAction.FindStringSubmatchIndex(p.Body)
	if p.Status != http.StatusOK || form == nil {
		b.T.Fatalf("%s has no form: %d %s", p.URL, p.Status, p.Body)
	}
	action, err := p.URL.Parse(html.UnescapeString(p.Body[form[2]:form[3]]))
	if err != nil {
		b.T.Fatal(err)
	}
	values := url.Values{}
	content, _, _ := strings.Cut(p.Body[form[1]:], "</form>")
	for _, input := range inputs.FindAllString(content, -1) {
		is := map[string]string{}
		for _, a := range attribute.FindAllStringSubmatch(input, -1) {
			is[a[1]] = html.UnescapeString(a[2])
		}
		values.Set(is["name"], is["value"])
	}
	maps.Copy(values, typed)
	return b.Do(http.MethodPost, action.String(), values.Encode())
}
