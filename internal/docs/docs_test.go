package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/delivery"
)

const root = "../.."

// pages are the Markdown files that people read.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{
		"README.md", "ARCHITECTURE.md", "docs/*.md", "terraform/README.md", "terraform/*/*/README.md", "charts/*/README.md",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			texts[file] = read(t, file)
		}
	}
	return texts
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLinksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, anchored := strings.Cut(m[1], "#")
			at := page
			if file != "" {
				at = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
				continue
			}
			if anchored && !anchors(read(t, at))[anchor] {
				t.Errorf("%s: link to %s: no such heading", page, m[1])
			}
		}
	}
}

// anchors are what GitHub makes of a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} +(.+)$`).FindAllStringSubmatch(text, -1) {
		heading := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		all[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return all
}

func TestVariablesAreKnown(t *testing.T) {
	for page, text := range pages(t) {
		checkVariables(t, page, text)
	}
}

func checkVariables(t *testing.T, file, text string) {
	t.Helper()
	known := map[string]bool{}
	for _, v := range append(config.DispatcherVariables(), config.JanitorVariables()...) {
		known[v.Name] = true
	}
	name := regexp.MustCompile(`\b(?:DISPATCHER|JANITOR)_[A-Z0-9_]*\*?`)
	for _, n := range name.FindAllString(text, -1) {
		stem, isStem := strings.CutSuffix(n, "_*")
		ok := known[n] || known[strings.TrimSuffix(n, "_FILE")] || isStem && isPrefix(stem, known)
		if !ok && n != "DISPATCHER_" { // the bare prefix stands for all of them
			t.Errorf("%s: the configuration knows no %s", file, n)
		}
	}
}

func isPrefix(stem string, known map[string]bool) bool {
	for name := range known {
		if strings.HasPrefix(name, stem+"_") {
			return true
		}
	}
	return false
}

// Each row agrees with the table of package delivery.
func TestOutcomesPage(t *testing.T) {
	text := read(t, filepath.Join(root, "docs/outcomes.md"))
	yes := map[bool]string{true: "yes", false: "no"}
	for _, r := range delivery.Reasons() {
		_, line, found := strings.Cut(text, "\n| `"+r.String()+"` | ")
		line, _, _ = strings.Cut(line, "\n")
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		o := delivery.Of(r)
		want := []string{o.Settlement.String(), yes[o.Charged], yes[o.Unknown], yes[o.TargetFault]}
		if len(cells) == 2 { // of a dead letter
			want = want[:1]
		}
		if !found || strings.Join(cells[1:], " ") != strings.Join(want, " ") {
			t.Errorf("%v: %q, want %q", r, cells, want)
		}
	}
}

// Every routes file that a page shows can be loaded.
func TestRoutesFilesLoad(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n((?:routes|defaults):.*?)```")
	found := 0
	for page, text := range pages(t) {
		if filepath.Dir(page) != filepath.Join(root, "docs") {
			continue // the README's names files; package config has a test of it
		}
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			found++
			file := filepath.Join(t.TempDir(), "routes.yaml")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("DISPATCHER_ROUTES_FILE", file)
			if _, err := config.LoadDispatcher(); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if found == 0 {
		t.Error("no page shows one")
	}
}

// The unit runs one of our programs, and kills it no sooner than the grace, and the time that Redis may take, have
// passed.
func TestSystemdUnit(t *testing.T) {
	unit := read(t, filepath.Join(root, "docs/deploy-plain.md"))
	value := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.+)$`).FindStringSubmatch(unit)
		if m == nil {
			t.Fatalf("no %s", key)
		}
		return m[1]
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", filepath.Base(value("ExecStart")), "main.go")); err != nil {
		t.Error(err)
	}
	cfg, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	want := strconv.Itoa(int((cfg.ShutdownGrace + 10*time.Second).Seconds()))
	if got := value("TimeoutStopSec"); got != want {
		t.Errorf("TimeoutStopSec is %s, want %s", got, want)
	}
	if !strings.Contains(unit, "--stop-timeout "+want+" ") {
		t.Errorf("docker run has no --stop-timeout %s", want)
	}
}
