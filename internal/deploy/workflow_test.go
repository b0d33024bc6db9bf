package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// GitHub runs what everybody runs, and nothing beside it.
func TestWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".github/workflows/ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Uses == "" {
				commands = append(commands, step.Run)
			}
		}
	}
	if len(commands) != 1 || commands[0] != ".ci/run" {
		t.Errorf("it runs %q, want .ci/run", commands)
	}
	if _, err := os.Stat(filepath.Join(root, ".ci/run")); err != nil {
		t.Error(err)
	}
}
