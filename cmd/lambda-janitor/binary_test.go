package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/sweepanswer"
)

// patience is for what ends at once unless it is broken.
const patience = 30 * time.Second

// built is the program as it is deployed, built once for all tests.
var built struct {
	once sync.Once
	dir  string // TestMain removes it
	err  error
}

func build(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "lambda-janitor-"); built.err != nil {
			return
		}
		cmd := exec.CommandContext(context.Background(), "go", "build", "-tags", "lambda.norpc",
			"-o", filepath.Join(built.dir, "bootstrap"), ".")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("build: %v", built.err)
	}
	return filepath.Join(built.dir, "bootstrap")
}

// process is the built program, running.
type process struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer // read after it has ended
}

// start runs the program with these settings and no others of ours.
func start(t *testing.T, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), build(t))}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "JANITOR_GRACE=50ms"}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // a no-op after wait
	return p
}

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func TestBuiltBinaryRecoversInOneRun(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	dead := leaveDead(t, s.Client(t), "orders", 3)
	p := start(t, "JANITOR_REDIS_URL="+s.URL())
	if code := p.wait(t); code != exitOK {
		t.Fatalf("exit %d: %s", code, &p.err)
	}
	a := decode(t, p.out.Bytes())
	want := swept{Queue: sweepanswer.Queue{Name: "orders", Dead: []string{dead}, Recovered: 3}, Ready: 3}
	if len(a.Queues) != 1 || compare(want, a.Queues[0]) != "" {
		t.Errorf("answer %+v, want %+v", a, want)
	}
}

// For cron: the exit status says whether something failed, standard output what was done.
func TestBuiltBinaryFails(t *testing.T) {
	t.Parallel()
	away := start(t, "JANITOR_REDIS_URL=redis://"+freeAddr(t))
	if code := away.wait(t); code != exitFailure {
		t.Errorf("Redis away: exit %d, want %d: %s", code, exitFailure, &away.err)
	}
	if a := decode(t, away.out.Bytes()); len(a.Queues) > 0 || len(a.Errors) != 1 || !strings.Contains(a.Errors[0], "can't be reached") {
		t.Errorf("Redis away: answer %s", &away.out)
	}
	bad := start(t, "JANITOR_BATCH=101", "JANITOR_REDIS_PASSWORD_SECRET_ARN=redis-AbCdEf")
	if code := bad.wait(t); code != exitUsage || bad.out.Len() > 0 {
		t.Errorf("bad settings: exit %d, want %d; standard output %q", code, exitUsage, &bad.out)
	}
	for _, want := range []string{`JANITOR_BATCH: "101" is out of range; want a decimal number from 1 to 100`, "_SECRET_ARN: is not the ARN"} {
		if !strings.Contains(bad.err.String(), want) {
			t.Errorf("bad settings: %s; want %s", &bad.err, want)
		}
	}
}

func TestSIGTERMEndsTheWaitCleanly(t *testing.T) {
	t.Parallel()
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	id := leaveDead(t, rdb, queue, 3)
	p := start(t, "JANITOR_REDIS_URL="+redistest.Shared(t).URL(), "JANITOR_QUEUES="+queue, "JANITOR_GRACE=1h")
	for deadline := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if rdb.HExists(t.Context(), "{"+queue+"}:suspects", id).Val() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody suspected")
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitOK {
		t.Fatalf("exit %d: %s", code, &p.err)
	}
	if a := decode(t, p.out.Bytes()); len(a.Queues) != 1 || a.Queues[0].InFlight != 3 || a.Queues[0].Recovered != 0 {
		t.Errorf("answer %+v, want 3 tasks in flight", a)
	}
}

func TestLambda(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	dead := leaveDead(t, s.Client(t), "orders", 3)
	api := newRuntimeAPI(t)
	p := start(t, "JANITOR_REDIS_URL="+s.URL(), "AWS_LAMBDA_RUNTIME_API="+api.addr, "JANITOR_GRACE=4s")

	// There is no time for the grace: the suspect is marked, and that is not an error.
	got := api.invoke(t, `{"source":"aws.scheduler"}`, reserve+3*time.Second)
	if a := decode(t, got.body); got.kind != "response" || len(a.Queues) != 1 || a.Queues[0].InFlight != 3 {
		t.Fatalf("first invocation: %s %s", got.kind, got.body)
	}
	got = api.invoke(t, "", time.Minute)
	want := fmt.Sprintf(`{"queues":[{"queue":"orders","dead_dispatchers":[%q],"recovered":3,"buried":0,"left":0,"ready":3,`+
		`"delayed":0,"in_flight":0,"dead":0,"oldest_ready_seconds":0,"live_dispatchers":0}],"errors":[]}`, dead)
	if diff := cmp.Diff(want, string(got.body)); got.kind != "response" || diff != "" {
		t.Fatalf("second invocation: %s (-want +got):\n%s", got.kind, diff)
	}
	got = api.invoke(t, "no JSON", time.Second)
	if got.kind != "error" || !strings.Contains(string(got.body), "timeout") {
		t.Errorf("no time at all: %s %s", got.kind, got.body)
	}
	s.Stop(t)
	got = api.invoke(t, "{}", time.Minute)
	if got.kind != "error" || !strings.Contains(string(got.body), "can't be reached") {
		t.Errorf("Redis away: %s %s", got.kind, got.body)
	}
	s.Start(t)
	if got = api.invoke(t, "{}", time.Minute); got.kind != "response" {
		t.Errorf("Redis back: %s %s", got.kind, got.body)
	}

	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit %d after SIGTERM: %s", code, &p.err)
	}
	log := p.out.String()
	if !strings.Contains(log, want+"\n") {
		t.Errorf("the answer is not in the log:\n%s", log)
	}
	if !strings.Contains(log, `"Namespace":"queuehook"`) || !strings.Contains(log, `"queue":"orders","ready":3,"recovered":3}`) {
		t.Errorf("the metrics are not in the log:\n%s", log)
	}
}

func compare(want, got swept) string { return cmp.Diff(want, got, cmp.AllowUnexported(swept{})) }

func decode(t *testing.T, text []byte) answer {
	t.Helper()
	var a answer
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		t.Fatalf("answer %q: %v", text, err)
	}
	for i := range a.Queues {
		if len(a.Queues[i].Dead) == 0 {
			a.Queues[i].Dead = nil
		}
	}
	return a
}

// runtimeAPI is Lambda's side of https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
type runtimeAPI struct {
	addr    string
	events  chan event
	results chan result
}

type event struct {
	body     string
	deadline time.Time
}

type result struct {
	kind string // response or error
	body []byte
}

func newRuntimeAPI(t *testing.T) *runtimeAPI {
	t.Helper()
	api := &runtimeAPI{events: make(chan event), results: make(chan result, 1)}
	const root = "/2018-06-01/runtime/invocation/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case e := <-api.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "one")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(e.deadline.UnixMilli(), 10))
			_, _ = io.WriteString(w, e.body)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST "+root+"one/{kind}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		api.results <- result{r.PathValue("kind"), body}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close) // after the process has ended
	api.addr = server.Listener.Addr().String()
	return api
}

// invoke sends one event and returns what the function answered.
func (api *runtimeAPI) invoke(t *testing.T, body string, timeout time.Duration) result {
	t.Helper()
	giveUp := time.After(patience)
	select {
	case api.events <- event{body, time.Now().Add(timeout)}:
	case <-giveUp:
		t.Fatal("nobody asks for an event")
	}
	select {
	case r := <-api.results:
		return r
	case <-giveUp:
		t.Fatal("no answer")
	}
	return result{}
}
