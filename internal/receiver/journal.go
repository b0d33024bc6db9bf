package receiver

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Request is the record of one request.
type Request struct {
	Seq     int64     // arrival number, from 1
	Arrived time.Time // its headers were read
	Conn    int64     // which connection, from 1; 0 when served by another server than ours
	Proto   string    // HTTP/1.1, HTTP/2.0
	Method  string
	Host    string
	Path    string // decoded path of the URL
	Query   string // raw query
	Header  http.Header
	TaskID  string // header Dispatch-Task-Id

	BodyRead bool   // the body was read to its end
	SHA256   string // hex, of a body that was read
	Size     int64  // bytes read
	Body     []byte // the first Config.KeepBody bytes

	Over     time.Time // from then on the client may know the end; zero before
	Status   int       // answered; 0 when no status line was sent
	Sent     bool      // the whole answer went to the kernel, the client being there
	Finished time.Time // no more is done about it; zero before
}

// Accepted says that the answer was one of success.
func (r Request) Accepted() bool { return r.Status >= 200 && r.Status <= 299 }

// journal keeps the last requests and counts all.
type journal struct {
	limit int

	mu      sync.Mutex
	changed chan struct{} // closed and replaced by every change
	kept    []*Request    // in order of recording, oldest first
	byTask  map[string][]*Request
	byBody  map[string][]*Request

	arrived  int64 // requests that came
	recorded int64 // requests that entered kept, dropped ones included
	handled  int64 // requests finished
	inFlight int   // came, and no client can know its answer
	peak     int
}

func newJournal(limit int) *journal {
	return &journal{
		limit:   limit,
		changed: make(chan struct{}),
		byTask:  map[string][]*Request{},
		byBody:  map[string][]*Request{},
	}
}

// update runs f under the lock and wakes who waits.
func (j *journal) update(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
	close(j.changed)
	j.changed = make(chan struct{})
}

// arrive numbers a request.
func (j *journal) arrive(r *Request) {
	j.update(func() {
		j.arrived++
		r.Seq = j.arrived
		j.inFlight++
		j.peak = max(j.peak, j.inFlight)
	})
}

// record makes a request visible; what is known of its body is final.
func (j *journal) record(r *Request) {
	j.update(func() {
		j.recorded++
		j.kept = append(j.kept, r)
		j.byTask[r.TaskID] = append(j.byTask[r.TaskID], r)
		if r.SHA256 != "" {
			j.byBody[r.SHA256] = append(j.byBody[r.SHA256], r)
		}
		for len(j.kept) > j.limit {
			oldest := j.kept[0]
			j.kept[0] = nil
			j.kept = j.kept[1:]
			forget(j.byTask, oldest.TaskID)
			forget(j.byBody, oldest.SHA256)
		}
	})
}

// forget drops the first request under key, which is the oldest.
func forget(index map[string][]*Request, key string) {
	if rest := index[key]; len(rest) > 1 {
		rest[0] = nil
		index[key] = rest[1:]
		return
	}
	delete(index, key)
}

// answering notes the status, before it is sent.
func (j *journal) answering(r *Request, status int) {
	j.update(func() { r.Status = status })
}

// over is called before the bytes that let a client know the end of its request: from then on it may send the next
// one, which must not count as a second in flight.
func (j *journal) over(r *Request) {
	j.update(func() {
		j.inFlight--
		r.Over = time.Now()
	})
}

// finish is the last change to r.
func (j *journal) finish(r *Request, sent bool) {
	j.update(func() {
		r.Sent = sent
		r.Finished = time.Now()
		j.handled++
	})
}

// snapshot copies records, so that the caller may keep them. Headers and bodies are shared, since they never change.
func snapshot(rs []*Request) []Request {
	out := make([]Request, len(rs))
	for i, r := range rs {
		out[i] = *r
	}
	return out
}

// wait blocks until done, asked under the lock, or the end of ctx.
func (j *journal) wait(ctx context.Context, done func() bool) error {
	for {
		j.mu.Lock()
		ok, changed := done(), j.changed
		j.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// Log is every kept request in order of recording: when its body was read, or when it is sure that it won't be.
func (r *Receiver) Log() []Request {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return snapshot(r.journal.kept)
}

// ByTask is every kept request for a task id, oldest first.
func (r *Receiver) ByTask(id string) []Request {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return snapshot(r.journal.byTask[id])
}

// ByBody is every kept request whose body has this SHA-256 (lower-case hex), oldest first.
func (r *Receiver) ByBody(sha256 string) []Request {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return snapshot(r.journal.byBody[sha256])
}

// Count is the number of requests recorded so far, those that the log has dropped included.
func (r *Receiver) Count() int64 {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return r.journal.recorded
}

// Dropped is how many of the oldest requests the log no longer holds. An audit must find 0.
func (r *Receiver) Dropped() int64 {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return r.journal.recorded - int64(len(r.journal.kept))
}

// InFlight is how many requests came and are unanswered, and the most there ever were at once.
func (r *Receiver) InFlight() (now, peak int) {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return r.journal.inFlight, r.journal.peak
}

// WaitCount returns once n requests are recorded, or with the cause of ctx's end. Their answers may still be on the
// way: see WaitIdle.
func (r *Receiver) WaitCount(ctx context.Context, n int64) error {
	return r.journal.wait(ctx, func() bool { return r.journal.recorded >= n })
}

// WaitIdle returns once every request that came is finished, so that Status and Sent are final, or with the cause of
// ctx's end.
func (r *Receiver) WaitIdle(ctx context.Context) error {
	return r.journal.wait(ctx, func() bool { return r.journal.handled == r.journal.arrived })
}
