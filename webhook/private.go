package webhook

import (
	"context"
	"net/netip"
	"syscall"

	"github.com/queuehook/queuehook/internal/publicnet"
)

// privateError is a connection that deny_private refused. It does not say to which address.
type privateError struct{}

func (privateError) Error() string { return "the address is private" }

// Refusal makes it the detail of the attempt.
func (e privateError) Refusal() string { return e.Error() }

// guard refuses connections to what is not public.
type guard struct{ publicnet.Registry }

// control is a net.Dialer's ControlContext. It sees the address that is about to be connected to, after all look-ups,
// so that a name which changes between a check and the connection (DNS rebinding) gains nothing.
func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !g.Public(to.Addr()) {
		return privateError{}
	}
	return nil
}
