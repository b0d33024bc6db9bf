package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Writes tells of each command that changed the server's data since its first start, in order: of a script, of each
// command in it that did. It reads the append-only file, so that Config.AppendOnly is needed; a restart takes nothing
// from it, for the file is never rewritten.
func (s *Server) Writes(t testing.TB, see func(command []string)) {
	t.Helper()
	// Redis 7 has a file for the data at its start, of which there were none, and one for what came then; 6.2 has one.
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(s.dir, "appendonly.aof"))
	}
	if err != nil || len(files) != 1 {
		t.Fatalf("append-only files of %s: %q, %v; want one", s.Addr(), files, err)
	}
	file, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	commands := bufio.NewReader(file)
	for {
		command, err := readCommand(commands)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it may be writing
			return
		}
		if err != nil {
			t.Fatalf("read %s: %v", files[0], err)
		}
		see(command)
	}
}

var errNoCommand = errors.New("no command of Redis's protocol")

// readCommand reads an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec/).
func readCommand(from *bufio.Reader) ([]string, error) {
	length := func(kind string) (int, error) {
		line, err := from.ReadString('\n')
		if err != nil {
			return 0, err
		}
		digits, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r\n"), kind)
		if n, err := strconv.Atoi(digits); ok && err == nil {
			return n, nil
		}
		return 0, fmt.Errorf("%w: %q", errNoCommand, line)
	}
	words, err := length("*")
	if err != nil {
		return nil, err
	}
	var command []string
	for range words {
		n, err := length("$")
		if err != nil {
			return nil, err
		}
		word := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(from, word); err != nil {
			return nil, err
		}
		command = append(command, string(word[:n]))
	}
	return command, nil
}
