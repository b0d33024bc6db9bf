package lifecycle

import "testing"

func TestPause(t *testing.T) {
	onBoth(t, func(b *bench) {
		q := b.queue()
		b.alive("w")
		b.push("a")
		for _, c := range []struct {
			what string
			act  func() (bool, error)
			want bool
		}{
			{"resume unpaused", func() (bool, error) { return q.Resume(b.ctx) }, false},
			{"pause", func() (bool, error) { return q.Pause(b.ctx) }, true},
			{"pause again", func() (bool, error) { return q.Pause(b.ctx) }, false},
		} {
			changed, err := c.act()
			b.equal(c.what, words(changed, err), words(c.want, nil))
		}
		b.equal("lease", b.lease(leaseCall{}).Code, "PAUSED")
		changed, err := q.Resume(b.ctx)
		b.equal("resume", words(changed, err), words(true, nil))
		b.take(leaseCall{}, "a")
	})
}
