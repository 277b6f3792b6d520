package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
	"bursar/internal/web"
)

// page is what a handler answers: a template with its data, or somewhere else to go.
type page struct {
	template string
	title    string
	data     any
	// status is 200 where it is zero.
	status int
	// live says that the page's region is to be fetched again until nothing in it is under way.
	live bool
	// fragment says that the page is a part of another one, without a layout of its own.
	fragment   bool
	retryAfter time.Duration

	// to is a path of ours; it takes the place of all the above.
	to string
	// notice is said on the page that comes next.
	notice notice
}

// show is a page in the layout.
func show(template, title string, data any) page {
	return page{template: template, title: title, data: data}
}

// goTo sends the browser to another page. It is the answer to everything that changes something, so
// that a reload repeats nothing.
func goTo(path string) page { return page{to: path} }

func (p page) saying(n notice) page {
	p.notice = n
	return p
}

// serve makes an HTTP handler of a route.
func (d *dashboard) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &pageRequest{r: r}
		v.zone, v.zoneKnown = d.zoneOf(r)
		p, err := d.answer(w, v, rt)
		if err != nil {
			p = d.failed(r.Context(), v, err)
		}
		d.write(w, v, p)
	}
}

// answer asks the handler once the form is read and the visitor is let in, in this order: a form can be held
// back until its sender is signed out. A handler that panics has written nothing, so there is still a page to
// be made of it.
func (d *dashboard) answer(w http.ResponseWriter, v *pageRequest, rt route) (p page, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	if !isText(v.r.URL.Path) {
		return page{}, errNoPage
	}
	ctx := v.r.Context()
	var unread error
	if v.r.Method == http.MethodPost {
		v.form, unread = readForm(w, v.r)
	}
	if err := d.admit(ctx, v, rt.who); err != nil {
		return page{}, err
	}
	if unread != nil {
		return page{}, unread
	}
	return rt.handler(ctx, v)
}

// refuse answers what is no route.
func (d *dashboard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	v := &pageRequest{r: r}
	v.zone, v.zoneKnown = d.zoneOf(r)
	if trouble := d.identify(r.Context(), v); trouble != nil {
		err = trouble
	}
	d.write(w, v, d.failed(r.Context(), v, err))
}

// policy is what a page may load: our own files. Forms go to us alone; the providers' buttons are links,
// because a form that is redirected to a provider would be one that goes there.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// write sends a page, or sends the browser on.
func (d *dashboard) write(w http.ResponseWriter, v *pageRequest, p page) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	if v.options != nil {
		setCookies(w, v)
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(v.options) // a browser that is gone reads nothing
		return
	}
	if p.to != "" {
		if p.notice != "" {
			v.cookies = append(v.cookies, d.cookies.Make(d.cookies.Named(noticeCookie), string(p.notice), noticeAge))
		}
		setCookies(w, v)
		http.Redirect(w, v.r, p.to, http.StatusSeeOther)
		return
	}
	text, err := d.render(v, p, h.Get("X-Request-Id"))
	if err != nil { // a template of ours is broken; there is no page to say so on
		d.o.Logger.ErrorContext(v.r.Context(), "page not rendered", "template", p.template, "error", err)
		http.Error(w, errInternal.Message, http.StatusInternalServerError)
		return
	}
	setCookies(w, v)
	if p.retryAfter > 0 || p.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", web.RetryAfter(p.retryAfter))
	}
	if p.live {
		h.Set(liveHeader, "live")
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(max(p.status, http.StatusOK))
	_, _ = w.Write(text) // a browser that is gone reads nothing
}

func setCookies(w http.ResponseWriter, v *pageRequest) {
	for _, cookie := range v.cookies {
		http.SetCookie(w, cookie)
	}
}

// view is what a template sees: the page's data, and what every page has.
type view struct {
	Title  string
	Data   any
	Notice string
	// Live says that the page renews itself while something is under way.
	Live bool
	// SignedIn, Name and Nav are about the visitor.
	SignedIn bool
	Name     string
	Role     auth.Role
	Nav      []navEntry
	Here     string // the entry of Nav that the page belongs to
	Zone     string // of times, in words
	DayZone  string // of days and months, in words: the same for every viewer
	// OwnZone is what the viewer's browser calls its zone, or "" where it has not told.
	OwnZone string

	zone *time.Location
	now  time.Time
}

// liveHeader asks for nothing but the region of a page that changes by itself. In an answer it says that
// something in it is still under way.
const liveHeader = "X-Fragment"

// render draws a page, or the part of it that was asked for.
func (d *dashboard) render(v *pageRequest, p page, requestID string) ([]byte, error) {
	ctx := v.r.Context()
	if about, ok := p.data.(*problem); ok && p.status >= http.StatusInternalServerError {
		about.RequestID = requestID
	}
	part := "layout"
	if p.fragment {
		part = "content"
	}
	t, ok := d.templates[p.template]
	if !ok {
		return nil, fmt.Errorf("there is no template %q", p.template)
	}
	if v.r.Header.Get(liveHeader) != "" && t.Lookup("live") != nil {
		part = "live"
	}
	seen := view{
		Title: p.title, Data: p.data, Live: p.live,
		SignedIn: v.signedIn(), Role: v.who.Role,
		Zone: zoneWords(v.zone, d.o.Now()), DayZone: zoneWords(d.o.Zone, d.o.Now()), zone: v.zone, now: d.o.Now(),
	}
	if v.zoneKnown {
		seen.OwnZone = v.zone.String()
	}
	if part == "layout" {
		seen.Notice = d.takeNotice(v)
		if v.signedIn() {
			seen.Nav, seen.Name = navOf(v.who.Role), d.nameOf(ctx, v)
			seen.Here = hereOf(seen.Nav, v.r.URL.Path)
			if v.who.Role == auth.Admin {
				d.countInbox(ctx, seen.Nav)
			}
		}
	}
	var out bytes.Buffer
	err := t.ExecuteTemplate(&out, part, seen)
	return out.Bytes(), err
}

// nameOf is the visitor's name. A page is not lost because it can't be read.
func (d *dashboard) nameOf(ctx context.Context, v *pageRequest) string {
	user, _, err := d.o.Auth.Me(ctx, v.who)
	if err != nil {
		d.o.Logger.WarnContext(ctx, "page rendered without the user's name", "error", err)
		return v.who.Email
	}
	return user.Name
}

// countInbox says in the navigation how much waits for an admin. A page is not lost because it can't be read.
func (d *dashboard) countInbox(ctx context.Context, nav []navEntry) {
	backlog, err := d.o.Health.Backlog(ctx)
	if err != nil {
		d.o.Logger.WarnContext(ctx, "page rendered without the inbox's count", "error", err)
		return
	}
	for i := range nav {
		if nav[i].Path == inboxPath {
			for _, w := range waitingOf(backlog, d.o.Now()) {
				nav[i].Count += w.Count
			}
		}
	}
}

// belongs says to which entry of the navigation pages belong that are not below its path.
var belongs = map[string]string{
	adminHome + "/bank-accounts": inboxPath, adminHome + "/unmatched-transfers": inboxPath, adminHome + "/differences": inboxPath,
	reconciliationPath: adminHome + "/ledger", decisionsPath: adminHome + "/ledger", mailsPath: adminHome + "/health", keysPath: adminHome + "/health", webhooksPath: adminHome + "/health",
	pausePath: payoutsPath, resumePath: payoutsPath, searchPath: "",
}

// hereOf is the entry that a path belongs to: the longest that it begins with.
func hereOf(nav []navEntry, path string) string {
	for below, entry := range belongs {
		if path == below || strings.HasPrefix(path, below+"/") {
			return entry
		}
	}
	here := ""
	for _, entry := range nav {
		if (path == entry.Path || strings.HasPrefix(path, entry.Path+"/")) && len(entry.Path) > len(here) {
			here = entry.Path
		}
	}
	return here
}

//go:embed templates
var templateFiles embed.FS

// templates are the pages by name, each with the layout and the parts around it.
type templates map[string]*template.Template

// parseTemplates reads all pages, so that a broken one keeps the service from starting.
func (d *dashboard) parseTemplates() (templates, error) {
	shared, err := template.New("").Funcs(d.functions()).ParseFS(templateFiles, "templates/shared/*.html")
	if err != nil {
		return nil, fmt.Errorf("dashboard: read the shared templates: %w", err)
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("dashboard: there are no templates"), err)
	}
	all := templates{}
	for _, file := range files {
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("dashboard: read %s: %w", file, err)
		}
		all[strings.TrimSuffix(path.Base(file), ".html")] = t
	}
	return all, nil
}

func (d *dashboard) functions() template.FuncMap {
	return template.FuncMap{
		"money":    d.o.Currency.Display,
		"currency": d.o.Currency.Code,
		"asset":    d.assets.address,

		"checked": checked,
		"most":    func() int { return ledger.MaxViolations },
		"counted": counted,

		"masked":      masked,
		"statusLabel": statusLabel,
	}
}
