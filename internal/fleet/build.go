// Package fleet runs the built programs as a test's fleet: dispatchers are processes of their own, with a real Redis
// and scripted receivers, driven by signals. Tests end by checking the law (package audit).
//
//	func TestMain(m *testing.M) { os.Exit(fleet.Main(m)) }
//
//	func TestOrders(t *testing.T) {
//		server := redistest.Shared(t)
//		q := fleet.NewQueue(t, server, receiver.Config{})
//		d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
//		q.Push(t, []byte("one"))
//		q.AwaitDrained(t)
//		d.Stop(t)
//		q.Law(t)
//	}
//
// The programs are built once per test binary, with the race detector; a race, a panic or an unexpected end of one fails
// the test that started it.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/queuehook/queuehook/internal/redistest"
)

// The programs.
const (
	Dispatcher = "dispatcher"
	Janitor    = "lambda-janitor"
)

const module = "github.com/queuehook/queuehook/cmd/"

// built are the programs of this test binary, made once. It is a package variable because a test binary has nothing
// else that TestMain and its tests have in common.
var built struct { //nolint:gochecknoglobals // see above
	once sync.Once
	dir  string // Main removes it
	err  error
}

// Main runs the tests of a package, and then removes what they shared: the programs, and redistest's server. It returns
// the exit code for os.Exit.
func Main(m *testing.M) int {
	code := redistest.Main(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	return code
}

// binary returns the path of a program, which the first call builds.
func binary(t testing.TB, program string) string {
	t.Helper()
	built.once.Do(func() {
		if built.err = lookAtSources(); built.err == nil {
			built.dir, built.err = build()
		}
	})
	if built.err != nil {
		t.Fatalf("build the programs: %v", built.err)
	}
	return filepath.Join(built.dir, program)
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	args := []string{"build", "-race", "-tags", "lambda.norpc", "-o", dir + "/", module + Dispatcher, module + Janitor}
	cmd := exec.CommandContext(context.Background(), "go", args...) //nolint:gosec // our own names
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
}

// lookAtSources looks at each file that the programs are made of. The go command repeats a test whose files have changed,
// and knows nothing of what the test has built: without this a test of the programs would stay cached, and pass, whatever
// became of them.
func lookAtSources() error {
	out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("look for the sources: %w", err)
	}
	root := strings.TrimSpace(string(out))
	looked := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !slices.Contains([]string{".go", ".lua", ".mod", ".sum"}, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		looked++
		_, err = os.Stat(path)
		return err
	})
	if err == nil && looked == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return fmt.Errorf("look at the sources: %w", err)
	}
	return nil
}
