package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"bursar/internal/npmtest"
	"bursar/test/harness"
)

// screen is what somebody looks at.
type screen struct {
	name          string
	width, height int64
	phone, dark   bool
}

var (
	phone   = screen{name: "phone", width: 390, height: 844, phone: true, dark: true}
	desktop = screen{name: "desktop", width: 1280, height: 900}
)

// browser is a Chromium with one tab, in which one person acts. What goes wrong in the page is noted, and
// fails the test at the next look.
type browser struct {
	t       *testing.T
	ctx     context.Context //nolint:containedctx // it is the tab
	at      string
	screen  screen
	axe     string
	mu      sync.Mutex
	noted   []string
	allowed int // answers of 4xx that the story is about
}

// chromium finds the browser, or says what is missing.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("BURSAR_TEST_CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const help = "there is no Chromium to look at the pages with; install it (apt-get install chromium), or set BURSAR_TEST_CHROMIUM to one"
	if ci := os.Getenv("CI"); ci != "" && ci != "0" && ci != "false" {
		t.Fatal(help)
	}
	t.Skip(help)
	return ""
}

// openBrowser opens an empty tab. Every browser is somebody else's: they share no cookies.
func openBrowser(t *testing.T, at string, s screen) *browser {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox,
	}
	for _, flag := range []string{
		"headless", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-dev-shm-usage",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	source, err := os.ReadFile(filepath.Join(npmtest.Packages(t), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	allocated, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocated)
	b := &browser{t: t, ctx: ctx, at: at, screen: s, axe: string(source)}
	t.Cleanup(func() {
		if t.Failed() {
			b.keep("failed")
		}
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
		closeTab()
		free()
	})
	b.do(chromedp.Func(b.prepare))
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	return b
}

// prepare makes the tab look like the screen.
func (b *browser) prepare(ctx context.Context, tab *chromedp.Target) error {
	for _, call := range []func() error{
		func() error { _, err := cdp.Call(ctx, tab, log.Enable, cdp.Empty{}); return err },
		func() error {
			_, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: b.screen.width, Height: b.screen.height, DeviceScaleFactor: 1, Mobile: b.screen.phone,
			})
			return err
		},
		func() error { return b.media(ctx, tab, "") },
		func() error {
			_, err := cdp.Call(ctx, tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
			return err
		},
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// media shows the page as on a medium, such as "print"; "" is the screen.
func (b *browser) media(ctx context.Context, tab *chromedp.Target, medium string) error {
	scheme := "light"
	if b.screen.dark {
		scheme = "dark"
	}
	_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	return err
}

// onPaper checks what of the page is printed.
func (b *browser) onPaper(name string) {
	b.t.Helper()
	show := func(medium string) {
		b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error { return b.media(ctx, tab, medium) }))
	}
	show("print")
	if evaluate[bool](b, `[...document.querySelectorAll("nav, footer, button")].some(e => e.getClientRects().length > 0)`) {
		b.t.Errorf("%s: on paper the page has parts that are of no use there", b.screen.name)
	}
	b.keep(name)
	show("")
}

// listen notes what a developer's console would show in red.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.noted = append(b.noted, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			b.noted = append(b.noted, fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.noted = append(b.noted, fmt.Sprintf("%s %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.at) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "about:") {
			b.noted = append(b.noted, "asks elsewhere: "+url)
		}
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\n%s", b.screen.name, err, b.text())
	}
}

// evaluate runs an expression in the page, which may be a promise.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
	if err != nil {
		b.t.Fatalf("%s: evaluate %.80s: %v", b.screen.name, expression, err)
	}
	return value
}

// text is what stands on the page.
func (b *browser) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	if err != nil {
		return err.Error()
	}
	return text
}

// visit goes to a page and looks at it.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.at + path))
	b.look()
}

// see waits until a text stands on the page.
func (b *browser) see(text string) {
	b.t.Helper()
	harness.Until(b.t, fmt.Sprintf("%q stands on the page; it says:\n%s", text, "(see the picture)"), func() bool { return strings.Contains(b.text(), text) })
}

// fill types into the field with a label, over what stands there.
func (b *browser) fill(label, value string) {
	b.t.Helper()
	id := b.field(label)
	b.do(chromedp.Focus(chromedp.ID(id)), chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`),
		chromedp.SendKeys(chromedp.ID(id), value))
}

// choose ticks the box or the choice with a label, or picks an option of the list with it.
func (b *browser) choose(label string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.ID(b.field(label))))
}

// field is the id of the field with a label.
func (b *browser) field(label string) string {
	b.t.Helper()
	id := evaluate[string](b, `(() => {
		const label = [...document.querySelectorAll("label")].find(l => l.innerText.trim().startsWith(`+quoted(label)+`));
		const field = label && (label.control || document.getElementById(label.htmlFor));
		if (!field) return "";
		field.id ||= "field-" + Math.random().toString(36).slice(2);
		return field.id;
	})()`)
	if id == "" {
		b.t.Fatalf("%s: there is no field %q on the page:\n%s", b.screen.name, label, b.text())
	}
	return id
}

// press presses the button, or follows the link, with a text, waits for the page that follows, and
// looks at it.
func (b *browser) press(text string) {
	b.t.Helper()
	// The click searches as well, because a page that refreshes itself may have put another button in the place of the one found.
	found := `(() => {
		const shown = e => e.getClientRects().length > 0;
		const all = [...document.querySelectorAll("main button, main a, main input[type=submit], button, a")].filter(shown);
		const name = e => (e.innerText || e.value || "").trim();
		return all.find(e => name(e) === ` + quoted(text) + `) || all.find(e => name(e).startsWith(` + quoted(text) + `)) || null;
	})()`
	if !evaluate[bool](b, found+` !== null`) {
		b.t.Fatalf("%s: there is nothing to press that says %q on the page:\n%s", b.screen.name, text, b.text())
	}
	_, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.JSPath(found)))
	for try := 1; err != nil && try < 3 && strings.Contains(strings.ToLower(err.Error()), "node"); try++ { // replaced since it was found, so not pressed
		_, err = chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.JSPath(found)))
	}
	if err != nil {
		b.t.Fatalf("%s: press %q: %v\n%s", b.screen.name, text, err, b.text())
	}
	b.look()
}

// path is where the tab is.
func (b *browser) path() string {
	b.t.Helper()
	return evaluate[string](b, `location.pathname`)
}

// expectRefusal says that the next page will be answered with a status of 4xx.
func (b *browser) expectRefusal() { b.allowed++ }

// look checks all that every page promises: nothing in red, nothing from elsewhere, no way to scroll
// sideways, no serious barrier, and no more than 100 kB.
func (b *browser) look() {
	b.t.Helper()
	where := b.screen.name + " " + b.path()
	for _, problem := range b.takeNoted() {
		b.t.Errorf("%s: %s", where, problem)
	}
	if wide := evaluate[string](b, `(() => {
		const room = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= room) return "";
		const worst = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > room + 1).slice(0, 3);
		return document.documentElement.scrollWidth + " of " + room + ": " + worst.map(e => e.outerHTML.slice(0, 120)).join(" | ");
	})()`); wide != "" {
		b.t.Errorf("%s scrolls sideways: %s", where, wide)
	}
	if evaluate[bool](b, `[...document.querySelectorAll(".filters")].some(e => e.scrollWidth > e.clientWidth || [...e.querySelectorAll("a")].some(a => a.getBoundingClientRect().right > document.documentElement.clientWidth))`) {
		b.t.Errorf("%s has filters that are cut off", where)
	}
	b.weigh(where)
	b.axeFinds(where)
}

func (b *browser) takeNoted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	noted := slices.DeleteFunc(b.noted, func(problem string) bool {
		refused := strings.Contains(problem, "responded with a status of 4")
		if refused && b.allowed > 0 {
			b.allowed--
			return true
		}
		return false
	})
	b.noted = nil
	return noted
}

// weigh adds up what the page fetched, as it is without a cache.
func (b *browser) weigh(where string) {
	b.t.Helper()
	const most = 100_000
	bytes := evaluate[int](b, `performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
		.reduce((sum, e) => sum + e.decodedBodySize, 0)`)
	if bytes > most {
		b.t.Errorf("%s is %d bytes in all, more than %d", where, bytes, most)
	}
	paint := evaluate[float64](b, `new Promise(done => {
		const painted = () => performance.getEntriesByName("first-contentful-paint")[0];
		let looks = 0;
		const look = () => painted() || looks++ > 50 ? done(painted() ? painted().startTime : -1) : setTimeout(look, 10);
		look();
	})`)
	b.t.Logf("%s: %d bytes, first paint after %.0f ms", where, bytes, paint)
}

// axeFinds reports what axe calls serious or critical.
func (b *browser) axeFinds(where string) {
	b.t.Helper()
	if !evaluate[bool](b, `typeof axe !== "undefined"`) {
		b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: b.axe})
			return err
		}))
	}
	found := evaluate[[]struct{ Impact, ID, Help, At string }](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r =>
		r.violations.flatMap(v => v.nodes.map(n => ({Impact: n.impact || v.impact, ID: v.id, Help: v.help, At: n.html.slice(0, 160)}))))`)
	for _, f := range found {
		if f.Impact == "serious" || f.Impact == "critical" {
			b.t.Errorf("%s: %s: %s (%s): %s", where, f.Impact, f.Help, f.ID, f.At)
		} else {
			b.t.Logf("%s: %s: %s (%s): %s", where, f.Impact, f.Help, f.ID, f.At)
		}
	}
}

// keep takes a picture, if pictures are wanted: of all of the page, or of what a phone shows of it.
func (b *browser) keep(name string) {
	dir := os.Getenv("BURSAR_TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	take := chromedp.FullScreenshot(100)
	if b.screen.phone {
		take = chromedp.CaptureScreenshot()
	}
	picture, err := chromedp.Run(b.ctx, take)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s.png", name, b.screen.name)), picture, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// quoted writes a string as JavaScript has it.
func quoted(s string) string {
	text, _ := json.Marshal(s) //nolint:errchkjson // a string
	return string(text)
}
