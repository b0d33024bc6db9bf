package deploy

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

const root = "../.."

// baseImages stands for the registry: it has every image, for whatever platform is asked for.
type baseImages struct{}

func (baseImages) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config := []byte(`{"architecture":"amd64","os":"linux"}`)
	return ref, digest.FromBytes(config), config, nil
}

// lint returns the names of the rules that a Dockerfile breaks, as `docker build --check` does, the experimental ones too.
func lint(t *testing.T, text []byte) []string {
	t.Helper()
	dockerfile := append([]byte("# check=experimental=all\n"), text...)
	platform := ocispecs.Platform{OS: "linux", Architecture: "amd64"}
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", dockerfile)
	source.Definition = &llb.Definition{} // of the build context, which nothing here reads
	found, err := dockerfile2llb.DockerfileLint(t.Context(), dockerfile, dockerfile2llb.ConvertOpt{
		Config:         dockerui.Config{BuildPlatforms: []ocispecs.Platform{platform}},
		TargetPlatform: &platform,
		MetaResolver:   baseImages{},
		SourceMap:      source,
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.Error != nil {
		t.Fatalf("the Dockerfile can't be built: %s", found.Error.Message)
	}
	var broken []string
	for _, w := range found.Warnings {
		t.Logf("%s: %s", w.RuleName, w.Detail)
		broken = append(broken, w.RuleName)
	}
	return broken
}

func TestDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	if broken := lint(t, dockerfile); len(broken) > 0 {
		t.Errorf("BuildKit's linter: %v", broken)
	}
}

// The linter does find mistakes.
func TestLinterFindsFaults(t *testing.T) {
	broken := lint(t, []byte("FROM scratch as lower\nENV KEY value\nCMD serve\n"))
	if len(broken) < 3 {
		t.Errorf("found only %v", broken)
	}
}
