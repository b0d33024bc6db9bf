package dispatcher

import "errors"

// Why a dispatcher is not ready.
var (
	// ErrStarting is the state before the dispatcher is registered with Redis.
	ErrStarting = errors.New("starting")
	// ErrDraining is the state once it has been told to stop.
	ErrDraining = errors.New("draining")
	// ErrSilent is the state when the last good heartbeat is so long ago that no attempt may start.
	ErrSilent = errors.New("no heartbeat succeeds")
)

// Ready returns nil when the dispatcher can lease, else why it cannot.
func (d *Dispatcher) Ready() error {
	s := d.session.Load()
	switch {
	case d.closing.ctx.Err() != nil:
		return ErrDraining
	case s == nil:
		return ErrStarting
	case s.heart != nil && !s.heart.Alive():
		return ErrSilent
	}
	if leasing, ok := s.life.(interface{ Fault() error }); ok {
		return leasing.Fault()
	}
	return nil
}
