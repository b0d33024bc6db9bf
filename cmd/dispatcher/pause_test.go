package main

import (
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/redistest"
)

func TestPauseAndResume(t *testing.T) {
	rdb, queue := shared(t)
	if err := rdb.SAdd(t.Context(), "queuehook:queues", queue).Err(); err != nil {
		t.Fatal(err)
	}
	ok(t, call(t, "enqueue", queue, "--data", "x"))
	for _, c := range []struct{ verb, want string }{
		{"resume", " was not paused\n"},
		{"pause", " paused: nothing more is leased\n"},
		{"pause", " was paused already\n"},
	} {
		if out := ok(t, call(t, c.verb, queue)); out != queue+c.want {
			t.Errorf("%s: %q, want %q", c.verb, out, c.want)
		}
	}
	if _, tasks := leased(t, rdb, queue, time.Minute); len(tasks) > 0 {
		t.Errorf("leased %v while paused", tasks)
	}
	for _, c := range []struct{ verb, want string }{
		{"pause", `"paused":true,"changed":false}`},
		{"resume", `"paused":false,"changed":true}`},
		{"resume", `"paused":false,"changed":false}`},
		{"pause", `"paused":true,"changed":true}`},
		{"resume", `"paused":false,"changed":true}`},
	} {
		if out := ok(t, call(t, c.verb, queue, "--json")); out != `{"queue":"`+queue+`",`+c.want+"\n" {
			t.Errorf("%s: %s, want %s", c.verb, out, c.want)
		}
	}
	if _, tasks := leased(t, rdb, queue, time.Minute); len(tasks) != 1 {
		t.Errorf("leased %d tasks after it was resumed, want 1", len(tasks))
	}
}

func TestPauseTellsOfAQueueThatNobodyServes(t *testing.T) {
	rdb, queue := shared(t)
	queue += "-mistyped"
	got := call(t, "pause", queue)
	want := said{exitOK, queue + " paused: nothing more is leased\n", "dispatcher: no dispatcher ever served a queue named " + queue + "\n"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Other programs may have put anything into the key: only its presence counts.
	if err := rdb.Del(t.Context(), "{"+queue+"}:paused").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.LPush(t.Context(), "{"+queue+"}:paused", "by hand").Err(); err != nil {
		t.Fatal(err)
	}
	if out := call(t, "pause", queue).out; out != queue+" was paused already\n" {
		t.Errorf("paused by other means: %q", out)
	}
	if out := ok(t, call(t, "resume", queue)); out != queue+" resumed\n" {
		t.Errorf("resumed: %q", out)
	}
}

func TestPauseInAFullRedis(t *testing.T) {
	s := redistest.Start(t, redistest.Config{MaxMemory: 1})
	environment(t, s.URL(), "ROUTES=orders=http://127.0.0.1:1/")
	for range 2 {
		ok(t, call(t, "pause", "orders"))
		if n := s.Client(t).Exists(t.Context(), "{orders}:paused").Val(); n != 1 {
			t.Error("not paused")
		}
		ok(t, call(t, "resume", "orders"))
		if n := s.Client(t).Exists(t.Context(), "{orders}:paused").Val(); n != 0 {
			t.Error("not resumed")
		}
	}
	fails(t, call(t, "pause"), exitUsage, "takes one queue")
	fails(t, call(t, "pause", "orders:qh:in"), exitUsage, "bad queue name")
}
