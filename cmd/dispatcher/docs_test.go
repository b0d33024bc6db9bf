package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/metrics"
)

// What users see is documented: every name of the environment, of the metrics, of the headers, and every verb.
func TestREADMENamesEverything(t *testing.T) {
	text := read(t, "../../README.md")
	for _, v := range append(config.DispatcherVariables(), config.JanitorVariables()...) {
		if !strings.Contains(text, v.Name) && !strings.HasPrefix(v.Name, "JANITOR_REDIS_") {
			t.Errorf("README.md lacks %s", v.Name)
		}
	}
	m := metrics.New("test")
	m.Route("orders", "https://api.example.com")
	_ = m.Poll("orders", func(context.Context) (metrics.Depth, error) { return metrics.Depth{}, nil }).Look(t.Context())
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "dispatcher_") && !strings.Contains(text, name) {
			t.Errorf("README.md lacks %s", name)
		}
	}
	for _, file := range []string{"../../webhook/request.go", "../../delivery/classify.go"} {
		for _, header := range regexp.MustCompile(`"Dispatch-[A-Z][A-Za-z-]+[a-z]"`).FindAllString(read(t, file), -1) {
			if name := strings.Trim(header, `"`); !strings.Contains(text, name) {
				t.Errorf("README.md lacks %s", name)
			}
		}
	}
	for _, cmd := range newRoot(context.Background(), stdio{}).Commands() {
		if !cmd.IsAdditionalHelpTopicCommand() && !documented(text, cmd) {
			t.Errorf("README.md lacks the verb %s", cmd.CommandPath())
		}
	}
}

// documented says whether the text shows the verb or one below it. Verbs that cobra adds by itself need not be shown.
func documented(text string, cmd *cobra.Command) bool {
	if cmd.Name() == "help" || cmd.Name() == "completion" || strings.Contains(text, cmd.CommandPath()) {
		return true
	}
	for _, sub := range cmd.Commands() {
		if documented(text, sub) {
			return true
		}
	}
	return false
}

// The architecture page names every package.
func TestARCHITECTURENamesEveryPackage(t *testing.T) {
	text := read(t, "../../ARCHITECTURE.md")
	for _, root := range []string{"../..", "../../internal"} {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && hasGo(t, root+"/"+e.Name()) && !strings.Contains(text, e.Name()) {
				t.Errorf("ARCHITECTURE.md lacks package %s", e.Name())
			}
		}
	}
}

func hasGo(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") {
			return true
		}
	}
	return false
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
