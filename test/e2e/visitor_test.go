package e2e

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

// visitor keeps cookies and reads forms as a browser does, and goes where it is sent one step at a time.
type visitor struct {
	t      *testing.T
	client *http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, &http.Client{
		Jar: jar, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// reply is what a visitor is answered with.
type reply struct {
	url    *url.URL
	status int
	header http.Header
	body   string
}

// leadsTo is the address that an answer sends the browser to, or "".
func (p reply) leadsTo() string {
	to, err := p.url.Parse(p.header.Get("Location"))
	if p.header.Get("Location") == "" || err != nil {
		return ""
	}
	return to.String()
}

func (b *visitor) get(address string) reply {
	b.t.Helper()
	return b.do(http.MethodGet, address, "")
}

func (b *visitor) do(method, address, body string) reply {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{response.Request.URL, response.StatusCode, response.Header, string(text)}
}

// follow goes on from an answer until one leads nowhere, or to an address that begins with end.
func (b *visitor) follow(p reply, end string) reply {
	b.t.Helper()
	for range 10 {
		to := p.leadsTo()
		if to == "" || end != "" && strings.HasPrefix(to, end) {
			return p
		}
		p = b.get(to)
	}
	b.t.Fatal("sent around without end")
	return p
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	inputs     = regexp.MustCompile(`<input[^>]*>`)
	attribute  = regexp.MustCompile(` (name|value)="([^"]*)"`)
)

// submit sends the first form of a page, with what is typed into it.
func (b *visitor) submit(p reply, typed url.Values) reply {
	b.t.Helper()
	form := formAction.FindStringSubmatchIndex(p.body)
	if p.status != http.StatusOK || form == nil {
		b.t.Fatalf("%s has no form: %d %s", p.url, p.status, p.body)
	}
	action, err := p.url.Parse(html.UnescapeString(p.body[form[2]:form[3]]))
	if err != nil {
		b.t.Fatal(err)
	}
	values := url.Values{}
	content, _, _ := strings.Cut(p.body[form[1]:], "</form>")
	for _, input := range inputs.FindAllString(content, -1) {
		is := map[string]string{}
		for _, a := range attribute.FindAllStringSubmatch(input, -1) {
			is[a[1]] = html.UnescapeString(a[2])
		}
		values.Set(is["name"], is["value"])
	}
	maps.Copy(values, typed)
	return b.do(http.MethodPost, action.String(), values.Encode())
}
