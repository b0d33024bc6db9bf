package chaos

import (
	"slices"
	"time"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
)

// begin makes a fault happen. A fault that cannot happen now, such as freezing a dead dispatcher, does not count.
func (tr *trial) begin(f Fault) {
	var happens bool
	switch f.Kind {
	case Kill, Freeze, Terminate:
		happens = tr.beginProcess(f)
	case Cut, Sever, HalfOpen, Delay, Throttle, LoseReply, LoseCall:
		happens = tr.beginLink(f)
	case Restart, Crash, Pause, Full, ScriptFlush, ClientKill:
		happens = tr.beginRedis(f)
	case Failover, Takeover, SlotMoves:
		tr.many.begin(tr.t, f)
		happens = true
	case Errors, Hangs, Resets, Throttles, Slow:
		tr.queue.Receiver.SetScript(script(f))
		happens = true
	case Janitor:
		tr.runs = append(tr.runs, fleet.Start(tr.t, fleet.Janitor, nil,
			prefixed("JANITOR_", append(tr.redis(nil), "GRACE=1s"))))
		happens = true
	}
	if happens {
		tr.figures.Faults[f.Kind]++
	}
}

// over ends a fault.
func (tr *trial) over(f Fault) {
	switch f.Kind {
	case Kill, Terminate:
		if tr.slots[f.Slot].now == nil {
			tr.launch(f.Slot)
		}
	case Freeze:
		tr.thaw(f.Slot)
	case Cut, Sever, HalfOpen, Delay, Throttle, LoseReply, LoseCall:
		tr.slots[f.Slot].proxy.Restore()
	case Restart, Crash, Pause, Full, ScriptFlush, ClientKill:
		tr.overRedis(f)
	case Failover, Takeover, SlotMoves:
		tr.many.over(tr.t, f)
	case Errors, Hangs, Resets, Throttles, Slow:
		tr.queue.Receiver.SetScript(nil)
	case Janitor:
	}
}

func (tr *trial) beginProcess(f Fault) bool {
	s := tr.slots[f.Slot]
	l := s.now
	if l == nil || (f.Kind == Terminate && l.server.Log() == "") {
		return false // between two, or just launched and not catching signals yet
	}
	switch f.Kind {
	case Freeze:
		l.server.Suspend(tr.t)
		l.frozen = true
	case Terminate:
		l.server.Terminate(tr.t)
		s.now = nil
	default:
		l.server.Kill()
		l.killed, s.now = true, nil
	}
	return true
}

func (tr *trial) thaw(i int) {
	if l := tr.slots[i].now; l != nil && l.frozen {
		l.server.Resume(tr.t)
		l.frozen = false
	}
}

func (tr *trial) beginLink(f Fault) bool {
	p := tr.slots[f.Slot].proxy
	switch f.Kind {
	case Cut:
		p.Cut()
	case Sever:
		p.Sever()
	case HalfOpen:
		p.Swallow([]faultproxy.Direction{faultproxy.Requests, faultproxy.Replies, faultproxy.Both}[int(f.Draw*3)])
	case Delay:
		p.Delay(faultproxy.Both, time.Duration(f.Draw*float64(400*time.Millisecond)))
	case Throttle:
		p.Throttle(faultproxy.Both, 2000+int(f.Draw*50_000))
	case LoseReply:
		p.LoseReplies(1+int(f.Draw*10), "")
	default:
		p.LoseRequests(1+int(f.Draw*10), "")
	}
	return true
}

func (tr *trial) beginRedis(f Fault) bool {
	ctx, rdb := tr.t.Context(), tr.server.Admin(tr.t)
	switch f.Kind {
	case Restart:
		tr.server.Stop(tr.t)
	case Crash:
		tr.server.Kill(tr.t)
	case Pause:
		tr.server.Pause(tr.t)
	case Full:
		tr.try(rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	case ScriptFlush:
		tr.try(rdb.ScriptFlush(ctx).Err())
	default:
		tr.try(rdb.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err())
	}
	return true
}

func (tr *trial) overRedis(f Fault) {
	switch f.Kind {
	case Restart, Crash:
		tr.server.Start(tr.t)
	case Pause:
		tr.server.Continue(tr.t)
	case Full:
		tr.try(tr.server.Admin(tr.t).ConfigSet(tr.t.Context(), "maxmemory", "0").Err())
	default:
	}
}

// script is what the receiver does during a fault.
func script(f Fault) receiver.Script {
	bad := receiver.Share{Weight: 0.2 + 0.8*f.Draw}
	switch f.Kind {
	case Hangs:
		bad.Answer = receiver.Never()
	case Resets:
		bad.Answer = receiver.HangUp(receiver.Reset, []receiver.When{
			receiver.AfterRead, receiver.BeforeRead, receiver.AfterHeaders, receiver.AfterBody,
		}[int(f.Draw*4)])
	case Throttles:
		bad.Answer = receiver.Status(429).With("Retry-After", "1")
	case Slow:
		bad.Answer = receiver.Status(200).After(time.Duration(f.Draw * float64(timeout)))
	default:
		bad.Answer = receiver.Status([]int{500, 503, 404, 302, 400}[int(f.Draw*5)])
	}
	seed := uint64(f.At) //nolint:gosec // not negative
	return receiver.Mix(seed, bad, receiver.Share{Weight: 1 - bad.Weight, Answer: receiver.Status(204)})
}

// heal ends all faults that are not over, and returns when the queue is drained.
func (tr *trial) heal() {
	tr.queue.Receiver.SetScript(nil)
	for i, s := range tr.slots {
		if s.proxy != nil {
			s.proxy.Restore()
		}
		tr.thaw(i)
		if s.now == nil {
			tr.launch(i)
		}
	}
	for _, s := range tr.slots {
		s.now.server.AwaitReady(tr.t)
	}
	tr.queue.AwaitDrained(tr.t)
}

// end stops everything and awaits it.
func (tr *trial) end() {
	for _, s := range tr.slots {
		s.now.server.Terminate(tr.t)
	}
	for _, l := range tr.lives {
		if !l.killed {
			if code := l.server.Wait(tr.t); code != 0 {
				tr.t.Errorf("dispatcher %s ended with exit code %d\n%s", l.name, code, l.server.Log())
			}
		}
	}
	for _, run := range tr.runs {
		tr.figures.count(run.Wait(tr.t))
	}
	for id, held := range tr.queue.Places(tr.t).InFlight {
		tr.t.Errorf("dispatcher %s has stopped and holds %d tasks", id, len(held))
	}
}

func (tr *trial) try(err error) {
	tr.t.Helper()
	if err != nil {
		tr.t.Fatalf("chaos: %v", err)
	}
}

// life finds the dispatcher that made a request, by the path.
func (tr *trial) life(r receiver.Request) *life {
	i := slices.IndexFunc(tr.lives, func(l *life) bool { return "/"+l.name == r.Path })
	if i < 0 {
		tr.t.Fatalf("request %d to %s: of nobody", r.Seq, r.Path)
	}
	return tr.lives[i]
}
