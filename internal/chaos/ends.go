package chaos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
	"github.com/queuehook/queuehook/task"
)

// end is how a lease ended that did not complete its task, by what Redis has written. What dispatchers log would not do:
// it comes late, or never from one that is killed, and after a lost reply "not ours" is no error that anybody logs.
type end struct {
	pid     int    // of the dispatcher that held the task
	swept   bool   // a sweep took the task from it
	freed   bool   // the dispatcher gave it back, to be leased at once
	attempt int    // that ended with it; 0 = nothing was written of any
	reason  string // how that ended
	used    bool   // it explains a request
}

// cause is why the receiver may have accepted this attempt although nobody recorded that; empty when there is no reason
// why not.
func (e *end) cause(attempt int, killed bool) string {
	switch {
	case e.swept && killed:
		return "dispatcher killed"
	case e.swept:
		return "lease lost"
	case e.attempt != attempt:
		return ""
	case e.freed && e.reason == delivery.OK.String():
		return "stopped while redis was away"
	}
	for _, unknown := range []delivery.Reason{delivery.Timeout, delivery.Reset, delivery.StaleConnection, delivery.Shutdown} {
		if e.reason == unknown.String() {
			return e.reason
		}
	}
	return ""
}

// endsOf reads how the leases of a queue ended, by task and in order.
func endsOf(t testing.TB, server *redistest.Server, q *fleet.Queue) map[string][]*end {
	t.Helper()
	r := endReader{keys: q.Keys(t), pids: map[string]int{}, ends: map[string][]*end{}}
	server.Writes(t, func(command []string) {
		switch verb := strings.ToLower(command[0]); {
		case verb == "multi":
			r.now = map[string]*end{}
		case len(command) > 2:
			r.see(verb, command[1], command[2:])
		}
	})
	return r.ends
}

// endReader follows what scripts write to end leases. A script's writes are one transaction: it takes the tasks out of
// the in-flight hash, a sweep counting the crash of each first, and then completes them, or writes their metadata when
// there is something to be said of them.
type endReader struct {
	keys keyspace.Keys
	pids map[string]int // by dispatcher
	ends map[string][]*end

	now     map[string]*end // those of this transaction
	crashed string          // the task that a sweep is about to take
}

func (r *endReader) see(verb, key string, args []string) {
	worker, inFlight := r.keys.WorkerID(key)
	switch {
	case verb == "hset" && key == r.keys.Info:
		var info heartbeat.Info
		if json.Unmarshal([]byte(args[1]), &info) == nil {
			r.pids[args[0]] = info.PID
		}
	case verb == "hincrby" && key == r.keys.Crashes:
		r.crashed = args[0]
	case verb == "hdel" && inFlight:
		for _, id := range args {
			r.now[id] = &end{pid: r.pids[worker], swept: id == r.crashed}
			r.ends[id] = append(r.ends[id], r.now[id])
		}
	case verb == "hset" && key == r.keys.Meta && r.now[args[0]] != nil:
		if meta, err := task.DecodeMeta([]byte(args[1])); err == nil && len(meta.History) > 0 {
			last := meta.History[len(meta.History)-1]
			r.now[args[0]].attempt, r.now[args[0]].reason = last.Attempt, last.Reason
		}
	case verb == "zadd" && key == r.keys.Delayed && args[0] == "0" && r.now[args[1]] != nil:
		r.now[args[1]].freed = true
	case verb == "hdel" && key == r.keys.Body:
		for _, id := range args {
			if r.now[id] != nil { // it is completed
				r.ends[id] = slices.DeleteFunc(r.ends[id], func(e *end) bool { return e == r.now[id] })
			}
		}
	}
}
