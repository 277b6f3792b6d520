package main

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

// browser keeps cookies and reads forms, and goes where it is sent one step at a time.
type browser struct {
	t      *testing.T
	client *http.Client
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, &http.Client{
		Jar: jar, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// page is an answer.
type page struct {
	url    *url.URL
	status int
	header http.Header
	body   string
}

// leadsTo is the address that an answer sends the browser to, or "".
func (p page) leadsTo() string {
	to, err := p.url.Parse(p.header.Get("Location"))
	if p.header.Get("Location") == "" || err != nil {
		return ""
	}
	return to.String()
}

func (b *browser) get(address string) page {
	b.t.Helper()
	return b.do(http.MethodGet, address, "")
}

func (b *browser) do(method, address, body string) page {
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
	return page{response.Request.URL, response.StatusCode, response.Header, string(text)}
}

// follow goes on from an answer until one leads nowhere, or to an address that begins with end.
func (b *browser) follow(p page, end string) page {
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
func (b *browser) submit(p page, typed url.Values) page {
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
