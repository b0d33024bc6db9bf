package redistest

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestMissingServerSaysHowToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := launch(Config{})
	if err == nil || !strings.Contains(err.Error(), "apt-get install -y redis-server") {
		t.Errorf("without redis-server: %v, want the way to install it", err)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	s, err := launch(Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := s.proc
	s.discard()
	if p.Alive() {
		t.Error("the server runs after discard")
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after discard: %v, want it gone", err)
	}
}

func TestBadDirectiveIsReported(t *testing.T) {
	t.Parallel()
	_, err := launch(Config{Directives: []string{"no-such-directive yes"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("launch = %v, want the server's own complaint", err)
	}
}
