package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables of the module's README are its variables and outputs, in their order.
func TestTerraformTables(t *testing.T) {
	readme := read(t, filepath.Join(root, "terraform/README.md"))
	var inputs, outputs []string
	for _, b := range blocks(t, "variable", "terraform/variables.tf") {
		kind, _, _ := strings.Cut(b.value("type"), "({")
		given, isGiven := b.find("default")
		if !isGiven {
			given = "required"
		}
		inputs = append(inputs, "| "+strings.Join([]string{b.name, kind, given, b.text("description")}, " | ")+" |")
	}
	for _, b := range blocks(t, "output", "terraform/outputs.tf") {
		outputs = append(outputs, "| "+b.name+" | "+b.text("description")+" |")
	}
	for heading, want := range map[string][]string{"Inputs": inputs, "Outputs": outputs} {
		_, section, _ := strings.Cut(readme, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		_, table, _ := strings.Cut(section, "|---|\n")
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(table), "\n")); diff != "" {
			t.Errorf("%s (-terraform +README):\n%s", heading, diff)
		}
	}
}

// block is a variable or an output, as `terraform fmt` writes it.
type block struct {
	name, body string
}

func blocks(t *testing.T, kind, file string) []block {
	t.Helper()
	var all []block
	for _, m := range regexp.MustCompile(`(?ms)^`+kind+` "(\w+)" \{\n(.*?)^\}$`).FindAllStringSubmatch(read(t, filepath.Join(root, file)), -1) {
		all = append(all, block{m[1], m[2]})
	}
	if len(all) == 0 {
		t.Fatalf("%s has no %s", file, kind)
	}
	return all
}

// find returns the first line of an argument's value.
func (b block) find(argument string) (string, bool) {
	m := regexp.MustCompile(`(?m)^  ` + argument + ` += (.+)$`).FindStringSubmatch(b.body)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func (b block) value(argument string) string {
	value, _ := b.find(argument)
	return value
}

func (b block) text(argument string) string { return strings.Trim(b.value(argument), `"`) }

// Nothing that deploys the programs sets a variable that they do not know.
func TestDeploymentsSetKnownVariables(t *testing.T) {
	files := []string{filepath.Join(root, "compose.yaml"), filepath.Join(root, "Dockerfile")}
	err := filepath.WalkDir(filepath.Join(root, "terraform"), func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tf") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		checkVariables(t, file, read(t, file))
	}
}
