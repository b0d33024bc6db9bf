package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/fakelambda"
	"github.com/queuehook/queuehook/internal/redistest"
)

func TestCheckFindsNothingWrong(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	environment(t, s.URL(), "ROUTES=orders="+server.URL+"/?token=secret thumbs=http://[::1]:9/")
	send(t, s.Client(t), []any{"set", "{thumbs}:paused", "1"})
	want := `LEVEL    SUBJECT        FINDING
ok       configuration  2 routes
ok       redis          answers, and allows what is needed
ok       orders         its keys can be read
warning  thumbs         is paused
ok       orders         ` + server.URL + ` has an address, 127.0.0.1
ok       thumbs         http://[::1]:9 has an address, ::1
`
	if diff := cmp.Diff(want, ok(t, call(t, "check"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the endpoint was asked %d times", n)
	}
	if keys := s.Client(t).DBSize(t.Context()).Val(); keys != 1 {
		t.Errorf("%d keys afterwards, want the one that was there", keys)
	}
}

func TestCheckTellsWhatItMet(t *testing.T) {
	s := redistest.Start(t, redistest.Config{Directives: []string{"maxmemory-policy allkeys-lru"}})
	environment(t, s.URL(), "ROUTES=orders=http://127.0.0.1:1/ thumbs=http://nowhere.invalid/hook?token=secret")
	send(t, s.Client(t), []any{"set", "orders", "not ours"})
	got := call(t, "check", "--json")
	for _, want := range []string{
		`{"findings":[{"level":"ok","subject":"configuration","text":"2 routes"},`,
		`{"level":"warning","subject":"redis","text":"maxmemory-policy is allkeys-lru`,
		`{"level":"error","subject":"orders","text":"read depths: WRONGTYPE`,
		`{"level":"ok","subject":"thumbs","text":"its keys can be read"}`,
		`{"level":"error","subject":"thumbs","text":"no address of http://nowhere.invalid was found"}`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%s\nwant %s", got.out, want)
		}
	}
	if got.code != exitFailure || got.err != "dispatcher: check: 2 errors\n" || strings.Contains(got.out, "secret") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	environment(t, s.URL(), "ROUTES=")
	if got := call(t, "check"); !strings.Contains(got.out, "ok       redis") || !strings.Contains(got.out, "allkeys-lru") {
		t.Errorf("without routes: %+v", got)
	}
}

// TestCheckAsksForTheProxy: behind a proxy only the proxy's own host has to resolve.
func TestCheckAsksForTheProxy(t *testing.T) {
	environment(t, redistest.Shared(t).URL(), "ROUTES_FILE="+fileOf(t, `routes:
  - {queue: check-orders, url: "http://nowhere.invalid/", proxy: "http://127.0.0.1:3128"}
  - {queue: check-thumbs, url: "http://127.0.0.1:1/", proxy: "http://user:secret@nowhere.invalid:3128"}
`))
	got := call(t, "check")
	if got.code != exitFailure || strings.Contains(got.out, "secret") ||
		!strings.Contains(got.out, "the proxy before http://nowhere.invalid has an address, 127.0.0.1") ||
		!strings.Contains(got.out, "no address of the proxy before http://127.0.0.1:1 was found") {
		t.Errorf("%+v", got)
	}
}

func TestCheckWithoutRedis(t *testing.T) {
	environment(t, "redis://:hunter2@"+nobody(t), "ROUTES=orders=http://127.0.0.1:1/")
	got := call(t, "check")
	if got.code != exitFailure || !strings.Contains(got.out, "Redis can't be reached") || strings.Contains(got.out, "hunter2") {
		t.Errorf("%+v", got)
	}
	s := redistest.Start(t, redistest.Config{User: "alice", Password: "sesame", Rules: "~* &* +@all -hset"})
	environment(t, s.URL(), "ROUTES=orders=http://127.0.0.1:1/")
	if got := call(t, "check"); got.code != exitFailure || !strings.Contains(got.out, "lacks a permission: HSET") {
		t.Errorf("%+v", got)
	}
}

func TestCheckTellsABadConfiguration(t *testing.T) {
	environment(t, "redis://"+nobody(t), "TIMEOUT=20", "CONCURENCY=3")
	got := call(t, "check")
	if got.code != exitUsage || got.err != "dispatcher: check: 2 errors\n" || strings.Count(got.out, "\n") != 3 ||
		!strings.Contains(got.out, "error  DISPATCHER_CONCURENCY") {
		t.Errorf("%+v", got)
	}
	if got := call(t, "check", "--json"); got.code != exitUsage || !strings.Contains(got.out, `{"level":"error","subject":"DISPATCHER_TIMEOUT","text":"`) {
		t.Errorf("%+v", got)
	}
}

func TestCheckTellsOfRoutesThatCannotBeServed(t *testing.T) {
	environment(t, redistest.Shared(t).URL(), "ROUTES=check-orders=lambda:f check-thumbs=http://127.0.0.1:1/")
	noAWS(t)
	got := call(t, "check")
	if got.code != exitUsage || !strings.Contains(got.out, "no region is known") || !strings.Contains(got.out, "ok     redis") {
		t.Errorf("%+v", got)
	}
	environment(t, redistest.Shared(t).URL(), "ROUTES=")
	if got := call(t, "check"); got.code != exitUsage || !strings.Contains(got.out, "nothing to serve") {
		t.Errorf("%+v", got)
	}
}

func TestCheckAsksForFunctions(t *testing.T) {
	endpoint := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		if c.Function == "gone" {
			return fakelambda.Answer{Status: 404, Code: "ResourceNotFoundException", Body: `{"Message":"Function not found"}`}
		}
		return fakelambda.Answer{}
	})
	environment(t, redistest.Shared(t).URL(), "ROUTES=check-orders=lambda:thumbs:live check-thumbs=lambda:gone")
	for _, entry := range endpoint.Environment() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	got := call(t, "check")
	if got.code != exitFailure || !strings.Contains(got.out, "lambda:thumbs:live may be invoked") ||
		!strings.Contains(got.out, "lambda:gone cannot be invoked: target 404: ResourceNotFoundException: Function not found") {
		t.Errorf("%+v", got)
	}
	for _, c := range endpoint.Calls() {
		if c.Kind != "DryRun" {
			t.Errorf("function %s was run", c.Function)
		}
	}
}

// noAWS hides the AWS settings and credentials of this host from the SDK.
func noAWS(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
}
