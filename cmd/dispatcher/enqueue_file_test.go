package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/task"
)

// fileOf writes a file with this text.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tasks.ndjson")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// bodies leases everything and returns the payloads.
func bodies(t *testing.T, rdb redis.UniversalClient, queue string) []string {
	t.Helper()
	payloads := []string{}
	for {
		_, tasks := leased(t, rdb, queue, time.Minute)
		if len(tasks) == 0 {
			return payloads
		}
		for _, task := range tasks {
			payloads = append(payloads, string(task.Bytes()))
		}
	}
}

func TestEnqueueFile(t *testing.T) {
	rdb, queue := shared(t)
	file := fileOf(t, "{\"id\": 1}\n\n \t\r\n \"two\\u00e9\" \r\n3\n[]")
	if out := ok(t, call(t, "enqueue", queue, "--file", file, "--header", "X-Team=a", "--max-attempts", "3")); out != "added 4 tasks\n" {
		t.Errorf("%q", out)
	}
	_, tasks := leased(t, rdb, queue, time.Minute)
	var payloads []string
	for _, task := range tasks {
		payloads = append(payloads, string(task.Bytes()))
		if m := task.Meta(); m.Headers["X-Team"] != "a" || m.MaxAttempts != 3 {
			t.Errorf("metadata %+v", m)
		}
	}
	want := []string{`{"id": 1}`, " \"two\\u00e9\" \r", "3", "[]"}
	if diff := cmp.Diff(want, payloads); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	if out := ok(t, call(t, "enqueue", queue, "--file", fileOf(t, "\n"))); out != "added 0 tasks\n" {
		t.Errorf("an empty file: %q", out)
	}
}

func TestEnqueueFileJSON(t *testing.T) {
	rdb, queue := shared(t)
	out := ok(t, call(t, "enqueue", queue, "--file", fileOf(t, "1\n\n2\n"), "--delay", "1h", "--json"))
	for i, text := range strings.Split(strings.TrimSpace(out), "\n") {
		var line addedLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		due, err := time.Parse(task.TimeFormat, line.Due)
		if err != nil || line.Line != 2*i+1 || line.Queue != queue || time.Until(due) < 59*time.Minute {
			t.Errorf("%s", text)
		}
		if got := rdb.HGet(t.Context(), "{"+queue+"}:body", line.ID).Val(); got != fmt.Sprint(i+1) {
			t.Errorf("task %s holds %q", line.ID, got)
		}
	}
}

func TestEnqueueFileKeepsTheOrderOfManyLines(t *testing.T) {
	rdb, queue := shared(t)
	var text bytes.Buffer
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprintf(`{"n":%d,"fill":"%s"}`, i, strings.Repeat("x", i%700)))
		text.WriteString(want[i] + "\n")
	}
	if out := ok(t, call(t, "enqueue", queue, "--file", fileOf(t, text.String()))); out != "added 2500 tasks\n" {
		t.Errorf("%q", out)
	}
	if diff := cmp.Diff(want, bodies(t, rdb, queue)); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
}

func TestEnqueueFileEndsAtALineThatIsNoJSON(t *testing.T) {
	rdb, queue := shared(t)
	for text, want := range map[string]string{
		"1\n2\n{\"secret\":x}\n4\n":   "line 3: no JSON value, at byte 11; 2 tasks added",
		"1\n2\n\n3 4":                 "line 4: no JSON value, at byte 3; 2 tasks added",
		"1\n2\n\"" + "\x00" + "\"\n4": "line 3: no JSON value, at byte 2; 2 tasks added",
		"1\n2\n{\n4":                  "line 3: no JSON value, at byte 1; 2 tasks added",
	} {
		file := fileOf(t, text)
		got := call(t, "enqueue", queue, "--file", file)
		if got.code != exitFailure || got.out != "added 2 tasks\n" || got.err != "dispatcher: "+file+": "+want+"\n" {
			t.Errorf("%q: %+v, want %s", text, got, want)
		}
		if got := bodies(t, rdb, queue); !cmp.Equal(got, []string{"1", "2"}) {
			t.Errorf("%q: added %q", text, got)
		}
	}
	fails(t, call(t, "enqueue", queue, "--file", fileOf(t, "x")), exitFailure, "line 1: no JSON value, at byte 1; 0 tasks added")
	fails(t, call(t, "enqueue", queue, "--file", t.TempDir()), exitFailure, "is a directory; 0 tasks added")
}

func TestEnqueueFileTakesLongLines(t *testing.T) {
	rdb, queue := shared(t)
	long := `"` + strings.Repeat("x", 3<<20) + `"`
	file := fileOf(t, long+"\n1\n")
	if out := ok(t, call(t, "enqueue", queue, "--file", file)); out != "added 2 tasks\n" {
		t.Errorf("%q", out)
	}
	if got := bodies(t, rdb, queue); len(got) != 2 || got[0] != long {
		t.Errorf("%d tasks", len(got))
	}
	zeros := io.MultiReader(strings.NewReader("1\n\""), io.LimitReader(endless{}, maxLine), strings.NewReader("\n2"))
	r := readChunks(t.Context(), zeros)
	if c := <-r; len(c.payloads) != 1 || c.err != nil {
		t.Errorf("before the line that is too long: %d, %v", len(c.payloads), c.err)
	}
	if c := <-r; len(c.payloads) != 0 || fmt.Sprint(c.err) != "line 2: longer than 64 MB" {
		t.Errorf("%d, %v", len(c.payloads), c.err)
	}
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// TestEnqueueFromAPipe: lines that come slowly are enqueued at once, and a signal ends the wait for more.
func TestEnqueueFromAPipe(t *testing.T) {
	rdb, queue := shared(t)
	in, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &lines{wrote: make(chan struct{}, 1)}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, t.Context(), []string{"enqueue", queue, "--file", "-", "--json"}, stdio{in: in, out: log, err: log})
	}()
	for i := range 3 {
		if _, err := fmt.Fprintf(writer, "%d\n", i); err != nil {
			t.Fatal(err)
		}
		log.await(t, fmt.Sprintf(`{"line":%d,`, i+1))
	}
	cancel()
	if got := <-code; got != exitFailure {
		t.Errorf("exit %d", got)
	}
	log.await(t, "interrupted")
	if got := bodies(t, rdb, queue); !cmp.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("added %q", got)
	}
}

func TestEnqueueFileIntoAFullRedis(t *testing.T) {
	s := redistest.Start(t, redistest.Config{MaxMemory: 1})
	environment(t, s.URL())
	fails(t, call(t, "enqueue", "orders", "--file", fileOf(t, "1\n2\n\n4\n")), exitFailure,
		"lines 1-2, 4: enqueue tasks: redis is full; 0 tasks added")
	if err := s.Client(t).ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := run(t.Context(), t.Context(), []string{"enqueue", "orders", "--file", "-"},
		stdio{in: strings.NewReader("1\n2"), out: io.Discard, err: &errs, shows: true})
	if code != exitOK || strings.Contains(errs.String(), "enqueue") {
		t.Errorf("exit %d: a bar for work that takes no time: %q", code, &errs)
	}
}

func TestProgressOfAnUnknownTotal(t *testing.T) {
	for _, total := range []int64{-1, 10} {
		var shown bytes.Buffer
		p := newByteProgress(stdio{err: &shown, shows: true}, total, "enqueue")
		p.began = p.began.Add(-time.Minute)
		p.add(5)
		p.add(50)
		p.end()
		if !strings.Contains(shown.String(), "enqueue") {
			t.Errorf("of %d: %q", total, &shown)
		}
	}
}
