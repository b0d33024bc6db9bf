package dispatcher

import "errors"

// Why a dispatcher is not ready.
var (
	// ErrStarting is the state before Redis has taken the registration.
	ErrStarting = errors.New("starting")
	// ErrDraining is the state from the order to stop on.
	ErrDraining = errors.New("draining")
	// ErrSilent is the state when no heartbeat has succeeded for too long to start work.
	ErrSilent = errors.New("no heartbeat succeeds")
)

// Ready answers nil when the dispatcher can lease, else why it cannot.
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
