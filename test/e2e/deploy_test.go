package e2e

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"bursar/internal/config"
	"bursar/test/harness"
)

// What is in deploy/ and in the operators' page is used with nobody looking. These tests hold it against
// the program: metrics against what a running service exports, settings against those there are.

const (
	deployDir      = "../../deploy"
	operationsPage = "../../docs/operations.md"
	alertsPage     = "../../docs/alerts.md"
)

func TestMetrics_WatchedOnesAreExported(t *testing.T) {
	exported := exportedSeries(t)
	for place, text := range map[string]string{
		operationsPage:  readText(t, operationsPage),
		alertsPage:      readText(t, alertsPage),
		"the alerts":    strings.Join(alertExpressions(t), "\n"),
		"the dashboard": strings.Join(dashboardExpressions(t), "\n"),
	} {
		selectors := metricSelector.FindAllStringSubmatch(text, -1)
		if len(selectors) == 0 {
			t.Fatalf("found no metric in %s", place)
		}
		for _, s := range selectors {
			series, isExported := exported[s[1]]
			if !isExported {
				t.Errorf("%s names %s, which a running service does not export", place, s[1])
				continue
			}
			for _, m := range labelMatcher.FindAllStringSubmatch(s[2], -1) {
				series.check(t, place, s[1], m[1], m[2], m[3])
			}
		}
	}
	page := readText(t, operationsPage)
	for name := range exported {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "bursar_") && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s does not tell what %s is", operationsPage, name)
		}
	}
}

var (
	metricSelector = regexp.MustCompile(`\b((?:bursar|go|process)_[a-z0-9_]*[a-z0-9])\b(\{[^}]*\})?`)
	labelMatcher   = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
)

// labels are the values of each label of a metric.
type labels map[string][]string

// check holds a label matcher against what is exported. Prometheus itself adds job and instance. Values
// are compared where a fresh service has them all: routes and statuses come with requests.
func (l labels) check(t *testing.T, place, metric, label, operator, value string) {
	t.Helper()
	if label == "job" || label == "instance" {
		return
	}
	values, has := l[label]
	if !has {
		t.Errorf("%s asks for %s by %s, which is no label of it", place, metric, label)
		return
	}
	if label == "status" || label == "quantile" || label == "route" && operator != "=" || strings.HasPrefix(value, "$") {
		return
	}
	for word := range strings.SplitSeq(value, "|") {
		if !slices.Contains(values, word) {
			t.Errorf("%s asks for %s with %s %q; there are %q", place, metric, label, word, slices.Compact(slices.Sorted(slices.Values(values))))
		}
	}
}

// exportedSeries is what a service exports that was just started, by the name of the series.
func exportedSeries(t *testing.T) map[string]labels {
	t.Helper()
	address, err := harness.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	i := harness.NewInstance(t, "BURSAR_METRICS_ADDR="+address, "BURSAR_SANDBOX_ADDR=127.0.0.1:0", "BURSAR_DATA_DIR="+t.TempDir(), "BURSAR_LOG_LEVEL=error")
	i.Start(t)
	if status, _, err := harness.Send(http.MethodPost, i.API+"/api/gateway/webhooks/razorpayx", "", "{}", nil); err != nil || status < 400 {
		t.Fatalf("a webhook that nobody signed was answered with %d, %v", status, err)
	}
	var text []byte
	isLooked := false
	harness.Until(t, "due work was looked at", func() bool {
		wasLooked := isLooked // an answer that is made during the look may have a part of it
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
		isLooked = err == nil && strings.Contains(string(text), "bursar_work_overdue_seconds{")
		return wasLooked && isLooked
	})
	all := map[string]labels{}
	for _, line := range regexp.MustCompile(`(?m)^(\w+)(\{.*\})? \S+$`).FindAllStringSubmatch(string(text), -1) {
		if all[line[1]] == nil {
			all[line[1]] = labels{}
		}
		for _, label := range labelMatcher.FindAllStringSubmatch(line[2], -1) {
			all[line[1]][label[1]] = append(all[line[1]][label[1]], label[3])
		}
	}
	for name := range all { // a histogram is also named as a whole
		if whole, is := strings.CutSuffix(name, "_bucket"); is {
			all[whole] = all[name]
		}
	}
	return all
}

type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func readAlerts(t *testing.T) alertRules {
	t.Helper()
	var rules alertRules
	if err := yaml.Unmarshal([]byte(readText(t, deployDir+"/prometheus/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

func alertExpressions(t *testing.T) (all []string) {
	t.Helper()
	for _, group := range readAlerts(t).Groups {
		for _, rule := range group.Rules {
			all = append(all, rule.Expr)
		}
	}
	return all
}

// TestAlertsSayWhatToDo wants each alert to tell how urgent it is, what is wrong, and where to read on.
func TestAlertsSayWhatToDo(t *testing.T) {
	sections := map[string][]string{}
	for _, page := range []string{operationsPage, alertsPage} {
		sections[strings.TrimPrefix(page, "../../")] = anchors(readText(t, page))
	}
	for _, group := range readAlerts(t).Groups {
		for _, rule := range group.Rules {
			if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
				t.Errorf("%s has the severity %q, want page or ticket", rule.Alert, severity)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks a summary or a description", rule.Alert)
			}
			page, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
			if !slices.Contains(sections[page], anchor) {
				t.Errorf("%s points at %s#%s, which is not there", rule.Alert, page, anchor)
			}
		}
	}
}

// The alert rules' own tests run only where Prometheus is installed.
func TestAlerts_PassPromtoolTests(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool, which comes with Prometheus, is not installed")
	}
	cmd := exec.Command(promtool, "test", "rules", "alerts.test.yaml")
	cmd.Dir = deployDir + "/prometheus"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// anchors are the names by which the sections of a page are linked to.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		all = append(all, strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case c == '-' || unicode.IsLetter(c) || unicode.IsDigit(c):
				return unicode.ToLower(c)
			default:
				return -1
			}
		}, heading[1]))
	}
	return all
}

type grafanaDashboard struct {
	Panels []struct {
		ID      int    `json:"id"`
		Title   string `json:"title"`
		Type    string `json:"type"`
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
		Description string `json:"description"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

func readDashboard(t *testing.T) grafanaDashboard {
	t.Helper()
	var d grafanaDashboard
	if err := json.Unmarshal([]byte(readText(t, deployDir+"/grafana/bursar.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func dashboardExpressions(t *testing.T) (all []string) {
	t.Helper()
	d := readDashboard(t)
	for _, variable := range d.Templating.List {
		all = append(all, variable.Definition)
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// TestDashboardIsWhole wants every panel to have its own place, a query, and a word on what it shows.
func TestDashboardIsWhole(t *testing.T) {
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("the panel %s has no query, or does not say what it shows", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %s lies over %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// No file in deploy/ names a setting that was renamed or misspelt, and all its YAML can be read.
func TestDeploy_NamesOnlySettings(t *testing.T) {
	known := knownVariables(t)
	check := func(file string) {
		for _, name := range regexp.MustCompile(`BURSAR_[A-Z0-9][A-Z0-9_]*`).FindAllString(readText(t, file), -1) {
			if !known[name] {
				t.Errorf("%s names %s, which is no setting", file, name)
			}
		}
	}
	err := filepath.WalkDir(deployDir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		check(file)
		if filepath.Ext(file) != ".yaml" {
			return nil
		}
		var content any
		return yaml.Unmarshal([]byte(readText(t, file)), &content)
	})
	if err != nil {
		t.Error(err)
	}
}

func knownVariables(t *testing.T) map[string]bool {
	t.Helper()
	parser, err := kong.New(&config.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, flag := range parser.Model.Flags {
		known[config.Variable(flag.Name)] = true
		if flag.Tag.Has("secret") {
			known[config.Variable(flag.Name)+"_FILE"] = true
		}
	}
	return known
}

// The program checks the settings that the files in deploy/ give it.
func TestDeploy_SettingsPassConfigCheck(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal([]byte(readText(t, deployDir+"/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	var composed []string
	for name, value := range compose.Services["bursar2"].Environment {
		composed = append(composed, name+"="+regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(value, "secret"))
	}
	credentials := t.TempDir()
	var unit []string
	dropIn := readText(t, deployDir+"/systemd/bursar.service.d/razorpayx.conf")
	for _, setting := range regexp.MustCompile(`(?m)^Environment=(.*)$`).FindAllStringSubmatch(dropIn, -1) {
		unit = append(unit, strings.ReplaceAll(setting[1], "%d", credentials))
	}
	for _, credential := range regexp.MustCompile(`(?m)^LoadCredential=([^:]*):`).FindAllStringSubmatch(dropIn, -1) {
		if err := os.WriteFile(filepath.Join(credentials, credential[1]), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, settings := range map[string][]string{
		"compose.yaml": composed,
		"systemd":      append(unit, "BURSAR_CONFIG="+deployDir+"/bursar.env"),
	} {
		if len(settings) < 5 {
			t.Errorf("%s: found only %q", name, settings)
		}
		i := harness.NewInstance(t, settings...)
		i.Environ = slices.DeleteFunc(i.Environ, func(pair string) bool { return strings.HasPrefix(pair, "BURSAR_ADDR=") })
		if out, err := i.Command("config", "check").CombinedOutput(); err != nil || strings.Contains(string(out), "no setting") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
