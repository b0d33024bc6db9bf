package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/child"
)

// scheduled is what EventBridge Scheduler sends to a function whose schedule gives no input.
const scheduled = `{"version":"0","id":"9c7b5f0e-53a1-4d0f-b1b3-7a4c3f1f6a10","detail-type":"Scheduled Event",` +
	`"source":"aws.scheduler","account":"123456789012","time":"2026-12-01T04:00:00Z","region":"eu-west-1",` +
	`"resources":["arn:aws:scheduler:eu-west-1:123456789012:schedule/default/queuehook-janitor"],"detail":"{}"}`

// emulator is AWS's runtime interface emulator around the built program. It takes one call at a time, and only the body
// tells a function error from an answer.
type emulator struct {
	url     string
	process *child.Process
	log     *buffer
}

// emulate starts an emulator whose function has these JANITOR_ settings and no others.
func emulate(t *testing.T, timeout time.Duration, env ...string) *emulator {
	t.Helper()
	rie, program := emulatorPath(t), build(t) // which may take long: others could get the addresses meanwhile
	front, back := freeAddr(t), freeAddr(t)
	cmd := exec.CommandContext(context.Background(), rie,
		"--runtime-interface-emulator-address", front, "--runtime-api-address", back, program)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "AWS_LAMBDA_FUNCTION_NAME=queuehook-janitor",
		fmt.Sprintf("AWS_LAMBDA_FUNCTION_TIMEOUT=%d", int(timeout.Seconds())), "JANITOR_GRACE=50ms",
	}, env...)
	e := &emulator{url: "http://" + front + "/2015-03-31/functions/function/invocations", log: &buffer{}}
	cmd.Stdout, cmd.Stderr = e.log, e.log
	process, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	e.process = process
	t.Cleanup(func() {
		if process.Terminate() != nil { // it takes the function with it
			process.Kill()
		}
		if t.Failed() {
			t.Logf("log of the function:\n%s", e.log)
		}
	})
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", front)
		if err == nil {
			_ = conn.Close()
			return e
		}
		if !process.Alive() || time.Now().After(deadline) {
			t.Fatalf("the emulator does not listen: %v", err)
		}
	}
}

// emulatorPath asks make, which knows the version and builds it once; so plain `go test` works as `make test` does.
func emulatorPath(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", "../..", "lambda-rie")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("make lambda-rie: %v: %s", err, &stderr)
	}
	return strings.TrimSpace(string(path))
}

// invoke sends the event and returns the response's body.
func (e *emulator) invoke(t *testing.T, event string) string {
	t.Helper()
	body, err := e.post(t.Context(), event)
	if err != nil {
		t.Fatalf("invoke: %v", err)
	}
	return body
}

func (e *emulator) post(ctx context.Context, event string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // ends a hang only
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(event))
	if err != nil {
		return "", err
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", resp.Status, body)
	}
	return string(body), err
}

// logs waits until the log has this text n times, in whole lines: it comes through pipes, maybe after the answer.
func (e *emulator) logs(t *testing.T, text string, times int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		log := e.log.String()
		n := strings.Count(log, text)
		if n >= times && strings.HasSuffix(log, "\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d times in the log, want %d: %s", n, times, text)
		}
	}
}

// metrics waits for n lines of CloudWatch's embedded metric format in the log, checks that they are valid, and returns
// them.
func (e *emulator) metrics(t *testing.T, want int) []string {
	t.Helper()
	e.logs(t, `"_aws"`, want)
	var lines []string
	for line := range strings.Lines(e.log.String()) {
		if !strings.Contains(line, `"_aws"`) {
			continue
		}
		if err := checkEMF([]byte(line), time.Now()); err != nil {
			t.Errorf("%v in the line %s", err, line)
		}
		lines = append(lines, line)
	}
	return lines
}

func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// buffer may be read while a process writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
